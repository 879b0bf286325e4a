"""IntegratedLogEI against BoTorch's LogExpectedImprovement of each model."""

import math

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.acquisition import IntegratedLogEI
from tests.helpers import tolerance

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])


def draw(n, seed):
    X = BOX.sample(n, seed)
    return X, torch.sin(2 * X[:, 0]) * X[:, 1]


def singles():
    models = []
    for cls, scale in ((RBFKernel, 0.4), (MaternKernel, 0.7), (RBFKernel, 2.0)):
        kernel = cls().double()
        kernel.lengthscale = scale
        models.append(bx.KernelGP(kernel, 0.01))
        models[-1].add(*draw(9, 0))
    return models


@pytest.mark.parametrize("maximize", [True, False])
def test_it_is_the_log_of_the_mean_over_models(maximize):
    models, (X, _) = singles(), draw(9, 0)
    acqf = IntegratedLogEI(models, X_baseline=X, maximize=maximize)
    at = BOX.sample(30, 1).unsqueeze(-2)
    each = []
    for model in models:
        means = model.posterior(X.unsqueeze(-2)).mean
        best = means.max() if maximize else means.min()
        each.append(LogExpectedImprovement(model, best_f=best, maximize=maximize)(at))
    expected = torch.stack(each).logsumexp(dim=0) - math.log(3)
    assert_close(acqf(at), expected, **tolerance(at.dtype))


def test_gradients_are_those_of_the_values():
    acqf = IntegratedLogEI(singles(), X_baseline=draw(9, 0)[0])
    assert torch.autograd.gradcheck(acqf, (BOX.sample(6, 2).unsqueeze(-2).requires_grad_(),))


def test_pending_points_count_in_std_and_as_incumbents():
    models, (X, _) = singles(), draw(9, 0)
    pending = BOX.sample(3, 5)
    acqf = IntegratedLogEI(models, X_baseline=X)
    before = acqf(pending.unsqueeze(-2))
    acqf.set_X_pending(pending)
    assert (acqf(pending.unsqueeze(-2)) < before).all()
    both = torch.cat([X, pending])
    expected = torch.stack([model.posterior(both.unsqueeze(-2)).mean.amax() for model in models])
    assert_close(acqf.incumbents, expected)
    acqf.set_X_pending(None)
    assert_close(acqf(pending.unsqueeze(-2)), before)
    low = IntegratedLogEI(models, best_f=-100.0, X_pending=pending)
    assert (low.incumbents > -99).all()
    assert_close(IntegratedLogEI(models, best_f=0.5).incumbents, torch.full((3,), 0.5).double())


@pytest.mark.parametrize(
    "wrong", [{}, {"X_baseline": draw(2, 0)[0], "best_f": 1.0}, {"best_f": torch.zeros(2)}]
)
def test_what_it_improves_on_must_be_given_once(wrong):
    with pytest.raises(ValueError, match="best_f"):
        IntegratedLogEI(singles(), **wrong)


def test_ax_can_build_it():
    X, y = draw(9, 0)
    model = SingleTaskGP(X, y.unsqueeze(-1), input_transform=Normalize(2))
    data = SupervisedDataset(X, y.unsqueeze(-1), feature_names=["a", "b"], outcome_names=["y"])
    inputs = get_acqf_input_constructor(IntegratedLogEI)(model, training_data=data)
    assert_close(inputs["X_baseline"], X)
    assert IntegratedLogEI(**inputs)(X[:2].unsqueeze(-2)).shape == (2,)


# --- particles as a model of BoTorch --------------------------------------------------------------


@pytest.fixture(scope="module")
def strategy():
    return bx.algorithms.integrated_ei(BOX, initial=draw(12, 0), num_initial=0)


@pytest.mark.parametrize("pending", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_particles_in_botorch_choose_as_the_strategy(strategy, pending):
    """qLogNEI of the same models, by Monte Carlo and in other units, where the strategy asked."""
    asked = strategy.clone()
    asked.ask(pending or 1)
    rows = [trial.x for trial in asked.history.trials]
    trial = strategy.ask() if not pending else asked.ask()
    acqf = qLogNoisyExpectedImprovement(
        asked.posterior.to_botorch(),
        X_baseline=draw(12, 0)[0],
        X_pending=torch.stack(rows) if pending else None,
        sampler=SobolQMCNormalSampler(torch.Size([128]), seed=0),
        prune_baseline=False,
    )
    with torch.no_grad():
        elsewhere = acqf(BOX.sample(100, 3).unsqueeze(-2)).max()
        assert acqf(trial.x[None, None]) > elsewhere - 0.1
    value = float(acqf(trial.x[None, None])) - math.log(asked.posterior.outcomes.scale)
    assert value == pytest.approx(trial.info["log_improvement"], abs=0.1)


def test_the_ensemble_is_the_posterior(strategy):
    ensemble = strategy.posterior
    model = ensemble.to_botorch()
    X = BOX.sample(7, 4)
    posterior = model.posterior(X.unsqueeze(-2))
    assert isinstance(posterior, GaussianMixturePosterior)
    assert posterior.mean.shape == (7, 32, 1, 1)
    mean, std = ensemble.mean_and_std(X)
    assert_close(posterior.mixture_mean[:, 0, 0], mean)
    assert_close(posterior.mixture_variance[:, 0, 0].sqrt(), std)
    means, stds = model.mean_and_std(X)
    assert_close(means.mean(dim=0), mean)
    assert stds.shape == (32, 7)
