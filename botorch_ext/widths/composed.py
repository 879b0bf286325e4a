"""Confidence widths made of other widths."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple

from torch import Tensor

from botorch_ext.checks import amount
from botorch_ext.widths.adaptive import SelfNormalized
from botorch_ext.widths.base import (
    ConfidenceModel,
    RKHSWidth,
    Width,
    as_width,
    check_misspecification,
)
from botorch_ext.widths.fixed_design import (
    FixedDesign,
    FixedDesignLadder,
    FixedDesignMixture,
    FixedDesignNet,
    FixedDesignNetMixture,
)
from botorch_ext.widths.tight import Dual, Ladder, Mixture

#: How a width is enlarged for a misspecification: `Enlarged` or `PointwiseEnlarged`.
EnlargementForm = Literal["published", "pointwise"]

#: The widths of a method with planned rounds: see `kinds_of_widths`.
BoundsKind = Literal["published", "mixture", "ladder"]


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
        self._keep(takes_unequal_noise=as_width(self.width).takes_unequal_noise)

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
        if isinstance(ladder_of(as_width(self.width)), Dual) and type(self) is Enlarged:
            raise ValueError(
                f"width must not be Dual, whose enlargement is pointwise, got {self!r}"
            )

    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width)(t, model) + enlargement(
            self.misspecification, t, model.noise_variance
        )

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width).offset(t, model)


@dataclass(frozen=True)
class PointwiseEnlarged(Enlarged):
    """The width w of bounds whose half-width at x is w std(x) + eps ||zeta(x)||_1, which stays
    valid if f is only within eps of the RKHS ball.

    zeta(x) = (K + lambda I)^-1 k(x) are the weights of the observations in the posterior mean; the
    strategy adds the part with eps. It is never more than what `Enlarged` adds, and holds as well:
    for the RKHS part of f; for f itself add eps on each side.
    Source: Bogunovic and Krause 2021, lemma 2, before the last inequality of its proof; see the
    page "Proofs". The arguments are those of `Enlarged`, and so are the errors.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(width=_at_level(as_width(self.width), self.misspecification))
        self._keep(takes_unequal_noise=as_width(self.width).takes_unequal_noise)

    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width)(t, model)


def _at_level(width: Width, misspecification: float) -> Width:
    """The width for observations with errors: the same, or a `Dual` that knows of them."""
    if isinstance(width, Enlarged) and isinstance(ladder_of(width), Dual):
        raise ValueError(f"width must be enlarged once, got {width!r} to enlarge again")
    if isinstance(width, Scaled):
        return replace(width, width=_at_level(as_width(width.width), misspecification))
    if isinstance(width, Dual):
        return replace(width, misspecification=misspecification)
    return width


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


def enlarging(form: EnlargementForm) -> type[Enlarged]:
    """Return `Enlarged` or `PointwiseEnlarged`, or raise a ValueError if the form is unknown."""
    if not isinstance(form, str) or form not in ("published", "pointwise"):
        raise ValueError(f'enlargement must be "published" or "pointwise", got {form!r}')
    return PointwiseEnlarged if form == "pointwise" else Enlarged


def enlarged(width: Width, misspecification: float, form: EnlargementForm = "published") -> Width:
    """Enlarge a width by a misspecification, unless it already is or the misspecification is 0.

    Raises:
        ValueError: If the width is enlarged by another misspecification, the number is negative or
            not finite, or the form is unknown.
    """
    kind = enlarging(form)
    misspecification = check_misspecification(misspecification)
    if not misspecification:
        return width
    inner = width
    while isinstance(inner, Scaled):
        inner = as_width(inner.width)
    if not isinstance(inner, Enlarged):
        return kind(width, misspecification)
    if inner.misspecification != misspecification:
        raise ValueError(
            f"width must be enlarged by the misspecification {misspecification}, or not at all, "
            f"got {width!r}"
        )
    return width


def assumptions_of(width: Width) -> Assumptions | None:
    """What a width assumes of f and of the noise, at any depth of nesting.

    A scaled width is said to assume what the width inside it assumes.

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
    if isinstance(width, PointwiseEnlarged):
        return share_of_enlargement(as_width(width.width), t, noise_variance)
    own = width.misspecification * math.sqrt(t / noise_variance)
    return own + share_of_enlargement(as_width(width.width), t, noise_variance)


def pointwise_misspecification(width: Width) -> float:
    """The number by which ||zeta||_1 is multiplied in the half-widths, at any depth of nesting.

    Returns:
        eps of `PointwiseEnlarged`, in units of f; 0 if the width is not enlarged so.
    """
    if isinstance(width, Scaled):
        return width.factor * pointwise_misspecification(as_width(width.width))
    if not isinstance(width, Enlarged):
        return 0.0
    own = width.misspecification if isinstance(width, PointwiseEnlarged) else 0.0
    return own + pointwise_misspecification(as_width(width.width))


class KindsOfWidths(NamedTuple):
    """The classes of the widths that a method with planned rounds uses.

    Args:
        block: That of the points of a round on a finite set.
        net: That of the points of a round on a box; None if there is none.
        told: That of all told data.
    """

    block: type[FixedDesign]
    net: type[FixedDesignNet] | None
    told: type[RKHSWidth]


_KINDS = {
    "published": KindsOfWidths(FixedDesign, FixedDesignNet, SelfNormalized),
    "mixture": KindsOfWidths(FixedDesignMixture, FixedDesignNetMixture, Mixture),
    "ladder": KindsOfWidths(FixedDesignLadder, None, Mixture),
}


def kinds_of_widths(bounds: BoundsKind) -> KindsOfWidths:
    """Return the widths that ``bounds`` names, or raise a ValueError if it is unknown."""
    if not isinstance(bounds, str) or bounds not in _KINDS:
        raise ValueError(f'bounds must be "published", "mixture" or "ladder", got {bounds!r}')
    return _KINDS[bounds]


def ladder_of(width: Width) -> Ladder | None:
    """The `Ladder` of a width, at any depth of nesting, or None."""
    inner = _innermost(width)
    return inner if isinstance(inner, Ladder) else None


def require_plain(width: Width, name: str = "width") -> None:
    """Raise a ValueError if bounds with this width are more than mean +- (width std + offset) of
    one model: if it is a `Ladder`, or enlarged at each point."""
    if ladder_of(width) is not None or pointwise_misspecification(width):
        raise ValueError(
            f"{name} must have one ridge and no enlargement at each point here, got {width!r}"
        )


def noise_std_of(width: Width) -> float | None:
    """The ``noise_std`` of a width, at any depth of nesting, or None."""
    return getattr(_innermost(width), "noise_std", None)


def fixed_design_ridges(width: Width) -> tuple[float, ...] | None:
    """The ridges of the `FixedDesignLadder` of a width, at any depth of nesting, or None."""
    inner = _innermost(width)
    return inner.ridges if isinstance(inner, FixedDesignLadder) else None


def _innermost(width: Width) -> Width:
    while isinstance(width, Scaled | Enlarged):
        width = as_width(width.width)
    return width


def enlargement(misspecification: float, t: int, noise_variance: Tensor) -> Tensor:
    """The enlargement eps sqrt(t)/sqrt(lambda) of Bogunovic and Krause 2021, eq. 15."""
    return misspecification * math.sqrt(t) / noise_variance.sqrt()
