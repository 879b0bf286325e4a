"""The prediction of the model that a trial was chosen for."""

from __future__ import annotations

from dataclasses import dataclass, field

from botorch_ext.hyperparameters.fitted import Hyperparameters
from botorch_ext.records import Finite, NonNegative, Positive


@dataclass(frozen=True)
class _Numbers:
    mean: Finite
    std: NonNegative
    width: NonNegative
    offset: NonNegative
    ridge: Positive | None = None
    upper: Finite | None = None
    lower: Finite | None = None


@dataclass(frozen=True)
class Interval(_Numbers):
    """The confidence interval of a model at a point.

    Args:
        mean: The posterior mean.
        std: The posterior standard deviation.
        width: The multiplier of the standard deviation.
        offset: The part of the half-width that is added to ``width * std``.
        ridge: If bounds at several ridges are intersected, the multiple of the model's ridge whose
            numbers these are: that of the least upper bound.
        upper: The upper end of the intersection, if there are several ridges.
        lower: Its lower end.
    """

    @property
    def center(self) -> float:
        """The middle of the interval."""
        if self.upper is None or self.lower is None:
            return self.mean
        return (self.upper + self.lower) / 2

    @property
    def half_width(self) -> float:
        """Half the length of the interval; 0 if its ends have passed each other."""
        if self.upper is None or self.lower is None:
            return self.width * self.std + self.offset
        return max(self.upper - self.lower, 0.0) / 2


@dataclass(frozen=True, kw_only=True)
class Prediction(_Numbers):
    """The prediction of a model at a point when the point is asked, as ``info`` of a trial has it.

    The numbers are those that the trial was chosen by, with pending trials as the policy says. The
    other arguments are those of `Interval`.

    Args:
        model: The position of the model among the candidates.
        told: If models are judged by their predictions, the interval from told data alone.
    """

    model: int
    told: Interval | None = None


@dataclass(frozen=True)
class Played(Prediction):
    """The record of a trial that a `BoundsStrategy` chose.

    Args:
        fit: The hyperparameters that were fitted before the trial, if they were.
        pessimistic: The prediction of the model with the lowest lower bound, if there is one.
    """

    fit: Hyperparameters | None = None
    pessimistic: Prediction | None = None


@dataclass(frozen=True, kw_only=True)
class PlayedWorstCase(Played):
    """The record of a trial that a `StableStrategy` chose.

    Args:
        center: The coordinates of the centre.
        center_index: Its row in a finite set.
    """

    pessimistic: Prediction = field()  # without the default of `Played`
    center: tuple[Finite, ...]
    center_index: int | None = None


@dataclass(frozen=True)
class Play:
    """An observation of a trial, and the model that chose the trial.

    Args:
        t: The number of observations so far, initial ones included.
        trial: The id of the told trial.
        model: The position of the model among the candidates.
    """

    t: int
    trial: int
    model: int
