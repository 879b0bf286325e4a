"""Contextual studies of the size of the two of Krause and Ong 2011, on made-up data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from gpytorch.kernels import MaternKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.measured.best_binder import BestBinder
from benchmarks.measured.binding_affinities import synthetic_binding_affinities
from benchmarks.measured.temperatures import synthetic_temperatures
from benchmarks.performance.speed_table import fact_row
from botorch_ext.kernels import TaskKernel
from botorch_ext.strategies import ContextwiseStrategy, Strategy

if TYPE_CHECKING:
    from botorch_ext.kernels.action_context import Combination

_NOISE_VARIANCE, _WIDTH = 1e-2, 2.0
_READINGS = 5


def sensors(options: Options) -> list[Row]:
    """Which of 50 sensors to read, five times each half-hour, as Krause and Ong 2011 do."""
    num_steps = 10 if options.smoke else 192
    rows = []
    for combination in ("product", "sum"):
        study = SensorStudy(combination, options.seed)
        taken = study.seconds(num_steps)
        what = (
            f"CGP-UCB ({combination}), {len(study.values)} sensors, {num_steps} steps x "
            f"{_READINGS} readings: seconds"
        )
        rows.append(fact_row(what, "", taken, "< 30", taken < 30))
    return rows


class SensorStudy:
    """CGP-UCB on made-up sensors, read from the second day on.

    Args:
        combination: Of the kernels of sensors and of times.
        seed: Of the temperatures.
    """

    def __init__(self, combination: Combination, seed: int) -> None:
        values = synthetic_temperatures(seed=seed).values
        training = values[:, :48]
        self.values = (values - training.mean()) / training.std()
        self.correlation = torch.corrcoef(training)
        self.combination: Combination = combination

    def seconds(self, num_steps: int) -> float:
        """What so many steps take."""
        days, hours = (MaternKernel(nu=2.5, active_dims=(column,)).double() for column in (0, 1))
        days.lengthscale, hours.lengthscale = 1.0, 3.0
        numbers = torch.arange(float(len(self.values)), dtype=torch.float64)
        domain = bx.FiniteSet(numbers.unsqueeze(-1))
        strategy = bx.algorithms.cgp_ucb(
            domain,
            action_kernel=TaskKernel(self.correlation),
            context_kernel=days * hours,
            combination=self.combination,
            noise_variance=_NOISE_VARIANCE,
            width=_WIDTH,
        )
        return seconds(lambda: self._read(strategy, num_steps), domain.device)

    def _read(self, strategy: Strategy, num_steps: int) -> None:
        for column in range(48, 48 + num_steps):
            context = [column / 48, column % 48 / 2]  # days and the hour of the day
            for _ in range(_READINGS):
                trial = strategy.ask(context=context)
                strategy.tell(trial.id, float(self.values[trial.info["index"], column]))


def peptides(options: Options) -> list[Row]:
    """Which peptide to test, for seven molecules after each other, as Krause and Ong 2011 do."""
    num_peptides, num_trials = (60, 5) if options.smoke else (1500, 50)
    rows = []
    for num_columns in (45, None):
        study = PeptideStudy(num_peptides, num_columns, options.seed)
        taken = {name: study.seconds(name, num_trials) for name in OF_PEPTIDES}
        each = ", ".join(f"{name} {value:.3g}" for name, value in taken.items())
        what = (
            f"7 molecules x {num_trials} trials, {num_peptides} peptides each with "
            f"{study.domain.dim} features, three methods: seconds ({each})"
        )
        total = sum(taken.values())
        rows.append(fact_row(what, "", total, "< 30", total < 30))
    return rows


class PeptideStudy:
    """Made-up peptides, which are tested molecule after molecule.

    Args:
        num_peptides: For each molecule.
        num_columns: Features of a peptide, mixed at random; None for all of them.
        seed: Of everything random.
    """

    def __init__(self, num_peptides: int, num_columns: int | None, seed: int) -> None:
        self.data = synthetic_binding_affinities(num_peptides, seed=seed)
        problem = BestBinder(self.data)
        self.features = [problem.actions(molecule) for molecule in range(len(self.data.rewards))]
        if num_columns is not None:
            size = self.features[0].shape[1]
            generator = torch.Generator().manual_seed(seed)
            mixed = torch.randn(size, num_columns, generator=generator, dtype=torch.float64)
            self.features = [own @ mixed / size**0.5 for own in self.features]
        self.domain = bx.FiniteSet(torch.cat(self.features))

    def seconds(self, method: str, num_trials: int) -> float:
        """What so many trials with each molecule take a method, a key of `OF_PEPTIDES`."""
        strategy = OF_PEPTIDES[method](self.domain, self.data.similarity)
        return seconds(lambda: self._test(strategy, num_trials), self.domain.device)

    def _test(self, strategy: Strategy, num_trials: int) -> None:
        parts = zip(self.features, self.data.rewards, strict=True)
        for molecule, (own, measured) in enumerate(parts):
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


OF_PEPTIDES = {
    "CGP-UCB": _of_contexts,
    "one GP-UCB": _merged,
    "a GP-UCB for each": _one_per_context,
}
