"""Sets of models against separate models and dense algebra."""

import copy
import math
import pickle

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import (
    ConstantKernel,
    CosineKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import ConstantMean, LinearMean
from torch.testing import assert_close

from botorch_ext.kernel_functions import freezing
from botorch_ext.kernels import structure
from botorch_ext.models import CandidateModels, KernelGP, kernel_gp
from botorch_ext.widths import Constant, SelfNormalized, SrinivasRKHS
from tests.helpers import devices, pairwise, steps_on, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

LOWER = torch.tensor([2.0, -3.0], dtype=torch.float64)
SIDES = torch.tensor([3.0, 2.0], dtype=torch.float64)


def draw(n, seed):
    g = torch.Generator().manual_seed(seed)
    return LOWER + SIDES * torch.rand(n, 2, generator=g, dtype=torch.float64)


CANDIDATES = draw(30, 99)


def rbf(lengthscale, **kwargs):
    kernel = RBFKernel(**kwargs).double()
    kernel.lengthscale = torch.as_tensor(lengthscale, dtype=torch.float64)
    return kernel


def periodic(period):
    kernel = PeriodicKernel(active_dims=(0,)).double()
    kernel.period_length = torch.as_tensor(period, dtype=torch.float64)
    kernel.lengthscale = 0.8
    return kernel


def scaled(base, outputscale):
    kernel = ScaleKernel(base).double()
    kernel.outputscale = torch.as_tensor(outputscale, dtype=torch.float64)
    return kernel


class Bent(RBFKernel):
    """A kernel class the library does not know."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1 + 0.1 * x1**2, x2 + 0.1 * x2**2, diag=diag, **params)


def sine(X):
    return 0.3 * torch.sin(X[..., 0])


def constant_mean(value):
    mean = ConstantMean().double()
    mean.constant = value
    return mean


# (kernel, noise variance, mean) of each model; those of one form are not next to each other.
SPECS = {
    "lengthscales": [(rbf(s), 0.03, None) for s in (0.4, 0.9, 2.0)],
    "one": [(rbf(0.6), 0.03, None)],
    "noise variances": [(rbf(0.7), v, None) for v in (0.01, 0.3)],
    "means": [(rbf(0.7), 0.02, m) for m in (None, sine, constant_mean(2.0), sine)],
    "constant means": [(rbf(s), 0.02, constant_mean(s)) for s in (0.5, 1.5)],
    "two forms": [
        (rbf(0.4), 0.03, None),
        (scaled(MaternKernel(nu=2.5).double(), 0.5), 0.02, sine),
        (rbf(1.1), 0.01, None),
    ],
    "mixed": [
        (rbf(0.4), 0.03, None),
        (scaled(MaternKernel(nu=2.5).double(), 0.5), 0.02, sine),
        (Bent().double(), 0.05, constant_mean(0.5)),
        (rbf(1.1), 0.01, None),
        (rbf([[0.5, 1.5]], ard_num_dims=2), 0.03, None),
        (scaled(MaternKernel(nu=2.5).double(), 0.9), 0.02, constant_mean(1.0)),
        (scaled(periodic(0.9) + rbf(0.8), 0.4), 0.03, None),
        (rbf(0.9), 0.01, constant_mean(-1.0)),
        (scaled(periodic(1.7) + rbf(0.6), 0.6), 0.03, None),
    ],
}


def made(specs, **kwargs):
    kernels, noise, means = zip(*specs, strict=True)
    return CandidateModels(list(kernels), list(noise), list(means), **kwargs)


class Session:
    """A set of models next to the rows it should have: a point and a value, None if it pends."""

    def __init__(self, specs, finite, device="cpu", dtype=torch.float64):
        self.specs, self.finite, self.device, self.dtype = list(specs), finite, device, dtype
        self.models = made(specs, device=device, dtype=dtype)
        if finite:
            self.models = self.models.on(self.cast(CANDIDATES))
        self.rows = []

    def cast(self, values):
        return None if values is None else values.to(device=self.device, dtype=self.dtype)

    def add(self, X, Y):
        self.models.add(self.cast(X), self.cast(Y))
        self.rows += [[x, None if Y is None else Y[i]] for i, x in enumerate(X)]

    def add_candidate(self, index, y):
        self.models.add_candidate(index, y)
        value = None if y is None else torch.tensor(y, dtype=torch.float64)
        self.rows.append([CANDIDATES[index], value])

    def set_targets(self, rows, Y):
        self.models.set_targets(rows, self.cast(Y))
        for row, y in zip(rows, Y, strict=True):
            self.rows[row][1] = y

    def remove(self, row):
        self.models.remove(row)
        del self.rows[row]

    def select(self, positions):
        new = copy.copy(self)
        new.models = self.models.select(positions)
        new.specs = [self.specs[i] for i in positions]
        new.rows = copy.deepcopy(self.rows)
        return new

    def fork(self):
        new = copy.copy(self)
        new.models, new.specs = self.models.fork(), list(self.specs)
        new.rows = copy.deepcopy(self.rows)
        return new

    def drop(self, position):
        self.models.drop(position)
        del self.specs[position]

    def dense(self, spec, without=(), Z=CANDIDATES):
        """Mean, std and the gain of all rows but some; log evidence of the known ones of those."""
        kernel, noise, mean = spec
        mean = (lambda X: X.new_zeros(len(X))) if mean is None else mean
        rows = [row for i, row in enumerate(self.rows) if i not in without]
        if not rows:
            with torch.no_grad():
                return mean(Z), kernel(Z, diag=True).sqrt(), 0.0, 0.0
        X = torch.stack([x for x, _ in rows])
        known = [(x, y) for x, y in rows if y is not None]
        expected, evidence = mean(Z).detach(), 0.0
        if known:
            A, y = (torch.stack(column) for column in zip(*known, strict=True))
            y = y - mean(A).detach()
            expected = expected + dense_posterior(kernel, A, y, Z, noise)[0]
            with torch.no_grad():
                K = kernel(A, A).to_dense() + noise * torch.eye(len(A), dtype=torch.float64)
            normal = torch.distributions.MultivariateNormal(torch.zeros_like(y), K)
            evidence = normal.log_prob(y).item()
        covariance = dense_posterior(kernel, X, X[:, 0], Z, noise)[1]
        gain = dense_information_gain(kernel, X, noise)
        return expected, covariance.diagonal().sqrt(), gain, evidence

    def close(self, got, expected):
        expected = torch.as_tensor(expected, dtype=torch.float64).reshape(got.shape)
        assert_close(got.cpu().double(), expected, **tolerance(self.dtype))

    def check(self, without=(), index=3):
        models = self.models
        assert (models.num_models, len(models)) == (len(self.specs), len(self.specs))
        if self.finite:
            mean, std = models.mean, models.std
        else:
            mean, std = models.mean_and_std(self.cast(CANDIDATES))
        known = [i for i, (_, y) in enumerate(self.rows) if y is not None]
        pending = [i for i in range(len(self.rows)) if i not in known]
        assert (models.num_observations, models.pending) == (len(self.rows), pending)
        gains, inflations = models.information_gain(), models.pending_information_gain()
        evidences = models.log_marginal_likelihood(without)
        point = index if self.finite else self.cast(CANDIDATES[index])
        for i, spec in enumerate(self.specs):
            expected_mean, expected_std, gain, _ = self.dense(spec)
            self.close(mean[i], expected_mean)
            self.close(std[i], expected_std)
            self.close(gains[i], gain)
            self.close(inflations[i], gain - self.dense(spec, pending)[2])
            self.close(evidences[i], self.dense(spec, without)[3])
            expected_mean, expected_std, gain, _ = self.dense(spec, without)
            expected = expected_mean[index], expected_std[index], gain
            for a, b in zip(models.moments_without(i, without, point), expected, strict=True):
                self.close(a, b)


@pairwise(name=SPECS, finite=[False, True], seed=range(2), device=devices())
def test_random_sessions_are_the_dense_algebra(name, finite, seed, device):
    g = torch.Generator().manual_seed(seed)

    def integer(high):
        return int(torch.randint(high, (), generator=g))

    session = Session(SPECS[name], finite, device)
    session.check()
    for step in range(steps_on(device, 12)):
        points = draw(1 + integer(3), 1000 * seed + step)
        values = torch.randn(len(points), generator=g, dtype=torch.float64)
        n = len(session.rows)
        action = integer(8) if n else 0
        if action < 2:
            session.add(points, values if action == 0 else None)
        elif action < 4 and finite:
            session.add_candidate(integer(30), float(values[0]) if action == 2 else None)
        elif action < 6:
            rows = torch.randperm(n, generator=g)[: 1 + integer(3)].tolist()
            session.set_targets(rows, torch.randn(len(rows), generator=g, dtype=torch.float64))
        elif action == 6 and n > 3:
            session.remove(integer(n))
        elif len(session.specs) > 2:
            old = session
            if integer(2):
                kept = torch.randperm(len(session.specs), generator=g)[:-1].tolist()
                session = session.select(kept)
            else:
                session = session.fork()
                session.drop(integer(len(session.specs)))
            session.add(points, values)
            old.check()
        if step % 3 == 2 or len(session.specs) < 5:  # the dense algebra of many models is slow
            without = torch.randperm(len(session.rows), generator=g)[: integer(4)].tolist()
            session.check(without, integer(30))


@pairwise(
    name=["one", "lengthscales", "two forms"],
    finite=[False, True],
    seed=range(3),
    device=devices(),
)
def test_forks_and_their_originals_do_not_notice_each_other(name, finite, seed, device):
    g = torch.Generator().manual_seed(seed)

    def integer(high):
        return int(torch.randint(high, (), generator=g))

    first = Session(SPECS[name], finite, device)
    first.add(draw(7, seed), torch.randn(7, generator=g, dtype=torch.float64))
    sessions = [first]
    for step in range(steps_on(device, 24)):
        session = sessions[integer(len(sessions))]
        points = draw(1 + integer(2), 1000 * seed + step)
        values = torch.randn(len(points), generator=g, dtype=torch.float64)
        action, n = integer(8), len(session.rows)
        if action < 2 and len(sessions) < 6:
            sessions.append(session.fork())
        elif action == 2 and len(session.specs) > 1:
            if integer(2):
                session.drop(integer(len(session.specs)))
            else:
                kept = torch.randperm(len(session.specs), generator=g)[:-1].tolist()
                sessions.append(session.select(kept))
        elif action == 3 and n > 3:
            session.remove(integer(n))
        elif action == 4:
            rows = torch.randperm(n, generator=g)[: 1 + integer(3)].tolist()
            session.set_targets(rows, torch.randn(len(rows), generator=g, dtype=torch.float64))
        else:
            session.add(points, None if integer(2) else values)
        if step % 6 == 5:
            for other in sessions:
                other.check(without=[1, 3])


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("first", ["fork", "original"])
def test_a_fork_outlives_what_its_original_adds(finite, first):
    original = Session(SPECS["lengthscales"], finite)
    X = draw(9, 4)
    original.add(X[:6], torch.sin(X[:6, 0]))
    fork = original.fork()
    for session in (fork, original) if first == "fork" else (original, fork):
        session.add(X[6:7] if session is fork else X[7:], None)
    fork.check([2])
    original.check([2])


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("name", ["one", "mixed"])
def test_an_original_is_the_same_to_the_last_bit_as_one_without_forks(name, finite):
    X = draw(12, 5)
    Y = torch.sin(X[:, 1])
    forked, plain = Session(SPECS[name], finite), Session(SPECS[name], finite)
    for session in (forked, plain):
        for i in range(9):
            if session is forked:
                session.fork().add(X[9:], None)
            session.add(X[i : i + 1], None if i % 3 else Y[i : i + 1])
            if i == 6:
                session.remove(2)
            if i > 6:
                session.set_targets([4], Y[i : i + 1])
    Z = CANDIDATES
    for models in (forked.models, plain.models):
        models.log_marginal_likelihood([1])
    got, expected = (
        (m.mean, m.std) if finite else m.mean_and_std(Z) for m in (forked.models, plain.models)
    )
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a, b)
    evidences = [m.log_marginal_likelihood([1]) for m in (forked.models, plain.models)]
    assert torch.equal(*evidences)


@pytest.mark.parametrize("name", SPECS)
def test_means_alone_are_those_of_the_posterior(name, device):
    session = Session(SPECS[name], False, device)
    Z = session.cast(CANDIDATES)
    for X, Y in ((draw(0, 0), torch.zeros(0).double()), (draw(5, 0), None), (draw(6, 1), None)):
        if len(X):
            session.add(X, torch.cos(X[:, 0]) if len(X) == 5 else Y)
        expected, _ = session.models.mean_and_std(Z)
        for i in range(len(session.specs)):
            assert_close(session.models.means(i, Z), expected[i], **tolerance(torch.float64))
        for part in session.models.parts:
            got = part.each(part.model.mean_at(Z))
            assert_close(got, expected[part.positions], **tolerance(torch.float64))


def test_what_is_stored_holds_no_rows_of_others():
    models = CandidateModels([rbf(0.5 + 0.1 * i) for i in range(20)], 0.1)
    X = draw(40, 0)
    models.add(X, X[:, 0])
    sizes = [len(pickle.dumps(part.model)) for part in models.parts]
    few = models.select([3, 8])
    for model in (models.single(2), few.parts[0].model):
        assert len(pickle.dumps(model)) < sizes[0] / 4
        copied = pickle.loads(pickle.dumps(model))
        for i in range(7):
            for one in (copied, model):
                one.add(X[i : i + 1] + 0.1, X[i : i + 1, 1])
            for a, b in zip(copied.mean_and_std(X), model.mean_and_std(X), strict=True):
                assert torch.equal(a, b)
            copied = copy.deepcopy(copied)


def test_a_set_of_one_model_is_this_very_model():
    model = KernelGP(rbf(0.6), 0.03, mean=sine)
    X = draw(6, 1)
    model.add(X[:4], X[:4, 0])
    session = Session(SPECS["one"], False)
    session.specs = [(rbf(0.6), 0.03, sine)]
    session.models = CandidateModels.of(model, "only")
    session.rows = [[x, x[0]] for x in X[:4]]
    assert session.models.names == ["only"] and session.models.lengthscales_of is None
    assert session.models.parts[0].model is session.models.single(0) is model
    session.check([2])
    session.add(X[4:], None)
    assert model.num_observations == 6
    session.set_targets([4], X[:1, 1])
    session.remove(0)
    session.check([1])
    session.select([0]).check([1])
    assert session.models.grow(10) == []
    assert session.models.noise_variance.tolist() == [0.03]
    finite = session.models.on(CANDIDATES)
    assert finite.parts[0].model.batch_shape == torch.Size()
    assert finite.mean.shape == finite.std.shape == (1, 30)
    with pytest.raises(ValueError, match="position must leave a model in the set, got 0"):
        session.models.drop(0)
    with pytest.raises(ValueError, match="model must not be batched"):
        CandidateModels.of(KernelGP(rbf(0.6), torch.tensor([0.1, 0.2]).double()))


def test_transforms_of_the_only_model_are_undone():
    X = draw(12, 6)
    gp = SingleTaskGP(
        X, torch.sin(X[:, :1]), outcome_transform=Standardize(1), input_transform=Normalize(2)
    )
    model = KernelGP.from_botorch(gp)
    models = CandidateModels.of(model)
    models.add(X[:1] + 0.1, None)
    mean, std = model.mean_and_std(CANDIDATES)
    assert_close(models.means(0, CANDIDATES), mean, **tolerance(torch.float64))
    kept = KernelGP.from_botorch(gp)
    kept.remove(3)
    kept_mean, kept_std = kept.mean_and_std(CANDIDATES)
    for without, expected in (([], (mean, std)), ([3, 12], (kept_mean, kept_std))):
        got = models.moments_without(0, without, CANDIDATES[5])[:2]
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b[5], **tolerance(torch.float64))


def no_copies(monkeypatch):
    """A list of what is copied from here on: deep copies, and clones of a thousand numbers."""
    copied = []
    clone = torch.Tensor.clone

    def counted(tensor, *args, **kwargs):
        if tensor.numel() > 1000:
            copied.append(tuple(tensor.shape))
        return clone(tensor, *args, **kwargs)

    for module in (structure, kernel_gp, freezing):
        monkeypatch.setattr(module, "deepcopy", lambda x: copied.append(type(x)))
    monkeypatch.setattr(torch.Tensor, "clone", counted)
    return copied


def test_selections_copy_no_kernels_and_no_factors(monkeypatch):
    models = made([(scaled(rbf(s), s), 0.03, sine) for s in (0.4, 0.6, 0.9, 2.0)] * 8)
    X = draw(100, 0)
    models.add(X, X[:, 0])
    copied = no_copies(monkeypatch)
    some = models.select([7, 2, 30, 11])
    some.select([2, 0]).mean_and_std(CANDIDATES[:4])
    models.single(5).mean_and_std(CANDIDATES[:4])
    models.drop(9)
    assert models.parts[0].model.factor.triangle._buffer.shape[0] == 32
    assert all(shape[-1] < 200 and len(shape) == 2 for shape in copied), copied


@pytest.mark.parametrize("finite", [False, True])
def test_float32(finite, device):
    specs = [(kernel, max(noise, 0.05), mean) for kernel, noise, mean in SPECS["mixed"]]
    session = Session(specs, finite, device, torch.float32)
    X = draw(8, 1)
    session.add(X[:5], torch.sin(X[:5, 1]))
    session.add(X[5:7], None)
    session.add(X[7:], torch.sin(X[7:, 1]))
    session.check(without=[1, 5])
    session.select([6, 2, 0]).check(without=[1])


def with_value(kernel, name, value):
    kernel = kernel.double()
    setattr(kernel, name, torch.tensor(value, dtype=torch.float64))
    return kernel


FORMS = {
    "rbf": (lambda v: rbf(v), 1),
    "ard": (lambda v: rbf([[v, 1.3]], ard_num_dims=2), 1),
    "active": (lambda v: rbf(v, active_dims=(1,)), 1),
    "matern12": (lambda v: with_value(MaternKernel(nu=0.5), "lengthscale", v), 1),
    "periodic": (periodic, 1),
    "scaled": (lambda v: scaled(rbf(0.7), v), 1),
    "sum": (lambda v: rbf(0.5) + periodic(v), 1),
    "product": (lambda v: scaled(rbf(v) * periodic(1.0), v), 1),
    "linear": (lambda v: with_value(LinearKernel(), "variance", 0.05 * v), 1),
    "polynomial": (lambda v: scaled(with_value(PolynomialKernel(2), "offset", v), 1e-3), 1),
    "cosine": (lambda v: with_value(CosineKernel(active_dims=(0,)), "period_length", 2 * v), 1),
    "constant": (lambda v: with_value(ConstantKernel(), "constant", v) * rbf(0.5), 1),
    "piecewise": (lambda v: with_value(PiecewisePolynomialKernel(), "lengthscale", 2 * v), 1),
    "rq": (lambda v: with_value(RQKernel(), "alpha", v), 3),
    "unknown": (lambda v: with_value(Bent(), "lengthscale", v), 3),
    "nu": (lambda v: MaternKernel(nu={0.4: 0.5, 0.9: 1.5, 2.0: 2.5}[v]).double(), 3),
    "active columns": (lambda v: rbf(v, active_dims=(int(v > 0.5),)), 2),
    "shared": (lambda v: (lambda k: k + k if v < 1 else k + rbf(v))(rbf(v)), 2),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_stack_is_its_members(name, device):
    build, num_parts = FORMS[name]
    specs = [(build(v), 0.05, None) for v in (0.4, 0.9, 2.0)]
    models = made(specs, device=device)
    assert len(models.parts) == num_parts
    X, Z = draw(12, 3).to(device), draw(6, 4).to(device)
    Y = torch.cos(X[:, 0])
    models.add(X, Y)
    finite = models.on(Z)
    for i, (kernel, noise, _) in enumerate(specs):
        alone = KernelGP(kernel, noise, device=device)
        alone.add(X, Y)
        for model in (alone, models.single(i)):
            for a, b in zip(model.mean_and_std(Z), models.mean_and_std(Z), strict=True):
                assert_close(b[i], a, **tolerance(torch.float64))
            assert model.batch_shape == torch.Size()
        assert_close(finite.mean[i], alone.mean_and_std(Z)[0], **tolerance(torch.float64))
        assert_close(finite.std[i], alone.mean_and_std(Z)[1], **tolerance(torch.float64))
        expected = alone.kernel_function.diagonal(Z).max()
        assert_close(models.largest_variances(Z)[i], expected, **tolerance(torch.float64))


def test_posteriors_of_a_batch_with_different_means():
    models = made(SPECS["means"][1:])
    (part,) = models.parts
    X, Z = draw(10, 5), draw(4, 6)
    models.add(X, torch.sin(X[:, 1]))
    for t_batch in ((), (5, 1), (3,)):
        points = Z.expand(*t_batch, 4, 2)
        posterior = part.model.posterior(points)
        for i in range(3):
            alone = models.single(i).posterior(Z)
            got = posterior.mean[..., i, :, :]
            assert_close(got, alone.mean.expand_as(got), **tolerance(torch.float64))
            got = posterior.distribution.covariance_matrix[..., i, :, :]
            expected = alone.distribution.covariance_matrix.expand_as(got)
            assert_close(got, expected, **tolerance(torch.float64))


def test_batched_kernels_count_as_their_members():
    batched = RBFKernel(batch_shape=torch.Size([2])).double()
    batched.lengthscale = torch.tensor([0.3, 0.8], dtype=torch.float64).reshape(2, 1, 1)
    outer = ScaleKernel(RBFKernel(), batch_shape=torch.Size([2])).double()
    outer.outputscale = torch.tensor([0.5, 0.7], dtype=torch.float64)
    models = CandidateModels([batched, rbf(1.4), outer], 0.1)
    specs = [(rbf(0.3), 0.1, None), (rbf(0.8), 0.1, None), (rbf(1.4), 0.1, None)]
    specs += [(scaled(RBFKernel().double(), v), 0.1, None) for v in (0.5, 0.7)]
    session = Session(specs, finite=False)
    session.models = models
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
    each = [
        width(10, KernelGP(kernel, noise)) if i % 2 else Constant(float(i))
        for i, (kernel, noise, _) in enumerate(session.specs)
    ]
    each = [Constant(2.0), SrinivasRKHS(1.0, 0.1), *[width] * (len(session.specs) - 2)]
    mixed = session.models.width(each, 10)
    for i, (kernel, noise, _) in enumerate(session.specs):
        alone = KernelGP(kernel, noise)
        alone.add(X, X[:, 1])
        assert_close(got[i], width(10, alone), **tolerance(torch.float64))
        value = torch.as_tensor(each[i](10, alone), dtype=torch.float64)
        assert_close(mixed[i], value, **tolerance(torch.float64))
    assert session.models.width(Constant(0.1), 10).tolist() == [0.1] * len(session.specs)
    assert_close(session.models.offset(width, 3), torch.zeros(len(session.specs)).double())
    with pytest.raises(ValueError, match="width must be one width or one for each of 9 models"):
        session.models.width([width], 10)


def test_gradients_reach_the_points():
    models = made(SPECS["mixed"])
    X = draw(5, 1)
    models.add(X, X[:, 0])
    Z = draw(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(models.mean_and_std, (Z,))


def test_names():
    assert CandidateModels(rbf(1.0), 0.1).names == ["RBF"]
    assert made(SPECS["lengthscales"]).names[2] == "RBF 3"
    assert made(SPECS["means"]).names[1:3] == ["mean 1", "mean 2"]
    assert CandidateModels([rbf(1.0), MaternKernel()], 0.1).names == ["RBF", "Matern"]
    assert CandidateModels([rbf(1.0), rbf(2.0)], 0.1, names=["a", "b"]).names == ["a", "b"]


@pytest.mark.parametrize(
    ("kernels", "noise", "kwargs", "message"),
    [
        ([], 0.1, {}, "kernels must have 1 entry or one for each model"),
        ([rbf(1.0), rbf(2.0)], [0.1, 0.2, 0.3], {}, "kernels must have 1 entry"),
        ([rbf(1.0), rbf(2.0)], 0.1, {"means": [None, None, sine]}, "kernels must have 1 entry"),
        (rbf(1.0), [0.1, -0.2], {}, "noise_variance must be positive"),
        ([rbf(1.0), rbf(2.0)], 0.1, {"names": ["a", "a"]}, "'a' twice"),
        ([rbf(1.0), rbf(2.0)], 0.1, {"names": ["a"]}, "names must be 2 strings"),
    ],
)
def test_bad_sets(kernels, noise, kwargs, message):
    with pytest.raises(ValueError, match=message):
        CandidateModels(kernels, noise, **kwargs)


@pytest.mark.parametrize("finite", [False, True])
def test_bad_positions_and_rows(finite):
    session = Session(SPECS["lengthscales"], finite)
    X = draw(2, 1)
    session.add(X, X[:, 0])
    for positions in ([], [3], [-1], [0, 0]):
        with pytest.raises(ValueError, match="positions must be different numbers in"):
            session.models.select(positions)
    for act in (
        lambda: session.models.set_targets([2], X[:1, 0]),
        lambda: session.models.remove(2),
        lambda: session.models.log_marginal_likelihood([2]),
    ):
        with pytest.raises(ValueError, match=r"rows must lie in \[0, 2\)"):
            act()
    with pytest.raises(ValueError, match="position must lie in"):
        session.models.moments_without(3, [], 0 if finite else X[0])
    session.check()


@pytest.mark.parametrize("name", ["mixed", "means", "lengthscales"])
def test_all_models_must_take_the_points(name):
    models = made(SPECS[name])
    models.require_takes(CANDIDATES)
    for X in (draw(3, 0).float(), torch.full((3, 2), math.nan, dtype=torch.float64)):
        with pytest.raises(ValueError, match=r"model|X"):
            models.add(X, X[:, 0])
        assert models.num_observations == 0


def test_a_model_that_does_not_take_the_points_is_named():
    kernels = [rbf(0.5), rbf([[0.5, 1.0, 2.0]], ard_num_dims=3)]
    models = CandidateModels(kernels, 0.1, names=["two", "three"])
    X = draw(3, 0)
    for act in (lambda: models.require_takes(X), lambda: models.add(X, X[:, 0])):
        with pytest.raises(
            ValueError, match="model 'three': kernel must take points of dimension 2"
        ):
            act()
    assert [part.model.num_observations for part in models.parts] == [0, 0]


def test_prior_means_must_be_finite():
    def steep(X):
        return 1 / (X[..., 0] - 2.0)

    models = CandidateModels(rbf(0.5), 0.1, [sine, steep], names=["sine", "steep"])
    X = draw(3, 0)
    models.require_takes(X)
    X[1, 0] = 2.0
    with pytest.raises(ValueError, match="model 'steep': mean must be finite on the domain"):
        models.require_takes(X)
    with pytest.raises(ValueError, match="model 'a': mean must take points"):
        CandidateModels(rbf(0.5), 0.1, [sine, LinearMean(3)], names=["b", "a"]).require_takes(X)
