"""Fitted models of the sensors and of the peptides, from the part for training."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import KroneckerMultiTaskGP
from gpytorch import settings
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, MaternKernel, MultitaskKernel, ProductKernel, RBFKernel
from gpytorch.likelihoods import MultitaskGaussianLikelihood
from gpytorch.means import MultitaskMean, ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.problems.real_data.binding_affinities import BindingAffinities
from botorch_ext.problems.real_data.fitted_kernels import FittedModel, fit_kernel, standardized
from botorch_ext.problems.real_data.hottest_sensor import HottestSensor
from botorch_ext.problems.real_data.peptides import peptide_features
from botorch_ext.problems.real_data.scaling import Scaling
from botorch_ext.problems.real_data.temperatures import Temperatures

# Temperatures are given to a tenth of a degree: the variance of what rounding adds.
_ROUNDING_VARIANCE = 0.1**2 / 12
# The likelihood still grows a little after that; the lengthscale and the noise do not change.
_MAX_ITERATIONS = 1000


def time_of_day_kernel(day_lengthscale: float = 2.0) -> ProductKernel:
    """A Matern 5/2 kernel of the time, in days, times one of the time of day, on the circle.

    Its three columns are those of `clock`. Only the lengthscale on the circle is left to be fitted:
    within one day, two times that differ more in the time of day than in the time, or the other way
    round, hardly occur, so that one day of data cannot tell the two lengthscales apart. With 2 days
    the same hour of the next day has a correlation of 0.83, with 1 day 0.52, with 5 days 0.97.

    Args:
        day_lengthscale: In days; fixed.

    Raises:
        ValueError: A lengthscale that is not positive and finite.
    """
    if not 0 < one_number(day_lengthscale, "day_lengthscale") < math.inf:
        raise ValueError(f"day_lengthscale must be positive and finite, got {day_lengthscale}")
    days = MaternKernel(nu=2.5, active_dims=(0,))
    days.lengthscale = day_lengthscale
    days.raw_lengthscale.requires_grad_(False)
    return ProductKernel(days, MaternKernel(nu=2.5, active_dims=(1, 2))).to(torch.float64)


def fit_temperatures(
    temperatures: Temperatures, *, time_kernel: Kernel | None = None, rank: int = 8
) -> FittedModel:
    """Fits the product of a covariance of the sensors and a kernel of time.

    By BoTorch's `KroneckerMultiTaskGP`, without priors, and with the mean of all temperatures as
    the only mean. The covariance of the sensors is one of so many factors and a variance of its own
    for each sensor. The noise is at least what rounding to a tenth of a degree adds.

    Args:
        temperatures: The part for training, often one day.
        time_kernel: Of the three columns of `clock`, with k(z, z) = 1; `time_of_day_kernel` if
            None. Those of its parameters that require a gradient are fitted, from the values they
            have; it is not changed itself.
        rank: How many factors.

    Returns:
        The model; its kernel is an `ActionContextKernel` of a `TaskKernel` and the kernel of time.

    Raises:
        ValueError: Temperatures that are all the same, no factor, or more factors than sensors.
    """
    number = temperatures.num_sensors
    if whole_number(rank, "rank", least=1) > number:
        raise ValueError(f"rank must be at most {number}, the number of sensors, got {rank}")
    y, standard = standardized(temperatures.values.T, "temperatures")
    times = HottestSensor(temperatures).contexts
    time_kernel = time_of_day_kernel() if time_kernel is None else deepcopy(time_kernel)
    model = _sensor_model(times, y, time_kernel, rank, _ROUNDING_VARIANCE / standard.scale**2)
    likelihood: Any = model.likelihood
    covar_module: Any = model.covar_module
    # With BoTorch's defaults the whole matrix is factorised, not its factors: 300 times slower.
    size = max(y.shape)
    with settings.fast_computations(log_prob=True), settings.max_cholesky_size(size):
        mll = ExactMarginalLogLikelihood(likelihood, model)
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": _MAX_ITERATIONS}})
        mll.train()
        with torch.no_grad():
            found = float(mll(model(times), y)) * y.numel()
    K = covar_module.task_covar_module.covar_matrix.to_dense().detach()
    largest = float(K.diagonal().max())
    kernel = ActionContextKernel(TaskKernel(K / largest), time_kernel, 1)
    return FittedModel(
        kernel.requires_grad_(False).eval(),
        likelihood.noise.item() / largest,
        Scaling(standard.center, standard.scale * math.sqrt(largest)),
        found - y.numel() * math.log(standard.scale),
    )


def _sensor_model(
    times: Tensor, y: Tensor, time_kernel: Kernel, rank: int, least_noise: float
) -> KroneckerMultiTaskGP:
    """Not yet fitted; the factors start at the principal components of the data."""
    number = y.shape[-1]
    likelihood = MultitaskGaussianLikelihood(
        num_tasks=number, has_task_noise=False, noise_constraint=GreaterThan(least_noise)
    )
    with torch.random.fork_rng(devices=[]):
        model = KroneckerMultiTaskGP(times, y, likelihood=likelihood, rank=1)
        # BoTorch's own have a mean for each sensor and a prior that, of so many sensors, outweighs
        # a day of data.
        model.mean_module = MultitaskMean(ZeroMean(), num_tasks=number)
        # MultitaskKernel passes by the active_dims of its kernel; of a factor they are heeded.
        model.covar_module = MultitaskKernel(ProductKernel(time_kernel), number, rank)
    model.to(y)
    sample = y.T @ y / len(y)
    values, vectors = torch.linalg.eigh(sample)
    factors = vectors[:, -rank:] * values[-rank:].clamp_min(0).sqrt()
    own = (sample - factors @ factors.T).diagonal().clamp_min(1e-3)
    sensors: Any = model.covar_module.task_covar_module
    with torch.no_grad():
        sensors.covar_factor.copy_(factors)
    sensors.var = own
    likelihood.noise = max(0.01, 2 * least_noise)
    return model


def fit_binding_affinities(
    affinities: BindingAffinities,
    *,
    num_examples: int = 1000,
    seed: int = 0,
    molecule_kernel: Kernel | None = None,
    by_molecule: bool = True,
) -> FittedModel:
    """Fits an RBF kernel of the peptides' features, times a kernel of the molecules.

    By marginal likelihood, without priors, on random measurements of all molecules: a lengthscale,
    a scale, the noise and a constant mean.

    Args:
        affinities: The measurements.
        num_examples: How many of them.
        seed: Which of them.
        molecule_kernel: Of the number of a molecule; the share of equal pocket residues, which has
            nothing to fit, if None. It is not changed itself.
        by_molecule: Whether the molecules are told apart; otherwise the kernel is the RBF kernel
            alone, and the noise has to account for what they differ in.

    Returns:
        The model; its kernel is an `ActionContextKernel`, or an RBF kernel.

    Raises:
        ValueError: Fewer than two examples, or more than there are.
    """
    sizes = [len(own) for own in affinities.peptides]
    total = sum(sizes)
    if not 2 <= whole_number(num_examples, "num_examples") <= total:
        raise ValueError(f"num_examples must be from 2 to {total}, got {num_examples}")
    chosen = np.random.default_rng(seed).choice(total, num_examples, replace=False)
    rows = torch.from_numpy(np.sort(chosen))
    X = peptide_features([p for own in affinities.peptides for p in own])[rows]
    Y = torch.cat(list(affinities.rewards))[rows]
    kernel: Kernel = RBFKernel()
    if by_molecule:
        molecules = torch.repeat_interleave(torch.tensor(sizes))[rows].to(X)
        if molecule_kernel is None:
            molecule_kernel = TaskKernel(affinities.similarity)
        kernel = ActionContextKernel(kernel, molecule_kernel, X.shape[1])
        X = torch.cat([X, molecules.unsqueeze(-1)], dim=-1)
    return fit_kernel(kernel, X, Y)
