"""Elimination keeps the true model and rejects a grossly wrong one.

As in test_coverage.py: 100 runs; a test fails when so many runs
reject the true model that a true failure probability of delta would produce them with probability
at most 1e-4 (the false-alarm rate).

Optimism plays a wrong model only where it promises more than the true one, and only what is played
is tested: a model that is too timid costs nothing and is never rejected. So the instances below
are those in which the wrong model promises too much: there are data from before the study in a
part of the domain, and beyond them it extrapolates an increase with confidence.
"""

import functools

import pytest
import torch

from botorch_ext import CandidateModels, FiniteSet, algorithms
from tests.helpers import rbf
from tests.properties.instances import DELTA, MOST_VIOLATIONS, NORM, RUNS

pytestmark = pytest.mark.slow

WRONG, TRUE = 0, 1  # positions


def generator(seed):
    return torch.Generator().manual_seed(3000 + seed)


def uniform(*shape, g):
    return torch.rand(*shape, generator=g, dtype=torch.float64)


def normal(*shape, g):
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def line(num_points, g):
    return FiniteSet(2.0 + 3.0 * uniform(num_points, 1, g=g))


def some(rows, count, g):
    """Random ones of the rows where a mask is true."""
    rows = rows.nonzero().flatten()
    return rows[torch.randperm(len(rows), generator=g)[:count]].tolist()


@torch.no_grad()
def of_norm(kernel, centers, weights, domain):
    """The kernel expansion, scaled to norm `NORM`: its values on the set."""
    weights = weights.to(centers)
    norm = (weights @ kernel(centers).to_dense() @ weights).sqrt()
    return kernel(domain.points, centers).to_dense() @ weights * (NORM / norm)


class Instance:
    """A function and what is known of it.

    Args:
        f: Its values on the set.
        seen: Rows of the data from before the study.
        options: Of he_gp_ucb, besides delta and what the data are.
    """

    def __init__(self, domain, models, f, seen, noise_std, **options):
        self.domain, self.models, self.f, self.seen = domain, models, f, seen
        self.noise_std, self.options = noise_std, options


# --- what is unknown: the wrong model first, then the true one ------------------------------------


def shifted(X, by):
    return X.new_full(X.shape[:-1], by)


def means(by):
    return [functools.partial(shifted, by=by), None]


# Strategies copy them.
LENGTHSCALES = CandidateModels.lengthscales(rbf(1.0), [6.0, 0.7], 0.01)
DECOMPOSITIONS = CandidateModels.additive(rbf(1.2), [[(0,), (1,)], [(0, 1)]], 0.01, dim=2)
MEANS = CandidateModels.prior_means(rbf(0.5), means(by=4.4), 0.02)
HIGHER_MEANS = CandidateModels.prior_means(rbf(0.5), means(by=5.0), 0.01)


def lengthscale(g):
    # The data end on the flank of a bump, which the longer lengthscale carries on.
    domain, end = line(30, g), 3.8
    bump = end + 0.35 + 0.2 * uniform(1, 1, g=g)
    centers = torch.cat([bump, 2.0 + 3.0 * uniform(8, 1, g=g)])
    weights = torch.cat([torch.ones(1), 0.1 * normal(8, g=g)])
    f = of_norm(rbf(0.7), centers, weights, domain)
    seen = some(domain.points[:, 0] < end, 12, g)
    return Instance(domain, LENGTHSCALES, f, seen, 0.05, rkhs_bound=NORM)


def decomposition(g):
    # Data in an L; the sum of two functions of one column each is then known in the whole square,
    # a function of both columns is not.
    sides = torch.linspace(2.0, 5.0, 6), torch.linspace(-3.0, 0.0, 6)
    points = torch.cartesian_prod(*sides).double() + 0.1 * uniform(36, 2, g=g)
    domain = FiniteSet(points)
    corners = torch.tensor([[2.3, -2.7], [4.7, -2.7], [2.3, -0.3]]).double()
    centers = torch.cat([corners + 0.2 * normal(3, 2, g=g), domain.sample(6, seed=1)])
    weights = torch.cat([torch.tensor([-1.0, 0.9, 0.9]), 0.1 * normal(6, g=g)])
    f = of_norm(rbf(1.2), centers, weights, domain)
    seen = some((points[:, 0] < 3.5) | (points[:, 1] < -1.5), 27, g)
    return Instance(domain, DECOMPOSITIONS, f, seen, 0.05, rkhs_bound=NORM)


def prior_mean(g):
    domain = line(30, g)
    f = of_norm(rbf(0.5), 2.0 + 3.0 * uniform(12, 1, g=g), normal(12, g=g), domain)
    return Instance(domain, MEANS, f, [], 0.1, rkhs_bound=NORM)


def drawn(kernel, domain, g):
    """A function of the process, on the set."""
    with torch.no_grad():
        K = kernel(domain.points).to_dense() + 1e-9 * torch.eye(domain.num_points).double()
    return torch.linalg.cholesky(K) @ normal(domain.num_points, g=g)


def bayesian_prior_mean(g):
    domain = line(30, g)
    return Instance(domain, HIGHER_MEANS, drawn(rbf(0.5), domain, g), [], 0.1, setting="bayesian")


# name: the instance, the steps, the least share of runs that reject the wrong model
INSTANCES = {
    "lengthscale": (lengthscale, 12, 0.85),
    "decomposition": (decomposition, 6, 0.9),
    "prior mean": (prior_mean, 5, 0.9),
    "bayesian prior mean": (bayesian_prior_mean, 6, 0.9),
}


def play(instance, num_steps, g, **more):
    """HE-GP-UCB on an instance: at which step the wrong model is rejected (None: at none), and
    whether the true one ever fails its test, alone or not."""
    domain = instance.domain
    noisy = instance.f + instance.noise_std * normal(len(instance.f), g=g)
    strategy = algorithms.he_gp_ucb(
        domain,
        instance.models,
        noise_std=instance.noise_std,
        delta=DELTA,
        initial=(domain.points[instance.seen], noisy[instance.seen]),
        **{**instance.options, **more},
    )
    values = instance.f.tolist()
    for noise in (instance.noise_std * normal(num_steps, g=g)).tolist():
        trial = strategy.ask()
        strategy.tell(trial.id, values[trial.info["index"]] + noise)
    failed = [r for r in strategy.tests if abs(r.error) > r.bound]
    steps = [r.t - len(instance.seen) for r in failed if r.model == WRONG]
    return min(steps, default=None), any(r.model == TRUE for r in failed)


def rejections(name, **more):
    """What `play` returns, for each run."""
    make, num_steps, _ = INSTANCES[name]
    found = []
    for run in range(RUNS):
        g = generator(run)
        found.append(play(make(g), num_steps, g, **more))
    return found


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
def test_the_true_model_stays_and_a_grossly_wrong_one_goes(name):
    found = rejections(name)
    assert sum(lost for _, lost in found) <= MOST_VIOLATIONS
    rejected = sum(step is not None for step, _ in found)
    assert rejected >= INSTANCES[name][2] * RUNS


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
def test_a_width_that_is_too_small_loses_the_true_model():
    # Without this the test above would show nothing.
    found = rejections("bayesian prior mean", width=0.1)
    assert sum(lost for _, lost in found) > MOST_VIOLATIONS


def wave(X):
    return torch.sin(3.0 * X[..., 0])


# A model without smoothness, on purpose.
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.LengthscaleWarning")
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
            if 0 not in strategy.alive:
                lost += 1
                break
    assert (lost <= MOST_VIOLATIONS) == keeps
