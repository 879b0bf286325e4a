"""The trust region: its side by the rule in plain Python, and what part of a box it is."""

import random
from statistics import pstdev

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.algorithms import integrated_ei
from botorch_ext.search.trust_region import region_around, side_length


def by_the_rule(values, num_given, dim):
    """Three gains in a row double the side up to 1.6, max(5, d // 4) failures in a row halve it,
    and below 1/128 it begins again at 0.8."""
    side, streak, least = 0.8, 0, 1e-3 * pstdev(values)
    best = max(values[:num_given])
    for value in values[num_given:]:
        gained = value > best + least
        best = value if gained else best
        streak = max(streak, 0) + 1 if gained else min(streak, 0) - 1
        if streak == 3:
            side, streak = min(1.6, 2 * side), 0
        elif streak == -max(5, dim // 4):
            side, streak = side / 2, 0
        side = 0.8 if side < 1 / 128 else side
    return side


LEVELS = [0.0] * 6 + [0.50001, 1.0, 1.00001, 2.0, 3.0, 4.0, 5.0, 6.0]  # the best before is 0.5


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.sampled_from([2, 12, 20, 24, 100]))
def test_gains_in_a_row_double_the_side_and_failures_halve_it(seed, dim):
    draw = random.Random(seed)
    rising = sorted(draw.choices(LEVELS, k=draw.randint(0, 8)))
    values = [-1.0, 0.5, -3.0, *rising, *draw.choices(LEVELS, k=draw.randint(0, 60))]
    assert side_length(values, 3, dim) == pytest.approx(by_the_rule(values, 3, dim))


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
