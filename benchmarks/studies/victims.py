"""Victims: processes that work on a study, say how far they are, and are killed."""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from sqlalchemy.engine import Connection
from torch import Tensor

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, is_alive, wait_for
from botorch_ext.strategies import Trial
from botorch_ext.studies.journal import Journal
from botorch_ext.studies.target import Target

# Where a process is: in the call that opens the study, in another call, or between two.
MOMENTS = ("opening", "deciding", "writing", "committing", "returning", "between calls")
OPENING, DECIDING, WRITING, COMMITTING, RETURNING, BETWEEN = range(len(MOMENTS))
# The name of a method of a study, and what it is given.
Call = tuple[str, list[Any], dict[str, Any]]
_PATIENCE = 300.0  # seconds, for whatever a process does next
_BRIEF = 1e-3  # seconds more in moments that would pass before anybody looks


class Victim:
    """A process that works on a study until it is killed.

    Args:
        opened: Opens the study.
        seed: Of what it does.
        runs: Whether it runs an objective in two threads, rather than making calls of every kind.
    """

    def __init__(self, opened: Callable[[], bx.Study], seed: int, runs: bool) -> None:
        self._opened, self._seed = opened, seed
        self._work = self._run if runs else self._call
        self._shared = mmap.mmap(-1, 2)  # with the process: its moment, and its number of calls
        reader, self._writer = os.pipe()
        self._child = in_a_fork(self._live)
        os.close(self._writer)
        self._notes = os.fdopen(reader)

    @property
    def moment(self) -> int:
        """The last one that the process was in."""
        return self._shared[0]

    def kill(self, moment: int, num_calls: int, delay: float) -> None:
        """Kills the process.

        Args:
            moment: In which it must first be seen.
            num_calls: How many calls it must have begun before.
            delay: Seconds from then on.

        Raises:
            ChildProcessError: It has ended by itself.
        """
        end = time.monotonic() + _PATIENCE
        while self._shared[1] < num_calls or self.moment != moment:
            if time.monotonic() > end or not is_alive(self._child):
                break
            time.sleep(2e-5)
        time.sleep(delay)
        os.kill(self._child, signal.SIGKILL)
        wait_for(self._child, -signal.SIGKILL)

    def calls(self) -> tuple[list[Call], Call | None]:
        """Those that returned, and the one that was under way when it was killed."""
        with self._notes:
            notes = [json.loads(line) for line in self._notes]
        begun = [note for note in notes if note]
        returned = len(notes) - len(begun)
        return begun[:returned], begun[-1] if len(begun) > returned else None

    # --- in the process ---------------------------------------------------------------------------

    def _live(self) -> None:
        append = self._marked(Journal.append, WRITING)
        commit = self._marked(Connection.commit, COMMITTING, RETURNING)
        ask, tell = Target.ask, Target.tell  # of a run, which has one thread for them

        def run_asks(*given: Any) -> Any:
            return self._during(("ask", [], {}), partial(ask, *given))

        def run_tells(target: Target, trial: Trial, measured: Mapping[str, Any]) -> None:
            given = partial(tell, target, trial, measured)
            self._during(("tell", [trial.id, measured["value"]], {}), given)

        with (
            patch.object(Journal, "append", append),
            patch.object(Connection, "commit", commit),
            patch.object(Target, "ask", run_asks),
            patch.object(Target, "tell", run_tells),
        ):
            study, rng = self._opened(), random.Random(self._seed)
            for name in ("ask", "tell", "abandon", "attach", "correct"):
                setattr(study, name, self._noted(name, getattr(study, name)))
            while True:
                self._work(study, rng)

    def _marked(self, method: Callable[..., Any], at: int, after: int | None = None) -> Any:
        def marked(*given: Any) -> Any:
            self._shared[0] = at
            answer = method(*given)
            if after is not None:
                self._shared[0] = after
                time.sleep(_BRIEF)
            return answer

        return marked

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any, **options: Any) -> Any:
            return self._during((name, list(given), options), partial(method, *given, **options))

        return noted

    def _during(self, call: Call, make: Callable[[], Any]) -> Any:
        # The moment first: a call that is noted must never be seen in the moment of the one before.
        self._shared[:] = bytes([DECIDING, min(self._shared[1] + 1, 255)])
        self._note(call)
        answer = make()
        self._shared[0] = BETWEEN
        time.sleep(_BRIEF)
        self._note(None)
        return answer

    def _note(self, what: Any) -> None:
        os.write(self._writer, (json.dumps(what) + "\n").encode())

    def _call(self, study: bx.Study, rng: random.Random) -> None:
        strategy, value = study.strategy, rng.uniform(-1.0, 1.0)
        pending, told = strategy.pending, sorted(strategy.history.values)
        x = strategy.domain.sample(1, seed=rng.randrange(2**31))[0].tolist()
        possible: list[Call] = [("ask", [size], {}) for size in (1, 3)]
        possible.append(("attach", [x, value], {}))
        if pending:
            id = rng.choice(pending)
            possible.append(("tell", [id, value], {}))
            possible.append(("abandon", [id], {"failed": rng.random() < 0.5}))
        if told:
            possible.append(("correct", [rng.choice(told), value], {}))
        name, given, options = rng.choice(possible)
        getattr(study, name)(*given, **options)

    def _run(self, study: bx.Study, rng: random.Random) -> None:
        def objective(x: Tensor) -> float:
            time.sleep(rng.uniform(0.0, 0.01))
            return float(torch.sin(3.0 * x).sum())

        total = len(study.strategy.history.trials) + 4
        workers = partial(ThreadPoolExecutor, 2)
        bx.run(study, objective, total, executor=workers, max_pending=2, progress=False)
