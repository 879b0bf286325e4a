import pytest
import torch

from botorch_ext.problems import BestBinder, BindingAffinities, Scaling
from botorch_ext.problems.real_data.peptides import peptide_features


def two_molecules() -> BindingAffinities:
    rewards = (torch.tensor([0.5, 2.0]), torch.tensor([1.5, -1.0, 0.0]))
    return BindingAffinities(
        ("a", "b"),
        (("AAATSAGTR", "AAHARFVAA"), ("AAHARFVAA", "WLHARFVAA", "ALHARFVAA")),
        tuple(reward.double() for reward in rewards),
        ("YY", "YF"),
    )


def test_the_best_binder_is_that_of_the_measurements() -> None:
    data = two_molecules()
    problem = BestBinder(data)
    assert problem.peptides == ("AAATSAGTR", "AAHARFVAA", "WLHARFVAA", "ALHARFVAA")
    assert torch.equal(problem.domain.points, peptide_features(problem.peptides))
    assert problem.context_dim == 1 and problem.noise_std == 0
    for molecule, peptides in enumerate(data.peptides):
        z = torch.tensor([float(molecule)]).double()
        actions = problem.actions(molecule)
        assert torch.equal(actions, peptide_features(peptides))
        X = torch.cat([actions, z.expand(len(actions), 1)], dim=-1)
        assert torch.equal(problem(X), data.rewards[molecule])
        assert problem.optimal_value_at(z) == float(data.rewards[molecule].max())
        assert problem.optimal_value_at(z, actions[:1]) == float(data.rewards[molecule][0])
        assert problem.rows(molecule) == [problem.peptides.index(p) for p in peptides]


def test_the_best_binder_can_be_rescaled() -> None:
    plain, scaled = BestBinder(two_molecules()), BestBinder(two_molecules(), Scaling(1, 2))
    z = torch.tensor([1.0]).double()
    assert scaled.optimal_value_at(z) == pytest.approx((plain.optimal_value_at(z) - 1) / 2)


def test_what_was_not_measured_is_refused() -> None:
    problem = BestBinder(two_molecules())
    first = problem.domain.points[:1]
    for molecule, match in ((1.0, "measured with molecule 1"), (2.0, "from 0 to 1"), (0.5, "from")):
        z = torch.tensor([[molecule]]).double()
        with pytest.raises(ValueError, match=match):
            problem(torch.cat([first, z], dim=-1))
    with pytest.raises(ValueError, match="molecule must be from 0 to 1"):
        problem.actions(2)
