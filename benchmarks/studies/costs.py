"""Costs of keeping a study: of a tell, of reading the journal, of opening; and whether they are
what they may be."""

from __future__ import annotations

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern
from benchmarks.common.tables import Row, Tables, judged
from benchmarks.studies.strategies import BOX, box
from botorch_ext.algorithms import gp_bucb
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models import FinitePosterior, KernelGP
from botorch_ext.strategies import Asked, Event, RandomSearch, Strategy, Told, Trial
from botorch_ext.strategies.event_lines import as_text, from_text
from botorch_ext.studies.databases import Database
from botorch_ext.studies.journal import Journal

_SET = bx.FiniteSet(BOX.sample(1000, seed=1))
_NOISE_VARIANCE = 0.01


def _seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def _attach(study: bx.Study | Strategy, number: int) -> None:
    """Attaches results at that many random points; no search."""
    for i, x in enumerate(BOX.sample(number, seed=0)):
        study.attach(x, float(torch.sin(3.0 * x).sum()) + 0.01 * i)


def tell_row(folder: Path, num_points: int, repeats: int) -> Row:
    """A tell against three plain fsyncs of the same size in the same folder, in turn."""
    path, alone = folder / "tell.db", box()
    study = bx.Study(path, box())
    _attach(study, num_points - repeats)
    _attach(alone, num_points - repeats)
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
    bodies = [as_text(event) for event in strategy.events]
    rows = []
    for count in counts:
        database = Database(folder / f"journal_{count}.db")
        journal = Journal.begin(database, "study", False, {})
        with journal.writing() as connection:
            journal.append(connection, journal.start, bodies[:count])

        def read(journal: Journal = journal) -> Any:
            with journal.reading() as connection:
                entries, _ = journal.since(connection, journal.start)
            return [from_text(entry.body, BOX.like) for entry in entries]

        seconds = statistics.median(_seconds(read) for _ in range(3))
        tracemalloc.start()
        read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = {"what": f"reading {count:,} events", "s": seconds}
        row["s for 10,000"] = 10_000 * seconds / count
        rows.append(row | {"peak MB": peak / 1e6, "bytes an event": round(peak / count)})
    return rows


def _adding_to_box(X: Tensor, Y: Tensor) -> Callable[[], None]:
    model = KernelGP(matern(0.7), _NOISE_VARIANCE)

    def add() -> None:
        for x, y in zip(X, Y, strict=True):
            model.add(x[None], y[None])

    return add


def _adding_to_set(X: Tensor, Y: Tensor) -> Callable[[], None]:
    model = FinitePosterior(matern(0.7), _SET.points, _NOISE_VARIANCE)
    rows, values = _SET.index(X).tolist(), Y.tolist()

    def add() -> None:
        for row, y in zip(rows, values, strict=True):
            model.add_candidate(row, y)

    return add


def _session(domain: Domain, num_points: int, num_pending: int) -> list[Event]:
    """Events of a study whose points are random and asked in rounds: each is told, then the next
    round is asked. What is asked where does not matter for what it costs to follow."""
    finite = isinstance(domain, FiniteSet)
    promised = {"model": 0, "mean": 0.1, "std": 0.2, "width": 2.0, "offset": 0.0}
    X = domain.sample(num_points, seed=0)
    rows = domain.index(X).tolist() if finite else []
    events: list[Event] = []
    for first in range(0, num_points, num_pending):
        ids = range(first, min(first + num_pending, num_points))
        for id in ids:
            info = promised | ({"index": rows[id]} if finite else {})
            events.append(Asked(Trial(id, X[id], None, info)))
        events += [Told(id, float(torch.sin(3.0 * X[id]).sum())) for id in ids]
    return events


def opening_row(folder: Path, on_set: bool, num_points: int, num_pending: int, repeats: int) -> Row:
    """Opening a study against adding its points, one by one, to a model as it had; in CPU time, in
    turn. Strategy and model are there before.

    Args:
        folder: For the file.
        on_set: Whether the domain is a finite set, else a box.
        num_points: How many trials the study has, all told.
        num_pending: In rounds of how many they were asked.
        repeats: How often it is measured.
    """
    domain, adding = (_SET, _adding_to_set) if on_set else (BOX, _adding_to_box)

    def strategy() -> Strategy:
        return gp_bucb(domain, matern(0.7), noise_variance=_NOISE_VARIANCE, width=2.0)

    path = folder / f"opening_{on_set}_{num_points}_{num_pending}.db"
    begun = bx.Study(path, strategy())._journal
    events = _session(domain, num_points, num_pending)
    with begun.writing() as connection:
        begun.append(connection, begun.start, [as_text(event) for event in events])
    measured = []
    for _ in range(repeats):
        fresh, again, opened = strategy(), strategy(), []
        own = [
            _seconds(lambda: opened.append(bx.Study(path, fresh)), time.process_time),  # noqa: B023
            _seconds(lambda: again.replay(events), time.process_time),  # noqa: B023
        ]
        known = opened[0].strategy.clone()
        own.insert(1, _seconds(adding(*known.evaluated()), time.process_time))
        measured.append([*own, *(_seconds(known.ask, time.process_time) for _ in range(2))])
    opening, added, replayed, first, second = (
        statistics.median(column) for column in zip(*measured, strict=True)
    )
    return {
        "what": f"{num_points} trials on a {'set' if on_set else 'box'}, rounds of {num_pending}",
        "opening": 1000 * opening,
        "adding the points": 1000 * added,
        "opening / adding": statistics.median(row[0] / row[1] for row in measured),
        "replay without a file": 1000 * replayed,
        "first ask": 1000 * first,
        "second ask": 1000 * second,
    }


def tables(options: Options, folder: Path) -> Tables:
    """A tell, journals, opening."""
    small = options.smoke
    counts = (100, 200) if small else (5_000, 10_000, 20_000)
    tell = [tell_row(folder, *((20, 5) if small else (100, 50)))]
    journals = journal_rows(folder, counts)
    opening = [
        opening_row(folder, on_set, num_points, num_pending, 9 if num_points < 1000 else 3)
        for num_points in ((20,) if small else (100, 500, 2000))
        for on_set in (False, True)
        for num_pending in (1, 10)
    ]
    if not small:  # which is too short to judge
        tell = judged(tell, "share of what is allowed", 1.0)
        journals = judged(journals, "s for 10,000", 5.0)
        # Linear: no more for each event of a long journal than of a short one, but for a tenth.
        journals = judged(journals, "bytes an event", 1.1 * journals[0]["bytes an event"])
        opening = judged(opening, "opening / adding", 1.2)
    return [
        ("A tell may take the larger of 5 ms and three fsyncs. Medians, in ms.", tell),
        ("Reading a journal, digests checked and events made; 10,000 events in 5 s.", journals),
        (
            "Opening a study, medians of CPU time in ms. Adding is that of the same points to a "
            "model that is there, one by one; replay that of the same events. What opening leaves "
            "to the first ask would show beside the second.",
            opening,
        ),
    ]
