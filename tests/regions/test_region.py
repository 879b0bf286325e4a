import math
import warnings

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, no_stops
from botorch_ext import Box, KernelGP
from botorch_ext.algorithms import bpe_delay
from botorch_ext.exceptions import JitterWarning
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.population import towards
from botorch_ext.search.region import Region
from botorch_ext.search.region_constraints import Constraint
from tests.helpers import tolerance
from tests.oracles.posterior import dense_posterior
from tests.regions.shared import (
    AREA,
    BOX,
    CENTER,
    NOISE,
    assert_sound,
    ball,
    data,
    distance,
    kernel,
    known,
    model_of,
    ring_and_ball,
    two_rounds,
)

# --- membership ---------------------------------------------------------------------------------


def test_margin_is_the_smallest_slack_of_dense_algebra(device):
    region, numbers = two_rounds(device)
    Z = BOX.sample(700, seed=9)  # more than one chunk
    slacks = []
    for seed, width, offset, threshold in numbers:
        X, y = data(seed)
        mean, covariance = dense_posterior(kernel(), X, y, Z, NOISE)
        slacks.append(mean + width * covariance.diagonal().sqrt() + offset - threshold)
    expected = torch.stack(slacks).amin(dim=0)
    assert bool((expected > 0).any()) and bool((expected < 0).any())
    assert_close(region.margin(Z.to(device)).cpu(), expected, **tolerance(Z.dtype))
    assert_close(region.margin(Z[3].to(device)).cpu(), expected[3:4], **tolerance(Z.dtype))


@pytest.mark.parametrize("mean", [None, lambda X: X[..., 0] - 3.0])
def test_the_slack_and_its_gradient_are_those_of_autograd(mean, device):
    for num in (0, 20):
        constraint = Constraint(model_of(0, num, device, mean), 1.5, 0.1, -1.6)
        Z = BOX.sample(30, seed=9).to(device).requires_grad_()
        expected = constraint.slack(Z)
        gradient = torch.zeros_like(Z)
        if expected.requires_grad:
            (gradient,) = torch.autograd.grad(expected.sum(), Z)
        slack, quick = constraint.slack_and_gradient(Z.detach())
        assert_close(slack, expected.detach(), **tolerance(Z.dtype))
        assert_close(quick, gradient, **tolerance(Z.dtype))


@pytest.mark.parametrize("mean", [None, lambda X: X[..., 0] - 3.0])
@pytest.mark.parametrize("num", [1, 700])
def test_the_quick_test_of_a_constraint_is_its_definition(num, mean, device):
    model = model_of(0, device=device, mean=mean)
    Z = BOX.sample(num, seed=9).to(device)
    for width, threshold in [(2.0, -1.6), (0.5, -2.5), (0.0, -2.0)]:
        constraint = Constraint(model, width, 0.1, threshold)
        exact = constraint.slack(Z)
        assert bool((constraint.is_met(Z) == (exact >= 0)).all())
        quick = constraint.slack(Z, 0.2)
        above = exact >= 0.2
        assert_close(quick[above], exact[above], **tolerance(Z.dtype))
        assert bool((quick[~above] < 0.2).all())


def test_contains_is_the_definition():
    region, _ = two_rounds()
    wide = Box([[1.0, -4.0], [6.0, 0.0]])
    Z = torch.cat([wide.sample(700, seed=9), BOX.bounds])
    expected = BOX.contains(Z) & (region.margin(Z) >= -region.tolerance)
    assert bool((region.contains(Z) == expected).all())
    assert 0.1 < expected.double().mean() < 0.9
    assert [bool(region.contains(z)) for z in Z] == expected.tolist()


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_the_tolerance_covers_the_rounding_of_a_boundary_point(unit):
    X, y = data(0, num=60)
    model = KernelGP(kernel(), NOISE)
    model.add(X, unit * y)
    Z = BOX.sample(100, seed=9)
    mean, std = model.mean_and_std(Z)
    for z, upper in zip(Z, mean + 2 * unit * std, strict=True):
        region = Region(BOX, (Constraint(model, 2 * unit, 0.0, float(upper)),))
        assert region.tolerance <= 1e-8 * unit
        assert bool(region.contains(z))


def test_regions_are_nested_and_keep_what_survives():
    members = torch.tensor([CENTER, [3.7, -2.5], [3.0, -1.8]], dtype=torch.float64)
    first = Region(BOX, (known(ball(0.8)),), members)
    members += 1  # those of the region are its own
    model, threshold = KernelGP(kernel(), NOISE, mean=lambda X: X[..., 0]), 3.1
    second = first.restricted(model, 0.0, 0.0, threshold, [[3.2, -2.5], [2.9, -2.5]])
    assert len(first.constraints) == 1 and len(first.members) == 3
    assert second.members.tolist() == [[3.2, -2.5], [3.7, -2.5]]
    Z = BOX.sample(2000, seed=9)
    assert bool((second.contains(Z) == (first.contains(Z) & (Z[:, 0] >= 3.1))).all())
    # The maximiser of the lower bound stays, though rounding may put it below the threshold.
    assert first.restricted(model, 0.0, 0.0, 3.2 + 1e-10, [[3.2, -2.5]]).members[0, 0] == 3.2


def test_the_argmax_of_the_lower_bound_survives():
    region, lower, points = Region(BOX), None, BOX.sample(512, seed=0)
    for seed in range(3):
        model = model_of(seed, num=12 * (seed + 1))
        lower = ConfidenceBound(model, -1.0)
        x, value = region.maximize(lower, points)
        region = region.restricted(model, 1.0, 0.0, float(value), x)
        assert bool((region.members[0] == x).all())
        points = region.population(512, seed).points
        assert bool((lower.value(points) <= value + 1e-6).all())
    assert 0 < region.population(512, seed=7).volume < 0.5


# --- maximize -----------------------------------------------------------------------------------


def test_maximum_of_a_lower_bound_against_a_dense_grid(device):
    region, _ = two_rounds(device)
    lower = ConfidenceBound(model_of(2, num=15, device=device), -1.0)
    population = region.population(1024, 0)
    x, value = region.maximize(lower, population.points)
    axes = [torch.linspace(*BOX.bounds[:, j].tolist(), 120).double() for j in range(2)]
    grid = torch.cartesian_prod(*axes).to(device)
    grid = grid[region.contains(grid)]
    spread = lower.value(grid).max() - lower.value(grid).min()
    assert value >= lower.value(grid).max() - 1e-3 * spread
    assert_close(lower.value(x[None])[0], value)
    assert bool(region.contains(x).all())
    assert bool(region.contains(torch.stack([x, *grid[:99]]))[0])


def test_a_maximum_in_the_interior_is_found_exactly():
    region = Region(BOX, (known(ring_and_ball(0.4)),))
    peak = torch.tensor([4.65, -1.45], dtype=torch.float64)
    bowl = FunctionObjective(lambda X: -1e3 * (X - peak).square().sum(dim=-1))
    x, _ = region.maximize(bowl, region.population(512, seed=0).points)
    assert_close(x, peak, rtol=0, atol=1e-5)


# --- dtype, bad input ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("noise_variance", "seed"), [(1e-4, 2), (1e-8, 0)])
def test_what_was_asked_in_float32_lies_in_the_region_of_its_round(noise_variance, seed):
    # The noise variance is near or below the rounding of the kernel.
    rbf = RBFKernel()
    rbf.lengthscale = 0.7
    strategy = bpe_delay(
        Box([[1, 1], [3, 3]], dtype=torch.float32),
        rbf,
        noise_variance=noise_variance,
        horizon=200,
        width=1.0,
        delay=3,
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitterWarning)
        while (step := len(strategy.history.trials)) < 200:
            trial = strategy.ask()
            x = torch.as_tensor(trial.x)
            region = strategy.rounds[-1].survivors
            assert isinstance(region, Region)
            assert bool(region.contains(x).all()), (step, float(region.margin(x)))
            strategy.tell(trial.id, float(torch.cos(3 * x).sum() - (x - 1.8).square().sum()))
    assert len(strategy.rounds) == 4
    assert strategy.rounds[-1].choice.volume < 0.01


def test_what_is_no_constraint_and_no_point_is_refused_by_name():
    region, model = Region(BOX, (known(ball(0.5)),)), model_of(0, num=5)
    small, tilted = known(ball(0.1)).model, FunctionObjective(lambda X: X[:, 0])
    cube, single = Box([[0.0] * 3, [1.0] * 3]), BOX.to(dtype=torch.float32)
    batch = KernelGP(kernel(), torch.tensor([0.1, 0.2]))
    nowhere = Region(BOX, (known(lambda X: torch.full_like(X[..., 0], -1.0)),))
    for call, named in (
        (lambda: Constraint(model, -1.0, 0.0, 0.0), "width"),
        (lambda: Constraint(model, 1.0, math.inf, 0.0), "finite"),
        (lambda: Constraint(batch, 1.0, 0.0, 0.0), "model"),
        (lambda: Region(cube, (Constraint(model, 1.0, 0.0, 0.0),)), "model"),
        (lambda: Region(single, (Constraint(model, 1.0, 0.0, 0.0),)), "model"),
        (lambda: region.margin([[1.0, 2.0, 3.0]]), "X"),
        (lambda: region.contains([[3.0, math.nan]]), "X"),
        (lambda: region.require_contains([CENTER, [4.0, -2.5]], "trial"), r"trial .*\[4.0, -2.5\]"),
        (lambda: region.require_contains([[0.0, 0.0]], "trial"), "trial"),
        (lambda: Region(BOX, region.constraints, members=[[4.0, -2.5]]), "members"),
        (lambda: region.restricted(small, 0.0, 0.0, 0.0, [0.0, 0.0]), "points"),
        (lambda: region.restricted(small, 0.0, 0.0, 0.0, [3.2, -2.5]), "points"),
        (lambda: region.population(3, seed=0), "num_points"),
        (lambda: region.maximize(tilted, torch.empty(0, 2).double()), "points"),
        (lambda: nowhere.population(64, seed=0), "members must be given"),
    ):
        with pytest.raises(ValueError, match=named):
            call()


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


def test_points_move_towards_their_targets_without_waiting_for_a_gpu():
    X, targets = BOX.sample(400, seed=1), BOX.sample(400, seed=2)
    region, _ = two_rounds()
    X = X[region.meets(X)]
    targets = targets[: len(X)]
    reached = towards(region, X, targets)
    assert bool((reached != X).any()) and bool((reached != targets).any())
    with PretendCUDA():
        there, _ = two_rounds("cuda")
        there.meets(there.like)  # computes once what the region keeps
        X, targets = X.to("cuda"), targets.to("cuda")
        with no_stops("a line"):
            ends = towards(there, X, targets)
        assert_close(ends.cpu(), reached, **tolerance(reached.dtype))
