"""Improvement: noisy expected improvement averaged over the hyperparameters that the data allow."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains.contexts import with_context
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Cloud
from botorch_ext.search.improvement import ImprovementOnSet, IntegratedImprovement
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy

# Draws of the values of each model, half of them the mirror images of the others.
_NUM_DRAWS = 8


class ImprovementStrategy(ParticleStrategy):
    """Asks where the noisy expected improvement, averaged over hyperparameters, is largest.

    The hyperparameters are particles of their posterior: a lengthscale for each column, the noise,
    and how smooth the function is, between a Matern 5/2 and an RBF kernel; `Particles` says how
    they are moved when data came.
    What is to be improved on is drawn, several times for each particle: the values at evaluated and
    at pending points that the observations allow. Where there are only certain points to choose
    from, one may be asked again: then what another observation there teaches counts too.

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
        told, context, points = known.joint, choices.context, self._candidates(choices)
        # What lies outside the domain cannot be improved on.
        inside = self._are_inside(len(told))
        places = torch.cat([told[inside] if bool(inside.any()) else told, pending])[
            :, : self.domain.dim
        ]
        if choices.actions is not None:  # what is not there now cannot be improved on
            places = choices.actions

        def improvement(of: Ensemble) -> Any:
            inputs, like = of.inputs, of.constants
            shape = len(like), 2, len(told) + len(pending), _NUM_DRAWS // 2
            generator = torch.Generator().manual_seed(seed)
            normals = torch.randn(shape, generator=generator, dtype=torch.float64).to(like)
            normals = torch.cat([normals, -normals], dim=-1)
            at, late = (inputs.features(X) for X in (with_context(places, context), pending))
            own = IntegratedImprovement(of.model, late, at, normals, inputs, context)
            if points is None:
                return own
            return ImprovementOnSet(own, of.with_pending(pending).model, at, inputs, context)

        x, row, value = self._highest(improvement, points, known, context, seed)
        at = with_context(x, context).unsqueeze(0)
        return x, row, [*known.with_pending(pending).mean_and_std(at), value.unsqueeze(0).to(at)]
