"""Which contexts there are, and the joint rows they become part of."""

import pytest
import torch
from gpytorch.kernels import IndexKernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.kernels import ActionContextKernel, AdditiveKernel, TaskKernel
from botorch_ext.kernels.context_columns import context_space_of

LIKE = torch.zeros(1, 2, dtype=torch.float64)
BOX = Box([[1.0, -3.0], [2.0, 5.0]])
TASKS = ContextSpace(dim=3, tasks=((1, 7),))


POINTS = FiniteSet([[0.0], [2.0]])
ANY = ContextSpace()
MANY = ContextSpace(tasks=((0, 10**12),))  # which are not counted through
GOOD = [
    *((BOX, [1.5, 5.0]), (POINTS, 2.0), (POINTS, [2]), (2, torch.tensor([1e6, -3.0]).double())),
    *((TASKS, [0.5, 6, -2.0]), (ANY, [1.0, 2.0, 3.0]), (MANY, 10**12 - 1)),
]
BAD = [
    *(
        (BOX, [1.5]),
        (BOX, torch.ones(1, 2).double()),
        (BOX, [1.5, 5.1]),
        (BOX, [1.5, float("nan")]),
    ),
    *((BOX, torch.tensor([1.5, 5.0])), (POINTS, 1), (2, [1.0, 2.0, 3.0]), (ANY, []), (2, "ab")),
    *((TASKS, [0.5, task, -2.0]) for task in (7, -1, 1.5)),
]


@pytest.mark.parametrize(("space", "context"), GOOD)
def test_a_context_becomes_a_tensor_of_its_own(space, context):
    checked = as_context_space(space).checked(context, LIKE)
    assert checked.dtype == torch.float64
    assert checked.tolist() == torch.as_tensor(context).double().flatten().tolist()
    if isinstance(context, torch.Tensor):
        assert checked.data_ptr() != context.data_ptr()


@pytest.mark.parametrize(("space", "context"), BAD)
def test_bad_contexts_are_refused(space, context):
    with pytest.raises(ValueError, match="context must"):
        as_context_space(space).checked(context, LIKE)


def test_bad_context_spaces_are_refused():
    for given in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="context_domain must"):
            as_context_space(given)
    for tasks in (((2, 7),), ((1, 0),)):
        with pytest.raises(ValueError, match="task"):
            ContextSpace(dim=2, tasks=tasks)
    with pytest.raises(ValueError, match="dim must be 2"):
        ContextSpace(BOX, dim=3)


def test_probes_are_contexts_of_the_space():
    for space in (BOX, FiniteSet([[0.0], [2.0]]), 2, TASKS):
        space = as_context_space(space)
        probes = space.probes(LIKE, 5, seed=0)
        assert len(probes) >= 1
        for probe in probes:
            space.checked(probe, LIKE)
    assert TASKS.probes(LIKE, 10, seed=0)[:, 1].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert len(ContextSpace().probes(LIKE, 5, seed=0)) == 0


EYE = torch.eye(7).double()
PARTS = ActionContextKernel(TaskKernel(EYE), ScaleKernel(IndexKernel(3)), [1], [0])
MIXED = RBFKernel(active_dims=(0, 2)) * TaskKernel(EYE, active_dims=(1,))
NAMED = RBFKernel(active_dims=(0, 1))
# Kernels for two columns of actions; what follows are the size of the contexts, and the tasks.
KERNELS = [
    (RBFKernel(ard_num_dims=5), 3, ()),
    (ScaleKernel(MaternKernel(ard_num_dims=3)), 1, ()),
    (AdditiveKernel(RBFKernel(), [(0, 2), (1, 3)], 4), 2, ()),
    (NAMED * RBFKernel(active_dims=(3, 2)), 2, ()),
    (RBFKernel(active_dims=(0, 4)) + LinearKernel(), None, ()),
    (RBFKernel(active_dims=(2,)) + RBFKernel(ard_num_dims=6), 4, ()),
    (NAMED * TaskKernel(EYE, active_dims=(2,)), 1, ((0, 7),)),
    (NAMED * ScaleKernel(IndexKernel(5, active_dims=(3,))), 2, ((1, 5),)),
    (RBFKernel() * TaskKernel(EYE, active_dims=(3,)), None, ((1, 7),)),  # in some column
    # Of two numbers of tasks the fewer.
    (TaskKernel(EYE[:4, :4], active_dims=(2,)) + IndexKernel(6, active_dims=(2,)), 1, ((0, 4),)),
    (TaskKernel(EYE, active_dims=(1,)) * RBFKernel(active_dims=(2, 3)), 2, ()),  # among actions
    (ActionContextKernel(RBFKernel(), MaternKernel(), 2), None, ()),
    (ActionContextKernel(RBFKernel(), MaternKernel(active_dims=(1, 3)), 2), 4, ()),
    (ActionContextKernel(RBFKernel(), MaternKernel(), (1, 0), (5, 3)), 4, ()),
    (ActionContextKernel(RBFKernel(), TaskKernel(EYE), 2), 1, ((0, 7),)),
    (ScaleKernel(ActionContextKernel(RBFKernel(), MIXED, 2, combination="sum")), 3, ((1, 7),)),
    (ScaleKernel(ActionContextKernel(RBFKernel(), PARTS, 2, [4, 3])), 3, ((1, 7), (2, 3))),
]


@pytest.mark.parametrize(("kernel", "dim", "tasks"), KERNELS)
def test_kernels_tell_their_contexts(kernel, dim, tasks):
    space = context_space_of(kernel, 2)
    assert (space.domain, space.dim, space.tasks) == (None, dim, tasks)


NO_JOINT_COLUMNS = [
    RBFKernel(ard_num_dims=2),
    TaskKernel(EYE),
    RBFKernel(ard_num_dims=3) * RBFKernel(ard_num_dims=4),
    RBFKernel(ard_num_dims=3) * RBFKernel(active_dims=(3,)),
    ActionContextKernel(RBFKernel(), RBFKernel(active_dims=(2,)), 2, [2, 3]),
]


@pytest.mark.parametrize("kernel", NO_JOINT_COLUMNS)
def test_kernels_that_are_on_no_joint_columns_are_refused(kernel):
    with pytest.raises(ValueError, match="kernel must have"):
        context_space_of(kernel, 2)
