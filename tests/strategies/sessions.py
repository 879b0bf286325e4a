"""Sessions that strategies are driven through, and strategies that wait or end."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.models import KernelGP
from botorch_ext.strategies import OptimisticStrategy, Strategy
from botorch_ext.testing.sessions import Action
from botorch_ext.testing.sessions import plain as plain
from botorch_ext.testing.sessions import script as script
from botorch_ext.testing.states import state as snapshot  # noqa: F401
from botorch_ext.widths import Enlarged, SelfNormalized, Width
from tests.helpers import rbf
from tests.laws.scenarios import MINIMUM as MINIMUM
from tests.laws.scenarios import POLICIES as POLICIES

LAMBDA = 0.02
# B, sigma, delta, and a misspecification, so that the width depends on t by itself.
WIDTH = Enlarged(SelfNormalized(1.5, 0.1, 0.1), 0.05)


def kernel() -> RBFKernel:
    return rbf(0.9, 0.5)


def box(**kind: Any) -> Box:
    return Box([[2.0, -3.0], [5.0, -1.5]], **kind)


def finite(**kind: Any) -> FiniteSet:
    x = torch.linspace(2.0, 5.0, 9, dtype=torch.float64)
    y = torch.linspace(-3.0, -1.5, 6, dtype=torch.float64)
    return FiniteSet(torch.cartesian_prod(x, y), **kind)


class Stepwise(Width):
    """A width and an offset that depend on the step; it records what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def __call__(self, t: int, model: Any) -> float:
        self.calls.append((t, model.num_observations))
        return 0.4 + 0.02 * t

    def offset(self, t: int, model: Any) -> float:
        return 0.3 / t


DOMAINS = {"finite": finite, "box": box}
both_domains = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
slow_on_a_box = pytest.mark.parametrize(
    "domain", [finite, pytest.param(box, marks=pytest.mark.slow)], ids=DOMAINS
)
all_policies = pytest.mark.parametrize("policy", POLICIES)


def f(x: Tensor) -> float:
    return float(torch.sin(2 * x[..., 0]) * torch.cos(x[..., 1]) + 0.3 * x[..., 1])


def data(domain: Domain, num_points: int, seed: int = 9) -> tuple[Tensor, Tensor]:
    """Data from before the study: ``n x d`` and ``n``."""
    X = domain.sample(num_points, seed)
    return X, X.new_tensor([f(x) for x in X])


def make(domain: Domain, policy: str = "hallucinate", **more: Any) -> OptimisticStrategy:
    model = KernelGP(kernel(), LAMBDA, dtype=domain.dtype, device=domain.device)
    return OptimisticStrategy(domain, model, WIDTH, **{"seed": 5, **POLICIES[policy], **more})


class RowsInTurn(Strategy):
    """Asks the rows of a finite set in turn."""

    def _decide(self, choices):
        row = len(self.history.trials) % self.domain.num_points
        return self.domain.points[row].clone(), {"index": row}

    def _absorb(self, event):
        pass

    def evaluated_means(self):
        return self.evaluated()[1]


class InRounds(RowsInTurn):
    """Asks rounds of ``size`` trials: a round waits until none of the round before is pending."""

    def __init__(self, domain: Domain, size: int = 3, horizon: int = 1000) -> None:
        super().__init__(domain)
        self.size, self.horizon = size, horizon

    def require_askable(self, num_trials, choices):
        num_asked = len(self.history.trials)
        if num_asked + num_trials > self.horizon:
            raise HorizonReached(f"{self.horizon - num_asked} trials are left", self.horizon)
        available = self.size - num_asked % self.size
        if available == self.size and self.pending:
            available = 0
        if num_trials > available:
            message = f"{available} trials can be asked, got {num_trials}"
            raise WaitingForObservations(message, self.pending, available)


class InRoundsByContext(InRounds):
    """Asks rounds of the first, second, ... of the points of each step, whatever the context."""

    takes_actions = True

    def __init__(self, domain: Domain, contexts: Domain, horizon: int = 1000) -> None:
        super().__init__(domain, horizon=horizon)
        self.context_space = ContextSpace(contexts)

    def _decide(self, choices):
        points = choices.points(self.domain)
        row = len(self.history.trials) % len(points)
        return points[row].clone(), choices.places(row)


class Stuck(RowsInTurn):
    """Waits, though nothing is pending."""

    def require_askable(self, num_trials, choices):
        raise WaitingForObservations("for ever", [], 0)


def play(strategy: Strategy, actions: list[Action]) -> None:
    for kind, share, noise in actions:
        if kind == "ask" or not strategy.pending:
            strategy.ask()
        elif kind == "ask three":
            strategy.ask(3)
        else:
            id = strategy.pending[int(share * len(strategy.pending))]
            if kind == "tell":
                strategy.tell(id, f(strategy.history.trials[id].x) + noise)
            else:
                strategy.abandon(id)
