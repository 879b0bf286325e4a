"""Commands that ask the model of a study."""

from __future__ import annotations

import argparse

from botorch_ext.commands.telling import context_of
from botorch_ext.exceptions import TableError
from botorch_ext.predictions.predictions import Predictions
from botorch_ext.reports.overview import read_overview
from botorch_ext.reports.words import number
from botorch_ext.studies.csv_sheets import Sheet, written
from botorch_ext.studies.result_tables import results_of_sheet
from botorch_ext.studies.study import Study


def predict(given: argparse.Namespace) -> str:
    """Predictions at the points of a sheet, as CSV: its parameters and contexts, then the mean and
    the standard deviation of f, and quantiles of f and of an observation."""
    study, sheet = _looked_at(given), Sheet.read(given.points)
    heads, strategy = study.heads, study.strategy
    results = results_of_sheet(sheet, heads, needs_value=False)
    rows, predicted, wrong = [], [], []
    for result in results:
        try:
            found = study.predict(result.point(strategy), context=result.context_of(strategy))
            predicted.append(_numbers(found))
            known = {**strategy.domain.params_of(found.x[0]), **result.context}
            rows.append([known.get(name) for name in (*heads.params, *heads.contexts)])
        except ValueError as error:
            wrong.append(f"{result.where}: {error}")
    if wrong:
        raise TableError.of([f"{sheet.name} {wrong[0]}", *wrong[1:]])
    names = [heads.head(name) for name in (*heads.params, *heads.contexts)]
    filled = [[*row, *numbers.values()] for row, numbers in zip(rows, predicted, strict=True)]
    return written([*names, *predicted[0]], filled, given.decimal_comma)


def recommended(given: argparse.Namespace) -> str:
    """The point to settle for, what is predicted there, and how sure it is."""
    study = _looked_at(given)
    heads, found = study.heads, study.recommended(context_of(given, study))
    lines = [
        f"{heads.head(name)}: {number(value) if isinstance(value, float) else value}"
        for name, value in found.params.items()
    ]
    numbers = {name: number(value) for name, value in _numbers(found.prediction).items()}
    lines += [
        f"{heads.head(heads.objective)}, predicted {name}: {each}" for name, each in numbers.items()
    ]
    lines.append(f"was evaluated: {'yes' if found.is_evaluated else 'no'}")
    lines.append(f"as good as every evaluated point with probability: {number(found.probability)}")
    return "".join(f"{line}\n" for line in lines)


def _looked_at(given: argparse.Namespace) -> Study:
    """The study of a command, which does not write it."""
    return Study.only_read(given.place, read_overview(given.place, given.name).name)


def _numbers(found: Predictions) -> dict[str, float]:
    """What is predicted at one point, by name."""
    return {name: float(values[0]) for name, values in found.numbers.items()}
