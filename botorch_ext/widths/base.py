"""Base of widths: what one is, and what all share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_ext.checks import amount
from botorch_ext.state import Immutable


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

    def _keep(self, **numbers: Any) -> None:
        """Keeps numbers as they were checked, in place of what was given."""
        for name, number in numbers.items():
            object.__setattr__(self, name, number)


@dataclass(frozen=True)
class Constant(Width):
    """The same width at every step.

    Args:
        value: Non-negative.
    """

    value: float

    def __post_init__(self) -> None:
        self._keep(value=amount(self.value, "value", "non-negative and finite"))

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        return self.value


#: A width, or the number of a `Constant`.
WidthLike = Width | float

# An enlargement for misspecification that is so many times the rest of a width drowns it.
SEVERAL_TIMES = 3.0


def as_width(width: Width | float) -> Width:
    """A float becomes a `Constant`; a ValueError for what is neither."""
    if isinstance(width, Width):
        return width
    return Constant(amount(width, "width", "non-negative and finite"))


def as_widths(width: WidthLike | Sequence[WidthLike]) -> Width | list[Width]:
    """One width, or those of a list or an array; a ValueError for what is neither."""
    if isinstance(width, list | tuple) or (getattr(width, "ndim", 0) and len(width) > 1):  # pyright: ignore
        return [as_width(own) for own in width]  # pyright: ignore
    return as_width(width)  # pyright: ignore


def as_tensor_like(value: float | Tensor, like: Tensor) -> Tensor:
    """A number or tensor in the dtype and on the device of ``like``, a number without rounding."""
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def require(condition: bool, name: str, value: float, allowed: str) -> None:
    """A ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{name} must be {allowed}, got {value}")


def check_rkhs_bound(value: float) -> float:
    """``rkhs_bound`` as a float, or a ValueError unless it is possible."""
    return amount(value, "rkhs_bound", "non-negative and finite")


def check_noise_std(value: float) -> float:
    """``noise_std`` as a float, or a ValueError unless it is possible."""
    return amount(value, "noise_std", "positive and finite")


def check_delta(value: float) -> float:
    """``delta`` as a float, or a ValueError unless it is possible."""
    return amount(value, "delta", "in (0, 1)")


def check_misspecification(value: float) -> float:
    """``misspecification`` as a float, or a ValueError unless it is possible."""
    return amount(value, "misspecification", "non-negative and finite")
