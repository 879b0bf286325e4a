"""Results, studies and trials as they are printed: a few lines that people read."""

import re

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import TrialFailedWarning
from botorch_ext.problems import RKHSFunction
from tests.objectives import f
from tests.strategies.sessions import finite, kernel, make


def cost(x):
    return -f(x)


def fails_at_first(x):
    if torch.equal(x, first_x()):
        raise RuntimeError("no signal")
    return cost(x)


def first_x():
    return make(finite()).ask().x


def without_seconds(shown):
    return re.sub(r"(?<=seconds: )[\d.e+-]+", "0", str(shown)).splitlines()


def lines_of_best(value, x, told="best value"):
    return f"  {told}: {value:.6g} at [{x[0]:.6g}, {x[1]:.6g}]"


def test_a_run():
    strategy = make(finite())
    with pytest.warns(TrialFailedWarning):
        result = bx.run(strategy, fails_at_first, 5, minimize=True, progress=False, target=9.0)
    strategy.ask(2)
    assert without_seconds(result) == [
        "RunResult",
        "  trials: 1 told, 1 failed, 2 pending",
        "  seconds: 0",
        lines_of_best(result.Y[0], result.X[0]),
        "  stopped by: target",
    ]


def test_a_result_without_a_value():
    def fails(x):
        raise RuntimeError("no signal")

    with pytest.warns(TrialFailedWarning):
        result = bx.optimize(fails, finite(), 1, progress=False)
    assert without_seconds(result) == [
        "OptimizeResult",
        "  trials: 0 told, 1 failed",
        "  seconds: 0",
    ]


def test_an_optimisation():
    result = bx.optimize(cost, make(finite()), 4, minimize=True, progress=False)
    x, mean = result.strategy.best()
    assert without_seconds(result) == [
        "OptimizeResult",
        "  trials: 4 told",
        "  seconds: 0",
        lines_of_best(min(result.Y), result.X[result.Y.argmin()]),
        f"  recommended: [{x[0]:.6g}, {x[1]:.6g}], expected value {-mean:.6g}",
    ]


def test_a_strategy_is_printed_in_the_sign_of_the_objective():
    strategy = make(finite())
    assert str(strategy).splitlines() == [type(strategy).__name__, "  trials: 0 told"]
    result = bx.run(strategy, cost, 3, minimize=True, progress=False)
    strategy.ask()
    assert str(strategy).splitlines() == [
        type(strategy).__name__,
        "  trials: 3 told, 1 pending",
        lines_of_best(result.best_value, result.best_x, "best value told"),
    ]


def test_a_study_as_this_process_knows_it(tmp_path):
    study = bx.Study(tmp_path / "lab.db", make(finite()), minimize=True)
    head = f"Study 'study' in '{tmp_path / 'lab.db'}'"
    assert str(study).splitlines() == [head, "  trials: 0 told"]
    trials = study.ask(4)
    study.tell(trials[0], 3.0)
    study.tell(trials[1], 2.0)
    study.abandon(trials[2], failed=True)
    shown = str(study).splitlines()
    assert shown == [
        head,
        "  trials: 2 told, 1 failed, 1 pending",
        lines_of_best(2.0, trials[1].x, "best value told"),
    ]
    # It reads no file: a debugger may print it anywhere, and a file may be gone.
    bx.Study(tmp_path / "lab.db", make(finite())).tell(trials[3], 1.0)
    assert str(study).splitlines() == shown


def test_a_trace():
    problem = RKHSFunction(kernel(), finite().points[:3], [1.0, -1.0, 0.5], finite())
    trace = bx.simulate(make(finite()), problem, 4)
    top = int(trace.values.argmax())
    shown = re.sub(r"(?<=strategy: )[\d.e+-]+", "0", str(trace)).splitlines()
    assert shown == [
        f"Trace of {type(trace.strategy).__name__}",
        "  evaluations: 4",
        "  seconds of the strategy: 0",
        lines_of_best(trace.values[top], trace.X[top], "best value, without noise"),
        f"  simple regret: {min(trace.regret):.3g}",
        f"  cumulative regret: {sum(trace.regret):.6g}",
    ]


def test_a_trace_in_a_space_has_names():
    space = bx.Space(a=bx.Real(0, 1), b=bx.Choice(["x", "y"]))
    X, ones = torch.tensor([[0.5, 1.0]], dtype=torch.float64), torch.ones(1)
    strategy = bx.strategies.RandomSearch(space)
    trace = bx.studies.simulate.Trace(strategy, X, ones, ones, ones, ones, ones, 0.0)
    assert "at {'a': 0.5, 'b': 'y'}" in str(trace)


@pytest.mark.parametrize(
    ("trial", "shown"),
    [
        (bx.Trial(3, torch.tensor([1 / 3, 2e-7])), "Trial 3 at [0.333333, 2e-07]"),
        (
            bx.Trial(0, torch.tensor([5.0]), torch.tensor([0.25])),
            "Trial 0 at [5] in context [0.25]",
        ),
        (
            bx.Trial(0, torch.arange(12.0)),
            "Trial 0 at [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... of 12]",
        ),
        (bx.Trial(4, [3.0, -2.0]), "Trial 4 at [3.0, -2.0]"),  # about to be refused
        (bx.Trial(4, None), "Trial 4 at None"),
    ],
)
def test_a_trial(trial, shown):
    assert repr(trial) == shown
