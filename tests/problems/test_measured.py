"""Contextual problems of tables: a value is an entry, and the best one is the largest there is."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import problems
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.problems.real_data.peptides import peptide_features
from tests.helpers import drawn, tolerance

CLOSE = tolerance(torch.float64)
SENSORS = problems.Temperatures(15 + 10 * drawn(4, 96), (3, 5, 8, 13), first_day=2)
BINDING = problems.BindingAffinities(
    ("a", "b"),
    (("AAATSAGTR", "AAHARFVAA"), ("AAHARFVAA", "WLHARFVAA", "ALHARFVAA")),
    (torch.tensor([0.5, 2.0]).double(), torch.tensor([1.5, -1.0, 0.0]).double()),
    ("YY", "YF"),
)


def at(actions, z):
    return torch.cat([actions, z.expand(len(actions), -1)], dim=-1)


def test_the_clock_goes_round_once_a_day():
    z = problems.clock(torch.tensor([2.0, 2.25, 3.5, 4.0]))
    angles = torch.tensor([0.0, 0.5, 1.0, 0.0]).double() * math.pi
    expected = torch.stack([torch.tensor([2.0, 2.25, 3.5, 4.0]), angles.cos(), angles.sin()], -1)
    assert_close(z, expected, **CLOSE)


def test_the_hottest_sensor_is_that_of_the_table():
    problem, few = problems.HottestSensor(SENSORS), torch.tensor([[3.0], [1.0]]).double()
    assert problem.domain.points.tolist() == [[0], [1], [2], [3]]
    assert problem.noise_std == 0 and problem.context_dim == 3
    assert_close(problem.contexts, problems.clock(2 + torch.arange(96).double() / 48), **CLOSE)
    for step in (0, 17, 95):
        z, values = problem.contexts[step], SENSORS.values[:, step]
        X = at(problem.domain.points, z)
        assert torch.equal(problem(X), values)
        assert float(problem(X[2])) == float(values[2])
        assert problem.optimal_value_at(z) == float(values.max())
        assert problem.optimal_value_at(z, few) == float(values[[1, 3]].max())
    with pytest.raises(OutsideDomainError):
        problem([4.0, *problem.contexts[0].tolist()])
    with pytest.raises(OutsideDomainError):
        problem.optimal_value_at(problem.contexts[0], torch.tensor([[0.5]]).double())
    for moment in (4.0, 2.001):  # after the table, and between two of its steps
        with pytest.raises(ValueError, match="context"):
            problem([0.0, *problems.clock(torch.tensor(moment)).tolist()])


def test_the_best_binder_is_that_of_the_measurements():
    problem = problems.BestBinder(BINDING)
    assert problem.peptides == ("AAATSAGTR", "AAHARFVAA", "WLHARFVAA", "ALHARFVAA")
    assert torch.equal(problem.domain.points, peptide_features(problem.peptides))
    assert problem.context_dim == 1 and problem.noise_std == 0
    for molecule, (peptides, rewards) in enumerate(
        zip(BINDING.peptides, BINDING.rewards, strict=True)
    ):
        z, actions = torch.tensor([float(molecule)]).double(), problem.actions(molecule)
        assert torch.equal(actions, peptide_features(peptides))
        assert torch.equal(problem(at(actions, z)), rewards)
        assert problem.optimal_value_at(z) == float(rewards.max())
        assert problem.optimal_value_at(z, actions[:1]) == float(rewards[0])
        assert problem.rows(molecule) == [problem.peptides.index(p) for p in peptides]
    for molecule, name in ((1.0, "action"), (2.0, "context"), (0.5, "context")):
        with pytest.raises(ValueError, match=name):
            problem(at(problem.domain.points[:1], torch.tensor([molecule]).double()))
    with pytest.raises(ValueError, match="molecule"):
        problem.actions(2)


@pytest.mark.parametrize(
    ("cls", "data"), [(problems.HottestSensor, SENSORS), (problems.BestBinder, BINDING)]
)
def test_values_can_be_rescaled(cls, data):
    plain, scaled = cls(data), cls(data, problems.Scaling(20.0, 4.0))
    z = plain.contexts[7] if cls is problems.HottestSensor else torch.tensor([0.0]).double()
    X = at(plain.domain.points[:2], z)
    assert_close(4 * scaled(X) + 20, plain(X), **CLOSE)
    assert scaled.optimal_value_at(z) == pytest.approx((plain.optimal_value_at(z) - 20) / 4)
