"""CombinedKernel: sums and products of frozen kernels."""

from __future__ import annotations

from functools import reduce
from operator import add, mul

import torch
from torch import Tensor, nn

from botorch_ext.kernels.frozen.base import KernelFunction, Pullback


class CombinedKernel(KernelFunction):
    """A sum or a product of frozen kernels, times an optional output scale.

    Args:
        parts: The frozen kernels.
        product: Whether the parts are multiplied; otherwise they are added.
        outputscale: The output scale, ``*batch``; None for 1.
    """

    outputscale: Tensor | None

    def __init__(
        self, parts: list[KernelFunction], product: bool, outputscale: Tensor | None
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.product = product
        self.register_buffer("outputscale", outputscale)
        shapes = [part.batch_shape for part in parts]
        if outputscale is not None:
            shapes.append(outputscale.shape)
        self.batch_shape = torch.broadcast_shapes(*shapes)
        self.has_closed_form_gradient = all(part.has_closed_form_gradient for part in parts)

    def _rescale(self, value: Tensor, num_data_dims: int) -> Tensor:
        if self.outputscale is None:
            return value
        return value * self.outputscale[(...,) + (None,) * num_data_dims]

    def _combine(self, values: list[Tensor], num_data_dims: int) -> Tensor:
        return self._rescale(reduce(mul if self.product else add, values), num_data_dims)

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self._combine([part(X1, X2) for part in self.parts], 2)

    def diagonal(self, X: Tensor) -> Tensor:
        return self._combine([part.diagonal(X) for part in self.parts], 1)  # pyright: ignore[reportCallIssue]

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        pairs = [part.value_and_pullback(X1, X2) for part in self.parts]  # pyright: ignore[reportCallIssue]
        values = [value for value, _ in pairs]

        def pullback(W: Tensor) -> Tensor:
            W = self._rescale(W, 2)
            if not self.product:
                return reduce(add, [pull(W) for _, pull in pairs])
            others = [values[:i] + values[i + 1 :] for i in range(len(values))]
            weights = [reduce(mul, other, W) for other in others]
            return reduce(add, [pull(V) for (_, pull), V in zip(pairs, weights, strict=True)])

        return self._combine(values, 2), pullback

    def restricted(self, masks: Tensor) -> CombinedKernel:
        parts = [part.restricted(masks) for part in self.parts]  # pyright: ignore[reportCallIssue]
        outputscale = None if self.outputscale is None else self.outputscale.unsqueeze(-1)
        return CombinedKernel(parts, self.product, outputscale)
