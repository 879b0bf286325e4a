"""Estimates, from data, of the numbers that guarantees need: the RKHS bound and the noise."""

from __future__ import annotations

import math

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains import as_points, host
from botorch_ext.domains.points import PointsLike, as_floating
from botorch_ext.kernels.frozen import freeze, require_unbatched
from botorch_ext.models.checks import checked_values
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.norm_bounds import gram_and_residuals, squared_norm_bound
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.widths import check_delta, check_misspecification, check_noise_std
from botorch_ext.widths.tight import RIDGES


def rkhs_norm_lower_estimate(model: KernelGP) -> Tensor:
    """A lower estimate of the RKHS norm of f, sqrt(y' (K + lambda I)^-1 y).

    For noiseless data the estimate never exceeds the norm and grows towards it with more points:
    choose ``rkhs_bound`` above it. With noise of variance lambda it exceeds the norm by about
    sqrt(n) at most, and by less the more the points overlap: then only the estimate minus sqrt(n)
    is a lower estimate.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=1e-6)
        >>> model.add([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> bx.estimates.rkhs_norm_lower_estimate(model).round(decimals=2)
        tensor(1.1500, dtype=torch.float64)

    Args:
        model: A `KernelGP` with data; its prior mean is subtracted first.

    Returns:
        One number for each batched model, in the units of the observations (after the outcome
        transform, if the model has one).

    Raises:
        ValueError: If the model has no observations.
    """
    if not isinstance(model, KernelGP):
        raise ValueError(f"model must be a KernelGP, got {short(model)}")
    if model.num_observations == 0:
        raise ValueError("model must have observations, got none")
    return model.factor.z[..., : model.num_observations].norm(dim=-1)


def rkhs_norm_lower_bound(
    model: KernelGP | FinitePosterior,
    noise_std: float,
    delta: float = 0.1,
    misspecification: float = 0.0,
) -> Tensor:
    """A lower bound of the RKHS norm of f that holds with probability at least 1 - delta.

    It holds after every observation together, for points chosen adaptively, unlike
    `rkhs_norm_lower_estimate`. If it exceeds an ``rkhs_bound``, then that bound, the kernel, the
    noise or the misspecification is wrong. With enough data the bound reaches about 0.7 to 0.9
    times the norm. No upper bound of the norm follows from data.

    Source: the event of Flynn and Reeb 2025 (arXiv 2403.12732), mixed over ridges.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=0.01)
        >>> model.add([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> bx.estimates.rkhs_norm_lower_bound(model, noise_std=0.1).round(decimals=2)
        tensor(0.5800, dtype=torch.float64)

    Args:
        model: A `KernelGP` or a `FinitePosterior` with observations. Pending points do not count,
            and the prior mean is subtracted first.
        noise_std: sigma, the sub-Gaussian constant of the noise, in the units of the result.
        delta: The failure probability, in (0, 1).
        misspecification: eps >= 0, the largest distance of f to a function that the model can
            express; the norm is then that of this function. In the units of the result.

    Returns:
        One number for each batched model, in the units of the observations (after the outcome
        transform, if the model has one), in float64.

    Raises:
        ValueError: If the model has no observations, or a number is out of its range.
    """
    if not isinstance(model, GrowingPosterior):
        raise ValueError(f"model must be a KernelGP or a FinitePosterior, got {short(model)}")
    noise_std, delta = check_noise_std(noise_std), check_delta(delta)
    eps = check_misspecification(misspecification)
    K, y = gram_and_residuals(model)
    n, noise = y.shape[-1], model.noise_variance
    if not n:
        raise ValueError("model must have observations, got none")
    members = zip(K.reshape(-1, n, n), y.reshape(-1, n), noise.flatten().tolist(), strict=True)
    others = RIDGES, noise_std, delta, eps, model.total_precision()
    squares = [squared_norm_bound(*own, *others) for own in members]
    return y.new_tensor(squares).sqrt().view(model.batch_shape)


def noise_std_from_repeats(X: PointsLike, Y: PointsLike) -> float:
    """The standard deviation of the noise, from points that were evaluated more than once.

    Example:
        >>> from botorch_ext.analysis.estimates import noise_std_from_repeats
        >>> round(noise_std_from_repeats([[0.2], [0.2], [0.7]], [1.0, 1.2, 3.0]), 4)
        0.1414

    Args:
        X: Points, ``n x d``; equal rows are repeats of each other.
        Y: Observations, ``n x 1`` or ``n``.

    Returns:
        The pooled standard deviation within groups of repeats, in units of the observations.

    Raises:
        ValueError: If no point is repeated, or the shapes do not match.
    """
    X = as_floating(X, None, None, "X")
    X = as_points(X, None, X)
    Y = checked_values(Y, len(X), X)
    points, group = X.unique(dim=0, return_inverse=True)
    degrees_of_freedom = len(X) - len(points)
    if degrees_of_freedom == 0:
        raise ValueError("X must contain repeated points, got none")
    sums = Y.new_zeros(len(points)).index_add(0, group, Y)
    counts = Y.new_zeros(len(points)).index_add(0, group, torch.ones_like(Y))
    residual = Y - (sums / counts)[group]
    return math.sqrt(float(residual.square().sum()) / degrees_of_freedom)


def noise_variance_by_likelihood(
    kernel: Kernel, X: PointsLike, Y: PointsLike, lower: float = 1e-6, upper: float = 1.0
) -> float:
    """The noise variance that maximises the marginal likelihood, for a fixed kernel and zero prior
    mean.

    After one eigendecomposition the search is one-dimensional. Since the likelihood may have
    several maxima, the best point of a grid is refined.

    Args:
        kernel: Any GPyTorch kernel without batch dimensions.
        X: Points, ``n x d``.
        Y: Observations, ``n x 1`` or ``n``.
        lower: The least noise variance to consider.
        upper: The largest noise variance to consider.

    Returns:
        The noise variance, in squared units of the observations.

    Raises:
        ValueError: If the kernel is batched, the shapes do not match, or 0 < lower < upper does not
            hold.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and needed here only

    lower, upper = one_number(lower, "lower"), one_number(upper, "upper")
    if not 0 < lower < upper < math.inf:
        raise ValueError(f"lower and upper must satisfy 0 < lower < upper, got {lower} and {upper}")
    require_unbatched(kernel)
    X = as_floating(X, None, None, "X")
    X = as_points(X, None, X)
    Y = checked_values(Y, len(X), X)
    K = freeze(kernel, X.dtype, X.device)(X, X)
    eigenvalues, vectors = torch.linalg.eigh(K)
    eigenvalues = eigenvalues.clamp_min(0)
    squares = (vectors.mT @ Y).square()

    def negative_log_likelihood(log_noise: float) -> float:
        scale = eigenvalues + math.exp(log_noise)
        return 0.5 * float((squares / scale + scale.log()).sum())

    grid = host.linspace(math.log(lower), math.log(upper), 65, dtype=torch.float64).tolist()
    values = [negative_log_likelihood(g) for g in grid]
    best = values.index(min(values))
    bracket = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    refined = minimize_scalar(negative_log_likelihood, bounds=bracket, method="bounded")
    return math.exp(refined.x)
