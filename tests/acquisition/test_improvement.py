"""IntegratedLogEI beside the strategy, and what it improves on; its values are in
`test_definitions`."""

import math

import pytest
import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.exceptions import UnsupportedError
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.datasets import SupervisedDataset
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.acquisition import IntegratedLogEI
from tests.acquisition.every_function import BOUNDS, draw, single_task_gp, singles

BOX = bx.Box(BOUNDS)
TOLD = BOX.sample(12, 0)


def test_given_incumbents_are_raised_by_pending_points():
    models, P = singles(), draw(3, 5)[0]
    assert (IntegratedLogEI(models, best_f=-100.0, X_pending=P).incumbents > -99).all()
    assert IntegratedLogEI(models, best_f=0.5).incumbents.tolist() == [0.5] * 3


@pytest.mark.parametrize(
    "wrong", [{}, {"X_baseline": draw(2, 0)[0], "best_f": 1.0}, {"best_f": torch.zeros(2)}]
)
def test_what_it_improves_on_must_be_given_once(wrong):
    with pytest.raises(ValueError, match="best_f"):
        IntegratedLogEI(singles(), **wrong)


def test_ax_can_build_it():
    X, y = draw(9, 0)
    data = SupervisedDataset(X, y.unsqueeze(-1), feature_names=["a", "b"], outcome_names=["y"])
    inputs = get_acqf_input_constructor(IntegratedLogEI)(single_task_gp(), training_data=data)
    assert_close(inputs["X_baseline"], X)
    assert IntegratedLogEI(**inputs)(X[:2].unsqueeze(-2)).shape == (2,)


@pytest.fixture(scope="module")
def strategy():
    initial = TOLD, torch.sin(2 * TOLD[:, 0]) * TOLD[:, 1]
    return bx.algorithms.integrated_ei(BOX, initial=initial, num_initial=0)


@pytest.mark.parametrize("pending", [0, 2])
def test_particles_in_botorch_choose_as_the_strategy(strategy, pending):
    """qLogNEI of the same models, by Monte Carlo and in other units, where the strategy asked."""
    asked = strategy.clone()
    rows = [trial.x for trial in asked.ask(pending)] if pending else []
    posterior = asked.posterior
    acqf = qLogNoisyExpectedImprovement(
        posterior.to_botorch(),
        X_baseline=TOLD,
        X_pending=torch.stack(rows) if pending else None,
        sampler=SobolQMCNormalSampler(torch.Size([128]), seed=0),
        prune_baseline=False,
    )
    trial = asked.ask()
    with torch.no_grad():
        elsewhere = acqf(BOX.sample(100, 3).unsqueeze(-2)).max()
        value = acqf(trial.x[None, None])
    assert value > elsewhere - 0.1
    expected = float(value) - math.log(posterior.outcomes.scale)
    assert expected == pytest.approx(trial.info["log_improvement"], abs=0.1)


def test_the_ensemble_is_the_posterior(strategy):
    model, X = strategy.posterior.to_botorch(), BOX.sample(7, 4)
    posterior = model.posterior(X.unsqueeze(-2))
    assert isinstance(posterior, GaussianMixturePosterior)
    assert posterior.mean.shape == (7, 32, 1, 1)
    mean, std = strategy.posterior.mean_and_std(X)
    assert_close(posterior.mixture_mean[:, 0, 0], mean)
    assert_close(posterior.mixture_variance[:, 0, 0].sqrt(), std)
    means, stds = model.mean_and_std(X)
    assert_close(means.mean(dim=0), mean)
    assert stds.shape == (32, 7)
    with pytest.raises(UnsupportedError):
        model.fantasize(X, SobolQMCNormalSampler(torch.Size([3])))
