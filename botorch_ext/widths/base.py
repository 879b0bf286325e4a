"""Base of widths: what one is, and what all share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.immutable import Immutable


class ConfidenceModel(Protocol):
    """What a width asks of a model."""

    @property
    def noise_variance(self) -> Tensor: ...

    @property
    def num_observations(self) -> int: ...

    @property
    def dim(self) -> int: ...

    def information_gain(self) -> Tensor: ...


class Width(Immutable, ABC):
    """A confidence width."""

    @abstractmethod
    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        """The width before choosing the t-th point, t = 1, 2, ..."""

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        """What is added to the upper and taken from the lower bound besides ``width * std``."""
        return 0.0


@dataclass(frozen=True)
class Constant(Width):
    """The same width at every step.

    Args:
        value: Non-negative.
    """

    value: float

    def __post_init__(self) -> None:
        require(0 <= self.value < math.inf, "value", self.value, "non-negative and finite")

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        return self.value


# An enlargement for misspecification that is so many times the rest of a width drowns it.
SEVERAL_TIMES = 3.0


def as_width(width: Width | float) -> Width:
    """A float becomes a `Constant`; a ValueError for what is neither."""
    return width if isinstance(width, Width) else Constant(one_number(width, "width"))


def as_tensor_like(value: float | Tensor, like: Tensor) -> Tensor:
    """A number or tensor in the dtype and on the device of ``like``, a number without rounding."""
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def require(condition: bool, name: str, value: float, allowed: str) -> None:
    """A ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{name} must be {allowed}, got {value}")


def check_rkhs_bound(value: float) -> None:
    """A ValueError unless ``rkhs_bound`` is possible."""
    require(0 <= value < math.inf, "rkhs_bound", value, "non-negative and finite")


def check_noise_std(value: float) -> None:
    """A ValueError unless ``noise_std`` is possible."""
    require(0 < value < math.inf, "noise_std", value, "positive and finite")


def check_delta(value: float) -> None:
    """A ValueError unless ``delta`` is possible."""
    require(0 < value < 1, "delta", value, "in (0, 1)")


def check_misspecification(value: float) -> None:
    """A ValueError unless ``misspecification`` is possible."""
    require(0 <= value < math.inf, "misspecification", value, "non-negative and finite")


def check_count(name: str, value: int) -> None:
    """A ValueError unless a number of things is possible."""
    require(value >= 1, name, value, "at least 1")
