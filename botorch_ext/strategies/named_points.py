"""Named points: the one place where the names of parameters come in, as points are read and
shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextLike, with_context
from botorch_ext.domains.points import PointsLike
from botorch_ext.strategies.events import Trial

#: Trials, or ``n x d`` points, or one of either; or a data frame with columns by name.
Points = Trial | Sequence[Trial] | PointsLike


def joint_rows(
    points: Points,
    domain: Domain,
    context: ContextLike | None,
    checked_context: Callable[..., Tensor | None],
) -> tuple[Tensor, Tensor | None]:
    """The joint rows of points, ``n x (d + d_z)``, and the context they all are in.

    Args:
        points: What the user gave.
        domain: They belong to it.
        context: ``d_z``. None: trials are in their own contexts.
        checked_context: From a context and its name to a tensor, as `Strategy.checked_context`.

    Returns:
        The rows, and the ``d_z``-dim context; None without contexts, and of trials in their own.

    Raises:
        ValueError: No points, points outside the domain, or a context that `Strategy.ask` would
            refuse.
    """
    if hasattr(points, "columns") and hasattr(points, "to_dict"):  # a data frame
        points = cast(Any, points).to_dict("records")
    trials = [points] if isinstance(points, Trial) else points
    if isinstance(trials, list | tuple) and any(isinstance(trial, Trial) for trial in trials):
        if not all(isinstance(trial, Trial) for trial in trials):
            raise ValueError("points must be trials or points, got both")
        X = domain.require_contains(torch.stack([trial.x for trial in trials]), "points")
        if context is None:
            contexts = [
                checked_context(trial.context, f"context of trial {trial.id}") for trial in trials
            ]
            rows = [with_context(x, own) for x, own in zip(X, contexts, strict=True)]
            return torch.stack(rows), None
    else:
        X = domain.require_contains(points, "points")  # pyright: ignore[reportArgumentType]
    checked = checked_context(context)
    if not len(X):
        raise ValueError("points must be at least one, got none")
    return with_context(X, checked), checked
