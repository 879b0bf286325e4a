"""Lower bounds of the RKHS norm of f from noisy observations, with a failure probability."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from botorch_ext.kernels.frozen.freezing import freeze
from botorch_ext.models.cholesky import as_block
from botorch_ext.models.posterior import GrowingPosterior

# The bound is the largest over 49 ridges a, from lambda to 10,000 lambda.
_POWERS = np.logspace(0, 4, 49)


@torch.no_grad()
def gram_and_residuals(
    posterior: GrowingPosterior, rows: Sequence[int] | None = None
) -> tuple[Tensor, Tensor]:
    """The kernel matrix of some rows of a posterior, and their observations minus the prior mean.

    A row with relative noise r is divided by sqrt(r), so that all have the noise variance lambda.

    Args:
        posterior: The posterior, of one model or of a batch.
        rows: The rows. None: all rows that are not pending.

    Returns:
        Float64 tensors, ``*batch x n x n`` and ``*batch x n``.
    """
    if rows is None:
        pending = set(posterior.factor.pending)
        rows = [row for row in range(posterior.num_observations) if row not in pending]
    block = as_block([*rows])
    scale = posterior.factor.relative_noise[..., block].double().rsqrt()
    y = posterior.factor.y[..., block].double() * scale
    if not rows:
        return y.new_zeros(*y.shape, 0), y
    X = posterior.train_inputs[0][..., block, :].double()
    kernel = posterior.kernel_function
    if posterior.noise_variance.dtype is not torch.float64:
        kernel = freeze(posterior.kernel, X.dtype, X.device)
    K = kernel(X, X) * scale.unsqueeze(-1) * scale.unsqueeze(-2)
    return K.expand(*y.shape, len(rows)), y


def squared_norm_bound(
    K: Tensor,
    y: Tensor,
    ridge: float,
    ridges: Sequence[float],
    noise_std: float,
    delta: float,
    misspecification: float = 0.0,
    total_precision: float | None = None,
) -> float:
    """A lower bound of the squared RKHS norm of f, which holds at all n together.

    The probability that it is too large at any n is at most delta, for points chosen adaptively.
    Values must be f, plus an error of at most ``misspecification``, plus conditionally sub-Gaussian
    noise. The errors may depend on everything, the noise included.

    Let q_a = a y' (K + a I)^-1 y, let I_a be the information gain with the ridge a, and let
    g_i = 2 sigma^2 (I_{a_i} + ln(m/delta)) for m ridges a_i. Without misspecification the bound
    is the largest (q_a - R^2) / a, where R^2 bounds the squared norm of the noise:
    R^2 = 2 sigma^2 (ln(m/delta) - ln sum_i exp(-I_{a_i} - q_{a_i} / (2 sigma^2))). With
    misspecification it is the largest ((sqrt(q_a - q_{a_i}) - c eps sqrt(n))_+^2 - g_i) / a over
    all i and all a > a_i, where c^2 = (sqrt(a) - sqrt(a_i)) / (sqrt(a) + sqrt(a_i)). With unequal
    noise, K and y are those of rows divided by sqrt(r), and the sum of 1/r takes the place of n.

    Source: the event of Flynn and Reeb 2025 (arXiv 2403.12732), mixed over ridges.

    Args:
        K: The kernel matrix of the observed points, ``n x n``, n >= 1.
        y: The observations minus the prior mean, ``n``.
        ridge: lambda, the ridge of the model.
        ridges: The multiples of lambda that give the a_i, fixed before any data.
        noise_std: sigma, the sub-Gaussian constant of the noise, in the units of y.
        delta: The failure probability.
        misspecification: eps, the largest error of a value, in the units of y.
        total_precision: The sum of 1/r over the relative noises r of the observations; None for n.

    Returns:
        The bound, at least 0.
    """
    from scipy.linalg.lapack import dpstrf  # slow to import

    # K = G G' up to rounding, with as many columns as K has rank: methods repeat points, and
    # smooth kernels have few large eigenvalues.
    factor, order, rank, _ = dpstrf(K.cpu().numpy(), lower=1)
    G = torch.from_numpy(factor[:, :rank]).tril()
    eigenvalues, vectors = torch.linalg.eigh(G.mT @ G)
    kappa = eigenvalues.clamp_min(0)
    projected = y.cpu()[torch.from_numpy(order).long() - 1] @ G @ vectors
    low = ridge * torch.from_numpy(np.array(ridges)).unsqueeze(-1)
    high = ridge * torch.from_numpy(_POWERS)
    gains = 0.5 * (kappa / low).log1p().sum(dim=-1, keepdim=True)
    # q_a - q_{a_i}, m x 49, without cancellation; negative where a < a_i.
    weights = projected.square() / (kappa + low)
    rise = (high - low) * (weights @ (1 / (kappa.unsqueeze(-1) + high)))
    unit, union = 2 * noise_std**2, math.log(len(ridges) / delta)
    if misspecification:
        roots = high.sqrt(), low.sqrt()
        c = ((roots[0] - roots[1]).clamp_min(0) / (roots[0] + roots[1])).sqrt()
        total = len(y) if total_precision is None else total_precision
        lost = c * (misspecification * math.sqrt(total))
        certain = (rise.clamp_min(0).sqrt() - lost).clamp_min(0).square()
        excess = (certain - unit * (gains + union)).amax(dim=0)
    else:
        excess = unit * ((rise / unit - gains).logsumexp(dim=0) - union)
    return max(float((excess / high).max()), 0.0)
