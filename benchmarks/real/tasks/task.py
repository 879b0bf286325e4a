"""Task: a space, a loss to be minimised over it, and what kind of problem it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from benchmarks.real.spaces import Parameter, Params

Kind = Literal[
    "tuning", "conditional", "chemistry", "smooth", "multimodal", "noisy", "mixed", "constrained"
]
Half = Literal["develop", "report", "confirm", "large"]


class Objective(Protocol):
    """A loss."""

    def seen(self, params: Params, seed: int) -> float:
        """What one evaluation with this seed sees."""
        ...

    def true(self, params: Params) -> float:
        """The loss without noise."""
        ...


@dataclass(frozen=True)
class Exact:
    """A loss without noise.

    Args:
        loss: Of a setting.
    """

    loss: Callable[[Params], float]

    def seen(self, params: Params, seed: int) -> float:
        """The loss."""
        return self.loss(params)

    def true(self, params: Params) -> float:
        """The loss."""
        return self.loss(params)


@dataclass(frozen=True)
class Task:
    """A task.

    Args:
        name: As it is called in the tables.
        kind: Of problem.
        half: "develop", "report", "confirm" or "large".
        parameters: Of its space.
        evaluations: How many a run has.
        make: Its objective; imports what it needs.
        least: The least loss there is, where it is known.
        environment: What it is evaluated in: a key of `environments.REQUIREMENTS`, or "library" for
            that of the library.
        revision: Raised when its loss changes, so that rows of before are stale.
        seconds: Of one core that a peer may take: a run that has taken more ends early.
    """

    name: str
    kind: Kind
    half: Half
    parameters: tuple[Parameter, ...]
    evaluations: int
    make: Callable[[], Objective]
    least: float | None = None
    environment: str = "tasks"
    revision: int = 1
    seconds: float = math.inf

    @property
    def dim(self) -> int:
        """How many parameters there are."""
        return len(self.parameters)
