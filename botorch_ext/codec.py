"""Codec of arguments: any argument of a strategy as plain values, which JSON can hold, and back.

None, bools, numbers and texts are themselves, and lists and tuples are lists. Any other value is a
dict with one of these keys:

- ``"class"``: the name of the class of an object. ``"arguments"`` are those it was made with.
  Modules of PyTorch also have ``"values"``, their parameters and buffers, and ``"constraints"``.
- ``"algorithm"``: the function of `algorithms` that made a strategy, with its ``"arguments"``.
- ``"tensor"``: the dtype of numbers, with their ``"shape"`` and their ``"values"`` or ``"bytes"``.
- ``"function"``: the name of a function.
- ``"dict"``, ``"dtype"``, ``"partial"`` and ``"scipy"``: what they say.
- ``"unknown"``: the class of an object that does not show its arguments, with ``"why"``, and with
  the ``"values"`` of a module, which are compared.

Arguments that have their defaults are left out, so that later versions may have more of them. Only
classes and functions of one table, and those that the user allowed, are made again. Nothing in a
text is executed.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, cast

import numpy as np
import torch
from gpytorch.constraints import GreaterThan, Interval, LessThan, Positive
from gpytorch.kernels import Kernel
from gpytorch.means import LinearMean
from gpytorch.priors import Prior
from gpytorch.utils.transforms import inv_sigmoid, inv_softplus
from torch import Tensor, nn

from botorch_ext.checks import short
from botorch_ext.domains import host
from botorch_ext.kernels.structure import own_values, set_own_value

#: Maps the old name of a class or an algorithm, or of one of its arguments (``"gp_ucb.beta"``), to
#: the present name.
RENAMED: dict[str, str] = {}

# Maps the name of a class or a function that may be made again to its module.
_PLACES = {
    name: module
    for module, names in {
        "botorch_ext.domains": ("Box", "ContextSpace", "FiniteSet", "Space"),
        "botorch_ext.hyperparameters.fitted": ("Fitted",),
        "botorch_ext.hyperparameters.particles": ("Particles",),
        "botorch_ext.hyperparameters.prior": ("Prior",),
        "botorch_ext.kernels": (
            *("ActionContextKernel", "GroupAdditiveKernel", "NuggetKernel", "TaskKernel"),
        ),
        "botorch_ext.kernels.smoothness": ("HolderConstants",),
        "botorch_ext.models": ("CandidateModels", "KernelGP"),
        "botorch_ext.models.kernel_variants": ("GrowingFamily", "default_growth"),
        "botorch_ext.parameters": ("Choice", "Fixed", "Integer", "Ordered", "Real"),
        "botorch_ext.strategies": ("Terms",),
        "botorch_ext.limits": ("AtLeast", "AtMost"),
        "botorch.models.kernels.categorical": ("CategoricalKernel",),
        "gpytorch.kernels": (
            *("AdditiveKernel", "ConstantKernel", "CosineKernel", "IndexKernel", "LinearKernel"),
            *("MaternKernel", "PeriodicKernel", "PiecewisePolynomialKernel", "PolynomialKernel"),
            *("ProductKernel", "RBFKernel", "RQKernel", "ScaleKernel"),
        ),
        "gpytorch.means": ("ConstantMean", "LinearMean", "ZeroMean"),
    }.items()
    for name in names
}
# Maps the first part of a name with a dot to a module, all dataclasses and strategies of which may
# be made.
_ROOMS = {
    "widths": "botorch_ext.widths",
    "rounds": "botorch_ext.delays.rounds",
    "delays": "botorch_ext.delays",
    "strategies": "botorch_ext.strategies",
}
_CONSTRAINTS = {kind.__name__: kind for kind in (Interval, GreaterThan, LessThan, Positive)}
_TRANSFORMS: dict[str | None, tuple[Any, Any]] = {
    None: (None, None),
    "softplus": (nn.Softplus(), inv_softplus),
    "sigmoid": (torch.sigmoid, inv_sigmoid),
    "exp": (torch.exp, torch.log),
}
_DISTRIBUTIONS = (
    *("bernoulli", "betabinom", "binom", "geom", "logser", "nbinom", "poisson", "randint", "zipf"),
    *("beta", "chi2", "erlang", "expon", "exponweib", "gamma", "halfnorm", "invgamma", "invgauss"),
    *("foldnorm", "hypergeom", "lognorm", "lomax", "pareto", "triang", "truncnorm", "uniform"),
    "weibull_min",
)
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}

# Arguments that are no part of a value: the same study may move to another device, and the ends and
# the dtype of a box stand in its bounds.
_LEFT_OUT = ("device", "group", "lower", "upper")
_WITH_TENSORS = ("Box", "FiniteSet", "ShardedSet")
# Arguments of classes that are not the attribute of their name.
_READ: dict[str, Callable[[Any], Any]] = {
    "batch_shape": lambda module: list(_batch_shape(module)),
    "kernels": lambda kernel: list(kernel.kernels),
    "input_size": lambda mean: mean.weights.shape[-2],
    "bias": lambda mean: mean.bias is not None,
    "num_tasks": lambda kernel: kernel.covar_factor.shape[-2],
    "rank": lambda kernel: kernel.covar_factor.shape[-1],
    "dim": lambda kernel: kernel.masks.shape[-1],
    "active_dims": lambda kernel: (
        None if kernel.active_dims is None else kernel.active_dims.tolist()
    ),
    "variance": lambda kernel: float(kernel.variance),
    "covariance": lambda kernel: kernel.covariance.detach().double(),
}
# The arguments that GPyTorch's kernels take as ``**kwargs``, with their defaults.
_OF_KERNELS: dict[str, Any] = {"batch_shape": [], "active_dims": None, "ard_num_dims": None}

# The deepest nesting of values, and the levels that a kernel counts for: GPyTorch takes twice the
# time for each kernel around another one.
_DEEPEST, _KERNEL = 48, 4
# The most numbers of a tensor that are written one by one, for readers; the most dimensions.
_WRITTEN, _MOST_DIMS = 200, 8
# The largest values of arguments that take memory and time in proportion.
_MOST = {
    **dict.fromkeys(("num_initial", "horizon", "num_points"), 10**6),
    **dict.fromkeys(("num_particles", "dim"), 10**4),
}
_MOST_WHOLE = 2**64
# How far numbers may be from each other and still be the same, relatively: what is computed differs
# in its last digits from one processor to another. The last one is relative to the largest number
# of a tensor, in which a zero may be 1e-17 elsewhere.
_SAME, _SAME_IN_FLOAT32, _BESIDE_THE_LARGEST = 1e-9, 1e-6, 1e-15

_classes: dict[str, type] = {}
_functions: dict[str, Callable[..., Any]] = {}
_algorithms: dict[str, Callable[..., Any]] = {}
_MISSING = object()


def allow_argument(
    argument: Callable[..., Any], name: str | None = None, *, is_algorithm: bool = False
) -> None:
    """Allow a function, or the objects of a class, to be made again from a saved text.

    Call this before the strategy is made, and in a new process before it is loaded. Objects are
    restored by calling the class with the saved attributes whose names are those of the
    constructor's parameters; a module of PyTorch then gets its parameters, buffers and constraints.
    A new definition under the same name, as in a notebook, replaces the previous one.

    Args:
        argument: A function, or a class.
        name: The name under which it is saved; None for its own name.
        is_algorithm: Whether the function is an algorithm itself rather than an argument of one.

    Raises:
        ValueError: If it is not a function or a class, or the name is taken.
    """
    if not callable(argument):
        raise ValueError(f"argument must be a function or a class, got {argument!r}")
    is_class = isinstance(argument, type)
    if is_algorithm and is_class:
        raise ValueError(f"argument must be a function to be an algorithm, got {argument!r}")
    if is_class and (known := _library_name(argument)) is not None:
        if name is not None:
            raise ValueError(f"name must be None, as {argument!r} is saved as {known!r}")
        return
    given = getattr(argument, "__name__", None) if name is None else name
    if not isinstance(given, str) or given == "<lambda>":
        raise ValueError(f"name must be given for {argument!r}, got {name!r}")
    allowed: dict[str, Any] = _classes if is_class else _functions
    allowed = _algorithms if is_algorithm else allowed
    if given in _PLACES or not _is_again(argument, allowed.get(given, argument)):
        raise ValueError(f"name must be one that is not taken, got {given!r}")
    allowed[given] = argument


def is_allowed_algorithm(function: Any) -> bool:
    """Whether a function was allowed as an algorithm."""
    return any(function is each for each in _algorithms.values())


def _is_again(new: Any, known: Any) -> bool:
    """Whether one is the other, or was defined again in a notebook."""
    if isinstance(new, FunctionType | type) and type(new) is type(known):
        return (new.__module__, new.__qualname__) == (known.__module__, known.__qualname__)
    return new is known


# --- from values to plain values ------------------------------------------------------------------


def encode(value: Any, name: str = "value") -> Any:
    """The plain values of an argument.

    Args:
        value: Any value.
        name: The name of the argument, for messages.

    Returns:
        The plain values. Functions and classes of the user are there by name, and objects that do
        not show their arguments as ``"unknown"``.

    Raises:
        ValueError: If it is nested too deeply.
    """
    return _encoded(value, name, 0)


def _encoded(value: Any, name: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError(f"{_own(name)} must be nested at most {_DEEPEST} levels deep, got more")
    if value is None or type(value) in (bool, int, float, str):
        return value
    inner = partial(_encoded, name=name, depth=depth + 1)
    if isinstance(value, np.generic):
        return inner(value.item())
    if isinstance(value, list | tuple | range):
        return [inner(part) for part in value]
    if isinstance(value, Set):
        return sorted((inner(part) for part in value), key=repr)
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {"dict": {key: inner(part) for key, part in value.items()}}
        return {"dict": [[inner(key), inner(part)] for key, part in value.items()]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, Tensor):
        return _encoded_tensor(value)
    if hasattr(type(value), "__array__"):  # NumPy, and the frames and columns of pandas
        return _encoded_array(np.asarray(value), inner)
    if isinstance(value, Enum | torch.device):
        return str(value)
    if isinstance(value, partial):
        return {"partial": inner([value.func, value.args, value.keywords])}
    return _encoded_object(value, name, depth)


def _encoded_array(array: np.ndarray, inner: Callable[[Any], Any]) -> Any:
    if array.dtype.kind not in "biuf":
        return inner(array.tolist())
    kind = array.dtype.newbyteorder("=") if array.dtype.itemsize <= 8 else np.dtype(np.float64)
    if array.dtype.kind == "u":
        kind = np.dtype(np.int64)
    # As an array again, which the library converts and a tensor of another dtype it refuses.
    return _encoded_tensor(torch.from_numpy(np.array(array, dtype=kind))) | {"array": True}


def _encoded_tensor(tensor: Tensor) -> dict[str, Any]:
    tensor = tensor.detach().cpu().contiguous()
    tensor = tensor if tensor.dtype in _DTYPES.values() else tensor.double()
    name = str(tensor.dtype).removeprefix("torch.")
    plain = {"tensor": name, "shape": list(tensor.shape)}
    if tensor.numel() <= _WRITTEN:
        return plain | {"values": tensor.flatten().tolist()}
    in_bytes = tensor.flatten().view(torch.uint8).numpy().tobytes()
    return plain | {"bytes": base64.b64encode(in_bytes).decode()}


def _encoded_object(value: Any, name: str, depth: int) -> dict[str, Any]:
    kind = type(value)
    if (arguments := getattr(value, "arguments", None)) is not None and hasattr(value, "ask"):
        return _encoded_strategy(value, arguments, name, depth)
    for known, function in (*_functions.items(), *_algorithms.items()):
        if type(function) is kind and function == value:
            return {"function": known}
    if hasattr(value, "__qualname__"):
        known = _library_name(value)
        if known is not None:
            return {"function": known}
        return {"function": _own_name(value)} | _held(value, name, depth)
    if kind.__module__.startswith("scipy.stats") and _is_of_scipy(getattr(value, "dist", None)):
        frozen = [value.dist.name, value.args, value.kwds]
        return {"scipy": _encoded(frozen, name, depth + 1)}
    called, values = _name_of(kind), {}
    depth += _KERNEL if isinstance(value, Kernel) else 1
    has_own = hasattr(kind, "to_arguments")
    is_module = isinstance(value, nn.Module) and not has_own
    try:
        given = cast(Any, value).to_arguments() if has_own else _read(value)
        if is_module:
            values = _encoded_values(value, list(given.values()), name)
    except (AttributeError, TypeError, ValueError) as error:
        # Its numbers can be compared all the same.
        state = value.state_dict() if is_module else {}
        numbers = {key: _encoded_tensor(each) for key, each in state.items()}
        return {"unknown": called, "why": str(error), "values": numbers}
    encoded = {key: _encoded(part, f"{key} of {name}", depth) for key, part in given.items()}
    defaults = _defaults(kind)
    arguments = {
        key: plain
        for key, plain in encoded.items()
        if key not in defaults or not _is_left_out(plain, defaults[key])
    }
    return {"class": called, "arguments": arguments} | values


def _held(function: Any, name: str, depth: int) -> dict[str, Any]:
    """What a method or a closure carries, which is compared."""
    own = getattr(function, "__self__", None)
    held = [] if own is None or isinstance(own, ModuleType) else [own]
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # the cell is still empty
            held.append(cell.cell_contents)
    if not held:
        return {}
    try:
        return {"holds": [_encoded(part, name, depth + _KERNEL) for part in held]}
    except ValueError:  # it holds itself
        return {}


def _is_of_scipy(distribution: Any) -> bool:
    """Whether it is one of SciPy's distributions, and not one of the user."""
    known = getattr(import_module("scipy.stats"), getattr(distribution, "name", ""), None)
    return distribution is not None and type(known) is type(distribution)


def _encoded_strategy(value: Any, of_class: Any, name: str, depth: int) -> dict[str, Any]:
    """The call that made a strategy, with the arguments that the user gave."""
    call = of_class.of_function
    if call is None:
        kind, call = {"class": _name_of(type(value))}, of_class
    else:
        kind = {"algorithm": call.made_by}
    arguments = {
        key: _encoded(given, f"{key} of {name}", depth + 1)
        for key, given in call.given.items()
        if key in call.passed
    }
    return kind | {"arguments": arguments}


def _encoded_values(module: nn.Module, given: list[Any], name: str) -> dict[str, Any]:
    """The numbers of a module and the constraints on them; those of its parts stand in the parts.
    Priors are left out, because no method looks at those of a kernel."""
    given = [part for each in given for part in (each if isinstance(each, list) else [each])]
    for child in module.children():
        parts = list(child) if isinstance(child, nn.ModuleList) else [child]
        for part in parts:
            if not isinstance(part, Interval | Prior) and not any(part is each for each in given):
                raise ValueError(
                    f"{name} must be as its constructor makes it to be saved, got a "
                    f"{type(module).__name__} with a {type(part).__name__} that is no argument"
                )
    plain: dict[str, Any] = {
        "values": {key: _encoded_tensor(each) for key, each in own_values(module).items()}
    }
    constraints = {
        key: encoded
        for key, each in getattr(module, "_constraints", {}).items()
        if (encoded := _encoded_constraint(getattr(module, key), name)) != ["Positive"]
    }
    return plain | ({"constraints": constraints} if constraints else {})


def _encoded_constraint(constraint: Any, name: str) -> list[Any]:
    """The class of a constraint, its bounds, and the name of its transform; a constraint to
    positive numbers is its class alone."""
    transform, inverse = constraint._transform, constraint._inv_transform
    softplus = _TRANSFORMS["softplus"][0]
    if transform is nn.functional.softplus or repr(transform) == repr(softplus):
        transform = softplus
    known = [
        each
        for each, (there, back) in _TRANSFORMS.items()
        if transform is there and (there is None or inverse is back)
    ]
    if not known:
        raise ValueError(f"{name} cannot be saved with the transform {transform!r}")
    kind = type(constraint).__name__
    if type(constraint) is Positive and known == ["softplus"]:
        return [kind]
    bounds = [_encoded_tensor(constraint.lower_bound), _encoded_tensor(constraint.upper_bound)]
    return [kind, *bounds, *known]


def _read(value: Any) -> dict[str, Any]:
    """The arguments of the constructor of an object, which are attributes of it."""
    given, is_kernel = {}, isinstance(value, Kernel)
    of_library = isinstance(value, nn.Module) and _library_name(type(value)) is not None
    for key in _names_of_arguments(type(value)):
        is_read = key in _READ and (of_library or (is_kernel and key in _OF_KERNELS))
        given[key] = _READ[key](value) if is_read else getattr(value, key)
    if not given and not isinstance(value, nn.Module) and getattr(value, "__dict__", None):
        raise ValueError("its constructor does not show what it holds")
    return given


def _batch_shape(module: Any) -> torch.Size:
    if isinstance(module, Kernel):  # that of a multiple without that of its base
        return module._batch_shape
    return module.weights.shape[:-2] if isinstance(module, LinearMean) else module.batch_shape


@cache
def _names_of_arguments(kind: Any) -> tuple[str, ...]:
    parameters = list(inspect.signature(kind).parameters.values())
    known = _library_name(kind)
    left_out = () if known is None else _LEFT_OUT
    left_out += ("dtype",) if known in _WITH_TENSORS else ()
    takes_any = any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters)
    if takes_any and known is None and not issubclass(kind, Kernel):
        raise ValueError("its constructor takes any arguments")
    names = [
        each.name
        for each in parameters
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) and each.name not in left_out
    ]
    if not issubclass(kind, nn.Module):
        return tuple(names)
    left_out = ("_prior", "_constraint") if known is None else ("prior", "_constraint")
    names = [name for name in names if not name.endswith(left_out)]
    if issubclass(kind, Kernel):
        if any(each.kind is each.VAR_POSITIONAL for each in parameters):
            return ("kernels",)
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            has_scale = cast(Any, kind).has_lengthscale
            more = _OF_KERNELS if has_scale else ("batch_shape", "active_dims")
            names += [name for name in more if name not in names]
    return tuple(names)


@cache
def _defaults(called: Any) -> dict[str, Any]:
    """Maps the names of optional arguments to their defaults, in plain values."""
    parameters = inspect.signature(called).parameters.items()
    given = {name: each.default for name, each in parameters if each.default is not each.empty}
    is_kernel = isinstance(called, type) and issubclass(called, Kernel)
    if is_dataclass(called):
        made = {each.name: each.default_factory for each in fields(called)}
        given |= {name: make() for name, make in made.items() if make is not MISSING}
    if hasattr(called, "of_arguments"):
        return _defaults(cast(Any, called).of_arguments)
    given = (_OF_KERNELS if is_kernel else {}) | given
    return {name: _encoded(default, name, 0) for name, default in given.items()}


def _is_left_out(plain: Any, default: Any) -> bool:
    """Whether an argument has its default, which a constructor may have replaced by nothing, or by
    the dtype that numbers have."""
    is_none = default is None and plain in ([], {"dict": {}}, {"dtype": "float64"})
    return is_none or _is_equal(plain, default)


def _is_equal(plain: Any, other: Any) -> bool:
    """Whether plain values are equal, each bool to a bool and NaN to NaN."""
    return json.dumps(plain) == json.dumps(other)


def _word(name: Any) -> str:
    return short(name).strip("'\"")


def _own(name: str) -> str:
    """The argument itself in a name such as "base_kernel of kernel"."""
    return name.rpartition(" of ")[2]


# --- names of classes -----------------------------------------------------------------------------


def _name_of(kind: type) -> str:
    known = _library_name(kind)
    if known is not None:
        return known
    return next((name for name, own in _classes.items() if own is kind), _own_name(kind))


def _own_name(thing: Any) -> str:
    """The name of a class or a function of the user; with its module if another one has it."""
    name = thing.__qualname__
    others = [allowed[name] for allowed in (_classes, _functions, _algorithms) if name in allowed]
    is_taken = name in _PLACES or not all(_is_again(thing, other) for other in others)
    return f"{name} of {thing.__module__}" if is_taken else name


@cache
def _library_name(thing: Any) -> str | None:
    """The name of a class or a function of the table; None for others."""
    name = thing.__name__
    if name in _PLACES and getattr(sys.modules.get(_PLACES[name]), name, None) is thing:
        return name
    for room, place in _ROOMS.items():
        if f"{thing.__module__}.".startswith(f"{place}.") and _in_room(place, name) is thing:
            return f"{room}.{name}"
    return None


def _in_room(place: str, name: str) -> Any:
    found: Any = vars(import_module(place)).get(name)
    is_class = isinstance(found, type) and not name.startswith("_")
    return found if is_class and (is_dataclass(found) or hasattr(found, "ask")) else None


def _found(name: Any) -> Any:
    """The class or function of a name, of the library or of the user; None for other names."""
    if not isinstance(name, str):
        return None
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    room, _, own = name.partition(".")
    if own and room in _ROOMS:
        return _in_room(_ROOMS[room], own)
    return _classes.get(name)


def _algorithm(name: Any) -> Callable[..., Any] | None:
    algorithms = import_module("botorch_ext.algorithms")
    return getattr(algorithms, name) if name in algorithms.__all__ else None


# --- from plain values to values ------------------------------------------------------------------


def decode(plain: Any, name: str = "value") -> Any:
    """The value whose plain values these are.

    Args:
        plain: What `encode` returned, also in an earlier version. Lists become tuples.
        name: The name of the argument, for messages.

    Returns:
        A value with the same plain values.

    Raises:
        ValueError: If `encode` makes other values, or the value needs a class or a function of the
            user that was not allowed; the message names the argument.
    """
    try:
        plain = renamed(plain)
        value = _decoded(plain, name, 0)
        require_bounded(name, value)
        lost = next(differences(plain, encode(value, name), name), None)
    except ValueError:
        raise
    except Exception as error:  # of a constructor that was given any plain values
        raise ValueError(f"{name} cannot be made: {error!r}") from error
    if lost is not None:
        raise ValueError(f"{name} must be as it was saved, got what makes another value: {lost}")
    return value


def renamed(plain: Any) -> Any:
    """Plain values in the present names."""
    return mapped(plain, _with_present_names) if RENAMED else plain


def _with_present_names(plain: dict[str, Any]) -> dict[str, Any]:
    for tag in _CALLS:
        of, arguments = plain.get(tag), plain.get("arguments")
        if isinstance(of, str) and isinstance(arguments, dict):
            plain[tag] = RENAMED.get(of, of)
            plain["arguments"] = {RENAMED.get(f"{of}.{k}", k): v for k, v in arguments.items()}
    return plain


def mapped(plain: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Plain values whose dicts with keys of this module are changed, the inner ones first. Dicts
    from the names of users are none of them, whatever these names are.

    Args:
        plain: The plain values, which stay as they are.
        change: A function that gets a copy of each dict.
    """
    if isinstance(plain, list):
        return [mapped(part, change) for part in plain]
    if not isinstance(plain, dict):
        return plain
    parts = {}
    for key, part in plain.items():
        if key in _BY_NAME and isinstance(part, dict):
            parts[key] = {name: mapped(each, change) for name, each in part.items()}
        else:
            parts[key] = mapped(part, change)
    return change(parts)


def _decoded(plain: Any, name: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError(f"{_own(name)} must be nested at most {_DEEPEST} levels deep, got more")
    if type(plain) is int and abs(plain) >= _MOST_WHOLE:
        raise ValueError(f"{name} must be a number of 64 bits, got {short(plain)}")
    if isinstance(plain, list):
        return tuple(_decoded(part, name, depth + 1) for part in plain)
    if not isinstance(plain, dict):
        return plain
    tag = next((key for key in _READERS if key in plain), None)
    if "unknown" in plain:
        raise ValueError(f"{name} is a {_word(plain['unknown'])}: {plain.get('why')}")
    if tag is None:
        raise ValueError(f"{name} must be a value that can be made again, got {short(plain)}")
    return _READERS[tag](plain, name, depth + 1)


def _decoded_tensor(plain: dict[str, Any], name: str, depth: int) -> Tensor:
    dtype, shape = _DTYPES[plain["tensor"]], plain["shape"]
    if "bytes" in plain:
        given = bytearray(base64.b64decode(plain["bytes"], validate=True))
        values = torch.frombuffer(given, dtype=dtype) if given else host.tensor([], dtype=dtype)
    else:
        values = host.tensor(plain["values"], dtype=dtype)
    # Without numbers it could have a large shape, whose rows would be listed one by one.
    if len(shape) > _MOST_DIMS or math.prod(size or 1 for size in shape) > max(len(values), 10**4):
        raise ValueError(f"{name} must have at most {_MOST_DIMS} dimensions, got {short(shape)}")
    return values.reshape(shape)


def _decoded_numbers(plain: dict[str, Any], name: str, depth: int) -> Tensor | np.ndarray:
    tensor = _decoded_tensor(plain, name, depth)
    return tensor.numpy() if plain.get("array") is True else tensor


def _decoded_dict(plain: dict[str, Any], name: str, depth: int) -> dict[Any, Any]:
    parts = plain["dict"]
    pairs = parts.items() if isinstance(parts, dict) else parts
    return {
        _decoded(key, name, depth): _decoded(part, f"{short(key)} of {name}", depth)
        for key, part in pairs
    }


def _call_of(plain: Any, name: str, depth: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    called, args, kwargs = _decoded(plain, name, depth)
    if not isinstance(kwargs, dict):
        raise ValueError(f"{name} must have arguments by name, got {short(kwargs)}")
    return called, _as_tuple(args, name), kwargs


def _as_tuple(value: Any, name: str) -> tuple[Any, ...]:
    """A tuple, and no other object that can be iterated over: a kernel has no end."""
    if not isinstance(value, tuple):
        raise ValueError(f"{name} must have a list of arguments, got {short(value)}")
    return value


def _decoded_partial(plain: dict[str, Any], name: str, depth: int) -> partial:
    function, args, kwargs = _call_of(plain["partial"], name, depth)
    return partial(function, *args, **kwargs)


def _decoded_distribution(plain: dict[str, Any], name: str, depth: int) -> Any:
    known, args, kwargs = _call_of(plain["scipy"], name, depth)
    if known not in _DISTRIBUTIONS:
        raise ValueError(f"{name} must be one of {_DISTRIBUTIONS}, got {short(known)}")
    return getattr(import_module("scipy.stats"), known)(*args, **kwargs)


def _decoded_function(plain: dict[str, Any], name: str, depth: int) -> Any:
    known = plain["function"]
    found = _functions.get(known, _algorithms.get(known, _found(known)))
    if found is None or isinstance(found, type):
        raise ValueError(
            f"{name} is the function {_word(known)}, which is not allowed: call "
            f"allow_argument({_word(known)}) here"
        )
    return found


def _decoded_strategy(plain: dict[str, Any], name: str, depth: int) -> Any:
    make = _algorithm(plain["algorithm"])
    if make is None:
        raise ValueError(f"{name} must be of an algorithm, got {short(plain['algorithm'])}")
    return make(**_decoded_arguments(plain, name, depth))


def _decoded_object(plain: dict[str, Any], name: str, depth: int) -> Any:
    kind = _found(plain["class"])
    if not isinstance(kind, type):
        raise ValueError(
            f"{name} is of the class {_word(plain['class'])}, which is not allowed: call "
            f"allow_argument({_word(plain['class'])}) here"
        )
    if issubclass(kind, Kernel):
        depth += _KERNEL - 1
    arguments = _decoded_arguments(plain, name, depth)
    if issubclass(kind, nn.Module) and not hasattr(kind, "to_arguments"):
        return _decoded_module(kind, arguments, plain, name, depth)
    make: Any = getattr(kind, "of_arguments", kind)
    return make(**arguments)


def _decoded_arguments(plain: dict[str, Any], name: str, depth: int) -> dict[str, Any]:
    arguments = {}
    for key, part in plain["arguments"].items():
        arguments[key] = value = _decoded(part, f"{key} of {name}", depth)
        require_bounded(key, value)
    return arguments


def _decoded_module(
    kind: type[nn.Module], arguments: dict[str, Any], plain: dict[str, Any], name: str, depth: int
) -> nn.Module:
    values = {key: _decoded(part, name, depth) for key, part in plain["values"].items()}
    _require_room(arguments, values, name)
    if "batch_shape" in arguments:
        arguments["batch_shape"] = torch.Size(arguments["batch_shape"])
    module: Any = kind(*_as_tuple(arguments.pop("kernels", ()), name), **arguments)
    shapes = {key: tuple(each.shape) for key, each in own_values(module).items()}
    if {key: tuple(each.shape) for key, each in values.items()} != shapes:
        raise ValueError(f"{name} must have values of the shapes {shapes}, got others")
    given = plain.get("constraints", {})
    for key in dict.fromkeys((*getattr(module, "_constraints", {}), *given)):
        constraint = _decoded_constraint(given.get(key, ["Positive"]), name)
        module.register_constraint(key.removesuffix("_constraint"), constraint)
    for key, value in values.items():
        if not (value.is_floating_point() and bool(value.isfinite().all())):
            raise ValueError(f"{key} of {name} must be finite floating-point numbers")
        set_own_value(module, key, value)
    return module


def _decoded_constraint(plain: list[Any], name: str) -> Interval:
    kind, *bounds = plain
    known = bounds.pop() if bounds else "softplus"
    made = _CONSTRAINTS[kind]
    there, back = _TRANSFORMS[known]
    lower, upper = (_decoded(bound, name, 0) for bound in bounds) if bounds else (0.0, math.inf)
    sides = {"lower_bound": lower, "upper_bound": upper}
    chosen = [sides[key] for key in sides if key in inspect.signature(made).parameters]
    constraint: Any = made(*chosen, transform=there, inv_transform=back)
    for key, bound in sides.items() if bounds else ():
        setattr(constraint, key, bound)
    return constraint


def _require_room(arguments: dict[str, Any], values: dict[str, Tensor], name: str) -> None:
    """A ValueError for arguments of which a constructor makes more numbers than there are."""
    sizes = [arguments.get(key) for key in ("ard_num_dims", "input_size", "num_tasks", "rank")]
    sizes += [*arguments.get("batch_shape", ()), *[arguments.get("dim")] * 2]  # dim x dim
    given = max(sum(map(Tensor.numel, values.values())), 1)
    if math.prod(size or 1 for size in sizes) > given:
        raise ValueError(f"{name} must have as many values as its arguments say, got {given}")
    if min(arguments.get("active_dims") or (0,)) < 0:
        raise ValueError(f"active_dims of {name} must not be negative")


def require_bounded(name: str, value: Any) -> None:
    """Check that an argument does not ask for more memory than there can be.

    Args:
        name: The name of the argument.
        value: Its value.

    Raises:
        ValueError: If it is too large.
    """
    most = _MOST.get(name)
    if most is not None and type(value) is int and value > most:
        raise ValueError(f"{name} must be at most {most}, got {short(value)}")


# The keys of dicts that are calls, and the function that reads each kind of dict.
_CALLS = ("class", "algorithm")
# The keys of dicts from names of users.
_BY_NAME = ("arguments", "dict", "values", "constraints")
_READERS: dict[str, Callable[[dict[str, Any], str, int], Any]] = {
    "class": _decoded_object,
    "algorithm": _decoded_strategy,
    "tensor": _decoded_numbers,
    "function": _decoded_function,
    "dict": _decoded_dict,
    "dtype": lambda plain, name, depth: _DTYPES[plain["dtype"]],
    "partial": _decoded_partial,
    "scipy": _decoded_distribution,
}


# --- comparison -----------------------------------------------------------------------------------


def differences(kept: Any, given: Any, place: str = "", same: float = _SAME) -> Iterator[str]:
    """The places where plain values differ, with both values.

    Numbers are the same if they differ by at most 1e-9 relatively, in float32 by 1e-6, and if they
    are in a list, an array or a tensor. Only domains must have the same dtype. Two whole numbers,
    such as seeds, must be equal. An argument that is missing has its default.

    Args:
        kept: The plain values that were kept, in the present names.
        given: Those of today.
        place: The place of both.
        same: How far numbers may be from each other, relatively.

    Yields:
        A text, such as "width is 2.0 in the study, got 3.0".
    """
    tag = _tag_of(kept)
    if tag is not None and tag == _tag_of(given):
        if kept[tag] != given[tag]:
            yield f"{_at(place, tag)} is {kept[tag]!r} in the study, got {given[tag]!r}"
            return
        if tag in _CALLS:
            yield from _different_arguments(kept, given, place, tag)
        yield from _different_entries(_actual(kept), _actual(given), place, _SAME_IN_FLOAT32)
        yield from _different_entries(
            kept.get("constraints", {}), given.get("constraints", {}), place
        )
    elif isinstance(kept, dict) and isinstance(given, dict) and "dict" in kept and "dict" in given:
        yield from _different_entries(kept["dict"], given["dict"], place)
    elif not is_same(kept, given, same):
        both_lists = isinstance(kept, list) and isinstance(given, list)
        if both_lists and len(kept) == len(given):
            for i, (old, new) in enumerate(zip(kept, given, strict=True)):
                yield from differences(old, new, f"{place}[{i}]", same)
        else:
            yield f"{place} is {_shown(kept)} in the study, got {_shown(given)}"


def _tag_of(plain: Any) -> str | None:
    """The key of the name of a call, or of an object that does not show its arguments."""
    if not isinstance(plain, dict):
        return None
    is_call = isinstance(plain.get("arguments"), dict)
    return next((tag for tag in (_CALLS if is_call else ("unknown",)) if tag in plain), None)


def _different_arguments(
    kept: dict[str, Any], given: dict[str, Any], place: str, tag: str
) -> Iterator[str]:
    called = _found(kept[tag]) if tag == "class" else _algorithm(kept[tag])
    defaults = {} if called is None else _defaults(called)
    old, new = kept["arguments"], given["arguments"]
    if kept[tag] == "Space":  # whose parameters are columns in their order
        orders = [list(_parts(side.get("parameters"))) for side in (old, new)]
        if orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]):
            yield f"the order of {place} is {orders[0]} in the study, got {orders[1]}"
    for key in dict.fromkeys((*old, *new)):
        one, other = (side.get(key, defaults.get(key, _MISSING)) for side in (old, new))
        if (key not in old and _is_left_out(other, one)) or (
            key not in new and _is_left_out(one, other)
        ):
            continue
        yield from differences(one, other, _at(place, key))
        dtypes = [side.get("tensor") if isinstance(side, dict) else None for side in (one, other)]
        if kept[tag] in _WITH_TENSORS and None not in dtypes and dtypes[0] != dtypes[1]:
            yield f"{_at(place, 'dtype')} is {dtypes[0]} in the study, got {dtypes[1]}"


def _parts(plain: Any) -> dict[str, Any]:
    parts = plain.get("dict") if isinstance(plain, dict) else None
    return parts if isinstance(parts, dict) else {}


def _actual(plain: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a module as its users set them, and not as an optimiser sees them."""
    found, constraints = {}, plain.get("constraints", {})
    for key, values in plain.get("values", {}).items():
        constraint = constraints.get(f"{key}_constraint")
        if key.startswith("raw_") and (constraint is not None or key != "raw_constant"):
            made = _decoded_constraint(constraint or ["Positive"], key)
            number = made.transform(_decoded_tensor(values, key, 0).double())
            values = _encoded_tensor(number)
        found[key.removeprefix("raw_")] = values
    return found


def _different_entries(kept: Any, given: Any, place: str, same: float = _SAME) -> Iterator[str]:
    if isinstance(kept, dict) and isinstance(given, dict):
        for key in dict.fromkeys((*kept, *given)):
            old, new = kept.get(key, _MISSING), given.get(key, _MISSING)
            yield from differences(old, new, _at(place, key.removeprefix("raw_")), same)
    else:
        yield from differences(kept, given, place)


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def is_same(kept: Any, given: Any, same: float = _SAME) -> bool:
    """Whether plain values that are no calls are the same, numbers up to their last digits."""
    if type(kept) is int and type(given) is int:
        return kept == given
    one, is_single = _numbers(kept)
    other, is_other_single = _numbers(given)
    if one is None or other is None:
        return type(kept) is type(given) and _is_equal(kept, given)
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "iu" and other.dtype.kind in "iu":
        return bool((one == other).all())
    finite = [abs(each[np.isfinite(each)]).max(initial=0.0) for each in (one, other)]
    same = _SAME_IN_FLOAT32 if is_single or is_other_single else same
    slack = same * _BESIDE_THE_LARGEST / _SAME * max(finite)
    return np.allclose(one, other, rtol=same, atol=slack, equal_nan=True)


def _numbers(plain: Any) -> tuple[np.ndarray | None, bool]:
    """The numbers of plain values, without dimensions of one at the end, and whether they are of
    float32; None for what is no numbers."""
    found, is_single = _array(plain)
    while found is not None and found.ndim and found.shape[-1] == 1:
        found = found[..., 0]
    return found, is_single


def _array(plain: Any) -> tuple[np.ndarray | None, bool]:
    if type(plain) is float or (type(plain) is int and abs(plain) < _MOST_WHOLE // 2):
        return np.asarray(plain), False
    if isinstance(plain, dict) and "tensor" in plain:
        tensor = _decoded_tensor(plain, "a tensor", 0)
        if tensor.dtype is torch.bool:
            return None, False
        is_float = tensor.is_floating_point()
        single = is_float and tensor.dtype is not torch.float64
        return (tensor.double() if is_float else tensor).numpy(), single
    if not isinstance(plain, list) or not plain:
        return None, False
    parts = [_array(part) for part in plain]
    arrays = [array for array, _ in parts if array is not None]
    if len(arrays) < len(parts) or len({array.shape for array in arrays}) > 1:
        return None, False
    return np.stack(arrays), any(single for _, single in parts)


def _shown(value: Any) -> str:
    return "missing" if value is _MISSING else short(value)
