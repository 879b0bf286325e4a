"""Values of every function, of every kind of model, are those of its definition."""

import math

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorStandardDeviation,
    UpperConfidenceBound,
)
from botorch.optim import optimize_acqf
from botorch.utils.testing import MockModel, MockPosterior
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from botorch_ext import Box, CandidateModels, KernelGP, plan, widths
from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    ExpectedUCB,
    IntegratedLogEI,
    LowerConfidenceBound,
    MaxVariance,
    OptimisticModelUCB,
)
from tests.acquisition import every_function as every
from tests.helpers import matern, pairwise, rbf, tolerance
from tests.oracles.posterior import dense_information_gain

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


@pytest.mark.parametrize("frozen", [False, True], ids=["SingleTaskGP", "KernelGP"])
def test_a_sequential_batch_of_largest_variances_is_a_plan(frozen):
    gp = every.single_task_gp(6)
    model = KernelGP.from_botorch(gp)
    acqf = MaxVariance(model if frozen else gp)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X, _ = optimize_acqf(
            acqf, every.BOUNDS, q=3, num_restarts=6, raw_samples=128, sequential=True
        )
    # The points differ: one hallucinates the others. Their gain is that of a planned batch.
    start, noise = model.train_inputs[0], model.noise_variance.item()
    seen = torch.cat([start, model.transform_inputs(X)])
    gain = dense_information_gain(model.kernel, seen, noise)
    gain -= dense_information_gain(model.kernel, start, noise)
    assert gain == pytest.approx(plan(Box(every.BOUNDS), model, 3).information_gain, rel=0.01)
    assert acqf.X_pending is None


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
        for models in (every.batched(), every.singles()):
            with pytest.raises(ValueError, match="width"):
                OptimisticModelUCB(models, bad)
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
