"""What there is to choose from at one step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet


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
