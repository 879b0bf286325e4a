"""Candidate bounds on the regret of strategies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from botorch_ext.checks import amount, one_number
from botorch_ext.state import Immutable
from botorch_ext.widths.base import require

# R(n), an upper bound on the regret of a strategy in n trials, in units of the rewards.
RegretBound = Callable[[int], float]


@dataclass(frozen=True)
class CandidateBound:
    """The bound R(n) = min(c1 (B sqrt(gamma) + gamma) sqrt(n) + c2 eps sqrt(gamma) n, n) on the
    regret of `ec_gp_ucb` with misspecification eps in n trials, if f is within eps of the RKHS
    ball.

    Source: Bogunovic and Krause 2021, eq. 85 (eq. 22 drops the term with B).

    Args:
        rkhs_bound: B, in units of the rewards.
        misspecification: eps, in units of the rewards.
        max_information_gain: gamma_T, or an upper bound on it.
        c1: The constant of the term that does not depend on eps.
        c2: The constant of the term that grows with eps.
        scale: The length high - low of the range of the rewards. The formula holds for rewards and
            noise divided by it; R(n) is in units of the rewards.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> import botorch_ext as bx
        >>> bound = bx.strategies.CandidateBound(1.0, 0.01, max_information_gain=4.0)
        >>> bound(10), round(bound(1000), 1)
        (10.0, 209.7)
    """

    rkhs_bound: float
    misspecification: float
    max_information_gain: float
    c1: float = 1.0
    c2: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rkhs_bound", "misspecification", "c1", "c2"):
            self._keep(name, amount(getattr(self, name), name, "non-negative and finite"))
        for name in ("max_information_gain", "scale"):
            self._keep(name, amount(getattr(self, name), name, "positive and finite"))

    def _keep(self, name: str, number: float) -> None:
        object.__setattr__(self, name, number)

    def __call__(self, num_trials: int) -> float:
        """The bound R(n) for n trials, in units of the rewards."""
        gamma, root = self.max_information_gain, math.sqrt(self.max_information_gain)
        learning = self.c1 * (self.rkhs_bound * root + self.scale * gamma) * math.sqrt(num_trials)
        bias = self.c2 * self.misspecification * root * num_trials
        return min(learning + bias, self.scale * num_trials)


class RescaledBound(Immutable):
    """The bound min(R(n) / scale, n); each R(n) is computed and checked once, in ascending
    order."""

    def __init__(self, bound: RegretBound, scale: float, position: int) -> None:
        if not callable(bound):
            raise ValueError(f"bounds must be callables, got {bound!r} at {position}")
        self.bound, self.scale, self.name = bound, scale, f"bound of base {position}"
        self._given: list[float] = []

    def __call__(self, num_trials: int) -> float:
        for n in range(len(self._given), num_trials + 1):
            value = one_number(self.bound(n), self.name, f" for n = {n}")
            require(0 <= value < math.inf, self.name, value, f"non-negative and finite at n = {n}")
            before = self._given[-1] if n else 0.0
            if value < before:
                raise ValueError(
                    f"{self.name} must never decrease, got {value} for n = {n} after {before}"
                )
            self._given.append(value)
        return min(self._given[num_trials] / self.scale, float(num_trials))
