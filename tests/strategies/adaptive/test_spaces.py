"""Every point that is asked on a box with more than bounds is one of its points."""

import pytest
import torch

import botorch_ext as bx
from botorch_ext import algorithms, strategies
from botorch_ext.information_gain import greedy_information_gain
from botorch_ext.regions import Region
from tests.helpers import rbf

# Methods of one lengthscale for all columns are here for their points, not for their models.
pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1}
SPACES = {
    "reaction": bx.Box(
        [(20, 120), (1e-3, 1.0), (1, 6), (0, 2)],
        integer=[2],
        log=[1],
        categories={3: [0, 1, 2]},
        constraints=([[0.01, 0, 0.3, 0]], [2.0]),
    ),
    "blend": bx.Box(
        [(0, 1), (0, 1), (0.1, 1), (2, 9)],
        integer=[3],
        constraints=([[1.0, 1, 1, 0], [-1, -1, -1, 0]], [1.0, -1.0]),
    ),
    "counts": bx.Box([(0, 12), (1, 9)], integer=[0, 1], constraints=([[1, 2]], [17])),
    "tree": bx.Box(
        [(0, 1), (1e-5, 1.0), (2.0, 5.0), (0, 2), (4.0, 6.0)],
        log=[1],
        integer=[3],
        categories={0: [0, 1]},
        conditions={1: (0, [0]), 2: (0, [1]), 3: (0, [1]), 4: (3, [2])},
    ),
}


def is_member(name, x):
    """The definition of the points of a space, with its bounds."""
    sides = SPACES[name].bounds.T.tolist()
    inside = all(low <= v <= high for v, (low, high) in zip(x, sides, strict=True))
    if name == "reaction":
        whole = x[2] == int(x[2]) and x[3] in (0.0, 1.0, 2.0)
        return inside and whole and 0.01 * x[0] + 0.3 * x[2] <= 2.0 + 1e-7
    if name == "blend":
        return inside and x[3] == int(x[3]) and abs(sum(x[:3]) - 1) < 1e-7
    if name == "counts":
        return inside and all(v == int(v) for v in x) and x[0] + 2 * x[1] <= 17
    left = x[2] == 3.5 and x[3] == 1.0
    right = x[1] == pytest.approx(1e-5**0.5)
    last = x[0] == 1.0 and x[3] == 2.0
    return inside and (left if x[0] == 0.0 else right) and (last or x[4] == 5.0)


def make(method, box, **options):
    sides = [*(box.upper - box.lower).tolist(), *([1.0] if "context_domain" in options else [])]
    kernels = [rbf(*(scale * side for side in sides)) for scale in (0.2, 0.4, 0.9)]
    function = getattr(algorithms, method)
    if method == "integrated_ei":
        return function(box, bx.Particles(8), **options)
    if method in ("he_gp_ucb", "expected_ucb"):
        return function(box, bx.CandidateModels(kernels, 0.01), **NUMBERS, **options)
    if method == "lb_gp_ucb":
        models = bx.CandidateModels.lengthscales(rbf(1.0), [4.0, 1.0], 0.01)
        return function(box, models, **NUMBERS, **options)
    numbers = {"width": 1.0} if method == "thompson_sampling" else NUMBERS
    return function(box, kernels[1], noise_variance=0.01, **numbers, **options)


def value(box, x):
    return float((3 * box.to_unit(x)).sum().sin())


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("gp_ucb", "reaction"),
        ("he_gp_ucb", "counts"),
        ("insured_ucb", "tree"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("gp_bucb", "tree"),
                ("thompson_sampling", "blend"),
                ("expected_ucb", "blend"),
                ("lb_gp_ucb", "reaction"),
                ("integrated_ei", "tree"),
                ("integrated_ei", "reaction"),
                ("insured_ucb", "counts"),
            ]
        ),
    ],
)
def test_every_asked_point_is_one_of_the_space(method, name):
    """With pending and abandoned trials, data from before and first points."""
    box = SPACES[name]
    X = box.sample(3, 50)
    initial = X, X.new_tensor([value(box, x) for x in X])
    strategy = make(method, box, seed=len(method), initial=initial, num_initial=2)
    for i in range(5):
        trial = strategy.ask()
        assert is_member(name, trial.x.tolist()), trial
        if i == 3:
            strategy.abandon(trial.id)
        elif i % 3:
            strategy.tell(trial.id, value(box, trial.x))
    assert is_member(name, strategy.best()[0].tolist())


@pytest.mark.parametrize(("name", "method"), [("reaction", "gp_ucb"), ("tree", "integrated_ei")])
def test_with_contexts_and_with_changing_actions(name, method):
    box = SPACES[name]
    coded = bx.Box([(0.0, 4.0)], integer=[0])
    strategy = make(method, box, num_initial=1, context_domain=coded)
    for i in range(4):
        trial = strategy.ask(context=[float(i)])
        assert is_member(name, trial.x.tolist())
        strategy.tell(trial.id, value(box, trial.x))
    with pytest.raises(ValueError, match="context"):
        strategy.ask(context=[2.5])
    actions = box.sample(5, 3)
    assert strategy.ask(context=[1.0], actions=actions).x.tolist() in actions.tolist()


def test_points_outside_are_refused():
    box = SPACES["counts"]
    strategy = make("gp_ucb", box)
    with pytest.raises(ValueError, match="actions"):
        strategy.ask(actions=[[2.5, 3.0]])
    with pytest.raises(ValueError, match="initial"):
        make("gp_ucb", box, initial=(torch.tensor([[9.0, 9.0]]).double(), [1.0]))
    trial = strategy.clone().ask()
    trial.x[0] = 0.5
    with pytest.raises(ValueError, match="trial 0"):
        strategy.replay([strategies.Asked(trial)])


@pytest.mark.parametrize("method", ["gp_bucb", "integrated_ei"])
def test_whatever_inactive_columns_have_is_replaced(method):
    box, nan = SPACES["tree"], float("nan")
    given = [[0.0, 0.1, nan, -3.0, nan], [1.0, 9.0, 3.0, 1.0, 0.0]]
    replaced = [[0.0, 0.1, 3.5, 1.0, 5.0], [1.0, 1e-5**0.5, 3.0, 1.0, 5.0]]
    X = torch.tensor(given, dtype=torch.float64)
    strategy = make(method, box, initial=(X, [0.3, 0.1]))
    for x, expected in zip(strategy.initial[0].tolist(), replaced, strict=True):
        assert x == pytest.approx(expected)
    assert strategy.attach(X[1], 0.2).x.tolist() == pytest.approx(replaced[1])
    asked = strategy.ask(actions=X).x.tolist()
    assert any(asked == pytest.approx(x) for x in replaced)
    seen = bx.Box([(0, 1), (2.0, 4.0)], integer=[0], conditions={1: (0, [1])})
    strategy = strategies.RandomSearch(SPACES["counts"], context_domain=seen)
    assert strategy.ask(context=[0.0, 9.0]).context.tolist() == [0.0, 3.0]
    assert strategy.ask(context=[1.0, 2.5]).context.tolist() == [1.0, 2.5]


# --- methods that know plain boxes only -----------------------------------------------------------


def _one(method, **more):
    numbers = {**NUMBERS, "noise_variance": 0.01, **more}
    return lambda box: getattr(algorithms, method)(box, rbf(1.0), **numbers)


REFUSE = {
    "stable_opt": _one("stable_opt", radius=0.1),
    "phased_uncertainty_sampling": _one("phased_uncertainty_sampling", horizon=20),
    "bpe": _one("bpe", horizon=20),
    "bpe_delay": _one("bpe_delay", horizon=20, delay=2),
    "breadthwise_exploration": _one("breadthwise_exploration", horizon=20),
    "plan": lambda box: bx.plan(box, bx.KernelGP(rbf(1.0), 0.01), 3),
    "greedy_information_gain": lambda box: greedy_information_gain(rbf(1.0), box, 3, 0.01),
    "Region": Region,
}


@pytest.mark.parametrize("method", REFUSE)
def test_methods_that_know_plain_boxes_only_say_so(method):
    if method != "Region":
        REFUSE[method](bx.Box(SPACES["counts"].bounds, dtype=torch.float64))
    for name in ("counts", "tree"):
        with pytest.raises(ValueError, match=r"nothing but bounds"):
            REFUSE[method](SPACES[name])
