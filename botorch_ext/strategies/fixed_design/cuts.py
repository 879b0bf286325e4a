"""Cuts: what confidence bounds leave of a domain, and what they certify of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Bounds:
    """belief mean +- (width std + offset), both clipped.

    Args:
        belief: On a set a function from rows to their means and standard deviations; on a box a
            `KernelGP`.
        width: The multiplier of the standard deviation.
        offset: What is added and subtracted besides.
        limit: B, that no value exceeds in size; None where that is not known.
    """

    belief: Any
    width: float
    offset: float
    limit: float | None

    def clipped(self, values: Tensor) -> Tensor:
        return values if self.limit is None else values.clamp(-self.limit, self.limit)


@dataclass(frozen=True, eq=False)
class Cut:
    """What bounds leave of a domain.

    Args:
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
        certificate: The largest upper bound of the survivors minus their least lower bound: no
            survivor has more regret.
        volume: The share of the domain that survives.
        volume_error: The standard error of that estimate.
        survivors: Who.
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
        """All but the survivors, whom the rest gives back."""
        record = vars(self).copy()
        del record["survivors"]
        return record
