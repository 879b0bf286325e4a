import math

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.optim import optimize_acqf
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel
from torch.testing import assert_close

from botorch_ext import Box, KernelGP
from botorch_ext.search.box import ConfidenceBound, _peaks, maximize_bound, maximize_on_box
from botorch_ext.search.objectives import FunctionObjective, evaluate
from botorch_ext.search.screening import near_points, screening_points

BOX = Box([[2.0, -3.0, 0.5], [5.0, -1.0, 0.9]])


def kernel(kind):
    if kind == "linear":  # no closed form: through autograd
        k = LinearKernel().double()
        k.variance = torch.tensor(0.02, dtype=torch.float64)
        return k
    k = (RBFKernel() if kind == "rbf" else MaternKernel(nu=2.5)).double()
    k.lengthscale = torch.tensor(0.9, dtype=torch.float64)
    return k


def model_of(kind, seed, device="cpu"):
    X = BOX.sample(40, seed)
    y = torch.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = KernelGP(kernel(kind).to(device), noise_variance=0.01, device=device)
    model.add(X.to(device), y.to(device))
    return model


@pytest.mark.parametrize("kind", ["rbf", "matern", "linear"])
def test_at_least_as_good_as_botorch(kind, device):
    box = BOX.to(device=device)
    for seed in range(5):
        model = model_of(kind, seed, device)
        bound = ConfidenceBound(model, 2.0)
        x, value = maximize_on_box(bound, box, seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            acqf = UpperConfidenceBound(model, beta=4.0)
            _, reference = optimize_acqf(acqf, box.bounds, q=1, num_restarts=5, raw_samples=128)
        assert value >= reference - 1e-6
        assert bool(box.contains(x).all())
        assert_close(bound.value(x[None])[0], value)


@pytest.mark.parametrize("seed", [60, 80])
def test_no_point_of_a_grid_is_above_the_best_of_many_hills(seed):
    # Dozens of hills of about one height: a few starts from the highest points miss the best.
    box = Box([[2.0, -3.0, 0.5], [5.0, -2.5, 2.5]])
    k = MaternKernel(nu=2.5, ard_num_dims=3).double()
    k.lengthscale = 0.2 * (box.upper - box.lower)
    model, X = KernelGP(k, noise_variance=0.01), box.sample(40, seed)
    Y = 0.5 * torch.sin(40 * box.to_unit(X).sum(dim=-1) + seed)
    model.add(X, Y)
    bound = ConfidenceBound(model, 2.0)
    x = maximize_bound(bound, box, seed, X[Y.topk(5).indices], num_observations=40)
    axis = torch.linspace(0, 1, 41, dtype=torch.float64)
    grid = box.from_unit(torch.cartesian_prod(axis, axis, axis))
    assert bound.value(x.unsqueeze(0)) >= evaluate(bound, grid).max()


@pytest.mark.parametrize("kind", ["rbf", "matern", "linear"])
def test_gradients_are_those_of_the_values(kind):
    bound = ConfidenceBound(model_of(kind, 0), 1.5, mean_weight=0.5)
    X = BOX.sample(6, seed=3)
    values, gradient = bound.value_and_gradient(X)
    assert_close(values, bound.value(X))
    step = 1e-6
    for j in range(BOX.dim):
        shift = step * torch.eye(BOX.dim, dtype=torch.float64)[j]
        difference = (bound.value(X + shift) - bound.value(X - shift)) / (2 * step)
        assert_close(gradient[:, j], difference, rtol=1e-4, atol=1e-6)


def test_an_empty_model_has_a_flat_bound():
    model = KernelGP(kernel("rbf"), noise_variance=0.01)
    x, value = maximize_on_box(ConfidenceBound(model, 2.0), BOX, seed=0)
    assert value == 2.0
    assert bool(BOX.contains(x).all())


def test_maxima_on_corners_are_found_exactly():
    x, value = maximize_on_box(FunctionObjective(lambda X: X.sum(dim=-1)), BOX, seed=0)
    assert_close(x, BOX.upper)
    assert value == BOX.upper.sum()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_accuracy_does_not_depend_on_units(scale):
    peak = torch.tensor([3.1, -2.2, 0.61], dtype=torch.float64)
    bowl = FunctionObjective(lambda X: -scale * (X - peak).square().sum(dim=-1))
    x, _ = maximize_on_box(bowl, BOX, seed=0, num_raw=64)
    assert_close(x, peak, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bad", [math.nan, -math.inf, math.inf])
def test_values_that_are_not_finite_rank_lowest(bad):
    peak = torch.tensor([3.1, -2.2, 0.61], dtype=torch.float64)

    def function(X):
        return torch.where(X[:, 0] > 3.3, bad, -(X - peak).square().sum(dim=-1))

    x, value = maximize_on_box(FunctionObjective(function), BOX, seed=0, num_raw=64)
    assert_close(x, peak, rtol=0, atol=1e-5)
    assert_close(value, function(x[None])[0])


def test_a_function_that_does_not_look_at_the_points_has_zero_gradients():
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    objective = FunctionObjective(lambda X: weight.expand(len(X)))
    values, gradients = objective.value_and_gradient(BOX.sample(3, 0))
    assert_close(values, torch.ones(3, dtype=torch.float64))
    assert_close(gradients, torch.zeros(3, 3, dtype=torch.float64))


def test_extra_points_are_screened():
    peak = torch.tensor([3.1, -2.2, 0.61], dtype=torch.float64)
    needle = FunctionObjective(lambda X: (-((X - peak) / 1e-3).square().sum(dim=-1)).exp())
    _, missed = maximize_on_box(needle, BOX, seed=0, num_raw=64)
    _, found = maximize_on_box(needle, BOX, seed=0, num_raw=64, extra=peak[None] + 5e-4)
    assert missed < 0.01
    assert found > 1 - 1e-6


def test_screening_points_reach_the_faces():
    X = screening_points(BOX, 400, seed=1)
    assert bool(BOX.contains(X).all())
    on_face = ((X == BOX.lower) | (X == BOX.upper)).sum(dim=-1)
    assert (on_face == 0).sum() >= 100
    assert (on_face == BOX.dim).sum() >= 20
    assert_close(X, screening_points(BOX, 400, seed=1))


def test_the_highest_of_forty_hills_that_are_nearly_equal():
    # Two starts find it in 2 of these 12, the budget of an ask in 11.
    box = Box([[2.0, -3.0], [5.0, 7.0]])
    found = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        tops = torch.rand(40, 2, generator=generator, dtype=torch.float64)
        heights = 1 + 0.02 * torch.rand(40, generator=generator, dtype=torch.float64)

        def hills(X, tops=tops, heights=heights):
            squares = (box.to_unit(X)[:, None] - tops).square().sum(dim=-1)
            return torch.logsumexp(200 * heights * (-squares / 0.0032).exp(), dim=-1) / 200

        x = maximize_bound(FunctionObjective(hills), box, seed, tops[:0], num_observations=400)
        highest = hills(box.from_unit(tops)).max()
        found += bool(hills(x[None])[0] >= highest - 1e-4)
    assert found >= 10


@pytest.mark.parametrize("seed", range(6))
def test_the_highest_of_a_thousand_hills_that_differ_in_a_coordinate_each(seed):
    """A sum of functions of one coordinate with three hills each: the highest end of 40 climbs is
    hardly ever the highest hill, which is where each coordinate alone is highest."""
    box = Box([[2.0] * 6, [5.0] * 6])
    generator = torch.Generator().manual_seed(seed)
    tops = torch.rand(6, 1, generator=generator, dtype=torch.float64) / 4 + torch.tensor(
        [0.0, 0.3, 0.6]
    )
    heights = 1 + 0.2 * torch.rand(6, 3, generator=generator, dtype=torch.float64)

    def hills(X):
        steps = box.to_unit(X).unsqueeze(-1) - tops
        return (heights * (-steps.square() / 0.005).exp()).sum(dim=(-1, -2))

    x, value = maximize_on_box(FunctionObjective(hills), box, seed, 256, 10, again=True)
    expected = tops.gather(1, heights.argmax(dim=1, keepdim=True)).squeeze(1)
    assert_close(box.to_unit(x), expected, rtol=0, atol=0.01)
    assert_close(value, hills(x[None])[0])


def test_coordinates_that_do_not_matter_have_no_peaks():
    """The function depends on one coordinate; along the others it varies by rounding alone."""
    box = Box([[2.0] * 6, [5.0] * 6])

    def hills(X):
        U = box.to_unit(X)
        return (12 * U[..., 0]).cos() + 1e-14 * (97 * U[..., 1:]).sin().sum(dim=-1)

    centers = box.from_unit(torch.full((2, 6), 0.5, dtype=torch.float64))
    least = torch.tensor(1e-9, dtype=torch.float64)
    peaks = box.to_unit(_peaks(FunctionObjective(hills), box, centers, least))
    # The cosine is highest at 0; at 2 pi / 12 = .52 is a point next to the center; 1 is an end.
    assert (peaks[:, 1:] == 0.5).all()
    assert peaks[:, 0].unique().tolist() == [0.0, 1.0]


def test_some_coordinates_of_near_points_change():
    box = Box([[2.0] * 40, [5.0] * 40])
    centers = box.sample(3, 1)
    points = near_points(centers, box, 400, 2, (0.05,), num_columns=4)
    assert bool(box.contains(points).all())
    changed = (points.unsqueeze(1) != centers).sum(dim=-1).amin(dim=1)
    assert changed.min() >= 1
    assert 3.5 < changed.double().mean() < 4.5  # of each center


def test_a_brief_search_climbs_to_the_top_of_many_dimensions():
    box = Box([[2.0] * 30, [5.0] * 30])
    best = box.sample(1, 3)[0]
    bowl = FunctionObjective(lambda X: -(X - best).square().sum(dim=-1))
    x, value = maximize_on_box(bowl, box, 0, 64, 5, tolerance=1e-9, brief=True)
    assert value > -1e-6
    assert_close(x, best, rtol=0, atol=1e-3)
