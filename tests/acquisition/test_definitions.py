"""Values of every function, of every kind of model, are those of its definition; widths of every
kind, and what improvements are measured from."""

import math

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorStandardDeviation,
    UpperConfidenceBound,
    qLogNoisyExpectedImprovement,
)
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions import UnsupportedError
from botorch.models import ModelListGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.testing import MockModel, MockPosterior
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import CandidateModels, KernelGP, widths
from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    ExpectedUCB,
    IntegratedLogEI,
    LowerConfidenceBound,
    MaxVariance,
    OptimisticModelUCB,
    StableUCB,
)
from tests.acquisition import every_function as every
from tests.acquisition.every_function import BOUNDS, draw, single_task_gp, singles
from tests.helpers import matern, pairwise, rbf, tolerance

EXACT = tolerance(torch.float64)
SINGLE = {
    "KernelGP": every.kernel_gp,
    "SingleTaskGP": every.single_task_gp,
    "known noise": lambda: every.single_task_gp(
        yvar=torch.linspace(0.05, 1.0, 8).double()[:, None]
    ),
}
SEVERAL = SINGLE | {
    "batched": every.batched,
    "a list": every.singles,
    "an ensemble": every.ensemble,
    "many forms": every.of_many_forms,
}


def log_evidence():
    X, y = every.draw(8, 0)
    grams = [rbf(lengthscale)(X).to_dense().detach() for lengthscale in every.LENGTHSCALES]
    K = torch.stack(grams) + every.NOISE * torch.eye(8).double()
    return MultivariateNormal(torch.zeros_like(y), K).log_prob(y)


@pairwise(
    cls=[EnlargedUpperConfidenceBound, LowerConfidenceBound, MaxVariance],
    model=SINGLE,
    pending=[0, 3],
    maximize=[True, False],
)
def test_bounds_and_deviations_of_one_model(cls, model, pending, maximize):
    model, Z, P = SINGLE[model](), every.draw(20, 1)[0], every.draw(pending, 3)[0]
    (mean,), (std,) = every.members(model, Z, P)
    options = {} if cls is MaxVariance else {"width": 1.7, "maximize": maximize}
    sign = 1.0 if maximize else -1.0
    expected = {
        EnlargedUpperConfidenceBound: sign * mean + 1.7 * std,
        LowerConfidenceBound: sign * mean - 1.7 * std,
        MaxVariance: std,
    }
    acqf = cls(model, **options)
    before = acqf(Z[:, None])
    if cls is not LowerConfidenceBound and maximize:
        theirs = PosteriorStandardDeviation(model)
        if cls is not MaxVariance:
            theirs = UpperConfidenceBound(model, beta=1.7**2)
        assert_close(before, theirs(Z[:, None]), rtol=1e-6, atol=1e-6)
    acqf.set_X_pending(P if pending else None)
    assert_close(acqf(Z[:, None]), expected[cls], rtol=1e-5, atol=1e-6)
    acqf.set_X_pending(None)  # pending points are replaced, not added to
    assert_close(acqf(Z[:, None]), before, **EXACT)


def log_improvements(mean, std, best):
    """BoTorch's, of each member."""
    moments = zip(mean[..., None, None], std.square()[..., None, None], best, strict=True)
    return torch.stack(
        [
            LogExpectedImprovement(MockModel(MockPosterior(mean=m, variance=v)), b)(m)
            for m, v, b in moments
        ]
    )


@pairwise(
    cls=[OptimisticModelUCB, ExpectedUCB, IntegratedLogEI],
    model=SEVERAL,
    pending=[0, 3],
    maximize=[True, False],
    each=[False, True],
)
def test_maxima_and_averages_over_models(cls, model, pending, maximize, each):
    name, model, sign = model, SEVERAL[model](), 1.0 if maximize else -1.0
    Z, P, X = every.draw(20, 1)[0], every.draw(pending, 3)[0], every.draw(8, 0)[0]
    mean, std = every.members(model, Z, P)
    m = len(mean)
    width = torch.linspace(0.5, 2.5, m).double() if each else torch.full((m,), 1.7).double()
    options = {"maximize": maximize, "X_pending": P if pending else None}
    bounds = sign * mean + width[:, None] * std
    given = width.tolist() if each else 1.7
    if cls is IntegratedLogEI:
        best = (sign * every.members(model, torch.cat([X, P]))[0]).amax(dim=-1)
        expected = log_improvements(sign * mean, std, best).logsumexp(dim=0) - math.log(m)
        acqf = cls(model, X_baseline=X, **options)
    elif cls is OptimisticModelUCB:
        acqf, expected = cls(model, given, **options), bounds.amax(dim=0)
    else:
        weights = torch.full((m,), 1 / m).double()
        if name in ("batched", "a list"):  # pending points tell nothing about the models
            weights = log_evidence().softmax(dim=0)
        elif name == "many forms":
            weights = torch.linspace(1, 2, m).double() / (1.5 * m)
            options["probabilities"] = weights
        acqf, expected = cls(model, given, **options), weights @ bounds
    assert_close(acqf(Z[:, None]), expected, rtol=1e-5, atol=1e-6)
    near = Z[:3, None].clone().requires_grad_()
    assert torch.autograd.gradcheck(acqf, (near,), eps=1e-6, atol=1e-5, rtol=1e-5)


def test_candidate_models_keep_their_order_and_their_probabilities():
    # Two forms of kernel, not in the order of the parts they make.
    kernels = [rbf(0.4), matern(0.5), rbf(0.7), matern(0.9)]
    models, Z = (
        CandidateModels(kernels, [every.NOISE, 0.1, 0.02, every.NOISE]),
        every.draw(20, 1)[0],
    )
    models.add(*every.draw(12, 0))
    assert [part.positions for part in models.parts] == [[0, 2], [1, 3]]
    mean, std = models.mean_and_std(Z)
    weights = models.log_marginal_likelihood().softmax(dim=0)
    for width in (1.3, [0.5, 2.0, 1.0, 1.5], widths.SelfNormalized(1.0, 0.2, 0.1)):
        value = models.width(width, 13) if isinstance(width, widths.Width) else width
        bounds = mean + torch.as_tensor(value, dtype=torch.float64).reshape(-1, 1) * std
        assert_close(OptimisticModelUCB(models, width)(Z[:, None]), bounds.amax(dim=0), **EXACT)
        assert_close(ExpectedUCB(models, width)(Z[:, None]), weights @ bounds, **EXACT)
    models.add(every.draw(2, 7)[0], None)  # rows that pend are no data
    assert_close(ExpectedUCB(models, 1.0).probabilities, weights, **EXACT)
    empty = CandidateModels(kernels, every.NOISE)
    for _ in range(2):
        assert_close(
            ExpectedUCB(empty, 1.0).probabilities, torch.full((4,), 0.25).double(), **EXACT
        )
        empty.add(every.draw(2, 7)[0], None)


def test_models_that_do_not_fit_together_are_named():
    three = KernelGP(rbf(0.8), every.NOISE)
    three.add(every.draw(4, 0)[0][:, [0, 1, 0]], every.draw(4, 0)[1])
    single = KernelGP(rbf(0.8).float(), every.NOISE, dtype=torch.float32)
    twice = every.kernel_gp().kernel.expand_batch(2, 3)
    for bad in (
        [],
        3,
        [3],
        [every.batched(), None],
        [*every.singles(), three],
        [*every.singles(), single],
        KernelGP(twice, every.NOISE),
    ):
        with pytest.raises(ValueError, match="model"):
            OptimisticModelUCB(bad, 1.0)


def test_bad_widths_and_probabilities_are_named():
    for bad in ([1.0, 2.0], torch.ones(2), [1.0, 2.0, -3.0]):
        for cls in (OptimisticModelUCB, EnlargedUpperConfidenceBound, LowerConfidenceBound):
            with pytest.raises(ValueError, match="width"):
                cls(every.batched(), bad)
        with pytest.raises(ValueError, match="width"):
            OptimisticModelUCB(every.singles(), bad)
    with pytest.raises(ValueError, match="width"):
        EnlargedUpperConfidenceBound(every.kernel_gp(), [1, 2])
    assert LowerConfidenceBound(every.batched(), [1, 2, 3]).width.shape == (3,)
    for bad in ([0.5, 0.5], [0.5, 0.7, -0.2], [0.5, 0.5, 0.5], [math.nan, 0.5, 0.5]):
        with pytest.raises(ValueError, match="probabilities"):
            ExpectedUCB(every.batched(), 1.0, probabilities=bad)
    gp, more = every.single_task_gp(), every.singles()
    more[1].add(*every.draw(1, 5))
    standardized = KernelGP.from_botorch(gp)
    for models, why in (
        ([gp, gp], "probabilities"),
        ([every.batched(), gp], "probabilities"),
        ([standardized, standardized], "outcome transform"),
        (more, "different data"),
    ):
        with pytest.raises(ValueError, match=why):
            ExpectedUCB(models, 1.0)


DATA_WIDTH = widths.SelfNormalized(1.0, 0.2, 0.1)
WITH_OFFSET = widths.FixedDesignContinuous(1.0, 0.2, 0.1, 3)


def bound(model, width, Z, sign=1.0):
    mean, std = model.mean_and_std(Z)
    return mean + sign * (width(9, model) * std + width.offset(9, model))


def test_a_width_object_is_evaluated_with_the_model_and_has_its_offset():
    model, Z = every.kernel_gp(), every.draw(10, 1)[0]
    for width in (widths.Enlarged(DATA_WIDTH, 0.1), WITH_OFFSET):
        upper = EnlargedUpperConfidenceBound(model, width)(Z[:, None])
        assert_close(upper, bound(model, width, Z), **EXACT)
        lower = LowerConfidenceBound(model, width)(Z[:, None])
        assert_close(lower, bound(model, width, Z, -1.0), **EXACT)


def test_width_objects_of_several_models_are_those_of_each():
    Z, models = every.draw(10, 1)[0], every.singles()
    for given in (every.batched(), models):
        for own in ([WITH_OFFSET] * 3, [DATA_WIDTH, WITH_OFFSET, widths.Constant(2.0)]):
            bounds = [bound(model, width, Z) for model, width in zip(models, own, strict=True)]
            acqf = OptimisticModelUCB(given, own)
            assert_close(acqf(Z[:, None]), torch.stack(bounds).amax(dim=0), **EXACT)
        # Pending points tell nothing to the width.
        pending = OptimisticModelUCB(given, DATA_WIDTH, X_pending=Z[:2])
        assert_close(pending.width, OptimisticModelUCB(given, DATA_WIDTH).width)


def test_width_objects_are_refused_without_a_kernel_gp_and_where_units_would_mix():
    standardized = KernelGP.from_botorch(every.single_task_gp())
    for cls in (EnlargedUpperConfidenceBound, LowerConfidenceBound, OptimisticModelUCB):
        for model in (every.single_task_gp(), standardized, every.ensemble()):
            with pytest.raises(ValueError, match="width"):
                cls(model, DATA_WIDTH)


@pytest.mark.parametrize(
    "cls", [EnlargedUpperConfidenceBound, LowerConfidenceBound, OptimisticModelUCB, StableUCB]
)
def test_a_beta_is_refused_with_the_width_to_write(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) takes no beta: .*width=beta\*\*0.5"):
        cls(every.single_task_gp(), beta=4.0)


def enlarged(model, **options):
    """What the width of 2 becomes for a misspecification of 0.1."""
    return EnlargedUpperConfidenceBound(model, 2.0, misspecification=0.1, **options).width.item()


def by_formula(num_observations, noise_variance):
    return pytest.approx(2.0 + 0.1 * math.sqrt((num_observations + 1) / noise_variance), rel=1e-6)


def test_the_noise_and_the_number_of_observations_are_those_of_the_model_unless_given():
    assert enlarged(every.kernel_gp()) == by_formula(8, every.NOISE)
    assert enlarged(every.kernel_gp(), noise_variance=0.01, num_observations=20) == by_formula(
        20, 0.01
    )
    assert enlarged(KernelGP(rbf(1.0), every.NOISE)) == by_formula(0, every.NOISE)
    transformed = KernelGP(rbf(1.0), every.NOISE, input_transform=Normalize(2, bounds=every.BOUNDS))
    assert enlarged(transformed, noise_variance=0.01) == by_formula(0, 0.01)
    deterministic = GenericDeterministicModel(lambda X: X[..., :1])
    for name, model, options in (
        ("noise_variance", transformed, {}),
        ("num_observations", deterministic, {}),
        ("noise_variance", deterministic, {"num_observations": 3}),
    ):
        with pytest.raises(ValueError, match=f"{name} must be given"):
            enlarged(model, **options)


def test_of_a_list_of_models_the_noise_is_that_of_the_weighted_sum():
    yvar, weights = torch.linspace(0.05, 1.0, 8).double()[:, None], (0.7, -0.2)
    parts = every.single_task_gp(), every.single_task_gp(yvar=yvar, sign=-1.0)
    transform = ScalarizedPosteriorTransform(torch.tensor(weights, dtype=torch.float64))
    noise = sum(
        weight**2 * gp.likelihood.noise.mean().item() * gp.outcome_transform.stdvs.item() ** 2
        for weight, gp in zip(weights, parts, strict=True)
    )
    assert enlarged(ModelListGP(*parts), posterior_transform=transform) == by_formula(8, noise)


def test_the_enlargement_covers_the_worst_case_in_raw_units():
    # Lemma 2: moving every observation by at most eps. Outcomes are standardised in the model.
    gp, (Z, _) = every.single_task_gp(20), every.draw(25, 2)
    scale = gp.outcome_transform.stdvs.item()
    acqf = EnlargedUpperConfidenceBound(gp, width=0.0, misspecification=0.3)
    assert acqf.width.item() == pytest.approx(0.3 * math.sqrt(21 / every.NOISE) / scale, rel=1e-6)
    moved = every.single_task_gp(20)
    signs = torch.sign(torch.randn(20, generator=torch.Generator().manual_seed(0)))
    moved.set_train_data(targets=gp.train_targets + 0.3 * signs / scale, strict=False)
    mean = gp.posterior(Z).mean.squeeze(-1)
    change = (moved.posterior(Z).mean.squeeze(-1) - mean).abs()
    assert bool((change <= acqf(Z[:, None]) - mean + 1e-6).all())
    assert change.max() > 0.05


def test_the_pointwise_enlargement_is_the_worst_case():
    gp, (Z, _) = every.single_task_gp(20), every.draw(8, 2)
    model, eps = bx.KernelGP.from_botorch(gp), 0.3
    acqf = EnlargedUpperConfidenceBound(model, 1.5, eps, enlargement="pointwise")
    mean, std = model.mean_and_std(Z)
    scale = gp.outcome_transform.stdvs.item()
    alpha = torch.linalg.solve(
        model.kernel(gp.train_inputs[0]).to_dense() + every.NOISE * torch.eye(20).double(),
        model.kernel(gp.train_inputs[0], model.transform_inputs(Z)).to_dense(),
    )
    moved = alpha.T @ (eps / scale * alpha.sign()) * scale  # each observation by its worst eps
    expected = mean + 1.5 * std + moved.diagonal()
    assert_close(acqf(Z[:, None]), expected, **EXACT)
    with pytest.warns(bx.exceptions.EnlargementWarning):
        published = EnlargedUpperConfidenceBound(model, 1.5, eps)
    assert bool((expected <= published(Z[:, None])).all())
    zero = EnlargedUpperConfidenceBound(model, 1.5, 0.0, enlargement="pointwise")
    assert_close(zero(Z[:, None]), mean + 1.5 * std, **EXACT)
    # A pending point takes the part with it, but for what one observation more would leave.
    acqf.set_X_pending(Z[:1])
    (_, std), own = acqf._moments(Z[:1, None]), moved.diagonal()[0]
    cap = eps * math.sqrt(22 / every.NOISE) / scale * std
    assert_close(
        acqf(Z[:1, None]), mean[:1] + 1.5 * std + torch.minimum(own, cap), rtol=1e-8, atol=1e-8
    )
    candidates, _ = optimize_acqf(acqf, bx.Box(BOUNDS).bounds, 2, 3, 32, sequential=True)
    assert candidates.shape == (2, 2)


def test_the_pointwise_enlargement_needs_the_weights_of_the_mean():
    gp = every.single_task_gp(20)
    for model, form in ((gp, "pointwise"), (every.kernel_gp(), "other")):
        with pytest.raises(ValueError, match="enlargement"):
            EnlargedUpperConfidenceBound(model, misspecification=0.1, enlargement=form)
    for width in (widths.Ladder(1.0, 0.1, 0.1), widths.PointwiseEnlarged(1.0, 0.1)):
        with pytest.raises(ValueError, match="one ridge"):
            LowerConfidenceBound(every.kernel_gp(), width)


BOX = bx.Box(BOUNDS)
TOLD = BOX.sample(12, 0)


def test_given_incumbents_are_raised_by_pending_points():
    models, P = singles(), draw(3, 5)[0]
    assert (IntegratedLogEI(models, best_f=-100.0, X_pending=P).incumbents > -99).all()
    assert IntegratedLogEI(models, best_f=0.5).incumbents.tolist() == [0.5] * 3


@pytest.mark.parametrize(
    "wrong", [{}, {"X_baseline": draw(2, 0)[0], "best_f": 1.0}, {"best_f": torch.zeros(2)}]
)
def test_what_it_improves_on_must_be_given_once(wrong):
    with pytest.raises(ValueError, match="best_f"):
        IntegratedLogEI(singles(), **wrong)


def test_ax_can_build_it():
    X, y = draw(9, 0)
    data = SupervisedDataset(X, y.unsqueeze(-1), feature_names=["a", "b"], outcome_names=["y"])
    inputs = get_acqf_input_constructor(IntegratedLogEI)(single_task_gp(), training_data=data)
    assert_close(inputs["X_baseline"], X)
    assert IntegratedLogEI(**inputs)(X[:2].unsqueeze(-2)).shape == (2,)


@pytest.fixture(scope="module")
def strategy():
    initial = TOLD, torch.sin(2 * TOLD[:, 0]) * TOLD[:, 1]
    return bx.algorithms.integrated_ei(BOX, initial=initial, num_initial=0)


@pytest.mark.parametrize("pending", [0, 2])
def test_particles_in_botorch_choose_as_the_strategy(strategy, pending):
    """qLogNEI of the same models, by Monte Carlo and in other units, where the strategy asked."""
    asked = strategy.clone()
    rows = [trial.x for trial in asked.ask(pending)] if pending else []
    posterior = asked.posterior
    acqf = qLogNoisyExpectedImprovement(
        posterior.to_botorch(),
        X_baseline=TOLD,
        X_pending=torch.stack(rows) if pending else None,
        sampler=SobolQMCNormalSampler(torch.Size([128]), seed=0),
        prune_baseline=False,
    )
    trial = asked.ask()
    with torch.no_grad():
        elsewhere = acqf(BOX.sample(100, 3).unsqueeze(-2)).max()
        value = acqf(trial.x[None, None])
    assert value > elsewhere - 0.1
    expected = float(value) - math.log(posterior.outcomes.scale)
    assert expected == pytest.approx(trial.info["log_improvement"], abs=0.1)


def test_the_ensemble_is_the_posterior(strategy):
    model, X = strategy.posterior.to_botorch(), BOX.sample(7, 4)
    posterior = model.posterior(X.unsqueeze(-2))
    assert isinstance(posterior, GaussianMixturePosterior)
    assert posterior.mean.shape == (7, 32, 1, 1)
    mean, std = strategy.posterior.mean_and_std(X)
    assert_close(posterior.mixture_mean[:, 0, 0], mean)
    assert_close(posterior.mixture_variance[:, 0, 0].sqrt(), std)
    means, stds = model.mean_and_std(X)
    assert_close(means.mean(dim=0), mean)
    assert stds.shape == (32, 7)
    with pytest.raises(UnsupportedError):
        model.fantasize(X, SobolQMCNormalSampler(torch.Size([3])))
