"""Insured methods against their definition: every level, probe and price, replayed through plain
loops and dense algebra."""

import math

import pytest
import torch
from gpytorch.kernels import LinearKernel, RBFKernel

from botorch_ext import FiniteSet, algorithms, problems
from botorch_ext.strategies.adaptive.insurance import Terms
from tests.oracles.insured import Insured, Model

B, SIGMA, DELTA = 1.0, 0.05, 0.1


def rbf(lengthscale):
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


def linear():
    kernel = LinearKernel().double()
    kernel.variance = 1.0
    return kernel


def bent_line(N=25, seed=0, eps=0.0):
    """A function of the RKHS on a line, with a perturbation of size eps."""
    g = torch.Generator().manual_seed(seed)
    X = torch.linspace(0, 1, N, dtype=torch.float64).unsqueeze(-1)
    K = rbf(0.2)(X, X).to_dense()
    weights = torch.randn(N, generator=g, dtype=torch.float64)
    f = K @ weights / math.sqrt(float(weights @ K @ weights))
    white = torch.rand(N, generator=g, dtype=torch.float64) * 2 - 1
    return X, f + eps * white, rbf(0.2)


def locked():
    """Three arms of which the linear model excludes the best."""
    problem = problems.lock_out()
    return problem.domain.points, problem(problem.domain.points), problem.kernel


CASES = {
    "right": (bent_line(), 1e-2, 0.05),
    "rough": (bent_line(seed=1, eps=0.3), 1e-2, 0.02),
    "locked": (locked(), 1e-3, 0.01),
}
# Numbers that make everything happen within few steps.
EAGER = Terms(alpha=0.5, beta=0.6, purse=0.4, max_follow_ups=3, override=1.0)


def run(strategy, oracle, f, steps, sigma, delay, offers=None, seed=3, sizes=1e-7):
    """Plays and compares; how often each kind was played."""
    g = torch.Generator().manual_seed(seed)
    kinds, levels, pending = [], [], []
    for t in range(1, steps + 1):
        offered = None if offers is None else offers(t)
        actions = None if offered is None else strategy.domain.points[offered]
        trial = strategy.ask(actions=actions)
        late = [row for _, _, row in pending]
        expected = oracle.ask(t, late, offered)
        info = trial.info
        assert (info["index"], info["kind"]) == (expected["row"], expected["kind"]), (t, expected)
        assert info["level"] == expected["level"]
        assert info["cost"] == pytest.approx(expected["cost"], abs=sizes)
        assert info.get("suspected") == expected["suspected"]
        kinds.append(info["kind"] + ("!" if info.get("purse") == "owed" else ""))
        kinds[-1] += "." if info.get("purse") == "small" else ""
        levels.append(info["level"])
        wait = int(torch.randint(0, delay + 1, (), generator=g)) if delay else 0
        pending.append((t + wait, trial.id, info["index"]))
        for entry in [entry for entry in pending if entry[0] <= t]:
            pending.remove(entry)
            noise = float(torch.randn((), generator=g, dtype=torch.float64)) * sigma
            value = float(f[entry[2]]) + noise
            strategy.tell(entry[1], value)
            oracle.tell(entry[2], value)
    return kinds, levels


def make(case, terms=None, **options):
    (X, f, kernel), ridge, sigma = CASES[case]
    numbers = {"rkhs_bound": B, "noise_std": sigma, "delta": DELTA}
    strategy = algorithms.insured_ucb(
        FiniteSet(X), kernel, noise_variance=ridge, **numbers, terms=terms, **options
    )
    constants = {} if terms is None else {k: v for k, v in vars(terms).items() if k != "num_levels"}
    width = options.get("width")
    oracle = Insured([Model(kernel(X, X).to_dense().detach(), ridge)], B, sigma, DELTA, width)
    oracle.c |= constants
    return strategy, oracle, f, sigma


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("terms", [None, EAGER], ids=["default", "eager"])
@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_definition(case, terms, delay):
    strategy, oracle, f, sigma = make(case, terms)
    run(strategy, oracle, f, 60, sigma, delay)


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("case", CASES)
def test_the_same_with_changing_actions_and_an_index_of_its_own(case, delay):
    strategy, oracle, f, sigma = make(case, EAGER, width=0.7)
    N = len(f)

    def offers(t):
        g = torch.Generator().manual_seed(t)
        return torch.randperm(N, generator=g)[: max(2 * N // 3, 2)].tolist()

    run(strategy, oracle, f, 60, sigma, delay, offers)

