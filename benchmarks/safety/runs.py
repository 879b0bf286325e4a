"""Runs of safe exploration: one strategy on an objective and an outcome of known norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.kernels import rbf
from benchmarks.common.tabled_runs import Table
from benchmarks.common.tables import Row
from benchmarks.safety.anywhere import BOX, CONTEXTS, play_anywhere
from benchmarks.safety.loops import AROUND, play_loop
from benchmarks.tight.runs import (
    DELTA,
    EPS,
    LAM,
    SIGMA,
    B,
    Case,
    function_of_norm,
    generator_of,
    uniform,
)
from botorch_ext.strategies.adaptive.safe_exploration import SafeExploration
from botorch_ext.widths import Ladder, SelfNormalized
from botorch_ext.widths.base import ConfidenceModel

FIRST_SEED = 7_000_000
#: The trials after which certified points are counted.
COUNTED = 50
LAG, RADIUS = 8, 0.05
_COMPARED = ("SelfNormalized", "mixture", "ladder", "beta = 2")
WRONG = {"norm": "B understated twice", "lengthscale": "lengthscale 3 times too long"}
TABLES = {
    "growth": Table(["d = 1", "d = 2"], _COMPARED, 24, 100),
    "wrong": Table([f"d = {d}, {wrong}" for wrong in WRONG for d in (1, 2)], _COMPARED, 24, 100),
    "promises": Table(
        ["right", f"eps = {EPS}", f"late by {LAG}", f"radius {RADIUS}", "least slack"],
        ("mixture", "ladder"),
        100,
        30,
    ),
    "anywhere": Table([BOX, CONTEXTS], ("mixture",), 100, 30),
    "loops": Table(AROUND, ("mixture",), 34, 10),
}
#: The number of points in the sets of each table.
POINTS = {"growth": 300, "wrong": 300, "promises": 150}


class SafeOptWidth(Ladder):
    """The constant width 2."""

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        return torch.full_like(model.noise_variance, 2.0)


class PublishedWidth(Ladder):
    """The width of `SelfNormalized` at one ridge."""

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        return SelfNormalized(self.rkhs_bound, self.noise_std, self.delta)(t, model)


_OTHER_WIDTHS = {"SelfNormalized": PublishedWidth, "beta = 2": SafeOptWidth}


class Unstopped(SafeExploration):
    """Safe exploration with any width that only notes when its models are refuted."""

    seen_at: int | None = None

    def take_width(self, width: type[Ladder]) -> None:
        """Replaces the widths of all quantities, before any result is told."""
        for each in self._bounds:
            own = each.quantity.width
            other = width(own.rkhs_bound, own.noise_std, own.delta, (1.0,))
            each.quantity = replace(each.quantity, width=other)

    def outcome_bounds(self) -> tuple[Tensor, Tensor]:
        """The lower and upper bounds of the first outcome at all points."""
        return self._bounds[1].lower, self._bounds[1].upper

    def _look(self) -> None:
        if self.seen_at is None and any(each.is_refuted for each in self._bounds):
            self.seen_at = len(self.history.values)


@dataclass(frozen=True)
class Scene:
    """An objective and an outcome that must be at least a limit.

    Args:
        points: The set, ``N x d``.
        told: The kernel that the method is told.
        values: The objective at each point, ``N``.
        outcomes: The outcome at each point, ``N``.
        limit: The least outcome that is safe.
        seed: The row of the point that is declared safe.
        error: What is added to each result besides its noise.
        radius: The radius within which all points must be safe.
    """

    points: Tensor
    told: Kernel
    values: Tensor
    outcomes: Tensor
    limit: float
    seed: int
    error: float
    radius: float

    @property
    def safe(self) -> Tensor:
        """A mask of the safe points."""
        distances = (self.points[:, None] - self.points).norm(dim=-1)
        is_unsafe = self.outcomes < self.limit
        found = ~((distances <= self.radius) & is_unsafe).any(dim=-1)
        found[self.seed] = True
        return found


def play(case: Case) -> Row:
    """What a run found."""
    elsewhere = {"anywhere": play_anywhere, "loops": play_loop}
    return elsewhere.get(case.table, _play)(case)


def _play(case: Case) -> Row:
    """What a run certified, its regret, its first unsafe trial, and when the alarm came."""
    generator = generator_of(case)
    scene = scene_of(case, generator)
    noise = SIGMA * torch.randn(case.horizon, 2, generator=generator, dtype=torch.float64)
    strategy = strategy_of(case.method, scene, case.problem)
    safe = scene.safe
    lag = LAG if case.problem.startswith("late") else 0
    best, regret, share, unsafe, falsely = float(scene.values[safe].max()), 0.0, 0.0, None, False
    rows: list[int] = []
    for t in range(case.horizon):
        rows.append(strategy.ask().info["index"])
        regret += best - float(scene.values[rows[t]])
        if unsafe is None and not bool(safe[rows[t]]):
            unsafe = t + 1
        if t >= lag:
            tell(strategy, t - lag, scene, rows[t - lag], noise[t - lag])
        falsely = falsely or bool((strategy.certified & ~safe).any())
        if t + 1 == min(COUNTED, case.horizon):
            share = float((strategy.certified & safe).sum() / safe.sum())
    return {
        "limit_below": scene.limit < -B,
        "share": share,
        "regret": regret,
        "unsafe": unsafe,
        "falsely": falsely,
        "refuted": strategy.seen_at,
    }


def tell(strategy: SafeExploration, id: int, scene: Scene, row: int, noise: Tensor) -> None:
    """Tells the result of a trial at a row, with the error that makes the outcome seem safest."""
    # The outcome is the RKHS part less the error, and what is measured is that part with the error.
    value, outcome = (
        float(each[row] + own) + sign * scene.error
        for each, own, sign in zip((scene.values, scene.outcomes), noise, (1, 2), strict=True)
    )
    strategy.tell(id, value, {"outcome": outcome})


def scene_of(case: Case, generator: torch.Generator) -> Scene:
    """The problem of a case, the same for all methods."""
    # The dimension of promises goes with the seed.
    d = 1 + case.seed % 2 if case.table == "promises" else int(case.problem[4])
    points = uniform(generator, POINTS[case.table], d)
    lengthscale = 0.3 * math.sqrt(d)
    told, wrong = rbf(lengthscale), case.problem.partition(", ")[2]
    true = rbf(lengthscale / 3) if wrong == "lengthscale" else told
    norm = 2 * B if wrong == "norm" else B
    values, outcomes = (function_of_norm(true, points, norm, generator) for _ in range(2))
    eps = EPS if case.problem.startswith("eps") else 0.0
    outcomes = outcomes - eps
    seed = int((outcomes - outcomes.quantile(0.95)).abs().argmin())
    radius = RADIUS if case.problem.startswith("radius") else 0.0
    limit = float(outcomes.quantile(0.3))
    return Scene(points, told, values, outcomes, limit, seed, eps, radius)


def strategy_of(method: str, scene: Scene, problem: str = "") -> Unstopped:
    """The strategy of a method on a problem."""
    model = bx.KernelGP(scene.told, noise_variance=LAM)
    margin = scene.outcomes - scene.limit
    strategy = Unstopped(
        bx.FiniteSet(scene.points),
        model,
        outcome_models={"outcome": model},
        thresholds={"outcome": f">= {scene.limit!r}"},
        safe_seed=scene.points[[scene.seed]],
        rkhs_bound=B,
        noise_std=SIGMA,
        delta=DELTA,
        misspecification=scene.error,
        radius=scene.radius,
        bounds="ladder" if method == "ladder" else "mixture",
        rule=(lambda rows, _, __: int(rows[margin[rows].argmin()]))
        if problem == "least slack"
        else "goal",
    )
    if method in _OTHER_WIDTHS:
        strategy.take_width(_OTHER_WIDTHS[method])
    return strategy
