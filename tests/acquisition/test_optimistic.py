import math

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from botorch_ext import CandidateModels, KernelGP, widths
from botorch_ext.acquisition import (
    ExpectedUCB,
    OptimisticModelUCB,
)
from tests.acquisition.every_function import BOUNDS
from tests.acquisition.every_function import draw as plain_draw
from tests.helpers import rbf, tolerance
from tests.oracles.posterior import dense_posterior

NOISE = 0.04
LENGTHSCALES = (0.4, 0.7, 0.9)


def draw(n, seed):
    X = plain_draw(n, seed)[0]
    return X, torch.sin(2 * X[:, 0]) * X[:, 1]


def batched_kernel(cls=RBFKernel, lengthscales=LENGTHSCALES, **options):
    kernel = cls(batch_shape=torch.Size([len(lengthscales)]), **options).double()
    kernel.lengthscale = torch.tensor(lengthscales, dtype=torch.float64).reshape(-1, 1, 1)
    return kernel


def kernels():
    """The members of `batched` one by one."""
    return [rbf(lengthscale) for lengthscale in LENGTHSCALES]


def batched(n=12):
    model = KernelGP(batched_kernel(), NOISE)
    model.add(*draw(n, 0))
    return model


def singles(n=12):
    models = [KernelGP(kernel, NOISE) for kernel in kernels()]
    for model in models:
        model.add(*draw(n, 0))
    return models


def ensemble(n=12):
    """Four sparse-axis models of one ensemble, as they are before fitting but for their scales."""
    X, y = draw(n, 0)
    gp = EnsembleMapSaasSingleTaskGP(
        X,
        y[:, None],
        taus=torch.tensor([0.05, 0.1, 0.3, 1.0], dtype=torch.float64),
        input_transform=Normalize(2, bounds=BOUNDS),
    )
    kernel = gp.covar_module.base_kernel
    kernel.lengthscale = torch.linspace(0.3, 1.0, 8, dtype=torch.float64).reshape(4, 1, 2)
    gp.likelihood.noise = torch.linspace(0.01, 0.1, 4, dtype=torch.float64).reshape(4, 1)
    return gp.eval()


def single_task_gp(n=12):
    X, y = draw(n, 0)
    transforms = {
        "input_transform": Normalize(2, bounds=BOUNDS),
        "outcome_transform": Standardize(1),
    }
    return SingleTaskGP(X, y[:, None], **transforms).eval()


def upper_bounds(Z, width, n=12):
    """``m x len(Z)``, by dense algebra."""
    X, y = draw(n, 0)
    rows = []
    for kernel in kernels():
        mean, covariance = dense_posterior(kernel, X, y, Z, NOISE)
        rows.append(mean + width * covariance.diagonal().sqrt())
    return torch.stack(rows)


def log_evidence(n=12):
    X, y = draw(n, 0)
    values = []
    for kernel in kernels():
        K = kernel(X).to_dense().detach() + NOISE * torch.eye(n, dtype=X.dtype)
        values.append(MultivariateNormal(torch.zeros_like(y), K).log_prob(y))
    return torch.stack(values)


@pytest.mark.parametrize("models", [batched, singles])
def test_maximum_and_average_by_loops(models):
    Z, bounds = draw(30, 1)[0], upper_bounds(draw(30, 1)[0], 1.7)
    exact = tolerance(torch.float64)
    assert_close(OptimisticModelUCB(models(), 1.7)(Z[:, None]), bounds.amax(dim=0), **exact)
    weights = log_evidence().softmax(dim=0)
    assert weights.min() > 1e-6
    assert_close(ExpectedUCB(models(), 1.7)(Z[:, None]), weights @ bounds, **exact)
    given = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    average = ExpectedUCB(models(), 1.7, probabilities=given)
    assert_close(average(Z[:, None]), given @ bounds, **exact)


def test_models_of_different_forms_side_by_side():
    X, y = draw(12, 0)
    matern = KernelGP(MaternKernel(nu=2.5).double(), 0.1)
    periodic = KernelGP(PeriodicKernel().double(), NOISE, mean=lambda X: 1.0 + 0 * X[..., 0])
    for model in (matern, periodic):
        model.add(X, y)
    gp = single_task_gp()
    models = [matern, batched(), gp, periodic]
    Z = draw(20, 1)[0]
    width = torch.tensor([1.0, 2.0, 3.0, 0.5, 0.7, 2.5], dtype=torch.float64)
    posterior = gp.posterior(Z[:, None])
    parts = [matern.mean_and_std(Z), batched().mean_and_std(Z)]
    parts.append((posterior.mean.reshape(1, 20), posterior.variance.sqrt().reshape(1, 20)))
    parts.append(periodic.mean_and_std(Z))
    mean, std = (
        torch.cat([part.reshape(-1, 20) for part in column]) for column in zip(*parts, strict=True)
    )
    bounds = mean + width[:, None] * std
    assert len(set(bounds.argmax(dim=0).tolist())) > 2
    exact = tolerance(torch.float64)
    assert_close(OptimisticModelUCB(models, width)(Z[:, None]), bounds.amax(dim=0), **exact)
    assert_close(
        OptimisticModelUCB(models, width.tolist())(Z[:, None]), bounds.amax(dim=0), **exact
    )
    smaller = OptimisticModelUCB(models, width, maximize=False)(Z[:, None])
    assert_close(smaller, (-mean + width[:, None] * std).amax(dim=0), **exact)


def candidates(n=12):
    """Two forms of kernel, not in the order of the parts they make."""
    scales = RBFKernel(), MaternKernel(nu=2.5), RBFKernel(), MaternKernel(nu=2.5)
    for scale, lengthscale in zip(scales, (0.4, 0.5, 0.7, 0.9), strict=True):
        scale.double().lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    models = CandidateModels(scales, [NOISE, 0.1, 0.02, NOISE])
    models.add(*draw(n, 0))
    return models


def test_candidate_models():
    models, Z = candidates(), draw(20, 1)[0]
    assert [part.positions for part in models.parts] == [[0, 2], [1, 3]]
    mean, std = models.mean_and_std(Z)
    weights = models.log_marginal_likelihood().softmax(dim=0)
    exact = tolerance(torch.float64)
    constants = [0.5, 2.0, 1.0, 1.5]
    for width in (1.3, torch.tensor(constants), constants, widths.SelfNormalized(1.0, 0.2, 0.1)):
        value = models.width(width, 13) if isinstance(width, widths.Width) else width
        value = torch.as_tensor(value, dtype=torch.float64).reshape(-1, 1)
        bounds = mean + value * std
        assert_close(OptimisticModelUCB(models, width)(Z[:, None]), bounds.amax(dim=0), **exact)
        assert_close(ExpectedUCB(models, width)(Z[:, None]), weights @ bounds, **exact)
    # Rows that pend are no data.
    models.add(draw(2, 7)[0], None)
    assert_close(ExpectedUCB(models, 1.0).probabilities, weights, **exact)


@pytest.mark.parametrize("num_pending", [0, 2])
def test_without_observations_all_models_are_as_probable(num_pending):
    models = CandidateModels([RBFKernel(), MaternKernel(1.5), PeriodicKernel()], NOISE)
    if num_pending:
        models.add(draw(num_pending, 0)[0], None)
    weights = torch.full((3,), 1 / 3, dtype=torch.float64)
    assert_close(ExpectedUCB(models, 1.0).probabilities, weights, **tolerance(torch.float64))


def test_members_of_an_ensemble():
    gp, Z = ensemble(), draw(20, 1)[0]
    posterior = gp.posterior(Z[:, None])
    mean, std = (m[..., 0, 0] for m in (posterior.mean, posterior.variance.sqrt()))
    assert mean.shape == (20, 4)
    bounds = mean + 1.5 * std
    exact = tolerance(torch.float64)
    assert_close(OptimisticModelUCB(gp, 1.5)(Z[:, None]), bounds.amax(dim=-1), **exact)
    assert_close(ExpectedUCB(gp, 1.5)(Z[:, None]), bounds.mean(dim=-1), **exact)
    each = torch.tensor([0.5, 1.0, 1.5, 2.0], dtype=torch.float64)
    largest = (mean + each * std).amax(dim=-1)
    assert_close(OptimisticModelUCB(gp, each)(Z[:, None]), largest, **exact)
    weights = torch.tensor([-1.0], dtype=torch.float64)
    transform = ScalarizedPosteriorTransform(weights)
    smaller = OptimisticModelUCB(gp, 1.5, posterior_transform=transform)(Z[:, None])
    assert_close(smaller, (-mean + 1.5 * std).amax(dim=-1), **exact)
    assert_close(OptimisticModelUCB(gp, 1.5, maximize=False)(Z[:, None]), smaller, **exact)


@pytest.mark.parametrize("cls", [OptimisticModelUCB, ExpectedUCB])
@pytest.mark.parametrize("models", [batched, singles, ensemble])
def test_gradients(cls, models):
    acqf, Z = cls(models(), 2.0), draw(8, 2)[0]
    Z = Z.unsqueeze(-2).requires_grad_()
    assert torch.autograd.gradcheck(acqf, (Z,), eps=1e-6, atol=1e-5, rtol=1e-5)


def test_width_objects_are_those_of_each_model():
    width = widths.SelfNormalized(1.0, 0.2, 0.1)
    rigorous = widths.FixedDesignContinuous(1.0, 0.2, 0.1, 3)
    Z, models = draw(10, 1)[0], singles()
    exact = tolerance(torch.float64)

    def bound(model, width):
        mean, std = model.mean_and_std(Z)
        return mean + width(13, model) * std + width.offset(13, model)

    for given in (batched(), models):
        expected = torch.stack([bound(model, rigorous) for model in models]).amax(dim=0)
        assert_close(OptimisticModelUCB(given, rigorous)(Z[:, None]), expected, **exact)
        pairs = zip(models, (width, rigorous, widths.Constant(2.0)), strict=True)
        expected = torch.stack([bound(*pair) for pair in pairs]).amax(dim=0)
        acqf = OptimisticModelUCB(given, [width, rigorous, 2.0])
        assert_close(acqf(Z[:, None]), expected, **exact)


@pytest.mark.parametrize("models", [batched, singles])
def test_pending_points_are_hallucinated_for_every_model(models):
    pending, Z = draw(3, 3)[0], draw(20, 1)[0]
    X, y = draw(12, 0)
    joint = torch.cat([X, pending])
    rows = []
    for kernel in kernels():
        mean, _ = dense_posterior(kernel, X, y, Z, NOISE)
        _, covariance = dense_posterior(kernel, joint, torch.cat([y, y[:3]]), Z, NOISE)
        rows.append(mean + 2.0 * covariance.diagonal().sqrt())
    bounds, exact = torch.stack(rows), tolerance(torch.float64)
    acqf = OptimisticModelUCB(models(), 2.0, X_pending=pending)
    assert_close(acqf(Z[:, None]), bounds.amax(dim=0), **exact)
    acqf.set_X_pending(None)
    assert_close(acqf(Z[:, None]), upper_bounds(Z, 2.0).amax(dim=0), **exact)
    # Pending points tell nothing about the models, and nothing to the width.
    average = ExpectedUCB(models(), 2.0, X_pending=pending)
    assert_close(average(Z[:, None]), log_evidence().softmax(dim=0) @ bounds, **exact)
    width = widths.SelfNormalized(1.0, 0.2, 0.1)
    given = OptimisticModelUCB(models(), width, X_pending=pending)
    assert_close(given.width, OptimisticModelUCB(models(), width).width)


def test_pending_points_of_an_ensemble():
    gp, pending, Z = ensemble(), draw(3, 3)[0], draw(20, 1)[0]
    mean = gp.posterior(Z[:, None]).mean[..., 0, 0]
    acqf = OptimisticModelUCB(gp, 2.0)
    acqf.set_X_pending(pending)
    with torch.no_grad():
        A, B, C = gp.train_inputs[0][0], *(gp.transform_inputs(P) for P in (pending, Z))
        rows = []
        for i in range(4):
            kernel = lambda P, Q, i=i: gp.covar_module(P, Q).to_dense()[i]  # noqa: E731
            J = torch.cat([A, B])
            noise = gp.likelihood.noise[i].reshape(()) * torch.eye(15, dtype=J.dtype)
            k = kernel(J, C)
            variance = kernel(C, C).diagonal() - (
                k * torch.linalg.solve(kernel(J, J) + noise, k)
            ).sum(dim=0)
            rows.append(variance.sqrt() * gp.outcome_transform.stdvs[i].item())
    expected = (mean + 2.0 * torch.stack(rows, dim=-1)).amax(dim=-1)
    assert_close(acqf(Z[:, None]), expected, rtol=1e-5, atol=1e-5)


def test_optimize_acqf_finds_what_a_grid_finds():
    axes = [torch.linspace(*BOUNDS[:, j].tolist(), 40, dtype=torch.float64) for j in range(2)]
    grid = torch.cartesian_prod(*axes).unsqueeze(-2)
    for cls in (OptimisticModelUCB, ExpectedUCB):
        for models in (batched(), ensemble()):
            acqf = cls(models, 1.0)
            with torch.random.fork_rng():
                torch.manual_seed(0)
                x, value = optimize_acqf(acqf, BOUNDS, q=1, num_restarts=4, raw_samples=64)
            with torch.no_grad():
                assert value >= acqf(grid).max() - 1e-9
            assert bool(((x >= BOUNDS[0]) & (x <= BOUNDS[1])).all())


def test_bad_models_are_named():
    X = torch.rand(4, 3, dtype=torch.float64)
    other = KernelGP(RBFKernel().double(), NOISE)
    other.add(X, X[:, 0])
    single = KernelGP(RBFKernel(), NOISE, dtype=torch.float32)
    twice = KernelGP(RBFKernel(batch_shape=torch.Size([2, 3])).double(), NOISE)
    for bad in ([], 3, [3], [batched(), None], [*singles(), other], [*singles(), single], twice):
        with pytest.raises(ValueError, match="model"):
            OptimisticModelUCB(bad, 1.0)


def test_bad_widths_and_probabilities_are_named():
    for bad in (-1.0, [1.0, 2.0], torch.ones(2), [1.0, 2.0, -3.0]):
        for models in (batched(), singles()):
            with pytest.raises(ValueError, match="width"):
                OptimisticModelUCB(models, bad)
    with pytest.raises(ValueError, match="width"):
        OptimisticModelUCB(ensemble(), widths.Constant(1.0))
    for bad in ([0.5, 0.5], [0.5, 0.7, -0.2], [0.5, 0.5, 0.5], [math.nan, 0.5, 0.5]):
        with pytest.raises(ValueError, match="probabilities"):
            ExpectedUCB(batched(), 1.0, probabilities=bad)
    gp, more = single_task_gp(), singles()
    more[1].add(*draw(1, 5))
    standardized = KernelGP.from_botorch(gp)
    for models, why in (
        ([gp, gp], "probabilities"),
        ([batched(), gp], "probabilities"),
        ([standardized, standardized], "outcome transform"),
        (more, "different data"),
    ):
        with pytest.raises(ValueError, match=why):
            ExpectedUCB(models, 1.0)
