"""Insured: optimism that probes, within a budget, whether its model is wrong."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Unpack, cast

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.contexts import with_context
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.highest import best_in_box
from botorch_ext.search.proposals import proposals
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds import Bounds, Models
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.insurance import Choice, Insurance, Ledger, Sight, Terms
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.strategies.adaptive.pending import PendingPolicy, PendingRows
from botorch_ext.strategies.adaptive.running_bounds import RunningBounds
from botorch_ext.strategies.adaptive.watched_points import WatchedPoints
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.widths import SelfNormalized, Width


@dataclass(eq=False)
class _Look:
    """What follows from told data alone, before a step chooses.

    Args:
        told: The models of the told data.
        bounds: The running bounds of what is watched, with this look at the models.
        ledger: At the level that is not refuted.
        playing: ``m x M``, the models whose bounds count at each level.
        refuted: The levels given up just now, and where: what ``info`` says of it.
    """

    told: Models
    bounds: RunningBounds
    ledger: Ledger
    playing: Tensor
    refuted: list[dict[str, Any]]


class InsuredStrategy(BoundsStrategy):
    """Optimism that may stay switched on whatever the misspecification: within a budget it
    evaluates points that its model excludes, and gives up levels of misspecification that the data
    contradict.

    ``info`` of a trial has what `BoundsStrategy` records, of the index; the ``level`` that is not
    refuted; the ``kind``: "exploit" (what the plain method plays), "probe" or "follow-up" (a probe
    repeated); its ``cost``, what it loses at most if the level holds; of the latter two the level
    that is ``suspected`` and the ``purse`` they are charged to; what ``suspect`` is on hold; and
    under ``refuted`` the levels given up at this step, and where. On a box, or with contexts,
    ``watched`` has the joint rows whose bounds are kept from then on.

    Args:
        domain: A `Box` or a `FiniteSet`, of actions.
        model: A `KernelGP` without data, or `CandidateModels`.
        rkhs_bound: B, at least the RKHS norm of f.
        noise_std: sigma, the sub-Gaussian constant of the noise.
        delta: Failure probability, of the bounds of the models and of the averages each.
        width: Of the index alone; None for `SelfNormalized`, which the tests always use.
        terms: What the insurance may cost; `Terms()` if None.
        stays: Whether what is exploited must be a point that the level has not excluded.
        credibility: How far the log evidence of a model that plays may lie below the largest; None
            for ln(m / delta) with m models.
        options: See `BoundsStrategy`; the pending policy is "hallucinate": pending trials count in
            the index, told data alone in bounds and tests.

    Raises:
        ValueError: What `BoundsStrategy` raises, models that have data, an impossible number or
            another pending policy.
    """

    takes_shards = False

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
        if options.get("pending", "hallucinate") != "hallucinate" or options.get("inflate"):
            raise ValueError('pending must be "hallucinate", not inflated, for insured methods')
        self._published = SelfNormalized(
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
        self.levels: list[float] = self.terms.levels(self._published.rkhs_bound)
        # Their rows have told data alone; kept from the first ask at which a trial pends.
        self._told: PendingRows[Models] | None = None
        X = domain.like[:0]
        if isinstance(domain, FiniteSet) and self.context_space is None:
            X = domain.points
        self._is_listed = bool(len(X))
        self._watched = WatchedPoints(X, self._prior_bounds(X))
        # From the place of an observed joint row to its number in the order of observation.
        self._numbers: dict[tuple[float, ...], int] = {}
        self._looked: tuple[dict[str, Any], _Look, Choice] | None = None
        self.refutations: list[dict[str, Any]] = []
        if self.initial is not None:
            X, Y = self.initial
            self._watch(X.unique(dim=0))
            rows = self._initial_data_rows if self._is_listed else [None] * len(X)
            for x, row, value in zip(X, rows, Y.tolist(), strict=True):
                self._observe(x, row, value)

    @property
    def terms(self) -> Terms:
        """What the insurance may cost."""
        return self.insurance.terms

    @property
    def first_step(self) -> int:
        """t of trial 0: one more than the initial observations."""
        return self._num_data_before + 1

    def report(self) -> dict[str, Any]:
        ledger, t = self.ledger, self.next_step
        return super().report() | {
            "level": ledger.level,
            "misspecification": self.levels[ledger.level],
            "may_have_lost": ledger.lost,
            "budget": self.terms.budget(ledger.lost, self._published.rkhs_bound, t),
            "charged": {"large": list(ledger.large), "small": list(ledger.small)},
            "suspect": None if ledger.suspect is None else vars(ledger.suspect).copy(),
            "refuted": deepcopy(self.refutations),
        }

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        look = self._look()
        known = self._bounds(self._rows.posterior, choices.context)
        wide = self._wide(known)
        X, bounds = self._on_offer(choices, look, known, wide)
        sight = self._sight(X, bounds, choices, look, known, wide)
        t = self.next_step
        choice, seen = self.insurance.decide(sight, look.ledger, t)
        x, info = X[choice.row].clone(), {}
        if isinstance(self.domain, FiniteSet) or choices.actions is not None:
            info |= choices.places(choice.row)
        at = with_context(x, choices.context)
        position = self._player(known, look.playing, at, info)
        info |= self._record(known, position, info["index"] if known.on_candidates else at)
        info |= {"level": look.ledger.level} | choice.record()
        if look.refuted:
            info["refuted"] = look.refuted
        if not self._is_listed:
            rows = with_context(X[[choice.row, *seen]], choices.context)
            places = dict(zip(map(tuple, rows.tolist()), self._watched.places(rows), strict=True))
            info["watched"] = [list(row) for row, place in places.items() if place is None]
        self._decided, self._looked = info, (info, look, choice)
        return x, info

    def _look(self) -> _Look:
        """Looks at the models of the told data; nothing that shows is changed."""
        told, watched = self._told_models(), self._watched
        bounds, ledger = watched.bounds, self.ledger
        mean, std = self._moments(told, watched.X)
        bounds = bounds.tightened(mean, std, self._widths(told))
        refuted = bounds.refuted()  # (m, M)
        may = cast(Credible, self.judge).contenders(self)
        if may is None:
            may = torch.ones_like(refuted[:, 0])
        read = torch.cat([refuted, may.unsqueeze(-1)], dim=-1).tolist()  # the host waits
        credible = [model for model, own in enumerate(read) if own[-1]]
        level, given_up = ledger.level, []
        while level < self.terms.num_levels - 1 and all(read[u][level] for u in credible):
            given_up.append(self._refutation(bounds, level, credible[0]))
            level += 1
        playing = may.unsqueeze(-1) & ~refuted
        playing = torch.where(playing.any(dim=0), playing, may.unsqueeze(-1))
        return _Look(told, bounds, ledger.at(level), playing, given_up)

    def _refutation(self, bounds: RunningBounds, level: int, model: int) -> dict[str, Any]:
        """Where a model contradicts itself most at a level."""
        lower = torch.maximum(bounds.lower[model, level], bounds.average_lower)
        upper = torch.minimum(bounds.upper[model, level], bounds.average_upper)
        row = int((lower - upper).argmax())
        return {
            "level": level,
            "point": self._watched.X[row].tolist(),
            "lower": float(lower[row]),
            "upper": float(upper[row]),
        }

    def _on_offer(
        self, choices: Choices, look: _Look, known: Bounds, wide: Tensor
    ) -> tuple[Tensor, RunningBounds]:
        """The points to choose from, ``n x d``, of a box those that are worth a look, with their
        running bounds."""
        context, watched = choices.context, self._watched
        X = choices.points(self.domain)
        if self._is_listed:
            bounds = look.bounds
            return cast(Tensor, X), bounds if choices.rows is None else bounds.rows(choices.rows)
        if X is None:
            X = self._worth_a_look(look, known, wide)
        joint = with_context(X, context)
        fresh = self._prior_bounds(joint)
        fresh = fresh.tightened(*self._moments(look.told, joint), self._widths(look.told))
        places = watched.places(joint)
        if all(place is None for place in places):
            return X, fresh
        n = len(watched.X)
        rows = [n + i if place is None else place for i, place in enumerate(places)]
        return X, look.bounds.joined(fresh).rows(torch.tensor(rows, device=X.device))

    def _worth_a_look(self, look: _Look, known: Bounds, wide: Tensor) -> Tensor:
        box, context, d = cast(Any, self.domain), known.context, self.domain.dim
        seed, incumbents = self._seed_of(len(self.history.trials)), self._incumbents()
        i = look.ledger.level
        playing = look.playing[:, i].nonzero().flatten().tolist()
        x, _ = best_in_box(known.upper(), box, seed, incumbents, playing)
        own = self._widths(look.told)[:, i : i + 1]
        widths = torch.cat([wide[:, max(i, 1) :], own, -own], dim=-1)[playing]
        models = cast(CandidateModels, known.models).select(playing)
        others = proposals(models, widths, box, seed, incumbents, context)
        here = self._watched.X
        if context is not None:
            here = here[(here[:, d:] == context).all(dim=-1)] if len(here) else here
        return torch.cat([x.unsqueeze(0), here[:, :d], others])

    def _sight(
        self,
        X: Tensor,
        bounds: RunningBounds,
        choices: Choices,
        look: _Look,
        known: Bounds,
        wide: Tensor,
    ) -> Sight:
        i, playing = look.ledger.level, look.playing
        upper, lower, of_models = bounds.of(playing)
        if self._is_listed:
            mean, std = known.of_candidates[:2]  # pyright: ignore
            if choices.rows is not None:
                mean, std = mean[:, choices.rows], std[:, choices.rows]
        else:
            mean, std = self._moments(known.models, with_context(X, choices.context))
        index = mean.unsqueeze(1) + wide.unsqueeze(-1) * std.unsqueeze(1)  # (m, M, n)
        if len(index) > 1:
            rows = torch.arange(playing.shape[1], device=X.device).clamp_min(i)
            index = index.masked_fill(~playing[:, rows].unsqueeze(-1), -math.inf)
        index = index.amax(dim=0)
        row, is_held = self._suspect(look.ledger, X, choices)
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

    def _suspect(self, ledger: Ledger, X: Tensor, choices: Choices) -> tuple[int | None, bool]:
        """The row of the suspect among those on offer, and whether it pends somewhere."""
        if ledger.suspect is None:
            return None, False
        trials = self.history.trials
        point = trials[ledger.suspect.trial].point
        if any(torch.equal(trials[id].point, point) for id in self.pending):
            return None, True
        found = (with_context(X, choices.context) == point).all(dim=-1).nonzero()
        return (int(found[0]) if len(found) else None), False

    def _player(self, known: Bounds, playing: Tensor, at: Tensor, info: dict[str, Any]) -> int:
        """The position of the model whose index is the highest at a joint row, of those that play
        at level 0."""
        if len(playing) == 1:
            return 0
        if known.of_candidates is not None:
            mean, std = (values[:, info["index"]] for values in known.of_candidates[:2])
        else:
            mean, std = (v[:, 0] for v in self._moments(known.models, at.unsqueeze(0)))
        index = mean + known.widths * std
        return int(index.masked_fill(~playing[:, self.ledger.level], -math.inf).argmax())

    # --- widths and moments -----------------------------------------------------------------------

    def _widths(self, told: Models) -> Tensor:
        """``m x M``: of the bounds of each model at each level."""
        n, own = told.num_observations, told.width(self._published, 1)
        return own[:, None] + (n / told.noise_variance).sqrt()[:, None] * self._levels_like(own)

    def _wide(self, known: Bounds) -> Tensor:
        """``m x M``: of the index of each model, enlarged for each level."""
        models = known.models
        root = ((models.num_observations + 1) / models.noise_variance).sqrt()
        return known.widths[:, None] + root[:, None] * self._levels_like(root)

    def _levels_like(self, like: Tensor) -> Tensor:
        return like.new_tensor(self.levels)

    def _moments(self, models: Models, joint: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations at joint rows, ``m x n``; on a finite set at all of it."""
        if isinstance(models, FiniteCandidates):
            return models.mean, models.std
        if not len(joint):
            empty = joint.new_zeros(len(models), 0)
            return empty, empty
        with torch.no_grad():
            return models.mean_and_std(joint)

    def _prior_bounds(self, joint: Tensor) -> RunningBounds:
        models: Any = self._rows.posterior
        empty = joint.new_zeros(len(models), 0)
        prior = models.prior(joint) if len(joint) else (empty, empty)
        return RunningBounds(prior, self._published.rkhs_bound, self._levels_like(joint))

    def _told_models(self) -> Models:
        """The models of told data alone; those with pending rows where none pends."""
        self._rows.enter_newest()
        if self._told is None:
            rows = self._rows
            untold = rows.untold(self.history)
            if not untold:
                return rows.posterior
            posterior = rows.posterior.fork()
            for row in reversed(untold):
                posterior.remove(row)
            self._told = PendingRows(posterior, PendingPolicy("ignore"))
        return self._told.posterior

    # --- the fold ---------------------------------------------------------------------------------

    def _check_played(self, trial: Trial) -> None:
        super()._check_played(trial)
        name, info = f"info of trial {trial.id}", trial.info
        level = info.get("level")
        if type(level) is not int or not self.ledger.level <= level < self.terms.num_levels:
            raise ValueError(
                f"level in the {name} must be a whole number from {self.ledger.level} to "
                f"{self.terms.num_levels - 1}, got {level!r}"
            )
        Choice.recorded(info, name, self.terms, trial.id)
        if not self._is_listed:
            self._recorded_rows(trial, name)

    def _recorded_rows(self, trial: Trial, name: str) -> Tensor:
        """The rows that are watched from a trial on, or a ValueError."""
        like, point = self.domain.like, trial.point
        rows = trial.info.get("watched")
        try:
            X = like.new_tensor(rows).reshape(-1, len(point))
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"watched in the {name} must be joint rows, got {rows!r}") from error
        known = self._watched.places(torch.cat([X, point.unsqueeze(0)]))
        if not X.isfinite().all() or any(place is not None for place in known[:-1]):
            raise ValueError(f"watched in the {name} must be finite, new rows, got {rows!r}")
        if known[-1] is None and not bool((X == point).all(dim=-1).any()):
            raise ValueError(f"watched in the {name} must have the point that was asked")
        return X

    def _absorb(self, event: Event) -> None:
        decided, self._looked = self._looked, None
        if isinstance(event, Asked):
            self._enter(event.trial, decided)
        super()._absorb(event)
        if self._told is not None:
            self._told.absorb(event, self.history)
        if isinstance(event, Told):
            trial = self.history.trials[event.id]
            self._observe(trial.point, trial.info.get("index"), event.value)

    def _enter(self, trial: Trial, decided: tuple[dict[str, Any], _Look, Choice] | None) -> None:
        """Takes over what was seen and decided when a trial was asked."""
        point = trial.point
        if trial.id < len(self._initial_points):
            self._watch(point.unsqueeze(0))
        else:
            if decided is not None and decided[0] is trial.info:
                _, look, choice = decided
            else:
                look = self._look()
                choice = Choice.recorded(trial.info, "info", self.terms, trial.id)
            self._watched.bounds = look.bounds
            self.ledger = look.ledger.at(trial.info["level"]).charged(choice, trial.id)
            for refuted in trial.info.get("refuted", ()):
                self.refutations.append({"trial": trial.id} | deepcopy(refuted))
            if not self._is_listed:
                self._watch(self._recorded_rows(trial, "info"), look.told)
        if not self._is_listed:
            self._watched.keep(point)

    def _watch(self, X: Tensor, told: Models | None = None) -> None:
        """Watches joint rows that are not watched yet, with one look at the models, if given."""
        if self._is_listed:
            return
        new = [row for row, place in enumerate(self._watched.places(X)) if place is None]
        if not new:
            return
        X = X[new]
        bounds = self._prior_bounds(X)
        if told is not None:
            bounds = bounds.tightened(*self._moments(told, X), self._widths(told))
        self._watched.extend(X, bounds)

    def _observe(self, x: Tensor, row: int | None, value: float) -> None:
        number = self._numbers.setdefault(tuple(x.tolist()), len(self._numbers) + 1)
        union = float(len(self._watched.X)) if self._is_listed else (math.pi * number) ** 2 / 6
        place = row if self._is_listed else self._watched.place(x)
        bounds, sigma = self._watched.bounds, self._published.noise_std
        bounds.observe(cast(int, place), value, sigma, union, self._published.delta)
