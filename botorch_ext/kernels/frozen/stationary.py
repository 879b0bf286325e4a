"""StationaryKernel: frozen RBF and Matern kernels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.domains.distances import distances, squared_distances
from botorch_ext.kernels.frozen.base import KernelFunction, Pullback, columns, onto_columns

# For each smoothness nu: the rate for which the profile is simplest in s = rate |x1 - x2| /
# lengthscale, exp(-s^2) or a polynomial in s times exp(-s).
_RATES = {math.inf: math.sqrt(0.5), 0.5: 1.0, 1.5: math.sqrt(3), 2.5: math.sqrt(5)}
# The most differences in each column, of all pairs, that are held at once.
_MOST_DIFFERENCES = 2**20
# For each smoothness nu the constant factor of the gradient.
_SLOPES = {math.inf: 2.0, 0.5: 1.0, 1.5: 1.0, 2.5: 1 / 3}


class StationaryKernel(KernelFunction):
    """The frozen kernel outputscale * profile(|x1 - x2| / lengthscale), RBF or Matern.

    Args:
        nu: The smoothness of a Matern kernel, 1/2, 3/2 or 5/2; ``math.inf`` for RBF.
        lengthscale: The lengthscale, ``*batch x 1 x (1 or d)``.
        outputscale: The output scale, ``*batch``; None for 1.
        active_dims: The columns that the kernel sees; None for all.
    """

    inverse_lengthscale: Tensor
    _rate: Tensor
    _negated_square: Tensor
    outputscale: Tensor | None
    active_dims: Tensor | None
    has_closed_form_gradient = True

    def __init__(
        self, nu: float, lengthscale: Tensor, outputscale: Tensor | None, active_dims: Tensor | None
    ) -> None:
        super().__init__()
        self.nu = nu
        self.register_buffer("inverse_lengthscale", 1 / lengthscale)
        self.register_buffer("_rate", _RATES[nu] * self.inverse_lengthscale)
        self.register_buffer("_negated_square", -self._rate.square())
        self.register_buffer("outputscale", outputscale)
        self.register_buffer("active_dims", active_dims)
        scale_shape = torch.Size() if outputscale is None else outputscale.shape
        self.batch_shape = torch.broadcast_shapes(lengthscale.shape[:-2], scale_shape)

    def _distance(self, X1: Tensor, X2: Tensor) -> Tensor:
        """s. One matrix of distances serves a whole batch of isotropic kernels."""
        rate = self._rate
        if rate.shape[-1] == 1:
            return _scaled(distances(X1, X2), rate)
        return distances(X1 * rate, X2 * rate)

    def _exponent(self, X1: Tensor, X2: Tensor) -> Tensor:
        """-s^2."""
        rate = self._rate
        if rate.shape[-1] == 1:
            return _scaled(squared_distances(X1, X2), self._negated_square)
        return weighted_squares(X1, X2, rate, -1)

    def _rescale(self, K: Tensor) -> Tensor:
        return K if self.outputscale is None else _scaled(K, self.outputscale[..., None, None])

    # Large temporary tensors cost more than arithmetic. Tensors that are made here and not needed
    # by autograd are therefore changed in place.

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        X1, X2 = columns(X1, self.active_dims), columns(X2, self.active_dims)
        if self.nu == math.inf:
            return self._rescale(self._exponent(X1, X2).exp_())
        s = self._distance(X1, X2)
        decay = torch.neg(s).exp_()
        if self.nu == 1.5:
            decay = (s + 1).mul_(decay)
        elif self.nu == 2.5:
            decay = torch.addcmul(s, s, s, value=1 / 3).add_(1).mul_(decay)
        return self._rescale(decay)

    def diagonal(self, X: Tensor) -> Tensor:
        one = X.new_ones(X.shape[:-1])
        return one if self.outputscale is None else one * self.outputscale[..., None]

    def _value_and_slope(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Tensor]:
        """k and g in dk(x1, x2)/dx2 = c g (x1 - x2) / lengthscale^2 with a constant c."""
        if self.nu == math.inf:
            K = self._rescale(self._exponent(X1, X2).exp_())
            return K, K
        s = self._distance(X1, X2)
        decay = self._rescale(torch.neg(s).exp_())
        if self.nu == 0.5:
            # The kernel is not differentiable at s = 0; 0 is the symmetric choice there.
            return decay, torch.where(s > 0, decay / s, 0)
        linear = (s + 1) * decay
        if self.nu == 1.5:
            return linear, decay
        return torch.addcmul(linear, s.square_(), decay, value=1 / 3), linear

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        Z1, Z2 = columns(X1, self.active_dims), columns(X2, self.active_dims)
        K, slope = self._value_and_slope(Z1, Z2)
        scale = _SLOPES[self.nu] * self._rate.square()

        def pullback(W: Tensor) -> Tensor:
            gradient = differences_pulled(W * slope, Z1, Z2) * scale
            return onto_columns(gradient, self.active_dims, X2.shape[-1])

        return K, pullback

    def restricted(self, masks: Tensor) -> StationaryKernel:
        # An infinite lengthscale removes a column.
        masks = columns(masks, self.active_dims).unsqueeze(-2)
        lengthscale = 1 / (self.inverse_lengthscale.unsqueeze(-3) * masks)
        outputscale = None if self.outputscale is None else self.outputscale.unsqueeze(-1)
        return StationaryKernel(self.nu, lengthscale, outputscale, self.active_dims)


def _scaled(K: Tensor, factors: Tensor) -> Tensor:
    """Matrices, ``*batch x n1 x n2``, times factors, ``*batch x 1 x 1``, in place where neither
    autograd nor broadcasting forbids it."""
    if K.requires_grad or factors.shape[:-2] not in ((), K.shape[:-2]):
        return K * factors
    return K.mul_(factors)


def weighted_squares(X1: Tensor, X2: Tensor, rate: Tensor, sign: float = 1) -> Tensor:
    """The squared distances of scaled points.

    Args:
        X1: Points, ``... x n1 x d``.
        X2: Points, ``... x n2 x d``.
        rate: The factor of each column, ``... x 1 x d``.
        sign: A factor of the result, 1 or -1.

    Returns:
        The squared distances times the sign, ``... x n1 x n2``.
    """
    if rate.ndim > 2 and X1.ndim == X2.ndim == 2:
        if X1.numel() * len(X2) > _MOST_DIFFERENCES:
            # Rounding errors of squares are harmless: the slope of RBF in the square is finite.
            center = X1.mean(dim=0)
            A, B = (X1 - center) * rate, (X2 - center) * rate
            sizes = A.square().sum(dim=-1).unsqueeze(-1) + B.square().sum(dim=-1).unsqueeze(-2)
            return sign * (sizes - 2 * A @ B.mT).clamp_min(0)
        # The batch shares the squared differences in each column, d numbers for each pair of
        # points; a matrix product computes their weighted sums.
        squares = (X1.mT.unsqueeze(-1) - X2.mT.unsqueeze(-2)).square()  # d x n1 x n2
        sums = (sign * rate.square().squeeze(-2)) @ squares.flatten(1)
        return sums.unflatten(-1, squares.shape[1:])
    return squared_distances(X1 * rate, X2 * rate).mul_(sign)


def differences_pulled(W: Tensor, X1: Tensor, X2: Tensor) -> Tensor:
    """The weighted sums sum_i W_ij (x1_i - x2_j).

    Args:
        W: Weights, ``... x n1 x n2``.
        X1: Points, ``... x n1 x d``.
        X2: Points, ``... x n2 x d``.

    Returns:
        ``... x n2 x d``.
    """
    # This is far faster than with W transposed, since W is read in the order of memory.
    return (X1.mT @ W - X2.mT * W.sum(dim=-2, keepdim=True)).mT
