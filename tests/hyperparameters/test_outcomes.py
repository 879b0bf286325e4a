"""Outcomes: standardised, the low ones squeezed, units kept."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.hyperparameters.outcomes import Outcomes

CPU = torch.device("cpu")


def of(*values):
    return Outcomes.of(torch.tensor(values, dtype=torch.float64), CPU)


def by_definition(values):
    """The formula, with quartiles as NumPy has them by default."""
    n = len(values)

    def standard(y):
        mean = sum(y) / n
        spread = math.sqrt(sum((v - mean) ** 2 for v in y) / n)
        return [(v - mean) / spread for v in y]

    def quantile(share):
        order, place = sorted(y), share * (n - 1)
        low = math.floor(place)
        high = min(low + 1, n - 1)
        return order[low] + (place - low) * (order[high] - order[low])

    y = standard(values)
    lowest = quantile(0.5) - 2 * (quantile(0.75) - quantile(0.25))
    return standard([v if v >= lowest else lowest - 0.3 * math.log1p(lowest - v) for v in y])


@pytest.mark.parametrize(
    "values", [(1.0, 2.0, 3.0, 4.0), (0.1, 0.5, 0.4, -90.0, 0.7, 0.2, -3.0), (5.0, 5.0, 5.0, -2.0)]
)
def test_it_is_the_formula(values):
    assert_close(of(*values).values, torch.tensor(by_definition(values), dtype=torch.float64))


def test_the_top_keeps_its_units():
    """Only low values are moved: above, the map back to units is exact."""
    values = torch.tensor([0.1, 0.5, 0.4, -90.0, 0.7, 0.2], dtype=torch.float64)
    outcomes = Outcomes.of(values, CPU)
    back = outcomes.untransformed(outcomes.values)
    kept = [0, 1, 2, 4, 5]
    assert_close(back[kept], values[kept])
    assert -90 < back[3] < 0


@pytest.mark.parametrize("values", [(), (3.0,), (7.0, 7.0, 7.0)])
def test_without_a_spread_they_are_zero(values):
    outcomes = of(*values)
    assert outcomes.values.tolist() == [0.0] * len(values)
    assert outcomes.scale == 1
    if values:
        assert outcomes.center == values[0]


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_do_not_matter(factor):
    values = torch.tensor([0.3, 1.7, 0.9, -4.0, 1.1], dtype=torch.float64)
    plain, scaled = Outcomes.of(values, CPU), Outcomes.of(1e6 * factor + factor * values, CPU)
    assert_close(scaled.values, plain.values, rtol=0, atol=1e-8)


def test_they_go_to_a_device(device):
    outcomes = Outcomes.of(torch.tensor([1.0, 2.0]).double(), device)
    assert outcomes.values.device.type == device.type
