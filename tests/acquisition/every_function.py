"""Every acquisition function and kind of model on the same data, and the moments of all members."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import PeriodicKernel, RBFKernel
from torch import Tensor

from botorch_ext import KernelGP, acquisition
from tests.helpers import drawn, matern, rbf

BOUNDS = torch.tensor([[2.0, -3.0], [5.0, -1.0]], dtype=torch.float64)
LENGTHSCALES = (0.4, 0.7, 0.9)
NOISE = 0.04


class Case(NamedTuple):
    """An acquisition function, what it takes besides a model, and whether it takes ``maximize``."""

    cls: Callable[..., Any]
    options: dict[str, Any]
    can_minimise: bool = True

    def __call__(self, model: Any, **more: Any) -> Any:
        return self.cls(model, **self.options | more)


CASES = {
    "EnlargedUpperConfidenceBound": Case(
        acquisition.EnlargedUpperConfidenceBound, {"misspecification": 0.01, "width": 2.0}
    ),
    "LowerConfidenceBound": Case(acquisition.LowerConfidenceBound, {"width": 2.0}),
    "MaxVariance": Case(acquisition.MaxVariance, {}, can_minimise=False),
    "OptimisticModelUCB": Case(acquisition.OptimisticModelUCB, {"width": 2.0}),
    "ExpectedUCB": Case(acquisition.ExpectedUCB, {"width": 2.0}),
    "IntegratedLogEI": Case(acquisition.IntegratedLogEI, {"best_f": 0.5}),
    "StableUCB": Case(acquisition.StableUCB, {"width": 2.0, "radius": 0.1, "bounds": BOUNDS}),
}


def draw(n: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """``n x 2`` points of the box and values there."""
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * drawn(n, 2, seed=seed)
    y = torch.sin(2 * X[:, 0]) * (X[:, 1] + 2)
    return X.to(dtype), y.to(dtype)


def told(kernel: Any, n: int = 8, noise: float = NOISE, mean: Any = None) -> KernelGP:
    """A KernelGP of ``draw(n, 0)``."""
    model = KernelGP(kernel, noise, mean)
    model.add(*draw(n, 0))
    return model


def kernel_gp(
    n: int = 8, lengthscales: Sequence[float] = (0.8,), dtype: torch.dtype = torch.float64
) -> KernelGP:
    """A KernelGP of ``draw(n, 0)``, batched where there are several lengthscales."""
    batch = torch.Size([len(lengthscales)] if len(lengthscales) > 1 else [])
    kernel = RBFKernel(batch_shape=batch).to(dtype)
    kernel.lengthscale = torch.tensor(lengthscales, dtype=dtype).view(*batch, 1, 1)
    model = KernelGP(kernel, NOISE, dtype=dtype)
    model.add(*draw(n, 0, dtype))
    return model


def batched() -> KernelGP:
    return kernel_gp(lengthscales=LENGTHSCALES)


def singles() -> list[KernelGP]:
    """The members of `batched` one by one."""
    return [told(rbf(lengthscale)) for lengthscale in LENGTHSCALES]


def single_task_gp(
    n: int = 8, dtype: torch.dtype = torch.float64, yvar: Tensor | None = None, sign: float = 1.0
) -> SingleTaskGP:
    """A SingleTaskGP of ``draw(n, 0)`` with chosen hyperparameters."""
    X, y = draw(n, 0, dtype)
    inputs, outcomes = Normalize(2, bounds=BOUNDS.to(dtype)), Standardize(1)
    gp = SingleTaskGP(
        X, sign * y[:, None], yvar, input_transform=inputs, outcome_transform=outcomes
    )
    gp.covar_module.lengthscale = torch.tensor(0.4, dtype=dtype)
    if yvar is None:
        gp.likelihood.noise = torch.tensor(NOISE, dtype=dtype)
    return gp.eval()


def ensemble() -> EnsembleMapSaasSingleTaskGP:
    """Four sparse-axis models of one ensemble, as they are before fitting but for their scales."""
    X, y = draw(12, 0)
    gp = EnsembleMapSaasSingleTaskGP(
        X,
        y[:, None],
        taus=torch.tensor([0.05, 0.1, 0.3, 1.0], dtype=torch.float64),
        input_transform=Normalize(2, bounds=BOUNDS),
    )
    kernel = gp.covar_module.base_kernel
    kernel.lengthscale = torch.linspace(0.3, 1.0, 8, dtype=torch.float64).reshape(4, 1, 2)
    gp.likelihood.noise = torch.linspace(0.01, 0.1, 4, dtype=torch.float64).reshape(4, 1)
    return gp.eval()


def of_many_forms() -> list[Any]:
    """Six members: of one, of three, of one in BoTorch, and of one with a prior mean."""
    periodic = told(PeriodicKernel().double(), mean=lambda X: 1.0 + 0 * X[..., 0])
    return [told(matern(0.7), noise=0.1), batched(), single_task_gp(), periodic]


def conditioned(model: Any, P: Tensor, Z: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Mean at ``Z`` of each member of a model, and covariances there given values at ``P`` as well,
    by its joint posterior; ``noise`` has one variance for each row of ``P``."""
    with torch.no_grad():
        posterior = model.posterior(torch.cat([Z, P]))
    C, n = posterior.distribution.covariance_matrix, len(Z)
    K = C[..., n:, n:] + torch.diag_embed(noise)
    C = C[..., :n, :n] - C[..., :n, n:] @ torch.linalg.solve(K, C[..., n:, :n])
    return posterior.mean[..., :n, 0], C


def members(models: Any, Z: Tensor, P: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mean and std of all members, ``m x n``; the std given ``P`` with the mean noise as well."""
    P, parts = Z[:0] if P is None else P, []
    for model in models if isinstance(models, list) else [models]:
        with torch.no_grad():
            noisy, plain = (
                model.posterior(Z[:1], observation_noise=is_noisy).variance[..., 0]
                for is_noisy in (True, False)
            )
        mean, C = conditioned(model, P, Z, (noisy - plain).expand(*noisy.shape[:-1], len(P)))
        std = C.diagonal(dim1=-2, dim2=-1).sqrt()
        parts.append((mean.reshape(-1, len(Z)), std.reshape(-1, len(Z))))
    means, stds = zip(*parts, strict=True)
    return torch.cat(means), torch.cat(stds)
