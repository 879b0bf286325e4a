"""Particles: what their moves keep, and how they follow data."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.moves import swept
from botorch_ext.hyperparameters.particles import Cloud, Particles, telling
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.models.resampling import resampled

PRIOR = Prior(lengthscales=(0.05, 20.0))


def density_of(n=7, p=2):
    g = torch.Generator().manual_seed(5)
    X = torch.rand(n, p, generator=g, dtype=torch.float64)
    y = torch.sin(6 * X[:, 0])
    return Density(X, (y - y.mean()) / y.std(), PRIOR)


def long_run(density, num, num_steps, seed):
    """Draws by another sampler: random-walk Metropolis, many chains from the prior, the end of
    each."""
    g = torch.Generator().manual_seed(seed)
    x = density.prior_draws(num, g)
    value = density.value(x)
    for step in range(num_steps):
        size = (0.2, 0.6, 1.8)[step % 3]
        new = x + size * torch.randn(x.shape, generator=g, dtype=x.dtype)
        proposed = density.value(new)
        accepted = torch.rand(num, generator=g, dtype=x.dtype).log() < proposed - value
        x = torch.where(accepted.unsqueeze(-1), new, x)
        value = torch.where(accepted, proposed, value)
    return x


# Fourteen moments of four parameters: beyond this by chance once in 10,000.
THRESHOLD = 4.5


@pytest.fixture(scope="module")
def draws():
    return long_run(density_of(), 4096, 300, seed=1)


@pytest.mark.slow
def test_sweeps_keep_the_moments_of_another_sampler(draws):
    density = density_of()
    g = torch.Generator().manual_seed(2)
    after, values = swept(density, draws, density.value(draws), 8, g)
    assert_close(values, density.value(after))
    moved = (after != draws.flip(0)).any(dim=-1).double().mean()
    assert moved > 0.9
    # Sweeps shuffle: what is compared is the whole.
    assert largest_difference(draws, after) < THRESHOLD


def largest_difference(one, other):
    """As `largest_score`, of two independent samples."""
    scores = []
    columns = range(one.shape[-1])
    functions = [lambda x, i=i: x[:, i] for i in columns]
    functions += [lambda x, i=i, j=j: x[:, i] * x[:, j] for i in columns for j in range(i + 1)]
    for function in functions:
        a, b = function(one), function(other)
        error = math.sqrt(float(a.var() / len(a) + b.var() / len(b)))
        scores.append(abs(float(a.mean() - b.mean())) / error)
    return max(scores)


@pytest.mark.slow
def test_few_particles_that_scale_each_other_keep_them_too(draws):
    """Particles of a handful adapt their steps to one another."""
    density = density_of()
    g = torch.Generator().manual_seed(3)
    groups = draws[:1024].split(8)
    ends = [swept(density, group, density.value(group), 5, g)[0] for group in groups]
    assert largest_difference(draws[1024:], torch.cat(ends)) < THRESHOLD


@pytest.mark.slow
def test_a_wrong_density_is_found(draws):
    """The test above can fail: data of another noise."""
    density = density_of()
    other = Density.__new__(Density)
    vars(other).update(vars(density) | {"_location": density._location + 0.4})
    g = torch.Generator().manual_seed(2)
    after, _ = swept(other, draws, other.value(draws), 8, g)
    assert largest_difference(draws, after) > THRESHOLD


def test_resampling_draws_by_the_weights():
    weights = torch.tensor([0.5, 0.0, 0.3, 0.2], dtype=torch.float64)
    g = torch.Generator().manual_seed(0)
    for _ in range(20):
        counts = resampled(weights.log(), 10, g).bincount(minlength=4)
        assert counts.tolist() == [5, 0, 3, 2]
    counts = torch.stack([resampled(weights.log(), 3, g).bincount(minlength=4) for _ in range(900)])
    assert (counts - 3 * weights).abs().max() < 1
    assert_close(counts.double().mean(dim=0), 3 * weights, rtol=0, atol=0.07)


@pytest.mark.slow
def test_particles_follow_data():
    """Of a start at once, and of moves from one datum to the next, the mean is that of a long run
    to four tenths of its spread."""
    g = torch.Generator().manual_seed(7)
    X = torch.rand(20, 2, generator=g, dtype=torch.float64)
    y = torch.sin(6 * X[:, 0]) + 0.3 * torch.randn(20, generator=g, dtype=torch.float64)
    particles = Particles(96, prior=PRIOR)
    at_once = particles.started(X, y, None, seed=0)
    sequential = particles.started(X[:4], y[:4], None, seed=1)
    for n in range(6, 21, 2):
        sequential = particles.moved(sequential, X[:n], y[:n], None, seed=n)
    density = Density(X, y, PRIOR)
    exact = long_run(density, 400, 400, seed=3)
    for cloud in (at_once, sequential):
        assert_close(cloud.values, density.value(cloud.parameters))
        off = (cloud.parameters.mean(dim=0) - exact.mean(dim=0)) / exact.std(dim=0)
        assert off.abs().max() < 0.4
        assert ((cloud.parameters.std(dim=0) / exact.std(dim=0)).log().abs() < 0.35).all()


def test_the_seed_decides():
    density = density_of()
    X, y = torch.rand(5, 2, dtype=torch.float64), torch.arange(5.0, dtype=torch.float64)
    one, same, other = (Particles(8).started(X, y, None, seed) for seed in (4, 4, 5))
    assert torch.equal(one.parameters, same.parameters)
    assert not torch.equal(one.parameters, other.parameters)
    assert density.dim == one.parameters.shape[-1]


def test_with_many_observations_they_are_fewer():
    particles = Particles()
    numbers = [particles.number(n) for n in (10, 200, 201, 401, 800, 801)]
    assert numbers == [32, 32, 16, 8, 8, 4]
    assert Particles(4).number(900) == 4


@pytest.mark.parametrize("num", [3, 2, 7, 5.5, "many"])
def test_a_wrong_number_is_refused(num):
    with pytest.raises(ValueError, match="num_particles"):
        Particles(num)


def test_a_cloud_may_grow_and_shrink():
    density, g = density_of(), torch.Generator().manual_seed(0)
    draws = density.prior_draws(8, g)
    cloud = Cloud(draws, density.value(draws))
    for num in (4, 16):
        parameters, values = cloud.onto(density, num, 2, g)
        assert len(parameters) == len(values) == num


def test_particles_stay_while_few_observations_are_new():
    particles = Particles()
    assert all(particles.are_due(n, n + 1) for n in range(125))
    assert not any(particles.are_due(n, n) for n in range(1, 3000))
    for n in (200, 1000, 2000):
        stay = next(k for k in range(1, n) if particles.are_due(n, n + k))
        assert n // 50 <= stay <= n // 25
    assert particles.are_due(10, 9)


def test_the_rows_that_tell_are_near_the_best_and_change_little():
    X = torch.rand(1200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = -(X - 0.3).square().sum(dim=-1)
    assert telling(X[:256], y[:256]).tolist() == list(range(256))
    before, rows = telling(X[:1150], y[:1150]), telling(X, y)
    assert len(rows) == len(set(rows.tolist())) == 256
    distances = (X - X[y.argmax()]).square().sum(dim=-1)
    assert set(distances.topk(128, largest=False).indices.tolist()) <= set(rows.tolist())
    assert len(set(before.tolist()) & set(rows.tolist())) > 230


def test_particles_of_many_observations_are_as_many_as_there_should_be():
    X = torch.rand(420, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.sin(6 * X[:, 0]) + X[:, 1]
    particles, y = Particles(8), (y - y.mean()) / y.std()
    cloud = particles.started(X[:300], y[:300], None, seed=0)
    assert cloud.parameters.shape == (particles.number(300), 4)
    rows = telling(X[:300], y[:300])
    density = Density(X[rows], y[rows], particles.prior)
    assert_close(cloud.values, density.value(cloud.parameters))
    moved = particles.moved(cloud, X, y, None, seed=1)
    assert len(moved.values) == particles.number(420)
