"""Round lengths of phased elimination.

A round has a design length q_r, which depends on r alone, and a length t_r >= q_r, the points it
asks. The last round of a horizon is cut by the strategy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from botorch_ext.checks import short, whole_number
from botorch_ext.delays import Allowance, SeenDelays, as_allowance
from botorch_ext.state import Immutable


class Rounds(Immutable, ABC):
    """A schedule of rounds r = 1, 2, ..."""

    @abstractmethod
    def design_length(self, r: int) -> int:
        """q_r, the length of round ``r`` without allowance for delays."""

    def length(self, r: int, horizon: int, delta: float, seen: SeenDelays) -> int:
        """t_r, the points that round ``r`` asks unless the horizon cuts it.

        Args:
            r: 1, 2, ...
            horizon: T.
            delta: Failure probability.
            seen: The delays known when the round opens.
        """
        return self.design_length(r)

    def lengths(self, horizon: int, delta: float) -> list[int]:
        """t_1, ..., t_R where no delay is known, the last one cut to the horizon.

        Args:
            horizon: T.
            delta: Failure probability.

        Raises:
            ValueError: ``horizon`` is less than 1.
        """
        _require_count("horizon", horizon)
        lengths: list[int] = []
        left = horizon
        while left > 0:
            length = self.length(len(lengths) + 1, horizon, delta, SeenDelays())
            lengths.append(min(length, left))
            left -= length
        return lengths

    def count(self, horizon: int, delta: float) -> int:
        """R, how many rounds make up the whole horizon, the last one cut.

        Args:
            horizon: T.
            delta: Failure probability.

        Raises:
            ValueError: ``horizon`` is less than 1.
        """
        return len(self.lengths(horizon, delta))

    def agreed_horizon(self, given: int | None = None) -> int:
        """T: the given one, or that of rounds that are made for one.

        Args:
            given: None where the rounds know it.

        Raises:
            ValueError: Nobody knows it, another than that of the rounds, or less than 1.
        """
        if given is None:
            raise ValueError(f"horizon must be given with {self!r}, got None")
        return whole_number(given, "horizon", least=1)


@dataclass(frozen=True)
class Doubling(Rounds):
    """first, 2 first, 4 first, ... Source: Bogunovic and Krause 2021, algorithm 2.

    Args:
        first: At least 1.

    Raises:
        ValueError: ``first`` is less than 1 or no whole number.
    """

    first: int = 1

    def __post_init__(self) -> None:
        _require_count("first", self.first)

    def design_length(self, r: int) -> int:
        _require_count("r", r)
        return self.first * 2 ** (r - 1)


@dataclass(frozen=True)
class SquareRoot(Rounds):
    """q_r = ceil(sqrt(T q_{r-1})), q_0 = 1: about ln ln T rounds.

    Source: Li and Scarlett 2022, algorithm 1; Vakili et al. 2023, section 4.

    Args:
        horizon: T, at least 1.

    Raises:
        ValueError: ``horizon`` is less than 1 or no whole number.
    """

    horizon: int

    def __post_init__(self) -> None:
        _require_count("horizon", self.horizon)

    def design_length(self, r: int) -> int:
        _require_count("r", r)
        length = 1
        for _ in range(r):
            # The ceiling of the root in whole numbers: floats are wrong from 2^53 on.
            length = math.isqrt(self.horizon * length - 1) + 1
        return length

    def agreed_horizon(self, given: int | None = None) -> int:
        if given not in (None, self.horizon):
            raise ValueError(f"horizon must be {self.horizon}, that of the rounds, got {given}")
        return super().agreed_horizon(self.horizon)


@dataclass(frozen=True)
class DelayAware(Rounds):
    """t_r = ceil(q_r + u), with an allowance u for late feedback.

    The round goes on for u more points, so that the feedback of its first q_r has arrived when it
    ends. Source: Vakili et al. 2023, algorithm 1.

    Args:
        rounds: `Doubling` or `SquareRoot`, which give q_r.
        allowance: u, or what `botorch_ext.delays.as_allowance` makes one.

    Raises:
        ValueError: Neither rounds nor an allowance.
    """

    rounds: Rounds
    allowance: Allowance | Any

    def __post_init__(self) -> None:
        if not isinstance(self.rounds, Rounds) or isinstance(self.rounds, DelayAware):
            raise ValueError(f"rounds must be Doubling or SquareRoot, got {self.rounds!r}")
        object.__setattr__(self, "allowance", as_allowance(self.allowance))

    def design_length(self, r: int) -> int:
        return self.rounds.design_length(r)

    def length(self, r: int, horizon: int, delta: float, seen: SeenDelays) -> int:
        length = self.design_length(r)
        return length + math.ceil(self.allowance(length, horizon, delta, seen))

    def count(self, horizon: int, delta: float) -> int:
        """R; with an allowance that learns, the most it can be, which is R without allowance."""
        if self.allowance.learns:
            return self.rounds.count(horizon, delta)
        return super().count(horizon, delta)

    def agreed_horizon(self, given: int | None = None) -> int:
        return self.rounds.agreed_horizon(given)


def _require_count(name: str, value: int) -> None:
    try:
        possible = whole_number(value, name) >= 1
    except ValueError:
        possible = False
    if not possible:
        raise ValueError(f"{name} must be a whole number, at least 1, got {short(value)}")
