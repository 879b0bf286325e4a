"""Claims of the benchmarks hold where the rows say so, and only there."""

import pytest

pytest.importorskip("optuna")

from benchmarks.insured import methods as m
from benchmarks.insured.claims import CLAIMS, KNOWN_FAILURES, Claim, ratio
from benchmarks.insured.runs import cases
from benchmarks.insured.tables import FIRST_SEED, SETTINGS, SMOOTH, TABLES


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
