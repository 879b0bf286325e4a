"""The log posterior density of the hyperparameters of a GP, for a batch of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.kernels.frozen.smoothed_matern import profiles, slopes


def split(parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The parts of ``m x dim`` parameters: the log lengthscales, ``m x (dim - 2)``, the log noise
    variance and the log odds of smoothness, ``m`` each."""
    return parameters[:, :-2], parameters[:, -2], parameters[:, -1]


@dataclass(frozen=True, eq=False)
class RowNoise:
    """The noise variances of n observations of a GP: a share of its own noise variance, plus a
    variance that is known.

    Args:
        shares: The shares, ``n``: 1 for one observation, 1/k for an average of k, 0 for an
            observation whose noise is known.
        known: The known variances, ``n``, in squared units of the observations.
        scatter: The sums of the squared deviations of repeats from their average, ``n``, in the
            same units; 0 for an observation without repeats.
    """

    shares: Tensor
    known: Tensor
    scatter: Tensor

    def of(self, rows: Tensor) -> RowNoise:
        """The noise of some rows."""
        return RowNoise(self.shares[rows], self.known[rows], self.scatter[rows])

    def scaled(self, slopes: Tensor | float, device: torch.device) -> RowNoise:
        """The noise of values whose slopes with respect to the observations are given."""
        known, scatter = (each * slopes * slopes for each in (self.known, self.scatter))
        return RowNoise(self.shares.to(device), known.to(device), scatter.to(device))

    def variances(self, noise_variance: Tensor) -> Tensor:
        """The noise variances, ``m x n``, if the GPs have ``m`` own ones."""
        return noise_variance.unsqueeze(-1) * self.shares + self.known

    def of_repeats(self) -> tuple[Tensor, Tensor]:
        """What deviations from averages say of the noise variance of a GP: their degrees of freedom
        and the sum of their squares, 0-dim each."""
        is_sampled = self.shares > 0
        degrees = torch.where(is_sampled, 1 / self.shares - 1, 0)
        return degrees.sum(), torch.where(is_sampled, self.scatter, 0).sum()


class Density:
    """The log posterior density, up to a constant, of parameters as `split` names them, for a GP
    with signal variance 1 and its likeliest constant mean.

    Args:
        X: The ``n x p`` features in the unit cube.
        y: The ``n`` standardised observations.
        prior: The prior of the parameters.
        groups: The index of the lengthscale of each feature, ``p``; None for one each.
        noise: The noise of the observations; None if all have the noise variance of the GP.
    """

    def __init__(
        self,
        X: Tensor,
        y: Tensor,
        prior: Prior,
        groups: Tensor | None = None,
        noise: RowNoise | None = None,
    ) -> None:
        n, p = X.shape
        self._noise = noise
        self.y, self.num_lengthscales = y, p if groups is None else int(groups.max()) + 1
        squares = (X.mT.unsqueeze(-1) - X.mT.unsqueeze(-2)).square()  # (p, n, n)
        if groups is not None:
            own = squares.new_zeros(self.num_lengthscales, n, n)
            squares = own.index_add(0, groups, squares)
        self._squares = squares.flatten(1)
        self._location, self._spread = prior.moments(self.num_lengthscales, X)
        self.lower, self.upper = prior.limits(self.num_lengthscales, X)
        self._eye = torch.eye(n, dtype=X.dtype, device=X.device)
        self._targets = torch.stack([torch.ones_like(y), y], dim=-1)

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.num_lengthscales + 2

    def value(self, parameters: Tensor) -> Tensor:
        """The values ``m`` at ``m x dim`` parameters; -inf outside the range of the prior."""
        L, ok, _ = self._factors(parameters, self._noise)
        _, quadratic, _ = self._residuals(L)
        return self._assembled(parameters, L, quadratic, ok)

    def log_prior(self, parameters: Tensor) -> Tensor:
        """The log prior density, ``m``, at ``m x dim`` parameters inside its range, up to a
        constant."""
        distance = (parameters - self._location) / self._spread
        return -0.5 * distance.square().sum(dim=-1)

    def prior_draws(self, num: int, generator: torch.Generator) -> Tensor:
        """Draws from the prior, ``num x dim``."""
        share = host.rand(num, self.dim, generator=generator, dtype=torch.float64)
        limits = torch.stack([self.lower, self.upper]).sub(self._location).div(self._spread)
        lowest, highest = torch.special.ndtr(limits)
        z = torch.special.ndtri(torch.lerp(lowest, highest, share.to(lowest)))
        return torch.clamp(self._location + self._spread * z, self.lower, self.upper)

    def constants(self, parameters: Tensor) -> Tensor:
        """The likeliest constant mean under each of ``m x dim`` parameters, ``m``."""
        return self._residuals(self._factors(parameters, self._noise)[0])[2]

    def log_likelihoods(
        self, parameters: Tensor, Y: Tensor, noise: RowNoise | None = None
    ) -> Tensor:
        """The log likelihoods of other observations, ``k x n``, up to a constant that they share,
        of the mixture of GPs of ``m x dim`` parameters, each with its likeliest constant: ``k``.
        They have the noise of this density unless another one is given."""
        L, ok, _ = self._factors(parameters, self._noise if noise is None else noise)
        targets = torch.cat([torch.ones_like(Y[:1]), Y]).mT
        both = torch.linalg.solve_triangular(L, targets.expand(len(L), -1, -1), upper=False)
        ones, y = both[..., :1], both[..., 1:]
        constants = (ones * y).sum(dim=-2, keepdim=True) / ones.square().sum(dim=-2, keepdim=True)
        quadratic = (y - constants * ones).square().sum(dim=-2)  # (m, k)
        log_determinant = L.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1, keepdim=True)
        values = torch.where(ok.unsqueeze(-1), -0.5 * quadratic - log_determinant, -math.inf)
        return values.logsumexp(dim=0)

    def value_and_gradient(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """The ``m`` values and the ``m x dim`` gradients at ``m x dim`` parameters."""
        L, ok, (rough, smooth, s, decay) = self._factors(parameters, self._noise)
        z, quadratic, _ = self._residuals(L)
        value = self._assembled(parameters, L, quadratic, ok)
        inverse = torch.cholesky_inverse(L)
        alpha = torch.linalg.solve_triangular(L.mT, z, upper=True)
        # d value / dK; the likeliest mean has no first-order effect.
        W = (alpha @ alpha.mT - inverse).mul_(0.5)
        lengthscales, noise, odds = split(parameters)
        of_rows = W.diagonal(dim1=-2, dim2=-1)
        if self._noise is not None:
            of_rows = of_rows * self._noise.shares
        of_noise = of_rows.sum(dim=-1) * noise.exp()
        if self._noise is not None:
            degrees, scatter = self._noise.of_repeats()
            of_noise = of_noise - 0.5 * (degrees - scatter * (-noise).exp())
        share = odds.sigmoid()[:, None, None]
        of_odds = (W * (smooth - rough)).sum(dim=(-2, -1)) * odds.sigmoid() * (-odds).sigmoid()
        slope = slopes(smooth, s, decay, share).mul_(W)
        inverse_squares = (-2 * lengthscales).exp()
        of_lengthscales = (slope.flatten(1) @ self._squares.mT) * inverse_squares
        ends = torch.stack([of_noise, of_odds], dim=-1)
        gradient = torch.cat([of_lengthscales, ends], dim=-1)
        gradient = gradient - (parameters - self._location) / self._spread.square()
        return value, gradient.nan_to_num(0.0, 0.0, 0.0)

    def _factors(
        self, parameters: Tensor, row_noise: RowNoise | None
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The Cholesky factors of K + noise, whether they exist, and the kernel `profiles` from
        which its derivatives are computed."""
        n = len(self.y)
        lengthscales, noise, odds = split(parameters)
        squares = ((-2 * lengthscales).exp() @ self._squares).view(len(parameters), n, n)
        rough, smooth, s, decay = profiles(squares)
        K = torch.lerp(rough, smooth, odds.sigmoid()[:, None, None])
        variances = noise.exp().unsqueeze(-1)
        if row_noise is not None:
            variances = row_noise.variances(noise.exp())
        K.diagonal(dim1=-2, dim2=-1).add_(variances)
        L, failed = torch.linalg.cholesky_ex(K)
        ok = (failed == 0) & (L.diagonal(dim1=-2, dim2=-1) > 0).all(dim=-1)  # False for NaN
        return torch.where(ok[:, None, None], L, self._eye), ok, (rough, smooth, s, decay)

    def _residuals(self, L: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The residuals L^-1 (y - m), their sum of squares, and the constant m that minimises
        it."""
        both = torch.linalg.solve_triangular(L, self._targets.expand(len(L), -1, -1), upper=False)
        ones, y = both[..., :1], both[..., 1:]
        constant = (ones * y).sum(dim=-2) / ones.square().sum(dim=-2)  # (m, 1)
        z = y - constant.unsqueeze(-2) * ones
        return z, z.square().sum(dim=(-2, -1)), constant.squeeze(-1)

    def _assembled(self, parameters: Tensor, L: Tensor, quadratic: Tensor, ok: Tensor) -> Tensor:
        log_determinant = L.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        value = self.log_prior(parameters) - 0.5 * quadratic - log_determinant
        if self._noise is not None:
            log_noise, (degrees, scatter) = split(parameters)[1], self._noise.of_repeats()
            value = value - 0.5 * (degrees * log_noise + scatter * (-log_noise).exp())
        inside = (parameters >= self.lower) & (parameters <= self.upper)
        ok = ok & inside.all(dim=-1) & value.isfinite()
        return torch.where(ok, value, -math.inf)
