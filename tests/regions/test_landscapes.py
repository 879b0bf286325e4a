"""The variance and constraints as one batch against each for itself."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from botorch_ext import KernelGP, Region
from botorch_ext.regions.conditional_variance import ConditionalVariance
from botorch_ext.regions.constraints import Constraint
from botorch_ext.regions.landscapes import Apart, Together, landscape
from tests.helpers import tolerance
from tests.regions.shared import BOX, NOISE, data, known

NUM_MORE = 7


def rbf():
    k = RBFKernel(ard_num_dims=2).double()
    k.lengthscale = torch.tensor([0.7, 0.5], dtype=torch.float64)
    return k


def of_sums():
    scaled = ScaleKernel(MaternKernel(active_dims=(1,))).double()
    scaled.outputscale = 2.3
    return rbf() + scaled


KERNELS = {
    "rbf": rbf,
    "matern": lambda: MaternKernel().double(),
    "scaled": lambda: ScaleKernel(rbf()).double(),
    "sum": of_sums,
}


def model_of(kernel, seed, num):
    model = KernelGP(kernel, NOISE)
    if num:
        model.add(*data(seed, num))
    return model


def setting(kernels, sizes, num):
    """A region of constraints with so many observations, and the variance given more points."""
    numbers = [(1.5, 0.1, -2.0), (0.7, 0.0, -1.9), (0.0, 0.2, -2.1)]
    constraints = [
        Constraint(model_of(k, seed, n), *rest)
        for seed, (k, n, rest) in enumerate(zip(kernels[1:], sizes, numbers, strict=False))
    ]
    region = Region(BOX, tuple(constraints))
    variances = ConditionalVariance(model_of(kernels[0], 9, num), BOX, NUM_MORE)
    return region, variances


@pytest.mark.parametrize(
    "sizes", [(4,), (30, 3), (12, 20, 40)]
)  # fewer and more than there will be
@pytest.mark.parametrize("num", [0, 9])
@pytest.mark.parametrize("name", KERNELS)
def test_one_batch_is_each_for_itself(name, num, sizes):
    kernels = [KERNELS[name]() for _ in range(1 + len(sizes))]
    region, variances = setting(kernels, sizes, num)
    X = BOX.sample(50, seed=4)
    together = landscape(region, variances)
    assert isinstance(together, Together) and together.is_recordable
    apart_region, apart_variances = setting(kernels, sizes, num)
    apart = Apart(apart_region, apart_variances)
    for more in range(3):  # what is added, both see
        for variance in (variances, apart_variances):
            variance.add(X[more : more + 1])
        for one, other in zip(together.models(X), apart.models(X), strict=True):
            assert_close(one, other, **tolerance(X.dtype))
        (variance, inside, columns), expected = together.look(X), apart.look(X)
        assert_close(variance, expected[0], **tolerance(X.dtype))
        assert_close(inside, expected[1])
        assert_close(columns, expected[2], **tolerance(X.dtype))
        assert inside is not None and 0 < int(inside.sum()) < len(X)


def test_a_batch_takes_one_kernel_and_known_gradients():
    other = rbf()
    other.lengthscale = torch.tensor([0.7, 0.5001], dtype=torch.float64)
    for kernels in ([other, rbf(), rbf()], [rbf(), rbf(), other]):
        land = landscape(*setting(kernels, (5, 6), 9))
        assert isinstance(land, Apart) and land.is_recordable
    _, variances = setting([rbf()], (), 9)
    land = landscape(Region(BOX, (known(lambda X: X[..., 0] - 2.2),)), variances)
    assert isinstance(land, Apart) and not land.is_recordable
    assert isinstance(landscape(Region(BOX), variances), Apart)
