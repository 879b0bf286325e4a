"""Questions: which trial a run evaluates next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.strategies import Trial
from botorch_ext.studies.streams import Stream
from botorch_ext.studies.target import Target

# Seconds for which a run that has to wait leaves others what they have pending, at the least, and
# seconds between two looks at what they have told.
_LEAST_WAIT, _PAUSE = 10.0, 0.5


@dataclass
class Questions:
    """The trials that one run evaluates.

    Args:
        target: What is asked.
        num_trials: How many trials there may be, those of others and of earlier runs included.
        contexts: Of the trials; None without contexts.
        actions: What there is to choose from; None for the whole domain.
        is_late: Whether others are not waited for any more.
    """

    target: Target
    num_trials: int
    contexts: Stream | None
    actions: Stream | None
    is_late: Callable[[], bool]
    left: list[Trial] = field(default_factory=list)
    is_offered: bool = False

    def take_over(self) -> None:
        """Puts what is pending, and under way in no other run of this machine, first."""
        self.left = self.target.taken_over()

    def next(self, patience: float | None) -> Trial | None:
        """The next trial; None where there is none, or none now.

        Args:
            patience: Seconds for which trials of others are waited for and left to them. None where
                trials of this run are under way: then it waits for those.

        Raises:
            WaitingForObservations: The strategy waits and nobody evaluates anything.
        """
        while True:
            while self.left:
                trial = self.left.pop(0)
                if self.target.is_pending([trial.id]):
                    return trial
            try:
                return self._asked()
            except HorizonReached:
                self.num_trials = 0
            except WaitingForObservations as error:
                if patience is None:
                    return None
                if self.target.claims is None or not error.ids:
                    raise
                self._wait_for_others(error.ids, max(patience, _LEAST_WAIT))
                if self.is_late():
                    return None

    def _asked(self) -> Trial | None:
        streams = [each for each in (self.contexts, self.actions) if each is not None]
        while (step := self.target.num_asked()) < self.num_trials:
            if self.is_offered:  # and not used: another process was first, or the strategy waited
                for stream in streams:
                    stream.carry(step)
            self.is_offered = True
            # Not in the turn: a user's function may wait for the world, and Ctrl-C ends that.
            context = None if self.contexts is None else self.contexts.at(step)
            actions = None if self.actions is None else self.actions.at(step)
            may_come_at = range(step, step + 1 if streams else self.num_trials)
            trial = self.target.ask(may_come_at, context, actions)
            if trial is not None:
                self.is_offered = False
                return trial
        return None

    def _wait_for_others(self, ids: list[int], patience: float) -> None:
        """Until one of these trials is answered. Nobody says whether those who asked them still
        live: in the end those that no other run of this machine has under way are taken over."""
        until = time.monotonic() + patience
        while self.target.is_pending(ids) and not self.left and not self.is_late():
            if time.monotonic() >= until:
                self.take_over()
            if not self.left:
                time.sleep(_PAUSE)
