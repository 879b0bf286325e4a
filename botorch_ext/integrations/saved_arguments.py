"""Arguments of strategies as text, for tools that keep what a strategy was made with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from math import prod
from typing import Any, Literal

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor, nn

from botorch_ext import delays, widths
from botorch_ext.domains import Box, ContextSpace, FiniteSet
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.integrations.saved_forms import Form, Forms, is_of
from botorch_ext.integrations.saved_modules import (
    form_of_kernel,
    form_of_module,
    forms_of_modules,
)
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.models import CandidateModels
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.kernel_variants import GrowingFamily, default_growth
from botorch_ext.models.specification import Candidate
from botorch_ext.strategies import Terms
from botorch_ext.studies.plain_records import from_json, to_json

_FIELDS = (
    *(Fitted, Particles, Prior, ContextSpace, Terms, GrowingFamily),
    *(widths.Constant, widths.SelfNormalized, widths.ChowdhuryGopalan, widths.SrinivasRKHS),
    *(widths.BayesFinite, widths.BayesContinuous, widths.Scaled, widths.Enlarged),
    *(widths.FixedDesign, widths.AnytimeFixedDesign, widths.FixedDesignContinuous),
    widths.FixedDesignNet,
    *(delays.Fixed, delays.Geometric, delays.Poisson, delays.LogNormal),
    *(delays.FixedAllowance, delays.SubExponential, delays.Quantile, delays.Observed),
)
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
}
_Dtype = Literal["float64", "float32", "int64", "int32", "bool"]


def as_text(arguments: Mapping[str, Any]) -> str:
    """Arguments by name as JSON that holds all of them.

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
    except ValueError as error:
        raise ValueError(f"saved arguments cannot be read: {error}") from error
    if not isinstance(trees, dict):
        raise ValueError("saved arguments cannot be read: they have no names")
    try:
        return {name: _forms().value(tree, name) for name, tree in trees.items()}
    except ValueError as error:
        raise ValueError(f"saved arguments cannot be read: {error}") from error


def allow_argument(argument: Callable[..., Any], name: str | None = None) -> None:
    """Allows a function, or the objects of a class, among arguments that are saved. Call it before
    the strategy is made, and in a new process before it is loaded.

    Objects are made again by calling the class with the attributes that its constructor's
    parameters are named for; a module of PyTorch then gets its parameters, buffers and constraints.

    Args:
        argument: A function, or a class.
        name: What it is called where it is saved; None: its own name.

    Raises:
        ValueError: No function or class, or a name that is taken.
    """
    if not callable(argument):
        raise ValueError(f"argument must be a function or a class, got {argument!r}")
    given = getattr(argument, "__name__", None) if name is None else name
    if not isinstance(given, str) or given == "<lambda>":
        raise ValueError(f"name must be given for {argument!r}, got {name!r}")
    if not isinstance(argument, type):
        _forms().add_function(argument, given)
        return
    if is_dataclass(argument):
        _forms().add(Form.of_fields(argument, given))
        return
    parameters = list(inspect.signature(argument).parameters.values())
    named = [
        each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    parts = {each.name: Any for each in named}
    if issubclass(argument, Kernel) and any(each.kind is each.VAR_KEYWORD for each in parameters):
        _forms().add(form_of_kernel(argument, parts, given))
    elif issubclass(argument, nn.Module):
        _forms().add(form_of_module(argument, parts, given))
    else:
        _forms().add(Form.of_attributes(argument, parts, given))


@cache
def _forms() -> Forms:
    forms = Forms()
    for form in (*forms_of_modules(), *_forms_of_values(), *map(Form.of_fields, _FIELDS)):
        forms.add(form)
    forms.add_function(default_growth, "default_growth")
    return forms


def _forms_of_values() -> Iterator[Form]:
    yield Form(tuple, "tuple", {"parts": list[Any]}, lambda each: {"parts": list(each)}, _tuple)
    yield Form(dict, "dict", {"pairs": list[list[Any]]}, _pairs, _dict)
    numbers = {"dtype": _Dtype, "shape": list[int], "values": list[bool | int | float]}
    yield Form(Tensor, "Tensor", numbers, _numbers, _tensor)
    yield Form(nn.Parameter, "Parameter", numbers, _numbers, _parameter)
    yield Form(np.ndarray, "array", numbers, lambda each: _numbers(torch.tensor(each)), _array)
    yield Form(torch.dtype, "dtype", {"name": _Dtype}, _dtype_name, lambda name: _DTYPES[name])
    bounded = {"bounds": Tensor, "integer": tuple[int, ...], "log": tuple[int, ...]}
    bounded |= {"categories": dict[int, tuple[float, ...]]}
    bounded |= {"constraints": tuple[Tensor, Tensor] | None}
    yield Form(Box, "Box", bounded, _of_box, Box)
    yield Form.of_attributes(FiniteSet, {"points": Tensor})
    constants = dict.fromkeys(("constant", "exponent", "variance"), float)
    yield Form.of_attributes(HolderConstants, constants | {"lengthscales": tuple[float, ...]})
    yield Form.of_attributes(
        Candidate,
        {"name": str, "kernel": Kernel, "noise_variance": Tensor, "mean": PriorMean | None}
        | {"lengthscale": float | None, "twin_of": str | None},
    )
    yield Form(
        CandidateModels,
        "CandidateModels",
        {"candidates": list[Candidate], "family": GrowingFamily | None},
        _candidates,
        CandidateModels._of,
    )


def _of_box(box: Box) -> dict[str, Any]:
    names = ("bounds", "integer", "log", "constraints")
    return {name: getattr(box, name) for name in names} | {"categories": dict(box.categories)}


def _candidates(models: CandidateModels) -> dict[str, Any]:
    if models.num_observations or any(part.model.has_transforms for part in models.parts):
        raise ValueError("models must have no data and no transforms")
    return {"candidates": models._entries, "family": models._family}


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
    values = tensor.detach().cpu().reshape(-1).tolist()
    return {"dtype": name, "shape": list(tensor.shape), "values": values}


def _tensor(dtype: str, shape: list[int], values: list[float]) -> Tensor:
    if min(shape, default=1) < 0 or prod(shape) != len(values):
        raise ValueError(f"values must be as many as the shape {shape[:10]} says")
    kept = _DTYPES[dtype]
    kind = bool if dtype == "bool" else float if kept.is_floating_point else int
    if not all(is_of(value, kind) for value in values):
        raise ValueError(f"values must be those of the dtype {dtype}")
    return torch.tensor(values, dtype=kept).reshape(shape)


def _parameter(**numbers: Any) -> nn.Parameter:
    tensor = _tensor(**numbers)
    return nn.Parameter(tensor, requires_grad=False)


def _array(**numbers: Any) -> np.ndarray:
    return _tensor(**numbers).numpy()
