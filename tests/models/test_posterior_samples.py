"""Models drawn from the hyperparameters of a BoTorch model: from samples, or from its priors."""

import math
from copy import deepcopy

import numpy
import pytest
import torch
from botorch.models import SingleTaskGP, fully_bayesian
from botorch.models.fully_bayesian import FullyBayesianSingleTaskGP, SaasFullyBayesianSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import Warp
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import LinearKernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import LinearMean, ZeroMean
from gpytorch.priors import LogNormalPrior
from torch.testing import assert_close

from botorch_ext import CandidateModels
from botorch_ext.exceptions import PriorDrawsWarning
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


@pairwise(name=TRANSFORMS, model_type=[SaasFullyBayesianSingleTaskGP, FullyBayesianSingleTaskGP])
def test_mcmc_draws_predict_what_the_fitted_model_predicts(name, model_type):
    model = model_type(X, Y.unsqueeze(-1), **TRANSFORMS[name]())
    samples = {"mean": drawn(6, low=-1.0), "noise": drawn(6, 1, low=0.03, high=0.13)}
    samples |= {"outputscale": 0.3 + drawn(6), "lengthscale": 0.3 + drawn(6, 1, 3)}
    model.load_mcmc_samples(samples)
    models = from_model(model.eval())
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


@pytest.mark.parametrize("name", ["plain", "both"])
def test_prior_draws_are_models_with_these_hyperparameters(name):
    def single_task(**options):
        return SingleTaskGP(X, Y.unsqueeze(-1), **{"outcome_transform": None} | options).eval()

    state = torch.random.get_rng_state()
    model = single_task(**TRANSFORMS[name]())
    before = model.covar_module.lengthscale.clone()
    models, again = (from_model(model, 5, 3, conditioned=False) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert_close(model.covar_module.lengthscale, before)
    assert_close(models.noise_variance, again.noise_variance)
    # The same draws in the units of the model, one after another.
    plain = from_model(single_task(), 5, 3, conditioned=False)
    models.add(X, Y)
    mean, std = models.mean_and_std(Z)
    lengthscales = [plain.single(i).kernel.lengthscale.detach() for i in range(5)]
    for i in range(5):
        one = single_task(**TRANSFORMS[name]())
        one.likelihood.noise = plain.noise_variance[i]
        one.covar_module.lengthscale = lengthscales[i]
        one.mean_module.constant = model.mean_module.constant.detach()
        with torch.no_grad():
            posterior = one.posterior(Z)
        assert_close(mean[i], posterior.mean[:, 0], **EXACT)
        assert_close(std[i].square(), posterior.variance[:, 0], **EXACT)
    assert len(torch.unique(torch.stack(lengthscales))) == 15


def one_lengthscale(n=10):
    """A GP whose only unknown number is the lengthscale, and its data."""
    x = drawn(n, 1, seed=4)
    y = (4 * x).sin() + 0.1 * values(n, 4).unsqueeze(-1)
    likelihood = GaussianLikelihood().double()
    likelihood.noise = 0.01
    kernel = RBFKernel(lengthscale_prior=LogNormalPrior(0.0, 1.0)).double()
    options = {"covar_module": kernel, "likelihood": likelihood, "mean_module": ZeroMean()}
    return SingleTaskGP(x, y, outcome_transform=None, **options), x, y[:, 0]


def drawn_lengthscales(models):
    return torch.stack([models.single(i).kernel.lengthscale for i in range(len(models))]).flatten()


def test_draws_are_those_of_the_posterior_given_the_data():
    """Beside the posterior of the lengthscale on a grid, which is far from the prior."""
    model, x, y = one_lengthscale()
    grid = torch.linspace(-4, 3, 1401, dtype=torch.float64)
    K = (-(x - x.mT).square() / (2 * (2 * grid).exp()[:, None, None])).exp()
    K = K + 0.01 * torch.eye(len(y), dtype=torch.float64)
    quadratic = torch.linalg.solve(K, y.expand(len(K), -1).unsqueeze(-1)).squeeze(-1) @ y
    weights = (-0.5 * (quadratic + torch.logdet(K) + grid.square())).softmax(dim=0)
    mean = float(weights @ grid)
    std = float((weights @ (grid - mean).square()).sqrt())
    draws = drawn_lengthscales(from_model(model, 64, seed=0)).log()
    assert abs(mean) > 3 * std / 2  # the prior is elsewhere
    # 512 draws from the prior, of which some 150 count.
    assert abs(float(draws.mean()) - mean) < 5 * std / math.sqrt(100)
    assert 0.6 * std < float(draws.std()) < 1.5 * std


def test_few_samples_that_count_and_samples_of_the_priors_alone_are_warned_of():
    model, _, _ = one_lengthscale()
    empty = deepcopy(model)
    empty.train_inputs, empty.train_targets = None, None
    with pytest.warns(PriorDrawsWarning, match="model has no data"):
        models = from_model(empty, 5, seed=3)
    expected = drawn_lengthscales(from_model(model, 5, seed=3, conditioned=False))
    assert_close(drawn_lengthscales(models), expected)
    # Of draws over many orders of magnitude next to none predicts 60 observations.
    model, _, _ = one_lengthscale(60)
    prior = LogNormalPrior(-2.0, 30.0)
    model.covar_module.register_prior("lengthscale_prior", prior, "lengthscale")
    from_model(model, 16, conditioned=False)
    with pytest.warns(PriorDrawsWarning, match="16 samples have an effective size of "):
        from_model(model, 16)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.PriorDrawsWarning")
def test_models_without_draws_are_refused():
    Y_ = values(12, 1).unsqueeze(-1)
    likelihood, linear = GaussianLikelihood().double(), LinearKernel()
    for said, model in {
        "fitted": SaasFullyBayesianSingleTaskGP(X, Y_),
        "either": SingleTaskGP(X, Y_, covar_module=RBFKernel().double(), likelihood=likelihood),
        "one output": SingleTaskGP(X, Y_.expand(12, 2) + X[:, :2]),
        "input transform": SingleTaskGP(X, Y_, input_transform=Warp(3, indices=[0], bounds=BOX)),
        "outcome transform": SingleTaskGP(X, Y_.exp(), outcome_transform=Log()),
        "RBF or Matern": SingleTaskGP(X, Y_, covar_module=linear, input_transform=Normalize(3)),
        "noise variance at every point": SingleTaskGP(X, Y_, Y_.exp()),
        "constant prior mean": SingleTaskGP(X, Y_, mean_module=LinearMean(3).double()),
    }.items():
        with pytest.raises(ValueError, match=said):
            from_model(model)
