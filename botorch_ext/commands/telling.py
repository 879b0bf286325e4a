"""Commands that change a study: new, ask, tell, attach, correct, abandon, withdraw, note and
widen."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from botorch_ext.checks import did_you_mean
from botorch_ext.commands.beginning import strategy_of
from botorch_ext.commands.proposing import propose
from botorch_ext.domains.box import require_known
from botorch_ext.exceptions import StudyError
from botorch_ext.page.overview import read_overview
from botorch_ext.page.words import counted
from botorch_ext.parameters import Choice, Parameter
from botorch_ext.studies.answer_sheets import answer_sheet, answers_of
from botorch_ext.studies.cell_values import number, repeats_in
from botorch_ext.studies.result_tables import Result, values_of
from botorch_ext.studies.sheets import Sheet
from botorch_ext.studies.study import Study
from botorch_ext.studies.written_tables import WrittenTable


def opened(given: argparse.Namespace) -> Study:
    """Opens the study of a command. Its strategy is made again from its description."""
    overview = read_overview(given.place, given.name)  # which makes no file
    return Study(given.place, name=overview.name)


def read_sheet(given: argparse.Namespace) -> Sheet:
    """Reads the sheet of a command."""
    return Sheet.read(given.sheet, given.separator, given.decimal)


def new(given: argparse.Namespace) -> str:
    """Begins a study, or proposes its space."""
    if given.from_results is not None:
        return propose(given)
    if given.outcome:
        raise StudyError("--outcome needs --from; the file of the space has the outcomes")
    name = "study" if given.name is None else given.name
    if Path(given.place).exists():
        raise StudyError(f"{given.place} is there already: a new study needs a file of its own")
    strategy = strategy_of(Path(given.space), given.minimize)
    study = Study(
        given.place,
        strategy,
        name=name,
        objective=given.objective,
        unit=given.unit,
    )
    unit = f" in {study.unit}" if study.unit else ""
    goal = "smallest" if study.minimize else "largest"
    return f"began a study of the {goal} {study.objective}{unit}: {study.strategy.domain!r}\n"


def ask(given: argparse.Namespace) -> WrittenTable:
    """Asks for trials, or shows the pending ones, as a sheet to fill in."""
    study = opened(given)
    if given.pending:
        strategy = study.strategy
        trials = [strategy.history.trials[id].copy() for id in strategy.pending]
        if not trials:
            raise StudyError(f"{given.place} has no pending trials")
    else:
        trials = study.ask(given.number, context=context_of(given, study))
    given.written = _trials([trial.id for trial in trials])
    return answer_sheet(study, trials)


def tell(given: argparse.Namespace) -> str:
    """Tells the results that were filled in."""
    study = opened(given)
    answers = answers_of(study, read_sheet(given), given.correct)
    history = study.strategy.history
    said = {
        "told ": answers.values,
        "failed ": answers.failed,
        "still empty: ": answers.empty,
        "told before: ": answers.known,
        "noted ": list(answers.notes),
    }
    lines = [f"{what}{_trials(ids)}" for what, ids in said.items() if ids]
    lines += answers.outdated
    for id, value in answers.corrected.items():
        is_other = value not in (history.value_told(id), history.repeats_told(id))
        change = f" from {history.value_told(id)} to {value}" if is_other else ""
        lines.append(f"corrected trial {id}{change}")
    lines += [
        f"the standard error {std} of trial {id} was dropped; correct --std gives it one"
        for id, std in history.stds.items()
        if id in answers.corrected and id not in answers.stds
    ]
    study.tell_all(
        answers.values | answers.corrected,
        outcomes=answers.outcomes,
        stds=answers.stds,
        failed=answers.failed,
        notes=answers.notes,
        correct=given.correct,
    )
    return "".join(f"{line}\n" for line in lines)


def attach(given: argparse.Namespace) -> str:
    """Adds earlier results."""
    study, sheet = opened(given), read_sheet(given)
    trials = study.attach_sheet(sheet, repeat=given.repeat, outside=given.outside)
    return f"attached {_trials([trial.id for trial in trials])}\n"


def correct(given: argparse.Namespace) -> str:
    """Replaces a value, outcomes or a standard error that were wrong."""
    values = [_number("value", each) for each in repeats_in(given.value or "") if each]
    std = None if given.std is None else _number("--std", given.std)
    study, id = opened(given), given.trial
    texts = [text.partition("=") for text in given.outcome]
    outcomes = {study.heads.name(name) or name: _number(name, text) for name, _, text in texts}
    history = study.strategy.history
    old, dropped = history.as_told.get(id), history.stds.get(id)
    study.correct(id, values or None, outcomes, std=std)
    said = [str(value) for value in values]
    said += [f"{name}={number}" for name, number in outcomes.items()]
    said += [] if std is None else [f"std={std}"]
    line = f"corrected trial {id}{f' from {old}' if values else ''} to {', '.join(said)}\n"
    if values and std is None and dropped is not None:
        line += f"its standard error {dropped} was dropped; --std {dropped} keeps it\n"
    return line


def abandon(given: argparse.Namespace) -> str:
    """Abandons a trial."""
    opened(given).abandon(given.trial, given.failed)
    return f"abandoned trial {given.trial}{', which failed' if given.failed else ''}\n"


def withdraw(given: argparse.Namespace) -> str:
    """Takes back an attached result or a failure."""
    study = opened(given)
    has_failed = given.trial in study.strategy.history.failed
    study.withdraw(given.trial)
    return f"withdrew {'the failure of ' if has_failed else ''}trial {given.trial}\n"


def note(given: argparse.Namespace) -> str:
    """Keeps a note with a trial."""
    opened(given).note(given.trial, given.text)
    return f"{'noted' if given.text else 'removed the note of'} trial {given.trial}\n"


def widen(given: argparse.Namespace) -> str:
    """Widens parameters of the space."""
    study, parameters = opened(given), {}
    known = getattr(study.strategy.domain, "parameters", {})
    for option in ("low", "high", "add"):
        for name, _, text in (each.partition("=") for each in getattr(given, option)):
            name = study.heads.name(name) or name
            require_known({name: text}, known, f"--{option}")
            old = parameters.get(name, known[name])
            parameters[name] = _wider(name, old, option, text)
    study.widen(parameters)
    return "".join(f"widened {name} to {each!r}\n" for name, each in parameters.items())


def _wider(name: str, old: Any, option: str, text: str) -> Parameter:
    """A parameter with another end, or with a further value: a number where all others are."""
    if isinstance(old, Choice) != (option == "add"):
        kind = "choice" if option == "add" else "range"
        raise ValueError(f"--{option} must name a {kind}, got {name}, which is {old!r}")
    if isinstance(old, Choice) and old.descriptors is not None:
        raise ValueError(f"{name} has descriptors: widen it in Python, with study.widen")
    known = old.values if isinstance(old, Choice) else (old.low, old.high)
    value: Any = text
    if all(type(each) in (int, float) for each in known):
        value = _number(name, text)
        if value.is_integer() and all(type(each) is int for each in known):
            value = int(value)
    try:
        return replace(old, **({"values": [*known, value]} if option == "add" else {option: value}))
    except ValueError as error:
        raise ValueError(f"{name} cannot be widened by --{option} {text}: {error}") from None


def context_of(given: argparse.Namespace, study: Study) -> Any:
    """The context that a command is given as ``NAME=VALUE`` for each column of contexts; None
    where it is given none.

    Raises:
        ValueError: A name is missing, unknown or there twice, or a text is no value.
    """
    if not given.context:
        return None
    heads = study.heads
    names, texts = zip(*(text.partition("=")[::2] for text in given.context), strict=True)
    wrong = [
        f"{name} is no context{did_you_mean(name, heads.contexts)}"
        for name in names
        if heads.name(name) not in heads.contexts
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    places = heads.read(names, [name for name in heads.needed if name in heads.contexts])
    known, wrong = values_of(texts, places, heads)
    if wrong:
        raise ValueError("; ".join(wrong))
    return Result("--context", None, {}, known).context_of(study.strategy)


def _number(name: str, text: str) -> float:
    """The number that a text is."""
    try:
        return number(text)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def _trials(ids: Collection[int]) -> str:
    return f"{counted(len(ids), 'trial')}: {', '.join(map(str, ids))}"
