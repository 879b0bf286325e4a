"""Noisy expected improvement, averaged over hyperparameter samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.domains.contexts import with_context
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Cloud, telling
from botorch_ext.hyperparameters.success import SuccessModel
from botorch_ext.records import Finite, NonNegative
from botorch_ext.search.improvement import (
    ImprovementElsewhere,
    ImprovementOnSet,
    IntegratedImprovement,
    WhereSuccessful,
)
from botorch_ext.search.objectives import Objective
from botorch_ext.search.trust_region import MANY_DIMENSIONS, region_around, side_length
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy, PlayedParticles

# The number of draws of each model's values, half of them the mirror images of the others.
_NUM_DRAWS = 8
# The largest number of observations that the search for the next point uses.
_MOST_ROWS = 1000
# The least probabilities of success of a point that is asked, and of one that is recommended, where
# another one has them.
_LEAST_SUCCESS, _LEAST_RECOMMENDED = 0.5, 0.9


@dataclass(frozen=True, kw_only=True)
class PlayedImprovement(PlayedParticles):
    """The record of a trial that an `ImprovementStrategy` chose.

    Args:
        log_improvement: The log of the expected improvement.
        success: The probability of success, if a trial had failed before.
    """

    log_improvement: Finite
    success: NonNegative | None = None


class ImprovementStrategy(ParticleStrategy):
    """Asks the point with the largest noisy expected improvement, averaged over hyperparameter
    samples.

    The hyperparameters are a lengthscale for each column, the noise variance, and the smoothness of
    the function, between a Matern 5/2 and an RBF kernel. `Particles` says how the samples are drawn
    and updated. The value to improve on is drawn several times for each sample: from the posterior
    of the values at the evaluated and pending points. If the points to choose from are listed, a
    point may be asked again, and the gain from another observation of it counts too; not if
    ``deterministic`` is True.

    Once a trial has failed (``abandon(trial, failed=True)``), a `SuccessModel` learns from the
    failed trials and from those with a result where trials succeed. The point asked then has the
    largest product of the improvement and the probability of success. Points at which success is
    less likely than 0.5 are asked only if no other point is found, and those at which it is less
    likely than 0.9 are recommended only then. A failed point does not count as pending, and is not
    asked again in the same context unless every listed point has failed there.

    In a box of more than 20 dimensions, all continuous and without constraints, the first points
    lie in the middle half of each side, and the next ones in a trust region, a smaller box around
    the point with the largest posterior mean; neither holds with contexts. With more than 1,000
    observations the improvement uses a thousand of them. Source of the trust region: Eriksson et
    al. 2019.

    The arguments are those of `ParticleStrategy`, and so are the errors. ``info`` of a trial has
    its ``particles`` and ``index``, and

    - ``mean``, ``std``: the mean and the standard deviation of the mixture of all samples at the
      point, in units of the observations; pending trials count in the standard deviation;
    - ``log_improvement``: the log of the expected improvement, in standard deviations of the
      observations;
    - ``success``: the probability of success, once a trial has failed.

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
        if is_large and not self.history.outside:
            baseline = None  # all rows: the same result in less time

        def improvement(of: Ensemble) -> Any:
            inputs, like = of.inputs, of.constants
            shape = len(like), 2, len(told) + len(pending), _NUM_DRAWS // 2
            generator = torch.Generator().manual_seed(seed)
            normals = host.randn(shape, generator=generator, dtype=torch.float64).to(like)
            normals = torch.cat([normals, -normals], dim=-1)
            late = inputs.features(pending)
            at: Any = baseline
            if baseline is not None:
                at = inputs.features(with_context(baseline, context))
            own = IntegratedImprovement(of.model, late, at, normals, inputs, context)
            if self.deterministic:
                return ImprovementElsewhere(own, self._taken(context))
            if points is None:
                return own
            return ImprovementOnSet(own, of.with_pending(pending).model, at, inputs, context)

        def improvement_where_successful(of: Ensemble) -> Objective:
            failed = self._rows_of(sorted(self.history.failed), told)
            own = ImprovementElsewhere(improvement(of), self._among(failed, context))
            return self._where_successful(own, of, full, context, 1.0, _LEAST_SUCCESS)

        has_failed = bool(self.history.failed)
        objective = improvement_where_successful if has_failed else improvement
        region = self._region(known) if is_large and self.domain.dim > MANY_DIMENSIONS else None
        x, row, value = self._highest(objective, points, known, context, seed, region)
        at = with_context(x, context).unsqueeze(0)
        mean, std = full.with_pending(pending).mean_and_std(at)
        numbers = {"mean": mean, "std": std}
        if has_failed:
            (value,) = improvement(known).value(x.unsqueeze(0))
            success = self._success(full.parameters, full)
            numbers["success"] = success.log_probability(full.inputs.features(at)).exp()
        return x, row, numbers | {"log_improvement": value.unsqueeze(0).to(at)}

    def _mean_objective(
        self, known: Ensemble, context: Tensor | None
    ) -> Callable[[Ensemble], Objective]:
        mean = super()._mean_objective(known, context)
        if not self.history.failed:
            return mean

        def mean_where_successful(of: Ensemble) -> Objective:
            return self._where_successful(mean(of), of, known, context, 0.0, _LEAST_RECOMMENDED)

        return mean_where_successful

    def _where_successful(
        self,
        other: Objective,
        of: Ensemble,
        known: Ensemble,
        context: Tensor | None,
        weight: float,
        threshold: float,
    ) -> WhereSuccessful:
        """Another objective, with success under the hyperparameter samples ``of`` an ensemble."""
        success = self._success(of.parameters, known)
        return WhereSuccessful(other, success, weight, threshold, known.inputs, context)

    def _success(self, parameters: Tensor, known: Ensemble) -> SuccessModel:
        """The model of success under some hyperparameter samples, given all trials that have a
        result or failed."""
        failed = self._rows_of(sorted(self.history.failed), known.joint)
        told, inputs = known.outcomes.values, known.inputs
        F = inputs.features(torch.cat([known.joint, failed]))
        values = torch.cat([told, told.new_full((len(failed),), -math.inf)])
        rows = telling(F, values, _MOST_ROWS)
        return SuccessModel.of(parameters, inputs, F[rows], values[rows] > -math.inf)

    def _pending_rows(self, like: Tensor) -> Tensor:
        """The joint rows of pending trials; failed ones enter the model of success instead."""
        return self._rows_of(self.history.pending, like)

    def _region(self, known: Ensemble) -> Box | None:
        """The trust region around the point with the largest posterior mean."""
        box: Any = self.domain  # since it has no points
        if not box.is_filled:
            return None
        means, history = known.mean_at_rows(), self.history
        if history.outside:
            inside = box.contains(known.joint)
            if not bool(inside.any()):
                return None
            means = means.masked_fill(~inside, -math.inf)
        # The success of a region shows in the trials that were asked there.
        given, asked = self._initial_values.tolist(), []
        for id, value in history.values.items():
            if id not in history.outside:
                (given if history.is_attached(id) else asked).append(value)
        num_given = max(len(given), self.least_initial)
        length = side_length([*given, *asked], num_given, box.dim)
        return region_around(known.joint[means.argmax()], length, box)

    def _comparable(self, told: Tensor) -> Tensor:
        """The rows to improve on: those inside the domain if there are any, else all."""
        if not self.history.outside:
            return told
        inside = told[self.domain.contains(told[:, : self.domain.dim])]
        return inside if len(inside) else told
