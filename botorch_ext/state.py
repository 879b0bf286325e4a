"""Values that are replaced rather than changed, and values that never change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, Self, TypeVar, overload

_Value = TypeVar("_Value")


def shallow(value: _Value) -> _Value:
    """Copy an object with the same attributes; much faster than `copy.copy`.

    Args:
        value: Any object with a ``__dict__``.
    """
    new = object.__new__(type(value))
    new.__dict__ = vars(value).copy()  # a third of the time of an update
    return new


class State:
    """Base class of values that are replaced rather than changed: changes go to a `successor`.

    Attributes of a successor that are lists, dicts, sets or have a ``successor`` method themselves
    may be changed in place. All other attributes are shared, and may only be replaced.
    """

    def successor(self) -> Self:
        """A copy that may be changed and takes the place of this value. Only one successor of a
        value may be used, since successors may share buffers that grow."""
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


class Log(Sequence[_Value]):
    """A sequence that is replaced by a longer one, with which it shares its items.

    Args:
        items: The first items.
    """

    def __init__(self, items: Iterable[_Value] = ()) -> None:
        self._items = list(items)
        self._num = len(self._items)

    def with_item(self, item: _Value) -> Log[_Value]:
        """This log with one more item, in O(1) unless an item was appended to it before."""
        new = shallow(self)
        if len(self._items) > self._num:
            new._items = self._items[: self._num]
        new._items.append(item)
        new._num += 1
        return new

    def with_item_at(self, place: int, item: _Value) -> Log[_Value]:
        """This log with another item at a position."""
        items = list(self)
        items[place] = item
        return Log(items)

    def __len__(self) -> int:
        return self._num

    def __iter__(self) -> Iterator[_Value]:
        return islice(self._items, self._num)

    @overload
    def __getitem__(self, place: int) -> _Value: ...

    @overload
    def __getitem__(self, place: slice) -> list[_Value]: ...

    def __getitem__(self, place: int | slice) -> _Value | list[_Value]:
        if isinstance(place, slice):
            return [self._items[i] for i in range(*place.indices(self._num))]
        if not -self._num <= place < self._num:
            raise IndexError(f"place must be less than {self._num}, the length, got {place}")
        return self._items[place if place >= 0 else place + self._num]

    def __reduce__(self) -> tuple[Any, ...]:
        return Log, (list(self),)


class Immutable:
    """Base class of values that never change; copies share them, since they may be large or
    impossible to copy."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def parts_of(value: Any) -> Any:
    """Describe an object by names and plain values, for reports.

    Args:
        value: A dataclass, a list, a function, a plain value or any other object.

    Returns:
        A dict with the ``name`` of the class and the parts of a dataclass, a list of such parts, a
        plain value as it is, or for other objects a dict with only the ``name``.
    """
    if isinstance(value, list | tuple):
        return [parts_of(part) for part in value]
    if not is_dataclass(value) or isinstance(value, type):
        plain = value is None or isinstance(value, bool | int | float | str)
        return value if plain else {"name": getattr(value, "__name__", type(value).__name__)}
    parts = {each.name: parts_of(getattr(value, each.name)) for each in fields(value)}
    return {"name": type(value).__name__} | parts


# The function that copies values of a class for a successor; None if they are shared.
_COPIES: dict[type, Callable[[Any], Any] | None] = {kind: kind.copy for kind in (list, dict, set)}
