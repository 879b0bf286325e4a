import math

import pytest
import torch
from botorch.acquisition import PosteriorStandardDeviation, UpperConfidenceBound
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import ModelListGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from botorch_ext import Box, KernelGP, plan, widths
from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
    MaxVariance,
    OptimisticModelUCB,
    StableUCB,
)
from tests.acquisition.every_function import BOUNDS
from tests.acquisition.every_function import draw as plain_draw
from tests.helpers import rbf, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

NOISE = 0.04


def draw(n, seed):
    X = plain_draw(n, seed)[0]
    return X, 10 + 3 * torch.sin(2 * X[:, 0]) * X[:, 1]


def fitted_gp(n=20, seed=0):
    """A SingleTaskGP that transforms inputs and outcomes, with chosen hyperparameters."""
    X, y = draw(n, seed)
    gp = SingleTaskGP(
        X, y[:, None], input_transform=Normalize(2, bounds=BOUNDS), outcome_transform=Standardize(1)
    )
    gp.covar_module.lengthscale = torch.tensor(0.4, dtype=torch.float64)
    gp.likelihood.noise = torch.tensor(NOISE, dtype=torch.float64)
    return gp.eval()


def kernel_gp(n=20, seed=0):
    model = KernelGP(rbf(0.8), NOISE)
    X, y = draw(n, seed)
    model.add(X, y - 10)
    return model, rbf(0.8)


def test_without_misspecification_it_is_ucb():
    gp, (Z, _) = fitted_gp(), draw(30, 1)
    ours = EnlargedUpperConfidenceBound(gp, width=1.7)(Z[:, None])
    assert_close(ours, UpperConfidenceBound(gp, beta=1.7**2)(Z[:, None]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("maximize", [True, False])
def test_enlargement_by_hand(maximize):
    model, kernel = kernel_gp()
    Z, _ = draw(30, 1)
    acqf = EnlargedUpperConfidenceBound(
        model,
        width=2.0,
        misspecification=0.1,
        noise_variance=0.01,
        num_observations=20,
        maximize=maximize,
    )
    X, y = draw(20, 0)
    mean, covariance = dense_posterior(kernel, X, y - 10, Z, NOISE)
    width = 2.0 + 0.1 * math.sqrt(20 + 1) / math.sqrt(0.01)
    expected = (mean if maximize else -mean) + width * covariance.diagonal().sqrt()
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))
    # The noise variance and the number of observations are those of the model unless given.
    default = EnlargedUpperConfidenceBound(model, width=2.0, misspecification=0.1)
    assert_close(default.width.item(), 2.0 + 0.1 * math.sqrt(21 / NOISE), rtol=1e-9, atol=0)


def test_units_are_those_of_the_posterior():
    # Outcomes are standardised inside the model. Its posterior is in raw units: so are eps, lambda.
    gp = fitted_gp()
    scale = gp.outcome_transform.stdvs.item()
    acqf = EnlargedUpperConfidenceBound(gp, width=0.0, misspecification=0.3)
    assert_close(
        acqf.width.item(), 0.3 * math.sqrt(21) / (math.sqrt(NOISE) * scale), rtol=1e-6, atol=0
    )
    # The worst case of lemma 2 in raw units: moving every observation by at most eps.
    Z, _ = draw(25, 2)
    moved = fitted_gp()
    signs = torch.sign(torch.randn(20, generator=torch.Generator().manual_seed(0)))
    targets = gp.train_targets + 0.3 * signs / scale
    moved.set_train_data(targets=targets, strict=False)
    change = (moved.posterior(Z).mean - gp.posterior(Z).mean).abs().squeeze(-1)
    assert bool((change <= acqf(Z[:, None]) - gp.posterior(Z).mean.squeeze(-1) + 1e-6).all())
    assert change.max() > 0.05


def _dense_pending_std(gp, P, Z):
    """Standard deviations at ``Z`` where points ``P`` with the mean noise variance joined the data;
    in raw units."""
    with torch.no_grad():
        A, B, C = gp.train_inputs[0], *(gp.transform_inputs(X) for X in (P, Z))
        noise = gp.likelihood.noise.expand(len(A))
        noise = torch.cat([noise, noise.mean().expand(len(B))])
        data = torch.cat([A, B])
        k = gp.covar_module(data, C).to_dense()
        K = gp.covar_module(data).to_dense() + noise.diag()
        variance = gp.covar_module(C, diag=True) - (k * torch.linalg.solve(K, k)).sum(dim=0)
    return variance.sqrt() * gp.outcome_transform.stdvs.item()


def _gp(noise_seed=None, sign=1.0):
    """A SingleTaskGP, with a known noise variance for each point if there is a seed."""
    X, y = draw(20, 0)
    yvar = None
    if noise_seed is not None:
        g = torch.Generator().manual_seed(noise_seed)
        yvar = 0.05 + torch.rand(20, 1, generator=g, dtype=torch.float64)
    transforms = {
        "input_transform": Normalize(2, bounds=BOUNDS),
        "outcome_transform": Standardize(1),
    }
    return SingleTaskGP(X, sign * y[:, None], yvar, **transforms).eval()


def _two_outputs():
    X, y = draw(20, 0)
    yvar = torch.linspace(0.1, 0.9, 40, dtype=torch.float64).reshape(20, 2)
    return SingleTaskGP(X, torch.stack([y, -y + X[:, 1]], -1), yvar).eval()


@pytest.mark.parametrize("fixed_noise", [None, 3])
def test_pending_points_have_the_mean_noise_of_the_model(fixed_noise):
    gp, P, Z = _gp(fixed_noise), draw(3, 3)[0], draw(30, 1)[0]
    acqf = EnlargedUpperConfidenceBound(gp, width=2.0, X_pending=P)
    expected = gp.posterior(Z).mean.squeeze(-1) + 2.0 * _dense_pending_std(gp, P, Z)
    assert_close(acqf(Z[:, None]), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
def test_pending_points_of_several_outputs():
    weights = torch.tensor([0.7, -0.2], dtype=torch.float64)
    transform = ScalarizedPosteriorTransform(weights)
    P, Z = draw(3, 3)[0], draw(30, 1)[0]
    parts = _gp(), _gp(4, sign=-1.0)
    models = ModelListGP(*parts), _two_outputs()
    for model in models:
        acqf = EnlargedUpperConfidenceBound(model, 2.0, posterior_transform=transform)
        mean = model.posterior(Z[:, None], posterior_transform=transform).mean.reshape(30)
        before = (acqf(Z[:, None]) - mean) / 2
        acqf.set_X_pending(P)
        std = (acqf(Z[:, None]) - mean) / 2
        assert bool((std < before).all())
        if model is models[0]:
            each = torch.stack([_dense_pending_std(gp, P, Z) for gp in parts])
            expected = ((weights[:, None] * each).square().sum(dim=0)).sqrt()
            assert_close(std, expected, rtol=1e-5, atol=1e-5)
        X, _ = optimize_acqf(acqf, BOUNDS, q=2, num_restarts=2, raw_samples=16, sequential=True)
        assert torch.pdist(X).min() > 1e-2


@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.parametrize("name", ["SingleTaskVariationalGP", "GenericDeterministic"])
def test_models_that_cannot_be_conditioned_are_named(name):
    X, y = draw(10, 0)
    if name == "SingleTaskVariationalGP":
        model = SingleTaskVariationalGP(X, y[:, None]).double()
    else:
        model = GenericDeterministicModel(lambda X: X[..., :1])
    acqf = EnlargedUpperConfidenceBound(model)
    with pytest.raises(ValueError, match=f"X_pending must be None .* got a {name}"):
        acqf.set_X_pending(X[:2])
    assert acqf.X_pending is None


def test_width_objects_with_a_kernel_gp():
    model, _ = kernel_gp()
    width = widths.Enlarged(widths.SelfNormalized(1.0, 0.2, 0.1), 0.1)
    Z, _ = draw(10, 1)
    acqf = EnlargedUpperConfidenceBound(model, width)
    number = EnlargedUpperConfidenceBound(model, float(width(21, model)))
    assert_close(acqf(Z[:, None]), number(Z[:, None]))
    rigorous = widths.FixedDesignContinuous(1.0, 0.2, 0.1, 3)
    lower = LowerConfidenceBound(model, rigorous)(Z[:, None])
    mean, std = model.mean_and_std(Z)
    w, offset = rigorous(21, model), rigorous.offset(21, model)
    assert_close(lower, mean - w * std - offset)
    with pytest.raises(ValueError, match="width objects need a KernelGP"):
        EnlargedUpperConfidenceBound(fitted_gp(), width)


def test_width_objects_are_refused_where_units_would_mix():
    frozen = KernelGP.from_botorch(fitted_gp())  # standardises outcomes
    for cls in (EnlargedUpperConfidenceBound, LowerConfidenceBound):
        with pytest.raises(ValueError, match=r"width must be .* outcome transform"):
            cls(frozen, widths.SelfNormalized(1.0, 0.2, 0.1))


@pytest.mark.parametrize(
    "cls", [EnlargedUpperConfidenceBound, LowerConfidenceBound, OptimisticModelUCB, StableUCB]
)
def test_a_beta_is_refused_with_the_width_to_write(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) takes no beta: .*width=beta\*\*0.5"):
        cls(fitted_gp(), beta=4.0)


def test_defaults_of_a_list_of_models():
    parts = _gp(), _gp(4, sign=-1.0)
    weights = torch.tensor([0.7, -0.2], dtype=torch.float64)
    transform = ScalarizedPosteriorTransform(weights)
    model = ModelListGP(*parts)
    acqf = EnlargedUpperConfidenceBound(model, 2.0, 0.1, posterior_transform=transform)
    noise = sum(
        weight**2 * gp.likelihood.noise.mean() * gp.outcome_transform.stdvs.squeeze() ** 2
        for weight, gp in zip(weights, parts, strict=True)
    )
    assert_close(acqf.width, (2.0 + 0.1 * math.sqrt(21) / noise.sqrt()).detach())


def test_defaults_of_a_model_without_data():
    model = KernelGP(RBFKernel().double(), NOISE)
    acqf = EnlargedUpperConfidenceBound(model, 2.0, misspecification=0.1)
    assert_close(acqf.width.item(), 2.0 + 0.1 / math.sqrt(NOISE), rtol=1e-9, atol=0)
    transformed = KernelGP(RBFKernel().double(), NOISE, input_transform=Normalize(2, bounds=BOUNDS))
    with pytest.raises(ValueError, match="noise_variance must be given: a KernelGP"):
        EnlargedUpperConfidenceBound(transformed, 2.0, misspecification=0.1)
    acqf = EnlargedUpperConfidenceBound(transformed, 2.0, 0.1, noise_variance=0.01)
    assert_close(acqf.width.item(), 3.0, rtol=1e-9, atol=0)
    deterministic = GenericDeterministicModel(lambda X: X[..., :1])
    with pytest.raises(ValueError, match="num_observations must be given"):
        EnlargedUpperConfidenceBound(deterministic, misspecification=0.1)
    with pytest.raises(ValueError, match="noise_variance must be given"):
        EnlargedUpperConfidenceBound(deterministic, misspecification=0.1, num_observations=3)


def test_lower_and_upper_bound_are_symmetric():
    gp, (Z, _) = fitted_gp(), draw(30, 1)
    upper = EnlargedUpperConfidenceBound(gp, width=1.3)(Z[:, None])
    lower = LowerConfidenceBound(gp, width=1.3)(Z[:, None])
    mean = gp.posterior(Z[:, None]).mean.reshape(30)
    assert_close((upper + lower) / 2, mean)
    flipped = LowerConfidenceBound(gp, width=1.3, maximize=False)(Z[:, None])
    assert_close(flipped, -upper)


# --- the largest variance ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [fitted_gp, lambda: kernel_gp()[0]])
def test_without_pending_points_max_variance_is_the_posterior_standard_deviation(make):
    model, (Z, _) = make(), draw(30, 1)
    Z = Z.reshape(5, 6, 1, 2)
    ours, theirs = (acqf(model)(Z) for acqf in (MaxVariance, PosteriorStandardDeviation))
    assert ours.shape == (5, 6)
    assert_close(ours, theirs, **tolerance(torch.float64))


def test_pending_points_count_as_seen():
    model, k = kernel_gp()
    (X, _), (pending, _), (Z, _) = draw(20, 0), draw(4, 3), draw(30, 1)
    acqf = MaxVariance(model, X_pending=pending)
    seen = torch.cat([X, pending])
    covariance = dense_posterior(k, seen, X.new_zeros(24), Z, NOISE)[1]
    assert_close(acqf(Z[:, None]), covariance.diagonal().sqrt(), **tolerance(torch.float64))
    # They are replaced, not added to; and the model of the caller stays as it is.
    acqf.set_X_pending(None)
    assert_close(acqf(Z[:, None]), MaxVariance(model)(Z[:, None]), **tolerance(torch.float64))
    assert model.num_observations == 20


@pytest.mark.parametrize("frozen", [False, True], ids=["SingleTaskGP", "KernelGP"])
def test_a_sequential_batch_of_optimize_acqf_is_a_plan(frozen):
    gp = fitted_gp(6)
    model = KernelGP.from_botorch(gp)
    acqf = MaxVariance(model if frozen else gp)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X, _ = optimize_acqf(acqf, BOUNDS, q=3, num_restarts=6, raw_samples=128, sequential=True)
    # The points differ: one hallucinates the others. Their gain is that of a planned batch.
    start = model.train_inputs[0]
    seen = torch.cat([start, model.transform_inputs(X)])
    noise = model.noise_variance.item()
    gain = dense_information_gain(model.kernel, seen, noise) - dense_information_gain(
        model.kernel, start, noise
    )
    assert gain == pytest.approx(plan(Box(BOUNDS), model, 3).information_gain, rel=0.01)
    assert acqf.X_pending is None
