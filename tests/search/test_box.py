"""The argmax over plain boxes, against dense grids and functions whose maxima are known."""

import math
import random
from statistics import pstdev

import pytest
import torch
from gpytorch.kernels import LinearKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, following_memory
from botorch_ext import Box, CandidateModels
from botorch_ext.algorithms import integrated_ei
from botorch_ext.domains import chunks
from botorch_ext.search.box import ConfidenceBound, maximize_bound, maximize_on_box
from botorch_ext.search.models import (
    AverageBound,
    UpperBounds,
    best_pair,
    maximize_over_models,
    proposals,
)
from botorch_ext.search.objectives import FunctionObjective, lowest_for_others
from botorch_ext.search.screening import (
    near_points,
    screening_points,
    screening_points_with,
    spread_best,
)
from botorch_ext.search.trust_region import region_around, side_length
from tests.helpers import drawn, matern, rbf, tolerance

BOX = Box([[2.0, -3.0, 0.5], [5.0, -1.0, 0.9]])
PEAK = torch.tensor([3.1, -2.2, 0.61], dtype=torch.float64)
TOL = tolerance(torch.float64)


def test_maxima_on_corners_are_found_exactly():
    x, value = maximize_on_box(FunctionObjective(lambda X: X.sum(dim=-1)), BOX, seed=0)
    assert_close(x, BOX.upper)
    assert_close(value, BOX.upper.sum())


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_accuracy_does_not_depend_on_units(scale):
    bowl = FunctionObjective(lambda X: -scale * (X - PEAK).square().sum(dim=-1))
    x, _ = maximize_on_box(bowl, BOX, seed=0, num_raw=64)
    assert_close(x, PEAK, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bad", [math.nan, -math.inf, math.inf])
def test_values_that_are_not_finite_rank_lowest(bad):
    def function(X):
        return torch.where(X[:, 0] > 3.3, bad, -(X - PEAK).square().sum(dim=-1))

    x, value = maximize_on_box(FunctionObjective(function), BOX, seed=0, num_raw=64)
    assert_close(x, PEAK, rtol=0, atol=1e-5)
    assert_close(value, function(x[None])[0])
    values = torch.tensor([1.0, bad, -2.0, 3.0])
    assert lowest_for_others(values).tolist() == [1.0, -2.0, -2.0, 3.0]


def test_extra_points_are_screened():
    needle = FunctionObjective(lambda X: (-((X - PEAK) / 1e-3).square().sum(dim=-1)).exp())
    _, missed = maximize_on_box(needle, BOX, seed=0, num_raw=64)
    _, found = maximize_on_box(needle, BOX, seed=0, num_raw=64, extra=PEAK[None] + 5e-4)
    assert missed < 0.01
    assert found > 1 - 1e-6


def test_the_highest_of_forty_hills_that_are_nearly_equal():
    # Two starts find it in 2 of 12, the budget of an ask in 11.
    box = Box([[2.0, -3.0], [5.0, 7.0]])
    found = 0
    for seed in range(6):
        tops, heights = drawn(40, 2, seed=seed), drawn(40, seed=seed + 50, low=1.0, high=1.02)

        def hills(X, tops=tops, heights=heights):
            squares = (box.to_unit(X)[:, None] - tops).square().sum(dim=-1)
            return torch.logsumexp(200 * heights * (-squares / 0.0032).exp(), dim=-1) / 200

        x = maximize_bound(FunctionObjective(hills), box, seed, tops[:0], num_observations=400)
        highest = hills(box.from_unit(tops)).max()
        found += bool(hills(x[None])[0] >= highest - 1e-4)
    assert found >= 5


@pytest.mark.parametrize("seed", range(2))
def test_the_highest_of_a_thousand_hills_that_differ_in_a_coordinate_each(seed):
    """A sum of functions of one coordinate with three hills each: the highest end of 40 climbs is
    hardly ever the highest hill, which is where each coordinate alone is highest."""
    box = Box([[2.0] * 6, [5.0] * 6])
    tops = drawn(6, 1, seed=seed) / 4 + torch.tensor([0.0, 0.3, 0.6])
    heights = drawn(6, 3, seed=seed + 9, low=1.0, high=1.2)

    def hills(X):
        steps = box.to_unit(X).unsqueeze(-1) - tops
        return (heights * (-steps.square() / 0.005).exp()).sum(dim=(-1, -2))

    x, value = maximize_on_box(FunctionObjective(hills), box, seed, 256, 10, again=True)
    expected = tops.gather(1, heights.argmax(dim=1, keepdim=True)).squeeze(1)
    assert_close(box.to_unit(x), expected, rtol=0, atol=0.01)
    assert_close(value, hills(x[None])[0])


def test_a_brief_search_climbs_to_the_top_of_many_dimensions():
    box = Box([[2.0] * 30, [5.0] * 30])
    best = box.sample(1, 3)[0]
    bowl = FunctionObjective(lambda X: -(X - best).square().sum(dim=-1))
    x, value = maximize_on_box(bowl, box, 0, 64, 5, tolerance=1e-9, brief=True)
    assert value > -1e-6
    assert_close(x, best, rtol=0, atol=1e-3)


# --- screening ------------------------------------------------------------------------------------


def test_screening_points_reach_the_faces():
    X = screening_points(BOX, 400, seed=1)
    assert bool(BOX.contains(X).all())
    on_face = ((X == BOX.lower) | (X == BOX.upper)).sum(dim=-1)
    assert int((on_face[:100] == 0).sum()) == 100  # Sobol points first
    assert torch.equal(X[:100], BOX.sample(400, seed=1)[:100])
    assert int((on_face == BOX.dim).sum()) >= 20
    # Coordinates are moved to the nearest face.
    before = BOX.to_unit(BOX.sample(400, seed=1))[100:]
    moved = (X == BOX.lower)[100:] | (X == BOX.upper)[100:]
    assert torch.equal(BOX.to_unit(X)[100:][moved], before.round()[moved])
    both = screening_points_with(X[:3], BOX, 400, seed=1)
    assert torch.equal(both[:3], X[:3])
    assert bool((BOX.to_unit(both[3:103])[:, None] - BOX.to_unit(X[:3])).norm(dim=-1).min() < 0.1)
    assert len(both) == 403


def test_near_points_are_as_far_as_they_are_said_to_be():
    center = BOX.from_unit(torch.full((1, 3), 0.5, dtype=torch.float64))
    U = BOX.to_unit(near_points(center, BOX, 4000, 1, (0.05, 0.01))) - 0.5
    assert_close(U[::2].std(dim=0), torch.full((3,), 0.05).double(), rtol=0.08, atol=0)
    assert_close(U[1::2].std(dim=0), torch.full((3,), 0.01).double(), rtol=0.08, atol=0)
    box = Box([[2.0] * 40, [5.0] * 40])
    centers = box.sample(3, 1)
    points = near_points(centers, box, 400, 2, (0.05,), num_columns=4)
    assert bool(box.contains(points).all())
    changed = (points.unsqueeze(1) != centers).sum(dim=-1).amin(dim=1)
    assert changed.min() >= 1
    assert 3.5 < changed.double().mean() < 4.5  # of each center


@pytest.mark.parametrize("seed", range(3))
def test_the_best_without_a_better_one_nearby_by_loops(seed):
    box = Box([[2.0, -3.0], [5.0, -1.0]])
    X, num = box.sample(200, seed), 12
    values = torch.sin(9 * box.to_unit(X).sum(dim=-1)) + 0.01 * drawn(200, seed=seed)
    order = sorted(range(200), key=lambda i: -float(values[i]))[: 8 * num]
    U = box.to_unit(X)
    alone = [
        i
        for place, i in enumerate(order)
        if not any(float((U[i] - U[j]).norm()) < 200**-0.5 for j in order[:place])
    ]
    expected = (alone + [i for i in order if i not in alone])[:num]
    assert spread_best(values, X, box, num).tolist() == expected


# --- several models -------------------------------------------------------------------------------


def tilted(X):
    return 0.3 * X[..., 0] - 0.1 * X[..., 2].sin()


def bounds_of(kind, num_points):
    """Upper bounds of models of one form, or of several."""
    kernels = [rbf(scale) for scale in (0.3, 0.5, 0.9, 1.4, 2.0)]
    means = None
    if kind == "mixed":
        linear = LinearKernel().double()  # no closed form: through autograd
        linear.variance = torch.tensor(0.02, dtype=torch.float64)
        kernels.insert(2, linear)
        kernels.append(matern(0.8))
        means = [None, tilted, None, None, None, None, tilted]
    models = CandidateModels(kernels, 0.01, means=means)
    if num_points:
        X = BOX.sample(num_points, seed=1)
        models.add(X, torch.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2])
    like = models.noise_variance
    widths = torch.linspace(1.0, 2.5, models.num_models).to(like)
    return UpperBounds(models, widths, 0.1 * widths.flip(0))


def test_of_equal_models_the_first_is_played():
    models = CandidateModels([rbf(0.7)] * 12, 0.01)
    widths = torch.full((12,), 2.0, dtype=torch.float64)
    _, position = maximize_over_models(UpperBounds(models, widths, 0 * widths), BOX, 0)
    assert position == 0


@pytest.mark.parametrize("kind", ["one form", "mixed"])
@pytest.mark.parametrize("num_points", [0, 25])
def test_the_average_and_its_gradient_are_those_of_the_models(kind, num_points):
    bounds = bounds_of(kind, num_points)
    p = torch.rand(bounds.models.num_models, generator=torch.Generator().manual_seed(0)).double()
    p[1] = 0.0
    p = p / p.sum()
    average = AverageBound(bounds, p)
    X = BOX.sample(6, seed=3).requires_grad_()
    expected = 0 * X.sum(dim=-1)  # a prior has no gradient of its own
    for i in range(bounds.models.num_models):
        mean, std = bounds.models.single(i).mean_and_std(X)
        expected = expected + p[i] * (mean + bounds.widths[i] * std + bounds.offsets[i])
    (gradient,) = torch.autograd.grad(expected.sum(), X, materialize_grads=True)
    expected, X = expected.detach(), X.detach()
    assert_close(average.value(X), expected, **TOL)
    values, gradients = average.value_and_gradient(X)
    assert_close(values, expected, **TOL)
    assert_close(gradients, gradient, **TOL)


@pytest.mark.slow
@pytest.mark.parametrize(("num_models", "average"), [(8, True), (64, False)])
def test_memory_of_a_screening_does_not_grow_with_the_models(num_models, average, monkeypatch):
    limit, num_points = 2**14, 64
    monkeypatch.setattr(chunks, "_ON_CUDA", limit)
    kernels = [rbf(0.3 + 0.02 * i) for i in range(num_models)]
    X, Z = BOX.sample(num_points, 0), BOX.sample(600, 1)
    Y = X.sum(dim=-1).sin()
    found, weights = [], torch.full((num_models,), 1 / num_models, dtype=torch.float64)
    for device in ("cpu", "cuda"):
        with PretendCUDA():
            models = CandidateModels(kernels, 0.01, device=device)
            models.add(X.to(device), Y.to(device))
            width = torch.ones_like(models.noise_variance)
            bounds = UpperBounds(models, width, 0 * width)
            mean = AverageBound(bounds, weights.to(device))
            mean.value(Z[:1].to(device))  # what is worked out once
            with following_memory() as memory:
                if average:
                    values = torch.cat([a.flatten() for a in mean.value_and_gradient(Z.to(device))])
                else:
                    values = bounds.values(Z.to(device))
            found.append(values.cpu())
            if device == "cuda":
                kept = 8 * (3 * values.numel() + Z.numel())
                # All at once it is 19 times the limit with 8 models, 150 times with 64.
                assert num_models * num_points * len(Z) >= 18 * limit
                assert memory.growth - kept <= 10 * 8 * limit
    assert_close(*found, **TOL)


@pytest.mark.parametrize("kind", ["one form", "mixed"])
def test_the_best_proposal_under_each_bound_is_a_maximum(kind):
    models = bounds_of(kind, 25).models
    widths = torch.linspace(1.0, 2.5, models.num_models, dtype=torch.float64)
    widths = torch.stack([widths, -widths], dim=-1)
    X = proposals(models, widths, BOX, 0, BOX.sample(25, seed=1)[:3])
    assert bool(BOX.contains(X).all())
    mean, std = models.mean_and_std(X)
    for i in range(models.num_models):
        for width in widths[i].tolist():
            best = (mean[i] + width * std[i]).argmax()
            around = near_points(X[best][None], BOX, 500, seed=2, distances=(0.001, 0.01))
            bound = ConfidenceBound(models.single(i), width)
            assert (bound.value(around) <= mean[i, best] + width * std[i, best] + 1e-6).all()


@pytest.mark.parametrize("contenders", [None, [2, 0], torch.tensor([True, False, True])])
def test_the_best_pair_of_a_set_is_the_first_of_the_highest(contenders):
    rows = (3 * drawn(3, 40)).round()  # with ties
    allowed = [0, 1, 2] if contenders is None else [0, 2]
    order = [2, 0] if isinstance(contenders, list) else allowed
    highest = [max(float(rows[i, j]) for i in allowed) for j in range(40)]
    row = highest.index(max(highest))
    model = next(i for i in order if float(rows[i, row]) == highest[row])
    found, position = best_pair(rows, contenders)
    assert (int(found), int(position)) == (row, model)
    found, position = best_pair(rows[:1])
    assert position is None and int(found) == int(rows[0].argmax())
    weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    found, position = best_pair(rows, probabilities=weights)
    averages = (weights[:, None] * rows).sum(dim=0)
    assert float(averages[found]) == pytest.approx(float(averages.max())) and int(position) == 1


def by_the_rule(values, num_given, dim):
    """Three gains in a row double the side up to 1.6, max(5, d // 4) failures in a row halve it,
    and below 1/128 it begins again at 0.8."""
    side, streak, least = 0.8, 0, 1e-3 * pstdev(values)
    best = max(values[:num_given])
    for value in values[num_given:]:
        gained = value > best + least
        best = value if gained else best
        streak = max(streak, 0) + 1 if gained else min(streak, 0) - 1
        if streak == 3:
            side, streak = min(1.6, 2 * side), 0
        elif streak == -max(5, dim // 4):
            side, streak = side / 2, 0
        side = 0.8 if side < 1 / 128 else side
    return side


LEVELS = [0.0] * 6 + [0.50001, 1.0, 1.00001, 2.0, 3.0, 4.0, 5.0, 6.0]  # the best before is 0.5


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.sampled_from([2, 12, 20, 24, 100]))
def test_gains_in_a_row_double_the_side_and_failures_halve_it(seed, dim):
    draw = random.Random(seed)
    rising = sorted(draw.choices(LEVELS, k=draw.randint(0, 8)))
    values = [-1.0, 0.5, -3.0, *rising, *draw.choices(LEVELS, k=draw.randint(0, 60))]
    assert side_length(values, 3, dim) == pytest.approx(by_the_rule(values, 3, dim))


def test_a_region_has_equal_sides_and_ends_with_the_box():
    box = Box(lower=[2.0, 1e-3, -3.0], upper=[6.0, 1e3, -1.0], log=[1])
    center = torch.tensor([5.8, 1.0, -2.0], dtype=torch.float64)
    region = region_around(center, 0.4, box)
    assert region.log == box.log
    lower, upper = box.to_unit(region.bounds)
    assert_close(lower, torch.tensor([0.75, 0.3, 0.3], dtype=torch.float64))
    assert_close(upper, torch.tensor([1.0, 0.7, 0.7], dtype=torch.float64))


def test_results_that_were_not_asked_for_are_no_failures_of_a_region():
    box = Box([(0.0, 1.0)] * 24)
    strategy = integrated_ei(box)
    strategy.attach(torch.full((24,), 0.5, dtype=torch.float64), 1.0)
    for x in box.sample(20, seed=1):
        strategy.attach(x, -float((x - 0.5).square().sum()))
    strategy.attach(box.upper + 1, 99.0, outside=True)
    region = strategy._region(strategy.posterior, None)
    assert region is not None
    assert_close(region.upper - region.lower, torch.full((24,), 0.8, dtype=torch.float64))
