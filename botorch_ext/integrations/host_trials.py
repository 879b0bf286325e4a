"""Trials of another tool, the records that it stores with them, and the facts that follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from botorch_ext.exceptions import BrokenStudyError, NewerStudyError
from botorch_ext.plain_events import from_json, to_json

# The version of records that is written, and those that are read; version 1 has no descriptions,
# and version 2 no standard errors.
_VERSION, _READ = 3, (1, 2, 3)

Status = Literal["running", "told", "failed", "abandoned"]
#: A value, or a value and its standard error.
Result = float | tuple[float, float]
#: A fact about a trial: its kind, the key of the trial, and the result, if there is one.
Fact = tuple[str, int | str, Result | None]

_WITH_VALUE = ("told", "attached", "corrected")
_KINDS = (*_WITH_VALUE, "failed", "abandoned")
# The known state of a trial: it runs, it was abandoned, or its result.
_RUNS, _GONE = "runs", "gone"
_Known = dict[int | str, str | Result]


@dataclass(frozen=True)
class HostTrial:
    """A trial of another tool.

    Args:
        key: The key by which the tool identifies the trial, and no other.
        values: The values of its parameters by name, as far as they are known.
        status: The state of the trial: ``"running"``, ``"told"`` (it has a value), ``"failed"`` or
            ``"abandoned"``.
        value: The observed value, in the sign of the user; a told trial whose value is not finite
            counts as failed.
        context: The context of the trial, ``d_z`` numbers; None if there is none.
        record: The record that `HostedStrategy.ask` returned with the trial; None if something else
            asked for it.
        std: The standard error of the value; None if it is not known.
    """

    key: int | str
    values: Mapping[str, Any]
    status: Status = "running"
    value: float | None = None
    context: list[float] | None = None
    record: str | None = None
    std: float | None = None

    @property
    def outcome(self) -> Status:
        """The status, where a told trial without a finite value counts as failed."""
        is_told = self.value is not None and math.isfinite(self.value)
        return "failed" if self.status == "told" and not is_told else self.status

    @property
    def result(self) -> Result | None:
        """The value, with its standard error if that is known; None unless the trial is told."""
        if self.value is None or self.outcome != "told":
            return None
        return self.value if self.std is None else (self.value, self.std)


@dataclass(frozen=True)
class Record:
    """The data that are stored with a trial, from which the strategy can be restored.

    Args:
        of: The identity of the strategy: a digest of its arguments, as the version of the library
            that asked completes them.
        number: The number of the trial in the order of asking: 0, 1, 2, ...
        before: The facts that the strategy learned between the previous trial and this one, in
            order.
        x: The point, ``d`` numbers.
        context: The context, ``d_z`` numbers; None if there is none.
        info: The ``info`` of the trial.
        strategy: The description of the strategy, by which versions with another digest recognise
            it; None if another trial has the description.
    """

    of: str
    number: int
    before: tuple[Fact, ...]
    x: list[float]
    context: list[float] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    strategy: Any = None

    def text(self) -> str:
        """The record as JSON, from which numbers are restored bit for bit."""
        before = [list(fact) if fact[2] is not None else list(fact[:2]) for fact in self.before]
        entries = {"version": _VERSION} | vars(self) | {"before": before}
        return to_json({name: entry for name, entry in entries.items() if entry is not None})

    @classmethod
    def read(cls, text: str) -> Record:
        """Read a record.

        Args:
            text: The text that `text` returned.

        Raises:
            NewerStudyError: If a newer version of the library wrote it.
            BrokenStudyError: If it cannot be read.
        """
        try:
            entries = from_json(text)
            version = entries.pop("version")
            if version in _READ:
                before = tuple(_fact(*fact) for fact in entries.pop("before"))
                record = cls(before=before, **entries)
                if type(record.number) is int and isinstance(record.of, str):
                    return record
                raise ValueError(f"number must be a whole number, got {record.number!r}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BrokenStudyError(f"the record of a trial cannot be read: {error!r}") from error
        raise NewerStudyError(
            f"the record of a trial has version {version!r}, but this library reads only versions "
            f"up to {_VERSION}: update botorch_ext"
        )


def _fact(kind: str, key: int | str, value: Any = None) -> Fact:
    value = tuple(value) if isinstance(value, list) else value
    if kind not in _KINDS or (kind in _WITH_VALUE) != isinstance(value, int | float | tuple):
        raise ValueError(
            f"facts must have a known kind and a value if it needs one, got {[kind, key, value]}"
        )
    return kind, key, value


# --- the facts that a strategy learns, in order ---------------------------------------------------


def own_records(
    trials: Sequence[HostTrial], record_of: Callable[[HostTrial], Record | None]
) -> tuple[dict[int | str, Record], list[int | str]]:
    """The records of a strategy, in the order of asking.

    Among several records with the same number the one of the first trial counts; the others are
    copies, or were asked by a process that did not know of the first. A record that does not fit
    the facts of the trials comes from another study, where trials had other keys, and does not
    count.

    Args:
        trials: The trials of the host.
        record_of: A function that returns the record of a trial; None if the trial has no record of
            this strategy.

    Returns:
        The records by the keys of their trials, and the keys of trials whose records do not fit.
    """
    found: dict[int, tuple[int | str, Record]] = {}
    for trial in trials:
        record = record_of(trial)
        if record is not None:
            found.setdefault(record.number, (trial.key, record))
    keys, known = {trial.key for trial in trials}, _Known()
    own: dict[int | str, Record] = {}
    strangers: list[int | str] = []
    for number in sorted(found):
        key, record = found[number]
        news = _Known()
        for fact in record.before:
            if fact[1] not in keys:
                continue
            if not _can_follow(fact, news.get(fact[1], known.get(fact[1]))):
                strangers.append(key)
                break
            _note(news, fact)
        else:
            known |= news | {key: _RUNS}
            own[key] = record
    return own, strangers


def facts_of(
    trials: Sequence[HostTrial],
    records: Mapping[int | str, Record],
    takes: Callable[[HostTrial], bool],
) -> list[Fact]:
    """All facts that a strategy must learn.

    Args:
        trials: The trials of the host.
        records: The records that `own_records` returned for them.
        takes: A function that returns whether the value of a trial can be attached.

    Returns:
        First the facts that the records have, then the new ones in the order of the trials.
    """
    now, known = {trial.key: trial for trial in trials}, _Known()
    facts: list[Fact] = []

    def note(fact: Fact) -> None:
        _note(known, fact)
        facts.append(fact)

    for key, record in records.items():
        for fact in record.before:
            if fact[1] in now:
                note(fact)
        facts.append(("asked", now[key].record or "", None))
        known[key] = _RUNS
    for trial in trials:
        new = _new(trial, known.get(trial.key), takes)
        if new is not None:
            note(new)
    return facts


def _note(known: _Known, fact: Fact) -> None:
    _, key, value = fact
    known[key] = _GONE if value is None else value


def _can_follow(fact: Fact, before: str | Result | None) -> bool:
    """Whether a fact can follow the known state of its trial; None for no known state."""
    kind, _, _ = fact
    if kind == "corrected":
        return not isinstance(before, str | None)
    if kind == "attached":
        return before in (None, _GONE)
    return before == _RUNS


def taken_back(facts: Sequence[Fact], trials: Sequence[HostTrial]) -> list[int | str]:
    """The trials that had a value and have none any more.

    Returns:
        The keys of these trials.
    """
    told = {key for _, key, value in facts if value is not None}
    return [trial.key for trial in trials if trial.key in told and trial.outcome != "told"]


def _new(
    trial: HostTrial, before: str | Result | None, takes: Callable[[HostTrial], bool]
) -> Fact | None:
    """The new fact that follows from the state of a trial; None if there is nothing new."""
    outcome, value = trial.outcome, trial.result
    if before == _RUNS:
        return None if outcome == "running" else (outcome, trial.key, value)
    if value is None or value == before:
        return None
    if not isinstance(before, str | None):
        return "corrected", trial.key, value
    return ("attached", trial.key, value) if takes(trial) else None
