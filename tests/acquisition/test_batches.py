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
)
from tests.acquisition.every_function import BOUNDS, CASES, draw, kernel_gp, single_task_gp
from tests.helpers import pairwise, tolerance

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
    acqf, X = case(make(), X_pending=told), draw(6, 3)[0].view(2, 1, 3, 2)
    before = acqf(X[..., :1, :])
    values = acqf(X)
    expected = torch.stack([one_by_one(acqf, points, told) for points in X.flatten(0, 1)])
    assert_close(values, expected.view(2, 1), **TOL)
    assert acqf(X[0, 0]).shape == (1,)
    # What was pending is so again.
    assert_close(acqf(X[..., :1, :]), before, **TOL)
    assert (acqf.X_pending is None) if told is None else torch.equal(acqf.X_pending, told)


def test_batches_are_refused_where_gradients_are_needed_before_raw_samples(case):
    acqf, X = case(kernel_gp()), draw(3, 3)[0].requires_grad_()
    with pytest.raises(ValueError, match=r"\bX\b.*sequential=True"):
        acqf(X)
    counted = []
    acqf._values = lambda X: counted.append(len(X))
    with pytest.raises(ValueError, match="sequential=True"):
        optimize_acqf(acqf, BOUNDS, q=3, **FEW)
    assert not counted


def test_no_points_and_many_batch_dimensions(case):
    acqf, X = case(kernel_gp()), draw(4, 3)[0]
    assert acqf(torch.empty(0, 1, 2, dtype=torch.float64)).shape == (0,)
    assert acqf(torch.empty(2, 0, 3, 2, dtype=torch.float64)).shape == (2, 0)
    with pytest.raises(ValueError, match="X"):
        acqf(torch.empty(2, 0, 2, dtype=torch.float64))
    assert_close(acqf(X.view(1, 1, 2, 2, 1, 2)).view(-1), acqf(X.view(4, 1, 2)), **TOL)


def chosen(acqf, optimise):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X, values = optimise(acqf)
    assert X.shape == (3, 2)
    assert acqf.X_pending is None
    assert len({tuple(x) for x in X.tolist()}) == 3
    return X, values


def mixed(acqf):
    return optimize_acqf_mixed(
        acqf, BOUNDS, q=3, fixed_features_list=[{0: v} for v in LEVELS], options=BRIEF, **FEW
    )


def mixed_alternating(acqf):
    few = {"maxiter_alternating": 2, "maxiter_continuous": 8}
    return optimize_acqf_mixed_alternating(
        acqf, BOUNDS, discrete_dims={0: list(LEVELS)}, q=3, options=few, **FEW
    )


def discrete_local_search(acqf):
    axes = [torch.tensor(LEVELS).double(), torch.linspace(-3, -1, 4).double()]
    return optimize_acqf_discrete_local_search(
        acqf, discrete_choices=axes, q=3, num_restarts=2, raw_samples=4
    )


# One whose values are added, and one whose values are logarithms.
@pytest.mark.parametrize("name", ["MaxVariance", "IntegratedLogEI"])
@pytest.mark.parametrize("optimise", [mixed, mixed_alternating, discrete_local_search])
def test_optimisers_with_levels_say_the_joint_value(name, optimise):
    acqf = CASES[name](kernel_gp())
    X, value = chosen(acqf, optimise)
    assert set(X[:, 0].tolist()) <= set(LEVELS)
    assert_close(value, one_by_one(acqf, X).view(1), **TOL)


def test_sequential_and_discrete(case):
    acqf, choices = case(kernel_gp()), draw(20, 5)[0]
    X, values = chosen(acqf, lambda acqf: optimize_acqf_discrete(acqf, q=3, choices=choices))
    with torch.no_grad():
        assert int(acqf(choices[:, None]).argmax()) == int((choices == X[0]).all(-1).nonzero())
    total = values.logsumexp(0) if acqf._log else values.sum(0)
    assert_close(total, one_by_one(acqf, X), **TOL)
    few = FEW | {"options": BRIEF}
    X, values = chosen(acqf, lambda acqf: optimize_acqf(acqf, BOUNDS, 3, sequential=True, **few))
    total = values.logsumexp(0) if acqf._log else values.sum(0)
    assert_close(total, one_by_one(acqf, X), **TOL)


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


@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
@pairwise(
    name=CASES,
    model=[
        (kernel_gp, added),
        (kernel_gp, replaced),
        (single_task_gp, set_anew),
        (plain_gp, fitted),
    ],
    pending=[0, 2],
)
def test_later_data_count_with_pending_points(name, model, pending):
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
    after = acqf(X)
    assert_close(after, case(model, **options)(X), **TOL)
    if change is not replaced or name != "MaxVariance":
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
    "pending",
    [
        [[2.5, NAN]],
        [[2.5, -2.0, 1.0]],
        [[[2.5, -2.0]]],
        2.5,
        "none",
        [[2.5], [1.0, 2.0]],
        torch.zeros(1, 2),
    ],
)
def test_bad_pending_points_are_named_and_change_nothing(pending):
    case, model, X = CASES["MaxVariance"], kernel_gp(), draw(3, 3)[0][:, None]
    with pytest.raises(ValueError, match="X_pending"):
        case(model, X_pending=pending)
    acqf = case(model, X_pending=draw(1, 7)[0])
    before = acqf(X)
    with pytest.raises(ValueError, match="X_pending"):
        acqf.set_X_pending(pending)
    assert_close(acqf(X), before, rtol=0, atol=0)


def test_nan_in_a_batch_is_that_of_the_points(case):
    acqf, X = case(kernel_gp(), X_pending=draw(2, 7)[0]), draw(6, 3)[0].view(2, 3, 2)
    X[1, 0, 1] = NAN
    with pytest.raises(ValueError, match=r"^X must be finite"):
        acqf(X)
    assert len(acqf.X_pending) == 2


def test_bad_arguments_are_named(case):
    for model in (None, "a", 2.0):
        with pytest.raises(ValueError, match=r"models? must be"):
            case(model)
    acqf = case(kernel_gp())
    for points in (torch.zeros(3, 1, 2), torch.zeros(3, 1, 3).double(), "here", [2.0, -1.0]):
        with pytest.raises(ValueError, match=r"\bX\b"):
            acqf(points)
    for bad in (-2, "2", True, NAN, None):
        for name in ("width", "misspecification", "radius"):
            if name in case.options:
                with pytest.raises(ValueError, match=f"{name} must be"):
                    case(kernel_gp(), **{name: bad})
        if case.can_minimise and bad is not True:
            with pytest.raises(ValueError, match="maximize"):
                case(kernel_gp(), maximize=bad)
    if "best_f" in case.options:
        for bad in (True, "2", NAN):
            with pytest.raises(ValueError, match="best_f"):
                case(kernel_gp(), best_f=bad)
    for values in (torch.tensor([1.0, NAN]), np.array([1.0, -1.0]), torch.tensor(True)):
        if "width" in case.options:
            with pytest.raises(ValueError, match="width must"):
                case(kernel_gp(lengthscales=(0.5, 1.0)), width=values)


@pytest.mark.parametrize("cls", [EnlargedUpperConfidenceBound, LowerConfidenceBound])
def test_widths_must_fit_the_batch_shape(cls):
    for model, width in (
        (kernel_gp(), [1, 2]),
        (kernel_gp(lengthscales=(0.5, 1.0)), torch.ones(3)),
    ):
        with pytest.raises(ValueError, match="width"):
            cls(model, width)
    assert cls(kernel_gp(lengthscales=(0.5, 1.0)), [1, 2]).width.shape == (2,)
