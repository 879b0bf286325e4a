"""The places of the highest values, of equal ones the first."""

import pytest
import torch

from botorch_ext.domains.ranks import among_highest, first_highest, highest_first, reach


@pytest.mark.parametrize("num", [None, 1, 7, 40, 99])
@pytest.mark.parametrize("dim", [0, -1])
def test_the_highest_come_first_and_of_equal_ones_the_first(num, dim, device):
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(-3, 4, (40, 40), generator=generator).double() / 4
    expected = [
        sorted(range(40), key=lambda place: (-line[place], place))[:num]
        for line in (values if dim else values.T).tolist()
    ]
    found = highest_first(values.to(device), num, dim).cpu()
    assert (found if dim else found.T).tolist() == expected


def test_of_nothing_there_is_none(device):
    assert highest_first(torch.zeros(0, device=device), 3).tolist() == []


INF = float("inf")


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([1.0, 1.0 + 1e-12, 0.5], 0),
        ([1.0, 1.0 + 1e-7, 0.5], 1),
        ([-INF, 3.0, 3.0], 1),
        ([0.0, INF, 1.0], 1),
        ([-INF, -INF], 0),
    ],
)
def test_of_values_that_are_equal_up_to_rounding_the_first_is_highest(values, first):
    assert first_highest(torch.tensor(values).double()).tolist() == [first]


def test_masked_values_reach_nothing_and_are_not_among_the_highest():
    values = torch.tensor([-INF, 0.0, 5.0, 5.0 - 1e-12, 6.0], dtype=torch.float64)
    assert reach(values, 5.0).tolist() == [False, False, True, True, True]
    assert reach(1e6 * values, 5e6 + 1e-4).tolist() == [False, False, True, True, True]
    assert among_highest(values, 2).tolist() == [False, False, True, False, True]
