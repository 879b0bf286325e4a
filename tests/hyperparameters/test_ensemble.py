"""Ensemble: grown it is what it is built at once; means at its rows."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.outcomes import Outcomes
from tests.helpers import tolerance

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
X = BOX.sample(30, 1)
Y = torch.sin(2 * X[:, 0]) - (X[:, 1] + 2).square()
PARAMETERS = torch.tensor([[-1.0, 0.3, -6.0, 0.5], [0.2, -0.5, -2.0, -3.0]], dtype=torch.float64)


def ensemble_of(n, bend=1.0, box=BOX):
    outcomes = Outcomes.of(Y[:n], X.device, bend)
    return Ensemble.of(PARAMETERS, Inputs.of(box, None, X[:n]), X[:n], outcomes)


def extended(ensemble, box=BOX):
    return ensemble.extended(Inputs.of(box, None, X), X, Outcomes.of(Y, X.device, 1.0))


def assert_same(one, other):
    at = BOX.sample(50, 2)
    assert_close(one.constants, other.constants)
    for own, expected in zip(one.mean_and_std(at), other.mean_and_std(at), strict=True):
        assert_close(own, expected)


def by_definition(n, bend, at, pending=None):
    """Mean and std of the mixture, one dense GP for each row of parameters."""
    side = BOX.bounds[1] - BOX.bounds[0]
    outcomes = Outcomes.of(Y[:n], X.device, bend)
    means, variances = [], []
    for row in PARAMETERS:
        share, noise, scales = float(row[-1].sigmoid()), row[-2].exp(), side * row[:2].exp()

        def k(A, B, share=share, scales=scales):
            r = torch.cdist(A / scales, B / scales)
            s = 5**0.5 * r
            matern = (1 + s + s.square() / 3) * (-s).exp()
            return share * (-r.square() / 2).exp() + (1 - share) * matern

        inverse = (k(X[:n], X[:n]) + noise * torch.eye(n)).inverse()
        constant = (inverse @ outcomes.values).sum() / inverse.sum()
        means.append(constant + k(at, X[:n]) @ inverse @ (outcomes.values - constant))
        seen = X[:n] if pending is None else torch.cat([X[:n], pending])
        inverse = (k(seen, seen) + noise * torch.eye(len(seen))).inverse()
        variances.append(1 - (k(at, seen) @ inverse * k(at, seen)).sum(dim=-1))
    means, variances = torch.stack(means), torch.stack(variances)
    mean = means.mean(dim=0)
    std = (variances.mean(dim=0) + means.var(dim=0, correction=0)).sqrt()
    if not bend:
        return outcomes.center + outcomes.scale * mean, outcomes.scale * std
    far = outcomes.rate * (outcomes.top - outcomes.center - outcomes.scale * mean)
    below = outcomes.top - far.expm1() / outcomes.rate
    center = torch.where(far > 0, below, outcomes.center + outcomes.scale * mean)
    return center, std * outcomes.scale * far.clamp_min(0).exp()


@pytest.mark.parametrize("bend", [0.0, 3.0])
def test_it_is_the_mixture_of_gps_with_their_likeliest_constants(bend):
    ensemble, at = ensemble_of(22, bend), BOX.sample(12, 2)
    pending = BOX.sample(3, 5)
    for found, expected in (
        (ensemble, by_definition(22, bend, at)),
        (ensemble.with_pending(pending), by_definition(22, bend, at, pending)),
    ):
        for got, value in zip(found.mean_and_std(at), expected, strict=True):
            assert_close(got, value, **tolerance(got.dtype))
        assert_close(found.mean(at), expected[0], **tolerance(at.dtype))
    assert ensemble.thinned(1).parameters.shape == (1, 4)
    assert ensemble.thinned(2) is ensemble


def test_an_extended_ensemble_is_that_of_all_observations():
    before = ensemble_of(22)
    old = before.mean_and_std(X)
    assert_same(extended(before), ensemble_of(30))
    for own, expected in zip(before.mean_and_std(X), old, strict=True):
        assert torch.equal(own, expected)


def test_where_inputs_mean_something_else_models_are_built_anew():
    wider = Box([[1.0, -4.0], [5.0, -1.0]])
    assert_same(extended(ensemble_of(22), wider), ensemble_of(30, box=wider))


def test_means_at_rows_are_the_mean_there():
    for bend in (0.0, 3.0):
        ensemble = ensemble_of(30, bend)
        assert_close(ensemble.mean_at_rows(), ensemble.mean(X))


def test_of_rows_is_given_those_observations_alone():
    rows = torch.tensor([3, 4, 8, 20, 29])
    ensemble = ensemble_of(30).of_rows(rows)
    some, exact = ensemble_of(30), ensemble.model.posterior(ensemble.inputs.features(X))
    assert ensemble.num_observations == 5
    values = some.outcomes.values[rows] - ensemble.constants.unsqueeze(-1)
    assert_close(ensemble.model.factor.y[:, :5], values)
    assert exact.mean.shape == (2, 30, 1)
