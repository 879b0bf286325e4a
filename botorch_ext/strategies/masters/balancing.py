"""Regret-bound balancing: which of several strategies to trust, by their regret bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botorch_ext.checks import amount, one_number
from botorch_ext.records import in_sign
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Corrected, Event, Told
from botorch_ext.strategies.masters.master import MasterStrategy
from botorch_ext.strategies.masters.regret_bounds import RegretBound, RescaledBound
from botorch_ext.widths import check_delta

# Candidate bounds are checked for up to this number of trials when a strategy is made, and for more
# trials as these are reached.
_NUM_CHECKED = 1000


@dataclass(frozen=True)
class BalancingTest:
    """The test of one base after one more observation, with rewards rescaled to [0, 1].

    Args:
        t: The number of observations of all bases.
        base: The position of the base.
        count: N_i, the number of observations of the base.
        mean_reward: The mean reward of the base, J_i / N_i.
        regret: Its candidate bound for one trial, R_i(N_i) / N_i.
        deviation: c sqrt(ln(M max(ln N_i, 1) / delta) / N_i).
        highest: The largest ``lower`` of an active base.
    """

    t: int
    base: int
    count: int
    mean_reward: float
    regret: float
    deviation: float
    highest: float

    @property
    def upper(self) -> float:
        """An upper bound on the average of the best rewards, if the bound of the base holds."""
        return self.mean_reward + self.regret + self.deviation

    @property
    def lower(self) -> float:
        """A lower bound on the average of the best rewards, whether that bound holds or not."""
        return self.mean_reward - self.deviation

    @property
    def fails(self) -> bool:
        """Whether the base is refuted."""
        return self.upper < self.highest


class RegretBalancing(MasterStrategy):
    """Plays the base with the smallest regret bound so far, and eliminates bases whose rewards are
    too low for their bounds.

    Every base comes with a candidate bound R_i(n) on its regret. The active base with the smallest
    R_i(N_i) plays, or the first of several such bases. With rewards rescaled to [0, 1], J_i their
    sum and M the number of bases, base i is eliminated when

    J_i/N_i + R_i(N_i)/N_i + c sqrt(ln(M ln(N_i)/delta)/N_i) <
    max_j (J_j/N_j - c sqrt(ln(M ln(N_j)/delta)/N_j)),

    with max(ln N, 1) for ln N, over the active bases that have an observation. The test is valid if
    the best reward of a step has the same expectation for all bases: one function, and contexts and
    action sets that are drawn independently. For the choice, N_i counts trials that were asked and
    not abandoned; for the test, told trials. So trials may be pending, and results late. ``info``
    of a trial is that of `MasterStrategy`.

    Source: Bogunovic and Krause 2021, algorithm 3, whose eq. 24 prints the sums without dividing by
    N; Pacchiano et al. 2020.

    Args:
        bases: The strategies, as for `MasterStrategy`.
        bounds: The candidate bound R_i of each base: a function from any number of trials, from 0
            on, to the regret, in units of the rewards; finite, not negative and never decreasing.
            R_i(n) is clipped to n times the length of ``reward_range``.
        reward_range: The smallest and the largest value that can be told, with the noise.
        delta: The failure probability.
        c: The constant of the test.
        minimize: As for `MasterStrategy`.

    Raises:
        ValueError: If the numbers of bounds and bases differ, if a bound is not as above, if the
            range is empty, or if a number is out of range.
    """

    def __init__(
        self,
        bases: Sequence[Strategy],
        bounds: Sequence[RegretBound],
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        delta: float = 0.1,
        c: float = 1.0,
        minimize: bool | None = None,
    ) -> None:
        super().__init__(bases, minimize=minimize)
        self.reward_range = low, high = checked_range(reward_range)
        self.delta, self.c = check_delta(delta), amount(c, "c", "non-negative and finite")
        if not isinstance(bounds, Sequence) or len(bounds) != len(bases):
            raise ValueError(f"bounds must be one for each of {len(bases)} bases, got {bounds!r}")
        self._bounds = [
            RescaledBound(bound, high - low, position) for position, bound in enumerate(bounds)
        ]
        for bound in self._bounds:
            bound(_NUM_CHECKED)
        # The positions of the bases that may still play.
        self.active = list(range(len(bases)))
        # Maps the position of an eliminated base to the number of observations at that time.
        self.eliminated: dict[int, int] = {}
        self._rewards = [0.0] * len(bases)
        self._tests: list[BalancingTest] = []

    @property
    def _range(self) -> tuple[float, float]:
        """The smallest and the largest value of what is maximised."""
        low, high = self.reward_range
        return (-high, -low) if self.minimize else (low, high)

    @property
    def bounds(self) -> list[RegretBound]:
        """The candidate bound R_i of each base, as it was given."""
        return [bound.bound for bound in self._bounds]

    @property
    def tests(self) -> list[BalancingTest]:
        """All tests so far: after each observation, one for each active base that has
        observations."""
        return list(self._tests)

    # --- decisions --------------------------------------------------------------------------------

    def _choose(self, choices: Choices, given: Sequence[int]) -> int:
        played = [self._num_played(base) + more for base, more in enumerate(given)]
        chosen = min(self.active, key=lambda base: self._bounds[base](played[base]))
        self._bounds[chosen](played[chosen] + 1)  # checks the next value before it is needed
        return chosen

    def _num_played(self, position: int) -> int:
        """The number of trials that a base has asked and that are not abandoned."""
        history = self.bases[position].history
        return len(history.trials) - len(history.abandoned)

    # --- the next state ---------------------------------------------------------------------------

    def _check_measured(self, event: Event) -> None:
        super()._check_measured(event)
        low, high = self._range
        if isinstance(event, Told | Corrected) and not low <= event.value <= high:
            low, high = self.reward_range
            raise ValueError(
                f"value must be in reward_range, from {low} to {high}, got "
                f"{self.history.sign * event.value} for trial {event.id}"
            )

    def _absorb(self, event: Event) -> None:
        super()._absorb(event)
        if isinstance(event, Told):
            low, high = self._range
            base = self.history.trials[event.id].info["base"]
            self._rewards[base] += (event.value - low) / (high - low)
            self._test(len(self.history.values))

    def _test(self, t: int) -> None:
        told = [base for base in self.active if self.bases[base].history.values]
        ends = [self._ends(base) for base in told]
        # The default is for the case that only an eliminated base has observations.
        highest = max((mean - deviation for _, mean, _, deviation in ends), default=-math.inf)
        for base, numbers in zip(told, ends, strict=True):
            test = BalancingTest(t, base, *numbers, highest)
            self._tests.append(test)
            if test.fails:
                self.active.remove(base)
                self.eliminated[base] = t

    def _ends(self, base: int) -> tuple[int, float, float, float]:
        """The numbers N, J/N, R(N)/N and the deviation of a base."""
        count = len(self.bases[base].history.values)
        union = len(self.bases) * max(math.log(count), 1.0) / self.delta
        deviation = self.c * math.sqrt(math.log(union) / count)
        return count, self._rewards[base] / count, self._bounds[base](count) / count, deviation

    # --- report -----------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `MasterStrategy.report`, the ``reward_range``, the positions of
            the ``active`` bases, and ``eliminated``, a dict from the positions of the other bases
            to the numbers of observations when they were eliminated.

            The dict of a base also has the number of its trials that are not abandoned, ``plays``;
            the number of its observations, ``told``, and their mean, ``mean_reward``; its candidate
            ``bound`` R_i(N_i); the ends ``upper`` and ``lower`` of its `BalancingTest`; its
            ``status``, "active" or "eliminated"; and ``eliminated_at``. Numbers are in units of the
            rewards.
        """
        summary = super().report()
        summary |= {
            "reward_range": list(self.reward_range),
            "active": list(self.active),
            "eliminated": {str(base): t for base, t in self.eliminated.items()},
        }
        return summary

    def _summary(self, position: int) -> dict[str, Any]:
        low, high = self._range
        scale, played = high - low, self._num_played(position)
        told = len(self.bases[position].history.values)
        mean = upper = lower = None
        if told:
            _, average, regret, deviation = self._ends(position)
            mean = low + scale * average
            upper, lower = mean + scale * (regret + deviation), mean - scale * deviation
        ends = {"mean_reward": mean, "upper": upper, "lower": lower}
        return super()._summary(position) | {
            "plays": played,
            "told": told,
            **in_sign(ends, self.history.sign),
            "bound": scale * self._bounds[position](played),
            "status": "eliminated" if position in self.eliminated else "active",
            "eliminated_at": self.eliminated.get(position),
        }


def checked_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """The range as two floats; raises a ValueError unless they are finite and ascending."""
    name = "reward_range"
    if not isinstance(reward_range, Sequence) or len(reward_range) != 2:
        raise ValueError(f"{name} must be a pair (low, high), got {reward_range!r}")
    low, high = (one_number(end, name) for end in reward_range)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"{name} must be finite with low < high, got {reward_range}")
    return low, high
