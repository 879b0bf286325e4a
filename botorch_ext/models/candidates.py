"""CandidateModels: the set of models that hyperparameter elimination chooses from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from gpytorch.kernels import AdditiveKernel, Kernel, ProductKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from botorch_ext.domains import as_points
from botorch_ext.models.arguments import PriorMean, checked_noise_variance, frozen_mean
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.finite_candidates import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.left_out import moments_without
from botorch_ext.models.parts import Candidate, ModelParts, Part
from botorch_ext.models.stacking import plain_kernel, selected_kernel


class CandidateModels(ModelParts[KernelGP]):
    """Finitely many GP models of the same data: those of one form as one batched `KernelGP`, others
    side by side.

    Kernels of one form have the same structure of GPyTorch classes and the same settings (``nu``,
    ``ard_num_dims``, ``active_dims``, constraints) and differ in the values of their parameters.
    Kernels of classes unknown to this library are never batched, only put side by side.

    Args:
        kernels: GPyTorch kernels; they are copied and frozen. A kernel of batch shape ``(b,)``
            counts as b kernels.
        noise_variance: The ridge lambda > 0 of each model.
        means: Prior means: GPyTorch `Mean` without batch dimensions, or callables ``... x n x d``
            to ``... x n``; None is zero.
        names: One for each model; made up if None.
        dtype: float64 unless asked otherwise.
        device: The device of everything.

    ``kernels``, ``noise_variance`` and ``means`` are one thing each or a sequence; what there is
    only one of is shared by all models.

    Raises:
        ValueError: No model, numbers of entries that do not match, a name that occurs twice, or a
            noise variance that is not positive and finite.
    """

    @torch.no_grad()
    def __init__(
        self,
        kernels: Kernel | Sequence[Kernel],
        noise_variance: float | Tensor | Sequence[float],
        means: PriorMean | Sequence[PriorMean | None] | None = None,
        names: Sequence[str] | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        if isinstance(noise_variance, Sequence):
            noise_variance = torch.tensor(noise_variance, dtype=dtype)
        noise = checked_noise_variance(noise_variance, dtype, device).reshape(-1)
        like = noise.new_zeros(())
        kernels = [kernels] if isinstance(kernels, Kernel) else list(kernels)
        plain = [single for kernel in kernels for single in _singles(plain_kernel(kernel, like))]
        means = list(means) if isinstance(means, Sequence) else [means]
        frozen = _frozen_means(means, like)
        counts = {"kernels": len(plain), "noise_variance": len(noise), "means": len(frozen)}
        num_models = max(counts.values())
        for name, count in counts.items():
            if count not in (1, num_models) or count == 0:
                raise ValueError(
                    f"{name} must have 1 entry or one for each model, at least one, got {counts}"
                )
        described = _descriptions(plain, noise, frozen)
        names = _checked_names(described if names is None else names, num_models)

        def entry(values: Sequence | Tensor, i: int):
            return values[0 if len(values) == 1 else i]

        self._build(
            [
                Candidate(names[i], entry(plain, i), entry(noise, i).clone(), entry(frozen, i))
                for i in range(num_models)
            ]
        )

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
        moments = [part.model.mean_and_std(X) for part in self.parts]
        mean, std = (self._in_order(list(values)) for values in zip(*moments, strict=True))
        return mean, std

    def single(self, position: int) -> KernelGP:
        """One model, not batched, with the data; nothing is shared with this set."""
        part, member = self._place(position)
        return part.model.select(member)

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
        self._check_rows(rows)
        part, member = self._place(position)
        model, n = part.model, self.num_observations
        x = as_points(x, self.dim or x.shape[-1], model.noise_variance, "x")[:1]

        def of_member(values: Tensor, *shape: int) -> Tensor:
            return values.expand(*model.batch_shape, *shape)[member]

        mean = of_member(x.new_zeros(1) if model.mean is None else model.mean(x), 1)[0]
        variance = of_member(model.kernel_function.diagonal(x), 1)[0]
        cross = x.new_zeros(0)
        if n:
            k = of_member(model.kernel_function(model.train_inputs[0], x), n, 1)
            L = model.factor.L[member, :n, :n]
            cross = torch.linalg.solve_triangular(L, k, upper=False)[:, 0]
            mean = mean + model.factor.z[member, :n] @ cross
            variance = variance - cross @ cross
        return moments_without(model.factor, member, rows, cross, mean, variance)

    @torch.no_grad()
    def on(self, points: Tensor) -> FiniteCandidates:
        """The models with their data on N points, ``N x d``."""
        return FiniteCandidates(
            list(self._entries),
            points,
            [
                Part(FinitePosterior.from_model(p.model, points), list(p.positions))
                for p in self.parts
            ],
        )

    @torch.no_grad()
    def largest_variances(self, X: Tensor) -> Tensor:
        """The largest prior variance k(x, x) of each model over ``n x d`` points, ``(m,)``."""
        return self._gather(lambda model: model.largest_variance(X))

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """A ValueError unless the models take points like these, ``n x d``."""
        for position in range(len(self)):
            self.single(position).require_takes(like)


def _singles(kernel: Kernel) -> list[Kernel]:
    """The members of a batch of kernels."""
    if not kernel.batch_shape:
        return [kernel]
    if len(kernel.batch_shape) > 1:
        raise ValueError(
            f"kernels must have at most one batch dimension, got {tuple(kernel.batch_shape)}"
        )
    return [selected_kernel(kernel, i) for i in range(kernel.batch_shape[0])]


def _frozen_means(means: Sequence[PriorMean | None], like: Tensor) -> list[PriorMean | None]:
    """Frozen copies, one of each object; means that are zero as None."""
    frozen: dict[int, PriorMean | None] = {}
    for mean in means:
        if id(mean) not in frozen:
            frozen[id(mean)] = None if type(mean) is ZeroMean else frozen_mean(mean, like)
    return [frozen[id(mean)] for mean in means]


def _descriptions(
    kernels: Sequence[Kernel], noise: Tensor, means: Sequence[PriorMean | None]
) -> list[str]:
    """Names made of what differs between the models."""
    columns = []
    structures = [_structure(kernel) for kernel in kernels]
    if len(set(structures)) > 1:
        columns.append(structures)
    if bool((noise != noise[0]).any()):
        columns.append([f"noise variance {value:.4g}" for value in noise.tolist()])
    if any(mean is not means[0] for mean in means):
        columns.append([f"mean {i}" for i in range(len(means))])
    described = [", ".join(row) for row in zip(*columns, strict=True)]
    if not described:
        described = structures[:1] * max(len(kernels), len(noise), len(means))
    counts, seen = Counter(described), Counter[str]()
    names = []
    for name in described:
        seen[name] += 1
        names.append(f"{name} {seen[name]}" if counts[name] > 1 else name)
    return names


def _structure(kernel: Kernel) -> str:
    """Such as ``"RBF + Periodic"``."""
    if isinstance(kernel, ScaleKernel):
        return _structure(kernel.base_kernel)
    if isinstance(kernel, AdditiveKernel | ProductKernel):
        sign = " + " if isinstance(kernel, AdditiveKernel) else " * "
        return sign.join(_structure(part) for part in kernel.kernels)
    return type(kernel).__name__.removesuffix("Kernel")


def _checked_names(names: Sequence[str], num_models: int) -> list[str]:
    names = list(names)
    if len(names) != num_models or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be {num_models} strings, one for each model, got {names}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"names must be different from each other, got {twice[0]!r} twice")
    return names
