"""Report on the insured methods: claims, known failures, and a table for each question."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.common.repeated_runs import column, standard_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.insured.claims import CLAIMS, KNOWN_FAILURES, Claim, cells, pairs, ratio
from benchmarks.insured.tables import TABLES

_TITLES = {
    "price": "The price where nothing is wrong: eps = 0",
    "generic": "Generic perturbations, those of the misspecification benchmark",
    "worst": "Worst cases",
    "scales": "Wrong scales and a lock-out: several models",
    "delays": "Late feedback: width sqrt(6), and theoretical widths with a free rule of sqrt(6)",
    "lost": "Whether the maximiser is lost",
    "hyperparameters": "The four experiments on unknown hyperparameters, their first widths",
    "boxes": "Boxes and contexts",
    "failures": "Where the price is higher",
}


def report(rows: Sequence[Row], num_missing: int) -> str:
    """The Markdown text.

    Args:
        rows: A row for each run there is.
        num_missing: How many runs are not there.
    """
    parts = [
        "# Insured methods",
        "Cumulative regret, mean ± standard error over the seeds; in brackets the ratio to the "
        "first method with the standard error of the paired ratio. What counts as holding was "
        "written down before the runs.",
    ]
    if num_missing:
        parts.append(f"{num_missing} of {len(rows) + num_missing} runs are missing.")
    parts += ["## Claims", _claims(CLAIMS, rows)]
    parts += ["## Known failures, and whether they were reproduced", _claims(KNOWN_FAILURES, rows)]
    for name, cell_group in TABLES.items():
        parts.append(f"## {_TITLES[name]}")
        of_table = [row for row in rows if row["table"] == name]
        for methods in dict.fromkeys(cell.methods for cell in cell_group):
            alike = [cell for cell in cell_group if cell.methods == methods]
            kept = [row for row in of_table if any(cell.has(row) for cell in alike)]
            lines = [_line(key, cell, methods) for key, cell in cells(kept).items()]
            parts += [markdown_table(lines)] if lines else []
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _claims(claims: Sequence[Claim], rows: Sequence[Row]) -> str:
    return markdown_table([claim.row(rows) for claim in claims])


def _line(name: str, rows: Sequence[Row], methods: Sequence[str]) -> Row:
    line: Row = {"cell": name, "seeds": len({row["seed"] for row in rows})}
    for method in methods:
        values = column(rows, "regret", method=method)
        text = (
            "" if not values else f"{statistics.fmean(values):.3g} ± {standard_error(values):.2g}"
        )
        if method != methods[0] and pairs(rows, method, methods[0]):
            found, error = ratio(rows, method, methods[0])
            text += f" ({found:.2f} ± {error:.2f})"
        line[method] = text
    return line
