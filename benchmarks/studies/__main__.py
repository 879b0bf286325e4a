"""Studies that are kept: what they survive, and what it costs.

    python -m benchmarks.studies [--smoke] [--only PART ...]

Fails where something that must hold does not; a smoke run judges no times. Writes report.md, whose
other parts stay as they are.
"""

from __future__ import annotations

import importlib
import re
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common.command_line import parse_options
from benchmarks.common.machine import describe_machine
from benchmarks.common.tables import markdown_table

# The modules beside this one, and how the report calls what they measure.
_PARTS = {
    "kills": "Processes that are killed",
    "interrupts": "Calls that are interrupted",
    "many_processes": "Eight processes at once",
    "dask_workers": "A cluster whose workers are killed",
    "postgresql": "A server that is stopped and started",
    "costs": "Costs",
    "busy_machine": "Asks in a busy machine",
}


def main(argv: list[str] | None = None) -> None:
    """Measures, and writes the report."""
    only = {"nargs": "+", "choices": list(_PARTS), "help": "parts to measure (default: all)"}
    description = "What studies that are kept survive, and what it costs."
    options = parse_options("studies", description, argv, more={"only": only})
    report = options.output / "report.md"
    broken = []
    for part in options.more["only"] or _PARTS:
        start = time.perf_counter()
        # In the folder of the results: others may lie in memory.
        with tempfile.TemporaryDirectory(dir=options.output) as folder:
            tables = importlib.import_module(f"benchmarks.studies.{part}").tables
            found = tables(options, Path(folder))
        text = "\n".join(f"{said}\n\n{markdown_table(rows)}" for said, rows in found)
        command = f"python -m benchmarks.studies --only {part}{' --smoke' * options.smoke}"
        seconds = f"{time.perf_counter() - start:.0f} s"
        text += f"\n`{command}`, {seconds}, on {describe_machine()}.\n"
        print(f"## {_PARTS[part]}\n\n{text}", flush=True)
        _replace(report, _PARTS[part], text)
        cells = [(name, value) for _, rows in found for row in rows for name, value in row.items()]
        broken += [f"{part}: {name}" for name, value in cells if value is False]
    if broken:
        sys.exit(f"must hold and does not: {', '.join(dict.fromkeys(broken))}")


def _replace(report: Path, title: str, text: str) -> None:
    """Puts a part into the report, in place of what it said of it before."""
    old = report.read_text() if report.exists() else ""
    parts = dict(re.findall(r"^## (.*)\n\n((?:(?!^## ).*\n)*)", old, re.MULTILINE))
    parts = {name: part.rstrip("\n") + "\n" for name, part in parts.items()} | {title: text}
    told = [f"## {name}\n\n{parts[name]}" for name in _PARTS.values() if name in parts]
    report.write_text("\n".join(["# Studies that are kept\n", *told]))


if __name__ == "__main__":
    main()
