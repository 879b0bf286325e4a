"""Subjects: the strategies that are tested, with their objectives and contexts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.strategies import Strategy

# The number of actions of a session, so that each kind of call is in it.
NUM_ACTIONS = 28


class Tried(Protocol):
    """The protocol of what the laws test; it can be hashed."""

    @property
    def num_actions(self) -> int:
        """The number of asks, tells and other calls of a session."""
        ...

    @property
    def is_random(self) -> bool:
        """Whether the seed decides more than the points that a search looks at."""
        ...

    @property
    def refits_after_correction(self) -> bool:
        """Whether a correction to the same value may change the next trial."""
        ...

    def make(self, seed: int = 0) -> Strategy:
        """A strategy without events, always the same for a seed."""
        ...

    def offer(self, step: int, seed: int) -> dict[str, Any]:
        """The arguments of the ask at a step: its context and its actions."""
        ...

    def value(self, x: Tensor, context: Tensor | None) -> float:
        """The observation without noise, between -2 and 2."""
        ...


def others(strategy: Strategy, value: float) -> dict[str, float]:
    """The outcomes that a strategy needs with a value, all of them equal to it."""
    return dict.fromkeys(strategy.outcome_names, value)


class Subject:
    """Any strategy, with random contexts and actions of its own domain.

    Args:
        make: A function that makes the strategy, without events, from a seed or from no argument.
        objective: A function from a point and its context (or None) to a number between -2 and 2;
            None for a smooth function.
        num_actions: The number of asks, tells and other calls of a session; None for a quick one.
        is_random: As in `Tried`.
        refits_after_correction: As in `Tried`.
    """

    def __init__(
        self,
        make: Callable[..., Strategy],
        objective: Callable[[Tensor, Tensor | None], float] | None = None,
        num_actions: int | None = None,
        is_random: bool = False,
        refits_after_correction: bool = False,
    ) -> None:
        self._make, self._objective = make, objective
        self._takes_seed = self.takes_a_seed(make)
        self._shown = self.make()
        self.num_actions = NUM_ACTIONS if num_actions is None else num_actions
        self.is_random, self.refits_after_correction = is_random, refits_after_correction

    @staticmethod
    def takes_a_seed(make: Callable[..., Strategy]) -> bool:
        """Whether a function that makes a strategy takes a seed."""
        return bool(inspect.signature(make).parameters)

    def make(self, seed: int = 0) -> Strategy:
        return self._make(seed) if self._takes_seed else self._make()

    def offer(self, step: int, seed: int) -> dict[str, Any]:
        strategy, generator = self._shown, torch.Generator().manual_seed(1000 * seed + step)
        offer: dict[str, Any] = {}
        space = strategy.context_space
        if space is not None:
            which = int(host.randint(8, (), generator=generator))
            if space.domain is None:
                numbers = host.randn(
                    8, space.dim or 1, generator=torch.Generator().manual_seed(seed)
                )
                offer["context"] = numbers.to(strategy.domain.like)[which]
            else:
                offer["context"] = space.domain.sample(8, seed=100 + seed)[which]
        if strategy.takes_actions and step % 3 == 1:
            size = int(host.randint(1, 9, (), generator=generator))
            offer["actions"] = strategy.domain.sample(size, seed=1000 * seed + step)
        return offer

    def value(self, x: Tensor, context: Tensor | None) -> float:
        if self._objective is not None:
            return self._objective(x, context)
        joint = x if context is None else torch.cat([x, context])
        return float((2 * joint).sin().mean())
