"""Inputs column by column, and their gradients."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.inputs import Inputs

SPACE = bx.Box(
    [[10.0, -1.0, 1e-3, 2.0], [30.0, 4.0, 1e1, 9.0]],
    integer=[1],
    log=[2],
    categories={3: [2, 5, 9]},
)


def test_columns_are_those_of_the_unit_cube():
    x = torch.tensor([[15.0, -1.0, 1e-1, 5.0], [30.0, 4.0, 1e1, 9.0]], dtype=torch.float64)
    inputs = Inputs.of(SPACE, None, x)
    half = math.sqrt(0.5)
    # Six whole numbers have a sixth each.
    expected = [[0.25, 1 / 12, 0.5, 0, half, 0], [1, 11 / 12, 1, 0, 0, half]]
    assert_close(inputs.features(x), torch.tensor(expected, dtype=torch.float64))
    assert inputs.groups.tolist() == [0, 1, 2, 3, 3, 3]
    assert inputs.num_columns == 4
    of_columns = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert inputs.of_features(of_columns).tolist() == [1, 2, 3, 4, 4, 4]


def test_any_two_categories_are_one_apart():
    X = torch.tensor([[12.0, 0, 1, code] for code in (2, 5, 9)], dtype=torch.float64)
    F = Inputs.of(SPACE, None, X).features(X)
    apart = torch.cdist(F, F)
    assert_close(apart, 1 - torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_are_by_the_points(dtype):
    box = SPACE.to(dtype)
    X = box.sample(5, seed=0)
    inputs = Inputs.of(box, None, X)
    weights = torch.linspace(0.5, 2, 6, dtype=torch.float64)
    gradient = inputs.pullback(X, weights * inputs.features(X) ** 0)
    assert gradient.dtype == dtype
    x = X.double()
    expected = torch.stack(
        [
            (weights[0] / 20).expand(5),
            (weights[1] / 6).expand(5),
            weights[2] / (x[:, 2] * math.log(1e4)),
            torch.zeros(5, dtype=torch.float64),
        ],
        dim=-1,
    )
    assert_close(gradient.double(), expected, rtol=1e-5, atol=0)


def test_columns_that_do_not_count_have_no_gradient():
    box = bx.Box(SPACE.bounds, integer=[1], conditions={0: (1, [0, 3]), 2: (1, [3])})
    X = box.sample(40, seed=0)
    inputs = Inputs.of(box, None, X)
    gradient = inputs.pullback(X, torch.ones_like(inputs.features(X)))
    assert torch.equal(gradient[:, [0, 2]] != 0, box.active(X)[:, [0, 2]])
    assert inputs.sides is None


def test_plain_boxes_and_finite_sets(device):
    points = torch.tensor([[2.0, 7.0], [4.0, 7.0], [3.0, 7.0]], dtype=torch.float64, device=device)
    of_set = Inputs.of(bx.FiniteSet(points), None, points)
    assert of_set.features(points).tolist() == [[0, 0], [1, 0], [0.5, 0]]
    box = bx.Box(torch.tensor([[2.0, -7.0], [4.0, 7.0]], device=device))
    of_box = Inputs.of(box, None, points)
    assert of_box.features(points.float()).tolist() == [[0, 1], [1, 1], [0.5, 1]]
    assert of_set.groups is of_box.groups is None


def test_contexts_range_as_their_domain_or_as_those_seen():
    box = bx.Box([[0.0], [2.0]])
    joint = torch.tensor([[1.0, 5.0, 2.0], [2.0, 9.0, 2.0]], dtype=torch.float64)
    known = ContextSpace(bx.Box([[5.0, 0.0], [15.0, 4.0]]))
    assert Inputs.of(box, known, joint).features(joint).tolist() == [[0.5, 0, 0.5], [1, 0.4, 0.5]]
    unknown = Inputs.of(box, ContextSpace(), joint)
    assert unknown.features(joint).tolist() == [[0.5, 0, 0], [1, 1, 0]]
    context = torch.tensor([13.0, 2.0], dtype=torch.float64)
    assert unknown.at(joint[:1, :1], context).tolist() == [[0.5, 2, 0]]
    assert Inputs.of(box, ContextSpace(dim=2), joint[:0]).num_columns == 3


def test_tasks_are_categories():
    space = ContextSpace(bx.FiniteSet([[0.0], [1.0], [2.0]]), tasks=((0, 3),))
    joint = torch.tensor([[1.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    inputs = Inputs.of(bx.Box([[0.0], [2.0]]), space, joint)
    assert inputs.groups.tolist() == [0, 1, 1, 1]
    apart = inputs.features(joint).diff(dim=0).norm()
    assert_close(apart, apart.new_ones(()))
