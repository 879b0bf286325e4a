"""Delay allowances: how many points a round asks beyond its design, so that results can arrive.

An allowance is u_T(delta) of Vakili et al. 2023, section 4: a number of steps that no delay of the
whole horizon exceeds, with probability 1 - delta/2. It is called when a round opens.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from botorch_ext.checks import amount, flag, one_number
from botorch_ext.delays.distributions import Delay, as_delay, is_frozen_scipy, require


@dataclass(frozen=True, eq=False)
class SeenDelays:
    """The delays seen when a round opens, in steps.

    Args:
        delays: The delay of each trial that was told. Trial s (from 0), told when a trials had been
            asked, has the delay a - s - 1.
        ages: The age of each trial that is pending now. With a trials asked, trial s has the age
            a - s - 1, and its delay is at least its age.

    Raises:
        ValueError: If an entry is negative or not a whole number, or an array is not
            one-dimensional.
    """

    delays: np.ndarray | Sequence[int] = ()
    ages: np.ndarray | Sequence[int] = ()

    def __post_init__(self) -> None:
        for name in ("delays", "ages"):
            steps = np.asarray(getattr(self, name), dtype=float)
            if steps.ndim != 1:
                raise ValueError(f"{name} must have shape (n,), got {steps.shape}")
            wrong = steps[~((steps >= 0) & (steps == np.floor(steps)))]
            if len(wrong) > 0:
                raise ValueError(
                    f"{name} must be whole numbers of steps, at least 0, got {wrong[0]:g}"
                )
            object.__setattr__(self, name, steps)


class Allowance(ABC):
    """A delay allowance: the number of steps by which a round is longer than its design."""

    # Whether it depends on the delays seen; if not, the whole schedule is known beforehand.
    learns: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, length: int, horizon: int, delta: float, seen: SeenDelays) -> float:
        """The allowance of a round, in steps.

        Args:
            length: q_r, the length of the round without its allowance.
            horizon: T, the number of trials.
            delta: The failure probability, in (0, 1).
            seen: The delays told and the ages of pending trials.

        Returns:
            A number of steps, at least 0.
        """


@dataclass(frozen=True)
class FixedAllowance(Allowance):
    """The same allowance in every round.

    Args:
        steps: The allowance in steps, at least 0.

    Raises:
        ValueError: If ``steps`` is negative or not finite.
    """

    steps: float

    def __post_init__(self) -> None:
        require("delay", self.steps, "at least 0")

    def __call__(self, length: int, horizon: int, delta: float, seen: SeenDelays) -> float:
        return self.steps


@dataclass(frozen=True)
class SubExponential(Allowance):
    """The allowance E[tau] + psi_T(delta/2) for sub-exponential delays.

    psi_T(delta) = max(sqrt(2 xi^2 l), 2 b l) with l = ln(3T/(2 delta)). It holds if E[exp(eta (tau
    - E[tau]))] <= exp(eta^2 xi^2 / 2) for all |eta| <= 1/b. Source: Vakili et al. 2023, section 4,
    whose eq. 5 prints min for max: the tail bound is exp(-min(s^2 / (2 xi^2), s / (2 b))), so the
    quantile is the larger of the two.

    Args:
        mean: E[tau], the mean delay in steps, at least 0.
        xi: The scale of the tail near the mean, in steps, a positive number.
        b: The scale of the far tail, in steps, a positive number.
        printed: Whether to take the smaller of the two terms, as printed, to reproduce the paper.
            That allowance is too short: of 1000 Poisson(50) delays some exceed it in 31 of 100 runs
            (xi = 9, b = 1, delta = 0.01).

    Raises:
        ValueError: If a parameter is out of its range.
    """

    mean: float
    xi: float
    b: float
    printed: bool = False

    def __post_init__(self) -> None:
        require("mean", self.mean, "at least 0")
        require("xi", self.xi, "positive")
        require("b", self.b, "positive")
        flag(self.printed, "printed")

    def __call__(self, length: int, horizon: int, delta: float, seen: SeenDelays) -> float:
        log = math.log(3 * horizon / delta)  # l of psi_T(delta/2)
        terms = (math.sqrt(2 * self.xi**2 * log), 2 * self.b * log)
        return self.mean + (min(terms) if self.printed else max(terms))


@dataclass(frozen=True)
class Quantile(Allowance):
    """The quantile of a known distribution at level 1 - delta/(2T), in whole steps.

    Args:
        distribution: A distribution of this package, or any frozen scipy distribution, whose delays
            are rounded up to whole steps; see `as_delay`.

    Raises:
        ValueError: If ``distribution`` is no distribution of delays: it may be negative, or its
            mean is infinite.
    """

    distribution: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "distribution", as_delay(self.distribution))

    def __call__(self, length: int, horizon: int, delta: float, seen: SeenDelays) -> float:
        distribution = self.distribution.distribution
        chance = delta / (2 * horizon)
        # Not isf, which for discrete distributions loses the digits of a small chance; 2^53 steps
        # is never. Scipy divides by zero at degenerate parameters, and gives the right answer.
        with np.errstate(all="ignore"):
            return bisect_left(range(2**53), True, key=lambda k: distribution.sf(k) <= chance)


@dataclass(frozen=True)
class Observed(Allowance):
    """A quantile estimated from the delays seen, for users who know nothing about their delays.

    It is the quantile of the Kaplan-Meier estimate from the delays told and the ages of pending
    trials (Kaplan and Meier 1958). The delay to come counts as one more trial that never arrives.
    So without pending trials the next delay exceeds the allowance with probability at most 1 -
    level, whatever the distribution, as for a prediction interval.

    Levels beyond the estimate are extrapolated by an exponential tail from u, the step below the
    tenth largest delay told: with k told delays beyond u, S the sum of all steps that told and
    pending trials spent beyond u, p_u the estimated chance of exceeding u, and ln((S + 1)/(S - k +
    1)) the rate that matches k arrivals in S steps, the allowance is u + k ((p_u / (1 -
    level))^(1/k) - 1) / rate: for exponential tails the exact prediction bound (Lawless 2003,
    section 4.1), well above the plain quantile for a small k. It is never below the largest delay
    or age seen. A tail heavier than exponential is underrated: with log-normal delays of sigma
    1.5, many of them pending, the level 0.99 is missed with probability up to 0.04.

    With fewer than 20 delays told, the allowance is the length of the round, or twice the largest
    delay or age seen if that is more. A trial that is pending for ever has a growing age; abandon
    it.

    Args:
        level: The level of the quantile, in (0, 1). None means 1 - delta/(2T), so that the
            allowance holds for the whole horizon; with heavy tails that is longer than most
            horizons, and 0.9 or 0.99, which give up the slowest feedback, serve better.

    Raises:
        ValueError: If ``level`` is not in (0, 1).
    """

    level: float | None = None

    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.level is not None:
            amount(self.level, "level", "in (0, 1)")

    def __call__(self, length: int, horizon: int, delta: float, seen: SeenDelays) -> float:
        largest = float(max(np.max(seen.delays, initial=0), np.max(seen.ages, initial=0)))
        if len(seen.delays) < _ENOUGH:
            return max(length, 2 * largest)
        chance = delta / (2 * horizon) if self.level is None else 1 - self.level
        to_come = SeenDelays(seen.delays, np.append(seen.ages, largest + 1))
        times, survival = kaplan_meier(to_come)
        # 1 - 0.99 is a rounding error below 0.01.
        reached = survival <= chance * (1 + 1e-9)
        if reached.any():
            return float(times[reached.argmax()])
        return max(largest, math.ceil(_tail(seen, times, survival, chance)))


_ENOUGH = 20
_NUM_TAIL = 10


def _tail(seen: SeenDelays, times: np.ndarray, survival: np.ndarray, chance: float) -> float:
    """The extrapolation beyond the estimate, as the docstring of `Observed` describes it."""
    delays, ages = np.asarray(seen.delays), np.asarray(seen.ages)
    threshold = np.sort(delays)[-_NUM_TAIL] - 1
    beyond = delays[delays > threshold] - threshold
    arrivals = len(beyond)
    exposure = beyond.sum() + np.clip(ages - threshold, 0, None).sum()
    chance_beyond = survival[times <= threshold].min(initial=1.0)
    rate = math.log((exposure + 1) / (exposure - arrivals + 1))
    excess = arrivals * math.expm1(math.log(chance_beyond / chance) / arrivals)
    return threshold + excess / rate


def kaplan_meier(seen: SeenDelays) -> tuple[np.ndarray, np.ndarray]:
    """The Kaplan-Meier estimate of the chance that a delay exceeds t.

    A pending trial counts as at risk up to and including its age. Source: Kaplan and Meier 1958.

    Args:
        seen: The told delays, at least one, and the right-censored ages of pending trials.

    Returns:
        The different told delays in increasing order and, for each, the estimated chance of a
        larger delay.
    """
    from scipy.stats import CensoredData, ecdf

    sample = CensoredData(uncensored=seen.delays, right=seen.ages)
    estimate = ecdf(sample).sf
    told = np.isin(estimate.quantiles, seen.delays)
    return estimate.quantiles[told], estimate.probabilities[told]


def as_allowance(delay: Any) -> Allowance:
    """Turn what a user passes as ``delay`` into an allowance.

    Args:
        delay: An `Allowance`, None (no allowance), a number of steps, a distribution of this
            package or a frozen scipy distribution, which becomes a `Quantile`.

    Raises:
        ValueError: If ``delay`` is anything else, or a negative number.
    """
    if isinstance(delay, Allowance):
        return delay
    if delay is None:
        return FixedAllowance(0)
    number = None if isinstance(delay, bool) else delay
    if isinstance(number, int | float | np.integer | np.floating) and 0 <= number < math.inf:
        return FixedAllowance(one_number(number, "delay"))
    if isinstance(delay, Delay) or is_frozen_scipy(delay):
        return Quantile(delay)
    raise ValueError(
        "delay must be an allowance of botorch_ext.delays (SubExponential, Quantile, Observed), "
        "None, a number of steps not below 0, or a distribution of delays, such as "
        f"Poisson(50) or scipy.stats.gamma(2.0), got {delay!r}"
    )
