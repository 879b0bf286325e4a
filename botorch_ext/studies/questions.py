"""Questions: decides which trial a run evaluates next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.strategies import Trial
from botorch_ext.studies.streams import Stream
from botorch_ext.studies.target import Target

# The least number of seconds that a run waits for the trials of others before it takes them over,
# and the seconds between two looks at the study.
_LEAST_WAIT, _PAUSE = 10.0, 0.5


@dataclass
class Questions:
    """The trials that one run evaluates.

    Args:
        target: The strategy or the study that is asked.
        num_trials: How many trials may be asked, with those of other and earlier runs.
        contexts: The contexts of the trials; None without contexts.
        actions: The actions of the trials; None for the whole domain.
        is_late: Whether the run no longer waits for other runs.
    """

    target: Target
    num_trials: int
    contexts: Stream | None
    actions: Stream | None
    is_late: Callable[[], bool]
    left: list[Trial] = field(default_factory=list)
    is_offered: bool = False

    def take_over(self) -> None:
        """Takes over the pending trials that no other run of this machine has under way; they are
        evaluated first."""
        self.left = self.target.taken_over()

    def next(self, patience: float | None) -> Trial | None:
        """The next trial.

        Args:
            patience: For how many seconds the run waits for the trials of others. None if trials of
                this run are under way, for which it then waits.

        Returns:
            The trial; None if there is none, or none now.

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
            if self.is_offered:  # not used: another process was first, or the strategy waited
                for stream in streams:
                    stream.carry(step)
            self.is_offered = True
            # Outside the lock of the study: a user's function may wait, and Ctrl-C must end that.
            context = None if self.contexts is None else self.contexts.at(step)
            actions = None if self.actions is None else self.actions.at(step)
            may_come_at = range(step, step + 1 if streams else self.num_trials)
            trial = self.target.ask(may_come_at, context, actions)
            if trial is not None:
                self.is_offered = False
                return trial
        return None

    def _wait_for_others(self, ids: list[int], patience: float) -> None:
        """Waits until one of these trials is answered. The processes that asked them may be dead,
        so in the end the run takes over the trials that no other run of this machine has under
        way."""
        until = time.monotonic() + patience
        while self.target.is_pending(ids) and not self.left and not self.is_late():
            if time.monotonic() >= until:
                self.take_over()
            if not self.left:
                time.sleep(_PAUSE)
