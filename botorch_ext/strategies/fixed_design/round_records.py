"""The records of trials of methods that play rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.records import Finite, NonNegative
from botorch_ext.strategies.adaptive.insured import PlayedInsured

# The phases of a round: free steps, then either a block of planned points and a wait for their
# observations, or a rest if the block would not have been useful.
Phase = Literal["free", "block", "wait", "rest"]


@dataclass(frozen=True)
class RoundPlan:
    """The plan of a round.

    Args:
        plan: The ``t_r`` points in the order of asking: rows of the finite set, or coordinates.
        std: The ``t_r`` standard deviations, each given the points before it.
        volume: The share of the domain that the points were chosen from.
        volume_error: The standard error of ``volume``, which is an estimate on a box.
    """

    plan: tuple[Any, ...]
    std: tuple[NonNegative, ...]
    volume: NonNegative
    volume_error: NonNegative

    def check(self, domain: Domain) -> None:
        """Raises a ValueError unless these are points of the domain with a standard deviation
        each."""
        if len(self.std) != len(self.plan):
            raise ValueError(f"std must be {len(self.plan)} numbers, got {len(self.std)}")
        if isinstance(domain, FiniteSet):
            for row in self.plan:
                if type(row) is not int or not 0 <= row < domain.num_points:
                    raise ValueError(f"plan must be rows of {domain.num_points} points, got {row}")
        elif self.plan:
            domain.require_contains(self.plan, "plan")


@dataclass(frozen=True)
class Opening(RoundPlan):
    """The plan of a round, and the elimination before it.

    Args:
        threshold: The largest lower bound, which the upper bounds of survivors reach; None if
            nothing was eliminated, since no observation had arrived.
        argmax: The ``d`` coordinates where the lower bound is largest.
    """

    threshold: Finite | None = None
    argmax: tuple[Finite, ...] | None = None


@dataclass(frozen=True)
class Block(RoundPlan):
    """The plan of a block.

    Args:
        promise: The largest standard deviation that the first block of the round leaves.
    """

    promise: NonNegative


@dataclass(frozen=True)
class Cut:
    """The certificate of the points that an elimination leaves.

    Args:
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
        certificate: The largest upper bound of the survivors minus their smallest lower bound: no
            survivor has more regret.
        volume: The share of the domain that survives.
        volume_error: The standard error of ``volume``, which is an estimate on a box.
    """

    threshold: Finite
    argmax: tuple[Finite, ...]
    certificate: NonNegative
    volume: NonNegative
    volume_error: NonNegative


@dataclass(frozen=True)
class CutByAll(Cut):
    """The cut by all told data."""

    put_off: bool


@dataclass(frozen=True)
class PlayedInRound:
    """The record of a trial of `PhasedElimination`.

    Args:
        round: The number of the round.
        std: The standard deviation at the point, given those before it.
        opening: What was decided before the first trial of a round.
    """

    round: int
    std: NonNegative
    opening: Opening | None = None


@dataclass(frozen=True)
class PlayedCertified:
    """The record of a trial of `CertifiedElimination`.

    Args:
        phase: The phase of the round.
        round: The number of the round.
        closing: The cut by the observations of a block, if a round closed before the trial.
        cut: The cut by all told data, if there was one before the trial.
        plan: The block that was planned before the trial, if one was.
    """

    phase: Phase
    round: int
    closing: Cut | None = None
    cut: CutByAll | None = None
    plan: Block | None = None


@dataclass(frozen=True, kw_only=True)
class PlayedSafe(PlayedInsured):
    """The record of a trial of a `SafeStrategy` with certificates, beside its `InsuranceChoice`.

    Args:
        phase: The phase of the round.
        round: The number of the round.
        certificate: The largest regret of a point that is exploited at this step.
        closed: Whether a round closed before the trial.
        plan: The block that was planned before the trial, if one was.
    """

    phase: Phase
    round: int
    certificate: NonNegative
    closed: bool = False
    plan: Block | None = None
