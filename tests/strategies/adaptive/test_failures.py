"""integrated_ei where experiments fail: the probability of success against dense algebra, and the
points that it asks and recommends."""

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.hyperparameters.feasibility import Feasibility
from tests.oracles.particles import dense_log_improvement, dense_success

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])
SET = bx.FiniteSet(BOX.sample(60, 1))
FEW = bx.Particles(8)


def f(x):
    return float(torch.sin(2 * x[0]) - (x[-1] + 2) ** 2)


def fails(x):
    """The best points fail, and a third of the others."""
    return bool(3.4 < x[0] < 4.6)


def answer(strategy, trial, f=f, fails=fails):
    if fails(trial.x):
        strategy.abandon(trial, failed=True)
    else:
        strategy.tell(trial, f(trial.x))


def played(domain, steps, f=f, fails=fails, **options):
    strategy = bx.algorithms.integrated_ei(domain, FEW, **{"num_initial": 5, **options})
    for _ in range(steps):
        answer(strategy, strategy.ask(), f, fails)
    return strategy


def test_the_probability_of_success_is_that_of_dense_algebra():
    strategy, Z = played(SET, 9), BOX.sample(20, 3)
    model = strategy.posterior
    found = strategy._success(model.parameters, model)
    value = found.log_probability(model.inputs.features(Z))
    assert_close(value.exp(), dense_success(strategy, model.parameters, Z))
    # The gradient, by finite differences.
    F, step = model.inputs.features(Z), 1e-6
    own, gradient = found.log_probability_and_gradient(F)
    assert_close(own, value)
    for j, e in enumerate(torch.eye(2, dtype=torch.float64)):
        ends = [found.log_probability(F + sign * step * e) for sign in (1, -1)]
        assert_close(gradient[:, j], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
def test_earlier_failures_are_in_the_model_of_success(domain):
    strategy, points = bx.algorithms.integrated_ei(domain, FEW), SET.points[:9]
    for x in points:
        if fails(x):
            strategy.attach(x, failed=True)
        else:
            strategy.attach(x, f(x))
    failed = {id for id, x in enumerate(points) if fails(x)}
    assert strategy.history.failed == failed and 0 < len(failed) < 8
    trial, particles = strategy.clone().ask(), strategy.posterior.parameters
    success = dense_success(strategy, particles, trial.x[None])
    assert trial.info["success"] == pytest.approx(float(success), abs=1e-6)
    for wrong in sorted(failed)[:2]:
        own, particles = strategy.predict(SET.points[9:]), strategy.posterior.parameters
        expected = dense_success(strategy, particles, SET.points[9:])
        assert_close(own.feasibility, expected, rtol=1e-6, atol=1e-6)
        strategy.withdraw(wrong)


@pytest.mark.parametrize("num_failed", [1, 30])
def test_far_from_all_trials_the_share_of_successes_counts(num_failed):
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=2)
    model = strategy.posterior
    X = BOX.sample(num_failed + 7, 2)
    succeeded = torch.arange(len(X)) >= num_failed
    near = model.inputs.features(X)
    success = Feasibility.of_trials(model.parameters, model.inputs, near, succeeded)
    far = success.log_probability(near[:1] + 1e6).exp()
    assert float(far) == pytest.approx(8 / (num_failed + 9))


@pytest.mark.parametrize("steps", [7, 11])
def test_the_point_asked_has_the_most_improvement_times_success_of_the_dense_models(steps):
    strategy = played(BOX, steps, num_initial=6)
    axes = [torch.linspace(a, b, 41, dtype=torch.float64) for a, b in BOX.bounds.T.tolist()]
    first = strategy.clone().ask()
    points = torch.cat([first.x[None], torch.cartesian_prod(*axes)])
    improvement = dense_log_improvement(strategy, first, points, points[:0])
    particles = torch.tensor(first.info["particles"]["parameters"], dtype=torch.float64)
    success = dense_success(strategy, particles, points)
    assert first.info["success"] == pytest.approx(float(success[0]), abs=1e-6)
    assert first.info["log_improvement"] == pytest.approx(float(improvement[0]), abs=1e-4)
    values = (improvement + success.log()).masked_fill(success < 0.7, -1e9)
    assert values[0] > values[1:].max() - 1e-2


def test_no_point_below_the_threshold_is_asked_while_another_one_is_above():
    strategy, num_low = played(SET, 6), 0
    for _ in range(14):
        trial = strategy.clone().ask()
        failed = [strategy.history.trials[id].info["index"] for id in strategy.history.failed]
        success = dense_success(strategy, strategy.posterior.parameters, SET.points)
        assert trial.info["success"] == pytest.approx(float(success[trial.info["index"]]), abs=1e-6)
        assert trial.info["index"] not in failed
        success[failed] = 0.0
        assert trial.info["success"] >= 0.7 or success.max() < 0.7
        num_low += int((success < 0.7).sum())
        answer(strategy, strategy.ask())
    assert num_low > 100  # the threshold excludes points


def test_no_deterministic_point_below_the_threshold_is_asked_while_another_one_is_above():
    space = bx.Space(x=bx.Real(0, 1, step=0.05))
    strategy, num_low = bx.algorithms.integrated_ei(space, FEW, deterministic=True), 0
    for _ in range(14):
        answer(strategy, strategy.ask(), lambda x: float(x), lambda x: x > 0.6)
    points = space.listed
    while len(strategy.history.trials) < len(points):
        asked = torch.stack([trial.x for trial in strategy.history.trials])
        left = points[~(points == asked[:, None]).all(dim=-1).any(dim=0)]
        success = dense_success(strategy, strategy.posterior.parameters, left)
        trial = strategy.ask()
        assert trial.info["success"] >= 0.7 or success.max() < 0.7
        num_low += int((success < 0.7).sum())
        answer(strategy, trial, lambda x: float(x), lambda x: x > 0.6)
    assert num_low > 10


def test_no_deterministic_point_of_a_box_is_asked_that_is_below_the_threshold():
    box = bx.Box([[0.0], [1.0]])
    strategy = bx.algorithms.integrated_ei(box, FEW, num_initial=4, deterministic=True)
    for _ in range(20):
        trial = strategy.ask()
        assert trial.info.get("success", 1.0) >= 0.7
        answer(strategy, trial, lambda x: float(x), lambda x: x > 0.6)


def test_a_failed_point_is_not_asked_again_while_another_is_left():
    points = bx.FiniteSet([[0.0], [1.0], [2.0]])
    strategy = bx.algorithms.integrated_ei(points, FEW, num_initial=3)
    for trial in strategy.ask(3):
        answer(strategy, trial, lambda x: -1.0, lambda x: x < 2)
    for _ in range(3):
        trial = strategy.ask()
        assert float(trial.x) == 2.0
        strategy.tell(trial, -1.0)


def test_where_everything_failed_it_goes_on():
    strategy = played(BOX, 6, fails=lambda x: True)
    trial = strategy.ask()
    assert trial.info["success"] < 0.7
    assert abs(trial.info["log_improvement"]) < 100
    asked = torch.stack([each.x for each in strategy.history.trials])
    assert torch.pdist(BOX.to_unit(asked)).min() > 0.01


def test_a_point_that_fails_in_one_context_is_asked_in_another():
    strategy = bx.algorithms.integrated_ei(SET, FEW, num_initial=2, context_domain=1)
    for trial in (strategy.ask(context=[0.1]) for _ in range(4)):
        strategy.tell(trial, f(trial.x))
    failed = strategy.ask(context=[0.1])
    strategy.abandon(failed, failed=True)
    only = failed.x[None]
    both = torch.cat([only, SET.points[:1]])
    assert not strategy.clone().ask(context=[0.1], actions=both).x.equal(failed.x)
    assert strategy.clone().ask(context=[0.9], actions=only).info["success"] > 0


def test_a_failed_trial_leaves_the_pending_ones():
    """The standard deviation of the values does not fall where nothing was measured."""
    strategy = played(SET, 12)
    trial = strategy.clone().ask()
    _, std = strategy.posterior.mean_and_std(trial.x[None])
    assert trial.info["std"] == pytest.approx(float(std))


@pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
def test_the_point_recommended_is_likely_to_succeed(domain):
    strategy = played(domain, 10, lambda x: float(x[0]), lambda x: x[0] > 4)
    found, parameters = strategy.recommended(), strategy.posterior.parameters
    success = float(dense_success(strategy, parameters, found.x[None]))
    assert found.feasibility == pytest.approx(success, abs=1e-6) and success >= 0.9
    Z = SET.points[:20]
    own = strategy.predict(Z).feasibility
    assert_close(own, dense_success(strategy, parameters, Z), rtol=1e-6, atol=1e-6)
    # Where the mean alone is best, trials fail.
    points = SET.points if domain is SET else BOX.sample(2000, 0)
    top = points[strategy.posterior.mean(points).argmax()]
    assert float(dense_success(strategy, parameters, top[None])) < 0.5


def test_without_failures_there_is_no_model_of_them(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(Feasibility, "of_trials", refuse)
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=3)
    for trial in strategy.ask(4):
        strategy.tell(trial, f(trial.x))
    strategy.abandon(strategy.ask())
    assert "success" not in strategy.ask().info
    strategy.recommend()


@pytest.mark.parametrize("minimize", [False, True])
def test_a_replay_asks_the_same(minimize):
    strategy = played(BOX, 10, minimize=minimize)
    again = bx.algorithms.integrated_ei(BOX, FEW, num_initial=5, minimize=minimize)
    again.replay(strategy.events)
    trial, same = strategy.ask(), again.ask()
    assert trial.x.equal(same.x)
    assert trial.info == same.info
    assert 0 < trial.info["success"] < 1


def test_gradients_with_a_threshold_of_success_are_those_of_finite_differences():
    strategy, step = played(BOX, 10), 1e-6
    X = torch.cat([BOX.sample(20, 2), strategy.evaluated()[0] + 0.01])
    model = strategy.posterior
    mean = strategy._mean_objective(model, None)(model)
    success = dense_success(strategy, model.parameters, X)
    value, gradient = mean.value_and_gradient(X)
    is_safe = success > 0.92
    assert 3 < is_safe.sum() < 20
    assert_close(value[is_safe], mean.value(X)[is_safe])
    assert mean.value(X)[success < 0.9].max() < mean.value(X)[success >= 0.9].min()
    for j, e in enumerate(torch.eye(2, dtype=torch.float64)):
        ends = [mean.value_and_gradient(X + sign * step * e)[0] for sign in (1, -1)]
        assert_close(gradient[:, j], (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-5)
