"""Every acquisition function on the same data, for the tests that all of them pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_ext import KernelGP
from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    ExpectedUCB,
    IntegratedLogEI,
    LowerConfidenceBound,
    MaxVariance,
    OptimisticModelUCB,
    StableUCB,
)
from tests.helpers import drawn

BOUNDS = torch.tensor([[2.0, -3.0], [5.0, -1.0]], dtype=torch.float64)


@dataclass(frozen=True)
class Case:
    """An acquisition function and what it takes besides a model.

    Args:
        cls: Its class.
        options: Keyword arguments.
        can_minimise: Whether it takes ``maximize``.
    """

    cls: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    can_minimise: bool = True

    def __call__(self, model: Any, **more: Any) -> Any:
        return self.cls(model, **self.options | more)


CASES = {
    "EnlargedUpperConfidenceBound": Case(
        EnlargedUpperConfidenceBound, {"misspecification": 0.01, "width": 2.0}
    ),
    "LowerConfidenceBound": Case(LowerConfidenceBound, {"width": 2.0}),
    "MaxVariance": Case(MaxVariance, can_minimise=False),
    "OptimisticModelUCB": Case(OptimisticModelUCB, {"width": 2.0}),
    "ExpectedUCB": Case(ExpectedUCB, {"width": 2.0}),
    "IntegratedLogEI": Case(IntegratedLogEI, {"best_f": 0.5}),
    "StableUCB": Case(StableUCB, {"width": 2.0, "radius": 0.1, "bounds": BOUNDS}),
}


def draw(n: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """``n x 2`` points of the box and values there."""
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * drawn(n, 2, seed=seed)
    y = torch.sin(2 * X[:, 0]) * (X[:, 1] + 2)
    return X.to(dtype), y.to(dtype)


def kernel_gp(
    n: int = 8, lengthscales: Sequence[float] = (0.8,), dtype: torch.dtype = torch.float64
) -> KernelGP:
    """A KernelGP of ``draw(n, 0)``, batched where there are several lengthscales."""
    batch = torch.Size([len(lengthscales)] if len(lengthscales) > 1 else [])
    kernel = RBFKernel(batch_shape=batch).to(dtype)
    kernel.lengthscale = torch.tensor(lengthscales, dtype=dtype).view(*batch, 1, 1)
    model = KernelGP(kernel, 0.04, dtype=dtype)
    model.add(*draw(n, 0, dtype))
    return model


def single_task_gp(n: int = 8, dtype: torch.dtype = torch.float64) -> SingleTaskGP:
    """A SingleTaskGP of ``draw(n, 0)`` with chosen hyperparameters."""
    X, y = draw(n, 0, dtype)
    inputs, outcomes = Normalize(2, bounds=BOUNDS.to(dtype)), Standardize(1)
    gp = SingleTaskGP(X, y[:, None], input_transform=inputs, outcome_transform=outcomes)
    gp.covar_module.lengthscale = torch.tensor(0.4, dtype=dtype)
    gp.likelihood.noise = torch.tensor(0.04, dtype=dtype)
    return gp.eval()
