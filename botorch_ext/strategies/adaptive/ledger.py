"""The limits on what an insurance may cost, its choices, and the ledger of their costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, cast

from botorch_ext.checks import one_number, whole_number
from botorch_ext.records import NonNegative
from botorch_ext.state import Immutable
from botorch_ext.widths.base import require


@dataclass(frozen=True)
class Terms(Immutable):
    """The limits on what an insurance may cost, and the thresholds of its decisions.

    Args:
        alpha: The probes may lose at most this share of the largest possible loss of the plain
            method's own plays so far, or ``beta`` B sqrt(t) if that is more.
        beta: See ``alpha``.
        purse: The share of this budget that is kept for probes of low cost.
        follow_up: A probe is repeated while its average lies this many standard deviations above
            the bound of the level.
        max_follow_ups: The largest number of repetitions, and the number of steps after which a
            suspect that cannot be chosen is given up.
        override: Beyond level 0, the point with the best average is exploited in place of the
            optimistic one if it is better by this many standard deviations of both.
        num_levels: M, the number of levels of misspecification: 0, and B 2^-(M-1-j) for
            j = 1 .. M-1.

    Example:
        >>> import botorch_ext as bx
        >>> terms = bx.strategies.Terms(num_levels=4)
        >>> terms.levels(1.0)
        [0.0, 0.25, 0.5, 1.0]
        >>> terms.budget(lost=2.0, rkhs_bound=1.0, t=25)
        0.5
    """

    alpha: float = 0.03
    beta: float = 0.1
    purse: float = 0.3
    follow_up: float = 1.0
    max_follow_ups: int = 20
    override: float = 1.5
    num_levels: int = 7

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "purse", "follow_up", "override"):
            value = one_number(getattr(self, name), name)
            require(0 <= value < math.inf, name, value, "non-negative and finite")
        require(self.purse <= 1, "purse", self.purse, "in [0, 1]")
        whole_number(self.max_follow_ups, "max_follow_ups", least=0)
        whole_number(self.num_levels, "num_levels", least=2)

    def levels(self, rkhs_bound: float) -> list[float]:
        """The levels of misspecification, eps_0 = 0 < eps_1 < ... < eps_{M-1} = B.

        Args:
            rkhs_bound: B, in units of f.

        Returns:
            The M levels, in units of f.
        """
        last = self.num_levels - 1
        return [0.0] + [rkhs_bound * 2.0 ** (j - last) for j in range(1, last + 1)]

    def budget(self, lost: float, rkhs_bound: float, t: int) -> float:
        """The loss that probes may have caused by step t.

        Args:
            lost: The largest possible loss of the plain method's own plays, in units of f.
            rkhs_bound: B, in units of f.
            t: The step.

        Returns:
            The larger of ``alpha`` times ``lost`` and ``beta`` B sqrt(t), in units of f.
        """
        return max(self.alpha * lost, self.beta * rkhs_bound * math.sqrt(t))


@dataclass(frozen=True)
class Suspect:
    """A probed point that is asked again while its average is above the bound of the level.

    Args:
        level: The level that it was probed for.
        trial: The id of the trial that probed it.
        repeats: The number of times it was asked again.
        absent: The number of steps for which it could not be chosen.
    """

    level: int
    trial: int
    repeats: int = 0
    absent: int = 0


@dataclass(frozen=True)
class Ledger:
    """The costs of an insurance so far, and what it has found.

    Args:
        level: The lowest level of misspecification that is not refuted.
        owed: Whether a level was refuted and no probe has followed yet.
        lost: S_0, the largest possible loss of the plain method's own plays if the level holds.
        large: The costs charged to the large purse, one number for each level.
        small: The costs charged to the small purse, one number for each level.
        suspect: The point that is being followed up, or None.
    """

    level: int
    owed: bool
    lost: float
    large: tuple[float, ...]
    small: tuple[float, ...]
    suspect: Suspect | None = None

    @classmethod
    def new(cls, terms: Terms) -> Ledger:
        """The ledger before the first step."""
        nothing = (0.0,) * terms.num_levels
        return cls(0, False, 0.0, nothing, nothing)

    def at(self, level: int) -> Ledger:
        """The ledger after going to a level, which is the same or a higher one."""
        return replace(self, level=level, owed=self.owed or level > self.level)

    def charged(self, choice: InsuranceChoice, trial: int) -> Ledger:
        """The ledger after a trial was asked."""
        new = replace(self, suspect=choice.suspect)
        if choice.kind == "exploit":
            return replace(new, lost=self.lost + choice.cost)
        if choice.kind == "block":
            return new
        level = cast(int, choice.suspected)
        if choice.kind == "probe":
            owed = self.owed and choice.purse != "owed"
            new = replace(new, suspect=Suspect(level, trial), owed=owed)
        name = "small" if choice.purse == "small" else "large"
        charges = list(getattr(self, name))
        charges[level] += choice.cost
        return replace(new, **{name: tuple(charges)})


@dataclass(frozen=True)
class InsuranceChoice:
    """The choice of an insurance at a step.

    Args:
        kind: "exploit", "probe", "follow-up", or "block" for a certificate.
        cost: The largest possible loss if the level holds.
        suspected: The level that a probe or a follow-up is charged to; None for other kinds.
        purse: The purse that it is charged to, or "owed" for the probe that was owed; None for
            other kinds.
        suspect: The point that is being followed up afterwards, unless this is a new probe.
    """

    kind: Literal["exploit", "probe", "follow-up", "block"]
    cost: NonNegative
    suspected: int | None = None
    purse: Literal["large", "small", "owed"] | None = None
    suspect: Suspect | None = None

    def check(self, terms: Terms, num_trials: int, name: str) -> None:
        """Raises a ValueError unless the levels and the suspect of a recorded choice can be."""
        most, suspect = terms.num_levels - 1, self.suspect
        is_charged = self.kind in ("probe", "follow-up")
        if is_charged and (self.purse is None or self.suspected not in range(1, most + 1)):
            raise ValueError(
                f"suspected and purse in the {name} must be a level from 1 to {most} and a purse, "
                f"got {self.suspected} and {self.purse}"
            )
        if suspect and not (suspect.trial < num_trials and 0 < suspect.level <= most):
            raise ValueError(f"suspect in the {name} must be an earlier probe, got {suspect}")
