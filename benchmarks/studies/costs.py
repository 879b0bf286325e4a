"""Costs of keeping a study: of a tell, of reading the journal, of opening."""

from __future__ import annotations

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern
from benchmarks.common.tables import Row, Tables
from benchmarks.studies.strategies import BOX, box
from botorch_ext.models import KernelGP
from botorch_ext.strategies import RandomSearch, Strategy
from botorch_ext.studies.databases import Database
from botorch_ext.studies.journal import Journal
from botorch_ext.studies.records import as_text, from_text


def _seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def _told(study: bx.Study | Strategy, number: int) -> None:
    """That many random points, asked and told; no search."""
    for i, x in enumerate(BOX.sample(number, seed=0)):
        study.attach(x, float(torch.sin(3.0 * x).sum()) + 0.01 * i)


def tell_row(folder: Path, num_points: int, repeats: int) -> Row:
    """A tell against three plain fsyncs of the same size in the same folder, in turn."""
    path, alone = folder / "tell.db", box()
    study = bx.Study(path, box())
    _told(study, num_points - repeats)
    _told(alone, num_points - repeats)
    tells, plain, syncs = [], [], []
    wal = Path(f"{path}-wal")
    with (folder / "plain").open("wb") as file:
        for _ in range(repeats):
            trial, own = study.ask(), alone.ask()
            before = wal.stat().st_size
            tells.append(_seconds(lambda id=trial.id: study.tell(id, 0.5)))
            plain.append(_seconds(lambda id=own.id: alone.tell(id, 0.5)))
            page = os.urandom(max(wal.stat().st_size - before, 4096))

            def sync(page: bytes = page) -> None:
                file.write(page)
                file.flush()
                os.fsync(file.fileno())

            syncs.append(sum(_seconds(sync) for _ in range(3)))
    allowed = max(0.005, statistics.median(syncs))
    return {
        "what": f"a tell, {num_points} points",
        "ms": 1000 * statistics.median(tells),
        "of the strategy alone": 1000 * statistics.median(plain),
        "three fsyncs": 1000 * statistics.median(syncs),
        "share of what is allowed": statistics.median(tells) / allowed,
    }


def journal_rows(folder: Path, counts: tuple[int, ...]) -> list[Row]:
    """Reading journals of so many events: time and memory."""
    strategy = RandomSearch(BOX)
    for trial in strategy.ask(max(counts) // 2):
        strategy.tell(trial.id, 0.1 * trial.id)
    bodies = [as_text(event, 1.0) for event in strategy.events]
    rows = []
    for count in counts:
        database = Database(folder / f"journal_{count}.db")
        journal = Journal.begin(database, "study", False, {})
        with journal.writing() as connection:
            journal.append(connection, journal.start, bodies[:count])

        def read(journal: Journal = journal) -> Any:
            with journal.reading() as connection:
                entries, _ = journal.since(connection, journal.start)
            return [from_text(entry.body, BOX.like, 1.0) for entry in entries]

        seconds = statistics.median(_seconds(read) for _ in range(3))
        tracemalloc.start()
        read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = {"what": f"reading {count:,} events", "s": seconds, "peak MB": peak / 1e6}
        rows.append(row | {"bytes an event": round(peak / count)})
    return rows


def opening_row(folder: Path, num_points: int, repeats: int) -> Row:
    """Opening a study against adding its points to the model one by one, in CPU time, in turn."""
    path = folder / "opening.db"
    study = bx.Study(path, box())
    for _ in range(num_points // 10):
        for trial in study.ask(10):
            study.tell(trial.id, float(torch.sin(3.0 * trial.x).sum()))
    X, Y = study.strategy.evaluated()

    def add() -> None:
        model = KernelGP(matern(0.7), 0.01)
        for x, y in zip(X, Y, strict=True):
            model.add(x[None], y[None])

    def replay() -> None:
        box().replay(study.events)

    measured = [
        [_seconds(work, time.process_time) for work in (lambda: bx.Study(path, box()), add, replay)]
        for _ in range(repeats)
    ]
    opened, added, replayed = (statistics.median(column) for column in zip(*measured, strict=True))
    return {
        "what": f"opening, {num_points} trials",
        "ms": 1000 * opened,
        "adding the points": 1000 * added,
        "replay without a file": 1000 * replayed,
        "ratio to adding": opened / added,
        "ratio to replay": opened / replayed,
    }


def tables(options: Options, folder: Path) -> Tables:
    """A tell, journals, opening."""
    small = options.smoke
    counts = (100, 200) if small else (5_000, 10_000, 20_000)
    return [
        (
            "A tell may take the larger of 5 ms and three fsyncs. Medians, in ms.",
            [tell_row(folder, *((20, 5) if small else (100, 50)))],
        ),
        (
            "Reading a journal, digests checked and events made; 10,000 events in 5 s.",
            journal_rows(folder, counts),
        ),
        (
            "Opening a study, medians of CPU time in ms. Adding is that of the same points to the "
            "model, one by one; replay that of the same events.",
            [opening_row(folder, *((20, 2) if small else (200, 9)))],
        ),
    ]
