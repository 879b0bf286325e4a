"""The arguments that a strategy was made with, for its description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Set
from functools import wraps
from typing import Any

from botorch_ext.domains.reading import domain_read
from botorch_ext.state import Immutable

_PLAIN = bool | int | float | str | None


class Arguments(Immutable):
    """The arguments of a strategy, or of the function that made it, by name, as they were given.

    Args:
        given: Maps the name of each argument to its value, given or default.
        defaults: Maps the name of each optional argument to its default.
        passed: The names of the arguments that were given.
        made_by: The name of the function whose arguments they are; None for those of a class.
    """

    def __init__(
        self,
        given: dict[str, Any],
        defaults: dict[str, Any],
        passed: Set[str],
        made_by: str | None = None,
    ) -> None:
        self.given, self.defaults, self.passed = given, defaults, passed
        self.made_by = made_by
        #: The arguments of the function of `algorithms` that a user called, if there is one.
        self.of_function: Arguments | None = None

    @classmethod
    def of(
        cls, called: Callable[..., Any], args: Any, kwargs: Any, made_by: str | None = None
    ) -> Arguments:
        """The arguments of a call; empty if the function cannot be called so."""
        signature = inspect.signature(called)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the call itself will raise it
            return cls({}, {}, set(), made_by)
        left_out = signature.parameters.keys() - bound.arguments
        bound.apply_defaults()
        given = dict(bound.arguments)
        given.pop("self", None)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given |= given.pop(name)
        return cls(given, defaults_of(called), given.keys() - left_out, made_by)

    def fill(self, inner: Arguments) -> None:
        """Adds the plain arguments of the constructor of a base class, which were not given."""
        for name, value in inner.given.items():
            if isinstance(value, _PLAIN) and name not in self.given:
                self.given[name] = self.defaults[name] = value


def defaults_of(called: Callable[..., Any]) -> dict[str, Any]:
    """Maps the names of optional arguments to their defaults."""
    parameters = inspect.signature(called).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not each.empty}


def recorded(init: Callable[..., None]) -> Callable[..., None]:
    """Decorates an ``__init__`` so that it keeps its arguments as ``arguments``, and takes the
    bounds of a box as ``domain``."""

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
