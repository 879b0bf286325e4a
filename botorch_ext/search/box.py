"""Box: the argmax of an acquisition function over it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.chunks import points_at_once
from botorch_ext.distances import distances
from botorch_ext.domains import Box
from botorch_ext.domains.contexts import with_context
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.ascent import projected_bfgs

# Screening evaluates this many points in one call on the CPU.
_CHUNK = 4096
# Multiplications that a screening may take, n^2 for each point and model: about 40 ms on one core;
# and the fewest and the most points it looks at, whatever they take.
_WORK, _FEWEST, _MOST = 2**30, 512, 2048
# Screened points for each of them that climbs, and the fewest that climb.
_SHARE, _FEWEST_STARTS = 50, 20
# Of points around the best so far, in sides of the box.
_DISTANCES = (0.1, 0.2, 0.4)


class Objective(Protocol):
    """What is maximised: batched values, and values with gradients."""

    def value(self, X: Tensor) -> Tensor:
        """``m x d`` to ``m`` values."""
        ...

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``m x d`` to ``m`` values and ``m x d`` gradients."""
        ...


class FunctionObjective:
    """Any function, through autograd.

    Args:
        function: From ``m x d`` to ``m`` values, differentiable. A BoTorch acquisition function
            ``acqf`` is ``lambda X: acqf(X.unsqueeze(-2))``.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    @torch.no_grad()
    def value(self, X: Tensor) -> Tensor:
        return self.function(X)

    @torch.enable_grad()  # also where the caller has switched it off
    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        X = X.detach().requires_grad_()
        values = self.function(X)
        if not values.requires_grad:  # constant, such as the prior of a stationary kernel
            return values, torch.zeros_like(X)
        # Zeros where the function does not look at X, such as a constant with parameters.
        (gradient,) = torch.autograd.grad(values.sum(), X, materialize_grads=True)
        # At a cusp autograd may give NaN or infinity; a zero gradient ends that start there.
        return values.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)


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
    def is_recordable(self) -> bool:
        """Whether it can be a part of a CUDA graph."""
        return self._has_gradient and self.model.is_recordable

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


def screening_points(box: Box, num_points: int, seed: int) -> Tensor:
    """Sobol points, three quarters of them with random coordinates moved to the faces of the box.

    Much of a posterior variance sits on the boundary, where Sobol points never are.

    Args:
        box: Where.
        num_points: How many.
        seed: The same seed gives the same points.

    Returns:
        ``num_points x d``.
    """
    X = box.sample(num_points, seed)
    kept = num_points // 4
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([X[:kept], on_faces(X[kept:], box, generator)])


def on_faces(X: Tensor, box: Box, generator: torch.Generator) -> Tensor:
    """Each point with a random share of its coordinates moved to the nearest face of the box.

    Args:
        X: ``m x d``, in the box.
        box: The box.
        generator: On the CPU.

    Returns:
        ``m x d``.
    """
    share = torch.rand(len(X), 1, generator=generator)
    moved = (torch.rand(len(X), box.dim, generator=generator) < share).to(box.device)
    nearest = torch.where(X < (box.lower + box.upper) / 2, box.lower, box.upper)
    return torch.where(moved, nearest, X)


def near_points(
    X: Tensor, box: Box, num: int, seed: int, distances: tuple[float, ...] = _DISTANCES
) -> Tensor:
    """Random points around given ones: bounds of short lengthscales have their maxima there, where
    few Sobol points fall.

    Args:
        X: ``m x d``, in the box.
        box: The box.
        num: How many.
        seed: The same seed gives the same points.
        distances: By turns, in sides of the box.

    Returns:
        ``num x d``.
    """
    generator = torch.Generator().manual_seed(seed)
    which = torch.randint(len(X), (num,), generator=generator)
    steps = torch.randn(num, box.dim, generator=generator, dtype=torch.float64)
    steps *= torch.tensor(distances, dtype=steps.dtype).repeat(num)[:num, None]
    U = box.to_unit(X[which.to(X.device)]) + steps.to(X)
    return box.from_unit(U.clamp(0, 1))


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
) -> tuple[Tensor, Tensor]:
    """Screens many points in one batched call, then lets the best race: a batched quasi-Newton
    ascent that starts leave when they fall behind.

    Args:
        objective: What to maximise.
        box: Where.
        seed: Seeds the screening points.
        num_raw: Screening points.
        num_starts: How many of them climb.
        extra: ``m x d`` more points to screen, such as the best so far.
        tolerance: A polish ends when a step gains less than this, relative to the spread of the
            screened values.

    Returns:
        The ``d``-dim maximiser found and its value.
    """
    X = screening_points(box, num_raw, seed)
    if extra is not None:
        X = torch.cat([extra, X])
    values = evaluate(objective, X)
    starts = X[spread_best(values, X, box, num_starts)]
    best = X[values.argmax(dim=0, keepdim=True)]
    # Where the gradient is g, the value is below the peak by about g^2.
    polished, _ = projected_bfgs(
        on_unit_cube(objective.value_and_gradient, box, values),
        box.to_unit(starts),
        0.3 * tolerance**0.5,
        tolerance,
        race=True,
        recordable=getattr(objective, "is_recordable", False),
    )
    X = torch.cat([best, box.from_unit(polished)])
    values = evaluate(objective, X)
    top = values.argmax(dim=0, keepdim=True)
    return X[top].squeeze(0), values[top].squeeze(0)


def evaluate(objective: Objective, X: Tensor) -> Tensor:
    """``m x d`` to ``m`` values, some thousand at a time; where they are not finite, the lowest
    that is."""
    chunks = X.split(points_at_once(X, _CHUNK))
    return lowest_for_others(torch.cat([objective.value(chunk) for chunk in chunks]))


def lowest_for_others(values: Tensor) -> Tensor:
    """Values of which those that are not finite are the lowest that is."""
    finite = values.isfinite()
    return torch.where(finite, values, torch.where(finite, values, math.inf).min())


def on_unit_cube(
    value_and_gradient: Callable[..., tuple[Tensor, Tensor]], box: Box, values: Tensor
) -> Callable[..., tuple[Tensor, Tensor]]:
    """A function for the routines of `ascent`: on the unit cube, where one step size fits all
    coordinates, shifted and scaled so that ``values`` lie in [-1, 0].

    Args:
        value_and_gradient: What to maximise: of ``m x d`` points, and of whatever else it takes.
        box: Where.
        values: Some of its values.

    Returns:
        From ``m x d`` points of the unit cube, and whatever else, to ``m`` values and ``m x d``
        gradients.
    """
    best = values.max()
    spread = best - values.min()
    spread = torch.where(spread > 0, spread, 1.0)
    side = (box.upper - box.lower) / spread

    def scaled(U: Tensor, *more: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = value_and_gradient(box.from_unit(U), *more)
        return (value - best) / spread, gradient * side

    return scaled


def spread_best(values: Tensor, X: Tensor, box: Box, num: int) -> Tensor:
    """The rows of the best points that have no better one near by, then of the best others.

    Args:
        values: ``*batch x m``.
        X: ``m x d``.
        box: Where the points lie.
        num: How many.

    Returns:
        At most ``num`` rows, ``*batch x num``.
    """
    return best_apart(values, X, box.to_unit, num, 8 * num, len(X) ** (-1 / box.dim))


def best_apart(
    values: Tensor,
    X: Tensor,
    scaled: Callable[[Tensor], Tensor],
    num: int,
    num_seen: int,
    distance: float,
) -> Tensor:
    """`spread_best` among the ``num_seen`` best, where points are near by that are, scaled, within
    a distance."""
    top = values.topk(min(num_seen, len(X))).indices
    U = scaled(X[top])
    near = distances(U, U) < distance
    # `top` is sorted, so a better neighbour is an earlier one.
    shadowed = near.tril(diagonal=-1).any(dim=-1)
    return top.gather(-1, shadowed.to(torch.uint8).argsort(dim=-1, stable=True)[..., :num])
