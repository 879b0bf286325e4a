"""Kills: what is left of a study whose processes are killed at random moments of their calls.

A process is forked, opens the study, and asks, tells, attaches, corrects and abandons, or runs an
objective in threads, until it is killed with -9. (What the kernel has taken survives that: a power
cut is not tested.) It says through a pipe what it calls, and what has
returned. The same calls are made to a strategy that is never killed: after every kill the events of
the study must be those of that strategy, bit for bit, what was asked included; and the call that
was under way is there as a whole or not at all.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, Tables
from benchmarks.studies.forks import in_a_fork, wait_for
from benchmarks.studies.strategies import box, finite
from benchmarks.studies.victims import (
    BETWEEN,
    COMMITTING,
    DECIDING,
    MOMENTS,
    OPENING,
    RETURNING,
    WRITING,
    Call,
    Victim,
)
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.event_lines import as_text
from botorch_ext.studies.threads import threads_for

# How often each moment is aimed at, and how many seconds in it may at most pass.
_AIMS = {
    OPENING: (1, 0.1),
    DECIDING: (2, 0.1),
    WRITING: (2, 0.01),
    COMMITTING: (3, 0.01),
    RETURNING: (2, 0.0),
    BETWEEN: (1, 0.0),
}

# Of kills: what was called, in which moment, and whether it is kept.
Counts = Counter[tuple[str, int, bool]]


class Lost(Exception):
    """A study that is not what the calls of its processes made it."""


class NeverKilled:
    """A strategy that is given the calls of processes that are killed.

    Args:
        strategy: Without events.
        minimize: Whether the study does whose calls they are.
    """

    def __init__(self, strategy: Strategy, minimize: bool = False) -> None:
        strategy.set_minimize(minimize)
        self._strategy = strategy

    def settle(
        self, returned: list[Call], under_way: Call | None, moment: int, kept: list[str]
    ) -> bool:
        """Makes the calls of a process that was killed, and compares.

        Args:
            returned: In order.
            under_way: The call that had not returned; None between two.
            moment: In which the process was killed.
            kept: All events of the study, as text.

        Returns:
            Whether the call under way is kept.

        Raises:
            Lost: The events are others.
        """
        for call in returned:
            self._make(call)
        expected, is_kept = self._lines(), False
        if under_way is not None:
            is_kept = len(kept) > len(expected)
            if is_kept != (moment > COMMITTING) and moment != COMMITTING:
                word = "kept" if is_kept else "lost"
                raise Lost(f"{under_way} is {word}, killed while {MOMENTS[moment]}")
            if is_kept:
                self._make(under_way)
                expected = self._lines()
        _require_equal(kept, expected)
        return is_kept

    def require_next(self, study: bx.Study) -> None:
        """Asks both.

        Raises:
            Lost: They ask something else.
        """
        study.ask()
        self._make(("ask", [], {}))
        _require_equal(lines(study), self._lines())

    def _lines(self) -> list[str]:
        return lines(self._strategy)

    def _make(self, call: Call) -> None:
        name, given, options = call
        with threads_for(self._strategy):
            getattr(self._strategy, name)(*given, **options)


def lines(study: bx.Study | Strategy) -> list[str]:
    """The events as they are kept, every bit of them."""
    return [as_text(event) for event in study.events]


def _require_equal(kept: list[str], expected: list[str]) -> None:
    if kept != expected:
        pairs = zip(kept, expected, strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(kept), len(expected)))
        raise Lost(f"event {same}: must be {expected[same:][:2]}, got {kept[same:][:2]}")


def play(
    place: str | Path,
    strategy: Strategy,
    kills: int,
    seed: int,
    watched: bool,
    minimize: bool = False,
) -> Counts:
    """Kills processes that work on one study, and compares after each; after every tenth with what
    somebody reads who has not had it open, and what is asked next.

    Args:
        place: Of the study, which is not there yet.
        strategy: Of the study, without events.
        kills: How many.
        seed: Of what is called and when it is killed.
        watched: Whether another process reads the study all the time.
        minimize: Whether the study does.

    Returns:
        How many were killed where.

    Raises:
        Lost: Something is lost, there twice, or not what is asked by a strategy that lives on.
        ChildProcessError: A process could not open the study or go on with it.
    """
    rng, counts, study, watcher = random.Random(seed), Counter(), None, None
    never_killed = NeverKilled(strategy.clone(), minimize)
    opened = partial(bx.Study, place, strategy, minimize=minimize)
    weights = [weight for weight, _ in _AIMS.values()]
    for number in range(kills):
        runs = number % 3 == 2
        victim = Victim(opened, rng.randrange(2**31), runs)
        # The file is made by the first ones, if they live to do it.
        (aim,) = [OPENING] if number < 2 else rng.choices(list(_AIMS), weights)
        delay = _AIMS[aim][1] * 10 ** rng.uniform(-4.0, 0.0)
        victim.kill(aim, 0 if aim == OPENING else rng.randint(1, 3), delay)
        returned, under_way = victim.calls()
        is_tenth = number % 10 == 9
        study = opened() if study is None or is_tenth else study
        is_kept = never_killed.settle(returned, under_way, victim.moment, lines(study))
        last = under_way or (returned[-1] if returned else ("open", [], {}))
        name = f"{'run: ' if runs and last[0] != 'open' else ''}{last[0]}"
        counts[name, victim.moment, is_kept] += 1
        if is_tenth:
            never_killed.require_next(study)
        if watched and watcher is None:
            watcher = in_a_fork(lambda: _watch(opened))
    if watcher is not None:
        os.kill(watcher, signal.SIGKILL)
        wait_for(watcher, -signal.SIGKILL)
    never_killed.require_next(opened())
    return counts


def _watch(opened: Callable[[], bx.Study]) -> None:
    study = opened()
    while True:
        lines(study)
        time.sleep(0.02)


def rows_of(counts: Counts) -> list[Row]:
    """A row for each call and one for all: how many kills there were in each moment."""
    found = []
    for name in [*sorted({name for name, _, _ in counts}), "all"]:
        own, kept = Counter(), 0
        for (call, moment, is_kept), number in counts.items():
            if name in (call, "all"):
                own[moment] += number
                kept += number * (moment == COMMITTING and is_kept)
        row: Row = {MOMENTS[moment]: own[moment] for moment in range(len(MOMENTS))}
        row[MOMENTS[COMMITTING]] = f"{own[COMMITTING]}, {kept} kept"
        found.append({"call": name} | row)
    return found


def tables(options: Options, folder: Path) -> Tables:
    """1,000 kills in 20 studies, of a box and of a finite set in turn; half of them minimise."""
    studies, kills = (2, 4) if options.smoke else (20, 50)
    counts: Counts = Counter()
    for number in range(studies):
        place, strategy = folder / f"kills_{number}.db", (box, finite)[number % 2]()
        watched, minimize = number % 4 > 1, number >= studies // 2
        counts += play(place, strategy, kills, options.seed + number, watched, minimize)
    text = (
        f"{counts.total():,} processes killed with -9 in {studies} studies, by what they called "
        "and where they were in it. After each of them the file opened, its events were bit for "
        "bit those of a strategy that is given the same calls and never killed, and the call was "
        "kept as a whole (returning, between calls), not at all (deciding, writing), or one of the "
        "two (committing)."
    )
    return [(text, rows_of(counts))]
