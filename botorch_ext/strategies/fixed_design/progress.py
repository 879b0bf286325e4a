"""The schedule of rounds that end with a block, and the progress within rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.delays.rounds import SquareRoot
from botorch_ext.strategies.fixed_design.round_records import RoundPlan


@dataclass(frozen=True)
class Schedule:
    """The rounds of a horizon: round r has at least q_r steps, of which its block has
    ceil(share q_r).

    Args:
        horizon: T, the number of steps of all rounds.
        share: The share of the steps that are spent on blocks.
    """

    horizon: int
    share: float

    def length(self, r: int) -> int:
        """The least number q_r of steps of round r."""
        return SquareRoot(self.horizon).design_length(r)

    def num_bought(self, r: int) -> int:
        """The number n_r of points in the block of round r."""
        # Rounded first, since 0.07 * 100 is more than 7 in floating point.
        return max(math.ceil(round(self.share * self.length(r), 9)), 1)

    @property
    def num_rounds(self) -> int:
        """The number R of rounds: the first with q_1 + ... + q_R >= T."""
        return len(SquareRoot(self.horizon).lengths(self.horizon, 0.5))


@dataclass(frozen=True, eq=False)
class Progress:
    """The progress of the rounds before a step.

    Args:
        survivors: The points that may be asked: ascending rows of the finite set, or the region.
        certificate: The largest regret of any survivor; infinite while nothing is known.
        round: The number of the round, from 1.
        phase: A `Phase`.
        position: The number of steps of this round so far.
        planned: The ``m x d`` points of this round's blocks; the asked ones come first.
        plan: Their rows or coordinates.
        std: Their standard deviations, each given the points before it.
        bought: The ids of the trials of those that were asked, in the order of the plan.
        promise: The largest standard deviation that the first block leaves.
        cost: The certificate when the first block was planned.
        waited: The number of steps since the last point of a block.
        watched: The ids of the trials that were pending when the block was first due; None before.
        put_off: The number of times that the block was put off since.
    """

    survivors: Any
    certificate: float = math.inf
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

    def next_round(self) -> Progress:
        return Progress(self.survivors, self.certificate, self.round + 1)

    def planning(self, choice: RoundPlan, points: Tensor) -> Progress:
        """The progress with more points planned."""
        return replace(
            self,
            planned=points if self.planned is None else torch.cat([self.planned, points]),
            plan=(*self.plan, *choice.plan),
            std=(*self.std, *choice.std),
            waited=0,
            phase="block",
        )

    def asked(self, id: int) -> Progress:
        """The progress after the trial of this step was asked."""
        after = replace(self, position=self.position + 1)
        if self.phase == "wait":
            return replace(after, waited=self.waited + 1)
        if self.phase != "block":
            return after
        bought = (*self.bought, id)
        phase = "wait" if len(bought) == len(self.plan) else "block"
        return replace(after, bought=bought, phase=phase)


def plain_certificate(certificate: float) -> float | None:
    """A certificate for JSON: None if it is infinite, since nothing is known."""
    return None if math.isinf(certificate) else certificate
