"""Interrupts: what is left of a study whose calls are broken off by Ctrl-C, or by an exception of a
signal handler.

The calls are interrupted at random instants by a signal, or before each line of this package in
turn. The exception is kept with its frames, as interactive shells keep the last one. After every
interrupt the file must not be locked, must have all that was told, and the call as a whole or not
at all; and the next call must work.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, Tables
from benchmarks.studies.kills import Lost, lines
from benchmarks.studies.strategies import box
from botorch_ext.strategies import Strategy

# The lines that are interrupted: those of this package, and of blocks of ``with``.
_OWN = str(Path(bx.__file__).parent), contextlib.__file__
# Calls after which all events are compared, and a new study takes over: many events cost time.
_FEW = 200


class Alarm(Exception):
    """What a handler of SIGALRM raises."""


# From the name of a call, the call, and how far it gets of 1, to what it was interrupted with.
Interrupt = Callable[[str, Callable[[], Any], float], BaseException | None]
# One call of so many is left to end, to see how long it is.
_WHOLE = 6


def by_signal(raised: type[BaseException]) -> Interrupt:
    """Interrupts at an instant: ``KeyboardInterrupt`` by SIGINT, others by SIGALRM."""
    usual: Counter[str] = Counter()

    def handle(*_: Any) -> None:
        if raised is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
        raise raised

    def interrupt(name: str, call: Callable[[], Any], share: float) -> BaseException | None:
        duration = usual[name] * 1e-9 or 1.0
        before, began = signal.signal(signal.SIGALRM, handle), time.perf_counter_ns()
        try:
            signal.setitimer(signal.ITIMER_REAL, max(share * duration, 1e-6))
            call()
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        except BaseException as error:  # noqa: BLE001 - raised unless it came of the interrupt
            return _of_interrupt(error, raised)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
        taken = time.perf_counter_ns() - began
        usual[name] = round(0.7 * usual[name] + 0.3 * taken) if usual[name] else taken
        return None

    return interrupt


def by_line(raised: type[BaseException]) -> Interrupt:
    """Interrupts before one line of those that a call of this name ran before."""
    usual: dict[str, int] = {}

    def interrupt(name: str, call: Callable[[], Any], share: float) -> BaseException | None:
        count, at = 0, int(share * usual.get(name, 10**9))

        def trace(frame: Any, event: str, arg: Any) -> Any:
            nonlocal count
            if event == "line":
                count += 1
                if count == at + 1:
                    sys.settrace(None)
                    raise raised
            return trace

        sys.settrace(lambda frame, *_: trace if frame.f_code.co_filename.startswith(_OWN) else None)
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised unless it came of the interrupt
            return _of_interrupt(error, raised)
        finally:
            sys.settrace(None)
        usual[name] = max(count, 1)
        return None

    return interrupt


def _of_interrupt(error: BaseException, raised: type[BaseException]) -> BaseException:
    """An exception that is the interrupt, or is raised from it by code that expects exceptions, as
    those of a kernel; others are raised."""
    if isinstance(error, SQLAlchemyError):
        raise Lost("an error of SQLAlchemy reached the user") from error
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, raised):
            return error
        each = each.__cause__ or each.__context__
    raise error


def play(place: Path, strategy: Strategy, number: int, seed: int, interrupt: Interrupt) -> Row:
    """Makes calls until so many were interrupted.

    Args:
        place: Of the study, which is not there yet.
        strategy: Of the study, without events.
        number: Of interrupts.
        seed: Of the calls and of when they are interrupted.
        interrupt: How.

    Raises:
        Lost: A file that is locked, a call that is half there, or a value that is gone.
    """
    rng, kept, counts, calls = random.Random(seed), None, Counter(), 0
    study = bx.Study(place, strategy)
    expected = lines(study)
    while counts["interrupted"] < number:
        name, given = _some_call(study, rng)
        share = rng.uniform(0.0, 1.05) if calls % _WHOLE else 3.0
        caught = interrupt(name, lambda: getattr(study, name)(*given), share)  # noqa: B023
        if caught is not None:
            kept = caught  # with its frames, and all that they have
            counts["interrupted"] += 1
        _require_unlocked(place, name, kept)
        found = _num_events(place)
        size = given[0] if name == "ask" else 1
        if found - len(expected) not in ((0, size) if caught is not None else (size,)):
            raise Lost(f"{name} left {found} events, there were {len(expected)}")
        counts["kept"] += caught is not None and found > len(expected)
        if len(study.events) != found:
            raise Lost(f"{name} left {len(study.events)} events in memory, {found} in the file")
        now, calls = lines(study), calls + 1
        if now[: len(expected)] != expected:
            raise Lost(f"{name} changed what there was before")
        expected = now
        if calls % _FEW == 0:
            if lines(bx.Study(place, strategy)) != expected:
                raise Lost("the file is not what the process knows")
            study._journal.database.close()
            place = place.with_name(f"{place.stem}_{place.suffix}")
            study = bx.Study(place, strategy)
            expected = lines(study)
    return {"calls": calls, "interrupted": counts["interrupted"], "of these kept": counts["kept"]}


def _some_call(study: bx.Study, rng: random.Random) -> tuple[str, list[Any]]:
    strategy, value = study.strategy, rng.uniform(-1.0, 1.0)
    x = strategy.domain.sample(1, seed=rng.randrange(2**31))[0].tolist()
    possible: list[tuple[str, list[Any]]] = [("ask", [1]), ("ask", [3]), ("attach", [x, value])]
    if strategy.pending:
        possible += [("tell", [rng.choice(strategy.pending), value])] * 2
    if strategy.history.values:
        possible.append(("correct", [rng.choice(list(strategy.history.values)), value]))
    return rng.choice(possible)


def _require_unlocked(place: Path, name: str, kept: BaseException | None) -> None:
    other = sqlite3.connect(place, timeout=0.0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        raise Lost(f"{name} left the file locked, interrupted by {kept!r}") from error
    finally:
        other.close()


def _num_events(place: Path) -> int:
    other = sqlite3.connect(place, isolation_level=None)
    try:
        return other.execute("SELECT count(*) FROM botorch_ext_events").fetchone()[0]
    finally:
        other.close()


def tables(options: Options, folder: Path) -> Tables:
    """5,000 Ctrl-C and 5,000 alarms, half of them by a signal and half before a line."""
    number, rows = 20 if options.smoke else 2500, []
    for raised in (KeyboardInterrupt, Alarm):
        for how in (by_signal, by_line):
            name = f"{raised.__name__} {how.__name__.replace('_', ' ')}"
            place = folder / f"{raised.__name__}_{how.__name__}.db"
            row = play(place, box(), number, options.seed, how(raised))
            rows.append({"interrupt": name} | row)
    text = (
        "Calls of ask, tell, attach and correct that are broken off by an exception, which is kept "
        "with its frames. After each the file was not locked, everything told before was there, "
        "the call was kept as a whole or not at all, and the next call worked."
    )
    return [(text, rows)]
