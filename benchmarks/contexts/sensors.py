"""Sensors of a building: the models, and one run of one method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.measured.fitted_kernels import FittedModel, fit_kernel
from benchmarks.measured.fitted_models import fit_temperatures, time_of_day_kernel
from benchmarks.measured.hottest_sensor import HottestSensor
from benchmarks.measured.temperatures import (
    STEPS_PER_DAY,
    Temperatures,
    load_temperatures,
    synthetic_temperatures,
)
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.strategies import ContextwiseStrategy, RandomSearch

PRODUCT, ADDITIVE = "CGP-UCB, product", "CGP-UCB, additive"
MERGED, SEPARATE, RANDOM = "merged", "one per half-hour", "random"
SENSOR_METHODS = (PRODUCT, ADDITIVE, MERGED, SEPARATE, RANDOM)

READINGS = 5
# "The first few timesteps" of Krause and Ong 2011: six hours. Fixed before anything was played.
FIRST_STEPS = 12
_TRAINING_DAYS = 1
# Random readings of the training part for what has no Kronecker structure.
_NUM_EXAMPLES = 800

MAIN = "main"


@dataclass(frozen=True)
class SensorSetting:
    """How the methods are played.

    Args:
        title: For the tables.
        width: The constant width of all methods.
        methods: Those that it concerns.
        model: The key in `fit_sensor_models` of the product kernel, and of what is played in one
            instance per half-hour.
        merged_model: The key of the model without contexts.
        different: Whether the readings of a step must be of different sensors.
    """

    title: str
    width: float = 2.0
    methods: tuple[str, ...] = SENSOR_METHODS
    model: str = "2 days"
    merged_model: str = "merged"
    different: bool = False


SENSOR_SETTINGS: Mapping[str, SensorSetting] = {
    MAIN: SensorSetting("width 2, day lengthscale 2 days"),
    "width 1": SensorSetting("width 1", width=1.0),
    "different": SensorSetting("five different sensors in a step", different=True),
    "1 day": SensorSetting("day lengthscale 1 day", methods=(PRODUCT,), model="1 day"),
    "5 days": SensorSetting("day lengthscale 5 days", methods=(PRODUCT,), model="5 days"),
    "hour alone": SensorSetting("time of day alone", methods=(PRODUCT,), model="hour alone"),
    "time alone": SensorSetting("time alone", methods=(PRODUCT,), model="time alone"),
    "shared model": SensorSetting(
        "merged: sensors and noise of the product model", methods=(MERGED,), merged_model="shared"
    ),
}

_TIME_KERNELS: Mapping[str, Callable[[], Kernel]] = {
    "2 days": lambda: time_of_day_kernel(2.0),
    "1 day": lambda: time_of_day_kernel(1.0),
    "5 days": lambda: time_of_day_kernel(5.0),
    "hour alone": lambda: MaternKernel(nu=2.5, active_dims=(1, 2)),
    "time alone": lambda: MaternKernel(nu=2.5, active_dims=(0,)),
}


def sensor_data(folder: Path, smoke: bool) -> Temperatures:
    """The table of the data folder, or a small one that is made up.

    Raises:
        FileNotFoundError: There is no table in the folder.
    """
    if smoke:
        return synthetic_temperatures(num_sensors=4, num_days=3)
    path = folder / "intel_lab" / "temperature.csv"
    if not path.is_file():
        raise FileNotFoundError(
            f"no {path}: pass --data FOLDER, where FOLDER holds intel_lab/temperature.csv, or "
            "--smoke, which does without"
        )
    return load_temperatures(path)


@dataclass(frozen=True)
class SensorFit:
    """A model to fit: a key of `_TIME_KERNELS`, on the training part, with so many factors."""

    name: str
    training: Temperatures
    rank: int


def sensor_fits(data: Temperatures, settings: Sequence[str]) -> list[SensorFit]:
    """What has to be fitted for these settings; the model of the main one comes first."""
    training = data.days(0, _TRAINING_DAYS)
    rank = min(8, data.num_sensors // 4)
    names = dict.fromkeys(SENSOR_SETTINGS[setting].model for setting in settings)
    return [SensorFit(name, training, rank) for name in names]


def run_sensor_fit(fit: SensorFit) -> FittedModel:
    """The fitted model."""
    kernel = _TIME_KERNELS[fit.name]()
    return fit_temperatures(fit.training, time_kernel=kernel, rank=fit.rank)


def other_sensor_models(product: FittedModel, data: Temperatures) -> dict[str, FittedModel]:
    """The additive model and those without contexts; the correlation of the sensors is that of the
    product model, as one day has a single draw of what does not change in time."""
    problem = HottestSensor(data.days(0, _TRAINING_DAYS))
    rows = torch.cartesian_prod(torch.arange(data.num_sensors), torch.arange(len(problem.contexts)))
    generator = torch.Generator().manual_seed(0)
    rows = rows[torch.randperm(len(rows), generator=generator)[:_NUM_EXAMPLES]]
    X = torch.cat([rows[:, :1].to(torch.float64), problem.contexts[rows[:, 1]]], dim=-1)
    Y = problem(X)
    sensors = TaskKernel(product.kernel.action_kernel.covariance)
    parts = ScaleKernel(sensors), ScaleKernel(time_of_day_kernel())
    additive = ActionContextKernel(*parts, 1, combination="sum")
    shared = FittedModel(sensors, product.noise_variance, product.scaling, product.log_likelihood)
    return {
        "additive": fit_kernel(additive, X, Y),
        "merged": fit_kernel(sensors, X[:, :1], Y),
        "shared": shared,
    }


@dataclass(frozen=True)
class SensorCase:
    """One run.

    Args:
        setting: A key of `SENSOR_SETTINGS`.
        method: One of its methods.
        seed: Of the first reading, and of random play.
        models: All fitted models.
        played: The temperatures after the training part.
    """

    setting: str
    method: str
    seed: int
    models: Mapping[str, FittedModel]
    played: Temperatures


def sensor_cases(
    models: Mapping[str, FittedModel],
    data: Temperatures,
    seeds: Sequence[int],
    settings: Sequence[str],
) -> list[SensorCase]:
    """All runs."""
    played = data.days(_TRAINING_DAYS, data.num_days)
    return [
        SensorCase(setting, method, seed, models, played)
        for setting in settings
        for method in SENSOR_SETTINGS[setting].methods
        for seed in seeds
    ]


def run_sensors(case: SensorCase) -> Row:
    """Plays one method.

    Returns:
        The case and its scores, regrets in degrees, for the largest and for the mean reading of a
        step: over all steps, the first ones, the first day and what comes after it; and three lists
        that are no columns of a table: ``largest`` and ``mean``, the regret of each step, and
        ``picks``, the sensors.
    """
    setting = SENSOR_SETTINGS[case.setting]
    model = case.models[_model_of(case.method, setting)]
    problem = HottestSensor(case.played, model.scaling)
    strategy = _strategy(case, setting, model, problem)
    contexts = problem.contexts.repeat_interleave(READINGS, dim=0)
    actions = _unread(strategy, problem) if setting.different else None
    trace = bx.simulate(
        strategy, problem, len(contexts), contexts=contexts, actions=actions, seed=case.seed
    )
    picks = trace.X[:, 0].long().reshape(-1, READINGS)  # (steps, READINGS)
    table = case.played.values.T
    read = table.gather(1, picks)
    best = table.max(dim=1).values
    row: Row = {"setting": case.setting, "method": case.method, "seed": case.seed}
    curves = {"largest": best - read.max(dim=1).values, "mean": best - read.mean(dim=1)}
    for name, regret in curves.items():
        row |= {
            name: float(regret.mean()),
            f"{name}_first": float(regret[:FIRST_STEPS].mean()),
            f"{name}_day_one": float(regret[:STEPS_PER_DAY].mean()),
            f"{name}_later": float(regret[STEPS_PER_DAY:].mean()),
        }
    row |= {f"{name}_curve": regret.tolist() for name, regret in curves.items()}
    return row | {"picks": picks.tolist()}


def _model_of(method: str, setting: SensorSetting) -> str:
    if method == MERGED:
        return setting.merged_model
    return "additive" if method == ADDITIVE else setting.model


def _strategy(
    case: SensorCase, setting: SensorSetting, model: FittedModel, problem: HottestSensor
) -> bx.Strategy:
    domain = problem.domain
    common: dict[str, Any] = {"noise_variance": model.noise_variance, "width": setting.width}
    # Which sensor is read first is all that is random.
    first: dict[str, Any] = {"seed": case.seed, "num_initial": 1}
    none: dict[str, Any] = {}
    match case.method:
        case "CGP-UCB, product" | "CGP-UCB, additive":
            return bx.algorithms.cgp_ucb(domain, model.kernel, context_domain=3, **common, **first)
        case "merged":
            return bx.algorithms.gp_ucb(domain, model.kernel, **common, **first)
        case "one per half-hour":
            sensors = model.kernel.action_kernel
            start = int(_half_hour(problem.contexts[0]))
            bases = [
                bx.algorithms.gp_ucb(domain, sensors, **common, **(first if i == start else none))
                for i in range(STEPS_PER_DAY)
            ]
            return ContextwiseStrategy(bases, _half_hour, context_domain=3)
        case "random":
            return RandomSearch(domain, case.seed)
    raise ValueError(f"method must be one of {SENSOR_METHODS}, got {case.method!r}")


def _half_hour(context: Tensor) -> int:
    return round(float(context[0]) * STEPS_PER_DAY) % STEPS_PER_DAY


def _unread(strategy: bx.Strategy, problem: HottestSensor) -> Callable[[int], Tensor]:
    """The sensors that were not read at the same time before."""

    def actions(evaluation: int) -> Tensor:
        trials = strategy.history.trials[evaluation - evaluation % READINGS :]
        left = torch.ones(len(problem.domain.like), dtype=torch.bool)
        left[[int(trial.x) for trial in trials]] = False
        return problem.domain.like[left]

    return actions
