"""The harness of the benchmark of insured methods: its runs, and what its claims go by."""

from types import SimpleNamespace

import pytest
import torch

import botorch_ext as bx
from benchmarks.insured import methods as m
from benchmarks.insured.__main__ import main
from benchmarks.insured.claims import CLAIMS, KNOWN_FAILURES, Claim, ratio
from benchmarks.insured.lock_outs import LockOutBox, LockOutInContexts
from benchmarks.insured.methods import METHODS, Method
from benchmarks.insured.problems import BOX_LOCK_OUT, CONTEXTS_LOCK_OUT, PROBLEMS
from benchmarks.insured.report import report
from benchmarks.insured.runs import Case, cases, play
from benchmarks.insured.tables import (
    FIRST_SEED,
    HYPERPARAMETERS,
    IN_CONTEXTS,
    LOCKED,
    SETTINGS,
    SMOOTH,
    TABLES,
    Setting,
)
from botorch_ext.problems import LockOut


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


def test_what_is_to_run_is_known_and_fresh() -> None:
    found = cases(list(TABLES))
    assert len(set(found)) == len(found)
    for case in found:
        assert case.seed >= FIRST_SEED
        assert case.setting in SETTINGS
        of_the_paper = case.table == "hyperparameters"
        assert of_the_paper or case.problem in PROBLEMS
        assert case.method in METHODS or (of_the_paper and case.method in HYPERPARAMETERS)
    # Fewer only where a known failure is shown at length.
    few = {cell.horizons for cells in TABLES.values() for cell in cells if cell.seeds < 20}
    assert few == {(4000,), (1000,)}
    assert {claim.table for claim in (*CLAIMS, *KNOWN_FAILURES)} == set(TABLES)


def test_every_method_is_in_the_library() -> None:
    for method in METHODS.values():
        assert hasattr(bx.algorithms, method.algorithm)


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


def test_the_better_of_two_is_what_counts() -> None:
    claim = _claim("generic perturbations")
    regrets = {m.INSURED: [12.0] * 2, m.GP_UCB: [20.0] * 2, m.EC_GP_UCB: [9.0] * 2}
    row = claim.row(_rows("generic", regrets))
    assert not row["holds"]
    assert row["measured"].startswith("up to 1.33")
    assert claim.row(_rows("generic", regrets | {m.EC_GP_UCB: [10.0] * 2}))["holds"]


@pytest.mark.parametrize(
    ("early", "late", "holds"), [(30.0, 36.0, True), (30.0, 39.0, False), (39.0, 41.0, False)]
)
def test_lock_outs_are_left_for_good(early: float, late: float, holds: bool) -> None:
    rows = []
    for problem in LOCKED:
        rows += _rows("worst", {m.INSURED: [early] * 2}, problem=problem)
        rows += _rows("worst", {m.INSURED: [late] * 2}, problem=problem, horizon=2000)
    assert _claim("lock-outs: insured").row(rows)["holds"] is holds
    assert not _claim("lock-outs: insured").row(rows[:-2])["holds"]


@pytest.mark.parametrize(("lost", "holds"), [(1, True), (2, False)])
def test_a_tenth_of_the_maximisers_may_be_lost(lost: int, holds: bool) -> None:
    rows = _rows("lost", {m.USEFUL: [1.0] * 10})
    for row in rows:
        row["lost"] = row["seed"] < lost
    claim = _claim(f"{m.USEFUL}: the maximiser")
    assert claim.row(rows)["holds"] is holds
    assert not claim.row([])["holds"]


def test_a_known_failure_is_reproduced_by_one_run() -> None:
    claim = _claim("a probe pushes")
    regrets = {m.INSURED: [5.0, 25.0], m.GP_UCB: [5.0, 5.0]}
    row = claim.row(_rows("worst", regrets, problem="random linear"))
    assert row == {"claim": claim.text, "measured": "1 of 2 runs", "holds": True}
    regrets[m.INSURED] = [5.0, 14.0]
    assert not claim.row(_rows("worst", regrets, problem="random linear"))["holds"]


def test_the_corners_of_a_box_are_the_arms_of_the_lock_out() -> None:
    box, arms = LockOutBox(), LockOut()
    corners = torch.tensor([[0.25, 0.0], [-0.25, 0.0], [0.25, 1.0], [-0.25, 1.0]]).double()
    assert torch.allclose(box(corners), arms(arms.domain.like)[[0, 1, 2, 2]])
    same = arms.domain.like[[0, 1, 2, 2]]
    assert torch.allclose(box.kernel(corners).to_dense(), same @ same.T)
    assert torch.allclose(box.kernel(corners, diag=True), (same * same).sum(-1))
    assert box.optimal_value == pytest.approx(arms.optimal_value)
    # What is not linear in the arm is at most eps, everywhere.
    X = box.domain.sample(256, 0)
    u, v = X.unbind(-1)
    arm = torch.stack([(1 - v) * (1 - 0.25**2) ** 0.5 + v * 0.65, (1 - v) * u + v * 0.6], -1)
    left = box(X) - arm @ torch.tensor([0.28, 0.96]).double()
    assert float(left.abs().max()) <= box.misspecification


def test_contexts_shrink_the_arms_of_the_lock_out() -> None:
    problem, arms = LockOutInContexts(), LockOut()
    points = arms.domain.like
    for context, factor in ((0.0, 1.0), (1.0, 0.75)):
        X = torch.cat([points, torch.full((3, 1), context).double()], -1)
        assert torch.allclose(problem(X), factor * arms(points))
        assert torch.allclose(problem.kernel(X).to_dense(), factor**2 * points @ points.T)


@pytest.mark.parametrize(
    ("problem", "methods"),
    [(BOX_LOCK_OUT, (m.GP_UCB, m.INSURED)), (CONTEXTS_LOCK_OUT, IN_CONTEXTS)],
)
def test_a_box_and_contexts_lock_out_as_three_arms_do(problem: str, methods) -> None:
    for method, locked in zip(methods, (True, False), strict=True):
        row = play(Case("boxes", problem, "sequential", method, 40, 0))
        assert (row["late"] > 0.5) is locked


def test_every_method_is_given_the_same_offers_and_delays(monkeypatch) -> None:
    given = []

    def simulate(strategy, problem, horizon, *, actions, delay, seed, **_):
        given.append(([] if actions is None else [own.tolist() for own in actions], delay, seed))
        return SimpleNamespace(regret=torch.zeros(horizon))

    monkeypatch.setattr(bx, "simulate", simulate)
    for setting in ("changing", "Poisson(10)"):
        for method in (m.GP_UCB, m.INSURED):
            play(Case("price", "d = 1", setting, method, 12, 7))
        assert repr(given[-1]) == repr(given[-2])
    assert len(given[0][0]) == 12


def test_a_run_is_stale_when_its_method_or_its_setting_changes(monkeypatch) -> None:
    case = Case("price", "d = 1", "sequential", m.INSURED, 12, 7)
    before = case.digest
    monkeypatch.setitem(SETTINGS, "sequential", Setting(7))
    changed = case.digest
    assert changed != before
    monkeypatch.setitem(METHODS, m.INSURED, Method("insured_ucb", {"width": 2.0}))
    assert case.digest not in (before, changed)


@pytest.mark.parametrize("has_gaps", [False, True])
def test_the_report_of_all_runs_can_be_written(has_gaps: bool) -> None:
    scores = {"regret": 1.0, "late": 0.1, "best": 1, "lost": None, "curve": [1.0], "wall": 1.0}
    found = [case.key | scores for case in cases(list(TABLES))]
    text = report(found[:: 3 if has_gaps else 1], 0)
    assert "up to 1.00" in text
    if not has_gaps:
        assert "no runs" not in text


def test_pairs_are_of_the_same_seed() -> None:
    rows = _rows("price", {m.INSURED: [2.0, 4.0, 6.0], m.GP_UCB: [1.0, 2.0, 3.0]})
    some = [row for row in rows if row["method"] == m.INSURED or row["seed"] > 0]
    assert ratio(some[::-1], m.INSURED, m.GP_UCB) == (pytest.approx(2.0), pytest.approx(0.0))


def test_it_runs_what_is_missing_and_reports(tmp_path) -> None:
    argv = ["--smoke", "--only", "scales", "--output", str(tmp_path)]
    main(argv)
    lines = [len(path.read_text().split()) for path in (tmp_path / "runs").glob("*.jsonl")]
    main(argv)
    again = [len(path.read_text().split()) for path in (tmp_path / "runs").glob("*.jsonl")]
    assert lines == again
    text = (tmp_path / "report.md").read_text()
    assert "wrong scales, sequential, T = 16" in text
    assert "runs are missing" in text
    assert (tmp_path / "regret.png").exists()
