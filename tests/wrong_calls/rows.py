"""Calls of all that is public: the arguments of a valid call, and the kinds of wrong values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from botorch.test_functions import Branin

import botorch_ext as bx
from botorch_ext import acquisition, analysis
from botorch_ext.problems import RKHSFunction
from botorch_ext.rounds import Doubling
from tests.helpers import drawn, rbf
from tests.wrong_calls.scene import LAMBDA, ROWS, Scene

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A call.

    Args:
        name: The public name, from `botorch_ext` on; or what is called, in words.
        valid: The keyword arguments of a call that works, of a scene.
        wrong: The kinds of wrong values of each argument, as in `values`.
        what: What is called, of a scene; None for what has the name.
        few: Whether a few values of each kind do, as where all arguments are checked elsewhere.
    """

    name: str
    valid: Callable[[Scene], Arguments]
    wrong: Arguments
    what: Callable[[Scene], Callable[..., Any]] | None = None
    few: bool = False

    def call(self, scene: Scene) -> Callable[..., Any]:
        return found(self.name) if self.what is None else self.what(scene)


def found(name: str) -> Any:
    """What has a public name."""
    value: Any = bx
    for part in name.split("."):
        value = getattr(value, part)
    return value


def kinds_in(text: str) -> dict[str, str]:
    """From an argument to its kind, of a text such as ``"low=number log=flag"``."""
    pairs = (each.split("=") for each in text.split())
    return {argument: kind.replace("-", " ") for argument, kind in pairs}


def plain(name: str, wrong: str, **valid: Any) -> Row:
    return Row(name, lambda s: valid, kinds_in(wrong))


def of(name: str, wrong: Arguments | str, valid: Callable[[Scene], Arguments]) -> Row:
    return Row(name, valid, kinds_in(wrong) if isinstance(wrong, str) else wrong)


def method(name: str, wrong: str, what: Any, valid: Callable[[Scene], Arguments]) -> Row:
    return Row(name, valid, kinds_in(wrong), what)


# --- algorithms, of whose arguments each means the same in all ------------------------------------

OF_ALGORITHMS = {
    **dict.fromkeys(("noise_variance", "noise_std"), "positive"),
    **dict.fromkeys(
        ("rkhs_bound", "misspecification", "c", "c1", "c2", "credibility"), "least zero"
    ),
    **dict.fromkeys(
        ("norm", "pending", "setting", "buy", "free", "closing", "combination"), "word"
    ),
    **dict.fromkeys(("inflate", "certificates"), "flag"),
    "a": "positive",
    "context_domain": "contexts",
    "delay": "delay",
    "delta": "share",
    "domain": "domain",
    "horizon": "count",
    "initial": "initial",
    "kernel": "kernel",
    "lengthscale_0": "positive",
    "max_cells": "count",
    "max_information_gain": "positive",
    "mean": "mean",
    "models": "models",
    "num_initial": "count from zero",
    "particles": "model",
    "radius": "radius",
    "reward_range": "limits",
    "seed": "seed",
    "width": "widths",
}


def algorithm(name: str) -> Row:
    taken = inspect.signature(getattr(bx.algorithms, name)).parameters
    wrong = {key: kind for key, kind in OF_ALGORITHMS.items() if key in taken}
    return Row(f"algorithms.{name}", lambda s: s.arguments(name), wrong, few=True)


ALGORITHMS = [algorithm(name) for name in bx.algorithms.__all__]

# --- domains --------------------------------------------------------------------------------------

DOMAINS = [
    plain(
        "Box",
        "bounds=bounds dtype=dtype device=device integer=columns log=columns",
        bounds=[[1.0, 1.0], [5.0, 3.0]],
    ),
    plain("Real", "low=number high=number step=size digits=count-from-zero", low=1.0, high=5.0),
    plain("Integer", "low=whole high=whole step=count", low=3, high=9),
    plain("Choice", "values=choices", values=["a", "b"]),
    plain("Space", "dtype=dtype device=device x=object", x=bx.Real(0.0, 1.0)),
    plain("FiniteSet", "points=points dtype=dtype device=device", points=ROWS),
    plain("ContextSpace", "domain=some-domain", domain=bx.Box([[0.0], [1.0]])),
    method("contains", "X=places", lambda s: s.box.contains, lambda s: {"X": s.X}),
    method("to_unit", "X=places", lambda s: s.box.to_unit, lambda s: {"X": s.X}),
    method("from_unit", "U=places", lambda s: s.box.from_unit, lambda s: {"U": [[0.1, 0.5]]}),
    method(
        "sample",
        "num_points=count-from-zero seed=seed",
        lambda s: s.box.sample,
        lambda s: {"num_points": 3, "seed": 0},
    ),
    method(
        "sample of a set",
        "num_points=count-from-zero seed=seed",
        lambda s: s.grid.sample,
        lambda s: {"num_points": 3, "seed": 0},
    ),
    method("index", "X=places", lambda s: s.grid.index, lambda s: {"X": s.X}),
    of("Region", "box=domain constraints=name members=places", lambda s: {"box": s.box}),
]

# --- models and kernels ---------------------------------------------------------------------------


def data(s: Scene) -> dict[str, Any]:
    return {"X": s.X, "Y": s.Y}


MODELS = [
    plain(
        "KernelGP",
        "kernel=kernel noise_variance=positive-ones mean=mean dtype=dtype device=device",
        kernel=rbf(0.5),
        noise_variance=LAMBDA,
    ),
    of(
        "FinitePosterior",
        "kernel=kernel candidates=points mean=mean noise_variance=positive-ones capacity=count",
        lambda s: {"kernel": s.kernel, "candidates": s.X, "noise_variance": LAMBDA},
    ),
    plain(
        "CandidateModels",
        "kernels=kernel noise_variance=positive-ones names=names dtype=dtype device=device",
        kernels=[rbf(0.5), rbf(1.0)],
        noise_variance=LAMBDA,
    ),
    plain(
        "CandidateModels.lengthscales",
        "values=lengthscales noise_variance=positive-ones",
        kernel=rbf(0.5),
        values=[0.5, 1.0],
        noise_variance=LAMBDA,
    ),
    *(
        method(f"add to {name}", "X=places Y=results", lambda s, n=name: getattr(s, n).add, data)
        for name in ("gp", "finite", "models")
    ),
    *(
        method(
            f"set_targets of {name}",
            "rows=rows Y=values",
            lambda s, n=name: getattr(s, n).set_targets,
            lambda s: {"rows": [0, 1, 2], "Y": s.Y},
        )
        for name in ("gp", "finite", "models")
    ),
    method("remove", "row=row", lambda s: s.gp.remove, lambda s: {"row": 1}),
    method(
        "posterior",
        "X=places observation_noise=name",
        lambda s: s.gp.posterior,
        lambda s: {"X": s.X},
    ),
    method("mean_and_std", "X=places", lambda s: s.gp.mean_and_std, lambda s: {"X": s.X}),
    method(
        "mean_and_std of models", "X=places", lambda s: s.models.mean_and_std, lambda s: {"X": s.X}
    ),
    plain("Particles", "num_particles=count", num_particles=8),
    plain("Fitted", "every=count", every=3),
    plain(
        "kernels.ActionContextKernel",
        "action_kernel=kernel context_kernel=kernel combination=word",
        action_kernel=rbf(1.0),
        context_kernel=rbf(1.0),
        action_columns=2,
    ),
    *(
        plain(
            f"kernels.{name}",
            "base_kernel=kernel dim=dimension",
            base_kernel=rbf(1.0),
            groups=[[0], [1]],
            dim=2,
        )
        for name in ("AdditiveKernel", "GroupAdditiveKernel")
    ),
    plain("kernels.NuggetKernel", "variance=positive", variance=0.1),
    plain("kernels.TaskKernel", "covariance=square", covariance=[[1.0, 0.5], [0.5, 1.0]]),
]

# --- widths, delays, rounds -----------------------------------------------------------------------

OF_WIDTHS = {
    **dict.fromkeys(("rkhs_bound", "misspecification", "value", "factor"), "least zero"),
    **dict.fromkeys(("num_points", "num_rounds", "dim"), "count"),
    **dict.fromkeys(("noise_std", "a", "b", "r", "c", "max_kernel"), "positive"),
    "delta": "share",
    "printed": "flag",
    "width": "widths",
}
VALID_WIDTHS: dict[str, Any] = {
    **dict.fromkeys(
        ("rkhs_bound", "noise_std", "value", "factor", "width", "misspecification"), 0.5
    ),
    **dict.fromkeys(("a", "b", "r", "constant", "exponent"), 1.0),
    **dict.fromkeys(("num_points", "num_rounds", "dim"), 5),
    "delta": 0.1,
    "sides": (1.0, 1.0),
}


def width(name: str) -> Row:
    taken = inspect.signature(getattr(bx.widths, name)).parameters
    needed = {key: VALID_WIDTHS[key] for key, each in taken.items() if each.default is each.empty}
    wrong = {key: kind for key, kind in OF_WIDTHS.items() if key in taken}
    return of(f"widths.{name}", wrong, lambda s: needed)


WIDTHS = [
    width(name)
    for name in (
        *("AnytimeFixedDesign", "BayesContinuous", "BayesFinite", "ChowdhuryGopalan", "Constant"),
        *("Enlarged", "FixedDesign", "FixedDesignContinuous", "FixedDesignNet", "Scaled"),
        *("SelfNormalized", "SrinivasRKHS"),
    )
]
DELAYS = [
    plain("delays.Fixed", "steps=count-from-zero", steps=3),
    plain("delays.Geometric", "mean=least-zero", mean=3.0),
    plain("delays.Poisson", "mean=least-zero", mean=3.0),
    plain("delays.LogNormal", "median=positive sigma=least-zero", median=3.0, sigma=0.5),
    plain("delays.Observed", "level=share", level=0.5),
    plain("delays.Quantile", "distribution=distribution", distribution=bx.delays.Poisson(3.0)),
    plain(
        "delays.FromScipy",
        "distribution=object",
        distribution=__import__("scipy.stats").stats.poisson(3),
    ),
    plain(
        "delays.SubExponential",
        "mean=least-zero xi=least-zero b=least-zero printed=flag",
        mean=3.0,
        xi=1.0,
        b=1.0,
    ),
    plain("rounds.Doubling", "first=count", first=2),
    plain("rounds.SquareRoot", "horizon=count", horizon=9),
    plain("rounds.DelayAware", "rounds=object allowance=delay", rounds=Doubling(), allowance=3),
]

# --- acquisition ----------------------------------------------------------------------------------

OF_BOUNDS = {
    "model": "model",
    "models": "model",
    "width": "widths",
    "maximize": "flag",
    "X_pending": "places",
    "misspecification": "least zero",
}


def bound(name: str, **more: Any) -> Row:
    taken = inspect.signature(getattr(acquisition, name)).parameters
    which = "models" if "models" in taken else "model"
    wrong = {key: kind for key, kind in OF_BOUNDS.items() if key in taken} | kinds_in(
        more.pop("wrong", "")
    )
    return of(f"acquisition.{name}", wrong, lambda s: {which: s.gp, **more})


ACQUISITION = [
    bound("EnlargedUpperConfidenceBound", width=2.0),
    bound("LowerConfidenceBound", width=2.0),
    bound("OptimisticModelUCB", width=2.0),
    bound("ExpectedUCB", width=2.0, wrong="probabilities=weights"),
    bound(
        "StableUCB",
        width=2.0,
        radius=0.1,
        bounds=ROWS,
        wrong="radius=radius norm=word bounds=bounds",
    ),
    of(
        "acquisition.IntegratedLogEI",
        "models=model X_baseline=places maximize=flag",
        lambda s: {"models": s.gp, "X_baseline": s.X},
    ),
    of("acquisition.MaxVariance", "model=model", lambda s: {"model": s.gp}),
]

# --- problems, analysis, estimates ----------------------------------------------------------------

OF_ANALYSIS = {
    **dict.fromkeys(
        ("rkhs_bound", "information_gain", "misspecification", "largest_mean"), "least zero"
    ),
    **dict.fromkeys(("horizon", "num_points", "num_models", "dim"), "count"),
    **dict.fromkeys(("noise_std", "noise_variance", "gap", "norm", "growth"), "positive"),
    **dict.fromkeys(("a", "b", "r", "c"), "positive"),
    "delta": "share",
    "kernel": "kernel",
    "nu": "shape",
    "problem": "object",
    "worst_regret": "positive",
}
VALID_ANALYSIS: dict[str, Any] = {
    **dict.fromkeys(("horizon", "num_points", "num_models"), 100),
    **dict.fromkeys(("information_gain", "rkhs_bound", "a", "b", "r", "growth"), 2.0),
    **dict.fromkeys(("noise_std", "noise_variance", "delta"), 0.1),
    "consistency": 0.6,
    "dim": 1,
    "gap": 0.1,
    "method": "gp_ucb",
    "norm": 1.0,
    "nu": 2.5,
    "worst_regret": 50.0,
}


def bound_of_theory(name: str) -> Row:
    taken = inspect.signature(getattr(analysis, name)).parameters
    wrong = {key: kind for key, kind in OF_ANALYSIS.items() if key in taken}
    needed = [key for key, each in taken.items() if each.default is each.empty]

    def valid(s: Scene) -> Arguments:
        known = VALID_ANALYSIS | {"problem": s.on_grid, "kernel": s.kernel}
        return {key: known[key] for key in needed}

    return of(f"analysis.{name}", wrong, valid)


ANALYSIS = [
    bound_of_theory(name)
    for name in analysis.__all__
    if name.endswith(("_bound", "_exponent"))
    and name not in ("information_gain_bound", "regret_lower_bound")
]
ANALYSIS += [
    plain(
        "analysis.information_gain_bound",
        "gram=square horizon=count noise_variance=positive",
        gram=torch.eye(3).double(),
        horizon=9,
        noise_variance=0.1,
    ),
    plain(
        "analysis.fitted_slope",
        "t=text regret=text confidence=share",
        t=[1.0, 2.0, 4.0],
        regret=drawn(3, 3, low=1.0, high=2.0),
    ),
    plain("analysis.greedy_packing", "points=points distance=shape", points=ROWS, distance=1.0),
    of(
        "estimates.noise_std_from_repeats",
        "X=X-of-rows Y=weights",
        lambda s: {"X": torch.cat([s.X, s.X]), "Y": torch.cat([s.Y, s.Y + 0.1])},
    ),
    of(
        "estimates.noise_variance_by_likelihood",
        "kernel=kernel X=X-of-rows Y=values lower=positive upper=positive",
        lambda s: {"kernel": s.kernel, "X": s.X, "Y": s.Y},
    ),
    of(
        "information_gain.max_information_gain",
        "kernel=kernel domain=domain num_points=count noise_variance=positive seed=seed",
        lambda s: {"kernel": s.kernel, "domain": s.grid, "num_points": 5, "noise_variance": 0.1},
    ),
    of(
        "information_gain.greedy_information_gain",
        "kernel=kernel domain=domain num_points=count noise_variance=positive seed=seed",
        lambda s: {"kernel": s.kernel, "domain": s.grid, "num_points": 5, "noise_variance": 0.1},
    ),
    plain(
        "information_gain.product_kernel_bound",
        "action_gain=least-zero context_rank=count horizon=count",
        action_gain=1.0,
        context_rank=2,
        horizon=9,
    ),
    plain(
        "information_gain.additive_kernel_bound",
        "action_gain=least-zero context_gain=least-zero horizon=count",
        action_gain=1.0,
        context_gain=1.0,
        horizon=9,
    ),
]
PROBLEMS = [
    of(
        "problems.RKHSFunction",
        "kernel=kernel centers=points weights=values domain=domain noise_std=least-zero",
        lambda s: {"kernel": s.kernel, "centers": s.X, "weights": s.Y, "domain": s.box},
    ),
    method(
        "RKHSFunction.random",
        "domain=domain kernel=kernel norm=positive",
        lambda s: RKHSFunction.random,
        lambda s: {"domain": s.box, "kernel": s.kernel, "norm": 1.0},
    ),
    of(
        "problems.Perturbed",
        "misspecification=epsilon",
        lambda s: (
            {"problem": s.on_grid, "perturbation": torch.zeros_like, "misspecification": 0.1}
            | {"perturbation": lambda X: 0 * X[:, 0]}
        ),
    ),
    of("problems.tabulated", "values=table", lambda s: {"domain": s.grid, "values": [0.0] * 24}),
    plain("problems.SyntheticProblem", "noise_std=least-zero", test_function=Branin()),
    of(
        "problems.global_maximum",
        "function=function box=domain seed=seed",
        lambda s: {"function": lambda X: X[:, 0], "box": s.box, "seed": 0, "num_raw": 64},
    ),
    method("a problem", "X=places", lambda s: s.problem, lambda s: {"X": s.X}),
]

# --- strategies -----------------------------------------------------------------------------------

OF_STRATEGIES = {key: kind for key, kind in OF_ALGORITHMS.items() if key != "models"} | {
    "bases": "object",
    "bounds": "object",
    "key": "function",
    "kappa": "positive",
    "model": "model",
    "models": "model",
    "num_initial": "first points",
    "rounds": "object",
    "share": "part",
    "waits": "flag",
}


def strategy(name: str, wrong: str = "", **more: Any) -> Row:
    taken = inspect.signature(getattr(bx.strategies, name)).parameters
    kinds = {key: kind for key, kind in OF_STRATEGIES.items() if key in taken} | kinds_in(wrong)

    def valid(s: Scene) -> Arguments:
        known = {"domain": s.grid, "model": s.model(), "models": s.candidates(), "width": 2.0}
        given = {key: value for key, value in known.items() if key in taken and key not in more}
        return given | {key: each(s) if callable(each) else each for key, each in more.items()}

    return Row(f"strategies.{name}", valid, kinds, few=True)


def lengthscales(s: Scene) -> bx.CandidateModels:
    return bx.CandidateModels.lengthscales(rbf(1.0), [1.0, 0.5], LAMBDA)


def bases(s: Scene) -> list[bx.Strategy]:
    return [s.fresh(), s.fresh()]


TWO = {"rkhs_bound": 1.5, "noise_std": 0.1}
STRATEGIES = [
    strategy("BoundsStrategy"),
    strategy("MultiModelStrategy"),
    strategy("OptimisticStrategy"),
    strategy("ThompsonSampling"),
    strategy("ExpectedBound"),
    strategy("MaximumLikelihood"),
    strategy("CredibleBounds"),
    strategy("CredibleParticles", "width=least-zero"),
    strategy("RandomSearch"),
    strategy("HyperparameterElimination", noise_std=0.1),
    strategy("InsuredStrategy", model=lambda s: s.model(), **TWO),
    strategy("SafeStrategy", width=None, **TWO),
    strategy("StableStrategy", radius=0.1, noise_std=0.1),
    strategy("LengthscaleBalancing", models=lengthscales, noise_std=0.1),
    strategy(
        "ShrinkingLengthscale",
        models=lengthscales,
        lengthscale_0=1.0,
        growth=lambda s: lambda t: 1.0,
    ),
    strategy("BreadthwiseExploration", domain=lambda s: s.box, horizon=20, rkhs_bound=1.5),
    strategy("CertifiedElimination", horizon=20, block_width=1.0, told_width=1.0),
    strategy("PhasedElimination", rounds=lambda s: Doubling(), horizon=20),
    strategy("ContextwiseStrategy", bases=bases, key=lambda s: lambda z: 0, context_domain=1),
    strategy("RegretBalancing", bases=bases, bounds=lambda s: [lambda n: 0.1 * n] * 2),
    plain(
        "strategies.CandidateBound",
        "rkhs_bound=least-zero misspecification=least-zero c1=least-zero c2=least-zero "
        "max_information_gain=positive scale=positive",
        rkhs_bound=1.0,
        misspecification=0.1,
        max_information_gain=3.0,
    ),
    plain(
        "strategies.Terms",
        "alpha=least-zero beta=least-zero purse=purse max_follow_ups=count-from-zero "
        "num_levels=count",
        alpha=0.1,
    ),
    method("ask", "num_trials=count", lambda s: s.strategy.ask, lambda s: {"num_trials": 2}),
    method(
        "ask in a context", "context=context", lambda s: s.seeing.ask, lambda s: {"context": [0.5]}
    ),
    method(
        "tell", "id=id value=number", lambda s: s.strategy.tell, lambda s: {"id": 3, "value": 0.5}
    ),
    method("abandon", "id=id failed=flag", lambda s: s.strategy.abandon, lambda s: {"id": 3}),
    method(
        "correct",
        "id=id value=number",
        lambda s: s.strategy.correct,
        lambda s: {"id": 1, "value": 0.5},
    ),
    method(
        "attach",
        "x=places value=number",
        lambda s: s.strategy.attach,
        lambda s: {"x": s.X[0], "value": 0.5},
    ),
    method("predict", "points=places", lambda s: s.strategy.predict, lambda s: {"points": s.X}),
    of(
        "plan",
        "domain=domain model=model q=count X_pending=places population=places seed=seed",
        lambda s: {"domain": s.box, "model": s.gp, "q": 2},
    ),
]

# --- studies --------------------------------------------------------------------------------------


def value_of(x: Any) -> float:
    return 0.5


STUDIES = [
    of(
        "run",
        "strategy=strategy objective=function num_trials=count executor=object "
        "max_pending=count minimize=sign progress=flag max_retries=count-from-zero "
        "time_limit=positive target=number",
        lambda s: {
            "strategy": s.fresh(),
            "objective": value_of,
            "num_trials": 2,
            "progress": False,
        },
    ),
    of(
        "optimize",
        "objective=function domain=domain num_trials=count minimize=sign "
        "num_initial=first-points seed=seed progress=flag",
        lambda s: {"objective": value_of, "domain": s.box, "num_trials": 2, "progress": False},
    ),
    of(
        "simulate",
        "strategy=strategy problem=object horizon=count noise_std=least-zero delay=delay seed=seed",
        lambda s: {"strategy": s.fresh(), "problem": s.on_grid, "horizon": 2},
    ),
    of(
        "Study",
        "strategy=strategy name=text minimize=sign unit=name",
        lambda s: {"place": "/dev/null/never.db", "strategy": s.fresh()},
    ),
    of("report_page", "study=strategy", lambda s: {"study": s.study}),
    method(
        "Study.tell",
        "id=id value=number",
        lambda s: s.study.tell,
        lambda s: {"id": 3, "value": 0.5},
    ),
    method("Study.abandon", "id=id failed=flag", lambda s: s.study.abandon, lambda s: {"id": 4}),
    method(
        "Study.correct",
        "id=id value=number",
        lambda s: s.study.correct,
        lambda s: {"id": 1, "value": 0.5},
    ),
    method("Study.predict", "points=places", lambda s: s.study.predict, lambda s: {"points": s.X}),
]

ROWS_OF_CALLS = [
    *ALGORITHMS,
    *DOMAINS,
    *MODELS,
    *WIDTHS,
    *DELAYS,
    *ACQUISITION,
    *ANALYSIS,
    *PROBLEMS,
    *STRATEGIES,
    *STUDIES,
]
