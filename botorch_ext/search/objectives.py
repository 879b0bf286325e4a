"""Functions that are maximised over a box."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.domains.chunks import in_chunks


class Objective(Protocol):
    """A function to maximise: batched values, and values with gradients.

    It may also have ``entries``, the size of its largest temporary tensor per point; ``span``, the
    distance below the largest value beyond which values are ignored for the scale; and, if its
    values are the least of s smooth functions, ``cuts``, a function from ``m x d`` points to the
    ``s x m`` values of these and their ``s x m x d`` gradients.
    """

    def value(self, X: Tensor) -> Tensor:
        """The ``m`` values at ``m x d`` points."""
        ...

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``m`` values and the ``m x d`` gradients at ``m x d`` points."""
        ...


class FunctionObjective:
    """Any function, with gradients from autograd.

    Args:
        function: A differentiable function from ``m x d`` points to ``m`` values. A BoTorch
            acquisition function ``acqf`` is ``lambda X: acqf(X.unsqueeze(-2))``.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    @torch.no_grad()
    def value(self, X: Tensor) -> Tensor:
        return self.function(X)

    @torch.enable_grad()  # even if the caller has switched it off
    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        X = X.detach().requires_grad_()
        values = self.function(X)
        if not values.requires_grad:  # constant, such as the prior of a stationary kernel
            return values, torch.zeros_like(X)
        # Zeros if the function does not depend on X, such as a constant with parameters.
        (gradient,) = torch.autograd.grad(values.sum(), X, materialize_grads=True)
        # At a cusp autograd may give NaN or infinity; a zero gradient ends that start there.
        return values.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)


def evaluate(objective: Objective, X: Tensor) -> Tensor:
    """The ``m`` values at ``m x d`` points, computed in chunks; values that are not finite are
    replaced by the lowest finite one."""
    entries = getattr(objective, "entries", 1024)
    values = [objective.value(chunk) for chunk in in_chunks(X, entries)]
    return lowest_for_others(torch.cat(values))


def lowest_for_others(values: Tensor) -> Tensor:
    """The values, with those that are not finite replaced by the lowest finite one."""
    finite = values.isfinite()
    return torch.where(finite, values, torch.where(finite, values, math.inf).min())


def within_span(objective: Objective, values: Tensor) -> Tensor:
    """The values of an objective for the scale of a search, raised to its span."""
    span = getattr(objective, "span", None)
    return values if span is None else values.clamp_min(values.max() - span)


def on_unit_cube(
    value_and_gradient: Callable[[Tensor], tuple[Tensor, Tensor]], box: Box, values: Tensor
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """The function on the unit cube, for the routines of `ascent`, so that one step size fits all
    coordinates. Its values are shifted and scaled so that ``values`` lie in [-1, 0]. The gradient
    by columns of whole numbers or codes is 0, so these stay.

    Args:
        value_and_gradient: The function, from ``m x d`` points to ``m`` values and ``m x d``
            gradients.
        box: The box.
        values: Some of its values.

    Returns:
        A function from ``m x d`` points of the unit cube to ``m`` values and ``m x d`` gradients.
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
