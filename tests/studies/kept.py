"""What the tests of studies that are kept share: strategies, and what is done to studies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext.strategies import Strategy

PARAMETERS = {
    "temperature": bx.Real(20, 80, unit="°C", digits=1),
    "catalyst": bx.Real(1e-4, 1.0, log=True, unit="mol/l"),
    "equivalents": bx.Integer(1, 5),
    "solvent": bx.Choice(["water", "ethanol", "dmso"]),
}
SPACE = bx.Space(PARAMETERS)
BOX = bx.Box([(-1.0, 1.0), (2.0, 5.0)])
POINTS = bx.FiniteSet(BOX.sample(40, seed=1))


def kernel(lengthscale: float = 0.7) -> ScaleKernel:
    inner = MaternKernel(nu=2.5, ard_num_dims=2)
    inner.lengthscale = torch.tensor([[lengthscale, 1.3]])
    outer = ScaleKernel(inner)
    outer.outputscale = 0.9
    return outer


def gp_bucb(lengthscale: float = 0.7, **options: Any) -> Strategy:
    numbers = {"noise_variance": 0.01, "width": 2.0} | options
    return bx.algorithms.gp_bucb(BOX, kernel(lengthscale), **numbers)


def on_a_set(**options: Any) -> Strategy:
    """Has a model, and asks that cost little."""
    numbers = {"noise_variance": 0.01, "width": 2.0} | options
    return bx.algorithms.gp_bucb(POINTS, kernel(), **numbers)


def at_random(seed: int = 0) -> Strategy:
    """Asks that cost nothing."""
    return bx.strategies.RandomSearch(BOX, seed=seed)


def answer_of_a_fork(work: Callable[[], Any], folder: Path) -> Any:
    """What ``work`` returns in a process of its own, through JSON."""
    path = folder / "answer.json"
    wait_for(in_a_fork(lambda: path.write_text(json.dumps(work()))))
    return json.loads(path.read_text())


def failing(row: Row) -> list[str]:
    """What must hold and does not."""
    return [name for name, value in row.items() if value is False]
