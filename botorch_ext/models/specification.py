"""Specifications of models without data: their kernels, noise variances, prior means and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_ext.kernels.batching import selected_kernel
from botorch_ext.kernels.structure import composition, plain_kernel
from botorch_ext.models.checks import PriorMean, checked_noise_variance, frozen_mean


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model without data.

    Args:
        name: The name in reports.
        kernel: A plain kernel (`plain_kernel`) without batch dimensions.
        noise_variance: The noise variance, 0-dim.
        mean: The frozen prior mean; None for zero.
        lengthscale: The lengthscale, if the models of the set differ by one lengthscale.
        twin_of: The name of the model whose width it takes as long as that model is in the set;
            None if it takes its own.
    """

    name: str
    kernel: Kernel
    noise_variance: Tensor
    mean: PriorMean | None = None
    lengthscale: float | None = None
    twin_of: str | None = None


def candidate_list(
    kernels: Kernel | Sequence[Kernel],
    noise_variance: float | Tensor | Sequence[float],
    means: PriorMean | float | Sequence[PriorMean | float | None] | None = None,
    names: Sequence[str] | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> list[Candidate]:
    """The models that the arguments of `CandidateModels` describe; arguments as for
    `CandidateModels`.

    Raises:
        ValueError: As for `CandidateModels`.
    """
    noise = checked_noise_variance(noise_variance, dtype, device).reshape(-1)
    like = noise.new_zeros(())
    given = kernels if isinstance(kernels, list | tuple) else [kernels]
    kernels = [plain_kernel(kernel, like, "kernels") for kernel in given]
    plain = [single for kernel in kernels for single in _singles(kernel)]
    if not isinstance(means, list | tuple):
        means = list(means) if getattr(means, "ndim", 0) else [means]  # pyright: ignore
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

    return [
        Candidate(names[i], entry(plain, i), entry(noise, i).clone(), entry(frozen, i))
        for i in range(num_models)
    ]


def _singles(kernel: Kernel) -> list[Kernel]:
    """The members of a batch of kernels."""
    if not kernel.batch_shape:
        return [kernel]
    if len(kernel.batch_shape) > 1:
        raise ValueError(
            f"kernels must have at most one batch dimension, got {tuple(kernel.batch_shape)}"
        )
    return [selected_kernel(kernel, i) for i in range(kernel.batch_shape[0])]


def _frozen_means(
    means: Sequence[PriorMean | float | None], like: Tensor
) -> list[PriorMean | None]:
    """Frozen copies of the means, one for each object; None for a mean that is zero."""
    frozen: dict[int, PriorMean | None] = {}
    for mean in means:
        if id(mean) not in frozen:
            frozen[id(mean)] = None if type(mean) is ZeroMean else frozen_mean(mean, like, "means")
    return [frozen[id(mean)] for mean in means]


def _descriptions(
    kernels: Sequence[Kernel], noise: Tensor, means: Sequence[PriorMean | None]
) -> list[str]:
    """Names that consist of the properties in which the models differ."""
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


def mean_names(means: Sequence[PriorMean | float | None]) -> list[str]:
    """Names for prior means.

    Returns:
        Names such as ``"mean 0.5"``; numbered if numbers and names do not tell them apart.
    """
    names = []
    for i, mean in enumerate(means):
        if isinstance(mean, ConstantMean):
            mean = float(mean.constant.detach())  # pyright: ignore
        if mean is None:
            mean = 0.0
        number = f"{mean:.4g}" if isinstance(mean, int | float) else None
        word = number or getattr(mean, "__name__", "<lambda>")
        names.append(f"mean {i}" if word == "<lambda>" else f"mean {word}")
    if len(set(names)) < len(names):
        return [f"mean {i}" for i in range(len(means))]
    return names


def group_name(groups: Sequence[Sequence[int]]) -> str:
    """The name of a decomposition, such as ``"{0,1|2}"``."""
    return "{" + "|".join(",".join(str(column) for column in group) for group in groups) + "}"


def _structure(kernel: Kernel) -> str:
    """The structure of a kernel, such as ``"RBF + Periodic"``."""
    made = composition(kernel)
    if made is not None:
        sign = " * " if made.kind == "product" else " + "
        return sign.join(map(_structure, made.parts))
    return type(kernel).__name__.removesuffix("Kernel")


def _checked_names(given: Sequence[str], num_models: int) -> list[str]:
    names = list(given) if isinstance(given, list | tuple) else [str(given)]
    if (
        not isinstance(given, list | tuple | str)
        or len(names) != num_models
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"names must be {num_models} strings, one for each model, got {given}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"names must be different from each other, got {twice[0]!r} twice")
    return names
