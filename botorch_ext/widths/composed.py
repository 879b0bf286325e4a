"""Widths made of other widths."""

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


@dataclass(frozen=True)
class Scaled(Width):
    """``factor`` times another width: the theory is conservative. Its offset is scaled as well.

    Args:
        width: The width to scale; a float is a `Constant`.
        factor: Positive.
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
    """w + eps sqrt(t)/sqrt(lambda): keeps a width valid when f is only within eps of the RKHS ball.

    The bounds then hold for the RKHS part of f; for f itself add eps on each side.
    Source: Bogunovic and Krause 2021, eq. 15 and lemma 2.

    Args:
        width: A width that is valid for functions of the RKHS; a float is a `Constant`.
        misspecification: eps, the max-norm distance of f to the RKHS ball, in the units of f.
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
    """A width with another failure probability, wherever in it that is; one without stays."""
    if isinstance(width, Scaled | Enlarged):
        return replace(width, width=with_delta(as_width(width.width), delta))
    known: Any = width
    names = [field.name for field in fields(known)] if is_dataclass(width) else []
    return replace(known, delta=delta) if "delta" in names else width


def enlarged(width: Width, misspecification: float) -> Width:
    """A width that is `Enlarged` by a misspecification, once; as it is where that is 0.

    Raises:
        ValueError: A width that is enlarged by another one, or an impossible number.
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


def share_of_enlargement(width: Width, t: int, noise_variance: float) -> float:
    """What of a width is there for misspecification, wherever in it it is `Enlarged`.

    Args:
        width: Any width.
        t: As in `Width`.
        noise_variance: The ridge lambda of the model.
    """
    if isinstance(width, Scaled):
        return width.factor * share_of_enlargement(as_width(width.width), t, noise_variance)
    if not isinstance(width, Enlarged):
        return 0.0
    own = width.misspecification * math.sqrt(t / noise_variance)
    return own + share_of_enlargement(as_width(width.width), t, noise_variance)


def enlargement(misspecification: float, t: int, noise_variance: Tensor) -> Tensor:
    """eps sqrt(t)/sqrt(lambda): Bogunovic and Krause 2021, eq. 15."""
    return misspecification * math.sqrt(t) / noise_variance.sqrt()
