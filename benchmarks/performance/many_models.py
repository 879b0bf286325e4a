"""Many models: questions to all of them at once, beside one BoTorch model after another."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.optim import optimize_acqf
from gpytorch.kernels import MaternKernel, RBFKernel
from torch import Tensor
from tqdm import tqdm

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.performance.data import noisy_data, single_task_gp
from benchmarks.performance.speed_table import fact_row, ratio_row
from botorch_ext.problems import RKHSFunction

_NOISE_VARIANCE, _WIDTH, _DIM = 1e-2, 2.0, 4
_AGAINST = "a SingleTaskGP for each, optimize_acqf with 10 restarts and 512 raw samples"


def asked_of_models(options: Options) -> list[Row]:
    """ask() of HE-GP-UCB over lengthscales on a box, against one model after another.

    Twenty problems: RBF and Matern kernels, data of five smoothnesses, spread evenly and gathered
    around a good point as a study gathers it. The largest candidate set is timed on fewer.
    """
    if options.smoke:
        return _asked(2, 20, 1, None, options) + _asked(4, 20, 1, None, options)
    return _asked(16, 200, 20, 6.0, options) + _asked(64, 200, 6, 12.0, options)


def _asked(
    num_models: int, n: int, num_problems: int, at_least: float | None, options: Options
) -> list[Row]:
    scales = lengthscales(num_models)
    problems = list(itertools.product((rbf, matern), (0.2, 0.3, 0.4, 0.6, 0.8), (False, True)))
    problems = problems[:: len(problems) // num_problems][:num_problems]
    problems.insert(0, problems[0])  # not counted: the first call of everything
    differences, times = [], []
    for i, (kind, lengthscale, gathered) in enumerate(tqdm(problems, leave=False, unit="problem")):
        seed = 1000 * options.seed + i
        X, Y = noisy_data(n, _DIM, kind(lengthscale), seed, options.device, gathered)
        difference, *both = _ask_both(X, Y, kind is rbf, scales, seed)
        differences.append(difference)
        times.append(both)
    del differences[0], times[0]
    higher, lower = (sum(sign * gain > 1e-6 for gain in differences) for sign in (1, -1))
    name = f"ask() of HE-GP-UCB on a box, {num_models} lengthscales, d={_DIM}, n={n}"
    what = (
        f"{name}: value minus the other's, least of {num_problems} problems ({higher} higher, "
        f"{lower} lower, mean {statistics.fmean(differences):.2g})"
    )
    ours, theirs = (statistics.median(taken) for taken in zip(*times, strict=True))
    least = min(differences)
    return [
        fact_row(what, _AGAINST, least, ">= -1e-6", least >= -1e-6),
        ratio_row(f"{name}: time", _AGAINST, ours, theirs, at_least=at_least),
    ]


def strategy_of_lengthscales(
    X: Tensor, Y: Tensor, is_rbf: bool, scales: Sequence[float], seed: int
) -> bx.Strategy:
    """HE-GP-UCB on the unit cube that has seen these points."""
    box = bx.Box([[0.0] * _DIM, [1.0] * _DIM], device=X.device)
    base = RBFKernel() if is_rbf else MaternKernel(nu=2.5)
    models = bx.CandidateModels.lengthscales(
        base, scales, noise_variance=_NOISE_VARIANCE, device=X.device
    )
    return bx.algorithms.he_gp_ucb(
        box, models, noise_std=0.1, width=_WIDTH, seed=seed, initial=(X, Y)
    )


def lengthscales(num_models: int) -> list[float]:
    """So many from 0.1 to 1.5."""
    return torch.logspace(math.log10(0.1), math.log10(1.5), num_models).tolist()


def _ask_both(
    X: Tensor, Y: Tensor, is_rbf: bool, scales: Sequence[float], seed: int
) -> tuple[float, float, float]:
    """Our value minus theirs, our seconds and theirs."""
    strategy = strategy_of_lengthscales(X, Y, is_rbf, scales, seed)
    bounds_of_cube = torch.stack([X.new_zeros(_DIM), X.new_ones(_DIM)])
    kind = rbf if is_rbf else matern
    bounds = []
    for scale in scales:
        model = single_task_gp(X, Y, kind(scale), _NOISE_VARIANCE)
        ucb = UpperConfidenceBound(model, beta=_WIDTH**2)
        with torch.no_grad():
            ucb(X[:1].unsqueeze(-2))  # fills the caches of the model
        bounds.append(ucb)
    torch.manual_seed(seed)
    found: list[Tensor] = []

    def ask() -> None:
        found.append(strategy.ask().x)

    def optimize() -> None:
        points = [
            optimize_acqf(ucb, bounds_of_cube, q=1, num_restarts=10, raw_samples=512)[0]
            for ucb in bounds
        ]
        with torch.no_grad():
            values = [float(ucb(x)) for ucb, x in zip(bounds, points, strict=True)]
        found.append(points[values.index(max(values))][0])

    times = seconds(ask, X.device), seconds(optimize, X.device)
    with torch.no_grad():
        points = torch.stack(found).unsqueeze(-2)
        ours, theirs = torch.stack([ucb(points) for ucb in bounds]).amax(dim=0).tolist()
    return ours - theirs, *times


def elimination_on_grid(options: Options) -> list[Row]:
    """A whole study of HE-GP-UCB on a finite set."""
    N, m, T = (100, 4, 20) if options.smoke else (2500, 32, 500)
    strategy, taken = study_on_grid(N, m, T, options.seed, options.device)
    alive = len(strategy.alive)
    what = f"HE-GP-UCB, N={N}, {m} models ({alive} alive at the end), T={T}: seconds of the method"
    return [fact_row(what, "", taken, "< 10", taken < 10)]


def study_on_grid(
    num_points: int, num_models: int, horizon: int, seed: int, device: torch.device
) -> tuple[bx.HyperparameterElimination, float]:
    """HE-GP-UCB at the end of a study, and the seconds it took."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(num_points, 2, dtype=torch.float64, generator=generator)
    domain = bx.FiniteSet(points, device=device)
    problem = RKHSFunction.random(domain, rbf(0.2).to(device), norm=2.0, noise_std=0.05, seed=seed)
    models = bx.CandidateModels.lengthscales(
        RBFKernel(),
        torch.logspace(-1, 0, num_models).tolist(),
        noise_variance=0.05**2,
        device=device,
    )
    strategy = bx.algorithms.he_gp_ucb(domain, models, noise_std=0.05, rkhs_bound=2.0)
    return strategy, bx.simulate(strategy, problem, horizon, seed=seed).seconds
