"""Replicates: posteriors given many repeated points, at the cost of the different ones."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from botorch_ext.models.cholesky import GrowingCholesky, least_pivot
from botorch_ext.models.conditioning import condition
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import shallow

# New rows of a design are kept apart from the covariance of all candidates until there are as many.
_MOST_ROWS = 128
# A covariance costs a step less than N / 4 rows do, but more memory: up to 0.5 GiB it is made then.
_EARLY, _MOST_EARLY = 4, 2**13
# Entries of a covariance that are made at once: kernels need several times the memory of their
# result.
_CHUNK = 2**22


@torch.no_grad()
def means_with_repeats(model: KernelGP, X: Tensor, Y: Tensor) -> Tensor:
    """The posterior mean of a model without data at its own ``n x d`` inputs given ``n`` values, in
    O(u^3) for u different points."""
    points, inverse, counts = torch.unique(X, dim=0, return_inverse=True, return_counts=True)
    average = Y.new_zeros(len(points)).index_add(0, inverse, Y) / counts
    factor, root = _factor(model, points, counts, average)
    n = factor.num_points
    weights = factor.mean_weights
    return (average - (model.noise_variance + factor.jitter[:n]) * weights / root)[inverse]


@torch.no_grad()
def mean_from_counts(model: KernelGP, candidates: Tensor, counts: Tensor, sums: Tensor) -> Tensor:
    """The posterior mean of a model without data at ``N x d`` candidates.

    Args:
        model: Kernel, noise variance and prior mean.
        candidates: Where everything was observed.
        counts: ``N``, how often each candidate was observed.
        sums: ``N``, the sum of its observations.
    """
    rows = counts.nonzero().squeeze(-1)
    mean = _prior_mean(model, candidates).clone()
    if len(rows):
        points, average = candidates[rows], sums[rows] / counts[rows]
        factor, root = _factor(model, points, counts[rows], average)
        weights = root * factor.mean_weights
        for chunk in _chunks(len(candidates), len(points)):
            mean[chunk] += model.kernel_function(candidates[chunk], points) @ weights
    return mean


class RepeatedDesign:
    """Posterior standard deviations on N candidates, each evaluated any number of times.

    In O(N min(n, N)) memory for n evaluations. At first the covariance of all candidates is K - R'R
    with one row of R for each evaluation; from N / 4 evaluations on (N, for more than 8192
    candidates) the covariance itself is kept.

    Args:
        model: Kernel, noise variance and prior mean, without data.
        candidates: ``N x d``.
    """

    def __init__(self, model: KernelGP, candidates: Tensor) -> None:
        self._model = model
        self.candidates = candidates
        self._start(candidates.new_zeros(len(candidates), dtype=torch.long))

    @classmethod
    def from_counts(cls, model: KernelGP, candidates: Tensor, counts: Tensor) -> RepeatedDesign:
        """The design in which candidates were evaluated so often, ``N`` counts."""
        design = cls(model, candidates)
        design._start(counts.clone())
        return design

    def successor(self) -> RepeatedDesign:
        """A copy that takes the place of this design, which stays as it is; see
        `GrowingRows.successor`."""
        return shallow(self)

    def __deepcopy__(self, memo: dict[int, object]) -> RepeatedDesign:
        new = shallow(self)  # shared where nothing writes: the model and the candidates
        for name in ("counts", "variance", "_rows", "_information_gain"):
            setattr(new, name, getattr(self, name).clone())
        new._covariance = None if self._covariance is None else self._covariance.clone()
        return new

    @property
    def std(self) -> Tensor:
        """``N`` posterior standard deviations."""
        return self.variance.clamp_min(0).sqrt()

    @property
    def noise_variance(self) -> Tensor:
        return self._model.noise_variance

    @property
    def dim(self) -> int:
        return self.candidates.shape[-1]

    def information_gain(self) -> Tensor:
        """1/2 log det(I + K / lambda) of all evaluations."""
        return self._information_gain

    @torch.no_grad()
    def add(self, index: int) -> None:
        """Adds an evaluation of one candidate, in O(N min(n, N))."""
        n = self._num_rows
        if n == len(self._rows):
            more = self._rows.new_empty(max(n // 2, _MOST_ROWS), len(self.candidates))
            self._rows = torch.cat([self._rows, more])
        if self._covariance is None:
            x = self.candidates[index : index + 1]
            covariances = self._model.kernel_function(x, self.candidates).squeeze(0)
        else:
            covariances = self._covariance[index]
        weights = self._rows[:n, index]
        pivot = self.variance[index].clamp_min(0) + self.noise_variance
        pivot = torch.maximum(pivot, self._least_pivots[index])
        self.counts, self.variance = self.counts.clone(), self.variance.clone()
        condition(self._rows, self.variance, n, covariances, weights, pivot.sqrt())
        self._num_rows = n + 1
        self.counts[index] += 1
        self.num_observations += 1
        self._information_gain = self._information_gain + 0.5 * (pivot / self.noise_variance).log()
        if self._num_rows >= self._most_rows:
            self._fold_rows()

    def remove(self, index: int) -> None:
        """Takes one evaluation of a candidate back; everything is computed anew."""
        counts = self.counts.clone()
        counts[index] -= 1
        self._start(counts)

    @torch.no_grad()
    def _start(self, counts: Tensor) -> None:
        N = len(self.candidates)
        self.counts = counts
        self.num_observations = int(counts.sum())
        self._covariance: Tensor | None = None
        self.variance = self._model.kernel_function.diagonal(self.candidates).clone()
        self._least_pivots = least_pivot(self.variance)
        self._rows = self.variance.new_empty(0, N)
        self._information_gain = torch.zeros_like(self.noise_variance)
        evaluated = counts.nonzero().squeeze(-1)
        if len(evaluated):
            points = self.candidates[evaluated]
            factor, root = _factor(self._model, points, counts[evaluated], None)
            cross = root[:, None] * self._model.kernel_function(points, self.candidates)
            self._rows = factor.solve(cross)
            self.variance = self.variance - self._rows.square().sum(dim=0)
            self._information_gain = factor.information_gain()
        self._num_rows = len(self._rows)

    @property
    def _most_rows(self) -> int:
        """How many rows there may be before they are folded into the covariance."""
        if self._covariance is not None:
            return _MOST_ROWS
        N = len(self.candidates)
        return max(N // _EARLY if N <= _MOST_EARLY else N, _MOST_ROWS)

    def _fold_rows(self) -> None:
        if self._covariance is None:
            self._covariance = self._prior_covariance()
        rows = self._rows[: self._num_rows]
        self._covariance = torch.addmm(self._covariance, rows.mT, rows, alpha=-1)
        self._rows = rows.new_empty(_MOST_ROWS, len(self.candidates))
        self._num_rows = 0

    def _prior_covariance(self) -> Tensor:
        N = len(self.candidates)
        covariance = self.candidates.new_empty(N, N)
        for chunk in _chunks(N, N):
            covariance[chunk] = self._model.kernel_function(self.candidates[chunk], self.candidates)
        return covariance


def _chunks(num_rows: int, num_columns: int) -> Iterator[slice]:
    step = max(_CHUNK // num_columns, 1)
    return (slice(start, start + step) for start in range(0, num_rows, step))


def _prior_mean(model: KernelGP, points: Tensor) -> Tensor:
    return points.new_zeros(len(points)) if model.mean is None else model.mean(points)


def _factor(
    model: KernelGP, points: Tensor, counts: Tensor, average: Tensor | None
) -> tuple[GrowingCholesky, Tensor]:
    """The factor of C^1/2 K C^1/2 + lambda I, with C = diag(counts), and the root of the counts.

    The c observations of one point say as much about f as their average with noise lambda / c, and
    (K + lambda C^-1)^-1 = C^1/2 (C^1/2 K C^1/2 + lambda I)^-1 C^1/2.

    Args:
        model: Kernel, noise variance and prior mean.
        points: ``u x d`` different points.
        counts: ``u``, how often each was observed.
        average: ``u``, the averages of their observations; None while they do not matter.
    """
    root = counts.to(points.dtype).sqrt()
    factor = GrowingCholesky(model.noise_variance, capacity=0)
    K = model.kernel_function(points, points)
    none = points.new_zeros(0, len(points))
    target = None if average is None else root * (average - _prior_mean(model, points))
    factor.append(none, root[:, None] * K * root, target)
    return factor, root
