"""Questions in contexts: on a box, beside BoTorch."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.optim import optimize_acqf
from gpytorch.kernels import Kernel
from torch import Tensor
from tqdm import tqdm

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.performance.data import noisy_data, single_task_gp
from benchmarks.performance.speed_table import fact_row, ratio_row
from botorch_ext.kernels import ActionContextKernel

if TYPE_CHECKING:
    from botorch_ext.kernels.action_context import Combination

_NOISE_VARIANCE, _WIDTH = 1e-2, 2.0
_ACTIONS, _CONTEXTS = 4, 3


def asked_in_context(options: Options) -> list[Row]:
    """ask() of CGP-UCB on a box against optimize_acqf with the context fixed, value and time.

    Twenty problems each, as for EC-GP-UCB: RBF and Matern kernels of actions times, or plus, a
    Matern kernel of contexts, five lengthscales, data spread evenly and data gathered around a good
    pair.
    """
    return _asked("product", options) + _asked("sum", options)


def _asked(combination: Combination, options: Options) -> list[Row]:
    n, lengthscales = (40, (0.3,)) if options.smoke else (1000, (0.2, 0.3, 0.4, 0.6, 0.8))
    problems = list(itertools.product((rbf, matern), lengthscales, (False, True)))
    problems.insert(0, problems[0])  # not counted: the first call of everything
    differences, times = [], []
    for i, (kind, lengthscale, gathered) in enumerate(tqdm(problems, leave=False, unit="problem")):
        seed = 1000 * options.seed + i
        data = data_in_contexts(kind(lengthscale), combination, n, seed, gathered)
        difference, *both = _ask_both(*data, seed)
        differences.append(difference)
        times.append(both)
    del differences[0], times[0]
    higher, lower = (sum(sign * gain > 1e-6 for gain in differences) for sign in (1, -1))
    num, least = len(differences), min(differences)
    name = (
        f"ask() of CGP-UCB ({combination}) on a box, {_ACTIONS} action and {_CONTEXTS} context "
        f"columns, n={n}"
    )
    against = "optimize_acqf of FixedFeatureAcquisitionFunction, 10 restarts, 512 raw samples"
    what = (
        f"{name}: value minus the other's, least of {num} problems ({higher} higher, {lower} "
        f"lower, mean {statistics.fmean(differences):.2g})"
    )
    ours, theirs = (statistics.median(taken) for taken in zip(*times, strict=True))
    return [
        fact_row(what, against, least, ">= -1e-6", least >= -1e-6),
        ratio_row(f"{name}: time", against, ours, theirs, at_most=1.2),
    ]


def data_in_contexts(
    kernel: Kernel, combination: Combination, n: int, seed: int, gathered: bool
) -> tuple[Tensor, Tensor, ActionContextKernel]:
    """Observations of pairs of an action and a context, and the kernel of their function."""
    joint = ActionContextKernel(kernel, matern(0.6), _ACTIONS, _CONTEXTS, combination)
    device = torch.device("cpu")
    X, Y = noisy_data(n, _ACTIONS + _CONTEXTS, joint, seed, device, gathered)
    return X, Y, joint


def strategy_in_context(
    X: Tensor, Y: Tensor, kernel: ActionContextKernel, seed: int
) -> tuple[bx.Strategy, Tensor]:
    """CGP-UCB on the unit cube that has seen these pairs, and a context to ask in."""
    box = bx.Box([[0.0] * _ACTIONS, [1.0] * _ACTIONS])
    generator = torch.Generator().manual_seed(seed)
    context = torch.rand(_CONTEXTS, generator=generator, dtype=X.dtype)
    strategy = bx.algorithms.cgp_ucb(
        box, kernel, noise_variance=_NOISE_VARIANCE, width=_WIDTH, seed=seed, initial=(X, Y)
    )
    return strategy, context


def _ask_both(
    X: Tensor, Y: Tensor, kernel: ActionContextKernel, seed: int
) -> tuple[float, float, float]:
    """Our value minus theirs, our seconds and theirs."""
    strategy, context = strategy_in_context(X, Y, kernel, seed)
    bounds = torch.stack([X.new_zeros(_ACTIONS), X.new_ones(_ACTIONS)])
    ucb = UpperConfidenceBound(single_task_gp(X, Y, kernel, _NOISE_VARIANCE), beta=_WIDTH**2)
    columns = list(range(_ACTIONS, _ACTIONS + _CONTEXTS))
    fixed = FixedFeatureAcquisitionFunction(ucb, _ACTIONS + _CONTEXTS, columns, context)
    with torch.no_grad():
        fixed(X[:1, :_ACTIONS].unsqueeze(-2))  # fills the caches of the model
    torch.manual_seed(seed)
    found: list[Tensor] = []

    def ask() -> None:
        found.append(strategy.ask(context=context).x)

    def optimize() -> None:
        x, _ = optimize_acqf(fixed, bounds, q=1, num_restarts=10, raw_samples=512)
        found.append(x[0])

    times = seconds(ask, X.device), seconds(optimize, X.device)
    with torch.no_grad():
        ours, theirs = fixed(torch.stack(found).unsqueeze(-2)).tolist()
    return ours - theirs, *times
