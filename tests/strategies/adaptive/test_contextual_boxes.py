"""Contexts on boxes: only the action is searched, and as well as BoTorch searches it."""

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.optim import optimize_acqf
from gpytorch.kernels import LinearKernel
from torch.testing import assert_close

from botorch_ext import CandidateModels, KernelGP, algorithms
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.search.models import AverageBound, UpperBounds, maximize_over_models
from tests.helpers import tolerance
from tests.strategies.adaptive.contextual_sessions import (
    NOISE_VARIANCE,
    SETTINGS,
    contextual_data,
    joint,
    matern,
    rbf,
)
from tests.strategies.adaptive.model_sessions import grid
from tests.strategies.sessions import box

TOL = tolerance(torch.float64)
every_setting = pytest.mark.parametrize("name", SETTINGS)


def model_of(name, num_points=25):
    model = KernelGP(SETTINGS[name].kernel(), NOISE_VARIANCE)
    model.add(*contextual_data(SETTINGS[name], box(), num_points))
    return model


def contexts_of(name, num=3):
    return list(SETTINGS[name].draw(num, torch.Generator().manual_seed(3)))


@every_setting
def test_a_pick_is_at_least_as_good_as_botorchs(name):
    initial = contextual_data(SETTINGS[name], box(), 25)
    strategy = algorithms.cgp_ucb(
        box(),
        **SETTINGS[name].parts(),
        context_domain=SETTINGS[name].domain(),
        noise_variance=NOISE_VARIANCE,
        width=1.2,
        pending="ignore",
        initial=initial,
    )
    for seed, context in enumerate(contexts_of(name)):
        x = strategy.ask(context=context).x
        assert bool(box().contains(x).all())
        model = strategy.posterior
        acqf = UpperConfidenceBound(model, beta=1.2**2)
        columns = list(range(2, 2 + len(context)))
        fixed = FixedFeatureAcquisitionFunction(acqf, 2 + len(context), columns, context.tolist())
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            _, best = optimize_acqf(fixed, box().bounds, q=1, num_restarts=3, raw_samples=64)
        assert fixed(x[None]).item() >= best.item() - 1e-6


def check_gradient(value_and_gradient, value, X):
    """Against central differences, of actions alone."""
    values, gradient = value_and_gradient(X)
    assert gradient.shape == (*values.shape, 2)
    assert_close(values, value(X), **TOL)
    step = 1e-6
    for j in range(2):
        shift = step * torch.eye(2, dtype=torch.float64)[j]
        difference = (value(X + shift) - value(X - shift)) / (2 * step)
        assert_close(gradient[..., j], difference, rtol=1e-4, atol=1e-6)


@every_setting
@pytest.mark.parametrize("mean_weight", [1.0, 0.3, 0.0])
def test_the_gradient_is_that_of_the_action(name, mean_weight):
    model, (context, *_) = model_of(name), contexts_of(name)
    bound = ConfidenceBound(model, 1.3, mean_weight, context=context)
    X = box().sample(5, seed=4)
    check_gradient(bound.value_and_gradient, bound.value, X)
    mean, std = model.mean_and_std(joint(X, context))
    assert_close(bound.value(X), mean_weight * mean + 1.3 * std, **TOL)


def tilted(X):
    return 0.3 * X[..., 0] - 0.1 * X[..., 2].sin()


def bounds_of(context, num_points=20):
    """Three models of one form, one of another, and one without gradients in closed form."""
    linear = LinearKernel().double()
    linear.variance = torch.tensor(0.02, dtype=torch.float64)
    kernels = [ActionContextKernel(rbf(scale), matern(1.0), 2) for scale in (0.4, 0.9, 2.0)]
    kernels.insert(1, ActionContextKernel(rbf(0.6), matern(1.0), 2, combination="sum"))
    kernels.append(ActionContextKernel(rbf(0.7), linear, 2))
    models = CandidateModels(kernels, NOISE_VARIANCE, means=[None, tilted, None, tilted, None])
    if num_points:
        models.add(*contextual_data(SETTINGS["product"], box(), num_points))
    widths = torch.linspace(1.0, 2.0, 5).double()
    return UpperBounds(models, widths, 0.1 * widths.flip(0), context)


@pytest.mark.parametrize("num_points", [0, 20])
def test_bounds_of_many_models_and_their_gradients(num_points):
    context, *_ = contexts_of("product")
    bounds = bounds_of(context, num_points)
    X = box().sample(5, seed=4)
    singles = [bounds.models.single(i) for i in range(5)]
    own = [
        ConfidenceBound(single, bounds.widths[i], context=context)
        for i, single in enumerate(singles)
    ]
    expected = torch.stack([bound.value(X) for bound in own]) + bounds.offsets[:, None]
    assert_close(bounds.values(X), expected, **TOL)
    assert_close(bounds.select([3, 1]).values(X), expected[[3, 1]], **TOL)
    p = torch.tensor([0.1, 0.3, 0.2, 0.25, 0.15]).double()
    average = AverageBound(bounds, p)
    assert_close(average.value(X), p @ expected, **TOL)
    check_gradient(average.value_and_gradient, average.value, X)


def test_no_model_promises_more_at_this_context():
    for context in contexts_of("product", 2):
        bounds = bounds_of(context)
        x, position = maximize_over_models(bounds, box(), seed=1)
        assert bool(box().contains(x).all())
        best = bounds.values(x[None])[:, 0]
        assert position == int(best.argmax())
        assert bounds.values(grid(31)).max() <= best[position] + 1e-7
