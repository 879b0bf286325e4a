"""Forms: how a value becomes a tree of plain JSON, and is made again from it.

A tree is null, a number, a string, true, false, a list of trees, or ``{"class": name, "state":
{part: tree}}``. Names are those of a table of forms: no other class is made, no other function is
found, and nothing that stands in a tree is run.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor, nn

from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_records import to_json

# Parts of parts are not nested deeper. A kernel asks all kernels in it for their batch shapes, and
# these ask again: each level takes twice the time.
_DEEPEST, _MOST_KERNELS = 40, 8
# What takes memory and time in proportion: of arguments, of a node, of parts.
_MOST = {"num_initial": 10**6, "horizon": 10**6, "num_points": 10**6}
_MOST_OF_PARTS = {"num_particles": 10**4, "dim": 10**4}
_MOST_WHOLE = 2**64
# What a tree calls a function of the table, and where functions are called with all arguments.
_FUNCTION, _ALGORITHM = "function", "algorithm"


@dataclass(frozen=True)
class Form:
    """How values of one class are saved.

    Args:
        kind: The class; of its subclasses none is meant.
        name: What it is called in a tree.
        parts: From the name of a part to its type.
        take: From a value to its parts.
        make: From its parts, as keywords, to a value.
    """

    kind: type
    name: str
    parts: Mapping[str, Any]
    take: Callable[[Any], Mapping[str, Any]]
    make: Callable[..., Any]

    @classmethod
    def of_attributes(cls, kind: type, parts: Mapping[str, Any], name: str | None = None) -> Form:
        """Of a class that is made of its attributes, given with their types."""

        def take(value: Any) -> dict[str, Any]:
            return {part: attribute(value, part) for part in parts}

        return cls(kind, name or kind.__name__, parts, take, kind)

    @classmethod
    def of_fields(cls, kind: Any, name: str | None = None) -> Form:
        """Of a dataclass that is made of its fields."""
        hints = get_type_hints(kind)
        made_of = {field.name: hints[field.name] for field in fields(kind) if field.init}
        return cls.of_attributes(kind, made_of, name)


class _Place(NamedTuple):
    """A place in a value: what it is called, and in how many parts and kernels it lies."""

    name: str
    depth: int = 0
    num_kernels: int = 0

    def part(self, key: str, kind: type) -> _Place:
        """Of a part of an object of this class that lies here."""
        num_kernels = self.num_kernels + issubclass(kind, Kernel)
        if self.depth == _DEEPEST:
            raise ValueError(f"{self.name} must not be nested that deeply")
        if num_kernels > _MOST_KERNELS:
            raise ValueError(f"{self.name} must have at most {_MOST_KERNELS} kernels in each other")
        return _Place(f"{key} of {self.name}" if key else self.name, self.depth + 1, num_kernels)


class Forms:
    """A table of forms and of functions.

    Args:
        form_of: From a class to the form that it would have if it were allowed.
    """

    def __init__(self, form_of: Callable[[type], Form]) -> None:
        self._form_of = form_of
        self._by_name: dict[str, Form] = {}
        self._by_kind: dict[type, Form] = {}
        self._functions: dict[str, dict[str, Callable[..., Any]]] = {_FUNCTION: {}, _ALGORITHM: {}}

    def name_of(self, kind: type) -> str | None:
        """What a class is called, or None."""
        form = self._by_kind.get(kind)
        return None if form is None else form.name

    def add(self, form: Form) -> None:
        """One more class; a ValueError where the name is that of another one."""
        known = self._by_name.get(form.name)
        if form.name == _FUNCTION or not (known is None or _is_again(form.kind, known.kind)):
            raise ValueError(f"name must be one that is not taken, got {form.name!r}")
        if known is not None:
            del self._by_kind[known.kind]
        self._by_name[form.name] = self._by_kind[form.kind] = form

    def add_function(
        self, function: Callable[..., Any], name: str, is_algorithm: bool = False
    ) -> None:
        """One more function; a ValueError where the name is that of another one."""
        known = self._functions[_ALGORITHM if is_algorithm else _FUNCTION]
        if not _is_again(function, known.get(name, function)):
            raise ValueError(f"name must be one that is not taken, got {name!r}")
        known[name] = function

    def tree(self, value: Any, name: str) -> Any:
        """A value as a tree.

        Args:
            value: Any value.
            name: What it is, for messages.

        Raises:
            ValueError: A value that has no form, or that its form does not hold all of.
        """
        try:
            return self._whole_tree(value, name)
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"{name} cannot be saved: {error!r}") from error

    def _whole_tree(self, value: Any, name: str) -> Any:
        modules, others = [], []
        tree = self._tree(value, _Place(name), modules)
        made = self.value(tree, name)
        again = self._tree(made, _Place(name), others)
        # As text, in which NaN is NaN.
        same = to_json([tree, plain(value)]) == to_json([again, plain(made)])
        if not same or list(map(_held, modules)) != list(map(_held, others)):
            raise ValueError(
                f"{name} must be made by its constructor alone to be saved, got a "
                f"{type(value).__name__} that was changed"
            )
        return tree

    def value(self, tree: Any, name: str) -> Any:
        """What a tree was made of.

        Args:
            tree: From anywhere.
            name: What it is, for messages; ``"algorithm"`` is a name or an algorithm of the table.

        Raises:
            ValueError: No such tree.
        """
        value = self._value(tree, _Place(name))
        is_function = isinstance(tree, dict) and tree["class"] == _FUNCTION
        if name == _ALGORITHM and not (is_function or isinstance(value, str)):
            raise ValueError(f"algorithm must be a function or its name, got {shown(value)}")
        require_bounded(name, value)
        return value

    def _tree(self, value: Any, at: _Place, modules: list[nn.Module]) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        form = self._by_kind.get(type(value))
        if form is not None:
            if isinstance(value, nn.Module):
                modules.append(value)
            try:
                parts = form.take(value)
            except Exception as error:
                raise ValueError(f"{at.name} cannot be saved: {error}") from error
            state = {
                key: self._tree(part, at.part(key, form.kind), modules)
                for key, part in parts.items()
            }
            return {"class": form.name, "state": state}
        if type(value) is list:
            return [self._tree(part, at.part("", list), modules) for part in value]
        if type(value) in (bool, int, float, str, NoneType):
            return value
        for known, function in self._functions_at(at).items():
            if type(function) is type(value) and function == value:
                return {"class": _FUNCTION, "state": {"name": known}}
        raise ValueError(
            f"{at.name} cannot be saved, as its class {type(value).__name__} is unknown"
            + self._advice(value, at.name)
        )

    def _functions_at(self, at: _Place) -> dict[str, Callable[..., Any]]:
        return self._functions[_ALGORITHM if at.name == _ALGORITHM else _FUNCTION]

    def _advice(self, value: Any, name: str) -> str:
        """What to do about a value that has no form; nothing where nothing would help."""
        if isinstance(value, FunctionType):
            named = value.__name__ + (", is_algorithm=True" if name == _ALGORITHM else "")
            helps = value.__name__ != "<lambda>"
        else:
            named, helps = type(value).__name__, self._would_save(value, name)
        return f": call allow_argument({named}) here and where it is loaded" if helps else ""

    def _would_save(self, value: Any, name: str) -> bool:
        tried = Forms(self._form_of)
        tried._by_name, tried._by_kind = dict(self._by_name), dict(self._by_kind)
        tried._functions = self._functions
        try:
            tried.add(self._form_of(type(value)))
            tried.tree(value, name)
        except (ValueError, TypeError, NameError) as error:
            return ": call allow_argument(" in str(error)
        return True

    def _value(self, tree: Any, at: _Place) -> Any:
        if isinstance(tree, list):
            return [self._value(part, at.part("", list)) for part in tree]
        if type(tree) is int and abs(tree) >= _MOST_WHOLE:
            raise ValueError(f"{at.name} must be a number of 64 bits, got {shown(tree)}")
        if type(tree) in (bool, int, float, str, NoneType):
            return tree
        if not isinstance(tree, dict) or tree.keys() != {"class", "state"}:
            raise ValueError(f"{at.name} must have a class and a state, got {shown(tree)}")
        kind, state = tree["class"], tree["state"]
        if not isinstance(kind, str) or not isinstance(state, dict):
            raise ValueError(f"{at.name} must have a class and a state, got {shown(tree)}")
        if kind == _FUNCTION:
            known, functions = state.get("name"), self._functions_at(at)
            if state.keys() != {"name"} or type(known) is not str or known not in functions:
                raise ValueError(
                    f"{at.name} must be a function that is allowed, got {shown(state)}"
                )
            return functions[known]
        if kind not in self._by_name:
            raise ValueError(f"{at.name} must be of a class that is allowed, got {shown(kind)}")
        return self._made(self._by_name[kind], state, at)

    def _made(self, form: Form, state: dict[str, Any], at: _Place) -> Any:
        at = at._replace(name=f"{at.name} ({form.name})")
        if state.keys() != form.parts.keys():
            raise ValueError(
                f"{at.name} must have {sorted(form.parts)}, got {shown(sorted(state))}"
            )
        parts = {}
        for key, hint in form.parts.items():
            part = self._value(state[key], at.part(key, form.kind))
            if not is_of(part, hint):
                raise ValueError(f"{key} of {at.name} must be {hint}, got {shown(part)}")
            require_bounded(key, part, _MOST_OF_PARTS)
            parts[key] = part
        try:
            return form.make(**parts)
        except Exception as error:
            raise ValueError(f"{at.name} cannot be made: {error}") from error


def attribute(value: Any, name: str) -> Any:
    """An attribute, or a ValueError that says what it is for."""
    try:
        return getattr(value, name)
    except AttributeError:
        raise ValueError(
            f"a {type(value).__name__} must have an attribute {name}, as its constructor has a "
            "parameter of that name"
        ) from None


def require_bounded(name: str, value: Any, bounds: Mapping[str, int] = _MOST) -> None:
    """A ValueError for a number of things that no memory would hold."""
    most = bounds.get(name)
    if most is not None and type(value) is int and value > most:
        raise ValueError(f"{name} must be at most {most}, got {shown(value)}")


def is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of a type: a class, a union, a literal, a tuple, a list or a callable;
    whole numbers are numbers, truth values are none; kernels and widths are no functions."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is NoneType:
        return value is None
    if origin in (Union, UnionType):
        return any(is_of(value, each) for each in inner)
    if origin is Literal:
        return type(value) is str and value in inner
    if origin is tuple and inner[-1:] != (Ellipsis,):
        fits = isinstance(value, tuple) and len(value) == len(inner)
        return fits and all(map(is_of, value, inner))
    if origin in (tuple, list, Sequence):
        allowed = tuple if origin is tuple else list if origin is list else (list, tuple)
        return isinstance(value, allowed) and all(is_of(each, inner[0]) for each in value)
    if origin is dict:
        fits = isinstance(value, dict) and all(is_of(each, inner[0]) for each in value)
        return fits and all(is_of(each, inner[1]) for each in value.values())
    if origin is Callable:
        of_library = type(value).__module__.startswith(("gpytorch.", "botorch.", "botorch_ext."))
        return callable(value) and not of_library
    if hint in (bool, int, float):
        return type(value) is hint or (hint is float and type(value) is int)
    return type(value) is Tensor if hint is Tensor else isinstance(value, origin or hint)


def shown(value: Any) -> str:
    """A value as a few words, whatever it is."""
    if isinstance(value, Tensor | np.ndarray):
        return f"a {type(value).__name__} of shape {tuple(value.shape)}"
    return reprlib.repr(value)


def _is_again(new: Any, known: Any) -> bool:
    """Whether one is the other, or was defined again in a notebook."""
    if isinstance(new, FunctionType | type) and type(new) is type(known):
        return (new.__module__, new.__qualname__) == (known.__module__, known.__qualname__)
    return new is known


def _held(module: nn.Module) -> dict[str, Any]:
    """All that a module holds but priors: tensors bit by bit, names of constraints, hooks."""
    held: dict[str, Any] = {}
    for path, part in module.named_modules():
        if isinstance(part, Prior):
            continue
        for name, tensor in (*part._parameters.items(), *part._buffers.items()):
            if tensor is not None:
                numbers = tensor.detach().contiguous().numpy()
                held[f"{path}.{name}"] = tensor.dtype, tuple(tensor.shape), numbers.tobytes()
        constraints = sorted(getattr(part, "_constraints", ()))
        hooks = (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks)
        if constraints or any(hooks):
            held[path] = constraints, [list(map(id, each.values())) for each in hooks]
    return held
