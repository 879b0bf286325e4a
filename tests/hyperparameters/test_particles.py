"""Particles: what their moves keep, and how they follow data."""

import math

import pytest
import torch
from torch.distributions import Normal
from torch.testing import assert_close

from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.moves import swept
from botorch_ext.hyperparameters.particles import Particles, resampled, telling
from botorch_ext.hyperparameters.prior import Prior
from tests.helpers import drawn

PRIOR = Prior(lengthscales=(0.05, 20.0))


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


class TruncatedNormals:
    """Independent standard normals between two limits, as a density of particles."""

    lower = torch.tensor([-1.0, -0.5, -9.0], dtype=torch.float64)
    upper = torch.tensor([2.0, 0.5, 9.0], dtype=torch.float64)

    def value_and_gradient(self, x):
        inside = ((x >= self.lower) & (x <= self.upper)).all(dim=-1)
        return torch.where(inside, -0.5 * x.square().sum(dim=-1), -math.inf), -x


def test_sweeps_keep_truncated_normals_and_lead_to_them():
    """One of all nine shares fails by chance once in 10,000."""
    density, normal = TruncatedNormals(), Normal(torch.zeros(()).double(), 1.0)
    low, high = normal.cdf(density.lower), normal.cdf(density.upper)
    exact = normal.icdf(low + (high - low) * drawn(4000, 3))
    near = 0.3 * drawn(4000, 3, seed=1)
    for start, num_halves in ((exact, 5), (near, 20)):
        values, _ = density.value_and_gradient(start)
        end, heights = swept(density, start, values, num_halves, torch.Generator().manual_seed(2))
        assert_close(heights, density.value_and_gradient(end)[0])
        uniform = (normal.cdf(end) - low) / (high - low)
        for share in (0.1, 0.5, 0.8):
            below = (uniform < share).double().mean(dim=0)
            assert (below - share).abs().max() < 4.4 * math.sqrt(share * (1 - share) / 4000)
    stayed = torch.isin(end[:, 0], start[:, 0]).double().mean()
    assert stayed < 0.05  # nearly all trajectories are accepted


class NarrowNormals:
    """Normals with a correlation of .9, across which the steps are crude: many are rejected."""

    lower, upper = torch.full((2, 2), 99.0, dtype=torch.float64) * torch.tensor([[-1.0], [1.0]])
    root = torch.linalg.cholesky(torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64))

    def value_and_gradient(self, x):
        normals = torch.linalg.solve_triangular(self.root, x.mT, upper=False)
        return -0.5 * normals.square().sum(dim=0), -torch.cholesky_solve(normals, self.root).mT


def test_rejections_keep_the_law_where_steps_are_crude():
    """The squares of 2 x 4000 normals sum to a chi-squared number: that it is off by 4 standard
    deviations happens by chance less than once in 10,000."""
    density, g = NarrowNormals(), torch.Generator().manual_seed(5)
    x = torch.randn(4000, 2, generator=g, dtype=torch.float64) @ density.root.mT
    end, heights = swept(density, x, density.value_and_gradient(x)[0], 40, g)
    assert torch.isin(end[:, 0], x[:, 0]).any()
    assert abs(float(-2 * heights.sum()) - 8000) < 4 * math.sqrt(2 * 8000)


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


def test_a_fixed_noise_variance_stays_and_the_others_follow_data():
    """The weighted draws from the prior give the exact means."""
    prior = Prior(noise=(1e-8, 1e-8))
    X = torch.linspace(0.1, 0.8, 5, dtype=torch.float64).unsqueeze(-1)
    y = torch.tensor([-1.0, 0.5, 1.4, 0.2, -1.1], dtype=torch.float64)
    density = Density(X, y, prior)
    found = Particles(256, prior).started(X, y, None, seed=0).parameters
    assert (found[:, 1] == math.log(1e-8)).all()
    draws = density.prior_draws(20000, torch.Generator().manual_seed(1))
    weights = (density.value(draws) - density.log_prior(draws)).softmax(dim=0)
    mean = weights @ draws
    std = (weights @ (draws - mean).square()).sqrt()
    assert (found.mean(dim=0) - mean)[[0, 2]].abs().lt(0.25 * std[[0, 2]]).all()


def test_with_many_observations_they_are_fewer():
    particles = Particles()
    numbers = [particles.number(n) for n in (10, 200, 201, 401, 800, 801)]
    assert numbers == [32, 32, 16, 8, 8, 4]
    assert Particles(4).number(900) == 4
    for wrong in (3, 7, 5.5, "many"):
        with pytest.raises(ValueError, match="num_particles"):
            Particles(wrong)


def test_particles_stay_while_few_observations_are_new():
    particles = Particles()
    assert all(particles.are_due(n, n + 1) for n in range(125))
    assert not any(particles.are_due(n, n) for n in range(1, 3000))
    for n in (200, 1000, 2000):
        stay = next(k for k in range(1, n) if particles.are_due(n, n + k))
        assert n // 50 <= stay <= n // 25
    assert particles.are_due(10, 9)


def test_the_rows_that_tell_are_near_the_best_and_change_little():
    X = drawn(1200, 3)
    y = -(X - 0.3).square().sum(dim=-1)
    assert telling(X[:256], y[:256]).tolist() == list(range(256))
    before, rows = telling(X[:1150], y[:1150]), telling(X, y)
    assert len(rows) == len(set(rows.tolist())) == 256
    distances = (X - X[y.argmax()]).square().sum(dim=-1)
    assert set(distances.topk(128, largest=False).indices.tolist()) <= set(rows.tolist())
    assert len(set(before.tolist()) & set(rows.tolist())) > 230
