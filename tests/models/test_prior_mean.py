import copy

import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.models import FinitePosterior, KernelGP


def constant_mean(value):
    mean = ConstantMean()
    mean.constant.data.fill_(value)
    return mean


DOMAINS = {
    "box": bx.Box([[2.0, 2.0], [5.0, 5.0]]),
    "finite": bx.FiniteSet([[2.0, 3.0], [4.0, 5.0], [3.0, 3.0]]),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_a_gpytorch_mean_is_frozen(name):
    mean = constant_mean(0.5)
    strategy = bx.algorithms.gp_ucb(
        DOMAINS[name], RBFKernel().double(), noise_variance=0.01, width=2.0, mean=mean
    )
    for value in (1.0, -1.0):
        strategy.tell(strategy.ask().id, value)
    fork = copy.deepcopy(strategy)
    assert_close(fork.ask().x, strategy.ask().x)
    assert strategy.report()["best"]["mean"] == strategy.best()[1]
    assert mean.constant.requires_grad


def test_the_mean_is_a_copy_of_the_right_dtype():
    mean = constant_mean(0.5)
    X = DOMAINS["box"].sample(4, 0)
    finite = FinitePosterior(RBFKernel(), X, 0.01, mean=mean)
    model = KernelGP(RBFKernel(), 0.01, mean=mean)
    mean.constant.data.fill_(7.0)
    Y = torch.linspace(-1.0, 1.0, 4, dtype=torch.float64)
    for posterior in (finite, model):
        posterior.add(X, Y)
    assert_close(model.train_targets.numpy(), Y.numpy())
    assert_close(finite.mean, model.mean_and_std(X)[0])
    fresh = KernelGP(RBFKernel(), 0.01, mean=constant_mean(0.5))
    fresh.add(X, Y)
    assert_close(finite.mean, fresh.mean_and_std(X)[0])
