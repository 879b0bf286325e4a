"""Kernels that are fitted to measured data: no neighbour is more likely."""

import math
from copy import deepcopy

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import KernelGP, problems
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import drawn, rbf, tolerance


def log_likelihood(K, noise_variance, y):
    """Of zero-mean normal values."""
    C = K.detach() + noise_variance * torch.eye(len(y)).double()
    quadratic = float(y @ torch.linalg.solve(C, y))
    return -0.5 * (quadratic + float(torch.logdet(C)) + len(y) * math.log(2 * math.pi))


def drawn_temperatures():
    """A day of four sensors from the process that is fitted."""
    generator = torch.Generator().manual_seed(3)
    time = problems.time_of_day_kernel(3.0)
    time.kernels[1].lengthscale = 0.5
    K_T = time(problems.clock(torch.arange(48) / 48)).to_dense().detach()
    factor = torch.tensor([[1.0, 1.5, -0.5, 0.8]]).double()
    K_S = factor.T @ factor + 0.1 * torch.eye(4)
    noise = 0.1 * torch.randn(4, 48, generator=generator).double()
    draw = torch.randn(4, 48, generator=generator).double()
    field = torch.linalg.cholesky(K_S) @ draw
    values = field @ torch.linalg.cholesky(K_T + 1e-9 * torch.eye(48)).T + noise
    return problems.Temperatures(20 + 3 * values, (2, 3, 5, 7))


@pytest.fixture(scope="module")
def sensors():
    return problems.fit_temperatures(
        drawn_temperatures(), time_kernel=problems.time_of_day_kernel(3.0), rank=1
    )


def test_the_sensors_are_fitted_as_well_as_by_hand(sensors):
    data = drawn_temperatures()
    problem = problems.HottestSensor(data, sensors.scaling)
    rows = torch.arange(4.0).double().repeat_interleave(48)
    X = torch.cat([rows.unsqueeze(-1), problem.contexts.repeat(4, 1)], dim=-1)
    y, noise = problem(X), sensors.noise_variance
    kernel = deepcopy(sensors.kernel)
    K = kernel(X).to_dense()
    found = log_likelihood(K, noise, y)
    assert sensors.scaling.center == pytest.approx(float(data.values.mean()))
    # What it says of itself is in degrees.
    in_degrees = found - len(X) * math.log(sensors.scaling.scale)
    assert sensors.log_likelihood == pytest.approx(in_degrees)
    assert float(K.diagonal().max()) == pytest.approx(1.0)
    circle = kernel.context_kernel.kernels[1]
    lengthscale = circle.lengthscale.clone()
    assert 0.3 < float(lengthscale) < 0.8  # drawn with 0.5
    for factor in (0.9, 1.1):
        assert log_likelihood(factor * K, noise, y) < found + 1e-3
        assert log_likelihood(K, factor * noise, y) < found + 1e-3
        circle.lengthscale = factor * lengthscale
        assert log_likelihood(kernel(X).to_dense(), noise, y) < found + 1e-3
    posterior = KernelGP(sensors.kernel, noise)
    posterior.add(X[::5], y[::5])
    mean, std = posterior.mean_and_std(X)
    assert float((mean - y).abs().max()) < 0.5 and float(std.max()) < 0.5


def test_the_lengthscale_of_days_is_what_was_given(sensors):
    days, circle = sensors.kernel.context_kernel.kernels
    assert float(days.lengthscale) == pytest.approx(3.0)
    given = problems.time_of_day_kernel(3.0)
    unfitted = given.kernels[1].lengthscale.item()
    problems.fit_temperatures(problems.synthetic_temperatures(2, 1), time_kernel=given, rank=1)
    assert given.kernels[1].lengthscale.item() == unfitted != circle.lengthscale.item()
    K = sensors.kernel.context_kernel(problems.clock(torch.tensor([0.2, 3.2]))).to_dense()
    at_one_lengthscale = (1 + math.sqrt(5) + 5 / 3) * math.exp(-math.sqrt(5))
    assert float(K[0, 1]) == pytest.approx(at_one_lengthscale)
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="day_lengthscale"):
            problems.time_of_day_kernel(wrong)


def test_a_kernel_is_fitted_as_well_as_by_hand():
    X = drawn(60, 2, low=2.0, high=5.0)
    K = rbf(1.2)(X).to_dense().detach() + 0.01 * torch.eye(60)
    draw = torch.randn(60, generator=torch.Generator().manual_seed(5)).double()
    Y = 7 + 2 * torch.linalg.cholesky(K) @ draw
    model = problems.fit_kernel(RBFKernel(), X, Y)
    y, K, noise = model.scaling(Y), model.kernel(X).to_dense(), model.noise_variance
    found = log_likelihood(K, noise, y)
    assert model.log_likelihood == pytest.approx(found - 60 * math.log(model.scaling.scale))
    for factor in (0.9, 1.1):
        for shift in (-0.1, 0.0, 0.1):
            assert log_likelihood(factor * K, noise, y + shift) < found + 1e-4
            assert log_likelihood(K, factor * noise, y + shift) < found + 1e-4
    assert 0.9 < float(model.kernel.lengthscale) < 1.5
    with pytest.raises(ValueError, match="Y"):
        problems.fit_kernel(RBFKernel(), X, torch.ones(60).double())


def test_a_kernel_that_exceeds_one_is_scaled_to_one():
    X = torch.tensor([[0.0], [1.0], [1.0], [0.0]]).double()
    Y = torch.tensor([1.0, 2.0, 2.1, 0.9]).double()
    model = problems.fit_kernel(TaskKernel([[3.0, 0.0], [0.0, 1.0]]), X, Y)
    assert model.kernel(X).to_dense().diagonal().tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1])


def test_binding_is_fitted_on_a_random_subset():
    data = problems.synthetic_binding_affinities(num_peptides=10)
    model, again, other = (
        problems.fit_binding_affinities(data, num_examples=40, seed=seed) for seed in (1, 1, 2)
    )
    assert model.noise_variance == again.noise_variance != other.noise_variance
    kernel = model.kernel
    assert isinstance(kernel, ActionContextKernel) and kernel.combination == "product"
    close = tolerance(torch.float64)
    torch.testing.assert_close(kernel.context_kernel.covariance, data.similarity, **close)
    without = problems.fit_binding_affinities(data, num_examples=40, seed=1, by_molecule=False)
    assert isinstance(without.kernel, RBFKernel)
    with pytest.raises(ValueError, match="num_examples"):
        problems.fit_binding_affinities(data, num_examples=71)
