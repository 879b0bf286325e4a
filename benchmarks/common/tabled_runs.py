"""Benchmarks whose report has tables of runs, and the times of steps."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from scipy.stats import binom

from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.machine import describe_machine
from benchmarks.common.repeated_runs import column
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import REPORT, run_and_report
from benchmarks.common.tables import Row, markdown_table

#: The false-alarm rate of a test that a share of failures is at most delta.
FALSE_ALARM = 1e-4
# The largest horizon of a smoke run.
_SMOKE_HORIZON = 12


@dataclass(frozen=True)
class Table:
    """A table, whose cells have a problem and a method each.

    Args:
        problems: The problems.
        methods: What plays each of them.
        seeds: The number of runs of each cell.
        horizon: The number of steps of a run.
    """

    problems: Sequence[str]
    methods: Sequence[str]
    seeds: int
    horizon: int


def run_tables(
    name: str,
    title: str,
    argv: Sequence[str] | None,
    tables: Mapping[str, Table],
    case_of: Callable[..., Any],
    first_seed: int,
    play: Callable[[Any], Row],
    times: Callable[[Options], None],
    report: Callable[[Sequence[Row], Options], str],
    captions: Mapping[str, str] | None = None,
) -> None:
    """The command of a benchmark: runs what is missing, and writes the report from all rows.

    Args:
        name: Of the command below ``benchmarks`` and of the folder of its files.
        title: The sentence for ``--help``.
        argv: The arguments; None takes those of the process.
        tables: The tables by name.
        case_of: The case of a table, a problem, a method, a seed and a horizon.
        first_seed: The seed of the first run of each cell.
        play: What a run found, without the key of the case; picklable.
        times: Measures the times of steps, by `keep_times`.
        report: Markdown from the rows there are; draws the pictures, too.
        captions: As for `write_report`.
    """
    names = [*tables, "times"]
    only = {"nargs": "+", "choices": names, "help": "tables to run (default: all)"}
    more = {"only": only, **REPORT}
    options = parse_options(name, title, argv, processes=True, more=more)
    torch.set_num_threads(1)
    chosen = options.more["only"] or names
    cases = _cases(tables, case_of, first_seed + options.seed, options.smoke)
    if "times" in chosen and not options.more["report"]:
        times(options)

    def write(rows: list[Row]) -> None:
        left = f"{len(cases) - len(rows)} of {len(cases)} runs missing"
        write_report(options, report(rows, options), left, captions)

    run_and_report(options, cases, lambda case: case.table in chosen, partial(_row, play), write)


def _cases(
    tables: Mapping[str, Table], case_of: Callable[..., Any], first_seed: int, smoke: bool
) -> list[Any]:
    """All runs, the seeds outermost, so that what is there at any time is balanced; of a smoke run
    short ones of the first problems."""
    found = [
        case_of(name, problem, method, first_seed + i, horizon)
        for name, table in tables.items()
        for horizon in [min(table.horizon, _SMOKE_HORIZON) if smoke else table.horizon]
        for i in range(1 if smoke else table.seeds)
        for problem in (table.problems[:1] if smoke else table.problems)
        for method in table.methods
    ]
    return sorted(found, key=lambda case: case.seed)


def _row(play: Callable[[Any], Row], case: Any) -> Row:
    """The row of a run with its key, its digest and its seconds."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    row = play(case)
    return case.key | {"digest": case.digest} | row | {"wall": time.perf_counter() - start}


# --- reports --------------------------------------------------------------------------------------


def cells(
    rows: Sequence[Row], tables: Mapping[str, Table], name: str
) -> Iterator[tuple[str, str, list[Row]]]:
    """The problem, the method and the rows of each cell of a table that has rows."""
    for problem in tables[name].problems:
        for method in tables[name].methods:
            wanted = name, problem, method
            own = [row for row in rows if (row["table"], row["problem"], row["method"]) == wanted]
            if own:
                yield problem, method, own


def section(title: str, text: str, found: Sequence[Row]) -> str:
    """A section with a table; nothing without rows."""
    return f"## {title}\n\n{text}\n\n{markdown_table(found)}" if found else ""


def seconds_of_methods(rows: Sequence[Row], methods: Iterable[str]) -> str:
    """A sentence on the ``seconds`` of a question with its answer, of each method."""
    parts = [
        f"{method} {statistics.fmean(own):.2f} s"
        for method in methods
        if (own := column(rows, "seconds", method=method))
    ]
    return f"\nA question and its answer take, on one core: {'; '.join(parts)}.\n"


def most_failures(num: int, delta: float) -> int:
    """The most failures of so many runs that a failure probability of delta allows."""
    return int(binom.isf(FALSE_ALARM, num, delta))


def num_refuted(rows: Sequence[Row]) -> int:
    """The number of runs whose models were refuted."""
    return sum(row["refuted"] is not None for row in rows)


def refutations(rows: Sequence[Row]) -> Row:
    """The columns of a table that say how many models were refuted, and after how many results."""
    after = [row["refuted"] for row in rows if row["refuted"] is not None]
    return {"refuted": len(after), "after, median": statistics.median(after) if after else "-"}


# --- times ----------------------------------------------------------------------------------------


def keep_times(options: Options, seconds: Mapping[str, Any]) -> None:
    """Writes times.json: the machine, and seconds by name."""
    text = json.dumps({"machine": describe_machine(), "seconds": seconds}, indent=1)
    (options.output / "times.json").write_text(text)


def times_section(options: Options, text: str, row_of: Callable[[str, Any], Row]) -> str:
    """The section of the kept times, with a row for each name; nothing without times."""
    path = options.output / "times.json"
    if not path.exists():
        return ""
    kept = json.loads(path.read_text())
    rows = [row_of(name, seconds) for name, seconds in kept["seconds"].items()]
    return section("Time of a step", f"{text}, one thread, on {kept['machine']}.", rows)
