"""Kernel variants that differ in a lengthscale: a family that grows with time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from torch import Tensor

from botorch_ext.checks import one_number, short, whole_number
from botorch_ext.domains import checked_tensor
from botorch_ext.kernels.structure import part_with_lengthscale, with_lengthscale
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.specification import Candidate


def checked_positive(
    values: Any, name: str, dtype: torch.dtype, device: torch.device | str
) -> Tensor:
    """At least one value along the first dimension, all positive and finite, or a ValueError."""
    if isinstance(values, Sequence) and any(isinstance(value, Tensor) for value in values):
        values = [torch.as_tensor(value).tolist() for value in values]
    tensor = checked_tensor(values, dtype, device, name)
    if tensor.ndim not in (1, 2) or not len(tensor):
        raise ValueError(f"{name} must be at least one number, got shape {tuple(tensor.shape)}")
    if not bool((torch.isfinite(tensor) & (tensor > 0)).all()):
        raise ValueError(f"{name} must be positive and finite, got {tensor.tolist()}")
    return tensor


def value_names(word: str, values: Sequence[float] | Sequence[Sequence[float]]) -> list[str]:
    """Such as ``"lengthscale 0.3"``, with as many digits as tell the values apart."""

    def text(value: float | Sequence[float], digits: int) -> str:
        if isinstance(value, Sequence):
            return ", ".join(text(each, digits) for each in value)
        return f"{value:.{digits}g}"

    names: list[str] = []
    for digits in (4, 8, 17):
        names = [f"{word} {text(value, digits)}" for value in values]
        if len(set(names)) == len(names):
            break
    return names


def default_growth(t: int) -> float:
    """t^0.9 (Ziomek et al. 2024, section 7)."""
    return float(t) ** 0.9


def shrunk_lengthscale(lengthscale_0: float, growth: Callable[[int], float], t: int) -> float:
    """lengthscale_0 / g(t), or a ValueError where g(t) is not positive and finite."""
    name = f"growth({t})"
    if not callable(growth):
        raise ValueError(f"growth must be a function of the step, got {short(growth)}")
    grown = one_number(growth(t), name)
    if not 0 < grown < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {grown}")
    return lengthscale_0 / grown


@dataclass(frozen=True, eq=False)
class GrowingFamily:
    """Ever smaller lengthscales: l_i = lengthscale_0 exp(-i / d), Matern exp(-i / (d + 2 nu)).

    Source: length-scale balancing, arXiv 2410.10384.

    Args:
        kernel: Plain; its only part with a lengthscale is an RBF or a Matern kernel.
        lengthscale_0: The largest.
        noise_variance: Of all models.
        dim: d, the dimension of the domain.
        growth: g: at time t the lengthscales above lengthscale_0 / g(t) are in.
        mean: The prior mean of all models.
    """

    kernel: Kernel
    lengthscale_0: float
    noise_variance: Tensor
    dim: int
    growth: Callable[[int], float] = default_growth
    mean: PriorMean | None = None

    def __post_init__(self) -> None:
        value = one_number(self.lengthscale_0, "lengthscale_0")
        if not 0 < value < math.inf:
            raise ValueError(f"lengthscale_0 must be positive and finite, got {value}")
        whole_number(self.dim, "dim", least=1)
        shrunk_lengthscale(value, self.growth, 1)
        _ = self._rate

    @property
    def _rate(self) -> float:
        part = part_with_lengthscale(self.kernel)
        if isinstance(part, MaternKernel):
            return self.dim + 2 * part.nu
        if isinstance(part, RBFKernel):
            return self.dim
        raise ValueError(f"kernel must be an RBF or a Matern kernel, got a {type(part).__name__}")

    def _lengthscale(self, i: int) -> float:
        return self.lengthscale_0 * math.exp(-i / self._rate)

    def candidates(self, first: int, t: int | None) -> list[Candidate]:
        """The models from number ``first`` on that are in at time t; just the first one if None."""
        if t is None:
            numbers = [first]
        else:
            finest = shrunk_lengthscale(self.lengthscale_0, self.growth, t)
            numbers = []
            while self._lengthscale(first + len(numbers)) > finest:
                numbers.append(first + len(numbers))
        return [self._candidate(self._lengthscale(i)) for i in numbers]

    def _candidate(self, value: float) -> Candidate:
        kernel = with_lengthscale(self.kernel, self.noise_variance.new_tensor(value))
        name = f"lengthscale {value:.4g}"
        return Candidate(name, kernel, self.noise_variance, self.mean, value)
