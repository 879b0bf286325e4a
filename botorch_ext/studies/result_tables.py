"""Result tables: results of before read from rows by name, and all trials as a data frame."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains import Box
from botorch_ext.exceptions import TableError
from botorch_ext.predictions.tables import frame
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.cell_values import CellValues
from botorch_ext.studies.column_heads import TRIAL, ColumnHeads
from botorch_ext.studies.csv_sheets import Sheet
from botorch_ext.studies.plain_events import PlainRecord

if TYPE_CHECKING:
    import pandas as pd

    from botorch_ext.studies.journal import Entry

#: The columns of all trials as a data frame, beside ids, parameters, contexts and values.
RECORDED = ("state", "asked_at", "ended_at", "predicted mean", "predicted std")


@dataclass(frozen=True)
class Result:
    """A row of a table of results.

    Args:
        where: Which row it is, for messages.
        params: Values of parameters by name.
        context: Values of contexts by name.
        value: As it was measured; None where that is not known.
    """

    where: str
    params: dict[str, Any]
    context: dict[str, Any]
    value: float | None = None

    def point(self, strategy: Strategy) -> Any:
        """What `Strategy.attach` takes as a point."""
        return self.params if isinstance(strategy.domain, Box) else [*self.params.values()]

    def context_of(self, strategy: Strategy) -> Any:
        """What `Strategy.attach` takes as a context; None where there are none."""
        space = strategy.context_space
        if space is None:
            return None
        has_names = isinstance(space.domain, Box) and space.domain.names == (*self.context,)
        return self.context if has_names else [*self.context.values()]


def results_of(
    table: Any, heads: ColumnHeads, needs_value: bool = True, others: Collection[str] = ()
) -> list[Result]:
    """The results of a data frame, or of a list of dicts; or its points alone, whose values may be
    missing.

    Args:
        table: The data frame, or the list.
        heads: The columns of the study.
        needs_value: Whether each row must have a value.
        others: The names of further columns that may be there.

    Raises:
        TableError: Something else, columns that are missing or unknown, a row without a value.
    """
    names, rows = _listed(table)
    needed = [*heads.needed, *([heads.objective] if needs_value else [])]
    places = heads.read(names, needed, others)
    results, wrong = [], []
    for where, cells in rows:
        known = {name: _plain(cells[place]) for name, place in places.items()}
        try:
            results.append(_result(where, known, heads, needs_value))
        except ValueError as error:
            wrong.append(f"{where}: {error}")
    if wrong:
        raise TableError.of(wrong)
    return results


def results_of_sheet(sheet: Sheet, heads: ColumnHeads, needs_value: bool = True) -> list[Result]:
    """The results of a sheet, as `results_of`; or its points alone, whose values may be missing.

    Raises:
        TableError: As `results_of`, and for texts that are no values.
    """
    needed = [*heads.needed, *([heads.objective] if needs_value else [])]
    places = heads.read(sheet.heads, needed, (TRIAL, heads.objective))
    read, results, wrong = CellValues.of(sheet), [], []
    for row in sheet.rows:
        where = f"line {row.line}"
        known, failed = values_of(row.cells, places, heads, read)
        try:
            if needs_value and known.get(TRIAL) is not None:
                failed.append(f"it has the id of trial {known[TRIAL]:g}: tell it, or remove the id")
            if failed:
                raise ValueError("; ".join(failed))
            results.append(_result(where, known, heads, needs_value))
        except ValueError as error:
            wrong.append(f"{where}: {error}")
    if not sheet.rows:
        wrong.append("there is no row below the names of the columns")
    if wrong:
        raise TableError.of([f"{sheet.name} {wrong[0]}", *wrong[1:]])
    return results


def values_of(
    cells: Sequence[str], places: Mapping[str, int], heads: ColumnHeads, read: CellValues
) -> tuple[dict[str, Any], list[str]]:
    """The values of a row of texts by the names of columns, None of those that are empty, and what
    is wrong with others."""
    known: dict[str, Any] = {}
    wrong = []
    for name, place in places.items():
        text = cells[place]
        try:
            known[name] = read.value(text, heads.parameters.get(name)) if text else None
        except ValueError as error:
            wrong.append(f"{name} {error}")
    return known, wrong


def attach_all(
    strategy: Strategy, results: Sequence[Result], repeat: bool, sign: float
) -> list[Trial]:
    """Attaches all results to a strategy, or raises and leaves it as it may be.

    Args:
        strategy: Which nobody else has.
        results: Those that lie outside of its domain are kept as data, if it takes such.
        repeat: Whether a result may be one that there is.
        sign: Of the values.

    Raises:
        TableError: Rows that it cannot take, by name.
    """
    trials, wrong = [], []
    seen = {
        _key(strategy.history.trials[id], value): f"trial {id}"
        for id, value in strategy.history.values.items()
    }
    for result in results:
        value = sign * one_number(result.value, "value")
        try:
            trial = strategy.attach(
                result.point(strategy), value, result.context_of(strategy), outside=True
            )
        except ValueError as error:
            wrong.append(f"{result.where}: {error}")
            continue
        key = _key(trial, value)
        if key in seen and not repeat:
            wrong.append(
                f"{result.where} is the result of {seen[key]} once more; repeat=True, or "
                "--repeat, keeps it as another measurement"
            )
        seen.setdefault(key, result.where)
        trials.append(trial)
    if wrong:
        raise TableError.of(wrong)
    return trials


def trials_frame(
    strategy: Strategy,
    entries: Iterable[Entry],
    heads: ColumnHeads,
    shown: Sequence[Trial],
    sign: float,
) -> pd.DataFrame:
    """All trials of a study as `Study.to_pandas` says.

    Args:
        strategy: Up to date with the events.
        entries: The events, with their times.
        heads: What columns are called.
        shown: The trials, means in the sign of the values.
        sign: Of the values.

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
    """The context of a trial by the names of its columns."""
    space = strategy.context_space
    if space is None or trial.context is None:
        return {}
    if isinstance(space.domain, Box) and (*heads.contexts,) == space.domain.names:
        with suppress(ValueError):  # contexts may lie outside
            return space.domain.params(trial.context)
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


def _listed(table: Any) -> tuple[list[Any], list[tuple[str, list[Any]]]]:
    """The heads of a table, and its rows with what they are called."""
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        cells = table.itertuples(index=False, name=None)
        rows = [(f"row {short(at)}", list(row)) for at, row in zip(table.index, cells, strict=True)]
        names = list(table.columns)
    elif isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for row in table for name in row))
        rows = [(f"row {i}", [row.get(name) for name in names]) for i, row in enumerate(table)]
    else:
        raise TableError(
            f"a table must be a pandas data frame or a list of dicts, got {short(table)}; or give "
            "a point with its value"
        )
    if not rows:
        raise TableError("a table must have rows, got none")
    return names, rows


def _plain(cell: Any) -> Any:
    """A cell as a value of Python, None where it has none."""
    if hasattr(cell, "item") and not isinstance(cell, Tensor):
        cell = cell.item()
    # Of pandas, NA is no value that can be compared.
    is_missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return None if is_missing or (isinstance(cell, float) and math.isnan(cell)) else cell


def _result(
    where: str, known: Mapping[str, Any], heads: ColumnHeads, needs_value: bool = True
) -> Result:
    """The result of a row by the names of columns."""
    for name in heads.needed:
        if known[name] is None:
            raise ValueError(f"{name} is empty")
    value = known.get(heads.objective)
    if needs_value:
        if value is None:
            raise ValueError(f"{heads.objective} is empty")
        value = one_number(value, heads.objective)
        if not math.isfinite(value):
            raise ValueError(f"{heads.objective} must be finite, got {value}")
    params = {name: known[name] for name in heads.params if known.get(name) is not None}
    context = {name: known[name] for name in heads.contexts}
    return Result(where, params, context, value)


def _key(trial: Trial, value: float) -> tuple[float, ...]:
    return (*trial.point.tolist(), value)
