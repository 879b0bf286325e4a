"""Strategies of the library in Ax ask what they ask by hand."""

import pandas as pd
import pytest
from gpytorch.kernels import MaternKernel

import botorch_ext as bx

pytest.importorskip("ax")

from ax.core.data import Data
from ax.core.parameter import (
    DerivedParameter,
    FixedParameter,
    ParameterType,
)
from ax.exceptions.core import UnsupportedError, UserInputError
from ax.service.ax_client import AxClient, ObjectiveProperties

from botorch_ext.integrations.ax import generation_strategy
from botorch_ext.integrations.ax_space import AxSpace
from tests.integrations.in_ax import (
    METHODS,
    MIXED,
    PLAIN,
    ByHand,
    among,
    arguments_of,
    client,
    cost,
    experiment,
    in_range,
    kept,
    parameters_of,
    ranged,
    search_space,
)

# Ax and what it imports warn about themselves; our own warnings stay errors.
pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")


@pytest.mark.parametrize("method", METHODS)
def test_trials_are_those_of_ask_and_tell(method):
    ours = client(PLAIN, method, **METHODS[method])
    hand = ByHand.of(ours, method, **arguments_of(method))
    for number in (2, 4, 3):
        trials = ours.get_next_trials(number)
        assert parameters_of(trials) == hand.ask(number)
        # In another order than they were asked, and not all of them.
        for index in reversed(trials):
            if index == 3:
                ours.mark_trial_failed(index)
                hand.abandon(index, failed=True)
            elif index == 4:
                ours.mark_trial_abandoned(index)
                hand.abandon(index)
            elif index != 5:
                value = cost(trials[index])
                ours.complete_trial(index, {"cost": value})
                hand.tell(index, value)
    assert parameters_of(ours.get_next_trials(1)) == hand.ask(1)


def test_eight_run_at_once():
    ours = client(PLAIN, num_initial=4)
    hand = ByHand.of(ours, "gp_bucb", kernel=bx.Fitted(), width=2.0, num_initial=4)
    assert parameters_of(ours.get_next_trials(8)) == hand.ask(8)
    for index in (6, 1):
        value = cost(ours._experiment.trials[index].arm.parameters)
        ours.complete_trial(index, {"cost": value})
        hand.tell(index, value)
    assert parameters_of(ours.get_next_trials(2)) == hand.ask(2)


def test_maximisation_and_sums_of_metrics():
    ours = client(PLAIN, objective="2*gain - loss", num_initial=2)
    hand = ByHand.of(ours, "gp_bucb", kernel=bx.Fitted(), width=2.0, num_initial=2)
    asked = ours.get_next_trials(2)
    hand.ask(2)
    for index, point in asked.items():
        ours.complete_trial(index, {"gain": point["x"], "loss": cost(point)})
        total = 2 * kept(point["x"]) - kept(cost(point))
        hand.strategy.tell(index, total)
    assert parameters_of(ours.get_next_trials(2)) == hand.ask(2)


def test_all_kinds_of_parameters():
    constraints = ["time + load <= 5.5", "cycles + time <= 11"]
    ours = client(MIXED, constraints=constraints, num_initial=4)
    space = ours._experiment.search_space
    # Steps that are in a constraint are numbers, of which the arithmetic is Ax's.
    hand = ByHand.of(ours, "gp_bucb", kernel=bx.Fitted(), width=2.0, num_initial=4)
    kinds = {"time": float, "rate": float, "cycles": int, "load": float, "solvent": str}
    kinds |= {"stirred": bool, "size": float, "grade": str, "vessel": str}
    for number in (4, 2):
        trials = ours.get_next_trials(number)
        for (index, point), other in zip(trials.items(), hand.ask(number), strict=True):
            assert space.check_membership(point)
            assert {name: type(value) for name, value in point.items()} == kinds
            assert point == other | {"load": pytest.approx(other["load"])}
            value = point["time"] + (point["solvent"] == "ether") + point["cycles"] / 7
            ours.complete_trial(index, {"cost": value})
            hand.tell(index, value)


def test_digits_fixed_and_computed_parameters():
    space = search_space(
        ranged("a", digits=2),
        FixedParameter("b", ParameterType.FLOAT, 0.3),
        DerivedParameter("c", ParameterType.FLOAT, "2.0 * a + 1.0"),
    )
    study, strategy = experiment(space), generation_strategy("gp_bucb", num_initial=3)
    for _ in range(2):
        for (run,) in strategy.gen(study, n=1, num_trials=2):
            point = study.new_trial(run).mark_running(no_runner_required=True).arm.parameters
            assert point["a"] == round(point["a"], 2)
            assert point["b"] == 0.3 and point["c"] == pytest.approx(2 * point["a"] + 1)
            assert list(point) == ["a", "b", "c"]
    assert len({trial.arm.parameters["a"] for trial in study.trials.values()}) == 4
    taken = AxSpace(space).point_of({"a": 0.123, "b": 0.3, "c": 1.24})
    assert taken == {"a": 0.12, "b": 0.3}


def test_kernels_of_more_columns():
    space = [in_range(name, 0.0, 1.0) for name in "abc"]
    made = MaternKernel(ard_num_dims=3)
    ours = client(space, kernel=made, noise_variance=0.1, width=2.0, num_initial=1)
    hand = ByHand.of(ours, "gp_bucb", kernel=made, noise_variance=0.1, width=2.0, num_initial=1)
    assert parameters_of(ours.get_next_trials(3)) == hand.ask(3)


def test_batches_of_arms():
    study = experiment(search_space(ranged("x", 2.0, 5.0), ranged("y", -30.0, -10.0)))
    strategy = generation_strategy("gp_bucb", num_initial=4)
    hand = bx.algorithms.gp_bucb(
        AxSpace(study.search_space).chosen, bx.Fitted(), width=2.0, num_initial=4
    )
    for _ in range(2):
        ((run,),) = strategy.gen(study, n=3)
        batch = study.new_batch_trial(run).mark_running(no_runner_required=True)
        asked = hand.ask(3)
        assert [list(arm.parameters.values()) for arm in batch.arms] == [
            trial.x.tolist() for trial in asked
        ]
        rows = [
            {"arm_name": arm.name, "metric_name": "cost", "metric_signature": "cost"}
            | {"mean": round(cost(arm.parameters), 6), "sem": 0.0, "trial_index": batch.index}
            for arm in batch.arms
        ]
        study.attach_data(Data(df=pd.DataFrame(rows)))
        batch.mark_completed()
        for trial, row in zip(asked, rows, strict=True):
            hand.tell(trial.id, -row["mean"])


def test_the_older_client():
    older = AxClient(generation_strategy=generation_strategy("gp_bucb", num_initial=2))
    older.create_experiment(
        parameters=[
            {"name": "x", "type": "range", "bounds": [2.0, 5.0]},
            {"name": "y", "type": "range", "bounds": [-30.0, -10.0]},
        ],
        objectives={"cost": ObjectiveProperties(minimize=True)},
    )
    hand = ByHand(
        AxSpace(older.experiment.search_space).chosen,
        bx.algorithms.gp_bucb(
            AxSpace(older.experiment.search_space).chosen, bx.Fitted(), width=2.0, num_initial=2
        ),
    )
    for _ in range(2):
        trials, is_done = older.get_next_trials(2)
        assert not is_done and parameters_of(trials) == hand.ask(2)
        for index, point in trials.items():
            older.complete_trial(index, {"cost": (cost(point), 0.0)})
            hand.tell(index, cost(point))


# --- contexts -------------------------------------------------------------------------------------

CONTEXTUAL = (*PLAIN, in_range("heat", 10.0, 90.0), among("oven", "a", "b", "c", kind="str"))


def in_contexts(algorithm="cgp_ucb", **arguments):
    return client(CONTEXTUAL, algorithm, contexts=["heat", "oven"], **arguments)


def test_contexts_are_fixed_features():
    ours = in_contexts(num_initial=2)
    space = AxSpace(ours._experiment.search_space, ["heat", "oven"])
    strategy = bx.algorithms.cgp_ucb(
        space.chosen,
        bx.Fitted(),
        width=2.0,
        num_initial=2,
        context_domain=space.contexts,
    )
    hand = ByHand(space.chosen, strategy)
    for i in range(4):
        seen = {"heat": 20.0 + 15 * i, "oven": "abc"[i % 3]}
        ((index, point),) = ours.get_next_trials(1, fixed_parameters=seen).items()
        assert {name: point[name] for name in seen} == seen
        context = [seen["heat"], float(i % 3)]
        (asked,) = hand.ask(1, context)
        assert {name: point[name] for name in asked} == asked
        value = cost(point) + point["heat"] / 90
        ours.complete_trial(index, {"cost": value})
        hand.tell(index, value)


def test_contexts_that_are_missing_or_none():
    ours = in_contexts(num_initial=2)
    with pytest.raises(UserInputError, match=r"must have the contexts \['heat', 'oven'\]"):
        ours.get_next_trials(1)
    with pytest.raises(UserInputError, match="got no 'oven'"):
        ours.get_next_trials(1, fixed_parameters={"heat": 20.0})
    with pytest.raises(UserInputError, match="oven must be one of"):
        ours.get_next_trials(1, fixed_parameters={"heat": 20.0, "oven": "d"})
    seen = {"heat": 20.0, "oven": "a"}
    with pytest.raises(UnsupportedError, match="only contexts can be fixed, got 'x'"):
        ours.get_next_trials(1, fixed_parameters=seen | {"x": 3.0})
    assert ours.get_next_trials(1, fixed_parameters=seen).keys() == {0}
    with pytest.raises(UserInputError, match=r"contexts must be parameters .* got 'z'"):
        client(PLAIN, "cgp_ucb", contexts=["z"]).get_next_trials(1, fixed_parameters={"z": 1})
