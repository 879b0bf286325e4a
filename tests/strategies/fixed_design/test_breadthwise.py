"""Breadthwise exploration against algorithm 1 of Shekhar and Javidi 2022, as corrected.

Every history is replayed through the oracle, which shares no code with the library: what was
evaluated, when a level was refined, what it waited for, and what was kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel

from botorch_ext import algorithms
from botorch_ext.domains import Box
from botorch_ext.exceptions import CellLimitWarning, HorizonWarning, KernelBoundWarning
from botorch_ext.kernels.smoothness import HolderConstants
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import Abandoned, Asked, BreadthwiseExploration, Told
from tests.helpers import matern, rbf
from tests.oracles.breadthwise import Oracle
from tests.oracles.posterior import dense_posterior
from tests.strategies.fixed_design.sessions import Wait, observe, play, points, refusal
from tests.strategies.sessions import Stepwise, scaled

NUS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
# The constants C_k and xi, for lengthscale 1.
HOLDER = {
    "matern12": (math.sqrt(2), 0.5),
    "matern32": (math.sqrt(3), 1.0),
    "matern52": (math.sqrt(5 / 3), 1.0),
    "rbf": (1.0, 1.0),
}
LINE = ((2.0, 5.0),)
PLANE = ((2.0, 5.0), (-3.0, -1.5))


@dataclass(frozen=True)
class Case:
    """A kernel, a box, and the numbers of the method."""

    kind: str
    lengthscales: Sequence[float]
    ends: Sequence[tuple[float, float]]
    rkhs_bound: float = 1.5
    noise_variance: float = 1e-3
    noise_std: float = 0.02
    delta: float = 0.1
    horizon: int = 300
    outputscale: float = 1.0
    # What differs between the arguments of the strategy and those of the oracle.
    strategy: dict[str, Any] = field(default_factory=dict)
    oracle: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, Any]:
        names = ("noise_variance", "horizon", "rkhs_bound", "noise_std", "delta")
        return {name: getattr(self, name) for name in names}

    def kernel(self) -> Kernel:
        seen = [j for j, scale in enumerate(self.lengthscales) if scale < math.inf]
        scales = [self.lengthscales[j] for j in seen]
        more = {"active_dims": seen} if len(seen) < len(self.lengthscales) else {}
        nu = NUS.get(self.kind)
        kernel = rbf(*scales, **more) if nu is None else matern(*scales, nu=nu, **more)
        return kernel if self.outputscale == 1.0 else scaled(kernel, self.outputscale)

    def make(self, **changed: Any) -> BreadthwiseExploration:
        options = {"kernel": self.kernel(), **self.numbers, **self.strategy, **changed}
        return algorithms.breadthwise_exploration(Box(self.ends), **options)

    def make_oracle(self) -> Oracle:
        constant, exponent = HOLDER[self.kind]
        holder = math.sqrt(self.outputscale) * constant, exponent, self.lengthscales
        options = {"holder": holder, **self.numbers, **self.oracle}
        return Oracle(self.kernel(), self.ends, **options)

    def problem(self, seed: int = 0) -> RKHSFunction:
        box, norm = Box(self.ends), self.rkhs_bound
        return RKHSFunction.random(box, self.kernel(), norm, 4, noise_std=self.noise_std, seed=seed)

    def but(self, **changed: Any) -> Case:
        return replace(self, **changed)


def play_promptly(strategy: BreadthwiseExploration, problem: RKHSFunction, number: int) -> None:
    for _ in range(number):
        observe(strategy, problem, [strategy.ask().id])


def replay(strategy: BreadthwiseExploration, oracle: Oracle, waits: Sequence[Wait] = ()) -> Oracle:
    """Follows a history with the oracle, comparing every decision."""
    waiting = {wait.num_events: wait for wait in waits if not wait.available}
    for number, event in enumerate(strategy.events):
        if number in waiting:
            assert oracle.refines(oracle.std()) is not False
            assert sorted(oracle.missing) == waiting[number].ids
        match event:
            case Asked(trial):
                _follow(strategy, oracle, trial)
            case Told(id, value):
                oracle.tell(id, value)
            case Abandoned(id):
                oracle.abandon(id)
    _compare_cells(strategy.levels[-1], oracle)
    last = strategy.levels[-1]
    assert (last.kept, last.threshold, last.width) == (None, None, None)
    for depth, (level, expected) in enumerate(zip(strategy.levels, oracle.levels, strict=True)):
        assert level.depth == depth
        counts = [0] * len(expected.cells)
        for id in expected.values:
            counts[expected.evaluated[id]] += 1
        assert level.counts.tolist() == counts
        assert level.num_evaluations == sum(counts)
    return oracle


def _follow(strategy: BreadthwiseExploration, oracle: Oracle, trial: Any) -> None:
    """One ask: the refinements before it, and the pick."""
    info, before = trial.info, len(oracle.levels)
    while len(oracle.levels) <= info["level"]:
        judged = _judge(oracle)
        played = strategy.levels[len(oracle.levels) - 1]
        _compare_cells(played, oracle)
        # Tolerances: rounding of dense algebra, condition number 3e4.
        assert played.width == pytest.approx(judged.width, rel=1e-9)
        assert played.threshold == pytest.approx(judged.threshold, abs=1e-7)
        assert played.mean.numpy() == pytest.approx(judged.mean, abs=1e-7)
        assert played.std.numpy() == pytest.approx(judged.std, abs=1e-7)
        # Cells within rounding of the threshold may be kept or not.
        kept = played.kept.numpy()
        clear = np.abs(judged.margin) > 1e-9
        assert np.array_equal(kept[clear], (judged.margin >= 0)[clear])
        assert not oracle.is_crowded(kept)
        oracle.refine(kept)
    crowded = info.get("opening", {}).get("crowded")
    if crowded is not None:
        kept = _judge(oracle).margin >= 0
        assert oracle.is_crowded(kept)
        assert crowded == 2 * kept.sum()
        oracle.put_off()
    std = oracle.std()
    assert oracle.refines(std) is not True
    assert len(oracle.levels) == info["level"] + 1
    assert ("opening" in info) == (len(oracle.levels) > before or crowded is not None)
    row = [cell.code for cell in oracle.level.cells].index(info["cell"])
    assert std.max() - std[row] <= 1e-7
    assert info["std"] == pytest.approx(std[row], abs=1e-7)
    assert info["slack"] == pytest.approx(oracle.level.slack, rel=1e-12)
    assert trial.x.tolist() == pytest.approx(oracle.level.cells[row].center, rel=1e-13)
    if len(oracle.levels) > before:
        assert strategy.levels[info["level"]].first == trial.id
    assert oracle.ask(row) == trial.id


def _judge(oracle: Oracle) -> Any:
    """What is kept of a level that must be refined, or put off, now."""
    assert oracle.refines(oracle.std()) is not False
    assert not oracle.missing
    return oracle.judge()


def _compare_cells(level: Any, oracle: Oracle) -> None:
    """The active cells of the current level of the oracle."""
    cells = oracle.level.cells
    assert level.codes.tolist() == [cell.code for cell in cells]
    ends = np.array([cell.intervals for cell in cells])
    assert level.lower.numpy() == pytest.approx(ends[..., 0], rel=1e-13)
    assert level.upper.numpy() == pytest.approx(ends[..., 1], rel=1e-13)
    assert level.centers.numpy() == pytest.approx(ends.mean(axis=-1), rel=1e-13)
    radius = cells[0].half_diagonal(oracle.root, oracle.units)
    assert level.half_diagonal == pytest.approx(radius, rel=1e-12)
    assert level.slack == pytest.approx(oracle.level.slack, rel=1e-12)


SMOOTH = Case("matern52", (0.9,), LINE)
IN_PLANE = Case("rbf", (0.9, 0.5), PLANE)
# Of which cells are dropped soon.
SHORT = Case("matern52", (0.9,), LINE, horizon=60, noise_variance=0.01)
CASES = [
    *(Case(kind, (0.9,), LINE) for kind in ("matern12", "matern32", "matern52", "rbf")),
    *(Case(kind, (2.9, 0.5), PLANE) for kind in ("matern12", "matern32")),
    IN_PLANE,
]


def dropped(strategy):
    return sum(not bool(level.kept.all()) for level in strategy.levels[:-1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{len(case.ends)}")
def test_every_decision_is_that_of_the_pseudo_code(case):
    case = case.but(horizon=200)
    strategy = case.make()
    play_promptly(strategy, case.problem(), 200)
    assert replay(strategy, case.make_oracle()).num_asked == 200
    assert dropped(strategy) >= 2
    # What is asked does not depend on when results come, nor on their order.
    batched = case.make()
    play(batched, case.problem(), seed=5, lost=0.0)
    assert torch.equal(points(strategy), points(batched))


@pytest.mark.parametrize("case", [CASES[0], SMOOTH, IN_PLANE], ids=lambda case: case.kind)
def test_histories_with_lost_and_reordered_observations(case):
    case = case.but(horizon=160)
    strategy = case.make()
    waits = play(strategy, case.problem(1), seed=11)
    oracle = replay(strategy, case.make_oracle(), waits)
    assert any(wait.available for wait in waits)
    assert sum(len(level.evaluated) for level in oracle.levels) < oracle.num_asked  # some were lost
    values = strategy.history.values
    X = points(strategy)[list(values)]
    y = X.new_tensor(list(values.values()))
    mean, _ = dense_posterior(case.kernel(), X, y, X, case.noise_variance)
    assert strategy.best()[1] == pytest.approx(mean.max().item(), rel=1e-7)


UNITS = (math.sqrt(5 / 3) / 0.5, 1.0)  # of the box, for which C_k must be as large as this
OPTIONS = {
    "a kernel below 1": SMOOTH.but(outputscale=0.5),
    "a column it does not look at": Case("matern32", (math.inf, 0.5), PLANE),
    "constants in units of the box": Case(
        *("matern52", (0.9, 0.5), PLANE),
        strategy={"holder": UNITS},
        oracle={"holder": (*UNITS, (1.0, 1.0))},
    ),
    "constants with lengthscales": IN_PLANE.but(
        strategy={"holder": HolderConstants(1.1, 0.8, (1.0, 0.4), 1.0)},
        oracle={"holder": (1.1, 0.8, (1.0, 0.4))},
    ),
    "a constant width": SMOOTH.but(strategy={"width": 0.7}, oracle={"width": 0.7}),
    "a small bound": SMOOTH.but(rkhs_bound=0.4, noise_variance=0.01),
    "another delta": SMOOTH.but(delta=1e-6),
    "noise unlike the ridge": Case("rbf", (0.9,), LINE, noise_std=0.2),
    # One evaluation says far more than 1/sqrt(T), and f still moves by 3 within the box.
    "little noise": SMOOTH.but(noise_variance=1e-6, noise_std=1e-3),
    # 1/sqrt(T) = 0.22, V_3 = 0.40, V_4 = 0.20: the cells of level 4 are not refined.
    "a short horizon": SMOOTH.but(horizon=20, strategy={"width": 2.0}, oracle={"width": 2.0}),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_decision_with_other_options(option):
    case = OPTIONS[option]
    case = case.but(horizon=min(case.horizon, 100))
    strategy = case.make()
    waits = play(strategy, case.problem(), seed=3, lost=0.0 if case.horizon == 20 else 0.05)
    replay(strategy, case.make_oracle(), waits)
    assert len(strategy.levels) >= 4
    if case.horizon == 20:
        last = strategy.levels[-1]
        assert 2.0 * float(last.std.max()) < last.slack < 20**-0.5 < strategy.levels[-2].slack


def test_the_report_is_that_of_the_levels():
    strategy = SHORT.make()
    play_promptly(strategy, SHORT.problem(), 60)
    report = strategy.report()["levels"]
    assert sum(level["num_evaluations"] for level in report) == 60
    assert [level["refined"] for level in report] == [True] * (len(report) - 1) + [False]
    for depth, (own, level) in enumerate(zip(report, strategy.levels, strict=True)):
        assert own["level"] == depth
        assert (own["slack"], own["half_diagonal"]) == (level.slack, level.half_diagonal)
        assert own["volume"] == own["num_cells"] / 2**depth
    for above, below, level in zip(report, report[1:], strategy.levels, strict=False):
        assert below["num_cells"] == 2 * above["num_kept"] == 2 * int(level.kept.sum())
        assert above["step"] == strategy.levels[below["level"]].first + 1
        assert (above["current_width"], above["threshold"]) == (level.width, level.threshold)


def test_an_offset_widens_both_bounds():
    strategy = SHORT.make(width=Stepwise())
    play_promptly(strategy, SHORT.problem(), 60)
    assert len(strategy.levels) > 4
    for level, after in pairwise(strategy.levels):
        w, offset = 0.4 + 0.02 * (after.first + 1), 0.3 / (after.first + 1)
        lower, upper = level.mean - w * level.std - offset, level.mean + w * level.std + offset
        assert level.width == pytest.approx(w)
        assert level.threshold == pytest.approx(lower.max().item(), abs=1e-12)
        assert torch.equal(level.kept, upper + level.slack >= lower.max())
        assert w * level.std.max().item() + offset < level.slack


def test_a_prior_mean_moves_everything_with_it():
    plainly, shifted = SHORT.make(), SHORT.make(mean=7.0)
    for strategy, shift in ((plainly, 0.0), (shifted, 7.0)):
        for _ in range(60):
            trial = strategy.ask()
            strategy.tell(trial.id, shift + math.sin(3 * float(trial.x)))
    assert torch.equal(points(plainly), points(shifted))
    for one, two in zip(plainly.levels[:-1], shifted.levels[:-1], strict=True):
        assert one.threshold + 7 == pytest.approx(two.threshold, abs=1e-9)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.CellLimitWarning")
def test_a_level_that_would_get_too_large_is_put_off():
    most = {"max_cells": 60}
    case = IN_PLANE.but(horizon=300, strategy=most, oracle=most)
    strategy = case.make()
    with pytest.warns(CellLimitWarning) as caught:
        play_promptly(strategy, case.problem(), 300)
    trials = strategy.history.trials
    looks = [trial for trial in trials if "crowded" in trial.info.get("opening", {})]
    levels = [trial.info["level"] for trial in looks]
    assert len(caught) == len(set(levels)) < len(looks)  # at the first look at each level
    replay(strategy, case.make_oracle())
    assert strategy.levels[-1].depth > levels[0]  # refined once more of its cells were dropped
    assert max(level.num_cells for level in strategy.levels) <= 60
    # Lists stop where a level is looked at again, and ask the same.
    lists = case.make()
    while left := 300 - len(lists.history.trials):
        wait = refusal(lists, left)
        if wait is not None:
            lists.ask(wait.available)
        for id in lists.pending:
            lists.tell(id, strategy.history.values[id])
    assert [trial.info for trial in lists.history.trials] == [trial.info for trial in trials]


def test_large_kernels_and_small_bounds_are_warned_of():
    with pytest.warns(KernelBoundWarning, match="got 4"):
        large = SHORT.but(outputscale=4.0).make()
    assert large.levels[0].slack == pytest.approx(2 * SHORT.make().levels[0].slack, rel=1e-12)
    # V_0 = 2.15 B, and 1/sqrt(T) = 0.13: where f has large units, T is short.
    for bound in (0.0, 0.04):
        with pytest.warns(HorizonWarning, match="only the center"):
            idle = SHORT.make(rkhs_bound=bound)
        play_promptly(idle, SHORT.problem(), 60)
        assert idle.report()["levels"][0]["num_evaluations"] == 60
    assert SHORT.make(rkhs_bound=0.08).report()["warnings"] == []


def by_cell(strategy, values, level=4):
    for trial in strategy.ask(level):
        strategy.tell(trial.id, values[trial.info["cell"]])


@pytest.mark.parametrize("delta", [1e-9, -1e-9])
def test_of_two_decisions_within_rounding_the_recorded_one_counts(delta):
    # One of the four cells of level 2 lies on the threshold.
    def played_with(value, **options):
        strategy = SHORT.make(**options)
        by_cell(strategy, [0.0, 0.0], 2)
        by_cell(strategy, [1.2, -1.0, value, 0.9])
        return strategy

    def margin(value):
        strategy = played_with(value)
        level, w = strategy.levels[2], strategy.width(7, strategy._design)
        upper, lower = level.mean + w * level.std, level.mean - w * level.std
        return float(upper[2] + level.slack - lower.max())

    low, high = margin(-1.0), margin(1.0)
    value = -1.0 - 2.0 * low / (high - low)  # where a straight line is 0
    for away, expected in ((0.1, [0, 2, 3]), (-0.1, [0, 3]), (0.0, [0, 2, 3])):
        strategy = played_with(value + away)
        strategy.ask()
        assert strategy.levels[2].kept.nonzero().flatten().tolist() == expected
    elsewhere, here = played_with(value + 20 * delta), played_with(value)
    here.replay([Asked(elsewhere.ask())])
    assert torch.equal(here.levels[2].kept, elsewhere.levels[2].kept)
    assert torch.equal(here.ask().x, elsewhere.ask().x)


@pytest.mark.parametrize(("first", "right"), [(50.0, 0.2), (0.2, 50.0), (-50.0, 1.1)])
def test_cells_are_dropped_by_right_values_alone(first, right):
    strategy, told_right = SHORT.make(), SHORT.make()
    for own, value in ((strategy, first), (told_right, right)):
        by_cell(own, [0.0, 0.0], 2)
        by_cell(own, [value, -1.0, 0.8, 0.9])
        for number in range(12):
            own.tell(own.ask().id, 0.1 * math.sin(7.0 * number))
    asked, dropped_then = points(strategy), strategy.levels[2].kept
    wrong = next(t.id for t in strategy.history.trials[2:6] if t.info["cell"] == 0)
    strategy.correct(wrong, right)
    assert torch.equal(points(strategy), asked)
    assert not torch.equal(dropped_then, strategy.levels[2].kept)
    assert torch.equal(strategy.levels[2].kept, told_right.levels[2].kept)
    assert strategy.levels[2].threshold == told_right.levels[2].threshold
    trials, values = strategy.history.trials, strategy.history.values
    for before, level in pairwise(strategy.levels):
        own = [trial for trial in trials if trial.info["level"] == level.depth]
        active = set(before.children_of(before.kept).tolist())
        assert level.codes.tolist() == sorted(active | {trial.info["cell"] for trial in own})
        if level.refinement is not None:
            X = torch.stack([trial.x for trial in own])
            y = X.new_tensor([values[trial.id] for trial in own])
            mean, covariance = dense_posterior(SHORT.kernel(), X, y, level.centers, 0.01)
            half = level.width * covariance.diagonal().sqrt()
            assert torch.equal(level.kept, mean + half + level.slack >= (mean - half).max())
    again = SHORT.make()
    again.replay(strategy.events)
    assert again.ask().info == strategy.ask().info


def test_more_cells_than_there_may_be_come_back_as_the_most_hopeful():
    strategy = SHORT.make(max_cells=4)
    by_cell(strategy, [0.0, 0.0], 2)
    by_cell(strategy, [50.0, 0.7, 0.8, 0.9])
    trial = strategy.ask()
    wrong = next(t.id for t in strategy.history.trials[2:6] if t.info["cell"] == 0)
    with pytest.warns(CellLimitWarning, match="more than 4 cells"):
        strategy.correct(wrong, 0.1)
    assert strategy.levels[2].kept.tolist() == [False, False, True, True]
    assert strategy.levels[3].codes.tolist() == sorted({4, 5, 6, 7, trial.info["cell"]})
