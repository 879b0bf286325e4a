"""The test whether data refute what a confidence width assumes of f and of the noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from botorch_ext.state import State
from botorch_ext.widths import Width
from botorch_ext.widths.composed import Assumptions, assumptions_of
from botorch_ext.widths.tight import RIDGES
from botorch_ext.widths.told_data import ToldData, exceeds

# After so many observations a look comes only when they have grown by a share between these.
_NUM_EVERY = 32
_LEAST_GROWTH, _MOST_GROWTH = 1 / 16, 1 / 4


class Looks(State):
    """The times at which told data are tested: after each of the first 32 observations, then
    whenever these have grown by a sixteenth, which keeps the cost of a step small."""

    def __init__(self) -> None:
        self._last = 0
        self._growth = _LEAST_GROWTH

    def begin(self, num_data: int) -> bool:
        """Whether to look at ``num_data`` observations; if so, the look counts as the last one."""
        if num_data > _NUM_EVERY and num_data < (1 + self._growth) * self._last:
            return False
        self._last = num_data
        return True


class Alarm(Looks):
    """Tests the assumptions of one model, and keeps when they were refuted.

    The probability that a right model is ever refuted is at most delta. The further the lower bound
    b of the RKHS norm is from the RKHS bound B, the later comes the next look: after 32
    observations when these have grown by the share 1 - (b / B)^2, but at least by a sixteenth and
    at most by a quarter."""

    def __init__(self, assumed: Assumptions) -> None:
        super().__init__()
        self.assumed = assumed
        self.refuted_at: int | None = None
        # The number of observations of the last look, and the bound then.
        self._latest = 0, 0.0

    @classmethod
    def of(cls, width: Width) -> Self | None:
        """The alarm for a single model with a width, at the ridges 1, 4, 16, 64 and 256 if the
        width has one ridge; None if the width assumes nothing that can be tested."""
        assumed = assumptions_of(width)
        if assumed is None:
            return None
        return cls(replace(assumed, ridges=RIDGES) if len(assumed.ridges) == 1 else assumed)

    def begin(self, num_data: int) -> bool:
        return self.refuted_at is None and super().begin(num_data)

    def look(self, told: ToldData) -> str | None:
        """Tests the told data; the message of the warning if they refute the model."""
        bound, assumed = told.norm_bound(self.assumed), self.assumed
        self._latest = len(told.y), bound
        if assumed.rkhs_bound > 0:
            growth = 1 - (bound / assumed.rkhs_bound) ** 2
            self._growth = min(max(growth, _LEAST_GROWTH), _MOST_GROWTH)
        if not exceeds(bound, assumed):
            return None
        self.refuted_at = n = len(told.y)
        return (
            f"the model was refuted after {n} result{'s' if n > 1 else ''}, so its confidence "
            "bounds cannot be trusted: the RKHS norm of f is at least "
            f"{bound:.4g}, with probability {1 - assumed.delta:g}, but rkhs_bound is "
            f"{assumed.rkhs_bound:g}; use a larger rkhs_bound, a shorter lengthscale or a larger "
            "misspecification"
        )

    def summary(self, told: ToldData) -> dict[str, Any]:
        """The entries of the report, after a look at all data."""
        num_looked_at, bound = self._latest
        if num_looked_at != len(told.y):
            bound = told.norm_bound(self.assumed)
        refuted_at = self.refuted_at
        if refuted_at is None and exceeds(bound, self.assumed):
            refuted_at = len(told.y)
        return {"refuted_at": refuted_at, "rkhs_norm_lower_bound": bound}
