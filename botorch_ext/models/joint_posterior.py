"""Joint posterior of a model over the q points of each t-batch."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from linear_operator import to_linear_operator
from linear_operator.operators import DiagLinearOperator, MatmulLinearOperator
from torch import Tensor

from botorch_ext.kernel_functions import KernelFunction

# A joint posterior over more points than this keeps its covariance unevaluated.
_LAZY_COVARIANCE = 512


class Moments(Protocol):
    """What is asked of a model (`KernelGP`)."""

    kernel: Kernel
    kernel_function: KernelFunction

    @property
    def batch_shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...


def joint_distribution(model: Moments, Z: Tensor, noise: Tensor | None) -> MultivariateNormal:
    """The joint distribution of f, or of observations.

    Args:
        model: A model.
        Z: ``t-batch x q x d`` points, transformed as the model has its own.
        noise: The variance of the noise, which broadcasts to ``t-batch x q``; None for f itself.

    Returns:
        A distribution over ``broadcast(t-batch, batch_shape) x q``, differentiable in ``Z``.
    """
    q, d = Z.shape[-2:]
    batch = model.batch_shape
    # The part of the t-batch that does not meet the batch of the model becomes more columns of
    # one solve; broadcasting would copy the factor once for each of its entries.
    t = (1,) * (len(batch) - Z.ndim + 2) + Z.shape[:-2]
    split = len(t) - len(batch)
    outer, inner = t[:split], t[split:]
    Z = Z.reshape(*t, q, d)
    columns = Z.reshape(-1, *inner, q, d).movedim(0, -3)  # *inner x prod(outer) x q x d
    mean, variance, V = model.moments(columns.flatten(-3, -2))
    full = torch.broadcast_shapes(inner, batch)

    def unfold(A: Tensor) -> Tensor:  # *full x rows x (outer q) to *outer x *full x rows x q
        rows = A.shape[-2]
        A = A.expand(*full, rows, A.shape[-1]).reshape(*full, rows, math.prod(outer), q)
        return A.movedim(-2, 0).reshape(*outer, *full, rows, q)

    mean = unfold(mean.unsqueeze(-2)).squeeze(-2)  # *outer x *full x q
    if q == 1:
        floor = settings.min_variance.value(model.dtype)
        covariance = unfold(variance.clamp_min(floor).unsqueeze(-2))
    else:
        V = unfold(V)
        Z = Z.expand(*outer, *full, q, d)
        if q <= _LAZY_COVARIANCE:
            covariance = model.kernel_function(Z, Z) - V.mT @ V
        else:
            covariance = model.kernel(Z) + MatmulLinearOperator(-V.mT, V)
    if noise is not None:
        diagonal = DiagLinearOperator(noise.expand(mean.shape))
        covariance = covariance + (diagonal if q > _LAZY_COVARIANCE else diagonal.to_dense())
    return MultivariateNormal(mean, to_linear_operator(covariance))
