"""What CGP-UCB makes of its arguments; its decisions are replayed in tests/strategies."""

import pytest
from gpytorch.kernels import IndexKernel, LinearKernel

from botorch_ext import Box, FiniteSet
from botorch_ext.algorithms import cgp_ucb
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.kernels import TaskKernel
from tests.helpers import drawn, matern, rbf

LAMBDA = 0.02
BOX = Box([[2.0, -3.0], [5.0, -1.5]])
SET = FiniteSet(BOX.sample(40, seed=3))
COMMON = {"noise_variance": LAMBDA, "seed": 4, "rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.05}
B = drawn(4, 2, seed=5, low=-1.0)
COVARIANCE = B @ B.mT / (B @ B.mT).diagonal().max()
TASKS = {"action_kernel": rbf(0.8), "context_kernel": TaskKernel(COVARIANCE)}
REALS = {"action_kernel": rbf(0.8), "context_kernel": matern(1.2, nu=1.5)}


SPACES = {
    "tasks": (TASKS, None, 1, ((0, 4),)),
    "learned": ({"action_kernel": rbf(0.8), "context_kernel": IndexKernel(3)}, None, 1, ((0, 3),)),
    "tasks on the right column": (
        {"kernel": rbf(0.8, active_dims=(0, 1)) * TaskKernel(COVARIANCE, active_dims=(3,))},
        None,
        2,
        ((1, 4),),
    ),
    "one for each column": ({"kernel": rbf(0.5, 0.6, 0.7, 0.8, 1.0)}, None, 3, ()),
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


def test_kernels_are_given_in_one_way():
    for arguments in (
        {},
        {"action_kernel": rbf(0.8)},
        {"kernel": rbf(0.8), **REALS},
        {"kernel": rbf(1.0, 2.0)},  # without columns for contexts
        {**TASKS, "context_domain": 2},
    ):
        with pytest.raises(ValueError, match=r"kernel.* must"):
            cgp_ucb(SET, **COMMON | arguments)
    with pytest.raises(ValueError, match="combination must"):
        cgp_ucb(SET, rbf(0.8), combination="sum", **COMMON)


def test_a_kernel_without_gradients_in_closed_form_does():
    linear = LinearKernel(active_dims=(2, 3)).double()
    linear.variance = 0.03  # of contexts of a length of at most 5.7
    strategy = cgp_ucb(BOX, rbf(0.8) * linear, context_domain=2, **COMMON)
    for z in drawn(3, 2, seed=7, low=-4.0, high=-2.5):
        trial = strategy.ask(context=z)
        assert bool(BOX.contains(trial.x))
        strategy.tell(trial.id, float(trial.x.sum().sin()))
