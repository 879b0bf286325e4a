"""Worker: a process in the environment of a peer, or of tasks. `protocol.Worker` starts it."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Protocol

from benchmarks.real.environments import PEERS
from benchmarks.real.protocol import serve
from benchmarks.real.spaces import Parameter, Params, active_only, of_plain


class Optimizer(Protocol):
    """A peer at work on one task, one question at a time; losses are minimised."""

    def ask(self) -> Params:
        """The next setting."""
        ...

    def tell(self, params: Params, loss: float) -> None:
        """The loss of the setting that was asked last."""
        ...

    def best(self) -> Params | None:
        """What its users take in the end, or None for the setting of the least loss seen."""
        ...


class Runs:
    """Runs of one peer, one after another.

    Args:
        peer: A key of `PEERS`.
    """

    def __init__(self, peer: str) -> None:
        module, name = PEERS[peer].entry.split(":")
        self._make = getattr(importlib.import_module(f"benchmarks.real.peers.{module}"), name)
        self._optimizer: Any = None
        self._parameters: tuple[Parameter, ...] = ()
        self._asked: Params = {}

    def begin(self, parameters: list[dict[str, Any]], seed: int, evaluations: int) -> None:
        """Starts a run."""
        self._parameters = of_plain(parameters)
        self._optimizer = self._make(self._parameters, seed, evaluations)

    def ask(self) -> Params:
        """The next setting, of active parameters alone."""
        self._asked = self._optimizer.ask()
        return active_only(self._parameters, self._asked)

    def tell(self, loss: float) -> None:
        """The loss of that setting."""
        self._optimizer.tell(self._asked, loss)

    def best(self) -> Params | None:
        """As `Optimizer` says, of active parameters alone."""
        best = self._optimizer.best()
        return None if best is None else active_only(self._parameters, best)


def _evaluations() -> Any:
    from benchmarks.real.tasks import Evaluations

    return Evaluations()


def answer(name: str) -> None:
    """Answers calls, as a peer or as the tasks of an environment."""
    warnings.simplefilter("ignore")
    serve((lambda: Runs(name)) if name in PEERS else _evaluations)
