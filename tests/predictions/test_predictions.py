"""Predictions of points, against dense algebra and the roots of distribution functions."""

import math
import sys

import pytest
import torch
from botorch.models.transforms import Log, Standardize
from scipy.optimize import brentq
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import (
    NoModelError,
    NoObservationsError,
    OutsideDomainError,
    OutsideDomainWarning,
)
from botorch_ext.strategies import LengthscaleBalancing, RandomSearch
from botorch_ext.testing.states import state
from tests.helpers import rbf, tolerance
from tests.oracles.posterior import dense_posterior
from tests.predictions.particles import BOX, dense_parts, height, played, standardised

X = BOX.sample(6, seed=3)
LEVELS = (0.05, 0.3, 0.95)


def ucb(domain=BOX, **options):
    return bx.algorithms.gp_ucb(domain, rbf(0.8), noise_variance=0.04, width=2.0, **options)


def _normal_cdf(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


# --- the default ----------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [1, 3])
def test_quantiles_of_the_default_are_those_of_its_mixture(exponent):
    """P(f < q) = level, by dense algebra for each particle, with squeezed and with bent results."""

    def f(x):
        return (2 * x).sin().sum() if exponent == 1 else -((4 - height(x)).abs() ** exponent)

    strategy = played(bx.algorithms.integrated_ei(BOX, seed=1), 16, f)
    outcomes = strategy.posterior.outcomes
    assert bool(outcomes.bend) == (exponent == 3)
    _, told = strategy.evaluated()
    assert_close(standardised(outcomes, told), outcomes.values, rtol=1e-9, atol=1e-9)
    found = strategy.predict(X, levels=LEVELS)
    parts = dense_parts(strategy, X)
    for quantiles, is_noisy in ((found.quantiles, 0), (found.observation_quantiles, 1)):
        for j in range(len(X)):
            for level, quantile in zip(LEVELS, quantiles[j].tolist(), strict=True):
                z = float(standardised(outcomes, torch.tensor(quantile, dtype=torch.float64)))
                below = [
                    _normal_cdf(
                        (z - float(mean[j])) / math.sqrt(float(cov[j, j]) + is_noisy * noise)
                    )
                    for mean, cov, noise in parts
                ]
                assert_close(sum(below) / len(below), level, rtol=1e-6, atol=1e-7)


def test_the_mean_of_the_default_is_that_of_best():
    strategy = played(bx.algorithms.integrated_ei(BOX, seed=1))
    x, mean = strategy.best()
    assert_close(float(strategy.predict(x).mean), mean, rtol=1e-9, atol=1e-9)
    parts = dense_parts(strategy, x[None])
    means = torch.stack([mean[0] for mean, _, _ in parts])
    variance = torch.stack([cov[0, 0] for _, cov, _ in parts]).mean() + means.var(correction=0)
    outcomes = strategy.posterior.outcomes
    std = variance.sqrt() * outcomes.slope(means.mean())
    assert_close(strategy.predict(x).std[0], std, rtol=1e-6, atol=1e-8)


def test_points_outside_are_predicted_with_a_warning_that_names_their_rows():
    """Against dense algebra, for one GP and for the mixture of the default; a point alone, and the
    trial of a result from outside."""
    points = torch.cat([X[:2], BOX.upper[None] + 0.5, BOX.lower[None] - 0.25])
    for strategy in (played(ucb()), played(bx.algorithms.integrated_ei(BOX, seed=1))):
        with pytest.warns(OutsideDomainWarning, match=r"2 of 4 points .* rows \[2, 3\]"):
            found = strategy.predict(points)
        if isinstance(strategy, bx.OptimisticStrategy):
            told, y = strategy.evaluated()
            mean = dense_posterior(rbf(0.8), told, y, points, 0.04)[0]
        else:
            means = torch.stack([mean for mean, _, _ in dense_parts(strategy, points)])
            mean, _ = strategy.posterior.outcomes.restored(means.mean(dim=0))
        assert_close(found.mean, mean, rtol=1e-6, atol=1e-6)
        trial = strategy.attach(points[2], float(mean[2]), outside=True)
        for given in (points[2], points[2].tolist(), trial, {"x0": 5.5, "x1": -0.5}):
            with pytest.warns(OutsideDomainWarning, match="1 of 1"):
                assert_close(strategy.predict(given).x, points[2:3])
    among_points = ucb(bx.FiniteSet(BOX.sample(40, seed=1)))
    by_draws = bx.algorithms.thompson_sampling(BOX, rbf(0.8), noise_variance=0.04)
    for strategy in (played(among_points, 3), played(by_draws, 3)):
        with pytest.raises(OutsideDomainError):
            strategy.predict(points)


# --- one GP and sets of them ----------------------------------------------------------------------


@pytest.mark.parametrize("domain", [BOX, bx.FiniteSet(BOX.sample(40, seed=1))])
@pytest.mark.parametrize("pending", ["hallucinate", "censor", "ignore"])
def test_one_gp_predicts_its_normal_distribution_of_told_data_alone(domain, pending):
    options = {"minimum": -60.0} if pending == "censor" else {}
    strategy = played(ucb(domain, pending=pending, **options))
    strategy.abandon(strategy.ask(), failed=True)
    points = domain.sample(6, seed=3)
    told, y = strategy.evaluated()
    mean, covariance = dense_posterior(rbf(0.8), told, y, points, 0.04)
    std = covariance.diagonal().clamp_min(0).sqrt()
    found = strategy.predict(points, levels=LEVELS)
    z = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.float64))
    assert_close(found.mean, mean, rtol=1e-6, atol=1e-6)
    assert_close(found.std, std, rtol=1e-5, atol=1e-6)
    assert_close(found.quantiles, mean[:, None] + z * std[:, None], rtol=1e-5, atol=1e-5)
    noisy = (std.square() + 0.04).sqrt()
    wide = mean[:, None] + z * noisy[:, None]
    assert_close(found.observation_quantiles, wide, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("domain", [BOX, bx.FiniteSet(BOX.sample(40, seed=1))])
def test_a_set_of_models_is_a_mixture_by_marginal_likelihood(domain):
    """Models of different forms: weights and means by dense algebra."""
    lengthscales = (0.3, 0.8, 2.5)
    models = bx.CandidateModels.lengthscales(rbf(1.0), lengthscales, 0.04)
    strategy = played(bx.algorithms.mle_ucb(domain, models, width=2.0), 10)
    points = domain.sample(6, seed=3)
    told, y = strategy.evaluated()
    evidence, parts = [], []
    for lengthscale in lengthscales:
        kernel = rbf(lengthscale)
        K = kernel(told, told).to_dense().detach() + 0.04 * torch.eye(len(told)).double()
        normal = torch.distributions.MultivariateNormal(torch.zeros_like(y), K)
        evidence.append(float(normal.log_prob(y)))
        parts.append(dense_posterior(kernel, told, y, points, 0.04))
    weights = torch.tensor(evidence, dtype=torch.float64).softmax(0).tolist()
    found = strategy.predict(points)
    for j in range(len(points)):

        def below(x, j=j, noise=0.0):
            return sum(
                w * _normal_cdf((x - float(m[j])) / math.sqrt(float(c[j, j]) + noise))
                for w, (m, c) in zip(weights, parts, strict=True)
            )

        for i, level in enumerate((0.05, 0.95)):
            for noise, own in ((0.0, found.quantiles), (0.04, found.observation_quantiles)):
                root = brentq(lambda x: below(x, noise=noise) - level, -500, 500)  # noqa: B023
                assert_close(float(own[j, i]), root, rtol=1e-5, atol=1e-5)


def test_a_model_with_an_outcome_transform_is_carried_back_exactly():
    """Quantiles of the logarithm become quantiles of the value."""
    X0 = BOX.sample(9, seed=5)
    Y0 = height(X0).sub(3).div(8).exp()
    plain, log = bx.KernelGP(rbf(0.8), 0.04), bx.KernelGP(rbf(0.8), 0.04)
    log.outcome_transform = Log()
    plain.add(X0, Y0.log())
    log.add(X0, Y0)
    kept = [bx.OptimisticStrategy(BOX, model, 2.0).predict(X) for model in (plain, log)]
    assert_close(kept[1].quantiles, kept[0].quantiles.exp(), **tolerance(torch.float64))
    standard = bx.KernelGP(rbf(0.8), 0.04)
    standard.outcome_transform = Standardize(m=1).double()
    standard.outcome_transform(Y0[:, None])
    standard.outcome_transform.eval()
    standard.add(X0, Y0)
    found = bx.OptimisticStrategy(BOX, standard, 2.0).predict(X)
    mean, std = standard.mean_and_std(X)
    assert_close(found.mean, mean, **tolerance(torch.float64))
    assert_close(found.std, std, rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
def test_standardised_outputs_come_back():
    models = bx.CandidateModels.lengthscales(rbf(1.0), [0.8], 0.04)
    width = bx.widths.SelfNormalized(rkhs_bound=2.0, noise_std=0.2, delta=0.1)
    strategy = played(LengthscaleBalancing(BOX, models, width, noise_std=0.2, standardize=True))
    x, mean = strategy.best()
    assert_close(float(strategy.predict(x).mean), mean, rtol=1e-6, atol=1e-6)


# --- every method ---------------------------------------------------------------------------------


CANDIDATES = bx.FiniteSet(BOX.sample(40, seed=1))
NUMBERS = {"noise_variance": 0.04, "width": 2.0}


def models():
    return bx.CandidateModels.lengthscales(rbf(1.0), (0.4, 1.2), 0.04)


# The methods of each kind of model; the last two have none.
METHODS = {
    "gp_ucb": lambda: bx.algorithms.gp_ucb(CANDIDATES, rbf(0.8), **NUMBERS),
    "gp_bucb": lambda: bx.algorithms.gp_bucb(BOX, rbf(0.8), **NUMBERS),
    "mle_ucb": lambda: bx.algorithms.mle_ucb(CANDIDATES, models(), width=2.0),
    "he_gp_ucb": lambda: bx.algorithms.he_gp_ucb(CANDIDATES, models(), noise_std=0.2, width=1.0),
    "thompson": lambda: bx.algorithms.thompson_sampling(CANDIDATES, rbf(0.8), noise_variance=0.04),
    "bpe": lambda: bx.algorithms.bpe(
        CANDIDATES, rbf(0.8), noise_variance=0.04, width=2.0, horizon=40
    ),
    "insured_ucb": lambda: bx.algorithms.insured_ucb(
        CANDIDATES, rbf(0.8), noise_variance=0.04, noise_std=0.2, rkhs_bound=3.0
    ),
    "credible": lambda: bx.algorithms.credible_ucb(CANDIDATES, models(), width=2.0),
    "random": lambda: RandomSearch(CANDIDATES),
    "balancing": lambda: bx.algorithms.regret_balancing(
        *(CANDIDATES, rbf(0.8)),
        misspecifications=[0.1, 0.3],
        noise_variance=0.04,
        rkhs_bound=3.0,
        noise_std=0.2,
        horizon=20,
    ),
}


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_method_predicts_or_says_that_it_cannot(method):
    """And whatever is predicted changes nothing that shows."""
    strategy = METHODS[method]()
    for _ in range(5):
        trial = strategy.ask()
        strategy.tell(trial, float((height(trial.x) / 10).sigmoid()))
    points, before = strategy.domain.sample(3, seed=4), state(strategy)
    if method in ("random", "balancing"):
        with pytest.raises(NoModelError, match="has no model"):
            strategy.predict(points)
        return
    found = strategy.predict(points)
    assert len(found) == 3 and bool((found.std > 0).all())
    assert bool((found.quantiles[:, 0] < found.mean).all())
    assert bool((found.mean < found.quantiles[:, 1]).all())
    assert bool((found.observation_quantiles[:, 0] < found.quantiles[:, 0]).all())
    trial = strategy.history.trials[-1]
    assert_close(strategy.predict(trial.x).mean, strategy.predict([trial]).mean)
    assert 0 <= strategy.recommended().probability <= 1
    assert state(strategy) == before


def test_contexts_of_trials_are_their_own():
    box = bx.Box([(2.0, 5.0)])
    strategy = bx.algorithms.integrated_ei(box, seed=0, context_domain=[(0.0, 1.0)])
    for i, x in enumerate(box.sample(12, seed=3)):
        z = (0.37 * i) % 1
        strategy.attach(x, -((float(x) - 3 - z) ** 2), [z])
    trials = strategy.history.trials[-3:]
    together = strategy.predict(list(trials))
    for row, trial in enumerate(trials):
        alone = strategy.predict(trial.x, context=trial.context)
        assert_close(together.mean[row], alone.mean[0])
        assert_close(together.contexts[row], trial.context)
    with pytest.raises(ValueError, match="context must be given"):
        strategy.predict(trials[0].x)


# --- what is refused and shown --------------------------------------------------------------------


def test_what_is_refused():
    strategy = bx.algorithms.integrated_ei(BOX)
    with pytest.raises(NoObservationsError, match="at least one evaluated point"):
        strategy.predict(X)
    with pytest.raises(NoModelError, match="RandomSearch has no model"):
        RandomSearch(BOX).predict(X)
    strategy = played(ucb(), 3)
    with pytest.raises(ValueError, match="points must be at least one"):
        strategy.predict(X[:0])
    with pytest.raises(ValueError, match="trials or points, got both"):
        strategy.predict([strategy.history.trials[0], X[0]])
    with pytest.raises(ValueError, match="context must be None"):
        strategy.predict(X, context=[1.0])
    for levels in ((), (0.0,), (1.0,), (0.5, float("nan")), "half", 0.5):
        with pytest.raises(ValueError, match="levels must be"):
            strategy.predict(X, levels=levels)


def test_a_table_has_a_row_for_each_point():
    pandas = pytest.importorskip("pandas")
    found = played(ucb(), 4).predict(X, levels=(0.05, 0.5, 0.95))
    table = found.to_pandas()
    quantiles = ["5 %", "50 %", "95 %"]
    names = ["x0", "x1", "mean", "std", *quantiles, *(f"observed {name}" for name in quantiles)]
    assert isinstance(table, pandas.DataFrame) and list(table.columns) == names
    assert table["95 %"].tolist() == found.quantiles[:, 2].tolist()


def test_without_pandas_a_table_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas"):
        played(ucb(), 3).predict(X).to_pandas()
