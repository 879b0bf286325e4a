"""Models of several outputs and tasks, models that cannot be conditioned, and models whose
transforms are not linear or change the columns."""

import math

import pytest
import torch
from botorch.acquisition import PosteriorStandardDeviation, UpperConfidenceBound
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.models import ModelListGP, MultiTaskGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms import ChainedOutcomeTransform, Log, Normalize, Standardize
from botorch.models.transforms.input import AppendFeatures, ChainedInputTransform, InputPerturbation
from botorch.models.transforms.outcome import StratifiedStandardize
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.acquisition import EnlargedUpperConfidenceBound, LowerConfidenceBound, MaxVariance
from tests.acquisition import every_function as every
from tests.helpers import tolerance

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning"
    ),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]
EXACT = tolerance(torch.float64)
NOISES = 0.5, 1e-3
P, Z = every.draw(3, 3)[0], every.draw(6, 4)[0]


def chosen(model, noise=every.NOISE):
    """The model with a lengthscale and a noise that are no accident."""
    model.covar_module.lengthscale = torch.tensor(0.8, dtype=torch.float64)
    model.likelihood.noise = torch.tensor(noise, dtype=torch.float64)
    return model.eval()


def variance_given(model, P, Z, noise):
    return every.conditioned(model, P, Z, torch.as_tensor(noise).expand(len(P)))[1].diagonal()


def test_pending_points_of_several_outputs():
    weights = torch.tensor([0.7, -0.2], dtype=torch.float64)
    transform = ScalarizedPosteriorTransform(weights)
    yvar = torch.linspace(0.1, 0.9, 16, dtype=torch.float64).reshape(8, 2)
    parts = every.single_task_gp(), every.single_task_gp(yvar=yvar[:, :1], sign=-1.0)
    X, y = every.draw(8, 0)
    both = SingleTaskGP(X, torch.stack([y, -y + X[:, 1]], -1), yvar).eval()
    for model in (ModelListGP(*parts), both):
        acqf = EnlargedUpperConfidenceBound(model, 2.0, posterior_transform=transform)
        mean = model.posterior(Z[:, None], posterior_transform=transform).mean.reshape(6)
        before = (acqf(Z[:, None]) - mean) / 2
        acqf.set_X_pending(P)
        std = (acqf(Z[:, None]) - mean) / 2
        assert bool((std < before).all())
        if model is not both:
            each = torch.cat([every.members(gp, Z, P)[1] for gp in parts])
            expected = ((weights[:, None] * each).square().sum(dim=0)).sqrt()
            assert_close(std, expected, rtol=1e-5, atol=1e-5)


def test_models_that_cannot_be_conditioned_are_named():
    X, y = every.draw(10, 0)
    for model, name in (
        (SingleTaskVariationalGP(X, y[:, None]).double(), "SingleTaskVariationalGP"),
        (GenericDeterministicModel(lambda X: X[..., :1]), "GenericDeterministic"),
    ):
        acqf = EnlargedUpperConfidenceBound(model)
        with pytest.raises(ValueError, match=f"X_pending must be None .* got a {name}"):
            acqf.set_X_pending(P)
        assert acqf.X_pending is None


def multi_task_gp(output, tasks=(0, 1), yvar=None, outcome_transform=None):
    """A MultiTaskGP of ``draw(10, 0)`` whose second column is the task, in raw units."""
    X, y = every.draw(10, 0)
    task = torch.tensor(tasks, dtype=torch.float64).repeat(5)[:, None]
    with torch.random.fork_rng():
        torch.manual_seed(0)  # the first covariance of the tasks is drawn
        model = MultiTaskGP(
            torch.cat([X[:, :1], task, X[:, 1:]], -1),
            y[:, None],
            1,
            yvar,
            output_tasks=[output],
            outcome_transform=outcome_transform,
        )
    model.covar_module.kernels[0].lengthscale = torch.tensor(0.8, dtype=torch.float64)
    if yvar is None:
        model.likelihood.noise = torch.tensor(NOISES, dtype=torch.float64).view(-1, 1)
    return model.eval()


@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.EnlargementWarning")
def test_the_noise_is_that_of_the_output_task_in_its_units(output):
    scales = StratifiedStandardize(stratification_idx=1, all_task_values=torch.tensor([0, 1]))
    std = every.draw(10, 0)[1][output::2].std().item()
    for model, unit in (
        (multi_task_gp(output), 1.0),
        (multi_task_gp(output, tasks=(1, 0)), 1.0),
        (multi_task_gp(output, outcome_transform=scales), std),
    ):
        acqf = EnlargedUpperConfidenceBound(model, 2.0, misspecification=1e-3)
        expected = 2.0 + 1e-3 * math.sqrt(11 / NOISES[output]) / unit
        assert acqf.width.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("output", [0, 1])
def test_pending_points_are_of_the_output_task(fixed, output):
    yvar = torch.tensor(NOISES, dtype=torch.float64).repeat(5)[:, None] if fixed else None
    model = multi_task_gp(output, yvar=yvar)
    variance = variance_given(model, P, Z, NOISES[output])
    expected = model.posterior(Z).mean.squeeze(-1) + 2 * variance.sqrt()
    acqf = EnlargedUpperConfidenceBound(model, 2.0)
    with_task = torch.cat([P[:, :1], torch.full_like(P[:, :1], output), P[:, 1:]], -1)
    for pending in (P, with_task):
        acqf.set_X_pending(pending)
        assert_close(acqf(Z[:, None]), expected, **EXACT)


def appending_gp(chained=False):
    """A SingleTaskGP of three columns, the last of which it appends itself."""
    X, y = every.draw(10, 0)
    last = torch.linspace(0, 1, 10, dtype=torch.float64)[:, None]
    transform = AppendFeatures(torch.tensor([[0.5]], dtype=torch.float64))
    if chained:
        first = Normalize(3, indices=[0, 1], bounds=every.BOUNDS)
        transform = ChainedInputTransform(first=first, second=transform)
    return chosen(SingleTaskGP(torch.cat([X, last], -1), y[:, None], input_transform=transform))


@pytest.mark.parametrize(
    ("name", "chained"), [(name, i % 2 == 0) for i, name in enumerate(every.CASES)]
)
def test_models_that_append_features_take_no_pending_points(name, chained):
    case, model = every.CASES[name], appending_gp(chained)
    options = {"misspecification": 0.0} if "misspecification" in case.options else {}
    acqf = case(model, **options)
    values = acqf(Z[:, None])
    assert values.isfinite().all()
    if name == "MaxVariance":
        assert_close(values, PosteriorStandardDeviation(model)(Z[:, None]))
    if name in ("OptimisticModelUCB", "ExpectedUCB"):
        assert_close(values, UpperConfidenceBound(model, 4.0)(Z[:, None]))
    for act in (acqf.set_X_pending, acqf) if name == "StableUCB" else (acqf.set_X_pending,):
        with pytest.raises(ValueError, match="X_pending must be None for a model that appends"):
            act(Z)
    assert_close(acqf(Z[:, None]), values)


def test_batches_of_models_that_append_features_have_their_joint_value():
    model = appending_gp()
    with torch.no_grad():
        posterior, noisy = (
            model.posterior(Z[:2], observation_noise=is_noisy) for is_noisy in (False, True)
        )
    (a, c), (_, b) = posterior.distribution.covariance_matrix.tolist()
    noise = (noisy.variance - posterior.variance)[0].item()
    expected = math.sqrt(a) + math.sqrt(b - c**2 / (a + noise))
    assert MaxVariance(model)(Z[:2]).item() == pytest.approx(expected, rel=1e-6)


def test_a_kernel_gp_that_appends_features_takes_pending_points():
    model = appending_gp()
    noise = model.outcome_transform.stdvs.item() ** 2 * every.NOISE
    acqf = MaxVariance(KernelGP.from_botorch(model), X_pending=P)
    assert_close(acqf(Z[:, None]), variance_given(model, P, Z, noise).sqrt(), **EXACT)


@pytest.mark.parametrize("own", [False, True])
def test_a_pending_point_counts_once_where_inputs_are_perturbed(own):
    X, y = every.draw(10, 0)
    shifts = torch.tensor([[0.3, 0.0], [0.0, -0.2]], dtype=torch.float64)
    model, plain = (
        chosen(SingleTaskGP(X, y[:, None], outcome_transform=None, input_transform=transform))
        for transform in (InputPerturbation(shifts), None)
    )
    average = ExpectationPosteriorTransform(n_w=2)
    acqf = MaxVariance(KernelGP.from_botorch(model) if own else model, average, X_pending=P)
    moved = (Z[:, None] + shifts).view(12, 2)
    _, told = every.conditioned(plain, P, moved, torch.tensor(every.NOISE).expand(3))
    expected = told.view(6, 2, 6, 2).mean(dim=(1, 3)).diagonal().sqrt()
    assert_close(acqf(Z[:, None]), expected, **EXACT)


def test_noise_that_differs_between_points_must_be_given():
    X, y = every.draw(10, 0)
    for rows in (slice(None), list(reversed(range(10)))):
        model = chosen(SingleTaskGP(X[rows], y[rows].exp()[:, None], outcome_transform=Log()))
        with pytest.raises(ValueError, match=r"noise_variance must be given: .* differs"):
            EnlargedUpperConfidenceBound(model, 2.0, misspecification=0.1)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("standardized", [False, True])
def test_pending_points_leave_the_mean_before_the_transform_alone(own, standardized):
    X, y = every.draw(10, 0)
    both = ChainedOutcomeTransform(log=Log(), scale=Standardize(1))
    transform = both if standardized else Log()
    log = chosen(SingleTaskGP(X, y.exp()[:, None], outcome_transform=transform))
    plain = Standardize(1) if standardized else None
    plain = chosen(SingleTaskGP(X, y[:, None], outcome_transform=plain))
    noise = every.NOISE * (y.var() if standardized else 1.0)
    mean, variance = plain.posterior(Z).mean.squeeze(-1), variance_given(plain, P, Z, noise)
    lognormal = torch.exp(mean + variance / 2)
    model = KernelGP.from_botorch(log) if own else log
    values = LowerConfidenceBound(model, 0.0, X_pending=P)(Z[:, None])
    assert_close(values, lognormal, **EXACT)
    values = MaxVariance(model, X_pending=P)(Z[:, None])
    assert_close(values, lognormal * torch.expm1(variance).sqrt(), **EXACT)
