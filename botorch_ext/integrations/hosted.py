"""HostedStrategy: a strategy whose only memory are the trials of another tool."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from botorch_ext.domains.contexts import ContextLike
from botorch_ext.domains.space import Space
from botorch_ext.exceptions import (
    BrokenStudyError,
    HorizonReached,
    HostWarning,
    StudyError,
    WaitingForObservations,
)
from botorch_ext.integrations.counted import form_of
from botorch_ext.integrations.host_trials import (
    Fact,
    HostTrial,
    Record,
    facts_of,
    own_records,
    taken_back,
)
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.events import Abandoned, Asked, Attached, Corrected, Event, Told, Trial
from botorch_ext.studies.description import describe, is_same
from botorch_ext.studies.kept_strategy import kept_copy, require_no_values
from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.translations import SINCE_0_2_0, bare


class HostedStrategy:
    """A strategy that follows the trials of another tool, its host, which keeps everything.

    With each question comes a record, a text that the host keeps with the trial. From the records
    and the present state of the trials the strategy is made anew, bit for bit, in any process;
    where it only has to learn what is new, it does that.

    - Trials without a record of this strategy that have a value are attached, where the method
      takes such results and the point is one of its domain; while they run it knows nothing of
      them.
    - Failed trials, and those whose value is not finite, are abandoned as failed, so that methods
      look elsewhere; trials that were given up are abandoned. A value that comes later is attached.
    - A value that has changed is corrected. Where it was taken back after the next question, by
      which it was recorded, it stays known, with a warning.

    The caller sees to it that between `follow` and the keeping of the record of the next question
    nothing else asks.

    Args:
        strategy: Without events; it is copied.
        space: The parameters of the host; the domain of the strategy is its box without
            names, or points of it.
        minimize: Whether smaller values are better.
        objective: What values are of, plain data: records of another objective are others'.
    """

    def __init__(
        self,
        strategy: Strategy,
        space: Space,
        minimize: bool = False,
        objective: Any = None,
    ) -> None:
        if minimize:
            require_no_values(strategy)
        self.space = space
        self._fresh = kept_copy(strategy, minimize)
        self._sign = self._fresh.history.sign
        # Other parameters can be the same box.
        parameters = {name: plain(form_of(each)) for name, each in space.parameters.items()}
        of = [describe(strategy)["strategy"], parameters, minimize]
        self._described = from_json(to_json(of if objective is None else [*of, objective]))
        digest = hashlib.sha256(to_json(bare(self._described, SINCE_0_2_0)).encode())
        self._of = digest.hexdigest()[:8]
        # Whether records are of this strategy, by their digests: other versions have others.
        self._is_own = {self._of: True}
        self._is_described = False  # by a trial, under its own digest
        self._records: dict[str, Record] = {}
        self._warned: set[str] = set()
        self._has_unused = False
        self._forget()

    @property
    def strategy(self) -> Strategy:
        """A copy of the strategy, in the state of the trials it followed last."""
        return self._strategy.clone()

    def follow(self, trials: Sequence[HostTrial]) -> None:
        """Learns all that the trials say.

        Args:
            trials: All of the host, always in the same order.

        Raises:
            BrokenStudyError: Records that were changed, or are of another version of the library
                whose strategies ask otherwise.

        Warns:
            BotorchExtWarning: What the strategy warns of; each message once.
            HostWarning: A value was taken back, or a record does not fit those before it; each
                once. Values that the strategy cannot use, the first time there are any.
        """
        self._read(trials)
        records, strangers = own_records(trials, self._record_of)
        facts = facts_of(trials, records, self._takes)
        if self._is_behind() or facts[: len(self._facts)] != self._facts:
            self._forget()
        try:
            self._learn(facts, trials, records)
        except (ValueError, LookupError) as error:
            self._forget()
            what = repr(error) if isinstance(error, LookupError) else error
            raise BrokenStudyError(
                f"what was asked before does not fit this strategy: {what}"
            ) from error
        said: list[tuple[str, type[Warning]]] = [
            (f"trial {key} had a value and has none: what it was stays known", HostWarning)
            for key in taken_back(facts, trials)
        ]
        said += [
            (
                f"trial {key} was asked when others said something else of themselves, in another "
                "study maybe: it counts as one that somebody else asked",
                HostWarning,
            )
            for key in strangers
        ]
        said += self._unused(facts, trials)
        for message, category in said + self._strategy.take_warnings():
            if message not in self._warned:
                self._warned.add(message)
                warnings.warn(message, category, stacklevel=3)

    def ask(self, context: ContextLike | None = None) -> tuple[dict[str, Any], str]:
        """The next question, given the trials that it followed last.

        Args:
            context: ``d_z``, where the strategy takes contexts.

        Returns:
            The values of all parameters, and the record to keep with the trial.

        Raises:
            WaitingForObservations: The method must be told something first.
            HorizonReached: The method has no trials left.
            StudyError: The call before broke off, so that trials must be followed first.
            ValueError: A context that the strategy cannot take.
        """
        if self._is_behind():
            raise StudyError("the trials must be followed first, as the last question broke off")
        trial = self._strategy.ask(context=context)
        record = Record(
            self._of,
            self._number,
            tuple(self._facts[self._num_recorded :]),
            trial.x.tolist(),
            None if trial.context is None else trial.context.tolist(),
            trial.info,
            None if self._is_described else self._described,
        )
        text = record.text()
        self._is_described = True
        self._records[text] = record
        self._facts.append(("asked", text, None))
        self._num_recorded, self._number = len(self._facts), self._number + 1
        return self.space.params(trial.x), text

    def num_askable(self, most: int) -> int:
        """How many trials without a context can be asked, given those that it followed last.

        Args:
            most: Where it is so many or more, this is the answer.
        """
        if self._is_behind():
            return most
        for number in (most, *range(1, most)):
            try:
                self._strategy.require_askable(number, Choices(None))
            except WaitingForObservations as waits:
                return waits.available
            except HorizonReached:
                if number < most:
                    return number - 1
            else:
                if number == most:
                    return most
        return most - 1

    def has_asked(self, trial: HostTrial) -> bool:
        """Whether the record of a trial is one of this strategy, with its arguments and space.

        Args:
            trial: Of the host; it was followed.
        """
        return self._record_of(trial) is not None

    def state(self) -> tuple[Any, ...]:
        """Where it is now, for `return_to`."""
        facts, is_described = list(self._facts), self._is_described
        return self._strategy.successor(), facts, self._num_recorded, self._number, is_described

    def return_to(self, state: tuple[Any, ...]) -> None:
        """Takes back what was asked since, of which no record is kept.

        Args:
            state: What `state` gave; once.
        """
        self._strategy, self._facts, self._num_recorded, self._number, self._is_described = state

    # --- the state --------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Starts again before the first event."""
        self._strategy = self._fresh.clone()
        # What it knows, in order; how much of it records say; the number of the next record.
        self._facts: list[Fact] = []
        self._num_recorded = self._number = 0

    def _is_behind(self) -> bool:
        return len(self._strategy.history.events) != len(self._facts)

    def _learn(
        self, facts: list[Fact], trials: Sequence[HostTrial], records: Mapping[int | str, Record]
    ) -> None:
        """Brings the strategy from the facts it has to these, which begin with them."""
        strategy, events = self._strategy, []
        keys: dict[Any, int | str] = {  # by records
            trial.record: trial.key for trial in reversed(trials) if trial.key in records
        }
        by_key = {trial.key: trial for trial in trials}
        ids: dict[int | str, int] = {}  # of the latest trial of the strategy that has the key
        num_trials = 0
        for place, (kind, key, value) in enumerate(facts):
            if kind in ("asked", "attached"):
                key = keys[key] if kind == "asked" else key
                ids[key], num_trials = num_trials, num_trials + 1
            if place < len(self._facts):
                continue
            events.append(self._event(kind, ids[key], value, by_key[key], records.get(key)))
        strategy.follow(events)
        self._facts = facts
        self._num_recorded = 1 + max(
            (place for place, fact in enumerate(facts) if fact[0] == "asked"), default=-1
        )
        asked = filter(None, map(self._record_of, trials))
        self._number = 1 + max((record.number for record in asked), default=-1)

    def _event(
        self, kind: str, id: int, value: float | None, trial: HostTrial, record: Record | None
    ) -> Event:
        like = self._fresh.domain.like
        own = None if value is None else self._sign * value
        if kind == "asked" and record is not None:
            context = None if record.context is None else like.new_tensor(record.context)
            return Asked(Trial(id, like.new_tensor(record.x), context, record.info))
        if own is None:
            return Abandoned(id, failed=kind == "failed")
        if kind == "told":
            return Told(id, own)
        if kind == "corrected":
            return Corrected(id, own)
        x, context = self._place_of(trial)
        info = self._fresh._info_of_attached(x.unsqueeze(0), context)
        return Attached(Trial(id, x, context, info), own)

    def _read(self, trials: Sequence[HostTrial]) -> None:
        """Reads the records of trials, and which of the strategies they describe is this one."""
        self._is_described = False
        for text in (trial.record for trial in trials if trial.record is not None):
            if text not in self._records:
                self._records[text] = Record.read(text)
            record = self._records[text]
            if record.strategy is not None:
                self._is_described |= record.of == self._of
                if record.of not in self._is_own:
                    self._is_own[record.of] = is_same(record.strategy, self._described)

    def _record_of(self, trial: HostTrial) -> Record | None:
        """The record of a trial that was read, where it is one of this strategy."""
        record = None if trial.record is None else self._records[trial.record]
        return record if record is not None and self._is_own.get(record.of, False) else None

    def _takes(self, trial: HostTrial) -> bool:
        """Whether the value of a trial can be attached."""
        if self._fresh.refuses_attached is not None:
            return False
        try:
            self._place_of(trial)
        except ValueError:
            return False
        return True

    def _unused(
        self, facts: Sequence[Fact], trials: Sequence[HostTrial]
    ) -> list[tuple[str, type[Warning]]]:
        """What is said of values that nothing is learnt from."""
        known = {key for _, key, value in facts if value is not None}
        keys = [trial.key for trial in trials if trial.outcome == "told" and trial.key not in known]
        if not keys or self._has_unused:
            return []
        self._has_unused = True
        which = f"the value of trial {keys[0]} is"
        if len(keys) > 1:
            which = f"the values of {len(keys)} trials, {keys[0]} the first, are"
        why = self._fresh.refuses_attached or "none of the points to choose from is there"
        return [(f"{which} not used: {why}", HostWarning)]

    def _place_of(self, trial: HostTrial) -> tuple[Tensor, Tensor | None]:
        """The point and the context of a trial, or a ValueError where they are none of the
        strategy."""
        strategy, record = self._fresh, self._record_of(trial)
        like = strategy.domain.like
        x = self.space.point(trial.values) if record is None else like.new_tensor(record.x)
        x = strategy.domain.require_contains(x.to(like), "x")[0]
        context = trial.context if record is None else record.context
        return x, strategy.checked_context(context)
