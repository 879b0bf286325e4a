"""Models of several tasks, and models whose transforms are not linear or change the columns."""

import math

import pytest
import torch
from botorch.acquisition import PosteriorStandardDeviation, UpperConfidenceBound
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
)
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.transforms import (
    ChainedOutcomeTransform,
    Log,
    Normalize,
    Standardize,
)
from botorch.models.transforms.input import (
    AppendFeatures,
    ChainedInputTransform,
    InputPerturbation,
)
from botorch.models.transforms.outcome import StratifiedStandardize
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
    MaxVariance,
)
from tests.acquisition.every_function import BOUNDS, CASES, draw
from tests.helpers import tolerance

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning"
    ),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]
NOISES = 0.5, 1e-3


def multi_task_gp(tasks, output_tasks, n=10, yvar=None, outcome_transform=None):
    """A MultiTaskGP of ``draw(n, 0)`` whose second column is the task, in raw units."""
    X, y = draw(n, 0)
    task = torch.tensor(tasks, dtype=torch.float64).repeat(n)[:n, None]
    with torch.random.fork_rng():
        torch.manual_seed(0)  # the first covariance of the tasks is drawn
        model = MultiTaskGP(
            torch.cat([X[:, :1], task, X[:, 1:]], -1),
            y[:, None],
            1,
            yvar,
            output_tasks=output_tasks,
            outcome_transform=outcome_transform,
        )
    model.covar_module.kernels[0].lengthscale = torch.tensor(0.8, dtype=torch.float64)
    if yvar is None:
        model.likelihood.noise = torch.tensor(NOISES, dtype=torch.float64).view(-1, 1)
    return model.eval()


def log_gp(reverse=False, n=10):
    """A SingleTaskGP of the logarithm of positive outcomes."""
    X, y = draw(n, 0)
    y = y.exp()[:, None]
    if reverse:
        X, y = X.flip(0), y.flip(0)
    model = SingleTaskGP(X, y, outcome_transform=Log())
    model.likelihood.noise = torch.tensor(0.04, dtype=torch.float64)
    return model.eval()


# --- the noise that a misspecification is divided by ---------------------------------------------


@pytest.mark.parametrize("tasks", [[0, 1], [1, 0]])
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.EnlargementWarning")
def test_the_noise_is_that_of_the_output_task(tasks, output):
    acqf = EnlargedUpperConfidenceBound(multi_task_gp(tasks, [output]), 0.0, misspecification=0.1)
    assert acqf.width.item() == pytest.approx(0.1 * math.sqrt(11 / NOISES[output]), rel=1e-6)


@pytest.mark.parametrize("output", [0, 1])
def test_the_noise_is_in_the_units_of_the_output_task(output):
    scales = StratifiedStandardize(stratification_idx=1, all_task_values=torch.tensor([0, 1]))
    model = multi_task_gp([0, 1], [output], outcome_transform=scales)
    std = draw(10, 0)[1][output::2].std().item()
    acqf = EnlargedUpperConfidenceBound(model, 2.0, misspecification=1e-3)
    expected = 2.0 + 1e-3 * math.sqrt(11 / NOISES[output]) / std
    assert acqf.width.item() == pytest.approx(expected, rel=1e-6)


def test_noise_that_differs_between_points_must_be_given():
    for reverse in (False, True):
        with pytest.raises(ValueError, match=r"noise_variance must be given: .* differs"):
            EnlargedUpperConfidenceBound(log_gp(reverse), 2.0, misspecification=0.1)
    acqf = EnlargedUpperConfidenceBound(log_gp(), 2.0, misspecification=0.1, noise_variance=0.25)
    assert_close(acqf.width.item(), 2.0 + 0.1 * math.sqrt(11) / 0.5)


# --- pending points of models of several tasks ---------------------------------------------------


def conditioned_covariance(model, P, Z, noise):
    """Covariances at ``Z`` given ``P`` as well, by the joint posterior: ``noise`` one for each."""
    with torch.no_grad():
        C = model.posterior(torch.cat([Z, P])).covariance_matrix
    n = len(Z)
    K = C[n:, n:] + torch.diag(noise)
    return C[:n, :n] - C[:n, n:] @ torch.linalg.solve(K, C[n:, :n])


def conditioned_variance(model, P, Z, noise):
    return conditioned_covariance(model, P, Z, noise).diagonal()


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("output", [0, 1])
def test_pending_points_are_of_the_output_task(fixed, output):
    yvar = torch.tensor(NOISES, dtype=torch.float64).repeat(5)[:, None] if fixed else None
    model = multi_task_gp([0, 1], [output], yvar=yvar)
    P, Z = draw(3, 3)[0], draw(6, 4)[0]
    noise = torch.full((3,), NOISES[output], dtype=torch.float64)
    expected = model.posterior(Z).mean.squeeze(-1) + 2 * (
        conditioned_variance(model, P, Z, noise).sqrt()
    )
    acqf = EnlargedUpperConfidenceBound(model, 2.0, X_pending=P)
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))
    # The same with the task given.
    acqf.set_X_pending(torch.cat([P[:, :1], torch.full_like(P[:, :1], output), P[:, 1:]], -1))
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))


# --- models that take fewer columns than they were told ------------------------------------------


def appending_gp(chained=False, rows=1):
    """A SingleTaskGP of three columns, the last of which it appends itself."""
    X, y = draw(10, 0)
    last = torch.linspace(0, 1, 10, dtype=torch.float64)[:, None]
    transform = AppendFeatures(torch.linspace(0.5, 0.8, rows, dtype=torch.float64)[:, None])
    if chained:
        transform = ChainedInputTransform(
            first=Normalize(3, indices=[0, 1], bounds=BOUNDS), second=transform
        )
    model = SingleTaskGP(torch.cat([X, last], -1), y[:, None], input_transform=transform)
    model.covar_module.lengthscale = torch.tensor(0.8, dtype=torch.float64)
    return model.eval()


@pytest.mark.parametrize(("name", "chained"), [(name, i % 2 == 0) for i, name in enumerate(CASES)])
def test_models_that_append_features(name, chained):
    case, model, X = CASES[name], appending_gp(chained), draw(4, 3)[0]
    options = {"misspecification": 0.0} if "misspecification" in case.options else {}
    acqf = case(model, **options)
    values = acqf(X[:, None])
    assert values.isfinite().all()
    if name == "MaxVariance":
        assert_close(values, PosteriorStandardDeviation(model)(X[:, None]))
    if name in ("OptimisticModelUCB", "ExpectedUCB"):
        assert_close(values, UpperConfidenceBound(model, 4.0)(X[:, None]))
    with pytest.raises(ValueError, match="X_pending must be None for a model that appends"):
        acqf.set_X_pending(X)
    with pytest.raises(ValueError, match="X_pending must be None for a model that appends"):
        acqf(X)
    assert_close(acqf(X[:, None]), values)


def test_a_kernel_gp_that_appends_features_takes_pending_points():
    model, P, Z = appending_gp(), draw(4, 3)[0], draw(6, 4)[0]
    scale = model.outcome_transform.stdvs.item()
    noise = scale**2 * model.likelihood.noise.detach().expand(4)
    acqf = MaxVariance(KernelGP.from_botorch(model), X_pending=P)
    expected = conditioned_variance(model, P, Z, noise).sqrt()
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))


# --- models that perturb their inputs ------------------------------------------------------------


@pytest.mark.parametrize("own", [False, True])
def test_a_pending_point_counts_once_where_inputs_are_perturbed(own):
    (X, y), P, Z = draw(10, 0), draw(2, 3)[0], draw(6, 4)[0]
    shifts = torch.tensor([[0.3, 0.0], [0.0, -0.2]], dtype=torch.float64)
    transform = InputPerturbation(shifts)
    model = SingleTaskGP(X, y[:, None], outcome_transform=None, input_transform=transform)
    plain = SingleTaskGP(X, y[:, None], outcome_transform=None)
    for gp in (model, plain):
        gp.covar_module.lengthscale = torch.tensor(0.8, dtype=torch.float64)
    noise = plain.likelihood.noise.detach().expand(2)
    average = ExpectationPosteriorTransform(n_w=2)
    acqf = MaxVariance(KernelGP.from_botorch(model) if own else model, average, X_pending=P)
    told = conditioned_covariance(plain, P, (Z[:, None] + shifts).view(12, 2), noise)
    expected = told.view(6, 2, 6, 2).mean(dim=(1, 3)).diagonal().sqrt()
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))


# --- outcome transforms that are not linear ------------------------------------------------------


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("standardized", [False, True])
def test_pending_points_leave_the_mean_before_the_transform_alone(own, standardized):
    X, y = draw(10, 0)
    P, Z = draw(3, 3)[0], draw(6, 4)[0]
    both = ChainedOutcomeTransform(log=Log(), scale=Standardize(1))
    log = SingleTaskGP(X, y.exp()[:, None], outcome_transform=both if standardized else Log())
    plain = SingleTaskGP(X, y[:, None], outcome_transform=Standardize(1) if standardized else None)
    for model in (log, plain):
        model.covar_module.lengthscale = torch.tensor(0.8, dtype=torch.float64)
        model.likelihood.noise = torch.tensor(0.04, dtype=torch.float64)
    noise = torch.full((3,), 0.04, dtype=torch.float64) * (y.var() if standardized else 1.0)
    mean = plain.posterior(Z).mean.squeeze(-1)
    variance = conditioned_variance(plain, P, Z, noise)
    expected = torch.exp(mean + variance / 2)  # of a lognormal variable
    model = KernelGP.from_botorch(log) if own else log
    acqf = LowerConfidenceBound(model, 0.0, X_pending=P)
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))
    acqf = MaxVariance(model, X_pending=P)
    expected = expected * torch.expm1(variance).sqrt()
    assert_close(acqf(Z[:, None]), expected, **tolerance(torch.float64))
