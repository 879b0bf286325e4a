"""Commands that ask the model of a study."""

from __future__ import annotations

import argparse
import warnings

from botorch_ext.aligned import free_names
from botorch_ext.checks import named
from botorch_ext.commands.telling import context_of, read_sheet
from botorch_ext.exceptions import NoObservationsError, OutsideDomainWarning
from botorch_ext.page.overview import read_overview
from botorch_ext.page.status import seen_or_not
from botorch_ext.page.words import counted, number
from botorch_ext.strategies.answers.recommendation import lines_of_feasibility
from botorch_ext.studies.result_tables import points_of, trials_of_points
from botorch_ext.studies.study import Study
from botorch_ext.studies.trial_frames import settings_of
from botorch_ext.studies.written_tables import WrittenTable


def predict(given: argparse.Namespace) -> WrittenTable:
    """Predictions at the points of a sheet: its parameters and contexts, then the mean and
    the standard deviation of f, and quantiles of f and of an observation, all to the third digit of
    the standard deviation."""
    study, sheet = _looked_at(given), read_sheet(given)
    heads, strategy = study.heads, study.strategy
    points = points_of(sheet, heads)
    trials = trials_of_points(points, strategy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideDomainWarning)  # its rows are not those of the sheet
        found = study.predict(trials).readable
    if outside := [p.where for p, trial in zip(points, trials, strict=True) if trial.info]:
        message = (
            f"{len(outside)} of {len(points)} points lie outside the domain, where the model "
            f"extrapolates: {named(outside)}"
        )
        warnings.warn(sheet.origin.message(message), OutsideDomainWarning, stacklevel=2)
    given.written = f"predictions at {counted(len(trials), 'point')}"
    names = (*heads.params, *heads.contexts)
    rows = [settings_of(trial, strategy) for trial in trials]
    numbers = zip(*found.values(), strict=True)
    return WrittenTable(
        [*map(heads.head, names), *free_names(found, names)],
        [[*map(row.get, names), *each] for row, each in zip(rows, numbers, strict=True)],
    )


def recommended(given: argparse.Namespace) -> str:
    """The recommended point, its prediction, and by how much another point may be better."""
    study = _looked_at(given)
    heads, found = study.heads, study.recommended(context_of(given, study))
    lines = [
        f"{heads.head(name)}: {number(value) if isinstance(value, float) else value}"
        for name, value in found.params.items()
    ]
    objective = heads.head(heads.objective)
    numbers = found.prediction.readable.items()
    lines += [f"{objective}, predicted {name}: {number(each)}" for name, (each,) in numbers]
    overview = read_overview(given.place, given.name)
    ids = ", ".join(str(story.id) for story in overview.measured_at(found.x))
    yes_or_no = f"yes, in trial {ids}" if ids else "yes" if found.is_evaluated else "no"
    lines.append(f"was evaluated: {yes_or_no}")
    if overview.best or not overview.limits:
        lines.append(
            f"as good as every evaluated point with probability: {_in_three(found.probability)}"
        )
        shortfall = _in_three(found.shortfall)
        lines.append(f"{objective}, expected shortfall from the best evaluated point: {shortfall}")
    if found.feasibility is not None:
        lines += lines_of_feasibility(found.feasibility)
    return "".join(f"{line}\n" for line in lines)


def stop(given: argparse.Namespace) -> str:
    """What the next batch is expected to gain, beside the noise of one measurement. Nothing is
    asked."""
    study = _looked_at(given)
    try:
        found = study.expected_gain(given.number, context=context_of(given, study))
    except NoObservationsError:
        if not study.strategy.limits:
            raise
        return "no result keeps the limits yet: another round is needed\n"
    objective, batch = study.heads.head(study.objective), counted(given.number, "trial")
    lines = [
        f"{objective}, expected gain of the next {batch}: {_in_three(found.gain)}",
        f"{objective}, standard deviation of the noise: {_in_three(found.noise_std)}",
        f"a better point than all so far with probability: {_in_three(found.probability)}",
        seen_or_not(found.gain, found.noise_std),
    ]
    return "".join(f"{line}\n" for line in lines)


def _in_three(value: float) -> str:
    """A number of the model, whose error is larger than its fourth digit."""
    return number(float(f"{value:.3g}"))


def _looked_at(given: argparse.Namespace) -> Study:
    """The study of a command that does not change it."""
    return Study.only_read(given.place, read_overview(given.place, given.name).name)
