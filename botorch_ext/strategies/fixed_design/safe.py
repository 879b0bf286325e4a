"""Insured optimism over several models, with certificates as an option."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any, Unpack, cast

from torch import Tensor

from botorch_ext.checks import amount, flag, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.ranks import reach
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions
from botorch_ext.strategies.adaptive.insured import InsuredStrategy
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.strategies.adaptive.ledger import Choice, Terms
from botorch_ext.strategies.adaptive.told_bounds import Look
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.strategies.fixed_design.horizon import require_before_horizon, require_left
from botorch_ext.strategies.fixed_design.progress import (
    Progress,
    Schedule,
    is_reached,
    plain_certificate,
    recorded_phase,
)
from botorch_ext.strategies.fixed_design.survivors import Choice as Plan
from botorch_ext.strategies.fixed_design.survivors import SetSurvivors, evaluated_at
from botorch_ext.widths import FixedDesign, Width

# The share of the steps of a round that are spent on its block; and a block is useful if the
# certificate is more than this many times the half-width that the block promises.
_SHARE, _USEFUL = 1 / 8, 4.0


class SafeStrategy(InsuredStrategy):
    """Insured optimism over the credible models, which exploits only points that the level has not
    excluded.

    On a finite set, with ``certificates``, blocks of points of largest variance certify the regret
    of the points that are left. ``info`` of a trial has the keys of `InsuredStrategy`, and with
    certificates also

    - ``phase``, ``round``: as for `CertifiedElimination`;
    - ``certificate``: the largest regret of a point that is exploited at this step, if the
      misspecification is at most that of the level and the bounds hold. It never increases within a
      level, unless a model becomes credible again;
    - ``kind``: "block" for a trial of a block. Its ``cost`` is the certificate when the block was
      planned first, since points that a second plan adds are from the same survivors;
    - ``closed``: True if the block of the round before entered the bounds at this step;
    - ``plan``: as for `CertifiedElimination`, if a block was planned, or skipped as not useful.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        models: `CandidateModels` without data.
        rkhs_bound: B, at least the RKHS norm of f under the right model, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, as for `InsuredStrategy`, and of the bounds of blocks.
        width: The width of the index. None: `SelfNormalized`, which the tests always use.
        credibility: As for `InsuredStrategy`.
        terms: The limits on what the insurance may cost. None: `Terms()`.
        certificates: Whether blocks are asked. Needs a `FiniteSet` without contexts.
        horizon: T, the number of trials. Needed with ``certificates``, and only there.
        options: The keyword arguments of `BoundsStrategy`, as for `InsuredStrategy`.

    Raises:
        ValueError: If `InsuredStrategy` raises it, if certificates are asked for on another domain
            or without a horizon, or if a horizon is given without them.
    """

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        *,
        rkhs_bound: float,
        noise_std: float,
        delta: float = 0.1,
        width: Width | float | None = None,
        credibility: float | None = None,
        terms: Terms | None = None,
        certificates: bool = False,
        horizon: int | None = None,
        **options: Unpack[BoundsOptions],
    ) -> None:
        if (horizon is not None) != certificates:
            raise ValueError(
                f"horizon must be given with certificates, and only then, got {horizon}"
            )
        self._prior = deepcopy(models)
        super().__init__(
            domain,
            models,
            rkhs_bound=rkhs_bound,
            noise_std=noise_std,
            delta=delta,
            width=width,
            terms=terms,
            stays=True,
            credibility=credibility,
            **options,
        )
        self._schedule: Schedule | None = None
        if not flag(certificates, "certificates"):
            return
        if not isinstance(domain, FiniteSet) or self.context_space is not None:
            raise ValueError("certificates need a FiniteSet, without a context_domain")
        self.takes_actions = False
        self.horizon = whole_number(horizon, "horizon", least=1)
        if self._first_points.num >= self.horizon:
            first = self._first_points.num
            raise ValueError(f"num_initial must be less than the horizon of {horizon}, got {first}")
        self.buys_blocks = True
        self._schedule = Schedule(self.horizon - self._first_points.num, _SHARE)
        rounds = self._schedule.num_rounds
        told = self._published
        self.block_width = FixedDesign(
            told.rkhs_bound, told.noise_std, told.delta, domain.num_points, rounds
        )
        self._space = SetSurvivors(domain)
        self._progress = Progress(self._space.whole, math.inf)
        # The models with the told points of the block of this round.
        self._block = self._empty_block()
        # Whether each model played at the last step, whose certificate holds for those that did.
        self._players: list[bool] = [False] * len(models)

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `InsuredStrategy.report`, and with certificates also the
            ``horizon``, the number of the current ``round``, the current ``certificate`` (None
            while nothing is known), and the list of the ``certificates`` of all trials.
        """
        summary = super().report()
        if self._schedule is None:
            return summary
        certificate = plain_certificate(self._progress.certificate)
        return summary | {
            "horizon": self.horizon,
            "round": self._progress.round,
            "certificate": certificate,
            "certificates": [
                trial.info["certificate"]
                for trial in self.history.trials
                if self._is_play(trial.id)
            ],
        }

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        if self._schedule is not None:
            require_left(num_trials, self.history.num_asked, self.horizon)

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        if self._schedule is None:
            return super()._decide(choices)
        look, now, record = self._begin(self.history.num_asked, None)
        if now.phase == "block":
            row = now.plan[len(now.bought)]
            kept = self.ledger.suspect
            choice = Choice("block", now.cost, suspect=kept)
            x, known = self._space.candidates[row].clone(), self._bounds(self._rows.posterior)
            info = {"index": row} | self._recorded(known, look, choice, x, {"index": row})
            self._ahead = look, choice
        else:
            x, info = self._chosen(choices, look)
        return x, info | {
            "round": now.round,
            "phase": now.phase,
            "certificate": now.certificate,
        } | record

    def _begin(
        self, step: int, recorded: dict[str, Any] | None
    ) -> tuple[Look, Progress, dict[str, Any]]:
        """Updates the rounds when a step begins, and returns the bounds, the progress and the
        ``info`` about it. For a recorded step nothing is chosen again."""
        look, now, record = self._look(), self._progress, {}
        schedule = cast(Schedule, self._schedule)
        if now.phase == "wait" and self._closes(now, look, recorded):
            block, record["closed"] = self._block, True
            widths = self._told.widths(block, self.block_width)
            bounds = look.bounds.tightened(block.mean, block.std, widths)
            credible = cast(Credible, self.judge).contenders(self)
            again = self._told.judged(look.told, bounds, look.level, credible)
            look = replace(again, refuted=look.refuted + again.refuted)
            now = now.next_round()
        now = self._certified(now, look, recorded)
        length, bought = schedule.length(now.round), schedule.num_bought(now.round)
        left = self.horizon - step
        is_whole = left + now.position > length and left - 1 > bought
        is_due = now.phase == "free" and is_whole and now.position >= length - bought
        if now.phase == "rest" and now.position >= length:
            now = now.next_round()
        elif is_due or (now.phase == "wait" and now.waited >= length):
            now = self._planned(now, look, step, bought, recorded, record)
        if now.round > self._progress.round:
            self._block = self._empty_block()
        self._progress = now
        return look, now, record

    def _survivors(self, look: Look) -> tuple[Tensor, Tensor]:
        """The rows that the level has not excluded, and the largest regret that any of them can
        have."""
        upper, lower, _ = (values[look.level] for values in look.bounds.of(look.playing))
        inside = reach(upper, lower.max())
        inside = inside | ~inside.any()
        return inside.nonzero().flatten(), (upper.max() - lower[inside].min()).clamp_min(0)

    def _certified(self, now: Progress, look: Look, recorded: dict[str, Any] | None) -> Progress:
        """The progress with the certificate of this step, which is no larger than before unless the
        level changed or a model became credible again."""
        if recorded is not None and not self._is_corrected:
            certificate = amount(recorded["certificate"], "certificate", "non-negative and finite")
            return replace(now, certificate=certificate)
        players = look.playing[:, look.level].tolist()
        is_back = any(new and not old for new, old in zip(players, self._players, strict=True))
        before = math.inf if is_back or look.level > self.ledger.level else now.certificate
        return replace(now, certificate=min(before, float(self._survivors(look)[1])))

    def _closes(self, now: Progress, look: Look, recorded: dict[str, Any] | None) -> bool:
        """Whether enough of the block has arrived."""
        if recorded is not None:
            return "closed" in recorded
        if self._block.num_observations == len(now.bought):
            return True
        # Among the survivors when the block was planned: observations must not decide when it
        # closes.
        largest = float(self._block.std[0, cast(Tensor, now.survivors)].max())
        return is_reached(largest, now.promise, self.domain.like)

    def _planned(
        self,
        now: Progress,
        look: Look,
        step: int,
        count: int,
        recorded: dict[str, Any] | None,
        record: dict[str, Any],
    ) -> Progress:
        """The progress with a block that the first model plans, or at rest if it is not useful."""
        again = now.phase == "wait"
        if not again:
            now = replace(now, survivors=self._survivors(look)[0], cost=now.certificate)
        survivors = cast(Tensor, now.survivors)
        if recorded is None:
            prior = cast(KernelGP, self._prior.single(0).fork())
            if again and self._block.num_observations:
                prior.add(*self._block.train_inputs, None)
            plan = self._space.choose(survivors, prior, count, self._seed_of(step))
            promise = now.promise
            if not again:
                prior.add(self._space.points(plan), None)
                after = FinitePosterior.from_model(prior, self._space.candidates)
                promise = float(after.std[survivors].max())
        else:
            plan = Plan.recorded(recorded["plan"], self.domain)
            promise = amount(recorded["plan"]["promise"], "promise", "non-negative and finite")
        record["plan"] = vars(plan) | {"promise": promise}
        after = now.planning(plan, self._space.points(plan), promise)
        if again:
            return after
        if recorded is not None and self._is_corrected:
            return replace(after, phase=recorded_phase(recorded))
        width, _ = evaluated_at(self.block_width, self._prior.single(0))
        eps, root = self.levels[look.level], math.sqrt(count / float(self._prior.noise_variance[0]))
        if now.certificate <= _USEFUL * (width + eps * root) * promise + 2 * eps:
            return replace(after, phase="rest")
        return after

    # --- the next state ---------------------------------------------------------------------------

    def _look_again(self, trial: Trial) -> Look:
        if self._schedule is None:
            return super()._look_again(trial)
        return self._begin(self.history.asked_before(trial.id), trial.info)[0]

    def check_event(self, event: Event) -> None:
        super().check_event(event)
        if isinstance(event, Asked) and self._schedule is not None:
            require_before_horizon(event.trial.id, self.history, self.horizon)

    def _follow(self, trial: Trial, look: Look) -> None:
        if self._schedule is None:
            return
        self._players = look.playing[:, look.level].tolist()
        self._progress = self._progress.asked(trial.id)

    def _absorb(self, event: Event) -> None:
        super()._absorb(event)
        if self._schedule is None or not isinstance(event, Told):
            return
        if event.id in self._progress.bought:
            row = self.history.trials[event.id].info["index"]
            self._block.add_candidate(row, event.value)

    def _empty_block(self) -> FiniteCandidates:
        return self._prior.on(self._space.candidates)
