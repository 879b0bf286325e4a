import math
import warnings

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, no_stops
from botorch_ext import Box, KernelGP
from botorch_ext.algorithms import bpe_delay
from botorch_ext.exceptions import JitterWarning, OutsideDomainError
from botorch_ext.regions.constraints import Constraint
from botorch_ext.regions.population import towards
from botorch_ext.regions.region import Region
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.search.objectives import FunctionObjective
from tests.helpers import tolerance
from tests.oracles.posterior import dense_posterior

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
CENTER = [3.0, -2.5]
NOISE = 0.01


def kernel():
    k = RBFKernel().double()
    k.lengthscale = torch.tensor(0.7, dtype=torch.float64)
    return k


def data(seed, num=30):
    X = BOX.sample(num, seed)
    return X, torch.sin(3 * X[:, 0]) + X[:, 1]


def model_of(seed, num=30, device="cpu"):
    X, y = data(seed, num)
    model = KernelGP(kernel().to(device), NOISE, device=device)
    model.add(X.to(device), y.to(device))
    return model


def two_rounds(device="cpu"):
    """A region of two constraints with its constraints as (seed of the data, width, offset,
    threshold); each holds on a good part of the box."""
    numbers = [(0, 2.0, 0.1, -1.6), (1, 1.5, 0.0, -1.4)]
    constraints = [Constraint(model_of(seed, device=device), *rest) for seed, *rest in numbers]
    return Region(BOX.to(device=device), tuple(constraints)), numbers


def known(function, threshold=0.0):
    """The constraint function(X) >= threshold: an empty model with that prior mean."""
    return Constraint(KernelGP(kernel(), NOISE, mean=function), 0.0, 0.0, threshold)


def distance(X, center):
    return (X - torch.as_tensor(center, dtype=X.dtype)).norm(dim=-1)


def ball(radius, center=CENTER):
    return lambda X: radius - distance(X, center)


def ring_and_ball(scale):
    """A ring around (3, -2.5) and a ball far from it, of areas 0.75 pi scale^2, pi scale^2 / 4."""
    return lambda X: torch.maximum(
        0.25 * scale - (distance(X, CENTER) - 0.75 * scale).abs(),
        0.5 * scale - distance(X, [4.6, -1.4]),
    )


AREA = 6.0


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


def test_margin_is_differentiable():
    region, _ = two_rounds()
    Z = BOX.sample(20, seed=9).requires_grad_()
    (gradient,) = torch.autograd.grad(region.margin(Z).sum(), Z)
    step = 1e-6
    for j in range(BOX.dim):
        shift = step * torch.eye(BOX.dim, dtype=torch.float64)[j]
        with torch.no_grad():
            change = (region.margin(Z + shift) - region.margin(Z - shift)) / (2 * step)
        assert_close(gradient[:, j], change, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mean", [None, lambda X: X[..., 0] - 3.0])
def test_the_slack_and_its_gradient_are_those_of_autograd(mean, device):
    for num in (0, 20):
        model = KernelGP(kernel().to(device), NOISE, mean=mean, device=device)
        X, y = data(0, num)
        if num:
            model.add(X.to(device), y.to(device))
        constraint = Constraint(model, 1.5, 0.1, -1.6)
        Z = BOX.sample(30, seed=9).to(device).requires_grad_()
        expected = constraint.slack(Z)
        gradient = torch.zeros_like(Z)
        if expected.requires_grad:
            (gradient,) = torch.autograd.grad(expected.sum(), Z)
        slack, quick = constraint.slack_and_gradient(Z.detach())
        assert_close(slack, expected.detach(), **tolerance(Z.dtype))
        assert_close(quick, gradient, **tolerance(Z.dtype))


def test_a_level_changes_only_what_is_below_it():
    region, _ = two_rounds()
    Z = BOX.sample(700, seed=9)
    exact, quick = region.margin(Z), region.margin(Z, 0.0)
    above = exact >= 0
    assert_close(quick[above], exact[above], **tolerance(Z.dtype))
    assert bool((quick[~above] < 0).all())


@pytest.mark.parametrize("mean", [None, lambda X: X[..., 0] - 3.0])
@pytest.mark.parametrize("num", [1, 16, 700])
def test_the_quick_test_of_a_constraint_is_its_definition(num, mean, device):
    model = KernelGP(kernel().to(device), NOISE, mean=mean, device=device)
    X, y = data(0)
    model.add(X.to(device), y.to(device))
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
    Z = BOX.sample(400, seed=9)
    mean, std = model.mean_and_std(Z)
    for z, upper in zip(Z, mean + 2 * unit * std, strict=True):
        region = Region(BOX, (Constraint(model, 2 * unit, 0.0, float(upper)),))
        assert region.tolerance <= 1e-8 * unit
        assert bool(region.contains(z))


def test_regions_are_nested_and_keep_what_survives():
    first = Region(BOX, (known(ball(0.8)),), members=[CENTER, [3.7, -2.5], [3.0, -1.8]])
    model, threshold = KernelGP(kernel(), NOISE, mean=lambda X: X[..., 0]), 3.1
    second = first.restricted(model, 0.0, 0.0, threshold, [[3.2, -2.5], [2.9, -2.5]])
    assert len(first.constraints) == 1 and len(first.members) == 3
    assert second.members.tolist() == [[3.2, -2.5], [3.7, -2.5]]
    Z = BOX.sample(2000, seed=9)
    assert bool((second.contains(Z) == (first.contains(Z) & (Z[:, 0] >= 3.1))).all())


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


# --- population ---------------------------------------------------------------------------------


def assert_sound(region, population, num_points):
    points = population.points
    assert points.shape == (num_points, region.dim)
    assert bool(region.contains(points).all())
    assert all(bool(region.contains(x)) for x in points[:: max(1, num_points // 50)])
    near = (points[:, None] == region.members).all(dim=-1).any(dim=0)
    assert bool(near.all())  # members are among them


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


# Areas from half of the box to 1e-4 of it.
@pytest.mark.parametrize("scale", [1.0, 0.4, 0.2, 0.1, 0.015])
def test_ring_and_ball(scale):
    area = math.pi * scale**2
    # The ring is cut by the box at scale 1 only.
    reference = None
    if scale == 1.0:
        Z = BOX.sample(2**17, seed=99)
        reference = float((ring_and_ball(scale)(Z) >= 0).double().mean())
    region = Region(BOX, (known(ring_and_ball(scale)),))
    volume = area / AREA if reference is None else reference
    shares, z = [], []
    for seed in range(12):
        population = region.population(1024, seed)
        assert_sound(region, population, 1024)
        assert population.hit_and_run == (scale <= 0.2)
        uniform = population.points[: population.num_uniform]
        assert population.num_uniform == 256
        shares.append(float((uniform[:, 0] > 4.0).double().mean()))
        z.append((population.volume - volume) / population.volume_error)
    assert max(abs(value) for value in z) <= 5
    if reference is None:
        shares = torch.tensor(shares)
        # 12 independent estimates of 1/4; Student's t is above 6 in 1e-4 of the seeds.
        assert abs(shares.mean() - 0.25) <= 6 * shares.std() / 12**0.5


@pytest.mark.parametrize("radius", [0.5, 0.3, 0.05])
def test_nested_constraints_in_six_dimensions(radius):
    box = Box([[1.0] * 6, [2.0] * 6])
    center = [1.4] * 6
    constraints = (known(ball(0.9, center)), known(ball(2 * radius, center)))
    region = Region(box, constraints).restricted(
        known(ball(radius, center)).model, 0.0, 0.0, 0.0, center
    )
    population = region.population(800, seed=3)
    assert_sound(region, population, 800)
    assert population.hit_and_run == (radius < 0.4)
    if radius < 0.4:  # a larger ball is cut by the box
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


@pytest.mark.parametrize("threshold", [-1.6, -0.2])
def test_a_population_on_devices(threshold, device):
    constraints = [
        Constraint(model_of(seed, device=device), 1.0, 0.0, threshold) for seed in range(2)
    ]
    region = Region(BOX.to(device=device), tuple(constraints))
    population = region.population(800, seed=3)
    assert population.points.device.type == device.type
    assert_sound(region, population, 800)
    assert population.hit_and_run == (threshold == -0.2)
    Z = BOX.sample(2**15, seed=99).to(device)
    inside = Z[region.contains(Z)]
    share = len(inside) / len(Z)
    assert abs(population.volume - share) <= 5 * population.volume_error
    # 200 points, uniform but a little dependent: false alarm below 1e-4.
    uniform = population.points[: population.num_uniform]
    error = inside.std(dim=0) * (1 / len(uniform) + 1 / len(inside)) ** 0.5
    assert bool(((uniform.mean(dim=0) - inside.mean(dim=0)).abs() <= 6 * error).all())


def test_a_line_is_followed_as_far_on_devices():
    X, targets = BOX.sample(400, seed=1), BOX.sample(400, seed=2)
    region, _ = two_rounds()
    starts = X[region.meets(X)]
    reached = towards(region, starts, targets[: len(starts)])
    assert bool((reached != starts).any()) and bool((reached != targets[: len(starts)]).any())
    with PretendCUDA():
        there, _ = two_rounds("cuda")
        there.meets(there.like)  # what is worked out once
        X, Z = starts.to("cuda"), targets[: len(starts)].to("cuda")
        with no_stops("a line"):
            ends = towards(there, X, Z)
        assert_close(ends.cpu(), reached, **tolerance(reached.dtype))


def test_population_points_reach_the_boundary_of_the_region():
    region = Region(BOX, (known(ball(0.02)),))
    population = region.population(1024, seed=0)
    margin = region.margin(population.points) / 0.02
    # Uniform points have 2 % of the area there.
    assert (margin[population.num_uniform :] < 0.05).double().mean() > 0.3


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


# --- maximize -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_maximum_of_a_lower_bound_against_a_dense_grid(seed, device):
    region, _ = two_rounds(device)
    lower = ConfidenceBound(model_of(2 + seed, num=15, device=device), -1.0)
    population = region.population(1024, seed)
    x, value = region.maximize(lower, population.points)
    axes = [torch.linspace(*BOX.bounds[:, j].tolist(), 300).double() for j in range(2)]
    grid = torch.cartesian_prod(*axes).to(device)
    grid = grid[region.contains(grid)]
    spread = lower.value(grid).max() - lower.value(grid).min()
    assert value >= lower.value(grid).max() - 1e-3 * spread
    assert_close(lower.value(x[None])[0], value)
    assert bool(region.contains(x).all())
    assert bool(region.contains(torch.stack([x, *grid[:99]]))[0])


def test_a_maximum_on_the_boundary_of_the_region():
    region = Region(BOX, (known(ball(0.5)),))
    tilted = FunctionObjective(lambda X: X[:, 0] + 2 * X[:, 1])
    x, value = region.maximize(tilted, region.population(512, seed=0).points)
    assert bool(region.contains(x).all())
    best = CENTER[0] + 2 * CENTER[1] + 0.5 * math.sqrt(5)
    # The ball reaches exactly to the face, where its own boundary is parallel to it.
    assert best - 0.01 <= value <= best


def test_a_maximum_in_the_interior_is_found_exactly():
    region = Region(BOX, (known(ring_and_ball(0.4)),))
    peak = torch.tensor([4.65, -1.45], dtype=torch.float64)
    bowl = FunctionObjective(lambda X: -1e3 * (X - peak).square().sum(dim=-1))
    x, _ = region.maximize(bowl, region.population(512, seed=0).points)
    assert_close(x, peak, rtol=0, atol=1e-5)


# --- dtype, bad input ---------------------------------------------------------------------------


def test_float32(device):
    model = KernelGP(kernel(), NOISE, dtype=torch.float32, device=device)
    X, y = data(0, num=12)
    model.add(X.float().to(device), y.float().to(device))
    box = BOX.to(dtype=torch.float32, device=device)
    x, value = Region(box).maximize(
        ConfidenceBound(model, -1.0), Region(box).population(512, 0).points
    )
    region = Region(box).restricted(model, 1.0, 0.0, float(value), x)
    population = region.population(512, seed=0)
    assert population.points.dtype == torch.float32
    assert population.points.device.type == torch.device(device).type
    assert_sound(region, population, 512)


def test_a_round_draws_its_population_once(monkeypatch):
    drawn, population = [], Region.population

    def counted(self, num_points, seed):
        drawn.append(seed)
        return population(self, num_points, seed)

    monkeypatch.setattr(Region, "population", counted)
    strategy = bpe_delay(
        BOX, kernel(), noise_variance=NOISE, horizon=40, width=1.0, delay=1, seed=3
    )
    for _ in range(40):
        trial = strategy.ask()
        strategy.tell(trial.id, float(torch.as_tensor(trial.x).sin().sum()))
    assert len(strategy.rounds) > 2
    assert len(drawn) == len(strategy.rounds)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise_variance", [1e-4, 1e-6, 1e-8])
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


def test_bad_constraints():
    model = model_of(0, num=5)
    with pytest.raises(ValueError, match="width must be non-negative, got -1"):
        Constraint(model, -1.0, 0.0, 0.0)
    for numbers in [(math.nan, 0.0, 0.0), (1.0, math.inf, 0.0), (1.0, 0.0, -math.inf)]:
        with pytest.raises(ValueError, match="must be finite"):
            Constraint(model, *numbers)
    batch = KernelGP(kernel(), torch.tensor([0.1, 0.2]))
    with pytest.raises(ValueError, match="model must have no batch dimensions"):
        Constraint(batch, 1.0, 0.0, 0.0)
    cube = Box([[0.0] * 3, [1.0] * 3])
    with pytest.raises(ValueError, match="model must have data of dimension 3"):
        Region(cube, (Constraint(model, 1.0, 0.0, 0.0),))
    with pytest.raises(ValueError, match=r"model must be torch\.float32"):
        Region(BOX.to(dtype=torch.float32), (Constraint(model, 1.0, 0.0, 0.0),))


def test_bad_points():
    region = Region(BOX, (known(ball(0.5)),))
    for call in (region.margin, region.contains, region.require_contains):
        with pytest.raises(ValueError, match=r"X must have shape \(n, 2\)"):
            call([[1.0, 2.0, 3.0]])
        with pytest.raises(ValueError, match="X must be finite"):
            call([[3.0, math.nan]])
    with pytest.raises(OutsideDomainError, match=r"trial must lie in the box .* got \[0.0, 0.0\]"):
        region.require_contains([[0.0, 0.0]], "trial")
    with pytest.raises(
        OutsideDomainError, match=r"trial must lie in the region, got \[4.0, -2.5\]"
    ):
        region.require_contains([CENTER, [4.0, -2.5]], "trial")
    with pytest.raises(OutsideDomainError, match="members must lie in the region"):
        Region(BOX, region.constraints, members=[[4.0, -2.5]])
    with pytest.raises(OutsideDomainError, match="points must lie in the box"):
        region.restricted(known(ball(0.1)).model, 0.0, 0.0, 0.0, [0.0, 0.0])
    with pytest.raises(ValueError, match="points must have one in the new region"):
        region.restricted(known(ball(0.1)).model, 0.0, 0.0, 0.0, [3.2, -2.5])
    with pytest.raises(ValueError, match="num_points must be at least 4, got 3"):
        region.population(3, seed=0)
    with pytest.raises(ValueError, match="points must not be empty"):
        region.maximize(FunctionObjective(lambda X: X[:, 0]), torch.empty(0, 2).double())


def test_an_empty_region_without_members():
    nowhere = Region(BOX, (known(lambda X: torch.full_like(X[..., 0], -1.0)),))
    with pytest.raises(ValueError, match="members must be given"):
        nowhere.population(64, seed=0)
