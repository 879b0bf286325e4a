"""The ensemble of all particles: grown it is what it is built at once."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.outcomes import Outcomes

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
X, AT = BOX.sample(30, 1), BOX.sample(12, 2)
Y = torch.sin(2 * X[:, 0]) - (X[:, 1] + 2).square()
PARAMETERS = torch.tensor([[-1.0, 0.3, -6.0, 0.5], [0.2, -0.5, -2.0, -3.0]], dtype=torch.float64)


def ensemble_of(n, bend=1.0, box=BOX):
    outcomes = Outcomes.of(Y[:n], X.device, bend)
    return Ensemble.of(PARAMETERS, Inputs.of(box, None, X[:n]), X[:n], outcomes)


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
