"""Models on actions and contexts against dense algebra with kernels written as loops."""

import copy
import itertools
import math
import pickle
import warnings

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.kernels import IndexKernel, MaternKernel, RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.testing import assert_close

from botorch_ext import CandidateModels, KernelGP
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import tolerance
from tests.kernel_functions.kernels import scaled, stationary
from tests.kernels.joint import BY_FORMULA, COVARIANCE, index_kernel, points

TOL = tolerance(torch.float64)
NOISE = 0.05


def values(X):
    """Of a toy whose tasks differ."""
    task = X[:, 4]
    return torch.sin(2 * X[:, 0]) + 0.3 * X[:, 1] * (task - 1) + 0.1 * X[:, 3]


def matrix(make, X1, X2):
    """The kernel matrix as a loop over formulas."""
    kernel, action, context, s, z = make()
    rows = []
    for x, y in itertools.product(X1.tolist(), X2.tolist()):
        first = action([x[c] for c in s], [y[c] for c in s])
        second = context([x[c] for c in z], [y[c] for c in z])
        product = kernel.combination == "product"
        rows.append(first * second if product else (first + second) / 2)
    return torch.tensor(rows, dtype=torch.float64).reshape(len(X1), len(X2))


def dense_moments(make, X, y, Z):
    K = matrix(make, X, X) + NOISE * torch.eye(len(X), dtype=torch.float64)
    k = matrix(make, X, Z)
    weights = torch.linalg.solve(K, k)
    variance = matrix(make, Z, Z).diagonal() - (k * weights).sum(dim=0)
    return weights.mT @ y, variance.sqrt()


@pytest.mark.parametrize("name", ["product", "sum", "given tasks", "sum with learned tasks"])
def test_a_model_is_the_dense_algebra(name, device):
    make = BY_FORMULA[name]
    X, Z = points(20, 0), points(7, 1)
    y = values(X)
    model = KernelGP(make()[0], NOISE, device=device)
    model.add(X[:12].to(device), y[:12].to(device))
    for i in range(12, 20):
        model.add(X[i].to(device), y[i : i + 1].to(device))
    for got, expected in zip(
        model.mean_and_std(Z.to(device)), dense_moments(make, X, y, Z), strict=True
    ):
        assert_close(got.cpu(), expected, **TOL)
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model)), KernelGP(make()[0], NOISE)
    copies[2].to(device).load_state_dict(model.state_dict())
    for copied in copies:
        copied.add(Z[:1].to(device), values(Z[:1]).to(device))
        expected = dense_moments(make, torch.cat([X, Z[:1]]), torch.cat([y, values(Z[:1])]), Z)
        for got, each in zip(copied.mean_and_std(Z.to(device)), expected, strict=True):
            assert_close(got.cpu(), each, **TOL)


@pytest.mark.parametrize("name", ["product", "sum", "listed", "given tasks", "learned tasks"])
def test_gradients_are_those_of_autograd(name):
    X = points(15, 0)
    model = KernelGP(BY_FORMULA[name]()[0], NOISE)
    model.add(X, values(X))
    Z = points(6, 1).requires_grad_()
    assert model.has_closed_form_gradient
    mean, std, mean_gradient, std_gradient = model.mean_std_and_gradients(Z.detach())
    for got, expected in zip((mean, std), model.mean_and_std(Z), strict=True):
        assert_close(got, expected.detach(), **TOL)
    for got, moment in zip((mean_gradient, std_gradient), model.mean_and_std(Z), strict=True):
        assert_close(got, torch.autograd.grad(moment.sum(), Z, retain_graph=True)[0], **TOL)


@pytest.mark.filterwarnings("ignore:Data .* is not (contained|standardized)")
def test_a_fitted_model_can_be_frozen(device):
    torch.manual_seed(0)
    X = points(24, 0)
    y = values(X) + 0.2 * torch.randn(24, dtype=torch.float64)
    X, y = X.to(device), y.unsqueeze(-1).to(device)
    kernel = ActionContextKernel(MaternKernel(nu=2.5), IndexKernel(4, rank=1), 3, [4]).double()
    actions = Normalize(5, indices=[0, 1, 2])
    model = SingleTaskGP(X, y, covar_module=kernel.to(device), input_transform=actions)
    before = {name: value.clone() for name, value in kernel.state_dict().items()}
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with torch.no_grad():
        start = mll(model(*model.train_inputs), model.train_targets)
    optimizer_kwargs = {"options": {"maxiter": 10}}
    with warnings.catch_warnings(action="ignore", category=OptimizationWarning):
        fit_gpytorch_mll(mll, optimizer_kwargs=optimizer_kwargs)
    mll.train()
    with torch.no_grad():
        end = mll(model(*model.train_inputs), model.train_targets)
    assert end > start + 0.1
    for name, value in kernel.state_dict().items():
        learned = name.endswith(("raw_lengthscale", "covar_factor", "raw_var"))
        assert torch.equal(value, before[name]) != learned
    model.eval()
    frozen = KernelGP.from_botorch(model)
    Z = points(9, 1).to(device)
    with torch.no_grad():
        assert_close(frozen.posterior(Z).mean, model.posterior(Z).mean, **TOL)
        assert_close(frozen.posterior(Z).variance, model.posterior(Z).variance, **TOL)
        ucb = UpperConfidenceBound(frozen, beta=4.0)(Z.unsqueeze(-2))
        expected = UpperConfidenceBound(model, beta=4.0)(Z.unsqueeze(-2))
        assert_close(ucb, expected, **TOL)


@pytest.mark.parametrize("name", ["product", "sum with tasks"])
def test_float32(name, device):
    X, Z = points(15, 0), points(7, 1)
    model = KernelGP(BY_FORMULA[name]()[0], NOISE, dtype=torch.float32, device=device)
    model.add(X.float().to(device), values(X).float().to(device))
    for got, expected in zip(
        model.mean_and_std(Z.float().to(device)),
        dense_moments(BY_FORMULA[name], X, values(X), Z),
        strict=True,
    ):
        assert got.dtype == torch.float32
        assert_close(got.cpu().double(), expected, **tolerance(torch.float32))


# --- several models -------------------------------------------------------------------------------


def tasks(scale):
    return TaskKernel(scale * COVARIANCE)


def learned(scale):
    kernel = index_kernel()
    kernel.covar_factor.data *= scale
    return kernel


FORMS = {
    "lengthscales": (lambda v: ActionContextKernel(stationary(2.5, v), tasks(1.0), 3, [4]), 1),
    "of contexts": (lambda v: ActionContextKernel(stationary(2.5), stationary(0.5, v), 3), 1),
    "of both": (
        lambda v: ActionContextKernel(stationary(1.5, v), stationary(0.5, 2 * v), 3, 1, "sum"),
        1,
    ),
    "covariances": (lambda v: ActionContextKernel(stationary(1.5), tasks(v), 3, [4], "sum"), 1),
    "everything": (
        lambda v: scaled(ActionContextKernel(stationary(1.5, v), tasks(v), (2, 0), [4]), v),
        1,
    ),
    "learned": (lambda v: ActionContextKernel(stationary(1.5, v), learned(v), 3, [4]), 1),
    "alone": (lambda v: stationary(1.5, active_dims=(0, 1)) * TaskKernel(v * COVARIANCE, (4,)), 1),
    "combinations": (
        lambda v: ActionContextKernel(
            stationary(1.5, v), tasks(1.0), 3, [4], "sum" if v > 0.5 else "product"
        ),
        2,
    ),
    "columns": (
        lambda v: ActionContextKernel(stationary(1.5), tasks(1.0), (0, int(v > 0.5) + 1), [4]),
        2,
    ),
    "numbers of tasks": (
        lambda v: ActionContextKernel(
            stationary(1.5), TaskKernel(torch.eye(4 + int(v > 0.5)).double()), 3, [4]
        ),
        2,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_stack_is_its_members(name, device):
    build, num_parts = FORMS[name]
    kernels = [build(v) for v in (0.3, 0.6, 0.9)]
    models = CandidateModels(kernels, NOISE, device=device)
    assert len(models.parts) == num_parts
    X, Z = points(14, 0).to(device), points(6, 1).to(device)
    models.add(X, values(X))
    finite, fewer = models.on(Z), models.select([2, 0])
    for i, kernel in enumerate(kernels):
        alone = KernelGP(kernel, NOISE, device=device)
        alone.add(X, values(X))
        expected = alone.mean_and_std(Z)
        for model in (models.single(i), alone):
            for got, each in zip(model.mean_and_std(Z), expected, strict=True):
                assert_close(got, each, **TOL)
        for got in (models.mean_and_std(Z), (finite.mean, finite.std)):
            assert_close(got[0][i], expected[0], **TOL)
            assert_close(got[1][i], expected[1], **TOL)
        if i != 1:
            assert_close(fewer.mean_and_std(Z)[0][[1, 2, 0][i]], expected[0], **TOL)
        assert_close(models.information_gain()[i], alone.information_gain(), **TOL)
    for part in models.parts:
        assert part.model.has_closed_form_gradient


def test_lengthscales_of_the_one_part_that_has_some():
    for kernel in (
        ActionContextKernel(RBFKernel(), TaskKernel(COVARIANCE), 3, [4]),
        ActionContextKernel(TaskKernel(COVARIANCE), RBFKernel(), (4,), (0, 1, 2), "sum"),
        ActionContextKernel(RBFKernel(), IndexKernel(4), 3, [4]),
    ):
        models = CandidateModels.lengthscales(kernel, [0.4, 1.2], NOISE)
        assert models.names == ["lengthscale 0.4", "lengthscale 1.2"]
        assert len(models.parts) == 1
        X, Z = points(10, 0), points(4, 1)
        models.add(X, values(X))
        mean, _ = models.mean_and_std(Z)
        for i, value in enumerate((0.4, 1.2)):
            one = copy.deepcopy(kernel).double()
            (part,) = (m for m in one.modules() if isinstance(m, RBFKernel))
            part.lengthscale = torch.tensor(value, dtype=torch.float64)
            alone = KernelGP(one, NOISE)
            alone.add(X, values(X))
            assert_close(mean[i], alone.mean_and_std(Z)[0], **TOL)
    both = ActionContextKernel(RBFKernel(), MaternKernel(), 3)
    with pytest.raises(ValueError, match="exactly one part with a lengthscale, got 2"):
        CandidateModels.lengthscales(both, [0.4], NOISE)


def test_names_say_what_the_parts_are():
    kernels = [
        ActionContextKernel(RBFKernel(), TaskKernel(COVARIANCE), 3, [4]),
        ActionContextKernel(MaternKernel(), IndexKernel(4), 3, [4], "sum"),
    ]
    assert CandidateModels(kernels, NOISE).names == ["RBF * Task", "Matern + Index"]


def test_a_model_without_the_context_is_refused():
    kernel = ActionContextKernel(RBFKernel(), TaskKernel(COVARIANCE), 3, [4])
    model = KernelGP(kernel, NOISE)
    with pytest.raises(ValueError, match="kernel must take points of dimension 3, got"):
        model.require_takes(points(2, 0)[:, :3])
    with pytest.raises(ValueError, match="tasks must be whole numbers from 0 to 3, got -1"):
        model.add(points(2, 0) - 1, values(points(2, 0)))
    assert model.num_observations == 0


class NoValue(RBFKernel):
    """NaN left of zero, as a kernel of tasks is for what is no task, away from the CPU."""

    def forward(self, x1, x2, diag=False, **params):
        values = super().forward(x1, x2, diag=diag, **params)
        return values * (math.nan if bool((x1 < 0).any()) else 1.0)


@pytest.mark.parametrize("kernel", [NoValue(), TaskKernel(COVARIANCE)])
def test_points_without_a_kernel_value_are_refused(kernel, device):
    X = torch.tensor([[1.0], [-1.0]], dtype=torch.float64, device=device)
    model = KernelGP(kernel, NOISE, device=device)
    message = "kernel at X must be finite|tasks must be whole numbers"
    with pytest.raises(ValueError, match=message):
        model.add(X, X)
    with pytest.raises(ValueError, match=message):
        model.largest_variance(X)
    assert model.num_observations == 0
    model.add(X[:1], X[:1])
