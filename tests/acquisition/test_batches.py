"""Batches by their definition and in BoTorch's optimisers, pending points, and later data."""

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import (
    optimize_acqf,
    optimize_acqf_discrete,
    optimize_acqf_discrete_local_search,
    optimize_acqf_mixed,
    optimize_acqf_mixed_alternating,
)
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.testing import assert_close

from botorch_ext.acquisition import IntegratedLogEI
from tests.acquisition.every_function import BOUNDS, CASES, batched, draw, kernel_gp, single_task_gp
from tests.helpers import pairwise, tolerance

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


def test_batches_are_refused_where_gradients_are_needed_before_raw_samples(case):
    acqf = case(kernel_gp())
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
def test_later_data_count_with_pending_points(name, model, pending):
    case, (make, change) = CASES[name], model
    options = {"X_pending": draw(pending, 7)[0]} if pending else {}
    if "misspecification" in case.options:
        options["misspecification"] = 0.0  # it counts the data that are there at first
    if case.cls is IntegratedLogEI:
        options |= {"best_f": None, "X_baseline": draw(4, 0)[0]}
    model, X = make(), draw(4, 3)[0][:, None]
    acqf, other = case(model, **options), case(model, **options)
    before = acqf(X)
    change(model)
    after = acqf(X)
    assert_close(after, case(model, **options)(X), **TOL)
    if change is not replaced or name != "MaxVariance":
        assert (after - before).abs().max() > 1e-3
    if pending:  # the setter takes them, too
        other.set_X_pending(draw(1, 8)[0])
        options["X_pending"] = draw(1, 8)[0]
    assert_close(other(X), case(model, **options)(X), **TOL)


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
