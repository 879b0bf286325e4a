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


def checked_result(returned: Any, names: Sequence[str]) -> tuple[float, dict[str, float]]:
    """What an objective returned, as a value and its outcomes by name.

    Args:
        returned: A number; or, for a strategy that takes outcomes, a number and a dict of them.
        names: The names of the outcomes that the strategy takes.

    Raises:
        ObjectiveError: It is something else, so that every evaluation would fail.
        ValueError: A number is NaN or infinite, so that this evaluation failed.
    """
    wanted, outcomes = "one number", {}
    try:
        if names:
            wanted = f"a number and a dict of {', '.join(map(repr, names))}"
            returned, given = returned
            outcomes = {name: one_number(given[name], name) for name in names}
            if len(given) > len(names):
                raise ValueError(f"there are outcomes besides {names}")
        value = one_number(returned, "objective")
    except (TypeError, ValueError, LookupError):
        raise ObjectiveError(f"objective must return {wanted}, got {short(returned)}") from None
    for number in (value, *outcomes.values()):
        if not math.isfinite(number):
            raise ValueError(f"objective must return a finite value, got {number}")
    return value, outcomes


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
