"""FiniteCandidates: the posteriors of many models on finitely many points, kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.shards import Shard
from botorch_ext.models.batches import ModelParts, Part
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.downdate import moments_without
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.specification import Candidate


class FiniteCandidates(ModelParts[FinitePosterior]):
    """GP models of the same data on N candidate points; `CandidateModels.on` makes it.

    Args:
        entries: The models.
        candidates: The candidate points, ``N x d``.
        parts: The posteriors of the models; None for posteriors without data.
        shard: The part of the candidates that this process keeps; means and standard deviations
            then cover only this part. None for all candidates.
    """

    def __init__(
        self,
        entries: list[Candidate],
        candidates: Tensor,
        parts: list[Part[FinitePosterior]] | None = None,
        shard: Shard | None = None,
    ) -> None:
        self.candidates, self.shard = candidates, shard
        if parts is None:
            self._build(entries)
        else:
            self._entries, self.parts = entries, parts
            self._index()

    def _model(
        self, kernel: Kernel, noise_variance: Tensor, mean: PriorMean | None
    ) -> FinitePosterior:
        return FinitePosterior(kernel, self.candidates, noise_variance, mean, shard=self.shard)

    @property
    def mean(self) -> Tensor:
        """The posterior means at the candidates, ``m x N``."""
        return self._gather(lambda model: model.mean)

    @property
    def std(self) -> Tensor:
        """The posterior standard deviations at the candidates, ``m x N``."""
        return self._gather(lambda model: model.std)

    @property
    def variance(self) -> Tensor:
        """The posterior variances at the candidates, ``m x N``; rounding may make them negative."""
        return self._gather(lambda model: model.variance)

    def prior_covariances(self, X: Tensor) -> Tensor:
        """The prior covariances of points with the candidates.

        Args:
            X: Points, ``n x d``.

        Returns:
            ``m x n x N``.
        """
        chunks = in_chunks(X, len(self) * len(self.candidates))
        return torch.cat([self._gather(self._covariances_at(chunk)) for chunk in chunks], dim=1)

    def _covariances_at(self, X: Tensor) -> Callable[[FinitePosterior], Tensor]:
        return lambda model: model.kernel_function(X, self.candidates)

    def keep_weights(self) -> None:
        """Keeps the weights of the observations up to date; see `FinitePosterior.keep_weights`."""
        for part in self.parts:
            part.model.keep_weights()

    def weight_norms_of_candidates(self) -> Tensor:
        """The sums of the absolute weights of the known observations in the means at the
        candidates, ``m x N``."""
        return self._gather(lambda model: model.weight_norms_of_candidates())

    def at(self, values: Tensor, rows: int | Tensor) -> Tensor:
        """The means or standard deviations at some candidates.

        Args:
            values: Means or standard deviations at all candidates, ``... x N``.
            rows: The row of one candidate, or ``k`` rows.

        Returns:
            The values there, ``...`` or ``... x k``; the same in all processes.
        """
        return values[..., rows] if self.shard is None else self.shard.columns(values, rows)

    def checksum(self) -> Tensor:
        """A checksum of the data, by which processes notice that their data differ.

        Returns:
            One number, of shape ``(1,)``: equal observations at equal points give equal checksums.
        """
        n, factors = self.num_observations, [part.model.factor for part in self.parts]
        return sum(
            ((f.z + f.gains)[..., :n].sum().view(1) for f in factors),
            self.noise_variance.new_zeros(1),
        )

    def add_candidate(
        self, index: int, y: float | None, relative_noise: float | None = None
    ) -> None:
        """Add an observation at one candidate.

        Args:
            index: The row of the candidate.
            y: The observation; None while it is pending.
            relative_noise: As for `FinitePosterior.add_candidate`.
        """
        for part in self.parts:
            part.model.add_candidate(index, y, relative_noise)

    def moments_without(
        self, position: int, rows: Sequence[int], index: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior of one model at one candidate without some of its observations.

        Returns:
            The mean, the standard deviation and the information gain of the other rows, all 0-dim.

        Raises:
            ValueError: If a row does not exist.
        """
        rows = self._checked_rows(rows)
        part, member = self._place(position)
        model = part.model
        mean, variance, cross = (
            part.each(values)[member]
            for values in (
                self.at(model.mean, index),
                self.at(model.variance, index),
                model.cross_factor(index),
            )
        )
        factor = part.model.factor
        factor = factor.select(member) if factor.batch_shape else factor
        return moments_without(factor, rows, cross, mean, variance)
