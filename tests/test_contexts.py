"""Which contexts there are, and the joint rows they become part of."""

import pytest
import torch

from botorch_ext.contexts import ContextSpace, as_context_space, with_context
from botorch_ext.domains import Box, FiniteSet

LIKE = torch.zeros(1, 2, dtype=torch.float64)
BOX = Box([[1.0, -3.0], [2.0, 5.0]])
TASKS = ContextSpace(dim=3, tasks=((1, 7),))


def test_joint_rows_are_actions_then_the_context():
    X = torch.arange(12.0).view(2, 3, 2)
    joint = with_context(X, torch.tensor([-1.0, -2.0, -3.0]))
    assert joint.shape == (2, 3, 5)
    for i in range(2):
        for j in range(3):
            assert joint[i, j].tolist() == [*X[i, j].tolist(), -1.0, -2.0, -3.0]
    assert with_context(X, None) is X


@pytest.mark.parametrize(
    ("space", "context"),
    [
        (BOX, [1.5, 5.0]),
        (FiniteSet([[0.0], [2.0]]), 2.0),
        (FiniteSet([[0.0], [2.0]]), [2]),
        (2, torch.tensor([1e6, -3.0], dtype=torch.float64)),
        (TASKS, [0.5, 6, -2.0]),
        (ContextSpace(), [1.0, 2.0, 3.0]),
    ],
)
def test_a_context_becomes_a_tensor_of_its_own(space, context):
    checked = as_context_space(space).checked(context, LIKE)
    assert checked.dtype == torch.float64
    assert checked.tolist() == torch.as_tensor(context).double().flatten().tolist()
    if isinstance(context, torch.Tensor):
        assert checked.data_ptr() != context.data_ptr()


@pytest.mark.parametrize(
    ("space", "context", "message"),
    [
        (BOX, [1.5], r"context must have shape \(2,\), got \(1,\)"),
        (BOX, torch.ones(1, 2).double(), r"context must have shape \(2,\), got \(1, 2\)"),
        (BOX, [1.5, 5.1], "context must lie in the box"),
        (BOX, [1.5, float("nan")], "context must be finite"),
        (BOX, torch.tensor([1.5, 5.0]), "context must be torch.float64"),
        (FiniteSet([[0.0], [2.0]]), 1, "context must be one of the 2 points"),
        (2, [1.0, 2.0, 3.0], r"context must have shape \(2,\), got \(3,\)"),
        (ContextSpace(), [], "context must"),
        (ContextSpace(), torch.tensor(1.0).double(), "context must"),
        (TASKS, [0.5, 7, -2.0], "a whole number from 0 to 6"),
        (TASKS, [0.5, -1, -2.0], "a whole number from 0 to 6"),
        (TASKS, [0.5, 1.5, -2.0], "a whole number from 0 to 6"),
        (2, "ab", "context must"),
        (2, [[1.0, 2.0], [3.0, 4.0]], "context must"),
    ],
)
def test_bad_contexts_are_refused(space, context, message):
    with pytest.raises(ValueError, match=message):
        as_context_space(space).checked(context, LIKE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_context_space(0), "context_domain must be at least 1"),
        (lambda: as_context_space(1.5), "context_domain must be a whole number"),
        (lambda: as_context_space("2"), "context_domain must be a whole number"),
        (lambda: ContextSpace(BOX, dim=3), "dim must be 2"),
        (lambda: ContextSpace(domain=[[0.0], [1.0]]), "domain must be a Box"),
        (lambda: ContextSpace(dim=2, tasks=((2, 7),)), "column of a task must be less than 2"),
        (lambda: ContextSpace(dim=2, tasks=((1, 0),)), "number of tasks must be at least 1"),
    ],
)
def test_bad_context_spaces_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_probes_are_contexts_of_the_space():
    for space in (BOX, FiniteSet([[0.0], [2.0]]), 2, TASKS):
        space = as_context_space(space)
        probes = space.probes(LIKE, 5, seed=0)
        assert len(probes) >= 1
        for probe in probes:
            space.checked(probe, LIKE)
    assert TASKS.probes(LIKE, 10, seed=0)[:, 1].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert len(ContextSpace().probes(LIKE, 5, seed=0)) == 0
