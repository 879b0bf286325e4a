"""Answer sheets: trials as a sheet to fill in, and the sheet read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botorch_ext.domains.choices import Choice, Fixed
from botorch_ext.domains.parameters import Parameter
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.cell_values import CellValues
from botorch_ext.studies.column_heads import TRIAL, ColumnHeads
from botorch_ext.studies.csv_sheets import Row, Sheet, written
from botorch_ext.studies.result_tables import context_values, values_of

if TYPE_CHECKING:
    from botorch_ext.studies.study import Study

# Spreadsheets save what they show, which may have fewer digits than what was asked.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Answers:
    """What was filled in.

    Args:
        values: From the ids of pending trials to their values.
        empty: Ids of trials without a value in the sheet that still pend.
        known: Ids of trials whose value in the sheet has been told before.
    """

    values: dict[int, float]
    empty: list[int]
    known: list[int]


def answer_sheet(study: Study, trials: Sequence[Trial], decimal_comma: bool = False) -> str:
    """Trials as CSV: their ids, parameters and contexts by name with units, and an empty column for
    the results.

    Args:
        study: Of the trials.
        trials: What is to be evaluated.
        decimal_comma: As for `written`.
    """
    heads, strategy = study.heads, study.strategy
    rows = []
    for trial in trials:
        known = {**trial.params, **context_values(trial, strategy, heads)}
        cells = [known.get(name) for name in (*heads.params, *heads.contexts)]
        rows.append([trial.id, *cells, None])
    names = [TRIAL, *heads.params, *heads.contexts, heads.objective]
    return written([heads.head(name) for name in names], rows, decimal_comma)


def answers_of(study: Study, sheet: Sheet) -> Answers:
    """The values of a sheet that was filled in, rows in any order. Nothing is told yet.

    Raises:
        TableError: A sheet of another study or with other parameters than were asked, texts that
            are no numbers, a trial twice, one that was abandoned or that has another value, or
            nothing that is new; the message names all of it.
    """
    heads, strategy, sign = study.heads, study.strategy, -1.0 if study.minimize else 1.0
    places = heads.read(sheet.heads, [TRIAL, *heads.needed, heads.objective], ())
    read = CellValues.of(sheet)
    values: dict[int, float] = {}
    empty: list[int] = []
    known: list[int] = []
    lines: dict[int, int] = {}
    wrong = []
    for row in sheet.rows:
        try:
            trial = _trial(row, places[TRIAL], strategy, read)
            if trial.id in lines:
                raise ValueError(f"trial {trial.id} is in line {lines[trial.id]} as well")
            lines[trial.id] = row.line
            value = _value(row, places, heads, read, trial, strategy)
            if value is None and trial.id in strategy.history.pending:
                empty.append(trial.id)
            elif value is not None and _is_known(trial.id, value, strategy, sign):
                known.append(trial.id)
            elif value is not None:
                values[trial.id] = value
        except ValueError as error:
            wrong.append(f"line {row.line}: {error}")
    if not wrong and not values:
        what = "every result in it has been told already" if known else "no result is filled in"
        wrong.append(f"has nothing to tell: {what}")
    if wrong:
        raise TableError.of([f"{sheet.name} {wrong[0]}", *wrong[1:]])
    return Answers(values, empty, known)


def _trial(row: Row, place: int, strategy: Strategy, read: CellValues) -> Trial:
    """The trial of a row."""
    text = row.cells[place]
    if not text:
        raise ValueError(f"{TRIAL} is empty: attach a result that was not asked for")
    try:
        id = read.number(text)
    except ValueError as error:
        raise ValueError(f"{TRIAL} {error}") from None
    trials = strategy.history.trials
    if not (id.is_integer() and 0 <= id < len(trials)):
        last = f"from 0 to {len(trials) - 1}" if trials else "asked first: there is none yet"
        raise ValueError(f"{TRIAL} must be {last}, got {text}: is this the sheet of another study?")
    return trials[int(id)]


def _value(
    row: Row,
    places: Mapping[str, int],
    heads: ColumnHeads,
    read: CellValues,
    trial: Trial,
    strategy: Strategy,
) -> float | None:
    """What is filled in for a trial, whose parameters must be those that were asked."""
    given, wrong = values_of(row.cells, places, heads, read)
    asked = {**trial.params, **context_values(trial, strategy, heads)}
    others = [
        f"{name} is {'empty' if given[name] is None else given[name]}, asked was {asked.get(name)}"
        for name in (*heads.params, *heads.contexts)
        if name in given and not _is_asked(given[name], asked.get(name), heads.parameters.get(name))
    ]
    if others:
        wrong.append(
            f"{', '.join(others)}: trial {trial.id} was asked elsewhere. If it was set like this, "
            "abandon the trial and attach the row; else this is the sheet of another study"
        )
    if wrong:
        raise ValueError("; ".join(wrong))
    return given[heads.objective]


def _is_asked(given: Any, asked: Any, parameter: Parameter | None) -> bool:
    """Whether a value is the one that was asked, but for what a spreadsheet does not show."""
    if given is None or asked is None or isinstance(parameter, Choice | Fixed):
        return asked is None if given is None else _is_choice(given, asked, parameter)
    if parameter is not None and (parameter.is_whole or parameter.spacing is not None):
        return abs(given - asked) <= 1e-6 * max(abs(parameter.spacing or 1.0), abs(asked) * 1e-6)
    return abs(given - asked) <= _TOLERANCE * abs(asked)


def _is_choice(given: Any, asked: Any, parameter: Parameter | None) -> bool:
    if asked is None or parameter is None:
        return False
    try:
        return parameter.encoded(given) == parameter.encoded(asked)
    except ValueError:
        return False


def _is_known(id: int, value: float, strategy: Strategy, sign: float) -> bool:
    """Whether a trial has this value already; or a ValueError where it cannot have it."""
    history = strategy.history
    if id in history.values:
        told = sign * history.values[id]
        if told == value:
            return True
        raise ValueError(
            f"trial {id} is told already, {told}; correct changes a value, got {value}"
        )
    if id in history.abandoned:
        raise ValueError(f"trial {id} was abandoned: attach its result")
    return False
