"""Candidates, the models that a strategy chooses from, and the set of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch
from gpytorch.kernels import AdditiveKernel, Kernel
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import as_points
from botorch_ext.domains.shards import Shard
from botorch_ext.kernels import NuggetKernel
from botorch_ext.kernels.structure import plain_kernel
from botorch_ext.models.batches import ModelParts
from botorch_ext.models.candidate_sets import NamedSets
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.kernel_variants import GrowingFamily
from botorch_ext.models.parts import Part
from botorch_ext.models.specification import Candidate, candidate_list


class CandidateModels(NamedSets, ModelParts[KernelGP]):
    """Finitely many GP models of the same data: those of one form as one batched `KernelGP`, others
    side by side.

    Kernels of one form have the same structure of GPyTorch classes and the same settings (``nu``,
    ``ard_num_dims``, ``active_dims``, constraints) and differ in the values of their parameters.
    Kernels of classes unknown to this library are never batched, only put side by side.

    Args:
        kernels: GPyTorch kernels; they are copied and frozen. A kernel of batch shape ``(b,)``
            counts as b kernels.
        noise_variance: The ridge lambda > 0 of each model.
        means: Prior means: GPyTorch `Mean` without batch dimensions, callables ``... x n x d`` to
            ``... x n``, or numbers; None is zero.
        names: One for each model; made up if None.
        dtype: float64 unless asked otherwise.
        device: The device of everything.

    ``kernels``, ``noise_variance`` and ``means`` are one thing each or a sequence; what there is
    only one of is shared by all models.

    m models of n observations are m n^2 numbers, and up to 1.6 times as many with the room they
    have to grow; on N candidates m n N more. While they grow there are 2.6 m n^2 for a moment, and
    on a GPU a search over a box copies a quarter of the models; what it evaluates besides takes
    some GiB there, however many models there are. So 512 models of 3500 observations in float64
    take 50 GB, 63 GB in a search, and 129 GB for a moment when the room is used up.

    Raises:
        ValueError: No model, numbers of entries that do not match, a name that occurs twice, or a
            noise variance that is not positive and finite.
    """

    @torch.no_grad()
    def __init__(
        self,
        kernels: Kernel | Sequence[Kernel],
        noise_variance: float | Tensor | Sequence[float],
        means: PriorMean | float | Sequence[PriorMean | float | None] | None = None,
        names: Sequence[str] | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        self._build(candidate_list(kernels, noise_variance, means, names, dtype, device))

    @classmethod
    def of(cls, model: KernelGP, name: str = "model") -> Self:
        """The set of one model, which is this very `KernelGP`, with its data and transforms.

        Args:
            model: Without batch dimensions; it is not copied.
            name: What reports call it.

        Raises:
            ValueError: A batched model.
        """
        if model.batch_shape:
            raise ValueError(
                f"model must not be batched, got batch shape {tuple(model.batch_shape)}"
            )
        new = cls.__new__(cls)
        new._entries = [Candidate(name, model.kernel, model.noise_variance, model.mean)]
        new.parts = [Part(model, [0])]
        new._index()
        return new

    @torch.no_grad()
    def with_nugget(self, std: float) -> Self:
        """These models, and of each a twin with the kernel k(x, x') + s^2 1{x = x'}: the nugget
        belongs to f, not to the noise, so that f may be off by about s at every point.

        Misspecification as one more candidate, for `credible_ucb`: B/4 was s in every measurement.
        A twin's width is that of its plain model while that is there (the pending trials of
        ``inflate`` count as its own). Elsewhere than at evaluated points the nugget adds nothing
        but variance; on a box the best of those are looked at besides, since no ascent finds one.
        Whether k(x, x) <= 1 is asked of the plain models alone.

        It is an option, not a guarantee. Perturbations that are white, on 500 points, cost 2 to 5.5
        times the regret of GP-UCB, and where points that mislead have copies which mislead alike,
        the play stays locked out of the best ones.

        Args:
            std: s > 0, in units of f.

        Raises:
            ValueError: A number that is not positive and finite; or models that have data or
                transforms, or of a set that grows.
        """
        value = one_number(std, "std")
        if not 0 < value < math.inf:
            raise ValueError(f"std must be positive and finite, got {value}")
        if self.grows or self.num_observations or self.parts[0].model.has_transforms:
            raise ValueError("models must have no data, no transforms and not grow, to have twins")
        twins = [
            replace(
                entry,
                name=f"{entry.name}, nugget {value:.4g}",
                kernel=plain_kernel(
                    AdditiveKernel(entry.kernel, NuggetKernel(value**2)), entry.noise_variance
                ),
                lengthscale=None,
                twin_of=entry.twin_of or entry.name,
            )
            for entry in self._entries
        ]
        return self._of([*self._entries, *twins])

    @classmethod
    @torch.no_grad()
    def _of(cls, candidates: list[Candidate], family: GrowingFamily | None = None) -> Self:
        new = cls.__new__(cls)
        new._build(candidates)
        if family is not None:
            new._family, new._num_grown = family, len(candidates)
        return new

    def _model(self, kernel: Kernel, noise_variance: Tensor, mean: PriorMean | None) -> KernelGP:
        return KernelGP(
            kernel,
            noise_variance,
            mean=mean,
            dtype=noise_variance.dtype,
            device=noise_variance.device,
        )

    def mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Pointwise posterior mean and standard deviation of every model.

        Args:
            X: ``n x d``.

        Returns:
            Two ``m x n``-dim tensors, differentiable in ``X``.
        """
        moments = [map(part.each, part.model.mean_and_std(X)) for part in self.parts]
        mean, std = (self._in_order(list(values)) for values in zip(*moments, strict=True))
        return mean, std

    def means(self, position: int, X: Tensor) -> Tensor:
        """The posterior means of one model alone at ``n x d`` points, O(n) each: ``(n,)``."""
        return self.single(position).mean_at(X)

    @torch.no_grad()
    def moments_without(
        self, position: int, rows: Sequence[int], x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior of one model at one point if some rows were not there.

        Args:
            position: Of the model.
            rows: The rows to leave out.
            x: ``d``.

        Returns:
            Mean, standard deviation and the information gain of the other rows, all 0-dim.

        Raises:
            ValueError: A position or a row that does not exist, or a wrong shape of ``x``.
        """
        rows = self._checked_rows(rows)
        model = self.single(position)
        x = as_points(x, None, model.noise_variance, "x")[:1]
        return model.moments_without(rows, x)

    @torch.no_grad()
    def on(self, points: Tensor, shard: Shard | None = None) -> FiniteCandidates:
        """The models with their data on N points, ``N x d``, or on those of a shard."""
        finite = FiniteCandidates(
            list(self._entries),
            points,
            [
                Part(FinitePosterior.from_model(p.model, points, shard), list(p.positions))
                for p in self.parts
            ],
            shard,
        )
        finite._family, finite._num_grown = self._family, self._num_grown
        return finite

    @torch.no_grad()
    def largest_variances(self, X: Tensor) -> Tensor:
        """The largest prior variance k(x, x) of each model over ``n x d`` points, ``(m,)``; of a
        twin that of its plain model."""
        return self._of_plain(self._gather(lambda model: model.largest_variance(X)))

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """A ValueError naming the model unless all models take points like these, ``n x d``, and
        have finite prior means at all of them."""
        checked: set[int] = set()
        for part in self.parts:
            for i, position in enumerate(part.positions):
                mean = self._entries[position].mean
                if i and id(mean) in checked:
                    continue
                checked.add(id(mean))
                try:
                    self.single(position).require_takes(like)
                except ValueError as error:
                    raise ValueError(f"of model {self.names[position]!r}, {error}") from error

    def add(self, X: Tensor, Y: Tensor | None) -> None:
        """As for one `KernelGP`, in all models: see `ModelParts.add`."""
        if not self.dim:
            # Before any state changes: one part may take points that another does not.
            self.require_takes(as_points(X, None, self.parts[0].model.noise_variance))
        super().add(X, Y)
