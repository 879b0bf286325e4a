"""Posteriors of many replicates of an experiment on finitely many points, kept up to date
together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from botorch_ext.models.cholesky import least_pivot
from botorch_ext.models.finite_models import FiniteCandidates

# Rows are folded into a covariance of all candidates if there are more than 0.15 N + 4 sqrt(N):
# measured on a CPU, and the covariance is then at most 7 times as large as all rows.
_SHARE, _ROOTS = 0.15, 4
# The least number of rows that are folded together.
_LEAST_BLOCK = 16
# The most entries of the prior covariances of all candidates that are kept.
_MOST_ENTRIES = 2**27


@dataclass(frozen=True, eq=False)
class Added:
    """Which of k observations each of R replicates adds.

    Args:
        mask: A mask, ``R x k``, on the device of the posterior.
        on_host: The same mask on the host, so that nobody waits for the device.
    """

    mask: Tensor
    on_host: np.ndarray


def rows_kept(num_candidates: int, num_rows: int) -> int:
    """The number of rows that are kept beside the covariance of N candidates: all of them if they
    are few, else 2 sqrt(N)."""
    root = math.sqrt(num_candidates)
    few = _SHARE * num_candidates + _ROOTS * root
    return num_rows if num_rows <= few else max(int(2 * root), _LEAST_BLOCK)


def bytes_kept(variance: Tensor, num_rows: int, keeps_weights: bool = False) -> int:
    """The bytes of the rows, the weights and the covariances of a `ReplicatedPosterior`, at their
    most.

    Args:
        variance: Variances of all its members, ``M x N``.
        num_rows: The most observations of a replicate.
        keeps_weights: Whether the weights of the observations are kept.
    """
    rows = rows_kept(variance.shape[-1], num_rows)
    folded = variance.shape[-1] if rows < num_rows else 0
    return variance.nbytes * (rows + folded + keeps_weights * num_rows)


class PriorCovariances:
    """The prior covariances of N candidates with all of them, for each of m models."""

    def __init__(self, models: FiniteCandidates) -> None:
        self._models, self.num_models = models, len(models)
        points = models.candidates
        self._all: Tensor | None = None
        if len(models) * len(points) ** 2 <= _MOST_ENTRIES:
            self._all = models.prior_covariances(points)

    def of(self, index: Tensor) -> Tensor:
        """The covariances of some candidates with all of them.

        Args:
            index: The rows of the candidates, ``R x k``.

        Returns:
            ``R x m x k x N``.
        """
        if self._all is not None:
            return self._all[:, index].movedim(0, 1)
        rows = self._models.prior_covariances(self._models.candidates[index.flatten()])
        return rows.unflatten(1, index.shape).movedim(0, 1)

    def all(self) -> Tensor:
        """The covariances of all candidates, ``m x N x N``."""
        if self._all is not None:
            return self._all
        return self._models.prior_covariances(self._models.candidates)


class ReplicatedPosterior:
    """The posteriors of R replicates of an experiment on N candidates, each with m models.

    The replicates have the same models and different observations: each observation is at a
    candidate of its own. M = R m posteriors are kept, and those of a replicate follow each other.
    The rows L^-1 K(data, candidates) of the latest observations are kept beside the posterior
    covariance of all candidates given the earlier ones. Which of the two is the cheaper form
    decides how many rows there are: all of them for few observations.

    Args:
        models: The m models, without data.
        prior: Their prior covariances; for several ridges those of the models without ridges.
        num_replicates: R.
        num_rows: The most observations of a replicate.
        keeps_weights: Whether the weights of the observations in the means are kept.
    """

    def __init__(
        self,
        models: FiniteCandidates,
        prior: PriorCovariances,
        num_replicates: int,
        num_rows: int,
        keeps_weights: bool = False,
    ) -> None:
        self.candidates, self.num_models = models.candidates, len(models)
        #: How many models of different ridges have the same prior; they follow each other.
        self.num_ridges: int = len(models) // prior.num_models
        self._prior = prior
        self.noise_variance = models.noise_variance.repeat(num_replicates)
        #: The posterior means and variances, ``M x N`` each.
        self.mean = models.mean.repeat(num_replicates, 1)
        self.variance = models.variance.repeat(num_replicates, 1)
        self._least_pivots = least_pivot(self.variance)
        self._gain = torch.zeros_like(self.noise_variance)
        self._form = torch.zeros_like(self.noise_variance)
        #: The number of observations of each replicate, on the host.
        self.counts = np.zeros(num_replicates, dtype=int)
        self.counts_on_device = torch.zeros_like(
            self.noise_variance[:num_replicates], dtype=torch.long
        )
        # How many of them are in the covariance, not in the rows, which have one row to spare for
        # observations that are not added.
        self._num_folded, self._folded = np.zeros_like(self.counts), self.counts_on_device.clone()
        self._covariance: Tensor | None = None
        self._most_rows, self._block = num_rows, rows_kept(len(self.candidates), num_rows)
        self._rows = self._no_rows(self._block + 1)
        self._weights = self._no_rows(num_rows + 1) if keeps_weights else None

    @property
    def num_bytes(self) -> int:
        """The bytes of the rows, the weights and the covariances, at their most."""
        return bytes_kept(self.variance, self._most_rows, self._weights is not None)

    @property
    def std(self) -> Tensor:
        """The posterior standard deviations, ``M x N``."""
        return self.variance.clamp_min(0).sqrt()

    def information_gain(self) -> Tensor:
        """The information gains 1/2 log det(I + K / lambda), ``M``."""
        return self._gain

    def quadratic_form(self) -> Tensor:
        """y' (K + lambda I)^-1 y of the observations, ``M``, if all of them have values."""
        return self._form

    def log_marginal_likelihood(self) -> Tensor:
        """The log marginal likelihoods of the observations, ``M``, if all of them have values and
        no jitter was needed."""
        n = self.of_members(self.counts_on_device)
        constant = n / 2 * (2 * math.pi * self.noise_variance).log()
        return -self._form / 2 - self._gain - constant

    def weight_norms(self) -> Tensor:
        """The sums of the absolute weights of the observations in the means, ``M x N``, if the
        weights are kept."""
        if self._weights is None:
            raise ValueError("keeps_weights must be True for the norms of weights, got False")
        return torch.linalg.vector_norm(self._weights[:, : max(self.counts)], ord=1, dim=1)

    @torch.no_grad()
    def add(self, index: Tensor, Y: Tensor | None = None, added: Added | None = None) -> None:
        """Add observations at candidates.

        Args:
            index: The rows of the candidates, ``R x k``.
            Y: The observations, ``R x k``; None if they are pending, which leaves the means alone.
            added: Which of them are added, as replicates may have fewer than k; None for all.
        """
        k = index.shape[1]
        if added is not None and not added.on_host.any():
            return
        if k > self._block:
            for part in np.array_split(np.arange(k), -(-k // self._block)):
                some = slice(part[0], part[-1] + 1)
                of_some = added and Added(added.mask[:, some], added.on_host[:, some])
                self.add(index[:, some], None if Y is None else Y[:, some], of_some)
            return
        self._make_room(k if added is None else added.on_host.sum(axis=1))
        C = self.covariances(index)
        at = self.of_members(index)
        new: list[Tensor] = []
        for j in range(k):
            here, row = at[:, j : j + 1], C[:, j]
            for earlier in new:
                row = torch.addcmul(row, earlier.gather(1, here), earlier, value=-1)
            pivot = self.variance.gather(1, here).clamp_min(0) + self.noise_variance[:, None]
            raised = torch.maximum(pivot, self._least_pivots.gather(1, here))
            is_added = None if added is None else self.of_members(added.mask[:, j : j + 1])
            scale = raised.rsqrt()
            gain = (raised / (self.noise_variance[:, None] + (raised - pivot))).log()
            if is_added is not None:
                scale, gain = scale * is_added, gain * is_added
            row = row * scale
            self.variance.addcmul_(row, row, value=-1)
            self._gain = self._gain.add(gain[:, 0], alpha=0.5)
            if Y is not None:
                y = self.of_members(Y[:, j : j + 1])
                z = (y - self.mean.gather(1, here)) * scale
                self.mean.addcmul_(row, z)
                self._form = self._form.addcmul(z[:, 0], z[:, 0])
            self._append(row, here, scale, added, j)
            new.append(row)

    @torch.no_grad()
    def move_mean(self, index: Tensor, change: Tensor) -> None:
        """Change the values of observations at candidates, which moves the means.

        Args:
            index: The rows of the candidates, ``R x k``.
            change: By how much the values change, ``R x k``.
        """
        weights = self.of_members(change) / self.noise_variance[:, None]
        self.mean += (weights.unsqueeze(1) @ self.covariances(index)).squeeze(1)

    def covariances(self, index: Tensor) -> Tensor:
        """The posterior covariances of candidates with all candidates.

        Args:
            index: Their rows, ``R x k``.

        Returns:
            ``M x k x N``.
        """
        at = self.of_members(index)
        if self._covariance is None:
            C = _repeated(self._prior.of(index), self.num_ridges, 1).flatten(0, 1)
        else:
            C = self._covariance[torch.arange(len(at), device=at.device)[:, None], at]
        n = max(self.counts - self._num_folded)
        if not n:
            return C
        V = self._rows[:, :n]
        weights = V.gather(2, at.unsqueeze(1).expand(-1, n, -1))
        return torch.baddbmm(C, weights.mT, V, alpha=-1)

    # --- rows -------------------------------------------------------------------------------------

    def of_members(self, values: Tensor) -> Tensor:
        """Numbers of the replicates, ``R x ...``, for each of their models, ``M x ...``."""
        return _repeated(values, self.num_models, 0)

    def _no_rows(self, num_rows: int) -> Tensor:
        return self.mean.new_zeros(len(self.mean), num_rows, len(self.candidates))

    def _make_room(self, num_new: int | np.ndarray) -> None:
        """Adds the rows to the covariance of all candidates if the new ones do not fit."""
        if max(self.counts - self._num_folded + num_new) <= self._block:
            return
        if self._covariance is None:
            each = _repeated(self._prior.all(), self.num_ridges, 0)
            self._covariance = each.repeat(len(self.counts), 1, 1)
        self._covariance.baddbmm_(self._rows.mT, self._rows, alpha=-1)
        self._rows.zero_()
        self._num_folded, self._folded = self.counts.copy(), self.counts_on_device.clone()

    def _append(
        self, row: Tensor, here: Tensor, scale: Tensor, added: Added | None, j: int
    ) -> None:
        """Appends the row of an observation, ``M x N``, which is zero if it is not added."""
        self._write(self._rows, row, self._num_folded, self._folded)
        if self._weights is not None:
            n, share = max(self.counts), row * scale
            W = self._weights[:, :n]
            own = W.gather(2, here.unsqueeze(1).expand(-1, n, 1))
            W.baddbmm_(own, share.unsqueeze(1), alpha=-1)
            self._write(self._weights, share)
        self.counts = self.counts + (1 if added is None else added.on_host[:, j])
        self.counts_on_device = self.counts_on_device + (1 if added is None else added.mask[:, j])

    def _write(
        self, rows: Tensor, row: Tensor, num_folded: np.ndarray | int = 0, folded: Tensor | int = 0
    ) -> None:
        """Writes a row behind those of each member, of which the folded ones are gone."""
        on_host = self.counts - num_folded
        if min(on_host) == max(on_host):
            rows[:, on_host[0]] = row
            return
        places = self.of_members(self.counts_on_device - folded)
        rows[torch.arange(len(row), device=row.device), places] = row


def _repeated(values: Tensor, num: int, dim: int) -> Tensor:
    return values if num == 1 else values.repeat_interleave(num, dim)
