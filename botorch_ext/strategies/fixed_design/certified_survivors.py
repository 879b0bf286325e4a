"""The points that a certified method may still ask, and the largest regret among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.ranks import first_highest, reach
from botorch_ext.regions.region import Region
from botorch_ext.search.box import ConfidenceBound, affordable_points, maximize_bound
from botorch_ext.search.screening import near_points
from botorch_ext.strategies.fixed_design.cuts import Bounds, Cut
from botorch_ext.strategies.fixed_design.survivors import BoxSurvivors, SetSurvivors, Survivors

# The number of ascents in a region, which is searched at every step.
_NUM_STARTS = 12


class CertifiedSurvivors(Survivors, Protocol):
    """The operations on survivors that differ between finite sets and boxes."""

    #: Whether survivors are cut while a block is put off. On a box every cut adds a constraint.
    cuts_while_putting_off: bool

    def posterior(self, prior: KernelGP) -> Any:
        """The prior as a posterior to which data can be added."""
        ...

    def belief(self, posterior: Any) -> Any:
        """The ``belief`` of `Bounds` for a posterior; pending rows count in its standard
        deviations."""
        ...

    def belief_of_known(self, posterior: Any, prior: KernelGP) -> Any:
        """The ``belief`` without pending rows; it does not change when the posterior grows."""
        ...

    def largest_std(self, survivors: Any, belief: Any, seed: int) -> float:
        """The largest standard deviation among survivors."""
        ...

    def cut(self, survivors: Any, bounds: Bounds, X: Tensor, seed: int) -> Cut:
        """Drops every point whose upper bound is below the largest lower bound; ``X`` are points at
        which the search starts."""
        ...

    def recut(self, survivors: Any, bounds: Bounds, X: Tensor, record: dict[str, Any]) -> Cut:
        """The cut of a record, without a search."""
        ...

    def certificate(self, survivors: Any, bounds: Bounds, seed: int) -> float:
        """The largest upper bound of survivors minus their least lower bound."""
        ...

    def highest(
        self,
        survivors: Any,
        posterior: Any,
        width: float,
        incumbents: Callable[[], Tensor],
        seeds: tuple[int, int],
    ) -> tuple[Tensor, dict[str, int]]:
        """The survivor with the highest mean + width std, and the ``info`` that says where it is;
        the seeds are those of the step and of the population."""
        ...

    def region(self, survivors: Any) -> FiniteSet | Region:
        """The survivors, for a rule of the user's."""
        ...

    def where(self, survivors: Any, x: Tensor) -> dict[str, int] | None:
        """The ``info`` that says where a point ``1 x d`` is; None if it is not a survivor."""
        ...


class CertifiedSet(SetSurvivors):
    """Survivors are ascending rows of the set."""

    cuts_while_putting_off = True

    def __init__(self, domain: FiniteSet) -> None:
        super().__init__(domain)
        self.domain = domain

    def posterior(self, prior: KernelGP) -> FinitePosterior:
        return FinitePosterior.from_model(prior, self.candidates)

    def belief(self, posterior: FinitePosterior | KernelGP) -> Callable[[Tensor], Any]:
        if isinstance(posterior, KernelGP):
            return lambda rows: posterior.mean_and_std(self.candidates[rows])
        return _at(posterior.mean, posterior.std)

    def belief_of_known(
        self, posterior: FinitePosterior, prior: KernelGP
    ) -> Callable[[Tensor], Any]:
        return _at(posterior.mean, posterior.std_of_known())

    def largest_std(self, survivors: Tensor, belief: Any, seed: int) -> float:
        return float(belief(survivors)[1].max())

    def cut(self, survivors: Tensor, bounds: Bounds, X: Tensor, seed: int) -> Cut:
        upper, lower = self._bounds(survivors, bounds)
        argmax = self.candidates[survivors[first_highest(lower)[0]]].tolist()
        return self._cut(survivors, upper, lower, float(lower.max()), argmax)

    def recut(self, survivors: Tensor, bounds: Bounds, X: Tensor, record: dict[str, Any]) -> Cut:
        upper, lower = self._bounds(survivors, bounds)
        cut = self._cut(survivors, upper, lower, record["threshold"], record["argmax"])
        return Cut.recorded(record, cut.survivors)

    def _cut(
        self, survivors: Tensor, upper: Tensor, lower: Tensor, threshold: float, argmax: list[float]
    ) -> Cut:
        kept = reach(upper, threshold)
        left = survivors[kept]
        if not len(left):
            raise ValueError(f"threshold must leave points, got {threshold}")
        certificate = float(upper[kept].max() - lower[kept].min())
        share = len(left) / len(self.candidates)
        return Cut(threshold, argmax, certificate, share, 0.0, left)

    def certificate(self, survivors: Tensor, bounds: Bounds, seed: int) -> float:
        upper, lower = self._bounds(survivors, bounds)
        return float(upper.max() - lower.min())

    def highest(
        self,
        survivors: Tensor,
        posterior: FinitePosterior,
        width: float,
        incumbents: Callable[[], Tensor],
        seeds: tuple[int, int],
    ) -> tuple[Tensor, dict[str, int]]:
        some = (survivors,) if len(survivors) < len(self.candidates) else ()
        mean, variance = (
            values.index_select(0, *some) if some else values
            for values in (posterior.mean, posterior.variance)
        )
        top = int(first_highest(mean + width * variance.clamp_min(0).sqrt()))
        row = int(survivors[top])
        return self.candidates[row].clone(), {"index": row}

    def region(self, survivors: Tensor) -> FiniteSet:
        return FiniteSet(self.candidates[survivors])

    def where(self, survivors: Tensor, x: Tensor) -> dict[str, int] | None:
        row = self.domain.index(x)
        return {"index": int(row)} if bool((survivors == row).any()) else None

    def _bounds(self, survivors: Tensor, bounds: Bounds) -> tuple[Tensor, Tensor]:
        mean, std = bounds.belief(survivors)
        half = bounds.width * std + bounds.offset
        return bounds.clipped(mean + half), bounds.clipped(mean - half)


class CertifiedBox(BoxSurvivors):
    """Survivors are a region of the box; a search finds the largest and the smallest values
    there."""

    cuts_while_putting_off = False

    def posterior(self, prior: KernelGP) -> KernelGP:
        return prior.fork()

    def belief(self, posterior: KernelGP) -> KernelGP:
        return posterior

    def belief_of_known(self, posterior: KernelGP, prior: KernelGP) -> KernelGP:
        pending = set(posterior.factor.pending)
        known = [row for row in range(posterior.num_observations) if row not in pending]
        model = prior.fork()
        if known:
            model.add(posterior.train_inputs[0][known], posterior.train_targets[known])
        return model

    def largest_std(self, survivors: Region, belief: KernelGP, seed: int) -> float:
        return float(self._largest(survivors, belief, 1.0, 0.0, seed))

    def cut(self, survivors: Region, bounds: Bounds, X: Tensor, seed: int) -> Cut:
        inside = X[survivors.meets(X)]
        population = self._population(survivors, seed).points
        lower = ConfidenceBound(bounds.belief, -bounds.width)
        x, value = survivors.maximize(lower, torch.cat([inside, population]))
        threshold = float(bounds.clipped(value - bounds.offset))
        left = self._restricted(survivors, bounds, threshold, x.unsqueeze(0), inside)
        drawn = self._population(left, seed)
        certificate = self.certificate(left, bounds, seed)
        return Cut(threshold, x.tolist(), certificate, drawn.volume, drawn.volume_error, left)

    def recut(self, survivors: Region, bounds: Bounds, X: Tensor, record: dict[str, Any]) -> Cut:
        x = X.new_tensor([record["argmax"]])
        inside = X[survivors.meets(X)]
        left = self._restricted(survivors, bounds, record["threshold"], x, inside)
        return Cut.recorded(record, left)

    def _restricted(
        self, survivors: Region, bounds: Bounds, threshold: float, best: Tensor, X: Tensor
    ) -> Region:
        if bounds.limit is not None and threshold <= -bounds.limit:
            return survivors  # every clipped upper bound reaches the threshold
        model, points = bounds.belief, torch.cat([best, X])
        return survivors.restricted(model, bounds.width, bounds.offset, threshold, points)

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


def _at(mean: Tensor, std: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    return lambda rows: (mean[rows], std[rows])


def certified_survivors_of(domain: Domain) -> CertifiedSurvivors:
    """The certified survivors of a domain."""
    return CertifiedBox(domain) if isinstance(domain, Box) else CertifiedSet(domain)
