"""Claims of Krause and Ong 2011, section 6, checked on the rows of the runs.

Written before anything was played.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.common.repeated_runs import column, difference, is_less
from benchmarks.common.tables import Row
from benchmarks.contexts import peptides, sensors

# From the rows of one setting to what was measured and whether it holds.
Check = Callable[[Sequence[Row]], tuple[str, bool]]


def _less(score: str, first: str, second: str) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        mean, error = difference(rows, score, first, second)
        ours, theirs = (column(rows, score, method=method) for method in (first, second))
        wins = sum(a < b for a, b in zip(ours, theirs, strict=True))
        measured = f"{mean:+.2f} ± {error:.2f}, {wins} of {len(ours)}"
        return measured, is_less(rows, score, first, second)

    return check


def _all(*checks: Check) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        results = [each(rows) for each in checks]
        return "; ".join(measured for measured, _ in results), all(holds for _, holds in results)

    return check


def _alike(score: str, first: str, second: str) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        ours, theirs = (
            statistics.fmean(column(rows, score, method=method)) for method in (first, second)
        )
        return f"{ours:.2f} and {theirs:.2f}", abs(ours - theirs) <= 0.25 * max(ours, theirs)

    return check


_PRODUCT, _MERGED, _SEPARATE = sensors.PRODUCT, sensors.MERGED, sensors.SEPARATE

# Of two methods, the first has less of a score by more than 2 standard errors of the paired
# difference; alike: the means are within a quarter of each other.
SENSOR_CLAIMS: Mapping[str, Mapping[str, Check]] = {
    reading: {
        "one per half-hour is worst: CGP-UCB beats it, merging beats it": _all(
            _less(reading, _PRODUCT, _SEPARATE), _less(reading, _MERGED, _SEPARATE)
        ),
        f"first {sensors.FIRST_STEPS} steps: merging beats CGP-UCB, and one per half-hour": _all(
            _less(f"{reading}_first", _MERGED, _PRODUCT),
            _less(f"{reading}_first", _MERGED, _SEPARATE),
        ),
        "after the first day: CGP-UCB beats merging, and one per half-hour": _all(
            _less(f"{reading}_later", _PRODUCT, _MERGED),
            _less(f"{reading}_later", _PRODUCT, _SEPARATE),
        ),
        "after the first day: the product kernel beats the additive one": _less(
            f"{reading}_later", _PRODUCT, sensors.ADDITIVE
        ),
    }
    for reading in ("largest", "mean")
}

PEPTIDE_CLAIMS: Mapping[str, Check] = {
    "molecules 1 to 3: CGP-UCB and merging are alike": _alike(
        "regret_alike", peptides.CGP, peptides.MERGED
    ),
    "molecules 1 to 3: CGP-UCB beats one per molecule": _less(
        "regret_alike", peptides.CGP, peptides.SEPARATE
    ),
    "molecules 1 to 3: merging beats one per molecule": _less(
        "regret_alike", peptides.MERGED, peptides.SEPARATE
    ),
    "molecule 4: merging is worse than CGP-UCB": _less(
        "regret_fourth", peptides.CGP, peptides.MERGED
    ),
    "molecule 4: merging is worse than one per molecule": _less(
        "regret_fourth", peptides.SEPARATE, peptides.MERGED
    ),
    "molecules 4 to 7: merging is worse than CGP-UCB": _less(
        "regret_others", peptides.CGP, peptides.MERGED
    ),
    "molecules 4 to 7: merging is worse than one per molecule": _less(
        "regret_others", peptides.SEPARATE, peptides.MERGED
    ),
    "worst case over molecules: CGP-UCB beats merging": _less(
        "worst_gap", peptides.CGP, peptides.MERGED
    ),
    "worst case over molecules: CGP-UCB beats one per molecule": _less(
        "worst_gap", peptides.CGP, peptides.SEPARATE
    ),
}


# What section 6 says, and the claims above that it stands for.
_PAPER: Mapping[str, tuple[str, Sequence[int]]] = {
    "sensors: ignoring the correlation between contexts performs poorly": ("sensors", (0,)),
    "sensors: merging performs best for the first few timesteps": ("sensors", (1,)),
    "sensors: after more than one day CGP-UCB outperforms the others": ("sensors", (2,)),
    "peptides: for the first three molecules merging and CGP-UCB perform similarly, both better "
    "than ignoring": ("peptides", (0, 1, 2)),
    "peptides: from the fourth molecule on merging performs poorly": ("peptides", (5, 6)),
    "peptides: in the worst case over molecules CGP-UCB outperforms the two baselines": (
        "peptides",
        (7, 8),
    ),
}


def verdict_rows(sensor_rows: Sequence[Row], peptide_rows: Sequence[Row]) -> list[Row]:
    """What Krause and Ong claim, and whether it holds: in the main setting, and in how many of all.

    Args:
        sensor_rows: A row for each run on the sensors.
        peptide_rows: Likewise on the peptides.

    Returns:
        A row for each claim; on the sensors for the largest reading and for the mean reading.
    """
    table = []
    for claim, (experiment, parts) in _PAPER.items():
        if experiment == "sensors":
            checks = {
                f" ({reading} reading)": [list(claims.values())[i] for i in parts]
                for reading, claims in SENSOR_CLAIMS.items()
            }
            rows, settings = sensor_rows, played(sensor_rows, sensors.SENSOR_SETTINGS)
        else:
            checks = {"": [list(PEPTIDE_CLAIMS.values())[i] for i in parts]}
            rows, settings = peptide_rows, played(peptide_rows, peptides.PEPTIDE_SETTINGS)
        for suffix, each in checks.items():
            holds = {name: _all(*each)(_rows_of(rows, name))[1] for name in settings}
            table.append(
                {
                    "claim": claim + suffix,
                    "main setting": "holds" if holds[sensors.MAIN] else "**does not hold**",
                    "settings in which it holds": f"{sum(holds.values())} of {len(holds)}",
                }
            )
    return table


def claim_rows(
    rows: Sequence[Row], claims: Mapping[str, Check], settings: Mapping[str, Any]
) -> list[Row]:
    """The claims: a row for each, a column for each setting.

    Args:
        rows: A row for each run.
        claims: Their checks.
        settings: By their names in the rows; those that were not played are left out, and what one
            did not play anew is that of the main one.

    Returns:
        "yes" or "no" with what was measured.
    """
    table = []
    for claim, check in claims.items():
        row: Row = {"claim": claim}
        for name, setting in played(rows, settings).items():
            measured, holds = check(_rows_of(rows, name))
            row[setting.title] = f"{'yes' if holds else '**no**'} ({measured})"
        table.append(row)
    return table


_Setting = TypeVar("_Setting")


def played(rows: Sequence[Row], settings: Mapping[str, _Setting]) -> dict[str, _Setting]:
    """The settings that have rows."""
    names = {row["setting"] for row in rows}
    return {name: setting for name, setting in settings.items() if name in names}


def _rows_of(rows: Sequence[Row], setting: str) -> list[Row]:
    """The rows of a setting, completed by those of the main one for methods it did not play."""
    own = [row for row in rows if row["setting"] == setting]
    methods = {row["method"] for row in own}
    main = [row for row in rows if row["setting"] == sensors.MAIN]
    return own + [row for row in main if row["method"] not in methods]
