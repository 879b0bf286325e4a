"""The page of a study, with the predictions of its model."""

from __future__ import annotations

import time
from dataclasses import replace

from botorch_ext.page.model_summary import summary_of
from botorch_ext.page.overview import overview_of
from botorch_ext.page.page import page
from botorch_ext.studies.study import Study


def report_page(study: Study) -> str:
    """The page of a study as HTML, with the predictions of its model. The command
    ``botorch-ext report`` writes the same page if it can make the strategy again.

    No trial is asked. The predictions cost about as much as the next ask.

    Example:
        >>> from pathlib import Path
        >>> Path("yield.html").write_text(bx.report_page(study), encoding="utf-8")  # doctest: +SKIP

    Args:
        study: The study, with or without trials.

    Returns:
        The text of one HTML file that loads nothing and runs nothing.

    Raises:
        ImportError: Jinja is not installed.
        ValueError: ``study`` is no `Study`.
    """
    if not isinstance(study, Study):
        raise ValueError(f"study must be a Study, got a {type(study).__name__}")
    journal = study._journal
    overview = journal.database.alone(lambda: overview_of(journal))
    # A study may be begun without them and opened with them.
    texts = {"objective": study.objective, "unit": study.unit}
    overview = replace(overview, description=overview.description | texts)
    return page(overview, time.time(), summary_of(study))
