"""Plain arguments: the arguments of a strategy as plain JSON."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property, partial, singledispatch
from logging import Logger
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor
from torch.nn import Module

from botorch_ext.models import CandidateModels, KernelGP
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.constructor_arguments import Arguments, defaults_of
from botorch_ext.studies.plain_numbers import equal_numbers, plain_array, plain_tensor
from botorch_ext.studies.translations import CALL, CODE, DEFAULT, GIVEN, UNKNOWN

# Attributes of a kernel that are made when it is first used.
_COMPUTED = ("training", "distance_module")
# The flag of classes written in Python; the attributes of other objects cannot be seen.
_OF_PYTHON = 1 << 9
# The private attributes that every kernel has, such as its parameters.
_OF_KERNELS = frozenset(name for name in vars(Kernel()) if name.startswith("_"))
# Libraries whose code is described by their versions.
_LIBRARIES = (
    *("botorch_ext", "torch", "botorch", "gpytorch", "linear_operator", "numpy", "scipy"),
    *("builtins", "functools", "abc", "typing"),
)
_above: ContextVar[frozenset[int]] = ContextVar("above", default=frozenset())
_keeps_whole: ContextVar[bool] = ContextVar("keeps_whole", default=False)


def plain(value: Any) -> Any:
    """An argument as plain JSON, so that it can be compared: plain values, the numbers of lists,
    arrays and tensors, and objects as their class and arguments."""
    above = _above.get()
    if id(value) in above:  # it holds itself
        return {"again": type(value).__qualname__}
    token = _above.set(above | {id(value)})
    try:
        return _plain(value)
    finally:
        _above.reset(token)


def plain_whole(value: Any) -> Any:
    """An argument as `plain` describes it, with the numbers of larger tensors too."""
    token = _keeps_whole.set(True)
    try:
        return plain(value)
    finally:
        _keeps_whole.reset(token)


@singledispatch
def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.dtype | torch.device):
        return str(value)
    if isinstance(value, type):
        return {"class": value.__qualname__}
    if hasattr(type(value), "__array__"):  # a data frame, a column of one
        return plain(np.asarray(value))
    kind = type(value)
    described: dict[str, Any] = {"class": kind.__qualname__}
    slots = _slots_of(kind)
    if not slots and not hasattr(value, "__dict__"):
        text = repr(value)
        if " at 0x" in text:
            return described | {UNKNOWN: f"a {kind.__name__}"}
        return described | {"is": text}
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name, None) for field in fields(value)}
    else:
        parts = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        parts |= getattr(value, "__dict__", {})
    for name, part in parts.items():
        if _is_argument(name, kind):
            described[name] = plain(part)
    if not all(each.__flags__ & _OF_PYTHON for each in kind.__mro__[:-1]):
        described[UNKNOWN] = f"a {kind.__name__}"
    return described | _marks_of(kind, described)


def _marks_of(kind: type, described: dict[str, Any]) -> dict[str, Any]:
    return _default_ones(described, defaults_of_class(kind)) | _code_of_class(kind)


def _default_ones(described: dict[str, Any], defaults: dict[str, Any]) -> dict[str, list[str]]:
    """The names of the arguments that have the value of their default."""
    names = [
        name
        for name, default in defaults.items()
        if name in described and _same(described[name], plain(default))
    ]
    return {DEFAULT: names} if names else {}


def _same(one: Any, other: Any) -> bool:
    return equal_numbers(one, other) or (type(one) is type(other) and one == other)


@cache
def defaults_of_class(kind: type) -> dict[str, Any]:
    """The defaults of the arguments of a class, by name."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        if isinstance(vars(each).get("__init__"), FunctionType):
            found |= defaults_of(each.__init__)
    if is_dataclass(kind):
        made = {each.name: each.default_factory for each in fields(kind)}
        found |= {name: make() for name, make in made.items() if make is not MISSING}
    return found


def _is_argument(name: str, kind: type) -> bool:
    """Whether an attribute is an argument and no cache; caches of libraries have private names."""
    if isinstance(getattr(kind, name, None), cached_property):
        return False
    if name.startswith("__") and name.endswith("__"):
        return name == "__wrapped__"
    return not name.startswith("_") or not _is_of_library(kind)


def _slots_of(kind: type) -> list[str]:
    found = []
    for each in reversed(kind.__mro__):
        slots = vars(each).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = name.startswith("__") and not name.endswith("__")
            found.append(f"_{each.__name__.lstrip('_')}{name}" if mangled else name)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _is_of_library(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in _LIBRARIES


def _code_of_class(kind: type) -> dict[str, str]:
    """The digest of the functions of a class that belong to no library."""
    functions = [
        part.__code__
        for each in kind.__mro__
        if not _is_of_library(each)
        for part in vars(each).values()
        if isinstance(part, FunctionType)
    ]
    return {CODE: _digest_of(functions)} if functions else {}


def _digest_of(codes: Sequence[CodeType]) -> str:
    digest = hashlib.sha256()
    for code in codes:
        digest.update(code.co_code)
        digest.update(repr((code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                digest.update(_digest_of([constant]).encode())
            else:  # a set of words has another order in each process
                words = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
                digest.update(repr(words).encode())
    return digest.hexdigest()[:32]


@_plain.register
def _(value: Strategy) -> Any:
    kind, call = {"class": type(value).__qualname__}, value.arguments.of_function
    if call is None:
        return kind | _plain_call(value.arguments, value.arguments.passed)
    made = {"function": call.made_by} | _plain_call(call, call.passed)
    return kind | {CALL: made} | _plain_call(value.arguments, frozenset())


def _plain_call(arguments: Arguments, by_user: Set[str]) -> dict[str, Any]:
    """The arguments of a call, with the names of the arguments that the user gave."""
    described = {name: plain(given) for name, given in arguments.given.items()}
    marks = _default_ones(described, arguments.defaults)
    given = [name for name in marks.get(DEFAULT, ()) if name in by_user]
    return described | marks | ({GIVEN: given} if given else {})


@_plain.register
def _(value: Tensor) -> Any:
    return plain_tensor(value, _keeps_whole.get())


@_plain.register
def _(value: np.ndarray) -> Any:
    if value.dtype.kind not in "biuf":
        return plain(value.tolist())
    return plain_array(value, _keeps_whole.get())


@_plain.register
def _(value: np.generic) -> Any:
    return plain(value.item())


@_plain.register
def _(value: Enum) -> Any:
    return value.name


@_plain.register
def _(value: Mapping) -> Any:
    return {str(key): plain(part) for key, part in value.items()}


@_plain.register(list)
@_plain.register(tuple)
@_plain.register(range)
@_plain.register(array)
def _(value: Sequence[Any]) -> Any:
    return [plain(part) for part in value]


@_plain.register(set)
@_plain.register(frozenset)
def _(value: Set[Any]) -> Any:
    return sorted((plain(part) for part in value), key=repr)


@_plain.register
def _(value: FunctionType) -> Any:
    """The name of a function, and what it carries."""
    held: list[Any] = []
    for cell in value.__closure__ or ():
        with suppress(ValueError):  # the cell is still empty
            held.append(cell.cell_contents)
    held += value.__defaults__ or ()
    held += (value.__kwdefaults__ or {}).values()
    described: dict[str, Any] = {"function": value.__qualname__}
    if held:
        described["carries"] = [plain(part) for part in held]
    if not _is_of_library(value):
        described[CODE] = _digest_of([value.__code__])
    return described


@_plain.register
def _(value: MethodType) -> Any:
    name = getattr(value, "__qualname__", type(value.__func__).__qualname__)
    return {"function": name, "of": plain(value.__self__)}


@_plain.register(BuiltinFunctionType)
@_plain.register(MethodDescriptorType)
@_plain.register(WrapperDescriptorType)
@_plain.register(np.ufunc)
def _(value: Any) -> Any:
    described = {"function": getattr(value, "__qualname__", value.__name__)}
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, type):
        return described
    return described | {"of": plain(owner)}


@_plain.register
def _(value: partial) -> Any:
    parts = plain(value.func), plain(value.args), plain(value.keywords)
    return dict(zip(("partial", "arguments", "keywords"), parts, strict=True))


@_plain.register(ModuleType)
@_plain.register(Logger)
def _(value: ModuleType | Logger) -> Any:
    name = value.name if isinstance(value, Logger) else value.__name__
    return {"class": type(value).__qualname__, "name": name}


@_plain.register
def _(value: Module) -> Any:
    """Parameters have their values, not the raw values of the optimiser. Constraints, priors and
    computed attributes are left out."""
    described: dict[str, Any] = {"class": type(value).__qualname__}
    for name, parameter in value.named_parameters(recurse=False):
        own = name.removeprefix("raw_")
        described[own] = plain(getattr(value, own, parameter))
    for name, buffer in value.named_buffers(recurse=False):
        described[name] = plain(buffer)
    for name, part in vars(value).items():
        if name not in _COMPUTED and name not in _OF_KERNELS and _is_argument(name, type(value)):
            described[name] = plain(part)
    for name, child in value.named_children():
        if not isinstance(child, Interval | Prior) and name not in _COMPUTED:
            described[name] = plain(child)
    return described | _marks_of(type(value), described)


@_plain.register
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


@_plain.register
def _(value: CandidateModels) -> Any:
    return {"names": list(value.names), "models": [plain(part.model) for part in value.parts]}
