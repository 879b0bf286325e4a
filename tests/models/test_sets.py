"""Sessions of sets of models against separate models and dense algebra, and what they share."""

import copy
import pickle

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import (
    ConstantKernel,
    CosineKernel,
    IndexKernel,
    LinearKernel,
    MaternKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import LinearMean
from torch.testing import assert_close

from botorch_ext.kernels import ActionContextKernel, TaskKernel, batching
from botorch_ext.models import CandidateModels, FinitePosterior, KernelGP
from botorch_ext.widths import Constant, SelfNormalized, SrinivasRKHS
from tests.helpers import devices, matern, pairwise, rbf, steps_on, tolerance
from tests.kernel_functions.kernels import periodic, scaled
from tests.kernels.joint import COVARIANCE, action_context, index_kernel, points, sparse_matrices
from tests.models.sessions import (
    CANDIDATES,
    SPECS,
    Bent,
    Session,
    constant_mean,
    draw,
    made,
    sine,
    values,
)

EXACT = tolerance(torch.float64)


@pairwise(name=SPECS, finite=[False, True], seed=range(3), device=devices())
def test_random_sessions_and_their_forks_are_the_dense_algebra(name, finite, seed, device):
    g = torch.Generator().manual_seed(seed)

    def integer(high):
        return int(torch.randint(high, (), generator=g))

    first = Session(SPECS[name], finite, device)
    first.add(draw(4, seed), values(4, seed))
    sessions = [first]
    for step in range(steps_on(device, 24)):
        session = sessions[integer(len(sessions))]
        X, Y = draw(1 + integer(3), 1000 * seed + step), values(3, step)
        n, action = len(session.rows), integer(9)
        if action < 2:
            session.add(X, None if action else Y[: len(X)])
        elif action == 2 and finite:
            session.add_candidate(integer(12), float(Y[0]) if integer(2) else None)
        elif action < 5:  # tell some that pend, or replace what is known
            rows = torch.randperm(n, generator=g)[: 1 + integer(3)].tolist()
            session.set_targets(rows, Y[: len(rows)])
        elif action == 5 and n > 3:
            session.remove(integer(n))
        elif action == 6 and len(session.specs) > 2:
            session.drop(integer(len(session.specs)))
        elif len(sessions) < 4:
            kept = torch.randperm(len(session.specs), generator=g)[1:].tolist()
            sessions.append(session.select(kept) if kept and integer(2) else session.fork())
        if step % 6 == 5:  # the dense algebra is slow
            for each in sessions:
                without = torch.randperm(len(each.rows), generator=g)[: integer(4)].tolist()
                each.check(without, integer(12))


@pytest.mark.parametrize("finite", [False, True])
def test_an_original_is_the_same_to_the_last_bit_as_one_without_forks(finite):
    X = draw(12, 5)
    Y = torch.sin(X[:, 1])
    forked, plain = Session(SPECS["mixed"], finite), Session(SPECS["mixed"], finite)
    for session in (forked, plain):
        for i in range(9):
            if session is forked:
                session.fork().add(X[9:], Y[9:] if i % 2 else None)
            session.add(X[i : i + 1], None if i % 3 else Y[i : i + 1])
            if i == 6:
                session.remove(2)
            if i > 6:
                session.set_targets([4], Y[i : i + 1])
    got, expected = (
        (m.mean, m.std) if finite else m.mean_and_std(CANDIDATES)
        for m in (forked.models, plain.models)
    )
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a, b)


def test_what_is_stored_holds_no_rows_of_others():
    models = CandidateModels([rbf(0.5 + 0.1 * i) for i in range(20)], 0.1)
    X = draw(40, 0)
    models.add(X, X[:, 0])
    size = len(pickle.dumps(models.parts[0].model))
    few = models.select([3, 8])
    for model in (models.single(2), few.parts[0].model):
        assert len(pickle.dumps(model)) < size / 4
        copied = pickle.loads(pickle.dumps(model))
        for i in range(7):
            for one in (copied, model):
                one.add(X[i : i + 1] + 0.1, X[i : i + 1, 1])
            for a, b in zip(copied.mean_and_std(X), model.mean_and_std(X), strict=True):
                assert torch.equal(a, b)
            copied = copy.deepcopy(copied)


def test_a_set_of_one_model_is_this_very_model():
    model, X = KernelGP(rbf(0.6), 0.03, mean=sine), draw(6, 1)
    session = Session([(rbf(0.6), 0.03, sine)])
    session.models = CandidateModels.of(model, "only")
    assert session.models.names == ["only"] and session.models.lengthscales_of is None
    assert session.models.parts[0].model is session.models.single(0) is model
    session.add(X[:4], X[:4, 0])
    session.add(X[4:], None)
    session.set_targets([4], X[:1, 1])
    session.remove(0)
    session.check([1])
    session.select([0]).check([1])
    assert session.models.noise_variance.tolist() == [0.03]
    assert session.models.on(CANDIDATES).mean.shape == (1, 12)
    with pytest.raises(ValueError, match="position"):
        session.models.drop(0)


def test_transforms_of_the_only_model_are_undone():
    X = draw(12, 6)
    gp = SingleTaskGP(
        X, torch.sin(X[:, :1]), outcome_transform=Standardize(1), input_transform=Normalize(2)
    )
    model = KernelGP.from_botorch(gp)
    models = CandidateModels.of(model)
    models.add(X[:1] + 0.1, None)
    mean, std = model.mean_and_std(CANDIDATES)
    assert_close(models.means(0, CANDIDATES), mean, **EXACT)
    kept = KernelGP.from_botorch(gp)
    kept.remove(3)
    for without, expected in (([], (mean, std)), ([3, 12], kept.mean_and_std(CANDIDATES))):
        got = models.moments_without(0, without, CANDIDATES[5])[:2]
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b[5], **EXACT)


def with_value(kernel, name, value):
    kernel = kernel.double()
    setattr(kernel, name, torch.tensor(value, dtype=torch.float64))
    return kernel


def learned(scale):
    kernel = index_kernel()
    kernel.covar_factor.data *= scale
    return kernel


# How to make a kernel of a number, and how many parts those of 0.4, 0.9 and 2.0 are.
FORMS = {
    "active": (lambda v: rbf(v, active_dims=(1,)), 1),
    "matern12": (lambda v: matern(v, nu=0.5), 1),
    "sum": (lambda v: rbf(0.5) + periodic(v, 0.8, (0,)), 1),
    "product": (lambda v: scaled(rbf(v) * periodic(1.0, 0.8, (0,)), v), 1),
    "linear": (lambda v: with_value(LinearKernel(), "variance", 0.05 * v), 1),
    "polynomial": (lambda v: scaled(with_value(PolynomialKernel(2), "offset", v), 1e-3), 1),
    "cosine": (lambda v: with_value(CosineKernel(active_dims=(0,)), "period_length", 2 * v), 1),
    "constant": (lambda v: with_value(ConstantKernel(), "constant", v) * rbf(0.5), 1),
    "piecewise": (lambda v: with_value(PiecewisePolynomialKernel(), "lengthscale", 2 * v), 1),
    "contexts": (lambda v: action_context(matern(v), rbf(2 * v), 3, 1, "sum"), 1),
    "tasks": (lambda v: scaled(action_context(matern(v), TaskKernel(v * COVARIANCE)), v), 1),
    "learned tasks": (lambda v: action_context(matern(v), learned(v)), 1),
    "rq": (lambda v: with_value(RQKernel(), "alpha", v), 3),
    "unknown": (lambda v: with_value(Bent(), "lengthscale", v), 3),
    "nu": (lambda v: matern(1.0, nu={0.4: 0.5, 0.9: 1.5, 2.0: 2.5}[v]), 3),
    "active columns": (lambda v: rbf(v, active_dims=(int(v > 0.5),)), 2),
    "shared": (lambda v: (lambda k: k + k if v < 1 else k + rbf(v))(rbf(v)), 2),
    "combinations": (
        lambda v: action_context(matern(v), None, 3, [4], "sum" if v > 0.5 else "product"),
        2,
    ),
    "columns": (lambda v: action_context(matern(1.0), None, (0, int(v > 0.5) + 1), [4]), 2),
    "tasks of other numbers": (
        lambda v: action_context(matern(1.0), TaskKernel(torch.eye(4 + int(v > 0.5)).double())),
        2,
    ),
}


@sparse_matrices
@pairwise(name=FORMS, device=devices())
def test_a_stack_is_its_members(name, device):
    build, num_parts = FORMS[name]
    kernels = [build(v) for v in (0.4, 0.9, 2.0)]
    joint = any(isinstance(part, ActionContextKernel) for part in kernels[0].modules())
    models = CandidateModels(kernels, 0.05, device=device)
    assert len(models.parts) == num_parts
    X, Z = (points(12, 3), points(6, 4)) if joint else (draw(12, 3), draw(6, 4))
    X, Z = X.to(device), Z.to(device)
    Y = torch.cos(X[:, 0])
    models.add(X, Y)
    finite, fewer = models.on(Z), models.select([2, 0])
    for i, kernel in enumerate(kernels):
        alone = KernelGP(kernel, 0.05, device=device)
        alone.add(X, Y)
        expected = alone.mean_and_std(Z)
        assert_close(models.information_gain()[i], alone.information_gain(), **EXACT)
        largest = alone.kernel_function.diagonal(Z).max()
        assert_close(models.largest_variances(Z)[i], largest, **EXACT)
        got = [models.single(i).mean_and_std(Z), (finite.mean[i], finite.std[i])]
        got.append([each[i] for each in models.mean_and_std(Z)])
        if i != 1:
            got.append([each[[1, 2, 0][i]] for each in fewer.mean_and_std(Z)])
        for mean, std in got:
            assert_close(mean, expected[0], **EXACT)
            assert_close(std, expected[1], **EXACT)


def test_batched_kernels_count_as_their_members():
    batched = RBFKernel(batch_shape=torch.Size([2])).double()
    batched.lengthscale = torch.tensor([0.3, 0.8], dtype=torch.float64).reshape(2, 1, 1)
    outer = ScaleKernel(rbf(0.7), batch_shape=torch.Size([2])).double()
    outer.outputscale = torch.tensor([0.5, 0.7], dtype=torch.float64)
    session = Session([(rbf(s), 0.1, None) for s in (0.3, 0.8, 1.4)])
    session.specs += [(scaled(rbf(0.7), v), 0.1, None) for v in (0.5, 0.7)]
    session.models = CandidateModels([batched, rbf(1.4), outer], 0.1)
    X = draw(6, 8)
    session.add(X, X[:, 0])
    session.check(without=[2])


@pytest.mark.parametrize("finite", [False, True])
def test_widths(finite):
    session = Session(SPECS["mixed"], finite)
    X = draw(9, 2)
    session.add(X, X[:, 1])
    width = SelfNormalized(rkhs_bound=1.5, noise_std=0.2, delta=0.1)
    got = session.models.width(width, 10)
    each = [Constant(2.0), SrinivasRKHS(1.0, 0.1), *[width] * (len(session.specs) - 2)]
    mixed = session.models.width(each, 10)
    for i, (kernel, noise, _) in enumerate(session.specs):
        alone = KernelGP(kernel, noise)
        alone.add(X, X[:, 1])
        assert_close(got[i], width(10, alone), **EXACT)
        value = torch.as_tensor(each[i](10, alone), dtype=torch.float64)
        assert_close(mixed[i], value, **EXACT)
    assert session.models.width(Constant(0.1), 10).tolist() == [0.1] * len(session.specs)
    assert not session.models.offset(width, 3).any()
    with pytest.raises(ValueError, match="width"):
        session.models.width([width], 10)


def test_a_call_in_inference_mode_leaves_other_sets_differentiable():
    specs = [(rbf(0.4), 0.01, None), (matern(0.5), 0.01, None), (rbf(0.9), 0.01, None)]
    first, second = made(specs), made(specs)
    for models in (first, second):
        models.add(draw(4, 0), values(4, 0))
    batching._positions.cache_clear()  # so that the call below is the first one
    with torch.inference_mode():
        first.mean_and_std(draw(3, 1))
    assert torch.autograd.gradcheck(second.mean_and_std, (draw(3, 1).requires_grad_(),))


def test_models_are_named_by_what_differs():
    tasks = action_context(RBFKernel())
    learned_tasks = action_context(MaternKernel(), IndexKernel(4), 3, [4], "sum")
    for kernels, means, names in (
        ([rbf(1.0)], None, ["RBF"]),
        ([rbf(1.0), rbf(2.0)], None, ["RBF 1", "RBF 2"]),
        ([rbf(1.0), MaternKernel()], None, ["RBF", "Matern"]),
        ([rbf(0.7)] * 2, [sine, constant_mean(2.0)], ["mean 0", "mean 1"]),
        ([tasks, learned_tasks], None, ["RBF * Task", "Matern + Index"]),
    ):
        assert CandidateModels(kernels, 0.1, means).names == names
    assert CandidateModels([rbf(1.0)] * 2, 0.1, names=["a", "b"]).names == ["a", "b"]


@pytest.mark.parametrize("finite", [False, True])
def test_what_is_refused_changes_nothing(finite):
    session = Session(SPECS["lengthscales"], finite)
    X = draw(2, 1)
    session.add(X, X[:, 0])
    models = session.models
    nan = torch.full((1, 2), torch.nan, dtype=torch.float64)
    for name, act in (
        ("positions", lambda: models.select([])),
        ("positions", lambda: models.select([3])),
        ("positions", lambda: models.select([0, 0])),
        ("position", lambda: models.moments_without(3, [], 0 if finite else X[0])),
        ("rows", lambda: models.log_marginal_likelihood([2])),
        ("X", lambda: models.add(nan, X[:1, 0])),
        ("Y", lambda: models.add(X, nan[:, 0].expand(2))),
    ):
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            act()
    session.check()


def test_data_of_another_dtype_are_refused_with_the_cure():
    models, X = CandidateModels(rbf(0.5), 0.1), draw(2, 1)
    with pytest.raises(ValueError, match=r"^X .*with \.double\(\).*bx\.Box\(bounds\.float\(\)\)"):
        models.add(X.float(), X[:, 0])
    single = CandidateModels(rbf(0.5), 0.1, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"^X .*with \.float\(\).*bx\.Box\(bounds\.double\(\)\)"):
        single.add(X, X[:, 0])


@pytest.mark.parametrize("finite", [False, True])
def test_a_set_in_float32_has_the_numbers_of_float64(finite):
    single, double = (made(SPECS["mixed"], dtype=t) for t in (torch.float32, torch.float64))
    for models in (single, double):
        X, Y = draw(8, 1).to(models.dtype), values(8, 1).to(models.dtype)
        models.add(X[:6], Y[:6])
        models.add(X[6:], None)
    Z = CANDIDATES[:5]
    found = single.on(Z.float()) if finite else single
    for own, expected in zip(
        (found.mean, found.std) if finite else found.mean_and_std(Z.float()),
        double.mean_and_std(Z),
        strict=True,
    ):
        assert own.dtype == torch.float32
        assert_close(own.double(), expected, **tolerance(torch.float32))


def test_a_model_that_does_not_take_the_points_is_named():
    three, X = rbf(0.5, 1.0, 2.0), draw(3, 0)
    models = CandidateModels([rbf(0.5), three], 0.1, names=["two", "three"])
    for act in (lambda: models.require_takes(X), lambda: models.add(X, X[:, 0])):
        with pytest.raises(ValueError, match="'three'"):
            act()
    assert [part.model.num_observations for part in models.parts] == [0, 0]
    with pytest.raises(ValueError, match="'three'"):
        models.add(X[:0], X[:0, 0])
    models = CandidateModels([rbf(0.5), rbf(0.7)], 0.1)
    models.add(X[:0], X[:0, 0])
    models.add(X, X[:, 0])
    assert models.num_observations == 3

    def steep(X):
        return 1 / (X[..., 0] - 2.0)

    models = CandidateModels(rbf(0.5), 0.1, [sine, steep], names=["sine", "steep"])
    models.require_takes(X)
    X[1, 0] = 2.0
    with pytest.raises(ValueError, match="'steep'"):
        models.require_takes(X)
    with pytest.raises(ValueError, match="'a'"):
        CandidateModels(rbf(0.5), 0.1, [sine, LinearMean(3)], names=["b", "a"]).require_takes(X)


def test_a_mean_is_a_copy_of_the_dtype_of_the_data():
    mean = constant_mean(0.5).float()
    X, Y = draw(4, 0), values(4, 1)
    posteriors = FinitePosterior(rbf(0.5), X, 0.01, mean=mean), KernelGP(rbf(0.5), 0.01, mean=mean)
    mean.constant.data.fill_(7.0)
    fresh = KernelGP(rbf(0.5), 0.01, mean=0.5)
    for posterior in (*posteriors, fresh):
        posterior.add(X, Y)
    finite, model = posteriors
    assert mean.constant.requires_grad
    assert_close(model.train_targets, Y, **EXACT)
    assert_close(finite.mean, fresh.mean_and_std(X)[0], **EXACT)
    assert_close(model.mean_and_std(X)[0], fresh.mean_and_std(X)[0], **EXACT)
