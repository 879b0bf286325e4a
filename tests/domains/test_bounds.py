"""Bounds as people write them."""

import math

import numpy as np
import pytest
import torch

import botorch_ext as bx

ROWS = [[0.0, 1.0], [20.0, 80.0]]
PAIRS = [(0, 20), (1, 80)]


@pytest.mark.parametrize(
    "bounds",
    [
        torch.tensor(ROWS).double(),
        list(torch.tensor(ROWS).double()),
        PAIRS,
        tuple(PAIRS),
        [(np.float64(0.0), torch.tensor(20.0)), (1, 80.0)],
        list(zip([0.0, 1.0], [20.0, 80.0], strict=True)),
    ],
)
def test_two_rows_and_pairs_are_the_same_box(bounds):
    box = bx.Box(bounds)
    assert box.bounds.tolist() == ROWS
    assert box.dtype == torch.float64
    assert box.is_plain


@pytest.mark.parametrize(
    ("lower", "upper"), [(ROWS[0], ROWS[1]), (np.array(ROWS[0]), torch.tensor(ROWS[1]))]
)
def test_corners_have_names(lower, upper):
    box = bx.Box(lower=lower, upper=upper, dtype=torch.float64, log=[1])
    assert box.bounds.tolist() == ROWS
    assert box.dtype == torch.float64


@pytest.mark.parametrize("rows", [[[0, 0], [1, 1]], [[2, -3], [5, -1.5]], [[0, 1, 2], [3, 4, 5]]])
def test_rows_that_can_be_no_pairs_are_rows(rows):
    assert bx.Box(rows).bounds.tolist() == bx.Box(np.array(rows)).bounds.tolist() == rows


@pytest.mark.parametrize(
    "bounds", [[[-5, 10], [0, 15]], ([-5, 10], [0, 15]), np.array([[-5, 10], [0, 15]])]
)
def test_what_could_be_rows_or_pairs_is_refused(bounds):
    with pytest.raises(
        ValueError, match=r"must say whether they are two corners or two pairs .*lower=\[0, 1\]"
    ):
        bx.Box(bounds)


def test_a_list_of_tuples_is_pairs_whatever_their_number():
    assert bx.Box([(2, 5)]).bounds.tolist() == [[2.0], [5.0]]
    assert bx.Box([(2, 5), (-3, -1), (7, 8)]).bounds.tolist() == [[2, -3, 7], [5, -1, 8]]
    pairs = bx.Box(PAIRS, torch.float32)
    assert pairs.dtype == torch.float32
    assert pairs.bounds.is_contiguous()


def test_bounds_are_copied():
    rows = torch.tensor(ROWS).double()
    box = bx.Box(rows)
    rows += 1
    assert box.bounds.tolist() == ROWS


@pytest.mark.parametrize(
    ("bounds", "got"),
    [
        ([[0, 20], [1, 80], [2, 3]], r"shape \(2, d\).*got \(3, 2\)"),
        (np.array([[0, 20], [1, 80], [2, 3]]), r"shape \(2, d\).*got \(3, 2\)"),
        (torch.tensor([[0.0, 20.0], [1.0, 80.0], [2.0, 3.0]]), r"shape \(2, d\).*got \(3, 2\)"),
        ([(0, 20), [1, 80]], r"mix lists and tuples, got \[\(0, 20\), \[1, 80\]\]"),
        ([(0, 1, 2), (20, 80, 90)], r"shape \(d, 2\).*got \(2, 3\)"),
        ([(0, 20), (1,)], r"one shape, got \[\(0, 20\), \(1,\)\]"),
        ([(0, 20), (80, 1)], r"lower < upper .*got \[\[0.0, 80.0\], \[20.0, 1.0\]\]"),
        ([(0, 20), (1, 1)], "lower < upper in every column"),
        ([(0, math.nan)], "finite, got .*nan"),
        ([(0, "x")], "one shape, got"),
        (["ab", "cd"], "one shape, got"),
        ("unit", "one shape, got 'unit'"),
        ((0, 20), r"shape \(2, d\).*got \(2,\)"),
        ([], r"shape \(2, d\).*got \(0,\)"),
        ([()], r"shape \(d, 2\).*got \(1, 0\)"),
        ({0: (0, 1)}, "one shape, got"),
        (None, "one shape, got None"),
    ],
)
def test_anything_else_is_refused_and_both_forms_are_shown(bounds, got):
    with pytest.raises(
        ValueError, match=f"bounds must .*{got}.*lower=.*, or a pair for each column"
    ):
        bx.Box(bounds)


def test_a_box_whose_side_is_no_number_is_refused():
    with pytest.raises(ValueError, match="bounds must have upper - lower finite in every column"):
        bx.Box([[0.0, -1e308], [1.0, 1e308]])
