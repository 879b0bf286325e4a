"""Boxes in which columns count only where another column has one of some codes."""

import copy
import itertools
import math
import pickle

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import OutsideDomainError

# Model (0: linear, 1: forest, 2: boosting), shrinkage, depth, booster, rate, number of layers, and
# the widths of the first and of the second.
BOUNDS = [(0, 2), (1e-4, 1.0), (1, 8), (3, 5), (0.01, 0.3), (0, 2), (2.0, 6.0), (10, 20)]
CONDITIONS = {
    7: (5, [2]),
    1: (0, [0]),
    2: (0, [1, 2]),
    4: (3, [3, 5]),
    3: (0, [2]),
    6: (5, [1, 2]),
}
# The middle of the range, by its logarithm or to the even whole number, or the first code.
RESTING = [None, 1e-2, 4.0, 3.0, 0.01**0.5 * 0.3**0.5, None, 4.0, 15.0]


def tree(**options):
    given = {
        "integer": [2, 5, 7],
        "log": [1, 4],
        "categories": {0: [0, 1, 2], 3: [3, 4, 5]},
        "conditions": CONDITIONS,
    }
    return bx.Box(BOUNDS, **{**given, **options})


def is_active(x, j):
    """The definition."""
    if j not in CONDITIONS:
        return True
    parent, codes = CONDITIONS[j]
    return is_active(x, parent) and x[parent] in codes


def settled(x):
    return [v if is_active(x, j) else pytest.approx(RESTING[j], rel=1e-12) for j, v in enumerate(x)]


def flat(**options):
    return tree(conditions={}, **options)


def test_what_was_given_can_be_read():
    box = tree()
    assert box.conditions == {
        1: (0, (0.0,)),
        2: (0, (1.0, 2.0)),
        3: (0, (2.0,)),
        4: (3, (3.0, 5.0)),
        6: (5, (1.0, 2.0)),
        7: (5, (2.0,)),
    }
    assert not box.is_plain and not box.is_filled
    assert flat().conditions == {} == bx.Box([(0, 1)]).conditions
    assert bx.Box([(0, 1)], conditions=None).is_plain and bx.Box([(0, 1)], conditions={}).is_plain
    assert "conditions={1: (0, [0.0])," in repr(box)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.loads, bx.Box.to])
def test_copies_keep_conditions(copied):
    box = tree()
    other = copied(pickle.dumps(box) if copied is pickle.loads else box)
    assert other.conditions == box.conditions
    assert torch.equal(other.sample(50, 1), box.sample(50, 1))


def test_which_columns_count(device):
    box = tree(device=device)
    X = flat(device=device).sample(300, seed=0)
    expected = [[is_active(x, j) for j in range(8)] for x in X.tolist()]
    assert box.active(X).tolist() == expected
    assert box.active(X.view(3, 100, 8)).shape == (3, 100, 8)
    assert bool(flat(device=device).active(X).all())
    assert bool(bx.Box([(0, 1)]).active([[0.5]]).all())


def test_samples_are_those_of_the_flat_box_with_inactive_columns_at_rest(device):
    box = tree(device=device)
    X, expected = box.sample(500, seed=2), flat(device=device).sample(500, seed=2)
    assert X.tolist() == [settled(x) for x in expected.tolist()]
    assert bool(box.contains(X).all())
    U = box.to_unit(expected)
    unsettled = flat(device=device).from_unit(U).tolist()
    assert box.from_unit(U).tolist() == [settled(x) for x in unsettled]


def test_points_are_moved_to_points_of_the_tree():
    box = tree()
    generator = torch.Generator().manual_seed(0)
    low, high = box.bounds
    shares = torch.rand(300, 8, generator=generator, dtype=torch.float64)
    targets = low + (high - low) * shares
    expected = [settled(x) for x in flat().nearby(targets, targets).tolist()]
    assert box.nearby(targets, targets).tolist() == expected


def test_inactive_columns_of_points_that_are_given_may_be_anything():
    box = tree()
    x = [0.0, 0.5, math.nan, -7.0, math.inf, 1.0, 3.0, 11.5]
    assert box.contains(x).tolist() == [True]
    assert box.require_contains(x, "x").tolist() == [settled(x)]
    for column, value, error, message in [
        (1, 2.0, OutsideDomainError, "x must lie in the box"),
        (1, math.nan, ValueError, "x must be finite"),
        (0, math.nan, ValueError, "x must be finite"),
        (0, 2.0, OutsideDomainError, "x must have a whole number in column 2|lie in the box"),
        (5, 2.0, OutsideDomainError, "x must have a whole number in column 7"),
    ]:
        y = list(x)
        y[column] = value
        if column == 0 and value == 2.0:
            y[2], y[3], y[4] = 2.5, 4.0, 0.1
        with pytest.raises(error, match=message):
            box.require_contains([x, y], "x")


def test_speed_is_zero_where_a_column_does_not_count():
    box = tree()
    X = box.sample(200, seed=3)
    speed = flat().stretch(X)
    assert torch.equal(box.stretch(X), torch.where(box.active(X), speed, 0.0))


def test_listed_points_are_those_of_the_tree_each_once():
    box = bx.Box(
        [(0, 1), (1, 4), (0, 2), (0, 3)],
        integer=[1, 2],
        categories={0: [0, 1], 3: [0, 1, 3]},
        conditions={1: (0, [1]), 2: (1, [2, 4])},
    )

    def rested(a, b, c, e):
        b = b if a == 1 else 2
        return (a, b, c if a == 1 and b in (2, 4) else 1, e)

    grid = itertools.product((0, 1), range(1, 5), range(3), (0, 1, 3))
    assert box.listed is not None
    assert [tuple(x) for x in box.listed.tolist()] == sorted({rested(*x) for x in grid})


def test_relaxed_whole_numbers_keep_their_conditions():
    relaxed = tree().without_steps()
    assert relaxed.integer == (5,)  # others depend on it
    assert relaxed.conditions == tree().conditions
    X = tree().sample(100, seed=1)
    assert torch.equal(relaxed.active(X), tree().active(X))


@pytest.mark.parametrize("bound", [1.9, 0.05])
def test_conditions_beside_constraints(bound):
    # Also where hardly any sample is feasible, and points come from a walk.
    box = bx.Box(
        [(0, 1), (0, 1), (0, 3), (0.0, 1.0)],
        integer=[2],
        constraints=([[1.0, 1.0, 0.1, 0.0]], [bound]),
        conditions={3: (2, [0, 3])},
    )
    X = box.sample(400, seed=0)
    active = (X[:, 2] == 0) | (X[:, 2] == 3)
    assert bool(box.contains(X).all())
    assert bool((X[:, 0] + X[:, 1] + 0.1 * X[:, 2] <= bound + 1e-6).all())
    assert bool((X[~active, 3] == 0.5).all())
    assert float(X[active, 3].std()) > 0.2


def test_corners_are_points_of_the_tree():
    box = tree()
    assert box.corners.tolist() == [settled(x) for x in box.corners.tolist()]
    assert len(box.corners.unique(dim=0)) == len(box.corners)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([1], r"conditions must map columns to .*as in \{3: \(0, \[1, 2\]\)\}, got \[1\]"),
        ({9: (0, [1])}, "conditions must name columns from 0 to 7"),
        ({"a": (0, [1])}, "each column of conditions must be a whole number, got 'a'"),
        ({1: 0}, r"conditions of column 1 must be a parent column and its codes, .*got 0"),
        ({1: (0, [1], 2)}, "conditions of column 1 must be a parent column and its codes"),
        ({1: ("a", [1])}, "parent of column 1 must be a whole number, got 'a'"),
        ({1: (9, [1])}, "parent of column 1 must be .* whole numbers, steps or categories, got 9"),
        ({1: (6, [3])}, "parent of column 1 must be .* whole numbers, steps or categories, got 6"),
        ({1: (0, [])}, "conditions of column 1 must be one or more different codes"),
        ({1: (0, 1)}, "conditions of column 1 must be a list of codes, got 1"),
        ({1: (0, [7])}, "conditions of column 1 must lie within the bounds"),
        ({1: (3, [3.5])}, r"conditions of column 1 must be values of column 3, got \[3.5\]"),
        ({1: (5, [0.5])}, r"conditions of column 1 must be values of column 5, got \[0.5\]"),
        ({0: (0, [1])}, "conditions must be trees, got columns that depend on themselves: .*0"),
        ({0: (3, [3]), 3: (0, [1])}, r"conditions must be trees, .*: \[0, 3\]"),
    ],
)
def test_impossible_conditions_are_refused(conditions, message):
    with pytest.raises(ValueError, match=message):
        tree(conditions=conditions)


def test_constraints_on_columns_that_may_not_count_are_refused():
    row = [0.0] * 8
    row[2] = 1.0
    with pytest.raises(
        ValueError, match=r"constraints must not use a column that has a condition.* 2"
    ):
        tree(constraints=([row], [5.0]))
