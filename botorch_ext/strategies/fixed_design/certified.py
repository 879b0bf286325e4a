"""Certified elimination: free steps of any rule inside a certified region, and blocks that renew
its certificate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import plain
from botorch_ext.search.region import Region
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.pending import PendingPolicy, TrialRows
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.events import Asked, Attached, Event, Told, Trial
from botorch_ext.strategies.fixed_design.certifying_strategy import USEFUL, CertifyingStrategy
from botorch_ext.strategies.fixed_design.horizon import require_prior
from botorch_ext.strategies.fixed_design.progress import Progress, Schedule, plain_certificate
from botorch_ext.strategies.fixed_design.round_records import Cut, PlayedCertified
from botorch_ext.strategies.fixed_design.survivors import (
    Bounds,
    Elimination,
    at_ridges,
    evaluated_at,
    survivors_of,
)
from botorch_ext.strategies.initial_checks import probes_of
from botorch_ext.strategies.refutation import Alarm
from botorch_ext.widths import ConfidenceModel, Width, as_width
from botorch_ext.widths.base import ModelNumbers, check_rkhs_bound, require
from botorch_ext.widths.composed import require_plain
from botorch_ext.widths.told_data import ToldData

Buy = Literal["useful", "always"]

# A block is put off if the pending trials would reduce the certificate to this share.
_ENOUGH = 0.5

#: A rule of the user's: a function of the posterior of the told data, the region (on a finite set a
#: `FiniteSet` of the survivors), the ``p x d`` points of pending and failed trials, and a seed,
#: which returns a point of the region.
FreeRule = Callable[[KernelGP, FiniteSet | Region, Tensor, int], Any]
Free = Literal["gp_bucb"] | FreeRule


class CertifiedElimination(CertifyingStrategy):
    """Plays free steps of any rule inside a region whose points all have a certified regret.

    A share of each round is spent on a block of points of largest variance, whose observations
    alone renew the certificate. A round closes when the observations that have arrived of its block
    leave nearly the standard deviation that its plan promised. So nothing needs to be known about
    the delays, and nothing waits. Between blocks, the bounds of all told data also certify and
    eliminate.

    ``info`` of a trial has the keys

    - ``phase``: "free"; "block"; "wait", a free step while a block is pending; or "rest", a free
      step in place of a block that would not have been useful;
    - ``round``: the number of the round, from 1;
    - ``certificate``: the largest regret of any point of the region at that time; None while
      nothing is known;
    - ``index``: on a finite set, the row of the point;
    - ``std``: for a trial of a block, its standard deviation given the points of the block before;
    - ``closing``, ``cut``: if a round closed, or all told data eliminated points, before the step:
      dicts with the ``threshold`` and its ``argmax``, the ``certificate``, and the share of the
      domain that survives, ``volume``, with its standard error ``volume_error``; for a cut also
      whether the block was ``put_off``;
    - ``plan``: if a block was planned before the step: a dict with its ``plan`` (rows or
      coordinates), their ``std``, and the largest standard deviation that it leaves, ``promise``.

    On a box each cut keeps all data, so none is made while a block is put off. A replay takes from
    ``info`` that a round closed and that a block was put off. ``free`` must depend on its arguments
    alone, since its answers are recorded and its state is not.

    An abandoned trial of a block never arrives. If the others do not suffice, as many points as the
    block had are asked once the wait has lasted for the length of the round. The round that the
    horizon cuts has no block.

    With probability at least 1 - delta the maximiser of a finite set is never eliminated, and no
    asked point has more regret than the certificate of its time, whatever the delays and the free
    rule. This assumes that both widths hold with delta/2, that the noise is independent and that
    delays do not depend on it. A delay is the number of trials that are asked before the result
    comes: if workers ask as soon as they are free and the duration of an evaluation depends on its
    point, delays depend on values. The statement is then proven only for rounds that close with all
    points of a single plan told. On a box a search finds the largest values in the region.

    The other arguments are those of `certified_bucb`.

    Args:
        domain: The domain: a `Box`, its bounds, or a `FiniteSet`. On a box the survivors are a
            `Region`, never a grid.
        model: A `KernelGP` without data and without prior mean: kernel and noise variance.
        block_width: The width of the bounds of a block, or a number. It must be valid for designs
            that do not depend on observations.
        told_width: The width of the bounds of all told data, or a number.
        free_width: The width of GP-BUCB in the free steps, or a number.

    Raises:
        ValueError: If an argument is impossible, if ``num_initial`` leaves no trial, if
            ``block_width`` is a `FixedDesignLadder` on a box, or if the model has data, a prior
            mean, batch dimensions, transforms, or another dtype or device than the domain.
    """

    record = PlayedCertified

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
        minimize: bool | None = None,
    ) -> None:
        super().__init__(domain, seed, initial, num_initial, minimize=minimize)
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
        self.block_width = as_width(block_width, "block_width")
        self.told_width = as_width(told_width, "told_width")
        self.free_width, self.rkhs_bound = as_width(free_width, "free_width"), rkhs_bound
        for name in ("block_width", "told_width", "free_width"):
            require_plain(getattr(self, name), name)
        self.buy, self.free = buy, free
        self.schedule = Schedule(self.horizon - num_initial, self.share)
        self.certificates: list[dict[str, Any]] = []
        self._space = survivors_of(domain, self.block_width)
        limit = math.inf if rkhs_bound is None else 2 * rkhs_bound
        self._progress = Progress(self._space.whole, limit)
        self._arrived = self._nothing_arrived()
        listed = isinstance(domain, FiniteSet)
        posterior = FinitePosterior.from_model(model, domain.points) if listed else model.fork()
        if self._initial is not None:
            posterior.add(*self._initial)
        self._rows: TrialRows[Any] = TrialRows(posterior, PendingPolicy("hallucinate"))
        # The posterior of the told data, which is given to a rule of the user's.
        self._told = model.fork() if callable(free) else None
        if self._told is not None and self._initial is not None:
            self._told.add(*self._initial)
        self._alarm = Alarm.of(self.told_width)

    # --- what is known ----------------------------------------------------------------------------

    @property
    def survivors(self) -> Tensor | Region:
        """The points that may be asked: ascending rows of the finite set, or the region."""
        return self._progress.survivors

    @property
    def certificate(self) -> float:
        """The largest regret that any survivor can have; infinite while nothing is known."""
        return self._progress.certificate

    @property
    def posterior(self) -> Any:
        """The posterior that the free steps use: the told data, and pending trials in the standard
        deviations alone. A `FinitePosterior` or a `KernelGP`. It is a copy: changing it does not
        change the strategy."""
        return self._rows.current().posterior.fork()

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``horizon``: T;
            - ``block_width``, ``told_width``, ``free_width``: the widths as they were given;
            - ``round``: the number of the current round;
            - ``phases``: a dict with the number of trials of each phase;
            - ``certificate``: the current certificate, None while nothing is known;
            - ``certificates``: a list of dicts, one for each change: the id of the ``trial`` before
              which it happened, the ``round``, the cause as ``by`` ("closing" or "cut"), the
              ``certificate``, and the ``volume`` with its ``volume_error``.
        """
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

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        noted, now = self._begin(None), self._progress
        x, about = self._planned() if now.phase == "block" else self._freely()
        info = {"phase": now.phase, "round": now.round}
        info["certificate"] = plain_certificate(now.certificate)
        return x, info | about | noted

    def _begin(self, recorded: PlayedCertified | None) -> dict[str, Any]:
        """Lines 1 to 3 of the pseudo-code before a step; returns what ``info`` says about them. For
        a recorded step nothing is chosen again."""
        self._rows.catch_up()
        noted: dict[str, Any] = {}
        if self._closes(recorded, "closing"):
            arrived = at_ridges(self._arrived, self.block_width)
            numbers = evaluated_at(self.block_width, arrived)
            belief = self._space.belief(arrived, self.survivors)
            cut, left = self._cut("closing", belief, numbers, recorded)
            noted["closing"] = plain(cut)
            self._adopt("closing", cut, left)
            self._start_next_round()
        if not self._is_due():
            return noted | self._go_on(recorded)
        rows = self._rows.posterior
        numbers = evaluated_at(self.told_width, self._of_told(rows))
        belief = self._space.belief_of_known(rows, self.model, self.survivors)
        cut, left = self._cut("cut", belief, numbers, recorded)
        puts_off = self._puts_off(cut, left, recorded)
        noted["cut"] = plain(cut) | {"put_off": puts_off}
        if not puts_off or self._space.cuts_while_putting_off:
            self._adopt("cut", cut, left)
        if puts_off:
            self._progress = replace(self._progress, put_off=self._progress.put_off + 1)
            return noted
        noted["plan"] = self._plan(recorded)
        if self.buy == "useful":
            width, offset = evaluated_at(self.block_width, self._of_block())
            self._rest_if_useless(USEFUL * (width * self._progress.promise + offset), recorded)
        return noted

    def _planner(self) -> KernelGP:
        return self._arrived

    def _nothing_arrived(self) -> KernelGP:
        return self.model.fork()

    def _largest_std(self) -> float:
        belief = self._space.belief(self._arrived, self.survivors)
        return self._space.largest_std(self.survivors, belief, self._population_seed())

    def _cut(
        self,
        name: str,
        belief: Any,
        numbers: tuple[float, float],
        recorded: PlayedCertified | None,
    ) -> tuple[Cut, Elimination]:
        """What the bounds of a belief leave, with a certificate that never increases."""
        now, seed, cut = self._progress, self._population_seed(), self._taken(recorded, name)
        known = self._known_threshold(cut)
        X, bounds = self._maximised()[0], Bounds(belief, *numbers, self.rkhs_bound)
        if isinstance(now.survivors, Region):
            X = X[now.survivors.meets(X)]
        left = self._space.eliminate(now.survivors, bounds, X, seed, known)
        if known is None:
            certificate = self._space.certificate(left.survivors, left.bounds, seed)
            volume = self._space.volume(left.survivors, seed)
            certificate = min(certificate, now.certificate)
            cut = Cut(left.threshold, tuple(left.argmax), certificate, *volume)
        return cut, left

    def _adopt(self, name: str, cut: Cut, left: Elimination) -> None:
        """Goes on with the survivors of a cut, and lists its certificate if that is new."""
        now = replace(self._progress, survivors=left.survivors, certificate=cut.certificate)
        last = self.certificates[-1] if self.certificates else {}
        entry = {key: getattr(cut, key) for key in ("certificate", "volume", "volume_error")}
        if any(last.get(key) != entry[key] for key in ("certificate", "volume")):
            where = {"trial": len(self.history.trials), "round": now.round, "by": name}
            self.certificates.append(where | entry)
        self._progress = now

    def _puts_off(self, cut: Cut, left: Elimination, recorded: PlayedCertified | None) -> bool:
        """Whether the block is put off, since the standard deviations after all pending results
        would certify enough."""
        if self._progress.watched is None:
            self._progress = replace(self._progress, watched=frozenset(self.pending))
        if recorded is not None:
            return self._taken(recorded, "cut").put_off
        now = self._progress
        if (
            now.round == 1
            or now.watched.isdisjoint(self.pending)  # pyright: ignore
            or now.put_off >= self.schedule.length(now.round)
        ):
            return False
        belief = self._space.belief(self._without_failed(), left.survivors)
        bounds, seed = replace(left.bounds, belief=belief), self._population_seed()
        return self._space.certificate(left.survivors, bounds, seed) <= _ENOUGH * cut.certificate

    def _of_told(self, posterior: Any) -> ConfidenceModel:
        """The posterior without pending rows, as a width needs it."""
        factor = posterior.factor
        gain = posterior.information_gain() - factor.pending_information_gain()
        count = posterior.num_observations - len(factor.pending)
        return ModelNumbers(posterior.noise_variance, count, self.domain.dim, gain)

    def _of_block(self) -> ConfidenceModel:
        """The planned block with all its points told, as a width needs it."""
        noise, std = self.model.noise_variance, self._progress.std
        gain = (noise.new_tensor(std).square() / noise).log1p().sum() / 2
        return ModelNumbers(noise, len(std), self.domain.dim, gain)

    @torch.no_grad()
    def _freely(self) -> tuple[Tensor, dict[str, int]]:
        posterior, survivors = self._rows.posterior, self.survivors
        seed = self._seed_of(self.history.num_asked)
        if not callable(self.free):
            width = evaluated_at(self.free_width, posterior)[0]
            seeds = seed, self._population_seed()
            return self._space.highest(survivors, posterior, width, self._incumbents, seeds)
        told, like = self._told.fork(), self.domain.like  # pyright: ignore
        pending = [self.history.trials[id].x for id in self.history.unanswered]
        points = torch.stack(pending) if pending else like.new_zeros(0, like.shape[-1])
        with torch.enable_grad():  # a rule may use gradients
            answer = self.free(told, self._space.region(survivors), points, seed)
        answer = answer.detach() if isinstance(answer, Tensor) else answer
        where = None
        try:
            x = self.domain.require_contains(answer)
            where = self._space.where(survivors, x) if len(x) == 1 else None
        except (TypeError, ValueError) as error:
            raise ValueError(f"free must return a point of the region, got {answer!r}") from error
        if where is None:
            raise ValueError(f"free must return a point of the region, got {answer!r}")
        return x[0].clone(), where

    def _without_failed(self) -> Any:
        rows, failed = self._rows, self.history.failed
        failed_rows = [row for row, id in enumerate(rows.ids) if id in failed]
        return rows.without(failed_rows) if failed_rows else rows.posterior

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> None:
        record = super()._recall(trial)
        self._begin(record)
        self._require_agreement(record)

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked(trial) if self._is_play(trial.id):
                self._progress = self._progress.asked(trial.id)
            case Told(id, value):
                x = self.history.trials[id].x
                for model in self._told, self._arrived if id in self._progress.bought else None:
                    if model is not None:
                        model.add(x.unsqueeze(0), x.new_tensor([value]))
            case Attached(trial, value) if self._told is not None:
                self._told.add(trial.x.unsqueeze(0), trial.x.new_tensor([value]))
        self._rows.absorb(event, self.history)

    def _told_data(self) -> ToldData:
        rows = self._rows.current()
        return ToldData.of(rows.posterior, rows.known(self.history))

    def _mixture(self, context: Tensor | None) -> GPMixture:
        return GPMixture.of([self._rows.told(self.history)])

    def evaluated_means(self) -> Tensor:
        rows = self._rows.for_means()
        X, _ = self._maximised()
        if isinstance(self.domain, FiniteSet):
            return rows.posterior.mean[self.domain.index(X)]
        return rows.posterior.mean_at(X)
