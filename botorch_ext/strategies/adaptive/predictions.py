"""Predictions: which model a trial was chosen for, and what it promised there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

_NUMBERS = ("mean", "std", "width", "offset")


@dataclass(frozen=True)
class Prediction:
    """What a model promises at a point when the point is asked.

    In ``info`` of a trial ``model``, ``mean``, ``std``, ``width`` and ``offset`` are what the trial
    was chosen by, with pending trials as the policy says. Where models are judged by their
    predictions, ``told`` has the last four once more, from told data alone.

    Args:
        model: Which model, its place among the candidates.
        mean: Its posterior mean.
        std: Its posterior standard deviation.
        width: The multiplier of the standard deviation in its confidence bounds.
        offset: What they reach further than ``width * std``.
    """

    model: int
    mean: float
    std: float
    width: float
    offset: float

    def record(self, told: Prediction | None = None) -> dict[str, Any]:
        """What a trial records, with the prediction from told data alone where there is one."""
        record: dict[str, Any] = vars(self).copy()
        if told is not None:
            record["told"] = {name: getattr(told, name) for name in _NUMBERS}
        return record

    @classmethod
    def from_told(cls, record: dict[str, Any]) -> Self:
        """The prediction from told data alone that a trial has recorded."""
        return cls(record["model"], *(record["told"][name] for name in _NUMBERS))

    @classmethod
    def check_record(cls, record: Any, name: str, with_told: bool) -> None:
        """A ValueError unless this is what `record` makes."""
        if not isinstance(record, dict) or type(record.get("model")) is not int:
            raise ValueError(
                f"{name} must be a dict with a model, a whole number, and {list(_NUMBERS)}, got "
                f"{record!r}"
            )
        parts: dict[str, Any] = {name: record}
        if with_told:
            parts[f"'told' in the {name}"] = record.get("told")
        for whose, part in parts.items():
            _check_numbers(part, whose)

    @property
    def half_width(self) -> float:
        """Of the confidence bounds."""
        return self.width * self.std + self.offset


def _check_numbers(record: Any, name: str) -> None:
    if not isinstance(record, dict) or not set(_NUMBERS) <= record.keys():
        raise ValueError(f"{name} must be a dict with {list(_NUMBERS)}, got {record!r}")
    for field in _NUMBERS:
        value = record[field]
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError(f"{field} in the {name} must be a finite number, got {value!r}")
        if field != "mean" and value < 0:
            raise ValueError(f"{field} in the {name} must be at least 0, got {value!r}")


@dataclass(frozen=True)
class Play:
    """An observation and the model it was made for.

    Args:
        t: How many observations there were, initial ones included.
        trial: The id of the trial that was told.
        model: The model, its place among the candidates.
    """

    t: int
    trial: int
    model: int


@dataclass(frozen=True)
class ToldOnly:
    """What a width sees of one model when some rows are left out: a `ConfidenceModel`."""

    noise_variance: Tensor
    num_observations: int
    dim: int
    gain: Tensor

    def information_gain(self) -> Tensor:
        return self.gain
