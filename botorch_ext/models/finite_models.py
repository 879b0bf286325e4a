"""Finite models: many models on finitely many points, kept up to date."""

from __future__ import annotations

from collections.abc import Sequence

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.domains.shards import Shard
from botorch_ext.models.batches import ModelParts, Part
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.downdate import moments_without
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.specification import Candidate


class FiniteCandidates(ModelParts[FinitePosterior]):
    """Finitely many GP models of the same data on N candidates; made by `CandidateModels.on`.

    Args:
        entries: The models.
        candidates: ``N x d``.
        parts: Their posteriors; without data if None.
        shard: Which of the candidates this process keeps, if not all: means and deviations are
            theirs.
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
        """The posterior means at the candidates: ``m x N``."""
        return self._gather(lambda model: model.mean)

    @property
    def std(self) -> Tensor:
        """The posterior standard deviations at the candidates: ``m x N``."""
        return self._gather(lambda model: model.std)

    def at(self, values: Tensor, rows: int | Tensor) -> Tensor:
        """Columns of ``... x N`` means or standard deviations, of one row or of ``k``."""
        return values[..., rows] if self.shard is None else self.shard.columns(values, rows)

    def checksum(self) -> Tensor:
        """A number that is the same where values and points are, ``(1,)``."""
        n, factors = self.num_observations, [part.model.factor for part in self.parts]
        return sum(
            ((f.z + f.gains)[..., :n].sum().view(1) for f in factors),
            self.noise_variance.new_zeros(1),
        )

    def add_candidate(self, index: int, y: float | None) -> None:
        """Adds an observation at one candidate.

        Args:
            index: The row of the candidate.
            y: The observation; None while it is pending.
        """
        for part in self.parts:
            part.model.add_candidate(index, y)

    def moments_without(
        self, position: int, rows: Sequence[int], index: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior of one model at one candidate if some rows were not there.

        Args:
            position: Of the model.
            rows: The rows to leave out.
            index: The row of the candidate.

        Returns:
            Mean, standard deviation and the information gain of the other rows, all 0-dim.

        Raises:
            ValueError: A row that does not exist.
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
