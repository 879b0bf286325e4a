"""Target: the strategy or the study that a run asks and tells, while others may use it too."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor

from botorch_ext.exceptions import UnreachableStudyError, UntoldValueWarning
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.running_trials import Claims
from botorch_ext.studies.study import Study
from botorch_ext.studies.threads import threads_for

T = TypeVar("T")

# For how many seconds a database that cannot be reached is tried again, and the longest pause.
_PATIENCE, _LONGEST_PAUSE = 600.0, 15.0


class Target:
    """A strategy or a study, as a run uses it."""

    def __init__(self, asked: Strategy | Study) -> None:
        self.asked = asked
        self.claims = None if isinstance(asked, Strategy) else Claims(_identity(asked))
        self._patience = _PATIENCE
        self.takes_std = self.read(lambda strategy: strategy.refuses_std is None)
        # By trial that others gave up: how many trials there were when its value came.
        self._came_late: dict[int, int] = {}

    @property
    def outcome_names(self) -> Sequence[str]:
        """The names of the outcomes that every result must have."""
        if isinstance(self.asked, Study):
            return self.asked._kept.known.outcome_names
        return self.asked.outcome_names

    # --- reading ----------------------------------------------------------------------------------

    def read_once(self, look: Callable[[Strategy], T]) -> T:
        """The result of a function of the strategy. No other thread changes a study meanwhile."""
        if isinstance(self.asked, Strategy):
            return look(self.asked)
        return self.asked._kept.read(look)

    def read(self, look: Callable[[Strategy], T]) -> T:
        """The result of `read_once`, tried again while the study cannot be reached."""
        return self._patiently(lambda: self.read_once(look))

    def num_asked(self) -> int:
        """How many trials were asked by all processes."""
        return self.read(lambda strategy: strategy.history.num_asked)

    def is_pending(self, ids: Collection[int]) -> bool:
        """Whether all of these trials are pending."""
        return self.read(lambda strategy: set(ids) <= set(strategy.pending))

    def taken_over(self) -> list[Trial]:
        """Takes over and returns the pending trials that no other run of this machine has under
        way."""
        trials = self.read(
            lambda now: [now.history.trials[id].copy(now.history.sign) for id in now.pending]
        )
        return [trial for trial in trials if self.claims is None or self.claims.take(trial.id)]

    # --- asking and telling -----------------------------------------------------------------------

    def ask(
        self, may_come_at: range, context: Tensor | None, actions: Tensor | None
    ) -> Trial | None:
        """The next trial; None if its number among the asked trials would be none of these. Nobody
        else asks in between."""

        def act(strategy: Strategy) -> Trial | None:
            if strategy.history.num_asked not in may_come_at:
                return None
            trial = strategy.ask(context=context, actions=actions)
            if self.claims is not None:
                self.claims.take(trial.id)  # before others can see that it is pending
            return trial

        return self._change(act)

    def tell(self, trial: Trial, measured: Mapping[str, Any]) -> None:
        """Tells what was measured in a trial, as `checked_result` gives it. If another process
        answered the trial meanwhile, its answer stands: this one is attached if the trial was given
        up as failed, which is taken back; else a warning shows it."""
        value, repeats = measured["value"], measured["repeats"]
        given = {"value": repeats or value, "outcomes": measured["outcomes"]}
        given["std"] = measured["std"]

        def act(strategy: Strategy) -> str | None:
            history = strategy.history
            told = history.value_told(trial.id)
            has_failed = trial.id in history.failed and strategy.refuses_attached is None
            if trial.id not in history.values and trial.id not in history.abandoned:
                strategy.tell(trial.id, **given)
            elif told == value:
                pass  # told before Ctrl-C, or before a connection broke
            elif has_failed or trial.id in self._came_late:
                since = self._came_late.setdefault(trial.id, len(history.trials))
                if has_failed:
                    strategy.withdraw(trial.id)
                if not _is_attached(strategy, trial, value, since):
                    strategy.attach(trial.x, context=trial.context, **given)
            elif told is not None:
                return f"it was told {told} meanwhile, which correct changes"
            else:
                return "it was abandoned meanwhile"
            return None

        reason = self._change(act)
        self._give_back(trial)
        if reason is not None:
            warnings.warn(
                f"value {value} of trial {trial.id} at {trial.place} was not told: {reason}",
                UntoldValueWarning,
                stacklevel=5,
            )

    def give_up(self, trial: Trial, value: float | None) -> None:
        """Abandons a trial as failed, or tells a value instead, unless another process answered it
        meanwhile."""

        def act(strategy: Strategy) -> None:
            history = strategy.history
            if trial.id in history.values or trial.id in history.abandoned:
                return
            if value is None:
                strategy.abandon(trial.id, failed=True)
            else:
                strategy.tell(trial.id, value)

        self._change(act)
        self._give_back(trial)

    def be_brief(self) -> None:
        """Ends the repeated tries, because the run ends."""
        self._patience = 0.0

    def close(self) -> None:
        """Leaves the trials that are still pending to other runs."""
        if self.claims is not None:
            self.claims.give_back()

    def _change(self, act: Callable[[Strategy], T]) -> T:
        """The result of an action on the strategy. The action happens completely or not at all, and
        Ctrl-C waits for its end."""

        def once() -> T:
            with interrupt_later():
                if isinstance(self.asked, Study):
                    return self.asked._kept.change(act)
                with threads_for(self.asked):
                    return act(self.asked)

        return self._patiently(once)

    def _patiently(self, call: Callable[[], T]) -> T:
        """The result of a call that is tried again while the study cannot be reached."""
        began, pause = time.monotonic(), 0.25
        while True:
            try:
                return call()
            except UnreachableStudyError:
                if time.monotonic() - began >= self._patience:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _give_back(self, trial: Trial) -> None:
        if self.claims is not None:
            self.claims.give_back(trial.id)


def _is_attached(strategy: Strategy, trial: Trial, value: float, since: int) -> bool:
    """Whether this result was attached at an id from ``since`` on, by a call that broke off."""
    history = strategy.history
    return any(
        history.value_told(id) == value and history.trials[id].point.equal(trial.point)
        for id in history.attached
        if id >= since
    )


def _identity(study: Study) -> str:
    database = study._journal.database
    place = database.name
    if database.is_sqlite:  # a file can have several names
        status = os.stat(place)
        place = f"{status.st_dev}:{status.st_ino}"
    return f"{place}/{study.name}"


@contextmanager
def interrupt_later() -> Iterator[None]:
    """Makes Ctrl-C wait for the end of the block, so that no strategy is left half changed."""
    main = threading.current_thread() is threading.main_thread()  # no other has signals
    if not main or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    received = []
    handler = signal.signal(signal.SIGINT, lambda *args: received.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received and callable(handler):
            handler(*received[0])
