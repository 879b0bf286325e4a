"""Batches of points, in BoTorch's optimisers and by their definition."""

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

from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    IntegratedLogEI,
    LowerConfidenceBound,
    MaxVariance,
)
from tests.acquisition.every_function import BOUNDS, CASES, draw, kernel_gp, single_task_gp
from tests.helpers import tolerance

TOL = tolerance(torch.float64)
FEW = {"num_restarts": 2, "raw_samples": 16}
LEVELS = (2.0, 3.0, 5.0)
BRIEF = {"maxiter": 8}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def one_by_one(acqf, X, pending=None):
    """The value of ``q x d`` points by the definition: each with those before it pending."""
    values = []
    for i in range(len(X)):
        before = X[:i] if pending is None else torch.cat([pending, X[:i]])
        acqf.set_X_pending(before if len(before) else None)
        with torch.no_grad():
            values.append(acqf(X[i : i + 1]))
    acqf.set_X_pending(pending)
    total = torch.cat(values)
    return total.logsumexp(0) if acqf._log else total.sum(0)


@pytest.mark.parametrize(("make", "pending"), [(kernel_gp, 2), (single_task_gp, 0)])
def test_a_batch_is_the_sum_of_its_points_one_by_one(case, make, pending):
    told = draw(pending, 7)[0] if pending else None
    acqf, X = case(make(), X_pending=told), draw(12, 3)[0].view(2, 2, 3, 2)
    before = acqf(X[..., :1, :])
    values = acqf(X)
    expected = torch.stack([one_by_one(acqf, points, told) for points in X.flatten(0, 1)])
    assert_close(values, expected.view(2, 2), **TOL)
    assert acqf(X[0, 0]).shape == (1,)
    # What was pending is so again.
    assert_close(acqf(X[..., :1, :]), before, **TOL)
    assert (acqf.X_pending is None) if told is None else torch.equal(acqf.X_pending, told)


def test_gradients_of_a_batch_are_refused(case):
    acqf, X = case(kernel_gp()), draw(3, 3)[0].requires_grad_()
    with pytest.raises(ValueError, match=r"X must have q = 1 .* got q = 3.*sequential=True"):
        acqf(X)
    with pytest.raises(ValueError, match="sequential=True"):
        optimize_acqf(acqf, BOUNDS, q=3, **FEW)


def test_no_points(case):
    acqf = case(kernel_gp())
    assert acqf(torch.empty(0, 1, 2, dtype=torch.float64)).shape == (0,)
    assert acqf(torch.empty(2, 0, 3, 2, dtype=torch.float64)).shape == (2, 0)
    with pytest.raises(ValueError, match="X must have at least one point"):
        acqf(torch.empty(2, 0, 2, dtype=torch.float64))


def test_many_batch_dimensions(case):
    acqf, X = case(kernel_gp()), draw(4, 3)[0]
    assert_close(acqf(X.view(1, 1, 2, 2, 1, 2)).view(-1), acqf(X.view(4, 1, 2)), **TOL)
    assert acqf(X.view(1, 1, 1, 4, 2)).shape == (1, 1, 1)


def chosen(acqf, optimise):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X, values = optimise(acqf)
    assert X.shape == (3, 2)
    assert acqf.X_pending is None
    assert len({tuple(x) for x in X.tolist()}) == 3
    return X, values


def test_mixed(case):
    acqf = case(kernel_gp())
    X, value = chosen(
        acqf,
        lambda acqf: optimize_acqf_mixed(
            acqf, BOUNDS, q=3, fixed_features_list=[{0: v} for v in LEVELS], options=BRIEF, **FEW
        ),
    )
    assert set(X[:, 0].tolist()) <= set(LEVELS)
    assert_close(value, one_by_one(acqf, X).view(1), **TOL)


def test_mixed_alternating(case):
    acqf = case(kernel_gp())
    X, value = chosen(
        acqf,
        lambda acqf: optimize_acqf_mixed_alternating(
            acqf,
            BOUNDS,
            discrete_dims={0: list(LEVELS)},
            q=3,
            options={"maxiter_alternating": 2, "maxiter_continuous": 8},
            **FEW,
        ),
    )
    assert set(X[:, 0].tolist()) <= set(LEVELS)
    assert_close(value, one_by_one(acqf, X).view(1), **TOL)


def test_sequential(case):
    acqf = case(kernel_gp())
    X, values = chosen(
        acqf,
        lambda acqf: optimize_acqf(acqf, BOUNDS, q=3, sequential=True, options=BRIEF, **FEW),
    )
    total = values.logsumexp(0) if acqf._log else values.sum(0)
    assert_close(total, one_by_one(acqf, X), **TOL)


def test_discrete(case):
    acqf, choices = case(kernel_gp()), draw(20, 5)[0]
    X, values = chosen(acqf, lambda acqf: optimize_acqf_discrete(acqf, q=3, choices=choices))
    with torch.no_grad():
        assert int(acqf(choices[:, None]).argmax()) == int((choices == X[0]).all(-1).nonzero())
    total = values.logsumexp(0) if acqf._log else values.sum(0)
    assert_close(total, one_by_one(acqf, X), **TOL)


def test_discrete_local_search(case):
    axis = [torch.tensor(LEVELS).double(), torch.linspace(-3, -1, 4).double()]
    acqf = case(kernel_gp())
    X, value = chosen(
        acqf,
        lambda acqf: optimize_acqf_discrete_local_search(
            acqf, discrete_choices=axis, q=3, num_restarts=2, raw_samples=4
        ),
    )
    assert_close(value, one_by_one(acqf, X).view(1), **TOL)


# --- data that the model is told later -----------------------------------------------------------


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


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (kernel_gp, added),
        (kernel_gp, replaced),
        (single_task_gp, set_anew),
        (plain_gp, fitted),
    ],
)
@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.parametrize("pending", [0, 2])
def test_later_data_count_with_pending_points(case, make, change, pending):
    options = {"X_pending": draw(pending, 7)[0]} if pending else {}
    if "misspecification" in case.options:
        options["misspecification"] = 0.0  # it counts the data that are there at first
    if case.cls is IntegratedLogEI:
        options |= {"best_f": None, "X_baseline": draw(4, 0)[0]}
    model, X = make(), draw(4, 3)[0][:, None]
    acqf = case(model, **options)
    before = acqf(X)
    change(model)
    after = acqf(X)
    assert_close(after, case(model, **options)(X), **TOL)
    if change is not replaced or case.cls is not MaxVariance:
        assert (after - before).abs().max() > 1e-3
    acqf = case(model, **options)
    change(model)
    if pending:  # the setter takes them, too
        acqf.set_X_pending(draw(1, 8)[0])
        options["X_pending"] = draw(1, 8)[0]
    assert_close(acqf(X), case(model, **options)(X), **TOL)


# --- arrays, lists and what is none of them ------------------------------------------------------


def test_arrays_and_lists(case):
    model, P, X = kernel_gp(), draw(2, 7)[0], draw(3, 3)[0][:, None]
    expected = case(model, X_pending=P)(X)
    for pending in (P.numpy(), P.tolist(), tuple(P)):
        acqf = case(model, X_pending=pending)
        for points in (X.numpy(), X.tolist()):
            assert_close(acqf(points), expected, rtol=0, atol=0)
        assert acqf(X.numpy().astype(np.float32)).dtype == X.dtype
    acqf = case(model)
    for none in (None, [], np.zeros((0, 2)), P[:0]):
        acqf.set_X_pending(none)
        assert_close(acqf(X), case(model)(X), rtol=0, atol=0)
    acqf.set_X_pending(P[0].tolist())  # one point
    assert_close(acqf(X), case(model, X_pending=P[:1])(X), rtol=0, atol=0)


NAN = float("nan")


@pytest.mark.parametrize(
    ("pending", "message"),
    [
        ([[2.5, NAN]], "X_pending must be finite"),
        (torch.full((1, 2), torch.inf).double(), "X_pending must be finite"),
        ([[2.5, -2.0, 1.0]], r"X_pending must have 2 columns, got shape \(1, 3\)"),
        ([[[2.5, -2.0]]], r"X_pending must have shape \(n, d\), got \(1, 1, 2\)"),
        (2.5, "X_pending must have"),
        ("none", "X_pending must be a tensor or nested numbers"),
        ([[2.5], [1.0, 2.0]], "X_pending must be a tensor or nested numbers"),
        (torch.zeros(1, 2), "X_pending must be torch.float64 on cpu, got torch.float32"),
    ],
)
def test_bad_pending_points_are_named(case, pending, message):
    model, X = kernel_gp(), draw(3, 3)[0][:, None]
    with pytest.raises(ValueError, match=message):
        case(model, X_pending=pending)
    acqf = case(model, X_pending=draw(1, 7)[0])
    before = acqf(X)
    with pytest.raises(ValueError, match=message):
        acqf.set_X_pending(pending)
    assert_close(acqf(X), before, rtol=0, atol=0)


def test_whole_numbers_in_tensors_are_taken(case):
    acqf, X = case(kernel_gp()), [[[3, -2]], [[4, -1]]]
    assert_close(acqf(torch.tensor(X)), acqf(X), rtol=0, atol=0)
    acqf.set_X_pending(torch.tensor([[3, -2]]))
    assert acqf.X_pending.dtype == torch.float64


def test_the_columns_of_models_with_an_input_transform_are_known(case):
    model = single_task_gp()
    for gp in (model, model.train()):
        with pytest.raises(ValueError, match=r"X must have 2 columns, got shape \(3, 1, 3\)"):
            case(gp)(torch.zeros(3, 1, 3).double())


def test_nan_in_a_batch_is_that_of_the_points(case):
    acqf, X = case(kernel_gp(), X_pending=draw(2, 7)[0]), draw(6, 3)[0].view(2, 3, 2)
    X[1, 0, 1] = NAN
    with pytest.raises(ValueError, match=r"^X must be finite"):
        acqf(X)
    assert len(acqf.X_pending) == 2


@pytest.mark.parametrize("model", [None, "a", 2.0])
def test_what_is_no_model_is_named(case, model):
    with pytest.raises(ValueError, match=r"models? must be .*BoTorch model"):
        case(model)


def test_bad_points_are_named(case):
    acqf = case(kernel_gp())
    for points, message in (
        (torch.zeros(3, 1, 2), "X must be torch.float64 on cpu, got torch.float32"),
        (torch.zeros(3, 1, 3).double(), r"X must have 2 columns, got shape \(3, 1, 3\)"),
        ("here", "X must be a tensor or nested numbers"),
        ([2.0, -1.0], "at least 2 dimensions"),
    ):
        with pytest.raises(ValueError, match=message):
            acqf(points)


@pytest.mark.parametrize("bad", [-2, -0.5, "2", True, NAN, float("inf"), None])
def test_bad_numbers_are_named(case, bad):
    model = kernel_gp()
    for name in ("width", "misspecification", "radius"):
        if name in case.options:
            with pytest.raises(ValueError, match=f"{name} must be"):
                case(model, **{name: bad})
    if case.can_minimise and bad is not True:
        with pytest.raises(ValueError, match="maximize must be True or False"):
            case(model, maximize=bad)
    if "best_f" in case.options and (bad is True or bad in ("2", NAN, float("inf"))):
        with pytest.raises(ValueError, match="best_f must be"):
            case(model, best_f=bad)
    for values in (torch.tensor([1.0, NAN]), np.array([1.0, -1.0]), torch.tensor(True)):
        if "width" in case.options:
            with pytest.raises(ValueError, match="width must"):
                case(kernel_gp(lengthscales=(0.5, 1.0)), width=values)


@pytest.mark.parametrize("cls", [EnlargedUpperConfidenceBound, LowerConfidenceBound])
def test_widths_that_do_not_fit_the_batch_shape_and_lists_of_models_are_named(cls):
    with pytest.raises(ValueError, match=r"width must be one number or broadcast .* \(\), got"):
        cls(kernel_gp(), [1, 2])
    with pytest.raises(ValueError, match=r"width must be one number or broadcast .* \(2,\), got"):
        cls(kernel_gp(lengthscales=(0.5, 1.0)), torch.ones(3))
    with pytest.raises(ValueError, match="model must be a BoTorch model"):
        cls([kernel_gp()], 2.0)
    assert cls(kernel_gp(lengthscales=(0.5, 1.0)), [1, 2]).width.shape == (2,)
