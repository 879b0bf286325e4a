"""Which model a trial was played for, and what it predicted: judged when the trial is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Prediction:
    """What a model predicted at a point from told data alone, when the point was asked.

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

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Prediction:
        """The prediction that a trial has recorded."""
        return cls(**{field: record[field] for field in cls.__annotations__})

    @classmethod
    def check_record(cls, record: Any, name: str) -> None:
        """A ValueError unless this is a record of a prediction."""
        fields = list(cls.__annotations__)
        if not isinstance(record, dict) or not set(fields) <= record.keys():
            raise ValueError(f"{name} must be a dict with {fields}, got {record!r}")
        if type(record["model"]) is not int:
            raise ValueError(f"model in the {name} must be a whole number, got {record['model']!r}")
        for field in fields[1:]:
            value = record[field]
            if type(value) not in (int, float) or not math.isfinite(value):
                raise ValueError(f"{field} in the {name} must be a finite number, got {value!r}")
            if field != "mean" and value < 0:
                raise ValueError(f"{field} in the {name} must be at least 0, got {value!r}")

    @property
    def half_width(self) -> float:
        """Of the confidence bounds."""
        return self.width * self.std + self.offset


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
