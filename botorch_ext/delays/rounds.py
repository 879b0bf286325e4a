"""The lengths of the rounds of phased elimination.

A round has a design length q_r, which depends only on r, and a length t_r >= q_r, the number of
points that it asks. The strategy cuts the last round to the horizon.
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
    """Base class of schedules of rounds r = 1, 2, ..."""

    @abstractmethod
    def design_length(self, r: int) -> int:
        """The design length q_r of a round, without allowance for delays.

        Args:
            r: The number of the round: 1, 2, ...

        Returns:
            The number of points.
        """

    def length(self, r: int, horizon: int, delta: float, seen: SeenDelays) -> int:
        """The length t_r of a round, the number of points that it asks unless the horizon cuts it.

        Args:
            r: The number of the round: 1, 2, ...
            horizon: T.
            delta: The failure probability.
            seen: The delays that are known when the round opens.

        Returns:
            The number of points.
        """
        return self.design_length(r)

    def lengths(self, horizon: int, delta: float) -> list[int]:
        """The lengths t_1, ..., t_R of all rounds if no delays are known, the last one cut to the
        horizon.

        Args:
            horizon: T.
            delta: The failure probability.

        Returns:
            The lengths, whose sum is the horizon.

        Raises:
            ValueError: If ``horizon`` is less than 1.
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
        """The number R of rounds of the whole horizon, with the last one cut.

        Args:
            horizon: T.
            delta: The failure probability.

        Returns:
            The number of rounds.

        Raises:
            ValueError: If ``horizon`` is less than 1.
        """
        return len(self.lengths(horizon, delta))

    def agreed_horizon(self, given: int | None = None) -> int:
        """The horizon T, given by the user or by rounds that are made for a horizon.

        Args:
            given: The horizon that the user gave; None if the rounds have one.

        Returns:
            The horizon.

        Raises:
            ValueError: If neither has a horizon, the two differ, or it is less than 1.
        """
        if given is None:
            raise ValueError(f"horizon must be given, since {self!r} has none, got None")
        return whole_number(given, "horizon", least=1)


@dataclass(frozen=True)
class Doubling(Rounds):
    """Rounds whose lengths double: first, 2 first, 4 first, ...

    Source: Bogunovic and Krause 2021, algorithm 2.

    Example:
        >>> from botorch_ext.delays.rounds import Doubling
        >>> Doubling().lengths(horizon=20, delta=0.1)
        [1, 2, 4, 8, 5]

    Args:
        first: The length of the first round, at least 1.

    Raises:
        ValueError: If ``first`` is less than 1 or no whole number.
    """

    first: int = 1

    def __post_init__(self) -> None:
        _require_count("first", self.first)

    def design_length(self, r: int) -> int:
        _require_count("r", r)
        return self.first * 2 ** (r - 1)


@dataclass(frozen=True)
class SquareRoot(Rounds):
    """Rounds of lengths q_r = ceil(sqrt(T q_{r-1})) with q_0 = 1, about ln ln T in number.

    Source: Li and Scarlett 2022, algorithm 1; Vakili et al. 2023, section 4.

    Example:
        >>> from botorch_ext.delays.rounds import SquareRoot
        >>> SquareRoot(100).lengths(horizon=100, delta=0.1)
        [10, 32, 57, 1]

    Args:
        horizon: T, at least 1.

    Raises:
        ValueError: If ``horizon`` is less than 1 or no whole number.
    """

    horizon: int

    def __post_init__(self) -> None:
        _require_count("horizon", self.horizon)

    def design_length(self, r: int) -> int:
        _require_count("r", r)
        length = 1
        for _ in range(r):
            # The ceiling of the root in whole numbers, since floats are not exact from 2^53 on.
            length = math.isqrt(self.horizon * length - 1) + 1
        return length

    def agreed_horizon(self, given: int | None = None) -> int:
        if given not in (None, self.horizon):
            raise ValueError(
                f"horizon must be {self.horizon}, for which the rounds were made, got {given}"
            )
        return super().agreed_horizon(self.horizon)


@dataclass(frozen=True)
class DelayAware(Rounds):
    """Rounds of lengths t_r = ceil(q_r + u), with an allowance u for late feedback.

    A round goes on for u more points, so that the feedback of its first q_r points has arrived when
    it ends. Source: Vakili et al. 2023, algorithm 1.

    Example:
        >>> from botorch_ext.delays.rounds import DelayAware, Doubling
        >>> DelayAware(Doubling(), 3).lengths(horizon=20, delta=0.1)
        [4, 5, 7, 4]

    Args:
        rounds: `Doubling` or `SquareRoot`, which give q_r.
        allowance: The allowance u for delays, or anything that `botorch_ext.delays.as_allowance`
            turns into one, such as a number of steps.

    Raises:
        ValueError: If the rounds or the allowance are of another kind.
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
        """The number R of rounds. If the allowance learns from delays, the largest possible number,
        which is R without allowance.

        Args:
            horizon: T.
            delta: The failure probability.

        Returns:
            The number of rounds.
        """
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
