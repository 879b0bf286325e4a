"""Confidence widths made of other widths."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from torch import Tensor

from botorch_ext.checks import amount
from botorch_ext.widths.base import (
    ConfidenceModel,
    Width,
    as_width,
    check_misspecification,
)

#: The multiples of the ridge of a model at which its assumptions are tested.
RIDGES = (1.0, 4.0, 16.0, 64.0, 256.0)


@dataclass(frozen=True)
class Assumptions:
    """What a width assumes of f and of the noise.

    Args:
        rkhs_bound: B, at least the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability.
        misspecification: eps, the max-norm distance of f to the RKHS ball, in units of f.
        ridges: The multiples of the ridge of the model at which the width has bounds.
    """

    rkhs_bound: float
    noise_std: float
    delta: float
    misspecification: float = 0.0
    ridges: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Scaled(Width):
    """A multiple of another width and of its offset, because theoretical widths are conservative.

    No guarantee is left if the factor is below 1.

    Args:
        width: The width to scale; a number becomes a `Constant`.
        factor: The multiplier, a positive number.

    Raises:
        ValueError: If an argument is out of its range.
    """

    width: Width | float
    factor: float

    def __post_init__(self) -> None:
        self._keep(
            width=as_width(self.width),
            factor=amount(self.factor, "factor", "positive and finite"),
        )

    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return self.factor * as_width(self.width)(t, model)

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return self.factor * as_width(self.width).offset(t, model)


@dataclass(frozen=True)
class Enlarged(Width):
    """The width w + eps sqrt(t)/sqrt(lambda), which stays valid if f is only within eps of the RKHS
    ball.

    The bounds then hold for the RKHS part of f; for f itself add eps on each side.
    Source: Bogunovic and Krause 2021, eq. 15 and lemma 2.

    Args:
        width: A width that is valid for functions of the RKHS; a number becomes a `Constant`.
        misspecification: eps, the max-norm distance of f to the RKHS ball, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """

    width: Width | float
    misspecification: float

    def __post_init__(self) -> None:
        self._keep(
            width=as_width(self.width),
            misspecification=check_misspecification(self.misspecification),
        )

    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width)(t, model) + enlargement(
            self.misspecification, t, model.noise_variance
        )

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width).offset(t, model)


def with_delta(width: Width, delta: float) -> Width:
    """Return a copy of a width with another failure probability.

    The failure probability may be that of a width inside `Scaled` or `Enlarged`. A width without a
    failure probability is returned as it is.
    """
    if isinstance(width, Scaled | Enlarged):
        return replace(width, width=with_delta(as_width(width.width), delta))
    known: Any = width
    names = [field.name for field in fields(known)] if is_dataclass(width) else []
    return replace(known, delta=delta) if "delta" in names else width


def enlarged(width: Width, misspecification: float) -> Width:
    """Enlarge a width by a misspecification, unless it already is or the misspecification is 0.

    Raises:
        ValueError: If the width is enlarged by another misspecification, or the number is negative
            or not finite.
    """
    misspecification = check_misspecification(misspecification)
    if not misspecification:
        return width
    inner = width
    while isinstance(inner, Scaled):
        inner = as_width(inner.width)
    if not isinstance(inner, Enlarged):
        return Enlarged(width, misspecification)
    if inner.misspecification != misspecification:
        raise ValueError(
            f"width must be enlarged by the misspecification {misspecification}, or not at all, "
            f"got {width!r}"
        )
    return width


def assumptions_of(width: Width) -> Assumptions | None:
    """What a width assumes of f and of the noise, at any depth of nesting.

    A scaled width is said to assume what the width inside it assumes.

    Args:
        width: Any width.

    Returns:
        The assumptions; None if the width does not have all of ``rkhs_bound``, ``noise_std`` and
        ``delta``, as `Constant`, the Bayesian widths and `SrinivasRKHS`.
    """
    if isinstance(width, Scaled | Enlarged):
        inner = assumptions_of(as_width(width.width))
        if inner is None or isinstance(width, Scaled):
            return inner
        return replace(inner, misspecification=inner.misspecification + width.misspecification)
    known: Any = width
    numbers = [getattr(known, name, None) for name in ("rkhs_bound", "noise_std", "delta")]
    if None in numbers:
        return None
    return Assumptions(*numbers, ridges=getattr(known, "ridges", (1.0,)))  # pyright: ignore


def share_of_enlargement(width: Width, t: int, noise_variance: float) -> float:
    """The part of a width that is there for misspecification, at any depth of nesting.

    Args:
        width: Any width.
        t: The number of the point, as in `Width`.
        noise_variance: lambda, the ridge of the model.

    Returns:
        The part of `Enlarged`, in the units of the width; 0 if the width is not enlarged.
    """
    if isinstance(width, Scaled):
        return width.factor * share_of_enlargement(as_width(width.width), t, noise_variance)
    if not isinstance(width, Enlarged):
        return 0.0
    own = width.misspecification * math.sqrt(t / noise_variance)
    return own + share_of_enlargement(as_width(width.width), t, noise_variance)


def enlargement(misspecification: float, t: int, noise_variance: Tensor) -> Tensor:
    """The enlargement eps sqrt(t)/sqrt(lambda) of Bogunovic and Krause 2021, eq. 15."""
    return misspecification * math.sqrt(t) / noise_variance.sqrt()
