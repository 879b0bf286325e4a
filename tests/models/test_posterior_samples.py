"""Models drawn from the hyperparameters of a BoTorch model: from samples, or from its priors."""

import numpy
import pytest
import torch
from botorch.models import SingleTaskGP, fully_bayesian
from botorch.models.fully_bayesian import FullyBayesianSingleTaskGP, SaasFullyBayesianSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import Warp
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import LinearKernel
from gpytorch.means import LinearMean
from torch.testing import assert_close

from botorch_ext import CandidateModels
from tests.helpers import drawn, pairwise, tolerance
from tests.models.sessions import values

BOX = torch.tensor([[2.0, -3.0, 4.0], [5.0, -1.0, 4.5]], dtype=torch.float64)
EXACT = tolerance(torch.float64)
X, Y = BOX[0] + (BOX[1] - BOX[0]) * drawn(12, 3, seed=1), 2 + 3 * values(12, 3)
Z = BOX[0] + (BOX[1] - BOX[0]) * drawn(5, 3, seed=2)
TRANSFORMS = {
    "plain": dict,
    "inputs": lambda: {"input_transform": Normalize(3)},
    "some inputs": lambda: {"input_transform": Normalize(3, indices=[2, 0])},
    "outcome": lambda: {"outcome_transform": Standardize(1)},
    "both": lambda: {"input_transform": Normalize(3), "outcome_transform": Standardize(1)},
}

pytestmark = pytest.mark.filterwarnings("ignore:Data .* is not (contained|standardized)")
from_model = CandidateModels.from_posterior_samples


@pytest.fixture(autouse=True)
def _without_jax(monkeypatch):
    # Only the sampler needs JAX, which is optional; here the draws are given.
    if not fully_bayesian._HAS_JAX:
        monkeypatch.setattr(fully_bayesian, "_check_jax_available", lambda: None)
        monkeypatch.setattr(fully_bayesian, "jnp", numpy, raising=False)


def sampled_model(model_type, *data, **transforms):
    """A fully Bayesian model with six samples of its hyperparameters."""
    model = model_type(X, *data, **transforms)
    samples = {"mean": drawn(6, low=-1.0), "outputscale": 0.3 + drawn(6)}
    samples |= {"noise": drawn(6, 1, low=0.03, high=0.13), "lengthscale": 0.3 + drawn(6, 1, 3)}
    model.load_mcmc_samples(samples)
    return model.eval()


@pairwise(name=TRANSFORMS, model_type=[SaasFullyBayesianSingleTaskGP, FullyBayesianSingleTaskGP])
def test_mcmc_draws_predict_what_the_fitted_model_predicts(name, model_type):
    model = sampled_model(model_type, Y.unsqueeze(-1), **TRANSFORMS[name]())
    models = from_model(model)
    assert models.names == [f"draw {i}" for i in range(6)]
    assert (models.num_observations, len(models.parts)) == (0, 1)
    models.add(X, Y)
    with torch.no_grad():
        posterior = model.posterior(Z.unsqueeze(-2))  # 5 x draws x 1 x 1
    mean, std = models.mean_and_std(Z)
    assert_close(mean, posterior.mean[..., 0, 0].mT, **EXACT)
    assert_close(std.square(), posterior.variance[..., 0, 0].mT, **EXACT)
    kept = [0, 2, 5]  # 2.5 rounds to even
    assert_close(from_model(model, 3).noise_variance, models.noise_variance[kept], **EXACT)
    with pytest.raises(ValueError, match="num_models"):
        from_model(model, 7)


def test_models_without_samples_or_with_other_parts_are_refused():
    Y_, six = values(12, 1).exp().unsqueeze(-1), torch.Size([6])

    def sampled(*data, covar_module=None, mean_module=None, **transforms):
        model = sampled_model(FullyBayesianSingleTaskGP, Y_, *data, **transforms)
        model.covar_module = covar_module or model.covar_module
        model.mean_module = mean_module or model.mean_module
        return model

    linear, sloping = LinearKernel(batch_shape=six), LinearMean(3, batch_shape=six)
    for said, model in {
        "fitted": SaasFullyBayesianSingleTaskGP(X, Y_),
        "must hold samples .* got a SingleTaskGP": SingleTaskGP(X, Y_),
        "one output": SingleTaskGP(X, Y_.expand(12, 2) + X[:, :2]),
        "input transform": sampled(input_transform=Warp(3, indices=[0], bounds=BOX)),
        "outcome transform": sampled(outcome_transform=Log()),
        "RBF or Matern": sampled(covar_module=linear, input_transform=Normalize(3)),
        "noise variance at every point": sampled(Y_),
        "constant prior mean": sampled(mean_module=sloping.double()),
    }.items():
        with pytest.raises(ValueError, match=said):
            from_model(model)
