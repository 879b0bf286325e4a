"""Posteriors of a Gaussian process with a fixed kernel: the rows that they grow by."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.domains.points import PointsLike, as_points
from botorch_ext.exceptions import JitterWarning
from botorch_ext.kernel_functions import KernelFunction
from botorch_ext.kernel_functions.freezing import composed
from botorch_ext.kernels.batching import members_of, selected_kernel
from botorch_ext.models.checks import PriorMean, checked_row_numbers, prior_mean_at
from botorch_ext.models.cholesky import GrowingCholesky

# Entries of kernel matrices that are made at once where a mean alone is wanted.
_MAX_ENTRIES = 2**22


class GrowingPosterior:
    """What `KernelGP` and `FinitePosterior` share: a factor, rows, and one model or a batch."""

    kernel: Kernel
    kernel_function: KernelFunction
    noise_variance: Tensor
    factor: GrowingCholesky

    @property
    @abstractmethod
    def train_inputs(self) -> tuple[Tensor]:
        """The inputs so far, ``n x d``."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """d, the dimension of the inputs."""

    @abstractmethod
    def _prior_mean(self, X: Tensor) -> Tensor:
        """``... x n x d`` to what broadcasts to ``*batch x n``."""

    @abstractmethod
    def _append(self, X: Tensor, Y: Tensor | None) -> None:
        """Adds checked rows."""

    @abstractmethod
    def _truncate(self, num_points: int) -> None:
        """Forgets all rows from ``num_points`` on."""

    @abstractmethod
    def _set_residuals(self, rows: list[int], y: Tensor) -> None:
        """Gives rows new targets, from which the prior mean is subtracted."""

    @abstractmethod
    def fork(self) -> Self:
        """A copy that goes its own way from here; until it changes them it shares the rows of the
        factor, and for ever the kernel and the prior mean."""

    @abstractmethod
    def successor(self) -> Self:
        """A copy that takes the place of this one, which stays as it is: rows that are added to the
        copy go into the same buffers, behind its own. Of two successors only one may be used."""

    @property
    def batch_shape(self) -> torch.Size:
        return self.factor.batch_shape

    @property
    def num_observations(self) -> int:
        """Rows, pending ones included."""
        return self.factor.num_points

    @property
    def train_targets(self) -> Tensor:
        """The (transformed) observations, ``*batch x n``; of pending rows, the posterior mean."""
        (X,) = self.train_inputs
        return self.factor.y[..., : self.num_observations] + self._prior_mean(X)

    @torch.no_grad()
    def prior(self, X: PointsLike) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation before any data at ``n x d`` points, ``*batch x n`` each."""
        X = as_points(X, self.dim or None, self.noise_variance, look=False)
        shape = (*self.batch_shape, len(X))
        mean = self.noise_variance.new_zeros(()) + self._prior_mean(X)
        return mean.expand(shape), self.kernel_function.diagonal(X).sqrt().expand(shape)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance at ``*b x p x d`` (each ``*batch x p``), and the cross factor."""
        prior = self.kernel_function.diagonal(X)
        if self.num_observations == 0:
            shape = (*torch.broadcast_shapes(self.batch_shape, X.shape[:-2]), X.shape[-2])
            mean = self._prior_mean(X).expand(shape)
            return mean, prior.expand(shape), self._cross(X)
        V = self._cross(X)
        mean = self._prior_mean(X) + self.factor.predicted(V)
        return mean, prior - V.square().sum(dim=-2), V

    @torch.no_grad()
    def plain_means(self, Z: Tensor) -> Tensor:
        """The posterior means alone, O(n) each, before outcome transforms: at ``p x d`` points that
        are transformed as the data are, ``*batch x p``."""
        mean = self._prior_mean(Z).expand(*self.batch_shape, len(Z)).clone()
        n = self.num_observations
        if n:
            alpha = self.factor.mean_weights.unsqueeze(-2)
            rows = math.prod(self.batch_shape) * n
            start = 0
            for chunk in Z.split(max(_MAX_ENTRIES // rows, 1)):
                k = self.kernel_function(self.train_inputs[0], chunk)
                mean[..., start : start + len(chunk)] += (alpha @ k).squeeze(-2)
                start += len(chunk)
        return mean

    def information_gain(self) -> Tensor:
        """1/2 log det(I + K / lambda) of all rows, ``*batch``; from the factor, no new solve."""
        return self.factor.information_gain()

    @torch.no_grad()
    def remove(self, row: int) -> None:
        """Forgets one row; later rows move up by one and are factorised again.

        Raises:
            ValueError: A row that does not exist.
        """
        (row,) = self._checked_rows([row])
        later = list(range(row + 1, self.num_observations))
        X, y = self.train_inputs[0][later], self.factor.y[..., later]
        known = [r - row - 1 for r in later if r not in self.factor.pending]
        self._truncate(row)
        if later:
            self._append(X, None)
        if known:
            self._set_residuals([row + r for r in known], y[..., known])

    @torch.no_grad()
    def keep(self, index: int | list[int]) -> None:
        """Forgets the other models of a batch with one dimension.

        Args:
            index: The position of a model, which loses the batch dimension, or positions. A prior
                mean is one that all models share, or a `stacked_mean`.
        """
        if self.kernel.batch_shape:
            self.kernel = selected_kernel(self.kernel, index)
            self.kernel_function = composed(self.kernel)
        self.noise_variance = members_of(self.noise_variance, index)
        self.factor.keep(index)

    def select(self, index: int | list[int]) -> Self:
        """A `fork` of one model, or of several, of a batch with one dimension; see `keep`."""
        new = self.fork()
        new.keep(index)
        return new

    def _warn_of_jitter(self, first: int) -> None:
        """Warns where the rows from ``first`` on have the first jitter in float32."""
        jitter = self.factor.jitter[..., : self.num_observations]
        if jitter.dtype == torch.float32 and bool(
            jitter[..., first:].any() > jitter[..., :first].any()
        ):
            raised = float(jitter[..., first:].max())
            message = (
                f"float32 does not tell observation {first} from those before it: the noise "
                f"variance of such rows is raised, of this one by {raised:.1g} (float64 is "
                "recommended)"
            )
            warnings.warn(message, JitterWarning, stacklevel=4)

    def _checked_rows(self, rows: Sequence[int]) -> list[int]:
        return checked_row_numbers(rows, self.num_observations)

    def _mean_at(self, mean: PriorMean | None, X: Tensor) -> Tensor:
        """A prior mean, ``... x n x d`` to what broadcasts to ``*batch x n``; or a ValueError."""
        if mean is None:
            return X.new_zeros(())
        return prior_mean_at(mean, X, max(X.ndim - 1, len(self.batch_shape) + 1))

    def _cross(self, X: Tensor) -> Tensor:
        """L^-1 K(data, X): ``*batch x n x m``."""
        if self.num_observations == 0:
            batch = torch.broadcast_shapes(self.factor.triangle.batch_shape, X.shape[:-2])
            return X.new_zeros(*batch, 0, X.shape[-2])
        return self.factor.solve(self.kernel_function(self.train_inputs[0], X))
