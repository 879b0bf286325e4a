"""All trials of a study as a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botorch_ext.domains import Space
from botorch_ext.predictions.tables import frame
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.column_heads import TRIAL, ColumnHeads
from botorch_ext.studies.plain_events import PlainRecord

if TYPE_CHECKING:
    import pandas as pd

    from botorch_ext.studies.journal import Entry


def trials_frame(
    strategy: Strategy,
    entries: Iterable[Entry],
    heads: ColumnHeads,
    shown: Sequence[Trial],
    sign: float,
) -> pd.DataFrame:
    """All trials of a study, as `Study.to_pandas` describes them.

    Args:
        strategy: The strategy, which has seen all entries.
        entries: The events of the study with their times.
        heads: The columns of the study.
        shown: The trials. Their predicted means have the sign of the user's values.
        sign: What the strategy's values are multiplied by to be shown.

    Raises:
        ImportError: pandas is not installed.
    """
    asked: dict[int, float] = {}
    ended: dict[int, float] = {}
    for entry in entries:
        record = PlainRecord.read(entry.body)
        if record.kind == "asked":
            asked[record.id] = entry.at
        elif record.kind != "corrected":
            ended[record.id] = entry.at
    history = strategy.history
    params = [trial.params for trial in shown]
    contexts = [context_values(trial, strategy, heads) for trial in shown]
    columns: dict[str, Any] = {
        TRIAL: [trial.id for trial in shown],
        "state": [_state(trial.id, strategy) for trial in shown],
    }
    columns |= {name: [each.get(name) for each in params] for name in heads.params}
    columns |= {name: [each.get(name) for each in contexts] for name in heads.contexts}
    values = (history.values.get(trial.id) for trial in shown)
    columns[heads.objective] = [math.nan if value is None else sign * value for value in values]
    columns["asked_at"] = [_moment(asked.get(trial.id)) for trial in shown]
    columns["ended_at"] = [_moment(ended.get(trial.id)) for trial in shown]
    for key in ("mean", "std"):
        found = [trial.info.get(key) for trial in shown]
        if any(isinstance(value, float) for value in found):
            columns[f"predicted {key}"] = [
                value if isinstance(value, float) else math.nan for value in found
            ]
    return frame(columns)


def context_values(trial: Trial, strategy: Strategy, heads: ColumnHeads) -> dict[str, Any]:
    """The values of a trial's context by the names of their columns."""
    space = strategy.context_space
    if space is None or trial.context is None:
        return {}
    if isinstance(space.domain, Space):
        return space.domain.params_of(trial.context)
    # A study that began without knowing d_z has no columns of contexts until it is opened again.
    return dict(zip(heads.contexts, trial.context.tolist(), strict=False))


def _state(id: int, strategy: Strategy) -> str:
    history = strategy.history
    if history.is_attached(id):
        return "attached"
    if id in history.values:
        return "told"
    if id in history.failed:
        return "failed"
    return "abandoned" if id in history.abandoned else "pending"


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
