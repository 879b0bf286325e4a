"""Models and points together: the argmax of the upper confidence bounds of several models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.chunks import points_at_once
from botorch_ext.domains import Box
from botorch_ext.domains.contexts import with_context
from botorch_ext.kernels.batching import members_of
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.ranks import highest_first
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.search.box import ConfidenceBound, maximize_bound
from botorch_ext.search.objectives import lowest_for_others, on_unit_cube
from botorch_ext.search.screening import near_points, screening_points, spread_best

# Numbers in the largest intermediate tensor of a screening on the CPU.
_MAX_ENTRIES = 2**21
# Models that are screened more closely (at least; of many, a quarter), how many times more points
# they are screened on, and the starts of each that climb a few steps.
_NUM_MODELS, _CLOSER, _NUM_STARTS, _FIRST_STEPS = 8, 2, 12, 4
# Models that are climbed with to the end, and the starts of each.
_NUM_FINALISTS, _NUM_FINAL_STARTS = 4, 3
# Of proposals: screened points, one in four near the best so far, and climbs under each bound.
_NUM_SCREENED, _NUM_PROPOSED, _PROPOSED_TOLERANCE = 512, 2, 1e-7


@dataclass(frozen=True, eq=False)
class UpperBounds:
    """mean + width * std + offset of each of several models.

    Args:
        models: m models.
        widths: ``m``.
        offsets: ``m``.
        context: ``d_z``: points are actions, the models see them joined with this context.
    """

    models: CandidateModels
    widths: Tensor
    offsets: Tensor
    context: Tensor | None = None

    @property
    def entries(self) -> int:
        """Of the kernel matrices of one point and the data, in all models."""
        return max(self.models.num_observations, 1) * self.models.num_models

    @torch.no_grad()
    def values(self, X: Tensor) -> Tensor:
        """``m x n`` values at ``n x d`` points, a part of them at a time."""
        on_cpu = max(_MAX_ENTRIES // self.entries, 16)
        chunks = X.split(points_at_once(X, on_cpu, self.entries))
        return torch.cat([self._values(chunk) for chunk in chunks], dim=-1)

    def _values(self, X: Tensor) -> Tensor:
        mean, std = self.models.mean_and_std(with_context(X, self.context))
        return mean + self.widths[:, None] * std + self.offsets[:, None]

    def select(self, positions: Sequence[int]) -> UpperBounds:
        """Those of some of the models."""
        models = self.models.select(positions)
        widths, offsets = (members_of(a, positions) for a in (self.widths, self.offsets))
        return UpperBounds(models, widths, offsets, self.context)


class AverageBound:
    """The average of upper confidence bounds, an `Objective`.

    Args:
        bounds: Of m models.
        probabilities: ``m``.
    """

    def __init__(self, bounds: UpperBounds, probabilities: Tensor) -> None:
        # What weighs less than rounding does is left out: most models, after a while.
        kept = (probabilities > torch.finfo(probabilities.dtype).eps).nonzero().flatten().tolist()
        self.bounds = bounds.select(kept)
        self.probabilities = members_of(probabilities, kept)
        self._climber = _Climber(self.bounds)
        self._weights = members_of(self.probabilities, self._climber.positions)

    def value(self, X: Tensor) -> Tensor:
        return self.probabilities @ self.bounds.values(X)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        chunks = X.split(points_at_once(X, len(X), self.bounds.entries))
        parts = [self._of_chunk(chunk) for chunk in chunks]
        if len(parts) == 1:
            return parts[0]
        values, gradients = (torch.cat(each) for each in zip(*parts, strict=True))
        return values, gradients

    def _of_chunk(self, X: Tensor) -> tuple[Tensor, Tensor]:
        m = len(self._weights)
        values, gradients = self._climber.value_and_gradient(X.repeat(m, 1))
        return self._weights @ values.view(m, -1), (
            self._weights[:, None, None] * gradients.view(m, *X.shape)
        ).sum(dim=0)


class HighestBound:
    """The highest of upper confidence bounds, an `Objective`.

    Args:
        bounds: Of m models.
    """

    def __init__(self, bounds: UpperBounds) -> None:
        self.bounds = bounds
        self._climber = _Climber(bounds)

    def value(self, X: Tensor) -> Tensor:
        return self.bounds.values(X).amax(dim=0)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        m = self.bounds.models.num_models
        values, gradients = self._climber.value_and_gradient(X.repeat(m, 1))
        height, which = values.view(m, -1).max(dim=0)
        rows = torch.arange(len(X), device=X.device)
        return height, gradients.view(m, *X.shape)[which, rows]

    def model_at(self, x: Tensor) -> int:
        """The position of the model whose bound is the highest at a point, ``d``."""
        return int(self.bounds.values(x.unsqueeze(0))[:, 0].argmax())


class _Climber:
    """Upper bounds at points that each belong to one model: as many points for each of m models.

    Points are in the order of `positions`: all of a model's together.

    Args:
        bounds: Of m models.
        widths: ``m x s``, of each of the s points of a model; None for those of the bounds.
    """

    def __init__(self, bounds: UpperBounds, widths: Tensor | None = None) -> None:
        self._parts: list[tuple[ConfidenceBound, Tensor]] = []
        self.positions: list[int] = []
        widths = bounds.widths.unsqueeze(-1) if widths is None else widths
        for part in bounds.models.parts:
            self.positions += part.positions
            own = members_of(widths, part.positions)
            bound = ConfidenceBound(part.model, own, context=bounds.context)
            self._parts.append((bound, members_of(bounds.offsets, part.positions)))

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``(m s) x d`` points to ``m s`` values and ``(m s) x d`` gradients."""
        values, gradients, start = [], [], 0
        num_points = len(X) // len(self.positions)
        for bound, offsets in self._parts:
            stop = start + len(offsets) * num_points
            points = X[start:stop].view(len(offsets), num_points, -1)
            value, gradient = bound.value_and_gradient(points)
            values.append((value + offsets[:, None]).flatten())
            gradients.append(gradient.flatten(0, 1))
            start = stop
        if len(values) == 1:
            return values[0], gradients[0]
        return torch.cat(values), torch.cat(gradients)


def best_in_box(
    bounds: UpperBounds,
    box: Box,
    seed: int,
    incumbents: Tensor,
    contenders: list[int] | Tensor | None = None,
    probabilities: Tensor | None = None,
) -> tuple[Tensor, int]:
    """The point of a box with the highest of m upper bounds, and the model that gave it.

    Args:
        bounds: Of m models.
        box: Where.
        seed: Seeds the screening points.
        incumbents: ``n x d`` points of the box that join the screening.
        contenders: Which models count, or of each whether it does, ``(m,)``; None for all.
        probabilities: ``m``: the bounds are averaged with these weights, and the model is the most
            probable one.
    """
    n, m = bounds.models.num_observations, bounds.models.num_models
    if probabilities is not None:
        average = AverageBound(bounds, probabilities)
        x = maximize_bound(average, box, seed, incumbents, n, m)
        return x, int(probabilities.argmax())
    if contenders is None:
        contenders = list(range(m))
    elif isinstance(contenders, Tensor):
        contenders = [position for position, counts in enumerate(contenders.tolist()) if counts]
    if len(contenders) == 1:  # what GP-UCB with this model does
        (position,) = contenders
        single, width = bounds.models.single(position), bounds.widths[position]
        bound = ConfidenceBound(single, width, context=bounds.context)
        x = maximize_bound(bound, box, seed, incumbents, n)
        return x, position
    if len(contenders) < m:
        bounds = bounds.select(contenders)
    if not box.is_filled:
        highest = HighestBound(bounds)
        x = maximize_bound(highest, box, seed, incumbents, n, len(contenders))
        return x, contenders[highest.model_at(x)]
    x, place = maximize_over_models(bounds, box, seed, extra=incumbents)
    return x, contenders[place]


def best_pair(
    bounds: Tensor,
    contenders: list[int] | Tensor | None = None,
    probabilities: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The candidate with the highest of ``m x N`` bounds and the model that gave it, ``(1,)`` each;
    of equal ones the first; None for the only model. Arguments as for `best_in_box`."""
    if probabilities is not None:
        row = (probabilities @ bounds).argmax(dim=0, keepdim=True)
        return row, probabilities.argmax(dim=0, keepdim=True)
    if len(bounds) == 1:
        return bounds.argmax(dim=1), None
    if isinstance(contenders, Tensor):
        bounds, contenders = bounds.masked_fill(~contenders.unsqueeze(-1), -math.inf), None
    elif contenders is not None:
        bounds = members_of(bounds, contenders)
    highest, which = bounds.max(dim=0)
    row = highest.argmax(dim=0, keepdim=True)
    place = which[row]
    return row, place if contenders is None else place.new_tensor(contenders)[place]


def maximize_over_models(
    bounds: UpperBounds,
    box: Box,
    seed: int,
    num_raw: int = 512,
    extra: Tensor | None = None,
    tolerance: float = 1e-9,
) -> tuple[Tensor, int]:
    """The point and the model with the highest upper confidence bound.

    All models are screened on the same points. Those whose best is highest are screened on more and
    climb a few steps from several starts, each under its own model; the best few climb on. All of
    them climb together.

    Args:
        bounds: Of m models.
        box: Where.
        seed: Seeds the screening points.
        num_raw: Points that all models are screened on.
        extra: ``n x d`` more points to screen, such as the best so far.
        tolerance: How far below its maximum a climb may end, relative to the spread of the screened
            values.

    Returns:
        The ``d``-dim point and the position of its model.
    """
    X = screening_points(box, (1 + _CLOSER) * num_raw, seed)
    # Screening points are ordered: Sobol points first, then those moved to faces.
    X = X[torch.randperm(len(X), generator=torch.Generator().manual_seed(seed)).to(X.device)]
    first, more = X[:num_raw], X[num_raw:]
    if extra is not None and len(extra):
        first = torch.cat([extra, first])
        near = near_points(extra, box, len(more) // 8, seed)
        more = torch.cat([near, more[len(near) :]])
    values = bounds.values(first)  # (m, n)
    places = _highest(values, max(_NUM_MODELS, len(values) // 4))
    closer = bounds.select(places)
    values = torch.cat([members_of(values, places), closer.values(more)], dim=-1)
    X = torch.cat([first, more])
    starts = X[spread_best(values, X, box, _NUM_STARTS)]
    ends, heights = _climb(closer, box, starts, values, tolerance, _FIRST_STEPS)
    finalists = _highest(heights, _NUM_FINALISTS)
    places = [places[place] for place in finalists]
    num_starts = min(_NUM_FINAL_STARTS, starts.shape[1])
    best = highest_first(members_of(heights, finalists), num_starts).unsqueeze(-1)
    starts = members_of(ends, finalists).gather(1, best.expand(-1, -1, box.dim))
    ends, heights = _climb(closer.select(finalists), box, starts, values, tolerance)
    top = int(heights.argmax())
    return ends.flatten(0, 1)[top], places[top // num_starts]


@torch.no_grad()
def proposals(
    models: CandidateModels,
    widths: Tensor,
    box: Box,
    seed: int,
    incumbents: Tensor,
    context: Tensor | None = None,
) -> Tensor:
    """Screened points of a box, and the maxima that climbs from some of them find under each bound
    mean + width * std.

    Args:
        models: m models.
        widths: ``m x k``, of the bounds of each model; negative ones make lower bounds.
        box: Where.
        seed: Seeds the screening points.
        incumbents: ``n x d`` points of the box that are screened too.
        context: ``d_z``: the models see points joined with this context.

    Returns:
        ``n x d`` points of the box.
    """
    if box.listed is not None:
        return box.listed
    X = screening_points(box, _NUM_SCREENED, seed)
    if len(incumbents):
        near = near_points(incumbents, box, _NUM_SCREENED // 4, seed)
        X = torch.cat([incumbents, near, X[len(near) :]])
    if not box.is_filled:  # no climb goes there
        return X
    mean, std = (part.unsqueeze(1) for part in models.mean_and_std(with_context(X, context)))
    values = lowest_for_others(mean + widths.unsqueeze(-1) * std)  # (m, k, n)
    starts = X[spread_best(values, X, box, _NUM_PROPOSED)].flatten(1, 2)  # (m, starts, d)
    means = UpperBounds(models, 0 * widths[:, 0], 0 * widths[:, 0], context)
    own = widths.repeat_interleave(starts.shape[1] // widths.shape[1], dim=-1)
    ends, _ = _climb(means, box, starts, values, _PROPOSED_TOLERANCE, widths=own)
    return torch.cat([X, ends.flatten(0, 1)])


def _highest(values: Tensor, num: int) -> list[int]:
    """The rows of ``m x n`` values with the highest entries, from the highest on; of equal ones the
    first."""
    return highest_first(values.amax(dim=-1), num).tolist()


def _climb(
    bounds: UpperBounds,
    box: Box,
    starts: Tensor,
    values: Tensor,
    tolerance: float,
    max_iterations: int = 200,
    widths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Climbs from ``m x s x d`` starts, those of each model under its own bound.

    Args:
        bounds: Of the m models.
        box: Where.
        starts: ``m x s x d``.
        values: Some values of the bounds, for their scale.
        tolerance: See `maximize_over_models`.
        max_iterations: Steps of each climb.
        widths: ``m x s``, of each start; None for those of the bounds.

    Returns:
        ``m x s x d`` ends and their ``m x s`` heights, none below its start.
    """
    climber = _Climber(bounds, widths)
    flat = members_of(starts, climber.positions).flatten(0, 1)
    scaled = on_unit_cube(climber.value_and_gradient, box, values)
    # A batch of models is not cut to those that still climb.
    ends, _ = batched_lbfgsb(scaled, box.to_unit(flat), tolerance, max_iterations, together=True)
    ends = box.from_unit(ends)
    heights, _ = climber.value_and_gradient(ends)
    order = sorted(range(len(starts)), key=climber.positions.__getitem__)
    ends, heights = ends.view_as(starts), heights.view(starts.shape[:-1])
    return members_of(ends, order), members_of(heights, order)
