"""The page of a study: one file for a browser that loads nothing and runs nothing."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from botorch_ext.reports.models_and_rounds import parts
from botorch_ext.reports.overview import Overview
from botorch_ext.reports.status import counts
from botorch_ext.reports.strategy_description import arguments, called
from botorch_ext.reports.tables import columns
from botorch_ext.reports.words import counted, duration, in_words, moment, number, point, short

# Rows from which on a table is folded.
_MOST_OPEN = 12
# Coordinates that it has columns for.
_MOST_COLUMNS = 24
_MOST_PENDING = 50


def page(overview: Overview, now: float) -> str:
    """The page as HTML.

    Args:
        overview: Of the study.
        now: In seconds since 1970.

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
        "moment": moment,
        "number": number,
        "point": point,
    }
    text = Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8")
    template = environment.from_string(text)
    shown, missing = _pictures(overview, now)
    names = [name for group in columns(overview) for name in group]
    return template.render(
        study=overview,
        now=now,
        name=in_words(overview.name),
        strategy=called(overview.description),
        arguments=arguments(overview.description),
        versions=_versions(overview),
        version=_version(),
        counts=counts(overview),
        typical_wait=_typical_wait(overview, now),
        pending=overview.pending[:_MOST_PENDING],
        pictures=[(picture, Markup(picture.svg)) for picture in shown],
        missing=missing,
        stages=[part.stages for part in parts(overview) if part.stages],
        fit=_last_fit(overview),
        best_id=overview.best.id if overview.best else None,
        columns=names[:_MOST_COLUMNS],
        num_columns=len(names),
        most_open=_MOST_OPEN,
    )


def _pictures(overview: Overview, now: float) -> tuple[list[Any], str]:
    """The pictures; none, and what to install, without matplotlib."""
    if not overview.stories:
        return [], ""
    try:
        from botorch_ext.reports.pictures import pictures

        return pictures(overview, parts(overview), now), ""
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return [], "pip install 'botorch-ext[plot]'"


def _versions(overview: Overview) -> str:
    versions = overview.description.get("versions")
    known = versions.items() if isinstance(versions, dict) else ()
    return ", ".join(f"{short(key)} {in_words(given)}" for key, given in known if given)


def _version() -> str:
    try:
        return version("botorch-ext")
    except PackageNotFoundError:  # run from a folder, not installed
        return ""


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
