"""Box: one more observation there, and one question, beside BoTorch."""

from __future__ import annotations

import itertools
import math
import statistics

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.optim import optimize_acqf
from gpytorch.kernels import Kernel
from torch import Tensor
from tqdm import tqdm

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import median_seconds, seconds
from benchmarks.performance.data import noisy_data, single_task_gp
from benchmarks.performance.speed_table import fact_row, ratio_row

_WIDTH, _MISSPECIFICATION, _NOISE_VARIANCE = 2.0, 1e-3, 1e-2


def added_point(options: Options) -> list[Row]:
    """`KernelGP.add` against BoTorch's conditioning, and against one triangular solve."""
    rows = []
    for n in (50, 100) if options.smoke else (1000, 4000):
        rows += _added_point(n, options)
    return rows


def _added_point(n: int, options: Options) -> list[Row]:
    device = options.device
    ours, theirs = (3, 1) if options.smoke else (51, 5)
    kernel = rbf(0.8)
    X, Y = noisy_data(n + ours + 1, 6, kernel, options.seed, device)
    model = bx.KernelGP(kernel, _NOISE_VARIANCE, device=device)
    model.add(X[:n], Y[:n])
    extra = iter(range(n, n + ours + 1))

    def add() -> None:
        i = next(extra)
        model.add(X[i : i + 1], Y[i : i + 1])

    ours_seconds = median_seconds(add, ours, device)

    reference = single_task_gp(X[:n], Y[:n], kernel, _NOISE_VARIANCE)
    new_X, new_Y = X[n : n + 1], Y[n : n + 1]

    @torch.no_grad()
    def condition() -> None:
        posterior = reference.condition_on_observations(new_X, new_Y).posterior(new_X)
        _ = posterior.mean, posterior.variance  # pyright: ignore[reportAttributeAccessIssue]

    with torch.no_grad():
        reference.posterior(new_X)  # fills the caches that conditioning starts from
    botorch_seconds = median_seconds(condition, theirs, device)

    K = torch.cdist(X[:n], X[:n]).square().mul(-0.5 / 0.8**2).exp()
    L = torch.linalg.cholesky(K + _NOISE_VARIANCE * torch.eye(n).to(K)).contiguous()
    del K

    def solve() -> None:
        row = (X[:n] - new_X).square().sum(dim=-1, keepdim=True).mul(-0.5 / 0.8**2).exp()
        torch.linalg.solve_triangular(L, row, upper=False)

    solve_seconds = median_seconds(solve, ours, device)
    name = f"KernelGP.add of one point, n={n}"
    conditioning = "SingleTaskGP: condition_on_observations, posterior at one point"
    floor = "a triangular solve and a kernel row"
    return [
        ratio_row(name, conditioning, ours_seconds, botorch_seconds, at_least=50),
        ratio_row(name, floor, ours_seconds, solve_seconds, at_most=5),
    ]


def asked_point(options: Options) -> list[Row]:
    """ask() of EC-GP-UCB in six dimensions against optimize_acqf, value and time.

    Twenty problems: RBF and Matern kernels, five lengthscales, data spread evenly and data gathered
    around a good point as a study gathers it.
    """
    n, lengthscales = (40, (0.3,)) if options.smoke else (1000, (0.2, 0.3, 0.4, 0.6, 0.8))
    problems = list(itertools.product((rbf, matern), lengthscales, (False, True)))
    problems.insert(0, problems[0])  # not counted: the first call of everything
    differences, times = [], []
    for i, (kind, lengthscale, gathered) in enumerate(tqdm(problems, leave=False, unit="problem")):
        kernel, seed = kind(lengthscale), 1000 * options.seed + i
        X, Y = noisy_data(n, 6, kernel, seed, options.device, gathered)
        difference, *both = _ask_both(X, Y, kernel, seed)
        differences.append(difference)
        times.append(both)
    del differences[0], times[0]

    higher, lower = (sum(sign * gain > 1e-6 for gain in differences) for sign in (1, -1))
    mean, num = statistics.fmean(differences), len(differences)
    name = f"ask() of EC-GP-UCB on a box, d=6, n={n}"
    against = "optimize_acqf, 10 restarts, 512 raw samples"
    what = (
        f"{name}: value minus the other's, mean of {num} problems ({higher} higher, {lower} lower, "
        f"{num - higher - lower} within 1e-6; from {min(differences):.2g} to "
        f"{max(differences):.2g})"
    )
    ours, theirs = (statistics.median(taken) for taken in zip(*times, strict=True))
    time = ratio_row(f"{name}: time", against, ours, theirs, at_most=1)
    time["required"] += " (reach for 1/3)"
    return [fact_row(what, against, mean, ">= -1e-6", mean >= -1e-6), time]


def strategy_on_box(X: Tensor, Y: Tensor, kernel: Kernel, seed: int) -> bx.Strategy:
    """EC-GP-UCB on the unit cube that has seen these points."""
    dim = X.shape[1]
    return bx.algorithms.ec_gp_ucb(
        bx.Box([[0.0] * dim, [1.0] * dim], device=X.device),
        kernel,
        noise_variance=_NOISE_VARIANCE,
        misspecification=_MISSPECIFICATION,
        width=_WIDTH,
        seed=seed,
        initial=(X, Y),
    )


def _ask_both(X: Tensor, Y: Tensor, kernel: Kernel, seed: int) -> tuple[float, float, float]:
    """Our value minus theirs, our seconds and theirs."""
    strategy = strategy_on_box(X, Y, kernel, seed)
    bounds = torch.stack([X.new_zeros(X.shape[1]), X.new_ones(X.shape[1])])
    enlarged = _WIDTH + _MISSPECIFICATION * math.sqrt(len(X) + 1) / math.sqrt(_NOISE_VARIANCE)
    ucb = UpperConfidenceBound(single_task_gp(X, Y, kernel, _NOISE_VARIANCE), beta=enlarged**2)
    with torch.no_grad():
        ucb(X[:1].unsqueeze(-2))  # fills the caches of the model
    torch.manual_seed(seed)
    found: list[Tensor] = []

    def ask() -> None:
        found.append(strategy.ask().x)

    def optimize() -> None:
        x, _ = optimize_acqf(ucb, bounds, q=1, num_restarts=10, raw_samples=512)
        found.append(x[0])

    times = seconds(ask, X.device), seconds(optimize, X.device)
    with torch.no_grad():
        ours, theirs = ucb(torch.stack(found).unsqueeze(-2)).tolist()
    return ours - theirs, *times
