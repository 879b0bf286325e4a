"""Sets whose volume and uniform distribution are known exactly.

Tests at random have fixed seeds; the stated false-alarm rates are those of a new seed.
"""

import math

import pytest
import torch
from scipy.stats import chisquare

from benchmarks.common.pretend_cuda import PretendCUDA, budget
from botorch_ext.search import level_sets
from botorch_ext.search.level_sets import NUM_GROUPS, hit_and_run, sample_level_set
from tests.regions.shared import distance

SMALL, LARGE = torch.tensor([[0.2, 0.3], [0.75, 0.6]], dtype=torch.float64)


def ball_and_ring(U, level=0.0):
    """A ball of radius 0.1 and, apart from it, a ring of radii 0.1 and 0.2."""
    ring = 0.05 - (distance(U, LARGE) - 0.15).abs()
    return torch.maximum(0.1 - distance(U, SMALL), ring)


def strip(U, level=0.0):
    """Thin and oblique, from face to face: its first coordinate is uniform."""
    return 5e-4 - (U[:, 1] - 0.2 - 0.5 * U[:, 0]).abs()


def ball(center, radius):
    return lambda U, level=0.0: radius - distance(U, [center] * U.shape[-1])


def corner(U, level=0.0):
    return 0.2 - U.amax(dim=-1)


def uniform(num, dim, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(num, dim, generator=generator, dtype=torch.float64), generator


def cells_of_ball_and_ring(U):
    """16 cells and their exact shares: two areas of equal size and eight angles, in each part."""
    in_ball = distance(U, SMALL) < 0.15
    center = torch.where(in_ball[:, None], SMALL, LARGE)
    r2 = (U - center).square().sum(dim=-1)
    outer = torch.where(in_ball, r2 > 0.005, r2 > 0.025)
    angle = torch.atan2(*(U - center).unbind(dim=-1))
    octant = ((angle + math.pi) / (2 * math.pi) * 8).long().clamp_max(7)
    cell = octant + 8 * outer + 16 * in_ball
    shares = torch.cat([torch.full((16,), 0.75 / 16), torch.full((16,), 0.25 / 16)])
    return torch.bincount(cell, minlength=32), shares.double()


def p_of_uniform(values, cells=20):
    counts = torch.histc(values, bins=cells, min=0, max=1)
    return chisquare(counts.numpy()).pvalue


def moved(margin, U, sweeps, pool, generator):
    return hit_and_run(margin, U, margin(U), 0.0, sweeps, pool, generator)


def test_hit_and_run_leaves_uniform_points_uniform():
    U, generator = uniform(60_000, 2, seed=0)
    U = U[ball_and_ring(U) >= 0]
    pool, start = U[:500], U[500:]
    end, values = moved(ball_and_ring, start, 3, pool, generator)
    assert bool((values >= 0).all()) and bool((values == ball_and_ring(end)).all())
    assert bool((end != start).any(dim=-1).double().mean() > 0.99)
    counts, shares = cells_of_ball_and_ring(end)
    # The chains are independent: a false alarm in 1e-4 of the seeds.
    assert chisquare(counts.numpy(), (shares * counts.sum()).numpy()).pvalue > 1e-4


def test_hit_and_run_forgets_where_it_started():
    _, generator = uniform(1, 2, seed=1)
    pool = SMALL[None]
    end, _ = moved(ball_and_ring, SMALL.expand(1000, 2), 40, pool, generator)
    counts, shares = cells_of_ball_and_ring(end)
    assert chisquare(counts.numpy(), (shares * counts.sum()).numpy()).pvalue > 1e-4
    end, _ = moved(
        corner, torch.full((1000, 6), 0.05).double(), 100, end.new_zeros(1, 6), generator
    )
    # False alarm: 6e-4 in all.
    assert min(p_of_uniform(end[:, j] / 0.2) for j in range(6)) > 1e-4


CASES = {
    "half": (lambda U, level=0.0: 0.5 - U[:, 0], 2, 0.5),
    "ball and ring": (ball_and_ring, 2, 0.04 * math.pi),
    "corner, d = 6": (corner, 6, 0.2**6),
    "interval": (ball(0.7, 1e-4), 1, 2e-4),
}


@pytest.mark.parametrize("case", CASES)
def test_volumes_and_their_standard_errors(case):
    margin, dim, volume = CASES[case]
    z = []
    for seed in range(12):
        U, generator = uniform(1024, dim, seed)
        found = sample_level_set(margin, U, 300, 4, generator)
        assert found.points.shape == (300, dim)
        assert bool((margin(found.points) >= 0).all())
        assert found.standard_error < 0.4 * volume
        z.append((found.volume - volume) / found.standard_error)
    z = torch.tensor(z)
    assert bool((z.abs() <= 5).all())
    # The errors are as large as they are said to be: for a normal z, a false alarm in 1e-4.
    assert 0.4 < z.square().mean().sqrt() < 1.85


@pytest.mark.slow
def test_volumes_are_not_estimated_high_or_low():
    # Few points, so that a bias of one of the fifth that survives would be seen at every level.
    ratio = []
    for seed in range(400):
        U, generator = uniform(NUM_GROUPS * 8, 2, seed)
        margin, volume = ball(0.5, 0.05), math.pi * 0.05**2
        # The last sweeps are of no weight in the volume.
        ratio.append(sample_level_set(margin, U, 8, 1, generator).volume / volume)
    ratio = torch.tensor(ratio)
    # 400 independent estimates of 1; counted in, the points that set the levels add 12 %.
    assert abs(ratio.mean() - 1) <= 4 * ratio.std() / 20
    assert ratio.std() / 20 < 0.03


def test_a_sweep_waits_once_for_each_group_of_draws():
    with PretendCUDA():
        U, generator = uniform(64, 3, seed=1)
        U = 0.4 * U.to("cuda")
        values = 0.4 - U[:, 0]
        groups = len(level_sets._EVALUATED_TOGETHER)
        # The random numbers of all sweeps come in one upload.
        with budget(uploads=1, stops=1 + 5 * groups):
            end, _ = hit_and_run(lambda X, level: 0.4 - X[:, 0], U, values, 0.0, 5, U, generator)
        assert bool((end[:, 0] <= 0.4).all()) and bool((end != U).any())
