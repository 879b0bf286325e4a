"""What is special to Ax: its spaces, contexts, batches and nodes, and what is saved of them."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import botorch_ext as bx

pytest.importorskip("ax")

from ax.adapter.registry import Generators
from ax.analysis.plotly.cross_validation import CrossValidationPlot
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig
from ax.core.data import Data
from ax.core.observation import ObservationFeatures
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    ParameterType,
    RangeParameter,
)
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace
from ax.exceptions.core import DataRequiredError, UnsupportedError, UserInputError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.exceptions.storage import JSONDecodeError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY

from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext import acquisition
from botorch_ext.exceptions import HostWarning, NoObservationsError
from botorch_ext.integrations.ax import StrategyNode, allow_argument, generation_strategy
from botorch_ext.integrations.ax_space import AxSpace
from tests.helpers import matern
from tests.hosts.in_ax import (
    FIXED,
    KERNEL,
    MIXED,
    PLAIN,
    among,
    client,
    cost,
    experiment,
    in_range,
    kept,
    loaded,
    node_of,
    parameters_of,
    ranged,
    search_space,
    store_of,
    values_of,
    with_acquisition,
)
from tests.hosts.methods import recipe

# Ax and what it imports warn about themselves; our own warnings stay errors.
pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")

ROUNDS = {"kernel": KERNEL, "noise_variance": 0.01, "horizon": 6, "width": 2.0, "num_points": 50}


def through_json(thing: Any) -> Any:
    return object_from_json(json.loads(json.dumps(object_to_json(thing))))


def complete(ours: Client, trials: Any, of: Any = cost) -> None:
    for index, point in trials.items():
        ours.complete_trial(index, {"cost": of(point)})


def by_hand(ours: Client, **arguments: Any) -> tuple[bx.Space, bx.Strategy]:
    space = AxSpace(ours._experiment.search_space).chosen
    return space, bx.algorithms.gp_bucb(space, **arguments)


def test_all_kinds_of_parameters():
    constraints = ["time + load <= 5.5", "cycles + time <= 11"]
    ours = client(MIXED, constraints=constraints, num_initial=4)
    space, hand = by_hand(ours, kernel=bx.Fitted(), width=2.0, num_initial=4)
    kinds = [float, float, int, float, str, bool, float, str, str]
    for number in (4, 1):
        for id, (index, point) in enumerate(ours.get_next_trials(number).items()):
            asked = hand.ask()
            assert ours._experiment.search_space.check_membership(point)
            assert [type(point[each.name]) for each in MIXED] == kinds
            # Steps that are in a constraint are numbers, of which the arithmetic is Ax's.
            assert point == space.params(asked.x) | {"load": pytest.approx(float(point["load"]))}
            value = round(point["time"] + (point["solvent"] == "ether"), 6)
            ours.complete_trial(index, {"cost": value})
            if number == 4:
                hand.tell(id, -kept(value))


def test_digits_fixed_and_computed_parameters():
    space = search_space(
        ranged("a", digits=2),
        FixedParameter("b", ParameterType.FLOAT, 0.3),
        DerivedParameter("c", ParameterType.FLOAT, "2.0 * a + 1.0"),
        ranged("d", 1.0, 1000.0, log_scale=True, digits=0),
        RangeParameter("e", ParameterType.INT, 1, 64, log_scale=True),
    )
    study, strategy = experiment(space), generation_strategy("gp_bucb", num_initial=3)
    for (run,) in strategy.gen(study, n=1, num_trials=4):
        point = study.new_trial(run).mark_running(no_runner_required=True).arm.parameters
        assert point["a"] == round(point["a"], 2) and point["d"] == round(point["d"])
        assert point["b"] == 0.3 and point["c"] == pytest.approx(2 * point["a"] + 1)
        assert list(point) == list("abcde") and type(point["e"]) is int
    assert len({trial.arm.parameters["a"] for trial in study.trials.values()}) == 4
    given = {"a": 0.123, "b": 0.3, "c": 1.24, "d": 1000.0 + 1e-9, "e": 3}
    assert AxSpace(space).point_of(given) == {"a": 0.12, "b": 0.3, "d": 1000.0, "e": 3}
    assert AxSpace(space).point_of({"d": 1001.0}) == {"d": 1001.0}
    X = AxSpace(space).chosen.sample(9, 0)  # in which Ax rounds what it rounds
    assert torch.equal(AxSpace(space).chosen.settable(X), X)
    (run,) = strategy.gen_single_trial(study, fixed_features=ObservationFeatures({"b": 0.3})).arms
    assert run.parameters["b"] == 0.3


def among_branches(name: str, **dependents: list[str]) -> Any:
    return ChoiceParameterConfig(
        name=name,
        parameter_type="str",
        values=list(dependents),
        is_ordered=False,
        dependent_parameters={value: names for value, names in dependents.items() if names},
    )


TREE = (
    among_branches("model", linear=[], forest=["depth"], boosting=["booster"]),
    in_range("depth", 1, 9, kind="int"),
    among_branches("booster", gbtree=[], dart=["rate"]),
    in_range("rate", 0.1, 0.5),
    in_range("share", 2.0, 5.0),
)


def test_arms_of_a_tree_have_what_counts_alone():
    ours = client(TREE, "gp_bucb", num_initial=8, seed=2)
    space, hand = by_hand(ours, kernel=bx.Fitted(), width=2.0, num_initial=8, seed=2)
    known, seen = {"model": "forest", "depth": 4, "share": 3.0}, set()
    complete(ours, {ours.attach_trial(known): known}, lambda arm: 3.25)
    hand.attach(space.point(known), -3.25)
    for _ in range(2):
        asked = ours.get_next_trials(5)
        assert parameters_of(asked) == [space.params(trial.x) for trial in hand.ask(5)]
        for index, arm in asked.items():
            more = {"forest": {"depth"}, "boosting": {"booster"}}.get(arm["model"], set())
            more = more | ({"rate"} if arm.get("booster") == "dart" else set())
            assert arm.keys() == {"model", "share"} | more
            seen.add((arm["model"], arm.get("booster")))
            hand.tell(index, -kept(round(arm["share"], 6)))
        complete(ours, asked, lambda arm: round(arm["share"], 6))
    assert len(seen) == 4


def test_a_root_that_is_fixed_and_a_parameter_that_is_disabled():
    space = search_space(
        FixedParameter("root", ParameterType.STRING, "all", dependents={"all": ["a", "b"]}),
        *(ranged("a", 2.0, 3.0), ranged("b")),
        constraints=["a + b <= 2.5"],
    )
    (run,) = generation_strategy("gp_bucb", num_initial=1).gen(experiment(space))[0]
    assert run.arms[0].parameters.keys() == {"root", "a", "b"}
    ours = client(num_initial=1)
    complete(ours, ours.get_next_trials(2))
    ours._experiment.disable_parameters_in_search_space({"y": -12.5})
    with pytest.warns(HostWarning, match="values of 2 trials, 0 the first, are not used"):
        (point,) = ours.get_next_trials(1).values()
    assert point["y"] == -12.5


A, B = ranged("a"), ranged("b")
EVEN = ChoiceParameter("c", ParameterType.FLOAT, [0.1, 0.2, 0.7], is_ordered=True, sort_values=True)
KIND: dict[str, Any] = {"values": ["u", "v"], "is_ordered": False, "sort_values": False}
PARENT = ChoiceParameter("kind", ParameterType.STRING, **KIND, dependents={"u": ["a"]})
DERIVED = DerivedParameter("d", ParameterType.FLOAT, "2.0 * a")
SUM = [ParameterConstraint("a + b <= 1")]


@pytest.mark.parametrize(
    ("parameters", "constraints", "contexts", "message"),
    [
        ([ranged("a", 0.1, 0.9, logit_scale=True)], [], [], "'a' must not be of .* logit_scale"),
        ([ranged("a", is_fidelity=True, target_value=1.0)], [], [], "'a' must not be a fidelity"),
        ([FixedParameter("a", ParameterType.INT, 1)], [], [], "two values"),
        ([A, EVEN], [ParameterConstraint("a + c <= 1")], [], "'c' must .* even steps"),
        ([A, B], [ParameterConstraint(equality="a + b == 1")], [], "must be inequalities"),
        ([A, DERIVED], [], ["d"], r"contexts must be parameters .* not computed.*'d'"),
        ([A, B], SUM, ["b"], "contexts .*'b'"),
        ([PARENT, A, B], [], ["kind"], "contexts must neither depend .*'kind'"),
        ([PARENT, A, B], [], ["a"], "contexts must neither depend .*'a'"),
        ([PARENT, A, B], SUM, [], "a must have no con"),
    ],
)
def test_spaces_that_no_strategy_has(parameters, constraints, contexts, message):
    with pytest.raises((UnsupportedError, UserInputError), match=message):
        AxSpace(SearchSpace(parameters, constraints), contexts)


def test_maximisation_and_sums_of_metrics():
    ours = client(objective="2*gain - loss", **FIXED)
    space, hand = by_hand(ours, **FIXED)
    for _ in range(2):
        asked = ours.get_next_trials(2)
        trials = hand.ask(2)
        assert parameters_of(asked) == [space.params(trial.x) for trial in trials]
        for trial, (index, point) in zip(trials, asked.items(), strict=True):
            gain, loss = round(point["x"], 6), round(cost(point), 6)
            ours.complete_trial(index, {"gain": gain, "loss": loss})
            hand.tell(trial.id, 2 * kept(gain) - kept(loss))
    assert values_of(ours) == [*hand.history.values.values()][:2]


def test_standard_errors_are_told(tmp_path):
    sems = [0.3, 0.0, math.nan, None, 0.123456789012, 3e-13]
    told = {0: kept(0.3), 4: kept(sems[4])}
    ours = client(algorithm="integrated_ei", objective="gain", num_initial=6)
    hand = bx.algorithms.integrated_ei(
        AxSpace(ours._experiment.search_space).chosen, num_initial=6, minimize=False
    )
    asked = ours.get_next_trials(6)
    for trial, (index, point) in zip(hand.ask(6), asked.items(), strict=True):
        gain, sem = round(point["x"], 3), sems[trial.id]
        ours.complete_trial(index, {"gain": gain if sem is None else (gain, sem)})
        hand.tell(trial, kept(gain), std=told.get(trial.id))
    (asked,) = parameters_of(ours.get_next_trials(1))
    space = AxSpace(ours._experiment.search_space).chosen
    assert asked == pytest.approx(space.params(hand.ask().x), abs=1e-9)
    assert node_of(ours).strategy.history.stds == told
    # A standard error that comes later is a correction, which saved trials have.
    ours.attach_data(1, {"gain": (kept(2.5), 0.7)})
    ours.get_next_trials(1)
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    for one in (ours, loaded("JSON", tmp_path)):
        one.get_next_trials(1)
        assert node_of(one).strategy.history.stds == told | {1: kept(0.7)}
        assert node_of(one).strategy.history.corrected == {1}
    assert parameters_of(ours.get_next_trials(1)) == parameters_of(one.get_next_trials(1))


def test_standard_errors_of_sums_and_of_methods_that_take_none():
    ours = client(objective="2*gain - loss", **FIXED)
    refusing = client(num_initial=3)
    asked, others = ours.get_next_trials(3), refusing.get_next_trials(3)
    for index, loss in enumerate([(0.5, 0.4), (0.5, 0.0), 0.5]):
        ours.complete_trial(index, {"gain": (asked[index]["x"], 0.15), "loss": loss})
        refusing.complete_trial(index, {"cost": (others[index]["x"], 0.15)})
    ours.get_next_trials(1)
    assert node_of(ours).strategy.history.stds == {0: pytest.approx(0.5)}
    refusing.get_next_trials(1)
    assert node_of(refusing).strategy.history.stds == {}
    assert len(values_of(refusing)) == 3


def test_a_trial_that_is_complete_without_a_value_still_runs():
    ours = client(**FIXED)
    asked = ours.get_next_trials(3)
    complete(ours, {0: asked[0]})
    ours.complete_trial(1, {"weight": 2.0})
    ours.complete_trial(2)
    with pytest.warns(HostWarning, match=r"trials \[1, 2\] are completed but have no .* cost"):
        ours.get_next_trials(1)
    assert node_of(ours).strategy.history.pending == [1, 2, 3]
    ours.attach_data(2, {"cost": 0.5})
    with pytest.warns(HostWarning, match=r"trials \[1\] are completed"):
        ours.get_next_trials(1)
    assert values_of(ours)[1] == -0.5
    # Values of another objective are no data.
    ours.configure_optimization("-waste")
    with pytest.warns(HostWarning, match="are completed but have no value of waste"):
        ours.get_next_trials(1)
    assert values_of(ours) == []


def test_small_values_are_told_as_ax_saves_them():
    ours = client(**FIXED)
    complete(ours, ours.get_next_trials(2), lambda point: 1.23456789e-8)
    with pytest.warns(HostWarning, match="ten decimals, so 1.23456789e-08 of trial 0 .* 1.23e-08"):
        ours.get_next_trials(1)
    assert values_of(ours) == [-kept(1.23456789e-8)] * 2 == [pytest.approx(-1.23e-8)] * 2
    ours.get_next_trials(1)  # warned once


def test_objectives_that_no_strategy_has():
    several = client(objective="-cost, gain")
    with pytest.raises(UnsupportedError, match="objective must be a single one"):
        several.get_next_trials(1)
    constrained = client()
    constrained.configure_optimization("-cost", outcome_constraints=["weight <= 3"])
    with pytest.raises(UnsupportedError, match="outcome_constraints must be none"):
        constrained.get_next_trials(1)


def test_the_best_trial_by_the_model(tmp_path):
    ours = client(**FIXED)
    with pytest.raises(NoObservationsError, match="best needs"):
        node_of(ours).best()
    points = ours.get_next_trials(4)
    complete(ours, points)
    parameters, mean = node_of(ours).best()  # which knows what came last
    x, same = node_of(ours).strategy.best()
    assert parameters in points.values() and [*parameters.values()] == x.tolist()
    assert mean == same and min(map(cost, points.values())) - 0.5 < mean
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    assert node_of(loaded("JSON", tmp_path)).best() == (parameters, mean)


def test_predictions_are_those_of_the_model_of_ax():
    ours = client(**FIXED)
    (failed,) = ours.get_next_trials(1)
    ours.mark_trial_failed(failed)
    arm = {"x": 3.0, "y": -20.0}
    for number in range(3):
        if number < 2:
            with pytest.raises(UnsupportedError, match="try running more trials"):
                ours.predict([arm])
        complete(ours, ours.get_next_trials(1))
    (card,) = client().compute_analyses([CrossValidationPlot()], display=False)
    assert type(card).__name__ == "NotApplicableStateAnalysisCard"
    for _ in range(2):
        ours.attach_data(3, {"cost": 700.0})
        (found,) = ours.predict([arm])
        model = Generators.BOTORCH_MODULAR(experiment=ours._experiment, data=None)
        mean, covariance = model.predict([ObservationFeatures(arm)])
        expected = mean["cost"][0], covariance["cost"]["cost"][0] ** 0.5
        assert found["cost"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_all_analyses_work():
    ours = client(**FIXED)
    for _ in range(6):
        complete(ours, ours.get_next_trials(1))
    cards = [card for group in ours.compute_analyses(display=False) for card in group.flatten()]
    kinds = {type(card).__name__ for card in cards}
    assert "PlotlyAnalysisCard" in kinds
    assert not kinds & {"ErrorAnalysisCard", "NotApplicableStateAnalysisCard"}


def test_methods_that_wait_and_end():
    rounds = client(PLAIN, "bpe", **ROUNDS)
    first = rounds.get_next_trials(8)
    assert 0 < len(first) < 6
    with pytest.raises(DataRequiredError, match=r"bpe cannot ask .* until \d of its trials"):
        rounds.get_next_trials(8)
    complete(rounds, first)
    while len(rounds._experiment.trials) < 6:
        complete(rounds, rounds.get_next_trials(8))
    with pytest.raises(GenerationStrategyCompleted, match="the horizon of 6 trials is used up"):
        rounds.get_next_trials(1)


def told_batch(study: Any, run: Any) -> Any:
    batch = study.new_batch_trial(run).mark_running(no_runner_required=True)
    rows = [
        {"arm_name": arm.name, "metric_name": "cost", "metric_signature": "cost"}
        | {"mean": arm.parameters["x"], "sem": 0.0, "trial_index": batch.index}
        for arm in batch.arms
    ]
    study.attach_data(Data(df=pd.DataFrame(rows)))
    return batch


def test_batches_of_arms():
    study = experiment(search_space(ranged("x", 2.0, 5.0), ranged("y", -30.0, -10.0)))
    strategy = generation_strategy("gp_bucb", **FIXED)
    hand = bx.algorithms.gp_bucb(AxSpace(study.search_space).chosen, **FIXED)
    for _ in range(2):
        ((run,),) = strategy.gen(study, n=3)
        batch, asked = told_batch(study, run), hand.ask(3)
        batch.mark_arm_abandoned(batch.arms[1].name)
        batch.mark_completed()
        hand.abandon(asked[1].id)
        for place, (arm, trial) in enumerate(zip(batch.arms, asked, strict=True)):
            assert [*arm.parameters.values()] == trial.x.tolist()
            if place != 1:
                hand.tell(trial.id, -kept(arm.parameters["x"]))
    # It has as many arms as a method gives, and ends before a point comes twice.
    ((run,),) = generation_strategy("bpe", **ROUNDS).gen(experiment(study.search_space), n=20)
    assert 0 < len(run.arms) < 6
    few = experiment(search_space(RangeParameter("x", ParameterType.INT, 0, 3)))
    strategy = generation_strategy("gp_bucb", num_initial=2)
    for _ in range(3):
        ((run,),) = strategy.gen(few, n=6)
        told_batch(few, run).mark_completed()
        assert 1 <= len({arm.signature for arm in run.arms}) == len(run.arms) < 6


def test_what_other_nodes_asked_is_data(tmp_path):
    spec = GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 3})
    sobol = [MinTrials(2, transition_to="first")]
    then = [MinTrials(2, transition_to="last")]
    nodes = [
        GenerationNode("sobol", [spec], transition_criteria=sobol),
        StrategyNode("gp_bucb", name="first", seed=1, transition_criteria=then, **FIXED),
        StrategyNode("gp_bucb", name="last", seed=2, **FIXED | {"num_initial": 0}),
    ]
    ours = client()
    ours.set_generation_strategy(GenerationStrategy(nodes=nodes))
    for name in ("sobol", "sobol", "first", "first", "last"):
        trials = ours.get_next_trials(1)
        assert ours._generation_strategy.current_node_name == name
        complete(ours, trials)
        ours.save_to_json_file(str(tmp_path / "lab.json"))
        ours = loaded("JSON", tmp_path)
    ours.get_next_trials(1)
    known = node_of(ours).strategy.history
    assert known.attached == [0, 1, 2, 3] and known.num_asked == 2


CONTEXTUAL = (*PLAIN, in_range("heat", 10.0, 90.0), among("oven", "a", "b", "c", kind="str"))


def test_contexts_are_fixed_features_also_when_loaded(tmp_path):
    fixed = FIXED | {"kernel": matern(1.3, 7.1, 40.0, 1.0)}
    ours = client(CONTEXTUAL, "cgp_ucb", contexts=["heat", "oven"], **fixed)
    space = AxSpace(ours._experiment.search_space, ["heat", "oven"])
    hand = bx.algorithms.cgp_ucb(space.chosen, context_domain=space.contexts, **fixed)
    for i in range(3):
        seen = {"heat": 20.0 + 15 * i, "oven": "abc"[i % 3]}
        ((index, point),) = ours.get_next_trials(1, fixed_parameters=seen).items()
        asked = hand.ask(context=[seen["heat"], float(i % 3)])
        assert point == space.chosen.params(asked.x) | seen
        value = round(point["x"] + point["heat"] / 90, 6)
        ours.complete_trial(index, {"cost": value})
        hand.tell(asked.id, -kept(value))
        ours.save_to_json_file(str(tmp_path / "lab.json"))
        ours = loaded("JSON", tmp_path)
    ours.get_next_trials(1, fixed_parameters=seen)
    parameters, _ = node_of(ours).best(seen)
    assert parameters.items() >= seen.items()
    for wrong, error, message in (
        ({}, UserInputError, r"must have the contexts \['heat', 'oven'\]"),
        ({"heat": 20.0}, UserInputError, "got no 'oven'"),
        ({"heat": 20.0, "oven": "d"}, UserInputError, "oven must be one of"),
        (seen | {"x": 3.0}, UnsupportedError, "only contexts can be fixed, got 'x'"),
    ):
        with pytest.raises(error, match=message):
            ours.get_next_trials(1, fixed_parameters=wrong)


def half(X):
    return 0.5 + 0 * X[..., 0]


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("gp_bucb", {"context_domain": 1}, "context_domain must not be given.*contexts="),
        ("gp_bucb", {"contexts": "heat"}, "contexts must be a list of names"),
        ("cgp_ucb", {}, "contexts must be given for cgp_ucb"),
        ("gp_bucb", FIXED | {"mean": half}, r"mean cannot be saved.*allow_argument\(half\)"),
        (half, {}, r"algorithm cannot be saved.*\(half, is_algorithm=True\)"),
    ],
)
def test_wrong_arguments_are_refused_when_the_strategy_is_made(algorithm, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        generation_strategy(algorithm, **arguments)


def week(ours: Client) -> None:
    """Four trials with three values and a failure, then eight that run, one told since."""
    asked = ours.get_next_trials(4)
    ours.mark_trial_failed(2)
    complete(ours, {i: asked[i] for i in (0, 1, 3)})
    complete(ours, {6: ours.get_next_trials(8)[6]})


LOAD = """
import sys, warnings, json
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
import botorch_ext.integrations.ax
from ax.api.client import Client
print(json.dumps([*Client.load_from_json_file(sys.argv[1]).get_next_trials(2).values()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JSON", "SQLite"])
def test_killed_with_eight_running(kind, tmp_path):
    def work():
        ours = client(PLAIN, "gp_bucb", store_of(kind, tmp_path), **FIXED)
        week(ours)
        if kind == "JSON":
            ours.save_to_json_file(str(tmp_path / "lab.json"))
        os.kill(os.getpid(), signal.SIGKILL)

    wait_for(in_a_fork(work), -signal.SIGKILL)
    whole = client(**FIXED)
    week(whole)
    again = loaded(kind, tmp_path)
    for index, trial in whole._experiment.trials.items():
        assert again._experiment.trials[index].arm.parameters == trial.arm.parameters
    expected = whole.get_next_trials(2)
    assert again.get_next_trials(2) == expected
    if kind == "JSON":  # also in a process that knows nothing of it
        done = subprocess.run(
            [sys.executable, "-c", LOAD, tmp_path / "lab.json"],
            cwd=Path(bx.__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout.splitlines()[-1]) == [*expected.values()]


def user_method(domain, share=0.5):
    """A method of the user."""
    return bx.algorithms.gp_bucb(domain, bx.Fitted(), width=1 / share, num_initial=3)


def test_what_the_user_allowed_is_loaded(tmp_path):
    allow_argument(user_method, is_algorithm=True)
    allow_argument(half, "half of the range")
    ours = client(PLAIN, user_method, share=0.25)
    ours.get_next_trials(4)
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    assert loaded("JSON", tmp_path).get_next_trials(1) == ours.get_next_trials(1)
    (node,) = through_json(generation_strategy("gp_bucb", mean=half, **FIXED))._nodes
    assert node._recipe.arguments["mean"] is half


MODEL = {
    "__type": "Type[Model]",
    "index": "SingleTaskGP",
    "class": "<class 'botorch.models.model.Model'>",
}
NAMED = {"function": "half of the range"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_initial": 3}, "a saved node must have"),
        ({"arguments": json.dumps({"algorithm": "gp_bucb", "name": "x"})}, "an algorithm and its"),
        ({"arguments": json.dumps({"algorithm": NAMED})}, "algorithm must be a function or its"),
        ({"name": MODEL}, "name of a saved node must be"),
        ({"transition_criteria": [1]}, "transition_criteria of a saved node"),
        ({"pausing_criteria": [MODEL]}, "pausing_criteria of a saved node"),
        ({"num_points": 10**9}, "num_points must be at most"),
    ],
)
def test_a_node_of_strangers_is_refused_and_nothing_is_called(change, message, monkeypatch):
    allow_argument(half, "half of the range")  # a mean is no algorithm
    node = json.loads(json.dumps(object_to_json(StrategyNode("gp_bucb"))))
    monkeypatch.setattr(bx.algorithms, "gp_bucb", None)
    with pytest.raises(ValueError, match=message):
        object_from_json(node | change)
    for part in node.keys() - {"__type"}:
        with pytest.raises(ValueError, match="a saved node must have"):
            object_from_json({key: value for key, value in node.items() if key != part})


OPTIONS: dict[str, dict[str, Any]] = {
    "EnlargedUpperConfidenceBound": {"width": 1.5, "misspecification": 0.01},
    "ExpectedUCB": {"width": 1.5, "probabilities": [0.25, 0.75]},
    "IntegratedLogEI": {},
    "LowerConfidenceBound": {"width": torch.tensor(1 / 3, dtype=torch.float64)},
    "MaxVariance": {},
    "OptimisticModelUCB": {"width": 1.5},
    "StableUCB": {"width": 1.5, "radius": [0.1, 0.2], "norm": "linf"},
}


@pytest.mark.slow
# CertifiedSafe is made of another acquisition function, for loops.
@pytest.mark.parametrize("name", sorted({*acquisition.__all__} - {"CertifiedSafe"}))
def test_each_acquisition_function_asks_in_ax_also_when_loaded(tmp_path, name):
    ours, strategy = client(), through_json(with_acquisition(name, **OPTIONS[name]))
    given = strategy._nodes[0].generator_specs[0].generator_kwargs
    assert given["botorch_acqf_class"] is getattr(acquisition, name)
    assert given["botorch_acqf_options"] == OPTIONS[name]
    if name == "ExpectedUCB":  # which needs several models
        return
    ours.set_generation_strategy(strategy)
    for x, y in [(2.5, -20.0), (4.0, -12.0), (3.5, -28.0)]:
        complete(ours, {ours.attach_trial({"x": x, "y": y}): {"x": x, "y": y}})
    ours.get_next_trials(1)
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    again = loaded("JSON", tmp_path)
    again.get_next_trials(1)
    for trial in [again._experiment.trials[id] for id in (3, 4)]:
        given = trial.generator_run._generator_kwargs
        assert given["botorch_acqf_class"] is getattr(acquisition, name)
        assert again._experiment.search_space.check_membership(trial.arm.parameters)


@pytest.mark.slow
def test_an_acquisition_function_in_ax_minimises_with_pending_trials(monkeypatch):
    kind, built = acquisition.EnlargedUpperConfidenceBound, []
    init = kind.__init__

    def recording(self, *args, **kwargs):
        built.append(kwargs)
        init(self, *args, **kwargs)

    monkeypatch.setattr(kind, "__init__", recording)
    ours, asked = client(), []
    ours.set_generation_strategy(
        with_acquisition("EnlargedUpperConfidenceBound", width=2.0, misspecification=0.01)
    )
    for x, y in [(2.5, -20.0), (4.0, -12.0), (3.5, -28.0), (2.2, -14.0), (4.8, -22.0)]:
        complete(ours, {ours.attach_trial({"x": x, "y": y}): {"x": x, "y": y}})
    for _ in range(5):
        batch = ours.get_next_trials(3)  # the second and third while others are pending
        asked += batch.values()
        complete(ours, batch)
    assert {call["misspecification"] for call in built} == {0.01}
    assert all(call["posterior_transform"] is not None for call in built)
    assert max(len(call.get("X_pending", ())) for call in built) == 2
    assert len({tuple(point.values()) for point in asked}) == 15
    assert min(map(cost, asked)) < 0.05  # it is cost that was optimised


def test_where_it_is_not_imported_the_error_says_what_to_import():
    saved = json.loads(json.dumps(object_to_json(generation_strategy("gp_bucb"))))
    known = {name: kind for name, kind in CORE_DECODER_REGISTRY.items() if kind is not StrategyNode}
    with pytest.raises(JSONDecodeError, match=r"StrategyNode \(import botorch_ext.integr.*ax\)"):
        object_from_json(saved, decoder_registry=known)


@pytest.mark.parametrize("name", bx.algorithms.__all__)
def test_the_arguments_of_every_method_are_saved_and_loaded(name):
    contexts = {"contexts": ["heat"]} if name == "cgp_ucb" else {}
    strategy = generation_strategy(name, **contexts, **recipe(name).arguments)
    (node,), (again,) = strategy._nodes, through_json(strategy)._nodes
    assert again._saved == node._saved and json.loads(node._saved).keys() > {"algorithm"}
