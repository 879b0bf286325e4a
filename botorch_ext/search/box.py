"""Box: the argmax of an acquisition function over it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.distances import distances
from botorch_ext.domains import Box
from botorch_ext.domains.contexts import with_context
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.ranks import highest_first
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.search.mixed import MixedSearch
from botorch_ext.search.objectives import (
    FunctionObjective,
    Objective,
    evaluate,
    on_unit_cube,
    within_span,
)
from botorch_ext.search.screening import near_points, screening_points, spread_best

# Multiplications that a screening may take, n^2 for each point and model: about 40 ms on one core;
# and the fewest and the most points it looks at, whatever they take.
_WORK, _FEWEST, _MOST = 2**30, 512, 2048
# Screened points for each of them that climbs, and the fewest that climb.
_SHARE, _FEWEST_STARTS = 50, 20
# A second climb starts around so many of the best ends. Ends within this distance, in sides of the
# box, count as one. Climbs are repeated at most so often.
_NUM_TOPS, _APART, _MOST_ROUNDS = 3, 1e-2, 4
# Points on each line, and peaks that climb. 25 points on a line missed more maxima than 33.
_NUM_ON_LINE, _NUM_PEAKS = 33, 10
# Steps of a climb. Of a brief search: its rounds, the steps of its climbs, and how many coordinates
# of a random point change.
_MOST_STEPS, _BRIEF = 200, (1, 50, 10)
# Random points around the ends, their distances by turns, in sides of the box, and how many climb.
_NUM_AROUND, _AROUND, _NUM_NEAR = 128, (0.03, 0.1), 10


class ConfidenceBound:
    """mean_weight * mean + width * std of a `KernelGP`, its gradients in closed form where the
    kernel has them.

    Of a batch of m models, each at points of its own, it takes ``m x n x d`` to ``m x n`` values
    and ``m x n x d`` gradients.

    Args:
        model: A `KernelGP`, with one batch dimension at most.
        width: The multiplier of the standard deviation: one, or ``m x 1`` for a batch.
        mean_weight: The multiplier of the mean: 1 for an upper bound, 0 for the standard deviation
            alone.
        context: ``d_z``: points are actions, the model sees them joined with this context.
    """

    def __init__(
        self,
        model: KernelGP,
        width: Tensor | float,
        mean_weight: float = 1.0,
        context: Tensor | None = None,
    ) -> None:
        self.model = model
        self.width = width
        self.mean_weight = mean_weight
        self.context = context
        self._through_autograd = FunctionObjective(self._evaluate)

    @property
    def _has_gradient(self) -> bool:
        return self.model.has_closed_form_gradient and self.model.num_observations > 0

    def value(self, X: Tensor) -> Tensor:
        return self._through_autograd.value(X)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        if not self._has_gradient:
            return self._through_autograd.value_and_gradient(X)
        with torch.no_grad():
            joint = with_context(X, self.context)
            mean, std, mean_gradient, std_gradient = self.model.mean_std_and_gradients(joint)
            width = self.width
            value = torch.add(width * std, mean, alpha=self.mean_weight)
            width = width.unsqueeze(-1) if isinstance(width, Tensor) else width
            gradient = torch.add(width * std_gradient, mean_gradient, alpha=self.mean_weight)
            return value, gradient[..., : X.shape[-1]]

    def _evaluate(self, X: Tensor) -> Tensor:
        mean, std = self.model.mean_and_std(with_context(X, self.context))
        return self.mean_weight * mean + self.width * std


def affordable_points(num_observations: int, num_models: int = 1) -> int:
    """How many points to screen under bounds of so many models with so many observations."""
    return min(max(_WORK // ((num_observations + 1) ** 2 * num_models), _FEWEST), _MOST)


def maximize_bound(
    bound: Objective,
    box: Box,
    seed: int,
    incumbents: Tensor,
    num_observations: int,
    num_models: int = 1,
) -> Tensor:
    """The maximiser of an upper confidence bound, found with what its values leave affordable: the
    same with and without a context, for one model and for the average of several.

    Args:
        bound: What to maximise.
        box: Where.
        seed: Seeds the screening points.
        incumbents: ``n x d`` points that are screened too.
        num_observations: Of each model; a value takes n^2 multiplications.
        num_models: How many the bound is made of.

    Returns:
        ``d``.
    """
    num_raw = affordable_points(num_observations, num_models)
    num_starts = max(num_raw // _SHARE, _FEWEST_STARTS)
    extra = incumbents
    if len(incumbents):
        near = near_points(incumbents, box, num_raw // 4, seed)
        num_raw, extra = num_raw - len(near), torch.cat([incumbents, near])
    return maximize_on_box(bound, box, seed, num_raw, num_starts, extra)[0]


def maximize_on_box(
    objective: Objective,
    box: Box,
    seed: int,
    num_raw: int = 1024,
    num_starts: int = 6,
    extra: Tensor | None = None,
    tolerance: float = 1e-9,
    again: bool = False,
    brief: bool = False,
) -> tuple[Tensor, Tensor]:
    """Screens many points in one batched call, then lets the best race by batched L-BFGS-B. Where
    columns take some numbers only, or constraints hold, `MixedSearch` follows; where the points are
    few all of them are looked at.

    Args:
        objective: What to maximise.
        box: Where.
        seed: Seeds the screening points.
        num_raw: Screening points.
        num_starts: How many of them climb.
        extra: ``m x d`` more points to screen, such as the best so far.
        tolerance: How far below its maximum a climb may end, relative to the spread of the screened
            values.
        again: Whether to climb again from around the best ends, from peaks on lines along the
            coordinates and from random points, for as long as that gains. For functions with many
            maxima, the best of which differ in a few coordinates. `MixedSearch` ignores it.
        brief: Whether climbs are short and start again but once, from around the best ends and from
            points that differ from them in a few coordinates: for dear values and many dimensions.

    Returns:
        The ``d``-dim maximiser found and its value.
    """
    if box.listed is not None:
        values = evaluate(objective, box.listed)
        top = values.argmax(dim=0, keepdim=True)
        return box.listed[top].squeeze(0), values[top].squeeze(0)
    X = screening_points(box, num_raw, seed)
    if extra is not None:
        X = torch.cat([extra, X])
    values = evaluate(objective, X)
    starts = X[spread_best(values, X, box, num_starts)]
    best = X[values.argmax(dim=0, keepdim=True)]
    values = within_span(objective, values)
    if not box.is_filled:
        x, value = MixedSearch(objective, box, values, tolerance).best(torch.cat([best, starts]))
        return x.squeeze(0), value.squeeze(0)
    scaled = on_unit_cube(objective.value_and_gradient, box, values)
    least = tolerance * (values.max() - values.min())
    num_rounds, num_steps, num_columns = _MOST_ROUNDS if again else 0, _MOST_STEPS, math.inf
    if brief:
        num_rounds, num_steps, num_columns = _BRIEF

    def climbed(starts: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
        ends, _ = batched_lbfgsb(scaled, box.to_unit(starts), tolerance, num_steps, race=True)
        X = torch.cat([best, box.from_unit(ends)])
        return X, evaluate(objective, X)

    X, values = climbed(starts, best)
    for number in range(num_rounds):
        tops, before = _distinct(X, values, box), values.max()
        near = near_points(tops, box, _NUM_AROUND, seed + number, _AROUND, num_columns)
        near = near[highest_first(evaluate(objective, near), _NUM_NEAR)]
        peaks = tops[:0] if brief else _peaks(objective, box, tops, least)
        starts = torch.cat([tops[:1], peaks, near])
        X, values = climbed(starts, tops[:1])
        if not bool(values.max() > before + least):
            break
    top = values.argmax(dim=0, keepdim=True)
    return X[top].squeeze(0), values[top].squeeze(0)


def _distinct(X: Tensor, values: Tensor, box: Box) -> Tensor:
    """The points with the highest values, without those that are close to a higher one."""
    X = X[highest_first(values)]
    U = box.to_unit(X)
    is_repeated = (distances(U, U) < _APART).tril(diagonal=-1).any(dim=-1)
    return X[~is_repeated][:_NUM_TOPS]


def _peaks(objective: Objective, box: Box, centers: Tensor, least: Tensor) -> Tensor:
    """The highest local maxima on the lines along each coordinate through ``k x d`` points, without
    those next to the point itself; they are above their neighbours by more than ``least``, so that
    a coordinate that does not matter has none."""
    U = box.to_unit(centers)
    k, d = U.shape
    line, columns = torch.linspace(0, 1, _NUM_ON_LINE).to(U), torch.arange(d, device=U.device)
    lines = U[:, None, None].repeat(1, d, _NUM_ON_LINE, 1)  # k x d x points x d
    lines[:, columns, :, columns] = line
    X = box.from_unit(lines.flatten(0, 2))
    values = evaluate(objective, X)
    padded = pad(values.view(k, d, -1), (1, 1), value=-torch.inf)
    is_peak = padded[..., 1:-1] > torch.maximum(padded[..., :-2], padded[..., 2:]) + least
    is_peak &= (line - U.unsqueeze(-1)).abs() > 1 / (_NUM_ON_LINE - 1)
    X, values = X[is_peak.flatten()], values[is_peak.flatten()]
    return X[highest_first(values, _NUM_PEAKS)]
