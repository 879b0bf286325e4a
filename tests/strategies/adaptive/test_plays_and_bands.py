"""Which model each observation was made for, and the bands that the next ask chooses by."""

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.models import CandidateModels
from botorch_ext.strategies.adaptive.predictions import Play
from tests.helpers import tolerance

BOX = bx.Box([[2.0, -7.0], [5.0, -6.2]])
GRID = bx.FiniteSet(BOX.sample(60, seed=1))
SCALES = (0.2, 0.5, 1.5)
NOISE = 0.01
CLOSE = tolerance(torch.float64)


def f(x):
    return float((3.0 * x).sin().sum() + 4.0)


def models():
    return CandidateModels.lengthscales(RBFKernel(), SCALES, noise_variance=NOISE)


def study(method, domain, **options):
    """Told out of order, with initial data, initial trials, pending and abandoned trials."""
    X = domain.sample(3, seed=7)
    strategy = method(
        domain,
        models(),
        initial=(X, torch.tensor([f(x) for x in X], dtype=torch.float64)),
        num_initial=2,
        **options,
    )
    for batch, order in ((4, (1, 3, 0)), (3, (5, 2)), (2, (8, 4))):
        trials = strategy.ask(batch)
        if trials[0].id == 4:
            strategy.abandon(trials[-1].id)
        for id in order:
            strategy.tell(id, f(strategy.history.trials[id].x))
    return strategy


def dense(strategy, scale, X, shift=0.0, spread=1.0):
    """Posterior mean from told data, standard deviation with pending points as well, by dense
    algebra."""
    told = [*strategy.initial[0], *(strategy.history.trials[i].x for i in strategy.history.values)]
    values = [*strategy.initial[1].tolist(), *strategy.history.values.values()]
    asked = told + [strategy.history.trials[id].x for id in strategy.pending]

    def k(A, B):
        squared = (A[:, None] - B[None]).square().sum(-1)
        return (-squared / (2 * scale**2)).exp()

    def weights(points):
        points = torch.stack(points)
        gram = k(points, points) + NOISE * torch.eye(len(points), dtype=torch.float64)
        cross = k(points, X)
        return cross, torch.linalg.solve(gram, cross)

    y = (torch.tensor(values, dtype=torch.float64) - shift) / spread
    _, of_told = weights(told)
    cross, of_asked = weights(asked)
    return y @ of_told, (1 - (cross * of_asked).sum(0)).sqrt()


@pytest.mark.parametrize(
    ("domain", "widths"), [(BOX, (1.0, 2.0, 3.0)), (GRID, (0.5, 1.0, 1.5))], ids=["box", "set"]
)
def test_bands_are_those_of_the_models_alive(domain, widths):
    strategy = study(bx.algorithms.he_gp_ucb, domain, noise_std=0.01, width=widths)
    assert strategy.pending
    assert strategy.rejected
    X = domain.points[::3] if domain is GRID else domain.sample(20, seed=2)
    mean, half_width = strategy.bands(X)
    assert mean.shape == half_width.shape == (len(strategy.alive), len(X))
    for position, id in enumerate(strategy.alive):
        expected, std = dense(strategy, SCALES[id], X)
        torch.testing.assert_close(mean[position], expected, **CLOSE)
        torch.testing.assert_close(half_width[position], widths[id] * std, **CLOSE)


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "set"])
def test_the_highest_band_is_what_the_next_ask_chooses(domain):
    strategy = study(bx.algorithms.he_gp_ucb, domain, noise_std=0.3, width=2.0, inflate=True)
    mean, half_width = strategy.bands(domain.sample(50, seed=0))
    probed = mean + half_width
    x = strategy.ask().x
    id = strategy.history.trials[-1].info["model"]
    copy = study(bx.algorithms.he_gp_ucb, domain, noise_std=0.3, width=2.0, inflate=True)
    mean, half_width = copy.bands(x.unsqueeze(0))
    upper = (mean + half_width)[:, 0]
    assert copy.alive[int(upper.argmax())] == id
    assert float(upper.max()) >= float(probed.max()) * (1 - CLOSE["rtol"])


def test_bands_are_in_units_of_the_observations_where_outputs_are_standardised():
    strategy = study(bx.algorithms.lb_gp_ucb, BOX, noise_std=0.05)
    values = torch.tensor(
        [*strategy.initial[1].tolist(), *strategy.history.values.values()], dtype=torch.float64
    )
    shift, spread = float(values.mean()), float(values.std())
    X = BOX.sample(20, seed=2)
    mean, half_width = strategy.bands(X)
    widths = strategy.posterior.width(strategy._current_width(), strategy.report()["t"])
    for position, id in enumerate(strategy.alive):
        expected, std = dense(strategy, SCALES[id], X, shift, spread)
        torch.testing.assert_close(mean[position], shift + spread * expected, **CLOSE)
        torch.testing.assert_close(half_width[position], spread * widths[position] * std, **CLOSE)


def test_bands_outside_the_domain_are_refused():
    strategy = study(bx.algorithms.mle_ucb, GRID, width=2.0)
    with pytest.raises(ValueError, match="must be one of the 60 points of the set"):
        strategy.bands(torch.tensor([[0.0, 0.0]], dtype=torch.float64))


@pytest.mark.parametrize("pending", ["hallucinate", "ignore", "censor"])
def test_plays_are_told_trials_that_a_model_asked_for(pending):
    censor = {"minimum": -3.0, "timeout": 3} if pending == "censor" else {}
    strategy = study(bx.algorithms.mle_ucb, GRID, width=2.0, pending=pending, **censor)
    late = strategy.report()["told_too_late"]
    assert bool(late) == (pending == "censor")
    told = [id for id in (1, 3, 0, 5, 2, 8, 4) if id not in late]
    expected = [
        Play(t, id, strategy.history.trials[id].info["model"])
        for t, id in enumerate(told, start=4)
        if id >= 2
    ]
    assert strategy.plays == expected


def test_plays_have_the_times_of_the_tests():
    strategy = study(bx.algorithms.he_gp_ucb, GRID, noise_std=5.0, width=2.0)
    of_tests = [(test.t, test.trial, test.model) for test in strategy.tests]
    assert of_tests == [(play.t, play.trial, play.model) for play in strategy.plays]
