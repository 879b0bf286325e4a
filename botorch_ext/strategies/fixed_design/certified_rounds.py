"""The rounds of certified elimination: closings, cuts and plans before a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor

from botorch_ext.checks import amount, flag
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import Immutable
from botorch_ext.strategies.adaptive.predictions import ToldOnly
from botorch_ext.strategies.fixed_design.certified_survivors import certified_survivors_of
from botorch_ext.strategies.fixed_design.cuts import Bounds, Cut
from botorch_ext.strategies.fixed_design.progress import (
    Progress,
    Schedule,
    is_reached,
    plain_certificate,
)
from botorch_ext.strategies.fixed_design.round_records import Choice, recorded_phase
from botorch_ext.strategies.fixed_design.survivors import evaluated_at
from botorch_ext.widths import Width
from botorch_ext.widths.base import ConfidenceModel

Buy = Literal["useful", "always"]

# A block is useful if the certificate is more than this many times the half-width that the block
# promises, which is about twice the certificate after the block.
_USEFUL = 4.0
# A block is put off if the pending trials would reduce the certificate to this share.
_ENOUGH = 0.5


@dataclass(frozen=True, eq=False)
class Seen:
    """The data that are available before a step.

    Args:
        step: The number of trials asked so far.
        pending: The ids of pending trials.
        posterior: The posterior of the told data, with pending rows.
        expected: A function that gives ``posterior`` without the points of failed trials.
        arrived: The prior with the told points of this round's blocks.
        points: A function that gives the ``n x d`` evaluated points.
        seed_of: A function from a step to its seed.
        is_corrected: Whether a recorded trial is replayed with corrected values: cuts are then
            computed again.
    """

    step: int
    pending: list[int]
    posterior: Any
    expected: Callable[[], Any]
    arrived: KernelGP
    points: Callable[[], Tensor]
    seed_of: Callable[[int], int]
    is_corrected: bool


@dataclass(frozen=True, eq=False)
class Move:
    """The progress of the rounds when a step begins, and the ``info`` that records it."""

    progress: Progress
    info: dict[str, Any]


class CertifiedRounds(Immutable):
    """The lines of certified elimination before a step: closings, cuts and plans.

    If a record is given, nothing is chosen again: its choices are taken. Arguments are those of
    `CertifiedElimination`.
    """

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        horizon: int,
        schedule: Schedule,
        widths: tuple[Width, Width],
        rkhs_bound: float | None,
        kappa: float,
        buy: Buy,
    ) -> None:
        self.domain, self.model, self.horizon, self.schedule = domain, model, horizon, schedule
        self.block_width, self.told_width = widths
        self.rkhs_bound, self.kappa, self.buy = rkhs_bound, kappa, buy
        self.space = certified_survivors_of(domain)

    def moved(self, now: Progress, seen: Seen, recorded: dict[str, Any] | None) -> Move:
        """Lines 1 to 3 of the pseudo-code before a step.

        Raises:
            ValueError: If the record has a wrong form.
            KeyError: If an entry is missing in the record.
        """
        decided: dict[str, Any] = {}
        if now.phase == "wait" and self._closes(now, seen, recorded):
            now = self._close(now, seen, recorded, decided)
        if now.phase == "free" and self._is_due(now, seen):
            now = self._face_block(now, seen, recorded, decided)
        elif now.phase == "rest" and now.position >= self.schedule.length(now.round):
            now = now.next_round()
        if now.phase == "wait" and now.waited >= self.schedule.length(now.round):
            now = self._plan(now, seen, recorded, decided)
        info: dict[str, Any] = {"phase": now.phase, "round": now.round}
        info["certificate"] = plain_certificate(now.certificate)
        if now.phase == "block":
            info["std"] = now.std[len(now.bought)]
            if isinstance(self.domain, FiniteSet):
                info["index"] = now.plan[len(now.bought)]
        return Move(now, info | decided)

    def population_seed(self, now: Progress, seen: Seen) -> int:
        """The seed of the points from which a region is searched, one for each round."""
        return seen.seed_of(now.round)

    # --- line 1 -----------------------------------------------------------------------------------

    def _closes(self, now: Progress, seen: Seen, recorded: dict[str, Any] | None) -> bool:
        """Whether enough of the block has arrived."""
        if seen.arrived.num_observations == len(now.bought):
            return True  # despite rounding
        if recorded is not None:
            return "closing" in recorded
        belief, seed = self.space.belief(seen.arrived), self.population_seed(now, seen)
        largest = self.space.largest_std(now.survivors, belief, seed)
        return is_reached(largest, self.kappa * now.promise, self.domain.like)

    def _close(
        self, now: Progress, seen: Seen, recorded: dict[str, Any] | None, decided: dict[str, Any]
    ) -> Progress:
        numbers = evaluated_at(self.block_width, seen.arrived)
        bounds = Bounds(self.space.belief(seen.arrived), *numbers, self.rkhs_bound)
        cut = self._cut(now, seen, bounds, recorded, "closing")
        decided["closing"] = cut.record()
        return now.after(cut).next_round()

    # --- line 2 -----------------------------------------------------------------------------------

    def _is_due(self, now: Progress, seen: Seen) -> bool:
        """Whether the free steps are over, in a round that the horizon does not cut."""
        length, bought = self.schedule.length(now.round), self.schedule.num_bought(now.round)
        left = self.horizon - seen.step - 1  # after this step
        # If they suffice for the block, the horizon does not cut this round.
        return now.position >= length - bought and left > bought

    def _face_block(
        self, now: Progress, seen: Seen, recorded: dict[str, Any] | None, decided: dict[str, Any]
    ) -> Progress:
        """Cuts by all told data; then puts the block off, plans it, or skips it as not useful."""
        numbers = evaluated_at(self.told_width, self._told(seen.posterior))
        known = self.space.belief_of_known(seen.posterior, self.model)
        bounds = Bounds(known, *numbers, self.rkhs_bound)
        cut = self._cut(now, seen, bounds, recorded, "cut")
        if now.watched is None:
            now = replace(now, watched=frozenset(seen.pending))
        can = (
            now.round > 1
            and not now.watched.isdisjoint(seen.pending)  # pyright: ignore
            and now.put_off < self.schedule.length(now.round)
        )
        if recorded is None:
            puts_off = can and self._pending_will_do(now, seen, cut, numbers)
        else:
            puts_off = flag(recorded["cut"]["put_off"], "put_off of the cut")
        decided["cut"] = cut.record() | {"put_off": puts_off}
        if not puts_off or self.space.cuts_while_putting_off:
            now = now.after(cut)
        if puts_off:
            return replace(now, put_off=now.put_off + 1)
        return self._plan(now, seen, recorded, decided)

    def _pending_will_do(
        self, now: Progress, seen: Seen, cut: Cut, numbers: tuple[float, float]
    ) -> bool:
        """Whether the standard deviations after all pending results would certify enough."""
        bounds = Bounds(self.space.belief(seen.expected()), *numbers, self.rkhs_bound)
        seed = self.population_seed(now, seen)
        then = self.space.certificate(cut.survivors, bounds, seed)
        return then <= _ENOUGH * cut.certificate

    def _cut(
        self,
        now: Progress,
        seen: Seen,
        bounds: Bounds,
        recorded: dict[str, Any] | None,
        name: str,
    ) -> Cut:
        """The cut by some bounds, with a certificate that never increases."""
        points = seen.points()
        if recorded is None or seen.is_corrected:
            seed = self.population_seed(now, seen)
            cut = self.space.cut(now.survivors, bounds, points, seed)
            return replace(cut, certificate=min(cut.certificate, now.certificate))
        record = recorded[name]
        amount(record["threshold"], f"threshold of the {name}", "finite")
        for key in ("certificate", "volume", "volume_error"):
            amount(record[key], f"{key} of the {name}", "non-negative and finite")
        self.domain.require_contains(record["argmax"], f"argmax of the {name}")
        return self.space.recut(now.survivors, bounds, points, record)

    def _told(self, posterior: Any) -> ConfidenceModel:
        """The posterior without pending rows, as a width needs it."""
        factor = posterior.factor
        gain = posterior.information_gain() - factor.pending_information_gain()
        count = posterior.num_observations - len(factor.pending)
        return ToldOnly(posterior.noise_variance, count, self.domain.dim, gain)

    # --- plans ------------------------------------------------------------------------------------

    def _plan(
        self, now: Progress, seen: Seen, recorded: dict[str, Any] | None, decided: dict[str, Any]
    ) -> Progress:
        """Plans the block of a round, or, in line 3, another block if too little of it arrived."""
        count, again = self.schedule.num_bought(now.round), now.phase == "wait"
        if recorded is None:
            given = seen.arrived if again else self.model
            choice = self.space.choose(now.survivors, given, count, seen.seed_of(seen.step))
            promise = now.promise if again else self._promise(now, seen, choice)
        else:
            choice = Choice.recorded(recorded["plan"], self.domain)
            promise = amount(recorded["plan"]["promise"], "promise", "non-negative and finite")
        decided["plan"] = vars(choice) | {"promise": promise}
        now = now.planning(choice, self.space.points(choice), promise)
        if recorded is not None and seen.is_corrected:
            return replace(now, phase=recorded_phase(recorded))
        if not again and self.buy == "useful":
            width, offset = evaluated_at(self.block_width, self._of_plan(choice))
            if now.certificate <= _USEFUL * (width * promise + offset):
                return replace(now, phase="rest")
        return now

    def _promise(self, now: Progress, seen: Seen, choice: Choice) -> float:
        """The largest standard deviation among survivors once a plan is observed."""
        model = self.model.fork()
        model.add(self.space.points(choice), None)
        belief, seed = self.space.belief(model), self.population_seed(now, seen)
        return self.space.largest_std(now.survivors, belief, seed)

    def _of_plan(self, choice: Choice) -> ConfidenceModel:
        """A block whose points are all told, as a width needs it."""
        noise = self.model.noise_variance
        gain = (noise.new_tensor(choice.std).square() / noise).log1p().sum() / 2
        return ToldOnly(noise, len(choice.std), self.domain.dim, gain)
