"""The base class of confidence widths, and the checks that all widths share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from botorch_ext.checks import amount, short
from botorch_ext.state import Immutable


class ConfidenceModel(Protocol):
    """The properties of a model that a width reads."""

    @property
    def noise_variance(self) -> Tensor: ...

    @property
    def num_observations(self) -> int: ...

    @property
    def dim(self) -> int: ...

    def information_gain(self) -> Tensor: ...


@dataclass(frozen=True)
class ModelNumbers:
    """A `ConfidenceModel` of numbers, for models of a batch of any shape, without pending points.

    Args:
        noise_variance: The ridges.
        num_observations: The number of observations.
        dim: d, the dimension of the points.
        gain: The information gains.
        form: A function that computes the quadratic forms y' (K + lambda I)^-1 y, which widths read
            that look at the observations.
        candidates: The candidates of a finite set, ``N x d``, for widths that count them.
    """

    noise_variance: Tensor
    num_observations: int
    dim: int
    gain: Tensor
    form: Callable[[], Tensor] | None = None
    candidates: Tensor | None = None

    @property
    def num_told(self) -> int:
        return self.num_observations

    def information_gain(self) -> Tensor:
        return self.gain

    def told_information_gain(self) -> Tensor:
        return self.gain

    def quadratic_form(self) -> Tensor:
        return cast(Callable[[], Tensor], self.form)()


class Width(Immutable, ABC):
    """A confidence width: the number w in the bounds mean + w std and mean - w std."""

    #: Whether the bounds hold for observations with different noise: see the page "Proofs".
    takes_unequal_noise: bool = False

    @abstractmethod
    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        """The width before the t-th point is chosen.

        Args:
            t: The number of the point, 1, 2, ...
            model: The model whose standard deviation the width multiplies.

        Returns:
            A non-negative number, or a tensor with one number for each model of a batch.
        """

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        """The number that is added to the upper bound and subtracted from the lower bound, besides
        ``width * std``.

        Args:
            t: The number of the point, 1, 2, ...
            model: The model of the bounds.

        Returns:
            The offset in units of f. It is 0 unless a subclass says otherwise.
        """
        return 0.0

    def _keep(self, **numbers: Any) -> None:
        """Replaces attributes by their checked values."""
        for name, number in numbers.items():
            object.__setattr__(self, name, number)


@dataclass(frozen=True)
class RKHSWidth(Width):
    """A width for f in the RKHS and sub-Gaussian noise.

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1).

    Raises:
        ValueError: If an argument is out of its range.
    """

    rkhs_bound: float
    noise_std: float
    delta: float

    def __post_init__(self) -> None:
        self._keep(
            rkhs_bound=check_rkhs_bound(self.rkhs_bound),
            noise_std=check_noise_std(self.noise_std),
            delta=check_delta(self.delta),
        )


@dataclass(frozen=True)
class Constant(Width):
    """The same width at every step.

    Args:
        value: The width, a non-negative number.

    Raises:
        ValueError: If ``value`` is negative or not finite.
    """

    takes_unequal_noise = True

    value: float

    def __post_init__(self) -> None:
        self._keep(value=amount(self.value, "value", "non-negative and finite"))

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        return self.value


#: A width, or the number of a `Constant`.
WidthLike = Width | float

# An enlargement for misspecification that is so many times the rest of a width drowns it.
SEVERAL_TIMES = 3.0


def as_width(width: Width | float, name: str = "width") -> Width:
    """Turn a number into a `Constant`, and return a width as it is.

    Args:
        width: A `Width` or a number.
        name: The name of the argument, for the message of an error.

    Raises:
        ValueError: If ``width`` is neither a width nor a non-negative finite number.
    """
    if isinstance(width, Width):
        return width
    require_no_function(width, name)
    return Constant(amount(width, name, "non-negative and finite"))


def require_no_function(width: Any, name: str) -> None:
    """Raise a ValueError that names `Width` if a function is given in place of a width."""
    if callable(width) and not hasattr(width, "__float__"):
        raise ValueError(
            f"{name} must be a non-negative finite number or a botorch_ext.widths.Width, got "
            f"{short(width)}: write a subclass of Width whose __call__(self, t, model) gives the "
            "number"
        )


def as_widths(width: WidthLike | Sequence[WidthLike]) -> Width | list[Width]:
    """Read one width, or a list or an array of widths, as `as_width` does.

    Raises:
        ValueError: If an entry is neither a width nor a non-negative finite number.
    """
    if isinstance(width, list | tuple) or (getattr(width, "ndim", 0) and len(width) > 1):  # pyright: ignore
        return [as_width(own) for own in width]  # pyright: ignore
    return as_width(width)  # pyright: ignore


def as_tensor_like(value: float | Tensor, like: Tensor) -> Tensor:
    """Return a number or a tensor in the dtype and on the device of ``like``."""
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def require(condition: bool, name: str, value: float, allowed: str) -> None:
    """Raise a ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{name} must be {allowed}, got {value}")


def check_rkhs_bound(value: float) -> float:
    """Return ``rkhs_bound`` as a float, or raise a ValueError if it is negative or infinite."""
    return amount(value, "rkhs_bound", "non-negative and finite")


def check_noise_std(value: float) -> float:
    """Return ``noise_std`` as a float, or raise a ValueError if it is not positive and finite."""
    return amount(value, "noise_std", "positive and finite")


def check_delta(value: float) -> float:
    """Return ``delta`` as a float, or raise a ValueError if it is not in (0, 1)."""
    return amount(value, "delta", "in (0, 1)")


def check_misspecification(value: float) -> float:
    """Return ``misspecification`` as a float, or raise a ValueError if negative or infinite."""
    return amount(value, "misspecification", "non-negative and finite")
