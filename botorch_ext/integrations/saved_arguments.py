"""Saving the arguments of strategies as text, for tools that store how a strategy was made.

In a text, a value is null, a number, a string, true, false, a list of values, or ``{"class": name,
"state": {argument: value}}``: a class and the arguments with which its object is made. The names
are those of one table (`saved_classes`) and those that the user allowed. No other class is made, no
other function is called, and nothing in a text is executed. A text of an earlier version is read
like the description of a study: missing arguments get their defaults, and renamed ones their
present names.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_ext.integrations.saved_classes import SavedClass, saved_classes
from botorch_ext.models.kernel_variants import default_growth
from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.translations import translated

# The deepest nesting of values. A kernel counts as several levels, since GPyTorch takes twice the
# time for each kernel around another one.
_DEEPEST, _KERNEL = 48, 4
# The largest values of arguments that take memory and time in proportion.
_MOST = {
    **dict.fromkeys(("num_initial", "horizon", "num_points"), 10**6),
    **dict.fromkeys(("num_particles", "dim"), 10**4),
}
_MOST_WHOLE = 2**64
# The class name of functions in a text, and the name of the argument that is an algorithm.
_FUNCTION, _ALGORITHM = "function", "algorithm"

# The same text for a tree in any order of its keys; NaN equals NaN there.
_sorted = partial(json.dumps, sort_keys=True)

_by_name = {each.called: each for each in saved_classes()}
_by_kind = {each.kind: each for each in _by_name.values()}
_functions: dict[str, Callable[..., Any]] = {"default_growth": default_growth}
_algorithms: dict[str, Callable[..., Any]] = {}


def as_text(arguments: Mapping[str, Any]) -> str:
    """Save arguments as JSON.

    Priors of kernels and of means, which no algorithm uses, are left out, and so is whether
    parameters need gradients.

    Args:
        arguments: The arguments by name, including ``"algorithm"``.

    Returns:
        The text.

    Raises:
        ValueError: If an argument cannot be saved; the message names it, and how to allow it.
    """
    return to_json({name: _whole_tree(value, name) for name, value in arguments.items()})


def from_text(text: str) -> dict[str, Any]:
    """Restore arguments from a text that `as_text` made.

    Nothing in the text is executed. Only classes of the library's table, and those passed to
    `allow_argument`, are made.

    Args:
        text: The text.

    Returns:
        The arguments by name.

    Raises:
        ValueError: If it is any other text.
    """
    try:
        trees = from_json(text)
        if not isinstance(trees, dict):
            raise ValueError("they have no names")
        trees = _in_names_of_now({name: _as_of_now(tree) for name, tree in trees.items()})
        values = {name: _argument(tree, name) for name, tree in trees.items()}
        for name, value in values.items():
            if _sorted(_tree(value, name, [])) != _sorted(trees[name]):
                raise ValueError(f"{name} must be as it was saved, got what makes another value")
        return values
    except Exception as error:
        what = error if isinstance(error, ValueError) else repr(error)
        raise ValueError(f"saved arguments cannot be read: {what}") from error


def allow_argument(
    argument: Callable[..., Any], name: str | None = None, *, is_algorithm: bool = False
) -> None:
    """Allow a function, or the objects of a class, to be saved among the arguments of a strategy.

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
    if is_algorithm and isinstance(argument, type):
        raise ValueError(f"argument must be a function to be an algorithm, got {argument!r}")
    known = _by_kind.get(argument) if isinstance(argument, type) else None
    if known is not None:
        if name not in (None, known.called):
            raise ValueError(
                f"name must be {known.called!r}, as {argument!r} is saved, got {name!r}"
            )
        return
    given = getattr(argument, "__name__", None) if name is None else name
    if not isinstance(given, str) or given == "<lambda>":
        raise ValueError(f"name must be given for {argument!r}, got {name!r}")
    if isinstance(argument, type):
        replaced = _by_name.get(given)
        if given == _FUNCTION or not (replaced is None or _is_again(argument, replaced.kind)):
            raise ValueError(f"name must be one that is not taken, got {given!r}")
        if replaced is not None:
            del _by_kind[replaced.kind]
        _by_name[given] = _by_kind[argument] = SavedClass.of_user(argument, given)
    else:
        functions = _algorithms if is_algorithm else _functions
        if not _is_again(argument, functions.get(given, argument)):
            raise ValueError(f"name must be one that is not taken, got {given!r}")
        functions[given] = argument


def _is_again(new: Any, known: Any) -> bool:
    """Whether one is the other, or was defined again in a notebook."""
    if isinstance(new, FunctionType | type) and type(new) is type(known):
        return (new.__module__, new.__qualname__) == (known.__module__, known.__qualname__)
    return new is known


# --- from values to trees of JSON -----------------------------------------------------------------


def _whole_tree(value: Any, name: str) -> Any:
    """A value as a tree of JSON that holds all of it, or a ValueError."""
    try:
        modules, others = [], []
        tree = _tree(value, name, modules)
        made = _argument(tree, name)
        again = _tree(made, name, others)
        # As text, in which NaN is NaN.
        is_whole = to_json([tree, plain(value), list(map(_held, modules))]) == to_json(
            [again, plain(made), list(map(_held, others))]
        )
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{name} cannot be saved: {error!r}") from error
    if not is_whole:
        raise ValueError(
            f"{name} must be as its constructor makes it to be saved, got a "
            f"{type(value).__name__} that was changed afterwards"
        )
    return tree


def _tree(value: Any, name: str, modules: list[nn.Module], depth: int = 0) -> Any:
    """A value as a tree of JSON; its modules are appended to ``modules``."""
    _require_shallow(name, depth)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, MappingProxyType):
        value = dict(value)
    if type(value) in (bool, int, float, str, NoneType):
        return value
    if type(value) is list:
        return [_tree(part, name, modules, depth + 1) for part in value]
    saved = _by_kind.get(type(value))
    if saved is None:
        for known, function in _functions_at(name).items():
            if type(function) is type(value) and function == value:
                return {"class": _FUNCTION, "state": {"name": known}}
        raise ValueError(
            f"{name} cannot be saved, as its class {type(value).__name__} is unknown"
            + _advice(value, name)
        )
    if isinstance(value, nn.Module):
        modules.append(value)
    try:
        parts = saved.arguments_of(value)
    except Exception as error:
        raise ValueError(f"{name} cannot be saved: {error}") from error
    depth += _levels(saved)
    state = {key: _tree(part, f"{key} of {name}", modules, depth) for key, part in parts.items()}
    return {"class": saved.called, "state": state}


def _held(module: nn.Module) -> dict[str, Any]:
    """All parameters, buffers and hooks of a module and its submodules, without those of priors."""
    held = {}
    for path, part in module.named_modules():
        hooks = (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks)
        found = [part._parameters, part._buffers, *(list(each.values()) for each in hooks)]
        if any(found) and not isinstance(part, Prior):
            held[path] = plain(found)
    return held


def _advice(value: Any, name: str) -> str:
    """The advice for a value whose class is not in the table; empty if nothing helps."""
    if isinstance(value, FunctionType):
        named = value.__name__ + (", is_algorithm=True" if name == _ALGORITHM else "")
        helps = value.__name__ != "<lambda>"
    else:
        named = type(value).__name__
        try:
            saved = SavedClass.of_user(type(value), named)
            helps = saved.made(saved.arguments_of(value)) is not None
        except (ValueError, TypeError, NameError):
            helps = False
    return f": call allow_argument({named}) here and where it is loaded" if helps else ""


# --- from trees of JSON to values -----------------------------------------------------------------


def _argument(tree: Any, name: str) -> Any:
    """The value of the tree of an argument; or a ValueError."""
    value = _value(tree, name)
    is_function = isinstance(tree, dict) and tree["class"] == _FUNCTION
    if name == _ALGORITHM and not (is_function or isinstance(value, str)):
        raise ValueError(f"algorithm must be a function or its name, got {shown(value)}")
    require_bounded(name, value)
    return value


def _value(tree: Any, name: str, depth: int = 0) -> Any:
    _require_shallow(name, depth)
    if isinstance(tree, list):
        return [_value(part, name, depth + 1) for part in tree]
    if isinstance(tree, int) and abs(tree) >= _MOST_WHOLE:
        raise ValueError(f"{name} must be a number of 64 bits, got {shown(tree)}")
    if not isinstance(tree, dict):
        return tree
    kind, state = tree.get("class"), tree.get("state")
    if len(tree) != 2 or not isinstance(kind, str) or not isinstance(state, dict):
        raise ValueError(f"{name} must have a class and a state, got {shown(tree)}")
    if kind == _FUNCTION:
        known, functions = state.get("name"), _functions_at(name)
        if state.keys() != {"name"} or type(known) is not str or known not in functions:
            raise ValueError(f"{name} must be a function that is allowed, got {shown(state)}")
        return functions[known]
    if kind not in _by_name:
        raise ValueError(f"{name} must be of a class that is allowed, got {shown(kind)}")
    saved, name = _by_name[kind], f"{name} ({kind})"
    if state.keys() != saved.hints.keys():
        raise ValueError(f"{name} must have {sorted(saved.hints)}, got {shown(sorted(state))}")
    parts = {}
    for key, hint in saved.hints.items():
        parts[key] = _value(state[key], f"{key} of {name}", depth + _levels(saved))
        if not is_of(parts[key], hint):
            raise ValueError(f"{key} of {name} must be {hint}, got {shown(parts[key])}")
        require_bounded(key, parts[key])
    try:
        return saved.made(parts)
    except Exception as error:
        raise ValueError(f"{name} cannot be made: {error}") from error


def _as_of_now(tree: Any) -> Any:
    """A tree in the present names; arguments that were added to classes since have their
    defaults."""
    if isinstance(tree, list):
        return list(map(_as_of_now, tree))
    if not isinstance(tree, dict) or not isinstance(tree.get("state"), dict):
        return tree
    named = translated(tree["state"] | {"class": tree.get("class")})
    kind = named.pop("class")
    state = {name: _as_of_now(part) for name, part in named.items()}
    saved = _by_name.get(kind) if isinstance(kind, str) else None
    for name, default in () if saved is None else saved.defaults.items():
        if name not in state:
            state[name] = _tree(default, name, [])
    return tree | {"class": kind, "state": state}


def _in_names_of_now(trees: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an algorithm of the library, and its name, as they are called now."""
    if not isinstance(trees.get(_ALGORITHM), str):
        return trees
    algorithm = {"function": trees.pop(_ALGORITHM)}
    named = translated(algorithm | trees)
    return {_ALGORITHM: named.pop("function")} | named


def _functions_at(name: str) -> dict[str, Callable[..., Any]]:
    return _algorithms if name == _ALGORITHM else _functions


def _levels(saved: SavedClass) -> int:
    return _KERNEL if issubclass(saved.kind, Kernel) else 1


def _require_shallow(name: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(
            f"{name.split(' of ')[-1]} must be nested at most {_DEEPEST} levels deep, got more"
        )


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
        raise ValueError(f"{name} must be at most {most}, got {shown(value)}")


def is_of(value: Any, hint: Any) -> bool:
    """Whether a value has a type. Whole numbers are floats, bools are not numbers, and kernels and
    widths are not functions.

    Args:
        value: Any value.
        hint: A class, a union, a literal, a tuple, a list, a dict or a callable.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_of(value, each) for each in inner)
    if origin is Literal:
        return type(value) is str and value in inner
    if origin is Callable:
        of_library = type(value).__module__.startswith(("gpytorch.", "botorch.", "botorch_ext."))
        return callable(value) and not of_library
    if origin in (dict, Mapping):
        fits = isinstance(value, dict) and all(is_of(each, inner[0]) for each in value)
        return fits and all(is_of(each, inner[1]) for each in value.values())
    if origin is tuple and inner[-1] is not Ellipsis:
        fits = isinstance(value, tuple) and len(value) == len(inner)
        return fits and all(map(is_of, value, inner))
    if origin in (tuple, list, Sequence):
        allowed = (list, tuple) if origin is Sequence else origin
        return isinstance(value, allowed) and all(is_of(each, inner[0]) for each in value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint if hint in (bool, int, Tensor) else isinstance(value, hint)


def shown(value: Any) -> str:
    """A short text of a value, for messages.

    Args:
        value: Any value.

    Returns:
        The text.
    """
    if isinstance(value, Tensor | np.ndarray):
        return f"a {type(value).__name__} of shape {tuple(value.shape)}"
    return reprlib.repr(value)
