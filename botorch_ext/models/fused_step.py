"""Fused step: an observation at a candidate, and the highest bound, as one and two Triton kernels.

They compute what `FinitePosterior.add_candidate` and the argmax of the bounds do, but for rounding.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from botorch_ext.kernel_functions.base import KernelFunction
from botorch_ext.kernel_functions.stationary import RATES, StationaryKernel
from botorch_ext.models.jitter import least_pivot

# Candidates of one program, rows of V that it reads at once, and numbers of a vector.
_COLUMNS, _ROWS, _NUMBERS = 128, 16, 512


def takes(kernel: KernelFunction) -> bool:
    """Whether the kernels know this one: RBF or Matern in all columns, no batch."""
    return (
        type(kernel) is StationaryKernel and not kernel.batch_shape and kernel.active_dims is None
    )


class Buffers(NamedTuple):
    """What an observation is written to; each has room for one more row.

    Args:
        V: ``capacity x N``, the last block of rows.
        first: How many rows lie in blocks before it.
        L: ``capacity x capacity``, of the factor.
        z: Of the factor, and so are the others.
        y: The target is at its place already, unless it pends.
        gains: As ``z``.
        jitter: As ``z``.
        inputs: ``capacity x d``.
        mean: ``N``.
        variance: ``N``.
    """

    V: Tensor
    first: int
    L: Tensor
    z: Tensor
    y: Tensor
    gains: Tensor
    jitter: Tensor
    inputs: Tensor
    mean: Tensor
    variance: Tensor


def enter(
    kernel: StationaryKernel,
    noise_variance: Tensor,
    candidates: Tensor,
    point: Tensor,
    cross: Tensor,
    earlier: Tensor | None,
    pending: bool,
    to: Buffers,
) -> None:
    """Writes everything that an observation at a candidate changes.

    Args:
        kernel: One that it `takes`.
        noise_variance: 0-dim.
        candidates: ``N x d``.
        point: ``d``: the candidate that is observed.
        cross: ``n``: L^-1 k(data, candidate); it may be a column of V.
        earlier: ``N``: the product of ``cross`` with the rows before the last block, if any.
        pending: Whether there is no target.
        to: Where it is written.
    """
    N, dim = candidates.shape
    scale = kernel.outputscale
    _launch(
        _enter,
        -(-N // _COLUMNS),
        candidates,
        point.contiguous(),
        kernel.inverse_lengthscale,
        noise_variance if scale is None else scale,
        noise_variance,
        cross,
        to.mean if earlier is None else earlier,
        *(to.V, to.L, to.z, to.y, to.gains, to.jitter, to.inputs, to.mean, to.variance),
        *(cross.stride(0), len(cross), to.first, N, dim, to.L.stride(0)),
        RATE=RATES[kernel.nu],
        SMOOTHNESS=0 if kernel.nu == math.inf else int(2 * kernel.nu),
        FLOOR=_floor(candidates.dtype),
        HAS_LENGTHSCALES=kernel.inverse_lengthscale.numel() > 1,
        HAS_SCALE=scale is not None,
        HAS_EARLIER=earlier is not None,
        PENDING=pending,
        COLUMNS=_COLUMNS,
        ROWS=_ROWS,
        NUMBERS=_NUMBERS,
    )


def highest(mean: Tensor, variance: Tensor, width: Tensor, offset: Tensor) -> Tensor:
    """The candidate with the highest mean + (width * std + offset), of equal ones the first.

    Args:
        mean: ``N``.
        variance: ``N``.
        width: ``(1,)``.
        offset: ``(1,)``.

    Returns:
        Its row, mean, standard deviation, width and offset, in float64.
    """
    N = len(mean)
    programs = -(-N // _NUMBERS)
    tops, places = mean.new_empty(programs), mean.new_empty(programs, dtype=torch.int64)
    read = mean.new_empty(5, dtype=torch.float64)
    arguments = mean, variance, width, offset, tops, places
    _launch(_highest_of_each, programs, *arguments, N, NUMBERS=_NUMBERS)
    _launch(_highest_of_all, 1, *arguments, read, programs, NUMBERS=_NUMBERS)
    return read


@cache
def _floor(dtype: torch.dtype) -> float:
    return float(least_pivot(torch.ones((), dtype=dtype)))


def _launch(kernel: Any, programs: int, *arguments: Any, **constants: Any) -> None:
    with torch.cuda.device_of(arguments[0]):
        kernel[(programs,)](*arguments, **constants, enable_fp_fusion=True)


# What differs from step to step makes no new kernel.
@triton.jit(
    do_not_specialize=["apart", "n", "first", "apart_in_L"],
    do_not_specialize_on_alignment=["cross", "point"],
)
def _enter(
    candidates,
    point,
    inverse_lengthscale,
    scale,
    noise_variance,
    cross,
    earlier,
    V,
    L,
    z,
    y,
    gains,
    jitter,
    inputs,
    mean,
    variance,
    apart,
    n,
    first,
    N,
    dim,
    apart_in_L,
    RATE: tl.constexpr,
    SMOOTHNESS: tl.constexpr,
    FLOOR: tl.constexpr,
    HAS_LENGTHSCALES: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    HAS_EARLIER: tl.constexpr,
    PENDING: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    NUMBERS: tl.constexpr,
):
    noise = tl.load(noise_variance)
    dtype = noise.dtype
    prior = tl.load(scale) if HAS_SCALE else tl.full((), 1.0, dtype)

    # The pivot and the entry of z: every program works them out, which takes no time.
    squares, products = tl.zeros((NUMBERS,), dtype), tl.zeros((NUMBERS,), dtype)
    for start in range(0, n, NUMBERS):
        row = start + tl.arange(0, NUMBERS)
        w = tl.load(cross + row * apart, mask=row < n, other=0.0)
        squares += w * w
        products += w * tl.load(z + row, mask=row < n, other=0.0)
    predicted = tl.sum(products, axis=0)
    pivot = tl.maximum(prior - tl.sum(squares, axis=0), 0.0) + noise
    raised = tl.maximum(pivot, FLOOR * prior)
    root = tl.sqrt(raised)

    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < N
    sums = tl.zeros((ROWS, COLUMNS), dtype)
    for start in range(first, n, ROWS):
        row = start + tl.arange(0, ROWS)
        w = tl.load(cross + row * apart, mask=row < n, other=0.0)
        places = (row - first).to(tl.int64)[:, None] * N + column[None, :]
        there = (row < n)[:, None] & inside[None, :]
        sums += w[:, None] * tl.load(V + places, mask=there, other=0.0)
    product = tl.sum(sums, axis=0)
    if HAS_EARLIER:
        product += tl.load(earlier + column, mask=inside, other=0.0)

    square = tl.zeros((COLUMNS,), dtype)
    for j in range(dim):
        rate = RATE * tl.load(inverse_lengthscale + (j if HAS_LENGTHSCALES else 0))
        own = tl.load(point + j)
        s = (tl.load(candidates + column * dim + j, mask=inside, other=0.0) - own) * rate
        square += s * s
    if SMOOTHNESS == 0:
        k = tl.exp(-square)
    else:
        s = tl.sqrt(square)
        k = tl.exp(-s)
        if SMOOTHNESS == 3:
            k = (s + 1) * k
        if SMOOTHNESS == 5:
            k = (square / 3 + s + 1) * k

    v = (prior * k - product) / root
    tl.store(V + (n - first).to(tl.int64) * N + column, v, mask=inside)
    old = tl.load(variance + column, mask=inside, other=0.0)
    tl.store(variance + column, old - v * v, mask=inside)
    target = predicted if PENDING else tl.load(y + n)
    entry = (target - predicted) / root
    old = tl.load(mean + column, mask=inside, other=0.0)
    tl.store(mean + column, old + entry * v, mask=inside)

    if tl.program_id(0) == 0:
        line = L + n.to(tl.int64) * apart_in_L
        for start in range(0, n, NUMBERS):
            row = start + tl.arange(0, NUMBERS)
            w = tl.load(cross + row * apart, mask=row < n, other=0.0)
            tl.store(line + row, w, mask=row < n)
        tl.store(line + n, root)
        tl.store(jitter + n, raised - pivot)
        tl.store(gains + n, tl.log(root / tl.sqrt(noise + (raised - pivot))))
        tl.store(z + n, entry)
        if PENDING:
            tl.store(y + n, predicted)
        for j in range(dim):
            own = tl.load(point + j)
            tl.store(inputs + n.to(tl.int64) * dim + j, own)


@triton.jit
def _highest_of_each(mean, variance, width, offset, tops, places, N, NUMBERS: tl.constexpr):
    program = tl.program_id(0)
    row = program.to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    inside = row < N
    std = tl.sqrt(tl.maximum(tl.load(variance + row, mask=inside, other=0.0), 0.0))
    reach = tl.load(offset) + tl.load(width) * std
    bound = tl.load(mean + row, mask=inside, other=0.0) + reach
    bound = tl.where(inside, bound, -float("inf"))
    top, place = tl.max(bound, axis=0, return_indices=True)  # the first of equal ones
    tl.store(tops + program, top)
    # Among NaN it may be none that is inside.
    tl.store(places + program, tl.minimum(program.to(tl.int64) * NUMBERS + place, N - 1))


@triton.jit
def _highest_of_all(
    mean, variance, width, offset, tops, places, read, programs, NUMBERS: tl.constexpr
):
    best = tl.load(tops)
    at = tl.load(places)
    for start in range(0, programs, NUMBERS):
        program = start + tl.arange(0, NUMBERS)
        bounds = tl.load(tops + program, mask=program < programs, other=-float("inf"))
        top, place = tl.max(bounds, axis=0, return_indices=True)
        there = tl.minimum(start + place, programs - 1)
        at = tl.where(top > best, tl.load(places + there), at)
        best = tl.maximum(top, best)
    std = tl.sqrt(tl.maximum(tl.load(variance + at), 0.0))
    tl.store(read, at.to(tl.float64))
    tl.store(read + 1, tl.load(mean + at).to(tl.float64))
    tl.store(read + 2, std.to(tl.float64))
    tl.store(read + 3, tl.load(width).to(tl.float64))
    tl.store(read + 4, tl.load(offset).to(tl.float64))
