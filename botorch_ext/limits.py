"""Limits of measured numbers: at most, or at least."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from botorch_ext.checks import amount, is_text, short
from botorch_ext.state import Immutable

if TYPE_CHECKING:
    from torch import Tensor

# The probability with which a recommended point should be feasible.
LEAST_FEASIBILITY = 0.9
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


def checked_limits(given: Any, name: str) -> dict[str, Limit]:
    """The limits of outcomes by name, from limits and texts.

    Raises:
        ValueError: If it is no such dict.
    """
    require_names(given, name)
    return {each: Limit.read(limit, f"{name}[{each!r}]") for each, limit in given.items()}


def require_names(given: Any, name: str) -> None:
    """Raises a ValueError unless something is a dict by the names of outcomes."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"{name} must be a dict by the names of outcomes, got {short(given)}")
    if not all(isinstance(each, str) and each for each in given):
        raise ValueError(f"{name} must have names that are texts, got {list(given)}")
