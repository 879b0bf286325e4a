"""Spaces of the real tasks: parameters that every peer reads. Nothing is imported but the standard
library, since each peer has an environment of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# A setting of all parameters, by name. Those that are not active may be there; tasks ignore them.
Params = dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One input of a task.

    Args:
        name: Within its task.
        kind: "real", "integer" or "choice".
        lower: The least value; not of a choice.
        upper: The largest, likewise.
        log: Whether the logarithm is what counts.
        choices: Values without an order.
        only_if: The name of a choice and the values of it with which this parameter is active;
            None for one that always is.
    """

    name: str
    kind: Literal["real", "integer", "choice"]
    lower: float = 0.0
    upper: float = 1.0
    log: bool = False
    choices: tuple[Any, ...] = ()
    only_if: tuple[str, tuple[Any, ...]] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number of `scaled`."""
        if self.kind == "choice":
            return 0.0, float(len(self.choices) - 1)
        return self._scale(self.lower), self._scale(self.upper)

    def scaled(self, value: Any) -> float:
        """The value as a number: the place of a choice, the logarithm where it counts."""
        return float(self.choices.index(value)) if self.kind == "choice" else self._scale(value)

    def value(self, scaled: float) -> Any:
        """The value of a number within `ends`; choices and whole numbers are rounded to."""
        if self.kind == "choice":
            return self.choices[round(scaled)]
        number = min(max(math.exp(scaled) if self.log else scaled, self.lower), self.upper)
        return round(number) if self.kind == "integer" else float(number)

    def read(self, found: Any) -> Any:
        """The value that another package means: a choice by its place, a number of any type."""
        if self.kind == "choice":
            return self.choices[int(found)]
        return round(found) if self.kind == "integer" else float(found)

    @property
    def resting(self) -> Any:
        """The value that stands for an input that is not active."""
        return self.value(self.ends[0])

    def is_active(self, params: Mapping[str, Any]) -> bool:
        """Whether a setting of the others makes it count."""
        return self.only_if is None or params[self.only_if[0]] in self.only_if[1]

    def _scale(self, number: float) -> float:
        return math.log(number) if self.log else float(number)


def real(name: str, lower: float, upper: float, **more: Any) -> Parameter:
    """A real number."""
    return Parameter(name, "real", lower, upper, **more)


def whole(name: str, lower: int, upper: int, **more: Any) -> Parameter:
    """A whole number."""
    return Parameter(name, "integer", lower, upper, **more)


def choice(name: str, *choices: Any, **more: Any) -> Parameter:
    """One of several values."""
    return Parameter(name, "choice", choices=choices, **more)


def of_plain(plain: Sequence[dict[str, Any]]) -> tuple[Parameter, ...]:
    """Parameters from their fields, of which JSON made lists."""

    def read(entry: dict[str, Any]) -> Parameter:
        given = entry["only_if"]
        only_if = None if given is None else (given[0], tuple(given[1]))
        return Parameter(**entry | {"choices": tuple(entry["choices"]), "only_if": only_if})

    return tuple(map(read, plain))


def active_only(parameters: Sequence[Parameter], params: Mapping[str, Any]) -> Params:
    """A setting without the parameters that do not count in it."""
    return {
        parameter.name: params[parameter.name]
        for parameter in parameters
        if parameter.is_active(params)
    }
