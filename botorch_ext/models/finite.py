"""FinitePosterior: posterior mean and standard deviation on finitely many points, kept up to
date."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import amount, whole_number
from botorch_ext.domains import as_points
from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.dtypes_and_devices import checked_dtype
from botorch_ext.domains.points import PointsLike, as_floating, require_finite
from botorch_ext.domains.shards import Shard
from botorch_ext.kernels.batching import members_of
from botorch_ext.kernels.frozen.freezing import composed
from botorch_ext.kernels.structure import plain_kernel
from botorch_ext.models.checks import (
    PriorMean,
    checked_noise_variance,
    checked_relative_noise,
    checked_values,
    frozen_mean,
)
from botorch_ext.models.cholesky import GrowingCholesky, as_block
from botorch_ext.models.downdate import variance_of_pending
from botorch_ext.models.growing_rows import GrowingRows
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.models.stacked_means import selected_mean
from botorch_ext.models.triangular import solve_triangular
from botorch_ext.state import shallow

# The factor by which the buffer of rows grows. A million candidates with 1,000 observations in
# float64 take 8 GB of rows, and 17.4 GB for a moment while the buffer grows from 864 rows to 1,312.
# Abandoning a pending trial copies the rows that were there before the trial was asked.
_GROWTH = 1.5
# The most bytes of rows that are computed, or removed, at once.
_MOST_BYTES = 2**27
# The number of observations after which kept weights are computed anew.
_FRESH = 256


class FinitePosterior(GrowingPosterior):
    """The posterior of a GP with a fixed kernel on N candidate points, kept up to date.

    Adding the (n+1)-th observation takes O(N n), and no N x N matrix is ever formed. The posterior
    keeps V = L^-1 K(data, candidates), one row for each observation. A new observation at a
    candidate finds its row of L in a column of V, so it costs one kernel row and one matrix-vector
    product.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> posterior = bx.FinitePosterior(RBFKernel(), [[0.0], [1.0], [2.0]], noise_variance=0.01)
        >>> posterior.add_candidate(1, 0.5)
        >>> posterior.std.argmin()
        tensor(1)

    Args:
        kernel: Any GPyTorch kernel; it is copied and frozen. Batch dimensions of the kernel stand
            for several models.
        candidates: The candidate points, ``N x d``; the posterior has their dtype and device.
        noise_variance: The ridge lambda > 0: a float, or a ``*batch``-dim tensor.
        mean: The prior mean: a GPyTorch `Mean`, a callable ``N x d`` to ``*batch x N``, or a
            number; None for zero.
        capacity: The number of observations for which memory is reserved at first.
        shard: The part of the candidates that this process keeps; ``mean``, ``variance`` and
            ``std`` then cover only this part. None for all candidates.

    Raises:
        ValueError: If the noise variance is not positive and finite.
    """

    @torch.no_grad()
    def __init__(
        self,
        kernel: Kernel,
        candidates: PointsLike,
        noise_variance: float | Tensor,
        mean: PriorMean | float | None = None,
        capacity: int = 64,
        shard: Shard | None = None,
    ) -> None:
        if not (isinstance(candidates, Tensor) and candidates.is_floating_point()):
            candidates = as_floating(candidates, None, None, "candidates")
        checked_dtype(candidates.dtype, "the dtype of candidates")
        candidates = as_points(candidates, None, candidates, "candidates")
        noise = checked_noise_variance(noise_variance, candidates.dtype, candidates.device)
        self.kernel = plain_kernel(kernel, candidates)
        self.kernel_function = composed(self.kernel).to(device=candidates.device)
        batch = torch.broadcast_shapes(self.kernel_function.batch_shape, noise.shape)
        self.prior_mean = frozen_mean(mean, noise)
        self.candidates, self.shard = candidates, shard
        if shard is not None:
            candidates = candidates[shard.start : shard.stop]
        self._own_candidates = candidates.contiguous()
        self.noise_variance = noise.expand(batch).clone()
        capacity = whole_number(capacity, "capacity", least=1)
        self.factor = GrowingCholesky(self.noise_variance, capacity)
        shape = (*batch, len(candidates))
        prior = self.kernel_function.diagonal(candidates).expand(shape)
        self.variance = prior.clone()
        prior_mean = self._prior_mean(candidates)
        if mean is not None:
            require_finite({"mean at the candidates": prior_mean})
        self.mean = prior_mean.expand(shape).clone()
        self._V = GrowingRows(candidates.new_empty(*batch, capacity, len(candidates)), _GROWTH)
        self._inputs = GrowingRows(candidates.new_empty(capacity, self.dim), _GROWTH)
        # The weights (L L')^-1 K(data, candidates), ``*batch x n x N``, if they are kept.
        self._weights: Tensor | None = None

    @classmethod
    def from_model(
        cls, model: KernelGP, candidates: Tensor, shard: Shard | None = None
    ) -> FinitePosterior:
        """Make the posterior of a `KernelGP` on candidate points.

        Args:
            model: The model, without transforms; its observations and pending points are included.
            candidates: The candidate points, ``N x d``.
            shard: The part of the candidates that this process keeps; None for all.

        Returns:
            The posterior on the candidates.
        """
        finite = cls(model.kernel, candidates, model.noise_variance, model.mean, shard=shard)
        if model.num_observations:
            finite._adopt(model)
        return finite

    @torch.no_grad()
    def _adopt(self, model: KernelGP) -> None:
        (X,) = model.train_inputs
        self._append(X, None, relative_noise=model.relative_noise)
        pending = set(model.factor.pending)
        known = [row for row in range(len(X)) if row not in pending]
        if known:
            self._set_residuals(known, model.factor.y[..., known])

    def fork(self) -> FinitePosterior:
        new = shallow(self)
        for name in ("factor", "_V", "_inputs"):
            setattr(new, name, getattr(self, name).fork())
        new.mean, new.variance = self.mean.clone(), self.variance.clone()
        return new

    def successor(self) -> FinitePosterior:
        new = shallow(self)
        for name in ("factor", "_V", "_inputs"):
            setattr(new, name, getattr(self, name).successor())
        return new

    def keep(self, index: int | list[int]) -> None:
        super().keep(index)
        self.prior_mean = selected_mean(self.prior_mean, index)
        self._V.keep(index)
        self.variance, self.mean = (members_of(a, index) for a in (self.variance, self.mean))
        if self._weights is not None:
            self._weights = members_of(self._weights, index)

    @property
    def std(self) -> Tensor:
        """The posterior standard deviation at the candidates, ``*batch x N``."""
        return self.variance.clamp_min(0).sqrt()

    def std_of_known(self) -> Tensor:
        """The standard deviation at the candidates if no point were pending; O(N n p) for p pending
        points.

        Returns:
            Standard deviations, ``*batch x N``.
        """
        added = variance_of_pending(self.factor, self._V.combined)
        return (self.variance + added).clamp_min(0).sqrt()

    def keep_weights(self) -> None:
        """Keeps the weights of the observations in the posterior means up to date from now on, so
        that `weight_norms_of_candidates` takes O(N n), as long as they fit 128 MiB."""
        self._weights = self.variance.new_empty(*self.batch_shape, 0, self.variance.shape[-1])
        self._update_weights()

    def weight_norms_of_candidates(self) -> Tensor:
        """The `weight_norms` at the candidates.

        Returns:
            ``*batch x N``.
        """
        factor = self.factor
        if self._weights is not None:
            return factor.told_weights(self._weights).abs().sum(dim=-2)
        norms = torch.zeros_like(self.variance)
        entries = self.num_observations * math.prod(self.batch_shape)
        start = 0
        for chunk in in_chunks(self._own_candidates, max(entries, 1)):
            part = slice(start, start + len(chunk))
            V = self._V.block(slice(0, self.num_observations), part)
            norms[..., part] = factor.weight_norms(V)
            start = part.stop
        return norms

    def _update_weights(self) -> None:
        """Adds the rows since the last update, by back substitution: the rows of earlier
        observations change, too."""
        if self._weights is None:
            return
        first, n = self._weights.shape[-2], self.num_observations
        if self.variance.nbytes * n > _MOST_BYTES:
            self._weights = None
            return
        if first // _FRESH < n // _FRESH:  # rounding errors add up
            first = 0
        factor, rows = self.factor, slice(first, n)
        V = self._V.block(rows)
        new = factor.triangle.block(rows, rows)
        late = solve_triangular(new.mT, V, upper=True)
        if first:
            left = factor.triangle.block(rows, slice(0, first))
            early = factor.triangle.block(slice(0, first), slice(0, first))
            shares = solve_triangular(early.mT, left.mT, upper=True)
            weights = late.new_empty(*late.shape[:-2], n, late.shape[-1])
            torch.sub(self._weights, shares @ late, out=weights[..., :first, :])
            weights[..., first:, :] = late
            late = weights
        self._weights = late

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The inputs so far, ``n x d``."""
        return (self._inputs.values,)

    @property
    def dim(self) -> int:
        """d, the dimension of the candidates."""
        return self.candidates.shape[-1]

    @torch.no_grad()
    def add_candidate(
        self, index: int, y: float | None, relative_noise: float | None = None
    ) -> None:
        """Add an observation at one candidate.

        Args:
            index: The row of the candidate.
            y: The observation; None while it is pending. A pending point reduces the standard
                deviation and leaves the mean alone.
            relative_noise: The noise variance of the observation in units of lambda; None for 1.

        Raises:
            ValueError: If the row does not exist, or ``y`` is not a finite number.
        """
        index = whole_number(index, "index", least=0)
        if index >= len(self.candidates):
            raise ValueError(f"index must be less than {len(self.candidates)}, got {index}")
        y = None if y is None else amount(y, "y", "finite")
        cross = self.cross_factor(index)
        target = None if y is None else self.candidates.new_full((1,), y)
        # A strided column would slow the product with V down by a sixth.
        cross = cross.unsqueeze(-1).contiguous()
        noise = None if relative_noise is None else self.candidates.new_tensor([relative_noise])
        self._append(self.candidates[index : index + 1], target, cross, relative_noise=noise)

    def cross_factor(self, index: int) -> Tensor:
        """The vector L^-1 k(data, candidate) of one candidate.

        Returns:
            ``*batch x n``.
        """
        place = index if self.shard is None else self.shard.place(index)
        rows = slice(0, self.num_observations)
        column = self._V.block(rows, slice(place, place + 1)).squeeze(-1)
        return column if self.shard is None else self.shard.from_owners(column, index)

    @torch.no_grad()
    def covariance_of_candidate(self, index: int) -> Tensor:
        """The posterior covariances of f at one candidate and at every candidate.

        Args:
            index: The row of the candidate.

        Returns:
            ``*batch x N``.
        """
        prior = self.kernel_function(self.candidates[index : index + 1], self._own_candidates)
        if self.num_observations:
            prior = prior - self._V.combined(self.cross_factor(index).unsqueeze(-2), 0)
        return prior.squeeze(-2).expand(self.variance.shape)

    @torch.no_grad()
    def add(
        self, X: PointsLike, Y: PointsLike | None, relative_noise: PointsLike | None = None
    ) -> None:
        """Add observations at any points, such as data from before the study.

        Args:
            X: Points, ``n x d``.
            Y: Observations, ``n x 1`` or ``n``; None while the points are pending.
            relative_noise: The noise variances of the observations in units of lambda, ``n`` or
                ``*batch x n``; None for ones.

        Raises:
            ValueError: If a shape, dtype or device is wrong, an entry is not finite, or a noise
                variance is not positive.
        """
        X = as_points(X, self.dim, self.candidates)
        noise = checked_relative_noise(relative_noise, len(X), self.noise_variance)
        if Y is not None:
            Y = checked_values(Y, len(X), self.candidates)
            if self.prior_mean is not None:
                require_finite({"mean at X": self._prior_mean(X)})
        self._append(X, Y, relative_noise=noise)

    @torch.no_grad()
    def set_targets(self, rows: Sequence[int], Y: PointsLike) -> None:
        """Give rows new values: pending rows become known, values of known rows are replaced.

        Args:
            rows: The rows, numbered in the order of addition.
            Y: One value for each row, ``n x 1`` or ``n``.

        Raises:
            ValueError: If a row does not exist, or a value is not finite.
        """
        rows = self._checked_rows(rows)
        Y = checked_values(Y, len(rows), self.candidates)
        self._set_residuals(rows, Y - self._prior_mean(self._inputs.values[as_block(rows)]))

    @property
    def _rows_at_once(self) -> int:
        return max(_MOST_BYTES // max(self.variance.nbytes, 1), 1)

    def _truncate(self, num_points: int) -> None:
        n, at_once = self.num_observations, self._rows_at_once
        for start in range(num_points, n, at_once):
            rows = slice(start, min(start + at_once, n))
            removed = self._V.block(rows)
            self.variance = self.variance + removed.square().sum(dim=-2)
            self.mean = self.mean - (self.factor.z[..., None, rows] @ removed).squeeze(-2)
        self._V.truncate(num_points)
        self._inputs.truncate(num_points)
        self._move_mean(*self.factor.truncate(num_points))
        if self._weights is not None:
            self.keep_weights()

    def _set_residuals(self, rows: list[int], y: Tensor) -> None:
        self._move_mean(*self.factor.set_targets(rows, y))

    def _move_mean(self, start: int, change: Tensor) -> None:
        self.mean = self.mean + self._V.combined(change.unsqueeze(-2), start).squeeze(-2)

    def _prior_mean(self, X: Tensor) -> Tensor:
        return self._mean_at(self.prior_mean, X)

    def _append(
        self,
        X: Tensor,
        Y: Tensor | None,
        cross: Tensor | None = None,
        *,
        relative_noise: Tensor | None = None,
    ) -> None:
        at_once = self._rows_at_once
        if len(X) > at_once:
            for start in range(0, len(X), at_once):
                some = slice(start, start + at_once)
                noise = None if relative_noise is None else relative_noise[..., some]
                self._append(X[some], None if Y is None else Y[..., some], relative_noise=noise)
            return
        cross = self._cross(X) if cross is None else cross
        n, m = self.num_observations, len(X)
        y = Y
        if Y is not None and self.prior_mean is not None:
            y = Y - self._prior_mean(X)
        if m == 1:
            covariance = self.kernel_function.diagonal(X).unsqueeze(-1)
        else:
            covariance = self.kernel_function(X, X)
        rows = self.kernel_function(X, self._own_candidates)
        if n:
            rows = rows - self._V.combined(cross.mT, 0)
        corner, start, change = self.factor.append(cross, covariance, y, relative_noise)
        if m == 1:  # vector operations
            rows = rows / corner
            row = rows[..., 0, :]
            self.variance = self.variance.addcmul(row, row, value=-1)
        else:
            rows = solve_triangular(corner, rows)
            self.variance = self.variance - rows.square().sum(dim=-2)
        self._V.append(rows)
        self._inputs.append(X)
        self._warn_of_jitter(n)
        self._update_weights()
        if Y is None:
            return
        if start == n and m == 1:
            self.mean = self.mean.addcmul(change, rows[..., 0, :])
        else:
            self._move_mean(start, change)
