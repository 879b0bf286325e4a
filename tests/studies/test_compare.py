"""`compare` runs methods on problems as `simulate` does, whichever way it takes."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.plotting import plot_comparison, plot_regret
from botorch_ext.problems import Function
from botorch_ext.studies import compare

POINTS = bx.FiniteSet(torch.linspace(-1.0, 1.0, 30, dtype=torch.float64)[:, None])
BOX = bx.Box([[-1.0], [1.0]])
T = 8


def hill(X: torch.Tensor) -> torch.Tensor:
    return -((X[:, 0] - 0.3) ** 2)


def gp_ucb(problem) -> bx.Strategy:
    return bx.algorithms.gp_ucb(problem.domain, RBFKernel(), noise_variance=0.01, width=2.0)


def random(problem) -> bx.Strategy:
    return bx.strategies.RandomSearch(problem.domain)


METHODS = {"GP-UCB": gp_ucb, "random": random}
PROBLEMS = {name: Function(domain, hill, 0.1) for name, domain in (("set", POINTS), ("box", BOX))}


@pytest.fixture(scope="module")
def comparison() -> compare.Comparison:
    return bx.compare(METHODS, PROBLEMS, T, seeds=range(2, 5), delay=2)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_runs_are_those_of_simulate(comparison, problem, method):
    traces = comparison.traces[problem][method]
    assert len(traces) == 3
    for run, seed in enumerate(range(2, 5)):
        own = PROBLEMS[problem]
        strategy = METHODS[method](own)
        given = {name: strategy.arguments.given[name] for name in strategy.arguments.passed}
        strategy = type(strategy)(**(given | {"seed": seed}))
        trace = bx.simulate(strategy, own, T, delay=2, seed=seed)
        for name in ("X", "values", "observations", "delays", "told_at", "regret"):
            assert torch.equal(getattr(traces, name)[run], getattr(trace, name))


def test_tables_and_pictures(comparison):
    frame = comparison.to_pandas()
    assert len(frame) == 2 * 2 * 3 * T
    own = frame[(frame.problem == "box") & (frame.method == "random") & (frame.seed == 4)]
    traces = comparison.traces["box"]["random"]
    assert own.cumulative_regret.tolist() == traces.cumulative_regret[2].tolist()
    summary = comparison.summary("simple_regret")
    mean, error = traces.mean_and_error("simple_regret")[-1].tolist()
    (row,) = summary[(summary.problem == "box") & (summary.method == "random")].to_dict("records")
    assert (row["mean"], row["error"], row["runs"]) == (mean, error, 3)
    assert len(plot_regret(traces).get_lines()) == 1
    axes = plot_comparison(comparison)
    assert [ax.get_title() for ax in axes] == ["set", "box"]
    lines = axes[1].get_lines()
    assert lines[1].get_ydata()[-1] == pytest.approx(float(traces.cumulative_regret[:, -1].mean()))


@pytest.mark.slow
def test_processes_give_the_same(comparison):
    again = bx.compare(METHODS, PROBLEMS, T, seeds=range(2, 5), delay=2, processes=2)
    for method, traces in comparison.traces["box"].items():
        assert torch.equal(traces.X, again.traces["box"][method].X)


def test_what_cannot_be_pickled_is_refused():
    problem = Function(BOX, lambda X: X[:, 0])
    with pytest.raises(bx.exceptions.ObjectiveError, match="picklable"):
        bx.compare(METHODS, problem, 2, seeds=range(2), processes=2)


def test_a_pickled_trace_is_small_and_has_a_table():
    problem = PROBLEMS["set"]
    trace = bx.simulate(gp_ucb(problem), problem, 20, delay=1)
    assert copy.copy(trace).strategy is trace.strategy
    assert copy.deepcopy(trace).strategy.report() == trace.strategy.report()
    read = pickle.loads(pickle.dumps(trace))
    assert read.strategy is None
    assert len(pickle.dumps(trace)) < 10_000 < len(pickle.dumps(trace.strategy))
    frame = read.to_pandas()
    assert frame.evaluation.tolist() == list(range(1, 21))
    assert frame.x0.tolist() == trace.X[:, 0].tolist()
    assert frame.regret.tolist() == trace.regret.tolist()
    assert repr(read).splitlines()[1:] == repr(trace).splitlines()[1:]


def test_a_function_has_its_maximum():
    on_set, in_box = PROBLEMS["set"], PROBLEMS["box"]
    best = min(POINTS.points[:, 0].tolist(), key=lambda x: abs(x - 0.3))
    assert on_set.optimizer.tolist() == [best]
    assert in_box.optimal_value == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match="f must return a finite value"):
        Function(POINTS, lambda X: X)(POINTS.points)
