"""Optimism that tests, within a budget of probes, whether its model is wrong."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.points import checked_rows
from botorch_ext.domains.ranks import first_highest
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import decoded, in_sign, plain
from botorch_ext.search.models import best_in_box, proposals
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds import Bounds
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.insurance import Insurance, Sight
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.strategies.adaptive.ledger import InsuranceChoice, Ledger, Terms
from botorch_ext.strategies.adaptive.predictions import Played
from botorch_ext.strategies.adaptive.running_bounds import RunningBounds
from botorch_ext.strategies.adaptive.told_bounds import Look, ToldBounds, moments
from botorch_ext.strategies.events import Asked, Attached, Event, Told, Trial
from botorch_ext.strategies.refutation import Alarm
from botorch_ext.widths import SelfNormalized, Width
from botorch_ext.widths.base import RKHSWidth
from botorch_ext.widths.composed import Assumptions, assumptions_of
from botorch_ext.widths.tight import RIDGES


@dataclass(frozen=True, kw_only=True)
class PlayedInsured(Played):
    """The record of a trial that an `InsuredStrategy` chose, beside its `InsuranceChoice`.

    Args:
        level: The number of the lowest level of misspecification that is not refuted.
        refuted: The levels that were given up at this step; None if there are none.
    """

    level: int
    refuted: tuple[dict[str, Any], ...] | None = None


class InsuredStrategy(BoundsStrategy):
    """Optimism for any misspecification: within a budget it evaluates points that its model
    excludes, and it gives up levels of misspecification that the data contradict.

    The index is the upper confidence bound that is maximised. ``info`` of a trial has the keys of
    `BoundsStrategy`, for the index, and

    - ``level``: the number of the lowest level of misspecification that is not refuted, from 0;
    - ``kind``: "exploit", the point that the plain method plays; "probe", a point that it excludes;
      or "follow-up", a probe that is repeated;
    - ``cost``: the largest possible loss of the trial if the level holds, in units of f;
    - ``suspected``, ``purse``: of a probe or a follow-up, the level that it is charged to, and the
      purse: "large", "small", or "owed" for the probe that follows a refuted level;
    - ``suspect``: the probed point that is being followed up, if there is one: a dict with the
      ``level`` and the ``trial`` of its probe, the number of ``repeats``, and the number of steps
      for which it could not be chosen, ``absent``;
    - ``refuted``: the levels that were given up at this step, if any: dicts with the ``level``, the
      ``point`` of the contradiction, and the ``lower`` and ``upper`` bound there;
    - ``watched``: on a box, or with contexts, the joint rows whose bounds are kept from then on.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        model: A `KernelGP` or `CandidateModels`, without data.
        rkhs_bound: B, at least the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability of the bounds of the models, and again of the averages.
        width: The width of the index. None: `SelfNormalized`, which the tests always use.
        terms: The limits on what the insurance may cost. None: `Terms()`.
        stays: Whether exploited points must be points that the level has not excluded.
        credibility: By how much the log marginal likelihood of a model that plays may lie below the
            largest. None: ln(m / delta) for m models.
        options: The keyword arguments of `BoundsStrategy`. The pending policy is "hallucinate":
            pending trials count in the index; bounds and tests use told data alone.

    Raises:
        ValueError: If `BoundsStrategy` raises it, if models have data, if a number is impossible,
            or if another pending policy is given.
    """

    record = PlayedInsured
    takes_ladders = False
    refuses_std = "its bounds count the evaluations of a point as equally noisy"
    # The width of the bounds that tests and certificates use.
    _kind_of_bounds: type[RKHSWidth] = SelfNormalized

    def __init__(
        self,
        domain: Domain,
        model: KernelGP | CandidateModels,
        *,
        rkhs_bound: float,
        noise_std: float,
        delta: float = 0.1,
        width: Width | float | None = None,
        terms: Terms | None = None,
        stays: bool = False,
        credibility: float | None = None,
        **options: Unpack[BoundsOptions],
    ) -> None:
        if not isinstance(model, KernelGP | CandidateModels):
            raise ValueError(f"model must be a KernelGP or CandidateModels, got {model!r}")
        if model.num_observations:
            raise ValueError("model must have no data: pass initial")
        if isinstance(model, CandidateModels) and model.grows:
            raise ValueError("model must not be a growing set of candidates")
        if isinstance(domain, FiniteSet) and domain.shard is not None:
            raise ValueError(f"domain must not be a ShardedSet for {type(self).__name__}")
        if not isinstance(terms, Terms | None):
            raise ValueError(f"terms must be Terms or None, got {terms!r}")
        if options.get("pending", "hallucinate") != "hallucinate" or options.get("inflate"):
            raise ValueError('pending must be "hallucinate", not inflated, for insured methods')
        self._published = self._kind_of_bounds(
            one_number(rkhs_bound, "rkhs_bound"),
            one_number(noise_std, "noise_std"),
            one_number(delta, "delta"),
        )
        self.insurance = Insurance(
            Terms() if terms is None else terms,
            self._published.rkhs_bound,
            self._published.noise_std,
            stays,
        )
        index_width = self._published if width is None else width
        judge = Credible(self._published.delta, credibility)
        super().__init__(domain, model, index_width, judge=judge, **options)
        self.ledger = Ledger.new(self.terms)
        self.levels = self.terms.levels(self._published.rkhs_bound)
        listed = isinstance(domain, FiniteSet) and self.context_space is None
        models, points = self._rows.posterior, domain.points if listed else None  # pyright: ignore
        self._told = ToldBounds(models, points, self._published, self.levels)
        if len(self.names) == 1:
            self._alarm = Alarm(self._assumed(self.levels[-1]))
        self.refutations: list[dict[str, Any]] = []
        # The bounds of the step that has begun; None between steps.
        self._seen: Look | None = None
        # The joint row of each trial, as a tuple of numbers.
        self._points: list[tuple[float, ...]] = []
        if self._initial is not None:
            X, Y = self._initial
            self._told.watch(X.unique(dim=0), models)
            self._told.keep(X)
            rows = self._initial_data_rows if listed else [None] * len(X)
            for x, row, value in zip(X.tolist(), rows, Y.tolist(), strict=True):
                self._told.observe(tuple(x), row, value)

    @property
    def terms(self) -> Terms:
        """The limits on what the insurance may cost."""
        return self.insurance.terms

    @property
    def first_step(self) -> int:
        """t of trial 0: one more than the initial observations."""
        return self._num_data_before + 1

    @property
    def next_step(self) -> int:
        """t of the next ask: one more than the number of asked trials and initial observations.
        Attached results do not count, so that they do not increase the budget."""
        return self.first_step + self.history.num_asked

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `BoundsStrategy.report` and

            - ``level``, ``misspecification``: the number of the lowest level that is not refuted,
              and its eps, in units of f;
            - ``may_have_lost``: the largest possible loss of all exploited trials, if the level
              holds;
            - ``budget``: the loss that probes may have caused by now;
            - ``charged``: a dict with the losses charged to the purses ``large`` and ``small``, one
              number for each level;
            - ``suspect``: as in ``info``, or None;
            - ``refuted``: as in ``info``, for all levels given up so far, with the ``trial``;
            - ``refuted_by_norm``: for a single model, the numbers of the levels for which the lower
              bound of the RKHS norm exceeds B, whether they are given up or not.
              ``refuted_at`` and ``rkhs_norm_lower_bound`` are those of the last level.
        """
        ledger, t = self.ledger, self.next_step
        suspect = None if ledger.suspect is None else vars(ledger.suspect).copy()
        summary = super().report()
        if self._alarm is not None:
            told = self._told_data()
            levels = enumerate(map(self._assumed, self.levels))
            summary["refuted_by_norm"] = [j for j, assumed in levels if told.refute(assumed)]
        return summary | {
            "level": ledger.level,
            "misspecification": self.levels[ledger.level],
            "may_have_lost": ledger.lost,
            "budget": self.terms.budget(ledger.lost, self._published.rkhs_bound, t),
            "charged": {"large": list(ledger.large), "small": list(ledger.small)},
            "suspect": suspect,
            "refuted": in_sign(deepcopy(self.refutations), self.history.sign),
        }

    def _assumed(self, misspecification: float) -> Assumptions:
        """What the bounds of a level assume."""
        own = cast(Assumptions, assumptions_of(self._published))
        return replace(own, misspecification=misspecification, ridges=RIDGES)

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        self._begin(None)
        return self._chosen(choices)

    def _chosen(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        """The choice of the insurance, and its ``info``."""
        look = cast(Look, self._seen)
        known = self._bounds(self._rows.posterior, choices.context)
        wide = self._wide(known)
        X, bounds = self._on_offer(choices, look, known, wide)
        sight = self._sight(X, bounds, choices, look, known, wide)
        ledger, t = self.ledger.at(look.level), self.next_step
        row, choice, seen = self.insurance.decide(sight, ledger, t)
        x, info = X[row].clone(), {}
        if isinstance(self.domain, FiniteSet) or choices.actions is not None:
            info |= choices.places(row)
        info |= self._recorded(known, look, choice, with_context(x, choices.context), info)
        if not self._told.is_listed:
            rows = with_context(X[[row, *seen]], choices.context)
            positions = self._told.watched.positions(rows)
            where = dict(zip(map(tuple, rows.tolist()), positions, strict=True))
            info["watched"] = [list(row) for row, position in where.items() if position is None]
        return x, info

    def _recorded(
        self, known: Bounds, look: Look, choice: InsuranceChoice, at: Tensor, rows: dict[str, Any]
    ) -> dict[str, Any]:
        """The ``info`` about a choice at a joint row, without ``rows``, which says where it
        is."""
        position = self._player(known, look, at, rows)
        prediction = self._record(known, position, rows["index"] if known.on_candidates else at)
        info = prediction | {"level": look.level} | plain(choice)
        return info | {"refuted": look.refuted} if look.refuted else info

    def _look(self) -> Look:
        self._rows.catch_up()
        credible = cast(Credible, self.judge).contenders(self)
        return self._told.look(self._rows, self.history, self.ledger.level, credible)

    def _begin(self, recorded: Any) -> dict[str, Any]:
        """Looks at the bounds when a step begins, and returns what ``info`` says about that; for a
        recorded step nothing is chosen again."""
        self._seen = self._look()
        return {}

    def _on_offer(
        self, choices: Choices, look: Look, known: Bounds, wide: Tensor
    ) -> tuple[Tensor, RunningBounds]:
        """The points to choose from, ``n x d``, with their running bounds; in a box, those that a
        search proposes."""
        X = choices.points(self.domain)
        if X is not None and self._told.is_listed:
            return X, look.bounds if choices.rows is None else look.bounds.rows(choices.rows)
        if X is None:
            X = self._worth_a_look(look, known, wide)
        return X, self._told.at(with_context(X, choices.context), look)

    def _worth_a_look(self, look: Look, known: Bounds, wide: Tensor) -> Tensor:
        box, context, d = cast(Any, self.domain), known.context, self.domain.dim
        seed, incumbents = self._seed_of(len(self.history.trials)), self._incumbents()
        i = look.level
        playing = look.playing[:, i].nonzero().flatten().tolist()
        x, _ = best_in_box(known.upper(), box, seed, incumbents, playing)
        own = self._told.widths(look.told)[:, i : i + 1]
        widths = torch.cat([wide[:, max(i, 1) :], own, -own], dim=-1)[playing]
        models = cast(CandidateModels, known.models).select(playing)
        others = proposals(models, widths, box, seed, incumbents, context)
        # Points that were attached stay as they are: they are told again as they were.
        x, others = box.settable(x), box.settable(others)
        here = self._told.watched.X
        if not len(here):
            return _different(box, torch.cat([x.unsqueeze(0), others]))
        if context is not None:
            here = here[(here[:, d:] == context).all(dim=-1)]
        return _different(box, torch.cat([x.unsqueeze(0), here[:, :d], others]))

    def _sight(
        self,
        X: Tensor,
        bounds: RunningBounds,
        choices: Choices,
        look: Look,
        known: Bounds,
        wide: Tensor,
    ) -> Sight:
        i, playing = look.level, look.playing
        upper, lower, of_models = bounds.of(playing)
        if self._told.is_listed:
            mean, std = known.of_candidates[:2]  # pyright: ignore
            if choices.rows is not None:
                mean, std = mean[:, choices.rows], std[:, choices.rows]
        else:
            mean, std = moments(known.models, with_context(X, choices.context))
        mean = mean + known.offsets[:, None]
        index = mean.unsqueeze(1) + wide.unsqueeze(-1) * std.unsqueeze(1)  # (m, M, n)
        if len(index) > 1:
            rows = torch.arange(playing.shape[1], device=X.device).clamp_min(i)
            index = index.masked_fill(~playing[:, rows].unsqueeze(-1), -math.inf)
        index = index.amax(dim=0)
        row, is_held = self._suspect(X, choices)
        return Sight(
            upper,
            lower,
            of_models,
            bounds.average_upper,
            bounds.average_lower,
            bounds.counts,
            bounds.sums,
            index,
            row,
            is_held,
        )

    def _suspect(self, X: Tensor, choices: Choices) -> tuple[int | None, bool]:
        """The row of the suspect among the points to choose from, and whether it is pending."""
        if self.ledger.suspect is None:
            return None, False
        suspect = self.ledger.suspect.trial
        if any(self._point(id) == self._point(suspect) for id in self.pending):
            return None, True
        if any(self._point(id) == self._point(suspect) for id in self.history.failed):
            return None, False  # its evaluation fails
        if self._told.is_listed and choices.rows is None:
            return cast(int, self._point(suspect)), False
        if self._told.is_listed:
            found = cast(Tensor, choices.rows) == cast(int, self._point(suspect))
        else:
            point = self.history.trials[suspect].point
            found = (with_context(X, choices.context) == point).all(dim=-1)
        rows = found.nonzero()
        return (int(rows[0]) if len(rows) else None), False

    def _point(self, id: int) -> int | tuple[float, ...]:
        """An identifier of the point of a trial: its row, or its coordinates."""
        trial = self.history.trials[id]
        return trial.info["index"] if self._told.is_listed else self._points[id]

    def _player(self, known: Bounds, look: Look, at: Tensor, info: dict[str, Any]) -> int:
        """The position of the model whose index is the highest at a joint row."""
        playing = look.playing[:, look.level]
        if len(playing) == 1:
            return 0
        if known.of_candidates is not None:
            mean, std = (values[:, info["index"]] for values in known.of_candidates[:2])
        else:
            mean, std = (values[:, 0] for values in moments(known.models, at.unsqueeze(0)))
        index = mean + known.widths * std + known.offsets
        return int(first_highest(index.masked_fill(~playing, -math.inf)))

    def _wide(self, known: Bounds) -> Tensor:
        """The widths of the index of each model, enlarged for each level, ``m x M``."""
        root = ((known.models.num_observations + 1) / known.models.noise_variance).sqrt()
        return torch.addcmul(known.widths[:, None], root[:, None], root.new_tensor(self.levels))

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> Any:
        record, name = super()._recall(trial), f"info of trial {trial.id}"
        if record.level >= self.terms.num_levels:
            raise ValueError(
                f"level in the {name} must be less than {self.terms.num_levels}, got {record.level}"
            )
        choice = decoded(InsuranceChoice, trial.info, name, among_others=True)
        choice.check(self.terms, trial.id, name)
        if not self._told.is_listed:
            self._recorded_rows(trial)
        self._begin(record)
        return record

    def _recorded_rows(self, trial: Trial) -> Tensor:
        """The rows that ``info`` of a trial adds to the watched ones, checked."""
        point, name = trial.point, f"watched in the info of trial {trial.id}"
        rows = trial.info["watched"] or point.new_zeros(0, len(point))
        X = checked_rows(rows, len(point), point, name).reshape(-1, len(point))
        positions = self._told.watched.positions(torch.cat([X, point.unsqueeze(0)]))
        has_point = positions[-1] is not None or bool((X == point).all(dim=-1).any())
        if not has_point or not X.isfinite().all():
            raise ValueError(
                f"{name} must be finite rows, of which one is its point unless that is watched "
                f"already, got {trial.info['watched']}"
            )
        return X

    def _absorb(self, event: Event) -> None:
        if isinstance(event, Asked | Attached):
            self._enter(event.trial)
        super()._absorb(event)
        self._told.absorb(event, self.history)
        if isinstance(event, Told | Attached):
            row = self.history.trials[event.id].info.get("index")
            self._told.observe(self._points[event.id], row, event.value)

    def _follow(self, trial: Trial, look: Look) -> None:
        """Updates what a subclass keeps, for a trial that the method chose."""

    def _enter(self, trial: Trial) -> None:
        """Updates bounds, ledger and watched points for a trial that was asked or attached."""
        told, point = self._told, trial.point.unsqueeze(0)
        # On a finite set the row identifies the point, and the host does not wait.
        self._points.append(() if told.is_listed else tuple(point[0].tolist()))
        if not self._is_play(trial.id):
            if not told.is_listed:
                self._rows.catch_up()
                told.watch(point, told.told(self._rows, self.history))
        else:
            look, choice = (
                cast(Look, self._seen),
                decoded(InsuranceChoice, trial.info, "info", True),
            )
            self._seen, told.watched.bounds = None, look.bounds
            level, given_up = trial.info["level"], trial.info.get("refuted", ())
            if self._is_corrected:
                level, given_up = look.level, look.refuted
            self.ledger = self.ledger.at(level).charged(choice, trial.id)
            for refuted in given_up:
                self.refutations.append({"trial": trial.id} | deepcopy(refuted))
            if not told.is_listed:
                told.watch(self._recorded_rows(trial), look.told)
            self._follow(trial, look)
        told.keep(point)


def _different(box: Box, X: Tensor) -> Tensor:
    """The ``n x d`` points without those that equal an earlier one up to rounding."""
    keys = (box.to_unit(X) * 1e9).round().tolist()
    rows = {tuple(key): row for row, key in reversed(list(enumerate(keys)))}
    return X[torch.tensor(sorted(rows.values()), device=X.device)]
