"""Kernels on actions and contexts with their parts, away from the origin.

Joint points have five columns: three of the action, a real one of the context, and a task.
"""

import math
from functools import partial

import pytest
import torch
from gpytorch.kernels import IndexKernel, Kernel, LinearKernel
from torch import Tensor

from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.kernel_functions.kernels import periodic, scaled, spread, stationary
from tests.kernel_functions.kernels import points as actions

NUM_TASKS = 4
COVARIANCE = torch.tensor(
    [[1.0, 0.6, -0.3, 0.2], [0.6, 0.8, 0.1, 0.0], [-0.3, 0.1, 0.9, 0.4], [0.2, 0.0, 0.4, 0.7]],
    dtype=torch.float64,
)


def points(num: int, seed: int, batch: tuple[int, ...] = ()) -> Tensor:
    """``*batch x num x 5``; the tasks come in turn, so that all of them come."""
    generator = torch.Generator().manual_seed(100 + seed)
    z = -4 + 1.5 * torch.rand(*batch, num, 1, generator=generator, dtype=torch.float64)
    tasks = (torch.arange(num) + seed) % NUM_TASKS
    tasks = tasks.to(torch.float64).unsqueeze(-1).expand(*batch, num, 1)
    return torch.cat([actions(num, seed, batch), z, tasks], dim=-1)


def index_kernel(batch: tuple[int, ...] = (), rank: int = 2, **kwargs) -> Kernel:
    """GPyTorch's, with numbers that are no accident."""
    kernel = IndexKernel(NUM_TASKS, rank, batch_shape=torch.Size(batch), **kwargs).double()
    kernel.covar_factor.data = spread(-0.7, 0.8, *batch, NUM_TASKS, rank)
    kernel.var = spread(0.1, 0.4, *batch, NUM_TASKS)
    return kernel


def action_context(action: Kernel, context: Kernel | None = None, *columns: object) -> Kernel:
    """With a given covariance of tasks in the last column, unless another context is given."""
    context = TaskKernel(COVARIANCE) if context is None else context
    return ActionContextKernel(action, context, *(columns or (3, [4])))


# GPyTorch's IndexKernel makes sparse matrices.
sparse_matrices = pytest.mark.filterwarnings("ignore:Sparse invariant checks are:UserWarning")

RBF, MATERN = partial(stationary, math.inf, 0.7), partial(stationary, 1.5, 1.1)
TASKS, LEARNED = partial(TaskKernel, COVARIANCE), index_kernel


def of_parts(action, context, seen, *columns, active=({}, {})):
    """What makes a kernel, its two parts alone, and the columns that they see."""

    def made():
        first, second = action(**active[0]), context(**active[1])
        return ActionContextKernel(first, second, *columns), action(), context(), *map(list, seen)

    return made


ACTIONS = (0, 1, 2)
OF_PARTS = {
    "product": of_parts(RBF, MATERN, (ACTIONS, (3,)), 3, 1),
    "sum": of_parts(MATERN, RBF, (ACTIONS, (3,)), 3, 1, "sum"),
    "all others": of_parts(RBF, MATERN, (ACTIONS, (3, 4)), 3),
    "listed": of_parts(MATERN, RBF, ((3, 0), (2, 1)), (3, 0), (2, 1)),
    "active dims": of_parts(
        RBF,
        MATERN,
        ((0,), (4,)),
        (2, 0),
        (4, 3),
        active=({"active_dims": (1,)}, {"active_dims": (0,)}),
    ),
    "given tasks": of_parts(RBF, TASKS, (ACTIONS, (4,)), 3, [4]),
    "sum with tasks": of_parts(RBF, TASKS, (ACTIONS, (4,)), 3, [4], "sum"),
    "a task among contexts": of_parts(
        RBF, TASKS, (ACTIONS, (4,)), 3, active=({}, {"active_dims": (1,)})
    ),
    "learned tasks": of_parts(RBF, LEARNED, (ACTIONS, (4,)), 3, (4,)),
    "sum with learned tasks": of_parts(RBF, LEARNED, (ACTIONS, (4,)), 3, (4,), "sum"),
}

MANY = spread(0.4, 1.5, 3, 1, 1)
COVARIANCES = torch.stack([COVARIANCE, torch.eye(4).double(), 0.5 * COVARIANCE])
TASKS_AND_VALUES = stationary(1.5, 1.2, active_dims=(0,)) * TaskKernel(COVARIANCE, active_dims=(1,))

# Kernels whose frozen form has a gradient in closed form.
SINGLE = {name: (lambda make=make: make()[0]) for name, make in OF_PARTS.items()} | {
    "joint columns": lambda: ActionContextKernel(
        scaled(stationary(2.5, spread(0.5, 1.5, 1, 3))), TASKS_AND_VALUES, 3
    ),
    "sums within": lambda: scaled(
        ActionContextKernel(
            periodic() + stationary(0.5), scaled(TaskKernel(COVARIANCE), 0.9), (2, 0), (4,), "sum"
        )
    ),
    "one within another": lambda: ActionContextKernel(
        ActionContextKernel(stationary(1.5), stationary(math.inf), (2,), (0, 1), "sum"),
        ActionContextKernel(stationary(2.5), index_kernel(), 1),
        3,
    ),
    "no wrapper": lambda: stationary(1.5, active_dims=(0, 2)) * index_kernel(active_dims=(4,)),
}
BATCHED = {
    "both": lambda: ActionContextKernel(
        stationary(math.inf, MANY), stationary(1.5, MANY), 3, 1, "sum"
    ),
    "actions": lambda: ActionContextKernel(stationary(2.5, MANY), TaskKernel(COVARIANCE), 3, [4]),
    "tasks": lambda: ActionContextKernel(stationary(2.5), TaskKernel(COVARIANCES), 3, [4]),
    "learned tasks": lambda: ActionContextKernel(
        stationary(1.5, MANY), index_kernel((3,)), (2, 1), (4,), "sum"
    ),
    "equal parts": lambda: ActionContextKernel(
        stationary(1.5, MANY, active_dims=(2,)),
        stationary(math.inf, spread(0.7, 0.7, 3, 1, 1), active_dims=(0,)),
        3,
    ),
    "all equal": lambda: ActionContextKernel(
        stationary(1.5, spread(0.6, 0.6, 3, 1, 1)), TaskKernel(COVARIANCE.expand(3, 4, 4)), 3, [4]
    ),
    "two dimensions": lambda: ActionContextKernel(
        stationary(math.inf, spread(0.3, 2.0, 2, 3, 1, 1)),
        TaskKernel(COVARIANCES.expand(2, 3, 4, 4)),
        *(3, [4]),
    ),
    "scaled": lambda: scaled(
        ActionContextKernel(stationary(1.5, MANY), TASKS_AND_VALUES, 3), spread(0.4, 0.9, 3)
    ),
}
NO_CLOSED_FORM = {
    "linear": lambda: ActionContextKernel(
        LinearKernel().double(), TaskKernel(COVARIANCE), 3, [4], "sum"
    )
}
