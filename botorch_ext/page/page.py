"""The page of a study: one file for a browser that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from botorch_ext.aligned import printable
from botorch_ext.limits import LEAST_FEASIBILITY
from botorch_ext.page.drawing import Picture
from botorch_ext.page.groups import by_context, parts
from botorch_ext.page.model_summary import ModelSummary, Prediction
from botorch_ext.page.overview import Overview, TrialStory
from botorch_ext.page.parameters import Column, Columns
from botorch_ext.page.pictures import pictures
from botorch_ext.page.status import counts, seen_or_not
from botorch_ext.page.strategy_description import arguments, as_dict, called
from botorch_ext.page.words import counted, duration, in_words, moment, number, short
from botorch_ext.plain_events import version_of

# Rows from which on a table is folded.
_MOST_OPEN = 12
# Parameters up to which each has a column, and the characters of their names; of more, those that
# are written in one.
_MOST_COLUMNS, _MOST_CHARACTERS, _MOST_NAMED = 5, 60, 24
_MOST_PENDING = 50
# Trials that broke a limit up to which each is named.
_MOST_BROKEN = 6


def page(overview: Overview, now: float, model: ModelSummary) -> str:
    """The page as HTML; made without torch if the summary is empty.

    Raises:
        ImportError: Jinja is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError as error:
        raise ImportError("a page needs Jinja: pip install 'botorch-ext[studies]'") from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "counted": counted,
        "duration": duration,
        "in_words": in_words,
        "moment": moment,
        "number": number,
        "printable": printable,
        "amount": overview.objective.amount,
        "short": _four_digits,
        "rough": lambda value: overview.objective.with_unit(f"{value:.3g}"),
        "short_amount": lambda value: overview.objective.with_unit(_four_digits(value)),
        "band": lambda ends: f"{_four_digits(ends[0])} to {_four_digits(ends[-1])}",
    }
    text = Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8")
    template = environment.from_string(text)
    shown, missing = _pictures(overview, now, model)
    columns = overview.columns.all
    return template.render(
        study=overview,
        now=now,
        name=in_words(overview.name),
        strategy=called(overview.description),
        arguments=arguments(overview.description),
        versions=_versions(overview),
        version=version_of("botorch-ext") or "",
        counts=counts(overview),
        limits=[_limit(overview, name) for name in overview.limits],
        seen_or_not=seen_or_not,
        typical_wait=_typical_wait(overview, now),
        pending=overview.pending[:_MOST_PENDING],
        model=model,
        least_feasibility=LEAST_FEASIBILITY,
        objective=overview.objective,
        why=partial(_why, overview, model),
        at=partial(_at, overview.columns),
        per_context=[
            (context, stories, overview.best_of(stories), model.per_context.get(context))
            for context, stories in by_context(overview).items()
        ],
        pictures=[(each, list(map(Markup, each.svgs))) for each in shown],
        missing=missing,
        stages=[part.stages for part in parts(overview) if part.stages],
        fit=_last_fit(overview),
        best_id=overview.best.id if overview.best else None,
        columns=[column.title for column in columns] if _have_room(overview.columns) else [],
        outcome_heads=[(short(each.title), "") for each in overview.outcome_columns],
        outcome_cells=lambda story: [
            number(story.outcomes.get(each)) for each in overview.outcomes
        ],
        trial_rows=[(story, _cells(overview, story)) for story in overview.stories],
        most_named=_MOST_NAMED,
        num_columns=len(columns),
        most_open=_MOST_OPEN,
    )


def _limit(overview: Overview, name: str) -> str:
    """The limit of an outcome, and which trials broke it."""
    limit, broken = overview.limits[name], overview.breaking(name)
    num, unit = len(overview.observed), limit.unit or ""
    words = f"{short(name)} {limit}, kept in {num - len(broken)} of {counted(num, 'result')}"
    by = [
        f"trial {story.id} ({Column(name, unit).amount(story.outcomes.get(name))})"
        for story in broken[:_MOST_BROKEN]
    ]
    if len(broken) > len(by):
        by.append(f"{len(broken) - len(by)} more")
    return f"{words}; broken by {', '.join(by)}" if by else words


def _have_room(columns: Columns) -> bool:
    """Whether the table of all trials has a column for each parameter."""
    titles = [column.title for column in columns.all]
    return len(titles) <= _MOST_COLUMNS and sum(map(len, titles)) <= _MOST_CHARACTERS


def _cells(overview: Overview, story: TrialStory) -> list[str]:
    """The parameters of a trial: each in a column, or all in one."""
    columns = overview.columns
    cells = columns.cells(story.x, story.context)
    if _have_room(columns):
        return cells
    if len(cells) <= _MOST_NAMED:
        return [columns.at(story.x, story.context)]
    return [f"({', '.join(cells[:_MOST_NAMED])}, ...)"]


def _at(columns: Columns, x: Iterable[Any], context: Iterable[Any] | None = None) -> str:
    """A point in words, with its context, which may stand behind it in ``x``."""
    numbers, num = list(map(float, (*x, *(context if context is not None else ())))), len(columns.x)
    return columns.at(numbers[:num], numbers[num:])


def _four_digits(value: float) -> str:
    """A computed number in four digits."""
    return f"{value:.4g}"


def _why(overview: Overview, model: ModelSummary, at: Prediction) -> str:
    """Why a point is worth a measurement, beside the recommended one."""
    if model.at_recommended is None:
        return ""
    sign, best = overview.sign, model.at_recommended.mean
    reach = at.quantiles[-1] if sign > 0 else at.quantiles[0]

    def amount(value: float) -> str:
        return overview.objective.with_unit(_four_digits(value))

    if sign * at.mean >= sign * best:
        return "the model predicts the best value here"
    if sign * reach > sign * best:
        return f"may reach {amount(reach)}; {amount(best)} is predicted at the recommended point"
    return "what is learned here tells about other points"


def _pictures(overview: Overview, now: float, model: ModelSummary) -> tuple[list[Picture], str]:
    """The pictures; none, and what to install, without matplotlib."""
    if not overview.stories:
        return [], ""
    try:
        return pictures(overview, parts(overview), now, model), ""
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return [], "pip install 'botorch-ext[plot]'"


def _versions(overview: Overview) -> str:
    known = as_dict(overview.description.get("versions")).items()
    return ", ".join(f"{short(key)} {in_words(given)}" for key, given in known if given)


def _typical_wait(overview: Overview, now: float) -> float | None:
    waits = [story.waited(now) for story in overview.having("told")]
    return median(waits) if waits else None


def _last_fit(overview: Overview) -> tuple[int, str] | None:
    """The hyperparameters that were fitted last, and before which trial."""
    for story in reversed(overview.stories):
        fit = story.info.get("fit")
        if isinstance(fit, dict):
            return story.id, in_words(fit)
    return None
