"""The points that a phased method may still ask, on finite sets and on boxes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.ranks import first_highest, reach
from botorch_ext.regions.planning import POPULATION_SIZE, plan, plan_in_region
from botorch_ext.regions.population import Population
from botorch_ext.regions.region import Region
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.state import Immutable
from botorch_ext.strategies.fixed_design.round_records import Choice
from botorch_ext.widths import ConfidenceModel, Width

# The width, offset, threshold and argmax of a `Closing`.
Bounds = tuple[float, float, float, list[float]]


class Survivors(Protocol):
    """The operations on survivors that differ between finite sets and boxes."""

    @property
    def whole(self) -> Tensor | Region:
        """The survivors before any elimination."""
        ...

    def choose(self, survivors: Any, model: KernelGP, length: int, seed: int) -> Choice:
        """Plans a round among survivors."""
        ...

    def points(self, choice: Choice) -> Tensor:
        """The planned points, ``t_r x d``."""
        ...

    def eliminate(
        self,
        survivors: Any,
        model: KernelGP,
        width: Width,
        X: Tensor,
        Y: Tensor,
        known: tuple[float, list[float]] | None,
        seed: int,
    ) -> tuple[Bounds, Tensor | Region]:
        """The confidence bounds given observations, and the points that survive them; ``known`` has
        the threshold and the argmax, if they were recorded."""
        ...


class SetSurvivors(Immutable):
    """Survivors are ascending rows of the set."""

    def __init__(self, domain: FiniteSet) -> None:
        self.candidates = domain.points
        self.whole = torch.arange(domain.num_points, device=domain.device)

    def choose(self, survivors: Tensor, model: KernelGP, length: int, seed: int) -> Choice:
        batch = plan(FiniteSet(self.candidates[survivors]), model, length, seed=seed)
        rows = survivors[batch.indices].tolist()
        return Choice(rows, batch.std.tolist(), len(survivors) / len(self.candidates), 0.0)

    def points(self, choice: Choice) -> Tensor:
        return self.candidates[choice.plan]

    def eliminate(
        self,
        survivors: Tensor,
        model: KernelGP,
        width: Width,
        X: Tensor,
        Y: Tensor,
        known: tuple[float, list[float]] | None,
        seed: int,
    ) -> tuple[Bounds, Tensor]:
        candidates = self.candidates[survivors]
        posterior = FinitePosterior.from_model(model, candidates)
        posterior.add(X, Y)
        w, offset = evaluated_at(width, posterior)
        half = w * posterior.std + offset
        lower = posterior.mean - half
        if known is None:
            known = float(lower.max()), candidates[first_highest(lower)[0]].tolist()
        return (w, offset, *known), survivors[reach(posterior.mean + half, known[0])]


class BoxSurvivors(Immutable):
    """Survivors are a region of the box."""

    def __init__(self, domain: Box) -> None:
        self.whole = Region(domain)
        self._last: tuple[Region, int, Population] | None = None

    def _population(self, survivors: Region, seed: int) -> Population:
        """The population of survivors, kept from the last call if the arguments are the same, since
        a round is planned and judged with one."""
        if self._last is None or self._last[0] is not survivors or self._last[1] != seed:
            self._last = survivors, seed, survivors.population(POPULATION_SIZE, seed)
        return self._last[2]

    def choose(self, survivors: Region, model: KernelGP, length: int, seed: int) -> Choice:
        population = self._population(survivors, seed)
        batch = plan_in_region(survivors, model, length, population.points)
        X, std = batch.X.tolist(), batch.std.tolist()
        return Choice(X, std, population.volume, population.volume_error)

    def points(self, choice: Choice) -> Tensor:
        return self.whole.like.new_tensor(choice.plan).reshape(-1, self.whole.dim)

    def eliminate(
        self,
        survivors: Region,
        model: KernelGP,
        width: Width,
        X: Tensor,
        Y: Tensor,
        known: tuple[float, list[float]] | None,
        seed: int,
    ) -> tuple[Bounds, Region]:
        posterior = deepcopy(model)
        posterior.add(X, Y)
        w, offset = evaluated_at(width, posterior)
        if known is None:
            lower = ConfidenceBound(posterior, -w)
            population = self._population(survivors, seed).points
            x, value = survivors.maximize(lower, torch.cat([X, population]))
            known = float(value) - offset, x.tolist()
        best = X.new_tensor(known[1]).unsqueeze(0)
        return (w, offset, *known), survivors.restricted(
            posterior, w, offset, known[0], torch.cat([best, X])
        )


def evaluated_at(width: Width, posterior: ConfidenceModel) -> tuple[float, float]:
    """The width and the offset of the confidence bounds of a posterior, as numbers."""
    t = posterior.num_observations + 1
    return float(width(t, posterior)), float(width.offset(t, posterior))


def survivors_of(domain: Domain) -> Survivors:
    """The survivors of a domain."""
    return BoxSurvivors(domain) if isinstance(domain, Box) else SetSurvivors(domain)
