"""Forms: how a value becomes a tree of plain JSON, and is made again from it.

A tree is null, a number, a string, true, false, a list of trees, or ``{"class": name, "state":
{part: tree}}``. Names are those of a table of forms: no other class is made, no other function is
found, and nothing that stands in a tree is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from botorch_ext.studies.plain_arguments import plain

# Kernels of kernels of kernels are not nested deeper.
_DEEPEST = 40
# What a tree calls a function of the table.
_FUNCTION = "function"


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
            return {part: getattr(value, part) for part in parts}

        return cls(kind, name or kind.__name__, parts, take, kind)

    @classmethod
    def of_fields(cls, kind: Any, name: str | None = None) -> Form:
        """Of a dataclass that is made of its fields."""
        hints = get_type_hints(kind)
        made_of = {field.name: hints[field.name] for field in fields(kind) if field.init}
        return cls.of_attributes(kind, made_of, name)


class Forms:
    """A table of forms and of functions."""

    def __init__(self) -> None:
        self._by_name: dict[str, Form] = {}
        self._by_kind: dict[type, Form] = {}
        self._functions: dict[str, Callable[..., Any]] = {}

    def add(self, form: Form) -> None:
        """One more class; a ValueError where the name is that of another one."""
        known = self._by_name.get(form.name)
        if form.name == _FUNCTION or (known is not None and known.kind is not form.kind):
            raise ValueError(f"name must be one that is not taken, got {form.name!r}")
        self._by_name[form.name] = self._by_kind[form.kind] = form

    def add_function(self, function: Callable[..., Any], name: str) -> None:
        """One more function; a ValueError where the name is that of another one."""
        if self._functions.setdefault(name, function) is not function:
            raise ValueError(f"name must be one that is not taken, got {name!r}")

    def tree(self, value: Any, name: str) -> Any:
        """A value as a tree.

        Args:
            value: Any value.
            name: What it is, for messages.

        Raises:
            ValueError: A value that has no form, or that its form does not hold all of.
        """
        tree = self._tree(value, name)
        if plain(self._value(tree, name, 0)) != plain(value):
            raise ValueError(
                f"{name} must be made by its constructor alone to be saved, got a "
                f"{type(value).__name__} that was changed"
            )
        return tree

    def value(self, tree: Any, name: str) -> Any:
        """What a tree was made of.

        Args:
            tree: From anywhere.
            name: What it is, for messages.

        Raises:
            ValueError: No such tree.
        """
        return self._value(tree, name, 0)

    def _tree(self, value: Any, name: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        form = self._by_kind.get(type(value))
        if form is not None:
            try:
                parts = form.take(value)
            except ValueError as error:
                raise ValueError(f"{name} cannot be saved: {error}") from error
            state = {key: self._tree(part, f"{key} of {name}") for key, part in parts.items()}
            return {"class": form.name, "state": state}
        if type(value) is list:
            return [self._tree(part, name) for part in value]
        if type(value) in (bool, int, float, str, NoneType):
            return value
        for known, function in self._functions.items():
            if function is value:
                return {"class": _FUNCTION, "state": {"name": known}}
        kind = type(value).__name__
        named = getattr(value, "__name__", kind) if callable(value) else kind
        raise ValueError(
            f"{name} cannot be saved, as its class {kind} is unknown: call allow_argument({named}) "
            "here and where it is loaded"
        )

    def _value(self, tree: Any, name: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"{name} must not be nested that deeply")
        if isinstance(tree, list):
            return [self._value(part, name, depth + 1) for part in tree]
        if type(tree) in (bool, int, float, str, NoneType):
            return tree
        if not isinstance(tree, dict) or tree.keys() != {"class", "state"}:
            raise ValueError(f"{name} must have a class and a state, got {_shown(tree)}")
        kind, state = tree["class"], tree["state"]
        if not isinstance(kind, str) or not isinstance(state, dict):
            raise ValueError(f"{name} must have a class and a state, got {_shown(tree)}")
        if kind == _FUNCTION:
            known = state.get("name")
            if state.keys() != {"name"} or type(known) is not str or known not in self._functions:
                raise ValueError(f"{name} must be a function that is allowed, got {_shown(state)}")
            return self._functions[known]
        if kind not in self._by_name:
            raise ValueError(f"{name} must be of a class that is allowed, got {_shown(kind)}")
        return self._made(self._by_name[kind], state, name, depth)

    def _made(self, form: Form, state: dict[str, Any], name: str, depth: int) -> Any:
        name = f"{name} ({form.name})"
        if state.keys() != form.parts.keys():
            raise ValueError(f"{name} must have {sorted(form.parts)}, got {_shown(sorted(state))}")
        parts = {}
        for key, hint in form.parts.items():
            part = self._value(state[key], f"{key} of {name}", depth + 1)
            if not is_of(part, hint):
                raise ValueError(f"{key} of {name} must be {hint}, got {_shown(part)}")
            parts[key] = part
        try:
            return form.make(**parts)
        except Exception as error:
            raise ValueError(f"{name} cannot be made: {error}") from error


def is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of a type: a class, a union, a literal, a tuple, a list or a callable;
    whole numbers are numbers, truth values are none."""
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
        return callable(value)
    if hint in (bool, int, float):
        return type(value) is hint or (hint is float and type(value) is int)
    return isinstance(value, origin or hint)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
