"""Limits of measured quantities, and the arguments of methods that keep within them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from botorch_ext.checks import amount, is_text, short
from botorch_ext.state import Immutable
from botorch_ext.widths.base import check_delta, check_misspecification
from botorch_ext.widths.composed import Assumptions
from botorch_ext.widths.tight import RIDGES, Ladder
from botorch_ext.widths.told_data import ToldData

# The ridges that ``bounds`` of such a method names.
_RIDGES_OF_BOUNDS = {"mixture": (1.0,), "ladder": RIDGES}
# The share of the scale of a quantity that rounding may change.
_ROUNDING = 1e-9
_LIMIT = re.compile(r"(<=|>=)(.*)")


@dataclass(frozen=True)
class Limit(Immutable):
    """A limit of a measured quantity: `AtMost` or `AtLeast`, with the arguments of these."""

    bound: float
    unit: str | None = None
    # 1 if the quantity must be at least the limit, -1 if at most.
    sign: ClassVar[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", amount(self.bound, "bound", "finite"))
        if self.unit is not None and not (is_text(self.unit) and self.unit.strip()):
            raise ValueError(f"unit must be a text that is not empty, got {self.unit!r}")

    def __str__(self) -> str:
        """The limit in words, as in "at most 5 %"."""
        kind = "at least" if self.sign > 0 else "at most"
        return f"{kind} {self.bound:g}{'' if self.unit is None else f' {self.unit}'}"

    @classmethod
    def read(cls, given: Any, name: str) -> Limit:
        """The limit itself, or the one that a text such as ``"<= 5.0"`` or ``">= 0.3"`` says.

        Raises:
            ValueError: If it is neither.
        """
        if isinstance(given, Limit):
            return given
        found = _LIMIT.fullmatch(given.strip()) if isinstance(given, str) else None
        try:
            if found is not None:
                return (AtLeast if found[1] == ">=" else AtMost)(float(found[2]))
        except ValueError:
            pass
        raise ValueError(
            f'{name} must be a text like "<= 5.0" or ">= 0.3", or bx.AtMost or bx.AtLeast, got '
            f"{short(given)}"
        )

    def margin(self, values: Tensor) -> Tensor:
        """By how much values are within the limit; negative where they are not."""
        return self.sign * (values - self.bound)

    def holds(self, value: float) -> bool:
        """Whether a measured value is within the limit."""
        return self.sign * (value - self.bound) >= 0

    def slack(self, lower: Tensor, upper: Tensor) -> Tensor:
        """By how much the worst value between two bounds is within the limit."""
        return self.margin(lower if self.sign > 0 else upper)


class AtMost(Limit):
    """The limit of a quantity that must be at most ``bound``.

    Args:
        bound: The limit, in units of the quantity.
        unit: The unit, for people, as in ``"%"``; None for a quantity without a unit.

    Raises:
        ValueError: If the limit is not finite, or the unit is no text.

    Example:
        >>> import botorch_ext as bx
        >>> bx.AtMost(5.0, unit="%")
        AtMost(bound=5.0, unit='%')
    """

    sign = -1.0


class AtLeast(Limit):
    """The limit of a quantity that must be at least ``bound``.

    Args:
        bound: The limit, as for `AtMost`.
        unit: The unit, as for `AtMost`.
    """

    sign = 1.0


@dataclass(frozen=True)
class Quantity(Immutable):
    """What is assumed of a measured quantity, and its limit.

    Args:
        width: The width, whose ridges are multiples of the noise variance of the model.
        misspecification: eps, the largest distance of the quantity to what the model can express.
        limit: The limit of the quantity; None if it has none.
    """

    width: Ladder
    misspecification: float
    limit: Limit | None

    @property
    def scale(self) -> float:
        """The size of values that matter."""
        return self._size or 1.0

    @property
    def tolerance(self) -> float:
        """By how much rounding may change a bound."""
        return _ROUNDING * self._size

    @property
    def _size(self) -> float:
        return self.width.rkhs_bound + (0.0 if self.limit is None else abs(self.limit.bound))

    def reach(self, std: Tensor) -> Tensor:
        """The half-lengths of the intervals of a prior, from its standard deviations."""
        return self.width.rkhs_bound * std + self.misspecification

    def is_refuted(self, lower: Tensor, upper: Tensor, told: ToldData) -> bool:
        """Whether lower and upper bounds contradict each other, or the lower bound of the RKHS norm
        that told data certify exceeds B."""
        width, eps = self.width, self.misspecification
        numbers = width.rkhs_bound, width.noise_std, width.delta, eps
        assumed = Assumptions(*numbers, ridges=width.ridges or ())
        return bool((lower > upper + self.tolerance).any()) or told.refute(assumed)


def quantities(
    limits: Sequence[Limit | None],
    rkhs_bound: float | Sequence[float],
    noise_std: float | Sequence[float],
    delta: float,
    misspecification: float | Sequence[float],
    bounds: str,
) -> list[Quantity]:
    """What arguments, each one number or one for each quantity, say of quantities with limits.

    Raises:
        ValueError: If an argument has an impossible value.
    """
    require_one_of(bounds, "bounds", tuple(_RIDGES_OF_BOUNDS))
    num = len(limits)
    delta = check_delta(delta) / num
    numbers = zip(
        one_for_each(rkhs_bound, "rkhs_bound", num),
        one_for_each(noise_std, "noise_std", num),
        one_for_each(misspecification, "misspecification", num),
        strict=True,
    )
    return [
        Quantity(
            Ladder(B, sigma, delta, _RIDGES_OF_BOUNDS[bounds]), check_misspecification(eps), limit
        )
        for (B, sigma, eps), limit in zip(numbers, limits, strict=True)
    ]


def require_one_of(given: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Raises a ValueError unless an argument is one of some texts."""
    if not isinstance(given, str) or given not in allowed:
        shown = " or ".join(f'"{each}"' for each in allowed)
        raise ValueError(f"{name} must be {shown}, got {short(given)}")


def one_for_each(given: Any, name: str, num: int) -> list[float]:
    """One number for each quantity."""
    numbers = given if isinstance(given, list | tuple) else [given] * num
    if len(numbers) != num:
        raise ValueError(f"{name} must be one number, or one for each of {num}, got {len(numbers)}")
    return [amount(each, name, "non-negative and finite") for each in numbers]


def checked_names(
    models: Any, thresholds: Any, argument: str = "outcome_models"
) -> tuple[str, ...]:
    """The names of the outcomes, which models and thresholds must share."""
    for given, name in ((models, argument), (thresholds, "thresholds")):
        _require_names(given, name)
    if models.keys() != thresholds.keys():
        raise ValueError(f"thresholds must have the names {list(models)}, got {list(thresholds)}")
    return tuple(models)


def checked_limits(given: Any, name: str) -> dict[str, Limit]:
    """The limits of outcomes by name, from limits and texts.

    Raises:
        ValueError: If it is no such dict.
    """
    _require_names(given, name)
    return {each: Limit.read(limit, f"{name}[{each!r}]") for each, limit in given.items()}


def _require_names(given: Any, name: str) -> None:
    """Raises a ValueError unless something is a dict by the names of outcomes."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"{name} must be a dict by the names of outcomes, got {short(given)}")
    if not all(isinstance(each, str) and each for each in given):
        raise ValueError(f"{name} must have names that are texts, got {list(given)}")
