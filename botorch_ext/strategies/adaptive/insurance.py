"""The decisions of an insured method, which tests whether the model of GP-UCB is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from botorch_ext.domains.ranks import first_highest
from botorch_ext.state import Immutable
from botorch_ext.strategies.adaptive.ledger import InsuranceChoice, Ledger, Suspect, Terms


@dataclass(eq=False)
class Sight:
    """The bounds and observations of the n points that can be chosen at a step.

    Args:
        upper: The upper bounds U_j of each level, ``M x n``.
        lower: The lower bounds L_j of each level, ``M x n``.
        of_models: The upper bounds of the models alone, ``M x n``.
        average_upper: The upper bounds from the averages of the points' own observations, ``n``.
        average_lower: The lower bounds from these averages, ``n``.
        counts: The numbers of observations of the points, ``n``.
        sums: The sums of these observations, ``n``.
        wide: The indices of EC-GP-UCB for the misspecification of each level, ``M x n``; for level
            0 that of GP-UCB.
        suspect: The row of the suspect; None if there is none or it cannot be chosen.
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
        """The ``n`` averages plus ``steps`` over the square root of the count; minus infinity at
        points without observations."""
        bound = self.sums / self.counts + steps / self.counts.sqrt()
        return bound.masked_fill(self.counts == 0, -math.inf)


@dataclass(frozen=True)
class Insurance(Immutable):
    """The decisions of an insured method.

    Args:
        terms: The limits on what the insurance may cost.
        rkhs_bound: B.
        noise_std: sigma.
        stays: Whether exploited points must be points that the level has not excluded.
    """

    terms: Terms
    rkhs_bound: float
    noise_std: float
    stays: bool = False

    def decide(
        self, sight: Sight, ledger: Ledger, t: int
    ) -> tuple[int, InsuranceChoice, list[int]]:
        """The row and the choice of step t, and the rows whose bounds decided it."""
        terms, i = self.terms, ledger.level
        top, low = sight.upper[i].max(), sight.lower[i].max()
        x0 = self._exploited(sight, i, low)
        first = max(i, 1)
        # The best point of each level among those that the level has not excluded.
        upper, lower, wide = (a[first:] for a in (sight.upper, sight.lower, sight.wide))
        best = first_highest(_among(upper >= lower.amax(dim=-1, keepdim=True), wide))[:, 0]
        bounds = first_highest(torch.stack([sight.upper[i], sight.lower[i]]))[:, 0]
        at = torch.cat([x0.view(1), best, bounds])
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
                again = self._followed_up(kept, i, *of_suspect)
                if again is not None:
                    return sight.suspect, again, rows
            kept = self._on_hold(kept, sight)
        probe = None
        spent, budget = sum(ledger.large), terms.budget(ledger.lost, self.rkhs_bound, t)
        for j, row, cost, of_zero in zip(
            range(first, terms.num_levels), rows[1:-2], costs[1:-2], of_plain, strict=True
        ):
            if row == rows[0] or (i == 0 and of_zero >= low_):
                continue
            if ledger.owed and j == i:
                return row, InsuranceChoice("probe", cost, j, "owed"), rows
            cheaper = probe is None or ledger.large[j] < ledger.large[probe[2]]
            if kept is None and cheaper and spent + cost <= (1 - terms.purse) * budget:
                probe = row, cost, j
        purse: Literal["large", "small"] = "large"
        if probe is None and kept is None and i + 1 < terms.num_levels:
            left = terms.purse * budget - sum(ledger.small)
            probe, purse = self._cheap(sight, ledger, top, low, left), "small"
        if probe is None:
            return rows[0], InsuranceChoice("exploit", costs[0], suspect=kept), rows
        row, cost, level = probe
        return row, InsuranceChoice("probe", cost, level, purse), rows

    def _of_suspect(self, sight: Sight, i: int, lost: Tensor) -> list[Tensor]:
        """The possible loss of the suspect, its average minus the bound, and its count, if it can
        be chosen; else nothing."""
        q = sight.suspect
        if q is None:
            return []
        above = sight.confident(0.0) - sight.of_models[i]
        return [values[q : q + 1] for values in (lost, above, sight.counts)]

    def _followed_up(
        self, suspect: Suspect, i: int, cost: float, above: float, count: float
    ) -> InsuranceChoice | None:
        """Another trial of the suspect, if its average is too high for the models of the level."""
        terms = self.terms
        is_high = count > 0 and above * math.sqrt(count) / self.noise_std >= terms.follow_up
        if not is_high or suspect.repeats >= terms.max_follow_ups or i == terms.num_levels - 1:
            return None
        again = replace(suspect, repeats=suspect.repeats + 1, absent=0)
        return InsuranceChoice("follow-up", cost, suspect.level, "large", again)

    def _on_hold(self, suspect: Suspect, sight: Sight) -> Suspect | None:
        """The suspect, kept for some steps while it is pending or cannot be chosen; else None."""
        if sight.is_held:
            return suspect
        absent = suspect.absent + 1
        if sight.suspect is not None or absent >= self.terms.max_follow_ups:
            return None
        return replace(suspect, absent=absent)

    def _exploited(self, sight: Sight, i: int, low: Tensor) -> Tensor:
        """The row that the plain method plays, among the allowed ones; a 0-dim tensor."""
        index = sight.wide[0]
        allowed = torch.ones_like(index, dtype=torch.bool)
        if self.stays:
            allowed = _or_all(sight.upper[i] >= low)
        index = _among(allowed, index)
        if not i:
            return first_highest(index)[0]
        index = _among(allowed & (sight.average_upper >= sight.average_lower.max()), index)
        x0, step = first_highest(index)[0], self.terms.override * self.noise_std
        surely = sight.confident(-step).masked_fill(~allowed, -math.inf)
        q = first_highest(surely)[0]
        known = sight.counts[x0] > 0
        return torch.where(known & (surely[q] > sight.confident(step)[x0]), q, x0)

    def _cheap(
        self, sight: Sight, ledger: Ledger, top: Tensor, low: Tensor, left: float
    ) -> tuple[int, float, int] | None:
        """The row, the cost and the level of a probe paid from the small purse: a point that the
        level excludes and that a higher level ranks above all others."""
        first = ledger.level + 1
        lost = (top - sight.lower[ledger.level]).clamp_min(0)
        may = (lost <= left) & (sight.upper[ledger.level] < low)
        may = may & (sight.upper[first:] > top)  # (levels, n)
        best = first_highest(sight.wide[first:].masked_fill(~may, -math.inf))[:, 0]
        read = torch.cat([may.any(dim=-1).to(top), best.to(top), lost[best]]).tolist()
        m = len(best)
        for j in sorted(range(first, first + m), key=lambda j: ledger.small[j]):
            k = j - first
            if read[k]:
                return int(read[m + k]), read[2 * m + k], j
        return None


def _or_all(allowed: Tensor) -> Tensor:
    """The mask ``... x n`` of allowed points, or all points if none is allowed."""
    return allowed | ~allowed.any(dim=-1, keepdim=True)


def _among(allowed: Tensor, index: Tensor) -> Tensor:
    """The ``... x n`` values, with minus infinity at points that are not allowed, if some are."""
    return index.masked_fill(~_or_all(allowed), -math.inf)
