import pytest
import torch
from botorch.acquisition import PosteriorStandardDeviation
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim import optimize_acqf
from botorch.utils.datasets import SupervisedDataset
from torch.testing import assert_close

from botorch_ext import KernelGP, plan
from botorch_ext.acquisition import MaxVariance
from botorch_ext.domains import Box
from tests.acquisition.test_confidence_bound import BOUNDS, NOISE, draw, fitted_gp, kernel_gp
from tests.helpers import tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

TOL = tolerance(torch.float64)


@pytest.mark.parametrize("make", [fitted_gp, lambda: kernel_gp()[0]])
def test_without_pending_points_it_is_the_posterior_standard_deviation(make):
    model, (Z, _) = make(), draw(30, 1)
    Z = Z.reshape(5, 6, 1, 2)
    ours, theirs = (acqf(model)(Z) for acqf in (MaxVariance, PosteriorStandardDeviation))
    assert ours.shape == (5, 6)
    assert_close(ours, theirs, **TOL)


def test_pending_points_count_as_seen():
    model, k = kernel_gp()
    (X, _), (pending, _), (Z, _) = draw(20, 0), draw(4, 3), draw(30, 1)
    acqf = MaxVariance(model, X_pending=pending)
    seen = torch.cat([X, pending])
    covariance = dense_posterior(k, seen, X.new_zeros(24), Z, NOISE)[1]
    assert_close(acqf(Z[:, None]), covariance.diagonal().sqrt(), **TOL)
    # They are replaced, not added to; and the model of the caller stays as it is.
    acqf.set_X_pending(None)
    assert_close(acqf(Z[:, None]), MaxVariance(model)(Z[:, None]), **TOL)
    assert model.num_observations == 20


def test_gradients():
    acqf, (Z, _) = MaxVariance(kernel_gp()[0], X_pending=draw(2, 4)[0]), draw(5, 1)
    assert torch.autograd.gradcheck(acqf, Z[:, None].requires_grad_())


def test_input_constructor():
    gp = fitted_gp()
    X, y = draw(20, 0)
    dataset = SupervisedDataset(X, y[:, None], feature_names=["a", "b"], outcome_names=["y"])
    construct = get_acqf_input_constructor(MaxVariance)
    pending, (Z, _) = draw(2, 3)[0], draw(10, 1)
    arguments = construct(gp, training_data=dataset, X_pending=pending)
    expected = MaxVariance(gp, X_pending=pending)(Z[:, None])
    assert_close(MaxVariance(**arguments)(Z[:, None]), expected, **TOL)


@pytest.mark.parametrize("frozen", [False, True], ids=["SingleTaskGP", "KernelGP"])
def test_a_sequential_batch_of_optimize_acqf_is_a_plan(frozen):
    gp = fitted_gp(6)
    model = KernelGP.from_botorch(gp)
    acqf = MaxVariance(model if frozen else gp)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X, _ = optimize_acqf(acqf, BOUNDS, q=3, num_restarts=6, raw_samples=128, sequential=True)
    # The points differ: one hallucinates the others. Their gain is that of a planned batch.
    start = model.train_inputs[0]
    seen = torch.cat([start, model.transform_inputs(X)])
    noise = model.noise_variance.item()
    gain = dense_information_gain(model.kernel, seen, noise) - dense_information_gain(
        model.kernel, start, noise
    )
    assert gain == pytest.approx(plan(Box(BOUNDS), model, 3).information_gain, rel=0.01)
    assert acqf.X_pending is None
