"""Arguments of strategies as text, for tools that keep what a strategy was made with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from math import prod
from typing import Any, Literal

import numpy as np
import scipy.stats
import torch
from gpytorch.kernels import Kernel
from scipy.stats.distributions import rv_frozen
from torch import Tensor, nn

from botorch_ext import delays, widths
from botorch_ext.domains import Box, ContextSpace, FiniteSet
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.integrations.saved_forms import Form, Forms, is_of
from botorch_ext.integrations.saved_models import forms_of_models
from botorch_ext.integrations.saved_modules import (
    form_of_kernel,
    form_of_module,
    forms_of_modules,
)
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.models.kernel_variants import default_growth
from botorch_ext.strategies import Terms
from botorch_ext.studies.plain_records import from_json, to_json

# Dataclasses that are arguments: all widths and delays, but what is seen or has another form.
_FIELDS = (
    *(Fitted, Particles, Prior, ContextSpace, Terms),
    *(
        part
        for room in (widths, delays)
        for part in (getattr(room, name) for name in room.__all__)
        if is_dataclass(part) and part not in (delays.SeenDelays, delays.FromScipy)
    ),
)
# Distributions of delays, by what they are when they have their numbers.
_DISTRIBUTIONS = {
    type(scipy.stats.poisson(1.0)): Literal[
        "bernoulli", "betabinom", "binom", "geom", "logser", "nbinom", "poisson", "randint", "zipf"
    ],
    type(scipy.stats.expon()): Literal[
        *("beta", "chi2", "erlang", "expon", "exponweib", "gamma", "halfnorm", "invgamma"),
        *("invgauss", "lognorm", "lomax", "pareto", "triang", "truncnorm", "uniform"),
        "weibull_min",
    ],
}
# PyTorch prints no tensor of more dimensions in less than seconds.
_MOST_DIMS = 8
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
}
_Dtype = Literal["float64", "float32", "int64", "int32", "bool"]


def as_text(arguments: Mapping[str, Any]) -> str:
    """Arguments by name as JSON that holds all of them, but priors of kernels and of means, which
    no algorithm looks at, and whether their parameters need gradients. ``"algorithm"`` is one.

    Raises:
        ValueError: One that cannot be saved; the message names it, and how it may be allowed.
    """
    return to_json({name: _forms().tree(value, name) for name, value in arguments.items()})


def from_text(text: str) -> dict[str, Any]:
    """The arguments that `as_text` was given. Nothing in the text is run, and only classes of
    the library's table and those given to `allow_argument` are made.

    Raises:
        ValueError: Any other text.
    """
    try:
        trees = from_json(text)
        if not isinstance(trees, dict):
            raise ValueError("they have no names")
        return {name: _forms().value(tree, name) for name, tree in trees.items()}
    except Exception as error:
        what = error if isinstance(error, ValueError) else repr(error)
        raise ValueError(f"saved arguments cannot be read: {what}") from error


def allow_argument(
    argument: Callable[..., Any], name: str | None = None, *, is_algorithm: bool = False
) -> None:
    """Allows a function, or the objects of a class, among arguments that are saved. Call it before
    the strategy is made, and in a new process before it is loaded.

    Objects are made again by calling the class with the attributes that its constructor's
    parameters are named for; a module of PyTorch then gets its parameters, buffers and constraints.
    What is defined again, as in a notebook, takes the place of what it was.

    Args:
        argument: A function, or a class.
        name: What it is called where it is saved; None: its own name.
        is_algorithm: Whether the function is an algorithm, and no argument of one.

    Raises:
        ValueError: No function or class, or a name that is taken.
    """
    if not callable(argument):
        raise ValueError(f"argument must be a function or a class, got {argument!r}")
    if is_algorithm and isinstance(argument, type):
        raise ValueError(f"argument must be a function to be an algorithm, got {argument!r}")
    known = _forms().name_of(argument) if isinstance(argument, type) else None
    if known is not None:
        if name not in (None, known):
            raise ValueError(f"name must be {known!r}, as {argument!r} is saved, got {name!r}")
        return
    given = getattr(argument, "__name__", None) if name is None else name
    if not isinstance(given, str) or given == "<lambda>":
        raise ValueError(f"name must be given for {argument!r}, got {name!r}")
    if isinstance(argument, type):
        _forms().add(_form_of(argument, given))
    else:
        _forms().add_function(argument, given, is_algorithm)


def _form_of(kind: type, name: str | None = None) -> Form:
    """Of a class of the user."""
    given = kind.__name__ if name is None else name
    if is_dataclass(kind):
        return Form.of_fields(kind, given)
    parameters = list(inspect.signature(kind).parameters.values())
    is_module = issubclass(kind, nn.Module)
    parts = {
        each.name: Any
        for each in parameters
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and not (is_module and each.name.endswith(("_prior", "_constraint")))
    }
    passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters)
    if issubclass(kind, Kernel) and passes_on:
        return form_of_kernel(kind, parts, given)
    if is_module:
        return form_of_module(kind, parts, given)
    return Form.of_attributes(kind, parts, given)


@cache
def _forms() -> Forms:
    forms = Forms(_form_of)
    values = (*_forms_of_values(), *map(Form.of_fields, _FIELDS))
    for form in (*forms_of_modules(), *forms_of_models(), *values):
        forms.add(form)
    forms.add_function(default_growth, "default_growth")
    return forms


def _forms_of_values() -> Iterator[Form]:
    yield Form(tuple, "tuple", {"parts": list[Any]}, lambda each: {"parts": list(each)}, _tuple)
    yield Form(dict, "dict", {"pairs": list[list[Any]]}, _pairs, _dict)
    numbers = {"dtype": _Dtype, "shape": list[int], "values": list[bool | int | float]}
    yield Form(Tensor, "Tensor", numbers, _numbers, _tensor)
    yield Form(np.ndarray, "array", numbers, _array_numbers, _array)
    yield Form(torch.dtype, "dtype", {"name": _Dtype}, _dtype_name, lambda name: _DTYPES[name])
    bounded = {"bounds": Tensor, "integer": tuple[int, ...], "log": tuple[int, ...]}
    bounded |= {"categories": dict[int, tuple[float, ...]]}
    bounded |= {"constraints": tuple[Tensor, Tensor] | None}
    yield Form(Box, "Box", bounded, _of_box, Box)
    yield Form.of_attributes(FiniteSet, {"points": Tensor})
    constants = dict.fromkeys(("constant", "exponent", "variance"), float)
    yield Form.of_attributes(HolderConstants, constants | {"lengthscales": tuple[float, ...]})
    for kind, names in _DISTRIBUTIONS.items():
        parts = {"name": names, "args": tuple[float, ...], "kwds": dict[str, float]}
        yield Form(kind, kind.__name__, parts, _of_distribution, _distribution)
    yield Form.of_attributes(delays.FromScipy, {"distribution": rv_frozen})


def _of_distribution(frozen: Any) -> dict[str, Any]:
    return {"name": frozen.dist.name, "args": frozen.args, "kwds": frozen.kwds}


def _distribution(name: str, args: tuple[float, ...], kwds: dict[str, float]) -> Any:
    return getattr(scipy.stats, name)(*args, **kwds)


def _of_box(box: Box) -> dict[str, Any]:
    names = ("bounds", "integer", "log", "constraints")
    return {name: getattr(box, name) for name in names} | {"categories": dict(box.categories)}


def _tuple(parts: list[Any]) -> tuple[Any, ...]:
    return tuple(parts)


def _pairs(value: dict[Any, Any]) -> dict[str, Any]:
    return {"pairs": [[key, part] for key, part in value.items()]}


def _dict(pairs: list[list[Any]]) -> dict[Any, Any]:
    return dict(pairs)


def _dtype_name(dtype: torch.dtype) -> dict[str, str]:
    return {"name": str(dtype).removeprefix("torch.")}


def _numbers(tensor: Tensor) -> dict[str, Any]:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise ValueError(f"a tensor must be one of {sorted(_DTYPES)}, got {name}")
    if tensor.requires_grad or tensor.device.type != "cpu" or tensor.ndim > _MOST_DIMS:
        raise ValueError(
            f"a tensor must be on the CPU, need no gradient and have at most {_MOST_DIMS} "
            f"dimensions, got {tuple(tensor.shape)} on {tensor.device}"
        )
    return {"dtype": name, "shape": list(tensor.shape), "values": tensor.reshape(-1).tolist()}


def _array_numbers(array: np.ndarray) -> dict[str, Any]:
    return _numbers(torch.tensor(np.ascontiguousarray(array)).reshape(array.shape))


def _tensor(dtype: str, shape: list[int], values: list[float]) -> Tensor:
    if len(shape) > _MOST_DIMS:
        raise ValueError(f"shape must have at most {_MOST_DIMS} dimensions, got {len(shape)}")
    if min(shape, default=1) < 0 or prod(shape) != len(values):
        raise ValueError(f"values must be as many as the shape {shape} says, got {len(values)}")
    kept = _DTYPES[dtype]
    kind = bool if dtype == "bool" else float if kept.is_floating_point else int
    if not all(is_of(value, kind) for value in values):
        raise ValueError(f"values must be those of the dtype {dtype}")
    return torch.tensor(values, dtype=kept).reshape(shape)


def _array(**numbers: Any) -> np.ndarray:
    return _tensor(**numbers).numpy()
