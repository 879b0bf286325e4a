"""Masters over several kinds of bases."""

from __future__ import annotations

import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import KernelGP
from botorch_ext.strategies import (
    MasterStrategy,
    OptimisticStrategy,
    RandomSearch,
    RegretBalancing,
)
from tests.strategies import model_sessions
from tests.strategies.sessions import LAMBDA, data, make, plain


class InTurn(MasterStrategy):
    """Its bases play in turn, each ``length`` times."""

    def __init__(self, bases, length=1, **options):
        super().__init__(bases, **options)
        self.length = length

    def _choose(self, choices, given):
        return (len(self.history.trials) + sum(given)) // self.length % len(self.bases)


def joint_kernel():
    k = RBFKernel(ard_num_dims=3).double()
    k.lengthscale = torch.tensor([0.9, 0.5, 0.8], dtype=torch.float64)
    return k


def contextual(domain, **more):
    return OptimisticStrategy(domain, KernelGP(joint_kernel(), LAMBDA), 2.0, **more)


MIXTURES = {
    "pending policies": lambda domain: InTurn(
        [make(domain, policy, num_initial=2) for policy in ("ignore", "inflate", "timeout")]
    ),
    "several models": lambda domain: InTurn(
        [model_sessions.make("he_gp_ucb", domain, name="lengthscales"), RandomSearch(domain)],
        length=2,
    ),
    "initial data": lambda domain: InTurn(
        [make(domain, initial=data(domain, 4)), make(domain, seed=8)]
    ),
    "nested": lambda domain: InTurn(
        [
            RegretBalancing(
                [make(domain, seed=1), RandomSearch(domain)],
                [lambda n: 0.02 * n, lambda n: 0.03 * n],
                reward_range=(-3.0, 2.0),
                c=0.05,
            ),
            InTurn([make(domain, "censor"), RandomSearch(domain, seed=3)], length=2),
        ],
        length=3,
    ),
}


def snapshot(strategy):
    state = [[plain(event) for event in strategy.events], strategy.report(), strategy.warnings]
    return state + [snapshot(base) for base in getattr(strategy, "bases", [])]
