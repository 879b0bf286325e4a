"""The ensemble of all particles: a mixture of GPs, and grown what it is built at once."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.outcomes import Outcomes
from tests.helpers import tolerance
from tests.oracles.particles import model_of

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
X, AT = BOX.sample(30, 1), BOX.sample(12, 2)
Y = torch.sin(2 * X[:, 0]) - (X[:, 1] + 2).square()
PARAMETERS = torch.tensor([[-1.0, 0.3, -6.0, 0.5], [0.2, -0.5, -2.0, -3.0]], dtype=torch.float64)


def ensemble_of(n, bend=1.0, box=BOX):
    outcomes = Outcomes.of(Y[:n], X.device, bend)
    return Ensemble.of(PARAMETERS, Inputs.of(box, None, X[:n]), X[:n], outcomes)


def by_definition(n, bend, pending):
    """Mean and std of the mixture, one dense GP for each row of parameters."""
    outcomes, means, variances = Outcomes.of(Y[:n], X.device, bend), [], []
    U, Z = BOX.to_unit(X[:n]), BOX.to_unit(AT)
    for row in PARAMETERS:
        k, noise = model_of(row)
        inverse = (k(U, U) + noise * torch.eye(n)).inverse()
        constant = (inverse @ outcomes.values).sum() / inverse.sum()
        means.append(constant + k(Z, U) @ inverse @ (outcomes.values - constant))
        seen = torch.cat([U, BOX.to_unit(pending)])
        inverse = (k(seen, seen) + noise * torch.eye(len(seen))).inverse()
        variances.append(1 - (k(Z, seen) @ inverse * k(Z, seen)).sum(dim=-1))
    means, variances = torch.stack(means), torch.stack(variances)
    mean = means.mean(dim=0)
    std = (variances.mean(dim=0) + means.var(dim=0, correction=0)).sqrt()
    center = outcomes.center + outcomes.scale * mean
    if not bend:
        return center, outcomes.scale * std
    far = outcomes.rate * (outcomes.top - center)
    below = outcomes.top - far.expm1() / outcomes.rate
    return torch.where(far > 0, below, center), std * outcomes.scale * far.clamp_min(0).exp()


@pytest.mark.parametrize("bend", [0.0, 3.0])
def test_it_is_the_mixture_of_gps_with_their_likeliest_constants(bend):
    ensemble = ensemble_of(22, bend)
    assert_close(ensemble.mean_at_rows(), ensemble.mean(X[:22]))
    for num in (0, 3):
        pending = BOX.sample(num, 5)
        found = ensemble.with_pending(pending) if num else ensemble
        expected = by_definition(22, bend, pending)
        for got, value in zip(found.mean_and_std(AT), expected, strict=True):
            assert_close(got, value, **tolerance(got.dtype))
        assert_close(found.mean(AT), expected[0], **tolerance(AT.dtype))
    assert ensemble.thinned(1).parameters.shape == (1, 4)
    assert ensemble.thinned(2) is ensemble


@pytest.mark.parametrize("box", [BOX, Box([[1.0, -4.0], [5.0, -1.0]])])
def test_an_extended_ensemble_is_that_of_all_observations(box):
    before, whole = ensemble_of(22), ensemble_of(30, box=box)
    old = before.mean_and_std(X)
    # In a wider box inputs mean something else, and models are built anew.
    grown = before.extended(Inputs.of(box, None, X), X, Outcomes.of(Y, X.device, 1.0))
    assert_close(grown.constants, whole.constants)
    for own, expected in zip(grown.mean_and_std(AT), whole.mean_and_std(AT), strict=True):
        assert_close(own, expected)
    for own, expected in zip(before.mean_and_std(X), old, strict=True):
        assert torch.equal(own, expected)


def test_of_rows_is_given_those_observations_alone():
    whole, rows = ensemble_of(30), torch.tensor([3, 4, 8, 20, 29])
    some = whole.of_rows(rows)
    assert some.num_observations == 5
    values = whole.outcomes.values[rows] - some.constants.unsqueeze(-1)
    assert_close(some.model.factor.y[:, :5], values)
    assert some.model.posterior(some.inputs.features(X)).mean.shape == (2, 30, 1)
