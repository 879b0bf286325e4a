"""Calls of all that is public: the arguments of a valid call, and the kinds of wrong values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from botorch.test_functions import Branin
from scipy import stats

import botorch_ext as bx
from botorch_ext import analysis, widths
from botorch_ext.delays.rounds import Doubling
from tests.helpers import drawn, rbf
from tests.wrong_calls.scene import ROWS, Scene

Arguments = Mapping[str, Any]


def kinds_in(text: str) -> dict[str, str]:
    """From an argument to its kind, of a text such as ``"low=number log=flag"``."""
    pairs = (each.split("=") for each in text.split())
    return {argument: kind.replace("-", " ") for argument, kind in pairs}


#: The kind of an argument wherever it has this name, but for what a row says otherwise.
KINDS_OF_NAMES = kinds_in("""
    a=positive action_gain=least-zero action_kernel=kernel alpha=least-zero b=positive
    base_kernel=kernel bases=object beta=least-zero box=domain c1=least-zero c2=least-zero
    centers=points certificates=flag confidence=share context=context context_domain=contexts
    context_gain=least-zero context_kernel=kernel context_rank=count credibility=least-zero
    delay=delay delta=share deterministic=flag device=device domain=domain dtype=dtype
    executor=object factor=least-zero failed=flag gap=positive horizon=count id=id inflate=flag
    information_gain=least-zero initial=initial kernel=kernel kernels=kernel key=function
    largest_mean=least-zero lengthscale_0=positive lower=positive max_cells=count
    max_follow_ups=count-from-zero max_information_gain=positive max_kernel=positive
    max_pending=count max_retries=count-from-zero maximize=flag mean=mean minimize=sign
    misspecification=least-zero model=model models=models names=names noise_std=positive
    noise_variance=positive norm=word nu=shape num_initial=count-from-zero num_levels=count
    num_models=count num_particles=count num_points=count num_rounds=count num_trials=count
    objective=function outcomes=object particles=model pending=word points=points printed=flag
    problem=object progress=flag purse=purse q=count r=positive radius=radius reward_range=limits
    rkhs_bound=least-zero row=row rows=rows seed=seed share=part strategy=strategy target=number
    time_limit=positive upper=positive value=number waits=flag width=widths worst_regret=positive
    X=places X_baseline=places X_pending=places
""")


def known(scene: Scene) -> dict[str, Any]:
    """What a call is given that needs an argument of this name, and whose row does not say it."""
    return {
        **dict.fromkeys(("a", "b", "r", "constant", "exponent", "norm"), 1.0),
        **dict.fromkeys(("growth", "information_gain", "rkhs_bound", "width"), 2.0),
        **dict.fromkeys(("noise_std", "noise_variance", "delta", "gap", "misspecification"), 0.1),
        **dict.fromkeys(("value", "factor"), 0.5),
        **dict.fromkeys(("num_points", "num_models", "num_rounds"), 5),
        "consistency": 0.6,
        "dim": 1,
        "domain": scene.grid,
        "horizon": 20,
        "kernel": scene.kernel,
        "method": "gp_ucb",
        "nu": 2.5,
        "problem": scene.on_grid,
        "sides": (1.0, 1.0),
        "worst_regret": 50.0,
    }


@dataclass(frozen=True)
class Row:
    """A call.

    Args:
        name: The public name, from `botorch_ext` on; or what a scene has, as ``scene.gp.add``.
        own: The kinds of wrong values that the names of arguments do not tell, as in `values`.
        valid: The keyword arguments of a call that works, of a scene; `known` ones may be missing.
        few: Whether a few values of each kind do, as where all arguments are checked elsewhere.
    """

    name: str
    own: str
    valid: Callable[[Scene], Arguments]
    few: bool = False

    @property
    def is_of_scene(self) -> bool:
        return self.name.startswith("scene.")

    def call(self, scene: Scene) -> Callable[..., Any]:
        return found(self.name.removeprefix("scene."), scene if self.is_of_scene else bx)

    def parameters(self, scene: Scene) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.call(scene)).parameters

    def arguments(self, scene: Scene) -> dict[str, Any]:
        needed = [key for key, p in self.parameters(scene).items() if p.default is p.empty]
        have = known(scene)
        return {key: have[key] for key in needed if key in have} | dict(self.valid(scene))

    def wrong(self, scene: Scene) -> dict[str, str]:
        """The kinds of wrong values of each argument."""
        taken, own = self.parameters(scene), kinds_in(self.own)
        takes_any = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        kinds = {key: kind for key, kind in (KINDS_OF_NAMES | own).items() if key in taken}
        kinds |= own if takes_any else {}
        return {key: kind for key, kind in kinds.items() if kind != "anything"}


def found(name: str, place: Any = bx) -> Any:
    """What has a public name."""
    for part in name.split("."):
        place = getattr(place, part)
    return place


def row(name: str, own: str = "", /, **valid: Any) -> Row:
    return Row(name, own, lambda scene: valid)


def of(name: str, own: str, valid: Callable[[Scene], Arguments]) -> Row:
    return Row(name, own, valid)


# --- domains --------------------------------------------------------------------------------------

DOMAINS = [
    row("Box", "bounds=bounds integer=columns log=columns", bounds=[[1.0, 1.0], [5.0, 3.0]]),
    row("Real", "low=number high=number step=size digits=count-from-zero", low=1.0, high=5.0),
    row("Integer", "low=whole high=whole step=count", low=3, high=9),
    row("Choice", "values=choices", values=["a", "b"]),
    row("Space", "x=object constraints=limits-of-space", x=bx.Real(0.0, 1.0)),
    row("FiniteSet", points=ROWS),
    row("ContextSpace", "domain=some-domain", domain=bx.Box([[0.0], [1.0]])),
    of("scene.box.contains", "", lambda s: {"X": s.X}),
    of("scene.box.to_unit", "", lambda s: {"X": s.X}),
    row("scene.box.from_unit", "U=places", U=[[0.1, 0.5]]),
    row("scene.box.sample", "num_points=count-from-zero", seed=0),
    row("scene.grid.sample", "num_points=count-from-zero", seed=0),
    of("scene.grid.index", "", lambda s: {"X": s.X}),
    of("Region", "constraints=name members=places", lambda s: {"box": s.box}),
]

# --- models and kernels ---------------------------------------------------------------------------

SEVERAL = "noise_variance=positive-ones"
GROUPS = {"base_kernel": rbf(1.0), "groups": [[0], [1]], "dim": 2}
MODELS = [
    row("KernelGP", SEVERAL),
    of(
        "FinitePosterior",
        f"{SEVERAL} candidates=points capacity=count",
        lambda s: {"candidates": s.X},
    ),
    row("CandidateModels", SEVERAL, kernels=[rbf(0.5), rbf(1.0)]),
    row("CandidateModels.lengthscales", f"{SEVERAL} values=lengthscales", values=[0.5]),
    *(
        of(f"scene.{name}.{method}", "Y=results" if method == "add" else "Y=values", valid)
        for name in ("gp", "finite", "models")
        for method, valid in (
            ("add", lambda s: {"X": s.X, "Y": s.Y}),
            ("set_targets", lambda s: {"rows": [0, 1, 2], "Y": s.Y}),
        )
    ),
    row("scene.gp.remove", row=1),
    of("scene.gp.posterior", "observation_noise=name", lambda s: {"X": s.X}),
    of("scene.gp.mean_and_std", "", lambda s: {"X": s.X}),
    of("scene.models.mean_and_std", "", lambda s: {"X": s.X}),
    row("Particles", num_particles=8),
    row("Fitted", "every=count", every=3),
    row(
        "kernels.ActionContextKernel",
        "combination=word",
        action_kernel=rbf(1.0),
        context_kernel=rbf(1.0),
        action_columns=2,
    ),
    row("kernels.AdditiveKernel", "dim=dimension", **GROUPS),
    row("kernels.GroupAdditiveKernel", "dim=dimension", **GROUPS),
    row("kernels.NuggetKernel", "variance=positive", variance=0.1),
    row("kernels.TaskKernel", "covariance=square", covariance=[[1.0, 0.5], [0.5, 1.0]]),
]

# --- widths, delays, rounds -----------------------------------------------------------------------

WIDTHS = [
    row(f"widths.{name}", "c=positive dim=count max_information_gain=anything value=least-zero")
    for name in widths.__all__
    if isinstance(value := getattr(widths, name), type)
    and issubclass(value, widths.Width)
    and value is not widths.Width
]
DELAYS = [
    row("delays.Fixed", "steps=count-from-zero", steps=3),
    row("delays.Geometric", "mean=least-zero", mean=3.0),
    row("delays.Poisson", "mean=least-zero", mean=3.0),
    row("delays.LogNormal", "median=positive sigma=least-zero", median=3.0, sigma=0.5),
    row("delays.Observed", "level=share", level=0.5),
    row("delays.Quantile", "distribution=distribution", distribution=bx.delays.Poisson(3.0)),
    row("delays.FromScipy", "distribution=object", distribution=stats.poisson(3)),
    row(
        "delays.SubExponential",
        "mean=least-zero xi=least-zero b=least-zero",
        mean=3.0,
        xi=1.0,
        b=1.0,
    ),
    row("rounds.Doubling", "first=count", first=2),
    row("rounds.SquareRoot"),
    row("rounds.DelayAware", "rounds=object allowance=delay", rounds=Doubling(), allowance=3),
]

# --- acquisition ----------------------------------------------------------------------------------

OWN = "models=model probabilities=weights bounds=bounds noise_variance=positive-ones"
ACQUISITION = [
    *(
        of(f"acquisition.{name}", OWN, lambda s, which=which: {which: s.gp})
        for name, which in (
            ("EnlargedUpperConfidenceBound", "model"),
            ("LowerConfidenceBound", "model"),
            ("OptimisticModelUCB", "models"),
            ("ExpectedUCB", "models"),
        )
    ),
    of("acquisition.StableUCB", OWN, lambda s: {"model": s.gp, "radius": 0.1, "bounds": ROWS}),
    of("acquisition.IntegratedLogEI", OWN, lambda s: {"models": s.gp, "X_baseline": s.X}),
    of("acquisition.MaxVariance", "model=model", lambda s: {"model": s.gp}),
    of(
        "acquisition.CertifiedSafe",
        "acqf=object models=object thresholds=object safe_seed=places bounds=word",
        lambda s: {
            "acqf": bx.acquisition.MaxVariance(s.gp),
            "models": {"pressure": s.gp},
            "thresholds": {"pressure": "<= 5.0"},
            "safe_seed": s.X,
        },
    ),
]

# --- problems, analysis, estimates ----------------------------------------------------------------

GAIN = "information_gain."
ANALYSIS = [
    *(
        row(f"analysis.{name}", "c=positive dim=count norm=positive growth=positive")
        for name in analysis.__all__
        if name.endswith(("_bound", "_exponent"))
        and name not in ("information_gain_bound", "regret_lower_bound")
    ),
    row("analysis.information_gain_bound", "gram=square", gram=torch.eye(3).double()),
    row(
        "analysis.fitted_slope",
        "t=text regret=text",
        t=[1.0, 2.0, 4.0],
        regret=drawn(3, 3, low=1.0, high=2.0),
    ),
    row("analysis.greedy_packing", "distance=shape", points=ROWS, distance=1.0),
    of(
        "estimates.noise_std_from_repeats",
        "X=X-of-rows Y=weights",
        lambda s: {"X": torch.cat([s.X, s.X]), "Y": torch.cat([s.Y, s.Y + 0.1])},
    ),
    of(
        "estimates.noise_variance_by_likelihood",
        "X=X-of-rows Y=values",
        lambda s: {"X": s.X, "Y": s.Y},
    ),
    row(f"{GAIN}max_information_gain", "upper=flag"),
    row(f"{GAIN}greedy_information_gain"),
    row(f"{GAIN}product_kernel_bound", action_gain=1.0, context_rank=2),
    row(f"{GAIN}additive_kernel_bound", action_gain=1.0, context_gain=1.0),
]
ON_SETS = "noise_std=least-zero weights=values norm=positive"
PROBLEMS = [
    of("problems.RKHSFunction", ON_SETS, lambda s: {"centers": s.X, "weights": s.Y}),
    row("problems.RKHSFunction.random", ON_SETS),
    row("problems.Perturbed", "misspecification=epsilon", perturbation=lambda X: 0 * X[:, 0]),
    row("problems.Function", "f=function noise_std=least-zero", f=lambda X: X[:, 0]),
    row("problems.tabulated", "values=table", values=[0.0] * 24),
    row("problems.SyntheticProblem", "noise_std=least-zero", test_function=Branin()),
    of(
        "problems.global_maximum",
        "function=function",
        lambda s: {"function": lambda X: X[:, 0], "box": s.box, "seed": 0, "num_raw": 64},
    ),
    of("scene.problem", "", lambda s: {"X": s.X}),
]

# --- algorithms and strategies --------------------------------------------------------------------


def methods(names: Iterable[str], own: str, valid: Callable[[Scene, str], Arguments]) -> list[Row]:
    """Methods, of whose arguments each means the same in all."""
    return [Row(name, own, lambda s, n=name: valid(s, n), few=True) for name in names]


ALGORITHMS = methods(
    [f"algorithms.{name}" for name in bx.algorithms.__all__],
    "bounds=word buy=word c=least-zero combination=word free=word setting=word",
    lambda s, name: s.arguments(name.removeprefix("algorithms.")),
)
TWO = {"rkhs_bound": 1.5, "noise_std": 0.1}
OF_STRATEGIES: dict[str, Callable[[Scene], Arguments]] = {
    **dict.fromkeys(
        ("BoundsStrategy", "MultiModelStrategy", "OptimisticStrategy", "ThompsonSampling"),
        lambda s: {"model": s.model()},
    ),
    "RandomSearch": lambda s: {},
    "HyperparameterElimination": lambda s: {"models": s.candidates()},
    "InsuredStrategy": lambda s: {"model": s.model(), **TWO},
    "SafeStrategy": lambda s: {"models": s.candidates(), **TWO},
    "SafeExploration": lambda s: s.arguments("safe_exploration"),
    "StableStrategy": lambda s: {"models": s.candidates(), "radius": 0.1, "noise_std": 0.1},
    "LengthscaleBalancing": lambda s: {"models": s.lengthscales()},
    "BreadthwiseExploration": lambda s: {"model": s.model(), "domain": s.box},
    "CertifiedElimination": lambda s: {"model": s.model(), "block_width": 1.0, "told_width": 1.0},
    "PhasedElimination": lambda s: {"model": s.model(), "rounds": Doubling(), "horizon": 20},
    "ContextwiseStrategy": lambda s: {
        "bases": [s.fresh(), s.fresh()],
        "key": lambda z: 0,
        "context_domain": 1,
    },
    "RegretBalancing": lambda s: {
        "bases": [s.fresh(), s.fresh()],
        "bounds": [lambda n: 0.1 * n] * 2,
    },
}
STRATEGIES = [
    *methods(
        [f"strategies.{name}" for name in OF_STRATEGIES],
        "bounds=object c=least-zero models=model num_initial=first-points rounds=object",
        lambda s, name: OF_STRATEGIES[name.removeprefix("strategies.")](s),
    ),
    row("strategies.CredibleParticles", "width=least-zero num_initial=first-points"),
    row("strategies.CandidateBound", "scale=positive", max_information_gain=3.0),
    row("strategies.Terms", alpha=0.1),
    row("scene.strategy.ask", num_trials=2),
    row("scene.seeing.ask", context=[0.5]),
    row("scene.strategy.tell", "value=result std=positive", id=3),
    row("scene.strategy.abandon", id=3),
    row("scene.strategy.correct", "value=result std=positive", id=1, value=0.3),
    row("scene.strategy.withdraw", id=4),
    row("scene.strategy.note", id=1, text="dull"),
    row("scene.at_random.widen", "parameters=object", parameters={"a": bx.Real(2.0, 6.0)}),
    of(
        "scene.strategy.attach",
        "x=places value=result std=positive",
        lambda s: {"x": s.X[0], "value": 0.3},
    ),
    of("scene.strategy.predict", "points=places", lambda s: {"points": s.X}),
    of("plan", "population=places", lambda s: {"domain": s.box, "model": s.gp, "q": 2}),
]

# --- studies --------------------------------------------------------------------------------------


def value_of(x: Any) -> float:
    return 0.5


FIRST = "num_initial=first-points"
BRIEF = {"objective": value_of, "num_trials": 2, "progress": False}
OF_MANY = "methods=object problems=object seeds=object noise_std=least-zero"
FEW = {"problems": torch.zeros(24), "horizon": 2, "seeds": [0, 1], "noise_std": 0.1}
STUDIES = [
    of("run", "", lambda s: {"strategy": s.fresh(), **BRIEF}),
    of("optimize", FIRST, lambda s: {"domain": s.box, **BRIEF}),
    of("simulate", "noise_std=least-zero", lambda s: {"strategy": s.fresh(), "horizon": 2}),
    of(
        "replicate",
        f"{OF_MANY} initial=object most_bytes=count checked=count-from-zero",
        lambda s: {"methods": {"a": s.fresh()}, **FEW},
    ),
    of("compare", f"{OF_MANY} processes=count", lambda s: {"methods": {"a": s.fresh()}, **FEW}),
    of(
        "Study",
        "name=text unit=name objective=name",
        lambda s: {"place": "/dev/null/never.db", "strategy": s.fresh()},
    ),
    of("report_page", "study=strategy", lambda s: {"study": s.study}),
    row("scene.study.tell", "value=result std=positive", id=3),
    row("scene.study.abandon", id=4),
    row("scene.study.correct", "value=result std=positive", id=1, value=0.3),
    row("scene.study.withdraw", id=5),
    row("scene.study.note", id=1, text="dull"),
    of("scene.study.predict", "points=places", lambda s: {"points": s.X}),
]

ROWS_OF_CALLS = [
    *(*ALGORITHMS, *DOMAINS, *MODELS, *WIDTHS, *DELAYS, *ACQUISITION, *ANALYSIS, *PROBLEMS),
    *(*STRATEGIES, *STUDIES),
]
