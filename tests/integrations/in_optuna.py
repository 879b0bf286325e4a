"""What the tests of Optuna share: a space, an objective, and strategies that are asked by hand."""

from __future__ import annotations

from typing import Any

import optuna
from gpytorch.kernels import RBFKernel
from optuna.distributions import FloatDistribution

import botorch_ext as bx
from botorch_ext.integrations.optuna import StrategySampler

optuna.logging.set_verbosity(optuna.logging.ERROR)

FIXED = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 2.0, "num_initial": 3}
SPACE = {"a": FloatDistribution(2.0, 5.0), "b": FloatDistribution(-1.0, 3.0)}


def bowl(trial: Any) -> float:
    a, b = trial.suggest_float("a", 2.0, 5.0), trial.suggest_float("b", -1.0, 3.0)
    return 0.2 * (a - 3.2) ** 2 + 0.2 * (b - 0.4) ** 2


def sampler(name: str = "gp_bucb", **more: Any) -> StrategySampler:
    return StrategySampler(name, **(FIXED | {"search_space": SPACE} | more))


def by_hand() -> bx.Strategy:
    return bx.algorithms.gp_bucb(bx.Box([[2.0, -1.0], [5.0, 3.0]]), **FIXED)
