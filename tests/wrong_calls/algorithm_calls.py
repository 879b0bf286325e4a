"""Arguments of algorithms that cannot be, alone or together."""

import math
from typing import Any

import torch
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel
from scipy import stats

import botorch_ext as bx
from botorch_ext import algorithms, delays, rounds, widths
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.strategies import (
    BreadthwiseExploration,
    CandidateBound,
    RandomSearch,
    RegretBalancing,
    StableStrategy,
)
from botorch_ext.strategies.adaptive.insurance import Terms
from tests.wrong_calls.calls import LAMBDA, Call, kernel

NAN, INF = math.nan, math.inf
NUMBERS: dict[str, Any] = {"rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.1}
RIDGE = {"noise_variance": LAMBDA}
HORIZON = {"horizon": 20}
# What an algorithm is given besides `NUMBERS`.
OWN: dict[str, dict[str, Any]] = {
    "gp_ucb": RIDGE,
    "igp_ucb": RIDGE,
    "ec_gp_ucb": {**RIDGE, "misspecification": 0.1},
    "gp_bucb": RIDGE,
    "gp_ucb_sdf": {**RIDGE, "minimum": -1.0},
    "stable_opt": {**RIDGE, "radius": 0.1},
    "insured_ucb": RIDGE,
    "phased_uncertainty_sampling": {**RIDGE, **HORIZON},
    "bpe": {**RIDGE, **HORIZON},
    "bpe_delay": {**RIDGE, **HORIZON, "delay": 3},
    "certified_bucb": {**RIDGE, "horizon": 30, "width": 1.0},
    "breadthwise_exploration": {**RIDGE, **HORIZON},
    "regret_balancing": {**RIDGE, **HORIZON, "max_information_gain": 2.0},
    "he_stable_opt": {"radius": 0.1},
}
OF_LENGTHSCALES = ("a_gp_ucb", "lb_gp_ucb")
OF_MODELS = ("he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb", "safe_ucb", "he_stable_opt")
EVERY = "gp_ucb igp_ucb ec_gp_ucb gp_bucb gp_ucb_sdf"
SEVERAL = "he_gp_ucb mle_ucb expected_ucb a_gp_ucb lb_gp_ucb"
BALANCING = "regret_balancing"
BREADTHWISE = "breadthwise_exploration"
CERTIFIED = "certified_bucb"
SAFE = "safe_ucb"
ON_BOX = {"on": "box"}
FLOAT32 = bx.Box([[0.0], [1.0]], dtype=torch.float32)
GROWING = bx.CandidateModels.growing(RBFKernel(), 1.0, LAMBDA, dim=2)
TWO_CENSORED = {"pending": "censor", "minimum": 0.0}
PARTICLES = {"models": bx.Particles(8), "rkhs_bound": None, "noise_std": None}


def made(s, method, on="grid", models=None, **changed):
    options = {**NUMBERS, **OWN.get(method, {}), **changed}
    domain = s.box if on == "box" or method == BREADTHWISE else s.grid
    if models is None and method in OF_LENGTHSCALES:
        models = bx.CandidateModels.lengthscales(RBFKernel(), [1.0, 0.5], LAMBDA)
    if models is None and method in OF_MODELS:
        models = bx.CandidateModels([s.kernel, s.kernel], LAMBDA)
    return getattr(algorithms, method)(domain, options.pop("kernel", models or s.kernel), **options)


# The algorithms, the argument that is named, and its values; or several arguments together.
IMPOSSIBLE: list[tuple[str, str, list[Any]]] = [
    (EVERY, "noise_variance", [0.0, None]),
    (EVERY, "rkhs_bound", [-1.0, None]),
    (EVERY, "noise_std", [0.0, None]),
    (EVERY, "delta", [0.0, 1.0]),
    (EVERY, "num_initial", [-1]),
    (EVERY, "seed", ["2"]),
    (EVERY, "pending", ["wait"]),
    (EVERY, "width", [-1.0]),
    ("gp_ucb igp_ucb ec_gp_ucb", "minimum", [-2.5, {"pending": "censor"}]),
    ("gp_ucb igp_ucb ec_gp_ucb", "inflate", [{"pending": "ignore", "inflate": True}]),
    ("gp_ucb igp_ucb ec_gp_ucb", "timeout", [3]),
    ("gp_ucb", "inflate", [{**TWO_CENSORED, "inflate": True}]),
    (
        "gp_ucb",
        "minimum",
        [{"pending": "ignore", "minimum": 0.0}, {**TWO_CENSORED, "minimum": INF}],
    ),
    ("gp_ucb", "timeout", [{**TWO_CENSORED, "timeout": -1}, {"pending": "ignore", "timeout": 0}]),
    ("gp_ucb_sdf", "minimum", [None]),
    ("gp_ucb_sdf", "pending", ["hallucinate"]),
    ("gp_bucb", "pending", ["ignore", "censor"]),
    ("ec_gp_ucb", "misspecification", [-0.1, None]),
    (SEVERAL, "rkhs_bound", [-1.0, NAN]),
    ("he_gp_ucb mle_ucb expected_ucb a_gp_ucb", "rkhs_bound", [None]),
    (SEVERAL, "noise_std", [0.0, INF]),
    (SEVERAL, "delta", [0.0, 1.5, NAN]),
    (SEVERAL, "num_initial", [-1]),
    (SEVERAL, "seed", [None]),
    (SEVERAL, "pending", ["wait"]),
    (SEVERAL, "timeout", [3]),
    (SEVERAL, "minimum", [0.5]),
    (
        "he_gp_ucb",
        "noise_std",
        [None, {"noise_std": None, "width": 2.0}, {"noise_std": -1.0, "width": 2.0}],
    ),
    (
        "he_gp_ucb",
        "a",
        [3.0, {**ON_BOX, "setting": "bayesian"}, {**ON_BOX, "setting": "bayesian", "b": 1.0}],
    ),
    ("he_gp_ucb", "misspecification", [-0.1, NAN, "2"]),
    ("he_gp_ucb", "setting", ["both", None]),
    ("he_gp_ucb", "width", [[1.0, 2.0, 3.0], [], [1.0, -2.0], torch.ones(6, 2)]),
    ("he_gp_ucb", "delta", [{"width": 0.5, "delta": 0.0}]),
    ("a_gp_ucb", "lengthscale_0", [0.0, NAN, INF]),
    ("a_gp_ucb", "growth(1)", [{"growth": lambda t: 0.0}, {"growth": lambda t: INF}]),
    ("a_gp_ucb", "models", [{"models": GROWING}]),
    ("he_gp_ucb mle_ucb expected_ucb credible_ucb", "width", [{"models": GROWING, "width": [0.5]}]),
    ("he_stable_opt", "radius", [-0.1, (0.1, 0.2, 0.3)]),
    ("he_stable_opt", "norm", ["l1"]),
    ("he_stable_opt", "noise_std", [0.0]),
    ("he_stable_opt", "setting", ["both"]),
    ("he_stable_opt", "misspecification", [-1.0]),
    ("he_stable_opt", "pending", ["forget"]),
    ("credible_ucb", "credibility", [-0.1, INF, NAN, "high"]),
    ("credible_ucb", "delta", [1.0]),
    ("credible_ucb", "rkhs_bound", [{**PARTICLES, "rkhs_bound": 1.0}]),
    ("credible_ucb", "noise_std", [{**PARTICLES, "noise_std": 1.0}]),
    ("credible_ucb", "pending", [{**PARTICLES, "pending": "ignore"}]),
    ("credible_ucb", "inflate", [{**PARTICLES, "inflate": True}]),
    ("credible_ucb", "minimum", [{**PARTICLES, "minimum": 0.0}]),
    ("credible_ucb", "timeout", [{**PARTICLES, "timeout": 3}]),
    (
        "credible_ucb",
        "width",
        [{**PARTICLES, "width": widths.Constant(2.0)}, {**PARTICLES, "width": -1.0}],
    ),
    ("credible_ucb", "credibility", [{**PARTICLES, "credibility": -1.0}]),
    ("insured_ucb", "noise_std", [0.0]),
    ("insured_ucb", "rkhs_bound", [-1.0]),
    ("insured_ucb", "delta", [1.0]),
    ("insured_ucb", "pending", ["ignore"]),
    ("insured_ucb", "noise_variance", [0.0]),
    ("insured_ucb", "terms", [{"terms": {"alpha": 1}}]),
    (SAFE, "noise_variance", [0.1]),
    (SAFE, "model", [{"models": GROWING}]),
    (SAFE, "horizon", [{"certificates": True}, 5, {"certificates": True, "horizon": 0}]),
    (SAFE, "num_initial", [{"certificates": True, "horizon": 3, "num_initial": 5}]),
    (SAFE, "credibility", [-1.0]),
    (
        "bpe_delay",
        "delay",
        [stats.pareto(0.9), stats.halfcauchy(), stats.norm(50, 1), -3, "soon"],
    ),
    ("bpe_delay", "closing", ["at once"]),
    ("bpe_delay", "noise_std", [{**ON_BOX, "noise_std": None}]),
    ("bpe_delay", "delta", [{"delta": 0.0, "width": 1.0, "delay": delays.Poisson(2)}]),
    ("bpe phased_uncertainty_sampling", "horizon", [0, {"horizon": 2.5, "width": 1.0}]),
    ("bpe", "rkhs_bound", [None]),
    ("bpe", "delta", [1.5]),
    ("bpe", "width", [-1.0]),
    (
        CERTIFIED,
        "rkhs_bound and noise_std",
        [{"width": None, "rkhs_bound": None, "noise_std": None}],
    ),
    (CERTIFIED, "share", [0.0, 1.5]),
    (CERTIFIED, "kappa", [0.9, INF]),
    (CERTIFIED, "buy", ["never"]),
    (CERTIFIED, "free", ["gp_ucb"]),
    (CERTIFIED, "rkhs_bound", [-1.0]),
    (CERTIFIED, "horizon", [0, {"num_initial": 30}]),
    (CERTIFIED, "width", [-1.0, {"free_width": "wide"}]),
    (CERTIFIED, "delta", [{"width": None, "delta": 1.5}]),
    (
        BREADTHWISE,
        "kernel",
        [PeriodicKernel().double(), {"kernel": PeriodicKernel().double(), "width": 1.0}],
    ),
    (BREADTHWISE, "kernel", [RBFKernel(ard_num_dims=3).double()]),
    (BREADTHWISE, "horizon", [0, -3, 2.5]),
    (
        BREADTHWISE,
        "rkhs_bound",
        [None, {"rkhs_bound": None, "width": 1.0}, -1.0, {"rkhs_bound": NAN, "width": 1.0}],
    ),
    (BREADTHWISE, "noise_std", [None]),
    (BREADTHWISE, "noise_variance", [0.0]),
    (BREADTHWISE, "delta", [1.5]),
    (BREADTHWISE, "width", [-1.0]),
    (BREADTHWISE, "max_cells", [0, 1.5]),
    (BREADTHWISE, "constant of holder", [{"holder": (0.0, 1.0)}, {"holder": (NAN, 1.0)}]),
    (BREADTHWISE, "exponent of holder", [{"holder": (1.0, 0.0)}, {"holder": (1.0, 2.0)}]),
    (BREADTHWISE, "holder", [(1.0, 1.0, 1.0), "smooth", 1.0]),
    (BREADTHWISE, "mean", [lambda X: X[..., 0]]),
    (BALANCING, "reward_range", [(1.0, 1.0), (0.0, INF), (NAN, 1.0), (0.0, 1.0, 2.0), ("0", 1.0)]),
    (BALANCING, "delta", [0.0, 1.0]),
    (BALANCING, "c", [-0.1, NAN, None]),
    (BALANCING, "c1", [-1.0]),
    (BALANCING, "c2", [INF]),
    (BALANCING, "rkhs_bound", [-1.0, None]),
    (BALANCING, "noise_std", [0.0]),
    (BALANCING, "noise_variance", [0.0]),
    (BALANCING, "horizon", [0, 10.5]),
    (
        BALANCING,
        "max_information_gain",
        [0.0, "5", {"context_domain": 2, "max_information_gain": None}],
    ),
    (BALANCING, "misspecifications", [[], [0.1, NAN], "0.1"]),
    (BALANCING, "seed", [0.5]),
    (BALANCING, "pending", ["wait"]),
    ("bpe stable_opt a_gp_ucb lb_gp_ucb", "context_domain", [2]),
    ("gp_ucb he_gp_ucb", "context_domain", [-2, True, [[0.0], [1.0], [2.0]], FLOAT32]),
    (BALANCING, "context_domain", [{"kernel": ActionContextKernel(RBFKernel(), RBFKernel(), 2)}]),
]


def linear(n):
    return 0.1 * n


def balanced(bounds, num_bases=2):
    return lambda s: RegretBalancing([RandomSearch(s.grid)] * num_bases, bounds)


def with_data(s, num_columns=2, **options):
    model = bx.KernelGP(RBFKernel().double(), LAMBDA, **options)
    model.add(s.X[:, :1].expand(-1, num_columns), s.Y)
    return model


def optimistic(s, kernel=None, noise_variance=LAMBDA, on="box", **options):
    model = bx.KernelGP(kernel or s.kernel, noise_variance, **options)
    return bx.OptimisticStrategy(s.box if on == "box" else s.grid, model, 2.0)


def standardize():
    outcome_transform = Standardize(1)
    outcome_transform(torch.tensor([[1.0], [2.0]]).double())
    return outcome_transform.eval()


def phased(s, model=None, schedule=None, horizon=9, **options):
    model = bx.KernelGP(s.kernel, LAMBDA) if model is None else model
    schedule = rounds.Doubling() if schedule is None else schedule
    return bx.PhasedElimination(s.grid, model, 1.0, schedule, horizon, **options)


def breadthwise(s, model, **options):
    return BreadthwiseExploration(s.box, model, 1.0, 20, **{"rkhs_bound": 1.0, **options})


def named(s, method, kernel=None, mean=None, on="box"):
    """A method over two models, of which the second is named "odd one"."""
    kernels = [RBFKernel(), RBFKernel() if kernel is None else kernel]
    models = bx.CandidateModels(kernels, LAMBDA, [None, mean], names=["fits", "odd one"])
    return made(s, method, on, models)


def on_tasks(s, method="gp_ucb", context_domain=None, **options):
    """A method whose contexts are the tasks 0 and 1."""
    kernel = ActionContextKernel(RBFKernel(), TaskKernel(torch.eye(2).double()), 2)
    models = None if method == "gp_ucb" else bx.CandidateModels([kernel], LAMBDA)
    options |= {"context_domain": 1 if context_domain is None else context_domain}
    return made(s, method, "box", models, **options, **({} if models else {"kernel": kernel}))


def in_contexts(s, **options):
    return made(s, "gp_ucb", kernel=kernel(3), context_domain=bx.Box([[0.0], [1.0]]), **options)


def joint(s, X=0.0, num_columns=3):
    """A strategy in contexts with initial data: rows with what is added to them."""
    rows = torch.cat([s.grid.points[:3], s.X.new_full((3, num_columns - 2), 0.5)], dim=-1)
    return in_contexts(s, initial=(rows + s.X.new_tensor(X), s.Y))


def half_tasks(s):
    return torch.cat([s.X, s.X.new_full((3, 1), 0.5)], dim=-1)


def holder(*lengthscales):
    return HolderConstants(1.0, 1.0, lengthscales, 1.0)


BATCHED = RBFKernel(batch_shape=torch.Size([3])).double()
THIRD_COLUMN = RBFKernel(active_dims=[2]).double()
# The name that is said, and the call.
IMPOSSIBLE_PARTS: list[tuple[str, Any]] = [
    ("bound of base 1", balanced([linear, lambda n: 5.0 - n])),
    ("bound of base 1", balanced([linear, lambda n: min(n, 500) - (n > 700)])),
    ("bound of base 1", balanced([linear, lambda n: n - 0.5])),
    ("bound of base 1", balanced([linear, lambda n: INF])),
    ("bound of base 1", balanced([linear, lambda n: NAN if n == 3 else 1.0])),
    ("bound of base 1", balanced([linear, lambda n: "low"])),
    ("bounds", balanced([linear, 3.0])),
    ("bounds", balanced([])),
    ("bounds", balanced([linear] * 3)),
    ("bounds", balanced(linear)),
    ("rkhs_bound", lambda s: CandidateBound(-0.1, 0.1, 3.0)),
    ("misspecification", lambda s: CandidateBound(1.0, NAN, 3.0)),
    ("max_information_gain", lambda s: CandidateBound(1.0, 0.1, 0.0)),
    ("scale", lambda s: CandidateBound(1.0, 0.1, 3.0, scale=0.0)),
    ("c1", lambda s: CandidateBound(1.0, 0.1, 3.0, c1=-1.0)),
    ("c2", lambda s: CandidateBound(1.0, 0.1, 3.0, c2=INF)),
    ("alpha", lambda s: Terms(alpha=-1.0)),
    ("beta", lambda s: Terms(beta=INF)),
    ("purse", lambda s: Terms(purse=2.0)),
    ("max_follow_ups", lambda s: Terms(max_follow_ups=-1)),
    ("num_levels", lambda s: Terms(num_levels=1)),
    ("mean", lambda s: delays.Poisson(-1.0)),
    ("bounds", lambda s: bx.Box([[2.0], [2.0]])),
    ("bounds", lambda s: bx.Box([[2.0, 1.0], [3.0, 1.0]])),
    # --- models that do not fit
    ("model", lambda s: optimistic(s, BATCHED)),
    ("model", lambda s: optimistic(s, noise_variance=torch.tensor([0.1, 0.2]))),
    ("model", lambda s: optimistic(s, dtype=torch.float32)),
    (
        "model",
        lambda s: optimistic(s, on="grid", input_transform=Normalize(2, bounds=s.box.bounds)),
    ),
    ("model", lambda s: optimistic(s, on="grid", outcome_transform=standardize())),
    ("model", lambda s: bx.OptimisticStrategy(s.box, with_data(s, 3), 2.0)),
    ("kernel", lambda s: optimistic(s, THIRD_COLUMN)),
    ("kernel", lambda s: optimistic(s, THIRD_COLUMN, on="grid")),
    ("kernel", lambda s: optimistic(s, RBFKernel(ard_num_dims=3).double())),
    ("kernel", lambda s: optimistic(s, ScaleKernel(RBFKernel(active_dims=[0, 4])).double())),
    ("mean", lambda s: optimistic(s, mean=lambda X: X[..., :1])),
    ("mean", lambda s: optimistic(s, mean=lambda X: X @ X.new_ones(3))),
    ("mean", lambda s: optimistic(s, mean=lambda X: 0.5)),
    ("model", lambda s: phased(s, with_data(s))),
    ("model", lambda s: phased(s, bx.KernelGP(s.kernel, torch.tensor([0.1, 0.2]).double()))),
    ("model", lambda s: phased(s, bx.KernelGP(s.kernel, LAMBDA, dtype=torch.float32))),
    ("model", lambda s: phased(s, bx.KernelGP(s.kernel, LAMBDA, outcome_transform=standardize()))),
    ("rounds", lambda s: phased(s, schedule=10)),
    ("horizon", lambda s: phased(s, horizon=None)),
    ("horizon", lambda s: phased(s, schedule=rounds.DelayAware(rounds.SquareRoot(20), 3))),
    ("waits", lambda s: phased(s, waits="no")),
    ("model", lambda s: breadthwise(s, with_data(s))),
    ("model", lambda s: breadthwise(s, bx.KernelGP(s.kernel, LAMBDA, dtype=torch.float32))),
    ("rkhs_bound", lambda s: breadthwise(s, bx.KernelGP(s.kernel, LAMBDA), rkhs_bound=INF)),
    ("lengthscales of holder", lambda s: made(s, BREADTHWISE, holder=holder(1.0, 0.0))),
    ("lengthscales of holder", lambda s: made(s, BREADTHWISE, holder=holder(1.0, 1.0, 1.0))),
    ("noise_std", lambda s: StableStrategy(s.grid, s.models, 1.0, radius=0.1)),
    # --- sets of models
    ("kernels", lambda s: bx.CandidateModels([], LAMBDA)),
    ("noise_variance", lambda s: bx.CandidateModels(s.kernel, [])),
    ("means", lambda s: bx.CandidateModels(s.kernel, LAMBDA, means=[])),
    ("values", lambda s: bx.CandidateModels.noise_variances(s.kernel, [])),
    ("means", lambda s: bx.CandidateModels.prior_means(s.kernel, [], LAMBDA)),
    ("kernels", lambda s: bx.CandidateModels.additive(RBFKernel(), [], LAMBDA, dim=2)),
    *(
        ("odd one", lambda s, m=method, o=options: named(s, m, **o))
        for method in ("he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb")
        for options in (
            {"kernel": RBFKernel(ard_num_dims=3)},
            {"kernel": RBFKernel(active_dims=[2]), "on": "grid"},
            {"mean": lambda X: X.prod(dim=-1).log()},
            {"mean": lambda X: X[..., 0] / 0.0, "on": "grid"},
            {"mean": lambda X: X[..., :1]},
            {"mean": lambda X: X[..., 2], "on": "grid"},
        )
    ),
    # --- contexts, actions and data with them
    ("tasks", lambda s: on_tasks(s).ask(context=2.0)),
    ("tasks", lambda s: on_tasks(s).ask(context=-1.0)),
    ("tasks", lambda s: on_tasks(s, "he_gp_ucb").ask(context=0.5)),
    ("tasks", lambda s: on_tasks(s, context_domain=bx.Box([[0.0], [1.5]]))),
    ("tasks", lambda s: on_tasks(s, context_domain=bx.FiniteSet([[0.0], [3.0]]))),
    ("kernel", lambda s: on_tasks(s, initial=(half_tasks(s), s.Y))),
    ("actions", lambda s: made(s, "bpe").ask(actions=s.grid.points[:2])),
    ("actions", lambda s: made(s, "stable_opt").ask(actions=s.grid.points[:2])),
    ("actions", lambda s: s.on_set.ask(actions=s.grid.points[:2].mean(dim=0))),
    ("initial X", lambda s: joint(s, num_columns=2)),
    ("context of row 0 of initial X", lambda s: joint(s, num_columns=4)),
    ("initial X", lambda s: joint(s, [9.0, 0.0, 0.0])),
    ("context of row 0 of initial X", lambda s: joint(s, [0.0, 0.0, 9.0])),
    ("context of row 0 of initial X", lambda s: joint(s, [0.0, 0.0, NAN])),
    ("initial X", lambda s: made(s, "gp_ucb", initial=(s.X.to("meta"), s.Y))),
    ("initial Y", lambda s: made(s, "gp_ucb", initial=(s.grid.points[:3], s.Y.to("meta")))),
]


def _calls():
    for methods, argument, values in IMPOSSIBLE:
        for method in methods.split():
            for number, value in enumerate(values):
                options = value if isinstance(value, dict) else {argument: value}
                yield Call(
                    f"{method}: impossible {argument} {number}",
                    lambda s, m=method, o=options: made(s, m, **o),
                    argument,
                )
    for number, (argument, call) in enumerate(IMPOSSIBLE_PARTS):
        yield Call(f"impossible {argument} {number}", call, argument)


CALLS = list(_calls())
