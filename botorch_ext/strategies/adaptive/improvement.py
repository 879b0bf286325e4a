"""Noisy expected improvement, averaged over hyperparameter samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, host
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.domains.ranks import first_highest
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.feasibility import AllOf, Feasibility
from botorch_ext.hyperparameters.particles import Cloud, Particles, telling
from botorch_ext.limits import LEAST_FEASIBILITY, Limit, checked_limits
from botorch_ext.records import Finite, NonNegative
from botorch_ext.search.improvement import (
    ImprovementElsewhere,
    ImprovementOnSet,
    IntegratedImprovement,
    TimesProbability,
    WhereLikely,
)
from botorch_ext.search.objectives import Objective
from botorch_ext.search.trust_region import MANY_DIMENSIONS, region_around, side_length
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.particle_models import ParticleModels
from botorch_ext.strategies.adaptive.particle_strategy import (
    ParticleStrategy,
    PlayedParticles,
    RecordedCloud,
)
from botorch_ext.strategies.events import Trial
from botorch_ext.strategies.initial_checks import InitialData

# The number of draws of each model's values, half of them the mirror images of the others.
_NUM_DRAWS = 8
# The largest number of observations that the search for the next point uses.
_MOST_ROWS = 1000
# The least probability of success of a point that is asked, where another one has it.
_LEAST_SUCCESS = 0.7
# The prior of the noise variance of outcomes. They may be exact, and only with little noise is a
# point near a limit known to keep it.
_NOISE_OF_OUTCOMES: dict[str, Any] = {
    "noise": (1e-6, 4.0),
    "noise_location": -6.0,
    "noise_spread": 3.0,
}
# The exponent of the probability that all limits hold: with 1, trials break limits more often and
# regrets are larger.
_WEIGHT = 2.0
# The least probability of each limit at a point to improve on.
_LEAST_TO_IMPROVE_ON = 0.5


@dataclass(frozen=True, kw_only=True)
class PlayedImprovement(PlayedParticles):
    """The record of a trial that an `ImprovementStrategy` chose.

    Args:
        log_improvement: The log of the expected improvement.
        success: The probability of success, if a trial had failed before.
        within_limits: The probability that all outcomes are within their limits, if there are any.
        outcome_particles: The particles of each outcome, with those of the value.
    """

    log_improvement: Finite
    success: NonNegative | None = None
    within_limits: NonNegative | None = None
    outcome_particles: tuple[RecordedCloud, ...] | None = None


class ImprovementStrategy(ParticleStrategy):
    """Asks the point with the largest noisy expected improvement, averaged over hyperparameter
    samples.

    The hyperparameters are a lengthscale for each column, the noise variance, and the smoothness of
    the function, between a Matern 5/2 and an RBF kernel. `Particles` says how the samples are drawn
    and updated. The value to improve on is drawn several times for each sample: from the posterior
    of the values at the evaluated and pending points. If the points to choose from are listed, a
    point may be asked again, and the gain from another observation of it counts too; not if
    ``deterministic`` is True.

    Once a trial has failed (``abandon(trial, failed=True)``), a `Feasibility` learns from the
    failed trials and from those with a result where trials succeed. The point asked then has the
    largest product of the improvement and the probability of success. Points at which success is
    less likely than 0.7 are asked only if no other point is found, and those at which it is less
    likely than 0.9 are recommended only then. A failed point does not count as pending, and is not
    asked again in the same context unless every listed point has failed there.

    With ``outcomes`` each result has other measured numbers too, which have limits. Every outcome
    has hyperparameter samples of its own, with a prior under which it may be exact. The point asked
    has the largest product of the improvement and the square of the probability that all outcomes,
    without their noise, are within their limits.
    The improvement is that on points at which each limit holds with probability 0.5 or more or, if
    there are none, on the point with the lowest mean. `best` gives the best point whose outcomes
    were measured within the limits, and `recommend` one that keeps them with probability 0.9; if
    none is found, the point that is likeliest to keep them.

    In a box of more than 20 dimensions, all continuous and without constraints, the first points
    lie in the middle half of each side, and the next ones in a trust region, a smaller box around
    the point with the largest posterior mean among those to improve on (with limits and none to
    improve on, the likeliest to keep them); neither holds with contexts. With more than 1,000
    observations the improvement uses a thousand of them. Source of the trust region: Eriksson et
    al. 2019.

    The other arguments are those of `ParticleStrategy`, and so are the errors. ``info`` of a trial
    has its ``particles`` and ``index``, and

    - ``mean``, ``std``: the mean and the standard deviation of the mixture of all samples at the
      point, in units of the observations; pending trials count in the standard deviation;
    - ``log_improvement``: the log of the expected improvement, in standard deviations of the
      observations;
    - ``success``: the probability of success, once a trial has failed;
    - ``within_limits``: the probability that all outcomes are within their limits; and
      ``outcome_particles``, a list of the particles of each outcome.

    Args:
        outcomes: The limits of outcomes by name: `AtMost`, `AtLeast`, or texts such as
            ``"<= 5.0"``. Every result must then have these outcomes. None: no outcomes.

    Example:
        >>> import botorch_ext as bx
        >>> points = bx.FiniteSet([[0.0], [0.5], [1.0]])
        >>> strategy = bx.algorithms.integrated_ei(points, num_initial=3)
        >>> for trial in strategy.ask(3):
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> sorted(strategy.ask().info)
        ['index', 'log_improvement', 'mean', 'particles', 'std']
    """

    record = PlayedImprovement
    bends = True
    starts_near_middle = True
    takes_outside = True

    def __init__(
        self,
        domain: Domain,
        particles: Particles | None = None,
        *,
        seed: int = 0,
        initial: InitialData | None = None,
        num_initial: int | None = None,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
        deterministic: bool = False,
        outcomes: Mapping[str, Limit | str] | None = None,
    ) -> None:
        super().__init__(
            domain,
            particles,
            seed=seed,
            initial=initial,
            num_initial=num_initial,
            context_domain=context_domain,
            minimize=minimize,
            deterministic=deterministic,
        )
        if outcomes is not None and initial is not None:
            raise ValueError("initial must be None with outcomes: attach results with theirs")
        self._set_limits({} if outcomes is None else checked_limits(outcomes, "outcomes"))
        settings = self.particles
        if not deterministic:
            settings = replace(settings, prior=replace(settings.prior, **_NOISE_OF_OUTCOMES))
        self._outcome_models = [
            ParticleModels(settings, limit=limit) for limit in self.limits.values()
        ]

    def _choose(
        self, choices: Choices, cloud: Cloud, known: Ensemble, pending: Tensor, seed: int
    ) -> tuple[Tensor, int | None, dict[str, Tensor]]:
        full, context, points = known, choices.context, self._candidates(choices)
        is_large = points is None and context is None and self._is_large(known)
        if is_large:
            F, outcomes = known.inputs.features(known.joint), known.outcomes
            known = known.of_rows(telling(F, outcomes.values, _MOST_ROWS))
        told = known.joint
        baseline: Tensor | None = torch.cat([self._comparable(told), pending])[:, : self.domain.dim]
        if choices.actions is not None:  # improvement is over the actions of this ask alone
            baseline = choices.actions
        if is_large and not (self.history.outside or self.limits):
            baseline = None  # all rows: the same result in less time
        features, late = full.inputs.in_context(context), full.inputs.features(pending)
        later = within_limits = self._within_limits(context)
        if within_limits is not None:
            baseline = self._to_improve_on(cast(Tensor, baseline), within_limits, full, context)
            # At a pending point that is likely to break a limit, there is nothing to gain again.
            later = within_limits.with_pending(late)

        def improvement(of: Ensemble) -> Any:
            shape = len(of.parameters), 2, len(told) + len(pending), _NUM_DRAWS // 2
            generator = torch.Generator().manual_seed(seed)
            normals = host.randn(shape, generator=generator, dtype=torch.float64).to(of.constants)
            normals = torch.cat([normals, -normals], dim=-1)
            at: Any = None if baseline is None else features.at(baseline)
            own = IntegratedImprovement(of.model, late, at, normals, features)
            if self.deterministic:
                return ImprovementElsewhere(own, self._taken(context))
            if points is None:
                return own
            return ImprovementOnSet(own, of.with_pending(pending).model, at, features)

        failed = self._rows_of(sorted(self.history.failed), told)

        def feasible_improvement(of: Ensemble) -> Objective:
            own = improvement(of)
            if later is not None:
                own = TimesProbability(own, later, _WEIGHT, features)
            if not len(failed):
                return own
            own = ImprovementElsewhere(own, self._among(failed, context))
            success = self._success(of.parameters, full)
            return WhereLikely(own, success, 1.0, _LEAST_SUCCESS, features)

        has_region = is_large and self.domain.dim > MANY_DIMENSIONS
        region = self._region(known, within_limits) if has_region else None
        x, row, value = self._highest(feasible_improvement, points, known, context, seed, region)
        at = with_context(x, context).unsqueeze(0)
        mean, std = full.with_pending(pending).mean_and_std(at)
        numbers, F = {"mean": mean, "std": std}, full.inputs.features(at)
        if within_limits is not None or len(failed):
            (value,) = improvement(known).value(x.unsqueeze(0))
        if len(failed):
            success = self._success(full.parameters, full)
            numbers["success"] = success.log_probability(F).exp()
        if within_limits is not None:
            numbers["within_limits"] = within_limits.log_probability(F).exp()
        return x, row, numbers | {"log_improvement": value.unsqueeze(0).to(at)}

    # --- where trials succeed, and limits hold ----------------------------------------------------

    def _to_improve_on(
        self, actions: Tensor, within_limits: Feasibility, known: Ensemble, context: Tensor | None
    ) -> Tensor:
        """The actions at which each limit holds with probability 0.5 or more; if there are none,
        the one with the lowest mean."""
        joint = with_context(actions, context)
        feasible = _are_likely(within_limits.log_probabilities(known.inputs.features(joint)))
        if bool(feasible.any()) or not len(actions):
            return actions[feasible]
        return actions[first_highest(-known.mean(joint))]

    def _within_limits(self, context: Tensor | None) -> Feasibility | None:
        """The probability that all limits hold, given the data so far; None without limits or
        data."""
        if not self.limits or not self._num_data:
            return None
        places = range(len(self.limits))
        return Feasibility.within_limits([self._outcome(place, context)[1] for place in places])

    def _outcome(self, place: int, context: Tensor | None) -> tuple[Cloud, Ensemble]:
        """The particles of an outcome given the data so far, and their models."""
        name, history = self.outcome_names[place], self.history

        def measured() -> tuple[Tensor, None]:
            own = [history.outcomes[id][name] for id in history.values]
            return host.tensor(own, dtype=torch.float64), None

        return self._given(self._outcome_models[place], measured, context)

    def _fits(self, context: Tensor | None) -> list[tuple[ParticleModels, Cloud]]:
        outcomes = [
            (models, self._outcome(place, context)[0])
            for place, models in enumerate(self._outcome_models)
        ]
        return super()._fits(context) + outcomes

    def _recall(self, trial: Trial) -> PlayedParticles:
        played: Any = super()._recall(trial)
        records = played.outcome_particles or ()
        num = len(self.limits) if played.particles is not None else 0
        name = f"outcome_particles in the info of trial {trial.id}"
        if len(records) != num:
            raise ValueError(f"{name} must be those of {num} outcomes, got {len(records)}")
        for models, record in zip(self._outcome_models, records, strict=False):
            models.adopt(self._cloud_of(record, trial, name), self._num_data)
        return played

    def _forget_fits(self, id: int) -> None:
        super()._forget_fits(id)
        for models in self._outcome_models:
            models.forget()

    def _events(self, of: Ensemble, known: Ensemble, context: Tensor | None) -> AllOf:
        """That a trial succeeds, if trials have failed, under hyperparameter samples ``of`` an
        ensemble, and that its outcomes are within their limits, if there are any."""
        success = [self._success(of.parameters, known)] if self.history.failed else []
        within_limits = self._within_limits(context)
        return AllOf([*success, *([] if within_limits is None else [within_limits])])

    def _mean_objective(
        self, known: Ensemble, context: Tensor | None
    ) -> Callable[[Ensemble], Objective]:
        mean, features = super()._mean_objective(known, context), known.inputs.in_context(context)
        if not self.history.failed and not self.limits:
            return mean

        def mean_where_likely(of: Ensemble) -> Objective:
            events = self._events(of, known, context)
            return WhereLikely(mean(of), events, 0.0, LEAST_FEASIBILITY, features)

        return mean_where_likely

    def _most_promising(self, known: Ensemble, context: Tensor | None) -> Tensor:
        x = super()._most_promising(known, context)
        feasibility = self._feasibility(x, context) if self.limits else None
        if feasibility is None or feasibility >= LEAST_FEASIBILITY:
            return x

        def probability(of: Ensemble) -> Objective:
            events = self._events(of, known, context)
            return TimesProbability(None, events, 1.0, known.inputs.in_context(context))

        return self._best_of(probability, known, context)

    def _feasibilities(self, rows: Tensor, context: Tensor | None) -> Tensor | None:
        if not self.limits and not self.history.failed:
            return None
        known = self._current(context)[1]
        F = known.inputs.features(rows)
        found = self._events(known, known, context).log_probability(F).exp()
        if self.deterministic:  # what was measured is known, also where a limit is just kept
            X, _ = self._maximised()
            for kept in X[self._are_eligible(len(X))]:
                found = found.masked_fill((rows == kept).all(dim=-1), 1.0)
        return found

    def _success(self, parameters: Tensor, known: Ensemble) -> Feasibility:
        """The model of success under some hyperparameter samples, given all trials that have a
        result or failed."""
        failed = self._rows_of(sorted(self.history.failed), known.joint)
        told, inputs = known.outcomes.values, known.inputs
        F = inputs.features(torch.cat([known.joint, failed]))
        values = torch.cat([told, told.new_full((len(failed),), -math.inf)])
        rows = telling(F, values, _MOST_ROWS)
        return Feasibility.of_trials(parameters, inputs, F[rows], values[rows] > -math.inf)

    def _pending_rows(self, like: Tensor) -> Tensor:
        """The joint rows of pending trials; failed ones enter the model of success instead."""
        return self._rows_of(self.history.pending, like)

    def _region(self, known: Ensemble, within_limits: Feasibility | None) -> Box | None:
        """The trust region around the point with the largest posterior mean among those that are
        likely to keep each limit or, if there are none, around the likeliest one."""
        box: Any = self.domain  # since it has no points
        if not box.is_filled:
            return None
        joint, scores, history = known.joint, known.mean_at_rows(), self.history
        if history.outside:
            inside = box.contains(joint)
            if not bool(inside.any()):
                return None
            joint, scores = joint[inside], scores[inside]
        if within_limits is not None:
            logs = within_limits.log_probabilities(known.inputs.features(joint))
            likely = _are_likely(logs)
            scores = scores.masked_fill(~likely, -math.inf)
            scores = torch.where(likely.any(), scores, logs.sum(dim=0))
        # The success of a region shows in the trials that were asked there. Results that break a
        # limit are no success, and no failure before the first one that keeps all limits.
        given, asked = [(value, True) for value in self._initial_values.tolist()], []
        for id, value in history.values.items():
            if id not in history.outside:
                own = given if history.is_attached(id) else asked
                own.append((value, history.is_eligible(id)))
        lowest = min(value for value, _ in (*given, *asked))
        values = [value if keeps else lowest for value, keeps in (*given, *asked)]
        first = [keeps for _, keeps in (*given, *asked, (0.0, True))].index(True)
        length = side_length(values, max(len(given), self.least_initial, first), box.dim)
        return region_around(joint[scores.argmax()], length, box)

    def _comparable(self, told: Tensor) -> Tensor:
        """The rows to improve on: those inside the domain if there are any, else all."""
        if not self.history.outside:
            return told
        inside = told[self.domain.contains(told[:, : self.domain.dim])]
        return inside if len(inside) else told


def _are_likely(logs: Tensor) -> Tensor:
    """Whether each limit holds with probability 0.5 or more, from ``k x n`` log probabilities."""
    return (logs >= math.log(_LEAST_TO_IMPROVE_ON)).all(dim=0)
