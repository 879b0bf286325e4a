"""Structure of kernels: what they are made of, on which columns, and the numbers they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Literal, NamedTuple

from gpytorch.kernels import AdditiveKernel, Kernel, PeriodicKernel, ProductKernel, ScaleKernel
from torch import Tensor, nn

from botorch_ext.kernels.action_context import ActionContextKernel
from botorch_ext.kernels.checks import require_kernel

# Columns of the joint inputs, or the first one, where it is all from there on.
Columns = Sequence[int] | int


class Composition(NamedTuple):
    """How a kernel is made of others.

    Args:
        kind: What is done to their values.
        parts: The others.
    """

    kind: Literal["scale", "sum", "product"]
    parts: tuple[Kernel, ...]


def composition(kernel: Kernel) -> Composition | None:
    """How a multiple, a sum, a product or an `ActionContextKernel` is made of others; None of any
    other kernel."""
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
    """The parts that are not made of others, each with the joint columns it is given.

    Args:
        kernel: Any GPyTorch kernel.
        columns: The joint columns it is given itself.
        taken: Whether its ``active_dims`` are already taken out of these.

    Raises:
        ValueError: A part on columns that there are not.
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
        for part in made.parts:  # a multiple takes over the columns of its base
            yield from leaves(part, columns, taken=made.kind == "scale")


def _chosen(columns: Columns, places: Sequence[int]) -> list[int]:
    """The joint columns that a part with these columns of its own sees."""
    if isinstance(columns, int):
        return [columns + place for place in places]
    if max(places) >= len(columns):
        raise ValueError(
            f"kernel must have parts on columns that there are, got one on {list(places)} of "
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
    """A copy without gradients and priors, of the dtype and on the device of ``like``; or a
    ValueError that names the argument."""
    require_kernel(kernel, name)
    copy = deepcopy(kernel)
    for module in copy.modules():
        for name in getattr(module, "_priors", {}):
            module._modules.pop(name, None)
        if hasattr(module, "_priors"):
            module._priors = {}
    return copy.to(dtype=like.dtype, device=like.device).requires_grad_(False)


def own_values(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and floating-point buffers of a module itself: what differs in a batch."""
    buffers = {name: buffer for name, buffer in module._buffers.items() if buffer is not None}
    floating = {name: buffer for name, buffer in buffers.items() if buffer.is_floating_point()}
    return {name: p for name, p in module._parameters.items() if p is not None} | floating


def set_own_value(module: nn.Module, name: str, value: Tensor) -> None:
    """Replaces one of the `own_values` in place, by one that may have another shape."""
    if name in module._parameters:
        module._parameters[name] = nn.Parameter(value.detach(), requires_grad=False)
    else:
        module._buffers[name] = value


def part_with_lengthscale(kernel: Kernel) -> Kernel:
    """The only part that has a lengthscale, or a ValueError."""
    return _only(kernel, lambda part: part.has_lengthscale, "part with a lengthscale")


def with_lengthscale(kernel: Kernel, lengthscale: Tensor) -> Kernel:
    """A copy of the kernel whose only part with a lengthscale has this one.

    Args:
        kernel: Without batch dimensions.
        lengthscale: 0-dim, or one for each column that the part looks at.

    Raises:
        ValueError: No or several parts with a lengthscale, or a lengthscale that is not possible.
    """
    copy = plain_kernel(kernel, lengthscale)
    set_lengthscale(part_with_lengthscale(copy), lengthscale)
    return copy


def set_lengthscale(part: Kernel, lengthscale: Tensor) -> None:
    """Gives a plain kernel this lengthscale in place; one for each column makes it ARD."""
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
    """A copy of the kernel whose only periodic part has this period, 0-dim; errors as for
    `with_lengthscale`."""
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
    except RuntimeError as error:  # GPyTorch's answer to what its constraint rules out
        raise ValueError(f"{name} must satisfy the constraint of the kernel, got {error}") from None
