import math

import pytest
import torch

from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.problems import HottestSensor, Scaling, Temperatures, clock
from tests.helpers import tolerance


def table() -> Temperatures:
    values = 15 + 10 * torch.rand(4, 96, generator=torch.Generator().manual_seed(0)).double()
    return Temperatures(values, (3, 5, 8, 13), first_day=2)


def test_the_clock_goes_round_once_a_day() -> None:
    z = clock(torch.tensor([2.0, 2.25, 3.5, 4.0]))
    assert z.shape == (4, 3)
    assert z[:, 0].tolist() == [2.0, 2.25, 3.5, 4.0]
    torch.testing.assert_close(z[0, 1:], z[3, 1:], **tolerance(torch.float64))
    angles = torch.tensor([0.0, 0.5, 1.0, 0.0]).double() * math.pi
    torch.testing.assert_close(z[:, 1], angles.cos(), **tolerance(torch.float64))
    torch.testing.assert_close(z[:, 2], angles.sin(), **tolerance(torch.float64))


def test_values_and_maxima_are_those_of_the_table() -> None:
    data = table()
    problem = HottestSensor(data)
    assert problem.domain.points.tolist() == [[0], [1], [2], [3]]
    assert problem.noise_std == 0 and problem.context_dim == 3
    assert problem.contexts.shape == (96, 3)
    assert problem.contexts[:, 0].tolist() == [2 + step / 48 for step in range(96)]
    for step in (0, 17, 95):
        z = problem.contexts[step]
        X = torch.cat([problem.domain.points, z.expand(4, 3)], dim=-1)
        assert torch.equal(problem(X), data.values[:, step])
        assert float(problem(X[2])) == float(data.values[2, step])
        assert problem.optimal_value_at(z) == float(data.values[:, step].max())
        few = torch.tensor([[3.0], [1.0]]).double()
        assert problem.optimal_value_at(z, few) == float(data.values[[1, 3], step].max())
    steps = torch.tensor([5, 60])
    X = torch.cat([problem.domain.points[[3, 0]], problem.contexts[steps]], dim=-1)
    assert torch.equal(problem(X), data.values[[3, 0], steps])


def test_values_can_be_rescaled() -> None:
    data = table()
    plain, scaled = HottestSensor(data), HottestSensor(data, Scaling(20.0, 4.0))
    X = torch.cat([plain.domain.points, plain.contexts[7].expand(4, 3)], dim=-1)
    torch.testing.assert_close(4 * scaled(X) + 20, plain(X), **tolerance(torch.float64))
    z = plain.contexts[7]
    assert scaled.optimal_value_at(z) == pytest.approx((plain.optimal_value_at(z) - 20) / 4)


def test_sensors_that_are_not_there_are_refused() -> None:
    problem = HottestSensor(table())
    with pytest.raises(OutsideDomainError):
        problem([4.0, *problem.contexts[0].tolist()])
    with pytest.raises(OutsideDomainError):
        problem.optimal_value_at(problem.contexts[0], torch.tensor([[0.5]]).double())
