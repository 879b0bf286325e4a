"""Questions in contexts: on a box beside BoTorch, and studies of the size of the paper's two."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.optim import optimize_acqf
from gpytorch.kernels import MaternKernel
from torch import Tensor
from tqdm import tqdm

import botorch_ext as bx
from benchmarks._harness import Options, Row, seconds
from benchmarks.performance._models import matern, noisy_data, rbf, single_task_gp
from benchmarks.performance._rows import fact_row, ratio_row
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.kernels.action_context import Combination
from botorch_ext.problems import synthetic_binding_affinities, synthetic_temperatures
from botorch_ext.problems.real_data.peptides import peptide_features
from botorch_ext.strategies import ContextwiseStrategy, Strategy

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
        parts = kind(lengthscale), matern(0.6)
        kernel = ActionContextKernel(*parts, _ACTIONS, _CONTEXTS, combination)
        seed = 1000 * options.seed + i
        dim = _ACTIONS + _CONTEXTS
        X, Y = noisy_data(n, dim, kernel, seed, torch.device("cpu"), gathered)
        difference, *both = _ask_both(X, Y, kernel, seed)
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


def _ask_both(
    X: Tensor, Y: Tensor, kernel: ActionContextKernel, seed: int
) -> tuple[float, float, float]:
    """Our value minus theirs, our seconds and theirs, on the unit cube."""
    box = bx.Box([[0.0] * _ACTIONS, [1.0] * _ACTIONS])
    generator = torch.Generator().manual_seed(seed)
    context = torch.rand(_CONTEXTS, generator=generator, dtype=X.dtype)
    strategy = bx.algorithms.cgp_ucb(
        box, kernel, noise_variance=_NOISE_VARIANCE, width=_WIDTH, seed=seed, initial=(X, Y)
    )
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
        x, _ = optimize_acqf(fixed, box.bounds, q=1, num_restarts=10, raw_samples=512)
        found.append(x[0])

    times = seconds(ask, X.device), seconds(optimize, X.device)
    with torch.no_grad():
        ours, theirs = fixed(torch.stack(found).unsqueeze(-2)).tolist()
    return ours - theirs, *times


def sensors(options: Options) -> list[Row]:
    """Which of 50 sensors to read, five times each half-hour, as in the paper's study."""
    num_steps, num_readings = (10, 5) if options.smoke else (192, 5)
    values = synthetic_temperatures(seed=options.seed).values
    training = values[:, :48]
    values = (values - training.mean()) / training.std()
    days, hours = (MaternKernel(nu=2.5, active_dims=(column,)).double() for column in (0, 1))
    days.lengthscale, hours.lengthscale = 1.0, 3.0
    domain = bx.FiniteSet(torch.arange(float(len(values)), dtype=torch.float64).unsqueeze(-1))
    rows = []
    for combination in ("product", "sum"):
        strategy = bx.algorithms.cgp_ucb(
            domain,
            action_kernel=TaskKernel(torch.corrcoef(training)),
            context_kernel=days * hours,
            combination=combination,
            noise_variance=_NOISE_VARIANCE,
            width=_WIDTH,
        )
        taken = seconds(lambda s=strategy: _read(s, values, num_steps, num_readings), domain.device)
        what = (
            f"CGP-UCB ({combination}), {len(values)} sensors, {num_steps} steps x {num_readings} "
            "readings: seconds"
        )
        rows.append(fact_row(what, "", taken, "< 30", taken < 30))
    return rows


def _read(strategy: Strategy, values: Tensor, num_steps: int, num_readings: int) -> None:
    for column in range(48, 48 + num_steps):
        context = [column / 48, column % 48 / 2]  # days and the hour of the day
        for _ in range(num_readings):
            trial = strategy.ask(context=context)
            strategy.tell(trial.id, float(values[trial.info["index"], column]))


def peptides(options: Options) -> list[Row]:
    """Which peptide to test, for seven molecules after each other, as in the paper's study."""
    num_peptides, num_trials = (60, 5) if options.smoke else (1500, 50)
    data = synthetic_binding_affinities(num_peptides, seed=options.seed)
    all_features = [peptide_features(own) for own in data.peptides]
    num_columns = all_features[0].shape[1]
    generator = torch.Generator().manual_seed(options.seed)
    mixed = torch.randn(num_columns, 45, generator=generator, dtype=torch.float64)
    few_features = [own @ mixed / num_columns**0.5 for own in all_features]
    rows = []
    for features in (few_features, all_features):
        domain = bx.FiniteSet(torch.cat(features))
        taken = {}
        for name, make in _OF_PEPTIDES.items():
            strategy = make(domain, data.similarity)
            taken[name] = seconds(
                lambda s=strategy, features=features: _test(s, features, data.rewards, num_trials),
                domain.device,
            )
        each = ", ".join(f"{name} {value:.3g}" for name, value in taken.items())
        what = (
            f"7 molecules x {num_trials} trials, {num_peptides} peptides each with {domain.dim} "
            f"features, three methods: seconds ({each})"
        )
        total = sum(taken.values())
        rows.append(fact_row(what, "", total, "< 30", total < 30))
    return rows


def _test(
    strategy: Strategy, features: Sequence[Tensor], rewards: Sequence[Tensor], num_trials: int
) -> None:
    for molecule, (own, measured) in enumerate(zip(features, rewards, strict=True)):
        context = None if strategy.context_space is None else float(molecule)
        left = list(range(len(own)))  # none is tested twice
        for _ in range(num_trials):
            trial = strategy.ask(context=context, actions=own[left])
            strategy.tell(trial.id, float(measured[left.pop(trial.info["action"])]))


def _of_contexts(domain: bx.FiniteSet, similarity: Tensor) -> Strategy:
    return bx.algorithms.cgp_ucb(
        domain,
        action_kernel=rbf(1.0),
        context_kernel=TaskKernel(similarity),
        noise_variance=_NOISE_VARIANCE,
        width=_WIDTH,
    )


def _merged(domain: bx.FiniteSet, similarity: Tensor) -> Strategy:
    return bx.algorithms.gp_ucb(domain, rbf(1.0), noise_variance=_NOISE_VARIANCE, width=_WIDTH)


def _one_per_context(domain: bx.FiniteSet, similarity: Tensor) -> Strategy:
    bases = [_merged(domain, similarity) for _ in similarity]
    return ContextwiseStrategy(bases, key=lambda context: int(context[0]), context_domain=1)


_OF_PEPTIDES = {
    "CGP-UCB": _of_contexts,
    "one GP-UCB": _merged,
    "a GP-UCB for each": _one_per_context,
}
