"""Description of a strategy: what it was made with, as a plain nested dict."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, singledispatch
from importlib.metadata import PackageNotFoundError, version
from types import FunctionType, MethodType
from typing import Any
from warnings import warn

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from botorch_ext.exceptions import AnotherStrategyError, VersionWarning
from botorch_ext.models import CandidateModels, KernelGP
from botorch_ext.strategies import Strategy
from botorch_ext.studies.plain_records import from_json, to_json

_LIBRARIES = ("botorch-ext", "torch", "botorch", "gpytorch")
# Of tensors with more numbers only shape and digest are kept.
_MOST_NUMBERS = 200
_MISSING = object()
# Differences that a message shows.
_MOST_SHOWN = 5
# What a kernel computes with: made when it is first used.
_COMPUTED = ("training", "distance_module")


def describe(strategy: Strategy) -> dict[str, Any]:
    """Class and arguments of a strategy, and the versions of the libraries. Devices are left out: a
    study may move to another one."""
    return {"versions": versions(), "strategy": _plain(strategy)}


def versions() -> dict[str, str | None]:
    """Of this library and those that it computes with."""
    return {name: _version(name) for name in _LIBRARIES}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder, not installed
        return None


def differences(kept: Any, given: Any, place: str = "") -> Iterator[str]:
    """Each place where two descriptions differ, with what is there in both."""
    if isinstance(kept, dict) and isinstance(given, dict):
        keys = dict.fromkeys((*kept, *given))
        # Things of two classes differ in everything.
        for key in keys if kept.get("class") == given.get("class") else ("class",):
            inner = f"{place}.{key}" if place else str(key)
            yield from differences(kept.get(key, _MISSING), given.get(key, _MISSING), inner)
    elif isinstance(kept, list) and isinstance(given, list) and len(kept) == len(given):
        for i, (old, new) in enumerate(zip(kept, given, strict=True)):
            yield from differences(old, new, f"{place}[{i}]")
    elif kept is _MISSING or given is _MISSING or kept != given or type(kept) is not type(given):
        yield f"{place} is {_shown(kept)} in the study, got {_shown(given)}"


def require_same(kept: dict[str, Any], given: dict[str, Any], whose: str) -> None:
    """Compares two descriptions.

    Args:
        kept: Of the strategy that a study was begun with.
        given: Of the one it is opened with.
        whose: The study, for messages.

    Raises:
        AnotherStrategyError: Other arguments; says which.

    Warns:
        VersionWarning: Another version of a library.
    """
    given = from_json(to_json(given))
    versions = list(differences(kept.get("versions"), given["versions"]))
    different = list(differences(kept.get("strategy"), given["strategy"]))
    if different:
        more = len(different) - _MOST_SHOWN
        ending = f"; and {more} more" if more > 0 else ""
        shown = "; ".join(different[:_MOST_SHOWN]) + ending
        raise AnotherStrategyError(f"{whose} was begun with other arguments: {shown}")
    if versions:
        warn(
            f"{whose} was begun with other versions, so that its next question may be another one: "
            + "; ".join(versions),
            VersionWarning,
            stacklevel=4,
        )


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


@singledispatch
def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.dtype | torch.device):
        return str(value)
    if isinstance(value, type):
        return {"class": value.__qualname__}
    if isinstance(value, MethodType):
        return {"function": value.__qualname__, "of": _plain(value.__self__)}
    described: dict[str, Any] = {"class": type(value).__qualname__}
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name, None) for field in fields(value)}
    else:
        parts = getattr(value, "__dict__", {})
    for name, part in parts.items():
        if not name.startswith("_"):
            described[name] = _plain(part)
    return described


@_plain.register
def _(value: Strategy) -> Any:
    arguments = {name: _plain(given) for name, given in value.arguments.given.items()}
    return {"class": type(value).__qualname__} | arguments


@_plain.register
def _(value: Tensor) -> Any:
    value = value.detach().cpu()
    if value.numel() <= _MOST_NUMBERS:
        return {"dtype": str(value.dtype), "values": value.tolist()}
    digest = hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest()
    return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}


@_plain.register
def _(value: np.ndarray) -> Any:
    return _plain(torch.as_tensor(value))


@_plain.register
def _(value: np.generic) -> Any:
    return _plain(value.item())


@_plain.register
def _(value: Enum) -> Any:
    return value.name


@_plain.register
def _(value: Mapping) -> Any:
    return {str(key): _plain(part) for key, part in value.items()}


@_plain.register(list)
@_plain.register(tuple)
def _(value: Sequence[Any]) -> Any:
    return [_plain(part) for part in value]


@_plain.register(set)
@_plain.register(frozenset)
def _(value: Set[Any]) -> Any:
    return sorted((_plain(part) for part in value), key=repr)


@_plain.register
def _(value: FunctionType) -> Any:
    """Its name and the numbers it carries; the code of two versions cannot be told apart."""
    held = [cell.cell_contents for cell in value.__closure__ or ()]
    held += value.__defaults__ or ()
    # A function may hold itself.
    carried = [_plain(part) for part in held if not isinstance(part, FunctionType)]
    return {"function": value.__qualname__} | ({"carries": carried} if carried else {})


@_plain.register
def _(value: Module) -> Any:
    """Parameters by their values, not by what the optimiser sees; constraints, priors and what is
    computed are left out."""
    described: dict[str, Any] = {"class": type(value).__qualname__}
    for name, parameter in value.named_parameters(recurse=False):
        own = name.removeprefix("raw_")
        described[own] = _plain(getattr(value, own, parameter))
    for name, buffer in value.named_buffers(recurse=False):
        described[name] = _plain(buffer)
    for name, part in vars(value).items():
        if not name.startswith("_") and name not in _COMPUTED:
            described[name] = _plain(part)
    for name, child in value.named_children():
        if not name.endswith(("_constraint", "_prior")) and name not in _COMPUTED:
            described[name] = _plain(child)
    return described


@_plain.register
def _(value: KernelGP) -> Any:
    described = {
        "kernel": _plain(value.kernel),
        "noise_variance": _plain(value.noise_variance),
        "mean": _plain(value.mean),
    }
    for name in ("input_transform", "outcome_transform"):
        if hasattr(value, name):
            described[name] = _plain(getattr(value, name))
    if value.num_observations:
        described["data"] = _plain([value.train_inputs[0], value.train_targets])
    return described


@_plain.register
def _(value: CandidateModels) -> Any:
    return {"names": list(value.names), "models": [_plain(part.model) for part in value.parts]}
