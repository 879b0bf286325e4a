"""What BoTorch's own tests ask of acquisition functions and models (``test/acquisition/harness``
there), asked of ours: they take pending points and batches, and a `KernelGP` is not trained."""

from copy import deepcopy

import pytest
import torch
from botorch.acquisition import (
    AnalyticAcquisitionFunction,
    LogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import IdentityMCObjective, ScalarizedPosteriorTransform
from botorch.exceptions import BotorchWarning, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.testing import MockModel, MockPosterior
from torch.testing import assert_close

from botorch_ext import KernelGP
from tests.acquisition.every_function import BOUNDS, CASES, draw, kernel_gp, single_task_gp
from tests.helpers import drawn

EVERY = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def points(*shape):
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * drawn(*shape, 2, seed=1)


@EVERY
@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_dtype_and_output_shapes(case):
    for dtype in (torch.float, torch.double):
        acqf = case(single_task_gp(dtype=dtype))
        assert isinstance(acqf, AnalyticAcquisitionFunction)
        assert acqf(points(4, 1).to(dtype)).dtype == dtype
    acqf = case(single_task_gp(yvar=torch.full((8, 1), 0.25).double()))
    for shape in ((1,), (5, 3, 1), (2, 1, 3, 1), (3,), (2, 3), (0, 1)):
        assert acqf(points(*shape)).shape == torch.Size(shape[:-1] or (1,))
    X = points(4, 1)
    assert_close(acqf(X.view(1, 2, 2, 1, 2)).view(4), acqf(X))


@EVERY
def test_posterior_transforms(case):
    with pytest.raises((UnsupportedError, ValueError), match=r"posterior.transform"):
        case(SingleTaskGP(drawn(5, 2), drawn(5, 2, seed=2)))
    with pytest.raises(UnsupportedError, match="only support PosteriorTransforms"):
        case(single_task_gp(), posterior_transform=IdentityMCObjective())
    if case.can_minimise:
        turn = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
        best, least = ({"best_f": v} if "best_f" in case.options else {} for v in (-0.3, 0.3))
        turned = case(single_task_gp(), posterior_transform=turn, **best)(points(4, 1))
        expected = case(single_task_gp(), maximize=False, **least)(points(4, 1))
        assert_close(turned, expected, rtol=1e-5, atol=1e-6)


@EVERY
def test_pending_points_are_copied_and_copies_go_their_own_way(case):
    acqf, X, P = case(single_task_gp()), points(4, 1).requires_grad_(), points(2)
    before = acqf(X)
    (gradient,) = torch.autograd.grad(before.sum(), X)
    assert bool(gradient.isfinite().all()) and bool(gradient.any())
    with pytest.warns(BotorchWarning, match="Pending points require a gradient"):
        acqf.set_X_pending(P.requires_grad_())
    assert torch.equal(acqf.X_pending, P)
    assert acqf.X_pending is not P and not acqf.X_pending.requires_grad
    assert not torch.allclose(acqf(X), before)
    copy, other = deepcopy(acqf), case(single_task_gp(), X_pending=points(2))
    other.load_state_dict(acqf.state_dict())
    for same in (copy, other):
        assert_close(same(X), acqf(X))
    copy.set_X_pending(None)
    assert copy.X_pending is None
    assert_close(copy(X), before)
    assert not torch.allclose(copy(X), acqf(X))


@EVERY
def test_models_of_given_posteriors_and_arguments_of_ax_are_taken(case):
    turn = ScalarizedPosteriorTransform(torch.tensor([1.0]).double())
    more = {"posterior_transform": turn, "X_pending": points(2)}
    options = {**case.options, **more}
    if "bounds" in options:
        options["bounds"] = BOUNDS.T.tolist()
    constructor = get_acqf_input_constructor(case.cls)
    acqf = case.cls(**constructor(model=single_task_gp(), training_data=None, **options))
    assert acqf.posterior_transform is turn
    assert_close(acqf(points(4, 1)), case(single_task_gp(), **more)(points(4, 1)))
    if case.cls.__name__ != "StableUCB":  # it looks at many points in one call
        mean, variance = torch.full((1, 1), 1.25).double(), torch.full((1, 1), 2.25).double()
        plain = {"misspecification": 0.0} if "misspecification" in case.options else {}
        acqf = case(MockModel(MockPosterior(mean=mean, variance=variance)), **plain)
        assert acqf(points(1)).numel() == 1
        with pytest.raises(ValueError, match="X_pending must be None for a model"):
            acqf.set_X_pending(points(1))


def test_a_kernel_gp_has_noise_transforms_and_one_output_as_a_model_has():
    model, X = kernel_gp(), points(2, 3)
    plain, noisy = model.posterior(X), model.posterior(X, observation_noise=True)
    assert_close(noisy.variance, plain.variance + model.noise_variance)
    given = model.posterior(X, observation_noise=torch.full((2, 3, 1), 0.5).double())
    assert_close(given.variance, plain.variance + 0.5)
    turn = ScalarizedPosteriorTransform(torch.tensor([-2.0]).double(), offset=1.0)
    turned = model.posterior(X, posterior_transform=turn)
    assert_close(turned.mean, 1 - 2 * plain.mean)
    assert_close(turned.variance, 4 * plain.variance)
    for same in (noisy, model.subset_output([0]).posterior(X), model.posterior(X, [0])):
        assert_close(same.mean, plain.mean)
    with pytest.raises(ValueError, match="idcs"):
        model.subset_output([1])
    with pytest.raises(ValueError, match="output_indices"):
        model.posterior(X, output_indices=[1])


def test_improvements_of_botorch_are_those_of_a_single_task_gp():
    gp, X, Z = single_task_gp(), draw(8, 0)[0], draw(9, 1)[0].view(3, 3, 2)

    def improvements(model):
        yield LogExpectedImprovement(model, best_f=0.5)(Z.view(9, 1, 2))
        sampler = SobolQMCNormalSampler(torch.Size([32]), seed=0)
        for pending in (None, draw(2, 5)[0]):
            more = {"sampler": sampler, "X_pending": pending, "cache_root": False}
            yield qLogNoisyExpectedImprovement(model, X, **more)(Z)

    pairs = zip(improvements(KernelGP.from_botorch(gp)), improvements(gp), strict=True)
    for ours, theirs in pairs:
        assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
