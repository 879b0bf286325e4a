"""The recommended point and what the next batch is expected to gain, against formulas and joint
draws by dense algebra."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import NoModelError, NoObservationsError
from botorch_ext.strategies import RandomSearch
from botorch_ext.strategies.answers.expected_gain import gain_of
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.answers.recommendation import recommendation
from botorch_ext.testing.states import question, state
from tests.helpers import rbf
from tests.predictions.particles import BOX, dense_parts, height, played

# Joint draws of the library and of the oracle: their standard errors are under .006 standard
# deviations of what is averaged.
_NUM_DRAWS = 80_000


def _gp(X, Y):
    model = bx.KernelGP(rbf(0.8), 0.04)
    model.add(X, Y)
    return GPMixture.of([model])


def _dense_draws(strategy, X):
    """Joint draws of f at ``q x d`` points from the mixture of all particles."""
    rng, parts = np.random.default_rng(5), dense_parts(strategy, X)
    num = _NUM_DRAWS // len(parts)
    drawn = [
        rng.multivariate_normal(mean.numpy(), cov.numpy(), num, tol=1e-6) for mean, cov, _ in parts
    ]
    restored, _ = strategy.posterior.outcomes.restored(torch.tensor(np.concatenate(drawn)))
    return restored.numpy()


def test_of_the_default_they_are_those_of_joint_draws():
    strategy = played(by_default())
    told, pending = strategy.evaluated()[0], strategy.history.trials[-1].x
    found, x = strategy.recommended(), strategy.recommend()[0]
    assert_close(found.x, x)
    assert_close(found.prediction.mean, strategy.predict(x).mean)
    draws = _dense_draws(strategy, torch.cat([x[None], told]))
    behind = np.maximum(draws[:, 1:].max(axis=1) - draws[:, 0], 0)
    assert abs(found.probability - (behind <= 0).mean()) < 0.03
    assert abs(found.shortfall - behind.mean()) < 0.03 * behind.std()
    gain = strategy.expected_gain(3)
    before = torch.cat([told, pending[None]])
    draws = _dense_draws(strategy, torch.cat([before, gain.x]))
    gains = np.maximum(draws[:, len(before) :].max(axis=1) - draws[:, : len(before)].max(axis=1), 0)
    assert gain.gain > 0
    assert abs(gain.gain - gains.mean()) < 0.04 * gains.std()
    assert abs(gain.probability - (gains > 0).mean()) < 0.03


def by_default():
    return bx.algorithms.integrated_ei(BOX, seed=1)


def gp_ucb():
    return bx.algorithms.gp_ucb(BOX, rbf(0.8), noise_variance=0.04, width=2.0)


@pytest.mark.parametrize("make", [by_default, gp_ucb])
def test_the_batch_is_what_would_be_asked_and_is_not_asked(make):
    strategy, other = played(make()), played(make())
    before = state(strategy)
    gain, again = strategy.expected_gain(3), strategy.expected_gain(3)
    assert gain.gain == again.gain
    assert state(strategy) == before
    assert_close(gain.x, torch.stack([trial.x for trial in strategy.clone().ask(3)]))
    assert question(strategy, {}) == question(other, {})


def test_an_evaluated_point_that_stands_out_is_the_best():
    X = BOX.sample(5, seed=1)
    Y = torch.tensor([0.0, 9.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    found = recommendation(_gp(X, Y), X[1], X.repeat(2, 1), BOX, seed=0)
    assert found.is_evaluated and found.probability == 1 and found.shortfall == 0
    only = recommendation(_gp(X, Y), X[1], X[1:2], BOX, seed=0)
    assert only.probability == 1 and only.shortfall == 0
    assert not recommendation(_gp(X, Y), BOX.sample(1, seed=9)[0], X, BOX, seed=0).is_evaluated


def test_of_many_points_the_most_promising_are_compared(monkeypatch):
    """Those that are left out are far below: the probability is the same but for the draws."""
    X = BOX.sample(30, seed=1)
    mixture, row = _gp(X, height(X) / 10), X[height(X).argmax()]
    whole = recommendation(mixture, row, X, BOX, seed=0)
    monkeypatch.setattr("botorch_ext.strategies.answers.recommendation._MOST_COMPARED", 12)
    some = recommendation(mixture, row, X, BOX, seed=0)
    assert some.is_evaluated and abs(some.probability - whole.probability) < 0.03


def test_nothing_is_gained_where_was_evaluated():
    X = BOX.sample(5, seed=1)
    mixture = _gp(X, height(X) / 10)
    again = gain_of(mixture, X, X[:3], BOX, seed=0)
    assert again.gain == again.probability == 0 and again.x.shape == (3, 2)
    new = BOX.sample(1, seed=9)
    alone, both = (gain_of(mixture, X, B, BOX, seed=0) for B in (new, torch.cat([X[:3], new])))
    assert alone.gain == both.gain > 0
    assert_close(alone.noise_std, 0.2, rtol=1e-9, atol=0)


def test_in_a_context_actions_are_compared_there():
    """The best action is the context itself: at another one it is another action."""
    box = bx.Box([(2.0, 5.0)])
    strategy = bx.algorithms.integrated_ei(box, seed=0, context_domain=[(2.5, 4.5)])
    for i, x in enumerate(box.sample(16, seed=3)):
        z = 2.5 + (0.77 * i) % 2
        strategy.attach(x, -float((x - z) ** 2), [z])
    for z in (2.8, 4.2):
        found = strategy.recommended([z])
        assert abs(float(found.x) - z) < 0.3
        assert_close(found.context, torch.tensor([z], dtype=torch.float64))
        gain = strategy.expected_gain(2, context=[z])
        assert gain.x.shape == (2, 1) and gain.gain >= 0
    with pytest.raises(ValueError, match="context must be given"):
        strategy.expected_gain(2)


def test_what_is_refused():
    for strategy in (RandomSearch(BOX), by_default(), gp_ucb()):
        for call in (strategy.recommended, strategy.expected_gain):
            with pytest.raises((NoModelError, NoObservationsError)):
                call()
        assert not strategy.events
    with pytest.raises(ValueError, match="num must be at least 1"):
        played(gp_ucb(), 3).expected_gain(0)
