"""Claims of Vakili et al. 2023 and of independent runs, checked on the rows of the runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.common.repeated_runs import column, mean_and_sd, standard_error
from benchmarks.common.tables import Row
from benchmarks.delayed_feedback.objectives import OBJECTIVES
from benchmarks.delayed_feedback.runs import IGNORING, IGNORING_RANDOM, POISSON

_Check = Callable[[str], tuple[str, bool]]

# Regret at T = 1000 of independent runs, before this benchmark was written: f1, f2.
_BEFOREHAND = [
    (IGNORING, "Poisson(0)", ("76", "66")),
    (IGNORING, "Poisson(50)", ("850", "810")),
    (IGNORING_RANDOM, "Poisson(50)", ("850", "810")),
    ("GP-BUCB", "Poisson(25)", ("94", "94")),
    ("GP-BUCB", "Poisson(50)", ("130", "130")),
    ("BPE-Delay", "Poisson(50)", ("460 to 500", "460 to 500")),
]


def claim_rows(rows: Sequence[Row]) -> list[Row]:
    """The claims of Vakili et al. 2023, one row each.

    Args:
        rows: A row for each run on the grid with the constant width.

    Returns:
        What is claimed, what counts as holding, what was measured on each objective.
    """

    def regret(objective: str, method: str, delay: str) -> list[float]:
        where = {"objective": objective, "method": method, "delay": delay}
        return column(rows, "cumulative_regret", **where)

    def means(objective: str, method: str) -> list[float]:
        return [statistics.fmean(regret(objective, method, delay)) for delay in POISSON]

    def below(objective: str) -> tuple[str, bool]:
        ours, theirs = means(objective, "BPE-Delay")[2], means(objective, "GP-UCB-SDF")[2]
        return f"{ours:.0f} and {theirs:.0f}", ours <= 0.75 * theirs

    def linear(objective: str) -> tuple[str, bool]:
        none, half, all = means(objective, "BPE-Delay")
        found = f"{none:.0f}, {half:.0f}, {all:.0f}: + {half - none:.0f}, + {all - none:.0f}"
        return found, 1.5 <= (all - none) / (half - none) <= 2.5

    def small(objective: str) -> tuple[str, bool]:
        none, _, all = means(objective, "BPE-Delay")
        return f"{all / none:.2f} times", all <= 2 * none

    def steep(objective: str) -> tuple[str, bool]:
        none, half, all = means(objective, "GP-UCB-SDF")
        found = f"{none:.0f}, {half:.0f}, {all:.0f}: {half / none:.1f} times"
        return found, half >= 2 * none

    def no_worse(delay: str) -> _Check:
        def check(objective: str) -> tuple[str, bool]:
            ours, theirs = (regret(objective, method, delay) for method in ("BPE-Delay", "BPE"))
            gap = [a - b for a, b in zip(ours, theirs, strict=True)]
            found = f"{statistics.fmean(ours):.0f} and {statistics.fmean(theirs):.0f}"
            return found, statistics.fmean(gap) <= 2 * standard_error(gap)

        return check

    at_most = "the mean is at most 3/4 of GP-UCB-SDF's"
    paired = "the mean difference is at most 2 standard errors above 0"
    claims: list[tuple[str, str, _Check]] = [
        ("BPE-Delay is well below GP-UCB-SDF at Poisson(50) (fig. 2)", at_most, below),
        (
            "BPE-Delay grows linearly with the mean delay 0, 25, 50 (fig. 3)",
            "the excess at 50 is 1.5 to 2.5 times that at 25",
            linear,
        ),
        ("... and little", "at 50 at most twice its regret without delay", small),
        (
            "GP-UCB-SDF jumps even with moderate delays (fig. 4)",
            "at 25 at least twice its regret without delay",
            steep,
        ),
        ("BPE-Delay is no worse than BPE at Poisson(25) (fig. 5)", paired, no_worse(POISSON[1])),
        ("BPE-Delay is no worse than BPE at Poisson(50) (fig. 5)", paired, no_worse(POISSON[2])),
    ]
    table = []
    for claim, criterion, check in claims:
        found = {name: check(name) for name in OBJECTIVES}
        measured = {name: text for name, (text, _) in found.items()}
        holds = all(good for _, good in found.values())
        table.append({"claim": claim, "counts as holding if": criterion} | measured)
        table[-1]["holds"] = holds
    return table


def beforehand_rows(rows: Sequence[Row]) -> list[Row]:
    """Known numbers beside ours.

    Args:
        rows: A row for each run on the grid with the constant width.

    Returns:
        A row for each known number.
    """
    table = []
    for method, delay, known in _BEFOREHAND:
        row: Row = {"method": method, "delay": delay}
        for objective, number in zip(OBJECTIVES, known, strict=True):
            where = {"objective": objective, "method": method, "delay": delay}
            row[f"{objective}, ours"] = mean_and_sd(column(rows, "cumulative_regret", **where))
            row[f"{objective}, independent runs"] = number
        table.append(row)
    return table
