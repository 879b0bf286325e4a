"""The runs of the comparison: a study, and a long run on its data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.test_functions import Branin, Hartmann, Levy
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from botorch_ext.hyperparameters.density import Density, split
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.moves import swept
from botorch_ext.hyperparameters.particles import Particles

FUNCTIONS = {
    "Branin": Branin(negate=True),
    "Hartmann6": Hartmann(dim=6, negate=True),
    "Levy20": Levy(dim=20, negate=True),
}
# Standard deviation of the noise in those of the function over its box.
_NOISE = 0.1
_NAMES = ("log lengthscales", "log noise", "log odds of smoothness")


@dataclass(frozen=True)
class Case:
    """One study.

    Args:
        function: Its name.
        num_trials: How many.
        seed: Of everything random.
        num_long: Particles of the long run.
        num_halves: Halves of them that move.
    """

    function: str
    num_trials: int
    seed: int
    num_long: int
    num_halves: int


@torch.no_grad()
def play(case: Case) -> Row:
    """Differences at the end of a study, in standard deviations of the long run."""
    function = FUNCTIONS[case.function].double()
    box = bx.Box(torch.as_tensor(function.bounds))
    noise = _NOISE * float(function(box.sample(1024, 0)).std())
    strategy = bx.algorithms.integrated_ei(box, seed=case.seed)
    generator = torch.Generator().manual_seed(case.seed)
    for _ in range(case.num_trials):
        trial = strategy.ask()
        error = noise * float(torch.randn((), generator=generator, dtype=torch.float64))
        strategy.tell(trial.id, float(function(trial.x.unsqueeze(0))) + error)
    short = strategy.posterior
    inputs, outcomes = short.inputs, short.outcomes
    data = inputs.features(short.joint), outcomes.values
    # Modes that hold next to nothing are resampled away, which trajectories alone never leave.
    start = Particles(case.num_long).started(*data, None, case.seed)
    density = Density(*data, strategy.particles.prior)
    parameters, _ = swept(density, start.parameters, start.values, case.num_halves, generator)
    exact = Ensemble.of(parameters, inputs, short.joint, outcomes)
    row: Row = {"function": case.function, "method": "particles", "seed": case.seed}
    for name, ours, theirs in zip(_NAMES, split(short.parameters), split(parameters), strict=True):
        gap = (ours.mean(dim=0) - theirs.mean(dim=0)) / theirs.std(dim=0)
        row[name] = float(gap.mean())
        row[f"sd of {name}"] = float((ours.std(dim=0) / theirs.std(dim=0)).mean())
    row |= _predictions(short, exact, box.sample(256, case.seed))
    return row


def _predictions(short: Ensemble, exact: Ensemble, X: Tensor) -> Row:
    (mean, std), (exact_mean, exact_std) = short.mean_and_std(X), exact.mean_and_std(X)
    return {
        "predicted mean": float(((mean - exact_mean) / exact_std).abs().mean()),
        "predicted sd": float((std / exact_std).mean()),
    }
