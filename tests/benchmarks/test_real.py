"""The benchmark of real problems: its spaces, its protocol with a real process, and its scores."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import differential_evolution

pytest.importorskip("optuna")

from benchmarks.common.store import Store
from benchmarks.real.environments import OURS, PEERS, REQUIREMENTS
from benchmarks.real.protocol import WorkerError
from benchmarks.real.report import difference, log_regrets
from benchmarks.real.runs import Case, attempt, cases, close_workers, worker_of
from benchmarks.real.spaces import active_only, of_plain
from benchmarks.real.tasks import TASKS
from benchmarks.real.tasks.large import ackley, hartmann, levy


@pytest.fixture(autouse=True, scope="module")
def _no_process_is_left():
    yield
    close_workers()


_CONDITIONAL = "one of four learners on breast cancer"


@pytest.mark.parametrize("name", TASKS)
def test_values_come_back_from_their_numbers(name):
    rng = random.Random(0)
    for parameter in TASKS[name].parameters:
        for number in (*parameter.ends, rng.uniform(*parameter.ends)):
            value = parameter.value(number)
            assert parameter.value(parameter.scaled(value)) == pytest.approx(value)
            if parameter.kind != "choice":
                assert parameter.lower <= value <= parameter.upper


def test_the_halves_are_as_large_as_each_other_and_hold_each_kind():
    kinds = {
        half: [t.kind for t in TASKS.values() if t.half == half] for half in ("develop", "report")
    }
    assert len(TASKS) >= 30 and abs(len(kinds["develop"]) - len(kinds["report"])) <= 4
    assert set(kinds["develop"]) == set(kinds["report"])


def test_every_environment_belongs_to_a_peer():
    assert {peer.environment for peer in PEERS.values()} - {None} == set(REQUIREMENTS) - {"tasks"}


def test_inactive_parameters_are_left_out():
    parameters = TASKS[_CONDITIONAL].parameters
    plain = [
        vars(p) | {"choices": list(p.choices), "only_if": p.only_if and list(p.only_if)}
        for p in parameters
    ]
    assert of_plain(plain) == parameters
    params = {p.name: p.value(p.ends[0]) for p in parameters}
    assert set(active_only(parameters, params)) == {"learner", "C", "gamma"}


def test_a_run_is_played_by_processes_and_kept(tmp_path):
    case = Case("TPE", _CONDITIONAL, seed=3, smoke=True)
    row = attempt(case)
    assert isinstance(row, dict), row
    assert len(row["seen"]) == len(row["seconds"]) == case.evaluations
    # Cross-validation without noise: the least loss seen is the one without noise.
    assert row["observed"] == row["recommended"] == pytest.approx(min(row["seen"]), rel=1e-6)
    store = Store(tmp_path)
    store.add(row)
    assert store.rows([case]) == ({case: row}, 0)
    assert attempt(case) | {"wall": 0, "seconds": 0} == row | {"wall": 0, "seconds": 0}
    with pytest.raises(WorkerError, match="KeyError"):
        worker_of("tasks").call("loss", task="none", params={}, seed=0)


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("three-bar truss", {"outer": 0.788675, "inner": 0.408248}),
        ("pressure vessel", {"shell": 12, "head": 6, "radius": 38.8601, "length": 221.3655}),
        ("spring", {"wire": 0.05169, "coil": 0.35675, "turns": 11.2871}),
        (
            "welded beam",
            {"weld": 0.205730, "joint": 3.470489, "height": 9.036624, "width": 0.205730},
        ),
        (
            "speed reducer",
            {
                "b": 3.5,
                "m": 0.7,
                "z": 17,
                "l1": 7.3,
                "l2": 7.715320,
                "d1": 3.350215,
                "d2": 5.286654,
            },
        ),
    ],
)
def test_designs_of_the_literature_are_the_best(name, best):
    """Their published designs have the least loss, up to the digits that are published, and
    violating a constraint does not pay."""
    task = TASKS[name]
    objective, least = task.make(), task.least
    assert least is not None
    assert objective.true(best) == pytest.approx(least, rel=3e-3)
    found = differential_evolution(
        lambda numbers: objective.true(
            {p.name: p.value(x) for p, x in zip(task.parameters, numbers, strict=True)}
        ),
        [p.ends for p in task.parameters],
        maxiter=150,
        rng=0,
    )
    assert least * (1 - 1e-5) <= found.fun


def test_rows_of_other_settings_are_stale(monkeypatch):
    case, task = Case("TPE", "spring", 0), TASKS["spring"]
    before = case.digest
    monkeypatch.setitem(TASKS, "spring", replace(task, revision=task.revision + 1))
    assert case.digest != before
    monkeypatch.setitem(TASKS, "spring", task)
    assert case.digest == before
    monkeypatch.setitem(PEERS, "TPE", replace(PEERS["TPE"], package="torch"))
    assert case.digest != before


def test_regrets_and_differences():
    known, unknown = "BBOB f9, d = 3", "spring"

    def row(task, method, loss, seed=0):
        return {
            "problem": task,
            "method": method,
            "seed": seed,
            "recommended": loss,
            "observed": loss,
            "seen": [loss, 4.0],
        }

    rows = [row(known, OURS, 0.1), row(known, "TPE", 1.0), row(known, "random", 100.0)]
    rows += [row(unknown, OURS, 1.0), row(unknown, "TPE", 2.0), row(unknown, "random", 3.0)]
    regrets = log_regrets(rows)
    assert regrets[known]["TPE"][0] == 0.0 and regrets[known][OURS][0] == pytest.approx(-1)
    least = regrets[unknown]
    assert least["TPE"][0] > least[OURS][0]
    found = difference(regrets, "TPE", lambda task: task.name == known)
    assert found is not None and found.mean == pytest.approx(-1) and math.isnan(found.error)
    assert difference(regrets, "HEBO", lambda task: True) is None


def test_cases_are_balanced():
    some = list(cases(["TPE", "HEBO"], ["spring"], 5))
    assert [case.seed for case in some if case.method == "HEBO"] == list(
        range(5, 5 + PEERS["HEBO"].seeds)
    )
    assert some[0].seed == some[1].seed == 5
    counts = {
        task: len(list(cases(["qLogNEI"], [task], 0))) for task in ("spring", "network on digits")
    }
    assert counts == {"spring": 10, "network on digits": 2}  # which has a choice


def test_the_library_has_a_revision_of_its_own_for_many_inputs(monkeypatch):
    large = next(name for name, task in TASKS.items() if task.half == "large")
    before = [Case(OURS, task, 0).digest for task in ("spring", large)]
    monkeypatch.setitem(PEERS, OURS, replace(PEERS[OURS], large_package="revision 99"))
    after = [Case(OURS, task, 0).digest for task in ("spring", large)]
    assert before[0] == after[0] and before[1] != after[1]


def test_functions_of_many_inputs_have_their_minimum_where_it_should_be():
    assert ackley([0.0] * 7) == pytest.approx(0, abs=1e-12)
    assert levy([0.0] * 7) == pytest.approx(0, abs=1e-12)
    best = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.657300)
    assert hartmann(best) == pytest.approx(0, abs=1e-8)
    # By NumPy, from the formulas of the literature, elsewhere.
    z = np.random.default_rng(0).normal(size=7)
    w = 1 + z / 4
    middle = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    assert levy(z) == pytest.approx(np.sin(np.pi * w[0]) ** 2 + middle.sum() + last)
    slope = np.exp(-0.2 * np.sqrt(np.mean(z**2)))
    wave = np.exp(np.mean(np.cos(2 * np.pi * z)))
    assert ackley(z) == pytest.approx(20 + np.e - 20 * slope - wave)


@pytest.mark.parametrize("name", ["Ackley, d = 50", "Hartmann of 6, d = 50"])
def test_many_inputs_are_shifted_and_chosen_the_same_each_time(name):
    task = TASKS[f"{name}, 300 evaluations"]
    center = {p.name: (p.lower + p.upper) / 2 for p in task.parameters}
    loss = task.make().true(center)
    assert loss == task.make().true(center) > 1


def test_a_run_that_takes_too_long_ends_early(monkeypatch):
    case = Case("TPE", "spring", seed=3, smoke=True)
    monkeypatch.setitem(TASKS, "spring", replace(TASKS["spring"], seconds=0.0))
    row = attempt(case)
    assert isinstance(row, dict), row
    assert len(row["seen"]) == len(row["seconds"]) == 1


def test_workers_need_nothing_but_the_standard_library():
    """Each peer has an environment of its own, without the packages of the tasks."""
    command = [sys.executable, "-S", "-c", "import benchmarks.real.worker"]
    root = Path(__file__).parents[2]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(root)})
