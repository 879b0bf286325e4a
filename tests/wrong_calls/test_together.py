"""Arguments that do not fit together, odd calls that are right, and messages that stay short."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel
from scipy import stats

import botorch_ext as bx
from botorch_ext import algorithms, delays, rounds, widths
from botorch_ext.acquisition import ExpectedUCB, OptimisticModelUCB
from botorch_ext.analysis import fitted_slope
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.strategies import RandomSearch, RegretBalancing
from tests.helpers import drawn, rbf
from tests.wrong_calls.scene import LAMBDA, Scene, scene

INF, NAN = math.inf, math.nan
GROWING = bx.CandidateModels.growing(RBFKernel(), 1.0, LAMBDA, dim=2)
PARTICLES = {"models": bx.Particles(8), "rkhs_bound": None, "noise_std": None}
CENSORED = {"pending": "censor", "minimum": 0.0}
UNKNOWN = {"width": None, "rkhs_bound": None, "noise_std": None}
BY_PAIRS = ActionContextKernel(RBFKernel(), RBFKernel(), 2)

#: An algorithm, the argument that is named, and arguments that do not fit together.
TOGETHER = [
    ("gp_ucb", "minimum", {"minimum": -2.5}),
    ("gp_ucb", "minimum", {"pending": "censor"}),
    ("gp_ucb", "minimum", {"pending": "ignore", "minimum": 0.0}),
    ("gp_ucb", "inflate", {"pending": "ignore", "inflate": True}),
    ("gp_ucb", "inflate", {**CENSORED, "inflate": True}),
    ("gp_ucb", "timeout", {"timeout": 3}),
    ("gp_ucb", "timeout", {**CENSORED, "timeout": -1}),
    ("gp_ucb", "noise_variance", {"noise_variance": None}),
    ("gp_ucb", "rkhs_bound", {"rkhs_bound": None}),
    ("gp_ucb", "noise_std", {"noise_std": None}),
    ("gp_ucb_sdf", "pending", {"pending": "hallucinate"}),
    ("gp_bucb", "pending", {"pending": "ignore"}),
    ("insured_ucb", "pending", {"pending": "ignore"}),
    ("he_gp_ucb", "noise_std", {"noise_std": None, "width": 2.0}),
    ("he_gp_ucb", "a", {"a": 3.0}),
    ("he_gp_ucb", "width", {"width": [1.0, 2.0, 3.0]}),
    ("he_gp_ucb", "width", {"models": GROWING, "width": [0.5]}),
    ("a_gp_ucb", "growth(1)", {"growth": lambda t: 0.0}),
    ("a_gp_ucb", "growth(1)", {"growth": lambda t: INF}),
    ("a_gp_ucb", "models", {"models": GROWING}),
    ("credible_ucb", "rkhs_bound", {**PARTICLES, "rkhs_bound": 1.0}),
    ("credible_ucb", "pending", {**PARTICLES, "pending": "ignore"}),
    ("credible_ucb", "width", {**PARTICLES, "width": widths.Constant(2.0)}),
    ("safe_ucb", "noise_variance", {"noise_variance": 0.1}),
    ("safe_ucb", "model", {"models": GROWING}),
    ("safe_ucb", "horizon", {"certificates": True}),
    ("safe_ucb", "horizon", {"horizon": 5}),
    ("safe_ucb", "num_initial", {"certificates": True, "horizon": 3, "num_initial": 5}),
    ("insured_ucb", "terms", {"terms": {"alpha": 1}}),
    ("bpe_delay", "delay", {"delay": stats.pareto(0.9)}),
    ("bpe_delay", "delay", {"delay": stats.norm(50, 1)}),
    ("bpe_delay", "delta", {"delta": 0.0, "width": 1.0, "delay": delays.Poisson(2)}),
    ("certified_bucb", "rkhs_bound and noise_std", UNKNOWN),
    ("certified_bucb", "horizon", {"num_initial": 30}),
    ("breadthwise_exploration", "kernel", {"kernel": PeriodicKernel().double()}),
    ("breadthwise_exploration", "kernel", {"kernel": rbf(1.0, 1.0, 1.0)}),
    ("breadthwise_exploration", "rkhs_bound", {"rkhs_bound": None, "width": 1.0}),
    ("breadthwise_exploration", "constant of holder", {"holder": (0.0, 1.0)}),
    ("breadthwise_exploration", "exponent of holder", {"holder": (1.0, 2.0)}),
    ("breadthwise_exploration", "holder", {"holder": (1.0, 1.0, 1.0)}),
    ("breadthwise_exploration", "mean", {"mean": lambda X: X[..., 0]}),
    (
        "regret_balancing",
        "max_information_gain",
        {"context_domain": 2, "max_information_gain": None},
    ),
    ("regret_balancing", "misspecifications", {"misspecifications": []}),
    ("regret_balancing", "context_domain", {"kernel": BY_PAIRS}),
    ("bpe", "context_domain", {"context_domain": 2}),
    ("gp_ucb", "context_domain", {"context_domain": bx.Box([[0.0], [1.0]], dtype=torch.float32)}),
    ("gp_ucb", "noise_var", {"noise_var": 0.1}),
]


def balanced(*bounds):
    return lambda s: RegretBalancing([RandomSearch(s.grid)] * 2, bounds)


def optimistic(kernel=None, **options):
    def make(s):
        noise = options.pop("noise_variance", LAMBDA)
        return bx.OptimisticStrategy(s.box, bx.KernelGP(kernel or s.kernel, noise, **options), 2.0)

    return make


def standardize():
    outcome_transform = Standardize(1)
    outcome_transform(torch.tensor([[1.0], [2.0]]).double())
    return outcome_transform.eval()


def phased(**given):
    def make(s):
        known = {"model": s.model(), "width": 1.0, "rounds": rounds.Doubling(), "horizon": 9}
        return bx.PhasedElimination(s.grid, **{**known, **given})

    return make


def named(method, kernel=None, mean=None):
    """A method over two models, of which the second is named "odd one"."""

    def make(s):
        kernels = [RBFKernel(), RBFKernel() if kernel is None else kernel]
        models = bx.CandidateModels(kernels, LAMBDA, [None, mean], names=["fits", "odd one"])
        return getattr(algorithms, method)(s.box, models, noise_std=0.1, rkhs_bound=1.0)

    return make


def on_tasks(s, context_domain=1):
    kernel = ActionContextKernel(RBFKernel(), TaskKernel(torch.eye(2).double()), 2)
    return algorithms.gp_ucb(
        s.box, kernel, noise_variance=0.1, width=2.0, context_domain=context_domain
    )


#: The name that is said, and the call.
PARTS = [
    ("bound of base 1", balanced(lambda n: 0.1 * n, lambda n: 5.0 - n)),
    ("bound of base 1", balanced(lambda n: 0.1 * n, lambda n: INF)),
    ("bound of base 1", balanced(lambda n: 0.1 * n, lambda n: NAN if n == 3 else 1.0)),
    ("bounds", balanced()),
    ("bounds", balanced(lambda n: 0.1 * n, 3.0)),
    ("model", optimistic(RBFKernel(batch_shape=torch.Size([3])).double())),
    ("model", optimistic(noise_variance=torch.tensor([0.1, 0.2]))),
    ("model", optimistic(dtype=torch.float32)),
    ("kernel", optimistic(RBFKernel(active_dims=[2]).double())),
    ("kernel", optimistic(ScaleKernel(RBFKernel(active_dims=[0, 4])).double())),
    ("mean", optimistic(mean=lambda X: X[..., :1])),
    ("mean", optimistic(mean=lambda X: 0.5)),
    ("input_transform", lambda s: s.model(input_transform=Normalize)),
    ("model", lambda s: phased(model=s.gp)(s)),
    ("model", lambda s: phased(model=s.model(dtype=torch.float32))(s)),
    ("model", lambda s: phased(model=s.model(outcome_transform=standardize()))(s)),
    ("horizon", phased(horizon=None)),
    ("horizon", phased(rounds=rounds.DelayAware(rounds.SquareRoot(20), 3))),
    ("noise_std", lambda s: bx.StableStrategy(s.grid, s.candidates(), 1.0, radius=0.1)),
    ("means", lambda s: bx.CandidateModels.prior_means(s.kernel, [], LAMBDA)),
    ("kernels", lambda s: bx.CandidateModels.additive(RBFKernel(), [], LAMBDA, dim=2)),
    ("odd one", named("he_gp_ucb", RBFKernel(ard_num_dims=3))),
    ("odd one", named("mle_ucb", mean=lambda X: X[..., :1])),
    ("odd one", named("credible_ucb", mean=lambda X: X[..., 0] / 0.0)),
    ("tasks", lambda s: on_tasks(s).ask(context=2.0)),
    ("tasks", lambda s: on_tasks(s, bx.Box([[0.0], [1.5]]))),
    ("actions", lambda s: s.strategy.ask(actions=[[9.0, 9.0]])),
    ("context", lambda s: s.seeing.ask()),
    ("context", lambda s: s.strategy.ask(context=[0.5])),
    ("lower and upper", lambda s: bx.Box(lower=[0.0, 1.0])),
    ("bounds", lambda s: bx.Box([[-5, 10], [0, 15]])),  # rows or pairs?
    ("dtype", lambda s: bx.Box([2.0, -3.0], [5.0, -1.5])),
    ("problem", lambda s: bx.simulate(s.asked(bx.Box([[1.0], [2.0]]), rbf(0.5)), s.problem, 3)),
    ("contexts", lambda s: bx.run(s.seeing, lambda x, z: 0.0, 9, contexts=[[0.5]], progress=False)),
    ("contexts", lambda s: bx.run(s.fresh(), lambda x: 0.0, 2, contexts=[[0.5]], progress=False)),
]


def refusal(call) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError)) as error:
            call()
    return str(error.value)


@pytest.mark.parametrize(("method", "argument", "given"), TOGETHER)
def test_what_does_not_fit_together_is_refused_by_name(method, argument, given):
    call = getattr(algorithms, method)
    said = refusal(lambda: call(**scene().arguments(method) | given))
    assert re.search(rf"(?<!\w){re.escape(argument)}(?!\w)", said), said


@pytest.mark.parametrize(("argument", "call"), PARTS)
def test_parts_that_do_not_fit_are_refused_by_name(argument, call):
    said = refusal(lambda: call(scene()))
    assert re.search(rf"(?<!\w){re.escape(argument)}(?!\w)", said), said


# --- odd calls that are right ---------------------------------------------------------------------

ROWS = [[3.0, -2.0], [4.0, -2.5], [2.5, -1.75]]
ARRAY = np.array(ROWS)
FORMS = {
    "a list": ROWS,
    "a tuple": tuple(map(tuple, ROWS)),
    "an array": ARRAY,
    "an array that is not in order": ARRAY[::-1].copy()[::-1],
    "an array of the other byte order": ARRAY.astype(">f8"),
    "a frame": pd.DataFrame(ARRAY),
    "a list of arrays": list(ARRAY),
    "a list of tensors": list(torch.tensor(ROWS, dtype=torch.float64)),
}


def added(s, X):
    model = s.model()
    model.add(X, s.Y)
    return model


TAKES = {
    "Box.contains": lambda s, X: s.box.contains(X),
    "Box.to_unit": lambda s, X: s.box.to_unit(X),
    "FiniteSet": lambda s, X: bx.FiniteSet(X).points,
    "KernelGP.add": lambda s, X: added(s, X).posterior(s.X).mean,
    "KernelGP.posterior": lambda s, X: s.gp.posterior(X).mean,
    "CandidateModels.mean_and_std": lambda s, X: torch.stack(s.models.mean_and_std(X)),
    "Strategy.means_at": lambda s, X: s.strategy.means_at(X),
    "initial": lambda s, X: algorithms.gp_ucb(
        s.box, s.kernel, noise_variance=LAMBDA, width=2.0, initial=(X, [0.1, 0.2, 0.3])
    ).posterior.mean_at(s.X),
    "plan": lambda s, X: bx.plan(s.grid, s.gp, 2, X_pending=X).X,
}


@pytest.mark.parametrize("where", TAKES)
def test_points_are_taken_as_people_write_them(where):
    expected = TAKES[where](scene(), torch.tensor(ROWS, dtype=torch.float64))
    for form, X in FORMS.items():
        torch.testing.assert_close(TAKES[where](scene(), X), expected, msg=form)


@pytest.mark.parametrize(
    "value", [np.float64(0.5), np.array([0.5]), torch.tensor(0.5), torch.tensor([0.5]).double()]
)
def test_numbers_are_taken_as_people_write_them(value):
    scene = Scene()
    scene.strategy.tell(np.int64(3), value)
    scene.strategy.correct(torch.tensor(2), value)
    assert [scene.strategy.history.values[id] for id in (2, 3)] == [0.5, 0.5]
    assert widths.Constant(value) == widths.Constant(0.5)
    given = {"noise_variance": value, "rkhs_bound": value, "noise_std": value, "seed": np.int64(-3)}
    made = [algorithms.gp_ucb(scene.grid, scene.kernel, **each) for each in (given, dict(given))]
    assert torch.equal(made[0].ask().x, made[1].ask().x)


MANY = 999
NOTHING = [0.0] * MANY


def of_a_model() -> bx.KernelGP:
    model = bx.KernelGP(rbf(0.5), 0.01)
    model.add(drawn(5, 2), drawn(5))
    return model


LONG = [
    lambda: bx.problems.tabulated(bx.FiniteSet(drawn(1000, 1)), NOTHING),
    lambda: bx.problems.tabulated(bx.FiniteSet(drawn(MANY, 1)), torch.full((MANY,), torch.nan)),
    lambda: bx.CandidateModels.lengthscales(rbf(0.5), NOTHING, 0.01),
    lambda: bx.Box([(0, 1)], categories={0: NOTHING}),
    lambda: bx.Box([(0, 1)], categories={0: range(MANY)}),
    lambda: bx.Box(torch.full((2, MANY), torch.nan)),
    lambda: bx.Box(torch.zeros(2, MANY)),
    lambda: of_a_model().set_targets([9] * MANY, NOTHING),
    lambda: fitted_slope([1.0] * MANY, drawn(3, MANY)),
    lambda: ExpectedUCB(of_a_model(), width=2.0, probabilities=torch.ones(MANY).double()),
]


@pytest.mark.parametrize("call", LONG)
def test_of_many_values_a_few_are_shown_and_their_number(call):
    with pytest.raises(ValueError, match=str(MANY)) as error:
        call()
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("method", [OptimisticModelUCB, ExpectedUCB])
def test_a_model_list_is_refused_with_what_to_give_in_its_place(method):
    X, Y = drawn(5, 2), drawn(5, 1, seed=1)
    together = ModelListGP(SingleTaskGP(X, Y), SingleTaskGP(X, 2 * Y))
    more = {"probabilities": [0.5, 0.5]} if method is ExpectedUCB else {}
    for given in (together, [together, together]):
        with pytest.raises(ValueError, match=r"models must .* ModelListGP .*\[\*model\.models\]"):
            method(given, width=2.0, **more)
    with pytest.raises(ValueError, match=r"models must .* posterior_transform"):
        method(SingleTaskGP(X, torch.cat([Y, Y], dim=-1)), width=2.0)
    method([*together.models], width=2.0, **more)  # the cure
