"""Claims of Ziomek et al. 2024, figure 2, checked on the rows of the runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.common.repeated_runs import column, difference, is_less
from benchmarks.common.tables import Row
from benchmarks.unknown_hyperparameters.runs import A_GP, EXPECTED, EXPERIMENTS, HE, MLE

# From the rows of one experiment with one width to what was measured and whether it holds.
Check = Callable[[Sequence[Row]], tuple[str, bool]]

_CUMULATIVE, _BEST, _EARLY = "cumulative_regret", "best_regret", "regret_of_first_half"


def _less(score: str, first: str, second: str) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        mean, error = difference(rows, score, first, second)
        return f"{mean:+.3g} ± {error:.2g}", is_less(rows, score, first, second)

    return check


def _similar(first: str, second: str) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        ours, theirs = (
            statistics.fmean(column(rows, _CUMULATIVE, method=method)) for method in (first, second)
        )
        return f"{ours:.3g} and {theirs:.3g}", abs(ours - theirs) <= 0.25 * max(ours, theirs)

    return check


def _catches_up(first: str, second: str) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        mean, error = difference(rows, _BEST, first, second)
        return f"{mean:+.3g} ± {error:.2g}", mean <= 2 * error

    return check


# Of two methods, the first has less of a score by more than 2 standard errors of the paired
# difference, unless something else is said.
CLAIMS: dict[str, list[tuple[str, Check]]] = {
    "a": [
        ("HE-GP-UCB has less cumulative regret than MLE-UCB", _less(_CUMULATIVE, HE, MLE)),
        ("... than ExpectedUCB", _less(_CUMULATIVE, HE, EXPECTED)),
        ("HE-GP-UCB has less best regret than MLE-UCB", _less(_BEST, HE, MLE)),
        ("A-GP-UCB has less cumulative regret than MLE-UCB", _less(_CUMULATIVE, A_GP, MLE)),
        ("... than ExpectedUCB", _less(_CUMULATIVE, A_GP, EXPECTED)),
        (
            "A-GP-UCB and HE-GP-UCB are similar (cumulative regrets within a quarter)",
            _similar(A_GP, HE),
        ),
    ],
    "b": [
        ("HE-GP-UCB has less cumulative regret than MLE-UCB", _less(_CUMULATIVE, HE, MLE)),
        ("... than ExpectedUCB", _less(_CUMULATIVE, HE, EXPECTED)),
        ("HE-GP-UCB has less best regret than MLE-UCB", _less(_BEST, HE, MLE)),
    ],
    "c": [
        ("HE-GP-UCB has less regret than MLE-UCB in the first half", _less(_EARLY, HE, MLE)),
        ("... than ExpectedUCB", _less(_EARLY, HE, EXPECTED)),
        ("MLE-UCB catches up (best regret, at most 2 s.e. more)", _catches_up(MLE, HE)),
        ("ExpectedUCB catches up (likewise)", _catches_up(EXPECTED, HE)),
    ],
    "d": [
        ("ExpectedUCB has less cumulative regret than MLE-UCB", _less(_CUMULATIVE, EXPECTED, MLE)),
        ("HE-GP-UCB has less than ExpectedUCB", _less(_CUMULATIVE, HE, EXPECTED)),
        ("HE-GP-UCB has less than MLE-UCB", _less(_CUMULATIVE, HE, MLE)),
        ("HE-GP-UCB has less best regret than MLE-UCB", _less(_BEST, HE, MLE)),
    ],
}


def claim_rows(rows: Sequence[Row], name: str) -> list[Row]:
    """The claims about one experiment: a row each, a column for each width.

    Args:
        rows: A row for each run.
        name: A key of `EXPERIMENTS`.

    Returns:
        "yes" or "no" with what was measured.
    """
    table = []
    for claim, check in CLAIMS[name[0]]:
        row: Row = {"claim": claim}
        for width in EXPERIMENTS[name].widths:
            measured, holds = check(select(rows, name, width))
            row[width] = f"{'yes' if holds else '**no**'} ({measured})"
        table.append(row)
    return table


def select(rows: Sequence[Row], name: str, width: str) -> list[Row]:
    """The rows of one experiment with one width."""
    return [row for row in rows if row["experiment"] == name and row["width"] == width]
