"""Predictions of points, against dense algebra and the roots of distribution functions."""

import math
import sys
from dataclasses import replace

import pytest
import torch
from botorch.models.transforms import Log, Standardize
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import exceptions
from botorch_ext.strategies.answers import ExpectedGain, Importance, Predictions, Recommendation
from botorch_ext.strategies.answers.mixture import mixture_quantiles
from botorch_ext.testing.states import state
from tests.helpers import rbf, tolerance
from tests.laws.registry import entry_of
from tests.laws.scenarios import quietly, value_of
from tests.oracles.posterior import dense_posterior
from tests.predictions.particles import BOX, dense_parts, height, played, standardised

X, CANDIDATES = BOX.sample(6, seed=3), bx.FiniteSet(BOX.sample(40, seed=1))
LEVELS = (0.05, 0.3, 0.95)
NUMBERS = {"noise_variance": 0.04, "width": 2.0}
DOMAINS = pytest.mark.parametrize("domain", [BOX, CANDIDATES], ids=["box", "set"])


def ucb(domain=BOX, **options):
    return bx.algorithms.gp_ucb(domain, rbf(0.8), **NUMBERS, **options)


def mass_below(x, weights, means, stds):
    """The distribution function of a mixture of normals."""
    return float(torch.as_tensor(weights) @ torch.special.ndtr((x - means) / stds))


@pytest.mark.parametrize("m", [1, 2, 7])
def test_quantiles_of_mixtures_are_the_roots_of_the_distribution_function(m):
    g = torch.Generator().manual_seed(3)
    weights = torch.rand(m, generator=g, dtype=torch.float64)
    weights = weights / weights.sum()
    means = 20 + 3 * torch.randn(m, 5, generator=g, dtype=torch.float64)
    stds = torch.rand(m, 5, generator=g, dtype=torch.float64).add(0.02)
    levels = (0.001, 0.05, 0.5, 0.77, 0.95)
    for level, row in zip(levels, mixture_quantiles(weights, means, stds, levels), strict=True):
        for j in range(5):
            below = mass_below(float(row[j]), weights, means[:, j], stds[:, j])
            assert below == pytest.approx(level, rel=1e-8)
    # Parts without a deviation are points.
    half, ends = torch.full((2,), 0.5).double(), torch.tensor([[1.0], [3.0]]).double()
    points = mixture_quantiles(half, ends, torch.zeros(2, 1).double(), (0.2, 0.8))
    assert_close(points, ends, rtol=0, atol=1e-9)


@pytest.mark.parametrize("exponent", [1, 3])
def test_quantiles_and_moments_of_the_default_are_those_of_its_mixture(exponent):
    """P(f < q) = level, by dense algebra for each particle, with squeezed and with bent results."""

    def f(x):
        return (2 * x).sin().sum() if exponent == 1 else -((4 - height(x)).abs() ** exponent)

    strategy = played(bx.algorithms.integrated_ei(BOX, seed=1), 16, f)
    outcomes = strategy.posterior.outcomes
    assert bool(outcomes.bend) == (exponent == 3)
    _, told = strategy.evaluated()
    assert_close(standardised(outcomes, told), outcomes.values, rtol=1e-9, atol=1e-9)
    found, parts = strategy.predict(X, levels=LEVELS), dense_parts(strategy, X)
    means = torch.stack([mean for mean, _, _ in parts])
    variances = torch.stack([cov.diagonal() for _, cov, _ in parts])
    noises = torch.tensor([noise for _, _, noise in parts]).double()[:, None]
    even = torch.full((len(parts),), 1 / len(parts)).double()
    for quantiles, noise in ((found.quantiles, 0 * noises), (found.observation_quantiles, noises)):
        stds = (variances + noise).sqrt()
        for j in range(len(X)):
            for level, z in zip(LEVELS, standardised(outcomes, quantiles[j]), strict=True):
                below = mass_below(float(z), even, means[:, j], stds[:, j])
                assert below == pytest.approx(level, rel=1e-6, abs=1e-7)
    mean, slopes = outcomes.restored(means.mean(dim=0))
    std = (variances.mean(dim=0) + means.var(dim=0, correction=0)).sqrt()
    assert_close(found.mean, mean, rtol=1e-6, atol=1e-6)
    assert_close(found.std, std * slopes, rtol=1e-6, atol=1e-6)
    x, best = strategy.best()
    assert_close(float(strategy.predict(x).mean), best, rtol=1e-9, atol=1e-9)


def test_points_outside_are_predicted_with_a_warning_that_names_their_rows():
    """Against dense algebra, for one GP and for the mixture of the default; a point alone, and the
    trial of a result from outside."""
    points = torch.cat([X[:2], BOX.upper[None] + 0.5, BOX.lower[None] - 0.25])
    for strategy in (played(ucb()), played(bx.algorithms.integrated_ei(BOX, seed=1))):
        with pytest.warns(exceptions.OutsideDomainWarning, match=r"2 of 4 points .* rows \[2, 3\]"):
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
            with pytest.warns(exceptions.OutsideDomainWarning, match="1 of 1"):
                assert_close(strategy.predict(given).x, points[2:3])
    by_draws = bx.algorithms.thompson_sampling(BOX, rbf(0.8), noise_variance=0.04)
    for strategy in (played(ucb(CANDIDATES), 3), played(by_draws, 3)):
        with pytest.raises(exceptions.OutsideDomainError):
            strategy.predict(points)


def of_three(domain):
    return bx.algorithms.mle_ucb(domain, bx.CandidateModels(THREE, 0.04), width=2.0)


THREE = [rbf(0.3), rbf(0.8), rbf(2.5)]
# Each: the strategy on a domain, and the kernels of its models.
MIXTURES = {
    "hallucinate": (ucb, [rbf(0.8)]),
    "censor": (lambda domain: ucb(domain, pending="censor", minimum=-60.0), [rbf(0.8)]),
    "ignore": (lambda domain: ucb(domain, pending="ignore"), [rbf(0.8)]),
    "three models": (of_three, THREE),
}


@DOMAINS
@pytest.mark.parametrize("name", MIXTURES)
def test_models_predict_their_mixture_by_marginal_likelihood_of_told_data_alone(name, domain):
    make, kernels = MIXTURES[name]
    strategy = played(make(domain), 10)
    strategy.abandon(strategy.ask(), failed=True)
    points, (told, y) = domain.sample(6, seed=3), strategy.evaluated()
    K = torch.stack([kernel(told).to_dense().detach() for kernel in kernels])
    K = K + 0.04 * torch.eye(len(told)).double()
    weights = MultivariateNormal(torch.zeros_like(y), K).log_prob(y).softmax(0)
    parts = [dense_posterior(kernel, told, y, points, 0.04) for kernel in kernels]
    means = torch.stack([mean for mean, _ in parts])
    variances = torch.stack([cov.diagonal() for _, cov in parts])
    found = strategy.predict(points, levels=LEVELS)
    mean = weights @ means
    assert_close(found.mean, mean, rtol=1e-6, atol=1e-6)
    std = (weights @ (variances + (means - mean).square())).sqrt()
    assert_close(found.std, std, rtol=1e-5, atol=1e-6)
    for noise, quantiles in ((0.0, found.quantiles), (0.04, found.observation_quantiles)):
        stds = (variances + noise).sqrt()
        for j in range(len(points)):
            for level, quantile in zip(LEVELS, quantiles[j].tolist(), strict=True):
                below = mass_below(quantile, weights, means[:, j], stds[:, j])
                assert below == pytest.approx(level, rel=1e-5)


def test_a_model_with_an_outcome_transform_is_carried_back_exactly():
    """Quantiles of the logarithm become quantiles of the value."""
    X0 = BOX.sample(9, seed=5)
    Y0 = height(X0).sub(3).div(8).exp()
    plain, log, standard = (bx.KernelGP(rbf(0.8), 0.04) for _ in range(3))
    log.outcome_transform = Log()
    plain.add(X0, Y0.log())
    log.add(X0, Y0)
    kept = [bx.OptimisticStrategy(BOX, model, 2.0).predict(X) for model in (plain, log)]
    assert_close(kept[1].quantiles, kept[0].quantiles.exp(), **tolerance(torch.float64))
    standard.outcome_transform = Standardize(m=1).double()
    standard.outcome_transform(Y0[:, None])
    standard.outcome_transform.eval()
    standard.add(X0, Y0)
    found = bx.OptimisticStrategy(BOX, standard, 2.0).predict(X)
    mean, std = standard.mean_and_std(X)
    assert_close(found.mean, mean, **tolerance(torch.float64))
    assert_close(found.std, std, rtol=1e-6, atol=1e-7)


# One of each kind of model; the last two have none.
METHODS = (
    *("gp_ucb", "gp_bucb", "mle_ucb", "he_gp_ucb", "lb_gp_ucb, growing", "credible_ucb"),
    *("thompson_sampling", "bpe", "insured_ucb", "random", "regret_balancing"),
)


@quietly
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_method_predicts_or_says_that_it_cannot(method):
    """And whatever is predicted changes nothing that shows."""
    strategy = entry_of(method).make()
    for _ in range(5):
        trial = strategy.ask()
        strategy.tell(trial, value_of(trial.x, None))
    points, before = strategy.domain.sample(3, seed=4), state(strategy)
    if method in ("random", "regret_balancing"):
        with pytest.raises(exceptions.NoModelError, match="has no model"):
            strategy.predict(points)
        return
    found = strategy.predict(points)
    assert len(found) == 3 and bool((found.std > 0).all())
    assert bool((found.quantiles[:, 0] < found.mean).all())
    assert bool((found.mean < found.quantiles[:, 1]).all())
    assert bool((found.observation_quantiles[:, 0] < found.quantiles[:, 0]).all())
    trial = strategy.history.trials[-1]
    assert_close(strategy.predict(trial.x).mean, strategy.predict([trial]).mean)
    if "ucb" not in method or method in ("gp_ucb", "gp_bucb", "insured_ucb"):  # one model
        x, mean = strategy.best()
        assert_close(float(strategy.predict(x).mean), mean, rtol=1e-6, atol=1e-6)
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


def test_what_is_refused():
    with pytest.raises(exceptions.NoObservationsError):
        bx.algorithms.integrated_ei(BOX).predict(X)
    strategy = played(ucb(), 3)
    for said, points, options in (
        ("points", X[:0], {}),
        ("trials or points", [strategy.history.trials[0], X[0]], {}),
        ("context", X, {"context": [1.0]}),
        *(("levels", X, {"levels": each}) for each in ((), (0.0,), (1.0,), (math.nan,), 0.5)),
    ):
        with pytest.raises(ValueError, match=said):
            strategy.predict(points, **options)


def test_a_table_has_a_row_for_each_point_and_says_what_it_needs(monkeypatch):
    pytest.importorskip("pandas")
    found = played(ucb(), 4).predict(X, levels=(0.05, 0.5, 0.95))
    table, quantiles = found.to_pandas(), ["5 %", "50 %", "95 %"]
    names = ["x0", "x1", "mean", "std", *quantiles, *(f"observed {name}" for name in quantiles)]
    assert list(table.columns) == names
    assert table["95 %"].tolist() == found.quantiles[:, 2].tolist()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas"):
        found.to_pandas()


SPACE = bx.Space(
    temperature=bx.Real(20, 80, unit="°C", digits=1), solvent=bx.Choice(["water", "dmso"])
)


def predictions(num, domain=SPACE, contexts=None):
    x = torch.tensor([61.5, 1.0], dtype=torch.float64).repeat(num, 1)
    y = torch.full((num,), 1 / 3, dtype=torch.float64)
    quantiles = torch.stack([y - 1, y + 1], dim=-1)
    return Predictions(x, contexts, y, y / 2, (0.05, 0.95), quantiles, 2 * quantiles, domain)


def test_predictions_take_no_name_of_a_parameter():
    pytest.importorskip("pandas")
    space = bx.Space({"mean": bx.Real(50, 80), "context0": bx.Real(0, 1)})
    table = predictions(1, space, torch.tensor([[7.0]])).to_pandas()
    assert table[["mean", "context0", "context0_", "mean_"]].iloc[0].tolist() == pytest.approx(
        [61.5, 1.0, 7.0, 1 / 3]
    )


def rows(shown):
    return [line.split() for line in repr(shown).splitlines()]


def test_predictions_are_printed_with_names_and_units():
    pytest.importorskip("pandas")
    title, head, row, *_ = rows(predictions(2))
    assert title == ["Predictions", "at", "2", "points"]
    assert head[:6] == ["temperature", "[°C]", "solvent", "mean", "std", "5"]
    assert row[:4] == ["61.5", "dmso", "0.333", "0.167"]
    # Long tables are cut, and columns without names are numbered.
    long = rows(predictions(13, bx.Box([(0.0, 99.0), (0.0, 2.0)]), torch.ones(13, 1)))
    assert long[1][:5] == ["x0", "x1", "context0", "mean", "std"]
    assert len(long) == 13 and long[-1] == ["...", "and", "3", "more"]


def test_recommendations_gains_and_importance_say_their_numbers():
    one = predictions(1)
    found = rows(Recommendation(one.x[0], None, one, 0.5544, 0.20095, False))
    assert [line[-1] for line in found[-2:]] == ["0.554", "0.201"]
    gain = ExpectedGain(0.53903, 1.188, 0.5665, predictions(2).x, None, SPACE)
    assert gain.params == [{"temperature": 61.5, "solvent": "dmso"}] * 2
    _, *said, head, first, second = rows(gain)
    assert [line[-1] for line in said] == ["0.539", "0.567", "1.19"]
    assert (head[0], first, second) == ("temperature", ["61.5", "dmso"], ["61.5", "dmso"])
    # The most important parameter comes first, and no share below 0 is shown.
    shares = torch.tensor([-0.005, 0.5]), torch.tensor([0.375, 0.75])
    _, _, *shown, last = rows(Importance(("a", "long"), *shares, 17.31))
    assert shown == [["long", "0.5", "0.75"], ["a", "0", "0.375"]]
    assert last[-1] == "17.3"
    assert repr(Importance(("a",), torch.ones(1), torch.ones(1), 1.0)).startswith(
        "Importance of 1 parameter\n"
    )


@pytest.mark.parametrize("std", [0.0, 3e-9, 0.00999, 0.0100, 1.0, 99.95, 12345.6])
def test_numbers_that_are_read_have_the_third_digit_of_the_deviation(std):
    one = predictions(1)
    many = replace(one, mean=one.mean * 0 + math.pi * 1e3, std=one.std * 0 + std)
    for name, (readable,) in many.readable.items():
        whole = float(many.numbers[name][0])
        last = 10.0 ** (math.floor(math.log10(std)) - 2) if std else 0.0
        assert abs(readable - whole) <= 0.5001 * last
        assert readable == float(f"{readable:.12g}") or last < 1e-9
