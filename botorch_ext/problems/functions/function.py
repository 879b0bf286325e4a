"""A function of the user's as a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.problems.base import KnownFunction

# The step of a difference quotient, in lengths of a side.
_STEP = 1e-5


class Function(KnownFunction):
    """A function of the user's, which need not be one that PyTorch differentiates.

    Its maximum is exact on a finite set. On a box it is found by a search with difference
    quotients, of some thousand calls, which is exact for smooth functions alone.

    Args:
        domain: The domain on which the function is maximised; it gives dtype and device.
        f: The function, from ``n x d`` points to their ``n`` values without noise.
        noise_std: The standard deviation of the observation noise, in units of the function.

    Raises:
        ValueError: If ``f`` is no function, or the noise is negative or infinite; when called, if
            ``f`` does not return ``n`` finite values.

    Example:
        >>> import botorch_ext as bx
        >>> points = bx.FiniteSet([[0.0], [0.5], [1.0]])
        >>> f = bx.problems.Function(points, lambda X: -(X[:, 0] - 0.4) ** 2, noise_std=0.1)
        >>> f.optimizer
        tensor([0.5000], dtype=torch.float64)
    """

    def __init__(self, domain: Domain, f: Callable[[Tensor], Any], noise_std: float = 0.0) -> None:
        super().__init__(domain, noise_std)
        if not callable(f):
            raise ValueError(f"f must be a function of points, got {short(f)}")
        self.f = f

    def _evaluate(self, X: Tensor) -> Tensor:
        return _Quotients.apply(X, self._values, self.domain)

    def _values(self, X: Tensor) -> Tensor:
        values = torch.as_tensor(self.f(X.detach()), device=X.device).detach().to(X.dtype)
        if values.shape != X.shape[:1] or not bool(values.isfinite().all()):
            raise ValueError(
                f"f must return a finite value for each of {len(X)} points, got {short(values)}"
            )
        return values


class _Quotients(torch.autograd.Function):
    """Values of a function with the gradients of difference quotients."""

    @staticmethod
    def forward(
        ctx: Any, X: Tensor, values: Callable[[Tensor], Tensor], domain: Box | FiniteSet
    ) -> Tensor:
        ctx.save_for_backward(X)
        ctx.values, ctx.domain = values, domain
        return values(X)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (X,), (weights,), box = ctx.saved_tensors, grads, ctx.domain
        gradient = torch.zeros_like(X)
        # A search moves the others by their steps.
        steady = {*box.integer, *box.steps, *box.categories}
        for j in {*range(X.shape[-1])} - steady:
            ends = []
            for sign in (1, -1):  # inside the box, where the function is known
                moved = X.clone()
                moved[:, j] += sign * _STEP * (box.upper[j] - box.lower[j])
                ends.append(torch.minimum(torch.maximum(moved, box.lower), box.upper))
            rise = ctx.values(ends[0]) - ctx.values(ends[1])
            gradient[:, j] = rise / (ends[0] - ends[1])[:, j]
        return weights.unsqueeze(-1) * gradient, None, None
