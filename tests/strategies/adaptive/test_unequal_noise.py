"""Results with standard errors and repeats: strategies against dense algebra."""

import math
import re
from functools import partial

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.means import ZeroMean

import botorch_ext as bx
from botorch_ext import widths
from botorch_ext.analysis.estimates import rkhs_norm_lower_bound
from botorch_ext.hyperparameters.density import Density, RowNoise
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.search.certified import CertifiedBounds
from botorch_ext.strategies import Told
from botorch_ext.strategies.event_lines import as_text, from_text
from botorch_ext.widths.limits import Quantity
from tests.helpers import drawn, matern, rbf
from tests.oracles.particles import model_of, standardised
from tests.oracles.tight import Tight

B, SIGMA, LAM, DELTA, EPS = 1.5, 0.1, 0.02, 0.1, 0.05
POINTS = bx.FiniteSet(drawn(25, 2, seed=1))
BOX = bx.Box([[0.0, 0.0], [1.0, 1.0]])
SELF_NORMALIZED = widths.SelfNormalized(B, SIGMA, DELTA)
STDS = (None, 0.01, 0.3, 1.0)
X_INITIAL = POINTS.points[[3, 8]]
Y_INITIAL, STD_INITIAL = (torch.tensor(v, dtype=torch.float64) for v in ((0.4, 0.1), (0.05, 0.4)))


def f(x):
    return float(torch.sin(5 * x[0]) + x[1])


def candidates():
    return bx.CandidateModels([rbf(0.3), matern(0.6)], noise_variance=LAM)


def made(method, domain=POINTS, **options):
    options |= {"initial": (X_INITIAL, Y_INITIAL, STD_INITIAL)}
    known = {"noise_std": SIGMA, "rkhs_bound": B, "delta": DELTA}
    of = bx.algorithms
    match method:
        case "gp_ucb":
            return of.gp_ucb(domain, rbf(0.3), noise_variance=LAM, **known, **options)
        case "constant width":
            return of.gp_ucb(domain, rbf(0.3), noise_variance=SIGMA**2, width=2.0, **options)
        case "pointwise ec_gp_ucb":
            return of.ec_gp_ucb(
                domain,
                rbf(0.3),
                noise_variance=LAM,
                misspecification=EPS,
                enlargement="pointwise",
                **known,
                **options,
            )
        case "gp_bucb":
            return of.gp_bucb(domain, rbf(0.3), noise_variance=LAM, **known, **options)
        case "gp_ucb_sdf":
            return of.gp_ucb_sdf(
                domain, rbf(0.3), noise_variance=LAM, minimum=-1.5, **known, **options
            )
        case "thompson_sampling":
            return of.thompson_sampling(
                domain, rbf(0.3), noise_variance=LAM, width=SELF_NORMALIZED, **options
            )
        case "he_gp_ucb":
            return of.he_gp_ucb(domain, candidates(), **known, **options)
        case "mle_ucb" | "expected_ucb" | "credible_ucb":
            make = getattr(of, method)
            return make(domain, candidates(), width=SELF_NORMALIZED, delta=DELTA, **options)
        case "stable_opt":
            return of.stable_opt(
                domain, rbf(0.3), radius=0.1, noise_variance=LAM, width=SELF_NORMALIZED, **options
            )
    raise AssertionError(method)


METHODS = (
    *("gp_ucb", "constant width", "pointwise ec_gp_ucb", "gp_bucb", "gp_ucb_sdf"),
    *("thompson_sampling", "he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb", "stable_opt"),
)


class Book:
    """Every result as it was told: its point, the average, and the ridge of its row."""

    def __init__(self, noise_std, lam):
        self.noise_std, self.lam = noise_std, lam
        self.rows = [
            (x, float(y), lam * float(std / noise_std) ** 2)
            for x, y, std in zip(X_INITIAL, Y_INITIAL, STD_INITIAL, strict=True)
        ]

    def tell(self, point, values, std):
        if std is not None:
            ridge = self.lam * (std / self.noise_std) ** 2
        else:
            ridge = self.lam / len(values)
        self.rows.append((point, sum(values) / len(values), ridge))

    def arrays(self, pending=(), minimum=None):
        """The points, values and ridges of all rows; pending ones are hallucinated unless there is
        a minimum."""
        waiting = [(x, minimum, self.lam) for x in pending]
        X, y, ridges = zip(*self.rows, *waiting, strict=True)
        return torch.stack(X), y, np.array(ridges)


def dense(kernel, X, y, ridges, at):
    """The mean and the standard deviation at points, by the inverse of all told and pending rows;
    the mean from the told ones alone."""
    K, k = (kernel(*pair).to_dense().detach().numpy() for pair in ((X, X), (X, at)))
    inverse = np.linalg.inv(K + np.diag(ridges))
    std = np.sqrt(kernel(at, diag=True).detach().numpy() - np.einsum("ix,ij,jx->x", k, inverse, k))
    told = [i for i, value in enumerate(y) if value is not None]
    own = np.linalg.inv((K + np.diag(ridges))[np.ix_(told, told)])
    return k[told].T @ own @ np.array([y[i] for i in told]), std


def moments(posterior):
    """The means and the standard deviations of all models at the points, ``m x N`` each."""
    if hasattr(posterior, "std"):
        found = posterior.mean, posterior.std
    else:
        found = posterior.mean_and_std(POINTS.points)
    return [each.view(-1, len(POINTS.points)) for each in found]


def played(strategy, book, steps=24):
    """A study with late results, whose results differ in noise."""
    waiting, noise = [], drawn(4 * steps, seed=2, low=-SIGMA, high=SIGMA).tolist()
    for step in range(steps):
        waiting.append(strategy.ask())
        if step % 3 == 2:
            continue  # two results after the next ask
        while waiting:
            trial = waiting.pop()
            values = [f(trial.x) + noise.pop() for _ in range(1 + 2 * (step % 2))]
            std = STDS[step % len(STDS)]
            strategy.tell(trial, values if len(values) > 1 else values[0], std=std)
            book.tell(trial.x, values, std)
    return waiting


@pytest.mark.parametrize(
    ("method", "domain"),
    [*((method, POINTS) for method in METHODS), ("gp_ucb", BOX), ("he_gp_ucb", BOX)],
)
def test_posteriors_are_those_of_dense_algebra(method, domain):
    """Pending trials count in standard deviations, but for Thompson sampling."""
    strategy = made(method, domain)
    lam = SIGMA**2 if method == "constant width" else LAM
    book = Book(SIGMA, lam)
    pending = played(strategy, book, steps=24 if domain is POINTS else 6)
    attached = strategy.attach(POINTS.points[5], [0.2, 0.6], std=0.02)
    book.tell(POINTS.points[5], [0.2, 0.6], 0.02)
    pending += strategy.ask(2)
    minimum = -1.5 if method == "gp_ucb_sdf" else None
    waiting = [] if method == "thompson_sampling" else [trial.x for trial in pending]
    rows = book.arrays(waiting, minimum)
    posterior = strategy.posterior
    kernels = [rbf(0.3), matern(0.6)] if len(strategy.names) > 1 else [rbf(0.3)]
    for position, id in enumerate(strategy.alive):
        mean, std = dense(kernels[id], *rows, POINTS.points)
        for own, value in zip(moments(posterior), (mean, std), strict=True):
            np.testing.assert_allclose(own[position], value, rtol=1e-7, atol=1e-8)
    # A correction replaces the standard error, too.
    strategy.correct(attached, 0.5)
    book.rows[-1] = (POINTS.points[5], 0.5, lam)
    mean, std = dense(kernels[id], *book.arrays(waiting, minimum), POINTS.points)
    own = moments(strategy.posterior)[0][position]
    np.testing.assert_allclose(own, mean, rtol=1e-7, atol=1e-8)
    again = made(method, domain)
    again.replay(strategy.events)
    assert torch.equal(again.ask().x, strategy.ask().x)


LADDER = widths.Ladder(B, SIGMA, DELTA, (1, 9))


@pytest.mark.parametrize(
    "width",
    [SELF_NORMALIZED, LADDER, widths.Dual(B, SIGMA, DELTA, (1, 9))],
    ids=["self-normalized", "ladder", "dual"],
)
def test_bounds_are_those_of_rows_divided_by_their_noise(width):
    """The statement of the proofs: bounds are those of the kernel k(x, x') / (c c')."""
    book = Book(SIGMA, LAM)
    strategy = bx.algorithms.gp_ucb(
        POINTS,
        rbf(0.3),
        noise_variance=LAM,
        width=width,
        initial=(X_INITIAL, Y_INITIAL, STD_INITIAL),
    )
    ridges = getattr(width, "ridges", (1.0,))
    kernel, at = rbf(0.3), POINTS.points
    for step in range(20):
        X, y, own = book.arrays()
        c = np.sqrt(own / LAM)
        K, k = (kernel(*pair).to_dense().detach().numpy() for pair in ((X, X), (X, at)))
        plain = Tight(
            K / np.outer(c, c), k / c[:, None], np.ones(len(at)), np.array(y) / c, LAM, B, SIGMA,
            DELTA, ridges,
        )  # fmt: skip
        mean, half_width = strategy.bands(at)
        if isinstance(width, widths.Ladder):
            lower, upper = plain.bounds(0.0, True, isinstance(width, widths.Dual))
        else:
            gain = 2 * (plain.gain(LAM) + math.log(1 / DELTA))
            half = (B + SIGMA * math.sqrt(gain / LAM)) * plain.std(LAM)
            lower, upper = plain.mean(LAM) - half, plain.mean(LAM) + half
        np.testing.assert_allclose(mean[0] + half_width[0], upper, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(mean[0] - half_width[0], lower, rtol=1e-7, atol=1e-8)
        trial, std = strategy.ask(), STDS[step % len(STDS)]
        value = f(trial.x) + 0.05 * math.sin(step)
        strategy.tell(trial, value, std=std)
        book.tell(trial.x, [value], std)


def test_pointwise_enlargements_weigh_observations_in_their_own_units():
    strategy, book = made("pointwise ec_gp_ucb"), Book(SIGMA, LAM)
    assert not played(strategy, book, steps=11)
    X, _, ridges = book.arrays()
    kernel, at = rbf(0.3), POINTS.points
    K, k = (kernel(*pair).to_dense().detach().numpy() for pair in ((X, X), (X, at)))
    zeta = np.abs(np.linalg.inv(K + np.diag(ridges)) @ k).sum(axis=0)
    gain = 0.5 * np.linalg.slogdet(np.eye(len(X)) + K / np.sqrt(np.outer(ridges, ridges)))[1]
    width = B + SIGMA * math.sqrt(2 * (gain + math.log(1 / DELTA)) / LAM)
    std = dense(kernel, *book.arrays(), at)[1]
    half_width = strategy.bands(at)[1][0]
    np.testing.assert_allclose(half_width, width * std + EPS * zeta, rtol=1e-7)


def test_a_standard_error_that_is_the_noise_changes_no_band():
    """With pending trials, at which an enlargement has a cap."""
    width, bands = widths.PointwiseEnlarged(SELF_NORMALIZED, EPS), []
    points = bx.FiniteSet(X_INITIAL)
    for std in (None, SIGMA):
        strategy = bx.algorithms.gp_ucb(points, rbf(0.3), noise_variance=LAM, width=width)
        for _ in range(2):
            strategy.tell(strategy.ask(), 0.3, std=std)
        strategy.ask(8)
        bands.append(strategy.bands(X_INITIAL)[1])
    torch.testing.assert_close(*bands)


def test_bounds_of_posteriors_take_the_noise_of_their_rows():
    """A precise result counts as that many equal ones, also where values have errors."""
    x, y = POINTS.points[[4, 9, 13]], [0.3, -0.8, 1.1]
    kernel = rbf(0.3)
    precise, often = (bx.KernelGP(kernel, LAM, dtype=torch.float64) for _ in range(2))
    precise.add(x, y, [0.25, 1.0, 0.5])
    often.add(x[[0, 0, 0, 0, 1, 2, 2]], [0.3] * 4 + [-0.8] + [1.1] * 2)
    quantity = Quantity(LADDER, EPS, None)
    bounds = [CertifiedBounds(model, quantity).bounds(POINTS.points) for model in (precise, often)]
    norms = [rkhs_norm_lower_bound(model, SIGMA, DELTA, EPS) for model in (precise, often)]
    torch.testing.assert_close(*bounds)
    torch.testing.assert_close(*norms)


@pytest.mark.parametrize(
    "make",
    [
        bx.acquisition.EnlargedUpperConfidenceBound,
        partial(bx.acquisition.StableUCB, radius=0.1, bounds=BOX.bounds),
        lambda model, width: bx.acquisition.OptimisticModelUCB([model, model], [2.0, width]),
    ],
    ids=["UCB", "stable", "of models"],
)
def test_acquisition_functions_refuse_widths_for_equal_noise(make):
    model = bx.KernelGP(rbf(0.3), LAM, dtype=torch.float64)
    plain = widths.ChowdhuryGopalan(B, SIGMA, DELTA)
    model.add(X_INITIAL, Y_INITIAL)
    make(model, plain)
    model.add(X_INITIAL + 0.1, Y_INITIAL, [0.25, 2.0])
    make(model, SELF_NORMALIZED)
    make(model, 2.0)
    with pytest.raises(ValueError, match="width must be one for observations that differ in noise"):
        make(model, plain)


def test_states_of_models_keep_the_noise_and_older_ones_have_none():
    kernel, empty = rbf(0.3), {"dtype": torch.float64}
    model, older = (bx.KernelGP(kernel, LAM, **empty) for _ in range(2))
    model.add(X_INITIAL, Y_INITIAL, [0.25, 2.0])
    older.add(X_INITIAL, Y_INITIAL)
    for each in (model, older):
        state, new = each.state_dict(), bx.KernelGP(kernel, LAM, **empty)
        if each is older:
            del state["_extra_state"]["factor"]["relative_noise"]
        new.load_state_dict(state)
        torch.testing.assert_close(new.relative_noise, each.relative_noise)
        wanted = each.mean_and_std(POINTS.points)
        torch.testing.assert_close(new.mean_and_std(POINTS.points), wanted)


def test_tests_of_predictions_divide_errors_by_the_noise():
    strategy = made("he_gp_ucb")
    sums, num_data = {}, len(X_INITIAL)
    for step in range(20):
        trial, std = strategy.ask(), STDS[step % len(STDS)]
        value = f(trial.x) + 0.1 * math.cos(step)
        alive = list(strategy.alive)
        strategy.tell(trial, value, std=std)
        num_data += 1
        told, c = trial.info["told"], (std or SIGMA) / SIGMA
        half = told["width"] * told["std"] + told["offset"]
        own = sums.setdefault(trial.info["model"], np.zeros(3))
        own += np.array([1, (value - told["mean"]) / c, half / c])
        union = 2 * 2 * math.pi**2 * num_data**2 / (3 * DELTA)
        noise = math.sqrt(2 * SIGMA**2 * math.log(union) * own[0])
        test = strategy.judge.running.latest(trial.info["model"], "optimistic")
        assert test.bound == pytest.approx(noise + own[2])
        assert test.error == pytest.approx(own[1])
        assert (trial.info["model"] in strategy.alive or len(alive) == 1) == (
            abs(own[1]) <= noise + own[2] or len(alive) == 1
        )


def test_the_alarm_takes_rows_divided_by_their_noise():
    """A function of too large a norm is refuted by precise results, and not by vague ones."""
    said = {}
    for std in (0.02, 3.0):
        strategy = made("gp_ucb")
        for _ in range(25):
            trial = strategy.ask()
            strategy.tell(trial, 4 * f(trial.x), std=std)
        (data,) = strategy.told_data()
        report = strategy.report()
        said[std] = report["refuted_at"] is not None
        X, y, ridges = (np.array(each) for each in zip(
            *((x.numpy(), y, ridge) for x, y, ridge in [
                *zip(X_INITIAL, Y_INITIAL.tolist(), (LAM * (STD_INITIAL / SIGMA) ** 2).tolist(),
                     strict=True),
                *((t.x, 4 * f(t.x), LAM * (std / SIGMA) ** 2) for t in strategy.history.trials),
            ]), strict=True))  # fmt: skip
        c = np.sqrt(ridges / LAM)
        K = rbf(0.3)(torch.from_numpy(X)).to_dense().detach().numpy()
        np.testing.assert_allclose(data.K, K / np.outer(c, c), rtol=1e-9)
        np.testing.assert_allclose(data.y, y / c, rtol=1e-9)
    assert said == {0.02: True, 3.0: False}


def test_posteriors_are_those_of_botorch_with_train_yvar():
    X, Y, Yvar = drawn(9, 2, seed=5), drawn(9, 1, seed=6), drawn(9, 1, seed=7, low=0.001)
    theirs = SingleTaskGP(
        X, Y, Yvar, covar_module=rbf(0.3), mean_module=ZeroMean(), outcome_transform=None
    )
    mine = bx.KernelGP(rbf(0.3), noise_variance=LAM)
    mine.add(X, Y, Yvar.flatten() / LAM)
    with torch.no_grad():
        posterior = theirs.posterior(POINTS.points)
    mean, std = mine.mean_and_std(POINTS.points)
    torch.testing.assert_close(mean, posterior.mean.flatten(), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(std, posterior.variance.flatten().sqrt(), rtol=1e-6, atol=1e-7)
    restored = bx.KernelGP(rbf(0.3), noise_variance=LAM)
    restored.load_state_dict(mine.state_dict())
    restored.add(X[:1], Y[:1])
    mine.add(X[:1], Y[:1])
    assert torch.equal(restored.mean_and_std(POINTS.points)[1], mine.mean_and_std(POINTS.points)[1])


# --- what is told ---------------------------------------------------------------------------------


def test_repeats_count_as_that_many_results():
    """The posterior after repeats is that after as many single results."""
    together, apart = made("gp_ucb"), made("gp_ucb")
    x, values = POINTS.points[4], [0.1, 0.5, 0.3]
    together.attach(x, values)
    for value in values:
        apart.attach(x, value)
    mine, theirs = (strategy.bands(POINTS.points) for strategy in (together, apart))
    for own, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-9)
    assert together.history.values[0] == pytest.approx(0.3)
    assert together.history.repeats[0] == (0.1, 0.5, 0.3)


@pytest.mark.parametrize("minimize", [False, True])
def test_events_keep_what_was_told(minimize):
    strategy = bx.algorithms.gp_ucb(
        POINTS, rbf(0.3), noise_variance=LAM, width=2.0, minimize=minimize
    )
    strategy.tell(strategy.ask(), [1.0, 2.0], std=0.3)
    strategy.tell(strategy.ask(), 1.5)
    strategy.correct(0, std=0.2)
    first, _, last = (event for event in strategy.events if not hasattr(event, "trial"))
    assert (first.value, first.std, first.repeats) == (1.5, 0.3, (1.0, 2.0))
    assert (last.value, last.std, last.repeats) == (1.5, 0.2, (1.0, 2.0))
    assert strategy.history.stds == {0: 0.2}
    read = [from_text(as_text(event), POINTS.like) for event in strategy.events]
    again = bx.algorithms.gp_ucb(POINTS, rbf(0.3), noise_variance=LAM, width=2.0, minimize=minimize)
    again.replay(read)
    assert again.events[1] == first
    assert again.history.stds == {0: 0.2}
    strategy.correct(0, 3.0)
    assert (strategy.history.stds, strategy.history.repeats) == ({}, {})


@pytest.mark.parametrize(
    ("value", "std", "message"),
    [
        (1.0, 0.0, "std must be positive and finite, got 0.0 for trial 0"),
        (1.0, math.inf, "std must be positive and finite"),
        (1.0, "1", "std must be one number"),
        ([], None, "value must be at least one number, got none for trial 0"),
        ([1.0, "2"], None, "value[1] must be one number"),
        ([1.0, math.nan], None, "value must be finite"),
        ([math.inf, -math.inf], None, "value must be finite"),
        ([1e308, 1e308], None, "value must be finite, and under 1e+100"),
        (1.0, 1e200, "std must be between 1e-100 and 1e+100, got 1e+200 for trial 0"),
    ],
)
def test_wrong_results_are_refused_and_change_nothing(value, std, message):
    strategy = made("gp_ucb")
    strategy.ask()
    with pytest.raises(ValueError, match=re.escape(message)):
        strategy.tell(0, value, std=std)
    assert len(strategy.events) == 1


def test_methods_whose_analysis_needs_equal_noise_refuse_standard_errors():
    kernel, known = rbf(0.3), {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
    published = bx.algorithms.ec_gp_ucb(
        POINTS, kernel, noise_variance=LAM, misspecification=EPS, **known
    )
    certified = bx.algorithms.certified_bucb(
        POINTS, kernel, noise_variance=LAM, horizon=20, **known
    )
    for strategy, message in (
        (published, "std must be None for .*, got 0.1: Enlarged is a width for results"),
        (certified, "std must be None for .*, got 0.1: its analysis"),
    ):
        trial = strategy.ask()
        with pytest.raises(ValueError, match=message):
            strategy.tell(trial, 0.3, std=0.1)
        with pytest.raises(ValueError, match=r"value must be one number for .*their average"):
            strategy.tell(trial, [0.3, 0.4])
        with pytest.raises(ValueError, match="std must be None"):
            strategy.replay([Told(0, 0.3, {}, 0.1)])
    with pytest.raises(ValueError, match=r"initial must have no std for .*Enlarged"):
        bx.algorithms.ec_gp_ucb(
            POINTS,
            kernel,
            noise_variance=LAM,
            misspecification=EPS,
            initial=(X_INITIAL, Y_INITIAL, STD_INITIAL),
            **known,
        )


def test_models_whose_rows_differ_in_noise_are_refused_for_the_published_enlargement():
    model = bx.KernelGP(rbf(0.3), LAM, dtype=torch.float64)
    model.add(X_INITIAL, Y_INITIAL, [0.25, 2.0])
    width = widths.Enlarged(SELF_NORMALIZED, EPS)
    with pytest.raises(ValueError, match=r"model must have no relative_noise for .*Enlarged"):
        bx.strategies.BoundsStrategy(POINTS, model, width)
    with pytest.raises(ValueError, match='enlargement must be "pointwise"'):
        bx.acquisition.EnlargedUpperConfidenceBound(model, width=2.0, misspecification=EPS)


# --- hyperparameter samples -----------------------------------------------------------------------


def sampled(**options):
    particles = bx.Particles(num_particles=8)
    return bx.algorithms.integrated_ei(BOX, particles, num_initial=4, **options)


def test_hyperparameter_samples_take_repeats_as_shares_and_standard_errors_as_known():
    strategy, told = sampled(), []
    for step in range(9):
        trial = strategy.ask()
        value = [0.2, 0.4 + f(trial.x)] if step % 3 == 1 else f(trial.x)
        std = 0.3 if step % 3 == 2 else None
        strategy.tell(trial, value, std=std)
        told.append((trial.x, float(np.mean(value)), 2 if step % 3 == 1 else 1, std))
    X, Y, counts, stds = zip(*told, strict=True)
    ensemble, at = strategy.posterior, POINTS.points
    y, _, scale = standardised(torch.tensor(Y, dtype=torch.float64))
    assert not ensemble.outcomes.bend
    torch.testing.assert_close(ensemble.outcomes.values, y)
    for i, particle in enumerate(ensemble.parameters):
        kernel, noise = model_of(particle)
        variances = torch.stack(
            [
                noise / k if std is None else torch.tensor((std / scale) ** 2, dtype=noise.dtype)
                for k, std in zip(counts, stds, strict=True)
            ]
        )
        K, k = kernel(torch.stack(X), torch.stack(X)), kernel(torch.stack(X), at)
        inverse = torch.linalg.inv(K + variances.diag())
        ones = torch.ones_like(y)
        constant = (ones @ inverse @ y) / (ones @ inverse @ ones)
        mean = constant + k.T @ inverse @ (y - constant)
        std = (1 - ((inverse @ k) * k).sum(dim=0)).sqrt()
        means, found = ensemble.model.mean_and_std(ensemble.inputs.features(at))
        torch.testing.assert_close(means[i] + ensemble.constants[i], mean, rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(found[i], std, rtol=1e-6, atol=1e-7)
    again = sampled()
    again.replay(strategy.events)
    assert torch.equal(again.ask().x, strategy.ask().x)


def test_the_density_of_hyperparameters_is_that_of_rows_with_their_noise():
    X, y = drawn(7, 2, seed=3), drawn(7, seed=4)
    shares = torch.tensor([1, 1 / 3, 0, 1, 0.5, 0, 1], dtype=torch.float64)
    known = torch.tensor([0, 0, 0.2, 0, 0, 1.5, 0], dtype=torch.float64)
    scatter = torch.tensor([0, 0.6, 3.0, 0, 0.01, 0, 0], dtype=torch.float64)
    density = Density(X, y, Prior(), None, RowNoise(shares, known, scatter))
    parameters = torch.tensor([[-1.0, 0.3, -2.0, 0.4], [0.5, -0.7, -4.0, -1.0]]).double()
    kernel_and_noise = [model_of(each) for each in parameters]
    found = []
    for kernel, noise in kernel_and_noise:
        C = kernel(X, X) + (noise * shares + known).diag()
        inverse, ones = torch.linalg.inv(C), torch.ones_like(y)
        r = y - (ones @ inverse @ y) / (ones @ inverse @ ones)
        # Three repeats and two: the deviations from their averages have 2 + 1 degrees of freedom.
        repeats = -1.5 * noise.log() - 0.61 / (2 * noise)
        found.append(-0.5 * r @ inverse @ r - 0.5 * torch.logdet(C) + repeats)
    value, gradient = density.value_and_gradient(parameters)
    likelihoods = value - density.log_prior(parameters)
    torch.testing.assert_close(likelihoods, torch.stack(found))
    for j in range(parameters.shape[1]):
        step = torch.zeros_like(parameters)
        step[:, j] = 1e-6
        slope = (density.value(parameters + step) - density.value(parameters - step)) / 2e-6
        torch.testing.assert_close(gradient[:, j], slope, rtol=1e-6, atol=1e-6)


def test_the_best_value_is_not_recommended_if_it_is_vague():
    """The other results have so little noise that the best of them would be."""
    strategy = sampled()
    for x, value in ((0.1, 0.0), (0.2, 0.1), (0.3, 0.3), (0.4, 0.6), (0.5, 1.0)):
        strategy.attach([x, x], value, std=0.001)
    strategy.attach([1.0, 1.0], 1.5, std=3.0)
    assert strategy.recommend()[0].tolist() != [1.0, 1.0]


def test_a_deterministic_objective_has_no_standard_errors():
    strategy = sampled(deterministic=True)
    with pytest.raises(ValueError, match="a deterministic objective has no noise"):
        strategy.attach([0.5, 0.5], 1.0, std=0.1)


def test_particles_of_many_results_at_once_have_the_noise_of_their_rows():
    """More results than a first stage takes, in another order."""
    X, y = drawn(40, 1, seed=5), drawn(40, seed=6)
    known = torch.arange(40, dtype=torch.float64) / 10
    noise = RowNoise((known == 0).double(), known, torch.zeros_like(known))
    cloud = bx.Particles(num_particles=4).started(X, y, None, 0, noise)
    density = Density(X, y, Prior(), None, noise)
    torch.testing.assert_close(cloud.values, density.value(cloud.parameters))


def test_repeats_have_the_density_of_that_many_rows():
    """Up to a constant, repeats are told together or one by one."""
    X, y = drawn(5, 2, seed=3), drawn(7, seed=4)
    groups = [[0, 1, 2], [3], [4, 5], [6]]
    averages = torch.stack([y[rows].mean() for rows in groups])
    noise = RowNoise(
        torch.tensor([1 / len(rows) for rows in groups]).double(),
        torch.zeros(4).double(),
        torch.stack([(y[rows] - y[rows].mean()).square().sum() for rows in groups]),
    )
    together = Density(X[:4], averages, Prior(), None, noise)
    apart = Density(X[[0, 0, 0, 1, 2, 2, 3]], y, Prior())
    parameters = torch.tensor([[-1.0, 0.3, -2.0, 0.4], [0.5, -0.7, -4.0, -1.0]]).double()
    differences = together.value(parameters) - apart.value(parameters)
    torch.testing.assert_close(differences[0], differences[1], rtol=1e-6, atol=1e-6)


def test_precise_results_are_believed_and_vague_ones_are_not():
    """Two results contradict each other at a point: the mean there is that of the precise one."""
    for first, second, wanted in ((0.01, 5.0, 1.0), (5.0, 0.01, -1.0)):
        strategy = sampled()
        x = [0.5, 0.5]
        strategy.attach(x, 1.0, std=first)
        strategy.attach(x, -1.0, std=second)
        for other in ([0.1, 0.1], [0.9, 0.2], [0.3, 0.8]):
            strategy.attach(other, 0.0, std=0.01)
        assert strategy.predict(torch.tensor([x]).double()).mean.item() == pytest.approx(
            wanted, abs=0.05
        )
