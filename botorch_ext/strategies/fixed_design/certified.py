"""Certified elimination: any rule that stays where a certificate says, and blocks that renew it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.predictions.mixture import GPMixture
from botorch_ext.regions.region import Region
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.pending import PendingPolicy, PendingRows
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Attached, Event, Told, Trial
from botorch_ext.strategies.fixed_design.certified_rounds import Buy, CertifiedRounds, Move, Seen
from botorch_ext.strategies.fixed_design.horizon import require_left, require_prior
from botorch_ext.strategies.fixed_design.progress import (
    Progress,
    Schedule,
    plain_certificate,
    recorded_phase,
)
from botorch_ext.strategies.fixed_design.survivors import evaluated_at
from botorch_ext.strategies.initial_checks import probes_of
from botorch_ext.widths import Width, as_width
from botorch_ext.widths.base import check_rkhs_bound, require

#: A rule of the user's: from the posterior of the told data, the region (on a finite set a
#: `FiniteSet` of the survivors), the ``p x d`` points that pend or failed, and a seed to a point of
#: the region.
FreeRule = Callable[[KernelGP, FiniteSet | Region, Tensor, int], Any]
Free = Literal["gp_bucb"] | FreeRule


class CertifiedElimination(Strategy):
    """Steps of any rule inside a region whose points all have a certified regret; a share of each
    round buys a block of max-variance points, whose observations alone renew the certificate.

    A round closes when what has arrived of its block has nearly the standard deviation that its
    plan promised: nothing needs to be known of the delays, and nothing waits. Between blocks, the
    bounds of all told data certify and eliminate too. ``info`` of a trial has ``phase``: "free",
    "block", "wait" (a free step while a block is out) or "rest" (one after a block that would not
    have been useful); ``round``; and ``certificate``: no point of the region has more regret at
    that time; None while nothing is known. ``closing``, ``cut`` and ``plan`` are there where they
    were decided before the step.

    On a box, where each cut keeps all data, none is made while a block is put off. A replay takes
    from the record that a round closed and that a block was put off. ``free`` must be a function of
    what it is given: its answers are recorded, its state is not.

    A trial of a block that is abandoned never arrives: where the others do not suffice, as many
    points as the block had are bought once the wait has lasted for the length of the round.
    The round that the horizon cuts has no block.

    With probability at least 1 - delta the maximiser of a finite set is never eliminated and no
    asked point has more regret than the certificate of its time, whatever the delays and the free
    rule, where both widths hold with delta/2, noise is independent and delays do not depend on it.
    A delay is the number of trials asked before the result comes: with workers that ask as soon as
    they are free it depends on values where the duration of an evaluation depends on its point.
    Then this is shown only for rounds that close with all points of a single plan told. On a box
    what is largest in the region is found by search.

    Args:
        domain: Where to maximise. On a box the survivors are a `Region`, never a grid.
        model: A `KernelGP` without data and prior mean: kernel and noise variance.
        horizon: T, the number of trials. The rounds share what ``num_initial`` leaves.
        block_width: The width of the bounds of a block, for designs that do not depend on
            observations.
        told_width: The width of the bounds of all told data.
        free_width: The width of GP-BUCB in the free steps.
        rkhs_bound: B: all bounds are clipped to [-B, B]. None: they are not.
        share: The share of the steps that are bought, in (0, 1].
        kappa: At least 1: a round closes when the largest standard deviation is at most kappa times
            the promised one.
        buy: "useful": only where the certificate may become half of what it is; or "always".
        free: "gp_bucb", or a function of a `KernelGP` with the told data, the region (on a finite
            set a `FiniteSet` of the survivors), the ``p x d`` points that pend or failed and a
            seed, which returns a point of the region.
        seed: Seeds every random choice.
        initial: ``(X, Y)`` the user already has; for the bounds of all told data.
        num_initial: Points asked first, which may lie anywhere.

    Raises:
        ValueError: An impossible argument, no trial left by ``num_initial``, a model that has data,
            a prior mean, batch dimensions or transforms, or another dtype or device than the
            domain.
    """

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        horizon: int,
        block_width: Width | float,
        told_width: Width | float,
        free_width: Width | float = 2.0,
        *,
        rkhs_bound: float | None = None,
        share: float = 1 / 8,
        kappa: float = 1.0,
        buy: Buy = "useful",
        free: Free = "gp_bucb",
        seed: int = 0,
        initial: tuple[Tensor, Tensor] | None = None,
        num_initial: int = 0,
    ) -> None:
        super().__init__(domain, seed, initial, num_initial)
        self.horizon = whole_number(horizon, "horizon", least=1)
        if num_initial >= self.horizon:
            raise ValueError(
                f"num_initial must be less than the horizon of {horizon}, got {num_initial}"
            )
        self.share, self.kappa = one_number(share, "share"), one_number(kappa, "kappa")
        require(0 < self.share <= 1, "share", self.share, "in (0, 1]")
        require(1 <= self.kappa < math.inf, "kappa", self.kappa, "at least 1 and finite")
        if buy not in ("useful", "always"):
            raise ValueError(f'buy must be "useful" or "always", got {buy!r}')
        if free != "gp_bucb" and not callable(free):
            raise ValueError(f'free must be "gp_bucb" or a function, got {free!r}')
        if rkhs_bound is not None:
            rkhs_bound = check_rkhs_bound(rkhs_bound)
        require_prior(model, domain)
        if model.mean is not None:
            raise ValueError("model must have no prior mean")
        self._note_large_kernel(float(model.largest_variance(probes_of(domain, None, self.seed))))
        self._raise_warnings()
        self.model = model
        self.block_width, self.told_width = as_width(block_width), as_width(told_width)
        self.free_width, self.rkhs_bound = as_width(free_width), rkhs_bound
        self.buy, self.free = buy, free
        self.schedule = Schedule(self.horizon - num_initial, self.share)
        self.certificates: list[dict[str, Any]] = []
        self._rounds = CertifiedRounds(
            domain,
            model,
            self.horizon,
            self.schedule,
            (self.block_width, self.told_width),
            rkhs_bound,
            self.kappa,
            buy,
        )
        self._space = self._rounds.space
        limit = math.inf if rkhs_bound is None else 2 * rkhs_bound
        self._progress = Progress(self._space.whole, limit)
        posterior = self._space.posterior(model)
        if self.initial is not None:
            posterior.add(*self.initial)
        self._rows: PendingRows[Any] = PendingRows(posterior, PendingPolicy("hallucinate"))
        # Of the blocks of this round, those of their points that are told.
        self._arrived = model.fork()
        # What a rule of the user's is given.
        self._told = model.fork() if callable(free) else None
        if self._told is not None and self.initial is not None:
            self._told.add(*self.initial)

    # --- what is known ----------------------------------------------------------------------------

    @property
    def survivors(self) -> Tensor | Region:
        """Where may be asked: ascending rows of the finite set, or the region."""
        return self._progress.survivors

    @property
    def certificate(self) -> float:
        """The most regret that any survivor has; infinite while nothing is known."""
        return self._progress.certificate

    @property
    def posterior(self) -> Any:
        """What the free steps look at: the told data, and pending trials in the deviations alone.
        A `FinitePosterior` or a `KernelGP`."""
        return self._rows.current().posterior

    def report(self) -> dict[str, Any]:
        phases = Counter(trial.info.get("phase") for trial in self.history.trials)
        phases.pop(None, None)
        return super().report() | {
            "horizon": self.horizon,
            "block_width": parts_of(self.block_width),
            "told_width": parts_of(self.told_width),
            "free_width": parts_of(self.free_width),
            "round": self._progress.round,
            "phases": dict(phases),
            "certificate": plain_certificate(self.certificate),
            "certificates": [dict(entry) for entry in self.certificates],
        }

    # --- decisions --------------------------------------------------------------------------------

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        require_left(num_trials, self.history.num_asked, self.horizon)

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        self._ahead = move = self._moved(None)
        progress, step = move.progress, self.history.num_asked
        if progress.phase == "block":
            x = progress.planned[len(progress.bought)].clone()  # pyright: ignore
        else:
            x, place = self._freely(progress, self._seed_of(step))
            move.info.update(place)
        return x, move.info

    @torch.no_grad()
    def _freely(self, progress: Progress, seed: int) -> tuple[Tensor, dict[str, int]]:
        posterior, survivors = self._rows.posterior, progress.survivors
        if not callable(self.free):
            width = evaluated_at(self.free_width, posterior)[0]
            seeds = seed, self._rounds.population_seed(progress, self._seen())
            return self._space.highest(survivors, posterior, width, self._incumbents, seeds)
        told, like = self._told.fork(), self.domain.like  # pyright: ignore
        pending = [self.history.trials[id].x for id in self.history.unanswered]
        points = torch.stack(pending) if pending else like.new_zeros(0, like.shape[-1])
        with torch.enable_grad():  # a rule may climb
            answer = self.free(told, self._space.region(survivors), points, seed)
        answer = answer.detach() if isinstance(answer, Tensor) else answer
        place = None
        try:
            x = self.domain.require_contains(answer)
            place = self._space.place(survivors, x) if len(x) == 1 else None
        except (TypeError, ValueError) as error:
            raise ValueError(f"free must return a point of the region, got {answer!r}") from error
        if place is None:
            raise ValueError(f"free must return a point of the region, got {answer!r}")
        return x[0].clone(), place

    def _moved(self, recorded: dict[str, Any] | None) -> Move:
        """What the next step begins with."""
        self._rows.catch_up()
        return self._rounds.moved(self._progress, self._seen(), recorded)

    def _seen(self) -> Seen:
        return Seen(
            self.history.num_asked,
            self.pending,
            self._rows.posterior,
            self._without_failed,
            self._arrived,
            lambda: self.evaluated()[0],
            self._seed_of,
            self._is_corrected,
        )

    def _without_failed(self) -> Any:
        rows, failed = self._rows, self.history.failed
        failed_rows = [row for row, id in enumerate(rows.ids) if id in failed]
        return rows.without(failed_rows) if failed_rows else rows.posterior

    # --- the next state ---------------------------------------------------------------------------

    def check_event(self, event: Event) -> None:
        super().check_event(event)
        if isinstance(event, Asked) and self.history.asked_before(event.trial.id) >= self.horizon:
            raise ValueError(
                f"id must be less than the horizon of {self.horizon}, got {event.trial.id}"
            )

    def _recall(self, trial: Trial) -> Move:
        recorded_phase(trial.info)
        return self._moved(trial.info)

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked(trial) if self._is_play(trial.id):
                self._adopt(self._ahead, trial.id)
            case Told(id, value):
                x = self.history.trials[id].x
                for model in self._told, self._arrived if id in self._progress.bought else None:
                    if model is not None:
                        model.add(x.unsqueeze(0), x.new_tensor([value]))
            case Attached(trial, value) if self._told is not None:
                self._told.add(trial.x.unsqueeze(0), trial.x.new_tensor([value]))
        self._rows.absorb(event, self.history)

    def _adopt(self, move: Move, id: int) -> None:
        before, now = self._progress, move.progress
        if now.round > before.round:
            self._arrived = self.model.fork()
        last = self.certificates[-1] if self.certificates else {}
        for name in ("closing", "cut"):
            record = move.info.get(name)
            if record is None or (record.get("put_off") and not self._space.cuts_while_putting_off):
                continue
            entry = {key: record[key] for key in ("certificate", "volume", "volume_error")}
            if any(last.get(key) != entry[key] for key in ("certificate", "volume")):
                round = before.round if name == "closing" else now.round
                self.certificates.append({"trial": id, "round": round, "by": name, **entry})
                last = entry
        self._progress = now.asked(id)

    def _mixture(self, context: Tensor | None) -> GPMixture:
        return GPMixture.of([self._rows.told(self.history)])

    def evaluated_means(self) -> Tensor:
        rows = self._rows.for_means()
        X, _ = self.evaluated()
        if isinstance(self.domain, FiniteSet):
            return rows.posterior.mean[self.domain.index(X)]
        return rows.posterior.mean_at(X)
