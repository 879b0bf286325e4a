import math
import pickle

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorStandardDeviation,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogNoisyExpectedImprovement,
)
from botorch.exceptions import UnsupportedError
from botorch.models import MultiTaskGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import FilterFeatures
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.means import ConstantMean, LinearMean
from torch.testing import assert_close

from botorch_ext import FiniteSet, plan
from botorch_ext.models import FinitePosterior, KernelGP
from botorch_ext.models.ensemble_gp import EnsembleGP
from botorch_ext.models.joint_draws import JointDraw
from tests.helpers import drawn, matern, pairwise, rbf, tolerance
from tests.kernel_functions.kernels import scaled, spread, stationary
from tests.models.sessions import CANDIDATES, SPECS, Session, values
from tests.oracles.posterior import dense_posterior

TOL = tolerance(torch.float64)
BOUNDS = torch.tensor([[2.0, -3.0], [5.0, -1.0]], dtype=torch.float64)


# SingleTaskGP wants standardised data in the unit cube; the test data is deliberately neither.
unscaled_data = pytest.mark.filterwarnings(
    "ignore:Data .* is not (contained|standardized):botorch.exceptions.warnings.InputDataWarning"
)


def draw(n, seed, dtype=torch.float64, device="cpu"):
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * drawn(n, 2, seed=seed)
    y = torch.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * values(n, seed)
    return X.to(dtype=dtype, device=device), y.to(dtype=dtype, device=device)


def curved(X):
    return torch.sin(X).sum(dim=-1)


def slopes():
    mean = LinearMean(2, batch_shape=torch.Size([3])).double()
    mean.initialize(weights=spread(-1.0, 1.0, 3, 2, 1), bias=spread(0.0, 2.0, 3, 1))
    return mean


NOISES = spread(0.01, 0.1, 3)
MANY = stationary(math.inf, spread(0.3, 1.5, 3, 1, 1))


def many(batch, lengthscale=0.7):
    """RBF kernels that are all alike."""
    return stationary(math.inf, spread(lengthscale, lengthscale, *batch, 1, 1))


BATCHES = {
    "lengthscales": (MANY, 0.05, None),
    "noise variances": (matern(0.9, nu=1.5), NOISES, None),
    "both": (scaled(MANY, 0.5), NOISES, None),
    "one mean": (MANY, NOISES, curved),
    "a mean each": (MANY, NOISES, slopes()),
    "a mean each of one kernel": (matern(0.9), NOISES, slopes()),
    "constant mean": (MANY, 0.05, ConstantMean()),
    "a number": (MANY, 0.05, lambda X: X.new_full(X.shape[:-1], 3.0)),
}


@pairwise(name=BATCHES, num=[0, 25], own_points=[False, True])
def test_gradients_of_a_batch_are_those_of_each_model(name, num, own_points):
    kernel, noise, prior = BATCHES[name]
    model = KernelGP(kernel, noise, mean=prior)
    if num:
        model.add(*draw(num, 2))
    Z = draw(15, 3)[0].reshape(3, 5, 2) if own_points else draw(5, 3)[0]
    assert model.has_closed_form_gradient
    got = model.mean_std_and_gradients(Z)
    Z = Z.expand(3, 5, 2).clone().requires_grad_()  # so that the gradients stay apart
    moments = model.mean_and_std(Z)
    gradients = (
        torch.autograd.grad(moment.sum() + 0 * Z.sum(), Z, retain_graph=True)[0]
        for moment in moments  # which need not depend on Z
    )
    for a, b in zip(got, (*moments, *gradients), strict=True):
        assert a.shape == b.shape
        assert not a.requires_grad
        assert_close(a, b.detach(), rtol=1e-7, atol=1e-9)


def test_a_mean_with_a_cusp_has_a_gradient_of_zero_there():
    model = KernelGP(rbf(0.7), 0.05, mean=lambda X: (X[..., 0] - 3).square().sqrt())
    Z = torch.tensor([[3.0, -2.0], [4.0, -2.0]], dtype=torch.float64)
    expected = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert_close(model.mean_std_and_gradients(Z)[2], expected)


def test_posterior_works_lazily_for_many_points():
    X, y = draw(20, 12)
    Z, _ = draw(600, 13)
    model = KernelGP(rbf(0.7), noise_variance=0.05)
    model.add(X, y)
    posterior = model.posterior(Z, observation_noise=True)
    mean, covariance = dense_posterior(rbf(0.7), X, y, Z, 0.05)
    assert_close(posterior.mean.squeeze(-1), mean, **TOL)
    expected = covariance + 0.05 * torch.eye(600, dtype=torch.float64)
    assert_close(posterior.variance.squeeze(-1), expected.diagonal(), rtol=1e-7, atol=1e-7)
    assert_close(posterior.distribution.covariance_matrix, expected, rtol=1e-6, atol=1e-7)


def test_empty_model_is_the_prior():
    Z, _ = draw(5, 14)
    mean = ConstantMean().double()
    mean.constant.data.fill_(1.5)
    model = KernelGP(scaled(rbf(0.7)), noise_variance=0.05, mean=mean)
    posterior = model.posterior(Z)
    assert_close(posterior.mean, torch.full((5, 1), 1.5, dtype=torch.float64))
    assert_close(posterior.distribution.covariance_matrix, scaled(rbf(0.7))(Z).to_dense().detach())
    assert model.information_gain().item() == 0


@unscaled_data
@pytest.mark.parametrize("transforms", [False, True])
def test_from_botorch_keeps_the_posterior_and_grows(transforms):
    X, y = draw(25, 15)
    X2, y2 = draw(5, 16)
    Z, _ = draw(12, 17)
    options = {"outcome_transform": None}
    if transforms:
        options = {
            "outcome_transform": Standardize(1),
            "input_transform": Normalize(2, bounds=BOUNDS),
        }
    gp = SingleTaskGP(X, y[:, None], **options)
    gp.covar_module.lengthscale = 0.4
    gp.likelihood.noise = 0.03
    gp.mean_module.constant.data.fill_(0.2)
    frozen = KernelGP.from_botorch(gp)
    for _ in range(2):
        expected, got = gp.posterior(Z[:, None]), frozen.posterior(Z[:, None])
        assert_close(got.mean, expected.mean, **TOL)
        assert_close(got.variance, expected.variance, **TOL)
        mean, std = frozen.mean_and_std(Z)
        assert_close(mean, expected.mean.reshape(12), **TOL)
        assert_close(std, expected.variance.sqrt().reshape(12), **TOL)
        noisy = frozen.posterior(Z[:, None], observation_noise=True).variance
        assert_close(noisy, gp.posterior(Z[:, None], observation_noise=True).variance, **TOL)
        frozen.add(X2, y2)
        gp = gp.condition_on_observations(X2, y2[:, None])


def of_two_columns_of_three():
    """A BoTorch model that leaves the last of three columns out."""
    X, y = draw(25, 15)
    X = torch.cat([X, X[:, :1].square()], dim=-1)
    gp = SingleTaskGP(
        X, y[:, None], outcome_transform=None, input_transform=FilterFeatures(torch.tensor([0, 1]))
    )
    return gp, X, y


@unscaled_data
def test_a_transform_may_change_the_number_of_columns():
    gp, X, y = of_two_columns_of_three()
    frozen = KernelGP.from_botorch(gp)
    frozen.require_takes(X)
    gp.posterior(X)  # GPyTorch conditions only then
    Z, values = X[:4] + 0.1, y[:4] - 0.5
    frozen.add(Z, values)
    gp = gp.condition_on_observations(Z, values[:, None])
    expected, got = gp.posterior(X[:, None]), frozen.posterior(X[:, None])
    assert_close(got.mean, expected.mean, **tolerance(X.dtype))
    assert_close(got.variance, expected.variance, **tolerance(X.dtype))
    batch = plan(FiniteSet(X), frozen, 3, X_pending=X[:2])
    assert batch.indices is not None and not {0, 1} & set(batch.indices.tolist())


@unscaled_data
def test_from_botorch_refuses_what_it_cannot_keep():
    X, y = draw(6, 0)
    with pytest.raises(ValueError, match="one output"):
        KernelGP.from_botorch(SingleTaskGP(X, torch.stack([y, y], -1), outcome_transform=None))
    yvar = torch.linspace(0.1, 0.2, 6, dtype=torch.float64)[:, None]
    uneven = SingleTaskGP(X, y[:, None], yvar, outcome_transform=None)
    with pytest.raises(ValueError, match="same noise variance"):
        KernelGP.from_botorch(uneven)
    task = torch.arange(6, dtype=torch.float64)[:, None] % 2
    several_tasks = MultiTaskGP(torch.cat([X, task], -1), y[:, None], -1, output_tasks=[0])
    for model in (several_tasks, SingleTaskVariationalGP(X, y[:, None])):
        with pytest.raises(ValueError, match="exact GP of a single task"):
            KernelGP.from_botorch(model)


@unscaled_data
@pytest.mark.parametrize("training", [True, False])
def test_from_botorch_leaves_its_model_in_the_mode_it_was_in(training):
    X, y = draw(6, 0)
    gp = SingleTaskGP(X, y[:, None], input_transform=Normalize(2, bounds=BOUNDS)).train(training)
    inputs = gp.train_inputs[0].clone()
    frozen = KernelGP.from_botorch(gp)
    assert gp.training == training
    assert_close(gp.train_inputs[0], inputs)
    assert_close(frozen.train_inputs[0], Normalize(2, bounds=BOUNDS)(X))


def test_condition_on_observations_and_fantasies():
    X, y = draw(12, 18)
    model = KernelGP(rbf(0.7), noise_variance=0.05)
    model.add(X, y)
    Xf = torch.stack([draw(3, s)[0] for s in (19, 20)]).requires_grad_()  # b=2 x 3 x 2
    Yf = torch.randn(4, 2, 3, 1, generator=torch.Generator().manual_seed(0)).double()
    fantasy = model.condition_on_observations(Xf, Yf)
    assert fantasy.batch_shape == (4, 2)
    Z, _ = draw(5, 21)
    posterior = fantasy.posterior(Z)
    for i in range(4):
        for j in range(2):
            Xa, ya = torch.cat([X, Xf[j].detach()]), torch.cat([y, Yf[i, j, :, 0]])
            mean, covariance = dense_posterior(rbf(0.7), Xa, ya, Z, 0.05)
            assert_close(posterior.mean[i, j, :, 0], mean, **TOL)
            got = posterior.distribution.covariance_matrix[i, j]
            assert_close(got, covariance, **TOL)
    posterior.mean.sum().backward()
    assert Xf.grad is not None and bool((Xf.grad != 0).any())
    assert model.num_observations == 12 and model.batch_shape == ()
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=0)
    assert model.fantasize(Xf.detach(), sampler).posterior(Z).mean.shape == (3, 2, 5, 1)


def test_an_empty_model_is_conditioned_and_fantasized():
    X = torch.stack([draw(3, s)[0] for s in (1, 2)])
    Y = torch.randn(2, 3, 1, generator=torch.Generator().manual_seed(0)).double()
    Z, _ = draw(5, 3)
    for kernel, batch in ((rbf(0.7), ()), (many((2,)), (2,))):
        model = KernelGP(kernel, noise_variance=0.05)
        conditioned = model.condition_on_observations(X, Y)
        mean, std = conditioned.mean_and_std(Z)
        for i in range(2):
            expected = dense_posterior(rbf(0.7), X[i], Y[i, :, 0], Z, 0.05)
            assert_close(mean[i], expected[0], **TOL)
            assert_close(std[i], expected[1].diagonal().sqrt(), **TOL)
        sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
        fantasies = model.fantasize(X[:, None] if batch else X, sampler)
        assert fantasies.posterior(Z[:2]).mean.shape == (4, 2, *batch, 2, 1)


@pytest.mark.parametrize("first", [0, 1])
def test_moving_a_conditioned_model_leaves_the_others_as_they_were(first):
    X, y = draw(10, 0)
    parent = KernelGP(scaled(matern(0.9, nu=1.5)), 0.05, mean=ConstantMean())
    parent.add(X, y)
    models = [parent, parent.condition_on_observations(X[:2] + 0.1, y[:2, None])]
    expected = [model.mean_and_std(X)[0] for model in models]
    models[first].float()
    models[first].condition_on_observations(X[:1].float(), y[:1, None].float())
    got = models[first].mean_and_std(X.float())[0]
    assert_close(got.double(), expected[first], **tolerance(torch.float32))
    assert torch.equal(models[1 - first].mean_and_std(X)[0], expected[1 - first])
    assert models[1 - first].kernel.outputscale.dtype == torch.float64


ACQUISITIONS = {
    "ucb": lambda m, X, y: UpperConfidenceBound(m, beta=4.0),
    "logei": lambda m, X, y: LogExpectedImprovement(m, best_f=y.max()),
    "qlognei": lambda m, X, y: qLogNoisyExpectedImprovement(
        m,
        X,
        sampler=SobolQMCNormalSampler(torch.Size([32]), seed=1),
        cache_root=False,
        prune_baseline=False,
    ),
    "std": lambda m, X, y: PosteriorStandardDeviation(m),
    "kg": lambda m, X, y: qKnowledgeGradient(
        m, num_fantasies=4, sampler=SobolQMCNormalSampler(torch.Size([4]), seed=1)
    ),
}


@unscaled_data
@pytest.mark.parametrize("name", ACQUISITIONS)
def test_botorch_acquisition_functions_agree_with_single_task_gp(name):
    X, y = draw(20, 22)
    gp = SingleTaskGP(X, y[:, None], outcome_transform=None)
    gp.covar_module.lengthscale = 0.6
    gp.likelihood.noise = 0.05
    frozen = KernelGP.from_botorch(gp)
    q = {"qlognei": 2, "kg": 5}.get(name, 1)
    Z = draw(8 * q, 23)[0].reshape(8, q, 2)
    expected = ACQUISITIONS[name](gp, X, y)(Z)
    got = ACQUISITIONS[name](frozen, X, y)(Z)
    assert_close(got, expected, rtol=1e-5, atol=1e-7)


def test_a_duplicate_at_tiny_noise_gets_jitter_on_its_own_entry():
    X, y = draw(5, 26)
    model = KernelGP(rbf(0.7), noise_variance=1e-16)
    model.add(X, y)
    model.add(X[:1], y[:1])
    assert model.factor.jitter[5] > 0 and not bool((model.factor.jitter[:5] > 0).any())
    block = KernelGP(rbf(0.7), noise_variance=1e-16)
    block.add(torch.cat([X, X[:1]]), torch.cat([y, y[:1]]))
    for m in (model, block):
        mean, std = m.mean_and_std(X)
        assert_close(mean, y, rtol=1e-5, atol=1e-5)
        assert bool(torch.isfinite(std).all())


@pytest.mark.parametrize("outputscale", [1e-12, 1e12])
def test_jitter_is_relative_to_the_prior_variance(outputscale):
    X, y = draw(6, 26)
    noise = 1e-12 * outputscale
    models = []
    for scale in (1.0, outputscale):
        for block in (False, True):
            model = KernelGP(scaled(rbf(0.7), scale), noise * scale / outputscale)
            for part in [slice(0, 6)] if block else [slice(i, i + 1) for i in range(6)]:
                model.add(X[part], y[part])
            model.add(X[:1], y[:1])
            models.append(model)
    assert not any(bool((model.factor.jitter > 0).any()) for model in models)
    tiny = KernelGP(scaled(rbf(0.7), outputscale), 1e-17 * outputscale)
    tiny.add(X, y)
    tiny.add(X[:1], y[:1])
    assert tiny.factor.jitter[6] > 1e-15 * outputscale
    assert not bool((tiny.factor.jitter[:6] > 0).any())


@pytest.mark.parametrize("batch", [(), (2,)])
def test_no_rows_change_nothing(batch):
    X, y = draw(3, 0)
    kernel = many(batch)
    models = KernelGP(kernel, 0.1), FinitePosterior(kernel, X, 0.1)
    for model in models:
        model.add(X[:0], y[:0])
        model.add(X, y)
        model.add(X[:0], None)
        model.add(X[:0], y[:0])
        model.set_targets([], y[:0])
        assert model.num_observations == 3
    assert_close(models[0].mean_and_std(X)[0], models[1].mean)


@pytest.mark.parametrize("how", ["state_dict", "saved", "pickle"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_stored_model_comes_back_whole(how, batch, device, tmp_path):
    X, y = (a.to(device) for a in draw(90, 0))
    kernel = scaled(many(batch))
    model = KernelGP(kernel, 0.05, mean=ConstantMean(), device=device)
    model.add(X[:80], y[:80])
    model.add(X[80:82], None)
    if how == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        other = scaled(many(batch, 2.0), 0.1)
        copy = KernelGP(other, 0.2, mean=ConstantMean(), device=device)
        copy.add(X[:3], y[:3])  # to be forgotten
        state = model.state_dict()
        if how == "saved":
            torch.save(state, tmp_path / "model.pt")
            state = torch.load(tmp_path / "model.pt", weights_only=True)
        copy.load_state_dict(state)
    for grown in (copy, model):
        grown.set_targets([81], y[:1])
        grown.add(X[82:], y[82:])
        assert grown.factor.pending == [80]
    for a, b in zip(copy.mean_and_std(X), model.mean_and_std(X), strict=True):
        assert_close(a, b, **TOL)
    assert_close(copy.train_targets, model.train_targets, **TOL)
    assert_close(copy.posterior(X[:5]).covariance_matrix, model.posterior(X[:5]).covariance_matrix)


def test_moving_a_model_moves_all_of_it():
    X, y = draw(10, 28)
    model = KernelGP(scaled(matern(0.9), 0.6), noise_variance=0.05)
    model.add(X, y)
    expected = model.posterior(X).mean
    moved = model.to(torch.float32)
    moved.add(X[:1].float() + 0.1, y[:1].float())
    assert moved.posterior(X.float()).mean.dtype == torch.float32
    moved.remove(10)
    assert_close(moved.posterior(X.float()).mean.double(), expected, **tolerance(torch.float32))


# --- pending rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one", "lengthscales"])
def test_conditioning_leaves_pending_rows_out_of_the_mean(name):
    session, (X, _) = Session(SPECS[name]), draw(9, 1)
    session.add(X[:2], None)
    session.add(X[2:5], values(3, 0))
    session.add(X[5:6], None)
    model, Y = session.models.parts[0].model, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def mean(new, Y):
        return model.condition_on_observations(new, Y[:, None]).mean_and_std(CANDIDATES[:5])[0]

    told = model.condition_on_observations(X[6:], Y[:, None])
    got = mean(X[6:], Y)
    assert torch.autograd.gradcheck(
        mean, (X[6:].clone().requires_grad_(), Y.clone().requires_grad_())
    )
    session.check()  # it stays as it was
    session.add(X[6:], Y)
    expected, _ = session.models.mean_and_std(CANDIDATES[:5])
    assert_close(got.reshape(expected.shape), expected, **TOL)
    told.set_targets([0], torch.ones(1, dtype=torch.float64))
    session.set_targets([0], torch.ones(1, dtype=torch.float64))
    session.check()
    expected, _ = session.models.mean_and_std(CANDIDATES)
    assert_close(told.mean_and_std(CANDIDATES)[0].reshape(expected.shape), expected, **TOL)


def test_fantasies_with_pending_rows():
    def rows():
        model = KernelGP(rbf(0.6), 0.03)
        model.add(X[:2], None)
        model.add(X[2:4], torch.tensor([1.0, -1.0], dtype=torch.float64))
        return model

    (X, _), Y = draw(7, 2), values(6, 1).reshape(3, 2, 1)
    fantasies = rows().condition_on_observations(X[4:6], Y)
    again = fantasies.condition_on_observations(X[6:], Y[:, :1])
    for i in range(3):
        one = rows()
        for model, more in ((fantasies, slice(4, 6)), (again, slice(6, 7))):
            one.add(X[more], Y[i, : more.stop - more.start, 0])
            assert_close(model.mean_and_std(X)[0][i], one.mean_and_std(X)[0], **TOL)


@pytest.mark.parametrize("name", ["one", "lengthscales"])
def test_a_finite_posterior_takes_over_what_pends(name):
    session, (X, _) = Session(SPECS[name]), draw(8, 3)
    session.add(X[:2], None)
    session.add(X[2:6], values(4, 2))
    session.add(X[6:], None)
    session.models, session.finite = session.models.on(CANDIDATES), True
    session.check()
    session.set_targets([1, 7], torch.tensor([0.3, -0.6], dtype=torch.float64))
    session.remove(3)
    session.check()


# --- draws and mixtures --------------------------------------------------------------------------


@pytest.mark.parametrize("finite", [False, True])
def test_a_joint_draw_is_one_of_the_posterior_however_its_points_come(finite):
    (X, y), (Z, _), width = draw(6, 0), draw(9, 1), 1.5
    model = KernelGP(rbf(0.7), 0.05, mean=curved)
    model.add(X, y)
    model = FinitePosterior.from_model(model, Z) if finite else model
    generator = torch.Generator().manual_seed(3)
    draw_of = JointDraw(model, generator, width)
    got = torch.cat([draw_of.at(Z[:3]), draw_of.at(Z[3:6])])
    mean, covariance = dense_posterior(rbf(0.7), X, y - curved(X), Z, 0.05)
    mean = mean + curved(Z)
    normals = torch.randn(6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    root = torch.linalg.cholesky(covariance[:6, :6])
    # The jitter of a draw is noise of 3e-5 standard deviations.
    close = {"rtol": 0, "atol": 1e-3}
    assert_close(got, mean[:6] + width * root @ normals, **close)
    k = covariance[6:, :6]
    weights = torch.linalg.solve(covariance[:6, :6], k.mT)
    expected = mean[6:] + weights.mT @ (got - mean[:6])
    variance = covariance.diagonal()[6:] - (k.mT * weights).sum(dim=0)
    at, std = draw_of.mean_and_std(Z[6:])
    assert_close(at, expected, **close)
    assert_close(std, width * variance.sqrt(), **close)
    assert_close(draw_of.mean(Z[6:]), at, **close)
    assert torch.autograd.gradcheck(draw_of.mean, (Z[6:].clone().requires_grad_(),))


def test_an_ensemble_is_the_mixture_of_its_models():
    (X, y), (Z, _) = draw(8, 0), draw(5, 1)
    kernel, noise = stationary(math.inf, spread(0.4, 1.2, 3, 1, 1)), spread(0.02, 0.1, 3)
    ensemble, models = EnsembleGP(kernel, noise), KernelGP(kernel, noise)
    for model in (ensemble, models):
        model.add(X, y)
    mean, std = models.mean_and_std(Z)
    for got, expected in zip(ensemble.mean_and_std(Z), (mean, std), strict=True):
        assert_close(got, expected, **TOL)
    posterior = ensemble.posterior(Z[:, None])
    assert posterior.mean.shape == (5, 3, 1, 1)
    assert_close(posterior.mixture_mean[:, 0, 0], mean.mean(dim=0), **TOL)
    spread_of_means = mean.var(dim=0, correction=0)
    variance = std.square().mean(dim=0) + spread_of_means
    assert_close(posterior.mixture_variance[:, 0, 0], variance, **TOL)
    with pytest.raises(UnsupportedError):
        ensemble.fantasize(Z, SobolQMCNormalSampler(torch.Size([3])))
