"""The argmax of the upper confidence bounds of several models, over points and models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.ranks import first_highest, highest_first
from botorch_ext.kernels.batching import members_of
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.search.box import ConfidenceBound, maximize_bound
from botorch_ext.search.objectives import lowest_for_others, on_unit_cube
from botorch_ext.search.screening import (
    near_points,
    screening_points,
    screening_points_with,
    spread_best,
)

# The least number of models that are screened more closely (a quarter of many models), the factor
# of their points, the number of starts of each, and the number of steps of the first ascents.
_NUM_MODELS, _CLOSER, _NUM_STARTS, _FIRST_STEPS = 8, 2, 12, 4
# The number of models whose ascents go on to the end, and the number of starts of each.
_NUM_FINALISTS, _NUM_FINAL_STARTS = 4, 3
# For proposals: the number of screened points, of ascents of each bound, and their tolerance.
_NUM_SCREENED, _NUM_PROPOSED, _PROPOSED_TOLERANCE = 512, 2, 1e-7


@dataclass(frozen=True, eq=False)
class UpperBounds:
    """The upper bounds mean + width * std + offset of each of several models.

    Args:
        models: The m models.
        widths: The ``m`` widths.
        offsets: The ``m`` offsets.
        context: The ``d_z`` numbers of the context, which the models see after the action; None
            without contexts.
    """

    models: CandidateModels
    widths: Tensor
    offsets: Tensor
    context: Tensor | None = None

    @property
    def entries(self) -> int:
        """The number of entries of the kernel matrices between one point and the data, for all
        models."""
        return self.models.num_observations * self.models.num_models

    @property
    def num_models(self) -> int:
        return self.models.num_models

    def highest(self) -> HighestBound:
        """The highest of the bounds as an `Objective`."""
        return HighestBound(self)

    @property
    def order(self) -> list[int]:
        """The positions of the models, in the order of `values_and_gradients`."""
        return self._climber.positions

    @cached_property
    def _climber(self) -> _Climber:
        return _Climber(self)

    def values_and_gradients(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The values at ``n x d`` points, ``m x n``, and their gradients, ``m x n x d``, of the
        models in the order of `order`."""
        m = self.num_models
        values, gradients = self._climber.value_and_gradient(X.repeat(m, 1))
        return values.view(m, -1), gradients.view(m, *X.shape)

    @torch.no_grad()
    def values(self, X: Tensor) -> Tensor:
        """The values at ``n x d`` points, ``m x n``, computed in chunks."""
        chunks = in_chunks(X, self.entries)
        return torch.cat([self._values(chunk) for chunk in chunks], dim=-1)

    def _values(self, X: Tensor) -> Tensor:
        mean, std = self.models.mean_and_std(with_context(X, self.context))
        return mean + self.widths[:, None] * std + self.offsets[:, None]

    def select(self, positions: Sequence[int]) -> UpperBounds:
        """The upper bounds of some of the models."""
        models = self.models.select(positions)
        widths, offsets = (members_of(a, positions) for a in (self.widths, self.offsets))
        return UpperBounds(models, widths, offsets, self.context)


class AverageBound:
    """The average of upper confidence bounds, an `Objective`.

    Args:
        bounds: The bounds of m models.
        probabilities: The ``m`` weights.
    """

    def __init__(self, bounds: UpperBounds, probabilities: Tensor) -> None:
        # Models with a weight below rounding are left out: most models, after a while.
        kept = (probabilities > torch.finfo(probabilities.dtype).eps).nonzero().flatten().tolist()
        self.bounds = bounds.select(kept)
        self.probabilities = members_of(probabilities, kept)
        self._weights = members_of(self.probabilities, self.bounds.order)

    def value(self, X: Tensor) -> Tensor:
        return self.probabilities @ self.bounds.values(X)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        pairs = [self._of_chunk(chunk) for chunk in in_chunks(X, self.bounds.entries)]
        if len(pairs) == 1:
            return pairs[0]
        values, gradients = (torch.cat(each) for each in zip(*pairs, strict=True))
        return values, gradients

    def _of_chunk(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, gradients = self.bounds.values_and_gradients(X)
        return self._weights @ values, (self._weights[:, None, None] * gradients).sum(dim=0)


class HighestBound:
    """The highest of upper confidence bounds, an `Objective`.

    Args:
        bounds: The bounds of m models.
    """

    def __init__(self, bounds: UpperBounds) -> None:
        self.bounds = bounds

    def value(self, X: Tensor) -> Tensor:
        return self.bounds.values(X).amax(dim=0)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, gradients = self.bounds.values_and_gradients(X)
        height, which = values.max(dim=0)
        rows = torch.arange(len(X), device=X.device)
        return height, gradients[which, rows]

    def model_at(self, x: Tensor) -> int:
        """The position of the model with the highest bound at a ``d``-dim point."""
        return int(self.bounds.values(x.unsqueeze(0))[:, 0].argmax())


class _Climber:
    """The upper bounds at points that each belong to one model, with s points for each of m models.

    Points are in the order of ``positions``, those of a model together.

    Args:
        bounds: The bounds of m models.
        widths: The width of each point, ``m x s``; None for the widths of the bounds.
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
        """The ``m s`` values and the ``(m s) x d`` gradients at ``(m s) x d`` points."""
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
    """The point of a box with the highest of m upper bounds, and the position of its model.

    Args:
        bounds: The bounds of m models.
        box: The box.
        seed: The seed of the screening points.
        incumbents: More points of the box to screen, ``n x d``.
        contenders: The positions of the models that count, or a mask ``(m,)``; None for all.
        probabilities: The ``m`` weights for an average of the bounds; the model is then the most
            probable one. None: the highest bound counts.
    """
    n, m = bounds.models.num_observations, bounds.num_models
    if probabilities is not None:
        average = AverageBound(bounds, probabilities)
        x = maximize_bound(average, box, seed, incumbents, n, m)
        return x, int(probabilities.argmax())
    if contenders is None:
        contenders = list(range(m))
    elif isinstance(contenders, Tensor):
        contenders = [position for position, counts in enumerate(contenders.tolist()) if counts]
    if len(contenders) == 1 and type(bounds) is UpperBounds:  # the search of GP-UCB with this model
        (position,) = contenders
        single, width = bounds.models.single(position), bounds.widths[position]
        bound = ConfidenceBound(single, width, context=bounds.context)
        x = maximize_bound(bound, box, seed, incumbents, n)
        return x, position
    if len(contenders) < m:
        bounds = bounds.select(contenders)
    if not (box.is_filled and type(bounds) is UpperBounds):
        highest = bounds.highest()
        x = maximize_bound(highest, box, seed, incumbents, n, len(contenders))
        return x, contenders[highest.model_at(x)]
    x, position = maximize_over_models(bounds, box, seed, extra=incumbents)
    return x, contenders[position]


def best_pair(
    bounds: Tensor,
    contenders: list[int] | Tensor | None = None,
    probabilities: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The row of the first candidate with the highest of ``... x m x N`` bounds, up to rounding,
    and the position of its model (None if there is one model), ``... x 1`` each. Arguments are
    those of `best_in_box`; a mask of contenders is ``... x m``, and so are
    probabilities."""
    if probabilities is not None:
        average = (probabilities.unsqueeze(-2) @ bounds).squeeze(-2)
        return first_highest(average), first_highest(probabilities)
    if bounds.shape[-2] == 1:
        return first_highest(bounds.squeeze(-2)), None
    if isinstance(contenders, Tensor):
        bounds, contenders = bounds.masked_fill(~contenders.unsqueeze(-1), -math.inf), None
    elif contenders is not None:
        bounds = members_of(bounds, contenders)
    row = first_highest(bounds.amax(dim=-2))
    position = first_highest(bounds.take_along_dim(row.unsqueeze(-1), dim=-1).squeeze(-1))
    return row, position if contenders is None else position.new_tensor(contenders)[position]


def maximize_over_models(
    bounds: UpperBounds,
    box: Box,
    seed: int,
    num_raw: int = 512,
    extra: Tensor | None = None,
    tolerance: float = 1e-9,
) -> tuple[Tensor, int]:
    """The point and the model with the highest upper confidence bound.

    All models are screened on the same points. The models with the highest values are screened on
    more points, and ascend a few steps from several starts, each start for its own model. The best
    few models ascend to the end. All ascents run in one batch.

    Args:
        bounds: The bounds of m models.
        box: The box.
        seed: The seed of the screening points.
        num_raw: The number of points on which all models are screened.
        extra: More points to screen, ``n x d``, such as the best so far.
        tolerance: The largest distance below its maximum at which an ascent may end, relative to
            the spread of the screened values.

    Returns:
        The ``d``-dim point and the position of its model.
    """
    X = screening_points(box, (1 + _CLOSER) * num_raw, seed)
    # Screening points are ordered: Sobol points first, then those moved to faces.
    X = X[host.randperm(len(X), generator=torch.Generator().manual_seed(seed)).to(X.device)]
    first, more = X[:num_raw], X[num_raw:]
    if extra is not None and len(extra):
        first = torch.cat([extra, first])
        near = near_points(extra, box, len(more) // 8, seed)
        more = torch.cat([near, more[len(near) :]])
    values = bounds.values(first)  # (m, n)
    positions = _highest(values, max(_NUM_MODELS, len(values) // 4))
    closer = bounds.select(positions)
    values = torch.cat([members_of(values, positions), closer.values(more)], dim=-1)
    X = torch.cat([first, more])
    starts = X[spread_best(values, X, box, _NUM_STARTS)]
    ends, heights = _climb(closer, box, starts, values, tolerance, _FIRST_STEPS)
    finalists = _highest(heights, _NUM_FINALISTS)
    positions = [positions[finalist] for finalist in finalists]
    num_starts = min(_NUM_FINAL_STARTS, starts.shape[1])
    best = highest_first(members_of(heights, finalists), num_starts).unsqueeze(-1)
    starts = members_of(ends, finalists).gather(1, best.expand(-1, -1, box.dim))
    ends, heights = _climb(closer.select(finalists), box, starts, values, tolerance)
    top = int(heights.argmax())
    return ends.flatten(0, 1)[top], positions[top // num_starts]


@torch.no_grad()
def proposals(
    models: CandidateModels,
    widths: Tensor,
    box: Box,
    seed: int,
    incumbents: Tensor,
    context: Tensor | None = None,
) -> Tensor:
    """Screened points of a box, and the maxima that ascents from some of them find for each bound
    mean + width * std.

    Args:
        models: The m models.
        widths: The widths of k bounds of each model, ``m x k``; negative ones make lower bounds.
        box: The box.
        seed: The seed of the screening points.
        incumbents: More points of the box to screen, ``n x d``.
        context: The ``d_z`` numbers of the context, which the models see after the action.

    Returns:
        The points, ``n x d``.
    """
    if box.listed is not None:
        return box.listed
    X = screening_points_with(incumbents, box, _NUM_SCREENED, seed)
    if not box.is_filled:  # ascents need a box without constraints or steps
        return X
    mean, std = (part.unsqueeze(1) for part in models.mean_and_std(with_context(X, context)))
    values = lowest_for_others(mean + widths.unsqueeze(-1) * std)  # (m, k, n)
    starts = X[spread_best(values, X, box, _NUM_PROPOSED)].flatten(1, 2)  # (m, starts, d)
    means = UpperBounds(models, 0 * widths[:, 0], 0 * widths[:, 0], context)
    own = widths.repeat_interleave(starts.shape[1] // widths.shape[1], dim=-1)
    ends, _ = _climb(means, box, starts, values, _PROPOSED_TOLERANCE, widths=own)
    return torch.cat([X, ends.flatten(0, 1)])


def _highest(values: Tensor, num: int) -> list[int]:
    """The rows of ``m x n`` values with the highest entries, the highest first."""
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
    """Ascents from ``m x s x d`` starts, those of each model for its own bound.

    Args:
        bounds: The bounds of the m models.
        box: The box.
        starts: The starts, ``m x s x d``.
        values: Some values of the bounds, for their scale.
        tolerance: As for `maximize_over_models`.
        max_iterations: The largest number of steps of an ascent.
        widths: The width of each start, ``m x s``; None for the widths of the bounds.

    Returns:
        The ends, ``m x s x d``, and their values, ``m x s``, none below its start.
    """
    climber = _Climber(bounds, widths)
    flat = members_of(starts, climber.positions).flatten(0, 1)
    scaled = on_unit_cube(climber.value_and_gradient, box, values)
    # All starts are evaluated together, as a batch of models is not cut to those that still ascend.
    ends, _ = batched_lbfgsb(scaled, box.to_unit(flat), tolerance, max_iterations, together=True)
    ends = box.from_unit(ends)
    heights, _ = climber.value_and_gradient(ends)
    order = sorted(range(len(starts)), key=climber.positions.__getitem__)
    ends, heights = ends.view_as(starts), heights.view(starts.shape[:-1])
    return members_of(ends, order), members_of(heights, order)
