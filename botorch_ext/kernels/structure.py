"""The structure of kernels: their parts, the columns of the parts, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Literal, NamedTuple

from gpytorch.kernels import AdditiveKernel, Kernel, PeriodicKernel, ProductKernel, ScaleKernel
from torch import Tensor, nn

from botorch_ext.kernels.action_context import ActionContextKernel
from botorch_ext.kernels.checks import require_kernel

# Columns of the joint inputs; a single number stands for all columns from there on.
Columns = Sequence[int] | int


class Composition(NamedTuple):
    """How a kernel is composed of others.

    Args:
        kind: The operation on the values of the parts.
        parts: The kernels that it is composed of.
    """

    kind: Literal["scale", "sum", "product"]
    parts: tuple[Kernel, ...]


def composition(kernel: Kernel) -> Composition | None:
    """How a kernel is composed of others.

    Returns:
        The composition of a multiple, a sum, a product or an `ActionContextKernel`; None for any
        other kernel.
    """
    if isinstance(kernel, ScaleKernel):
        return Composition("scale", (kernel.base_kernel,))
    if isinstance(kernel, AdditiveKernel):
        return Composition("sum", tuple(kernel.kernels))
    if isinstance(kernel, ProductKernel):
        return Composition("product", tuple(kernel.kernels))
    if isinstance(kernel, ActionContextKernel):
        kind = "sum" if kernel.combination == "sum" else "product"
        return Composition(kind, (kernel.action_kernel, kernel.context_kernel))
    return None


def leaves(
    kernel: Kernel, columns: Columns = 0, taken: bool = False
) -> Iterator[tuple[Kernel, Columns]]:
    """Iterate over the parts that are not composed of others, with the joint columns they see.

    Args:
        kernel: Any GPyTorch kernel.
        columns: The joint columns that the kernel is given.
        taken: Whether ``columns`` are already restricted to the ``active_dims`` of the kernel.

    Yields:
        A part and its columns.

    Raises:
        ValueError: If a part uses columns that do not exist.
    """
    if kernel.active_dims is not None and not taken:
        columns = _chosen(columns, kernel.active_dims.reshape(-1).tolist())
    made = composition(kernel)
    if made is None:
        yield kernel, columns
    elif isinstance(kernel, ActionContextKernel):
        yield from leaves(kernel.action_kernel, _chosen(columns, kernel.action_columns))
        yield from leaves(kernel.context_kernel, _contexts(columns, kernel))
    else:
        for part in made.parts:  # a multiple has the columns of its base
            yield from leaves(part, columns, taken=made.kind == "scale")


def _chosen(columns: Columns, places: Sequence[int]) -> list[int]:
    """The joint columns at these places of the columns that a kernel is given."""
    if isinstance(columns, int):
        return [columns + place for place in places]
    if max(places) >= len(columns):
        raise ValueError(
            f"kernel must have parts on existing columns, got one on the columns {list(places)} of "
            f"{len(columns)} columns"
        )
    return [columns[place] for place in places]


def _contexts(columns: Columns, kernel: ActionContextKernel) -> Columns:
    if kernel.context_columns is not None:
        return _chosen(columns, kernel.context_columns)
    first = len(kernel.action_columns)
    return columns + first if isinstance(columns, int) else columns[first:]


# --- numbers --------------------------------------------------------------------------------------


def plain_kernel(kernel: Kernel, like: Tensor, name: str = "kernel") -> Kernel:
    """Copy a kernel without gradients and priors.

    Args:
        kernel: A GPyTorch kernel.
        like: A tensor with the dtype and device of the copy.
        name: The name of the argument, for the message.

    Raises:
        ValueError: If it is not a GPyTorch kernel.
    """
    require_kernel(kernel, name)
    copy = deepcopy(kernel)
    for module in copy.modules():
        for name in getattr(module, "_priors", {}):
            module._modules.pop(name, None)
        if hasattr(module, "_priors"):
            module._priors = {}
    return copy.to(dtype=like.dtype, device=like.device).requires_grad_(False)


def own_values(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and floating-point buffers of a module without its submodules; these are the
    values that differ within a batch.

    Returns:
        The tensors by name.
    """
    buffers = {name: buffer for name, buffer in module._buffers.items() if buffer is not None}
    floating = {name: buffer for name, buffer in buffers.items() if buffer.is_floating_point()}
    return {name: p for name, p in module._parameters.items() if p is not None} | floating


def set_own_value(module: nn.Module, name: str, value: Tensor) -> None:
    """Replace one of the `own_values` in place."""
    if name in module._parameters:
        module._parameters[name] = nn.Parameter(value.detach(), requires_grad=False)
    else:
        module._buffers[name] = value


def part_with_lengthscale(kernel: Kernel) -> Kernel:
    """The only part of a kernel that has a lengthscale.

    Raises:
        ValueError: If no part, or more than one part, has a lengthscale.
    """
    return _only(kernel, lambda part: part.has_lengthscale, "part with a lengthscale")


def with_lengthscale(kernel: Kernel, lengthscale: Tensor) -> Kernel:
    """Copy a kernel with another lengthscale of its only part that has one.

    Args:
        kernel: A kernel without batch dimensions.
        lengthscale: The lengthscale, 0-dim, or one for each column that the part sees.

    Raises:
        ValueError: If no part, or more than one part, has a lengthscale, or the lengthscale is not
            possible.
    """
    copy = plain_kernel(kernel, lengthscale)
    set_lengthscale(part_with_lengthscale(copy), lengthscale)
    return copy


def set_lengthscale(part: Kernel, lengthscale: Tensor) -> None:
    """Set the lengthscale of a kernel in place.

    Args:
        part: A plain kernel with a lengthscale, which is changed.
        lengthscale: The lengthscale, 0-dim; or one for each column, which makes the kernel ARD.

    Raises:
        ValueError: If the number of lengthscales is wrong, or the constraint rules them out.
    """
    columns = lengthscale.numel()
    if lengthscale.ndim and part.ard_num_dims is None:
        part.ard_num_dims = columns
        shape = part.lengthscale.expand(1, columns).shape
        part.raw_lengthscale = nn.Parameter(lengthscale.new_zeros(shape), requires_grad=False)
    if columns not in (1, part.lengthscale.shape[-1]):
        raise ValueError(
            f"lengthscale must be one number or one for each of {part.lengthscale.shape[-1]} "
            f"columns, got {columns}"
        )
    _set(part, "lengthscale", lengthscale)


def with_period(kernel: Kernel, period: Tensor) -> Kernel:
    """Copy a kernel with another period of its only periodic part.

    Args:
        kernel: A kernel without batch dimensions.
        period: The period, 0-dim.

    Raises:
        ValueError: If no part, or more than one part, is periodic, or the period is not possible.
    """
    copy = plain_kernel(kernel, period)
    part = _only(copy, lambda part: isinstance(part, PeriodicKernel), "PeriodicKernel")
    _set(part, "period_length", period)
    return copy


def _only(kernel: Kernel, wanted: Callable[[Kernel], bool], what: str) -> Kernel:
    found = [m for m in kernel.modules() if isinstance(m, Kernel) and wanted(m)]
    if len(found) != 1:
        raise ValueError(f"kernel must have exactly one {what}, got {len(found)} in {kernel}")
    return found[0]


def _set(kernel: Kernel, name: str, value: Tensor) -> None:
    try:
        setattr(kernel, name, value)
    except RuntimeError as error:  # raised by GPyTorch for values that the constraint rules out
        raise ValueError(f"{name} must satisfy the constraint of the kernel, got {error}") from None
