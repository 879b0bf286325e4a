"""Safe exploration by plain loops and dense algebra, from all data at every step."""

from collections.abc import Callable
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


@dataclass
class Anywhere:
    """The bounds of a measured quantity at any points, from all told data, with a limit not those
    of the prior; ``kernel`` is a function of two arrays of points, and k(x, x) is 1."""

    kernel: Callable[[Array, Array], Array]
    lam: float
    B: float
    sigma: float
    delta: float
    eps: float = 0.0
    ridges: tuple[float, ...] = (1.0,)
    limit: tuple[int, float] | None = None
    X: list[Array] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def bounds(self, X: Array) -> tuple[Array, Array]:
        reach = np.full(len(X), np.inf if self.limit else self.B + self.eps)
        lower, upper = -reach, reach.copy()
        if not self.X:
            return lower, upper
        Z = np.stack(self.X)
        parts = self.kernel(Z, Z), self.kernel(Z, X), np.ones(len(X)), np.array(self.y)
        told = Tight(*parts, self.lam, self.B, self.sigma, self.delta, self.ridges)
        for ridge in self.ridges:
            a = ridge * self.lam
            half = told.width(a) * told.std(a) + self.eps * told.norms(a) + self.eps
            lower = np.maximum(lower, told.mean(a) - half)
            upper = np.minimum(upper, told.mean(a) + half)
        return lower, upper

    def slack(self, lower: Array, upper: Array) -> Array:
        sign, h = self.limit or (1, 0.0)
        return lower - h if sign > 0 else h - upper

    def tolerance(self) -> float:
        return 1e-9 * (self.B + abs(self.limit[1] if self.limit else 0.0))

    def gain(self, x: Array, target: Array, asked: list[Array]) -> float | None:
        """What a result at a point tells about a target, given all asked points; None if its
        variance is too small."""
        A, both = np.stack(asked) if asked else np.zeros((0, len(x))), np.stack([x, target])
        K = self.kernel(both, both)
        if asked:
            k = self.kernel(A, both)
            K = K - k.T @ np.linalg.solve(self.kernel(A, A) + self.lam * np.eye(len(A)), k)
        return K[0, 1] ** 2 / (K[0, 0] + self.lam) if K[0, 0] > self.lam / 20 else None


@dataclass
class ContextOracle:
    """Safe exploration among actions in contexts. The first quantity is the objective; ``seeds``
    are actions, or joint rows; ``near`` is as for `SafeOracle`."""

    actions: Array
    quantities: list[Anywhere]
    seeds: Array
    near: Array
    rule: str = "goal"
    asked: list[Array] = field(default_factory=list)
    # The tightest bounds of each quantity at asked joint rows.
    watched: dict[tuple[float, ...], list[tuple[float, float]]] = field(default_factory=dict)

    def at(self, z: Array) -> tuple[Array, list[tuple[Array, Array]], set[int]]:
        """The joint rows in a context, the bounds of each quantity there, and what is certified."""
        joint = np.concatenate([self.actions, np.tile(z, (len(self.actions), 1))], axis=1)
        bounds = [quantity.bounds(joint) for quantity in self.quantities]
        for x, row in enumerate(joint):
            for (lower, upper), (least, most) in zip(
                bounds, self.watched.get(tuple(row), []), strict=False
            ):
                lower[x], upper[x] = max(lower[x], least), min(upper[x], most)
        certified = set()
        for x, row in enumerate(joint):
            is_seed = any((seed == row[: len(seed)]).all() for seed in self.seeds)
            slacks = [
                quantity.slack(lower[w], upper[w]) - quantity.tolerance()
                for quantity, (lower, upper) in zip(self.quantities[1:], bounds[1:], strict=True)
                for w in np.flatnonzero(self.near[x])
            ]
            if is_seed or (self.quantities[0].y and min(slacks) >= 0):
                certified.add(x)
        return joint, bounds, certified

    def tell(self, row: Array, values: list[float]) -> None:
        for quantity, value in zip(self.quantities, values, strict=True):
            quantity.X.append(row)
            quantity.y.append(value)
        self._watch()

    def _watch(self, new: Array | None = None) -> None:
        for row in [*self.watched, *([tuple(new)] if new is not None else [])]:
            now = [q.bounds(np.array([row])) for q in self.quantities]
            before = self.watched.get(row, [(-np.inf, np.inf)] * len(now))
            self.watched[row] = [
                (max(lower[0], least), min(upper[0], most))
                for (lower, upper), (least, most) in zip(now, before, strict=True)
            ]

    def ask(self, z: Array) -> tuple[int, str, int | None]:
        joint, bounds, S = self.at(z)
        found = self._chosen(joint, bounds, S)
        self.asked.append(joint[found[0]])
        self._watch(joint[found[0]])
        return found

    def _chosen(
        self, joint: Array, bounds: list[tuple[Array, Array]], S: set[int]
    ) -> tuple[int, str, int | None]:
        if not self.quantities[0].y:
            place = len(self.asked) % len(self.seeds)
            return sorted(S)[place], "seed", None
        upper, outcomes = bounds[0][1], list(zip(self.quantities, bounds, strict=True))[1:]
        possible = {
            x
            for x in range(len(joint))
            if all(q.slack(up[x], low[x]) >= 0 for q, (low, up) in outcomes)
        }
        left = S | possible
        while True:
            target = max(left, key=lambda x: (upper[x], -x))
            if target in S:
                return target, "exploit", None
            if len(self.asked) % 2:
                return max(S, key=lambda x: (upper[x], -x)), "exploit", target
            if self.rule == "widest":
                pairs = list(zip(self.quantities, bounds, strict=True))
                widest = {
                    x: max((up[x] - low[x]) / (q.B + q.eps) for q, (low, up) in pairs) for x in S
                }
                return max(S, key=lambda x: (widest[x], -x)), "expand", target
            blocking = min(
                outcomes,
                key=lambda each: (
                    each[0].slack(each[1][0][target], each[1][1][target])
                    / (each[1][1][target] - each[1][0][target])
                ),
            )[0]
            gains = {x: blocking.gain(joint[x], joint[target], self.asked) for x in S}
            told = {x: gain for x, gain in gains.items() if gain is not None}
            if told:
                return max(told, key=lambda x: (told[x], -x)), "expand", target
            left.discard(target)
