"""The tables of the comparison."""

from __future__ import annotations

import statistics

from benchmarks.common.repeated_runs import column, difference, standard_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.drop_in.runs import METHODS, OURS, Case, problems


def report(rows: list[Row], case: Case, num_seeds: int) -> str:
    """The tables as Markdown."""
    total = case.num_initial + case.num_batches * 4
    text = (
        "# The drop-in acquisition function, four evaluations at once\n\n"
        f"Simple regret (maximum minus best value seen) after {total} evaluations, "
        f"{case.num_initial} of them Sobol points: mean ± standard error of {num_seeds} seeds. "
        "A SingleTaskGP is fitted before each decision; width 2 for every bound; no noise. "
        "*Closest*: the least distance of two points of a batch, in sides of the box, median over "
        "batches and seeds. *Seconds*: on a machine with other work.\n\n"
    )
    table, pairs = [], []
    for problem in problems():
        of_problem = [row for row in rows if row["problem"] == problem]
        for method in METHODS:
            regret = column(of_problem, "regret", method=method)
            closest = statistics.median(column(of_problem, "closest", method=method))
            seconds = statistics.fmean(column(of_problem, "seconds", method=method))
            table.append(
                {
                    "problem": problem,
                    "method": method,
                    "regret": f"{statistics.fmean(regret):.3f} ± {standard_error(regret):.3f}",
                    "median": statistics.median(regret),
                    "closest": closest,
                    "seconds a run": seconds,
                }
            )
        for other in METHODS[1:]:
            mean, error = difference(of_problem, "regret", OURS, other)
            ours, theirs = (column(of_problem, "regret", method=m) for m in (OURS, other))
            wins = sum(a < b for a, b in zip(ours, theirs, strict=True))
            pairs.append(
                {
                    "problem": problem,
                    f"{OURS} minus": other,
                    "difference": f"{mean:+.3f} ± {error:.3f}",
                    "less in": f"{wins} of {num_seeds}",
                }
            )
    text += markdown_table(table) + "\nPaired differences of the regret:\n\n"
    text += markdown_table(pairs)
    return text
