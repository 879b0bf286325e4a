"""Limits of measured quantities, and the arguments of methods that keep within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from botorch_ext.checks import amount, short
from botorch_ext.limits import Limit, require_names
from botorch_ext.state import Immutable
from botorch_ext.widths.base import check_delta, check_misspecification
from botorch_ext.widths.composed import Assumptions
from botorch_ext.widths.tight import RIDGES, Ladder
from botorch_ext.widths.told_data import ToldData

# The ridges that ``bounds`` of such a method names.
_RIDGES_OF_BOUNDS = {"mixture": (1.0,), "ladder": RIDGES}
# The share of the scale of a quantity that rounding may change.
_ROUNDING = 1e-9


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
        require_names(given, name)
    if models.keys() != thresholds.keys():
        raise ValueError(f"thresholds must have the names {list(models)}, got {list(thresholds)}")
    return tuple(models)
