"""The base class of methods whose rounds end with a block that renews a certificate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import torch

from botorch_ext.records import plain
from botorch_ext.strategies.fixed_design.progress import Schedule
from botorch_ext.strategies.fixed_design.round_strategy import RoundStrategy

# A block is useful if the certificate is more than this many times the half-width that the block
# promises, which is about twice the certificate after the block.
USEFUL = 4.0


class CertifyingStrategy(RoundStrategy):
    """A strategy whose rounds are free steps, a block, and a wait until enough of it has arrived.

    When a step begins, a subclass asks whether the round `_closes`, then whether a block `_is_due`.
    If it is, the subclass has it planned by `_plan`, and skipped by `_rest_if_useless`; otherwise
    `_go_on` ends a rest or a wait that was too long. The argument ``recorded`` is the record of a
    step that is replayed, or None.
    """

    #: The lengths of the rounds and of their blocks.
    schedule: Schedule
    #: A round closes when the largest standard deviation is at most so many times the promised one.
    kappa: float = 1.0
    # The prior with the told points of the blocks of this round.
    _arrived: Any

    @abstractmethod
    def _nothing_arrived(self) -> Any:
        """The prior, to which the told points of a block will be added."""

    @abstractmethod
    def _largest_std(self) -> float:
        """The largest standard deviation among survivors, given what has arrived."""

    def _population_seed(self) -> int:
        """The seed of the points from which a region is searched, one for each round."""
        return self._seed_of(self._progress.round)

    def _closes(self, recorded: Any, name: str) -> bool:
        """Whether enough of the block has arrived; ``name`` is the entry of the record that says
        so."""
        now = self._progress
        if now.phase != "wait":
            return False
        if self._arrived.num_observations == len(now.bought):
            return True  # despite rounding
        if recorded is not None:
            return bool(getattr(recorded, name))
        rounding = 1e-9 if self.domain.dtype is torch.float64 else 1e-4
        return self._largest_std() <= self.kappa * now.promise * (1 + rounding)

    def _start_next_round(self) -> None:
        self._progress, self._arrived = self._progress.next_round(), self._nothing_arrived()

    def _is_due(self) -> bool:
        """Whether the free steps are over, in a round that the horizon does not cut."""
        now = self._progress
        length, bought = self.schedule.length(now.round), self.schedule.num_bought(now.round)
        left = self.horizon - self.history.num_asked - 1  # after this step
        # If they suffice for the block, the horizon does not cut this round.
        return now.phase == "free" and now.position >= length - bought and left > bought

    def _plan(self, recorded: Any) -> dict[str, Any]:
        """Plans the block of a round, or more points if too little of it arrived, and returns the
        ``plan`` of ``info``."""
        again, record = self._progress.phase == "wait", self._taken(recorded, "plan")
        choice = self._plan_block(self.schedule.num_bought(self._progress.round), record)
        if record is not None:
            promise = record.promise
        elif again:
            promise = self._progress.promise
        else:
            model, survivors = self._planner().fork(), self._progress.survivors
            model.add(self._space.points(choice), None)
            belief = self._space.belief(model, survivors)
            promise = self._space.largest_std(survivors, belief, self._population_seed())
        self._progress = replace(self._progress, promise=promise)
        return plain(choice) | {"promise": promise}

    def _rest_if_useless(self, most: float, recorded: Any) -> None:
        """Skips the block that was just planned if the certificate is at most a number."""
        phase = "rest" if self._progress.certificate <= most else "block"
        if recorded is not None and self._is_corrected:
            phase = recorded.phase
        self._progress = replace(self._progress, phase=phase)

    def _go_on(self, recorded: Any) -> dict[str, Any]:
        """Ends a rest, or plans more points if the wait has lasted for the length of the round.
        Returns what ``info`` says about it."""
        now, length = self._progress, self.schedule.length(self._progress.round)
        if now.phase == "rest" and now.position >= length:
            self._start_next_round()
        elif now.phase == "wait" and now.waited >= length:
            return {"plan": self._plan(recorded)}
        return {}
