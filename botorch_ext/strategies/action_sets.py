"""Action sets: what there is to choose from at one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet

Actions = Tensor | Sequence[Sequence[float]]


@dataclass(frozen=True, eq=False)
class Choices:
    """The context of one step and, where they change from step to step, the actions.

    Args:
        context: ``d_z``, or None.
        actions: ``m x d`` points of the domain; None for all of it.
        rows: ``m``, their rows in a domain that is a finite set; None elsewhere.
    """

    context: Tensor | None = None
    actions: Tensor | None = None
    rows: Tensor | None = None

    @classmethod
    def among(cls, actions: Actions, domain: Domain, context: Tensor | None = None) -> Self:
        """Some points of the domain, ``m x d``.

        Raises:
            ValueError: No point, or points that are none of the domain.
        """
        points, rows = _located(actions, domain, "actions")
        return cls(context, points.detach().clone(), rows)

    def points(self, domain: Domain) -> Tensor | None:
        """The ``m x d`` points to choose from; None for all of a box."""
        if self.actions is not None:
            return self.actions
        return domain.points if isinstance(domain, FiniteSet) else None

    def places(self, row: int) -> dict[str, int]:
        """What ``info`` of a trial says of the chosen one of `points`: its row among the actions,
        and in a finite set."""
        if self.actions is None:
            return {"index": row}
        places = {"action": row}
        return places if self.rows is None else {"index": int(self.rows[row])} | places


def checked_actions(actions: Actions, domain: Domain, name: str = "actions") -> Tensor:
    """``m x d`` points of the domain, at least one, or a ValueError that names the argument."""
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
