"""Insured methods in plain loops: bounds, levels, purses and picks from a list of events.

One state of the world for each step, and dense algebra from the prior at every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tests.oracles.models import Candidate

ALPHA, BETA, PURSE, FOLLOW_UP, MAX_FOLLOW_UPS, OVERRIDE, M = 0.03, 0.1, 0.3, 1.0, 20, 1.5, 7


def first_highest(rows: list[int], value: Callable[[int], float]) -> int:
    """The first of the rows with the highest value, up to rounding: 1e-9 of the value."""
    top = max(value(row) for row in rows)
    return next(row for row in rows if value(row) >= top - 1e-9 * abs(top))


@dataclass
class Insured:
    """insured_ucb on N points with one model; of several, and inside its region, safe_ucb."""

    models: list[Candidate]
    B: float
    sigma: float
    delta: float
    width: float | None = None  # of the index
    restricted: bool = False
    credibility: float | None = None
    constants: dict = field(default_factory=dict)
    # The points whose bounds are kept; None for all.
    watched: set[int] | None = None
    # T, where certificates are bought.
    horizon: int | None = None

    def __post_init__(self) -> None:
        self.round, self.phase, self.position, self.waited = 1, "free", 0, 0
        self.certificate, self.plan, self.promise = math.inf, [], math.inf
        # Those that played at the last step, and what was left when the block was planned.
        self.players: set[int] = set()
        self.left: list[int] = []
        # A plan, for ties but for rounding.
        self.hint: list[int] = []
        # Trials of this round's blocks, in the order of the plan, with their values.
        self.bought: dict[int, float | None] = {}
        names = {"alpha": ALPHA, "beta": BETA, "purse": PURSE, "follow_up": FOLLOW_UP}
        names |= {"max_follow_ups": MAX_FOLLOW_UPS, "override": OVERRIDE}
        self.c = names | self.constants
        self.eps = [0.0] + [self.B * 2.0 ** -(M - 1 - j) for j in range(1, M)]
        N = len(self.models[0].K)
        root = [model.K.diagonal().sqrt() for model in self.models]
        self.first = [[self.B * r + e for e in self.eps] for r in root]
        self.UM = [[u.clone() for u in own] for own in self.first]
        self.LM = [[-u for u in own] for own in self.first]
        self.UD = torch.full((N,), math.inf, dtype=torch.float64)
        self.LD = -self.UD
        self.rows: list[int] = []
        self.y: list[float] = []
        self.level, self.S0, self.owed = 0, 0.0, False
        self.big, self.small = [0.0] * M, [0.0] * M
        self.suspect: list | None = None  # [j, q, repeats, absent]

    def tell(self, row: int, value: float, trial: int | None = None) -> None:
        if trial in self.bought:
            self.bought[trial] = value
        self.rows.append(row)
        self.y.append(value)
        own = [v for r, v in zip(self.rows, self.y, strict=True) if r == row]
        n, N = len(own), len(self.UD)
        if self.watched is not None:  # a share of delta for the m-th point observed
            m = list(dict.fromkeys(self.rows)).index(row) + 1
            N = math.pi**2 * m**2 / 6
        h = self.sigma * math.sqrt(2 * math.log(N * math.pi**2 * n**2 / (3 * self.delta)) / n)
        average = sum(own) / n
        self.UD[row] = min(float(self.UD[row]), average + h)
        self.LD[row] = max(float(self.LD[row]), average - h)

    def average(self, row: int) -> tuple[float, int]:
        own = [v for r, v in zip(self.rows, self.y, strict=True) if r == row]
        return (sum(own) / len(own) if own else math.nan), len(own)

    def _width(self, gain: float, ridge: float) -> float:
        return self.B + self.sigma * math.sqrt(2 * (math.log(1 / self.delta) + gain) / ridge)

    def ask(self, t: int, late: list[int], offered: list[int] | None = None) -> dict:
        """What step t decides, ``late`` the rows of the pending trials in the order of asking; the
        state changes as it does when that is asked."""
        N, n, p = len(self.UD), len(self.rows), len(late)
        X = list(range(N)) if offered is None else offered
        seen = [*self.rows, *late]
        evidence = [model.log_evidence(self.rows, self.y) for model in self.models]
        c = self.credibility
        if c is None:
            c = math.log(len(self.models) / self.delta)
        credible = [u for u in range(len(self.models)) if evidence[u] >= max(evidence) - c]
        # 1 bounds
        if self.watched is not None:
            forgotten = [x for x in range(N) if x not in self.watched]
            for u, own in enumerate(self.first):
                for j, bound in enumerate(own):
                    self.UM[u][j][forgotten] = bound[forgotten]
                    self.LM[u][j][forgotten] = -bound[forgotten]
        for u, model in enumerate(self.models):
            mu, s, ridge = model.mean(self.rows, self.y), model.std(self.rows), model.noise_variance
            w = self._width(model.gain(self.rows), ridge)
            for j, e in enumerate(self.eps):
                r = (w + e * math.sqrt(n / ridge)) * s + e
                self.UM[u][j] = torch.minimum(self.UM[u][j], mu + r)
                self.LM[u][j] = torch.maximum(self.LM[u][j], mu - r)

        # 2 refute
        self._refute(credible)
        if self.horizon is not None and self._closes():
            # A block that has arrived enters the bounds of every level.
            rows, y = self._block()
            for u, model in enumerate(self.models):
                mu, s = model.mean(rows, y), model.std(rows)
                root = math.sqrt(len(rows) / model.noise_variance)
                for j, e in enumerate(self.eps):
                    r = (self._block_width(model) + e * root) * s + e
                    self.UM[u][j] = torch.minimum(self.UM[u][j], mu + r)
                    self.LM[u][j] = torch.maximum(self.LM[u][j], mu - r)
            self._refute(credible)
            self._next_round()
        i = self.level
        playing, U, L, model_upper = self._levels(credible)
        if self.horizon is not None:
            if not set(playing[i]) <= self.players:
                self.certificate = math.inf
            self.players = set(playing[i])
            self._buy(t, U[i], L[i])
            if self.phase == "block":
                picked = {"level": i, "kind": "block", "cost": self.cost, "suspected": None}
                return picked | {"row": self.plan[len(self.bought)]}
        top, low = max(float(U[i][x]) for x in X), max(float(L[i][x]) for x in X)

        def index(j: int) -> Tensor:
            """EC index of level j; GP-UCB's of level 0."""
            parts = []
            for u in playing[max(j, i)]:
                model, ridge = self.models[u], self.models[u].noise_variance
                v = self._width(model.gain(seen), ridge) if self.width is None else self.width
                v += self.eps[j] * math.sqrt((n + p + 1) / ridge)
                parts.append(model.mean(self.rows, self.y) + v * model.std(seen))
            return torch.stack(parts).amax(0)

        # 3 exploit
        there = X
        if i > 0:
            least = max(float(self.LD[x]) for x in X)
            there = [x for x in X if float(self.UD[x]) >= least] or X
        if self.restricted:
            left = [x for x in X if float(U[i][x]) >= low] or X
            there = [x for x in there if x in left] or left
        plain = index(0)
        x0 = first_highest(there, plain.tolist().__getitem__)
        if i > 0 and self.average(x0)[1]:
            played = [x for x in X if self.average(x)[1]]
            if self.restricted:
                played = [x for x in played if x in left]
            step = self.c["override"] * self.sigma

            def sure(x: int) -> float:
                average, count = self.average(x)
                return average - step / math.sqrt(count)

            if played:
                q = first_highest(played, sure)
                average, count = self.average(x0)
                if sure(q) > average + step / math.sqrt(count):
                    x0 = q
        gain = max(top - float(L[i][x0]), 0.0)
        picked = {"level": i, "top": top, "low": low, "x0": x0}
        budget = max(self.c["alpha"] * self.S0, self.c["beta"] * self.B * math.sqrt(t))
        # 4 follow up
        on_hold = False
        if self.suspect is not None:
            j, q, repeats, _ = self.suspect
            average, count = self.average(q)
            if q in late:
                on_hold = True
            elif q not in X:
                self.suspect[3] += 1
                on_hold = True
                if self.suspect[3] >= self.c["max_follow_ups"]:
                    self.suspect, on_hold = None, False
            else:
                z = -math.inf
                if count:
                    z = (average - float(model_upper[i][q])) * math.sqrt(count) / self.sigma
                if (
                    z < self.c["follow_up"]
                    or repeats >= self.c["max_follow_ups"]
                    or q == x0
                    or i == M - 1
                ):
                    self.suspect = None
                else:
                    cost = max(top - float(L[i][q]), 0.0)
                    self.big[j] += cost
                    self.suspect[2] += 1
                    self.suspect[3] = 0
                    return picked | {"row": q, "kind": "follow-up", "cost": cost, "suspected": j}
        # 5 large purse
        best = None
        for j in range(max(i, 1), M):
            least = max(float(L[j][x]) for x in X)
            where = [x for x in X if float(U[j][x]) >= least] or X
            wide = index(j)
            x = first_highest(where, wide.tolist().__getitem__)
            if x == x0 or (i == 0 and float(U[0][x]) >= low):
                continue
            cost = max(top - float(L[i][x]), 0.0)
            if self.owed and j == i:
                best, self.owed = (j, x, cost), False
                break
            if on_hold:
                continue
            if sum(self.big) + cost <= (1 - self.c["purse"]) * budget and (
                best is None or self.big[j] < self.big[best[0]]
            ):
                best = j, x, cost
        if best is not None:
            j, x, cost = best
            self.big[j] += cost
            self.suspect = [j, x, 0, 0]
            return picked | {"row": x, "kind": "probe", "cost": cost, "suspected": j}
        # 6 small purse
        left = self.c["purse"] * budget - sum(self.small)
        for j in sorted(range(i + 1, M), key=lambda j: (self.small[j], j)):
            if on_hold:
                break
            where = [
                x
                for x in X
                if float(U[j][x]) > top and top - float(L[i][x]) <= left and float(U[i][x]) < low
            ]
            if where:
                wide = index(j)
                x = first_highest(where, wide.tolist().__getitem__)
                cost = max(top - float(L[i][x]), 0.0)
                self.small[j] += cost
                self.suspect = [j, x, 0, 0]
                return picked | {"row": x, "kind": "probe", "cost": cost, "suspected": j}
        self.S0 += gain
        return picked | {"row": x0, "kind": "exploit", "cost": gain, "suspected": None}

    def _is_refuted(self, u: int, j: int) -> bool:
        upper = torch.minimum(self.UM[u][j], self.UD)
        lower = torch.maximum(self.LM[u][j], self.LD)
        seen = list(range(len(self.UD))) if self.watched is None else sorted(self.watched)
        return bool((lower > upper + 1e-12)[seen].any())

    def _refute(self, credible: list[int]) -> None:
        while self.level < M - 1 and all(self._is_refuted(u, self.level) for u in credible):
            self.level += 1
            self.owed = True
            self.certificate = math.inf

    def _levels(self, credible: list[int]) -> tuple[dict, dict, dict, dict]:
        """Who plays at each level, U_j, L_j, and the upper bounds of the models alone."""
        playing = {
            j: [u for u in credible if not self._is_refuted(u, j)] or credible for j in range(M)
        }
        high = {j: torch.stack([self.UM[u][j] for u in playing[j]]).amax(0) for j in playing}
        low = {j: torch.stack([self.LM[u][j] for u in playing[j]]).amin(0) for j in playing}
        U = {j: torch.minimum(high[j], self.UD) for j in playing}
        L = {j: torch.maximum(low[j], self.LD) for j in playing}
        return playing, U, L, high

    @property
    def lengths(self) -> list[int]:
        """q_1, ..., q_R."""
        q = [math.ceil(math.sqrt(self.horizon))]
        while sum(q) < self.horizon:
            q.append(math.ceil(math.sqrt(self.horizon * q[-1])))
        return q

    def _block_width(self, model: Candidate) -> float:
        share = self.delta / (4 * len(self.lengths) * len(self.UD))
        return self.B + self.sigma * math.sqrt(2 * math.log(1 / share) / model.noise_variance)

    def _block(self) -> tuple[list[int], list[float]]:
        """What has arrived of this round's blocks."""
        asked = zip(self.plan, self.bought.values(), strict=False)
        told = [(row, value) for row, value in asked if value is not None]
        return [row for row, _ in told], [value for _, value in told]

    def _next_round(self) -> None:
        self.round, self.phase, self.position, self.waited = self.round + 1, "free", 0, 0
        self.plan, self.bought = [], {}

    def _closes(self) -> bool:
        if self.phase != "wait":
            return False
        rows, _ = self._block()
        if len(rows) == len(self.plan):
            return True
        return float(self.models[0].std(rows)[self.left].max()) <= self.promise

    def _buy(self, t: int, U: Tensor, L: Tensor) -> None:
        """Lines 2 and 3 of the certified method, inside what the level leaves."""
        inside = (U >= L.max()).nonzero().flatten().tolist() or list(range(len(U)))
        self.certificate = min(self.certificate, max(float(U.max() - L[inside].min()), 0.0))
        T, q = self.horizon, 1
        for _ in range(self.round):
            q = math.ceil(math.sqrt(T * q))
        n = math.ceil(q / 8)
        model = self.models[0]
        is_whole = T - (t - 1 - self.position) > q and T - t > n
        if self.phase == "rest" and self.position >= q:
            self._next_round()
            return
        first = self.phase == "free" and self.position >= q - n and is_whole
        if not first and not (self.phase == "wait" and self.waited >= q):
            return
        self.left = inside = inside if first else self.left
        given = [] if first else self._block()[0]
        for k in range(n):
            s = model.std(given)
            best = max(inside, key=lambda x: float(s[x]))
            hint = self.hint[k]
            if hint in inside and s[hint] >= s[best] - 1e-9:
                best = hint
            given = [*given, best]
            self.plan.append(best)
        self.phase, self.waited = "block", 0
        if first:
            self.cost = self.certificate
            self.promise, e = float(model.std(given)[inside].max()), self.eps[self.level]
            width = self._block_width(model) + e * math.sqrt(n / model.noise_variance)
            if self.certificate <= 4 * width * self.promise + 2 * e:
                self.phase = "rest"

    def asked(self, kind: str, trial: int) -> None:
        """The decision of this step was asked as a trial."""
        self.position += 1
        self.waited += self.phase == "wait"
        if kind == "block":
            self.bought[trial] = None
            if len(self.bought) == len(self.plan):
                self.phase = "wait"
