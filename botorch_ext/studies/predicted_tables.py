"""Predicted tables: points of a table at which a study predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from botorch_ext.checks import named
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.named_points import located
from botorch_ext.studies.result_tables import ROW, Result


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
