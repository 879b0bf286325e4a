"""The numbers that a kernel holds, which in a batch of kernels have batch dimensions."""

from __future__ import annotations

from torch import Tensor, nn


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
