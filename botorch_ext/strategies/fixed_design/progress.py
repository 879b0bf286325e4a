"""Progress of certified elimination: its rounds, and how far it has come in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.regions.region import Region
from botorch_ext.rounds import SquareRoot
from botorch_ext.strategies.fixed_design.cuts import Cut
from botorch_ext.strategies.fixed_design.survivors import Choice

# Of a round: free steps, then either a block of planned points and a wait for their observations,
# or a rest where the block would not have been useful.
PHASES = ("free", "block", "wait", "rest")


@dataclass(frozen=True)
class Schedule:
    """The rounds of a horizon: round r has at least q_r steps, of which it buys ceil(share q_r).

    Args:
        horizon: T, the steps of all rounds.
        share: The share of the steps that are bought.
    """

    horizon: int
    share: float

    def length(self, r: int) -> int:
        """q_r."""
        return SquareRoot(self.horizon).design_length(r)

    def num_bought(self, r: int) -> int:
        """n_r."""
        # .07 times 100 is more than 7.
        return max(math.ceil(round(self.share * self.length(r), 9)), 1)

    @property
    def num_rounds(self) -> int:
        """R, the first round with q_1 + ... + q_R >= T."""
        return len(SquareRoot(self.horizon).lengths(self.horizon, 0.5))


@dataclass(frozen=True, eq=False)
class Progress:
    """How far the rounds have come before a step.

    Args:
        survivors: Where may be asked: ascending rows of the finite set, or the region.
        certificate: The most regret that any survivor has; infinite while nothing is known.
        round: 1, 2, ...
        phase: One of `PHASES`.
        position: The steps of this round so far.
        planned: ``m x d``, the points of this round's blocks; those after the bought ones are next.
        plan: Their rows or coordinates.
        std: Their standard deviations, each given the points before it.
        bought: The trials of those that were asked, in the order of the plan.
        promise: The largest standard deviation that the first block leaves.
        cost: The certificate when the first block was planned.
        waited: The steps since the last point of a block.
        watched: The trials that pended when the block was first due; None before.
        put_off: How often it was put off since.
    """

    survivors: Tensor | Region
    certificate: float
    round: int = 1
    phase: str = "free"
    position: int = 0
    planned: Tensor | None = None
    plan: tuple[Any, ...] = ()
    std: tuple[float, ...] = ()
    bought: tuple[int, ...] = ()
    promise: float = math.inf
    cost: float = math.inf
    waited: int = 0
    watched: frozenset[int] | None = None
    put_off: int = 0

    def after(self, cut: Cut) -> Progress:
        return replace(self, survivors=cut.survivors, certificate=cut.certificate)

    def next_round(self) -> Progress:
        return Progress(self.survivors, self.certificate, self.round + 1)

    def planning(self, choice: Choice, points: Tensor, promise: float) -> Progress:
        """With more points to buy."""
        return replace(
            self,
            planned=points if self.planned is None else torch.cat([self.planned, points]),
            plan=(*self.plan, *choice.plan),
            std=(*self.std, *choice.std),
            promise=promise,
            waited=0,
            phase="block",
        )

    def asked(self, id: int) -> Progress:
        """After the question of this step."""
        after = replace(self, position=self.position + 1)
        if self.phase == "wait":
            return replace(after, waited=self.waited + 1)
        if self.phase != "block":
            return after
        bought = (*self.bought, id)
        phase = "wait" if len(bought) == len(self.plan) else "block"
        return replace(after, bought=bought, phase=phase)


def is_reached(largest: float, promise: float, like: Tensor) -> bool:
    """Whether a standard deviation is what was promised, or less, but for rounding."""
    rounding = 1e-9 if like.dtype is torch.float64 else 1e-4
    return largest <= promise * (1 + rounding)


def recorded_phase(record: dict[str, Any]) -> str:
    """The phase that a trial records, or a ValueError."""
    phase = record["phase"]
    if phase not in PHASES:
        raise ValueError(f"phase must be one of {PHASES}, got {phase!r}")
    return phase


def plain_certificate(certificate: float) -> float | None:
    """A certificate as JSON has it: None while nothing is known."""
    return None if math.isinf(certificate) else certificate
