"""The benchmark of limits: its designs, and the regret of their settings."""

import pytest

from benchmarks.limits.tasks import TASKS, log_regret, measured, objective, sample

# The best known settings, from the literature.
KNOWN = {
    "pressure vessel": {"shell": 12, "head": 6, "radius": 38.8601, "length": 221.36547},
    "speed reducer": {
        "b": 3.5,
        "m": 0.7,
        "z": 17,
        "l1": 7.3,
        "l2": 7.71532,
        "d1": 3.350215,
        "d2": 5.286655,
    },
    "three-bar truss": {"outer": 0.788676, "inner": 0.40825},
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_best_known_setting_keeps_all_limits_but_for_rounding_and_has_hardly_any_regret(name):
    loss, outcomes = measured(name, KNOWN[name])
    assert max(outcomes) < 1e-4
    assert len(outcomes) == sample(name)[2]
    assert log_regret(name, [loss]) < -3.5
    assert objective(name).true(KNOWN[name]) == pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize("name", TASKS)
def test_without_a_result_within_the_limits_the_greatest_loss_counts(name):
    greatest, share, _ = sample(name)
    assert 0 < share < 1
    assert log_regret(name, [None, None]) == log_regret(name, [greatest, None])
    assert log_regret(name, [greatest, TASKS[name].least]) == pytest.approx(-6)
