"""Batches of acquisition functions: the speed of their values, beside BoTorch in the same run.

    python -m benchmarks.performance.batches [--smoke] [--device cuda]

One thread, float64. Writes batches.md and batches.csv (batches-cuda.* on a GPU).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from botorch.acquisition import qLogNoisyExpectedImprovement, qUpperConfidenceBound
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.performance.data import noisy_data, single_task_gp
from benchmarks.performance.speed_table import measure, ratio_row
from botorch_ext.acquisition import EnlargedUpperConfidenceBound, IntegratedLogEI

_DIM, _Q, _NUM_BATCHES = 6, 4, 100


def values_of_batches(options: Options) -> list[Row]:
    """Values, and gradients, of 100 batches of 4 points."""
    sizes, repeats = ((20,), 1) if options.smoke else ((20, 100, 400), 11)
    return [row for n in sizes for row in _with(n, repeats, options)]


def _with(n: int, repeats: int, options: Options) -> list[Row]:
    X, Y = noisy_data(n, _DIM, rbf(0.6), options.seed, options.device)
    model = single_task_gp(X, Y.view(-1, 1), rbf(0.6), 1e-2)
    generator = torch.Generator().manual_seed(options.seed)
    batches = torch.rand(_NUM_BATCHES, _Q, _DIM, generator=generator, dtype=X.dtype).to(X.device)
    sampler = SobolQMCNormalSampler(torch.Size([128]), seed=options.seed)
    pairs = (
        (
            "EnlargedUpperConfidenceBound",
            EnlargedUpperConfidenceBound(model, misspecification=0.0, width=2.0),
            "qUpperConfidenceBound",
            qUpperConfidenceBound(model, 4.0, sampler=sampler),
        ),
        (
            "IntegratedLogEI",
            IntegratedLogEI(model, X_baseline=X),
            "qLogNoisyExpectedImprovement",
            qLogNoisyExpectedImprovement(model, X, sampler=sampler, prune_baseline=True),
        ),
    )
    rows = []
    for own_name, own, other_name, other in pairs:
        for what, call in (("values", _values), ("values and gradients", _gradients)):
            timed = [
                tuple(seconds(partial(call, f, batches), options.device) for f in (own, other))
                for _ in range(repeats + 1)
            ][1:]
            ours, theirs = (statistics.median(taken) for taken in zip(*timed, strict=True))
            name = f"{own_name}: {what} of {_NUM_BATCHES} batches of {_Q}, d={_DIM}, n={n}"
            rows.append(ratio_row(name, f"{other_name}, 128 draws", ours, theirs, at_most=10))
    return rows


def _values(acqf: Callable[[Tensor], Tensor], batches: Tensor) -> Any:
    with torch.no_grad():
        return acqf(batches)


def _gradients(acqf: Callable[[Tensor], Tensor], batches: Tensor) -> Any:
    X = batches.clone().requires_grad_()
    return torch.autograd.grad(acqf(X).sum(), X)


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    measure("batches", "Speed of batches of acquisition functions", (values_of_batches,), argv)


if __name__ == "__main__":
    main()
