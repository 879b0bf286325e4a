"""GrowingPosterior: the base class of posteriors with a fixed kernel, which grow by rows."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.points import PointsLike, as_points
from botorch_ext.exceptions import JitterWarning
from botorch_ext.kernels.batching import members_of, selected_kernel
from botorch_ext.kernels.frozen import KernelFunction
from botorch_ext.kernels.frozen.freezing import composed
from botorch_ext.models.checks import PriorMean, checked_row_numbers, prior_mean_at
from botorch_ext.models.cholesky import GrowingCholesky


class GrowingPosterior:
    """Base class of `KernelGP` and `FinitePosterior`: one model, or a batch, with its factor."""

    kernel: Kernel
    kernel_function: KernelFunction
    noise_variance: Tensor
    factor: GrowingCholesky

    @property
    @abstractmethod
    def train_inputs(self) -> tuple[Tensor]:
        """The inputs so far, a tuple of one tensor, ``n x d``."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """d, the number of columns of the inputs."""

    @abstractmethod
    def _prior_mean(self, X: Tensor) -> Tensor:
        """The prior mean at points, ``... x n x d``; it broadcasts to ``*batch x n``."""

    @abstractmethod
    def _append(self, X: Tensor, Y: Tensor | None, *, relative_noise: Tensor | None = None) -> None:
        """Add checked rows."""

    @abstractmethod
    def _truncate(self, num_points: int) -> None:
        """Remove all rows from ``num_points`` on."""

    @abstractmethod
    def _set_residuals(self, rows: list[int], y: Tensor) -> None:
        """Give rows new targets, from which the prior mean is already subtracted."""

    @abstractmethod
    def fork(self) -> Self:
        """An independent copy. It shares the rows of the factor until it changes them, and always
        shares the kernel and the prior mean."""

    @abstractmethod
    def successor(self) -> Self:
        """A copy that takes the place of this posterior, which stays as it is. New rows of the copy
        go into the same buffers, behind the present rows; so only one successor may be used."""

    @property
    def batch_shape(self) -> torch.Size:
        return self.factor.batch_shape

    @property
    def num_observations(self) -> int:
        """The number of rows, including pending ones."""
        return self.factor.num_points

    @property
    def relative_noise(self) -> Tensor | None:
        """The noise variances of the rows in units of lambda, ``*batch x n``; None if none was
        given."""
        if not self.factor.has_unequal_noise:
            return None
        return self.factor.relative_noise[..., : self.num_observations]

    def total_precision(self, rows: list[int] | None = None) -> float | None:
        """The sum of 1/r over the relative noises r of some rows, or of all that are not pending,
        for the first model of a batch; None if no relative noise was given."""
        noise = self.relative_noise
        if noise is None:
            return None
        if rows is None:
            pending = set(self.factor.pending)
            rows = [row for row in range(self.num_observations) if row not in pending]
        return float(noise.reshape(-1, noise.shape[-1])[0, rows].reciprocal().sum())

    @property
    def train_targets(self) -> Tensor:
        """The (transformed) observations, ``*batch x n``; for pending rows, the posterior mean."""
        (X,) = self.train_inputs
        return self.factor.y[..., : self.num_observations] + self._prior_mean(X)

    @torch.no_grad()
    def prior(self, X: PointsLike) -> tuple[Tensor, Tensor]:
        """The prior mean and standard deviation at points.

        Args:
            X: Points, ``n x d``.

        Returns:
            The means and the standard deviations, ``*batch x n`` each.
        """
        X = as_points(X, self.dim or None, self.noise_variance, look=False)
        shape = (*self.batch_shape, len(X))
        mean = self.noise_variance.new_zeros(()) + self._prior_mean(X)
        return mean.expand(shape), self.kernel_function.diagonal(X).sqrt().expand(shape)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior mean and variance at points.

        Args:
            X: Points, ``*b x p x d``.

        Returns:
            The means and the variances, ``*batch x p`` each, and L^-1 k(data, X),
            ``*batch x n x p``.
        """
        prior = self.kernel_function.diagonal(X)
        if self.num_observations == 0:
            shape = (*torch.broadcast_shapes(self.batch_shape, X.shape[:-2]), X.shape[-2])
            mean = self._prior_mean(X).expand(shape)
            return mean, prior.expand(shape), self._cross(X)
        V = self._cross(X)
        mean = self._prior_mean(X) + self.factor.predicted(V)
        return mean, prior - V.square().sum(dim=-2), V

    def weight_norms(self, Z: Tensor) -> Tensor:
        """The sums of the absolute weights of the known observations in posterior means.

        The mean at x is the prior mean plus sum_i zeta_i (y_i - prior mean at x_i), with zeta =
        (K + lambda I)^-1 k(x) over the known observations: if each of these is wrong by at most
        eps, the mean is wrong by at most eps times the sum of |zeta_i|.

        Args:
            Z: Points, ``*b x p x d``, transformed as the data are.

        Returns:
            The sums, ``*batch x p``, differentiable in ``Z``.
        """
        V = self._cross(Z)
        if not self.num_observations:
            return V.sum(dim=-2).expand(*self.batch_shape, -1)
        return self.factor.weight_norms(V)

    @torch.no_grad()
    def plain_means(self, Z: Tensor) -> Tensor:
        """The posterior means before outcome transforms, O(n) per point for n observations.

        Args:
            Z: Points, ``p x d``, transformed as the data are.

        Returns:
            The means, ``*batch x p``.
        """
        mean = self._prior_mean(Z).expand(*self.batch_shape, len(Z)).clone()
        n = self.num_observations
        if n:
            alpha = self.factor.mean_weights.unsqueeze(-2)
            rows = math.prod(self.batch_shape) * n
            start = 0
            for chunk in in_chunks(Z, rows):
                k = self.kernel_function(self.train_inputs[0], chunk)
                mean[..., start : start + len(chunk)] += (alpha @ k).squeeze(-2)
                start += len(chunk)
        return mean

    def information_gain(self) -> Tensor:
        """The information gain of all rows, 1/2 log det(I + K / lambda), ``*batch``."""
        return self.factor.information_gain()

    @property
    def num_told(self) -> int:
        """The number of known observations."""
        return self.num_observations - len(self.factor.pending)

    def told_information_gain(self) -> Tensor:
        """The information gain of the known observations, ``*batch``."""
        gain = self.information_gain()
        return gain - self.factor.pending_information_gain() if self.factor.pending else gain

    def quadratic_form(self) -> Tensor:
        """y' (K + lambda I)^-1 y of the known observations, minus the prior mean, ``*batch``."""
        # z is orthogonal to the columns of pending rows.
        return self.factor.z[..., : self.num_observations].square().sum(dim=-1)

    @torch.no_grad()
    def remove(self, row: int) -> None:
        """Remove one row; later rows move up by one and are factorised again.

        Raises:
            ValueError: If the row does not exist.
        """
        (row,) = self._checked_rows([row])
        later = list(range(row + 1, self.num_observations))
        X, y = self.train_inputs[0][later], self.factor.y[..., later]
        noise = self.relative_noise
        noise = None if noise is None else noise[..., later]
        known = [r - row - 1 for r in later if r not in self.factor.pending]
        self._truncate(row)
        if later:
            self._append(X, None, relative_noise=noise)
        if known:
            self._set_residuals([row + r for r in known], y[..., known])

    @torch.no_grad()
    def keep(self, index: int | list[int]) -> None:
        """Keep some models of a batch with one dimension.

        The prior mean must be shared by all models, or a `stacked_mean`.

        Args:
            index: The position of one model, which loses the batch dimension, or positions.
        """
        if self.kernel.batch_shape:
            self.kernel = selected_kernel(self.kernel, index)
            self.kernel_function = composed(self.kernel)
        self.noise_variance = members_of(self.noise_variance, index)
        self.factor.keep(index)

    def select(self, index: int | list[int]) -> Self:
        """A `fork` of some models of a batch with one dimension; see `keep`.

        Args:
            index: The position of one model, which loses the batch dimension, or positions.
        """
        new = self.fork()
        new.keep(index)
        return new

    def _warn_of_jitter(self, first: int) -> None:
        """Warn if the rows from ``first`` on are the first with jitter in float32."""
        jitter = self.factor.jitter[..., : self.num_observations]
        if jitter.dtype == torch.float32 and bool(
            jitter[..., first:].any() > jitter[..., :first].any()
        ):
            raised = float(jitter[..., first:].max())
            message = (
                f"float32 cannot tell observation {first} from earlier ones, so the noise variance "
                f"of this observation was raised by {raised:.1g}: use float64"
            )
            warnings.warn(message, JitterWarning, stacklevel=4)

    def _checked_rows(self, rows: Sequence[int]) -> list[int]:
        return checked_row_numbers(rows, self.num_observations)

    def _mean_at(self, mean: PriorMean | None, X: Tensor) -> Tensor:
        """A prior mean at points, ``... x n x d``; it broadcasts to ``*batch x n``."""
        if mean is None:
            return X.new_zeros(())
        return prior_mean_at(mean, X, max(X.ndim - 1, len(self.batch_shape) + 1))

    def _cross(self, X: Tensor) -> Tensor:
        """The matrix L^-1 K(data, X), ``*batch x n x m``."""
        if self.num_observations == 0:
            batch = torch.broadcast_shapes(self.factor.triangle.batch_shape, X.shape[:-2])
            return X.new_zeros(*batch, 0, X.shape[-2])
        return self.factor.solve(self.kernel_function(self.train_inputs[0], X))
