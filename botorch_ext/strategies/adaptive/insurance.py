"""Insurance: what a method that plays GP-UCB may spend on finding out that its model is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.immutable import Immutable
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


@dataclass(eq=False)
class Sight:
    """What is known of the n points on offer at a step.

    Args:
        upper: ``M x n``, U_j: the upper bounds of each level.
        lower: ``M x n``, L_j.
        of_models: ``M x n``, the upper bounds of the models alone.
        average_upper: ``n``, of the points' own averages.
        average_lower: ``n``.
        counts: ``n``, observations there.
        sums: ``n``, and their sums.
        wide: ``M x n``, the indices of EC-GP-UCB told each level; of level 0, that of GP-UCB.
        suspect: The row of the suspect, None where it is not on offer or there is none.
        is_held: Whether an evaluation of the suspect is pending.
    """

    upper: Tensor
    lower: Tensor
    of_models: Tensor
    average_upper: Tensor
    average_lower: Tensor
    counts: Tensor
    sums: Tensor
    wide: Tensor
    suspect: int | None = None
    is_held: bool = False

    def confident(self, steps: float) -> Tensor:
        """``n`` averages plus so many over the root of the count; minus infinity where there is no
        observation."""
        bound = self.sums / self.counts + steps / self.counts.sqrt()
        return bound.masked_fill(self.counts == 0, -math.inf)


@dataclass(frozen=True)
class Insurance(Immutable):
    """Decisions of an insured method.

    Args:
        terms: What it may cost.
        rkhs_bound: B.
        noise_std: sigma.
        stays: Whether what is exploited must be a point that the level has not excluded.
    """

    terms: Terms
    rkhs_bound: float
    noise_std: float
    stays: bool = False

    def decide(self, sight: Sight, ledger: Ledger, t: int) -> tuple[Choice, list[int]]:
        """The choice of step t, and the rows that mattered for it."""
        terms, i = self.terms, ledger.level
        (top, highest), (low, surest) = sight.upper[i].max(dim=0), sight.lower[i].max(dim=0)
        x0 = self._exploited(sight, i, low)
        first = max(i, 1)
        # The best of each level among what it has not excluded.
        upper, lower, wide = (a[first:] for a in (sight.upper, sight.lower, sight.wide))
        best = _among(upper >= lower.amax(dim=-1, keepdim=True), wide).argmax(dim=-1)
        at = torch.cat([x0.view(1), best, highest.view(1), surest.view(1)])
        lost = (top - sight.lower[i]).clamp_min(0)
        numbers = [at.to(top), lost[at], sight.upper[0][best], low.view(1)]
        read = torch.cat(numbers + self._of_suspect(sight, i, lost)).tolist()  # the host waits
        rows, costs = [int(row) for row in read[: len(at)]], read[len(at) : 2 * len(at)]
        of_plain, (low_, *of_suspect) = (
            read[2 * len(at) :][: len(best)],
            read[2 * len(at) + len(best) :],
        )
        kept = ledger.suspect
        if kept is not None:
            if sight.suspect is not None and sight.suspect != rows[0]:
                again = self._followed_up(kept, i, sight.suspect, *of_suspect)
                if again is not None:
                    return again, rows
            kept = self._on_hold(kept, sight)
        probe = None
        spent, budget = sum(ledger.large), terms.budget(ledger.lost, self.rkhs_bound, t)
        for j, row, cost, of_zero in zip(
            range(first, terms.num_levels), rows[1:-2], costs[1:-2], of_plain, strict=True
        ):
            if row == rows[0] or (i == 0 and of_zero >= low_):
                continue
            if ledger.owed and j == i:
                return Choice(row, "probe", cost, j, paid=True), rows
            cheaper = probe is None or ledger.large[j] < ledger.large[probe.suspected]
            if kept is None and cheaper and spent + cost <= (1 - terms.purse) * budget:
                probe = Choice(row, "probe", cost, j)
        if probe is None and kept is None and i + 1 < terms.num_levels:
            left = terms.purse * budget - sum(ledger.small)
            probe = self._cheap(sight, ledger, top, low, left)
        if probe is None:
            probe = Choice(rows[0], "exploit", costs[0], suspect=kept)
        return probe, rows

    def _of_suspect(self, sight: Sight, i: int, lost: Tensor) -> list[Tensor]:
        """Of a suspect on offer: what it may lose, its average less the bound, and its count."""
        q = sight.suspect
        if q is None:
            return []
        above = sight.confident(0.0) - sight.of_models[i]
        return [values[q : q + 1] for values in (lost, above, sight.counts)]

    def _followed_up(
        self, suspect: Suspect, i: int, row: int, cost: float, above: float, count: float
    ) -> Choice | None:
        """The suspect once more, while it does better than the models of the level allow."""
        terms = self.terms
        is_high = count > 0 and above * math.sqrt(count) / self.noise_std >= terms.follow_up
        if not is_high or suspect.repeats >= terms.max_follow_ups or i == terms.num_levels - 1:
            return None
        again = replace(suspect, repeats=suspect.repeats + 1, absent=0)
        return Choice(row, "follow-up", cost, suspect.level, suspect=again)

    def _on_hold(self, suspect: Suspect, sight: Sight) -> Suspect | None:
        """The suspect where it pends or is not on offer, for a while; None where it is dropped."""
        if sight.is_held:
            return suspect
        absent = suspect.absent + 1
        if sight.suspect is not None or absent >= self.terms.max_follow_ups:
            return None
        return replace(suspect, absent=absent)

    def _exploited(self, sight: Sight, i: int, low: Tensor) -> Tensor:
        """The row that the plain method plays, among those it may; 0-dim."""
        index = sight.wide[0]
        allowed = torch.ones_like(index, dtype=torch.bool)
        if self.stays:
            allowed = _or_all(sight.upper[i] >= low)
        index = _among(allowed, index)
        if not i:
            return index.argmax()
        index = _among(allowed & (sight.average_upper >= sight.average_lower.max()), index)
        x0, step = index.argmax(), self.terms.override * self.noise_std
        surely = sight.confident(-step).masked_fill(~allowed, -math.inf)
        q = surely.argmax()
        known = sight.counts[x0] > 0
        return torch.where(known & (surely[q] > sight.confident(step)[x0]), q, x0)

    def _cheap(
        self, sight: Sight, ledger: Ledger, top: Tensor, low: Tensor, left: float
    ) -> Choice | None:
        """A probe from the small purse, of a point that the level excludes and a higher one finds
        better than everything."""
        first = ledger.level + 1
        lost = (top - sight.lower[ledger.level]).clamp_min(0)
        may = (lost <= left) & (sight.upper[ledger.level] < low)
        may = may & (sight.upper[first:] > top)  # (levels, n)
        best = sight.wide[first:].masked_fill(~may, -math.inf).argmax(dim=-1)
        read = torch.cat([may.any(dim=-1).to(top), best.to(top), lost[best]]).tolist()
        m = len(best)
        for j in sorted(range(first, first + m), key=lambda j: ledger.small[j]):
            k = j - first
            if read[k]:
                return Choice(int(read[m + k]), "probe", read[2 * m + k], j, small=True)
        return None


def _or_all(allowed: Tensor) -> Tensor:
    """``... x n``: whether a point is allowed; all where none is."""
    return allowed | ~allowed.any(dim=-1, keepdim=True)


def _among(allowed: Tensor, index: Tensor) -> Tensor:
    """``... x n`` values, minus infinity where a point is not allowed and another one is."""
    return index.masked_fill(~_or_all(allowed), -math.inf)
