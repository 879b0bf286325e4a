"""Result tables: earlier results, and points to predict at, as rows by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from botorch_ext.checks import amount, named, short
from botorch_ext.domains import Box, Space
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import TableError, TableWarning
from botorch_ext.parameters import Parameter
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.events import is_outside_domain
from botorch_ext.strategies.named_points import located
from botorch_ext.strategies.noted_warnings import level_of_the_caller
from botorch_ext.studies.cell_values import decimal_of, repeats_in, trial_id
from botorch_ext.studies.cell_values import value as value_of
from botorch_ext.studies.column_heads import TRIAL, ColumnHeads, state_place
from botorch_ext.studies.sheets import IN_MEMORY, Origin, Sheet, original

# What messages call the point of a row.
ROW = "the row"

#: What a cell of results says of an evaluation that failed.
FAILED = "failed"
# The name of a row, its values by the names of columns, what is wrong with its texts, and whether
# it says that the experiment failed.
_Row = tuple[str, dict[str, Any], list[str], bool]


@dataclass(frozen=True)
class Result:
    """A row of a table of results.

    Args:
        where: The name of the row in messages.
        id: The id in its column of trials; None without such a column.
        params: The values of parameters by name.
        context: The values of contexts by name.
        value: The value of the objective as it was measured, or those of repeats; None where the
            row has none, as of an experiment that failed.
        outcomes: The outcomes by name.
        std: The standard error of the value; None where the row has none.
        note: The note; empty where the row has none.
        failed: Whether the experiment failed.
        origin: The table of the row.
    """

    where: str
    id: Any
    params: dict[str, Any]
    context: dict[str, Any]
    value: float | tuple[float, ...] | None = None
    outcomes: dict[str, float] = field(default_factory=dict)
    std: float | None = None
    note: str = ""
    failed: bool = False
    origin: Origin = IN_MEMORY

    def point(self, strategy: Strategy) -> Any:
        """The point as `Strategy.attach` takes it."""
        return self.params if isinstance(strategy.domain, Box) else [*self.params.values()]

    def context_of(self, strategy: Strategy) -> Any:
        """The context as `Strategy.attach` takes it; None where there are no contexts."""
        space = strategy.context_space
        if space is None:
            return None
        return self.context if isinstance(space.domain, Space) else [*self.context.values()]


def results_of(table: Any, heads: ColumnHeads) -> list[Result]:
    """The results of a sheet, a data frame, or a list of dicts.

    A row with an id and without a value is left out, unless it failed: in a table of all trials of
    a study it is a trial that was not told. So are empty rows.

    Raises:
        TableError: The table is something else, columns are missing or misspelt, a text of a sheet
            is no value of its column, or a row has no value.

    Warns:
        TableWarning: Columns are not used, or rows are left out.
    """
    needed = [*heads.needed, *heads.results]
    rows, origin = _rows(table, heads, needed)
    results, wrong, left_out = [], [], []
    for where, known, unread, failed in rows:
        value, outcomes, std = known.get(heads.objective), {}, None
        if value is None and known.get(TRIAL) is not None and not (failed or unread):
            left_out.append(where)
            continue
        mistakes = unread or _empty(known, heads.needed if failed else needed)
        try:
            if not mistakes and not failed:
                value, outcomes, std = measured(known, heads)
        except ValueError as error:
            mistakes.append(str(error))
        if mistakes:
            wrong.append(f"{where}: {'; '.join(mistakes)}")
        row = _result(where, known, heads, origin)
        cell = known.get(heads.note or "")
        note = "" if cell is None else str(cell).strip()
        given = {"value": value, "outcomes": outcomes, "std": std}
        results.append(replace(row, **given, note=note, failed=failed))
    if not results:
        wrong.append("there is no trial with a value or that failed")
    elif any(result.value is None and not result.failed for result in results):
        wrong.append("delete rows of experiments that have no result yet")
    if wrong:
        raise TableError(origin.message_of_rows(named(wrong)))
    if left_out:
        message = f"rows without {heads.objective} are left out: {named(left_out)}"
        warnings.warn(
            origin.message_of_rows(message), TableWarning, stacklevel=level_of_the_caller()
        )
    return results


def measured(
    known: Mapping[str, Any], heads: ColumnHeads
) -> tuple[float | tuple[float, ...], dict[str, float], float | None]:
    """The value, or those of repeats, the outcomes and the standard error of a row whose cells of
    results are all filled; the standard error may be None.

    Raises:
        ValueError: One of them is no finite number.
    """
    value, name = known[heads.objective], heads.objective
    if isinstance(value, list | tuple):
        value = tuple(amount(each, name, "finite") for each in value)
    else:
        value = amount(value, name, "finite")
    outcomes = {name: amount(known[name], name, "finite") for name in heads.outcomes}
    std = None if heads.std is None else known.get(heads.std)
    if std is not None:
        std = amount(std, str(heads.std), "positive and finite")
    return value, outcomes, std


def points_of(table: Any, heads: ColumnHeads, with_contexts: bool = True) -> list[Result]:
    """The points of a sheet, a data frame, or a list of dicts, as results without values.

    Raises:
        TableError: As `results_of`.
    """
    own = heads if with_contexts else replace(heads, contexts={})
    rows, origin = _rows(table, own, own.needed)
    wrong = [
        f"{where}: {'; '.join(mistakes)}"
        for where, known, unread, _ in rows
        if (mistakes := unread or _empty(known, own.needed))
    ]
    if wrong:
        raise TableError(origin.message_of_rows(named(wrong)))
    return [_result(where, known, own, origin) for where, known, *_ in rows]


def is_table(points: Any) -> bool:
    """Whether points have names: a data frame, a dict, or a list of dicts."""
    if isinstance(points, list | tuple):
        return bool(points) and isinstance(points[0], Mapping)
    return isinstance(points, Mapping) or hasattr(points, "itertuples")


def trials_of_points(
    points: Sequence[Result], strategy: Strategy, context: ContextLike | None = None
) -> list[Trial]:
    """The points of a table as trials.

    Args:
        points: The rows of the table.
        strategy: The strategy of the study.
        context: The context of all points. None: each row has its own.

    Raises:
        TableError: The strategy cannot predict at a row.
    """
    trials, wrong = [], []
    domain = strategy.domain
    for number, point in enumerate(points):
        try:
            (x,), outside = located(point.point(strategy), domain, strategy.takes_outside, ROW)
            seen = context if context is not None else point.context_of(strategy)
            info = {"attached": True, "outside": True} if outside else {}
            trials.append(Trial(number, x, strategy.checked_context(seen), info, domain))
        except ValueError as error:
            wrong.append(f"{point.where}: {error}")
    if wrong:
        raise TableError(points[0].origin.message_of_rows(named(wrong)))
    return trials


def values_of(
    cells: Sequence[str],
    places: Mapping[str, int],
    heads: ColumnHeads,
    decimal: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The values of a row of texts, and what is wrong with them.

    Returns:
        From the names of columns to values, None for an empty cell; repeats are a tuple; ids, notes
        and `FAILED` stay texts.
        And a sentence for each text that is no value.
    """
    known: dict[str, Any] = {}
    wrong = []
    for name, place in places.items():
        text, unit = cells[place], heads.units.get(name)
        try:
            parameter = heads.parameters.get(name)
            if is_failed := name == heads.objective and says_failed(text):
                text = FAILED
            if name == heads.objective and len(repeats := repeats_in(text)) > 1:
                known[name] = tuple(value_of(each, None, decimal, unit) for each in repeats)
                continue
            is_text = is_failed or name in (TRIAL, heads.note) or not text
            value = original(text) if is_text else value_of(text, parameter, decimal, unit)
            known[name] = None if value == "" else value
        except ValueError as error:
            hint = (
                ": write the average of repeats" if name in heads.outcomes and ";" in text else ""
            )
            wrong.append(f"{name} {error}{hint}")
    return known, wrong


def attach_all(
    strategy: Strategy,
    results: Sequence[Result],
    heads: ColumnHeads,
    repeat: bool,
    outside: bool,
) -> list[Trial]:
    """Attaches all results to a strategy. Where it raises, the strategy may have some of them.

    Args:
        strategy: A copy that nobody else uses.
        results: The results. Those that lie outside the domain are kept as data if the strategy
            takes such data.
        heads: The columns of the study.
        repeat: Whether a result may be in the study, or in the table, already.
        outside: Whether all results may lie outside the domain.

    Raises:
        TableError: The strategy cannot take a row, or no row lies in the domain. The message names
            rows.
    """
    trials, wrong, hint = [], [], ""
    origin = results[0].origin
    pending = set(strategy.pending)
    history = strategy.history
    seen = {
        _key(history.trials[id], history.value_told(id)): f"trial {id}"
        for id in (*history.values, *sorted(history.failed))
    }
    for result in results:
        given = {"value": result.value, "outcomes": result.outcomes or None, "std": result.std}
        try:
            trial = strategy._attached_as(
                ROW,
                result.point(strategy),
                result.context_of(strategy),
                outside=True,
                failed=result.failed,
                given=given,
            )
        except ValueError as error:
            wrong.append(f"{result.where}: {error}")
            continue
        if (id := trial_id(result.id)) in pending:
            wrong.append(f"{result.where}: trial {id} is pending: tell it, or remove its id")
        key = _key(trial, strategy.history.value_told(trial.id))
        if key in seen and not repeat:
            wrong.append(f"{result.where} is the result of {seen[key]} once more")
            hint = "; repeat=True, or --repeat, keeps them as other measurements"
        seen.setdefault(key, result.where)
        if result.note:
            strategy.note(trial, result.note)
        trials.append(trial)
    if wrong:
        raise TableError(origin.message_of_rows(named(wrong)) + hint)
    if not outside and all(is_outside_domain(trial) for trial in trials):
        units = {name: unit for name, unit in heads.params.items() if unit}
        hints = [
            f"; is {name} in {unit}?"
            for name, unit in units.items()
            if all(_is_beyond(trial.params[name], heads.parameters[name]) for trial in trials)
        ]
        message = origin.message_of_rows(
            "every row lies outside the space, and nothing was attached; outside=True, or "
            f"--outside, keeps such rows as data: {outside_rows(trials, results, heads)}"
        )
        raise TableError(message + "".join(hints))
    return trials


def outside_rows(trials: Sequence[Trial], results: Sequence[Result], heads: ColumnHeads) -> str:
    """The rows of a table that lie outside the space, with columns and bounds; empty where there
    are none."""
    return named(
        [
            f"{result.where}: {_broken_rules(trial, heads)}"
            for trial, result in zip(trials, results, strict=True)
            if is_outside_domain(trial)
        ]
    )


def _broken_rules(trial: Trial, heads: ColumnHeads) -> str:
    """The rules of columns that do not hold for a trial outside the space; where all of them hold,
    the rule of the space."""
    broken = []
    for name, value in trial.params.items():
        try:
            if name in heads.parameters:
                heads.parameters[name].encoded(value)
        except ValueError as error:
            broken.append(f"{heads.head(name)} {error}")
    if not broken and trial.domain is not None:
        try:
            trial.domain.require_contains(trial.x, ROW)
        except ValueError as error:
            broken.append(str(error))
    return ", ".join(broken)


def _is_beyond(value: float, parameter: Parameter) -> bool:
    """Whether a value lies beyond the ends of its parameter."""
    low, high = parameter.ends
    return not low <= value <= high


def _rows(table: Any, heads: ColumnHeads, needed: Sequence[str]) -> tuple[list[_Row], Origin]:
    """The rows of a table that are not empty, and the table for messages. What was measured where
    an experiment failed is not read."""
    names, lines, origin = _lines(table)
    places = _read_places(names, heads, needed, origin)
    if not lines:
        raise TableError(origin.message("there is no row below the names of the columns"))
    decimal = None
    if isinstance(table, Sheet):
        decimal = decimal_of(table, places, heads.parameters, heads.note)
    result, state = places.get(heads.objective), state_place(names, heads.units)
    not_read = {*heads.results, heads.std}
    rows: list[_Row] = []
    for where, cells in lines:
        failed = result is not None and has_failed(cells, result, state)
        own = {name: at for name, at in places.items() if not (failed and name in not_read)}
        if isinstance(table, Sheet):
            known, unread = values_of(cells, own, heads, decimal)
        else:
            known, unread = {name: cells[at] for name, at in own.items()}, []
        rows.append((where, known, unread, failed))
    return rows, origin


def _lines(table: Any) -> tuple[Sequence[Any], Sequence[tuple[str, Sequence[Any]]], Origin]:
    """The names of the columns of a table; the names and the cells of its rows that are not empty;
    and the table for messages."""
    if isinstance(table, Sheet):
        return table.heads, [(f"row {row.number}", row.cells) for row in table.rows], table.origin
    counting = "rows are counted from 0"
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        cells = [*table.itertuples(index=False, name=None)]
        labels, names = list(table.index), list(table.columns)
        if labels != list(range(len(cells))):
            counting = "rows have the labels of the index"
    elif isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for row in table for name in row))
        cells = [[row.get(name) for name in names] for row in table]
        labels = list(range(len(cells)))
    else:
        raise TableError(
            "a table must be a pandas data frame or a list of dicts, also for one row, got "
            f"{short(table)}; or give a point with its value"
        )
    plain = [list(map(_plain, row)) for row in cells]
    filled = [
        (f"row {short(label)}", row)
        for label, row in zip(labels, plain, strict=True)
        if any(cell is not None and str(cell).strip() for cell in row)
    ]
    if not filled:
        raise TableError("a table must have rows, got " + ("empty ones alone" if cells else "none"))
    return names, filled, Origin(counting=counting)


def says_failed(cell: object) -> bool:
    """Whether a cell says that an experiment failed."""
    return isinstance(cell, str) and cell.strip().casefold() == FAILED


def has_failed(cells: Sequence[object], result: int, state: int | None) -> bool:
    """Whether a row says that the experiment failed.

    Args:
        cells: The cells of the row.
        result: The place of the result, which may say it.
        state: The place of the state, which counts where there is no result; None without one.
    """
    cell = cells[result]
    is_empty = cell is None or (isinstance(cell, str) and not cell.strip())
    return says_failed(cells[state] if is_empty and state is not None else cell)


def _read_places(
    names: Sequence[Any], heads: ColumnHeads, needed: Sequence[str], origin: Origin
) -> dict[str, int]:
    """The places of columns. Without results, the columns of points and contexts alone count."""
    places = heads.read(names, needed, origin)
    if heads.objective in needed:
        return places
    wanted = {*heads.params, *heads.contexts}
    return {name: place for name, place in places.items() if name in wanted}


def _empty(known: Mapping[str, Any], needed: Sequence[str]) -> list[str]:
    """A sentence for each needed cell that is empty."""
    return [f"{name} is empty" for name in needed if known.get(name) is None]


def _result(
    where: str,
    known: Mapping[str, Any],
    heads: ColumnHeads,
    origin: Origin,
) -> Result:
    params, context = (
        {name: known[name] for name in names if known.get(name) is not None}
        for names in (heads.params, heads.contexts)
    )
    return Result(where, known.get(TRIAL), params, context, origin=origin)


def _plain(cell: Any) -> Any:
    """The value of a cell as a Python value; None for an empty cell. Dates and arrays with several
    dimensions stay as they are."""
    if isinstance(cell, np.ndarray) and cell.ndim == 1:
        cell = cell.tolist()
    if isinstance(cell, np.generic) and cell.dtype.kind not in "mM":
        cell = cell.item()
    # pandas.NA cannot be compared.
    is_missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return None if is_missing or (isinstance(cell, float) and math.isnan(cell)) else cell


def _key(trial: Trial, value: float | None) -> tuple[float | None, ...]:
    return (*trial.point.tolist(), value)
