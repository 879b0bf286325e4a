"""Posteriors with many repeated points, whose cost depends on the number of different points."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.ranks import first_highest
from botorch_ext.models.cholesky import GrowingCholesky, least_pivot
from botorch_ext.models.conditioning import condition
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import shallow

# The most new rows of a design that are kept apart from the covariance of all candidates.
_MOST_ROWS = 128
# With N / 4 rows a step is slower than with a covariance, which takes more memory. The covariance
# is made at this point if it takes up to 0.5 GiB.
_EARLY, _MOST_EARLY = 4, 2**13


@torch.no_grad()
def means_with_repeats(model: KernelGP, X: Tensor, Y: Tensor) -> Tensor:
    """The posterior mean at the observed points, in O(u^3) for u different points.

    Args:
        model: A model without data: its kernel, noise variance and prior mean are used.
        X: The observed points, ``n x d``.
        Y: The observations, ``n``.

    Returns:
        The means at ``X``, ``n``.
    """
    points, inverse, counts = torch.unique(X, dim=0, return_inverse=True, return_counts=True)
    average = Y.new_zeros(len(points)).index_add(0, inverse, Y) / counts
    factor, root = _factor(model, points, counts, average)
    n = factor.num_points
    weights = factor.mean_weights
    return (average - (model.noise_variance + factor.jitter[:n]) * weights / root)[inverse]


@torch.no_grad()
def mean_from_counts(model: KernelGP, candidates: Tensor, counts: Tensor, sums: Tensor) -> Tensor:
    """The posterior mean at candidates that were observed any number of times.

    Args:
        model: A model without data: its kernel, noise variance and prior mean are used.
        candidates: The candidates, ``N x d``.
        counts: The number of observations of each candidate, ``N``.
        sums: The sum of the observations of each candidate, ``N``.

    Returns:
        The means, ``N``.
    """
    rows = counts.nonzero().squeeze(-1)
    mean = _prior_mean(model, candidates)
    if len(rows):
        points, average = candidates[rows], sums[rows] / counts[rows]
        factor, root = _factor(model, points, counts[rows], average)
        weights = root * factor.mean_weights
        chunks = in_chunks(candidates, len(points))
        mean = mean + torch.cat([model.kernel_function(X, points) @ weights for X in chunks])
    return mean


class RepeatedDesign:
    """Posterior standard deviations on N candidates, each evaluated any number of times.

    It takes O(N min(n, N)) memory for n evaluations. At first the covariance of all candidates is
    K - R'R with one row of R for each evaluation. From N / 4 evaluations on (N evaluations for more
    than 8192 candidates) the covariance itself is stored.

    Args:
        model: A model without data: its kernel and noise variance are used.
        candidates: The candidates, ``N x d``.
    """

    def __init__(self, model: KernelGP, candidates: Tensor) -> None:
        self._model = model
        self.candidates = candidates
        self._start(candidates.new_zeros(len(candidates), dtype=torch.long))

    @classmethod
    def from_counts(cls, model: KernelGP, candidates: Tensor, counts: Tensor) -> RepeatedDesign:
        """Make the design of given numbers of evaluations.

        Args:
            model: A model without data.
            candidates: The candidates, ``N x d``.
            counts: The number of evaluations of each candidate, ``N``.
        """
        design = cls(model, candidates)
        design._start(counts.clone())
        return design

    def successor(self) -> RepeatedDesign:
        """A copy that takes the place of this design, which stays as it is; see
        `GrowingRows.successor`."""
        return shallow(self)

    def __deepcopy__(self, memo: dict[int, object]) -> RepeatedDesign:
        new = shallow(self)  # shares the model and the candidates, which are never changed
        for name in ("counts", "variance", "_rows", "_information_gain"):
            setattr(new, name, getattr(self, name).clone())
        new._covariance = None if self._covariance is None else self._covariance.clone()
        return new

    @property
    def std(self) -> Tensor:
        """The posterior standard deviations at the candidates, ``N``."""
        return self.variance.clamp_min(0).sqrt()

    @property
    def noise_variance(self) -> Tensor:
        return self._model.noise_variance

    @property
    def dim(self) -> int:
        return self.candidates.shape[-1]

    def least_known(self) -> Tensor:
        """The row of the candidate with the largest variance, the first of equal ones, ``(1,)``."""
        return first_highest(self.variance, self._least_pivots.max())

    def information_gain(self) -> Tensor:
        """The information gain of all evaluations, 1/2 log det(I + K / lambda), ``*batch``."""
        return self._information_gain

    @torch.no_grad()
    def add(self, index: int) -> None:
        """Add an evaluation of one candidate, in O(N min(n, N))."""
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
        """Remove one evaluation of a candidate and compute everything anew."""
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
        """The number of rows at which they are added to the covariance."""
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
        X, N = self.candidates, len(self.candidates)
        covariance = X.new_empty(N, N)
        for rows, chunk in zip(in_chunks(covariance, N), in_chunks(X, N), strict=True):
            rows.copy_(self._model.kernel_function(chunk, X))
        return covariance


def _prior_mean(model: KernelGP, points: Tensor) -> Tensor:
    return points.new_zeros(len(points)) if model.mean is None else model.mean(points)


def _factor(
    model: KernelGP, points: Tensor, counts: Tensor, average: Tensor | None
) -> tuple[GrowingCholesky, Tensor]:
    """The factor of C^1/2 K C^1/2 + lambda I, with C = diag(counts), and the root of the counts.

    c observations of one point are equivalent to their average with noise lambda / c, and
    (K + lambda C^-1)^-1 = C^1/2 (C^1/2 K C^1/2 + lambda I)^-1 C^1/2.

    Args:
        model: A model without data: its kernel, noise variance and prior mean are used.
        points: Different points, ``u x d``.
        counts: The number of observations of each point, ``u``.
        average: The average observation of each point, ``u``; None if only variances are needed.
    """
    root = counts.to(points.dtype).sqrt()
    factor = GrowingCholesky(model.noise_variance, capacity=0)
    K = model.kernel_function(points, points)
    none = points.new_zeros(0, len(points))
    target = None if average is None else root * (average - _prior_mean(model, points))
    factor.append(none, root[:, None] * K * root, target)
    return factor, root
