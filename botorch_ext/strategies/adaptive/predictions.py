"""The prediction of the model that a trial was chosen for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

_NUMBERS = ("mean", "std", "width", "offset")


@dataclass(frozen=True)
class Prediction:
    """The prediction of a model at a point when the point is asked.

    In ``info`` of a trial, ``model``, ``mean``, ``std``, ``width`` and ``offset`` are the numbers
    that the trial was chosen by, with pending trials as the policy says. If models are judged by
    their predictions, ``told`` has the last four once more, from told data alone.

    Args:
        model: The position of the model among the candidates.
        mean: Its posterior mean.
        std: Its posterior standard deviation.
        width: The multiplier of the standard deviation in its confidence bounds.
        offset: The part of their half-width that is added to ``width * std``.
    """

    model: int
    mean: float
    std: float
    width: float
    offset: float

    def record(self, told: Prediction | None = None) -> dict[str, Any]:
        """The prediction as a dict for ``info``, with the one from told data alone if it is
        given."""
        record: dict[str, Any] = vars(self).copy()
        if told is not None:
            record["told"] = {name: getattr(told, name) for name in _NUMBERS}
        return record

    @classmethod
    def from_told(cls, record: dict[str, Any]) -> Self:
        """The prediction from told data alone in the ``info`` of a trial."""
        return cls(record["model"], *(record["told"][name] for name in _NUMBERS))

    @classmethod
    def check_record(cls, record: Any, name: str, with_told: bool) -> None:
        """Raises a ValueError unless `record` could have made this."""
        if not isinstance(record, dict) or type(record.get("model")) is not int:
            raise ValueError(
                f"{name} must be a dict with a model, a whole number, and {list(_NUMBERS)}, got "
                f"{record!r}"
            )
        dicts: dict[str, Any] = {name: record}
        if with_told:
            dicts[f"'told' in the {name}"] = record.get("told")
        for whose, numbers in dicts.items():
            _check_numbers(numbers, whose)

    @property
    def half_width(self) -> float:
        """The half-width of the confidence bounds."""
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
    """An observation of a trial, and the model that chose the trial.

    Args:
        t: The number of observations so far, initial ones included.
        trial: The id of the told trial.
        model: The position of the model among the candidates.
    """

    t: int
    trial: int
    model: int


@dataclass(frozen=True)
class ToldOnly:
    """A `ConfidenceModel` for a width: the numbers of one model with some rows left out."""

    noise_variance: Tensor
    num_observations: int
    dim: int
    gain: Tensor

    def information_gain(self) -> Tensor:
        return self.gain
