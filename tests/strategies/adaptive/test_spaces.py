"""Every point that is asked on a box with more than bounds is one of its points."""

from functools import cache
from itertools import cycle

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext import algorithms, strategies
from botorch_ext.information_gain import greedy_information_gain
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions import Region

# Methods of one lengthscale for all columns are here for their points, not for their models.
pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.LengthscaleWarning")

NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1}


@cache
def reaction():
    return bx.Box(
        [(20, 120), (1e-3, 1.0), (1, 6), (0, 2)],
        integer=[2],
        log=[1],
        categories={3: [0, 1, 2]},
        constraints=([[0.01, 0, 0.3, 0]], [2.0]),
    )


@cache
def blend():
    rows = ([[1.0, 1, 1, 0], [-1, -1, -1, 0]], [1.0, -1.0])
    return bx.Box([(0, 1), (0, 1), (0.1, 1), (2, 9)], integer=[3], constraints=rows)


@cache
def counts():
    return bx.Box([(0, 12), (1, 9)], integer=[0, 1], constraints=([[1, 2]], [17]))


@cache
def orders():
    return bx.Box([(1e-5, 1.0), (2.0, 5.0)], log=[0])


@cache
def tree():
    return bx.Box(
        [(0, 1), (1e-5, 1.0), (2.0, 5.0), (0, 2), (4.0, 6.0)],
        log=[1],
        integer=[3],
        categories={0: [0, 1]},
        conditions={1: (0, [0]), 2: (0, [1]), 3: (0, [1]), 4: (3, [2])},
    )


SPACES = {f.__name__: f for f in (reaction, blend, counts, orders, tree)}


def is_member(name, x):
    """The definition of the points of a space, with its bounds."""
    inside = all(
        low <= v <= high for v, (low, high) in zip(x, SPACES[name]().bounds.T.tolist(), strict=True)
    )
    if name == "reaction":
        whole = x[2] == int(x[2]) and x[3] in (0.0, 1.0, 2.0)
        return inside and whole and 0.01 * x[0] + 0.3 * x[2] <= 2.0 + 1e-7
    if name == "blend":
        return inside and x[3] == int(x[3]) and abs(sum(x[:3]) - 1) < 1e-7
    if name == "counts":
        return inside and all(v == int(v) for v in x) and x[0] + 2 * x[1] <= 17
    if name == "tree":
        left = x[2] == 3.5 and x[3] == 1.0
        right = x[1] == pytest.approx(1e-5**0.5)
        last = x[0] == 1.0 and x[3] == 2.0
        return inside and (left if x[0] == 0.0 else right) and (last or x[4] == 5.0)
    return inside


def kernel(box, scale=0.4, extra=()):
    sides = [*(box.upper - box.lower).tolist(), *extra]
    rbf = RBFKernel(ard_num_dims=len(sides)).double()
    rbf.lengthscale = scale * torch.tensor(sides, dtype=torch.float64)
    return rbf


def one(method, **fixed):
    def make(box, **options):
        model = kernel(box, extra=[1.0] if "context_domain" in options else ())
        numbers = {"noise_variance": 0.01, **NUMBERS, **fixed}
        return getattr(algorithms, method)(box, model, **numbers, **options)

    return make


def several(method, **fixed):
    def make(box, **options):
        models = bx.CandidateModels([kernel(box, s) for s in (0.2, 0.4, 0.9)], 0.01)
        return getattr(algorithms, method)(box, models, **NUMBERS, **fixed, **options)

    return make


def scaled(method, **fixed):
    def make(box, **options):
        base = RBFKernel().double()
        base.lengthscale = 1.0
        models = bx.CandidateModels.lengthscales(base, [4.0, 1.0], 0.01)
        return getattr(algorithms, method)(box, models, **NUMBERS, **fixed, **options)

    return make


METHODS = {
    "gp_ucb": one("gp_ucb"),
    "igp_ucb": one("igp_ucb"),
    "ec_gp_ucb": one("ec_gp_ucb", misspecification=0.1),
    "gp_bucb": one("gp_bucb"),
    "gp_ucb_sdf": one("gp_ucb_sdf", minimum=-2.0),
    "he_gp_ucb": several("he_gp_ucb"),
    "mle_ucb": several("mle_ucb"),
    "expected_ucb": several("expected_ucb"),
    "credible_ucb": several("credible_ucb"),
    "a_gp_ucb": scaled("a_gp_ucb", lengthscale_0=4.0, growth=lambda t: t),
    "lb_gp_ucb": scaled("lb_gp_ucb"),
    "regret_balancing": one(
        "regret_balancing",
        horizon=50,
        reward_range=(-2.0, 2.0),
        misspecifications=(0.1, 0.5),
        max_information_gain=5.0,
    ),
    "integrated_ei": lambda box, **options: algorithms.integrated_ei(box, **options),
    "credible_ucb, particles": lambda box, **options: algorithms.credible_ucb(
        box, bx.Particles(8), **options
    ),
    "random": lambda box, **options: strategies.RandomSearch(box, **options),
}


def value(box, x):
    return float((3 * box.to_unit(x)).sum().sin())


def session(name, method, seed, num_asks=6, offer=None, **options):
    """Asks with every third trial pending, one abandoned, data from before and first points."""
    box = SPACES[name]()
    if method != "regret_balancing":
        X = box.sample(3, seed + 50)
        if offer is not None:
            X = torch.cat([X, X.new_full((3, 1), 0.3)], dim=-1)
        initial = X, X.new_tensor([value(box, x[: box.dim]) for x in X])
        options |= {"initial": initial, "num_initial": 2}
    strategy = METHODS[method](box, seed=seed, **options)
    for i in range(num_asks):
        trial = strategy.ask(**({} if offer is None else offer(i)))
        assert is_member(name, trial.x.tolist()), trial
        assert bool(box.contains(trial.x).all())
        if i == 3:
            strategy.abandon(trial.id)
        elif i % 3:
            strategy.tell(trial.id, value(box, trial.x))
    return strategy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "name"),
    [
        *zip(METHODS, cycle(SPACES)),
        *(("gp_bucb", name) for name in ("reaction", "blend", "counts")),
        *(("integrated_ei", "tree"), ("gp_ucb", "tree"), ("credible_ucb", "tree")),
    ],
)
def test_every_asked_point_is_one_of_the_space(method, name):
    strategy = session(name, method, seed=len(method) + len(name))
    x, _ = strategy.best()
    assert is_member(name, x.tolist())
    again = METHODS[method](SPACES[name](), **_made_with(strategy))
    again.replay(strategy.events)
    assert again.ask().x.tolist() == strategy.ask().x.tolist()


def _made_with(strategy):
    options = {"seed": strategy.seed}
    if strategy.initial is not None:
        options |= {"initial": strategy.initial, "num_initial": 2}
    return options


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("reaction", "gp_ucb"),
        ("orders", "gp_bucb"),
        ("orders", "integrated_ei"),
        ("reaction", "random"),
        ("tree", "gp_bucb"),
        ("tree", "integrated_ei"),
    ],
)
def test_with_contexts_and_with_changing_actions(name, method):
    seen = bx.Box([(-1.0, 1.0)])
    session(name, method, 1, 5, lambda i: {"context": [0.1 * i]}, context_domain=seen)
    coded = bx.Box([(0.0, 4.0)], integer=[0])
    session(name, method, 1, 4, lambda i: {"context": [float(i)]}, context_domain=seen_or(coded))
    strategy = METHODS[method](SPACES[name](), num_initial=1)
    actions = SPACES[name]().sample(5, 3)
    for _ in range(3):
        trial = strategy.ask(actions=actions)
        assert trial.x.tolist() in actions.tolist()
        strategy.tell(trial.id, 0.5)


def seen_or(coded):
    """Contexts of data from before are 0.3, which is no whole number."""
    return bx.ContextSpace(dim=coded.dim)


def test_contexts_of_a_box_with_more_than_bounds():
    coded = bx.Box([(0.0, 4.0)], integer=[0])
    strategy = METHODS["gp_ucb"](orders(), context_domain=coded)
    assert is_member("orders", strategy.ask(context=[3.0]).x.tolist())
    with pytest.raises(ValueError, match=r"context must have a whole number in column 0"):
        strategy.ask(context=[2.5])


def test_points_outside_are_refused():
    box = counts()
    strategy = METHODS["gp_ucb"](box)
    with pytest.raises(ValueError, match=r"actions must have a whole number in column 0"):
        strategy.ask(actions=[[2.5, 3.0]])
    with pytest.raises(ValueError, match=r"initial X must satisfy constraint 0"):
        METHODS["gp_ucb"](box, initial=(torch.tensor([[9.0, 9.0]]).double(), [1.0]))
    trial = strategy.ask()
    other = METHODS["gp_ucb"](bx.Box([(0, 12), (1, 9)], integer=[0, 1]))
    other.replay(strategy.events)
    trial.x[0] = 0.5
    with pytest.raises(ValueError, match=r"x of trial 0 must have a whole number in column 0"):
        METHODS["gp_ucb"](box).replay([strategies.Asked(trial)])


@pytest.mark.parametrize("method", ["gp_bucb", "integrated_ei", "random"])
def test_whatever_inactive_columns_have_is_replaced(method):
    box, nan = tree(), float("nan")
    given = [[0.0, 0.1, nan, -3.0, nan], [1.0, 9.0, 3.0, 1.0, 0.0]]
    replaced = [[0.0, 0.1, 3.5, 1.0, 5.0], [1.0, 1e-5**0.5, 3.0, 1.0, 5.0]]
    made = [
        METHODS[method](box, initial=(torch.tensor(X, dtype=torch.float64), [0.3, 0.1]))
        for X in (given, replaced)
    ]
    for strategy, X in zip(made, (given, replaced), strict=True):
        for x, expected in zip(strategy.initial[0].tolist(), replaced, strict=True):
            assert x == pytest.approx(expected)
        assert strategy.attach(X[1], 0.2).x.tolist() == pytest.approx(replaced[1])
        actions = strategy.ask(actions=X).x.tolist()
        assert any(actions == pytest.approx(x) for x in replaced)
    asked = [strategy.ask().x.tolist() for strategy in made]
    assert asked[0] == pytest.approx(asked[1])


def test_inactive_columns_of_contexts_are_replaced():
    seen = bx.Box([(0, 1), (2.0, 4.0)], integer=[0], conditions={1: (0, [1])})
    strategy = METHODS["integrated_ei"](orders(), context_domain=seen)
    assert strategy.ask(context=[0.0, 9.0]).context.tolist() == [0.0, 3.0]
    assert strategy.ask(context=[1.0, 2.5]).context.tolist() == [1.0, 2.5]


def test_bases_of_a_master_live_on_the_same_space():
    bases = [METHODS["gp_ucb"](box) for box in (counts(), bx.Box(counts().bounds))]
    with pytest.raises(ValueError, match="domain of base 1 must be that of base 0"):
        bx.ContextwiseStrategy(bases, lambda context: 0, context_domain=1)


# --- methods that know plain boxes only -----------------------------------------------------------


def _phased(method, **more):
    numbers = {**NUMBERS, "noise_variance": 0.01, "horizon": 20, **more}
    return lambda box: getattr(algorithms, method)(box, kernel(box), **numbers)


REFUSE = {
    "stable_opt": lambda box: one("stable_opt", radius=0.1)(box),
    "he_stable_opt": lambda box: several("he_stable_opt", radius=0.1)(box),
    "phased_uncertainty_sampling": _phased("phased_uncertainty_sampling"),
    "bpe": _phased("bpe"),
    "bpe_delay": _phased("bpe_delay", delay=2),
    "breadthwise_exploration": _phased("breadthwise_exploration"),
    "plan": lambda box: bx.plan(box, KernelGP(kernel(box), 0.01), 3),
    "greedy_information_gain": lambda box: greedy_information_gain(kernel(box), box, 3, 0.01),
}


@pytest.mark.parametrize("name", ["counts", "orders", "tree"])
@pytest.mark.parametrize("method", REFUSE)
def test_methods_that_know_plain_boxes_only_say_so(method, name):
    REFUSE[method](bx.Box(SPACES[name]().bounds, dtype=torch.float64))
    with pytest.raises(
        ValueError, match=r"domain must be a Box with nothing but bounds.*FiniteSet"
    ):
        REFUSE[method](SPACES[name]())


def test_regions_know_plain_boxes_only():
    with pytest.raises(ValueError, match="box must be a Box with nothing but bounds for a Region"):
        Region(counts())
