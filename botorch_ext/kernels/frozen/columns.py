"""ColumnsKernel: a frozen kernel that sees some columns of its inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.kernels.columns import Selection, require_columns
from botorch_ext.kernels.frozen.base import KernelFunction, Pullback


class ColumnsKernel(KernelFunction):
    """A frozen kernel that sees only some columns of its inputs.

    Args:
        base: The frozen kernel, for which these columns are numbered from 0.
        selection: The columns: a slice, or a list without repetitions.
        least: The least number of columns of the inputs.
    """

    listed: Tensor | None

    def __init__(self, base: KernelFunction, selection: Selection, least: int) -> None:
        super().__init__()
        self.base = base
        self.least = least
        self.selection: Selection = selection
        listed = None if isinstance(selection, slice) else host.tensor(selection)
        self.register_buffer("listed", listed)
        self.batch_shape = base.batch_shape
        self.has_closed_form_gradient = base.has_closed_form_gradient

    @property
    def _where(self) -> Selection | Tensor:
        return self.selection if self.listed is None else self.listed

    def columns(self, dim: int) -> list[int]:
        """The columns that the kernel sees.

        Args:
            dim: The number of columns of the inputs.

        Raises:
            ValueError: If the inputs have too few columns.
        """
        every = host.arange(dim)
        require_columns(every, self.least)
        return every[self.selection].tolist()  # on the host, wherever the kernel lives

    def _of(self, X: Tensor) -> Tensor:
        require_columns(X, self.least)
        return X[..., self._where]

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self.base(self._of(X1), self._of(X2))

    def diagonal(self, X: Tensor) -> Tensor:
        return self.base.diagonal(self._of(X))

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        K, pull = self.base.value_and_pullback(self._of(X1), self._of(X2))

        def pullback(W: Tensor) -> Tensor:
            gradient = pull(W)
            full = gradient.new_zeros(*gradient.shape[:-1], X2.shape[-1])
            full[..., self._where] = gradient
            return full

        return K, pullback

    def restricted(self, masks: Tensor) -> ColumnsKernel:
        return ColumnsKernel(self.base.restricted(self._of(masks)), self.selection, self.least)
