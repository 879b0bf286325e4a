"""Processes at once on one SQLite storage: do two of them ever ask the same?"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from benchmarks.common.tables import Row
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext.integrations.optuna import ATTRIBUTE, StrategySampler

_NAME = "at once"


def play(algorithm: str, processes: int, num_trials: int) -> Row:
    """The row of a check.

    Args:
        algorithm: Of the sampler.
        processes: How many optimise the same study.
        num_trials: Of each.

    Returns:
        The row: how many trials there were, how many points came twice, how many questions were
        asked without knowledge of another one, and the seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder, 'study.db')}"
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        storage = RDBStorage(url)
        optuna.create_study(study_name=_NAME, storage=storage)
        storage.engine.dispose()
        started = time.perf_counter()
        children = [
            in_a_fork(lambda: _optimize(url, algorithm, num_trials)) for _ in range(processes)
        ]
        for child in children:
            wait_for(child)
        taken = time.perf_counter() - started
        trials = optuna.load_study(study_name=_NAME, storage=storage).trials
        storage.engine.dispose()
    asked = [each.system_attrs[ATTRIBUTE] for each in trials if ATTRIBUTE in each.system_attrs]
    records = [each["record"] for each in asked if "record" in each]
    numbers = [json.loads(record)["number"] for record in records]
    points = {tuple(trial.params.values()) for trial in trials}
    return {
        "algorithm": algorithm,
        "processes": processes,
        "trials": len(trials),
        "complete": sum(trial.state == TrialState.COMPLETE for trial in trials),
        "asked by the strategy": len(records),
        "points that came twice": len(trials) - len(points),
        "questions that missed another": len(numbers) - len(set(numbers)),
        "longest record, characters": max(map(len, records)),
        "seconds": round(taken, 1),
    }


def _optimize(url: str, algorithm: str, num_trials: int) -> None:
    study = optuna.load_study(
        study_name=_NAME, storage=RDBStorage(url), sampler=StrategySampler(algorithm)
    )
    study.optimize(_objective, n_trials=num_trials)


def _objective(trial: Any) -> float:
    """Quick, so that the processes ask as often as they can."""
    x, y = trial.suggest_float("x", -5.0, 10.0), trial.suggest_float("y", 0.0, 15.0)
    depth = trial.suggest_int("depth", 2, 9)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    bent = y - 0.13 * x**2 + 1.6 * x - 6
    return bent**2 / 50 + 0.1 * abs(depth - 5) + (0.0 if kind == "b" else 0.5)
