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
from botorch.models import MultiTaskGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms import Normalize, Round, Standardize
from botorch.models.transforms.input import FilterFeatures
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.means import ConstantMean, LinearMean
from torch.testing import assert_close

from botorch_ext import FiniteSet, plan
from botorch_ext.exceptions import JitterWarning
from botorch_ext.kernel_functions import freeze
from botorch_ext.models import FinitePosterior, KernelGP
from tests.helpers import tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

BOUNDS = torch.tensor([[2.0, -3.0], [5.0, -1.0]], dtype=torch.float64)


# SingleTaskGP wants standardised data in the unit cube; the test data is deliberately neither.
unscaled_data = pytest.mark.filterwarnings(
    "ignore:Data .* is not (contained|standardized):botorch.exceptions.warnings.InputDataWarning"
)


def rbf(lengthscale=0.7, **kwargs):
    kernel = RBFKernel(**kwargs).double()
    # A plain float would pass through float32.
    kernel.lengthscale = torch.as_tensor(lengthscale, dtype=torch.float64)
    return kernel


def matern(nu, lengthscale=0.9):
    kernel = MaternKernel(nu=nu).double()
    kernel.lengthscale = lengthscale
    return kernel


def scaled(base, outputscale=0.6):
    kernel = ScaleKernel(base).double()
    kernel.outputscale = outputscale
    return kernel


def draw(n, seed, dtype=torch.float64, device="cpu"):
    g = torch.Generator().manual_seed(seed)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(n, 2, generator=g, dtype=torch.float64)
    y = torch.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * torch.randn(n, generator=g, dtype=torch.float64)
    return X.to(dtype=dtype, device=device), y.to(dtype=dtype, device=device)


ard = rbf(torch.tensor([[0.5, 1.3]], dtype=torch.float64), ard_num_dims=2)
KERNELS = {
    "rbf": rbf(),
    "ard": ard,
    "matern12": matern(0.5),
    "matern32": matern(1.5),
    "matern52": scaled(matern(2.5)),
    "active": rbf(0.4, active_dims=(1,)),
    "sum": scaled(AdditiveKernel(rbf(0.4, active_dims=(0,)), matern(2.5)), 0.5),
    "product": rbf() * matern(1.5),
    "linear": LinearKernel().double(),
    "periodic": scaled(PeriodicKernel().double()),
}


@pytest.mark.parametrize("name", KERNELS)
def test_frozen_kernel_equals_gpytorch(name, device):
    kernel = KERNELS[name]
    X, _ = draw(30, 0)
    Z, _ = draw(20, 1)
    Z[:5] = X[:5]  # coincident points: where distances lose digits
    frozen = freeze(kernel, torch.float64, torch.device(device))
    got = frozen(X.to(device), Z.to(device)).cpu()
    # GPyTorch's own Matern distances are only good to about 1e-8 at coincident points.
    atol = 1e-7 if "matern" in name or name in ("sum", "product") else 1e-12
    with torch.no_grad():
        assert_close(got, kernel(X, Z).to_dense(), rtol=1e-10, atol=atol)
        assert_close(frozen.diagonal(X.to(device)).cpu(), kernel(X, diag=True), rtol=1e-10, atol=0)


@pytest.mark.parametrize("name", ["rbf", "ard", "matern32", "matern52", "active", "sum", "product"])
def test_closed_form_gradients_equal_autograd(name):
    X, y = draw(25, 2)
    model = KernelGP(KERNELS[name], noise_variance=0.01)
    model.add(X, y)
    assert model.has_closed_form_gradient
    Z, _ = draw(10, 3)
    Z.requires_grad_()
    mean, std = model.mean_and_std(Z)
    (mean_grad,) = torch.autograd.grad(mean.sum(), Z, retain_graph=True)
    (std_grad,) = torch.autograd.grad(std.sum(), Z)
    got = model.mean_std_and_gradients(Z.detach())
    for a, b in zip(got, (mean, std, mean_grad, std_grad), strict=True):
        assert_close(a, b.detach(), rtol=1e-7, atol=1e-9)


def curved(X):
    return torch.sin(X).sum(dim=-1)


def spread(low, high, *shape):
    return torch.linspace(low, high, math.prod(shape), dtype=torch.float64).reshape(shape)


def slopes():
    mean = LinearMean(2, batch_shape=torch.Size([3])).double()
    mean.initialize(weights=spread(-1.0, 1.0, 3, 2, 1), bias=spread(0.0, 2.0, 3, 1))
    return mean


NOISES = spread(0.01, 0.1, 3)
MANY = rbf(spread(0.3, 1.5, 3, 1, 1), batch_shape=torch.Size([3]))
BATCHES = {
    "lengthscales": (MANY, 0.05, None),
    "noise variances": (matern(1.5), NOISES, None),
    "both": (scaled(MANY, 0.5), NOISES, None),
    "one mean": (MANY, NOISES, curved),
    "a mean each": (MANY, NOISES, slopes()),
    "a mean each of one kernel": (matern(2.5), NOISES, slopes()),
    "constant mean": (MANY, 0.05, ConstantMean()),
    "a number": (MANY, 0.05, lambda X: X.new_full(X.shape[:-1], 3.0)),
}


@pytest.mark.parametrize("num", [0, 25])
@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_gradients_of_a_batch_are_those_of_each_model(name, own_points, num):
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


def test_gradients_of_one_model_with_a_prior_mean():
    model = KernelGP(rbf(), 0.05, mean=curved)
    model.add(*draw(25, 2))
    Z = draw(5, 3)[0]
    got = model.mean_std_and_gradients(Z)
    Z.requires_grad_()
    mean, std = model.mean_and_std(Z)
    for a, b in zip(got[2:], (mean, std), strict=True):
        expected = torch.autograd.grad(b.sum(), Z, retain_graph=True)[0]
        assert_close(a, expected, rtol=1e-7, atol=1e-9)


def test_a_mean_with_a_cusp_has_a_gradient_of_zero_there():
    model = KernelGP(rbf(), 0.05, mean=lambda X: (X[..., 0] - 3).square().sqrt())
    Z = torch.tensor([[3.0, -2.0], [4.0, -2.0]], dtype=torch.float64)
    expected = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert_close(model.mean_std_and_gradients(Z)[2], expected)


@pytest.mark.parametrize("grouping", [[1] * 40, [40], [7, 1, 20, 12]])
@pytest.mark.parametrize("name", KERNELS)
def test_incremental_posterior_is_the_dense_closed_form(name, grouping, device):
    kernel, noise = KERNELS[name], 0.02
    X, y = draw(40, 4)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    Z, _ = draw(15, 5)
    model = KernelGP(kernel, noise_variance=noise, device=device)
    for part in order.split(grouping):
        model.add(X[part].to(device), y[part].to(device))
    # Oracle on the frozen kernel's own values, whose equality with GPyTorch is tested above.
    K = freeze(kernel, torch.float64, torch.device("cpu"))
    A = torch.linalg.solve(K(X, X) + noise * torch.eye(40, dtype=X.dtype), K(X, Z))
    posterior = model.posterior(Z.to(device))
    tol = tolerance(torch.float64)
    assert_close(posterior.mean.squeeze(-1).cpu(), A.mT @ y, **tol)
    assert_close(posterior.distribution.covariance_matrix.cpu(), K(Z, Z) - K(X, Z).mT @ A, **tol)
    gain = dense_information_gain(kernel, X, noise)
    assert_close(model.information_gain().item(), gain, rtol=1e-6, atol=0)


def test_std_never_grows_and_gain_follows_the_chain_rule():
    X, y = draw(60, 6)
    Z, _ = draw(30, 7)
    model = KernelGP(rbf(), noise_variance=0.01)
    chain, previous = 0.0, torch.full((30,), math.inf, dtype=torch.float64)
    for x, value in zip(X, y, strict=True):
        chain += 0.5 * math.log1p(model.mean_and_std(x[None])[1].item() ** 2 / 0.01)
        model.add(x[None], value[None])
        std = model.mean_and_std(Z)[1]
        assert bool((std <= previous + 1e-12).all())
        previous = std
    assert_close(model.information_gain().item(), chain, rtol=1e-10, atol=0)
    assert_close(chain, dense_information_gain(rbf(), X, 0.01), rtol=1e-9, atol=0)


def test_batch_of_kernels_equals_the_single_models(device):
    lengthscales = torch.tensor([0.3, 0.7, 1.5], dtype=torch.float64)
    noise = torch.tensor([0.01, 0.1, 0.05], dtype=torch.float64)
    batched = RBFKernel(batch_shape=torch.Size([3])).double()
    batched.lengthscale = lengthscales.reshape(3, 1, 1)
    model = KernelGP(batched, noise_variance=noise.to(device), device=device)
    X, y = draw(30, 8)
    Z, _ = draw(24, 9)
    for part in (slice(0, 20), slice(20, 21), slice(21, 30)):
        model.add(X[part].to(device), y[part].to(device))
    Zq = Z.reshape(4, 1, 6, 2).to(device)  # t-batch 4, every model
    posterior = model.posterior(Zq)
    assert posterior.mean.shape == (4, 3, 6, 1)
    mean, std = model.mean_and_std(Z.to(device))
    own = model.posterior(Z.reshape(4, 6, 2)[:3].to(device))  # t-batch 3 against batch 3: one each
    for i in range(3):
        single = KernelGP(rbf(lengthscales[i].item()), noise_variance=noise[i].item())
        single.add(X, y)
        expected = single.posterior(Z.reshape(4, 6, 2))
        tol = tolerance(torch.float64)
        assert_close(posterior.mean[:, i].cpu(), expected.mean, **tol)
        covariance = posterior.distribution.covariance_matrix[:, i].cpu()
        assert_close(covariance, expected.distribution.covariance_matrix, **tol)
        assert_close(own.mean[i].cpu(), expected.mean[i], **tol)
        assert_close(mean[i].cpu(), expected.mean.reshape(24), **tol)
        assert_close(std[i].cpu(), expected.variance.reshape(24).sqrt(), **tol)
        assert_close(model.information_gain()[i].cpu(), single.information_gain(), **tol)


@pytest.mark.parametrize("finite", [False, True])
def test_pending_rows_count_in_the_variance_and_leave_the_mean(finite, device):
    kernel, noise = rbf(), 0.05
    X, y = draw(30, 10)
    Z = torch.cat([X, draw(10, 11)[0]])
    if finite:
        model = FinitePosterior(kernel, Z.to(device), noise)
    else:
        model = KernelGP(kernel, noise, device=device)

    def moments():
        if finite:
            return model.mean.cpu(), model.variance.cpu()
        mean, std = model.mean_and_std(Z.to(device))
        return mean.cpu(), std.square().cpu()

    def add(i, value):
        if finite:
            model.add_candidate(i, value)
        else:
            Y = None if value is None else y[i : i + 1].to(device)
            model.add(X[i : i + 1].to(device), Y)

    ids, told = [], set()

    def check():
        rows = [i for i in ids if i in told]
        mean = dense_posterior(kernel, X[rows], y[rows], Z, noise)[0]
        variance = dense_posterior(kernel, X[ids], y[ids], Z, noise)[1].diagonal()
        got_mean, got_variance = moments()
        assert_close(got_mean, mean, **tolerance(torch.float64))
        assert_close(got_variance, variance, **tolerance(torch.float64))
        gain = dense_information_gain(kernel, X[ids], noise)
        assert_close(model.information_gain().item(), gain, rtol=1e-9, atol=0)
        inflation = gain - dense_information_gain(kernel, X[rows], noise)
        assert_close(
            model.factor.pending_information_gain().item(), inflation, rtol=1e-8, atol=1e-8
        )

    def tell(*which):
        rows = [ids.index(i) for i in which]
        model.set_targets(rows, y[list(which)].to(device))
        told.update(which)

    for i in range(20):
        known = i % 3 != 0
        add(i, y[i].item() if known else None)
        ids.append(i)
        if known:
            told.add(i)
        if i == 10:
            tell(6)
    check()
    tell(0, 12)  # out of order, while others are pending
    check()
    row = ids.index(9)  # a pending one is abandoned
    model.remove(row)
    ids.remove(9)
    check()
    model.remove(ids.index(4))  # and a known one forgotten
    ids.remove(4)
    told.discard(4)
    check()
    for i in range(20, 30):
        add(i, None)
        ids.append(i)
    tell(*[i for i in ids if i not in told])
    check()


def test_posterior_works_lazily_for_many_points():
    X, y = draw(20, 12)
    Z, _ = draw(600, 13)
    model = KernelGP(rbf(), noise_variance=0.05)
    model.add(X, y)
    posterior = model.posterior(Z, observation_noise=True)
    mean, covariance = dense_posterior(rbf(), X, y, Z, 0.05)
    assert_close(posterior.mean.squeeze(-1), mean, **tolerance(torch.float64))
    expected = covariance + 0.05 * torch.eye(600, dtype=torch.float64)
    assert_close(posterior.variance.squeeze(-1), expected.diagonal(), rtol=1e-7, atol=1e-7)
    assert_close(posterior.distribution.covariance_matrix, expected, rtol=1e-6, atol=1e-7)


def test_empty_model_is_the_prior():
    Z, _ = draw(5, 14)
    mean = ConstantMean().double()
    mean.constant.data.fill_(1.5)
    model = KernelGP(scaled(rbf()), noise_variance=0.05, mean=mean)
    posterior = model.posterior(Z)
    assert_close(posterior.mean, torch.full((5, 1), 1.5, dtype=torch.float64))
    assert_close(posterior.distribution.covariance_matrix, scaled(rbf())(Z).to_dense().detach())
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
    tol = tolerance(torch.float64)
    for _ in range(2):
        expected, got = gp.posterior(Z[:, None]), frozen.posterior(Z[:, None])
        assert_close(got.mean, expected.mean, **tol)
        assert_close(got.variance, expected.variance, **tol)
        mean, std = frozen.mean_and_std(Z)
        assert_close(mean, expected.mean.reshape(12), **tol)
        assert_close(std, expected.variance.sqrt().reshape(12), **tol)
        noisy = frozen.posterior(Z[:, None], observation_noise=True).variance
        assert_close(noisy, gp.posterior(Z[:, None], observation_noise=True).variance, **tol)
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
def test_inputs_that_a_transform_does_not_take_are_refused():
    frozen = KernelGP.from_botorch(of_two_columns_of_three()[0])
    too_few = torch.ones(2, 1, dtype=torch.float64)
    for call in (lambda: frozen.add(too_few, None), lambda: frozen.require_takes(too_few)):
        with pytest.raises(ValueError, match="input_transform must take points of dimension 1"):
            call()
    assert frozen.num_observations == 25
    unequal = KernelGP(rbf(), 0.1, input_transform=Round(integer_indices=[0]))
    unequal.add(*draw(3, 0))
    with pytest.raises(
        ValueError, match=r"X must have 2 columns after .*got 3 from shape \(2, 3\)"
    ):
        unequal.add(torch.ones(2, 3, dtype=torch.float64), None)


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
    model = KernelGP(rbf(), noise_variance=0.05)
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
            mean, covariance = dense_posterior(rbf(), Xa, ya, Z, 0.05)
            assert_close(posterior.mean[i, j, :, 0], mean, **tolerance(torch.float64))
            got = posterior.distribution.covariance_matrix[i, j]
            assert_close(got, covariance, **tolerance(torch.float64))
    posterior.mean.sum().backward()
    assert Xf.grad is not None and bool((Xf.grad != 0).any())
    assert model.num_observations == 12 and model.batch_shape == ()
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=0)
    assert model.fantasize(Xf.detach(), sampler).posterior(Z).mean.shape == (3, 2, 5, 1)


def test_an_empty_model_is_conditioned_and_fantasized():
    X = torch.stack([draw(3, s)[0] for s in (1, 2)])
    Y = torch.randn(2, 3, 1, generator=torch.Generator().manual_seed(0)).double()
    Z, _ = draw(5, 3)
    for kernel, batch in ((rbf(), ()), (rbf(batch_shape=torch.Size([2])), (2,))):
        model = KernelGP(kernel, noise_variance=0.05)
        conditioned = model.condition_on_observations(X, Y)
        mean, std = conditioned.mean_and_std(Z)
        for i in range(2):
            expected = dense_posterior(rbf(), X[i], Y[i, :, 0], Z, 0.05)
            assert_close(mean[i], expected[0], **tolerance(torch.float64))
            assert_close(std[i], expected[1].diagonal().sqrt(), **tolerance(torch.float64))
        sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
        fantasies = model.fantasize(X[:, None] if batch else X, sampler)
        assert fantasies.posterior(Z[:2]).mean.shape == (4, 2, *batch, 2, 1)


@pytest.mark.parametrize("first", [0, 1])
def test_moving_a_conditioned_model_leaves_the_others_as_they_were(first):
    X, y = draw(10, 0)
    parent = KernelGP(scaled(matern(1.5)), 0.05, mean=ConstantMean())
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


def test_optimize_acqf_with_pending_points():
    X, y = draw(20, 24)
    model = KernelGP(rbf(), noise_variance=0.05)
    model.add(X, y)
    acqf = qLogNoisyExpectedImprovement(
        model, X, X_pending=draw(2, 25)[0], sampler=SobolQMCNormalSampler(torch.Size([16]), seed=1)
    )
    candidates, _ = optimize_acqf(acqf, BOUNDS, q=2, num_restarts=2, raw_samples=16)
    assert candidates.shape == (2, 2)
    assert bool(((candidates >= BOUNDS[0]) & (candidates <= BOUNDS[1])).all())


def test_a_duplicate_at_tiny_noise_gets_jitter_on_its_own_entry():
    X, y = draw(5, 26)
    model = KernelGP(rbf(), noise_variance=1e-16)
    model.add(X, y)
    model.add(X[:1], y[:1])
    assert model.factor.jitter[5] > 0 and not bool((model.factor.jitter[:5] > 0).any())
    block = KernelGP(rbf(), noise_variance=1e-16)
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
            model = KernelGP(scaled(rbf(), scale), noise * scale / outputscale)
            for part in [slice(0, 6)] if block else [slice(i, i + 1) for i in range(6)]:
                model.add(X[part], y[part])
            model.add(X[:1], y[:1])
            models.append(model)
    assert not any(bool((model.factor.jitter > 0).any()) for model in models)
    tiny = KernelGP(scaled(rbf(), outputscale), 1e-17 * outputscale)
    tiny.add(X, y)
    tiny.add(X[:1], y[:1])
    assert tiny.factor.jitter[6] > 1e-15 * outputscale
    assert not bool((tiny.factor.jitter[:6] > 0).any())


def test_float32_warns_when_it_loses_positive_definiteness():
    X, y = draw(5, 27, dtype=torch.float32)
    model = KernelGP(rbf(), noise_variance=1e-9, dtype=torch.float32)
    model.add(X, y)
    with pytest.warns(JitterWarning, match="float32"):
        model.add(X[:1], y[:1])
    assert bool(torch.isfinite(model.mean_and_std(X)[0]).all())


@pytest.mark.parametrize(
    ("X", "Y", "match"),
    [
        (torch.zeros(2, 2).double(), torch.zeros(3).double(), "Y must have shape"),
        (torch.zeros(2, 2).double(), torch.tensor([0.0, math.nan]).double(), "Y must be finite"),
        (torch.full((1, 2), math.inf).double(), torch.zeros(1).double(), "X must be finite"),
        (torch.zeros(2, 3).double(), torch.zeros(2).double(), "X must have shape"),
        (torch.zeros(2, 2), torch.zeros(2).double(), "X must be torch.float64"),
        (torch.zeros(2, 2).double(), torch.zeros(2), "Y must be torch.float64"),
    ],
)
def test_bad_data_is_refused_and_changes_nothing(X, Y, match):
    model = KernelGP(rbf(), noise_variance=0.1)
    model.add(*draw(3, 0))
    with pytest.raises(ValueError, match=match):
        model.add(X, Y)
    assert model.num_observations == 3


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
def test_noise_variance_must_be_positive(noise):
    with pytest.raises(ValueError, match="noise_variance"):
        KernelGP(rbf(), noise_variance=noise)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_no_rows_change_nothing(batch):
    X, y = draw(3, 0)
    kernel = rbf(batch_shape=torch.Size(batch))
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
    kernel = scaled(rbf(batch_shape=torch.Size(batch)))
    model = KernelGP(kernel, 0.05, mean=ConstantMean(), device=device)
    model.add(X[:80], y[:80])
    model.add(X[80:82], None)
    if how == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        other = scaled(rbf(2.0, batch_shape=torch.Size(batch)), 0.1)
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
        assert_close(a, b, **tolerance(torch.float64))
    assert_close(copy.train_targets, model.train_targets, **tolerance(torch.float64))
    assert_close(copy.posterior(X[:5]).covariance_matrix, model.posterior(X[:5]).covariance_matrix)


def test_moving_a_model_moves_all_of_it():
    X, y = draw(10, 28)
    model = KernelGP(KERNELS["matern52"], noise_variance=0.05)
    model.add(X, y)
    expected = model.posterior(X).mean
    moved = model.to(torch.float32)
    moved.add(X[:1].float() + 0.1, y[:1].float())
    assert moved.posterior(X.float()).mean.dtype == torch.float32
    moved.remove(10)
    assert_close(moved.posterior(X.float()).mean.double(), expected, **tolerance(torch.float32))
