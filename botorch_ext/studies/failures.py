"""Failures: evaluations that raise or return no finite number, and the end of a run by them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains import Space
from botorch_ext.exceptions import ObjectiveError, RepeatedFailures
from botorch_ext.strategies import Trial
from botorch_ext.strategies.event_checks import measured

# A bug fails at every point; a region that fails may hold the first one or two points by chance.
_LEAST_AT_FIRST = 3


@dataclass(frozen=True)
class Failure:
    """A trial whose objective kept failing.

    Args:
        id: The id of the trial.
        x: The ``d``-dim point.
        error: The exception of the last attempt.
        context: The ``d_z``-dim context of the trial, or None.
        params: The point by name if the domain is a `Space`, else None.
    """

    id: int
    x: Tensor
    error: BaseException
    context: Tensor | None = None
    params: dict[str, Any] | None = None

    @classmethod
    def of(cls, trial: Trial, error: BaseException) -> Failure:
        own = trial.copy()
        params = own.params if isinstance(own.domain, Space) else None
        return cls(own.id, own.x, error, own.context, params)

    @property
    def place(self) -> str:
        """The point, and its context where it has one."""
        context = "" if self.context is None else f" in context {self.context.tolist()}"
        return f"{self.x.tolist() if self.params is None else self.params}{context}"


def takes(function: Callable[..., Any], num_arguments: int) -> bool:
    """Whether a function can be called with so many arguments. It is True for a function without a
    readable signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(num_arguments))
    except TypeError:
        return False
    return True


def require_taken(objective: Callable[..., Any], num_arguments: int) -> None:
    """Raises an `ObjectiveError` unless a function takes a point, or for two arguments a point and
    its context."""
    if not takes(objective, num_arguments):
        given = "a point" if num_arguments == 1 else "a point and its context"
        raise ObjectiveError(
            f"objective must be a function of {given} alone, got {short(objective)} of "
            f"{inspect.signature(objective)}"
        )


def checked_result(
    returned: Any, names: Sequence[str], takes_std: bool = False, id: int = 0
) -> dict[str, Any]:
    """What an objective returned, as `measured` gives it: value, outcomes, std and repeats.

    Args:
        returned: A number; or, for a strategy that takes them, a list of repeats, or a dict of a
            value and its std. For a strategy with outcomes one of these and a dict of outcomes.
        names: The names of the outcomes that the strategy takes.
        takes_std: Whether the strategy takes standard errors and repeats.
        id: The id of the trial, for messages.

    Raises:
        ObjectiveError: It is something else, so that every evaluation would fail.
        ValueError: A number is NaN or infinite, or the std is not positive, so that this evaluation
            failed.
    """
    wanted, outcomes, std = "one number", {}, None
    try:
        if names:
            wanted = f"a number and a dict of {', '.join(map(repr, names))}"
            returned, given = returned
            outcomes = {name: one_number(given[name], name) for name in names}
            if len(given) > len(names):
                raise ValueError(f"there are outcomes besides {names}")
        if takes_std:
            wanted += ' (or a list of repeats, or {"value": ..., "std": ...}, for the number)'
        value = returned
        if takes_std and isinstance(value, dict):
            std, value = one_number(value["std"], "std"), value["value"]
        values = value if takes_std and isinstance(value, list) else [value]
        values = [one_number(each, "objective") for each in values]
        if not values:
            raise ValueError("there are no repeats")
    except (TypeError, ValueError, LookupError):
        raise ObjectiveError(f"objective must return {wanted}, got {short(returned)}") from None
    for number in (*values, *outcomes.values()):
        if not math.isfinite(number):
            raise ValueError(f"objective must return a finite value, got {number}")
    return measured(id, values, outcomes, std)


@dataclass
class Failures:
    """The trials that were given up in one call of `run`.

    Args:
        most: How many trials given up in a row end the run; None never ends it.
        max_pending: How many trials may be under way at once.
    """

    most: int | None
    max_pending: int
    given_up: list[Failure] = field(default_factory=list)
    in_a_row: int = 0
    any_value: bool = False

    def value_came(self) -> None:
        self.in_a_row, self.any_value = 0, True

    def add(self, failure: Failure) -> None:
        self.given_up.append(failure)
        self.in_a_row += 1

    def require_going_on(self) -> None:
        """Raises an error if too many trials failed.

        Raises:
            RepeatedFailures: Too many trials failed in a row, or all first trials failed in the
                same way.
        """
        if self.most is None or not self.in_a_row:
            return
        last = self.given_up[-1]
        at_first = max(self.max_pending, _LEAST_AT_FIRST)
        same = len({(type(each.error), str(each.error)) for each in self.given_up}) == 1
        if self.in_a_row >= self.most:
            plural = "s" if self.in_a_row > 1 else ""
            which = f"{self.in_a_row} trial{plural} failed in a row (max_consecutive_failures)"
        elif not self.any_value and self.in_a_row >= at_first and same:
            which = f"the first {self.in_a_row} trials all failed in the same way"
        else:
            return
        raise RepeatedFailures(
            f"{which}, the last one, trial {last.id} at {last.place}, with {last.error!r}"
        ) from last.error
