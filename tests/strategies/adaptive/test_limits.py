"""integrated_ei with limits on other outcomes: the probability that they hold against dense
algebra, and the points that it asks, recommends and calls the best."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import NoObservationsError
from tests.oracles.particles import dense_log_improvement, dense_within_limits

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])
SET = bx.FiniteSet(BOX.sample(60, 1))
FEW = bx.Particles(8)
LIMITS = {"impurity": bx.AtMost(5.0, unit="%"), "purity": ">= 0.3"}


def f(x):
    return float(torch.sin(2 * x[0]) - (x[-1] + 2) ** 2)


def outcomes_at(x):
    """The unlimited maximum, near (4, -2), is out of both limits."""
    return {
        "impurity": float(5 + 3 - (x[0] - 4) ** 2 - 2 * (x[1] + 2) ** 2),
        "purity": float(0.3 + (x[1] + 2) ** 2 - 0.05 * x[0]),
    }


def keeps(x):
    outcomes = outcomes_at(x)
    return outcomes["impurity"] <= 5 and outcomes["purity"] >= 0.3


def play(strategy, steps):
    for _ in range(steps):
        trial = strategy.ask()
        value = -f(trial.x) if strategy.minimize else f(trial.x)
        strategy.tell(trial, value, outcomes_at(trial.x))
    return strategy


def played(domain, steps, **options):
    given = {"num_initial": 6, "outcomes": LIMITS, **options}
    return play(bx.algorithms.integrated_ei(domain, FEW, **given), steps)


def grid():
    axes = [torch.linspace(a, b, 41, dtype=torch.float64) for a, b in BOX.bounds.T.tolist()]
    return torch.cartesian_prod(*axes)


@pytest.mark.parametrize("steps", [7, 13])
def test_the_point_asked_has_the_most_improvement_times_probability_of_the_dense_models(steps):
    strategy = played(BOX, steps)
    first = strategy.clone().ask()
    points = torch.cat([first.x[None], grid()])
    within = dense_within_limits(strategy, first, points)
    assert first.info["within_limits"] == pytest.approx(float(within[:, 0].prod()), abs=1e-6)
    X, _ = strategy.evaluated()
    feasible = (dense_within_limits(strategy, first, X) >= 0.5).all(dim=0)
    assert bool(feasible.any())
    improvement = dense_log_improvement(strategy, first, points, X[:0], baseline=X[feasible])
    assert first.info["log_improvement"] == pytest.approx(float(improvement[0]), abs=1e-4)
    values = improvement + 2 * within.log().sum(dim=0)
    assert values[0] > values[1:].max() - 1e-2
    strategy.ask()  # which records the hyperparameter samples
    found = strategy.predict(points[:9])
    assert_close(found.feasibility, within[:, :9].prod(dim=0), rtol=0, atol=1e-6)
    assert found.readable["feasibility"] == [round(p, 3) for p in found.feasibility.tolist()]


def test_the_gradient_is_that_of_finite_differences():
    strategy, Z, step = played(BOX, 9), BOX.sample(20, 3), 1e-6
    known = strategy.posterior
    within = strategy._within_limits(None)
    F = known.inputs.features(Z)
    value, gradient = within.log_probability_and_gradient(F)
    assert_close(value, within.log_probability(F))
    for j, e in enumerate(torch.eye(2, dtype=torch.float64)):
        ends = [within.log_probability(F + sign * step * e) for sign in (1, -1)]
        assert_close(gradient[:, j], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-6)


def test_some_samples_of_many_limits_count():
    limits = {f"g{i}": bx.AtMost(float(i)) for i in range(20)}
    strategy = bx.algorithms.integrated_ei(SET, FEW, num_initial=5, outcomes=limits)
    for trial in strategy.ask(5):
        strategy.tell(trial, f(trial.x), {name: f(trial.x) + 10 for name in limits})
    assert strategy._within_limits(None).log_weights.shape == (20, 4)
    assert strategy.ask().info["within_limits"] > 0


@pytest.mark.parametrize("minimize", [False, True])
def test_the_best_point_was_measured_within_the_limits(minimize):
    strategy = played(BOX, 16, minimize=minimize)
    X, Y = strategy.evaluated()
    kept = [keeps(x) for x in X]
    assert 0 < sum(kept) < 16
    values = Y if not minimize else -Y
    best = max(float(y) for y, is_kept in zip(values, kept, strict=True) if is_kept)
    assert float(values.max()) > best  # a point out of the limits has the best value
    x, _ = strategy.best()
    assert keeps(x)
    assert strategy.report()["best_observation"] == pytest.approx(-best if minimize else best)
    told = strategy.history.trials[strategy.history.best()]
    assert f(told.x) == pytest.approx(best)
    # The best allowed point of a fine grid is hardly better.
    points = BOX.sample(4096, 0)
    allowed = max(f(x) for x in points if keeps(x))
    assert allowed - best < 0.05


def test_before_any_result_is_within_the_limits_there_is_no_best_point():
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=3, outcomes={"a": "<= 0"})
    for trial in strategy.ask(3):
        strategy.tell(trial, f(trial.x), {"a": 1.0 + float(trial.x[0])})
    with pytest.raises(NoObservationsError, match="within all limits"):
        strategy.best()
    assert strategy.report()["best"] is None
    found = strategy.recommended()
    assert found.feasibility < 0.9
    assert "no point was found where it is 0.9 or more" in repr(found)
    first = strategy.clone().ask()
    within = dense_within_limits(strategy, first, torch.cat([found.x[None], grid()]))[0]
    assert within[0] == pytest.approx(found.feasibility)
    assert within[0] > within.max() - 1e-4
    assert math.isfinite(first.info["log_improvement"])


@pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
def test_the_point_recommended_keeps_the_limits_with_the_stated_probability(domain):
    strategy = played(domain, 14)
    found = strategy.recommended()
    first = strategy.clone().ask()
    within = dense_within_limits(strategy, first, found.x[None])
    assert found.feasibility == pytest.approx(float(within.prod()), abs=1e-6)
    assert found.feasibility >= 0.9
    assert f"probability that a trial is feasible: {found.feasibility:.3g}" in repr(found)
    # No point of a grid keeps them as surely and has a better mean.
    points = SET.points if domain is SET else grid()
    likely = dense_within_limits(strategy, first, points).prod(dim=0) >= 0.9
    means = strategy.posterior.mean(points[likely])
    assert float(strategy.posterior.mean(found.x[None])) > float(means.max()) - 1e-3


def test_a_deterministic_study_recommends_the_best_point_seen_within_the_limits():
    strategy = played(BOX, 14, deterministic=True)
    x, _ = strategy.recommend()
    told = strategy.history.trials[strategy.history.best()]
    assert x.equal(told.x)
    assert keeps(x)


def test_a_deterministic_result_on_a_limit_surely_keeps_it():
    strategy = bx.algorithms.integrated_ei(
        bx.FiniteSet([[float(i)] for i in range(9)]),
        FEW,
        deterministic=True,
        outcomes={"a": "<= 5"},
    )
    for i in range(8):
        strategy.attach([i], float(i), outcomes={"a": float(i)})
    found = strategy.recommended()
    assert found.x.tolist() == [5.0]
    assert found.feasibility == 1


def test_failed_trials_and_limits_together():
    strategy = played(BOX, 8)
    strategy.abandon(strategy.ask(), failed=True)
    info = strategy.ask().info
    assert 0 < info["success"] < 1
    assert 0 < info["within_limits"] < 1
    assert strategy.recommended().feasibility <= 1


def test_limits_in_contexts():
    strategy = bx.algorithms.integrated_ei(
        SET, FEW, num_initial=4, context_domain=1, outcomes={"impurity": "<= 5.0"}
    )
    for step in range(8):
        trial = strategy.ask(context=[step % 2])
        impurity = outcomes_at(trial.x)["impurity"] - 4 * (step % 2)
        strategy.tell(trial, f(trial.x), {"impurity": impurity})
    low, high = (strategy.recommended([z]) for z in (0.0, 1.0))
    assert 0 < low.feasibility <= 1
    assert 0 < high.feasibility <= 1
    assert strategy.ask(context=[0.5], actions=SET.points[:3]).info["within_limits"] > 0


def test_a_replay_asks_the_same_after_a_correction_too():
    strategy = played(BOX, 10)
    strategy.attach([3.0, -2.0], 0.1, outcomes={"impurity": 2.0, "purity": 0.4})
    strategy.correct(3, outcomes={"purity": 0.9})
    again = bx.algorithms.integrated_ei(BOX, FEW, num_initial=6, outcomes=LIMITS)
    again.replay(strategy.events)
    assert again.history.outcomes[3]["purity"] == 0.9
    trial, same = strategy.ask(), again.ask()
    assert trial.x.equal(same.x)
    assert trial.info == same.info
    assert len(trial.info["outcome_particles"]) == 2
    assert again.ask().x.equal(strategy.ask().x)


def test_a_record_without_the_particles_of_outcomes_is_refused():
    strategy = played(BOX, 7)
    events = list(strategy.events)
    (asked,) = (each.trial for each in events if hasattr(each, "trial") and each.trial.id == 6)
    del asked.info["outcome_particles"]
    again = bx.algorithms.integrated_ei(BOX, FEW, num_initial=6, outcomes=LIMITS)
    with pytest.raises(ValueError, match="outcome_particles in the info of trial 6"):
        again.replay(events)


def test_results_have_all_outcomes():
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=2, outcomes=LIMITS)
    with pytest.raises(ValueError, match="purity"):
        strategy.tell(strategy.ask(), 1.0, {"impurity": 2.0})
    with pytest.raises(ValueError, match="initial must be None with outcomes"):
        bx.algorithms.integrated_ei(BOX, initial=([[3.0, -2.0]], [1.0]), outcomes=LIMITS)


def test_optimize_returns_the_best_point_within_the_limits():
    result = bx.optimize(
        lambda x: (f(x), outcomes_at(x)), BOX, 14, particles=FEW, outcomes=LIMITS, progress=False
    )
    assert keeps(result.best_x)
    assert result.best_value == pytest.approx(f(result.best_x))
    assert result.best_value < float(result.Y.max())


def test_with_no_results_the_first_point_is_chosen_without_limits():
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=0, outcomes=LIMITS)
    trial = strategy.ask()
    assert "within_limits" not in trial.info
    strategy.tell(trial, f(trial.x), outcomes_at(trial.x))
    assert strategy.ask().info["within_limits"] > 0


def test_a_trust_region_lies_where_the_limits_hold():
    box = bx.Box([[0.0] * 21, [1.0] * 21])
    strategy = bx.algorithms.integrated_ei(box, FEW, outcomes={"a": "<= 0.3"})
    points = box.sample(30, 0)
    points[:, 0] = torch.linspace(0.05, 1.0, 30, dtype=torch.float64)
    for x in points:  # the values are largest where the limit is broken most
        strategy.attach(x, float(10 * x[0]), outcomes={"a": float(x[0])})

    def region():
        return strategy._region(strategy.posterior, strategy._within_limits(None))

    assert bool(region().contains(points[points[:, 0] <= 0.3][-1:]))
    assert bool(region().contains(strategy.ask().x[None]))
    for trial in strategy.ask(5):  # values that break the limit are no success
        strategy.tell(trial, 11.0 + trial.id, {"a": 1.0})
    assert float((region().upper - region().lower)[1:].max()) == pytest.approx(0.4)


def test_a_trust_region_lies_near_the_limits_before_any_result_keeps_them():
    box = bx.Box([[0.0] * 21, [1.0] * 21])
    strategy = bx.algorithms.integrated_ei(box, FEW, outcomes={"a": "<= -0.1"})
    for x in box.sample(20, 0):
        strategy.attach(x, float(x[0]), outcomes={"a": float(x[0])})
    X, _ = strategy.evaluated()
    region = strategy._region(strategy.posterior, strategy._within_limits(None))
    assert bool(region.contains(X[X[:, 0].argmin()][None]))
    assert math.isfinite(strategy.ask().info["log_improvement"])


def test_a_pending_point_that_may_break_a_limit_is_not_asked_again():
    strategy = bx.algorithms.integrated_ei([(0.0, 1.0)], FEW, outcomes={"a": "<= 0.5"})
    for x in (0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.5, 0.51, 0.6, 0.7, 1.0):
        strategy.attach([x], x, outcomes={"a": x})
    X = torch.stack([trial.x for trial in strategy.ask(3)])
    assert float(X.min()) > 0.5
    assert float(torch.pdist(X).min()) > 2e-5


def test_outcomes_whose_margins_overflow():
    strategy = bx.algorithms.integrated_ei(
        [(0.0, 1.0)], FEW, outcomes={"a": "<= 1e308", "b": "<= 0"}
    )
    for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        a, b = (1.7e308, 1e300) if x > 0.5 else (-1.7e308, -1e-15)
        strategy.attach([x], x, outcomes={"a": a, "b": b if x != 0.2 else -1e-14})
        strategy.attach([x / 2], x / 2, outcomes={"a": -1.0, "b": -1e-15})
    assert strategy.ask().x[0] < 0.7
    assert strategy.recommended().feasibility > 0.5


def test_a_constant_outcome_beyond_its_limit_stops_no_exploration():
    """An outcome that is the same wherever the limit is broken says nothing of where it holds."""
    box = bx.Box([[0.0, 0.0], [1.0, 1.0]])
    strategy = bx.algorithms.integrated_ei(box, FEW, outcomes={"a": "<= 5"}, num_initial=4)
    for _ in range(14):
        trial = strategy.ask()
        strategy.tell(trial, float(trial.x.sum()), {"a": 6.0})
    asked = torch.stack([each.x for each in strategy.history.trials])
    assert strategy.history.trials[-1].info["within_limits"] > 1e-3
    assert torch.pdist(asked[4:]).min() > 0.05


def test_the_expected_gain_counts_points_by_their_probability_to_keep_the_limits():
    line = bx.Box([[0.0], [1.0]])
    strategy = bx.algorithms.integrated_ei(line, FEW, outcomes={"a": "<= 0.5"}, num_initial=4)
    with pytest.raises(NoObservationsError):
        strategy.expected_gain()
    for x in (0.1, 0.3, 0.49, 0.7, 0.9, 1.0):
        strategy.attach([x], x, outcomes={"a": x})
    assert strategy.expected_gain().gain < 0.1  # without limits it is about 0.5
    only = bx.algorithms.integrated_ei(line, FEW, outcomes={"a": "<= 0"}, num_initial=2)
    only.attach([0.3], 1.0, outcomes={"a": 1.0})
    with pytest.raises(NoObservationsError, match="within all limits"):
        only.expected_gain()


def test_the_result_of_optimize_says_whether_limits_hold():
    result = bx.optimize(
        lambda x: (f(x), {"a": 1.0}), BOX, 9, particles=FEW, outcomes={"a": "<= 0"}, progress=False
    )
    assert result.recommended_feasibility < 0.9
    assert "no point was found where it is 0.9 or more" in repr(result)
