"""Safe exploration by plain loops and dense algebra, from all data at every step."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.tight import Tight

Array = NDArray[Any]


@dataclass
class Quantity:
    """The bounds of a measured quantity, and its limit: a sign and a number."""

    K: Array
    lam: float
    B: float
    sigma: float
    delta: float
    eps: float
    ridges: tuple[float, ...]
    limit: tuple[int, float] | None = None
    rows: list[int] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        reach = self.B * np.sqrt(np.diag(self.K)) + self.eps
        self.prior, self.lower, self.upper = 2 * reach, -reach, reach.copy()
        if self.limit:  # what B says without results certifies nothing
            self.lower, self.upper = -np.inf * reach, np.inf * reach

    def tell(self, row: int, value: float) -> None:
        self.rows.append(row)
        self.y.append(value)
        told = Tight(
            self.K[np.ix_(self.rows, self.rows)],
            self.K[self.rows],
            np.diag(self.K),
            np.array(self.y),
            self.lam,
            self.B,
            self.sigma,
            self.delta,
            self.ridges,
        )
        for ridge in self.ridges:
            a = ridge * self.lam
            half = told.width(a) * told.std(a) + self.eps * told.norms(a) + self.eps
            self.lower = np.maximum(self.lower, told.mean(a) - half)
            self.upper = np.minimum(self.upper, told.mean(a) + half)

    def slack(self, x: int) -> float:
        sign, h = self.limit or (1, 0.0)
        return self.lower[x] - h if sign > 0 else h - self.upper[x]

    def may_be_safe(self, x: int) -> bool:
        sign, h = self.limit or (1, 0.0)
        return bool(self.upper[x] >= h if sign > 0 else self.lower[x] <= h)

    def covariance(self, asked: list[int]) -> Array:
        """Given all asked points, whether their results are there or not."""
        k = self.K[asked]
        inner = self.K[np.ix_(asked, asked)] + self.lam * np.eye(len(asked))
        return self.K - k.T @ np.linalg.solve(inner, k)


@dataclass
class SafeOracle:
    """The first quantity is the objective; ``near`` says which points are in the ball of which."""

    quantities: list[Quantity]
    seeds: list[int]
    near: Array
    rule: str = "goal"
    asked: list[int] = field(default_factory=list)
    struck: list[int] = field(default_factory=list)

    def certified(self) -> list[int]:
        def holds(x: int) -> bool:
            return all(
                q.slack(z) >= 1e-9 * (q.B + abs(q.limit[1] if q.limit else 0))
                for q in self.quantities[1:]
                for z in np.flatnonzero(self.near[x])
            )

        return [x for x in range(len(self.near)) if x in self.seeds or holds(x)]

    def tell(self, row: int, values: list[float]) -> None:
        before = len(self.certified())
        for quantity, value in zip(self.quantities, values, strict=True):
            quantity.tell(row, value)
        if len(self.certified()) > before:
            self.struck = []

    def ask(self) -> tuple[int, str, int | None]:
        found = self._chosen(len(self.asked))
        self.asked.append(found[0])
        return found

    def _chosen(self, step: int) -> tuple[int, str, int | None]:
        objective, *outcomes = self.quantities
        if not objective.y:
            return self.seeds[step % len(self.seeds)], "seed", None
        S = self.certified()
        possible = [x for x in range(len(self.near)) if all(q.may_be_safe(x) for q in outcomes)]
        while True:
            target = max({*S, *possible} - {*self.struck}, key=lambda x: (objective.upper[x], -x))
            if target in S:
                return target, "exploit", None
            if step % 2:
                return max(S, key=lambda x: (objective.upper[x], -x)), "exploit", target
            if self.rule == "widest":
                widest = {
                    x: max((q.upper[x] - q.lower[x]) / q.prior[x] for q in self.quantities)
                    for x in S
                }
                return max(S, key=lambda x: (widest[x], -x)), "expand", target
            blocking = min(
                outcomes, key=lambda q: q.slack(target) / (q.upper[target] - q.lower[target])
            )
            C = blocking.covariance(self.asked)
            E = [x for x in S if C[x, x] > blocking.lam / 20]
            if not E:
                self.struck.append(target)
                continue
            gains = {x: C[x, target] ** 2 / (C[x, x] + blocking.lam) for x in E}
            return max(E, key=lambda x: (gains[x], -x)), "expand", target
