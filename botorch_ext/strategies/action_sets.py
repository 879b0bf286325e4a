"""The actions to choose from at one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet

Actions = Tensor | Sequence[Sequence[float]]


@dataclass(frozen=True, eq=False)
class Choices:
    """The context of one step, and its actions if they change from step to step.

    Args:
        context: The ``d_z`` numbers of the context, or None.
        actions: The ``m x d`` points to choose from; None for the whole domain.
        rows: The ``m`` rows of the actions in a finite set; None on a box.
    """

    context: Tensor | None = None
    actions: Tensor | None = None
    rows: Tensor | None = None

    @classmethod
    def among(cls, actions: Actions, domain: Domain, context: Tensor | None = None) -> Self:
        """The choice among some ``m x d`` points of the domain.

        Raises:
            ValueError: If there is no point, or if a point lies outside the domain.
        """
        points, rows = _located(actions, domain, "actions")
        return cls(context, points.detach().clone(), rows)

    def points(self, domain: Domain) -> Tensor | None:
        """The ``m x d`` points to choose from; None for the whole box."""
        if self.actions is not None:
            return self.actions
        return domain.points if isinstance(domain, FiniteSet) else None

    def places(self, row: int) -> dict[str, int]:
        """The ``info`` that says where the chosen one of `points` is: its row among the actions as
        ``action``, and its row in a finite set as ``index``."""
        if self.actions is None:
            return {"index": row}
        action = {"action": row}
        return action if self.rows is None else {"index": int(self.rows[row])} | action


def checked_actions(actions: Actions, domain: Domain, name: str = "actions") -> Tensor:
    """The actions as ``m x d`` points of the domain; raises a ValueError that names the
    argument."""
    return _located(actions, domain, name)[0]


def _located(actions: Actions, domain: Domain, name: str) -> tuple[Tensor, Tensor | None]:
    none = f"{name} must hold at least one point, got none"
    if isinstance(actions, Sequence) and not actions:  # as a tensor it would be one empty point
        raise ValueError(none)
    if isinstance(domain, FiniteSet):
        points, rows = domain.require_rows(actions, name)
    else:
        points, rows = domain.require_contains(actions, name), None
    if not len(points):
        raise ValueError(none)
    return points, rows
