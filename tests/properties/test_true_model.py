"""Elimination keeps the true model and rejects a grossly wrong one.

Optimism plays a wrong model only where it promises more than the true one, and only what is played
is tested: a model that is too timid costs nothing and is never rejected. So the instances below
are those in which the wrong model promises too much.
"""

import functools

import pytest
import torch

from botorch_ext import CandidateModels, FiniteSet, algorithms
from tests.helpers import rbf
from tests.laws.shared_sessions import quietly
from tests.properties.instances import DELTA, MOST_VIOLATIONS, NORM, RUNS

pytestmark = [pytest.mark.slow, quietly]

WRONG, TRUE = 0, 1  # positions


def generator(seed):
    return torch.Generator().manual_seed(3000 + seed)


def uniform(*shape, g):
    return 2.0 + 3.0 * torch.rand(*shape, generator=g, dtype=torch.float64)


def normal(*shape, g):
    return torch.randn(*shape, generator=g, dtype=torch.float64)


@torch.no_grad()
def of_norm(kernel, centers, weights, points):
    """The kernel expansion, scaled to norm `NORM`: its values at the points."""
    norm = (weights @ kernel(centers).to_dense() @ weights).sqrt()
    return kernel(points, centers).to_dense() @ weights * (NORM / norm)


def shifted(X, by):
    return X.new_full(X.shape[:-1], by)


def means(by):
    return [functools.partial(shifted, by=by), None]


# The wrong model first, then the true one; strategies copy them.
LENGTHSCALES = CandidateModels.lengthscales(rbf(1.0), [6.0, 0.7], 0.01)
MEANS = CandidateModels.prior_means(rbf(0.5), means(by=4.4), 0.02)
HIGHER_MEANS = CandidateModels.prior_means(rbf(0.5), means(by=5.0), 0.01)

# An instance: f on the points, the rows of the data from before the study, and what is told
# he_gp_ucb.


def lengthscale(points, g):
    # The data end on the flank of a bump, which the longer lengthscale carries on.
    end = 3.8
    bump = end + 0.35 + 0.2 * torch.rand(1, 1, generator=g, dtype=torch.float64)
    centers = torch.cat([bump, uniform(8, 1, g=g)])
    weights = torch.cat([torch.ones(1), 0.1 * normal(8, g=g)])
    seen = (points[:, 0] < end).nonzero().flatten()
    seen = seen[torch.randperm(len(seen), generator=g)[:12]].tolist()
    f = of_norm(rbf(0.7), centers, weights, points)
    return f, seen, {"models": LENGTHSCALES, "noise_std": 0.05, "rkhs_bound": NORM}


def prior_mean(points, g):
    f = of_norm(rbf(0.5), uniform(12, 1, g=g), normal(12, g=g), points)
    return f, [], {"models": MEANS, "noise_std": 0.1, "rkhs_bound": NORM}


def bayesian_prior_mean(points, g):
    K = rbf(0.5)(points).to_dense().detach() + 1e-9 * torch.eye(len(points)).double()
    f = torch.linalg.cholesky(K) @ normal(len(points), g=g)
    return f, [], {"models": HIGHER_MEANS, "noise_std": 0.1, "setting": "bayesian"}


# name: instance, number of steps, and in which share of the runs the wrong model must go
INSTANCES = {
    "lengthscale": (lengthscale, 12, 0.85),
    "prior mean": (prior_mean, 5, 0.9),
    "bayesian prior mean": (bayesian_prior_mean, 6, 0.9),
}


def rejections(name, **more):
    """Runs in which the wrong model is rejected, and in which the true one ever fails its test,
    alone or not."""
    make, num_steps, _ = INSTANCES[name]
    rejected = lost = 0
    for run in range(RUNS):
        g = generator(run)
        points = uniform(30, 1, g=g)
        f, seen, options = make(points, g)
        sigma = options["noise_std"]
        initial = points[seen], f[seen] + sigma * normal(len(seen), g=g)
        strategy = algorithms.he_gp_ucb(
            FiniteSet(points), delta=DELTA, initial=initial, **{**options, **more}
        )
        for noise in (sigma * normal(num_steps, g=g)).tolist():
            trial = strategy.ask()
            strategy.tell(trial.id, float(f[trial.info["index"]]) + noise)
        failed = {test.model for test in strategy.tests if abs(test.error) > test.bound}
        rejected += WRONG in failed
        lost += TRUE in failed
    return rejected, lost


@pytest.mark.parametrize("name", INSTANCES)
def test_the_true_model_stays_and_a_grossly_wrong_one_goes(name):
    rejected, lost = rejections(name)
    assert lost <= MOST_VIOLATIONS
    assert rejected >= INSTANCES[name][2] * RUNS


def test_a_width_that_is_too_small_loses_the_true_model():
    # Without this the test above would show nothing.
    _, lost = rejections("bayesian prior mean", width=0.1)
    assert lost > MOST_VIOLATIONS


def wave(X):
    return torch.sin(3.0 * X[..., 0])


@pytest.mark.parametrize(("factor", "keeps"), [(1.0, True), (0.25, False)])
def test_the_noise_term_alone_keeps_a_model_that_knows_the_function(factor, keeps):
    # A model that is certain of f errs by the noise alone; its test looks after every observation.
    # Given a quarter of the true sigma, it takes the noise for an error.
    domain = FiniteSet(torch.linspace(2.0, 5.0, 8).double()[:, None])
    f, lost = wave(domain.points).tolist(), 0
    models = CandidateModels(rbf(0.01), 1e6, means=[wave, functools.partial(shifted, by=-9.0)])
    for run in range(RUNS):
        strategy = algorithms.he_gp_ucb(
            domain, models, noise_std=0.2 * factor, delta=DELTA, width=0.0
        )
        for noise in (0.2 * normal(12, g=generator(run))).tolist():
            trial = strategy.ask()
            strategy.tell(trial.id, f[trial.info["index"]] + noise)
        lost += 0 not in strategy.alive
    assert (lost <= MOST_VIOLATIONS) == keeps
