"""Trials of a study or a run as a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from botorch_ext.aligned import free_names
from botorch_ext.domains import Space
from botorch_ext.plain_events import ENDS_NO_TRIAL, PlainRecord
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.answers.tables import frame
from botorch_ext.studies.column_heads import TRIAL, ColumnHeads
from botorch_ext.studies.written_tables import time_cell

if TYPE_CHECKING:
    import pandas as pd

    from botorch_ext.studies.journal import Entry


def trials_frame(
    strategy: Strategy,
    entries: Iterable[Entry],
    heads: ColumnHeads,
) -> pd.DataFrame:
    """All trials of a study, as `Study.to_pandas` describes them.

    Raises:
        ImportError: pandas is not installed.
    """
    asked: dict[int, float] = {}
    ended: dict[int, float] = {}
    for entry in entries:
        record = PlainRecord.read(entry.body)
        if record.kind == "asked":
            asked[record.id] = entry.at
        elif record.kind not in ENDS_NO_TRIAL:
            ended[record.id] = entry.at
    history = strategy.history
    shown = [trial.copy(history.sign) for trial in history.trials]
    told = history.as_told
    named = columns_by_name(shown, strategy, heads.params, heads.contexts)
    named[heads.objective] = [told.get(trial.id, math.nan) for trial in shown]
    for name in heads.outcomes:
        named[name] = [history.outcomes.get(trial.id, {}).get(name, math.nan) for trial in shown]
    if history.stds:
        head = free_names([f"{heads.objective} std"], named)[0]
        named[head] = [history.stds.get(trial.id, math.nan) for trial in shown]
    if history.repeats:
        head = free_names([f"{heads.objective} repeats"], named)[0]
        named[head] = [len(history.repeats.get(trial.id, ())) or None for trial in shown]
    before = {
        TRIAL: [trial.id for trial in shown],
        "state": [_state(trial.id, strategy) for trial in shown],
    }
    after: dict[str, list[Any]] = {
        "asked_at": [time_cell(asked.get(trial.id)) for trial in shown],
        "ended_at": [time_cell(ended.get(trial.id)) for trial in shown],
    }
    for key in ("mean", "std"):
        found = [trial.info.get(key) for trial in shown]
        if any(isinstance(value, float) for value in found):
            after[f"predicted {key}"] = [
                value if isinstance(value, float) else math.nan for value in found
            ]
    if history.notes:
        after["note"] = [history.notes.get(trial.id, "") for trial in shown]
    return table(before, named, after)


def table(before: dict[str, Any], named: dict[str, Any], after: dict[str, Any]) -> pd.DataFrame:
    """A data frame in which no column takes the place of another one.

    Args:
        before: The first columns, which the library names.
        named: The columns that the user named: parameters, contexts and values.
        after: The last columns, which the library names. Where the user gave a name of the library
            to a column, that of the library has an underscore behind it, ``state_``.

    Raises:
        ImportError: pandas is not installed.
    """
    names = free_names([*before, *after], named)
    first = dict(zip(names, before.values(), strict=False))
    last = dict(zip(names[len(before) :], after.values(), strict=True))
    return frame(first | named | last)


def columns_by_name(
    trials: Sequence[Trial],
    strategy: Strategy,
    params: Iterable[str],
    contexts: Iterable[str] | None = None,
) -> dict[str, Any]:
    """The parameters and contexts of trials as columns.

    Args:
        trials: The trials.
        strategy: Their strategy.
        params: The names of the parameters.
        contexts: The names of the contexts; None for those that the trials have.
    """
    known = [trial.params for trial in trials]
    seen = [_context_of(trial, strategy) for trial in trials]
    columns = {name: [each.get(name) for each in known] for name in params}
    names = list(dict.fromkeys(name for each in seen for name in each))
    names = names if contexts is None else list(contexts)
    # A parameter may be called context0, beside contexts without names.
    for name, head in zip(names, free_names(names, columns), strict=True):
        columns[head] = [each.get(name) for each in seen]
    return columns


def settings_of(trial: Trial, strategy: Strategy) -> dict[str, Any]:
    """The parameters and the context of a trial by the names of their columns in a study."""
    return {**trial.params, **_context_of(trial, strategy)}


def _context_of(trial: Trial, strategy: Strategy) -> dict[str, Any]:
    """The values of a context; they are called ``context0`` and so on in no `Space`."""
    space = strategy.context_space
    if space is None or trial.context is None:
        return {}
    if isinstance(space.domain, Space):
        return space.domain.params_of(trial.context)
    return {f"context{j}": number for j, number in enumerate(trial.context.tolist())}


def _state(id: int, strategy: Strategy) -> str:
    history = strategy.history
    if id in history.withdrawn:
        return "withdrawn"
    if id in history.failed:
        return "failed"
    if history.is_attached(id):
        return "attached"
    if id in history.values:
        return "told"
    return "abandoned" if id in history.abandoned else "pending"
