"""Facts: what the trials of another tool say of a strategy, in the order it learnt them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from botorch_ext.integrations.host_records import Fact, HostTrial, Record

# What is known of a trial: it runs, it is given up, or its value.
_RUNS, _GONE = "runs", "gone"
_Known = dict[int | str, str | float]


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
