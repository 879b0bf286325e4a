"""Comparison of the speed of two checkouts of the repository, row by row.

    python -m benchmarks.performance.compare --old FOLDER [--new FOLDER] [--pairs 9] [--rows TEXT]

Each checkout has a process of its own, with one thread and the library of that checkout; both time
the rows of this one (`compared_rows`), in turns. Times are CPU seconds, which other work on the
machine disturbs less. A row is slower where the lower 95 % limit of the median ratio is above 1.05.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from scipy.stats import binom
from tqdm import tqdm

from benchmarks.common.machine import describe_machine
from benchmarks.common.tables import Row, markdown_table

_CHECKOUT = Path(__file__).parents[2]
_SLOWER = 1.05

# The library comes from one checkout and the rows from another; CPU time is every clock there is.
_WORKER = """
import sys, time, warnings
time.perf_counter = time.process_time
library, rows = sys.argv[1:3]
sys.path[0] = library
import botorch_ext
assert botorch_ext.__file__.startswith(library), botorch_ext.__file__
sys.path[0] = rows
warnings.filterwarnings("ignore")
from benchmarks.performance.compare import serve
serve(smoke=sys.argv[3] == "True")
"""


def serve(smoke: bool) -> None:
    """Times the row that is named on a line of the input; an empty line ends it."""
    from benchmarks.performance.compared_rows import ROWS

    torch.set_num_threads(1)
    name, measure = "", None
    while asked := sys.stdin.readline().strip():
        if asked != name:
            name, measure = asked, None  # what the row before holds goes first
            measure = ROWS[name](smoke)
        assert measure is not None
        gc.collect()
        print(repr(measure()), flush=True)


class _Worker:
    """A process that times rows with the library of one checkout.

    Args:
        library: The checkout.
        smoke: Whether rows are small.
    """

    def __init__(self, library: Path, smoke: bool) -> None:
        command = [sys.executable, "-c", _WORKER, str(library), str(_CHECKOUT), str(smoke)]
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.library = library
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | one_thread,
        )

    def seconds(self, row: str) -> float:
        """One measurement of a row.

        Raises:
            RuntimeError: The process ended; why is on the standard error.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the answer tells
            print(row, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"no time for {row!r} with the library of {self.library}")
        return float(answer)

    def close(self) -> None:
        """Ends the process."""
        self.process.communicate("\n")


def lower_limit(ratios: Sequence[float]) -> float:
    """The lower 95 % limit of the median of ratios, -inf where they are too few (less than five).

    The k-th smallest, k the largest for which so few ratios, or fewer, lie below the median with a
    probability of at most 5 % (binomial, 1/2): of nine the second smallest, whose level is 98 %. No
    assumption on the distribution but independence.
    """
    ordered, k = sorted(ratios), 0
    while binom.cdf(k, len(ordered), 0.5) <= 0.05:
        k += 1
    return ordered[k - 1] if k else -math.inf


def compare(old: Path, new: Path, rows: Sequence[str], pairs: int, smoke: bool) -> list[Row]:
    """Times rows on two checkouts, in turns.

    Args:
        old: One checkout.
        new: The other.
        rows: Keys of `ROWS`.
        pairs: Measurements of each row on each, after one that is not counted.
        smoke: Whether rows are small, and all measurements counted.

    Returns:
        A row of the table for each.
    """
    workers = [_Worker(folder, smoke) for folder in (old, new)]
    table: list[Row] = []
    first = 0 if smoke else 1
    try:
        for row in tqdm(rows, unit="row"):
            times = [[worker.seconds(row) for worker in workers] for _ in range(first + pairs)]
            times = times[first:]
            ratios = [ours / theirs for theirs, ours in times]
            limit = lower_limit(ratios)
            table.append(
                {
                    "row": row,
                    "old": f"{1e3 * statistics.median(first for first, _ in times):.4g} ms",
                    "new": f"{1e3 * statistics.median(second for _, second in times):.4g} ms",
                    "new / old": f"{statistics.median(ratios):.3f}",
                    "lower 95 % limit": f"{limit:.3f}",
                    "": "**slower**" if limit > _SLOWER else "",
                }
            )
    finally:
        for worker in workers:
            worker.close()
    return table


def main(argv: list[str] | None = None) -> None:
    """Compares two checkouts and prints the table."""
    from benchmarks.performance.compared_rows import ROWS

    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--old", type=Path, default=_CHECKOUT, help="a checkout (default: this)")
    parser.add_argument("--new", type=Path, default=_CHECKOUT, help="another one (default: this)")
    parser.add_argument("--pairs", type=int, default=9, help="for each row (default: 9)")
    parser.add_argument("--rows", default="", help="a regular expression that names must contain")
    parser.add_argument("--smoke", action="store_true", help="only show that it runs, in seconds")
    given = parser.parse_args(argv)
    rows = [name for name in ROWS if re.search(given.rows, name)]
    if not rows:
        parser.error(f"no row contains {given.rows!r}; there are: {'; '.join(ROWS)}")
    old, new = given.old.resolve(), given.new.resolve()
    if given.smoke:  # one row of each kind
        kinds = {getattr(ROWS[name], "func", ROWS[name]): name for name in rows}
        rows = list(kinds.values())
    torch.set_num_threads(1)  # as the workers, for the line on the machine
    pairs = 1 if given.smoke else given.pairs
    table = compare(old, new, rows, pairs, given.smoke)
    slower = sum(bool(row[""]) for row in table)
    print(f"{markdown_table(table)}\n{slower} of {len(table)} rows are slower.")
    print(f"Medians of {pairs} pairs in turns, CPU time, on {describe_machine()}.")


if __name__ == "__main__":
    main()
