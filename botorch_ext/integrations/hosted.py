"""HostedStrategy: a strategy whose only memory is the trials of another tool."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.codec import decode, differences, encode, mapped, renamed
from botorch_ext.domains import host
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.domains.space import Space
from botorch_ext.exceptions import (
    BrokenStudyError,
    HorizonReached,
    HostWarning,
    StudyError,
    WaitingForObservations,
)
from botorch_ext.integrations.host_trials import (
    Fact,
    HostTrial,
    Record,
    Result,
    facts_of,
    own_records,
    taken_back,
)
from botorch_ext.plain_events import from_json, to_json
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.events import Abandoned, Asked, Attached, Corrected, Event, Told, Trial
from botorch_ext.studies.description import describe
from botorch_ext.studies.kept_strategy import in_domain, kept_copy

# The number of weighted sums by which a large tensor is known.
_NUM_SUMS = 4


class HostedStrategy:
    """A strategy that follows the trials of another tool, its host, which stores everything.

    `ask` returns a record with each trial, a text that the host stores with the trial. From the
    records and the present state of the trials, the strategy can be restored bit for bit in any
    process. If only some trials are new, it only learns those.

    - A trial without a record of this strategy that has a value is attached, if the method takes
      such results and the point lies in its domain. While such a trial runs, the strategy does not
      know of it.
    - A trial that failed, or whose value is not finite, is abandoned as failed, so that methods
      look elsewhere. A cancelled trial is abandoned. A value that comes later is attached.
    - A standard error is told with its value if the method takes standard errors.
    - A value that has changed, or its standard error, is corrected. If a value is removed after
      the record of the next trial has stored it, the value stays known, with a warning.

    The caller must make sure that nothing else asks between `follow` and storing the record of the
    next trial.

    Args:
        strategy: The strategy, without events; it is copied.
        space: The parameters of the host. The domain of the strategy must be its box without names,
            or points of that box.
        minimize: Whether smaller values are better.
        objective: Plain data that identify the objective; records of another objective do not count
            as records of this strategy.

    Raises:
        ValueError: If the strategy needs outcomes.
    """

    def __init__(
        self,
        strategy: Strategy,
        space: Space,
        minimize: bool = False,
        objective: Any = None,
    ) -> None:
        if strategy.outcome_names:
            raise ValueError(
                "strategy must need no outcomes, which hosts do not keep, got one that needs "
                f"{strategy.outcome_names}"
            )
        self.space = space
        self._fresh = kept_copy(strategy, minimize)
        # Different parameters can have the same box, so the parameters are described as well.
        of = [describe(strategy)["strategy"], encode(space.parameters), minimize, objective]
        self._described = from_json(to_json(mapped(of, _in_short)))
        self._of = digest_of(self._described)
        # Whether records with a digest are of this strategy; other machines have other digests.
        self._is_own = {self._of: True}
        self._is_described = False  # whether a trial has the description, under this digest
        self._records: dict[str, Record] = {}
        self._warned: set[str] = set()
        self._has_unused = False
        self._forget()

    @property
    def strategy(self) -> Strategy:
        """A copy of the strategy, in the state of the trials that it followed last."""
        return self._strategy.clone()

    def follow(self, trials: Sequence[HostTrial]) -> None:
        """Learn the present state of all trials.

        Args:
            trials: All trials of the host, always in the same order.

        Raises:
            BrokenStudyError: If records were changed, or are from a version of the library whose
                strategies ask for other trials.

        Warns:
            BotorchExtWarning: A warning of the strategy; each message once.
            HostWarning: If a value was removed, or a record does not fit the records before it;
                each once. Also the first time that the strategy cannot use a value.
        """
        if self._fresh.refuses_std is not None:
            trials = [replace(trial, std=None) for trial in trials]
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
                f"the trials of the host do not fit this strategy: {what}"
            ) from error
        said: list[tuple[str, type[Warning]]] = [
            (f"trial {key} has lost its value: the strategy still uses it", HostWarning)
            for key in taken_back(facts, trials)
        ]
        said += [
            (
                f"the record of trial {key} does not fit the other trials, which had other values "
                "when it was asked, perhaps in another study: the trial counts as asked by another "
                "tool",
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
        """Ask for the next trial, given the trials that were followed last.

        Args:
            context: The context, ``d_z``; only if the strategy takes contexts.

        Returns:
            The values of all parameters by name, and the record to store with the trial.

        Raises:
            WaitingForObservations: If the method needs results of pending trials first.
            HorizonReached: If the method has no trials left.
            StudyError: If the previous call was interrupted, so that `follow` must be called first.
            ValueError: If the strategy cannot take the context.
        """
        if self._is_behind():
            raise StudyError("call follow before ask, since the previous ask was interrupted")
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
        """The number of trials without a context that can be asked for, given the trials that were
        followed last.

        Args:
            most: The largest number to check.

        Returns:
            The number, at most ``most``.
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
        """Whether this strategy, with the same arguments and space, asked for a trial.

        Args:
            trial: A trial of the host that was followed.

        Returns:
            True if the record of the trial is one of this strategy.
        """
        return self._record_of(trial) is not None

    def state(self) -> tuple[Any, ...]:
        """The present state, for `return_to`.

        Returns:
            An opaque value.
        """
        facts, is_described = list(self._facts), self._is_described
        return self._strategy.successor(), facts, self._num_recorded, self._number, is_described

    def return_to(self, state: tuple[Any, ...]) -> None:
        """Go back to a state, if the records of the trials asked since then were not stored.

        Args:
            state: The value that `state` returned; it can be used only once.
        """
        self._strategy, self._facts, self._num_recorded, self._number, self._is_described = state

    # --- the state --------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Start again before the first event."""
        self._strategy = self._fresh.clone()
        # The known facts in order; how many of them records have; the number of the next record.
        self._facts: list[Fact] = []
        self._num_recorded = self._number = 0

    def _is_behind(self) -> bool:
        return len(self._strategy.history.events) != len(self._facts)

    def _learn(
        self, facts: list[Fact], trials: Sequence[HostTrial], records: Mapping[int | str, Record]
    ) -> None:
        """Bring the strategy to new facts, which begin with the facts that it has."""
        strategy, events = self._strategy, []
        keys: dict[Any, int | str] = {  # by records
            trial.record: trial.key for trial in reversed(trials) if trial.key in records
        }
        by_key = {trial.key: trial for trial in trials}
        ids: dict[int | str, int] = {}  # the latest trial of the strategy for each key
        num_trials = 0
        for place, (kind, key, value) in enumerate(facts):
            if kind in ("asked", "attached"):
                key = keys[key] if kind == "asked" else key
                ids[key], num_trials = num_trials, num_trials + 1
            if place < len(self._facts):
                continue
            event = self._event(kind, ids[key], value, by_key[key], records.get(key))
            events.append(in_domain(event, self._fresh))
        strategy.follow(events)
        self._facts = facts
        self._num_recorded = 1 + max(
            (place for place, fact in enumerate(facts) if fact[0] == "asked"), default=-1
        )
        asked = filter(None, map(self._record_of, trials))
        self._number = 1 + max((record.number for record in asked), default=-1)

    def _event(
        self, kind: str, id: int, result: Result | None, trial: HostTrial, record: Record | None
    ) -> Event:
        like = self._fresh.domain.like
        value, std = result if isinstance(result, tuple) else (result, None)
        if kind == "asked" and record is not None:
            context = None if record.context is None else like.new_tensor(record.context)
            return Asked(Trial(id, like.new_tensor(record.x), context, record.info))
        if value is None:
            return Abandoned(id, failed=kind == "failed")
        if kind == "told":
            return Told(id, value, std=std)
        if kind == "corrected":
            return Corrected(id, value, std=std)
        x, context = self._place_of(trial)
        info = self._fresh._info_of_attached(x.unsqueeze(0), context)
        return Attached(Trial(id, x, context, info), value, std=std)

    def _read(self, trials: Sequence[HostTrial]) -> None:
        """Read the records of trials, and find out which records are of this strategy."""
        self._is_described = False
        for text in (trial.record for trial in trials if trial.record is not None):
            if text not in self._records:
                self._records[text] = Record.read(text)
            record = self._records[text]
            if record.strategy is not None:
                self._is_described |= record.of == self._of
                if record.of not in self._is_own:
                    different = differences(renamed(record.strategy), self._described)
                    self._is_own[record.of] = next(different, None) is None

    def _record_of(self, trial: HostTrial) -> Record | None:
        """The record of a trial that was read, if it is one of this strategy; otherwise None."""
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
        """The warning about values that the strategy cannot use, once."""
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
        """The point and the context of a trial; a ValueError if the strategy cannot have them."""
        strategy, record = self._fresh, self._record_of(trial)
        like = strategy.domain.like
        x = self.space.point(trial.values) if record is None else like.new_tensor(record.x)
        x = strategy.domain.require_contains(x.to(like), "x")[0]
        context = trial.context if record is None else record.context
        return x, strategy.checked_context(context)


def digest_of(value: Any) -> str:
    """The digest of the plain values of any value."""
    return hashlib.sha256(to_json(encode(value)).encode()).hexdigest()[:8]


def _in_short(plain: dict[str, Any]) -> dict[str, Any]:
    """A large tensor by weighted sums of its numbers, because hosts take only short texts. Another
    order and other numbers change the sums; last digits, in which machines differ, hardly do."""
    if not isinstance(plain.get("bytes"), str):
        return plain
    given = decode(plain)
    numbers, generator = given.double().flatten(), torch.Generator().manual_seed(0)
    weights = host.randn(_NUM_SUMS, len(numbers), generator=generator, dtype=torch.float64)
    sums = weights @ numbers
    kind = given.dtype if given.is_floating_point() else torch.float64
    return {"dict": {"shape": plain["shape"], "sums": encode(sums.to(kind))}}
