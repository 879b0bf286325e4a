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
    """The formula."""
    n = len(values)

    def standard(y):
        mean = sum(y) / n
        spread = math.sqrt(sum((v - mean) ** 2 for v in y) / n)
        return [(v - mean) / spread for v in y]

    top, best = max(values), sorted(values, reverse=True)[: math.ceil(2 * n / 3)]
    unit = math.sqrt(sum((top - v) ** 2 for v in best) / len(best))
    lowest = top - 4 * unit
    squeezed = [
        v if v >= lowest else lowest - 0.3 * unit * math.log1p((lowest - v) / unit) for v in values
    ]
    return standard(squeezed)


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0, 3.0, 4.0),
        (0.1, 0.5, 0.4, -90.0, 0.7, 0.2, -3.0),
        (5.0, 5.0, 5.0, -20.0, 5.0, 6.0),
    ],
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


@pytest.mark.parametrize("share", [0.08, 0.4])
@pytest.mark.parametrize("failure", [-10.0, -1e3, -1e6, -1e9])
def test_however_low_failures_are_the_others_stay_apart(failure, share):
    good = torch.linspace(0, 1, 24, dtype=torch.float64)
    num = round(share * 24)
    values = torch.cat([good, torch.full((num,), failure, dtype=torch.float64)])
    assert Outcomes.of(values, CPU).values[:24].std() > 0.1


@pytest.mark.parametrize("size", [1e-310, 1e-160, 1e160, 1.7e308])
def test_values_at_the_ends_of_the_numbers(size):
    outcomes = of(*(size * share for share in (-1.0, 0.2, 0.4, 1.0)))
    assert outcomes.values.isfinite().all()
    assert_close(outcomes.values, of(-1.0, 0.2, 0.4, 1.0).values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_do_not_matter(factor):
    values = torch.tensor([0.3, 1.7, 0.9, -4.0, 1.1], dtype=torch.float64)
    plain, scaled = Outcomes.of(values, CPU), Outcomes.of(1e6 * factor + factor * values, CPU)
    assert_close(scaled.values, plain.values, rtol=0, atol=1e-8)


def test_they_go_to_a_device(device):
    outcomes = Outcomes.of(torch.tensor([1.0, 2.0]).double(), device)
    assert outcomes.values.device.type == device.type
