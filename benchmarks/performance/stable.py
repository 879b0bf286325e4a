"""Stable candidates: StableUCB in BoTorch's optimiser, along ridges and by L-BFGS-B.

    python -m benchmarks.performance.stable [--smoke]

One thread, float64. Writes stable.md and stable.csv.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from gpytorch.kernels import Kernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern
from benchmarks.common.tables import Row
from benchmarks.performance.data import single_task_gp
from benchmarks.performance.speed_table import fact_row, measure, ratio_row
from botorch_ext.acquisition import StableUCB

_SIZES: tuple[tuple[int, int], ...] = ((2, 20), (4, 40))
_NORMS: tuple[Literal["l2", "linf"], ...] = ("l2", "linf")
_RADIUS, _NOISE = 0.1, 0.01


def candidates_of_kernel_gp(options: Options) -> list[Row]:
    """Candidates of `KernelGP` models."""

    def make(X: Tensor, y: Tensor, kernel: Kernel) -> bx.KernelGP:
        model = bx.KernelGP(kernel, _NOISE)
        model.add(X, y)
        return model

    sizes = _SIZES[:1] if options.smoke else _SIZES
    return [row for size in sizes for norm in _NORMS for row in _rows(options, make, *size, norm)]


def candidates_of_single_task_gp(options: Options) -> list[Row]:
    """Candidates of BoTorch's own models, whose bounds need autograd."""

    def make(X: Tensor, y: Tensor, kernel: Kernel) -> Model:
        return single_task_gp(X, y.unsqueeze(-1), kernel, _NOISE)

    norms = _NORMS[:1] if options.smoke else _NORMS
    return [row for norm in norms for row in _rows(options, make, *_SIZES[0], norm)]


def _rows(
    options: Options, make: Callable[..., Model], dim: int, n: int, norm: Literal["l2", "linf"]
) -> list[Row]:
    box, kernel = bx.Box([[0.0] * dim, [1.0] * dim]), matern(0.25 * dim**0.5)
    X = box.sample(n, options.seed)
    model = make(X, torch.sin(5 * X).sum(dim=-1), kernel)
    acqf = StableUCB(model, 2.0, _RADIUS, norm, bounds=box.bounds)
    ridges, plain = [], []
    for seed in range(1 if options.smoke else 5):
        ridges.append(_found(acqf, box.bounds, seed, gen_candidates=acqf.gen_candidates))
        plain.append(_found(acqf, box.bounds, seed))
    ours, theirs = (statistics.median(seconds for seconds, _ in each) for each in (ridges, plain))
    name = f"StableUCB, {type(model).__name__}, {norm}, d={dim}, n={n}"
    gain = statistics.fmean(a - b for (_, a), (_, b) in zip(ridges, plain, strict=True))
    return [
        ratio_row(f"{name}: a candidate along ridges", "by L-BFGS-B", ours, theirs, at_most=0.8),
        fact_row(f"{name}: its value less", "that by L-BFGS-B", gain, "above -0.001", gain > -1e-3),
    ]


def _found(acqf: StableUCB, bounds: Tensor, seed: int, **way: Any) -> tuple[float, float]:
    """Seconds of one core for a candidate, and its value."""
    torch.manual_seed(seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of line searches that fail at kinks
        x, _ = optimize_acqf(acqf, bounds, q=1, num_restarts=4, raw_samples=128, **way)
    taken = time.process_time() - started
    with torch.no_grad():
        return taken, float(acqf(x))


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    parts = (candidates_of_kernel_gp, candidates_of_single_task_gp)
    measure("stable", "Speed of stable candidates", parts, argv, device=False)


if __name__ == "__main__":
    main()
