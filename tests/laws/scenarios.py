"""Scenarios that strategies are tried in: a domain, and where there are any contexts, changing
actions and initial data.

All lie off the origin, and none is a cube.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import pytest
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import botorch_ext as bx
from botorch_ext.codec import allow_argument
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests import helpers

Domain = bx.Box | bx.FiniteSet

# Of the tasks 0, 1, 2: how alike they are.
_TASKS = torch.tensor([[1.0, 0.7, -0.3], [0.7, 1.0, 0.1], [-0.3, 0.1, 0.9]]).double()
# The least observation that a session tells is larger.
MINIMUM = -2.5


# A mark: the last model left warns when it would be rejected.
quietly = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
POLICIES: dict[str, dict[str, Any]] = {
    "ignore": {"pending": "ignore"},
    "hallucinate": {"pending": "hallucinate"},
    "inflate": {"pending": "hallucinate", "inflate": True},
    "censor": {"pending": "censor", "minimum": MINIMUM},
    "timeout": {"pending": "censor", "minimum": MINIMUM, "timeout": 3},
}

rbf = cache(helpers.rbf)
matern = cache(partial(helpers.matern, nu=1.5))


_FINITE = bx.FiniteSet(
    torch.cartesian_prod(
        torch.linspace(2.0, 5.0, 6, dtype=torch.float64),
        torch.linspace(-3.0, -1.5, 4, dtype=torch.float64),
    )
)
_BOX = bx.Box([[2.0, -3.0], [5.0, -1.5]])
_NUMBERS = bx.Box([(2.0, 5.0), (-4, 1)], integer=[1], constraints=([[1.0, 0.5]], [4.0]))
_CODES = bx.Box([(2.0, 5.0), (-3.0, -1.0)], log=[0], categories={1: [-3.0, -1.5, -1.0]})
_SPACE = bx.Space(
    first=bx.Real(2, 5, step=0.25, unit="s"),
    last=bx.Real(-3, -1.5, digits=2),
    constraints="first + 0.5 * last <= 4",
)


def _ring(params: dict[str, float]) -> float:
    return (params["first"] - 3) ** 2 + (params["last"] + 2) ** 2 - 0.1


allow_argument(_ring)  # studies are made again from their descriptions
_CURVE = bx.Space(
    first=bx.Real(2, 5, log=True),
    last=bx.Real(-3, -1.5, digits=2),
    constraints=["first * last >= -9", _ring],
)
_TREE = bx.Box([(0, 1), (2.0, 5.0)], integer=[0], conditions={1: (0, [1])})
_BLEND = bx.Box([(0, 1), (0.1, 1)], constraints=([[1.0, 1.0], [-1.0, -1.0]], [1.0, -1.0]))
_LINE = bx.Box([[2.0], [5.0]])
_SEEN = bx.Box([[-1.0], [0.5]])
_LABELS = bx.FiniteSet([[0.0], [1.0], [2.0]])


@dataclass(frozen=True)
class Scenario:
    """Where strategies choose."""

    domain: Callable[[], Domain]
    contexts: Callable[[], Domain] | None = None
    changing: bool = False
    started: bool = False

    @property
    def is_box(self) -> bool:
        return isinstance(self.domain(), bx.Box)

    @property
    def dim(self) -> int:
        return self.domain().dim

    @property
    def device(self) -> torch.device:
        return self.domain().device

    @property
    def _has_tasks(self) -> bool:
        return self.contexts is not None and isinstance(self.contexts(), bx.FiniteSet)

    def on(self, device: torch.device) -> Scenario:
        """The same scenario on a device."""
        if device == self.device:
            return self
        domain, contexts = self.domain, self.contexts
        moved = None if contexts is None else lambda: contexts().to(device=device)
        return replace(self, domain=lambda: domain().to(device=device), contexts=moved)

    def kernel(self, scale: float = 1.0, of: Callable[..., Kernel] = rbf) -> Kernel:
        """A kernel on the points, with contexts on the joint rows."""
        own = [scale * value for value in (0.9, 0.5)[: self.dim]]
        if self.contexts is None:
            return of(*own)
        if self._has_tasks:
            return ActionContextKernel(of(*own), TaskKernel(_TASKS), self.dim)
        return of(*own, 0.8)

    def parts(self) -> dict[str, Any]:
        """A kernel of the actions and one of the contexts."""
        of_contexts = TaskKernel(_TASKS) if self._has_tasks else matern(0.8)
        return {
            "action_kernel": rbf(0.9, 0.5) if self.dim == 2 else rbf(0.9),
            "context_kernel": of_contexts,
        }

    def options(self) -> dict[str, Any]:
        """Arguments of a strategy that follow from the scenario."""
        options: dict[str, Any] = {}
        if self.contexts is not None:
            options["context_domain"] = self.contexts()
        if self.started:
            options |= {"initial": self._data(), "num_initial": 2}
        return options

    def _data(self) -> tuple[Tensor, Tensor]:
        X = self.domain().sample(3, seed=9)
        if self.contexts is None:
            return X, X.new_tensor([value_of(x, None) for x in X])
        Z = self.contexts().sample(3, seed=8)
        values = [value_of(x, z) for x, z in zip(X, Z, strict=True)]
        return torch.cat([X, Z], dim=-1), X.new_tensor(values)

    def offer(self, step: int, seed: int) -> dict[str, Tensor]:
        """Arguments of the ask at a step: the context and, of every other ask, the actions."""
        g = torch.Generator().manual_seed(1000 * seed + step)
        offer = {}
        if self.contexts is not None:
            # Contexts come again.
            which = int(torch.randint(8, (), generator=g))
            offer["context"] = self.contexts().sample(8, seed=100 + seed)[which]
        if self.changing and torch.rand((), generator=g) < 0.6:
            size = int(torch.randint(1, 9, (), generator=g))
            offer["actions"] = self.domain().sample(size, seed=1000 * seed + step)
        return offer


def value_of(x: Tensor, context: Tensor | None = None) -> float:
    """What is observed at an action, but for noise: between -1.9 and 1.5."""
    z = 0.0 if context is None else float(context.sum())
    last = float(x[-1]) if len(x) > 1 else -2.2
    first = float(x[0])
    angle = torch.tensor([2 * first + 0.7 * z, last - 0.3 * z], dtype=torch.float64)
    return float(angle[0].sin() * angle[1].cos() + 0.3 * last)


SCENARIOS: dict[str, Scenario] = {
    "set": Scenario(lambda: _FINITE),
    "set, started": Scenario(lambda: _FINITE, started=True),
    "set, changing": Scenario(lambda: _FINITE, changing=True),
    "set, contexts": Scenario(lambda: _FINITE, lambda: _SEEN),
    "set, tasks, started": Scenario(lambda: _FINITE, lambda: _LABELS, started=True),
    "set, contexts, changing": Scenario(lambda: _FINITE, lambda: _SEEN, changing=True),
    "line": Scenario(lambda: _LINE),
    "box": Scenario(lambda: _BOX),
    "box, started": Scenario(lambda: _BOX, started=True),
    "numbers, started": Scenario(lambda: _NUMBERS, started=True),
    "codes, contexts": Scenario(lambda: _CODES, lambda: _SEEN),
    "tree, started": Scenario(lambda: _TREE, started=True),
    "blend, started": Scenario(lambda: _BLEND, started=True),
    "space, started": Scenario(lambda: _SPACE, started=True),
    "curve, started": Scenario(lambda: _CURVE, started=True),
    "line, changing": Scenario(lambda: _LINE, changing=True),
    "line, contexts": Scenario(lambda: _LINE, lambda: _SEEN),
    "line, contexts, started": Scenario(lambda: _LINE, lambda: _SEEN, started=True),
    "line, tasks, changing": Scenario(lambda: _LINE, lambda: _LABELS, changing=True),
}
