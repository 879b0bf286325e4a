"""Experiments of Ax that change under way: their objective, their space, their trials."""

from __future__ import annotations

import pytest

pytest.importorskip("ax")

import pandas as pd
from ax.api.client import Client
from ax.core.data import Data
from ax.core.parameter import ParameterType, RangeParameter

import botorch_ext as bx
from botorch_ext.exceptions import HostWarning
from botorch_ext.integrations.ax import generation_strategy
from tests.integrations.in_ax import (
    PLAIN,
    client,
    cost,
    experiment,
    in_range,
    kernel,
    ranged,
    search_space,
)

# Ax and what it imports warn about themselves; our own warnings stay errors.
pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")


def _node(ours: Client):
    (node,) = ours._generation_strategy._nodes
    return node


def test_values_of_another_objective_are_no_data():
    ours = client(PLAIN, num_initial=2)
    for index, point in ours.get_next_trials(3).items():
        ours.complete_trial(index, {"cost": 1000 + cost(point)})
    ours.configure_optimization("-waste")
    with pytest.warns(HostWarning, match="are completed but have no value of waste"):
        trials = ours.get_next_trials(2)
    for index in trials:
        ours.complete_trial(index, {"waste": 0.5})
    ours.get_next_trials(1)
    assert list(_node(ours).strategy.history.values.values()) == [-0.5, -0.5]


def test_a_batch_ends_before_a_point_comes_twice():
    study = experiment(search_space(RangeParameter("x", ParameterType.INT, 0, 3)))
    strategy = generation_strategy("integrated_ei", num_initial=2, particles=bx.Particles(8))
    sizes = []
    for _ in range(5):
        ((run,),) = strategy.gen(study, n=4)
        sizes.append(len({arm.signature for arm in run.arms}))
        assert sizes[-1] == len(run.arms)
        batch = study.new_batch_trial(run).mark_running(no_runner_required=True)
        rows = [
            {"arm_name": arm.name, "metric_name": "cost", "metric_signature": "cost"}
            | {"mean": arm.parameters["x"], "sem": 0.0, "trial_index": batch.index}
            for arm in batch.arms
        ]
        study.attach_data(Data(df=pd.DataFrame(rows)))
        batch.mark_completed()
    assert 1 <= min(sizes) < 4


def test_the_best_trial_counts_what_came_last_and_what_was_loaded(tmp_path):
    ours = client(PLAIN, num_initial=3)
    points = ours.get_next_trials(4)
    for index, point in points.items():
        ours.complete_trial(index, {"cost": cost(point)})
    best = _node(ours).best()
    assert len(_node(ours).strategy.history.values) == 4
    path = str(tmp_path / "experiment.json")
    ours.save_to_json_file(path)
    assert _node(Client.load_from_json_file(path)).best() == best


def test_a_parameter_that_is_disabled_is_no_longer_varied():
    ours = client(PLAIN, num_initial=1)
    for index, point in ours.get_next_trials(2).items():
        ours.complete_trial(index, {"cost": cost(point)})
    ours._experiment.disable_parameters_in_search_space({"y": -12.5})
    with pytest.warns(HostWarning, match="are not used"):
        (point,) = ours.get_next_trials(1).values()
    assert point["y"] == -12.5


@pytest.mark.parametrize("digits", [0, 1])
def test_digits_on_a_logarithmic_scale(digits):
    space = search_space(ranged("x", 1.0, 1000.0, log_scale=True, digits=digits))
    ((run,),) = generation_strategy("gp_bucb").gen(experiment(space))
    (arm,) = run.arms
    assert arm.parameters["x"] == round(arm.parameters["x"], digits)


def test_whole_numbers_of_zero_digits_and_values_within_the_tolerance_are_used():
    ours = client((in_range("x", 0.0, 0.3), in_range("y", 0.0, 9.0, step_size=1.0)))
    index = ours.attach_trial({"x": 0.1 + 0.2, "y": 2.0})
    ours.complete_trial(index, {"cost": 1.0})
    ours.get_next_trials(1)
    assert _node(ours).strategy.history.attached == [0]


def test_values_that_a_method_cannot_use_are_named():
    ours = client(PLAIN, num_points=50, num_initial=0, kernel=kernel(), width=2.0, noise_variance=1)
    for x in (2.5, 3.5):
        index = ours.attach_trial({"x": x, "y": -20.0})
        ours.complete_trial(index, {"cost": 1.0})
    with pytest.warns(HostWarning, match="values of 2 trials, 0 the first, are not used: none of"):
        ours.get_next_trials(1)
    ours.get_next_trials(1)


def test_a_fitted_kernel_that_is_given_has_first_points_and_a_width():
    for arguments in ({}, {"kernel": bx.Fitted()}):
        ours = client(PLAIN, **arguments)
        ours.get_next_trials(1)
        assert _node(ours).strategy.report()["num_initial"] == 8
