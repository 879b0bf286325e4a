"""Constructor arguments: what a strategy was made with, so that it can be described."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from botorch_ext.domains.reading import domain_read
from botorch_ext.state import Immutable

_PLAIN = bool | int | float | str | None


class Arguments(Immutable):
    """The arguments of a strategy by name, defaults included, as they were given.

    Args:
        given: From the name to what was given.
        made_by: The name of the function that the strategy comes from; None: its class.
    """

    def __init__(self, given: dict[str, Any], made_by: str | None = None) -> None:
        self.given, self.made_by = given, made_by

    @classmethod
    def of(cls, init: Callable[..., None], args: Any, kwargs: Any) -> Arguments:
        """Those of a call of ``init``; empty where it cannot be called like that."""
        signature = inspect.signature(init)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # which the call itself will raise
            return cls({})
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given |= given.pop(name)
        return cls(given)

    def fill(self, inner: Arguments) -> None:
        """Adds the plain defaults of the class below, to which options are passed on."""
        for name, value in inner.given.items():
            if isinstance(value, _PLAIN):
                self.given.setdefault(name, value)


def recorded(init: Callable[..., None]) -> Callable[..., None]:
    """An ``__init__`` that keeps what it is called with as ``arguments``. Where it takes a
    ``domain``, that may be the bounds of a box."""

    names = list(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = domain_read(names, args, kwargs)
        arguments = Arguments.of(init, (self, *args), kwargs)
        if "arguments" in vars(self):
            self.arguments.fill(arguments)
        else:
            self.arguments = arguments
        init(self, *args, **kwargs)

    return __init__
