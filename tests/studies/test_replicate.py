"""`replicate` asks the points that `simulate` asks, index by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from gpytorch.kernels import MaternKernel

import botorch_ext as bx
from botorch_ext import delays
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.models import replicated
from botorch_ext.problems import RKHSFunction
from botorch_ext.studies.traces import Traces
from botorch_ext.widths import Dual, Ladder

A = bx.algorithms
T, NUM_RUNS, NOISE_STD = 60, 3, 0.1
POISSON = delays.Poisson(8)


def kernel() -> MaternKernel:
    own = MaternKernel(nu=2.5)
    own.lengthscale = 0.25
    return own


POINTS = torch.rand(120, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
DOMAIN = bx.FiniteSet(POINTS)
PROBLEMS = [
    RKHSFunction.random(DOMAIN, kernel(), norm=2.0, noise_std=NOISE_STD, seed=seed)
    for seed in range(NUM_RUNS)
]
TIGHT: dict[str, Any] = {"rkhs_bound": 2.0, "noise_std": NOISE_STD, "delta": 0.1}
COMMON: dict[str, Any] = {"noise_variance": 0.01, "rkhs_bound": 2.0, "noise_std": NOISE_STD}
POINTWISE: dict[str, Any] = {"misspecification": 0.05, "enlargement": "pointwise"}


def models() -> bx.CandidateModels:
    scales = [0.05, 0.12, 0.25, 0.6, 1.5]
    return bx.CandidateModels.lengthscales(kernel(), scales, noise_variance=0.01)


def gp_ucb(**options: Any) -> bx.Strategy:
    return A.gp_ucb(DOMAIN, kernel(), **COMMON, **options)


def he_gp_ucb(**options: Any) -> bx.Strategy:
    # With B a quarter of what it is, some of the models are eliminated.
    return A.he_gp_ucb(DOMAIN, models(), rkhs_bound=0.5, noise_std=NOISE_STD, **options)


def phased(algorithm: Callable[..., bx.Strategy], **options: Any) -> bx.Strategy:
    return algorithm(DOMAIN, kernel(), horizon=T, **COMMON, **options)


CASES: dict[str, tuple[Callable[[], bx.Strategy], Any]] = {
    "GP-UCB": (gp_ucb, None),
    "a number as width": (lambda: A.gp_ucb(DOMAIN, kernel(), noise_variance=0.01, width=2.0), None),
    "first points": (lambda: gp_ucb(num_initial=6), None),
    "initial data": (lambda: gp_ucb(initial=(POINTS[:4], torch.arange(4.0).double())), None),
    "much initial data": (
        lambda: gp_ucb(initial=(POINTS[:30], POINTS[:30].sin().sum(dim=-1))),
        None,
    ),
    "a prior mean": (lambda: gp_ucb(mean=0.3), None),
    "IGP-UCB": (lambda: A.igp_ucb(DOMAIN, kernel(), **COMMON), None),
    "EC-GP-UCB": (
        lambda: A.ec_gp_ucb(DOMAIN, kernel(), misspecification=0.05, **COMMON),
        None,
    ),
    "pointwise": (lambda: A.ec_gp_ucb(DOMAIN, kernel(), **POINTWISE, **COMMON), None),
    "pointwise, late": (lambda: A.ec_gp_ucb(DOMAIN, kernel(), **POINTWISE, **COMMON), POISSON),
    "ladder": (lambda: gp_ucb(width=Ladder(**TIGHT)), None),
    "ladder, late": (lambda: gp_ucb(width=Ladder(**TIGHT)), POISSON),
    "dual": (lambda: gp_ucb(width=Dual(**TIGHT)), None),
    "dual, pointwise": (
        lambda: A.ec_gp_ucb(DOMAIN, kernel(), **POINTWISE, **COMMON, width=Dual(**TIGHT)),
        None,
    ),
    "GP-BUCB": (lambda: A.gp_bucb(DOMAIN, kernel(), **COMMON), POISSON),
    "GP-BUCB, a fixed delay": (lambda: A.gp_bucb(DOMAIN, kernel(), **COMMON), 7),
    "pending ignored": (lambda: gp_ucb(pending="ignore"), POISSON),
    "GP-UCB-SDF": (lambda: A.gp_ucb_sdf(DOMAIN, kernel(), minimum=-2.0, **COMMON), POISSON),
    "GP-UCB-SDF, a timeout": (
        lambda: A.gp_ucb_sdf(DOMAIN, kernel(), minimum=-2.0, timeout=6, **COMMON),
        POISSON,
    ),
    "HE-GP-UCB": (he_gp_ucb, None),
    "HE-GP-UCB, late": (lambda: he_gp_ucb(misspecification=0.01, num_initial=3), POISSON),
    "a width for each model": (
        lambda: bx.strategies.HyperparameterElimination(
            DOMAIN, models(), [0.1, 0.2, 0.3, 0.4, 0.5], noise_std=NOISE_STD
        ),
        None,
    ),
    "likeliest": (lambda: A.mle_ucb(DOMAIN, models(), width=1.0), None),
    "likeliest, late": (lambda: A.mle_ucb(DOMAIN, models(), width=1.0), POISSON),
    "credible": (lambda: A.credible_ucb(DOMAIN, models(), width=1.0), None),
    "average": (lambda: A.expected_ucb(DOMAIN, models(), width=1.0), None),
    "shrinking lengthscales": (lambda: A.a_gp_ucb(DOMAIN, models(), width=1.0), None),
    "random": (lambda: bx.strategies.RandomSearch(DOMAIN, num_initial=3), POISSON),
    "first points alone": (lambda: bx.strategies.RandomSearch(DOMAIN, num_initial=T + 3), None),
    "BPE": (lambda: phased(A.bpe), None),
    "BPE, ladder": (lambda: phased(A.bpe, bounds="ladder"), None),
    "BPE-Delay": (lambda: phased(A.bpe_delay, delay=12), POISSON),
    "BPE-Delay, ladder": (lambda: phased(A.bpe_delay, delay=12, bounds="ladder"), POISSON),
    "uncertainty sampling": (lambda: phased(A.phased_uncertainty_sampling), None),
}


def require_equal(make: Callable[[], bx.Strategy], delay: Any) -> None:
    seeds = range(3, 3 + NUM_RUNS)
    traces = bx.replicate({"a": make()}, PROBLEMS, T, seeds=seeds, delay=delay, checked=0)["a"]
    for run in range(NUM_RUNS):
        trace = traces[run]
        trials = trace.strategy.history.trials
        assert traces.indices[run].tolist() == [trial.info["index"] for trial in trials]
        assert torch.equal(traces.regret[run], trace.regret)
        assert torch.equal(traces.observations[run], trace.observations)
        assert torch.equal(traces.delays[run], trace.delays)
        require_equal_models(traces, run, trace.strategy)


def require_equal_models(traces: Traces, run: int, strategy: Any) -> None:
    played = [trial.info.get("model", -1) for trial in strategy.history.trials]
    names = getattr(strategy, "names", ["one"])
    if len(names) == 1:
        assert traces.models is None
    else:
        assert traces.models[run].tolist() == played
    if not isinstance(strategy, bx.strategies.HyperparameterElimination):
        assert traces.eliminated is traces.all_rejected_at is None
        return
    gone = [strategy.rejected.get(model, -1) for model in range(len(names))]
    assert traces.eliminated[run].tolist() == gone
    never = -1 if strategy.all_rejected_at is None else strategy.all_rejected_at
    assert int(traces.all_rejected_at[run]) == never


@pytest.mark.parametrize("name", CASES)
def test_runs_ask_the_points_of_simulate(name: str) -> None:
    require_equal(*CASES[name])


@pytest.mark.parametrize(
    "name", ["much initial data", "ladder, late", "HE-GP-UCB, late", "BPE-Delay", "GP-UCB-SDF"]
)
def test_folded_rows_ask_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated, "_ROOTS", 0.5)
    require_equal(*CASES[name])


def test_chunks_and_one_problem_ask_the_same() -> None:
    options: dict[str, Any] = {"seeds": range(5), "checked": 5, "delay": POISSON}
    problem, methods = PROBLEMS[0], {"a": gp_ucb(), "b": phased(A.bpe_delay, delay=12)}
    whole = bx.replicate(methods, problem, T, **options)
    parts = bx.replicate(methods, problem, T, most_bytes=1, **options)
    for name in methods:
        assert torch.equal(whole[name].indices, parts[name].indices)


def test_initial_data_of_each_run() -> None:
    rows = torch.tensor([[0, 1], [5, 7], [9, 9]])
    values = torch.tensor([[0.1, 0.2], [-0.3, 0.4], [0.5, 0.6]])
    method = {"a": gp_ucb()}
    traces = bx.replicate(method, PROBLEMS, T, seeds=range(3), initial=(rows, values))["a"]
    for run in range(NUM_RUNS):
        start = POINTS[rows[run]], values[run].double()
        strategy = gp_ucb(initial=start)
        trials = bx.simulate(strategy, PROBLEMS[run], T, seed=run).strategy.history.trials
        assert traces.indices[run].tolist() == [trial.info["index"] for trial in trials]


@pytest.mark.parametrize(("delay", "initial"), [(None, 0), (POISSON, 4)])
def test_runs_in_which_every_model_is_rejected(delay: Any, initial: int) -> None:
    start = POINTS[:initial], POINTS[:initial, 0]
    method = bx.strategies.HyperparameterElimination(
        DOMAIN, models(), 1e-3, noise_std=1e-3, initial=start
    )
    options: dict[str, Any] = {"seeds": range(NUM_RUNS), "delay": delay, "checked": 0}
    with pytest.warns(AllModelsRejectedWarning, match=r"in 3 of 3 runs of a Hyper"):
        traces = bx.replicate({"a": method}, PROBLEMS, T, **options)["a"]
    for run in range(NUM_RUNS):
        with pytest.warns(AllModelsRejectedWarning):
            trace = traces[run]
        assert trace.strategy.all_rejected_at is not None
        require_equal_models(traces, run, trace.strategy)
    frame = traces.to_pandas()
    assert frame.model.tolist() == traces.models.flatten().tolist()


def test_means_and_errors() -> None:
    traces = bx.replicate({"a": gp_ucb()}, PROBLEMS[0], 10, seeds=range(4))["a"]
    mean, error = traces.mean_and_error("simple_regret").T
    for step in range(10):
        least = [float(traces[run].regret[: step + 1].min()) for run in range(4)]
        own = sum(least) / 4
        deviation = (sum((x - own) ** 2 for x in least) / 3) ** 0.5
        assert float(mean[step]) == pytest.approx(own)
        assert float(error[step]) == pytest.approx(deviation / 2)


def test_problems_on_other_points_are_refused() -> None:
    for points in (POINTS.float(), POINTS[1:]):
        problem = bx.problems.Function(bx.FiniteSet(points), lambda X: X[:, 0])
        with pytest.raises(ValueError, match="problems must be on the domain of the methods"):
            bx.replicate({"a": gp_ucb()}, problem, 4, seeds=range(2))


def test_a_run_that_differs_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    method = {"a": gp_ucb()}
    monkeypatch.setattr(replicated.ReplicatedPosterior, "std", property(lambda self: self.mean))
    with pytest.raises(RuntimeError, match="simulate asks"):
        bx.replicate(method, PROBLEMS[0], T, seeds=range(2))
    with pytest.warns(RuntimeWarning, match=r"methods\['a'\] is simulated run by run"):
        traces = bx.compare(method, PROBLEMS[0], 4, seeds=range(2)).traces["problem"]["a"]
    for run in range(2):
        assert torch.equal(traces.X[run], bx.simulate(gp_ucb(), PROBLEMS[0], 4, seed=run).X)


REFUSED: dict[str, tuple[Callable[[], bx.Strategy], str]] = {
    "a box": (lambda: A.gp_ucb(bx.Box([[0.0], [1.0]]), kernel(), **COMMON), "FiniteSet"),
    "Thompson sampling": (
        lambda: A.thompson_sampling(DOMAIN, kernel(), noise_variance=0.01),
        "search",
    ),
    "costs": (lambda: gp_ucb(minimize=True), "maximise"),
    "contexts": (
        lambda: A.cgp_ucb(DOMAIN, kernel(), context_domain=1, **COMMON),
        "contexts",
    ),
    "learned rounds": (lambda: phased(A.bpe_delay, delay=delays.Observed()), "rounds"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_methods_are_refused_by_name(name: str) -> None:
    make, reason = REFUSED[name]
    with pytest.raises(ValueError, match=rf"methods.*{reason}"):
        bx.replicate({"a": make()}, PROBLEMS[0], T, seeds=range(2))


class OwnWidth(bx.widths.Width):
    def __call__(self, t: int, model: Any) -> float:
        return 1.0 + float(model.information_gain()) ** 0.5


class OwnSearch(bx.strategies.RandomSearch):
    pass


def told_before() -> bx.Strategy:
    model = bx.KernelGP(kernel(), noise_variance=0.01)
    model.add(POINTS[:3], torch.ones(3).double())
    return bx.strategies.OptimisticStrategy(DOMAIN, model, 2.0)


def censored() -> bx.Strategy:
    return A.mle_ucb(DOMAIN, models(), width=1.0, pending="censor", minimum=-2.0)


@pytest.mark.parametrize(
    ("make", "delay"),
    [
        (lambda: A.gp_ucb(DOMAIN, kernel(), noise_variance=0.01, width=OwnWidth()), None),
        (lambda: OwnSearch(DOMAIN), None),
        (told_before, None),
        (censored, POISSON),
    ],
)
def test_what_would_be_played_differently_is_refused_and_compared_by_simulate(
    make: Callable[[], bx.Strategy], delay: Any
) -> None:
    options: dict[str, Any] = {"seeds": range(2), "delay": delay}
    with pytest.raises(ValueError, match=r"methods\['a'\].*simulate runs it"):
        bx.replicate({"a": make()}, PROBLEMS[0], 8, **options)
    traces = bx.compare({"a": make()}, PROBLEMS[0], 8, **options).traces["problem"]["a"]
    assert traces.indices is None
    trace = bx.simulate(make(), PROBLEMS[0], 8, delay=delay)
    assert torch.equal(traces.X[0], trace.X)
