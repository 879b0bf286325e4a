"""From GPyTorch kernels to frozen ones."""

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

from botorch_ext.kernel_functions.base import GenericKernel, KernelFunction
from botorch_ext.kernel_functions.columns import ColumnsKernel
from botorch_ext.kernel_functions.combined import CombinedKernel
from botorch_ext.kernel_functions.grouped import GroupedKernel
from botorch_ext.kernel_functions.periodic import PeriodicKernel as FrozenPeriodicKernel
from botorch_ext.kernel_functions.stationary import StationaryKernel
from botorch_ext.kernel_functions.tasks import TaskKernel as FrozenTaskKernel
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.kernels import AdditiveKernel as AdditiveGroupsKernel
from botorch_ext.kernels.batch_values import own_values, set_own_value
from botorch_ext.kernels.tasks import task_covariance


def require_unbatched(kernel: Kernel) -> None:
    """Raises a ValueError if the kernel is a batch of kernels."""
    if len(kernel.batch_shape) > 0:
        raise ValueError(
            f"kernel must have no batch dimensions, got batch_shape {tuple(kernel.batch_shape)}"
        )


def freeze(kernel: Kernel, dtype: torch.dtype, device: torch.device) -> KernelFunction:
    """A frozen copy of a GPyTorch kernel; later changes of the kernel do not reach it.

    Args:
        kernel: Any GPyTorch kernel; its batch shape means many kernels at once.
        dtype: The dtype of the copy.
        device: The device of the copy.

    Returns:
        A `KernelFunction` with the values of ``kernel``.
    """
    copy = deepcopy(kernel).to(dtype=dtype, device=device).requires_grad_(False)
    return _compose(copy.eval()).to(device=device)


def _compose(kernel: Kernel) -> KernelFunction:
    # Exact types only: a subclass may override forward.
    if type(kernel) is ScaleKernel and _same_columns(kernel, kernel.base_kernel):
        base, outputscale = _compose(kernel.base_kernel), kernel.outputscale.detach().clone()
        if isinstance(base, StationaryKernel) and base.outputscale is None:
            lengthscale = 1 / base.inverse_lengthscale
            return StationaryKernel(base.nu, lengthscale, outputscale, base.active_dims)
        return CombinedKernel([base], product=False, outputscale=outputscale)
    if type(kernel) in (AdditiveKernel, ProductKernel) and kernel.active_dims is None:
        parts = [_compose(part) for part in kernel.kernels]
        return CombinedKernel(parts, product=type(kernel) is ProductKernel, outputscale=None)
    if type(kernel) in (RBFKernel, MaternKernel):
        nu = math.inf if type(kernel) is RBFKernel else float(kernel.nu)
        return StationaryKernel(nu, kernel.lengthscale.detach().clone(), None, kernel.active_dims)
    if type(kernel) is PeriodicKernel:
        period, lengthscale = kernel.period_length.detach(), kernel.lengthscale.detach().clone()
        return FrozenPeriodicKernel(period, lengthscale, kernel.active_dims)
    if type(kernel) is AdditiveGroupsKernel and kernel.active_dims is None:
        base = _compose(_without_repeats(kernel.base_kernel))
        return GroupedKernel(base, kernel.masks, kernel.weights)
    if type(kernel) is ActionContextKernel:
        return _compose_parts(kernel)
    covariance = task_covariance(kernel)
    if covariance is not None:
        return FrozenTaskKernel(covariance.detach(), kernel.active_dims)
    return GenericKernel(kernel)


def _compose_parts(kernel: ActionContextKernel) -> CombinedKernel:
    parts = [kernel.action_kernel, kernel.context_kernel]
    once = [_without_repeats(part) for part in parts]
    if torch.broadcast_shapes(*(part.batch_shape for part in once)) == kernel.batch_shape:
        parts = once
    frozen: list[KernelFunction] = [
        ColumnsKernel(_compose(part), columns, kernel.least_columns)
        for part, columns in zip(parts, kernel.selections, strict=True)
    ]
    product = kernel.combination == "product"
    half = None if product else torch.tensor(0.5, dtype=kernel.dtype, device=kernel.device)
    return CombinedKernel(frozen, product, outputscale=half)


def _without_repeats(kernel: Kernel) -> Kernel:
    """One kernel in place of a batch of the same."""
    if not kernel.batch_shape:
        return kernel
    first = deepcopy(kernel)
    for module in first.modules():
        if not isinstance(module, Kernel):
            continue
        batch = module._batch_shape
        for name, values in own_values(module).items():
            value = values[(0,) * len(batch)]
            if values.shape[: len(batch)] != batch or not bool((values == value).all()):
                return kernel
            set_own_value(module, name, value)
        module.batch_shape = torch.Size()
    return first


def _same_columns(kernel: Kernel, base: Kernel) -> bool:
    """Whether a `ScaleKernel`, which takes over the columns of its base and then goes past them,
    looks where its base says."""
    if kernel.active_dims is None or base.active_dims is None:
        return kernel.active_dims is base.active_dims
    return torch.equal(kernel.active_dims, base.active_dims)
