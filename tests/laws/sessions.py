"""Sessions of asks and tells in any order, and of lost trials."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from botorch_ext.domains import host
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.strategies import Strategy
from botorch_ext.testing.machine import Action
from botorch_ext.testing.subjects import Tried, others


def drawn_actions(chances: dict[str, float], num_actions: int, seed: int) -> list[Action]:
    """Random actions.

    Args:
        chances: The probability of each kind of action.
        num_actions: The number of actions.
        seed: The seed.

    Returns:
        The actions.
    """
    g = torch.Generator().manual_seed(seed)
    kinds, weights = list(chances), host.tensor(list(chances.values()))
    which = torch.multinomial(weights, num_actions, replacement=True, generator=g).tolist()
    shares = host.rand(num_actions, generator=g).tolist()
    noise = (0.1 * host.randn(num_actions, generator=g)).tolist()
    return [(kinds[w], share, e) for w, share, e in zip(which, shares, noise, strict=True)]


def script(num_actions: int, seed: int) -> list[Action]:
    """Random asks, also of three trials at once, tells in any order, and abandoned trials."""
    chances = {"ask": 0.36, "ask three": 0.06, "tell": 0.48, "abandon": 0.10}
    return drawn_actions(chances, num_actions, seed)


@dataclass
class Session:
    """A strategy that is driven by a script.

    Args:
        entry: The strategy and its objective.
        seed: The seed of the strategy, the script, the contexts and the actions.
        num_actions: The length of the script; None for that of the entry.
    """

    entry: Tried
    seed: int
    num_actions: int | None = None
    strategy: Strategy = field(init=False)
    # The step whose context and actions each trial had; trials asked at once share one.
    offered: list[int] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.strategy = self.entry.make(self.seed)

    @property
    def actions(self) -> list[Action]:
        return script(self.num_actions or self.entry.num_actions, self.seed)

    def offer(self, step: int | None = None) -> dict[str, Any]:
        """The arguments of the next ask, or of the ask at a step."""
        step = len(self.strategy.history.trials) if step is None else step
        return self.entry.offer(step, self.seed)

    def do(self, action: Action) -> None:
        """Perform an action. An ask that must wait tells a trial that it waits for instead; an ask
        beyond the horizon tells any pending trial."""
        kind, share, noise = action
        pending = self.strategy.pending
        if kind in ("ask", "ask three") or not pending:
            before = len(self.strategy.history.trials)
            try:
                self.strategy.ask(3 if kind == "ask three" else None, **self.offer())
            except WaitingForObservations as waits:
                # Fewer can be asked, or nothing before an answer.
                if waits.available:
                    self.strategy.ask(waits.available, **self.offer())
                elif waits.ids:
                    self._answer(waits.ids, "tell", share, noise)
            except HorizonReached:
                if pending:
                    self._answer(pending, "tell", share, noise)
            self.offered += [before] * (len(self.strategy.history.trials) - before)
        else:
            self._answer(pending, kind, share, noise)

    def _answer(self, ids: list[int], kind: str, share: float, noise: float) -> None:
        id = ids[int(share * len(ids))]
        if kind == "abandon":
            self.strategy.abandon(id)
        else:
            trial = self.strategy.history.trials[id]
            value = self.entry.value(trial.x, trial.context) + noise
            self.strategy.tell(id, value, others(self.strategy, value))

    def play(self) -> None:
        for action in self.actions:
            self.do(action)
