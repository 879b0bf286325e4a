"""Freezing of GPyTorch kernels."""

from __future__ import annotations

import math
from copy import deepcopy

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)

from botorch_ext.kernels import ActionContextKernel, GroupAdditiveKernel, NuggetKernel
from botorch_ext.kernels.batching import without_repeats
from botorch_ext.kernels.checks import require_kernel
from botorch_ext.kernels.frozen.base import GenericKernel, KernelFunction
from botorch_ext.kernels.frozen.columns import ColumnsKernel
from botorch_ext.kernels.frozen.combined import CombinedKernel
from botorch_ext.kernels.frozen.constant import NuggetKernel as FrozenNuggetKernel
from botorch_ext.kernels.frozen.constant import TaskKernel as FrozenTaskKernel
from botorch_ext.kernels.frozen.grouped import GroupedKernel
from botorch_ext.kernels.frozen.periodic import PeriodicKernel as FrozenPeriodicKernel
from botorch_ext.kernels.frozen.stationary import StationaryKernel
from botorch_ext.kernels.structure import composition
from botorch_ext.kernels.tasks import task_covariance


def require_unbatched(kernel: Kernel) -> None:
    """Check that a kernel has no batch dimensions.

    Raises:
        ValueError: If it is batched, or not a GPyTorch kernel.
    """
    require_kernel(kernel)
    if len(kernel.batch_shape) > 0:
        raise ValueError(
            f"kernel must have no batch dimensions, got batch_shape {tuple(kernel.batch_shape)}"
        )


def freeze(kernel: Kernel, dtype: torch.dtype, device: torch.device) -> KernelFunction:
    """Copy a GPyTorch kernel to a frozen one, which later changes of the kernel do not affect.

    Args:
        kernel: Any GPyTorch kernel; batch dimensions stand for several kernels.
        dtype: The dtype of the copy.
        device: The device of the copy.

    Returns:
        A `KernelFunction` with the values of ``kernel``.

    Raises:
        ValueError: If it is not a GPyTorch kernel.
    """
    require_kernel(kernel)
    copy = deepcopy(kernel).to(dtype=dtype, device=device).requires_grad_(False)
    return composed(copy).to(device=device)


def composed(kernel: Kernel) -> KernelFunction:
    """Make a frozen kernel without a copy.

    Args:
        kernel: A GPyTorch kernel that is not changed any more.

    Returns:
        A `KernelFunction` that may share tensors with ``kernel``.
    """
    return _compose(kernel.eval())


def _compose(kernel: Kernel) -> KernelFunction:
    # Exact types only: a subclass may override forward.
    if type(kernel) is ScaleKernel and _same_columns(kernel, kernel.base_kernel):
        base, outputscale = _compose(kernel.base_kernel), kernel.outputscale.detach().clone()
        if isinstance(base, StationaryKernel) and base.outputscale is None:
            lengthscale = 1 / base.inverse_lengthscale
            return StationaryKernel(base.nu, lengthscale, outputscale, base.active_dims)
        return CombinedKernel([base], product=False, outputscale=outputscale)
    made = composition(kernel)
    if made and type(kernel) in (AdditiveKernel, ProductKernel) and kernel.active_dims is None:
        parts = [_compose(part) for part in made.parts]
        return CombinedKernel(parts, product=made.kind == "product", outputscale=None)
    if type(kernel) in (RBFKernel, MaternKernel):
        nu = math.inf if type(kernel) is RBFKernel else float(kernel.nu)
        return StationaryKernel(nu, kernel.lengthscale.detach().clone(), None, kernel.active_dims)
    if type(kernel) is PeriodicKernel:
        period, lengthscale = kernel.period_length.detach(), kernel.lengthscale.detach().clone()
        return FrozenPeriodicKernel(period, lengthscale, kernel.active_dims)
    if type(kernel) is GroupAdditiveKernel and kernel.active_dims is None:
        base = _compose(without_repeats(kernel.base_kernel))
        return GroupedKernel(base, kernel.masks, kernel.weights)
    if type(kernel) is ActionContextKernel:
        return _compose_parts(kernel)
    if type(kernel) is NuggetKernel:
        return FrozenNuggetKernel(kernel.variance.clone(), kernel.active_dims)
    covariance = task_covariance(kernel)
    if covariance is not None:
        return FrozenTaskKernel(covariance.detach(), kernel.active_dims)
    return GenericKernel(kernel)


def _compose_parts(kernel: ActionContextKernel) -> CombinedKernel:
    parts = [kernel.action_kernel, kernel.context_kernel]
    once = [without_repeats(part) for part in parts]
    if torch.broadcast_shapes(*(part.batch_shape for part in once)) == kernel.batch_shape:
        parts = once
    frozen: list[KernelFunction] = [
        ColumnsKernel(_compose(part), columns, kernel.least_columns)
        for part, columns in zip(parts, kernel.selections, strict=True)
    ]
    product = kernel.combination == "product"
    half = None if product else torch.tensor(0.5, dtype=kernel.dtype, device=kernel.device)
    return CombinedKernel(frozen, product, outputscale=half)


def _same_columns(kernel: Kernel, base: Kernel) -> bool:
    """Whether a `ScaleKernel` sees the columns of its base; GPyTorch copies ``active_dims`` to it
    but does not use them afterwards."""
    if kernel.active_dims is None or base.active_dims is None:
        return kernel.active_dims is base.active_dims
    return torch.equal(kernel.active_dims, base.active_dims)
