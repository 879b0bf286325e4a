"""Planner: batches of largest variance, beside BoTorch planning one point after another."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

import torch
from botorch.acquisition import PosteriorStandardDeviation
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.kernels import Kernel, ScaleKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.performance.data import single_task_gp
from benchmarks.performance.speed_table import fact_row, ratio_row

_NOISE_VARIANCE = 0.01
_RESTARTS, _RAW = 10, 512


def finite_planner(options: Options) -> list[Row]:
    """N = 10,000 random points in four dimensions, a batch of 300."""
    num_points, q = (200, 5) if options.smoke else (10_000, 300)
    domain = random_set(num_points, options.seed, options.device)
    kernel = rbf(0.3)
    # BoTorch's model needs a point to start from; ours starts from the same one.
    first = domain.points[:1]
    model = started(kernel, first)
    chosen: dict[str, Tensor] = {}

    def ours() -> None:
        chosen["ours"] = bx.plan(domain, model, q).X

    def theirs() -> None:
        chosen["theirs"] = _one_by_one(kernel, first, q, lambda acqf: _best_of(acqf, domain))

    bx.plan(domain, model, 2)
    taken = statistics.median(
        seconds(ours, domain.device) for _ in range(1 if options.smoke else 5)
    )
    reference = seconds(theirs, domain.device)
    what = f"plan, N={num_points}, d=4, q={q}"
    gain = {name: _gain(model, X) for name, X in chosen.items()}
    against = "optimize_acqf_discrete, condition_on_observations"
    difference = abs(gain["ours"] / gain["theirs"] - 1)
    return [
        ratio_row(what, against, taken, reference, at_least=30),
        fact_row(
            f"{what}: information gain ({gain['ours']:.6f}), relative difference",
            against,
            difference,
            "<= 1e-6",
            difference <= 1e-6,
        ),
    ]


def random_set(num_points: int, seed: int, device: torch.device) -> bx.FiniteSet:
    """So many points in four dimensions."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(num_points, 4, dtype=torch.float64, generator=generator)
    return bx.FiniteSet(points, device=device)


def _best_of(acqf: PosteriorStandardDeviation, domain: bx.FiniteSet) -> Tensor:
    return optimize_acqf_discrete(acqf, q=1, choices=domain.points, max_batch_size=4096)[0]


def box_planner(options: Options) -> list[Row]:
    """Batches of 100 on the unit cube."""
    q = 4 if options.smoke else 100
    rows: list[Row] = []
    for dim, name, kernel, at_least in box_settings():
        rows += _box_rows(options, dim, name, kernel, q, at_least)
    return rows


def box_settings() -> list[tuple[int, str, Kernel, float]]:
    """d, the name of a kernel, the kernel, and how many times faster than BoTorch is required."""
    return [
        (6, "RBF 1.0", rbf(1.0), 15.0),
        (4, "RBF 0.5", rbf(0.5), 15.0),
        (2, "RBF 0.3", rbf(0.3), 15.0),
        (4, "Matern 5/2 0.5", matern(0.5), 15.0),
        # No closed form: through autograd.
        (4, "sum of two", ScaleKernel(rbf(0.3)).double() + ScaleKernel(matern(1.0)).double(), 5.0),
    ]


def _box_rows(
    options: Options, dim: int, name: str, kernel: Kernel, q: int, at_least: float
) -> list[Row]:
    box = bx.Box([[0.0] * dim, [1.0] * dim], device=options.device)
    first = box.sample(1, options.seed)
    model = started(kernel, first)
    chosen: dict[str, Tensor] = {}

    def ours() -> None:
        chosen["ours"] = bx.plan(box, model, q - 1).X

    def theirs() -> None:
        chosen["theirs"] = _one_by_one(kernel, first, q - 1, lambda acqf: _highest(acqf, box))

    bx.plan(box, model, 2)
    taken = statistics.median(seconds(ours, box.device) for _ in range(1 if options.smoke else 5))
    reference = seconds(theirs, box.device)
    what = f"plan, box, d={dim}, {name}, q={q}"
    against = f"optimize_acqf, {_RESTARTS} restarts, {_RAW} raw samples, one after another"
    gains = [
        float(model.information_gain()) + _gain(model, chosen[key]) for key in ("ours", "theirs")
    ]
    shares = []
    for seed in range(1 if options.smoke else 10):
        X = bx.plan(box, model, q - 1, seed=seed).X
        shares.append((float(model.information_gain()) + _gain(model, X)) / gains[1])
    return [
        ratio_row(what, against, taken, reference, at_least=at_least),
        fact_row(
            f"{what}: information gain {gains[0]:.1f} and {gains[1]:.1f}; least share of ten seeds",
            against,
            min(shares),
            ">= 0.99",
            min(shares) >= 0.99,
        ),
    ]


def _highest(acqf: PosteriorStandardDeviation, box: bx.Box) -> Tensor:
    return optimize_acqf(acqf, box.bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW)[0]


def started(kernel: Kernel, first: Tensor) -> bx.KernelGP:
    """A model that has seen one point."""
    model = bx.KernelGP(kernel, _NOISE_VARIANCE, device=first.device)
    model.add(first, torch.zeros(1).to(first))
    return model


def _one_by_one(kernel: Kernel, first: Tensor, q: int, choose: Any) -> Tensor:
    """q points, each the choice of BoTorch on a model conditioned on those before it."""
    zero = first.new_zeros(1, 1)
    model = single_task_gp(first, zero, kernel, _NOISE_VARIANCE)
    X = []
    for _ in range(q):
        acqf = PosteriorStandardDeviation(model)
        X.append(choose(acqf))
        with torch.no_grad():
            model.posterior(X[-1])  # fills the caches that conditioning starts from
            model = model.condition_on_observations(X[-1], zero)
    return torch.cat(X)


def _gain(model: bx.KernelGP, X: Tensor) -> float:
    """What points add to the information gain of the model."""
    more = model.condition_on_observations(X, torch.zeros(len(X), 1).to(X))
    return float(more.information_gain() - model.information_gain())


_MILLION = """
import resource, sys, time, torch
import botorch_ext as bx
from gpytorch.kernels import RBFKernel
torch.set_num_threads(1)
num_points, q = map(int, sys.argv[1:])
kernel = RBFKernel()
kernel.lengthscale = 0.3
domain = bx.FiniteSet(torch.rand(num_points, 4, dtype=torch.float64))
start = time.perf_counter()
bx.plan(domain, bx.KernelGP(kernel, 0.01), q)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def million_points(options: Options) -> list[Row]:
    """N = 1,000,000 and a batch of 200, on the CPU, in a process of its own."""
    num_points, q = (10_000, 10) if options.smoke else (1_000_000, 200)
    command = [sys.executable, "-c", _MILLION, str(num_points), str(q)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    taken, gigabytes = map(float, output.split())
    what = f"plan, N={num_points}, d=4, q={q}, CPU"
    return [
        ratio_row(what, "60 s", taken, 60.0, at_most=1),
        ratio_row(f"{what}: memory of the process", "4 GB", gigabytes, 4.0, unit="GB", at_most=1),
    ]
