"""Improvement: noisy expected improvement averaged over the hyperparameters that the data allow."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.domains.contexts import with_context
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Cloud, telling
from botorch_ext.search.improvement import ImprovementOnSet, IntegratedImprovement
from botorch_ext.search.trust_region import region_around, side_length
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy

# Draws of the values of each model, half of them the mirror images of the others.
_NUM_DRAWS = 8
# The search for the next point looks at no more observations.
_MOST_ROWS = 1000
# With more dimensions it stays in a trust region.
_MANY_DIMENSIONS = 20


class ImprovementStrategy(ParticleStrategy):
    """Asks where the noisy expected improvement, averaged over hyperparameters, is largest.

    The hyperparameters are particles of their posterior: a lengthscale for each column, the noise,
    and how smooth the function is, between a Matern 5/2 and an RBF kernel; `Particles` says how
    they are moved when data came.
    What is to be improved on is drawn, several times for each particle: the values at evaluated and
    at pending points that the observations allow. Where there are only certain points to choose
    from, one may be asked again: then what another observation there teaches counts too.
    In a box of more than 20 dimensions the next point is in a trust region, a smaller box around
    the point with the largest posterior mean. With more than 1,000 observations the improvement is
    given a thousand of them.

    Source of the region: Eriksson et al. 2019.

    ``info`` of a trial has ``mean`` and ``std`` of the mixture of all particles, in units of the
    observations, pending trials counting in the latter, ``log_improvement``, in standard deviations
    of the observations, and the particles as `ParticleStrategy` says, with its arguments and
    errors.
    """

    _numbers = ("mean", "std", "log_improvement")
    bends = True
    takes_outside = True

    def _choose(
        self, choices: Choices, cloud: Cloud, known: Ensemble, pending: Tensor, seed: int
    ) -> tuple[Tensor, int | None, list[Tensor]]:
        full, context, points = known, choices.context, self._candidates(choices)
        is_large = points is None and context is None and self._is_large(known)
        if is_large:
            F, outcomes = known.inputs.features(known.joint), known.outcomes
            known = known.of_rows(telling(F, outcomes.values, _MOST_ROWS))
        told = known.joint
        places: Tensor | None = torch.cat([self._comparable(told), pending])[:, : self.domain.dim]
        if choices.actions is not None:  # what is not there now cannot be improved on
            places = choices.actions
        if is_large and not self.history.outside:
            places = None  # all rows, the same, in less time

        def improvement(of: Ensemble) -> Any:
            inputs, like = of.inputs, of.constants
            shape = len(like), 2, len(told) + len(pending), _NUM_DRAWS // 2
            generator = torch.Generator().manual_seed(seed)
            normals = torch.randn(shape, generator=generator, dtype=torch.float64).to(like)
            normals = torch.cat([normals, -normals], dim=-1)
            late = inputs.features(pending)
            at: Any = None if places is None else inputs.features(with_context(places, context))
            own = IntegratedImprovement(of.model, late, at, normals, inputs, context)
            if points is None:
                return own
            return ImprovementOnSet(own, of.with_pending(pending).model, at, inputs, context)

        region = self._region(known) if is_large and self.domain.dim > _MANY_DIMENSIONS else None
        x, row, value = self._highest(improvement, points, known, context, seed, region)
        at = with_context(x, context).unsqueeze(0)
        return x, row, [*full.with_pending(pending).mean_and_std(at), value.unsqueeze(0).to(at)]

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
        # Whether a region is a success shows in what was asked there.
        given, asked = self._initial_values.tolist(), []
        for id, value in history.values.items():
            if id not in history.outside:
                (given if history.is_attached(id) else asked).append(value)
        num_given = max(len(given), self.least_initial)
        length = side_length([*given, *asked], num_given, box.dim)
        return region_around(known.joint[means.argmax()], length, box)

    def _comparable(self, told: Tensor) -> Tensor:
        """The rows that can be improved on: those of the domain, where there are any."""
        if not self.history.outside:
            return told
        inside = told[self.domain.contains(told[:, : self.domain.dim])]
        return inside if len(inside) else told
