"""The part of a domain that confidence bounds leave, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Bounds:
    """The confidence bounds mean +- (width std + offset), clipped to [-limit, limit].

    Args:
        belief: On a finite set a function from rows to their means and standard deviations; on a
            box a `KernelGP`.
        width: The multiplier of the standard deviation.
        offset: The part of the half-width that is added to ``width`` std.
        limit: B, an upper bound on the size of f; None if it is not known.
    """

    belief: Any
    width: float
    offset: float
    limit: float | None

    def clipped(self, values: Tensor) -> Tensor:
        return values if self.limit is None else values.clamp(-self.limit, self.limit)


@dataclass(frozen=True, eq=False)
class Cut:
    """The part of a domain that confidence bounds leave.

    Args:
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
        certificate: The largest upper bound of the survivors minus their smallest lower bound: no
            survivor has more regret.
        volume: The share of the domain that survives.
        volume_error: The standard error of ``volume``, which is an estimate on a box.
        survivors: The surviving rows, or the region.
    """

    threshold: float
    argmax: list[float]
    certificate: float
    volume: float
    volume_error: float
    survivors: Any

    @classmethod
    def recorded(cls, record: dict[str, Any], survivors: Any) -> Cut:
        """The cut whose `record` this is."""
        names = [name for name in cls.__annotations__ if name != "survivors"]
        return cls(survivors=survivors, **{name: record[name] for name in names})

    def record(self) -> dict[str, Any]:
        """The cut as a dict for ``info``, without the survivors, which follow from the rest."""
        record = vars(self).copy()
        del record["survivors"]
        return record
