"""One model, or a batch of them: gradients, BoTorch's interface, jitter, storage, and draws."""

import math
import pickle
import warnings

import pytest
import torch
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import FilterFeatures
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import IndexKernel, RBFKernel
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.testing import assert_close

from botorch_ext import FiniteSet, plan
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.models import FinitePosterior, KernelGP
from botorch_ext.models.joint_draws import JointDraw
from tests.helpers import drawn, matern, pairwise, rbf, tolerance
from tests.kernel_functions.kernels import scaled, spread, stationary
from tests.kernels.joint import COVARIANCE, points
from tests.models.sessions import CANDIDATES, SPECS, Session, constant_mean, values
from tests.oracles.posterior import dense_posterior

TOL = tolerance(torch.float64)
BOUNDS = torch.tensor([[2.0, -3.0], [5.0, -1.0]], dtype=torch.float64)

# SingleTaskGP wants standardised data in the unit cube; the test data is deliberately neither.
pytestmark = pytest.mark.filterwarnings("ignore:Data .* is not (contained|standardized)")


def draw(n, seed):
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * drawn(n, 2, seed=seed)
    return X, torch.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * values(n, seed)


def told(kernel, noise, n, **options):
    model = KernelGP(kernel, noise, **options)
    model.add(*draw(n, 0))
    return model


def curved(X):
    return torch.sin(X).sum(dim=-1)


def slopes():
    mean = LinearMean(2, batch_shape=torch.Size([3])).double()
    mean.initialize(weights=spread(-1.0, 1.0, 3, 2, 1), bias=spread(0.0, 2.0, 3, 1))
    return mean


NOISES = spread(0.01, 0.1, 3)
MANY = stationary(math.inf, spread(0.3, 1.5, 3, 1, 1))
BATCHES = {
    "lengthscales": (MANY, 0.05, None),
    "noise variances": (matern(0.9, nu=1.5), NOISES, None),
    "both": (scaled(MANY, 0.5), NOISES, None),
    "one mean": (MANY, NOISES, curved),
    "a mean each": (MANY, NOISES, slopes()),
    "a mean each of one kernel": (matern(0.9), NOISES, slopes()),
    "constant mean": (MANY, 0.05, ConstantMean()),
    "a number": (MANY, 0.05, lambda X: X.new_full(X.shape[:-1], 3.0)),
}


@pairwise(name=BATCHES, num=[0, 25], own_points=[False, True])
def test_gradients_of_a_batch_are_those_of_each_model(name, num, own_points):
    kernel, noise, prior = BATCHES[name]
    model = told(kernel, noise, num, mean=prior)
    Z = draw(15, 3)[0].reshape(3, 5, 2) if own_points else draw(5, 3)[0]
    assert model.has_closed_form_gradient
    got = model.mean_std_and_gradients(Z)
    Z = Z.expand(3, 5, 2).clone().requires_grad_()  # so that the gradients stay apart
    moments = model.mean_and_std(Z)
    gradients = (
        torch.autograd.grad(moment.sum() + 0 * Z.sum(), Z, retain_graph=True)[0]
        for moment in moments  # which need not depend on Z
    )
    for a, b in zip(got, (*moments, *gradients), strict=True):
        assert a.shape == b.shape
        assert not a.requires_grad
        assert_close(a, b.detach(), rtol=1e-7, atol=1e-9)


def test_a_mean_with_a_cusp_has_a_gradient_of_zero_there():
    model = KernelGP(rbf(0.7), 0.05, mean=lambda X: (X[..., 0] - 3).square().sqrt())
    Z = torch.tensor([[3.0, -2.0], [4.0, -2.0]], dtype=torch.float64)
    expected = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert_close(model.mean_std_and_gradients(Z)[2], expected)


def test_posteriors_of_many_points_and_of_an_empty_model_are_the_dense_ones():
    (X, y), (Z, _) = draw(20, 0), draw(600, 13)
    posterior = told(rbf(0.7), 0.05, 20).posterior(Z, observation_noise=True)
    mean, covariance = dense_posterior(rbf(0.7), X, y, Z, 0.05)
    assert_close(posterior.mean.squeeze(-1), mean, **TOL)
    expected = covariance + 0.05 * torch.eye(600, dtype=torch.float64)
    assert_close(posterior.variance.squeeze(-1), expected.diagonal(), rtol=1e-7, atol=1e-7)
    assert_close(posterior.distribution.covariance_matrix, expected, rtol=1e-6, atol=1e-7)
    empty = KernelGP(scaled(rbf(0.7)), 0.05, mean=constant_mean(1.5))
    assert_close(empty.posterior(X).mean, torch.full((20, 1), 1.5, dtype=torch.float64))
    prior = scaled(rbf(0.7))(X).to_dense().detach()
    assert_close(empty.posterior(X).distribution.covariance_matrix, prior)
    assert empty.information_gain().item() == 0


def fitted(**options):
    """A SingleTaskGP of three columns with numbers that are no accident."""
    X, y = draw(25, 15)
    X = torch.cat([X, X[:, :1].square() / 9], dim=-1)
    gp = SingleTaskGP(X, y[:, None], **{"outcome_transform": None} | options)
    gp.covar_module.lengthscale = 0.4
    gp.likelihood.noise = 0.03
    gp.mean_module.constant.data.fill_(0.2)
    return gp, X, y


FITTED = {
    "plain": dict,
    "scaled": lambda: {
        "outcome_transform": Standardize(1),
        "input_transform": Normalize(3, bounds=torch.tensor([[2.0, -3, 0], [5, -1, 3]]).double()),
    },
    "fewer columns": lambda: {"input_transform": FilterFeatures(torch.tensor([0, 1]))},
}


@pytest.mark.parametrize("name", FITTED)
def test_from_botorch_keeps_the_posterior_and_grows(name):
    gp, X, y = fitted(**FITTED[name]())
    frozen, Z = KernelGP.from_botorch(gp), X[:12] + 0.3
    frozen.require_takes(X)
    for _ in range(2):
        for noise in (False, True):
            expected, got = (
                model.posterior(Z[:, None], observation_noise=noise) for model in (gp, frozen)
            )
            assert_close(got.mean, expected.mean, **TOL)
            assert_close(got.variance, expected.variance, **TOL)
        mean, std = frozen.mean_and_std(Z)
        assert_close(mean, expected.mean.reshape(12), **TOL)
        assert_close(std, gp.posterior(Z[:, None]).variance.sqrt().reshape(12), **TOL)
        frozen.add(X[:5] + 0.1, y[:5] - 0.5)
        gp = gp.condition_on_observations(X[:5] + 0.1, y[:5, None] - 0.5)
    batch = plan(FiniteSet(X), frozen, 3, X_pending=X[:2])
    assert batch.indices is not None and not {0, 1} & set(batch.indices.tolist())


@pytest.mark.parametrize("name", FITTED)
def test_from_botorch_keeps_the_noise_of_each_observation(name):
    yvar = torch.logspace(-3, 0, 25, dtype=torch.float64)[:, None]
    X, y = fitted()[1:]
    gp = SingleTaskGP(X, y[:, None], yvar, **{"outcome_transform": None} | FITTED[name]()).eval()
    frozen, Z = KernelGP.from_botorch(gp), X[:12] + 0.3
    for noise in (False, True):  # BoTorch predicts with the mean of the noise variances
        expected, got = (
            model.posterior(Z[:, None], observation_noise=noise) for model in (gp, frozen)
        )
        assert_close(got.mean, expected.mean, **TOL)
        assert_close(got.variance, expected.variance, **TOL)
    equal = KernelGP.from_botorch(
        SingleTaskGP(X, y[:, None], torch.full_like(yvar, 0.2), outcome_transform=None)
    )
    assert equal.relative_noise is None and float(equal.noise_variance) == pytest.approx(0.2)


def test_from_botorch_refuses_what_it_cannot_keep():
    X, y = draw(6, 0)
    tasks = torch.cat([X, torch.arange(6, dtype=torch.float64)[:, None] % 2], -1)
    several_tasks = MultiTaskGP(tasks, y[:, None], -1, output_tasks=[0])
    for model, said in (
        (SingleTaskGP(X, torch.stack([y, y], -1), outcome_transform=None), "one output"),
        (several_tasks, "exact GP of a single task"),
        (SingleTaskVariationalGP(X, y[:, None]), "exact GP of a single task"),
    ):
        with pytest.raises(ValueError, match=said):
            KernelGP.from_botorch(model)


@pytest.mark.parametrize("training", [True, False])
def test_from_botorch_leaves_its_model_in_the_mode_it_was_in(training):
    X, y = draw(6, 0)
    gp = SingleTaskGP(X, y[:, None], input_transform=Normalize(2, bounds=BOUNDS)).train(training)
    inputs = gp.train_inputs[0].clone()
    frozen = KernelGP.from_botorch(gp)
    assert gp.training == training
    assert_close(gp.train_inputs[0], inputs)
    assert_close(frozen.train_inputs[0], Normalize(2, bounds=BOUNDS)(X))


def test_a_model_of_tasks_is_fitted_and_frozen(device):
    X = points(24, 0)
    task = X[:, 4]
    y = torch.sin(2 * X[:, 0]) + 0.3 * X[:, 1] * (task - 1) + 0.1 * X[:, 3] + 0.2 * values(24, 0)
    with torch.random.fork_rng():
        torch.manual_seed(0)  # the first covariance of the tasks is drawn
        kernel = ActionContextKernel(matern(0.7), IndexKernel(4, rank=1), 3, [4]).double()
    model = SingleTaskGP(
        X.to(device),
        y.unsqueeze(-1).to(device),
        covar_module=kernel.to(device),
        input_transform=Normalize(5, indices=[0, 1, 2]),
    )
    before = {name: value.clone() for name, value in kernel.state_dict().items()}
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with warnings.catch_warnings(action="ignore", category=OptimizationWarning):
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 10}})
    for name, value in kernel.state_dict().items():
        learned = name.endswith(("raw_lengthscale", "covar_factor", "raw_var"))
        assert torch.equal(value, before[name]) != learned
    frozen, Z = KernelGP.from_botorch(model.eval()), points(9, 1).to(device)
    with torch.no_grad():
        got, expected = frozen.posterior(Z), model.posterior(Z)
    assert_close(got.mean, expected.mean, **TOL)
    assert_close(got.variance, expected.variance, **TOL)


class NoValue(RBFKernel):
    """NaN left of zero, as a kernel of tasks is for what is no task, away from the CPU."""

    def forward(self, x1, x2, diag=False, **params):
        values = super().forward(x1, x2, diag=diag, **params)
        return values * (math.nan if bool((x1 < 0).any()) else 1.0)


@pytest.mark.parametrize("kernel", [NoValue(), TaskKernel(COVARIANCE)])
def test_points_without_a_kernel_value_are_refused(kernel, device):
    X = torch.tensor([[1.0], [-1.0]], dtype=torch.float64, device=device)
    model = KernelGP(kernel, 0.05, device=device)
    for act in (lambda: model.add(X, X), lambda: model.largest_variance(X)):
        with pytest.raises(ValueError, match=r"kernel at X must be finite|tasks must be whole"):
            act()
    assert model.num_observations == 0
    model.add(X[:1], X[:1])


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("empty", [False, True])
def test_conditioned_models_and_fantasies_are_the_dense_posteriors(pending, empty):
    (X, y), (Z, _) = draw(0 if empty else 12, 18), draw(5, 21)
    model = KernelGP(rbf(0.7), noise_variance=0.05)
    model.add(X, y)
    waiting = draw(pending, 4)[0]
    model.add(waiting, None)
    Xf = torch.stack([draw(3, s)[0] for s in (19, 20)]).requires_grad_()  # b=2 x 3 x 2
    Yf = torch.randn(4, 2, 3, 1, generator=torch.Generator().manual_seed(0)).double()
    fantasy = model.condition_on_observations(Xf, Yf)
    assert fantasy.batch_shape == (4, 2)
    again = fantasy.condition_on_observations(Xf[:, :1] + 0.1, Yf[:, :, :1])
    for one, more in ((fantasy, 0), (again, 1)):
        posterior = one.posterior(Z)
        for i, j in ((0, 0), (1, 1), (3, 0)):
            new = torch.cat([Xf[j], Xf[j, :1] + 0.1]).detach()[: 3 + more]
            known = torch.cat([X, new]), torch.cat([y, Yf[i, j, :, 0], Yf[i, j, :1, 0]])
            known = known[0], known[1][: len(known[0])]
            mean, _ = dense_posterior(rbf(0.7), *known, Z, 0.05)
            assert_close(posterior.mean[i, j, :, 0], mean, **TOL)
            seen = torch.cat([known[0], waiting])
            _, covariance = dense_posterior(rbf(0.7), seen, seen[:, 0], Z, 0.05)
            assert_close(posterior.distribution.covariance_matrix[i, j], covariance, **TOL)
    fantasy.posterior(Z).mean.sum().backward()
    assert Xf.grad is not None and bool((Xf.grad != 0).any())
    assert model.num_observations == len(X) + pending and model.batch_shape == ()
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=0)
    assert model.fantasize(Xf.detach(), sampler).posterior(Z).mean.shape == (3, 2, 5, 1)


@pytest.mark.parametrize("name", ["one", "lengthscales"])
def test_a_conditioned_model_takes_over_what_pends(name):
    session, (X, _), Y = Session(SPECS[name]), draw(9, 1), values(3, 1)
    session.add(X[:2], None)
    session.add(X[2:5], values(3, 0))
    session.add(X[5:6], None)
    model = session.models.parts[0].model

    def mean(new, Y):
        return model.condition_on_observations(new, Y[:, None]).mean_and_std(CANDIDATES[:5])[0]

    told = model.condition_on_observations(X[6:], Y[:, None])
    gradients = X[6:].clone().requires_grad_(), Y.clone().requires_grad_()
    assert torch.autograd.gradcheck(mean, gradients)
    session.check()  # it stays as it was
    session.add(X[6:], Y)
    for _ in range(2):
        expected, _ = session.models.mean_and_std(CANDIDATES)
        assert_close(told.mean_and_std(CANDIDATES)[0].reshape(expected.shape), expected, **TOL)
        for each in (told, session):
            each.set_targets([0], torch.ones(1, dtype=torch.float64))
    # On candidates what pends still pends, and is told there.
    session.models, session.finite = session.models.on(CANDIDATES), True
    session.check()
    session.set_targets([1], Y[:1])
    session.check()


@pytest.mark.parametrize("outputscale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("block", [False, True])
def test_a_duplicate_at_tiny_noise_gets_jitter_relative_to_the_prior_variance(outputscale, block):
    X, y = draw(6, 26)
    X, y = torch.cat([X, X[:1]]), torch.cat([y, y[:1]])
    for noise in (1e-12, 1e-17):
        model = KernelGP(scaled(rbf(0.7), outputscale), noise * outputscale)
        for part in [slice(7)] if block else [slice(i, i + 1) for i in range(7)]:
            model.add(X[part], y[part])
        jitter = model.factor.jitter[:7]
        # Its own entry alone, and only where the noise is no help.
        assert (jitter > 1e-15 * outputscale).tolist() == [False] * 6 + [noise < 1e-15]
        assert not bool((jitter[:6] > 0).any())
        mean, std = model.mean_and_std(X)
        assert_close(mean, y, rtol=1e-5, atol=1e-5)
        assert bool(torch.isfinite(std).all())


@pytest.mark.parametrize("how", ["state_dict", "saved", "pickle"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_stored_model_comes_back_whole(how, batch, device, tmp_path):
    X, y = (a.to(device) for a in draw(90, 0))

    def made(lengthscale, outputscale, noise):
        kernel = stationary(math.inf, spread(lengthscale, lengthscale, *batch, 1, 1))
        kernel = scaled(kernel, outputscale)
        return KernelGP(kernel, noise, mean=ConstantMean(), device=device)

    model = made(0.7, 0.6, 0.05)
    model.add(X[:80], y[:80])
    model.add(X[80:82], None)
    if how == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        copy = made(2.0, 0.1, 0.2)
        copy.add(X[:3], y[:3])  # to be forgotten
        state = model.state_dict()
        if how == "saved":
            torch.save(state, tmp_path / "model.pt")
            state = torch.load(tmp_path / "model.pt", weights_only=True)
        copy.load_state_dict(state)
    for grown in (copy, model):
        grown.set_targets([81], y[:1])
        grown.add(X[82:], y[82:])
        assert grown.factor.pending == [80]
    for a, b in zip(copy.mean_and_std(X), model.mean_and_std(X), strict=True):
        assert_close(a, b, **TOL)
    assert_close(copy.train_targets, model.train_targets, **TOL)
    assert_close(copy.posterior(X[:5]).covariance_matrix, model.posterior(X[:5]).covariance_matrix)


@pytest.mark.parametrize("first", [0, 1])
def test_moving_a_model_moves_all_of_it_and_nothing_of_those_conditioned(first):
    X, y = draw(10, 0)
    parent = told(scaled(matern(0.9, nu=1.5)), 0.05, 10, mean=ConstantMean())
    models = [parent, parent.condition_on_observations(X[:2] + 0.1, y[:2, None])]
    expected = [model.mean_and_std(X)[0] for model in models]
    moved = models[first].float()
    moved.condition_on_observations(X[:1].float(), y[:1, None].float())
    if not first:
        moved.add(X[:1].float() + 0.1, y[:1].float())
        moved.remove(10)
    got = moved.posterior(X.float()).mean.squeeze(-1)
    assert got.dtype == torch.float32
    assert_close(got.double(), expected[first], **tolerance(torch.float32))
    assert torch.equal(models[1 - first].mean_and_std(X)[0], expected[1 - first])
    assert models[1 - first].kernel.outputscale.dtype == torch.float64


@pytest.mark.parametrize("kernel", [rbf(0.7), MANY])
def test_no_rows_change_nothing(kernel):
    X, y = draw(3, 0)
    models = KernelGP(kernel, 0.1), FinitePosterior(kernel, X, 0.1)
    for model in models:
        model.add(X[:0], y[:0])
        model.add(X, y)
        model.add(X[:0], None)
        model.set_targets([], y[:0])
        assert model.num_observations == 3
    assert_close(models[0].mean_and_std(X)[0], models[1].mean)


@pytest.mark.parametrize("finite", [False, True])
def test_a_joint_draw_is_one_of_the_posterior_however_its_points_come(finite):
    (X, y), (Z, _), width = draw(6, 0), draw(9, 1), 1.5
    model, P = told(rbf(0.7), 0.05, 6, mean=curved), draw(2, 5)[0]
    model.add(P, None)  # what pends counts in the covariance
    model = FinitePosterior.from_model(model, Z) if finite else model
    draw_of = JointDraw(model, torch.Generator().manual_seed(3), width)
    got = torch.cat([draw_of.at(Z[:3]), draw_of.at(Z[3:6])])
    mean, _ = dense_posterior(rbf(0.7), X, y - curved(X), Z, 0.05)
    known = torch.cat([X, P])
    _, covariance = dense_posterior(rbf(0.7), known, known[:, 0], Z, 0.05)
    mean = mean + curved(Z)
    normals = torch.randn(6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    root = torch.linalg.cholesky(covariance[:6, :6])
    # The jitter of a draw is noise of 3e-5 standard deviations.
    close = {"rtol": 0, "atol": 1e-3}
    assert_close(got, mean[:6] + width * root @ normals, **close)
    k = covariance[6:, :6]
    weights = torch.linalg.solve(covariance[:6, :6], k.mT)
    variance = covariance.diagonal()[6:] - (k.mT * weights).sum(dim=0)
    at, std = draw_of.mean_and_std(Z[6:])
    assert_close(at, mean[6:] + weights.mT @ (got - mean[:6]), **close)
    assert_close(std, width * variance.sqrt(), **close)
    assert_close(draw_of.mean(Z[6:]), at, **close)
    assert torch.autograd.gradcheck(draw_of.mean, (Z[6:].clone().requires_grad_(),))
