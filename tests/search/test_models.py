import pytest
import torch
from gpytorch.kernels import LinearKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, following_memory
from botorch_ext import Box, CandidateModels, chunks
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.search.models import (
    AverageBound,
    UpperBounds,
    best_pair,
    maximize_over_models,
    proposals,
)
from botorch_ext.search.screening import near_points
from tests.helpers import drawn, matern, pairwise, rbf, tolerance

BOX = Box([[2.0, -3.0, 0.5], [5.0, -1.0, 0.9]])
TOL = tolerance(torch.float64)


def small_linear():
    kernel = LinearKernel().double()  # no closed form: through autograd
    kernel.variance = torch.tensor(0.02, dtype=torch.float64)
    return kernel


def tilted(X):
    return 0.3 * X[..., 0] - 0.1 * X[..., 2].sin()


def bounds_of(kind, num_points, device="cpu"):
    """Upper bounds of models of one form, or of several."""
    kernels = [rbf(scale) for scale in (0.3, 0.5, 0.9, 1.4, 2.0)]
    means = None
    if kind == "mixed":
        kernels.insert(2, small_linear())
        kernels.append(matern(0.8))
        means = [None, tilted, None, None, None, None, tilted]
    models = CandidateModels(kernels, 0.01, means=means, device=device)
    if num_points:
        X = BOX.sample(num_points, seed=1).to(device)
        models.add(X, torch.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2])
    like = models.noise_variance
    widths = torch.linspace(1.0, 2.5, models.num_models).to(like)
    return UpperBounds(models, widths, 0.1 * widths.flip(0))


@pairwise(kind=["one form", "mixed"], num_points=[0, 25], device=["cpu", "pretended-cuda"])
def test_no_model_has_a_higher_bound_anywhere(kind, num_points, device):
    bounds = bounds_of(kind, num_points, device)
    box = BOX.to(device=device)
    x, position = maximize_over_models(bounds, box, 0)
    assert bool(box.contains(x).all())
    value = bounds.values(x[None])[:, 0]
    assert position == int(value.argmax())
    for i in range(bounds.models.num_models):  # by formula
        mean, std = bounds.models.single(i).mean_and_std(x[None])
        expected = mean + bounds.widths[i] * std + bounds.offsets[i]
        assert_close(value[i : i + 1], expected.detach(), **TOL)
    axis = torch.linspace(0, 1, 15, dtype=torch.float64, device=box.device)
    grid = box.from_unit(torch.cartesian_prod(axis, axis, axis))
    near = near_points(x[None], box, 300, 1, (0.01, 1e-3))
    assert value.max() >= bounds.values(torch.cat([grid, near])).max() - 1e-9


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
    monkeypatch.setattr(chunks, "_MOST_ENTRIES", limit)
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
