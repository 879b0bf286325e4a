"""Objectives: functions that are maximised over a box."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.chunks import points_at_once
from botorch_ext.domains import Box

# Screening evaluates this many points in one call on the CPU.
_CHUNK = 4096


class Objective(Protocol):
    """What is maximised: batched values, and values with gradients.

    It may also say the ``entries`` of its largest temporary tensor for each point, and the
    ``span``: how far below the largest of its values others make a difference.
    """

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


def evaluate(objective: Objective, X: Tensor) -> Tensor:
    """``m x d`` to ``m`` values, some thousand at a time; where they are not finite, the lowest
    that is."""
    entries = getattr(objective, "entries", 1024)
    chunks = X.split(points_at_once(X, _CHUNK, entries))
    return lowest_for_others(torch.cat([objective.value(chunk) for chunk in chunks]))


def lowest_for_others(values: Tensor) -> Tensor:
    """Values of which those that are not finite are the lowest that is."""
    finite = values.isfinite()
    return torch.where(finite, values, torch.where(finite, values, math.inf).min())


def within_span(objective: Objective, values: Tensor) -> Tensor:
    """Values of an objective for the scale of a search: none below its span."""
    span = getattr(objective, "span", None)
    return values if span is None else values.clamp_min(values.max() - span)


def on_unit_cube(
    value_and_gradient: Callable[[Tensor], tuple[Tensor, Tensor]], box: Box, values: Tensor
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A function for the routines of `ascent`: on the unit cube, where one step size fits all
    coordinates, shifted and scaled so that ``values`` lie in [-1, 0]. Columns of whole numbers or
    codes have no gradient, and stay.

    Args:
        value_and_gradient: ``m x d`` to ``m`` values and ``m x d`` gradients.
        box: Where.
        values: Some of its values.

    Returns:
        From ``m x d`` points of the unit cube to ``m`` values and ``m x d`` gradients.
    """
    best = values.max()
    spread = best - values.min()
    spread = torch.where(spread > 0, spread, 1.0)
    side = (box.upper - box.lower) / spread if box.is_plain else None

    def scaled(U: Tensor) -> tuple[Tensor, Tensor]:
        X = box.from_unit(U)
        value, gradient = value_and_gradient(X)
        scale = box.stretch(X) / spread if side is None else side
        return (value - best) / spread, gradient * scale

    return scaled
