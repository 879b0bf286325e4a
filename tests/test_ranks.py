"""The places of the highest values, of equal ones the first."""

import pytest
import torch

from botorch_ext.ranks import highest_first


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
