"""The argmax of an acquisition function over a box."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.domains import Box, host
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.distances import distances
from botorch_ext.domains.ranks import highest_first
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.ascent import ascent_of_least, batched_lbfgsb
from botorch_ext.search.mixed import MixedSearch
from botorch_ext.search.objectives import (
    FunctionObjective,
    Objective,
    evaluate,
    on_unit_cube,
    within_span,
)
from botorch_ext.search.screening import near_points, screening_points, spread_best

# The number of multiplications that a screening may take, n^2 for each point and model, which is
# about 40 ms on one core; and the least and the largest number of screened points.
_WORK, _FEWEST, _MOST = 2**30, 512, 2048
# The number of screened points for each start, and the least number of starts.
_SHARE, _FEWEST_STARTS = 50, 20
# The number of best ends around which the next round starts; the distance, in sides of the box,
# within which ends count as one; and the largest number of rounds.
_NUM_TOPS, _APART, _MOST_ROUNDS = 3, 1e-2, 4
# The number of points on each line, and of peaks that are starts. 25 points missed more maxima than
# 33.
_NUM_ON_LINE, _NUM_PEAKS = 33, 10
# The number of steps of an ascent; and for a brief search its rounds, the steps of its ascents, and
# the number of coordinates of a random point that change.
_MOST_STEPS, _BRIEF = 200, (1, 50, 10)
# For objectives with kinks: the limits of an ascent, which may stop at a kink, and the loss,
# relative to the screened values, at which its end is out of the running.
_TO_KINKS, _KINK_LOSS = {"max_iterations": 4, "num_tried": 3}, 0.01
# The number of random points around the ends, their distances in sides of the box, used in turn,
# and the number of them that are starts.
_NUM_AROUND, _AROUND, _NUM_NEAR = 128, (0.03, 0.1), 10


class ConfidenceBound:
    """The bound mean_weight * mean + width * std of a `KernelGP`, with gradients in closed form if
    the kernel has them.

    For a batch of m models, each at its own points, it maps ``m x n x d`` points to ``m x n``
    values and ``m x n x d`` gradients.

    Args:
        model: A `KernelGP` with at most one batch dimension.
        width: The multiplier of the standard deviation: one number, or ``m x 1`` for a batch.
        mean_weight: The multiplier of the mean: 1 for an upper bound, 0 for the standard deviation
            alone.
        context: The ``d_z`` numbers of the context, which the model sees after the action; None
            without contexts.
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
    def entries(self) -> int:
        """The number of entries of the kernel matrix between one point and the data."""
        return self.model.num_observations

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
    """The number of points to screen for bounds of some models with some observations."""
    return min(max(_WORK // ((num_observations + 1) ** 2 * num_models), _FEWEST), _MOST)


def maximize_bound(
    bound: Objective,
    box: Box,
    seed: int,
    incumbents: Tensor,
    num_observations: int,
    num_models: int = 1,
) -> Tensor:
    """The maximiser of an upper confidence bound, found by a search whose size depends on the cost
    of a value. It is the same search with and without a context, for one model and for an average.

    Args:
        bound: The bound to maximise.
        box: The box.
        seed: The seed of the screening points.
        incumbents: More points to screen, ``n x d``.
        num_observations: The number n of observations of each model; a value takes n^2
            multiplications.
        num_models: The number of models in the bound.

    Returns:
        The ``d``-dim maximiser.
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
    """The maximiser over a box: screens many points in one batched call, then runs batched L-BFGS-B
    from the best of them. If columns take only some numbers, or constraints hold, `MixedSearch`
    takes its place; if the points of the box can be listed, all of them are evaluated.

    Args:
        objective: The function to maximise.
        box: The box.
        seed: The seed of the screening points.
        num_raw: The number of screening points.
        num_starts: The number of them that are starts of ascents.
        extra: More points to screen, ``m x d``, such as the best so far.
        tolerance: The largest distance below its maximum at which an ascent may end, relative to
            the spread of the screened values.
        again: Whether to repeat ascents from around the best ends, from peaks on lines along the
            coordinates and from random points, as long as that gains. This is for functions with
            many maxima, the best of which differ in a few coordinates. `MixedSearch` ignores it.
        brief: Whether ascents are short and are repeated only once, from around the best ends and
            from points that differ from them in a few coordinates. This is for costly values and
            many dimensions.

    Returns:
        The ``d``-dim maximiser found, and its value.
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
    screened = within_span(objective, values)
    if not box.is_filled:
        x, value = MixedSearch(objective, box, screened, tolerance).best(torch.cat([best, starts]))
        return x.squeeze(0), value.squeeze(0)
    scaled = on_unit_cube(objective.value_and_gradient, box, screened)
    least = tolerance * (screened.max() - screened.min())
    num_rounds, num_steps, num_columns = _MOST_ROUNDS if again else 0, _MOST_STEPS, math.inf
    if brief:
        num_rounds, num_steps, num_columns = _BRIEF
    cuts = getattr(objective, "cuts", None)
    limits: Any = {"max_iterations": num_steps} if cuts is None else _TO_KINKS

    def climbed(starts: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
        ends, _ = batched_lbfgsb(scaled, box.to_unit(starts), tolerance, race=True, **limits)
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
    if cuts is not None:
        close = values >= values.max() - _KINK_LOSS * least / tolerance
        X = _distinct(X[close], values[close], box)
        scaled_cuts = on_unit_cube(cuts, box, screened)
        ends = [ascent_of_least(scaled_cuts, start) for start in box.to_unit(X)]
        X = torch.cat([X, box.from_unit(torch.stack(ends))])
        values = evaluate(objective, X)
    top = values.argmax(dim=0, keepdim=True)
    return X[top].squeeze(0), values[top].squeeze(0)


def _distinct(X: Tensor, values: Tensor, box: Box) -> Tensor:
    """The points with the highest values, without those close to a higher one."""
    X = X[highest_first(values)]
    U = box.to_unit(X)
    is_repeated = (distances(U, U) < _APART).tril(diagonal=-1).any(dim=-1)
    return X[~is_repeated][:_NUM_TOPS]


def _peaks(objective: Objective, box: Box, centers: Tensor, least: Tensor) -> Tensor:
    """The highest local maxima on the lines along each coordinate through ``k x d`` points, without
    those next to the point itself. They exceed their neighbours by more than ``least``, so that a
    coordinate without effect has none."""
    U = box.to_unit(centers)
    k, d = U.shape
    line, columns = host.linspace(0, 1, _NUM_ON_LINE).to(U), torch.arange(d, device=U.device)
    lines = U[:, None, None].repeat(1, d, _NUM_ON_LINE, 1)  # k x d x points x d
    lines[:, columns, :, columns] = line
    X = box.from_unit(lines.flatten(0, 2))
    values = evaluate(objective, X)
    padded = pad(values.view(k, d, -1), (1, 1), value=-torch.inf)
    is_peak = padded[..., 1:-1] > torch.maximum(padded[..., :-2], padded[..., 2:]) + least
    is_peak &= (line - U.unsqueeze(-1)).abs() > 1 / (_NUM_ON_LINE - 1)
    X, values = X[is_peak.flatten()], values[is_peak.flatten()]
    return X[highest_first(values, _NUM_PEAKS)]
