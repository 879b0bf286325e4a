"""Trials of another tool, the records it keeps with them, and what both say of a strategy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from botorch_ext.exceptions import BrokenStudyError, NewerStudyError
from botorch_ext.studies.plain_events import from_json, to_json

# The first one had no descriptions.
_VERSION, _READ = 2, (1, 2)

Status = Literal["running", "told", "failed", "abandoned"]
#: What became of a trial: its kind, the key of the trial, and a value where there is one.
Fact = tuple[str, int | str, float | None]

_WITH_VALUE = ("told", "attached", "corrected")
_KINDS = (*_WITH_VALUE, "failed", "abandoned")
# What is known of a trial: it runs, it is given up, or its value.
_RUNS, _GONE = "runs", "gone"
_Known = dict[int | str, str | float]


@dataclass(frozen=True)
class HostTrial:
    """A trial as another tool has it.

    Args:
        key: What that tool knows it by, and nothing else.
        values: Of its parameters, as far as they are known.
        status: Whether it runs, has a value, failed or was given up.
        value: What was observed, in the sign of the user; a trial that was told a value which is
            not finite counts as failed.
        context: What was seen before it was asked, ``d_z`` numbers; None where there are none.
        record: The text that came with it when it was asked; None where something else asked it.
    """

    key: int | str
    values: Mapping[str, Any]
    status: Status = "running"
    value: float | None = None
    context: list[float] | None = None
    record: str | None = None

    @property
    def outcome(self) -> Status:
        """The status, where values count that can be told."""
        is_told = self.value is not None and math.isfinite(self.value)
        return "failed" if self.status == "told" and not is_told else self.status


@dataclass(frozen=True)
class Record:
    """What is kept with a trial so that the strategy can be made anew.

    Args:
        of: What tells the strategy from others, a digest of its arguments as the version of the
            library that asked fills them in.
        number: 0, 1, 2, ... in the order of asking.
        before: What the strategy learnt between the question before and this one, in that order.
        x: The point, ``d`` numbers.
        context: ``d_z`` numbers, or None.
        info: What was known when it was asked.
        strategy: The description of the strategy, by which versions whose digest is another one
            know it; None where another trial has it.
    """

    of: str
    number: int
    before: tuple[Fact, ...]
    x: list[float]
    context: list[float] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    strategy: Any = None

    def text(self) -> str:
        """JSON, whose numbers come back bit for bit."""
        before = [list(fact) if fact[2] is not None else list(fact[:2]) for fact in self.before]
        entries = {"version": _VERSION} | vars(self) | {"before": before}
        return to_json({name: entry for name, entry in entries.items() if entry is not None})

    @classmethod
    def read(cls, text: str) -> Record:
        """The record of a text.

        Args:
            text: What `text` wrote.

        Raises:
            NewerStudyError: A newer version wrote it.
            BrokenStudyError: Anything else.
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
            f"the record of a trial has version {version!r}, this library reads up to {_VERSION}"
        )


def _fact(kind: str, key: int | str, value: float | None = None) -> Fact:
    if kind not in _KINDS or (kind in _WITH_VALUE) != isinstance(value, int | float):
        raise ValueError(f"{[kind, key, value]} is nothing that becomes of a trial")
    return kind, key, value


# --- what a strategy learnt, in that order --------------------------------------------------------


def own_records(
    trials: Sequence[HostTrial], record_of: Callable[[HostTrial], Record | None]
) -> tuple[dict[int | str, Record], list[int | str]]:
    """The records of a strategy by the keys of their trials, in the order of asking. Of several
    with the same number the first trial has it: the others are copies, or were asked by somebody
    who did not know of it. Those that knew something else of the trials than these say came from
    another place, where trials had other keys, and count for nothing; their keys come second.

    Args:
        trials: Of the host.
        record_of: The record of a trial, None where it has none of this strategy.
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
    """All that a strategy has to know: first what records say that it knew, then what is new, in
    the order of the trials.

    Args:
        trials: Of the host.
        records: What `own_records` gives first for them.
        takes: Whether the value of a trial can be attached.
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


def _can_follow(fact: Fact, before: str | float | None) -> bool:
    """Whether a trial of which this is known, None for nothing, can come to that."""
    kind, _, _ = fact
    if kind == "corrected":
        return isinstance(before, float | int)
    if kind == "attached":
        return before in (None, _GONE)
    return before == _RUNS


def taken_back(facts: Sequence[Fact], trials: Sequence[HostTrial]) -> list[int | str]:
    """The keys of trials that had a value and have none any more."""
    told = {key for _, key, value in facts if value is not None}
    return [trial.key for trial in trials if trial.key in told and trial.outcome != "told"]


def _new(
    trial: HostTrial, before: str | float | None, takes: Callable[[HostTrial], bool]
) -> Fact | None:
    """What the state of a trial says beyond what is known of it; None for nothing."""
    outcome = trial.outcome
    value = trial.value if outcome == "told" else None
    if before == _RUNS:
        return None if outcome == "running" else (outcome, trial.key, value)
    if value is None or value == before:
        return None
    if isinstance(before, float | int):
        return "corrected", trial.key, value
    return ("attached", trial.key, value) if takes(trial) else None
