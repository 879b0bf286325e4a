"""Insured optimism over several models, with certificates as an option."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any, Unpack, cast

from torch import Tensor

from botorch_ext.checks import flag, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.ranks import reach
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions
from botorch_ext.strategies.adaptive.insured import InsuredStrategy
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.strategies.adaptive.ledger import InsuranceChoice, Terms
from botorch_ext.strategies.adaptive.told_bounds import Look
from botorch_ext.strategies.events import Event, Told, Trial
from botorch_ext.strategies.fixed_design.certifying_strategy import USEFUL, CertifyingStrategy
from botorch_ext.strategies.fixed_design.progress import Progress, Schedule, plain_certificate
from botorch_ext.strategies.fixed_design.round_records import PlayedSafe
from botorch_ext.strategies.fixed_design.survivors import SetSurvivors, evaluated_at
from botorch_ext.widths import Width
from botorch_ext.widths.composed import BoundsKind, fixed_design_ridges, kinds_of_widths

# The share of the steps of a round that are spent on its block.
_SHARE = 1 / 8


class SafeStrategy(CertifyingStrategy, InsuredStrategy):
    """Insured optimism over the credible models, which exploits only points that the level has not
    excluded; its trials may violate constraints.

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

    The other arguments are those of `safe_ucb`.

    Args:
        models: `CandidateModels` without data.
        delta: The failure probability, as for `InsuredStrategy`, and of the bounds of blocks.
        width: The width of the index. None: that of the bounds of all told data, which the tests
            always use.
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
        bounds: BoundsKind = "published",
        **options: Unpack[BoundsOptions],
    ) -> None:
        if (horizon is not None) != certificates:
            raise ValueError(
                f"horizon must be given with certificates, and only then, got {horizon}"
            )
        kinds = kinds_of_widths(bounds)
        self._kind_of_bounds = kinds.told
        self._prior = deepcopy(models.negated() if options.get("minimize") else models)
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
        self.buys_blocks = flag(certificates, "certificates")
        if not self.buys_blocks:
            return
        if not isinstance(domain, FiniteSet) or self.context_space is not None:
            raise ValueError("certificates need a FiniteSet, without a context_domain")
        self.record, self.takes_actions = PlayedSafe, False
        self.horizon = whole_number(horizon, "horizon", least=1)
        if self._first_points.num >= self.horizon:
            first = self._first_points.num
            raise ValueError(f"num_initial must be less than the horizon of {horizon}, got {first}")
        self.schedule = Schedule(self.horizon - self._first_points.num, _SHARE)
        rounds = self.schedule.num_rounds
        told = self._published
        self.block_width = kinds.block(
            told.rkhs_bound, told.noise_std, told.delta, domain.num_points, rounds
        )
        self._block_ridges = fixed_design_ridges(self.block_width) or (1.0,)
        self._space = SetSurvivors(domain)
        self._progress = Progress(self._space.whole)
        self._arrived = self._nothing_arrived()
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
        if not self.buys_blocks:
            return summary
        return summary | {
            "horizon": self.horizon,
            "round": self._progress.round,
            "certificate": plain_certificate(self._progress.certificate),
            "certificates": [
                trial.info["certificate"]
                for trial in self.history.trials
                if self._is_play(trial.id)
            ],
        }

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        if not self.buys_blocks:
            return super()._decide(choices)
        noted, now = self._begin(None), self._progress
        if now.phase == "block":
            x, at = self._planned()
            row = {"index": at["index"]}
            choice = InsuranceChoice("block", now.cost, suspect=self.ledger.suspect)
            known = self._bounds(self._rows.posterior)
            info = row | self._recorded(known, cast(Look, self._seen), choice, x, row)
        else:
            x, info = self._chosen(choices)
        about = {"round": now.round, "phase": now.phase, "certificate": now.certificate}
        return x, info | about | noted

    def _begin(self, recorded: PlayedSafe | None) -> dict[str, Any]:
        """Updates the bounds and the rounds when a step begins, and returns what ``info`` says
        about the rounds. For a recorded step nothing is chosen again."""
        noted = super()._begin(recorded)
        if not self.buys_blocks:
            return noted
        look = cast(Look, self._seen)
        if self._closes(recorded, "closed"):
            look = self._seen = self._tightened(look)
            noted["closed"] = True
            self._start_next_round()
        self._certify(look, recorded)
        if not self._is_due():
            return noted | self._go_on(recorded)
        now, survivors = self._progress, self._survivors(look)[0]
        self._progress = replace(now, survivors=survivors, cost=now.certificate)
        noted["plan"] = self._plan(recorded)
        now, noise = self._progress, float(self._prior.noise_variance[0])
        width, _ = evaluated_at(self.block_width, self._prior.single(0))
        eps, root = self.levels[look.level], math.sqrt(len(now.plan) / noise)
        self._rest_if_useless(USEFUL * (width + eps * root) * now.promise + 2 * eps, recorded)
        return noted

    def _tightened(self, look: Look) -> Look:
        """The bounds with those of the block that has arrived."""
        block = self._arrived
        widths = self._told.widths(block, self.block_width)
        num = len(self._block_ridges)
        bounds = look.bounds.tightened(block.mean, block.std, widths, num)
        credible = cast(Credible, self.judge).contenders(self)
        again = self._told.judged(look.told, bounds, look.level, credible)
        return replace(again, refuted=look.refuted + again.refuted)

    def _planner(self) -> KernelGP:
        """The prior of the first model with the block's points, which tell nothing but where they
        are."""
        prior = cast(KernelGP, self._prior.single(0).fork())
        if self._arrived.num_observations:
            (X,) = self._arrived.train_inputs
            prior.add(X, None)
        return prior

    def _nothing_arrived(self) -> FiniteCandidates:
        ridges = self._block_ridges
        prior = self._prior.at_ridges(ridges) if len(ridges) > 1 else self._prior
        return prior.on(self._space.candidates)

    def _largest_std(self) -> float:
        # Among the survivors when the block was planned: observations must not decide when it
        # closes.
        first = self._block_ridges.index(1.0)
        return float(self._arrived.std[first, self._progress.survivors].max())

    def _survivors(self, look: Look) -> tuple[Tensor, Tensor]:
        """The rows that the level has not excluded, and the largest regret that any of them can
        have."""
        upper, lower, _ = (values[look.level] for values in look.bounds.of(look.playing))
        inside = reach(upper, lower.max())
        inside = inside | ~inside.any()
        return inside.nonzero().flatten(), (upper.max() - lower[inside].min()).clamp_min(0)

    def _certify(self, look: Look, recorded: PlayedSafe | None) -> None:
        """Renews the certificate, which is no larger than before unless the level changed or a
        model became credible again."""
        if recorded is not None and not self._is_corrected:
            certificate = recorded.certificate
        else:
            players = look.playing[:, look.level].tolist()
            is_back = any(new and not old for new, old in zip(players, self._players, strict=True))
            is_new = is_back or look.level > self.ledger.level
            before = math.inf if is_new else self._progress.certificate
            certificate = min(before, float(self._survivors(look)[1]))
        self._progress = replace(self._progress, certificate=certificate)

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> Any:
        record = super()._recall(trial)
        if self.buys_blocks:
            self._require_agreement(record)
        return record

    def _follow(self, trial: Trial, look: Look) -> None:
        if self.buys_blocks:
            self._players = look.playing[:, look.level].tolist()
            self._progress = self._progress.asked(trial.id)

    def _absorb(self, event: Event) -> None:
        super()._absorb(event)
        if self.buys_blocks and isinstance(event, Told) and event.id in self._progress.bought:
            row = self.history.trials[event.id].info["index"]
            self._arrived.add_candidate(row, event.value)
