"""Strategies of the library, by ask and tell."""

from __future__ import annotations

from torch import Tensor

from botorch_ext import Strategy
from botorch_ext.strategies import RandomSearch


class StrategyLoop:
    """A strategy, whose trials are numbered as the evaluations of a run.

    Args:
        strategy: A fresh one.
    """

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def ask(self) -> Tensor:
        """The next ``d``-dim point."""
        return self._strategy.ask().x

    def tell(self, which: int, value: float) -> None:
        """The result of the question of that number."""
        self._strategy.tell(which, value)

    def abandon(self, which: int) -> None:
        """No result of that question will come."""
        self._strategy.abandon(which)

    def evaluated(self) -> Tensor | None:
        """The evaluated point with the largest posterior mean; nothing for random search."""
        return None if isinstance(self._strategy, RandomSearch) else self._strategy.best()[0]

    def recommended(self) -> Tensor | None:
        """The point of the box with the largest posterior mean, where the strategy finds it."""
        recommend = getattr(self._strategy, "recommend", None)
        return None if recommend is None else recommend()[0]
