"""Phased methods, and sessions of them: late, reordered, lost observations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext import algorithms
from botorch_ext.domains import Domain
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import PhasedElimination
from tests.strategies.sessions import kernel

B, SIGMA, DELTA, LAMBDA = 1.5, 0.05, 0.1, 0.01

METHODS: dict[str, dict[str, Any]] = {
    "phased_uncertainty_sampling": {},
    "bpe": {},
    "bpe_delay": {"delay": 6},
}


def make(method: str, domain: Domain, horizon: int, **more: Any) -> PhasedElimination:
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
    options = {"kernel": kernel(), "seed": 3, **numbers, **METHODS[method], **more}
    return getattr(algorithms, method)(domain, horizon=horizon, **options)


def rkhs(domain: Domain, seed: int = 0) -> RKHSFunction:
    return RKHSFunction.random(domain, kernel(), B, num_centers=12, noise_std=SIGMA, seed=seed)


def points(strategy: PhasedElimination, ids: Any = None) -> Tensor:
    trials = strategy.history.trials
    ids = range(len(trials)) if ids is None else ids
    return torch.stack([trials[id].x for id in ids])


def play(strategy: PhasedElimination, problem: RKHSFunction, seed: int) -> int:
    """Asks to the horizon, in between tells and abandons at random, and goes on after the horizon
    for a while; returns how often the strategy made it wait."""
    g = torch.Generator().manual_seed(seed)
    waited = 0

    def answer(ids: list[int]) -> None:
        id = ids[int(torch.randint(len(ids), (), generator=g))]
        if torch.rand((), generator=g) < 0.08:
            strategy.abandon(id)
        else:
            noise = SIGMA * torch.randn((), generator=g).item()
            strategy.tell(id, float(problem(strategy.history.trials[id].x)) + noise)

    while True:
        if strategy.pending and torch.rand((), generator=g) < 0.45:
            answer(strategy.pending)
            continue
        try:
            strategy.ask()
        except WaitingForObservations as error:
            waited += 1
            answer(error.ids)
        except HorizonReached:
            break
    for _ in range(min(5, len(strategy.pending))):
        answer(strategy.pending)
    return waited
