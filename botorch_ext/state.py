"""State: values that are replaced rather than changed, and values that never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

_Value = TypeVar("_Value")


def shallow(value: _Value) -> _Value:
    """A copy with the same attributes; much faster than `copy.copy`."""
    new = object.__new__(type(value))
    new.__dict__ = vars(value).copy()  # a third of the time of an update
    return new


class State:
    """A value that is replaced rather than changed: who changes it makes a `successor` first.

    Attributes that are lists, dicts or sets may be changed in place in a successor, and what has a
    ``successor`` of its own as well. Everything else is shared, and only replaced.
    """

    def successor(self) -> Self:
        """A copy that may be changed and takes the place of this value. It may share buffers that
        grow: of two successors of one value, only one may be used."""
        new = shallow(self)
        attributes = vars(new)
        for name, value in vars(self).items():
            kind = type(value)
            if kind not in _COPIES:
                _COPIES[kind] = getattr(kind, "successor", None)
            copy = _COPIES[kind]
            if copy is not None:
                attributes[name] = copy(value)
        return new


class Immutable:
    """A value that no event changes, and that may be large or impossible to copy."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


# How values of a class are copied for a successor; None where they are shared.
_COPIES: dict[type, Callable[[Any], Any] | None] = {kind: kind.copy for kind in (list, dict, set)}
