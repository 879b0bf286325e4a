"""Confidence bounds hold for all actions, contexts and steps in at least a 1 - delta fraction of
runs, with contexts and without.

All runs go side by side, in the algebra of one observation after another, under the widths of the
library; that the methods do the same is checked on some of them.
"""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor

from botorch_ext import FiniteSet, algorithms, widths
from tests.helpers import matern, rbf
from tests.properties.instances import DELTA, MOST_VIOLATIONS, NORM, RUNS
from tests.strategies.sessions import half_sum, product, task_kernel

STEPS, SIGMA, LAMBDA, EPS = 25, 0.15, 0.03, 0.25
NUM_ACTIONS = 10

# name: the number of contexts, and the method's kernels
KERNELS = {
    "rbf": (1, {"kernel": rbf(0.7)}),
    "matern": (1, {"kernel": matern(0.7, nu=1.5)}),
    "tasks": (4, {"action_kernel": rbf(0.7), "context_kernel": task_kernel()}),
    "sum": (
        4,
        {
            "action_kernel": matern(0.7, nu=1.5),
            "context_kernel": rbf(0.8, 1.5),
            "combination": "sum",
        },
    ),
}


def joint_kernel(name):
    kernels = KERNELS[name][1]
    if "kernel" in kernels:
        return kernels["kernel"]
    join = half_sum if "combination" in kernels else product
    return join(kernels["action_kernel"], kernels["context_kernel"])


class Instance:
    """A function of norm `NORM` on all pairs of actions and contexts, and a stream of contexts."""

    def __init__(self, name: str, seed: int) -> None:
        g = torch.Generator().manual_seed(4000 + seed)

        def uniform(num: int, low: float, high: float) -> Tensor:
            return low + (high - low) * torch.rand(num, 1, generator=g, dtype=torch.float64)

        num = KERNELS[name][0]
        self.actions = torch.cat([uniform(NUM_ACTIONS, 2, 5), uniform(NUM_ACTIONS, -3, -1.5)], -1)
        self.contexts = torch.arange(num).double()[:, None]
        if name == "sum":
            self.contexts = torch.cat([uniform(num, -1, 0.5), uniform(num, 4, 7)], dim=-1)
        if num == 1:
            self.contexts = self.contexts[:, :0]
        # Row i + NUM_ACTIONS j: action i in context j.
        rows = [torch.cat([s, z]) for z in self.contexts for s in self.actions]
        self.K = joint_kernel(name)(torch.stack(rows)).to_dense().detach()
        weights = torch.randn(len(rows), generator=g, dtype=torch.float64)
        self.f = NORM * (self.K @ weights) / (weights @ self.K @ weights).sqrt()
        # Some contexts are rare.
        chances = torch.arange(1.0, num + 1) ** 2
        self.stream = torch.multinomial(chances, STEPS, replacement=True, generator=g)
        self.noise = SIGMA * torch.randn(STEPS, generator=g, dtype=torch.float64)


@cache
def instances_of(name: str) -> list[Instance]:
    return [Instance(name, seed) for seed in range(RUNS)]


@dataclass
class Known:
    """What a width sees, of all runs at once."""

    noise_variance: Tensor
    num_observations: int
    gain: Tensor
    dim: int = 3

    def information_gain(self) -> Tensor:
        return self.gain


@dataclass
class Played:
    """``runs x steps``: picks, widths and observations; and in how many runs a bound failed: for
    the RKHS part, and for f with eps on each side."""

    picks: Tensor
    widths: Tensor
    values: Tensor
    of_rkhs_part: int
    of_function: int


def play(name: str, width: widths.Width, eps: float = 0.0) -> Played:
    """CGP-UCB in all runs. With eps > 0 an adversary perturbs observations by at most eps, always
    so as to lower the mean at the maximiser: lemma 2 of Bogunovic and Krause holds for any such
    sequence, this one included."""
    instances = instances_of(name)
    f, K = (torch.stack([getattr(i, key) for i in instances]) for key in ("f", "K"))
    runs, target = torch.arange(RUNS), f.argmax(dim=-1)
    perturbation = torch.full_like(f, torch.nan)
    perturbation[runs, target] = eps
    mean, covariance = torch.zeros_like(f), K.clone()
    known = Known(f.new_tensor(LAMBDA), 0, f.new_zeros(RUNS))
    worst = torch.full_like(f, -torch.inf)
    picks, used, values = [], [], []
    for t in range(STEPS):
        std = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt()
        w = torch.as_tensor(width(t + 1, known), dtype=f.dtype).expand(RUNS)
        worst = torch.maximum(worst, (f - mean).abs() - w[:, None] * std)
        first = NUM_ACTIONS * torch.stack([i.stream[t] for i in instances])
        here = first[:, None] + torch.arange(NUM_ACTIONS)
        pick = (mean + w[:, None] * std).gather(1, here).argmax(dim=-1)
        row = first + pick
        fresh = perturbation[runs, row].isnan()
        sign = torch.where(covariance[runs, row, target] >= 0, -eps, eps)
        perturbation[runs, row] = torch.where(fresh, sign, perturbation[runs, row])
        y = f[runs, row] + perturbation[runs, row] + torch.stack([i.noise[t] for i in instances])
        v = covariance[runs, row]
        variance = v[runs, row]
        error = y - mean[runs, row]
        step = v / (variance + LAMBDA)[:, None]
        mean = mean + step * error[:, None]
        covariance = covariance - step[:, :, None] * v[:, None, :]
        known.gain = known.gain + 0.5 * torch.log1p(variance / LAMBDA)
        known.num_observations += 1
        picks.append(pick)
        used.append(w)
        values.append(y)
    # f = RKHS part + m: what was never observed may be perturbed by any amount up to eps.
    shift = perturbation.nan_to_num(eps).abs()
    return Played(
        torch.stack(picks, dim=-1),
        torch.stack(used, dim=-1),
        torch.stack(values, dim=-1),
        int((worst > 1e-9).any(dim=-1).sum()),
        int((worst + shift > eps + 1e-9).any(dim=-1).sum()),
    )


SELF_NORMALIZED = widths.SelfNormalized(NORM, SIGMA, DELTA)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("width", [widths.SelfNormalized, widths.ChowdhuryGopalan])
def test_bounds_hold_at_every_context(width, name):
    assert play(name, width(NORM, SIGMA, DELTA)).of_rkhs_part <= MOST_VIOLATIONS


@pytest.mark.parametrize("name", KERNELS)
def test_the_adversary_breaks_bounds_that_are_not_enlarged_and_no_others(name):
    # Less than the width of lemma 1, so that the perturbation does not fit in its slack.
    width = widths.Scaled(SELF_NORMALIZED, 0.45)
    assert play(name, width).of_rkhs_part <= MOST_VIOLATIONS
    assert play(name, width, EPS).of_rkhs_part > MOST_VIOLATIONS
    for wide in (widths.Enlarged(width, EPS), widths.Enlarged(SELF_NORMALIZED, EPS)):
        enlarged = play(name, wide, EPS)
        assert enlarged.of_rkhs_part <= MOST_VIOLATIONS
        assert enlarged.of_function <= MOST_VIOLATIONS


@pytest.mark.parametrize("name", KERNELS)
def test_these_are_the_runs_of_the_methods(name):
    num, kernels = KERNELS[name]
    played = play(name, widths.Enlarged(SELF_NORMALIZED, EPS), EPS)
    for run, instance in enumerate(instances_of(name)[:2]):
        if num > 1:
            contexts = None if name == "tasks" else FiniteSet(instance.contexts)
            kernels = {**kernels, "context_domain": contexts}
        strategy = (algorithms.ec_gp_ucb if num == 1 else algorithms.cgp_ucb)(
            FiniteSet(instance.actions),
            **kernels,
            noise_variance=LAMBDA,
            width=SELF_NORMALIZED,
            misspecification=EPS,
        )
        for t, j in enumerate(instance.stream.tolist()):
            trial = strategy.ask(context=None if num == 1 else instance.contexts[j])
            assert trial.info["index"] == played.picks[run, t]
            assert trial.info["width"] == pytest.approx(played.widths[run, t].item(), rel=1e-9)
            strategy.tell(trial.id, played.values[run, t].item())
