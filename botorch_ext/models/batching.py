"""Kernels and prior means of one form as one batch, and the members of a batch on their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeGuard, TypeVar

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
from gpytorch.means import ConstantMean
from torch import Tensor, nn

from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.kernels import AdditiveKernel as GroupKernel
from botorch_ext.kernels.batch_values import own_values, set_own_value
from botorch_ext.models.checks import PriorMean

Module = TypeVar("Module", bound=nn.Module)

# Exact types only, whose batches are tested: a subclass may compute something else.
_STACKABLE = frozenset(
    {
        ActionContextKernel,
        AdditiveKernel,
        ConstantKernel,
        CosineKernel,
        GroupKernel,
        IndexKernel,
        LinearKernel,
        MaternKernel,
        PeriodicKernel,
        PiecewisePolynomialKernel,
        PolynomialKernel,
        ProductKernel,
        RBFKernel,
        ScaleKernel,
        TaskKernel,
    }
)
# What modules keep for themselves, and priors and batch shapes, which say nothing of the values.
_NO_CONFIGURATION = frozenset(vars(nn.Module())) | {
    "_added_loss_terms",
    "_batch_shape",
    "_constraints",
    "_initial_value",
    "_load_strict_shapes",
    "_priors",
    "_strict_init",
}


def plain_kernel(kernel: Kernel, like: Tensor) -> Kernel:
    """A copy without gradients and priors, of the dtype and on the device of ``like``."""
    copy = deepcopy(kernel)
    for module in copy.modules():
        for name in getattr(module, "_priors", {}):
            module._modules.pop(name, None)
        if hasattr(module, "_priors"):
            module._priors = {}
    return copy.to(dtype=like.dtype, device=like.device).requires_grad_(False)


def same_form(a: Kernel, b: Kernel) -> bool:
    """Whether two plain kernels without batch dimensions differ in the values of parameters and
    floating-point buffers at most, and are of types that can be stacked."""
    walks = list(_walk(a)), list(_walk(b))
    orders = [[[id(m) for m in walk].index(id(m)) for m in walk] for walk in walks]
    return orders[0] == orders[1] and all(map(_same_module, *walks))


def stacked_kernel(kernels: Sequence[Kernel]) -> Kernel:
    """Plain kernels of the `same_form` as one kernel of batch shape ``(m,)``; if all are equal, as
    one of them."""
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
    """One kernel, or a smaller batch, of a plain kernel of batch shape ``(m,)``; all of a kernel
    that has none. It shares nothing that anything changes."""
    if not kernel.batch_shape:
        return kernel
    copy = _shell(kernel, {})
    for module in copy.modules():
        if not isinstance(module, Kernel) or not module._batch_shape:
            continue
        (size,) = module._batch_shape
        if size == 1:  # the same for every member
            member: Any = 0 if isinstance(index, int) else [0] * len(index)
        else:
            member = index
        for name, value in own_values(module).items():
            if value.shape[:1] == (size,):
                value = value[member]
            set_own_value(module, name, value.clone())
        module.batch_shape = torch.Size([] if isinstance(index, int) else [len(index)])
    return copy


def _shell(module: Module, done: dict[int, nn.Module]) -> Module:
    """A copy of a tree of modules that shares what is no module and no dict of its own."""
    if id(module) not in done:
        new = done[id(module)] = object.__new__(type(module))
        for name, value in vars(module).items():
            vars(new)[name] = value.copy() if isinstance(value, dict) else value
        for name, child in module._modules.items():
            new._modules[name] = None if child is None else _shell(child, done)
    return done[id(module)]  # pyright: ignore[reportReturnType]


class StackedMean(nn.Module):
    """Prior means of m models as one function.

    Args:
        means: m frozen prior means, each ``... x n x d`` to ``... x n``; None is zero. Those that
            are one object are evaluated once.
    """

    def __init__(self, means: Sequence[PriorMean | None]) -> None:
        super().__init__()
        self.means = list(means)
        self.held = nn.ModuleList(mean for mean in means if isinstance(mean, nn.Module))

    def forward(self, X: Tensor) -> Tensor:
        """``n x d`` to ``m x n``; ``... x (1 or m) x n x d``, aligned with the models, to
        ``... x m x n``."""
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
    """Frozen prior means of m models as one: `StackedMean`, or something simpler that equals it."""
    if all(mean is means[0] for mean in means):
        return means[0]
    constants = [mean.constant for mean in means if _is_constant(mean)]
    if len(constants) < len(means):
        return StackedMean(means)
    return _constant_mean(torch.stack(constants).to(like))


def selected_mean(mean: PriorMean | None, index: int | list[int]) -> PriorMean | None:
    """The prior mean of one model, or of several, of those of a `stacked_mean`; any other mean is
    one that all models share."""
    if isinstance(mean, StackedMean):
        if isinstance(index, int):
            return mean.means[index]
        return StackedMean([mean.means[i] for i in index])
    if _is_constant(mean) and mean.batch_shape:
        return _constant_mean(mean.constant[index].clone())
    return mean


def _is_constant(mean: PriorMean | None) -> TypeGuard[ConstantMean]:
    return type(mean) is ConstantMean


def _constant_mean(constant: Tensor) -> ConstantMean:
    mean = ConstantMean(batch_shape=constant.shape).to(constant)
    mean.raw_constant = nn.Parameter(constant, requires_grad=False)
    return mean


def _mean_at(mean: PriorMean | None, X: Tensor) -> Tensor:
    return X.new_zeros(X.shape[:-1]) if mean is None else mean(X)


def _walk(module: nn.Module) -> Iterator[nn.Module]:
    """All modules of a tree in order, one that occurs twice twice."""
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
