"""Warnings of priors: numbers of the user that make little sense for the domain and the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, PiecewisePolynomialKernel, RBFKernel, RQKernel
from torch import Tensor

from botorch_ext.kernels.structure import leaves

# Lengthscales are looked at where they are distances between points.
_OF_DISTANCES = (RBFKernel, MaternKernel, RQKernel, PiecewisePolynomialKernel)
# How many times the side of the domain a lengthscale may be, or the side the lengthscale.
_MOST_SIDES = 20
# Numbers of observations at which the scale of a prior is looked at; the mean squares of residuals
# that contradict it. Of f drawn from the prior, with all of its hyperparameters, any of these looks
# warns with probability less than 1e-6: n times the mean square is chi-squared with n degrees.
LOOKS = (8, 16, 32, 64)
_LEAST_SQUARE, _MOST_SQUARE = 0.01, 9.0


@torch.no_grad()
def odd_lengthscales(kernels: Sequence[Kernel], points: Tensor) -> str | None:
    """What to say where every one of these models has a lengthscale under a twentieth or over
    twenty times the side of what points fill; else None.

    Args:
        kernels: Of one model each, or of a batch of models.
        points: ``n x d``, as the kernels see them.
    """
    sides, worst = points.amax(dim=0) - points.amin(dim=0), None
    for kernel in kernels:
        columns, shares = _shares(kernel, sides)
        wrong = (shares < 1 / _MOST_SIDES) | (shares > _MOST_SIDES)
        if not bool(wrong.any(dim=1).all()):
            return None
        if worst is None:
            model, place = wrong.nonzero()[0].tolist()
            worst = columns[place], float(shares[model, place])
    if worst is None:
        return None
    return (
        f"lengthscale of column {worst[0]} is {worst[1]:.3g} times the side of the domain: under a "
        "twentieth the model learns next to nothing from one point about another, over twenty "
        "times the column makes no difference"
    )


def _shares(kernel: Kernel, sides: Tensor) -> tuple[list[int], Tensor]:
    """Columns that a batch of kernels has lengthscales for, and these, one row for each kernel, in
    sides; 1 where a side is 0."""
    columns, shares = [], [torch.zeros(*kernel.batch_shape, 0)]
    for part, own in leaves(kernel):
        if isinstance(part, _OF_DISTANCES):
            own = list(range(own, len(sides))) if isinstance(own, int) else list(own)
            columns += own
            share = part.lengthscale.squeeze(-2) / sides[own]
            share = torch.where(sides[own] > 0, share, 1.0).cpu()
            shares.append(share.expand(*kernel.batch_shape, len(own)))
    return columns, torch.cat(shares, dim=-1).reshape(kernel.batch_shape.numel(), len(columns))


@torch.no_grad()
def odd_scale(model: Any, X: Tensor, Y: Tensor) -> str | None:
    """What to say where observations are too far from a prior mean, or too near, for the scale of
    the prior; else None.

    Their residuals count twice, by their own prior standard deviations and, each given those
    before it, by those of predictions: only what both contradict is wrong in scale.

    Args:
        model: One that is not batched, whatever data it has.
        X: ``n x d``.
        Y: ``n``.
    """
    n = len(Y)
    K = model.kernel_function(X, X)
    K.diagonal().add_(model.noise_variance)
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
