"""Samplers of the benchmark: each a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from botorch_ext.integrations.optuna import StrategySampler

OURS = ("integrated_ei", "gp_bucb")


@dataclass(frozen=True)
class Sampler:
    """A sampler and what it was made of.

    Args:
        make: From a seed and the number of first points, which are enqueued.
        settings: Whatever changes its answers. Rows of other settings are stale.
    """

    make: Callable[..., BaseSampler]
    settings: str


def _ours(algorithm: str, revision: int) -> Sampler:
    """``revision`` is raised when the sampler's answers change."""

    def make(seed: int, n_startup_trials: int) -> BaseSampler:
        return StrategySampler(algorithm, seed=seed, num_initial=0)

    return Sampler(make, f"revision {revision}")


def _optuna(sampler: type[Any]) -> Sampler:
    return Sampler(sampler, f"optuna {optuna.__version__}")


def _random(seed: int, n_startup_trials: int) -> BaseSampler:
    return RandomSampler(seed)


SAMPLERS = {
    "integrated_ei": _ours("integrated_ei", 1),
    "gp_bucb": _ours("gp_bucb", 1),
    "GPSampler": _optuna(GPSampler),
    "TPESampler": _optuna(TPESampler),
    "random": Sampler(_random, f"optuna {optuna.__version__}"),
}
