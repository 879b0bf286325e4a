"""Studies that are kept: what it costs.

    python -m benchmarks.studies [--smoke]

A tell against plain fsyncs of the same size, the journal of 10,000 events read, and a study that is
opened against its points added to the model one by one. Writes report.md.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.tables import markdown_table
from benchmarks.studies.costs import journal_rows, opening_row, tell_row


def main(argv: list[str] | None = None) -> None:
    """Measures, and writes the report."""
    options = parse_options("studies", "What it costs to keep a study.", argv)
    small = options.smoke
    # In the folder of the results: others may lie in memory.
    with tempfile.TemporaryDirectory(dir=options.output) as name:
        folder = Path(name)
        tell = tell_row(folder, *((20, 5) if small else (100, 50)))
        journal = journal_rows(folder, 200 if small else 10_000)
        sizes = (20,) if small else (100, 500, 2000)
        opening = [
            opening_row(folder, on_set, num_points, num_pending, 9 if num_points < 1000 else 3)
            for num_points in sizes
            for on_set in (False, True)
            for num_pending in (1, 10)
        ]
    text = (
        "# Studies that are kept\n\n"
        "A tell may take the larger of 5 ms and three fsyncs. Medians, in ms.\n\n"
        f"{markdown_table([tell])}\n"
        f"Reading a journal, digests checked and events made:\n\n{markdown_table(journal)}\n"
        "Opening a study, medians of CPU time in ms. Adding is that of the same points to a model "
        "that is there, one by one; replay that of the same events. What opening leaves to the "
        f"first ask would show beside the second.\n\n{markdown_table(opening)}"
    )
    write_report(options, text, "one process")


if __name__ == "__main__":
    main()
