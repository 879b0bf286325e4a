"""Compared rows: what is timed on two states of the library, by name.

A row is made once and then measured again and again; each measurement starts from a fresh strategy.
Rows and what they call use public names of the library alone, so that they run on an older state
of it as well. Sizes are those of the tables, or smaller where a measurement would take more than
five seconds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.timing import seconds
from benchmarks.performance.box import strategy_on_box
from benchmarks.performance.breadthwise import SETTINGS, simulate
from benchmarks.performance.complexity import both, instance
from benchmarks.performance.contextual_studies import OF_PEPTIDES, PeptideStudy, SensorStudy
from benchmarks.performance.data import noisy_data
from benchmarks.performance.delayed_studies import studies_on_grid, study_on_box
from benchmarks.performance.finite_study import play_on_grid, values_on_grid
from benchmarks.performance.foundation import IMPORT
from benchmarks.performance.many_models import lengthscales, strategy_of_lengthscales, study_on_grid
from benchmarks.performance.planner import box_settings, random_set, started
from benchmarks.performance.questions_in_contexts import data_in_contexts, strategy_in_context

if TYPE_CHECKING:
    from botorch_ext.kernels.action_context import Combination

Measure = Callable[[], float]
_CPU = torch.device("cpu")
# Kernel, lengthscale, whether the data are gathered around a good point.
_PROBLEMS = ((rbf, 0.3, False), (rbf, 0.6, True), (matern, 0.3, True), (matern, 0.6, False))


def _finite(horizon: int, smoke: bool) -> Measure:
    side, horizon = (10, 20) if smoke else (50, horizon)
    domain, values = values_on_grid(side, 0, _CPU)
    return lambda: sum(play_on_grid(domain, values, horizon)[1])


def _added(n: int, smoke: bool) -> Measure:
    n, more = (50, 3) if smoke else (n, 50)
    kernel = rbf(0.8)
    X, Y = noisy_data(n + more, 6, kernel, 0, _CPU)

    def measure() -> float:
        model = bx.KernelGP(kernel, 1e-2)
        model.add(X[:n], Y[:n])

        def add() -> None:
            for i in range(n, n + more):
                model.add(X[i : i + 1], Y[i : i + 1])

        return seconds(add, _CPU)

    return measure


def _asked_on_box(smoke: bool) -> Measure:
    n, problems = (20, _PROBLEMS[:1]) if smoke else (1000, _PROBLEMS)
    data = [
        (*noisy_data(n, 6, kind(scale), seed, _CPU, gathered), kind(scale), seed)
        for seed, (kind, scale, gathered) in enumerate(problems)
    ]
    return lambda: sum(seconds(strategy_on_box(*each).ask, _CPU) for each in data)


def _best_on_box(smoke: bool) -> Measure:
    kernel = rbf(0.3)
    X, Y = noisy_data(20 if smoke else 1000, 4, kernel, 0, _CPU, gathered=True)
    return lambda: seconds(strategy_on_box(X, Y, kernel, 0).best, _CPU)


def _asked_in_context(combination: Combination, smoke: bool) -> Measure:
    n, problems = (20, _PROBLEMS[:1]) if smoke else (1000, _PROBLEMS)
    data = [
        (*data_in_contexts(kind(scale), combination, n, seed, gathered), seed)
        for seed, (kind, scale, gathered) in enumerate(problems)
    ]

    def measure() -> float:
        asked = [strategy_in_context(*each) for each in data]
        return sum(
            seconds(partial(strategy.ask, context=context), _CPU) for strategy, context in asked
        )

    return measure


def _asked_of_lengthscales(num_models: int, smoke: bool) -> Measure:
    n, problems = (20, _PROBLEMS[:1]) if smoke else (200, _PROBLEMS)
    scales = lengthscales(2 if smoke else num_models)
    data = [
        (*noisy_data(n, 4, kind(scale), seed, _CPU, gathered), kind is rbf, scales, seed)
        for seed, (kind, scale, gathered) in enumerate(problems)
    ]
    return lambda: sum(seconds(strategy_of_lengthscales(*each).ask, _CPU) for each in data)


def _elimination(smoke: bool) -> Measure:
    sizes = (100, 4, 20) if smoke else (2500, 32, 200)
    return lambda: study_on_grid(*sizes, 0, _CPU)[1]


def _delayed(method: str, smoke: bool) -> Measure:
    play = studies_on_grid(*((10, 60) if smoke else (50, 1000)), _CPU)
    return lambda: play(method, 0)


def _delayed_on_box(smoke: bool) -> Measure:
    return lambda: study_on_box(60 if smoke else 500, _CPU)[1]


def _planned(num_points: int, q: int, smoke: bool) -> Measure:
    num_points, q = (200, 5) if smoke else (num_points, q)
    domain = random_set(num_points, 0, _CPU)
    model = started(rbf(0.3), domain.points[:1])
    return lambda: seconds(lambda: bx.plan(domain, model, q), _CPU)


def _planned_on_box(setting: int, smoke: bool) -> Measure:
    dim, _, kernel, _ = box_settings()[setting]
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    model = started(kernel, box.sample(1, 0))
    return lambda: seconds(lambda: bx.plan(box, model, 3 if smoke else 99), _CPU)


def _complexities(nu: float, gap: float, smoke: bool) -> Measure:
    problem, kernel = instance(nu, 0, _CPU)
    shape = (40, 40) if smoke else (400, 400)
    return lambda: seconds(lambda: both(problem, kernel, gap, shape), _CPU)


def _breadthwise(study: int, horizon: int, smoke: bool) -> Measure:
    return lambda: simulate(SETTINGS[study], 100 if smoke else horizon, "cpu").seconds


def _sensors(combination: Combination, smoke: bool) -> Measure:
    study = SensorStudy(combination, 0)
    return lambda: study.seconds(5 if smoke else 96)


def _peptides(method: str, num_columns: int | None, num_trials: int, smoke: bool) -> Measure:
    study = PeptideStudy(60 if smoke else 1500, num_columns, 0)
    return lambda: study.seconds(method, 5 if smoke else num_trials)


def _imported(smoke: bool) -> Measure:
    """In a fresh process: what the library adds to `import botorch`, up to its first use."""
    library = Path(bx.__file__).parents[1]
    script = "import time\ntime.perf_counter = time.process_time\n" + IMPORT

    def measure() -> float:
        command = [sys.executable, "-c", script]
        output = subprocess.run(command, cwd=library, capture_output=True, text=True, check=True)
        return float(output.stdout.splitlines()[1])

    return measure


ROWS: Mapping[str, Callable[[bool], Measure]] = {
    "GP-UCB ask/tell, N=2500, T=250": partial(_finite, 250),
    "GP-UCB ask/tell, N=2500, T=1000": partial(_finite, 1000),
    "KernelGP.add of one point, n=1000, 50 times": partial(_added, 1000),
    "KernelGP.add of one point, n=4000, 50 times": partial(_added, 4000),
    "ask() of EC-GP-UCB on a box, d=6, n=1000, 4 problems": _asked_on_box,
    "best() of EC-GP-UCB on a box, d=4, n=1000": _best_on_box,
    "import botorch_ext, then first use": _imported,
    **{
        f"{method}, N=2500, T=1000, Poisson(50)": partial(_delayed, method)
        for method in ("BPE-Delay", "GP-UCB-SDF", "GP-BUCB")
    },
    "BPE-Delay, box [-5, 5]^2, T=500, Poisson(50)": _delayed_on_box,
    "plan, N=10000, d=4, q=300": partial(_planned, 10_000, 300),
    "plan, N=100000, d=4, q=200": partial(_planned, 100_000, 200),
    **{
        f"plan, box, d={dim}, {name}, q=100": partial(_planned_on_box, position)
        for position, (dim, name, _, _) in enumerate(box_settings())
    },
    **{
        f"ask() of CGP-UCB ({combination}) on a box, n=1000, 4 problems": partial(
            _asked_in_context, combination
        )
        for combination in ("product", "sum")
    },
    **{
        f"CGP-UCB ({combination}), 50 sensors, 96 steps x 5 readings": partial(
            _sensors, combination
        )
        for combination in ("product", "sum")
    },
    **{
        f"{method}, 7 molecules x {num_trials} trials, {num_columns or 180} features": partial(
            _peptides, method, num_columns, num_trials
        )
        for num_columns, num_trials in ((45, 50), (None, 20))
        for method in OF_PEPTIDES
    },
    **{
        f"ask() of HE-GP-UCB on a box, {num_models} lengthscales, d=4, n=200, 4 problems": partial(
            _asked_of_lengthscales, num_models
        )
        for num_models in (16, 64)
    },
    "HE-GP-UCB, N=2500, 32 models, T=200": _elimination,
    **{
        f"complexities, Matern {name}, gap {gap:g}, 400 x 400 grid": partial(_complexities, nu, gap)
        for name, nu, gap in (("1/2", 0.5, 0.003), ("5/2", 2.5, 0.1))
    },
    **{
        f"breadthwise exploration, d=2, T={horizon}, {SETTINGS[position].what}": partial(
            _breadthwise, position, horizon
        )
        for position, horizon in enumerate((3000, 3000, 1000))
    },
}
