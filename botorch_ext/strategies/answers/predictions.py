"""Predictions of f and of observations at points."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from botorch_ext.aligned import free_names
from botorch_ext.checks import one_number, short
from botorch_ext.domains import Domain
from botorch_ext.state import Immutable
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.answers.tables import columns_of, frame, lines_of

if TYPE_CHECKING:
    import pandas as pd

#: The levels of the quantiles of a prediction, unless others are given.
LEVELS = (0.05, 0.95)
_FEASIBILITY = "feasibility"


@dataclass(frozen=True, eq=False)
class Predictions(Immutable):
    """The predictions of a model at n points. Their text is a table.

    The distribution of f at a point is the model's: a normal distribution for one GP, a mixture of
    normal distributions for several. The quantiles are exact quantiles of that distribution. Some
    methods transform low observations before they model them. Quantiles are then transformed back
    exactly. ``mean`` is the mean of the transformed values, transformed back, as in
    `Strategy.best`, and ``std`` is the standard deviation to first order around it.

    Example:
        >>> import botorch_ext as bx
        >>> strategy = bx.algorithms.integrated_ei(bx.Box([(0, 20), (1, 80)]))
        >>> for trial in strategy.ask(8):
        ...     strategy.tell(trial, -float(trial.x[0]))
        >>> found = strategy.predict([[5.0, 40.0], [10.0, 40.0]], levels=(0.25, 0.75))
        >>> [*found.to_pandas()][:6]
        ['x0', 'x1', 'mean', 'std', '25 %', '75 %']
        >>> bool(found.mean[0] > found.mean[1])
        True

    Args:
        x: ``n x d`` points.
        contexts: ``n x d_z`` contexts, or None.
        mean: ``n`` means of f.
        std: ``n`` standard deviations of f.
        levels: The k probabilities of the quantiles.
        quantiles: ``n x k`` quantiles of f.
        observation_quantiles: ``n x k`` quantiles of one observation, whose noise is added.
        domain: The domain of the points, which names their columns.
        context_domain: The domain of the contexts, likewise, or None.
        feasibility: The ``n`` probabilities that the points are feasible, as for `Recommendation`,
            or None.
    """

    x: Tensor
    contexts: Tensor | None
    mean: Tensor
    std: Tensor
    levels: tuple[float, ...]
    quantiles: Tensor
    observation_quantiles: Tensor
    domain: Domain
    context_domain: Domain | None = None
    feasibility: Tensor | None = None

    @classmethod
    def of(
        cls,
        mixture: GPMixture,
        rows: Tensor,
        domain: Domain,
        levels: Sequence[float] = LEVELS,
        context_domain: Domain | None = None,
    ) -> Predictions:
        """Computes the predictions of a mixture.

        Args:
            mixture: The model.
            rows: ``n x (d + d_z)`` joint rows.
            domain: The domain of the points.
            levels: The probabilities of the quantiles.
            context_domain: The domain of the contexts, or None.

        Raises:
            ValueError: A level is not strictly between 0 and 1.
        """
        levels, d = checked_levels(levels), domain.dim
        mean, std = mixture.mean_and_std(rows)
        return cls(
            rows[:, :d].clone(),
            rows[:, d:].clone() if rows.shape[-1] > d else None,
            mean,
            std,
            levels,
            mixture.quantiles(rows, levels),
            mixture.quantiles(rows, levels, noisy=True),
            domain,
            context_domain,
        )

    def __repr__(self) -> str:
        """The table of `to_pandas` in digits that can be read."""
        head = f"Predictions at {len(self)} point{'' if len(self) == 1 else 's'}"
        columns = self._columns(self.readable)
        return "\n  ".join([head, *lines_of(columns, self.domain, self.context_domain)])

    @property
    def names(self) -> tuple[str, ...]:
        """The ``d`` names of the columns of ``x``."""
        return self.domain.names

    def __len__(self) -> int:
        return len(self.mean)

    def negated(self) -> Predictions:
        """The predictions of -f, with ascending levels if the levels ascend."""
        quantiles, noisy = -self.quantiles.flip(-1), -self.observation_quantiles.flip(-1)
        return replace(
            self,
            mean=-self.mean,
            levels=mirrored(self.levels),
            quantiles=quantiles,
            observation_quantiles=noisy,
        )

    def to_pandas(self) -> pd.DataFrame:
        """The predictions as a data frame.

        Returns:
            A row for each point, with the parameters by name; contexts by name, or as ``context0``
            and so on; ``mean`` and ``std``; quantiles of f, such as ``5 %``; quantiles of an
            observation, such as ``observed 5 %``; and ``feasibility``.

        Raises:
            ImportError: pandas is not installed.
        """
        return frame(self._columns(self.numbers))

    def _columns(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        columns = columns_of(self.x, self.contexts, self.domain, self.context_domain)
        return columns | dict(zip(free_names(numbers, columns), numbers.values(), strict=True))

    @property
    def numbers(self) -> dict[str, Tensor]:
        """The ``n`` means, standard deviations, quantiles and feasibilities, by their names in
        tables."""
        found = {"mean": self.mean, "std": self.std}
        for prefix, values in (("", self.quantiles), ("observed ", self.observation_quantiles)):
            for level, own in zip(self.levels, values.mT, strict=True):
                found[f"{prefix}{100 * level:.6g} %"] = own
        return found if self.feasibility is None else found | {_FEASIBILITY: self.feasibility}

    @property
    def readable(self) -> dict[str, list[float]]:
        """The ``n`` numbers each of `numbers`, rounded to the third digit of the standard
        deviation of their point; probabilities to three digits."""
        stds = (max(std, sys.float_info.min) for std in self.std.tolist())
        places = [2 - math.floor(math.log10(std)) for std in stds]
        digits = {_FEASIBILITY: [3] * len(places)}
        return {
            name: [
                round(*pair) + 0.0
                for pair in zip(values.tolist(), digits.get(name, places), strict=True)
            ]
            for name, values in self.numbers.items()
        }


def mirrored(levels: Sequence[float]) -> tuple[float, ...]:
    """The levels of the quantiles of -f that are the quantiles of f at these levels."""
    return tuple(round(1 - level, 15) for level in reversed(levels))


def checked_levels(levels: Any) -> tuple[float, ...]:
    """Levels, all strictly between 0 and 1; else a ValueError."""
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence):
        raise ValueError(f"levels must be probabilities, as in (0.05, 0.95), got {short(levels)}")
    numbers = tuple(one_number(level, "levels") for level in levels)
    if not numbers or not all(0 < level < 1 and math.isfinite(level) for level in numbers):
        raise ValueError(f"levels must be strictly between 0 and 1, got {short(levels)}")
    return numbers
