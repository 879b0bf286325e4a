"""Certified elimination on a finite set written out: plain loops, dense solves.

Which points are asked, and which are planned, is taken
from the events and must be what the pseudo-code allows; every other decision is made anew.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tests.oracles.models import Candidate

# Scores of equal points differ by rounding; bounds at a threshold, too.
_SCORES, _BOUNDS = 1e-7, 1e-9


@dataclass
class Numbers:
    """What the pseudo-code is given; letters as there."""

    K: Tensor
    ridge: float
    T: int
    rho: float = 1 / 8
    kappa: float = 1.0
    buy: str = "useful"
    B: float | None = None
    sigma: float | None = None
    delta: float = 0.1
    width: float | None = None
    free_width: float = 2.0
    # Rows and values known from the start, and the trials that are asked before the first round.
    before: list[tuple[int, float]] = field(default_factory=list)
    num_initial: int = 0


class Certified:
    """Follows events, and raises where a decision is not that of the pseudo-code."""

    def __init__(self, numbers: Numbers, free: bool = True) -> None:
        self.n, self.free_is_bucb = numbers, free
        n = numbers
        self.N = len(n.K)
        self.model = Candidate(n.K, n.K.new_zeros(self.N), n.ridge)
        self.horizon = n.T - n.num_initial
        self.q = [1]
        while sum(self.q[1:]) < self.horizon:
            self.q.append(math.ceil(math.sqrt(self.horizon * self.q[-1]) - 1e-12))
        self.R = len(self.q) - 1
        self.A = torch.ones(self.N, dtype=torch.bool)
        self.c = math.inf if n.B is None else 2 * n.B
        self.r, self.pos, self.phase = 1, 0, "free"
        self.plan: list[int] = []
        self.bought: dict[int, int] = {}
        self.s_plan = math.nan
        self.waited = self.e = 0
        self.P: set[int] | None = None
        self.row: dict[int, int] = {}
        self.y: dict[int, float] = {}
        self.pending: dict[int, None] = {}
        self.seen: Counter[str] = Counter()
        self.certificates: list[float] = []

    def posterior(self, rows: list[int], values: list[float]) -> tuple[Tensor, Tensor]:
        return self.model.mean(rows, values), self.model.std(rows)

    def told(self) -> tuple[list[int], list[float]]:
        known = [*self.n.before, *((self.row[id], y) for id, y in self.y.items())]
        return [row for row, _ in known], [y for _, y in known]

    def w_F(self) -> float:
        n = self.n
        if n.width is not None:
            return n.width
        log = math.log(8 * self.R * self.N / n.delta)
        return n.B + n.sigma / math.sqrt(n.ridge) * math.sqrt(2 * log)

    def w_S(self) -> float:
        n = self.n
        if n.width is not None:
            return n.width
        log = math.log(2 / n.delta) + self.model.gain(self.told()[0])
        return n.B + n.sigma / math.sqrt(n.ridge) * math.sqrt(2 * log)

    def bounds(self, mean: Tensor, std: Tensor, w: float) -> tuple[Tensor, Tensor]:
        upper, lower = mean + w * std, mean - w * std
        if self.n.B is None:
            return upper, lower
        return upper.clamp(-self.n.B, self.n.B), lower.clamp(-self.n.B, self.n.B)

    def cut(self, mean: Tensor, std: Tensor, w: float, survivors: Tensor) -> None:
        """A <- {U >= max L}; points within rounding of the threshold may stay or not."""
        upper, lower = self.bounds(mean, std, w)
        slack = upper - lower[self.A].max()
        certain = slack.abs() > _BOUNDS
        assert torch.equal((self.A & (slack >= 0))[certain], survivors[certain])
        assert not bool((survivors & ~self.A).any())
        assert bool(survivors.any())
        self.seen["eliminated"] += int((self.A & ~survivors).sum())
        self.A = survivors
        self.c = min(self.c, float(upper[self.A].max() - lower[self.A].min()))

    def check_plan(self, plan: list[int], given: list[int]) -> None:
        """Each point maximises the deviation from the prior, given those before it."""
        rows = list(given)
        for z in plan:
            std = self.model.std(rows)
            assert bool(self.A[z])
            assert float(std[self.A].max() - std[z]) <= _SCORES
            rows.append(z)

    def tell(self, id: int, y: float) -> None:
        self.y[id] = y
        del self.pending[id]

    def abandon(self, id: int) -> None:
        del self.pending[id]
        self.seen["abandoned in a block"] += id in self.bought

    def ask(self, trial: Any, survivors: Tensor) -> None:
        """The trial that was asked, and who survived before it was."""
        n, row, info = self.n, trial.info["index"], trial.info
        self.row[trial.id] = row
        if trial.id < n.num_initial:
            self.pending[trial.id] = None
            return
        t = trial.id + 1 - n.num_initial
        before = self.A
        self._lines(t, info, survivors)
        assert torch.equal(self.A, survivors)
        self.seen["A stayed"] += int(torch.equal(self.A, before))
        assert (info["phase"], info["round"]) == (self.phase, self.r)
        if math.isinf(self.c):
            assert info["certificate"] is None
        else:
            assert math.isclose(info["certificate"], self.c, rel_tol=1e-7, abs_tol=1e-8)
        self.certificates.append(self.c)
        self.seen[self.phase] += 1
        assert bool(self.A[row])
        if self.phase == "block":
            assert row == self.plan.pop(0)
            self.bought[trial.id] = row
            if not self.plan:
                self.phase = "wait"
        else:
            if self.free_is_bucb:
                rows, values = self.told()
                mean, _ = self.posterior(rows, values)
                waiting = [self.row[id] for id in self.pending]
                s_h = self.model.std(rows + waiting)
                score = mean + n.free_width * s_h
                assert float(score[self.A].max() - score[row]) <= _SCORES
            self.waited += self.phase == "wait"
        self.pos += 1
        self.pending[trial.id] = None

    def _lines(self, t: int, info: dict[str, Any], survivors: Tensor) -> None:
        n, q = self.n, self.q
        n_r = math.ceil(n.rho * q[self.r] - 1e-12)
        if self.phase == "wait":  # line 1
            in_time = [id for id in self.y if id in self.bought]
            rows = [self.row[id] for id in in_time]
            mean, std = self.posterior(rows, [self.y[id] for id in in_time])
            largest = float(std[self.A].max())
            closes = largest <= n.kappa * self.s_plan + _BOUNDS
            assert closes == ("closing" in info)
            if closes:
                self.seen["closed"] += 1
                self.seen["closed without all of the block"] += len(rows) < len(self.bought)
                self.seen["told too late"] += sum(id in self.pending for id in self.bought)
                self.cut(mean, std, self.w_F(), self._after(info, "closing", survivors))
                self.r, self.pos, self.phase = self.r + 1, 0, "free"
                self._open()
        else:
            assert "closing" not in info
        n_r = math.ceil(n.rho * q[self.r] - 1e-12) if self.r <= self.R else n_r
        due = (
            self.phase == "free"
            and self.r <= self.R
            and self.pos >= q[self.r] - n_r
            and self.horizon - (t - 1 - self.pos) > q[self.r]
            and self.horizon - t > n_r
        )
        planned = False
        if due:  # line 2
            planned = self._line_2(info, survivors, n_r)
        elif self.phase == "rest" and self.pos >= q[self.r]:
            self.seen["rested"] += 1
            self.r, self.pos, self.phase = self.r + 1, 0, "free"
            self._open()
        assert due == ("cut" in info)
        if self.phase == "wait" and self.waited >= q[self.r]:  # line 3
            self.seen["bought more"] += 1
            given = [self.bought[id] for id in self.bought if id in self.y]
            self.plan = list(info["plan"]["plan"])
            assert len(self.plan) == n_r
            self.check_plan(self.plan, given)
            self.phase, self.waited, planned = "block", 0, True
        assert planned == ("plan" in info)

    def _open(self) -> None:
        self.bought, self.waited, self.e, self.P = {}, 0, 0, None

    def _after(self, info: dict[str, Any], line: str, survivors: Tensor) -> Tensor:
        """Who survives a line; where both lines cut, after the first by its own threshold."""
        if line == "closing" and "cut" in info:
            in_time = [id for id in self.y if id in self.bought]
            rows = [self.row[id] for id in in_time]
            upper, lower = self.bounds(
                *self.posterior(rows, [self.y[id] for id in in_time]), self.w_F()
            )
            return self.A & (upper >= lower[self.A].max())
        return survivors

    def _line_2(self, info: dict[str, Any], survivors: Tensor, n_r: int) -> bool:
        n = self.n
        rows, values = self.told()
        mean, std = self.posterior(rows, values)
        self.cut(mean, std, self.w_S(), survivors)
        if self.P is None:
            self.P, self.e = set(self.pending), 0
        if self.r > 1 and self.P & set(self.pending) and self.e < self.q[self.r]:
            waiting = [self.row[id] for id in self.pending]
            s_h = self.model.std(rows + waiting)
            upper, lower = self.bounds(mean, s_h, self.w_S())
            c_h = float(upper[self.A].max() - lower[self.A].min())
            if c_h <= self.c / 2:
                assert info["cut"]["put_off"]
                self.e += 1
                self.seen["put off"] += 1
                return False
            self.seen["pending would not do"] += 1
        assert not info["cut"]["put_off"]
        plan = list(info["plan"]["plan"])
        assert len(plan) == n_r
        self.check_plan(plan, [])
        self.s_plan = float(self.model.std(plan)[self.A].max())
        assert math.isclose(info["plan"]["promise"], self.s_plan, rel_tol=1e-6, abs_tol=1e-8)
        if n.buy == "useful" and self.c <= 4 * self.w_F() * self.s_plan:
            self.phase = "rest"
        else:
            self.phase, self.plan = "block", plan
            self.seen["blocks"] += 1
        return True


def follow(oracle: Certified, strategy: Any, events: Any) -> Certified:
    """Goes through events with a strategy that has none yet, which follows them too: whom it lets
    survive is looked at before each question is taken in."""
    for event in events:
        strategy.follow([event])
        match type(event).__name__:
            case "Asked":
                survivors = torch.zeros(oracle.N, dtype=torch.bool)
                survivors[strategy.survivors] = True
                oracle.ask(event.trial, survivors)
            case "Told":
                oracle.tell(event.id, event.value)
            case "Abandoned":
                oracle.abandon(event.id)
    return oracle
