"""Warnings about priors whose numbers make little sense for the domain or the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, PiecewisePolynomialKernel, RBFKernel, RQKernel
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.kernels.structure import leaves

# The kernels whose lengthscales are distances between points, and are checked.
_OF_DISTANCES = (RBFKernel, MaternKernel, RQKernel, PiecewisePolynomialKernel)
# The largest ratio of a lengthscale and the side of the domain, in either direction.
_MOST_SIDES = 20
# The numbers of observations at which the scale of a prior is checked, and the mean squares of
# residuals that contradict it. If f is drawn from the prior, n times the mean square is chi-squared
# with n degrees of freedom, so the probability that any of these checks warns is less than 1e-6.
LOOKS = (8, 16, 32, 64)
_LEAST_SQUARE, _MOST_SQUARE = 0.01, 9.0


@torch.no_grad()
def odd_lengthscales(kernels: Sequence[Kernel], points: Tensor) -> str | None:
    """The warning if every model has a lengthscale under a twentieth of the side of the domain, or
    over twenty times the side; else None.

    Args:
        kernels: The kernels, each of one model or of a batch of models.
        points: The ``n x d`` points that fill the domain, as the kernels see them.
    """
    sides, worst = points.amax(dim=0) - points.amin(dim=0), None
    for kernel in kernels:
        columns, shares = _shares(kernel, sides)
        wrong = (shares < 1 / _MOST_SIDES) | (shares > _MOST_SIDES)
        if not bool(wrong.any(dim=1).all()):
            return None
        if worst is None:
            model, entry = wrong.nonzero()[0].tolist()
            worst = columns[entry], float(shares[model, entry])
    if worst is None:
        return None
    return (
        f"lengthscale of column {worst[0]} is {worst[1]:.3g} times the side of the domain: under a "
        "twentieth the model learns next to nothing from one point about another, over twenty "
        "times the column makes no difference"
    )


def _shares(kernel: Kernel, sides: Tensor) -> tuple[list[int], Tensor]:
    """The columns that have a lengthscale, and the lengthscales in sides of the domain, one row for
    each kernel of the batch; 1 if a side is 0."""
    columns, shares = [], [host.zeros(*kernel.batch_shape, 0)]
    for part, own in leaves(kernel):
        if isinstance(part, _OF_DISTANCES):
            own = list(range(own, len(sides))) if isinstance(own, int) else list(own)
            columns += own
            share = part.lengthscale.squeeze(-2) / sides[own]
            share = torch.where(sides[own] > 0, share, 1.0).cpu()
            shares.append(share.expand(*kernel.batch_shape, len(own)))
    return columns, torch.cat(shares, dim=-1).reshape(kernel.batch_shape.numel(), len(columns))


@torch.no_grad()
def odd_scale(model: Any, X: Tensor, Y: Tensor, relative_noise: Tensor | None = None) -> str | None:
    """The warning if observations are too far from the prior mean, or too near, for the scale of
    the prior; else None.

    Residuals are compared with their prior standard deviations, and with the predictive standard
    deviations of each given those before it. The scale is wrong only if both comparisons say so.

    Args:
        model: A model that is not batched; its data do not matter.
        X: The ``n x d`` points.
        Y: The ``n`` observations.
        relative_noise: Their noise variances in units of that of the model; None for ones.
    """
    n = len(Y)
    K = model.kernel_function(X, X)
    noise = model.noise_variance
    K.diagonal().add_(noise if relative_noise is None else noise * relative_noise)
    residuals = (Y - model._prior_mean(X)).unsqueeze(-1)
    L, failed = torch.linalg.cholesky_ex(K)
    predicted = torch.linalg.solve_triangular(L, residuals, upper=False)
    own = residuals.squeeze(-1).square() / K.diagonal()
    squares = torch.stack([own.mean(), predicted.square().mean(), failed.to(own)]).tolist()
    if squares[2] or not (min(squares[:2]) > _MOST_SQUARE or max(squares[:2]) < _LEAST_SQUARE):
        return None
    root = squares[0] ** 0.5
    return (
        f"the scale of the prior contradicts the data: {n} observations are {root:.3g} prior "
        "standard deviations from the prior mean, where about 1 is expected: scale them, or give "
        "the kernel an outputscale and the model a mean"
    )
