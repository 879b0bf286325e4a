"""Population: points that represent a part of a box, and an estimate of its volume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Box, host
from botorch_ext.search.level_sets import NUM_GROUPS, hit_and_run, sample_level_set
from botorch_ext.search.screening import on_faces

# Sobol points tested first. Where less than this share of them is in the region, uniform points
# come from hit-and-run.
_NUM_TESTED = 2048
_LEAST_ACCEPTANCE = 0.03
# Hit-and-run: chains, and the sweeps for each dimension after which their points count as uniform.
_NUM_CHAINS = 1024
_NUM_SWEEPS = 4
# Halvings that find where a line leaves the region.
_NUM_HALVINGS = 6


@dataclass(frozen=True, eq=False)
class Population:
    """Points of a region, and the estimate of its volume that drawing them gives.

    Args:
        points: ``m x d`` points. The first ``num_uniform`` are uniform in the region; the others
            are some of its members and points on its boundary.
        num_uniform: How many of the points are uniform in the region.
        volume: The estimated share of the box that the region fills.
        volume_error: The standard error of the volume. By rejection it is that of independent
            points, which is somewhat too large for Sobol points; by hit-and-run see
            `sample_level_set`.
        hit_and_run: Whether the uniform points come from hit-and-run instead of rejection. Then
            they may miss a part of the region that is tiny and far from the rest.
    """

    points: Tensor
    num_uniform: int
    volume: float
    volume_error: float
    hit_and_run: bool


@dataclass(frozen=True, eq=False)
class _Draw:
    """Uniform points, other points, and the volume of the region; see `Population`."""

    uniform: Tensor
    others: Tensor
    volume: float
    volume_error: float
    hit_and_run: bool


class PartOfBox(Protocol):
    """A part of a box from which a population is drawn, such as `botorch_ext.Region`."""

    @property
    def box(self) -> Box:
        """The box."""
        ...

    @property
    def members(self) -> Tensor:
        """``m x d`` points known to lie in the part."""
        ...

    @property
    def constraints(self) -> Sequence[object]:
        """The constraints of the part; none if it is the whole box."""
        ...

    def meets(self, X: Tensor) -> Tensor:
        """Which of ``m x d`` points of the box lie in the part."""
        ...

    def unit_margin(self, U: Tensor, level: Tensor | float) -> Tensor:
        """How far inside the part points of the unit cube lie.

        Args:
            U: ``m x d`` points of the unit cube.
            level: Below this number any number below it may be returned.

        Returns:
            ``m`` numbers, negative outside the part.
        """
        ...


@torch.no_grad()
def drawn_population(region: PartOfBox, num_points: int, seed: int) -> Population:
    """Points of a region; see `botorch_ext.Region.population`."""
    num_points = whole_number(num_points, "num_points", least=4)
    generator = torch.Generator().manual_seed(whole_number(seed, "seed"))
    wanted = num_points // 4
    order = host.randperm(max(0, len(region.members) - 1), generator=generator)
    known = torch.cat([region.members[:1], region.members[1:][order.to(region.box.like.device)]])
    known = known[:wanted]
    drawn = _by_rejection(region, wanted, seed) or _by_hit_and_run(region, wanted, seed, generator)
    # What was drawn beyond the number wanted is free to start from.
    uniform, spare = drawn.uniform[:wanted], drawn.uniform[wanted:]
    # Slivers of the region lie on faces, where the standard deviation is large.
    faces = on_faces(region.box.sample(_NUM_TESTED, seed), region.box, generator)
    others = torch.cat([drawn.others, faces[region.meets(faces)]])
    others = others[host.randperm(len(others), generator=generator)]
    points = torch.cat([uniform, known, others])[: 3 * wanted]
    if not len(points):
        raise ValueError("members must be given: no other point of the region was found")
    starts = torch.cat([spare, points])
    starts = starts[host.arange(num_points - len(points)) % len(starts)]
    moved = towards(region, starts, on_faces(starts, _hull(region.box, points), generator))
    return Population(
        torch.cat([points, moved]),
        len(uniform),
        drawn.volume,
        drawn.volume_error,
        drawn.hit_and_run,
    )


def _by_rejection(region: PartOfBox, num_points: int, seed: int) -> _Draw | None:
    """Sobol points that lie in the region, in their order; None where they are rare."""
    X = region.box.sample(_NUM_TESTED, seed)
    inside = region.meets(X)
    share = float(inside.to(torch.float64).mean())
    if share < _LEAST_ACCEPTANCE:
        return None
    total = int(1.1 * num_points / share)
    if total > _NUM_TESTED:
        X = region.box.sample(total, seed)
        inside = torch.cat([inside, region.meets(X[_NUM_TESTED:])])
    accepted, tested = int(inside.sum()), len(X)
    # As if one more point had been accepted and one refused: with all of them accepted the
    # volume is still not known exactly.
    smoothed = (accepted + 1) / (tested + 2)
    error = math.sqrt(smoothed * (1 - smoothed) / tested) if region.constraints else 0.0
    return _Draw(X[inside], region.members[:0], accepted / tested, error, hit_and_run=False)


def _by_hit_and_run(
    region: PartOfBox, num_points: int, seed: int, generator: torch.Generator
) -> _Draw:
    """Points of chains from everywhere in the box, and others of chains from the members: where
    those are is part of the region, even if no other chain came there."""
    num_chains = -(-max(_NUM_CHAINS, num_points) // NUM_GROUPS) * NUM_GROUPS
    num_sweeps = _NUM_SWEEPS * region.box.dim
    U = region.box.to_unit(region.box.sample(num_chains, seed))
    found = sample_level_set(region.unit_margin, U, num_points, num_sweeps, generator)
    others = region.members[:0]
    if len(region.members):
        members = region.box.to_unit(region.members)
        U = members[host.arange(max(1, num_points // 4)) % len(members)]
        values = region.unit_margin(U, 0.0)
        # A member on the very boundary can be outside by rounding.
        U, values = U[values >= 0], values[values >= 0]
        pool = torch.cat([found.points, members])
        U, _ = hit_and_run(region.unit_margin, U, values, 0.0, num_sweeps, pool, generator)
        others = region.box.from_unit(U)
    uniform = region.box.from_unit(found.points)
    return _Draw(uniform, others, found.volume, found.standard_error, hit_and_run=True)


def towards(region: PartOfBox, X: Tensor, targets: Tensor) -> Tensor:
    """From each point of the region straight towards its target, as far as the region goes."""
    inside = region.meets(targets)
    reached = targets.where(inside[:, None], X)
    if X.is_cuda:  # halving the others, too, costs less than waiting for the GPU
        rows = torch.arange(len(X), device=X.device)
    else:
        (rows,) = (~inside).nonzero(as_tuple=True)
    X, targets, ends = X[rows], targets[rows], reached[rows]
    low, high = inside[rows, None].to(X), X.new_ones(len(X), 1)
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        trial = X.lerp(targets, middle)
        inside = region.meets(trial)[:, None]
        ends = trial.where(inside, ends)
        low, high = middle.where(inside, low), high.where(inside, middle)
    return reached.index_copy(0, rows, ends)


def _hull(box: Box, X: Tensor) -> Box:
    """The smallest box around points of the region, a little wider, within the box."""
    lower, upper = X.amin(dim=0), X.amax(dim=0)
    side = box.upper - box.lower
    wider = (0.1 * (upper - lower)).maximum(1e-3 * side)
    lower, upper = lower - wider, upper + wider
    return Box(
        torch.stack([lower.maximum(box.lower), upper.minimum(box.upper)]),
        box.dtype,
        box.device,
    )
