"""Distributions of delays: how many steps late observations arrive."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from botorch_ext.checks import one_number, whole_number

if TYPE_CHECKING:
    from scipy.stats.distributions import rv_frozen

# scipy.stats takes 0.3 s to import and most strategies do without, so functions import it.


class Delay:
    """The base class of distributions of delays."""

    distribution: Any

    def sample(self, num_delays: int, rng: np.random.Generator) -> np.ndarray:
        """Draw delays.

        Args:
            num_delays: How many delays to draw.
            rng: The random generator of numpy.

        Returns:
            ``num_delays`` whole numbers of steps.
        """
        draws = self.distribution.rvs(size=num_delays, random_state=rng)
        # A heavy tail can exceed what an integer holds; 2^53 steps is never anyway.
        return np.minimum(np.ceil(np.asarray(draws, dtype=float)), 2.0**53).astype(np.int64)


@dataclass(frozen=True)
class Poisson(Delay):
    """Poisson delays.

    Args:
        mean: The mean delay in steps, at least 0; 0 means no delay.

    Raises:
        ValueError: If the mean is negative or not finite.
    """

    mean: float

    def __post_init__(self) -> None:
        require("mean", self.mean, "at least 0")

    @cached_property
    def distribution(self) -> rv_frozen:
        """The frozen scipy distribution of the delay."""
        from scipy.stats import poisson

        return poisson(self.mean)


@dataclass(frozen=True)
class Geometric(Delay):
    """Geometric delays 0, 1, 2, ...: at every step an observation arrives with the same chance.

    Args:
        mean: The mean delay in steps, at least 0. The chance of arriving is 1 / (1 + mean).

    Raises:
        ValueError: If the mean is negative or not finite.
    """

    mean: float

    def __post_init__(self) -> None:
        require("mean", self.mean, "at least 0")

    @cached_property
    def distribution(self) -> rv_frozen:
        """The frozen scipy distribution of the delay."""
        from scipy.stats import geom

        return geom(1 / (1 + self.mean), loc=-1)


@dataclass(frozen=True)
class LogNormal(Delay):
    """Log-normal delays with a heavy tail: exp of a normal variable, rounded up to whole steps.

    Args:
        median: The median delay in steps before rounding, a positive number.
        sigma: The standard deviation of the logarithm, a positive number. One delay in six exceeds
            median * exp(sigma). The mean is median * exp(sigma^2 / 2).

    Raises:
        ValueError: If the median or sigma is not positive and finite.
    """

    median: float
    sigma: float

    def __post_init__(self) -> None:
        require("median", self.median, "positive")
        require("sigma", self.sigma, "positive")

    @cached_property
    def distribution(self) -> rv_frozen:
        """The frozen scipy distribution of the delay before rounding up."""
        from scipy.stats import lognorm

        return lognorm(s=self.sigma, scale=self.median)


@dataclass(frozen=True)
class Fixed(Delay):
    """The same delay for every observation.

    Args:
        steps: The delay in steps, a whole number of at least 0.

    Raises:
        ValueError: If ``steps`` is negative or not a whole number.
    """

    steps: int

    def __post_init__(self) -> None:
        require("steps", self.steps, "at least 0")
        whole_number(self.steps, "steps")

    @cached_property
    def distribution(self) -> rv_frozen:
        """The frozen scipy distribution of the delay."""
        from scipy.stats import randint

        return randint(self.steps, self.steps + 1)

    def sample(self, num_delays: int, rng: np.random.Generator) -> np.ndarray:
        return np.full(num_delays, self.steps, dtype=np.int64)


@dataclass(frozen=True)
class FromScipy(Delay):
    """Delays from any frozen scipy distribution, rounded up to whole steps.

    Args:
        distribution: A frozen scipy distribution with a support not below 0 and a finite mean.

    Raises:
        ValueError: If ``distribution`` is not frozen, is an array of distributions, may be
            negative, or has an infinite mean.
    """

    distribution: rv_frozen

    def __post_init__(self) -> None:
        if not is_frozen_scipy(self.distribution):
            raise ValueError(
                f"delay must be a frozen scipy distribution, got {self.distribution!r}"
            )
        description = _describe(self.distribution)
        lowest = self.distribution.support()[0]
        if np.ndim(lowest) != 0:
            raise ValueError(f"delay must be one distribution, got an array of them: {description}")
        # A parameter out of its range gives NaN, which fails this comparison too.
        if not lowest >= 0.0:
            raise ValueError(
                f"delay must have a support not below 0, got {description} with lowest value "
                f"{lowest}"
            )
        # Scipy computes higher moments along with the mean, and these may divide by zero.
        with np.errstate(all="ignore"):
            mean = float(self.distribution.mean())
        if not math.isfinite(mean):
            raise ValueError(f"delay must have a finite mean, got {description} with mean {mean}")

    def __repr__(self) -> str:
        return f"FromScipy({_describe(self.distribution)})"


def as_delay(delay: Any) -> Delay:
    """Turn what a user passes as a delay into a distribution of this module.

    Args:
        delay: None (no delay), a whole number of steps, one of this module's distributions, or a
            frozen scipy distribution, whose draws are rounded up to whole steps.

    Returns:
        An object whose ``sample(n, rng)`` draws n delays as an integer array.

    Raises:
        ValueError: If ``delay`` is anything else, may be negative, or has an infinite mean.
    """
    if delay is None:
        return Fixed(0)
    if isinstance(delay, Delay):
        return delay
    if is_frozen_scipy(delay):
        return FromScipy(delay)
    allowed = (
        "None, a whole number of steps not below 0, one of botorch_ext.delays (Poisson, Geometric, "
        "LogNormal), or a scipy distribution with its parameters, such as scipy.stats.gamma(2.0)"
    )
    try:
        steps = operator.index(delay)
    except TypeError:
        raise ValueError(f"delay must be {allowed}, got {delay!r}") from None
    if isinstance(delay, bool) or steps < 0:
        raise ValueError(f"delay must be {allowed}, got {delay!r}")
    return Fixed(steps)


def is_frozen_scipy(delay: Any) -> bool:
    """Whether an object is a scipy distribution with its parameters."""
    from scipy.stats.distributions import rv_frozen

    return isinstance(delay, rv_frozen)


def require(name: str, value: float, allowed: Literal["at least 0", "positive"]) -> None:
    """Raise a ValueError unless the parameter is one finite number that is ``allowed``."""
    number = one_number(value, name)
    least = math.ulp(0.0) if allowed == "positive" else 0.0
    if not least <= number < math.inf:
        raise ValueError(f"{name} must be finite and {allowed}, got {value}")


def _describe(distribution: rv_frozen) -> str:
    given = [str(value) for value in distribution.args]
    given += [f"{name}={value}" for name, value in distribution.kwds.items()]
    return f"{distribution.dist.name}({', '.join(given)})"
