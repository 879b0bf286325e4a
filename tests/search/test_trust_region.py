"""Trust region: its side by hand, and what part of a box it is."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.algorithms import integrated_ei
from botorch_ext.search.trust_region import region_around, side_length


@pytest.mark.parametrize(
    ("asked", "side"),
    [
        ([], 0.8),
        ([1.0, 2.0, 3.0], 1.6),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1.6),  # no longer than that
        ([1.0, 2.0, 0.0, 3.0, 4.0], 0.8),  # not in a row
        ([0.0] * 5, 0.4),
        ([0.0] * 4 + [1.0] + [0.0] * 4, 0.8),
        ([0.0] * 10, 0.2),
        ([0.0] * 30, 0.0125),
        ([0.0] * 35, 0.8),  # a new start
        ([1e-5] * 5, 0.4),  # too little for a gain
    ],
)
def test_gains_in_a_row_double_the_side_and_failures_halve_it(asked, side):
    given = [-1.0, 0.5, -3.0]
    assert side_length([*given, *asked], len(given), dim=20) == pytest.approx(side)


def test_in_many_dimensions_more_failures_are_borne():
    values = [0.0] * 30
    assert side_length(values, 1, dim=100) == 0.4
    assert side_length(values[:25], 1, dim=100) == 0.8


def test_a_region_has_equal_sides_and_ends_with_the_box():
    box = Box(lower=[2.0, 1e-3, -3.0], upper=[6.0, 1e3, -1.0], log=[1])
    center = torch.tensor([5.8, 1.0, -2.0], dtype=torch.float64)
    region = region_around(center, 0.4, box)
    assert region.log == box.log
    lower, upper = box.to_unit(region.bounds)
    assert_close(lower, torch.tensor([0.75, 0.3, 0.3], dtype=torch.float64))
    assert_close(upper, torch.tensor([1.0, 0.7, 0.7], dtype=torch.float64))


def test_results_that_were_not_asked_for_are_no_failures_of_a_region():
    box = Box([(0.0, 1.0)] * 24)
    strategy = integrated_ei(box)
    strategy.attach(torch.full((24,), 0.5, dtype=torch.float64), 1.0)
    for x in box.sample(20, seed=1):
        strategy.attach(x, -float((x - 0.5).square().sum()))
    strategy.attach(box.upper + 1, 99.0, outside=True)
    region = strategy._region(strategy.posterior)
    assert region is not None
    assert_close(region.upper - region.lower, torch.full((24,), 0.8, dtype=torch.float64))
