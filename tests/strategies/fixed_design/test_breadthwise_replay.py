"""Breadthwise exploration against algorithm 1 of Shekhar and Javidi 2022, as corrected.

Every history is replayed through `breadthwise_oracle`, which shares no code with the library: what
was evaluated, when a level was refined, what it waited for, and what was kept.
"""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from botorch_ext import Box, algorithms, delays, simulate
from botorch_ext.domains.cells import MAX_LEVEL
from botorch_ext.exceptions import CellLimitWarning, WaitingForObservations
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.models.replicates import RepeatedDesign
from tests.helpers import tolerance
from tests.strategies.fixed_design.breadthwise_sessions import (
    LINE,
    PLANE,
    Case,
    observe,
    play,
    play_promptly,
    points,
    replay,
)

CASES = {
    "matern12, d=1": Case("matern12", (0.9,), LINE),
    "matern32, d=1": Case("matern32", (0.9,), LINE),
    "matern52, d=1": Case("matern52", (0.9,), LINE),
    "rbf, d=1": Case("rbf", (0.9,), LINE),
    "matern12, d=2": Case("matern12", (2.9, 0.5), PLANE),
    "matern32, d=2": Case("matern32", (2.9, 0.5), PLANE),
    "matern52, d=2": Case("matern52", (0.9, 0.5), PLANE),
    "rbf, d=2": Case("rbf", (0.9, 0.5), PLANE),
}


def levels_that_dropped(strategy):
    return sum(not bool(level.kept.all()) for level in strategy.levels[:-1])


def volume(strategy):
    """The share of the box that is still explored."""
    last = strategy.levels[-1]
    return last.num_cells / 2**last.depth


@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_pseudo_code(case):
    case = CASES[case]
    strategy = case.make()
    play_promptly(strategy, case.problem(), case.horizon)
    oracle = replay(strategy, case.make_oracle())
    assert oracle.num_asked == 300
    # Otherwise nothing was shown.
    assert levels_that_dropped(strategy) >= 3
    assert volume(strategy) < 0.95


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["matern52, d=1", "matern12, d=1", "rbf, d=2"])
def test_histories_with_lost_and_reordered_observations(case, seed):
    case = CASES[case].but(horizon=160)
    strategy = case.make()
    waits = play(strategy, case.problem(seed), seed=10 + seed)
    oracle = replay(strategy, case.make_oracle(), waits)
    assert len(strategy.levels) >= 6
    assert any(wait.available for wait in waits)
    assert sum(len(level.evaluated) for level in oracle.levels) < oracle.num_asked  # some were lost


OPTIONS = {
    "a kernel below 1": Case("matern52", (0.9,), LINE, outputscale=0.5),
    "a column it does not look at": Case("matern32", (math.inf, 0.5), PLANE),
    # Distances in the units of the box, for which C_k must be as large as this.
    "constants in units of the box": Case(
        "matern52",
        (0.9, 0.5),
        PLANE,
        strategy={"holder": (math.sqrt(5 / 3) / 0.5, 1.0)},
        oracle={"holder": (math.sqrt(5 / 3) / 0.5, 1.0, (1.0, 1.0))},
    ),
    "constants with lengthscales": Case(
        "rbf",
        (0.9, 0.5),
        PLANE,
        strategy={"holder": HolderConstants(1.1, 0.8, (1.0, 0.4), 1.0)},
        oracle={"holder": (1.1, 0.8, (1.0, 0.4))},
    ),
    "a constant width": Case(
        "matern52", (0.9,), LINE, strategy={"width": 0.7}, oracle={"width": 0.7}
    ),
    "a small bound": Case("matern52", (0.9,), LINE, rkhs_bound=0.4, noise_variance=0.01),
    "another delta": Case("matern52", (0.9,), LINE, delta=1e-6),
    "noise unlike the ridge": Case("rbf", (0.9,), LINE, noise_std=0.2),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_every_decision_with_other_options(case):
    case = OPTIONS[case].but(horizon=120)
    strategy = case.make()
    waits = play(strategy, case.problem(), seed=3, lost=0.05)
    replay(strategy, case.make_oracle(), waits)
    assert len(strategy.levels) >= 4


def test_cells_in_which_f_hardly_moves_are_not_refined():
    # 1/sqrt(T) = 0.22, V_3 = 0.40, V_4 = 0.20.
    case = CASES["matern52, d=1"].but(horizon=20, oracle={"width": 2.0})
    strategy = case.make(width=2.0)
    play_promptly(strategy, case.problem(), 20)
    replay(strategy, case.make_oracle())
    last = strategy.levels[-1]
    assert 2.0 * float(last.std.max()) < last.slack < 20**-0.5 < strategy.levels[-2].slack
    longer = case.but(horizon=300).make(width=2.0)
    play_promptly(longer, case.problem(), 20)
    assert len(longer.levels) > len(strategy.levels)


def test_little_noise_does_not_end_the_exploration():
    # One evaluation says far more than 1/sqrt(T), and f still moves by 3 within the box.
    case = CASES["matern52, d=1"].but(noise_variance=1e-6, noise_std=1e-3, horizon=50)
    strategy = case.make()
    play_promptly(strategy, case.problem(), 50)
    replay(strategy, case.make_oracle())
    assert strategy.levels[-1].slack < 50**-0.5


def test_a_level_that_would_get_too_large_is_put_off():
    case = CASES["rbf, d=2"].but(horizon=300, strategy={"max_cells": 60}, oracle={"max_cells": 60})
    strategy = case.make()
    with pytest.warns(CellLimitWarning) as caught:
        play_promptly(strategy, case.problem(), 300)
    looks = [
        trial for trial in strategy.history.trials if "crowded" in trial.info.get("opening", {})
    ]
    assert [str(warning.message) for warning in caught] == strategy.report()["warnings"]
    levels = [trial.info["level"] for trial in looks]
    assert len(caught) == len(set(levels)) < len(looks)  # at the first look at each level
    replay(strategy, case.make_oracle())
    # A level was put off, and refined once more of its cells were dropped.
    assert strategy.levels[-1].depth > levels[0]
    assert max(level.num_cells for level in strategy.levels) <= 60
    first = strategy.levels[levels[0]]
    assert looks[0].info["opening"]["crowded"] > 60 >= 2 * int(first.kept.sum())


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.CellLimitWarning")
def test_lists_stop_where_a_crowded_level_is_looked_at_again():
    case = CASES["rbf, d=2"].but(horizon=300, strategy={"max_cells": 60})
    singly, lists, looks = case.make(), case.make(), 0
    play_promptly(singly, case.problem(), 300)
    while left := 300 - len(lists.history.trials):
        try:
            trials = lists.ask(left)
        except WaitingForObservations as error:
            trials = lists.ask(error.available)
        for trial in trials:
            lists.tell(trial.id, singly.history.values[trial.id])
            looks += "crowded" in trial.info.get("opening", {})
    assert looks >= 2
    for trial, expected in zip(lists.history.trials, singly.history.trials, strict=True):
        assert trial.info == expected.info


def test_no_limit_is_named_where_cells_are_fine_enough():
    # V_4 = 0.20 < 1/sqrt(T), and nothing is eliminated before.
    strategy = CASES["matern52, d=1"].but(horizon=20, strategy={"max_cells": 16}).make(width=2.0)
    for _ in range(20):
        strategy.tell(strategy.ask().id, 0.0)
    assert [level.num_cells for level in strategy.levels] == [1, 2, 4, 8, 16]
    assert strategy.report()["warnings"] == []


@pytest.mark.parametrize("case", ["matern52, d=1", "rbf, d=2"])
def test_what_is_decided_does_not_depend_on_when_it_was_told(case):
    case = CASES[case].but(horizon=150)
    problem = case.problem(1)
    prompt, batched = case.make(), case.make()
    play_promptly(prompt, problem, 150)
    play(batched, problem, seed=5, lost=0.0)
    observe(batched, problem, batched.pending)
    assert torch.equal(points(prompt), points(batched))
    for one, two in zip(prompt.levels, batched.levels, strict=True):
        assert torch.equal(one.codes, two.codes)
        assert torch.equal(one.counts, two.counts)
        # Told in another order: sums are rounded differently.
        assert_close(one.mean, two.mean, **tolerance(torch.float64))
        assert (one.width, one.slack, one.first) == (two.width, two.slack, two.first)


def test_what_is_decided_does_not_depend_on_the_delays():
    case = CASES["matern52, d=1"].but(horizon=100)
    problem = case.problem(1)
    late, on_time = case.make(), case.make()
    simulate(late, problem, 100, delay=delays.LogNormal(2.0, 1.5), seed=2)
    simulate(on_time, problem, 100, seed=2)
    assert torch.equal(points(late), points(on_time))


def test_a_waiting_strategy_waits_for_what_the_level_needs():
    case = CASES["matern52, d=1"]
    strategy, problem = case.make(), case.problem()
    # Of the levels of the prior everything is known at once; level 1 has two cells.
    trials = strategy.ask(2)
    assert [trial.info["level"] for trial in trials] == [1, 1]

    for told in range(2):
        state = strategy.report(), len(strategy.events)
        for number in (None, 1, 3):
            with pytest.raises(
                WaitingForObservations, match="at most 0 before the level is"
            ) as raised:
                strategy.ask(number)
            assert (raised.value.ids, raised.value.available) == (list(range(told, 2)), 0)
        assert (strategy.report(), len(strategy.events)) == state
        observe(strategy, problem, [told])
    with pytest.raises(WaitingForObservations) as raised:
        strategy.ask(5)
    assert (raised.value.ids, raised.value.available) == ([], 4)
    assert str(raised.value) == (
        "num_trials must be at most 4, what is left before the level is refined, got 5: ask for 4, "
        "and for others once all its trials are told or abandoned"
    )
    assert len(strategy.levels) == 2  # nothing was refined by asking
    assert [trial.info["level"] for trial in strategy.ask(4)] == [2] * 4
    # Given up, the cell is open again.
    strategy.abandon(4)
    assert strategy.ask().x.tolist() == strategy.history.trials[4].x.tolist()


def test_the_oracle_by_hand():
    # k = 1 at the only center: s = 1, then sqrt(0.001 / 1.001) = 0.0316; w = 1.
    case = CASES["rbf, d=1"].but(rkhs_bound=0.4, horizon=2, oracle={"width": 1.0})
    oracle = case.make_oracle()
    assert oracle.level.slack == pytest.approx(0.4 * 1.5 / 0.9)
    assert oracle.refines(oracle.std()) is False  # V_0 = 0.67 < 1
    oracle.tell(oracle.ask(oracle.next()), 0.3)
    assert oracle.refines(oracle.std()) is False  # V_0 < 1/sqrt(2)
    assert oracle.std().tolist() == pytest.approx([math.sqrt(0.001 / 1.001)])
    assert oracle.mean().tolist() == pytest.approx([0.3 / 1.001])
    longer = case.but(horizon=300).make_oracle()
    longer.tell(longer.ask(longer.next()), 0.3)
    assert longer.refines(longer.std()) is True
    assert longer.next() == 0
    assert [cell.intervals for cell in longer.level.cells] == [((2.0, 3.5),), ((3.5, 5.0),)]
    assert longer.width() == 1.0
    free = CASES["rbf, d=1"].make_oracle()
    # N = 1, t = 1.
    assert free.width() == pytest.approx(
        1.5 + 0.02 / math.sqrt(1e-3) * math.sqrt(2 * math.log(math.pi**2 / 0.3))
    )


def test_the_depth_of_the_tree_is_named_where_it_is_the_limit():
    box = Box([[0.0] * 40, [1.0] * 40], dtype=torch.float64)
    numbers = {"noise_variance": 1e-3, "noise_std": 0.02, "rkhs_bound": 1.0, "horizon": 9999}
    strategy = algorithms.breadthwise_exploration(box, RBFKernel().double(), **numbers)
    level = strategy._rule._level(MAX_LEVEL, torch.tensor([5]), 0)
    design = RepeatedDesign(strategy.model, level.centers)
    for _ in range(20):
        design.add(0)
    descent = strategy._rule.descend(level, design, 21)
    assert (descent.levels, descent.crowded) == ([], 2)
    assert "there are 62 levels at most" in strategy._rule.why_crowded(descent)
