"""GroupedKernel: weighted sums of a frozen kernel over groups of columns."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernels.frozen.base import KernelFunction, Pullback


class GroupedKernel(KernelFunction):
    """A weighted sum of one frozen kernel over groups of columns.

    Args:
        base: The frozen kernel; without batch dimensions if the whole batch shares it.
        masks: Masks of zeros and ones, ``*batch x groups x d``.
        weights: The weights of the groups, ``*batch x groups``.
    """

    weights: Tensor
    distinct_weights: Tensor

    def __init__(self, base: KernelFunction, masks: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.batch_shape = torch.broadcast_shapes(base.batch_shape, weights.shape[:-1])
        used = int((weights != 0).sum(dim=-1).max())
        order = (weights == 0).to(torch.uint8).argsort(dim=-1, stable=True)[..., :used]
        masks = masks.take_along_dim(order.unsqueeze(-1), dim=-2)
        weights = weights.take_along_dim(order, dim=-1)
        self.parts = base.restricted(masks)
        self.register_buffer("weights", weights)
        self.has_closed_form_gradient = self.parts.has_closed_form_gradient
        # Different decompositions of few columns share most of their groups.
        self.distinct = None
        if base.batch_shape == () and self.batch_shape:
            distinct, which = masks.flatten(0, -2).unique(dim=0, return_inverse=True)
            if len(distinct) < len(which):
                members = weights.new_zeros(*weights.shape[:-1], len(distinct))
                members.scatter_add_(-1, which.reshape(weights.shape), weights)
                kept = distinct.any(dim=-1)  # without the empty group of unused masks
                self.distinct = base.restricted(distinct[kept])
                self.register_buffer("distinct_weights", members[..., kept])

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        if self.distinct is not None and X1.ndim == X2.ndim == 2:
            values = self.distinct(X1, X2)
            total = self.distinct_weights @ values.flatten(-2)
        else:
            values = self.parts(_with_groups(X1), _with_groups(X2))
            total = (self.weights.unsqueeze(-2) @ values.flatten(-2)).squeeze(-2)
        return total.unflatten(-1, values.shape[-2:])

    def diagonal(self, X: Tensor) -> Tensor:
        values = self.parts.diagonal(X.unsqueeze(-3))
        return (self.weights.unsqueeze(-1) * values).sum(dim=-2)

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        values, pull = self.parts.value_and_pullback(_with_groups(X1), _with_groups(X2))
        weights = self.weights[..., None, None]

        def pullback(W: Tensor) -> Tensor:
            return pull(weights * W.unsqueeze(-3)).sum(dim=-3)

        return (weights * values).sum(dim=-3), pullback


def _with_groups(X: Tensor) -> Tensor:
    """Points, ``*batch x n x d``, with a dimension for groups; without batch dimensions they
    broadcast as they are."""
    return X if X.ndim == 2 else X.unsqueeze(-3)
