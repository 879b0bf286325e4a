"""Regret balancing written out: plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from botorch_ext.strategies import Abandoned, Asked, Event, Told

Bound = Callable[[int], float]


def published_bound(
    n: int, eps: float, B: float, gamma: float, c1: float, c2: float, low: float, high: float
) -> float:
    """Bogunovic and Krause 2021, eq. 85, for rewards rescaled to [0, 1], in their units."""
    unit = high - low
    first = c1 * ((B / unit) * gamma**0.5 + gamma) * n**0.5
    return unit * min(first + c2 * (eps / unit) * gamma**0.5 * n, n)


@dataclass
class MasterOracle:
    """Algorithm 3: who plays, and who is eliminated at which observation."""

    bounds: Sequence[Bound]
    low: float
    high: float
    delta: float
    c: float
    owner: dict[int, int] = field(default_factory=dict)
    told: dict[int, float] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    eliminated: dict[int, int] = field(default_factory=dict)
    # One for each observation: the ends of each base that has one and was active.
    ends: list[dict[int, tuple[float, float]]] = field(default_factory=list)

    def regret(self, base: int, n: int) -> float:
        return min(self.bounds[base](n) / (self.high - self.low), n)

    @property
    def active(self) -> list[int]:
        return [i for i in range(len(self.bounds)) if i not in self.eliminated]

    def turn(self) -> int:
        best, least = -1, math.inf
        for base in self.active:
            asked = [id for id, owner in self.owner.items() if owner == base]
            value = self.regret(base, len([id for id in asked if id not in self.gone]))
            if value < least:
                best, least = base, value
        return best

    def rewards(self, base: int) -> list[float]:
        kept = [value for id, value in self.told.items() if self.owner[id] == base]
        return [(value - self.low) / (self.high - self.low) for value in kept]

    def tell(self, id: int, value: float) -> None:
        self.told[id] = value
        ends: dict[int, tuple[float, float]] = {}
        for base in self.active:
            rewards = self.rewards(base)
            n = len(rewards)
            if not n:
                continue
            log = math.log(n) if n > math.e else 1.0
            spread = self.c * math.sqrt(math.log(len(self.bounds) * log / self.delta) / n)
            J = sum(rewards)
            ends[base] = (J / n - spread, J / n + self.regret(base, n) / n + spread)
        self.ends.append(ends)
        for base, (_, upper) in ends.items():
            if upper < max(lower for lower, _ in ends.values()):
                self.eliminated[base] = len(self.told)

    def follow(self, events: Sequence[Event]) -> None:
        """Goes through events, and compares who played."""
        for event in events:
            match event:
                case Asked(trial):
                    assert trial.info["base"] == self.turn()
                    self.owner[trial.id] = trial.info["base"]
                case Told(id, value):
                    self.tell(id, value)
                case Abandoned(id):
                    self.gone.add(id)
