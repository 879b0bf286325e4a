"""Confidence bounds hold for all points and steps in at least a 1 - delta fraction of runs.

100 runs; the test fails when so many runs violate a bound that a true failure probability of delta
would produce them with probability at most 1e-4 (the false-alarm rate).
"""

import math

import pytest
import torch

from botorch_ext import KernelGP, OptimisticStrategy, widths
from tests.properties.instances import (
    DELTA,
    MOST_VIOLATIONS,
    NORM,
    RUNS,
    make_kernel,
    make_problem,
)

pytestmark = pytest.mark.slow

STEPS, SIGMA, LAMBDA, EPS = 25, 0.15, 0.03, 0.25


class Adversary:
    """Perturbs what is observed by at most eps, always so as to lower the mean at the maximiser.

    Lemma 2 of Bogunovic and Krause holds for any such sequence, this one included.
    """

    def __init__(self, kernel, points, target, eps):
        with torch.no_grad():
            self.K = kernel(points).to_dense()
        self.target, self.eps, self.rows = target, eps, []
        self.m = torch.full((len(points),), math.nan, dtype=torch.float64)
        self.m[target] = eps

    def __call__(self, index):
        if math.isnan(self.m[index]):
            rows = self.rows
            covariance = self.K[index, self.target]
            if rows:
                A = self.K[rows][:, rows] + LAMBDA * torch.eye(len(rows), dtype=torch.float64)
                covariance = covariance - self.K[index, rows] @ torch.linalg.solve(
                    A, self.K[rows, self.target]
                )
            self.m[index] = -self.eps if covariance >= 0 else self.eps
        self.rows.append(index)
        return self.m[index].item()


def count_violations(make_width, kind, eps=0.0):
    """Runs in which a bound fails: for the RKHS part, and for f with eps added on each side."""
    kernel = make_kernel(kind, 0.4)
    of_rkhs_part = of_function = 0
    for run in range(RUNS):
        problem = make_problem(kind, 0.4, 40, SIGMA, run)
        points = problem.domain.points
        f = problem(points)
        width = make_width()
        strategy = OptimisticStrategy(
            problem.domain, KernelGP(kernel, LAMBDA), width, seed=run, pending="ignore"
        )
        adversary = Adversary(kernel, points, int(f.argmax()), eps)
        g = torch.Generator().manual_seed(run)
        excess, seen = [], []
        for t in range(1, STEPS + 1):
            posterior = strategy.posterior
            radius = width(t, posterior) * posterior.std
            excess.append((f - posterior.mean).abs() - radius)
            trial = strategy.ask()
            noise = SIGMA * torch.randn((), generator=g, dtype=torch.float64).item()
            index = trial.info["index"]
            seen.append(index)
            strategy.tell(trial.id, f[index].item() + adversary(index) + noise)
        worst = torch.stack(excess).amax(dim=0)
        of_rkhs_part += bool((worst > 1e-9).any())
        # f = RKHS part + m: what was never observed may be perturbed by any amount up to eps.
        shift = adversary.m.nan_to_num(eps)
        of_function += bool((worst + shift.abs() > eps + 1e-9).any())
    return of_rkhs_part, of_function


WIDTHS = {
    "self_normalized": lambda: widths.SelfNormalized(NORM, SIGMA, DELTA),
    "chowdhury_gopalan": lambda: widths.ChowdhuryGopalan(NORM, SIGMA, DELTA),
}


@pytest.mark.parametrize("kind", ["rbf", "matern"])
@pytest.mark.parametrize("name", WIDTHS)
def test_bounds_hold_in_the_rkhs(name, kind):
    violations, _ = count_violations(WIDTHS[name], kind)
    assert violations <= MOST_VIOLATIONS


def test_enlarged_bounds_survive_an_adversary():
    def make_width():
        return widths.Enlarged(WIDTHS["self_normalized"](), EPS)

    of_rkhs_part, of_function = count_violations(make_width, "rbf", eps=EPS)
    assert of_rkhs_part <= MOST_VIOLATIONS
    assert of_function <= MOST_VIOLATIONS


def test_the_adversary_breaks_bounds_that_are_not_enlarged():
    # Without this the test above would show nothing. A width without the slack of the
    # self-normalised one (half of it) and the same width enlarged: only the second survives.
    def half():
        return widths.Scaled(WIDTHS["self_normalized"](), 0.5)

    plain, _ = count_violations(half, "rbf", eps=EPS)
    enlarged, _ = count_violations(lambda: widths.Enlarged(half(), EPS), "rbf", eps=EPS)
    assert plain > MOST_VIOLATIONS
    assert enlarged <= MOST_VIOLATIONS
