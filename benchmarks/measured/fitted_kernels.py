"""Fitting kernels by maximum marginal likelihood, in units in which k(x, x) <= 1."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.settings import validate_input_scaling
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.measured.scaling import Scaling

# The least noise variance of the standardised values.
_LEAST_NOISE = 1e-4


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted Gaussian process with zero mean, for scaled rewards.

    Args:
        kernel: The kernel, with k(x, x) <= 1 at the training points.
        noise_variance: The variance of the noise of the scaled rewards.
        scaling: The scaling of the rewards for which the kernel was fitted.
        log_likelihood: The maximum of the log marginal likelihood of the training data, in their
            own units.
    """

    kernel: Any
    noise_variance: float
    scaling: Scaling
    log_likelihood: float


def fit_kernel(kernel: Kernel, X: Tensor, Y: Tensor) -> FittedModel:
    """Fit a kernel, its scale, the noise and a constant mean by maximum marginal likelihood.

    BoTorch fits them to the standardised values, without priors.

    Args:
        kernel: A kernel, which is not changed. Its parameters that require a gradient are fitted,
            starting from their values.
        X: Points, ``n x d``.
        Y: The rewards, ``n``.

    Returns:
        The fitted model.

    Raises:
        ValueError: If the rewards are all the same.
    """
    y, standard = standardized(Y, "Y")
    kernel = deepcopy(kernel).to(X)
    with torch.random.fork_rng(devices=[]), validate_input_scaling(False):
        model = SingleTaskGP(
            X,
            y.unsqueeze(-1),
            likelihood=GaussianLikelihood(noise_constraint=GreaterThan(_LEAST_NOISE)),
            covar_module=ScaleKernel(kernel),
            mean_module=ConstantMean(),
            outcome_transform=None,
        )
        likelihood: Any = model.likelihood
        likelihood.initialize(noise=0.1)
        mll = ExactMarginalLogLikelihood(likelihood, model)
        fit_gpytorch_mll(mll)
    covar_module: Any = model.covar_module
    mean_module: Any = model.mean_module
    variance = covar_module.outputscale.item()
    with torch.no_grad():
        largest = float(kernel(X, diag=True).max())
    if not math.isclose(largest, 1.0, rel_tol=1e-9):
        kernel = ScaleKernel(kernel).to(X)
        kernel.outputscale = 1 / largest
    return FittedModel(
        kernel.requires_grad_(False).eval(),
        likelihood.noise.item() / (variance * largest),
        Scaling(
            standard.center + standard.scale * mean_module.constant.item(),
            standard.scale * math.sqrt(variance * largest),
        ),
        _log_likelihood(mll, y) - len(y) * math.log(standard.scale),
    )


def standardized(values: Tensor, name: str) -> tuple[Tensor, Scaling]:
    """Standardise values to mean 0 and variance 1.

    Args:
        values: Values of any shape.
        name: The name of the argument, for the message.

    Returns:
        The standardised values in float64, and the scaling that makes them.

    Raises:
        ValueError: If the values are all the same.
    """
    values = values.to(torch.float64)
    spread = float(values.std(correction=0))
    if not spread > 0:
        raise ValueError(f"{name} must not all be the same, got {values.numel()} equal values")
    scaling = Scaling(float(values.mean()), spread)
    return scaling(values), scaling


@torch.no_grad()
def _log_likelihood(mll: ExactMarginalLogLikelihood, targets: Tensor) -> float:
    mll.train()
    model: Any = mll.model
    return float(mll(model(*model.train_inputs), targets)) * len(targets)
