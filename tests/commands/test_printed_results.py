"""Results, studies and trials as they are printed: a few lines that people read."""

import re

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import TrialFailedWarning
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import RandomSearch
from tests.helpers import rbf

ROWS = bx.FiniteSet([[2.0, -3.0], [2.5, -2.0], [4.0, -1.5]])


def cost(x):
    return float(x[0] + x[1])


def lines_of(shown):
    return re.sub(r"(?<=seconds: )[\d.e+-]+", "0", str(shown)).splitlines()


def best(value, x, words="best value"):
    return f"  {words}: {value:.6g} at [{x[0]:.6g}, {x[1]:.6g}]"


def test_a_run_and_its_strategy():
    def fails_at_first(x):
        calls.append(x)
        if len(calls) == 1:
            raise RuntimeError("no signal")
        return cost(x)

    calls, strategy = [], RandomSearch(ROWS)
    assert str(strategy).splitlines() == ["RandomSearch", "  trials: 0 told"]
    with pytest.warns(TrialFailedWarning):
        result = bx.run(strategy, fails_at_first, 3, minimize=True, progress=False, target=9.0)
    strategy.ask(2)
    assert lines_of(result) == [
        "RunResult",
        "  trials: 1 told, 1 failed, 2 pending",
        "  seconds: 0",
        best(cost(calls[1]), calls[1]),
        "  stopped by: target",
    ]
    lines = ["RandomSearch", "  trials: 1 told, 1 failed, 2 pending"]
    assert str(strategy).splitlines() == [*lines, best(cost(calls[1]), calls[1], "best value told")]


def test_an_optimisation():
    model = {"noise_variance": 0.04, "width": 2.0}
    strategy = bx.algorithms.gp_ucb(ROWS, rbf(2.0), **model)
    strategy.expect(bx.exceptions.PriorScaleWarning)
    result = bx.optimize(cost, strategy, 3, minimize=True, progress=False)
    x, mean = result.strategy.best()
    assert lines_of(result) == [
        "OptimizeResult",
        "  trials: 3 told",
        "  seconds: 0",
        best(min(result.Y), result.X[result.Y.argmin()]),
        f"  recommended: [{x[0]:.6g}, {x[1]:.6g}], expected value {-mean:.6g}",
    ]


def test_a_study_as_this_process_knows_it(tmp_path):
    place = tmp_path / "lab.db"
    study = bx.Study(place, RandomSearch(ROWS), minimize=True)
    trials = study.ask(4)
    study.tell(trials[0], 3.0)
    study.tell(trials[1], 2.0)
    study.abandon(trials[2], failed=True)
    shown = str(study).splitlines()
    assert shown == [
        f"Study 'study' in '{place}'",
        "  trials: 2 told, 1 failed, 1 pending",
        best(2.0, trials[1].x, "best value told"),
    ]
    # It reads no file: a debugger may print it anywhere, and a file may be gone.
    bx.Study(place, RandomSearch(ROWS)).tell(trials[3], 1.0)
    assert str(study).splitlines() == shown


def test_a_trace():
    problem = RKHSFunction(rbf(1.0), ROWS.points, [1.0, -1.0, 0.5], ROWS)
    trace = bx.simulate(RandomSearch(ROWS), problem, 4)
    top = int(trace.values.argmax())
    shown = re.sub(r"(?<=strategy: )[\d.e+-]+", "0", str(trace)).splitlines()
    assert shown == [
        "Trace of RandomSearch",
        "  evaluations: 4",
        "  seconds of the strategy: 0",
        best(trace.values[top], trace.X[top], "best value, without noise"),
        f"  simple regret: {min(trace.regret):.3g}",
        f"  cumulative regret: {sum(trace.regret):.6g}",
    ]


@pytest.mark.parametrize(
    ("trial", "shown"),
    [
        (bx.Trial(3, torch.tensor([1 / 3, 2e-7])), "Trial 3 at [0.333333, 2e-07]"),
        (
            bx.Trial(0, torch.tensor([5.0]), torch.tensor([0.25])),
            "Trial 0 at [5] in context [0.25]",
        ),
        (bx.Trial(0, torch.arange(12.0)), "Trial 0 at [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... of 12]"),
        (bx.Trial(4, [3.0, -2.0]), "Trial 4 at [3.0, -2.0]"),  # about to be refused
        (bx.Trial(4, None), "Trial 4 at None"),
    ],
)
def test_a_trial(trial, shown):
    assert repr(trial) == shown
