"""Seven studies whose pages differ in what is on them."""

import random
from collections.abc import Callable
from math import log10
from pathlib import Path

import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from tests.studies.kept import BOX, gp_bucb
from tests.studies.pages import played

PARAMETERS = {
    "temperature": bx.Real(20, 80, unit="°C", digits=1),
    "catalyst": bx.Real(1e-4, 1e-1, log=True, unit="mol/l"),
    "equivalents": bx.Integer(1, 5),
    "solvent": bx.Choice(["water", "dimethylformamide", "dimethyl sulfoxide"]),
}


def reaction() -> bx.strategies.Strategy:
    """A method that costs little, on parameters of all kinds."""
    space = bx.Space(PARAMETERS, constraints=["0.5 * equivalents + temperature <= 75"])
    kernel = RBFKernel(ard_num_dims=4)
    kernel.lengthscale = torch.tensor([[20.0, 0.03, 2.0, 0.8]])
    return bx.algorithms.gp_bucb(space, kernel, noise_variance=0.01, width=2.0)


def yield_of(params: dict, rng: random.Random) -> float:
    """A share without unit, with noise."""
    mean = -(((params["temperature"] - 48) / 9) ** 2) - 9 * (log10(params["catalyst"]) + 2.4) ** 2
    solvent = {"water": -6, "dimethylformamide": 0}.get(params["solvent"], 4)
    return (mean + solvent - abs(params["equivalents"] - 3)) / 20 + rng.gauss(0, 0.1)


def mixed(path: Path) -> bx.Study:
    """Parameters of all kinds in batches of four, the last of which pends."""
    rng, study = random.Random(1), bx.Study(path, reaction(), objective="yield", unit="%")
    for _ in range(4):
        for trial in study.ask(4):
            study.tell(trial, yield_of(trial.params, rng))
    study.ask(4)
    return study


def late(path: Path) -> bx.Study:
    """Values in any order, and a long name of the study."""
    study = bx.Study(path, gp_bucb(), name="values that come late, of a week in November" * 3)
    return played(study, 24, failing=0.0)


def failures(path: Path) -> bx.Study:
    """Trials that fail, one that is dropped, a result of somebody else, and a correction."""
    study = played(bx.Study(path, gp_bucb()), 20, failing=0.4)
    study.abandon(study.ask())
    study.attach([0.5, 2.5], 0.75)
    study.correct(study.strategy.history.attached[0], 0.5)
    return study


def contexts(path: Path) -> bx.Study:
    """Three contexts in turn."""
    rng, kernel = random.Random(4), RBFKernel()
    kernel.lengthscale = 1.0
    numbers = {"noise_variance": 0.01, "width": 2.0}
    strategy = bx.algorithms.gp_bucb(BOX, kernel, context_domain=bx.Box([(0.0, 9.0)]), **numbers)
    study = bx.Study(path, strategy)
    for i in range(18):
        trial = study.ask(context=[[1.0, 4.0, 8.0][i % 3]])
        study.tell(trial, -float(trial.x[0] ** 2) + i % 3 + rng.gauss(0, 0.1))
    return study


def candidate_models(path: Path) -> bx.Study:
    """Four lengthscales."""
    models = bx.CandidateModels.lengthscales(RBFKernel(), [0.1, 0.3, 0.6, 2.0], 0.01)
    strategy = bx.algorithms.he_gp_ucb(BOX, models, rkhs_bound=0.5, noise_std=0.03, delta=0.1)
    return played(bx.Study(path, strategy), 14)


def thousand(path: Path) -> bx.Study:
    """A thousand results of before, and two trials."""
    rng, study = random.Random(6), bx.Study(path, reaction())
    space = study.strategy.domain
    assert isinstance(space, bx.Space)
    rows = [space.params(x) for x in space.sample(998, seed=3)]
    study.attach([params | {"value": yield_of(params, rng)} for params in rows])
    for trial in study.ask(2):
        study.tell(trial, yield_of(trial.params, rng))
    return study


def minimising(path: Path) -> bx.Study:
    """Costs, of six parameters with long names."""
    names = [f"length of the {i}th segment of the beam" for i in range(6)]
    space = bx.Space({name: bx.Real(-2, 3, unit="mm") for name in names})
    kernel = RBFKernel()
    kernel.lengthscale = 3.0
    strategy = bx.algorithms.gp_bucb(space, kernel, noise_variance=0.01, width=2.0)
    study = bx.Study(path, strategy, minimize=True, objective="cost", unit="€")
    for trial in study.ask(12):
        study.tell(trial, float((trial.x - 0.4).square().sum()) / 30)
    return study


STUDIES: tuple[Callable[[Path], bx.Study], ...] = (
    *(mixed, late, failures, contexts, candidate_models, thousand, minimising),
)
