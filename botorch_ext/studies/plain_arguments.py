"""Plain arguments: what a strategy is made with, as what JSON can hold."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import singledispatch
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from botorch_ext.models import CandidateModels, KernelGP
from botorch_ext.strategies import Strategy

# Of tensors with more numbers only shape and digest are kept.
_MOST_NUMBERS = 200
# What a kernel computes with: made when it is first used.
_COMPUTED = ("training", "distance_module")


@singledispatch
def plain(value: Any) -> Any:
    """An argument as plain JSON, by which it is known again."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.dtype | torch.device):
        return str(value)
    if isinstance(value, type):
        return {"class": value.__qualname__}
    if isinstance(value, MethodType):
        return {"function": value.__qualname__, "of": plain(value.__self__)}
    described: dict[str, Any] = {"class": type(value).__qualname__}
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name, None) for field in fields(value)}
    else:
        parts = getattr(value, "__dict__", {})
    for name, part in parts.items():
        if not name.startswith("_"):
            described[name] = plain(part)
    return described


@plain.register
def _(value: Strategy) -> Any:
    arguments = {name: plain(given) for name, given in value.arguments.given.items()}
    return {"class": type(value).__qualname__} | arguments


@plain.register
def _(value: Tensor) -> Any:
    value = value.detach().cpu()
    if value.numel() <= _MOST_NUMBERS:
        return {"dtype": str(value.dtype), "values": value.tolist()}
    digest = hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest()
    return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}


@plain.register
def _(value: np.ndarray) -> Any:
    return plain(torch.as_tensor(value))


@plain.register
def _(value: np.generic) -> Any:
    return plain(value.item())


@plain.register
def _(value: Enum) -> Any:
    return value.name


@plain.register
def _(value: Mapping) -> Any:
    return {str(key): plain(part) for key, part in value.items()}


@plain.register(list)
@plain.register(tuple)
def _(value: Sequence[Any]) -> Any:
    return [plain(part) for part in value]


@plain.register(set)
@plain.register(frozenset)
def _(value: Set[Any]) -> Any:
    return sorted((plain(part) for part in value), key=repr)


@plain.register
def _(value: FunctionType) -> Any:
    """Its name and the numbers it carries; the code of two versions cannot be told apart."""
    held = [cell.cell_contents for cell in value.__closure__ or ()]
    held += value.__defaults__ or ()
    # A function may hold itself.
    carried = [plain(part) for part in held if not isinstance(part, FunctionType)]
    return {"function": value.__qualname__} | ({"carries": carried} if carried else {})


@plain.register
def _(value: Module) -> Any:
    """Parameters by their values, not by what the optimiser sees; constraints, priors and what is
    computed are left out."""
    described: dict[str, Any] = {"class": type(value).__qualname__}
    for name, parameter in value.named_parameters(recurse=False):
        own = name.removeprefix("raw_")
        described[own] = plain(getattr(value, own, parameter))
    for name, buffer in value.named_buffers(recurse=False):
        described[name] = plain(buffer)
    for name, part in vars(value).items():
        if not name.startswith("_") and name not in _COMPUTED:
            described[name] = plain(part)
    for name, child in value.named_children():
        if not name.endswith(("_constraint", "_prior")) and name not in _COMPUTED:
            described[name] = plain(child)
    return described


@plain.register
def _(value: KernelGP) -> Any:
    described = {
        "kernel": plain(value.kernel),
        "noise_variance": plain(value.noise_variance),
        "mean": plain(value.mean),
    }
    for name in ("input_transform", "outcome_transform"):
        if hasattr(value, name):
            described[name] = plain(getattr(value, name))
    if value.num_observations:
        described["data"] = plain([value.train_inputs[0], value.train_targets])
    return described


@plain.register
def _(value: CandidateModels) -> Any:
    return {"names": list(value.names), "models": [plain(part.model) for part in value.parts]}
