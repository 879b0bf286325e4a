"""Credible particles: optimism over hyperparameters whose posterior density is nearly the best."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextLike, ContextSpace
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Cloud, Particles
from botorch_ext.search.particles import HighestOfParticles
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import require


class CredibleParticles(ParticleStrategy):
    """x_t, u_t in argmax over points and credible particles of mean + width * std: those whose log
    posterior density is within c of the largest.

    ``info`` of a trial has ``mean`` and ``std`` of the particle it was chosen for, in units of the
    observations, pending trials counting in the latter, that particle's place as ``model``, and
    the particles as `ParticleStrategy` says.

    Args:
        domain: A `Box` or a `FiniteSet`, of actions.
        particles: How hyperparameters are drawn; `Particles()` if None.
        width: The multiplier of the standard deviation, >= 0.
        delta: Gives c = ln(m / delta) for m particles.
        credibility: c itself, in place of that.
        seed: Seeds particles, search and first points.
        initial: ``(X, Y)`` the user already has.
        num_initial: Sobol points asked first.
        context_domain: The contexts that every ask then needs: a domain, their dimension d_z, or a
            `ContextSpace`.

    Raises:
        ValueError: What `ParticleStrategy` and `Credible` raise, or an impossible width.
    """

    _numbers = ("mean", "std", "model")

    def __init__(
        self,
        domain: Domain,
        particles: Particles | None = None,
        width: float = 2.0,
        *,
        delta: float = 0.1,
        credibility: float | None = None,
        seed: int = 0,
        initial: tuple[Tensor, Tensor] | None = None,
        num_initial: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
    ) -> None:
        self.width, self._credible = one_number(width, "width"), Credible(delta, credibility)
        require(0 <= self.width < math.inf, "width", self.width, ">= 0 and finite")
        super().__init__(
            domain,
            particles,
            seed=seed,
            initial=initial,
            num_initial=num_initial,
            context_domain=context_domain,
        )

    @property
    def _budget(self) -> tuple[int, int]:
        return 2048, 20  # the maximum of many models has many local maxima

    @torch.no_grad()
    def bands(self, X: Tensor, context: ContextLike | None = None) -> tuple[Tensor, Tensor]:
        """The confidence bands of the credible particles, pending trials counted: what the next ask
        chooses by.

        Args:
            X: ``n x d`` points of the domain.
            context: ``d_z``, where the strategy takes contexts.

        Returns:
            Two ``m x n``-dim tensors in units of the observations: the means, and how far the bands
            reach to either side.

        Raises:
            ValueError: Points outside the domain, or a context that `ask` would refuse.
        """
        checked = self.checked_context(context)
        X = self.domain.require_contains(X)
        cloud, known = self._current()
        own = known.some(self._places(cloud)).with_pending(self._pending_rows(known.joint))
        means, stds = own.model.mean_and_std(own.inputs.at(X, checked))
        means, scale = means + own.constants.unsqueeze(-1), own.outcomes.scale
        return own.outcomes.untransformed(means), self.width * scale * stds

    def report(self) -> dict[str, Any]:
        cloud, _ = self._current()
        return super().report() | {
            "width": parts_of(self.width),
            "current_width": self.width,
            "credibility": self._credible.reach(len(cloud.values)),
            "num_credible": len(self._places(cloud)),
        }

    def _places(self, cloud: Cloud) -> list[int]:
        """The credible particles; the host waits once."""
        below = cloud.values.max() - cloud.values
        c = self._credible.reach(len(below))
        return [place for place, gap in enumerate(below.tolist()) if gap <= c]

    def _choose(
        self, choices: Choices, cloud: Cloud, known: Ensemble, pending: Tensor, seed: int
    ) -> tuple[Tensor, int | None, list[Tensor]]:
        places = self._places(cloud)
        points, context = self._candidates(choices), choices.context
        # Without pending rows, which `Ensemble.thinned` forgets.
        credible = known.some(places)
        bound = partial(self._bound, pending=pending, context=context)
        x, row, _ = self._highest(bound, points, credible, context, seed)
        which, mean, std = bound(credible).best_at(x.unsqueeze(0))
        outcomes = known.outcomes
        model = which.new_tensor(places)[which]
        return x, row, [outcomes.untransformed(mean), std * outcomes.scale, model]

    def _bound(self, of: Ensemble, pending: Tensor, context: Tensor | None) -> HighestOfParticles:
        model = of.with_pending(pending).model
        return HighestOfParticles(model, of.constants, self.width, of.inputs, context)

    def _recall(self, trial: Trial) -> Cloud | None:
        name = f"model in the info of trial {trial.id}"
        place = whole_number(trial.info["model"], name, least=0)
        cloud: Any = super()._recall(trial) or self._cloud
        num = len(cloud.values)
        if place >= num:
            raise ValueError(f"{name} must be one of {num} particles, got {place}")
        return cloud
