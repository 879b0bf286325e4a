"""Benchmarks: rows are kept, stale with their settings and played; claims are judged."""

import statistics
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from scipy.optimize import differential_evolution

pytest.importorskip("optuna")

from benchmarks.common.differences import estimate
from benchmarks.common.store import Store
from benchmarks.insured import methods as m
from benchmarks.insured import runs as insured
from benchmarks.insured.__main__ import main
from benchmarks.insured.claims import CLAIMS, KNOWN_FAILURES, Claim, ratio
from benchmarks.insured.methods import METHODS as INSURED_METHODS
from benchmarks.insured.methods import Method
from benchmarks.insured.runs import cases
from benchmarks.insured.tables import FIRST_SEED, SETTINGS, SMOOTH, TABLES, Setting
from benchmarks.real.environments import OURS as OURS_NOW
from benchmarks.real.environments import PEERS
from benchmarks.real.protocol import WorkerError
from benchmarks.real.report import report
from benchmarks.real.runs import Case, attempt, close_workers, worker_of
from benchmarks.real.runs import cases as real_cases
from benchmarks.real.tasks import TASKS
from benchmarks.real.tasks.functions import FUNCTIONS
from benchmarks.real.tasks.large import ackley, hartmann, levy
from benchmarks.studies import __main__ as benchmark
from benchmarks.studies import busy_machine

TREE = "one of four learners on breast cancer"


def test_rows_survive_a_kill_and_are_stale_with_their_settings(tmp_path, monkeypatch):
    some = [Case("TPE", "spring", seed) for seed in (0, 1, 2)]
    store = Store(tmp_path)
    for case in some:
        store.add(case.key | {"digest": case.digest, "recommended": 1.0 + case.seed})
    (path,) = tmp_path.glob("*.jsonl")
    path.write_text(path.read_text()[:-30])  # killed within the last line
    store.add(some[1].key | {"digest": some[1].digest, "recommended": 9.0})
    found, stale = store.rows(some)
    assert stale == 0 and {case.seed for case in found} == {0, 1}
    assert found[some[0]]["recommended"] == 1.0 and found[some[1]]["recommended"] == 9.0
    store.compress()
    assert not [*tmp_path.glob("*.jsonl")] and store.rows(some)[0] == found
    store.add(some[2].key | {"digest": some[2].digest, "recommended": 3.0})
    store.compress()
    found, _ = store.rows(some)
    assert [found[case]["recommended"] for case in some] == [1.0, 9.0, 3.0]
    monkeypatch.setitem(TASKS, "spring", replace(TASKS["spring"], revision=99))
    assert store.rows([Case("TPE", "spring", seed) for seed in (0, 1, 2)]) == ({}, 3)


def test_what_decides_a_run_is_in_its_digest(monkeypatch):
    large = next(name for name, task in TASKS.items() if task.half == "large")
    real = [Case("TPE", "spring", 0), Case(OURS_NOW, "spring", 0), Case(OURS_NOW, large, 0)]
    other = insured.Case("price", "d = 1", "sequential", m.INSURED, 12, 7)
    before = [case.digest for case in (*real, other)]
    monkeypatch.setitem(PEERS, "TPE", replace(PEERS["TPE"], package="torch"))
    monkeypatch.setitem(PEERS, OURS_NOW, replace(PEERS[OURS_NOW], large_package="revision 99"))
    monkeypatch.setitem(SETTINGS, "sequential", Setting(7))
    after = [case.digest for case in (*real, other)]
    assert [a == b for a, b in zip(after, before, strict=True)] == [False, True, False, False]
    monkeypatch.setitem(INSURED_METHODS, m.INSURED, Method("insured_ucb", {"width": 2.0}))
    assert other.digest not in (before[-1], after[-1])


def test_the_second_held_out_set_has_few_runs_and_a_section_of_its_own():
    tasks = [name for name, task in TASKS.items() if task.half == "confirm"]
    wanted = list(real_cases(list(PEERS), tasks, 100))
    runs = Counter((case.method, case.problem) for case in wanted)
    few = {"qLogNEI": 2, "Vizier": 1}
    assert len(tasks) == 20 and "TuRBO-1" not in {case.method for case in wanted}
    for name, others in (("Suzuki coupling 4", few), ("BBOB f5, d = 5", few | {"qLogNEI": 5})):
        for peer in PEERS.keys() - {"TuRBO-1"}:
            assert runs[peer, name] == others.get(peer, 5)
    row = {"seen": [2.0, 1.0], "recommended": 1.0, "observed": 1.0, "seconds": [0.1, 0.1]}
    text = report([case.key | row for case in wanted[:-1]], wanted)
    assert "## Held out, second set\n\n**1 of 1108 runs are missing.**" in text


KNOWN = {name: getattr(each._made, "_optimizers", None) for name, each in FUNCTIONS.items()}
BEST = {
    **{name: points[0] for name, points in KNOWN.items() if points},
    "Goldstein-Price": [0.0, -1.0],
    "Hartmann4": [0.18739527, 0.19415153, 0.55791778, 0.26477962],
    "Schwefel2": [420.968746] * 2,
    "Alpine3": [0.0] * 3,
    "Trid6": [6.0, 10.0, 12.0, 12.0, 10.0, 6.0],
    "Zakharov5": [0.0] * 5,
}


@pytest.mark.parametrize("name", BEST)
def test_the_best_points_are_worth_the_optimal_values(name):
    function = FUNCTIONS[name]
    value = float(function(torch.tensor([BEST[name]], dtype=torch.float64)))
    assert value == pytest.approx(function.best, abs=1e-6 * function.width)
    objective = TASKS[f"{name} with 5 % noise"].make()
    params = dict(enumerate(BEST[name]))
    assert objective.true(params) == pytest.approx(0, abs=2e-6 * function.width)
    seen = [objective.seen(params, seed) for seed in range(400)]
    assert statistics.stdev(seen) == pytest.approx(0.05 * function.width, rel=0.1)


def test_a_difference_is_the_mean_over_problems_with_both_errors():
    found = estimate({"a": [-3.0, -1.0], "b": [2.0, 0.0, 1.0]})
    assert found.mean == pytest.approx(-0.5) and found.error == pytest.approx(1.5)
    assert found.error_of_runs == pytest.approx((2 / 2 + 1 / 3) ** 0.5 / 2)
    assert (found.problems, found.runs, found.wins) == (2, 5, pytest.approx(0.5))
    assert str(estimate({"a": [1.0]})) == "+1.00 ± - (-)"


def test_functions_of_many_inputs_have_their_minimum_where_it_should_be():
    assert ackley([0.0] * 7) == pytest.approx(0, abs=1e-12)
    assert levy([0.0] * 7) == pytest.approx(0, abs=1e-12)
    best = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.657300)
    assert hartmann(best) == pytest.approx(0, abs=1e-8)


BEAM = {"weld": 0.205730, "joint": 3.470489, "height": 9.036624, "width": 0.205730}
REDUCER = {"b": 3.5, "m": 0.7, "z": 17, "l1": 7.3, "l2": 7.715320, "d1": 3.350215, "d2": 5.286654}
DESIGNS = {
    "three-bar truss": {"outer": 0.788675, "inner": 0.408248},
    "pressure vessel": {"shell": 12, "head": 6, "radius": 38.8601, "length": 221.3655},
    "spring": {"wire": 0.05169, "coil": 0.35675, "turns": 11.2871},
    "welded beam": BEAM,
    "speed reducer": REDUCER,
    "cantilever beam": dict(enumerate((6.0160, 5.3092, 4.4943, 3.5015, 2.1527))),
    "I-beam": {"height": 80.0, "width": 50.0, "web": 0.9, "flange": 2.32179},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_designs_of_the_literature_are_the_best(name):
    """Their published designs have the least loss, up to the digits that are published, and
    violating a constraint does not pay."""
    task = TASKS[name]
    objective, least = task.make(), task.least
    assert objective.true(DESIGNS[name]) == pytest.approx(least, rel=3e-3)
    found = differential_evolution(
        lambda numbers: objective.true(
            {p.name: p.value(x) for p, x in zip(task.parameters, numbers, strict=True)}
        ),
        [p.ends for p in task.parameters],
        maxiter=150,
        rng=0,
    )
    assert least * (1 - 1e-5) <= found.fun


@pytest.mark.slow
def test_a_run_is_played_by_processes_and_kept(tmp_path):
    case = Case("TPE", TREE, seed=3, smoke=True)
    row = attempt(case)
    assert len(row["seen"]) == len(row["seconds"]) == case.evaluations
    # Cross-validation without noise: the least loss seen is the one without noise.
    assert row["observed"] == row["recommended"] == pytest.approx(min(row["seen"]), rel=1e-6)
    assert attempt(case) | {"wall": 0, "seconds": 0} == row | {"wall": 0, "seconds": 0}
    with pytest.raises(WorkerError, match="KeyError"):
        worker_of("tasks").call("loss", task="none", params={}, seed=0)
    close_workers()


def test_it_runs_what_is_missing_and_reports(tmp_path):
    argv = ["--smoke", "--only", "scales", "--output", str(tmp_path)]
    main(argv)
    lines = [path.read_text() for path in (tmp_path / "runs").glob("*.jsonl")]
    main(argv)
    assert lines == [path.read_text() for path in (tmp_path / "runs").glob("*.jsonl")] != []
    text = (tmp_path / "report.md").read_text()
    assert "wrong scales, sequential, T = 16" in text and "runs are missing" in text


def _rows(table, regrets, **columns):
    """A row for each method and regret, with seeds from 0."""
    row = {"table": table, "setting": "sequential", "horizon": 300, "late": 0.0, "lost": None}
    return [
        row
        | {"best": 1, "problem": SMOOTH[0], "method": method, "seed": seed, "regret": value}
        | columns
        for method, values in regrets.items()
        for seed, value in enumerate(values)
    ]


def _claim(start: str) -> Claim:
    (found,) = [claim for claim in (*CLAIMS, *KNOWN_FAILURES) if claim.text.startswith(start)]
    return found


def test_a_ratio_is_of_means_with_the_error_of_pairs() -> None:
    rows = _rows("price", {m.INSURED: [2.0, 4.0, 6.0], m.GP_UCB: [1.0, 2.0, 3.0]})
    assert ratio(rows, m.INSURED, m.GP_UCB) == (pytest.approx(2.0), pytest.approx(0.0))
    rows = _rows("price", {m.INSURED: [3.0, 1.0], m.GP_UCB: [1.0, 1.0]})
    assert ratio(rows, m.INSURED, m.GP_UCB) == (pytest.approx(2.0), pytest.approx(1.0))


@pytest.mark.parametrize(("cost", "holds"), [(1.24, True), (1.26, False)])
def test_the_price_is_at_most_a_quarter(cost: float, holds: bool) -> None:
    claim = _claim("eps = 0, T = 300, d = 1, 2, 4, four settings: insured")
    rows = _rows("price", {m.INSURED: [10 * cost] * 3, m.GP_UCB: [10.0] * 3})
    assert claim.row(rows)["holds"] is holds
    # Other dimensions, horizons and tables do not count.
    for table, other in (
        ("price", {"problem": SMOOTH[3]}),
        ("price", {"horizon": 1000}),
        ("x", {}),
    ):
        rows += _rows(table, {m.INSURED: [99.0] * 3, m.GP_UCB: [1.0] * 3}, **other)
    assert claim.row(rows)["holds"] is holds
    assert not claim.row([])["holds"]


def test_what_is_to_run_is_fresh_and_has_its_claim() -> None:
    found = cases(list(TABLES))
    assert len(set(found)) == len(found)
    assert all(case.seed >= FIRST_SEED and case.setting in SETTINGS for case in found)
    assert {claim.table for claim in (*CLAIMS, *KNOWN_FAILURES)} == set(TABLES)


def _measured(tmp_path, ratio, *options):
    """The report, where asks in a busy machine take so many times as long."""
    with patch.object(busy_machine, "rows", lambda *_: [{"busy/quiet": ratio}]):
        benchmark.main(["--only", "busy_machine", "--output", str(tmp_path), *options])
    return (tmp_path / "report.md").read_text()


def test_a_figure_that_does_not_hold_fails_and_is_reported(tmp_path):
    with pytest.raises(SystemExit, match="busy_machine: busy/quiet at most 2"):
        _measured(tmp_path, 2.01)
    assert "| 2.01 | **no** |" in (tmp_path / "report.md").read_text()
    assert "| 2 | yes |" in _measured(tmp_path, 2.0)


def test_a_smoke_run_judges_no_times(tmp_path):
    assert "at most 2 |" not in _measured(tmp_path, 2.01, "--smoke")
