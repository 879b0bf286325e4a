"""Optimism over hyperparameter samples whose posterior density is nearly the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextLike, ContextSpace
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Cloud, Particles
from botorch_ext.search.particles import HighestOfParticles
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy, PlayedParticles
from botorch_ext.strategies.events import Trial
from botorch_ext.strategies.initial_checks import InitialData
from botorch_ext.widths import require


@dataclass(frozen=True, kw_only=True)
class PlayedCredible(PlayedParticles):
    """The record of a trial that `CredibleParticles` chose.

    Args:
        model: The position of the particle that the trial was chosen for.
    """

    model: int


class CredibleParticles(ParticleStrategy):
    """Asks x_t, u_t in argmax over points and credible particles of mean + width * std.

    A particle is credible if its log posterior density is within c of the largest. ``info`` of a
    trial has the ``particles`` and ``index`` of `ParticleStrategy`, and

    - ``model``: the position of the particle that the trial was chosen for;
    - ``mean``, ``std``: its posterior mean and standard deviation at the point, in units of the
      observations; pending trials count in the standard deviation.

    The other arguments are those of `ParticleStrategy`.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        particles: The settings of the particles. None: `Particles()`.
        width: The multiplier of the standard deviation, at least 0.
        delta: Sets c = ln(m / delta) for m particles.
        credibility: c itself, at least 0. None: c is set by ``delta``.

    Raises:
        ValueError: If `ParticleStrategy` raises it, or if ``width``, ``delta`` or ``credibility``
            is impossible.
    """

    record = PlayedCredible

    def __init__(
        self,
        domain: Domain,
        particles: Particles | None = None,
        width: float = 2.0,
        *,
        delta: float = 0.1,
        credibility: float | None = None,
        seed: int = 0,
        initial: InitialData | None = None,
        num_initial: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
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
            minimize=minimize,
        )

    @property
    def _budget(self) -> tuple[int, int]:
        return 2048, 20  # the maximum of many models has many local maxima

    @torch.no_grad()
    def bands(self, X: Tensor, context: ContextLike | None = None) -> tuple[Tensor, Tensor]:
        """The confidence bands by which the next ask chooses, of the m credible particles.

        Pending trials count in the standard deviations.

        Args:
            X: ``n x d`` points of the domain.
            context: The ``d_z`` numbers of the context, if the strategy takes contexts.

        Returns:
            Two ``m x n``-dim tensors, in units of the observations. The first has the means, the
            second the half-widths of the bands.

        Raises:
            ValueError: If a point lies outside the domain, or if `ask` would refuse the context.
        """
        checked = self.checked_context(context)
        X = self.domain.require_contains(X)
        cloud, known = self._current()
        own = known.some(self._credible_positions(cloud)).with_pending(
            self._pending_rows(known.joint)
        )
        means, stds = own.model.mean_and_std(own.inputs.in_context(checked).at(X))
        means, scale = means + own.constants.unsqueeze(-1), own.outcomes.scale
        means = self.history.sign * own.outcomes.untransformed(means)
        return means, self.width * scale * stds

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `ParticleStrategy.report` and

            - ``width``, ``current_width``: the width, as given and as a number;
            - ``credibility``: c;
            - ``num_credible``: the number of credible particles.
        """
        cloud, _ = self._current()
        return super().report() | {
            "width": parts_of(self.width),
            "current_width": self.width,
            "credibility": self._credible.reach(len(cloud.values)),
            "num_credible": len(self._credible_positions(cloud)),
        }

    def _credible_positions(self, cloud: Cloud) -> list[int]:
        """The positions of the credible particles; the host waits once."""
        below = cloud.values.max() - cloud.values
        c = self._credible.reach(len(below))
        return [position for position, gap in enumerate(below.tolist()) if gap <= c]

    def _choose(
        self, choices: Choices, cloud: Cloud, known: Ensemble, pending: Tensor, seed: int
    ) -> tuple[Tensor, int | None, dict[str, Tensor]]:
        positions = self._credible_positions(cloud)
        points, context = self._candidates(choices), choices.context
        # `_bound` adds the pending rows, which `Ensemble.thinned` drops.
        credible = known.some(positions)
        bound = partial(self._bound, pending=pending, context=context)
        x, row, _ = self._highest(bound, points, credible, context, seed)
        which, mean, std = bound(credible).best_at(x.unsqueeze(0))
        outcomes = known.outcomes
        model = which.new_tensor(positions)[which]
        mean, std = outcomes.untransformed(mean), std * outcomes.scale
        return x, row, {"mean": mean, "std": std, "model": model}

    def _bound(self, of: Ensemble, pending: Tensor, context: Tensor | None) -> HighestOfParticles:
        model, features = of.with_pending(pending).model, of.inputs.in_context(context)
        return HighestOfParticles(model, of.constants, self.width, features)

    def _recall(self, trial: Trial) -> PlayedCredible:
        played: Any = super()._recall(trial)
        num = len(cast(Cloud, self._models.cloud).values)
        if played.model >= num:
            raise ValueError(
                f"model in the info of trial {trial.id} must be one of {num} particles, got "
                f"{played.model}"
            )
        return played
