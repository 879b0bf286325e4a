"""Phased elimination keeps the maximiser, and its bounds hold."""

import pytest

from botorch_ext import KernelGP, algorithms, delays, simulate
from tests.helpers import matern, rbf
from tests.properties.instances import DELTA, MOST_VIOLATIONS, NORM, RUNS, problem_of

pytestmark = pytest.mark.slow

HORIZON, SIGMA, LAMBDA = 32, 0.1, 0.02


KERNEL = rbf(0.6)
POISSON = delays.Poisson(4.0)
NUMBERS = {"noise_variance": LAMBDA, "rkhs_bound": NORM, "noise_std": SIGMA, "delta": DELTA}
# name: the method, its options, the delays
METHODS = {
    "bpe": ("bpe", {}, None),
    "phased_uncertainty_sampling": ("phased_uncertainty_sampling", {}, POISSON),
    "bpe_delay": ("bpe_delay", {"delay": POISSON}, POISSON),
    # Half of the feedback comes too late and is never used.
    "bpe_delay without allowance": ("bpe_delay", {"delay": 0}, POISSON),
    "bpe_delay that learns": ("bpe_delay", {"delay": delays.Observed(0.9)}, delays.LogNormal(2, 1)),
}


def failures(name, kernel=KERNEL, **more):
    """Runs in which the maximiser is eliminated; in which a bound fails at any point when a round
    closes; and the rounds that eliminated something."""
    method, options, delay = METHODS[name]
    lost = uncovered = effective = 0
    for run in range(RUNS):
        problem = problem_of(kernel, 30, SIGMA, run)
        f = problem(problem.domain.points)
        strategy = getattr(algorithms, method)(
            problem.domain, kernel, horizon=HORIZON, seed=run, **{**NUMBERS, **options, **more}
        )
        simulate(strategy, problem, HORIZON, delay=delay, seed=run)
        best = int(f.argmax())
        lost += best not in strategy.rounds[-1].survivors
        excess = []
        for round in strategy.rounds[:-1]:
            closing = round.closing
            if not closing.arrived:
                continue
            model = KernelGP(kernel, LAMBDA)
            rows = [id - round.first for id in closing.arrived]
            values = [strategy.history.values[id] for id in closing.arrived]
            model.add(round.points[rows], f.new_tensor(values))
            mean, std = model.mean_and_std(problem.domain.points)
            excess.append(((f - mean).abs() - closing.width * std).max().item())
            after = strategy.rounds[round.number].survivors
            effective += len(after) < len(round.survivors)
        uncovered += max(excess, default=0.0) > 1e-9
    return lost, uncovered, effective


@pytest.mark.parametrize("name", METHODS)
def test_the_maximiser_stays_and_the_bounds_hold(name):
    lost, uncovered, effective = failures(name, matern(0.6, nu=1.5) if name == "bpe" else KERNEL)
    assert lost <= MOST_VIOLATIONS
    assert uncovered <= MOST_VIOLATIONS
    assert effective > 0.5 * RUNS  # eliminating nothing would keep the maximiser too


def test_a_width_that_is_too_small_loses_it():
    # Without this the test above would show nothing.
    lost, uncovered, _ = failures("bpe", width=0.1)
    assert lost > MOST_VIOLATIONS
    assert uncovered > MOST_VIOLATIONS
