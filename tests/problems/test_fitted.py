import math
from copy import deepcopy

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import KernelGP
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.problems import (
    FittedModel,
    HottestSensor,
    Temperatures,
    clock,
    fit_binding_affinities,
    fit_kernel,
    fit_temperatures,
    synthetic_binding_affinities,
    synthetic_temperatures,
    time_of_day_kernel,
)
from tests.helpers import tolerance


def log_likelihood(K: torch.Tensor, y: torch.Tensor) -> float:
    """Of zero-mean normal values."""
    quadratic = y @ torch.linalg.solve(K, y)
    return -0.5 * float(quadratic + torch.logdet(K) + len(y) * math.log(2 * math.pi))


def gram(model, X: torch.Tensor, noise_factor: float = 1.0) -> torch.Tensor:
    K = model.kernel(X).to_dense().detach()
    return K + noise_factor * model.noise_variance * torch.eye(len(X)).to(K)


def drawn_temperatures() -> Temperatures:
    """A day of four sensors from the process that is fitted."""
    generator = torch.Generator().manual_seed(3)
    time = time_of_day_kernel(3.0)
    time.kernels[1].lengthscale = 0.5
    K_T = time(clock(torch.arange(48) / 48)).to_dense().detach()
    factor = torch.tensor([[1.0, 1.5, -0.5, 0.8]]).double()
    K_S = factor.T @ factor + 0.1 * torch.eye(4)
    noise = 0.1 * torch.randn(4, 48, generator=generator).double()
    draw = torch.randn(4, 48, generator=generator).double()
    field = torch.linalg.cholesky(K_S) @ draw
    values = field @ torch.linalg.cholesky(K_T + 1e-9 * torch.eye(48)).T + noise
    return Temperatures(20 + 3 * values, (2, 3, 5, 7))


@pytest.fixture(scope="module")
def sensors() -> FittedModel:
    return fit_temperatures(drawn_temperatures(), time_kernel=time_of_day_kernel(3.0), rank=1)


def joint_rows(data: Temperatures) -> torch.Tensor:
    contexts = HottestSensor(data).contexts
    rows = torch.arange(float(data.num_sensors)).double().repeat_interleave(len(contexts))
    return torch.cat([rows.unsqueeze(-1), contexts.repeat(data.num_sensors, 1)], dim=-1)


def check_log_likelihood(model: FittedModel, data: Temperatures) -> float:
    """That it is what the model says of itself, in degrees; returns that of the scaled values."""
    X = joint_rows(data)
    found = log_likelihood(gram(model, X), HottestSensor(data, model.scaling)(X))
    in_degrees = found - len(X) * math.log(model.scaling.scale)
    assert model.log_likelihood == pytest.approx(in_degrees)
    return found


def test_the_sensors_are_fitted_as_well_as_by_hand(sensors) -> None:
    data = drawn_temperatures()
    X, y = joint_rows(data), HottestSensor(data, sensors.scaling)(joint_rows(data))
    assert sensors.scaling.center == pytest.approx(float(data.values.mean()))
    found = check_log_likelihood(sensors, data)
    assert float(gram(sensors, X, 0.0).diagonal().max()) == pytest.approx(1.0)
    # No neighbour is more likely, in any hyperparameter.
    kernel = deepcopy(sensors.kernel)
    circle = kernel.context_kernel.kernels[1]
    lengthscale = circle.lengthscale.clone()
    for factor in (0.9, 1.1):
        K = kernel(X).to_dense()
        noise = sensors.noise_variance * torch.eye(len(X)).double()
        assert log_likelihood(factor * K + noise, y) < found + 1e-3
        assert log_likelihood(K + factor * noise, y) < found + 1e-3
        circle.lengthscale = factor * lengthscale
        assert log_likelihood(kernel(X).to_dense() + noise, y) < found + 1e-3
        circle.lengthscale = lengthscale
    assert 0.3 < float(lengthscale) < 0.8  # drawn with 0.5


def test_the_lengthscale_of_days_is_what_was_given(sensors) -> None:
    days, circle = sensors.kernel.context_kernel.kernels
    assert float(days.lengthscale) == pytest.approx(3.0)
    given = time_of_day_kernel(3.0)
    unfitted = given.kernels[1].lengthscale.item()
    fit_temperatures(synthetic_temperatures(2, 1), time_kernel=given, rank=1)
    assert given.kernels[1].lengthscale.item() == unfitted != circle.lengthscale.item()
    K = sensors.kernel.context_kernel(clock(torch.tensor([0.2, 3.2]))).to_dense()
    at_one_lengthscale = (1 + math.sqrt(5) + 5 / 3) * math.exp(-math.sqrt(5))
    assert float(K[0, 1]) == pytest.approx(at_one_lengthscale)
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="day_lengthscale"):
            time_of_day_kernel(wrong)


def test_a_kernel_is_fitted_as_well_as_by_hand() -> None:
    generator = torch.Generator().manual_seed(5)
    X = 2 + 3 * torch.rand(60, 2, generator=generator).double()
    kernel = RBFKernel().double()
    kernel.lengthscale = 1.2
    K = kernel(X).to_dense().detach() + 0.01 * torch.eye(60)
    draw = torch.randn(60, generator=generator).double()
    Y = 7 + 2 * torch.linalg.cholesky(K) @ draw
    model = fit_kernel(RBFKernel(), X, Y)
    y = model.scaling(Y)
    found = log_likelihood(gram(model, X), y)
    assert model.log_likelihood == pytest.approx(found - 60 * math.log(model.scaling.scale))
    for factor in (0.9, 1.1):
        for shift in (-0.1, 0.0, 0.1):
            K = model.kernel(X).to_dense().detach()
            noise = model.noise_variance * torch.eye(60).double()
            assert log_likelihood(factor * K + noise, y + shift) < found + 1e-4
            assert log_likelihood(K + factor * noise, y + shift) < found + 1e-4
    assert 0.9 < float(model.kernel.lengthscale) < 1.5
    with pytest.raises(ValueError, match="Y must not all be the same"):
        fit_kernel(RBFKernel(), X, torch.ones(60).double())


def test_a_kernel_that_exceeds_one_is_scaled_to_one() -> None:
    X = torch.tensor([[0.0], [1.0], [1.0], [0.0]]).double()
    Y = torch.tensor([1.0, 2.0, 2.1, 0.9]).double()
    model = fit_kernel(TaskKernel([[3.0, 0.0], [0.0, 1.0]]), X, Y)
    assert model.kernel(X).to_dense().diagonal().tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1])


def test_binding_is_fitted_on_a_random_subset() -> None:
    data = synthetic_binding_affinities(num_peptides=10)
    model = fit_binding_affinities(data, num_examples=40, seed=1)
    again = fit_binding_affinities(data, num_examples=40, seed=1)
    other = fit_binding_affinities(data, num_examples=40, seed=2)
    assert model.noise_variance == again.noise_variance != other.noise_variance
    kernel = model.kernel
    assert isinstance(kernel, ActionContextKernel) and kernel.combination == "product"
    torch.testing.assert_close(
        kernel.context_kernel.covariance, data.similarity, **tolerance(torch.float64)
    )
    without = fit_binding_affinities(data, num_examples=40, seed=1, by_molecule=False)
    assert isinstance(without.kernel, RBFKernel)
    with pytest.raises(ValueError, match="num_examples must be from 2 to 70"):
        fit_binding_affinities(data, num_examples=71)


def test_a_fitted_model_becomes_a_posterior(sensors) -> None:
    posterior = KernelGP(sensors.kernel, sensors.noise_variance)
    problem = HottestSensor(drawn_temperatures(), sensors.scaling)
    X = torch.cat([problem.domain.points, problem.contexts[:4]], dim=-1)
    posterior.add(X, problem(X))
    mean, std = posterior.mean_and_std(X)
    assert float((mean - problem(X)).abs().max()) < 0.3 and float(std.max()) < 0.5
