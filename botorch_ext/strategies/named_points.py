"""Named points: points, trials and tables that a user gives, read as rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain
from botorch_ext.domains.contexts import ContextLike, with_context
from botorch_ext.domains.outside_points import outside_point
from botorch_ext.domains.points import PointsLike, as_points
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.strategies.events import Trial

#: Trials, or ``n x d`` points, or one of either; or a data frame with columns by name.
Points = Trial | Sequence[Trial] | PointsLike


def joint_rows(
    points: Points,
    domain: Domain,
    context: ContextLike | None,
    checked_context: Callable[..., Tensor | None],
    takes_outside: bool,
) -> tuple[Tensor, Tensor | None, list[int]]:
    """Reads points and their contexts as joint rows, ``n x (d + d_z)``.

    Args:
        points: What the user gave.
        domain: Where the points lie.
        context: ``d_z``. None: each trial keeps its own context.
        checked_context: A function from a context and its name to a tensor, as
            `Strategy.checked_context`.
        takes_outside: Whether points may lie outside a box.

    Returns:
        The joint rows; the ``d_z``-dim context that all of them share, which is None without
        contexts and for trials that keep their own; and the numbers of the rows that lie outside
        the domain, counted from 0.

    Raises:
        OutsideDomainError: A point lies outside the domain, and ``takes_outside`` is False or no
            model can say anything there.
        ValueError: There are no points, or a context is one that `Strategy.ask` would refuse.
    """
    if hasattr(points, "columns") and hasattr(points, "to_dict"):  # a data frame
        points = cast(Any, points).to_dict("records")
    trials: Any = [points] if isinstance(points, Trial) else points
    are_trials = isinstance(trials, Sequence) and any(isinstance(t, Trial) for t in trials)
    if are_trials:
        if not all(isinstance(trial, Trial) for trial in trials):
            raise ValueError("points must be trials or points, got both")
        points = torch.stack([trial.x for trial in trials])
    X, outside = located(cast(PointsLike, points), domain, takes_outside)
    if are_trials and context is None:
        contexts = [
            checked_context(trial.context, f"context of trial {trial.id}") for trial in trials
        ]
        rows = [with_context(x, own) for x, own in zip(X, contexts, strict=True)]
        return torch.stack(rows), None, outside
    checked = checked_context(context)
    if not len(X):
        raise ValueError("points must be at least one, got none")
    return with_context(X, checked), checked, outside


def located(
    points: PointsLike, domain: Domain, takes_outside: bool, name: str = "points"
) -> tuple[Tensor, list[int]]:
    """Reads points as numbers.

    Returns:
        ``n x d``, and the numbers of the rows that lie outside the domain, counted from 0.

    Raises:
        OutsideDomainError: As `joint_rows`.
    """
    try:
        return domain.require_contains(points, name), []
    except OutsideDomainError:
        if not (takes_outside and isinstance(domain, Box)) or domain.conditions:
            raise
    rows: Any = [points] if isinstance(points, Mapping) else points
    if not isinstance(rows[0], Mapping):
        rows = as_points(points, domain.dim, domain.like, name)
    X, outside = [], []
    for number, point in enumerate(rows):
        try:
            X.append(domain.require_contains(point, name)[0])
        except OutsideDomainError:
            X.append(outside_point(domain, point, name))
            outside.append(number)
    return torch.stack(X), outside
