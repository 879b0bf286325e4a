"""Predicted tables: points of a table at which a study predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.named_points import located
from botorch_ext.studies.column_heads import ColumnHeads
from botorch_ext.studies.result_tables import RECORDED, TRIAL, results_of


def is_table(points: Any) -> bool:
    """Whether points have names: a data frame, a dict, or a list of dicts."""
    if isinstance(points, list | tuple):
        return bool(points) and isinstance(points[0], Mapping)
    return isinstance(points, Mapping) or hasattr(points, "itertuples")


def trials_of_table(
    table: Any, heads: ColumnHeads, strategy: Strategy, context: ContextLike | None
) -> list[Trial]:
    """Reads the points of a table as trials in their own contexts.

    Args:
        table: A data frame, a dict, or a list of dicts. Its columns are those that `Study.attach`
            takes; the objective, and what `Study.to_pandas` has beside it, may be there and is
            not read.
        heads: The columns of the study.
        strategy: The strategy of the study.
        context: The context of all points. None: each row has its own.

    Returns:
        A trial for each row, with the number of the row as its id.

    Raises:
        TableError: Columns or rows are wrong; the message names them.
    """
    own = heads if context is None else replace(heads, contexts={})
    others = (TRIAL, heads.objective, *RECORDED, *heads.contexts)
    rows = [table] if isinstance(table, Mapping) else table
    trials, wrong = [], []
    for number, result in enumerate(results_of(rows, own, needs_value=False, others=others)):
        try:
            (x,), _ = located(result.point(strategy), strategy.domain, strategy.takes_outside)
            seen = context if context is not None else result.context_of(strategy)
            trials.append(Trial(number, x, strategy.checked_context(seen)))
        except ValueError as error:
            wrong.append(f"{result.where}: {error}")
    if wrong:
        raise TableError.of(wrong)
    return trials
