"""Answer sheets: trials as a sheet to fill in, and the sheet read back."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from botorch_ext.aligned import printable
from botorch_ext.checks import named
from botorch_ext.domains import Box, Domain, Space
from botorch_ext.exceptions import TableError
from botorch_ext.parameters import Choice, Parameter
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.events import History, Measured, Noted
from botorch_ext.studies.cell_values import decimal_of, last_place, trial_id
from botorch_ext.studies.column_heads import TRIAL, ColumnHeads
from botorch_ext.studies.result_tables import FAILED, measured, values_of
from botorch_ext.studies.sheets import Row, Sheet, original
from botorch_ext.studies.trial_frames import settings_of
from botorch_ext.studies.written_tables import WrittenTable

if TYPE_CHECKING:
    from botorch_ext.studies.study import Study


@dataclass(frozen=True)
class Answers:
    """The answers in a sheet that was filled in.

    Args:
        values: The new values by the ids of their pending trials; a tuple of those of repeats.
        failed: The ids of pending trials whose evaluation failed.
        corrected: The values that replace others, by the ids of their trials.
        empty: The ids of pending trials that have no value in the sheet.
        known: The ids of trials whose result in the sheet was told before.
        outdated: A sentence for each of them whose result was corrected since.
        outcomes: The outcomes of all trials in ``values`` and ``corrected``, by id.
        stds: The standard errors of those of these trials that have one, by id.
        notes: The notes that are new, by the ids of their trials.
    """

    values: dict[int, float | tuple[float, ...]] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    corrected: dict[int, float | tuple[float, ...]] = field(default_factory=dict)
    empty: list[int] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    outcomes: dict[int, dict[str, float]] = field(default_factory=dict)
    stds: dict[int, float] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

    def add(self, id: int, result: _Answer) -> None:
        """Adds the outcomes and the standard error of a result."""
        self.outcomes[id] = result.outcomes
        if result.std is not None:
            self.stds[id] = result.std


class _Answer(NamedTuple):
    """What a row says of a trial.

    Args:
        value: The value or those of repeats; `FAILED`; or None where nothing is filled in.
        outcomes: The outcomes by name.
        std: The standard error of the value, or None.
        has_std: Whether the sheet has a column for standard errors.
    """

    value: float | tuple[float, ...] | str | None
    outcomes: dict[str, float]
    std: float | None = None
    has_std: bool = True

    @classmethod
    def told(cls, id: int, history: History) -> _Answer:
        """What was told of a trial."""
        value = history.repeats_told(id) or history.value_told(id)
        return cls(value, dict(history.outcomes.get(id, {})), history.stds.get(id))

    def has_value_of(self, event: Measured) -> bool:
        """Whether an event has this value; tables of all trials have the averages of repeats."""
        return self.value in (event.value, event.repeats or None)

    def is_same(self, event: Measured) -> bool:
        """Whether an event has this answer."""
        is_std = self.std == event.std or not self.has_std
        return self.has_value_of(event) and is_std and self.outcomes == event.outcomes

    def __str__(self) -> str:
        """The result in a message."""
        error = "" if self.std is None else f" +- {self.std}"
        return f"{self.value}{error}" + (f" with {self.outcomes}" if self.outcomes else "")


def answer_sheet(study: Study, trials: Sequence[Trial]) -> WrittenTable:
    """Trials as a sheet to fill in: their ids, their parameters and contexts by name with
    units, and an empty column for the results and for each outcome.

    Args:
        study: The study of the trials.
        trials: The trials to evaluate.

    Returns:
        The sheet, to write as CSV or as a workbook.
    """
    heads, strategy = study.heads, study.strategy
    rows = []
    for trial in trials:
        known = settings_of(trial, strategy)
        cells = [known.get(name) for name in (*heads.params, *heads.contexts)]
        rows.append([trial.id, *cells, *(None for _ in heads.results)])
    names = [TRIAL, *heads.params, *heads.contexts, *heads.results]
    return WrittenTable([heads.head(name) for name in names], rows)


def answers_of(study: Study, sheet: Sheet, correct: bool = False) -> Answers:
    """Reads a sheet that was filled in; its rows may have any order. Nothing is told yet. A table
    of all trials, such as ``botorch-ext trials --csv`` writes, may be filled in as well.

    A number of the sheet may be rounded: see the page on tables. A result may be ``failed``. A
    column ``note`` may have notes. One that the trial had before is not new.

    Args:
        study: The study of the trials.
        sheet: The sheet.
        correct: Whether a value in the sheet may replace another one that was told.

    Returns:
        The answers, none of which is told yet.

    Raises:
        TableError: The sheet is one of another study, has other parameters than were asked, texts
            that are no numbers, the same trial twice, a value for an abandoned trial, another value
            for a told trial, or no new value. The message names all mistakes.
    """
    heads, strategy = study.heads, study.strategy
    places = heads.read(sheet.heads, [TRIAL, *heads.needed, *heads.results], sheet.origin)
    decimal = decimal_of(sheet, places, heads.parameters, heads.note)
    found = Answers()
    rows: dict[int, int] = {}
    # Tables of all trials have notes without characters that cannot be printed.
    noted = {(e.id, printable(e.text).strip()) for e in strategy.events if isinstance(e, Noted)}
    results: dict[int, list[Measured]] = {}
    for event in strategy.events:
        if isinstance(event, Measured):
            results.setdefault(event.id, []).append(event)
    scales = _scales(strategy, heads)
    wrong = []
    for row in sheet.rows:
        try:
            trial = _trial(row, places[TRIAL], strategy)
            if trial.id in rows:
                raise ValueError(f"trial {trial.id} is in row {rows[trial.id]} as well")
            rows[trial.id] = row.number
            result = _result(row, places, heads, decimal, trial, strategy, scales)
            _sort(found, trial.id, result, strategy.history, results.get(trial.id, []), correct)
            note = original(row.cells[places[heads.note]]) if heads.note in places else ""
            if note and (trial.id, printable(note)) not in noted:
                found.notes[trial.id] = str(note)
        except ValueError as error:
            wrong.append(f"row {row.number}: {error}")
    if not wrong and not (found.values or found.failed or found.corrected or found.notes):
        what = (
            "every result in it has been told already" if found.known else "no result is filled in"
        )
        what = "; ".join([what, *found.outdated])
        wrong.append(f"there is nothing to tell: {what}")
    if wrong:
        raise TableError(sheet.origin.message(named(wrong)))
    return found


def _sort(
    found: Answers,
    id: int,
    result: _Answer,
    history: History,
    results: Sequence[Measured],
    correct: bool,
) -> None:
    """Adds what a row says of a trial to the answers.

    Args:
        found: The answers.
        id: The id of the trial.
        result: What the row says.
        history: What was told of all trials.
        results: The events with the result of the trial, before and after corrections.
        correct: Whether the value may replace another one that was told.
    """
    value = result.value
    if value is None:
        if id in history.pending:
            found.empty.append(id)
    elif id in history.pending:
        if isinstance(value, str):
            found.failed.append(id)
        else:
            found.values[id] = value
            found.add(id, result)
    elif correct and id in history.values and not isinstance(value, str):
        last = results[-1]
        if result.is_same(last):
            found.known.append(id)
            return
        if result.has_value_of(last):  # only what was measured beside it is another
            value = last.repeats or last.value
            result = result if result.has_std else result._replace(std=last.std)
        found.corrected[id] = value
        found.add(id, result)
    else:
        _require_known(id, result, history, results)
        found.known.append(id)
        if id in history.values and not result.is_same(results[-1]):
            now = _Answer.told(id, history)
            found.outdated.append(f"trial {id}: the sheet has {result}, the study {now}")


def _trial(row: Row, place: int, strategy: Strategy) -> Trial:
    """The trial of a row."""
    text = row.cells[place]
    if not text:
        raise ValueError(f"{TRIAL} is empty: attach a result that was not asked for")
    id, trials = trial_id(text), strategy.history.trials
    if id is None or not 0 <= id < len(trials):
        last = f"from 0 to {len(trials) - 1}" if trials else "asked first: there is none yet"
        raise ValueError(f"{TRIAL} must be {last}, got {text}: is this the sheet of another study?")
    return trials[id]


def _result(
    row: Row,
    places: Mapping[str, int],
    heads: ColumnHeads,
    decimal: str,
    trial: Trial,
    strategy: Strategy,
    scales: Mapping[str, _Scale],
) -> _Answer:
    """What is filled in for a trial. The parameters must be those that were asked."""
    given, wrong = values_of(row.cells, places, heads, decimal)
    asked = settings_of(trial, strategy)
    others = [
        f"{name} is {'empty' if given[name] is None else given[name]}, asked was {asked.get(name)}"
        for name in (*heads.params, *heads.contexts)
        if name in given
        and not _is_asked(
            row.cells[places[name]],
            given[name],
            asked.get(name),
            heads.parameters.get(name),
            scales.get(name),
        )
    ]
    if others:
        wrong.append(
            f"{', '.join(others)}: trial {trial.id} has other parameters. If they were set like "
            "this, abandon the trial and attach the row without its id; otherwise this is the "
            "sheet of another study"
        )
    filled = [name for name in heads.results if given.get(name) is not None]
    if heads.objective not in given:
        wrong.append(f"write {FAILED} if the experiment failed, nothing if it has no result yet")
    elif filled and given[heads.objective] != FAILED:
        wrong += [
            f"{name} is empty: leave {heads.objective} empty, too, until all results are there"
            for name in heads.results
            if name in given and given[name] is None
        ]
    if wrong:
        raise ValueError("; ".join(wrong))
    if not filled or given[heads.objective] == FAILED:
        return _Answer(given[heads.objective], {})
    return _Answer(*measured(given, heads), heads.std in places)


@dataclass(frozen=True)
class _Scale:
    """The scale of a column of a sheet.

    Args:
        low: The least number that the column may have.
        high: The largest one.
        span: The length of the range; of its logarithm on a logarithmic scale.
        is_log: Whether the scale is logarithmic.
    """

    low: float
    high: float
    span: float
    is_log: bool = False

    def are_near(self, given: float, asked: float) -> bool:
        """Whether a number lies in the range, and within a hundredth of it of the asked one."""
        if not self.low <= given <= self.high:
            return False
        apart = math.log(given / asked) if self.is_log else given - asked
        return abs(apart) <= self.span / 100


def _scales(strategy: Strategy, heads: ColumnHeads) -> dict[str, _Scale]:
    """The scales of the columns of parameters and contexts."""
    space = strategy.context_space
    scales = _scales_of(strategy.domain, list(heads.params))
    if space is None:
        return scales
    if space.domain is not None:
        return scales | _scales_of(space.domain, list(heads.contexts))
    # Nobody knows the range of such contexts: the size of the known ones takes its place.
    contexts = [each.context for each in strategy.history.trials if each.context is not None]
    sizes = torch.stack(contexts).abs().amax(dim=0).tolist() if contexts else []
    known = zip(heads.contexts, sizes, strict=False)
    return scales | {name: _Scale(-math.inf, math.inf, size) for name, size in known}


def _scales_of(domain: Domain, names: Sequence[str]) -> dict[str, _Scale]:
    log: Collection[int] = ()
    if isinstance(domain, Box):
        (low, high), log = domain.bounds, domain.log
    else:
        low, high = domain.points.amin(dim=0), domain.points.amax(dim=0)
    if isinstance(domain, Space):
        names = domain.names
    ends = zip(names, low.tolist(), high.tolist(), strict=True)
    return {
        name: _Scale(a, b, math.log(b / a), is_log=True) if column in log else _Scale(a, b, b - a)
        for column, (name, a, b) in enumerate(ends)
    }


def _is_asked(
    text: str, given: Any, asked: Any, parameter: Parameter | None, scale: _Scale | None
) -> bool:
    """Whether a cell may show the value that was asked.

    Spreadsheets save the digits that they show. The id already tells which trial a row is, so a
    number is accepted if the asked one rounds to it, and if it is near on the scale of its
    parameter: 0.00 is far from 0.0032 on a logarithmic scale. A number with as many digits as the
    parameter has is another setting.

    Args:
        text: The text of the cell.
        given: The value of the text; None for an empty cell.
        asked: The value that was asked; None for a parameter that does not count.
        parameter: The parameter; None for a column without one.
        scale: The scale of the column; None for a column without one.
    """
    if given is None or asked is None:
        return given is None and asked is None
    if isinstance(parameter, Choice):
        try:
            return parameter.encoded(given) == parameter.encoded(asked)
        except ValueError:
            return False
    apart = abs(given - asked)
    if apart <= 1e-12 * abs(asked):
        return True
    is_rounded = apart <= last_place(text) / 2 + 1e-12 * abs(asked)
    return is_rounded and scale is not None and scale.are_near(given, asked)


def _require_known(id: int, result: _Answer, history: History, results: Sequence[Measured]) -> None:
    """Raises a ValueError unless a trial that is not pending had this answer, also before a
    correction."""
    if id in history.values:
        if not any(map(result.is_same, results)):
            raise ValueError(
                f"trial {id} is told already, {_Answer.told(id, history)}; correct, or tell "
                f"--correct, changes a value, got {result}"
            )
    elif id in history.failed and result.value != FAILED:
        raise ValueError(f"trial {id} has failed: withdraw takes that back, then attach its result")
    elif id not in history.failed:
        raise ValueError(f"trial {id} was abandoned: attach its result")
