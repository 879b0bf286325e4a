"""Stacking kernels of the same form into a batch, and selecting members of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, TypeVar

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    CosineKernel,
    IndexKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from torch import Tensor, nn

from botorch_ext.kernels.action_context import ActionContextKernel
from botorch_ext.kernels.additive import GroupAdditiveKernel
from botorch_ext.kernels.nugget import NuggetKernel
from botorch_ext.kernels.structure import own_values, set_own_value
from botorch_ext.kernels.tasks import TaskKernel

Module = TypeVar("Module", bound=nn.Module)

# Only exact types whose batches are tested, since a subclass may compute something else.
_STACKABLE = frozenset(
    {
        ActionContextKernel,
        AdditiveKernel,
        ConstantKernel,
        CosineKernel,
        GroupAdditiveKernel,
        IndexKernel,
        LinearKernel,
        MaternKernel,
        NuggetKernel,
        PeriodicKernel,
        PiecewisePolynomialKernel,
        PolynomialKernel,
        ProductKernel,
        RBFKernel,
        ScaleKernel,
        TaskKernel,
    }
)
# Attributes that do not affect the values of a kernel: those of all modules, priors, batch shapes.
_NO_CONFIGURATION = frozenset(vars(nn.Module())) | {
    "_added_loss_terms",
    "_batch_shape",
    "_constraints",
    "_initial_value",
    "_load_strict_shapes",
    "_priors",
    "_strict_init",
}


def same_form(a: Kernel, b: Kernel) -> bool:
    """Whether two kernels can be stacked: they have types whose batches are tested, and differ at
    most in the values of parameters and floating-point buffers.

    Args:
        a: A plain kernel without batch dimensions.
        b: Another one.
    """
    walks = list(_walk(a)), list(_walk(b))
    orders = [[[id(m) for m in walk].index(id(m)) for m in walk] for walk in walks]
    return orders[0] == orders[1] and all(map(_same_module, *walks))


def stacked_kernel(kernels: Sequence[Kernel]) -> Kernel:
    """Stack kernels into one batched kernel.

    Args:
        kernels: m plain kernels of the `same_form`.

    Returns:
        A kernel of batch shape ``(m,)``; one of the kernels if all are equal.
    """
    copy = deepcopy(kernels[0])
    varied = False
    done: set[int] = set()
    for module, *others in zip(_walk(copy), *(_walk(kernel) for kernel in kernels), strict=True):
        if not isinstance(module, Kernel) or id(module) in done:
            continue
        done.add(id(module))
        module.batch_shape = torch.Size([len(kernels)])
        for name in own_values(module):
            values = [own_values(other)[name] for other in others]
            varied = varied or any(not torch.equal(value, values[0]) for value in values)
            set_own_value(module, name, torch.stack(values))
    return copy if varied else kernels[0]


def selected_kernel(kernel: Kernel, index: int | list[int]) -> Kernel:
    """Select members of a batched kernel.

    Args:
        kernel: A plain kernel of batch shape ``(m,)``, or without batch dimensions.
        index: The position of one member, or a list of positions.

    Returns:
        One kernel, or a smaller batch, which shares nothing that is changed later; the kernel
        itself if it has no batch dimensions.
    """
    if not kernel.batch_shape:
        return kernel
    copy = _shell(kernel, {})
    for module in copy.modules():
        if not isinstance(module, Kernel) or not module._batch_shape:
            continue
        (size,) = module._batch_shape
        if size == 1:  # all members share it
            member: Any = 0 if isinstance(index, int) else [0] * len(index)
        else:
            member = index
        for name, value in own_values(module).items():
            if value.shape[:1] == (size,):
                value = members_of(value, member)
            set_own_value(module, name, value.clone())
        module.batch_shape = torch.Size([] if isinstance(index, int) else [len(index)])
    return copy


def members_of(values: Tensor, index: int | Sequence[int]) -> Tensor:
    """The values of some members of a batch, ``values[index]``.

    Args:
        values: Values, ``m x ...``.
        index: The position of one member, or several positions, which are copied to a device only
            once.

    Returns:
        The values, ``...`` or ``k x ...``.
    """
    return values[index if isinstance(index, int) else _positions(tuple(index), values.device)]


@lru_cache(maxsize=256)
def _positions(index: tuple[int, ...], device: torch.device) -> Tensor:
    # Every set of the process shares it, so it is no inference tensor: autograd refuses those.
    with torch.inference_mode(False):
        return torch.tensor(index, device=device)


def without_repeats(kernel: Kernel) -> Kernel:
    """Replace a batch of equal kernels by a single kernel.

    Returns:
        The single kernel; the kernel itself if its members differ or it has no batch dimensions.
    """
    if not kernel.batch_shape:
        return kernel
    first = _shell(kernel, {})
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


def _shell(module: Module, done: dict[int, nn.Module]) -> Module:
    """Copy a tree of modules and their dicts; everything else is shared."""
    if id(module) not in done:
        new = done[id(module)] = object.__new__(type(module))
        for name, value in vars(module).items():
            vars(new)[name] = value.copy() if isinstance(value, dict) else value
        for name, child in module._modules.items():
            new._modules[name] = None if child is None else _shell(child, done)
    return done[id(module)]  # pyright: ignore[reportReturnType]


def _walk(module: nn.Module) -> Iterator[nn.Module]:
    """All modules of a tree in order, with repetitions."""
    yield module
    for child in module._modules.values():
        if child is not None:
            yield from _walk(child)


def _same_module(a: nn.Module, b: nn.Module) -> bool:
    if type(a) is not type(b) or a._modules.keys() != b._modules.keys():
        return False
    if type(a) in _STACKABLE:
        values = [{k: v.shape for k, v in own_values(module).items()} for module in (a, b)]
        if values[0] != values[1]:
            return False
        ignored = set(values[0])
    elif isinstance(a, Kernel) or a._parameters:
        return False
    else:  # constraints, their transforms, the list of the parts of a sum or product
        ignored = set()
    settings = [_settings(module, ignored) for module in (a, b)]
    return settings[0].keys() == settings[1].keys() and all(
        _equal(value, settings[1][name]) for name, value in settings[0].items()
    )


def _settings(module: nn.Module, ignored: set[str]) -> dict[str, Any]:
    tensors = {k: v for k, v in module._buffers.items() if k not in ignored}
    others = {k: v for k, v in vars(module).items() if k not in _NO_CONFIGURATION}
    return tensors | others


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return type(a) is type(b) and bool(a == b)
