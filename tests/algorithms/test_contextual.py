"""CGP-UCB against its definition in dense algebra, and what it makes of its arguments."""

import math

import pytest
import torch
from gpytorch.kernels import IndexKernel, LinearKernel
from torch.testing import assert_close

from botorch_ext import Box, FiniteSet
from botorch_ext.algorithms import cgp_ucb, ec_gp_ucb, gp_ucb
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import tolerance
from tests.kernel_functions.kernels import spread, stationary
from tests.kernels.joint import COVARIANCE
from tests.oracles.posterior import dense_information_gain, dense_posterior, self_normalized_width

TOL = tolerance(torch.float64)
LAMBDA = 0.02
BOX = Box([[2.0, -3.0], [5.0, -1.5]])
SET = FiniteSet(BOX.sample(40, seed=3))
WIDTH = {"rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.05}
COMMON = {"noise_variance": LAMBDA, "seed": 4, **WIDTH}


def rbf(lengthscale=0.8, **kwargs):
    return stationary(math.inf, lengthscale, **kwargs)


TASKS = {"action_kernel": rbf(), "context_kernel": TaskKernel(COVARIANCE)}
REALS = {"action_kernel": rbf(), "context_kernel": stationary(1.5, 1.2)}


def f(x, z):
    return float(torch.sin(2 * x[0]) * torch.cos(x[1] + z[0]) + 0.2 * z.sum())


def contexts(num, tasks):
    generator = torch.Generator().manual_seed(7)
    if tasks:
        return torch.randint(4, (num, 1), generator=generator).double()
    return -4 + 1.5 * torch.rand(num, 2, generator=generator, dtype=torch.float64)


def play(strategy, num, tasks=False, delay=0):
    """Asks and tells, ``delay`` asks late."""
    trials = []
    for z in contexts(num, tasks):
        trials.append(strategy.ask(context=z))
        if len(trials) > delay:
            trial = trials[-1 - delay]
            strategy.tell(trial.id, f(trial.x, trial.context))
    return trials


@pytest.mark.parametrize("misspecification", [0.0, 0.3])
@pytest.mark.parametrize("combination", ["product", "sum"])
@pytest.mark.parametrize("pair", [TASKS, REALS], ids=["tasks", "reals"])
def test_choices_are_those_of_the_definition(pair, combination, misspecification, device):
    strategy = cgp_ucb(
        FiniteSet(SET.points, device=device),
        **pair,
        combination=combination,
        misspecification=misspecification,
        **COMMON,
    )
    kernel = ActionContextKernel(*pair.values(), 2, combination=combination)
    X, y = torch.zeros(0, 3).double(), []
    for t, z in enumerate(contexts(12, pair is TASKS), start=1):
        trial = strategy.ask(context=z.to(device))
        joint = torch.cat([SET.points, z.expand(40, -1)], dim=-1)
        mean, std, gain = joint.new_zeros(40), kernel(joint, diag=True).detach().sqrt(), 0.0
        if y:
            mean, covariance = dense_posterior(kernel, X, X.new_tensor(y), joint, LAMBDA)
            std = covariance.diagonal().sqrt()
            gain = dense_information_gain(kernel, X, LAMBDA)
        width = self_normalized_width(1.5, 0.1, 0.05, LAMBDA, gain)
        width += misspecification * math.sqrt(t) / math.sqrt(LAMBDA)
        bounds = mean + width * std
        index = trial.info["index"]
        assert torch.equal(trial.x.cpu(), SET.points[index])
        assert_close(bounds[index], bounds.max(), **TOL)
        for name, value in (("mean", mean[index]), ("std", std[index]), ("width", width)):
            assert trial.info[name] == pytest.approx(float(value), rel=1e-7)
        y.append(f(trial.x.cpu(), z))
        strategy.tell(trial.id, y[-1])
        X = torch.cat([X.new_zeros(0, joint.shape[1]) if t == 1 else X, joint[index][None]])


@pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
def test_a_pair_of_kernels_is_the_joint_kernel(domain):
    joint = ActionContextKernel(rbf(), stationary(1.5, 1.2), 2, 2, "sum")
    options = {**COMMON, "num_initial": 2, "pending": "hallucinate", "inflate": True}
    strategies = [
        cgp_ucb(domain, **REALS, combination="sum", **options),
        cgp_ucb(domain, joint, **options),
        gp_ucb(domain, joint, context_domain=2, **options),
    ]
    played = [play(strategy, 8, delay=2) for strategy in strategies]
    for trials in zip(*played, strict=True):
        assert len({tuple(trial.x.tolist()) for trial in trials}) == 1
        assert trials[0].context.tolist() == trials[2].context.tolist()
    replayed = cgp_ucb(domain, joint, **options)
    replayed.replay(strategies[1].events)
    z = contexts(9, False)[-1]
    assert torch.equal(replayed.ask(context=z).x, strategies[1].ask(context=z).x)


def test_a_study_in_many_columns_can_be_replayed():
    """Where distances come from matrix products."""
    features = torch.rand(600, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = [
        cgp_ucb(FiniteSet(features), action_kernel=rbf(), context_kernel=TaskKernel(COVARIANCE),
                **COMMON)
        for _ in range(2)
    ]  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    for step in range(60):
        among = features[torch.randperm(600, generator=generator)[:400]]
        trial = made[0].ask(context=float(step % 4), actions=among)
        made[0].tell(trial.id, f(trial.x, trial.context))
    made[1].replay(made[0].events)
    first, second = (strategy.ask(context=1.0, actions=among) for strategy in made)
    assert first.info == second.info
    assert torch.equal(first.x, second.x)


def test_a_misspecification_enlarges_the_width():
    joint = ActionContextKernel(rbf(), TaskKernel(COVARIANCE), 2)
    options = {**COMMON, "misspecification": 0.2}
    first, second = (
        cgp_ucb(SET, joint, **options),
        ec_gp_ucb(SET, joint, context_domain=ContextSpace(dim=1, tasks=((0, 4),)), **options),
    )
    assert repr(first.width) == repr(second.width)
    a, b = play(first, 6, tasks=True), play(second, 6, tasks=True)
    assert [trial.info for trial in a] == [trial.info for trial in b]
    own = cgp_ucb(SET, joint, noise_variance=LAMBDA, width=2.0)
    assert float(own.width(3, own.posterior)) == 2.0


@pytest.mark.parametrize("context_kernel", [stationary(1.5, 1.2), TaskKernel(COVARIANCE)])
def test_a_constant_context_is_none(context_kernel):
    """With a product kernel and k_Z(z, z) = 1."""
    pair = {"action_kernel": rbf(), "context_kernel": context_kernel}
    contextual, plain = cgp_ucb(SET, **pair, **COMMON), gp_ucb(SET, rbf(), **COMMON)
    for _ in range(15):
        trial, other = contextual.ask(context=0.0), plain.ask()
        assert trial.info["index"] == other.info["index"]
        assert trial.info["std"] == pytest.approx(other.info["std"], rel=1e-9)
        for strategy, asked in ((contextual, trial), (plain, other)):
            strategy.tell(asked.id, f(asked.x, torch.zeros(1)))


SPACES = {
    "tasks": (TASKS, None, 1, ((0, 4),)),
    "learned": ({"action_kernel": rbf(), "context_kernel": IndexKernel(3)}, None, 1, ((0, 3),)),
    "tasks on the right column": (
        {"kernel": rbf(active_dims=(0, 1)) * TaskKernel(COVARIANCE, active_dims=(3,))},
        None,
        2,
        ((1, 4),),
    ),
    "one for each column": (
        {"kernel": rbf(spread(0.5, 1.0, 1, 5))},
        None,
        3,
        (),
    ),
    "unknown": (REALS, None, None, ()),
    "number": (REALS, 2, 2, ()),
    "number and tasks": (TASKS, 1, 1, ((0, 4),)),
    "space and tasks": (TASKS, ContextSpace(), None, ((0, 4),)),
    "fewer tasks": (TASKS, ContextSpace(tasks=((0, 2),)), None, ((0, 2),)),
    "set and tasks": (TASKS, FiniteSet([[0.0], [3.0]]), 1, ((0, 4),)),
}


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.KernelBoundWarning")
@pytest.mark.parametrize("name", SPACES)
def test_the_kernel_tells_what_the_user_does_not(name):
    kernels, given, dim, tasks = SPACES[name]
    space = cgp_ucb(SET, **kernels, context_domain=given, **COMMON).context_space
    assert (space.dim, space.tasks) == (dim, tasks)
    assert space.domain is (given if isinstance(given, FiniteSet) else None)


@pytest.mark.parametrize("context", [[4.0], [-1.0], [0.5], [0.0, 1.0], [math.nan], None])
@pytest.mark.parametrize("context_domain", [None, 1])
def test_what_is_no_task_is_refused(context, context_domain):
    strategy = cgp_ucb(SET, **TASKS, context_domain=context_domain, num_initial=1, **COMMON)
    for _ in range(2):
        with pytest.raises(ValueError, match="context must"):
            strategy.ask(context=context)
    assert strategy.events == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "kernel, or action_kernel and context_kernel, must be given, got None"),
        ({"action_kernel": rbf()}, r"must be given, got \['action_kernel'\]"),
        ({"context_kernel": rbf()}, r"must be given, got \['context_kernel'\]"),
        (
            {"kernel": rbf(), "action_kernel": rbf()},
            r"kernel must be None with a pair",
        ),
        ({"kernel": rbf(), **REALS}, r"got it and \['action_kernel', 'context_kernel'\]"),
        ({"kernel": rbf(), "combination": "sum"}, "combination must not be given with a joint"),
        ({**REALS, "combination": "mean"}, 'combination must be "product" or "sum", got \'mean\''),
        ({"kernel": rbf(spread(1, 2, 1, 2))}, "kernel must have columns for contexts after the 2"),
        ({**REALS, "context_domain": 0}, "context_domain must be at least 1, got 0"),
        ({**TASKS, "context_domain": 2}, "kernel must take points of dimension 4"),
        ({**REALS, "misspecification": -0.1}, "misspecification must be non-negative"),
        ({**REALS, "misspecification": None}, "misspecification must be one number, got None"),
        ({**REALS, "rkhs_bound": None}, "rkhs_bound must be given unless width is"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        cgp_ucb(SET, **COMMON | arguments)


def test_any_kernel_does():
    """Without gradients in closed form too, on a box."""
    linear = LinearKernel(active_dims=(2, 3)).double()
    linear.variance = 0.03  # of contexts of a length of at most 5.7
    strategy = cgp_ucb(BOX, rbf() * linear, context_domain=2, **COMMON)
    assert not strategy.posterior.has_closed_form_gradient
    assert all(bool(BOX.contains(trial.x)) for trial in play(strategy, 3))
