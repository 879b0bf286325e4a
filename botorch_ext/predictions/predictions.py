"""Predictions of f and of observations at points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains import Domain
from botorch_ext.predictions.mixture import GPMixture
from botorch_ext.predictions.tables import columns_of, frame, lines_of
from botorch_ext.state import Immutable

if TYPE_CHECKING:
    import pandas as pd

#: The quantiles of a prediction that are not asked for otherwise.
LEVELS = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Predictions(Immutable):
    """What a model predicts at n points.

    The distribution of f at a point is that of the model: a normal distribution for one GP, a
    mixture of them for several. Quantiles are exact quantiles of it. Where a method bends or
    squeezes low observations before it models them, quantiles are carried back exactly; ``mean`` is
    the mean of the bent values carried back, as in `Strategy.best`, and ``std`` is of first order
    around it.

    Args:
        x: ``n x d`` points.
        contexts: ``n x d_z``, or None.
        mean: ``n`` means of f.
        std: ``n`` standard deviations of f.
        levels: k probabilities.
        quantiles: ``n x k`` quantiles of f at these levels.
        observation_quantiles: ``n x k`` quantiles of one observation, whose noise is added.
        domain: Where the points lie; it names their columns.
    """

    x: Tensor
    contexts: Tensor | None
    mean: Tensor
    std: Tensor
    levels: tuple[float, ...]
    quantiles: Tensor
    observation_quantiles: Tensor
    domain: Domain

    @classmethod
    def of(
        cls,
        mixture: GPMixture,
        rows: Tensor,
        domain: Domain,
        levels: Sequence[float] = LEVELS,
    ) -> Predictions:
        """The predictions of a mixture at ``n x (d + d_z)`` joint rows.

        Raises:
            ValueError: Levels that are no probabilities strictly between 0 and 1.
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
        )

    def __repr__(self) -> str:
        """The table of `to_pandas`, in numbers of six digits."""
        head = f"Predictions at {len(self)} point{'' if len(self) == 1 else 's'}"
        return "\n  ".join([head, *lines_of(self._columns, self.domain)])

    @property
    def names(self) -> tuple[str, ...]:
        """``d``: what the columns of ``x`` are called."""
        return self.domain.names

    def __len__(self) -> int:
        return len(self.mean)

    def negated(self) -> Predictions:
        """The predictions of -f, in the order of ascending levels if these are so."""
        quantiles, noisy = -self.quantiles.flip(-1), -self.observation_quantiles.flip(-1)
        return replace(
            self,
            mean=-self.mean,
            levels=mirrored(self.levels),
            quantiles=quantiles,
            observation_quantiles=noisy,
        )

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each point: its columns by name, those of contexts as
        ``context 0`` and so on, then ``mean``, ``std``, and quantiles of f, as ``5 %``, and of an
        observation, as ``observed 5 %``.

        Raises:
            ImportError: pandas is not installed.
        """
        return frame(self._columns)

    @property
    def _columns(self) -> dict[str, Any]:
        return columns_of(self.x, self.contexts, self.domain) | self.numbers

    @property
    def numbers(self) -> dict[str, Tensor]:
        """What is predicted, ``n`` each, by the names that tables have for it."""
        found = {"mean": self.mean, "std": self.std}
        for prefix, values in (("", self.quantiles), ("observed ", self.observation_quantiles)):
            for level, own in zip(self.levels, values.mT, strict=True):
                found[f"{prefix}{100 * level:.6g} %"] = own
        return found


def mirrored(levels: Sequence[float]) -> tuple[float, ...]:
    """The levels of the quantiles of -f that are the quantiles of f at these levels."""
    return tuple(round(1 - level, 15) for level in reversed(levels))


def checked_levels(levels: Any) -> tuple[float, ...]:
    """Probabilities strictly between 0 and 1, or a ValueError."""
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence):
        raise ValueError(f"levels must be probabilities, as in (0.05, 0.95), got {short(levels)}")
    numbers = tuple(one_number(level, "levels") for level in levels)
    if not numbers or not all(0 < level < 1 and math.isfinite(level) for level in numbers):
        raise ValueError(f"levels must be strictly between 0 and 1, got {short(levels)}")
    return numbers
