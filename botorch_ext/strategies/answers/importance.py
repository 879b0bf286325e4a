"""Importance of parameters: Sobol indices of the posterior mean over the space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains import host
from botorch_ext.domains.ranks import highest_first
from botorch_ext.state import Immutable
from botorch_ext.strategies.answers.tables import frame, lines_of

if TYPE_CHECKING:
    import pandas as pd

# At how many points the mean is evaluated at once.
_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class Importance(Immutable):
    """The share of the variance of the posterior mean over the space that each parameter explains.

    All parameters are drawn independently, as the space is sampled: log scales by their logarithm,
    whole numbers and categories with equal probabilities. The first-order index of parameter j,
    Var(E[f | x_j]) / Var(f), is what it explains alone. The total index,
    E[Var(f | all but x_j)] / Var(f), is what it explains alone or with others. Here f is the
    posterior mean of the mixture of all models. Constraints are ignored, because parameters
    are not independent under them.

    Source: Sobol 2001; the estimators of Saltelli et al. 2010, table 2 (b) and (f), the latter of
    Jansen 1999.

    Args:
        names: The d names of the parameters.
        first_order: The ``d`` first-order indices, between 0 and 1 up to the error of the estimate.
        total: The ``d`` total indices, likewise.
        std: The standard deviation of the posterior mean over the space, in units of the
            observations. If it is 0, so are all indices.
    """

    names: tuple[str, ...]
    first_order: Tensor
    total: Tensor
    std: float

    def __repr__(self) -> str:
        """The table of `to_pandas`, in six digits."""
        num = len(self.names)
        head = f"Importance of {num} parameter{'' if num == 1 else 's'}"
        std = f"standard deviation of the posterior mean over the space: {self.std:.3g}"
        return "\n  ".join([head, *lines_of(self._columns), std])

    def to_pandas(self) -> pd.DataFrame:
        """The indices as a data frame.

        Returns:
            A row for each parameter, with the columns ``parameter``, ``first_order`` and ``total``,
            the most important parameter first. An estimate below 0 is shown as 0.

        Raises:
            ImportError: pandas is not installed.
        """
        return frame(self._columns)

    @property
    def _columns(self) -> dict[str, Any]:
        order = highest_first(self.total)
        return {
            "parameter": [self.names[j] for j in order.tolist()],
            "first_order": self.first_order[order].clamp_min(0),
            "total": self.total[order].clamp_min(0),
        }


def sobol_indices(
    function: Callable[[Tensor], Tensor], dim: int, num_samples: int, seed: int
) -> tuple[Tensor, Tensor, float]:
    """First-order and total Sobol indices of a function of the unit cube.

    Args:
        function: A function from ``n x d`` points of the unit cube, in float64, to ``n`` values.
        dim: d.
        num_samples: N, a power of 2: the function is evaluated at N (d + 2) points.
        seed: The seed of the scrambled Sobol points.

    Returns:
        The ``d`` first-order indices, the ``d`` total indices, and the standard deviation.
    """
    points = SobolEngine(2 * dim, scramble=True, seed=seed).draw(num_samples, dtype=torch.float64)
    A, B = points.split(dim, dim=-1)

    def values(X: Tensor) -> Tensor:
        return torch.cat([function(chunk) for chunk in X.split(_AT_ONCE)]).double().cpu()

    of_A, of_B = values(A), values(B)
    both = torch.cat([of_A, of_B])
    center, variance = both.mean(), both.var(correction=0)
    first, total = host.zeros(dim, dtype=torch.float64), host.zeros(dim, dtype=torch.float64)
    # A function that is constant up to rounding has no variance to explain.
    if float(variance) <= (1e-12 * float(both.abs().max())) ** 2:
        return first, total, 0.0
    for j in range(dim):
        mixed = A.clone()
        mixed[:, j] = B[:, j]
        of_mixed = values(mixed)
        first[j] = ((of_B - center) * (of_mixed - of_A)).mean() / variance
        total[j] = (of_A - of_mixed).square().mean() / (2 * variance)
    return first, total, float(variance.sqrt())
