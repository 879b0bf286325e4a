import math

import pytest
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.problems import RKHSFunction
from tests.helpers import tolerance

BOX = Box([[2.0, -7.0], [5.0, -6.2]])
CLOSE = tolerance(torch.float64)
LENGTHSCALES = (0.7, 0.3)


def rbf() -> Kernel:
    kernel = RBFKernel(ard_num_dims=2).to(torch.float64)
    kernel.lengthscale = torch.tensor(LENGTHSCALES, dtype=torch.float64)
    return kernel


def matern(nu: float) -> Kernel:
    kernel = MaternKernel(nu=nu, ard_num_dims=2).to(torch.float64)
    kernel.lengthscale = torch.tensor(LENGTHSCALES, dtype=torch.float64)
    return kernel


def rbf_value(x: Tensor, y: Tensor) -> float:
    squared = sum(((x[j] - y[j]).item() / LENGTHSCALES[j]) ** 2 for j in range(2))
    return math.exp(-0.5 * squared)


def grid_over(box: Box, num: int) -> Tensor:
    sides = [torch.linspace(*side, num, dtype=box.dtype) for side in box.bounds.T.tolist()]
    return torch.cartesian_prod(*sides)


def test_value_and_norm_are_their_definitions_written_as_loops() -> None:
    centers = BOX.sample(7, seed=1)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0, 0.1, 2.0], dtype=torch.float64)
    f = RKHSFunction(rbf(), centers, weights, BOX, noise_std=0.3)
    norm = math.sqrt(
        sum(
            weights[i].item() * weights[j].item() * rbf_value(centers[i], centers[j])
            for i in range(7)
            for j in range(7)
        )
    )
    assert f.norm == pytest.approx(norm, rel=1e-12)
    X = BOX.sample(5, seed=2)
    expected = [sum(weights[i].item() * rbf_value(centers[i], x) for i in range(7)) for x in X]
    torch.testing.assert_close(f(X), torch.tensor(expected, dtype=torch.float64), **CLOSE)
    torch.testing.assert_close(f(X[2]), f(X)[2], **CLOSE)
    assert f(X[2]).shape == ()
    assert f(X[2].tolist()).shape == ()
    assert f(X.tolist()).shape == (5,)
    assert f.noise_std == 0.3


def test_a_repeated_center_counts_once_with_the_sum_of_its_weights() -> None:
    twice = RKHSFunction(rbf(), [[3.0, -6.5], [3.0, -6.5]], [1.0, 0.5], BOX)
    assert twice.norm == pytest.approx(1.5, rel=1e-12)


@pytest.mark.parametrize("kernel", [rbf(), matern(0.5), matern(1.5), ScaleKernel(matern(2.5))])
@pytest.mark.parametrize("norm", [0.5, 3.0])
def test_random_functions_have_exactly_the_norm(kernel: Kernel, norm: float) -> None:
    f = RKHSFunction.random(BOX, kernel, norm, num_centers=30, seed=4)
    assert f.norm == pytest.approx(norm, rel=1e-12)
    K = kernel.to(torch.float64)(f.centers, f.centers).to_dense().detach()
    assert float(f.weights @ K @ f.weights) == pytest.approx(norm**2, rel=1e-9)
    assert bool(BOX.contains(f.centers).all())


@pytest.mark.parametrize("kernel", [rbf(), matern(0.5), matern(1.5), matern(2.5)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_maximum_on_a_box_beats_a_grid_and_a_finer_local_search(
    kernel: Kernel, seed: int
) -> None:
    f = RKHSFunction.random(BOX, kernel, 2.0, seed=seed)
    assert bool(BOX.contains(f.optimizer))
    assert f.optimal_value == float(f(f.optimizer))
    assert f.optimal_value >= float(f(grid_over(BOX, 200)).max())
    # Ever finer grids around the best of a coarse one: no gradients involved.
    center = grid_over(BOX, 200)[f(grid_over(BOX, 200)).argmax()]
    reach = (BOX.upper - BOX.lower) / 100
    for _ in range(25):
        lower = torch.maximum(center - reach, BOX.lower)
        upper = torch.minimum(center + reach, BOX.upper)
        fine = lower + torch.cartesian_prod(*[torch.linspace(0, 1, 21).double()] * 2) * (
            upper - lower
        )
        center = fine[f(fine).argmax()]
        reach = reach / 2
    # GPyTorch's distances carry rounding errors that a cusp (nu = 1/2) magnifies to 1e-8.
    slack = 1e-8 if getattr(kernel, "nu", None) == 0.5 else 1e-9
    assert f.optimal_value >= float(f(center)) - slack
    assert f.optimal_value == pytest.approx(float(f(center)), abs=1e-6)


def test_the_maximum_on_a_finite_set_is_that_of_its_rows() -> None:
    points = FiniteSet(BOX.sample(300, seed=9))
    f = RKHSFunction.random(points, rbf(), 2.0, seed=3)
    values = [float(f(x)) for x in points.points]
    assert f.optimal_value == pytest.approx(max(values), rel=1e-12)
    assert torch.equal(f.optimizer, points.points[values.index(max(values))])
    assert bool(points.contains(f.centers).all())


def test_gradients_agree_with_differences() -> None:
    f = RKHSFunction.random(BOX, rbf(), 2.0, seed=3)
    X = BOX.sample(4, seed=1).requires_grad_(True)
    assert torch.autograd.gradcheck(f, (X,))


def test_a_later_change_of_the_kernel_does_not_reach_the_function() -> None:
    kernel = rbf()
    f = RKHSFunction(kernel, [[3.0, -6.5]], [1.0], BOX)
    before = f([4.0, -6.4])
    kernel.lengthscale = 10.0
    assert float(f([4.0, -6.4])) == float(before)
    assert kernel.raw_lengthscale.requires_grad
    assert not before.requires_grad
