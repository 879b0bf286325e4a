"""Models on actions and contexts."""

import copy
import math
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
from tests.kernels.joint import COVARIANCE, points

TOL = tolerance(torch.float64)
NOISE = 0.05


def values(X):
    """Of a toy whose tasks differ."""
    task = X[:, 4]
    return torch.sin(2 * X[:, 0]) + 0.3 * X[:, 1] * (task - 1) + 0.1 * X[:, 3]


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
