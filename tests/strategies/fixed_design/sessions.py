"""Methods of a fixed design, problems for them, and sessions with late, reordered, lost results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext import CertifiedElimination, PhasedElimination, algorithms
from botorch_ext.domains import Domain
from botorch_ext.exceptions import WaitingForObservations
from botorch_ext.problems import RKHSFunction
from tests.strategies.sessions import kernel

B, SIGMA, DELTA, LAMBDA = 1.5, 0.05, 0.1, 0.01
METHODS = ("phased_uncertainty_sampling", "bpe", "bpe_delay")


def phased(method: str, domain: Domain, horizon: int, **more: Any) -> PhasedElimination:
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
    delay = {"delay": 6} if method == "bpe_delay" else {}
    options = {"kernel": kernel(), "seed": 3, **numbers, **delay, **more}
    return getattr(algorithms, method)(domain, horizon=horizon, **options)


def certified(domain: Domain, horizon: int = 130, **options: Any) -> CertifiedElimination:
    given = {"noise_variance": LAMBDA, "seed": 3, **options}
    return algorithms.certified_bucb(domain, kernel(), horizon=horizon, **given)


def rkhs(domain: Domain, seed: int = 0) -> RKHSFunction:
    return RKHSFunction.random(domain, kernel(), B, num_centers=12, noise_std=SIGMA, seed=seed)


def points(strategy: Any, ids: Any = None) -> Tensor:
    trials = strategy.history.trials
    return torch.stack([trials[id].x for id in (range(len(trials)) if ids is None else ids)])


def observe(strategy: Any, problem: RKHSFunction, ids: Sequence[int]) -> None:
    """Tells trials; the noise of a trial depends on its id alone."""
    for id in ids:
        g = torch.Generator().manual_seed(7 * id + 1)
        noise = problem.noise_std * torch.randn((), generator=g).item()
        strategy.tell(id, float(problem(strategy.history.trials[id].x)) + noise)


@dataclass(frozen=True)
class Wait:
    """A refusal: how many events there were, what it waited for, how much could be asked."""

    num_events: int
    ids: list[int]
    available: int


def refusal(strategy: Any, size: int | None) -> Wait | None:
    """Asks so many trials; what it must wait for instead."""
    try:
        strategy.ask(size)
    except WaitingForObservations as error:
        return Wait(len(strategy.events), error.ids, error.available)
    return None


def play(strategy: Any, problem: RKHSFunction, seed: int, lost: float = 0.08) -> list[Wait]:
    """Asks lists of random sizes to the horizon, tells in any order, abandons a share, and goes on
    after the horizon for a while."""
    g = torch.Generator().manual_seed(seed)
    waits: list[Wait] = []

    def chance() -> float:
        return torch.rand((), generator=g).item()

    def answer(ids: list[int]) -> None:
        id = ids[int(chance() * len(ids))]
        if chance() < lost:
            strategy.abandon(id)
        else:
            observe(strategy, problem, [id])

    while left := strategy.horizon - len(strategy.history.trials):
        if strategy.pending and chance() < 0.6:
            answer(strategy.pending)
            continue
        size = min(left, 1 + int(9 * chance() ** 3))
        wait = refusal(strategy, size)
        if wait is not None:
            waits.append(wait)
            assert 0 <= wait.available < size and wait.ids == strategy.pending
            if wait.available:
                strategy.ask(wait.available)
                wait = refusal(strategy, 1)
                assert wait is not None and wait.available == 0
                waits.append(wait)
            answer(wait.ids)
    for _ in range(min(5, len(strategy.pending))):
        answer(strategy.pending)
    return waits
