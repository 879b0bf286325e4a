"""Batches and pending points by their definition, in BoTorch's optimisers and with later data; what
BoTorch's own tests ask of acquisition functions and models (``test/acquisition/harness``)."""

import itertools
from copy import deepcopy

import numpy as np
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
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import (
    optimize_acqf,
    optimize_acqf_discrete,
    optimize_acqf_discrete_local_search,
    optimize_acqf_mixed,
    optimize_acqf_mixed_alternating,
)
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.testing import MockModel, MockPosterior
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.acquisition import IntegratedLogEI
from tests.acquisition.every_function import (
    BOUNDS,
    CASES,
    batched,
    draw,
    ensemble,
    kernel_gp,
    of_many_forms,
    single_task_gp,
)
from tests.helpers import drawn, pairwise, tolerance

TOL = tolerance(torch.float64)
BITS = {"rtol": 0.0, "atol": 0.0}
FEW = {"num_restarts": 2, "raw_samples": 16}
LEVELS = (2.0, 3.0, 5.0)
NAN = float("nan")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def total(acqf, values):
    return values.logsumexp(0) if acqf._log else values.sum(0)


def one_by_one(acqf, X, pending=None):
    """The value of ``q x d`` points by the definition: each with those before it pending."""
    values = []
    for i in range(len(X)):
        before = X[:i] if pending is None else torch.cat([pending, X[:i]])
        acqf.set_X_pending(before if len(before) else None)
        with torch.no_grad():
            values.append(acqf(X[i : i + 1]))
    acqf.set_X_pending(pending)
    return total(acqf, torch.cat(values))


@pytest.mark.parametrize(("make", "pending"), [(kernel_gp, 2), (single_task_gp, 0)])
def test_a_batch_is_the_sum_of_its_points_one_by_one(case, make, pending):
    told = draw(pending, 7)[0] if pending else None
    acqf, X = case(make(), X_pending=told), draw(6, 3)[0].view(2, 1, 3, 2)
    before, values = acqf(X[..., :1, :]), acqf(X)
    expected = torch.stack([one_by_one(acqf, points, told) for points in X.flatten(0, 1)])
    assert_close(values, expected.view(2, 1), **TOL)
    # What was pending is so again.
    assert_close(acqf(X[..., :1, :]), before, **TOL)
    assert (acqf.X_pending is None) if told is None else torch.equal(acqf.X_pending, told)
    assert acqf(X[:, :0]).shape == (2, 0)
    X[1, 0, 1, 1] = NAN
    with pytest.raises(ValueError, match=r"^X must be finite"):
        acqf(X)
    assert (acqf.X_pending is None) == (told is None)


FORMS = {"one": kernel_gp, "BoTorch's": single_task_gp, "ensemble": ensemble, "all": of_many_forms}
OF_ONE = ("EnlargedUpperConfidenceBound", "LowerConfidenceBound", "MaxVariance")
OF_SEVERAL = ("OptimisticModelUCB", "ExpectedUCB", "IntegratedLogEI")
IN_TURN = [
    *itertools.product((*OF_ONE, *OF_SEVERAL), ("one", "BoTorch's")),
    *((name, "ensemble") for name in OF_SEVERAL),
    *((name, "all") for name in OF_SEVERAL if name != "ExpectedUCB"),  # of equal models alone
]


@pytest.mark.parametrize(("name", "form"), IN_TURN)
def test_gradients_of_batches_are_those_of_differences(name, form):
    acqf, X = CASES[name](FORMS[form](), X_pending=draw(1, 7)[0]), draw(6, 3)[0].view(2, 3, 2)
    expected = torch.stack([one_by_one(acqf, points, draw(1, 7)[0]) for points in X])
    assert_close(acqf(X), expected, **TOL)
    assert torch.autograd.gradcheck(acqf, (X.requires_grad_(),))


def test_points_that_are_chosen_together_are_at_least_as_good_as_one_by_one():
    acqf = CASES["EnlargedUpperConfidenceBound"](kernel_gp())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        together, value = optimize_acqf(acqf, BOUNDS, q=3, num_restarts=4, raw_samples=64)
        one_after_another, _ = optimize_acqf(
            acqf, BOUNDS, q=3, num_restarts=4, raw_samples=64, sequential=True
        )
    assert_close(value, one_by_one(acqf, together), **TOL)
    assert value > one_by_one(acqf, one_after_another) - 1e-6


def test_batches_are_refused_where_gradients_cannot_be_had_before_raw_samples():
    acqf = CASES["StableUCB"](kernel_gp())
    with pytest.raises(ValueError, match=r"\bX\b.*sequential=True"):
        acqf(draw(3, 3)[0].requires_grad_())
    counted = []
    acqf._values = lambda X: counted.append(len(X))
    with pytest.raises(ValueError, match="sequential=True"):
        optimize_acqf(acqf, BOUNDS, q=3, **FEW)
    assert not counted


def mixed(acqf):
    levels = [{0: level} for level in LEVELS]
    options = {"maxiter": 8}
    return optimize_acqf_mixed(
        acqf, BOUNDS, q=3, fixed_features_list=levels, options=options, **FEW
    )


def mixed_alternating(acqf):
    few = {"maxiter_alternating": 2, "maxiter_continuous": 8}
    return optimize_acqf_mixed_alternating(
        acqf, BOUNDS, discrete_dims={0: list(LEVELS)}, q=3, options=few, **FEW
    )


def discrete_local_search(acqf):
    axes = [torch.tensor(LEVELS).double(), torch.linspace(-3, -1, 4).double()]
    few = {"num_restarts": 2, "raw_samples": 4}
    return optimize_acqf_discrete_local_search(acqf, discrete_choices=axes, q=3, **few)


def discrete(acqf):
    return optimize_acqf_discrete(acqf, q=3, choices=draw(20, 5)[0])


def sequential(acqf):
    return optimize_acqf(acqf, BOUNDS, 3, sequential=True, options={"maxiter": 8}, **FEW)


# One whose values are added, and one whose values are logarithms.
@pytest.mark.parametrize("name", ["MaxVariance", "IntegratedLogEI"])
@pytest.mark.parametrize(
    "optimise", [mixed, mixed_alternating, discrete_local_search, discrete, sequential]
)
def test_optimisers_find_three_points_and_say_their_joint_value(name, optimise):
    acqf = CASES[name](kernel_gp())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X, values = optimise(acqf)
    assert len({tuple(x) for x in X.tolist()}) == len(X) == 3
    assert acqf.X_pending is None
    # Some say one value for all, others one for each.
    value = total(acqf, values) if len(values.reshape(-1)) == 3 else values.reshape(())
    assert_close(value, one_by_one(acqf, X), **TOL)
    if optimise not in (discrete, sequential):
        assert set(X[:, 0].tolist()) <= set(LEVELS)


def replaced(model):
    model.set_targets([1, 5], torch.tensor([2.0, -1.0], dtype=torch.float64))


def added(model):
    model.add(draw(3, 11)[0], 1.0 + draw(3, 11)[1])


def set_anew(model):
    X, y = draw(12, 11)
    model.set_train_data(X, model.outcome_transform(y[:, None])[0].squeeze(-1), strict=False)


def plain_gp():
    """A SingleTaskGP whose training inputs stay the same tensor while it is fitted."""
    X, y = draw(8, 0)
    return SingleTaskGP(X, y[:, None], outcome_transform=None)


def fitted(model):
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))


CHANGES = [
    (kernel_gp, added),
    (kernel_gp, replaced),
    (single_task_gp, set_anew),
    (plain_gp, fitted),
]


@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
@pairwise(name=CASES, model=CHANGES, pending=[0, 2])
def test_later_data_count_once_pending_points_are_set_again(name, model, pending):
    case, (make, change) = CASES[name], model
    options = {"X_pending": draw(pending, 7)[0]} if pending else {}
    if "misspecification" in case.options:
        options["misspecification"] = 0.0  # it counts the data that are there at first
    if case.cls is IntegratedLogEI:
        options |= {"best_f": None, "X_baseline": draw(4, 0)[0]}
    model, X = make(), draw(4, 3)[0][:, None]
    acqf = case(model, **options)
    before = acqf(X)
    change(model)
    acqf.set_X_pending(acqf.X_pending)
    after = acqf(X)
    assert_close(after, case(model, **options)(X), **TOL)
    if change is not replaced or name != "MaxVariance":
        assert (after - before).abs().max() > 1e-3


def test_arrays_and_lists(case):
    model, P, X = kernel_gp(), draw(2, 7)[0], draw(3, 3)[0][:, None]
    expected = case(model, X_pending=P)(X)
    for pending in (P.numpy(), P.tolist(), tuple(P)):
        acqf = case(model, X_pending=pending)
        for points in (X.numpy(), X.tolist()):
            assert_close(acqf(points), expected, **BITS)
        assert acqf(X.numpy().astype(np.float32)).dtype == X.dtype
    acqf = case(model)
    for none in (None, [], np.zeros((0, 2)), P[:0]):
        acqf.set_X_pending(none)
        assert_close(acqf(X), case(model)(X), **BITS)
    acqf.set_X_pending(P[0].tolist())  # one point
    assert_close(acqf(X), case(model, X_pending=P[:1])(X), **BITS)


def test_bad_points_and_numbers_are_named_and_change_nothing(case):
    acqf, X = case(kernel_gp(), X_pending=draw(1, 7)[0]), draw(3, 3)[0][:, None]
    before = acqf(X)
    for points in (torch.zeros(3, 1, 2), torch.zeros(2, 0, 2).double(), "here", [2.0, -1.0]):
        with pytest.raises(ValueError, match=r"\bX\b"):
            acqf(points)
    for pending in ([[2.5, NAN]], [[[2.5, -2.0]]], 2.5):
        with pytest.raises(ValueError, match="X_pending"):
            acqf.set_X_pending(pending)
    assert_close(acqf(X), before, **BITS)
    if "best_f" in case.options:
        for bad in (True, "2", NAN):
            with pytest.raises(ValueError, match="best_f"):
                case(kernel_gp(), best_f=bad)
    if "width" in case.options:
        for values in (torch.tensor([1.0, NAN, 1.0]), np.array([1.0, -1.0, 1.0])):
            with pytest.raises(ValueError, match="width must"):
                case(batched(), width=values)


def points(*shape):
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * drawn(*shape, 2, seed=1)


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
            more["prune_baseline"] = False  # which draws at random
            yield qLogNoisyExpectedImprovement(model, X, **more)(Z)

    pairs = zip(improvements(KernelGP.from_botorch(gp)), improvements(gp), strict=True)
    for ours, theirs in pairs:
        assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
