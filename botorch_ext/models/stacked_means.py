"""StackedMean: the prior means of the models of a batch as one function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import torch
from gpytorch.means import ConstantMean
from torch import Tensor, nn

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.checks import PriorMean


class StackedMean(nn.Module):
    """The prior means of m models as one function.

    Args:
        means: The m frozen prior means, each ``... x n x d`` to ``... x n``; None for zero. A mean
            that several models share is evaluated once.
    """

    def __init__(self, means: Sequence[PriorMean | None]) -> None:
        super().__init__()
        self.means = list(means)
        self.held = nn.ModuleList(mean for mean in means if isinstance(mean, nn.Module))

    def forward(self, X: Tensor) -> Tensor:
        """The prior means of all models.

        Args:
            X: Points, ``n x d``, or ``... x (1 or m) x n x d`` with a dimension for the models.

        Returns:
            The means, ``m x n`` or ``... x m x n``.
        """
        shared = X.ndim == 2 or X.shape[-3] == 1
        values: dict[int, Tensor] = {}
        stacked = []
        for i, mean in enumerate(self.means):
            if not shared:
                stacked.append(_mean_at(mean, X[..., i, :, :]))
                continue
            if id(mean) not in values:
                values[id(mean)] = _mean_at(mean, X if X.ndim == 2 else X[..., 0, :, :])
            stacked.append(values[id(mean)])
        return torch.stack(stacked, dim=-2)


def stacked_mean(means: Sequence[PriorMean | None], like: Tensor) -> PriorMean | None:
    """Combine the prior means of m models.

    Returns:
        A mean that all models share, a batch of constants, or a `StackedMean`.
    """
    if all(mean is means[0] for mean in means):
        return means[0]
    constants = [mean.constant for mean in means if _is_constant(mean)]
    if len(constants) < len(means):
        return StackedMean(means)
    return _constant_mean(torch.stack(constants).to(like))


def selected_mean(mean: PriorMean | None, index: int | list[int]) -> PriorMean | None:
    """Select the prior means of some models.

    Args:
        mean: A `stacked_mean`, or a mean that all models share.
        index: The position of one model, or positions.
    """
    if isinstance(mean, StackedMean):
        if isinstance(index, int):
            return mean.means[index]
        return StackedMean([mean.means[i] for i in index])
    if _is_constant(mean) and mean.batch_shape:
        return _constant_mean(members_of(mean.constant, index).clone())
    return mean


def _is_constant(mean: PriorMean | None) -> TypeGuard[ConstantMean]:
    return type(mean) is ConstantMean


def _constant_mean(constant: Tensor) -> ConstantMean:
    mean = ConstantMean(batch_shape=constant.shape).to(constant)
    mean.raw_constant = nn.Parameter(constant, requires_grad=False)
    return mean


def _mean_at(mean: PriorMean | None, X: Tensor) -> Tensor:
    return X.new_zeros(X.shape[:-1]) if mean is None else mean(X)
