"""GrowingFamily: kernels with ever smaller lengthscales, which join over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from torch import Tensor

from botorch_ext.checks import one_number, short, some_of, whole_number
from botorch_ext.domains import checked_tensor
from botorch_ext.kernels.structure import part_with_lengthscale, with_lengthscale
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.specification import Candidate


def checked_positive(
    values: Any, name: str, dtype: torch.dtype, device: torch.device | str
) -> Tensor:
    """Check positive numbers.

    Returns:
        The numbers as a tensor, ``m`` or ``m x d``.

    Raises:
        ValueError: If one is not positive and finite, or the shape is wrong.
    """
    if isinstance(values, Sequence) and any(isinstance(value, Tensor) for value in values):
        values = [torch.as_tensor(value, device="cpu").tolist() for value in values]
    tensor = checked_tensor(values, dtype, device, name)
    if tensor.ndim not in (1, 2) or not len(tensor):
        raise ValueError(f"{name} must be at least one number, got shape {tuple(tensor.shape)}")
    if not bool((torch.isfinite(tensor) & (tensor > 0)).all()):
        raise ValueError(f"{name} must be positive and finite, got {some_of(tensor)}")
    return tensor


def value_names(word: str, values: Sequence[float] | Sequence[Sequence[float]]) -> list[str]:
    """Names such as ``"lengthscale 0.3"``, with enough digits to tell the values apart.

    Args:
        word: The word before the value.
        values: The values, numbers or rows of numbers.
    """

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
    """The growth g(t) = t^0.9 of Ziomek et al. 2024, section 7."""
    return float(t) ** 0.9


def shrunk_lengthscale(lengthscale_0: float, growth: Callable[[int], float], t: int) -> float:
    """The least lengthscale at a time, lengthscale_0 / g(t).

    Raises:
        ValueError: If g(t) is not positive and finite.
    """
    name = f"growth({t})"
    if not callable(growth):
        raise ValueError(f"growth must be a function of the step, got {short(growth)}")
    grown = one_number(growth(t), name)
    if not 0 < grown < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {grown}")
    return lengthscale_0 / grown


@dataclass(frozen=True, eq=False)
class GrowingFamily:
    """Models with ever smaller lengthscales, l_i = lengthscale_0 exp(-i / d), which join over time.

    For a Matern kernel the lengthscales are lengthscale_0 exp(-i / (d + 2 nu)). Source:
    length-scale balancing, arXiv 2410.10384.

    Args:
        kernel: A plain kernel whose only part with a lengthscale is an RBF or a Matern kernel.
        lengthscale_0: The largest lengthscale.
        noise_variance: The noise variance of all models, 0-dim.
        dim: d, the dimension of the domain.
        growth: The function g: at time t the lengthscales above lengthscale_0 / g(t) have joined.
        mean: The prior mean of all models; None for zero.
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
        """The models from a number on that have joined by a time.

        Args:
            first: The number of the first model.
            t: The time, in steps; None for the first model only.
        """
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
