"""Models of the sensors and of the peptides, fitted to training data."""

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

from benchmarks.measured.binding_affinities import BindingAffinities
from benchmarks.measured.fitted_kernels import FittedModel, fit_kernel, standardized
from benchmarks.measured.hottest_sensor import HottestSensor
from benchmarks.measured.peptides import peptide_features
from benchmarks.measured.scaling import Scaling
from benchmarks.measured.temperatures import Temperatures
from botorch_ext.checks import one_number, whole_number
from botorch_ext.kernels import ActionContextKernel, TaskKernel

# The variance of the rounding error of temperatures, which are given to a tenth of a degree.
_ROUNDING_VARIANCE = 0.1**2 / 12
# The likelihood still grows a little after so many iterations; lengthscale and noise do not change.
_MAX_ITERATIONS = 1000


def time_of_day_kernel(day_lengthscale: float = 2.0) -> ProductKernel:
    """A kernel of the columns of `clock`: a Matern 5/2 kernel of the time in days, times one of the
    time of day on the circle.

    Only the lengthscale on the circle is left to be fitted. One day of data cannot tell the two
    lengthscales apart, since within one day the time and the time of day hardly ever differ by
    different amounts. With a lengthscale of 2 days, the same hour of the next day has a correlation
    of 0.83; with 1 day 0.52, with 5 days 0.97.

    Args:
        day_lengthscale: The lengthscale of the time, in days; it stays fixed.

    Returns:
        The kernel, in float64.

    Raises:
        ValueError: If the lengthscale is not positive and finite.
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
    """Fit the product of a covariance matrix of the sensors and a kernel of time.

    BoTorch's `KroneckerMultiTaskGP` fits it without priors, with the mean of all temperatures as
    the mean. The covariance matrix has ``rank`` factors and an own variance for each sensor. The
    noise is at least the variance of rounding to a tenth of a degree.

    Args:
        temperatures: The training data, often one day.
        time_kernel: A kernel of the three columns of `clock` with k(z, z) = 1, which is not
            changed; None for `time_of_day_kernel`. Its parameters that require a gradient are
            fitted, starting from their values.
        rank: The number of factors.

    Returns:
        The model; its kernel is an `ActionContextKernel` of a `TaskKernel` and the kernel of time.

    Raises:
        ValueError: If the temperatures are all the same, there is no factor, or there are more
            factors than sensors.
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
    # BoTorch's defaults factorise the whole matrix and not its factors, which is 300 times slower.
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
    """The model before the fit; its factors start at the principal components of the data."""
    number = y.shape[-1]
    likelihood = MultitaskGaussianLikelihood(
        num_tasks=number, has_task_noise=False, noise_constraint=GreaterThan(least_noise)
    )
    with torch.random.fork_rng(devices=[]):
        model = KroneckerMultiTaskGP(times, y, likelihood=likelihood, rank=1)
        # BoTorch's default has a mean for each sensor, and a prior that outweighs one day of data
        # if there are so many sensors.
        model.mean_module = MultitaskMean(ZeroMean(), num_tasks=number)
        # MultitaskKernel ignores the active_dims of its kernel, but not those of a factor of it.
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
    """Fit an RBF kernel of the features of peptides, times a kernel of the molecules.

    A lengthscale, a scale, the noise and a constant mean are fitted by maximum marginal likelihood,
    without priors, to random measurements of all molecules.

    Args:
        affinities: The measurements.
        num_examples: The number of random measurements to use.
        seed: The seed of the random choice.
        molecule_kernel: A kernel of the number of a molecule, which is not changed; None for the
            share of equal pocket residues, which has nothing to fit.
        by_molecule: Whether the model tells molecules apart. If not, the kernel is only the RBF
            kernel, and differences between molecules count as noise.

    Returns:
        The model; its kernel is an `ActionContextKernel`, or an RBF kernel.

    Raises:
        ValueError: If there are fewer than two examples, or more than measurements.
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
