"""Regret balancing and its bases written out: plain loops, dense algebra."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from botorch_ext.strategies import Abandoned, Asked, Event, Told, Trial
from tests.oracles.models import Candidate, Session, upper_bounds
from tests.strategies.sessions import LAMBDA, kernel

Bound = Callable[[int], float]


def published_bound(
    n: int, eps: float, B: float, gamma: float, c1: float, c2: float, low: float, high: float
) -> float:
    """Bogunovic and Krause 2021, eq. 85, for rewards rescaled to [0, 1], in their units."""
    unit = high - low
    first = c1 * ((B / unit) * gamma**0.5 + gamma) * n**0.5
    return unit * min(first + c2 * (eps / unit) * gamma**0.5 * n, n)


def enlarged_width(B: float, sigma: float, delta: float, eps: float) -> Callable[..., float]:
    """Bogunovic and Krause 2021, eq. 15 with lemma 1."""

    def width(model: Candidate, t: int, gain: float) -> float:
        lam = model.noise_variance
        noise = sigma / math.sqrt(lam) * math.sqrt(2 * math.log(1 / delta) + 2 * gain)
        return noise + B + eps * math.sqrt(t) / math.sqrt(lam)

    return width


@dataclass
class MasterOracle:
    """Algorithm 3: who plays, and who is eliminated at which observation.

    Args:
        bounds: R_i, in units of the rewards.
        low: The least reward.
        high: The largest.
        delta: Failure probability.
        c: The constant of the test.
    """

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


@dataclass
class Replay:
    """What the oracle says of every event of a study.

    Args:
        points: ``N x d``: every point that can be chosen or was.
        master: Who plays.
        levels: eps of each base.
        policy: One of `sessions.POLICIES`.
        row: The row in ``points`` of a trial.
        choices: The rows that there were to choose from at a trial.
        B: rkhs_bound.
        sigma: noise_std.
    """

    points: Tensor
    master: MasterOracle
    levels: Sequence[float]
    policy: str
    row: Callable[[Trial], int]
    choices: Callable[[Trial], list[int]]
    B: float
    sigma: float

    def __post_init__(self) -> None:
        model = Candidate.at(self.points, kernel(), LAMBDA)
        self.bases = [
            (
                model,
                Session(self.policy, self.row),
                enlarged_width(self.B, self.sigma, self.master.delta, eps),
            )
            for eps in self.levels
        ]
        self.local: dict[int, int] = {}

    def regrets_of(self, events: Sequence[Event]) -> list[tuple[int, int, float]]:
        """For each ask: the base that should play, the one that did, and by how much its pick falls
        short of its largest upper bound."""
        found = []
        for event in events:
            match event:
                case Asked(trial):
                    base = trial.info["base"]
                    model, session, width = self.bases[base]
                    bounds = upper_bounds([model], session, width)[0]
                    best = bounds[self.choices(trial)].max()
                    found.append((self.master.turn(), base, float(best - bounds[self.row(trial)])))
                    self._pass(event, base, len(session.rows))
                    self.master.owner[trial.id] = base
                case Told(id, value):
                    self._pass(event, self.master.owner[id], self.local[id])
                    self.master.tell(id, value)
                case Abandoned(id):
                    self._pass(event, self.master.owner[id], self.local[id])
                    self.master.gone.add(id)
        return found

    def _pass(self, event: Event, base: int, id: int) -> None:
        session = self.bases[base][1]
        match event:
            case Asked(trial):
                self.local[trial.id] = id
                own: Any = Trial(id, trial.x, trial.context, trial.info)
                session.apply(Asked(own))
            case Told(_, value):
                session.apply(Told(id, value))
            case Abandoned(_):
                session.apply(Abandoned(id))
