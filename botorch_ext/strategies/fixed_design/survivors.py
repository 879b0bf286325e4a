"""The points that a method of rounds may still ask, on finite sets and on boxes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.ranks import first_highest, reach
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound, affordable_points, maximize_bound
from botorch_ext.search.intersected import narrowest
from botorch_ext.search.planning import POPULATION_SIZE, plan, plan_in_region
from botorch_ext.search.population import Population
from botorch_ext.search.region import Region
from botorch_ext.search.screening import near_points
from botorch_ext.state import Immutable
from botorch_ext.strategies.fixed_design.round_records import RoundPlan
from botorch_ext.widths import ConfidenceModel, Width
from botorch_ext.widths.composed import fixed_design_ridges

# The number of ascents in a region, which is searched at every step.
_NUM_STARTS = 12


@dataclass(frozen=True, eq=False)
class Bounds:
    """The confidence bounds mean +- (width std + offset), clipped to [-limit, limit].

    Args:
        belief: On a finite set the means and standard deviations at the survivors, at each ridge
            if there are several; on a box a `KernelGP`.
        width: The multiplier of the standard deviation; a tuple of those at each ridge if there are
            several.
        offset: The part of the half-width that is added to ``width`` std.
        limit: B, an upper bound on the size of f; None if it is not known.
    """

    belief: Any
    width: Any
    offset: float
    limit: float | None = None

    def clipped(self, values: Tensor) -> Tensor:
        return values if self.limit is None else values.clamp(-self.limit, self.limit)


@dataclass(frozen=True, eq=False)
class Elimination:
    """What is left of the survivors when every point is dropped whose upper bound is below the
    largest lower bound.

    Args:
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
        survivors: The surviving rows, or the region.
        bounds: The bounds of these survivors.
    """

    threshold: float
    argmax: list[float]
    survivors: Any
    bounds: Bounds


class SetSurvivors(Immutable):
    """Survivors are ascending rows of the set.

    The classes of survivors have the same methods; arguments that only one of them needs are listed
    in both.
    """

    #: Whether survivors are cut while a block is put off. On a box every cut adds a constraint.
    cuts_while_putting_off = True

    def __init__(self, domain: FiniteSet) -> None:
        self.domain, self.candidates = domain, domain.points
        #: The survivors before any elimination.
        self.whole = torch.arange(domain.num_points, device=domain.device)

    def choose(self, survivors: Tensor, model: KernelGP, length: int, seed: int) -> RoundPlan:
        """Plans a block of points among survivors, each of largest variance given the points of the
        model and of the plan before it."""
        batch = plan(FiniteSet(self.candidates[survivors]), model, length, seed=seed)
        rows = survivors[batch.indices].tolist()
        return RoundPlan(tuple(rows), tuple(batch.std.tolist()), *self.volume(survivors, seed))

    def points(self, choice: RoundPlan) -> Tensor:
        """The planned points, ``t_r x d``."""
        return self.candidates[list(choice.plan)]

    def volume(self, survivors: Tensor, seed: int) -> tuple[float, float]:
        """The share of the domain that survives, and its standard error."""
        return len(survivors) / len(self.candidates), 0.0

    def posterior(self, prior: KernelGP, survivors: Tensor) -> FinitePosterior:
        """The prior as a posterior at survivors, to which the data of a round can be added."""
        return FinitePosterior.from_model(prior, _among(survivors, self.candidates, 0))

    def belief(self, posterior: Any, survivors: Tensor) -> tuple[Tensor, Tensor]:
        """The ``belief`` of `Bounds` for a posterior; pending rows count in its standard
        deviations."""
        if isinstance(posterior, KernelGP):
            return posterior.mean_and_std(self.candidates[survivors])
        return _among(survivors, posterior.mean), _among(survivors, posterior.std)

    def belief_of_known(
        self, posterior: FinitePosterior, prior: KernelGP, survivors: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The ``belief`` without pending rows; it does not change when the posterior grows."""
        return _among(survivors, posterior.mean), _among(survivors, posterior.std_of_known())

    def largest_std(self, survivors: Tensor, belief: tuple[Tensor, Tensor], seed: int) -> float:
        """The largest standard deviation among survivors."""
        return float(belief[1].max())

    def eliminate(
        self,
        survivors: Tensor,
        bounds: Bounds,
        X: Tensor,
        seed: int,
        known: tuple[float, list[float]] | None = None,
    ) -> Elimination:
        """Drops every point whose upper bound is below the largest lower bound.

        Args:
            survivors: The survivors so far.
            bounds: Their bounds.
            X: Surviving points, at which a search for the largest lower bound starts, ``n x d``.
            seed: The seed of the points from which a region is searched.
            known: The largest lower bound and its place, if they were recorded.

        Raises:
            ValueError: If a recorded bound leaves no point.
        """
        upper, lower = self._bounds(bounds)
        if known is None:
            argmax = self.candidates[survivors[first_highest(lower)[0]]].tolist()
            known = float(lower.max()), argmax
        kept = reach(upper, known[0])
        left = survivors[kept]
        if not len(left):
            raise ValueError(f"threshold must leave points, got {known[0]}")
        mean, std = bounds.belief
        belief = mean[..., kept], std[..., kept]
        return Elimination(*known, left, replace(bounds, belief=belief))

    def certificate(self, survivors: Tensor, bounds: Bounds, seed: int) -> float:
        """The largest upper bound of survivors minus their least lower bound."""
        upper, lower = self._bounds(bounds)
        return float(upper.max() - lower.min())

    def highest(
        self,
        survivors: Tensor,
        posterior: FinitePosterior,
        width: float,
        incumbents: Callable[[], Tensor],
        seeds: tuple[int, int],
    ) -> tuple[Tensor, dict[str, int]]:
        """The survivor with the highest mean + width std, and the ``info`` that says where it is;
        the seeds are those of the step and of the population."""
        mean, variance = (
            _among(survivors, values) for values in (posterior.mean, posterior.variance)
        )
        top = int(first_highest(mean + width * variance.clamp_min(0).sqrt()))
        row = int(survivors[top])
        return self.candidates[row].clone(), {"index": row}

    def region(self, survivors: Tensor) -> FiniteSet:
        """The survivors, for a rule of the user's."""
        return FiniteSet(self.candidates[survivors])

    def where(self, survivors: Tensor, x: Tensor) -> dict[str, int] | None:
        """The ``info`` that says where a point ``1 x d`` is; None if it is not a survivor."""
        row = self.domain.index(x)
        return {"index": int(row)} if bool((survivors == row).any()) else None

    def _bounds(self, bounds: Bounds) -> tuple[Tensor, Tensor]:
        mean, std = bounds.belief
        if std.ndim == 1:
            half = bounds.width * std + bounds.offset
        else:
            widths = std.new_tensor(bounds.width).unsqueeze(-1)
            mean, half = narrowest(mean, widths * std + bounds.offset)
        return bounds.clipped(mean + half), bounds.clipped(mean - half)


class BoxSurvivors(Immutable):
    """Survivors are a region of the box; a search finds the largest and the smallest values
    there."""

    cuts_while_putting_off = False

    def __init__(self, domain: Box) -> None:
        self.whole = Region(domain)
        self._last: tuple[Region, int, Population] | None = None

    def _population(self, survivors: Region, seed: int) -> Population:
        """The population of survivors, kept from the last call if the arguments are the same, since
        a round is planned and judged with one."""
        if self._last is None or self._last[0] is not survivors or self._last[1] != seed:
            self._last = survivors, seed, survivors.population(POPULATION_SIZE, seed)
        return self._last[2]

    def choose(self, survivors: Region, model: KernelGP, length: int, seed: int) -> RoundPlan:
        batch = plan_in_region(survivors, model, length, self._population(survivors, seed).points)
        points, std = tuple(batch.X.tolist()), tuple(batch.std.tolist())
        return RoundPlan(points, std, *self.volume(survivors, seed))

    def points(self, choice: RoundPlan) -> Tensor:
        return self.whole.like.new_tensor(choice.plan).reshape(-1, self.whole.dim)

    def volume(self, survivors: Region, seed: int) -> tuple[float, float]:
        population = self._population(survivors, seed)
        return population.volume, population.volume_error

    def posterior(self, prior: KernelGP, survivors: Region) -> KernelGP:
        return deepcopy(prior)

    def belief(self, posterior: KernelGP, survivors: Region) -> KernelGP:
        return posterior

    def belief_of_known(self, posterior: KernelGP, prior: KernelGP, survivors: Region) -> KernelGP:
        pending = set(posterior.factor.pending)
        known = [row for row in range(posterior.num_observations) if row not in pending]
        model = prior.fork()
        if known:
            model.add(posterior.train_inputs[0][known], posterior.train_targets[known])
        return model

    def largest_std(self, survivors: Region, belief: KernelGP, seed: int) -> float:
        return float(self._largest(survivors, belief, 1.0, 0.0, seed))

    def eliminate(
        self,
        survivors: Region,
        bounds: Bounds,
        X: Tensor,
        seed: int,
        known: tuple[float, list[float]] | None = None,
    ) -> Elimination:
        if known is None:
            population = self._population(survivors, seed).points
            lower = ConfidenceBound(bounds.belief, -bounds.width)
            x, value = survivors.maximize(lower, torch.cat([X, population]))
            known = float(bounds.clipped(value.double() - bounds.offset)), x.tolist()
        threshold, argmax = known
        left = survivors
        # Otherwise every clipped upper bound reaches the threshold.
        if bounds.limit is None or threshold > -bounds.limit:
            points = torch.cat([X.new_tensor([argmax]), X])
            left = survivors.restricted(
                bounds.belief, bounds.width, bounds.offset, threshold, points
            )
        return Elimination(threshold, argmax, left, bounds)

    def certificate(self, survivors: Region, bounds: Bounds, seed: int) -> float:
        model, width = bounds.belief, bounds.width
        upper, negated_lower = (
            self._largest(survivors, model, width, weight, seed) + bounds.offset
            for weight in (1.0, -1.0)
        )
        return float(bounds.clipped(upper) + bounds.clipped(negated_lower))

    def highest(
        self,
        survivors: Region,
        posterior: KernelGP,
        width: float,
        incumbents: Callable[[], Tensor],
        seeds: tuple[int, int],
    ) -> tuple[Tensor, dict[str, int]]:
        bound, n = ConfidenceBound(posterior, width), posterior.num_observations
        box, near = survivors.box, incumbents()
        if not survivors.constraints:  # as GP-BUCB in the whole box
            return maximize_bound(bound, box, seeds[0], near, n), {}
        num_points = affordable_points(n)
        if len(near):
            near = torch.cat([near, near_points(near, box, num_points // 4, seeds[0])])
        near = near[survivors.meets(near)]
        population = self._population(survivors, seeds[1]).points
        others = population[:: max(len(population) // num_points, 1)]
        x, _ = survivors.maximize(bound, torch.cat([near, others]), _NUM_STARTS)
        return x, {}

    def region(self, survivors: Region) -> Region:
        return survivors

    def where(self, survivors: Region, x: Tensor) -> dict[str, int] | None:
        return {} if bool(survivors.contains(x).all()) else None

    def _largest(
        self, survivors: Region, model: KernelGP, width: float, mean_weight: float, seed: int
    ) -> Tensor:
        """The largest of mean_weight mean + width std among survivors."""
        bound = ConfidenceBound(model, width, mean_weight)
        return survivors.maximize(bound, self._population(survivors, seed).points)[1]


def _among(survivors: Tensor, values: Tensor, dim: int = -1) -> Tensor:
    """The values at surviving rows of a dimension; they are not copied if they are of the survivors
    alone, as they are before any elimination."""
    return values if values.shape[dim] == len(survivors) else values.index_select(dim, survivors)


def evaluated_at(width: Width, posterior: ConfidenceModel) -> tuple[Any, float]:
    """The width and the offset of the confidence bounds of a posterior, as numbers; the width of a
    posterior at several ridges is a tuple of numbers."""
    t = posterior.num_observations + 1
    value, offset = width(t, posterior), float(width.offset(t, posterior))
    if isinstance(value, Tensor) and value.numel() > 1:
        return tuple(value.tolist()), offset
    return float(value), offset


def at_ridges(model: KernelGP, width: Width) -> KernelGP:
    """The model at every ridge of a `FixedDesignLadder`, with its data; the model itself for other
    widths."""
    ridges = fixed_design_ridges(width)
    if ridges is None:
        return model
    noise = model.noise_variance * model.noise_variance.new_tensor(ridges)
    new = KernelGP(model.kernel, noise, model.mean, dtype=noise.dtype, device=noise.device)
    if model.num_observations:
        new.add(model.train_inputs[0], model.train_targets)
    return new


def survivors_of(domain: Domain, width: Width) -> Any:
    """The survivors of a domain, `SetSurvivors` or `BoxSurvivors`, that are judged by a width.

    Raises:
        ValueError: If the width is a `FixedDesignLadder` and the domain is a box.
    """
    if not isinstance(domain, Box):
        return SetSurvivors(domain)
    if fixed_design_ridges(width) is not None:
        raise ValueError(
            "width must not be a FixedDesignLadder on a box, whose bounds are those of one ridge: "
            "pass a FixedDesignNetMixture, or a FiniteSet as domain"
        )
    return BoxSurvivors(domain)
