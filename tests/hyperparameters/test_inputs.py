"""Inputs column by column: where they lie in the unit cube, and gradients by the points."""

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
HALF = math.sqrt(0.5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_columns_are_those_of_the_unit_cube_with_gradients_by_the_points(dtype):
    x = [[15.0, -1.0, 1e-1, 2.0], [30.0, 4.0, 1e1, 5.0], [30.0, 4.0, 1e1, 9.0]]
    x = torch.tensor(x, dtype=dtype)
    inputs = Inputs.of(SPACE.to(dtype), None, x)
    # Six whole numbers have a sixth each, and any two categories are one apart.
    categories = HALF * torch.eye(3, dtype=torch.float64)
    expected = torch.tensor([[0.25, 1 / 12, 0.5], [1, 11 / 12, 1], [1, 11 / 12, 1]]).double()
    close = {"rtol": 1e-5, "atol": 1e-6}
    assert_close(inputs.features(x), torch.cat([expected, categories], dim=1), **close)
    assert (inputs.groups.tolist(), inputs.num_columns) == ([0, 1, 2, 3, 3, 3], 4)
    assert inputs.of_features(torch.arange(4)).tolist() == [0, 1, 2, 3, 3, 3]
    weights = torch.linspace(0.5, 2, 6, dtype=torch.float64)
    gradient = inputs.pullback(x, weights.expand(3, 6))
    by_log = weights[2] / (x[:, 2].double() * math.log(1e4))
    rest = torch.tensor([weights[0] / 20, weights[1] / 6, 0.0, 0.0]).double().repeat(3, 1)
    rest[:, 2] = by_log
    assert gradient.dtype == dtype
    assert_close(gradient.double(), rest, rtol=1e-5, atol=0)


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
    of_box = Inputs.of(bx.Box(torch.tensor([[2.0, -7.0], [4.0, 7.0]], device=device)), None, points)
    assert of_box.features(points.float()).tolist() == [[0, 1], [1, 1], [0.5, 1]]
    assert of_set.groups is of_box.groups is None


def test_contexts_range_as_their_domain_or_as_those_seen_and_tasks_are_categories():
    box = bx.Box([[0.0], [2.0]])
    joint = torch.tensor([[1.0, 5.0, 2.0], [2.0, 9.0, 2.0]], dtype=torch.float64)
    known = ContextSpace(bx.Box([[5.0, 0.0], [15.0, 4.0]]))
    assert Inputs.of(box, known, joint).features(joint).tolist() == [[0.5, 0, 0.5], [1, 0.4, 0.5]]
    unknown = Inputs.of(box, ContextSpace(), joint)
    assert unknown.features(joint).tolist() == [[0.5, 0, 0], [1, 1, 0]]
    context = torch.tensor([13.0, 2.0], dtype=torch.float64)
    assert unknown.at(joint[:1, :1], context).tolist() == [[0.5, 2, 0]]
    assert Inputs.of(box, ContextSpace(dim=2), joint[:0]).num_columns == 3
    tasks = ContextSpace(bx.FiniteSet([[0.0], [1.0], [2.0]]), tasks=((0, 3),))
    joint = torch.tensor([[1.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    inputs = Inputs.of(box, tasks, joint)
    assert inputs.groups.tolist() == [0, 1, 1, 1]
    assert float(inputs.features(joint).diff(dim=0).norm()) == pytest.approx(1.0)
