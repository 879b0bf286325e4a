"""Peptides and molecules: the models, and the runs of one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import IndexKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.contexts.sensors import MAIN
from benchmarks.measured.best_binder import BestBinder
from benchmarks.measured.binding_affinities import (
    BindingAffinities,
    load_binding_affinities,
    synthetic_binding_affinities,
)
from benchmarks.measured.fitted_kernels import FittedModel
from benchmarks.measured.fitted_models import fit_binding_affinities
from botorch_ext.strategies import ContextwiseStrategy, RandomSearch

CGP, MERGED, SEPARATE, RANDOM = "CGP-UCB", "merged", "one per molecule", "random"
PEPTIDE_METHODS = (CGP, MERGED, SEPARATE, RANDOM)

TRIALS = 50
# Strongly correlated, Krause and Ong 2011 say of the first three.
ALIKE = 3


@dataclass(frozen=True)
class PeptideSetting:
    """How the methods are played.

    Args:
        title: For the tables.
        width: The constant width of all methods.
        methods: Those that it concerns.
        once: Whether a peptide can be measured only once with a molecule.
        model: The name in `_Models` of the product kernel.
        merged_model: The name of the model without molecules.
    """

    title: str
    width: float = 2.0
    methods: tuple[str, ...] = PEPTIDE_METHODS
    once: bool = True
    model: str = "product"
    merged_model: str = "merged"


PEPTIDE_SETTINGS: Mapping[str, PeptideSetting] = {
    MAIN: PeptideSetting("width 2, a peptide is measured once"),
    "width 1": PeptideSetting("width 1, a peptide is measured once", width=1.0),
    "repeats": PeptideSetting("width 2, a peptide can be measured again", once=False),
    "learned": PeptideSetting(
        "CGP-UCB: learned covariance of the molecules", methods=(CGP,), model="learned"
    ),
    "shared model": PeptideSetting(
        "merged: lengthscale and noise of the product model",
        methods=(MERGED,),
        merged_model="shared",
    ),
}


def peptide_data(folder: Path, smoke: bool) -> BindingAffinities:
    """The tables of the data folder, or small ones that are made up.

    Raises:
        FileNotFoundError: They are not in the folder.
    """
    if smoke:
        return synthetic_binding_affinities(num_peptides=25)
    path, pockets = (
        folder / "mhc" / name for name in ("binding_affinity.csv", "pocket_residues.csv")
    )
    for file in (path, pockets):
        if not file.is_file():
            raise FileNotFoundError(
                f"no {file}: pass --data FOLDER, where FOLDER holds mhc/binding_affinity.csv and "
                "mhc/pocket_residues.csv, or --smoke, which does without"
            )
    return load_binding_affinities(path, pockets)


@dataclass(frozen=True)
class PeptideCase:
    """All runs of one seed.

    Args:
        affinities: The measurements.
        seed: Of the examples that the models are fitted to, of the order of the peptides, in which
            ties are broken, and of random play.
        num_examples: To fit the models to.
        trials: With each molecule.
        settings: Keys of `PEPTIDE_SETTINGS`.
    """

    affinities: BindingAffinities
    seed: int
    num_examples: int = 1000
    trials: int = TRIALS
    settings: tuple[str, ...] = tuple(PEPTIDE_SETTINGS)


@dataclass(frozen=True)
class _Models:
    """The models of one seed, fitted when they are first needed."""

    case: PeptideCase

    def _fitted(self, **options: Any) -> FittedModel:
        case = self.case
        return fit_binding_affinities(
            case.affinities,
            num_examples=case.num_examples,
            seed=case.seed,
            **options,
        )

    @cached_property
    def product(self) -> FittedModel:
        return self._fitted()

    @cached_property
    def merged(self) -> FittedModel:
        return self._fitted(by_molecule=False)

    @cached_property
    def shared(self) -> FittedModel:
        """The product model for a single molecule."""
        product = self.product
        kernel = product.kernel.action_kernel
        return FittedModel(kernel, product.noise_variance, product.scaling, product.log_likelihood)

    @cached_property
    def learned(self) -> FittedModel:
        """With the covariance of the molecules learned from the same examples: what the shared
        residues could have said."""
        affinities = self.case.affinities
        number = len(affinities.molecules)
        tasks = IndexKernel(number, rank=number).to(torch.float64)
        with torch.no_grad():
            tasks.covar_factor.copy_(torch.linalg.cholesky(affinities.similarity))
        tasks.var = torch.full((number,), 0.1)
        return self._fitted(molecule_kernel=tasks)


def run_peptides(case: PeptideCase) -> list[Row]:
    """Plays all methods in all settings.

    Returns:
        A row for each run: its scores, and lists that are no columns of a table: ``regret``, of
        each trial, against the best peptide of the molecule, and ``gap``, ``molecules x trials``,
        the same of the best peptide so far.
    """
    affinities = _shuffled(case.affinities, case.seed)
    models = _Models(case)
    return [
        _run(case, affinities, models, name, method)
        for name in case.settings
        for method in PEPTIDE_SETTINGS[name].methods
    ]


def _shuffled(affinities: BindingAffinities, seed: int) -> BindingAffinities:
    """The same with the peptides of each molecule in random order."""
    rng = np.random.default_rng([seed, 1])
    orders = [torch.from_numpy(rng.permutation(len(own))) for own in affinities.peptides]
    pairs = zip(affinities.peptides, affinities.rewards, orders, strict=True)
    shuffled = [(tuple(own[i] for i in order), rewards[order]) for own, rewards, order in pairs]
    peptides, rewards = zip(*shuffled, strict=True)
    return BindingAffinities(
        affinities.molecules, peptides, rewards, affinities.pockets, affinities.synthetic
    )


def _run(
    case: PeptideCase, affinities: BindingAffinities, models: _Models, name: str, method: str
) -> Row:
    setting = PEPTIDE_SETTINGS[name]
    # Fitting is not playing.
    model: FittedModel = getattr(
        models, setting.merged_model if method == MERGED else setting.model
    )
    problem = BestBinder(affinities, model.scaling)
    strategy = _strategy(setting, method, model, problem, case.seed)
    molecules = torch.arange(len(affinities.molecules)).repeat_interleave(case.trials)
    trace = bx.simulate(
        strategy,
        problem,
        len(molecules),
        contexts=molecules.unsqueeze(-1).to(torch.float64),
        actions=_actions(strategy, problem, case.trials, setting.once),
        seed=case.seed,
    )
    values = model.scaling.center + model.scaling.scale * trace.values
    best = torch.stack([rewards.max() for rewards in affinities.rewards])
    regret = (best[molecules] - values).reshape(-1, case.trials)  # (molecules, trials)
    gap = regret.cummin(dim=1).values
    row: Row = {"setting": name, "method": method, "seed": case.seed}
    row |= {
        "regret": float(regret.mean()),
        "regret_alike": float(regret[:ALIKE].mean()),
        "regret_fourth": float(regret[ALIKE].mean()),
        "regret_others": float(regret[ALIKE:].mean()),
        "worst_gap": float(gap.max(dim=0).values.mean()),
        "worst_gap_at_half": float(gap.max(dim=0).values[case.trials // 2 - 1]),
        "worst_gap_at_end": float(gap.max(dim=0).values[-1]),
    }
    row |= {f"regret_{i + 1}": float(each.mean()) for i, each in enumerate(regret)}
    return row | {"curve": regret.flatten().tolist(), "gaps": gap.tolist()}


def _strategy(
    setting: PeptideSetting, method: str, model: FittedModel, problem: BestBinder, seed: int
) -> bx.Strategy:
    domain = problem.domain
    common: dict[str, Any] = {
        "noise_variance": model.noise_variance,
        "width": setting.width,
        "seed": seed,
    }
    match method:
        case "CGP-UCB":
            return bx.algorithms.cgp_ucb(domain, model.kernel, context_domain=1, **common)
        case "merged":
            return bx.algorithms.gp_ucb(domain, model.kernel, **common)
        case "one per molecule":
            kernel = model.kernel.action_kernel
            number = len(problem.affinities.molecules)
            bases = [bx.algorithms.gp_ucb(domain, kernel, **common) for _ in range(number)]
            return ContextwiseStrategy(bases, lambda z: int(z), context_domain=1)
        case "random":
            return RandomSearch(domain, seed)
    raise ValueError(f"method must be one of {PEPTIDE_METHODS}, got {method!r}")


def _actions(
    strategy: bx.Strategy, problem: BestBinder, trials: int, once: bool
) -> Callable[[int], Tensor]:
    """The peptides of the molecule of a trial, with ``once`` those not yet measured with it."""
    number = len(problem.affinities.molecules)
    of_molecule = [torch.tensor(problem.rows(molecule)) for molecule in range(number)]

    def actions(evaluation: int) -> Tensor:
        molecule, before = divmod(evaluation, trials)
        rows = of_molecule[molecule]
        if once and before:
            measured = [trial.info["index"] for trial in strategy.history.trials[-before:]]
            rows = rows[~torch.isin(rows, torch.tensor(measured))]
        return problem.domain.like[rows]

    return actions
