"""Regret bounds: what strategies say they may lose."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from botorch_ext.checks import amount, one_number
from botorch_ext.state import Immutable
from botorch_ext.widths.base import require

# R(n): what a strategy loses in n trials at most, in units of the rewards.
RegretBound = Callable[[int], float]


@dataclass(frozen=True)
class CandidateBound:
    """R(n) = min(c1 (B sqrt(gamma) + gamma) sqrt(n) + c2 eps sqrt(gamma) n, n), the regret that an
    EC-GP-UCB told eps would have in n trials if f is within eps of the RKHS ball.

    Source: Bogunovic and Krause 2021, eq. 85 (eq. 22 drops the term with B).

    Args:
        rkhs_bound: B, in units of the rewards.
        misspecification: eps, in units of the rewards.
        max_information_gain: gamma_T, or an upper bound on it.
        c1: The constant of the regret without misspecification.
        c2: The constant of the regret by misspecification.
        scale: high - low of the rewards: the formula is about rewards and noise divided by it, R(n)
            is not.

    Raises:
        ValueError: A number out of range.
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
        """R(n)."""
        gamma, root = self.max_information_gain, math.sqrt(self.max_information_gain)
        learning = self.c1 * (self.rkhs_bound * root + self.scale * gamma) * math.sqrt(num_trials)
        bias = self.c2 * self.misspecification * root * num_trials
        return min(learning + bias, self.scale * num_trials)


class RescaledBound(Immutable):
    """min(R(n) / scale, n), each R(n) computed and checked once, in turn."""

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
