"""A kernel of features as a kernel of joint rows."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.hyperparameters.inputs import Inputs


class FeatureKernel(Kernel):
    """A kernel of features as a kernel of joint rows.

    Args:
        base_kernel: The kernel of ``... x p`` features; it is not copied.
        inputs: The map from joint rows to features.
    """

    def __init__(self, base_kernel: Kernel, inputs: Inputs) -> None:
        super().__init__()
        self.base_kernel, self.inputs = base_kernel, inputs

    @property
    def dtype(self) -> torch.dtype:
        return self.base_kernel.dtype

    @property
    def device(self) -> torch.device | None:
        return self.base_kernel.device

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        F1, F2 = (self.inputs.features(x).to(x) for x in (x1, x2))
        values = self.base_kernel(F1, F2, diag=diag, **params)
        return values if diag else values.to_dense()
