"""Importance of parameters: Sobol indices of the posterior mean over the space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.predictions.tables import frame
from botorch_ext.ranks import highest_first
from botorch_ext.state import Immutable

if TYPE_CHECKING:
    import pandas as pd

# Points at which the mean is evaluated at once.
_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class Importance(Immutable):
    """How much of the variance of f over the space each parameter explains, by the model.

    With all parameters drawn independently as the space is sampled (log scales by their logarithm,
    whole numbers and categories with equal probabilities), the first-order index of parameter j is
    Var(E[f | x_j]) / Var(f), what it explains alone, and the total index is
    E[Var(f | all but x_j)] / Var(f), what it explains alone or with others. Here f is the posterior
    mean of the mixture of all models; linear constraints are ignored, as with them parameters are
    not independent.

    Source: Sobol 2001; the estimators of Saltelli et al. 2010, table 2 (b) and (f), the latter of
    Jansen 1999.

    Args:
        names: d names.
        first_order: ``d``, between 0 and 1 up to the error of the estimate.
        total: ``d``, likewise.
        std: The standard deviation of the posterior mean over the space, in units of the
            observations: where it is 0, so are all indices.
    """

    names: tuple[str, ...]
    first_order: Tensor
    total: Tensor
    std: float

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each parameter, the most important first: ``parameter``,
        ``first_order`` and ``total``.

        Raises:
            ImportError: pandas is not installed.
        """
        order = highest_first(self.total)
        return frame(
            {
                "parameter": [self.names[j] for j in order.tolist()],
                "first_order": self.first_order[order],
                "total": self.total[order],
            }
        )


def sobol_indices(
    function: Callable[[Tensor], Tensor], dim: int, num_samples: int, seed: int
) -> tuple[Tensor, Tensor, float]:
    """First-order and total Sobol indices of a function of the unit cube.

    Args:
        function: From ``n x d`` points of the unit cube, in float64, to ``n`` values.
        dim: d.
        num_samples: N, a power of 2: the function is evaluated at N (d + 2) points.
        seed: Of the scrambled Sobol points.

    Returns:
        The first-order indices, ``d``, the total ones, ``d``, and the standard deviation.
    """
    points = SobolEngine(2 * dim, scramble=True, seed=seed).draw(num_samples, dtype=torch.float64)
    A, B = points.split(dim, dim=-1)

    def values(X: Tensor) -> Tensor:
        return torch.cat([function(chunk) for chunk in X.split(_AT_ONCE)]).double().cpu()

    of_A, of_B = values(A), values(B)
    both = torch.cat([of_A, of_B])
    center, variance = both.mean(), both.var(correction=0)
    first, total = torch.zeros(dim, dtype=torch.float64), torch.zeros(dim, dtype=torch.float64)
    # A mean that is flat up to rounding has no variance to be explained.
    if float(variance) <= (1e-12 * float(both.abs().max())) ** 2:
        return first, total, 0.0
    for j in range(dim):
        mixed = A.clone()
        mixed[:, j] = B[:, j]
        of_mixed = values(mixed)
        first[j] = ((of_B - center) * (of_mixed - of_A)).mean() / variance
        total[j] = (of_A - of_mixed).square().mean() / (2 * variance)
    return first, total, float(variance.sqrt())
