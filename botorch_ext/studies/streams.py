"""Streams: the contexts and actions of each step of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from botorch_ext.delays import as_delay
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import HorizonReached
from botorch_ext.strategies.action_sets import checked_actions

# One value for each step, known in advance; or a function of the step; or an iterator.
Source = Tensor | np.ndarray | Sequence[Any] | Callable[[int], Any] | Iterator[Any]

# A function from a value and its name in messages to the checked value.
Check = Callable[[Any, str], Tensor]


class Stream:
    """One checked value for each step, from the argument of a user.

    Args:
        source: One value for each step, a function of the step, or an iterator.
        name: The name of the argument in messages.
        check: The function that checks a value.

    Raises:
        ValueError: The source is none of these, or a value that is known in advance is wrong.
    """

    def __init__(self, source: Source, name: str, check: Check) -> None:
        self._name = name
        self._check = check
        self._function = source if callable(source) else None
        self._iterator = source if isinstance(source, Iterator) else None
        # The last value of the iterator and its step, because a strategy may wait.
        self._newest: tuple[int, Tensor] | None = None
        self._known: list[Tensor] | None = None
        if isinstance(source, Tensor | np.ndarray | Sequence):
            values = list(source)
            checked: dict[int, Tensor] = {}  # one set of actions is often that of many steps
            for step, value in enumerate(values):
                if id(value) not in checked:
                    checked[id(value)] = check(value, f"{name}[{step}]")
            self._known = [checked[id(value)] for value in values]
        elif self._function is None and self._iterator is None:
            raise ValueError(
                f"{name} must be values, one for each step, a function of the step or an iterator, "
                f"got a {type(source).__name__}"
            )

    def require_length(self, num_steps: int, exact: bool) -> None:
        """Raises a ValueError if values that are known in advance are not as many as the steps, or
        with ``exact=False`` fewer."""
        if self._known is None or len(self._known) == num_steps:
            return
        if exact or len(self._known) < num_steps:
            most = "" if exact else "at least "
            raise ValueError(
                f"{self._name} must have {most}{num_steps} entries, one for each step, "
                f"got {len(self._known)}"
            )

    def carry(self, step: int) -> None:
        """Moves the last value of an iterator to this step, because its own step is taken."""
        if self._newest is not None:
            self._newest = step, self._newest[1]

    def at(self, step: int) -> Tensor:
        """The value of a step.

        Raises:
            ValueError: The value is wrong.
            HorizonReached: An iterator has ended.
        """
        if self._known is not None:
            return self._known[step]
        name = f"{self._name} of step {step}"
        if self._function is not None:
            return self._check(self._function(step), name)
        if self._newest is None or self._newest[0] != step:
            try:
                value = next(self._iterator or iter(()))
            except StopIteration:
                raise HorizonReached(f"{self._name} ended before step {step}", step) from None
            self._newest = step, self._check(value, name)
        return self._newest[1]


def context_stream(
    source: Source, space: ContextSpace, like: Tensor, dim: int | None = None
) -> Stream:
    """A stream of contexts, each ``d_z``.

    Args:
        source: The source, as for `Stream`; a ``T x d_z`` tensor is known in advance.
        space: The space of the contexts.
        like: A tensor with the dtype and the device.
        dim: d_z; None if it is unknown before the first context.

    Raises:
        ValueError: As `Stream`.
    """

    def check(value: Any, name: str) -> Tensor:
        nonlocal dim
        context = space.checked(value, like, dim, name)
        dim = len(context)
        return context

    return Stream(source, "contexts", check)


def action_stream(source: Source, domain: Domain) -> Stream:
    """A stream of sets of actions, each ``m x d`` points of the domain.

    Args:
        source: The source, as for `Stream`.
        domain: The domain of the actions.

    Raises:
        ValueError: As `Stream`.
    """

    return Stream(source, "actions", lambda value, name: checked_actions(value, domain, name))


def noise_and_delays(
    seed: int, horizon: int, noise_std: float, delay: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The noise and the delays of all evaluations of a simulation, from independent streams.

    Args:
        seed: The seed, the same for all strategies that are compared.
        horizon: T, the number of evaluations.
        noise_std: The standard deviation of the Gaussian noise.
        delay: The distribution of the delays, as for `simulate`.

    Returns:
        ``T`` numbers and ``T`` delays in steps.
    """
    noise_stream, delay_stream = np.random.SeedSequence(seed).spawn(2)
    noise = noise_std * np.random.default_rng(noise_stream).standard_normal(horizon)
    return noise, as_delay(delay).sample(horizon, np.random.default_rng(delay_stream))
