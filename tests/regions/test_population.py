import math

import pytest
import torch

from botorch_ext import Box
from botorch_ext.regions.region import Region
from botorch_ext.search.objectives import FunctionObjective
from tests.regions.shared import (
    AREA,
    BOX,
    CENTER,
    assert_sound,
    ball,
    distance,
    known,
    ring_and_ball,
)


def test_the_whole_box_costs_nothing_and_reaches_its_faces():
    population = Region(BOX).population(400, seed=1)
    assert_sound(Region(BOX), population, 400)
    assert (population.volume, population.volume_error) == (1.0, 0.0)
    assert population.num_uniform == 100
    assert not population.hit_and_run
    on_face = ((population.points == BOX.lower) | (population.points == BOX.upper)).sum(dim=-1)
    assert int((on_face[:100] == 0).sum()) == 100
    assert int((on_face == BOX.dim).sum()) > 40
    assert bool(torch.isinf(Region(BOX).margin(population.points)).all())


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.4, 0.2, 0.015])
def test_ring_and_ball(scale):
    region = Region(BOX, (known(ring_and_ball(scale)),))
    shares = []
    for seed in range(12):
        population = region.population(1024, seed)
        assert_sound(region, population, 1024)
        assert population.hit_and_run == (scale <= 0.2)
        uniform = population.points[: population.num_uniform]
        assert population.num_uniform == 256
        shares.append(float((uniform[:, 0] > 4.0).double().mean()))
        volume = math.pi * scale**2 / AREA
        assert abs(population.volume - volume) <= 5 * population.volume_error
    shares = torch.tensor(shares)
    # 12 independent estimates of 1/4; Student's t is above 6 in 1e-4 of the seeds.
    assert abs(shares.mean() - 0.25) <= 6 * shares.std() / 12**0.5


def test_nested_constraints_in_six_dimensions():
    box, radius = Box([[1.0] * 6, [2.0] * 6]), 0.3
    center = [1.4] * 6
    constraints = (known(ball(0.9, center)), known(ball(2 * radius, center)))
    region = Region(box, constraints).restricted(
        known(ball(radius, center)).model, 0.0, 0.0, 0.0, center
    )
    population = region.population(800, seed=3)
    assert_sound(region, population, 800)
    assert population.hit_and_run
    volume = math.pi**3 / 6 * radius**6
    assert abs(population.volume - volume) <= 5 * population.volume_error
    uniform = population.points[: population.num_uniform]
    # The radius to the power of 6 is uniform, its mean over 200 points normal; the points are
    # a little dependent, which the wide bound allows for (false alarm below 1e-4).
    mean = ((uniform - 1.4).norm(dim=-1) / radius).pow(6).mean()
    assert abs(mean - 0.5) <= 6 / math.sqrt(12 * len(uniform))


def test_a_thin_sliver():
    width = 1e-4
    region = Region(BOX, (known(lambda X: width - (X[..., 1] + 3.6 - 0.4 * X[..., 0]).abs()),))
    population = region.population(1024, seed=0)
    assert_sound(region, population, 1024)
    # Its height is 2 width; from x = 2 to x = 5 it stays within the box.
    assert abs(population.volume - 2 * width / 2) <= 5 * population.volume_error
    x = population.points[: population.num_uniform, 0]
    assert abs(x.mean() - 3.5) <= 6 * 3 / math.sqrt(12 * len(x))
    assert x.min() < 2.1 and x.max() > 4.9


def test_members_stand_for_parts_that_chance_never_finds():
    far = [4.9, -1.1]
    region = Region(
        BOX,
        (known(lambda X: torch.maximum(ball(0.1)(X), 1e-9 * ball(1e-6, far)(X))),),
        members=[far],
    )
    population = region.population(512, seed=0)
    assert_sound(region, population, 512)
    near_far = distance(population.points, far) <= 1e-6
    assert int(near_far.sum()) > 10
    assert len(population.points[near_far].unique(dim=0)) > 5
    assert not bool(near_far[: population.num_uniform].any())
    assert abs(population.volume - math.pi * 0.01 / AREA) <= 5 * population.volume_error


def test_a_region_of_one_point():
    x = torch.tensor(CENTER, dtype=torch.float64)
    # No slope leads there.
    region = Region(BOX, (known(lambda X: torch.where((X == x).all(dim=-1), 1.0, -1.0).to(X)),), x)
    population = region.population(64, seed=0)
    assert_sound(region, population, 64)
    assert population.num_uniform == 0
    assert (population.volume, population.volume_error) == (0.0, 1.0)
    best, value = region.maximize(FunctionObjective(lambda X: X.sum(dim=-1)), population.points)
    assert bool((best == x).all()) and value == x.sum()


def test_the_same_seed_gives_the_same_population():
    for scale in (0.4, 0.1):
        region = Region(BOX, (known(ring_and_ball(scale)),), members=[[4.6, -1.4]])
        first, again, other = (region.population(256, seed) for seed in (3, 3, 4))
        assert bool((first.points == again.points).all())
        assert (first.volume, first.volume_error) == (again.volume, again.volume_error)
        assert not bool((first.points == other.points).all())


def test_many_members_leave_room_for_points_on_the_boundary():
    region = Region(BOX, (known(ball(0.4)),))
    inside = region.population(4096, seed=5)
    members = inside.points[: inside.num_uniform]
    for count in (2, 1000):
        crowded = Region(BOX, region.constraints, members[:count])
        points = crowded.population(512, seed=0).points
        assert bool((points == members[0]).all(dim=-1).any())  # the argmax of the lower bound
        repeated = (points[:, None] == crowded.members).all(dim=-1).any(dim=-1)
        assert count == 2 or int(repeated.sum()) >= 128
        moved = points[256:]
        assert (region.margin(moved) < 0.03).double().mean() > 0.3  # 14 % of the area is there
