"""Facts: what the trials of another tool say of a strategy, in the order it learnt them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from botorch_ext.integrations.host_records import Fact, HostTrial, Record

# What is known of a trial: it runs, it is given up, or its value.
_RUNS, _GONE = "runs", "gone"
_Known = dict[int | str, str | float]


def own_records(
    trials: Sequence[HostTrial], record_of: Callable[[HostTrial], Record | None]
) -> dict[int | str, Record]:
    """The records of a strategy by the keys of their trials, in the order of asking. Of several
    with the same number the first trial has it: the others are copies, or were asked by somebody
    who did not know of it.

    Args:
        trials: Of the host.
        record_of: The record of a trial, None where it has none of this strategy.
    """
    found: dict[int, tuple[int | str, Record]] = {}
    for trial in trials:
        record = record_of(trial)
        if record is not None:
            found.setdefault(record.number, (trial.key, record))
    return dict(found[number] for number in sorted(found))


def facts_of(
    trials: Sequence[HostTrial],
    records: Mapping[int | str, Record],
    takes: Callable[[HostTrial], bool],
) -> list[Fact]:
    """All that a strategy has to know: first what records say that it knew, then what is new, in
    the order of the trials.

    Args:
        trials: Of the host.
        records: What `own_records` gives for them.
        takes: Whether the value of a trial can be attached.
    """
    now, known = {trial.key: trial for trial in trials}, _Known()
    facts: list[Fact] = []

    def note(fact: Fact) -> None:
        _, key, value = fact
        known[key] = _GONE if value is None else value
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
