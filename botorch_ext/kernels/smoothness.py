"""Smoothness of the functions of an RKHS: Hoelder constants of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from gpytorch.kernels import Kernel
from torch import nn

from botorch_ext.checks import one_number
from botorch_ext.kernels.frozen.base import GenericKernel
from botorch_ext.kernels.frozen.columns import ColumnsKernel
from botorch_ext.kernels.frozen.combined import CombinedKernel
from botorch_ext.kernels.frozen.freezing import freeze, require_unbatched
from botorch_ext.kernels.frozen.stationary import StationaryKernel


class HolderConstants(NamedTuple):
    """The constants of the Holder continuity of functions in the RKHS of a kernel.

    sqrt(k(x,x) + k(z,z) - 2 k(x,z)) <= constant r^exponent, r = |(x - z) / lengthscales|. So
    |f(x) - f(z)| <= B constant r^exponent for f in the RKHS with norm at most B.

    Args:
        constant: C_k.
        exponent: xi, in (0, 1]; 1/2 or 1 for the kernels that `holder_constants` knows.
        lengthscales: One for each column; infinite for columns that the kernel does not see.
        variance: k(x, x).
    """

    constant: float
    exponent: float
    lengthscales: tuple[float, ...]
    variance: float


# C_k and xi for each smoothness nu. C_k is the limit of sqrt(2 (k(0) - k(r))) / r^xi at r = 0,
# where this ratio is largest.
_STATIONARY = {
    0.5: (math.sqrt(2), 0.5),
    1.5: (math.sqrt(3), 1.0),
    2.5: (math.sqrt(5 / 3), 1.0),
    math.inf: (1.0, 1.0),
}


def holder_constants(kernel: Kernel, dim: int) -> HolderConstants:
    """The Holder constants of an RBF or Matern kernel, or of sums, products and multiples of them.

    The constant is the smallest possible one for a single kernel, and for sums and products of
    kernels with the same lengthscales and exponent; otherwise it is a valid constant. Sums: C^2 =
    C_1^2 + C_2^2. Products: C^2 = k_1(0) C_2^2 + k_2(0) C_1^2, since k_1(0) k_2(0) - k_1 k_2 =
    k_1(0) (k_2(0) - k_2) + k_2 (k_1(0) - k_1). Each column gets the smallest lengthscale of the
    parts, so distances never shrink. If exponents differ, an exponent 1 becomes 1/2 with C^2 = C_1
    sqrt(2 k_1(0)), since the squared distance is at most min(C_1^2 r^2, 2 k_1(0)) for kernels that
    are nowhere negative.

    Raises:
        ValueError: If it is another kernel, has batch dimensions, or is not on ``dim`` columns.
    """
    require_unbatched(kernel)
    return _constants(freeze(kernel, torch.float64, torch.device("cpu")), dim)


def given_constants(holder: HolderConstants | tuple[float, float], dim: int) -> HolderConstants:
    """Read the Holder constants that a user gives for a kernel.

    Args:
        holder: `HolderConstants`, or a pair of constant and exponent, for distances in the units of
            the columns.
        dim: d, the number of columns.

    Raises:
        ValueError: If the constant is not positive and finite, the exponent is outside (0, 1], or
            there is not one positive lengthscale for each column.
    """
    if not isinstance(holder, HolderConstants):
        pair = tuple(holder) if isinstance(holder, Sequence) else (holder,)
        if len(pair) != 2:
            raise ValueError(f"holder must be a constant and an exponent, got {holder!r}")
        holder = HolderConstants(*pair, lengthscales=(1.0,) * dim, variance=1.0)
    constant = one_number(holder.constant, "constant of holder")
    exponent = one_number(holder.exponent, "exponent of holder")
    if not 0 < constant < math.inf:
        raise ValueError(f"constant of holder must be positive and finite, got {constant}")
    if not 0 < exponent <= 1:
        raise ValueError(f"exponent of holder must be in (0, 1], got {exponent}")
    lengthscales = holder.lengthscales
    if len(lengthscales) != dim or not all(each > 0 for each in lengthscales):
        raise ValueError(
            f"lengthscales of holder must be {dim} positive numbers, got {lengthscales}"
        )
    return holder._replace(constant=constant, exponent=exponent)


def _constants(function: nn.Module, dim: int) -> HolderConstants:
    if isinstance(function, StationaryKernel):
        constant, exponent = _STATIONARY[function.nu]
        variance = 1.0 if function.outputscale is None else float(function.outputscale)
        lengthscales = _lengthscales(function, dim)
        return HolderConstants(math.sqrt(variance) * constant, exponent, lengthscales, variance)
    if isinstance(function, ColumnsKernel):
        return _of_columns(function, dim)
    if not isinstance(function, CombinedKernel):
        given = function.kernel if isinstance(function, GenericKernel) else function
        raise ValueError(
            "kernel must be RBF or Matern, or a sum, product or multiple of such kernels, since "
            "the smoothness of other kernels is not known; pass width= for any other kernel, or "
            f"holder= if the method takes it, got {type(given).__name__}"
        )
    parts = [_constants(part, dim) for part in function.parts]
    exponent = min(part.exponent for part in parts)
    squares = [_squared_constant(part, exponent) for part in parts]
    variances = [part.variance for part in parts]
    if function.product:
        variance = math.prod(variances)
        square = sum(
            each * math.prod(variances[:i] + variances[i + 1 :]) for i, each in enumerate(squares)
        )
    else:
        variance, square = sum(variances), sum(squares)
    scale = 1.0 if function.outputscale is None else float(function.outputscale)
    lengthscales = tuple(map(min, *(part.lengthscales for part in parts), (math.inf,) * dim))
    return HolderConstants(math.sqrt(scale * square), exponent, lengthscales, scale * variance)


def _of_columns(function: ColumnsKernel, dim: int) -> HolderConstants:
    columns = function.columns(dim)
    inner = _constants(function.base, len(columns))
    lengthscales = [math.inf] * dim
    for column, lengthscale in zip(columns, inner.lengthscales, strict=True):
        lengthscales[column] = lengthscale
    return inner._replace(lengthscales=tuple(lengthscales))


def _squared_constant(part: HolderConstants, exponent: float) -> float:
    if part.exponent == exponent:
        return part.constant**2
    return part.constant * math.sqrt(2 * part.variance)


def _lengthscales(function: StationaryKernel, dim: int) -> tuple[float, ...]:
    given = (1 / function.inverse_lengthscale).flatten().tolist()
    columns = range(dim) if function.active_dims is None else function.active_dims.tolist()
    if any(column >= dim for column in columns):
        raise ValueError(f"kernel must be on {dim} columns, got active_dims {columns}")
    if len(given) not in (1, len(columns)):
        raise ValueError(f"kernel must be on {dim} columns, got {len(given)} lengthscales")
    lengthscales = [math.inf] * dim
    for j, column in enumerate(columns):
        lengthscales[column] = given[j] if len(given) > 1 else given[0]
    return tuple(lengthscales)
