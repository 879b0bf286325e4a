"""Ledger: the terms of an insurance, what it decided, and what that was charged to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

from botorch_ext.checks import one_number, whole_number
from botorch_ext.state import Immutable
from botorch_ext.widths.base import require

# Kinds of trials that are charged to a purse.
_CHARGED = ("probe", "follow-up")


@dataclass(frozen=True)
class Terms(Immutable):
    """Terms of an insurance: what it may cost and when it pays.

    Args:
        alpha: The share of what the plain method's own plays may have lost so far that probes may
            lose.
        beta: They may always lose beta B sqrt(t).
        purse: The share of that for probes that cost little.
        follow_up: A probe is repeated while its average lies so many standard deviations above
            the bound.
        max_follow_ups: So often at most; a point that is not on offer for so many steps is given
            up.
        override: Beyond level 0 the best average replaces the optimistic point where it is better
            by so many standard deviations of both.
        num_levels: M: levels of misspecification, 0 and B 2^-(M-1-j) for j = 1 .. M-1.
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
        """eps_0 = 0 < eps_1 < ... < eps_{M-1} = B."""
        last = self.num_levels - 1
        return [0.0] + [rkhs_bound * 2.0 ** (j - last) for j in range(1, last + 1)]

    def budget(self, lost: float, rkhs_bound: float, t: int) -> float:
        """What probes may have lost by step t, if the plain method may have lost so much."""
        return max(self.alpha * lost, self.beta * rkhs_bound * math.sqrt(t))


@dataclass(frozen=True)
class Suspect:
    """A point that was probed and is looked at again while it does better than it should.

    Args:
        level: The level it was probed for.
        trial: The trial that probed it.
        repeats: How often it was asked again.
        absent: For how many steps it has not been on offer.
    """

    level: int
    trial: int
    repeats: int = 0
    absent: int = 0


@dataclass(frozen=True)
class Ledger:
    """What an insurance has spent and learnt.

    Args:
        level: The level of misspecification that is not refuted.
        owed: Whether a refuted level has yet to be followed by a probe.
        lost: What the plain method's own plays may have lost, if the level held: S_0.
        large: For each level, what was charged to the large purse.
        small: Likewise, to the small one.
        suspect: What is being followed up.
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
        """The ledger at a level that is higher or the same."""
        return replace(self, level=level, owed=self.owed or level > self.level)

    def charged(self, choice: Choice, trial: int) -> Ledger:
        """The ledger after a trial was asked.

        Args:
            choice: What was decided.
            trial: Its id.
        """
        new = replace(self, suspect=choice.suspect)
        if choice.kind == "exploit":
            return replace(new, lost=self.lost + choice.cost)
        if choice.kind == "block":
            return new
        level = choice.suspected
        if choice.kind == "probe":
            new = replace(new, suspect=Suspect(level, trial), owed=self.owed and not choice.paid)
        name = "small" if choice.small else "large"
        charges = list(getattr(self, name))
        charges[level] += choice.cost
        return replace(new, **{name: tuple(charges)})


@dataclass(frozen=True)
class Choice:
    """What an insurance decides at a step.

    Args:
        row: Of the point.
        kind: "exploit", "probe", "follow-up" or, of a certificate, "block".
        cost: What it loses at most, if the level holds.
        suspected: Of a probe or a follow-up, the level it is charged to.
        small: Whether to the small purse.
        paid: Whether it is the probe that was owed.
        suspect: What is being followed up after it, a new probe aside.
    """

    row: int
    kind: str
    cost: float
    suspected: int = 0
    small: bool = False
    paid: bool = False
    suspect: Suspect | None = None

    def record(self) -> dict[str, Any]:
        """What ``info`` of a trial has of it."""
        record: dict[str, Any] = {"kind": self.kind, "cost": self.cost}
        if self.kind in _CHARGED:
            record["suspected"] = self.suspected
            record["purse"] = "owed" if self.paid else "small" if self.small else "large"
        kept = self.suspect
        if kept is not None:
            record["suspect"] = vars(kept).copy()
        return record

    @classmethod
    def recorded(cls, info: dict[str, Any], name: str, terms: Terms, num_trials: int) -> Choice:
        """The choice of a record, without its row, or a ValueError."""
        kind, cost, purse = (cast(Any, info.get(key)) for key in ("kind", "cost", "purse"))
        level, kept = info.get("suspected", 0), cast(Any, info.get("suspect"))
        if kind not in ("exploit", "block", *_CHARGED):
            allowed = "'exploit', 'probe', 'follow-up' or 'block'"
            raise ValueError(f"kind in the {name} must be {allowed}, got {kind!r}")
        if type(cost) not in (int, float) or not 0 <= cost < math.inf:
            raise ValueError(f"cost in the {name} must be a number, at least 0, got {cost!r}")
        if kind in _CHARGED:
            if type(level) is not int or not 0 < level < terms.num_levels:
                raise ValueError(
                    f"suspected in the {name} must be a level from 1 to {terms.num_levels - 1}, "
                    f"got {level!r}"
                )
            if purse not in ("large", "small", "owed"):
                raise ValueError(
                    f"purse in the {name} must be 'large', 'small' or 'owed', got {purse!r}"
                )
        suspect = None
        if kept is not None:
            keys = set(Suspect.__annotations__)
            whole = isinstance(kept, dict) and kept.keys() == keys
            if not whole or not all(type(kept[key]) is int and kept[key] >= 0 for key in keys):
                raise ValueError(
                    f"suspect in the {name} must have the whole numbers {sorted(keys)}, "
                    f"got {kept!r}"
                )
            suspect = Suspect(**kept)
            if suspect.trial >= num_trials or not 0 < suspect.level < terms.num_levels:
                raise ValueError(f"suspect in the {name} must be an earlier probe, got {kept!r}")
        return cls(-1, kind, float(cost), level, purse == "small", purse == "owed", suspect)
