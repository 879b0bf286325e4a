"""Regret balancing keeps the bases whose candidate bounds hold and drops one that is grossly wrong.

Theorem 5.5 of Pacchiano et al. 2020, which M builds on.
"""

import torch

from botorch_ext import FiniteSet, RegretBalancing
from botorch_ext.strategies import Strategy
from tests.properties.instances import DELTA, MOST_VIOLATIONS, RUNS

# Of the two actions of a step, the best and the other one, whose mean reward is lower by this.
GAP = 0.9
ACTIONS = FiniteSet([[2.0], [3.0]])  # the best one of a step, whichever it is, and the other


class Careless(Strategy):
    """Takes the best action but every ``period``-th time, so that its regret is known."""

    def __init__(self, period):
        super().__init__(ACTIONS)
        self.period = period

    def _decide(self, choices):
        row = int((len(self.history.trials) + 1) % self.period == 0)
        return ACTIONS.points[row], {"index": row}

    def _absorb(self, event):
        pass

    def evaluated_means(self):
        return self.evaluated()[1]


def regret_of(period):
    """Of `Careless`, exactly."""
    return lambda n: GAP * (n // period)


def runs(c, num_steps):
    """The bases that are dropped in each run: the first two are consistent, the third is not."""
    bases = [Careless(8), Careless(4), Careless(1)]
    bounds = [regret_of(8), regret_of(4), lambda n: GAP * n / 8]
    fresh = RegretBalancing(bases, bounds, delta=DELTA, c=c)
    g = torch.Generator().manual_seed(4000)
    dropped = []
    for _ in range(RUNS):
        master = fresh.clone()
        # The mean reward of the best action of each step, and noise that makes rewards 0 or 1.
        best, noise = torch.rand(2, num_steps, generator=g).tolist()
        for mean, share in zip(best, noise, strict=True):
            trial = master.ask()
            mean = GAP + (1 - GAP) * mean - GAP * trial.info["index"]
            master.tell(trial.id, float(share < mean))
        dropped.append(set(master.eliminated))
    return dropped


def test_a_consistent_base_stays_and_a_grossly_wrong_one_goes():
    dropped = runs(c=1.0, num_steps=110)
    assert sum(bool(gone & {0, 1}) for gone in dropped) <= MOST_VIOLATIONS
    assert sum(2 in gone for gone in dropped) >= 0.5 * RUNS


def test_without_the_allowance_for_chance_consistent_bases_go():
    # Without this the test above would show nothing.
    dropped = runs(c=0.0, num_steps=16)
    assert sum(bool(gone & {0, 1}) for gone in dropped) > MOST_VIOLATIONS
