"""Strategies made again from the descriptions of studies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any

import torch
from gpytorch import kernels
from torch import Tensor

from botorch_ext import algorithms, delays, strategies, widths
from botorch_ext.delays import rounds
from botorch_ext.domains import Box, ContextSpace, FiniteSet, host
from botorch_ext.exceptions import StudyError
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.strategies import Strategy, Terms
from botorch_ext.studies.described_spaces import described_space
from botorch_ext.studies.description import describe, differences
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.translations import CALL, DEFAULT, GIVEN, MARKS, translated

_ADVICE = "open the study in Python, with the strategy that it was begun with: bx.Study(path, ...)"
# Classes whose objects are described by the arguments of their constructors.
_VALUES: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        *(FiniteSet, ContextSpace, Fitted, Particles, Prior, Terms),
        *(getattr(room, name) for room in (widths, delays) for name in room.__all__),
        *(each for each in vars(rounds).values() if is_dataclass(each)),
    )
    if (isinstance(kind, type) and is_dataclass(kind)) or kind in (FiniteSet, Terms)
}
_KERNELS = {
    kind.__name__: kind for kind in (kernels.RBFKernel, kernels.MaternKernel, kernels.ScaleKernel)
}


def described_strategy(description: Mapping[str, Any], whose: str) -> Strategy:
    """Makes the strategy of a study again. The new strategy is described and compared with the
    description, so that no argument is lost.

    Args:
        description: The description of the study, as `describe` of this or an earlier version
            wrote it.
        whose: The name of the study in messages.

    Raises:
        StudyError: The strategy has a class or function of the user, or an argument that the
            description does not hold. The message names it.
    """
    kept = description.get("strategy")
    if not isinstance(kept, dict):
        raise StudyError(f"{whose} has no description of its strategy: {_ADVICE}")
    call = kept.get(CALL)
    described = translated(call if isinstance(call, dict) else kept)
    name = described.get("function", described.get("class"))
    make = _maker(name, is_function=isinstance(call, dict))
    if make is None:
        raise StudyError(
            f"{whose} has a strategy that this library does not have, {name}: {_ADVICE}"
        )
    try:
        strategy = make(**_arguments(make, described))
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise StudyError(
            f"{whose} cannot make its strategy {name} again, {error}: {_ADVICE}"
        ) from error
    again = from_json(to_json(describe(strategy)["strategy"]))
    if (lost := next(differences(kept, again), None)) is not None:
        raise StudyError(f"{whose} cannot make its strategy {name} again: {lost}; {_ADVICE}")
    return strategy


def _maker(name: Any, is_function: bool) -> Callable[..., Any] | None:
    room = algorithms if is_function else strategies
    found = getattr(room, name) if isinstance(name, str) and name in room.__all__ else None
    return found if is_function or _is_strategy(found) else None


def _is_strategy(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Strategy)


def _value(plain: Any, name: str) -> Any:
    """The argument that a plain value describes."""
    if isinstance(plain, list):
        return tuple(_value(part, name) for part in plain)
    if not isinstance(plain, dict):
        return plain
    if "dtype" in plain:
        return _tensor(plain, name)
    kind, plain = plain.get("class"), translated(plain)
    if kind == "Space":
        return described_space(plain)
    if kind == "Box":
        return _box(plain, name)
    if kind in _KERNELS:
        return _kernel(_KERNELS[kind], plain, name)
    if kind is None and "function" not in plain:
        return {key: _value(part, f"{key} of {name}") for key, part in plain.items()}
    if kind not in _VALUES:
        raise ValueError(
            f"{name} is a {kind or plain.get('function')}, which its description does not hold"
        )
    return _VALUES[kind](**_arguments(_VALUES[kind], plain, f" of {name}"))


def _arguments(make: Callable[..., Any], described: dict[str, Any], of: str = "") -> dict[str, Any]:
    """The described arguments by name, without those that have their default."""
    left_out = {*MARKS, *described.get(DEFAULT, ())} - {*described.get(GIVEN, ())}
    known = inspect.signature(make).parameters.keys() - left_out
    return {key: _value(part, f"{key}{of}") for key, part in described.items() if key in known}


def _tensor(plain: dict[str, Any], name: str) -> Tensor:
    if "values" not in plain:
        raise ValueError(f"{name} has too many numbers for its description")
    return host.tensor(plain["values"], dtype=getattr(torch, plain["dtype"].removeprefix("torch.")))


def _box(plain: dict[str, Any], name: str) -> Box:
    rows = _value(plain.get("constraints"), name)
    return Box(
        _tensor(plain["bounds"], name),
        integer=plain.get("integer", ()),
        steps={int(j): step for j, step in plain.get("steps", {}).items()},
        log=plain.get("log", ()),
        categories={int(j): codes for j, codes in plain.get("categories", {}).items()},
        constraints=None if rows is None else tuple(rows),
        conditions={
            int(j): (parent, codes) for j, (parent, codes) in plain.get("conditions", {}).items()
        },
    )


def _kernel(kind: type[kernels.Kernel], plain: dict[str, Any], name: str) -> kernels.Kernel:
    """A kernel of GPyTorch with the described values of its parameters."""
    known = inspect.signature(kind).parameters.keys() | {"ard_num_dims"}
    arguments = {key: _value(part, name) for key, part in plain.items() if key in known}
    if arguments.get("ard_num_dims") is None:
        arguments.pop("ard_num_dims", None)
    kernel: Any = kind(**arguments)
    for key in ("lengthscale", "outputscale"):
        if key in plain:
            values = _tensor(plain[key], f"{key} of {name}")
            kernel = kernel.to(values.dtype)
            setattr(kernel, key, values)
    return kernel
