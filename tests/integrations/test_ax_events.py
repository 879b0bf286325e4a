"""What happens to trials in Ax, and what strategies there refuse."""

import pytest
import torch

import botorch_ext as bx

pytest.importorskip("ax")

from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.core.observation import ObservationFeatures
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    ParameterType,
)
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace
from ax.exceptions.core import DataRequiredError, UnsupportedError, UserInputError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from botorch_ext.exceptions import HostWarning, NoObservationsError
from botorch_ext.integrations.ax import StrategyNode, generation_strategy
from botorch_ext.integrations.ax_space import AxSpace
from tests.integrations.in_ax import (
    METHODS,
    PLAIN,
    ByHand,
    client,
    cost,
    experiment,
    kept,
    kernel,
    parameters_of,
    ranged,
    search_space,
)

# Ax and what it imports warn about themselves; our own warnings stay errors.
pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")


# --- what happens besides -------------------------------------------------------------------------


def test_methods_that_wait_and_end():
    rounds = client(
        PLAIN, "bpe", kernel=kernel(), noise_variance=0.01, horizon=6, width=2.0, num_points=50
    )
    first = rounds.get_next_trials(8)
    assert 0 < len(first) < 6
    with pytest.raises(
        DataRequiredError, match=r"bpe cannot ask for another trial until \d of its trials"
    ):
        rounds.get_next_trials(8)
    for index, point in first.items():
        rounds.complete_trial(index, {"cost": cost(point)})
    while len(rounds._experiment.trials) < 6:
        for index, point in rounds.get_next_trials(8).items():
            rounds.complete_trial(index, {"cost": cost(point)})
    with pytest.raises(GenerationStrategyCompleted, match="the horizon of 6 trials is used up"):
        rounds.get_next_trials(1)


def test_a_batch_has_as_many_arms_as_a_method_gives():
    rounds = {"kernel": kernel(), "noise_variance": 0.01, "horizon": 6, "width": 2.0}
    study = experiment(search_space(ranged("x", 2.0, 5.0), ranged("y", -30.0, -10.0)))
    strategy = generation_strategy("bpe", num_points=50, **rounds)
    ((run,),) = strategy.gen(study, n=20)
    assert 0 < len(run.arms) < 6
    study.new_batch_trial(run).mark_running(no_runner_required=True)
    with pytest.raises(DataRequiredError, match="bpe cannot ask for another trial until"):
        strategy.gen(study, n=20)


def test_what_others_asked_is_data():
    spec = GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 3})
    first = MinTrials(3, transition_to="gp_bucb")
    nodes = [
        GenerationNode("sobol", [spec], transition_criteria=[first]),
        StrategyNode("gp_bucb", num_initial=0),
    ]
    ours = client(PLAIN)
    ours.set_generation_strategy(GenerationStrategy(nodes=nodes))
    space = AxSpace(ours._experiment.search_space).chosen
    hand = bx.algorithms.gp_bucb(space, bx.Fitted(), width=2.0, num_initial=0)
    trials = ours.get_next_trials(3)
    inside = ours.attach_trial({"x": 3.0, "y": -20.0})
    outside = Client.attach_trial(ours, {"x": 3.0, "y": -20.5})
    ours._experiment.trials[outside].arm._parameters["y"] = 7.0
    trials |= {inside: {"x": 3.0, "y": -20.0}, outside: {"x": 3.0, "y": 7.0}}
    for index, point in trials.items():
        ours.complete_trial(index, {"cost": cost(point)})
        if index != outside:
            hand.attach(space.point(point), -kept(cost(point)))
    with pytest.warns(HostWarning, match=f"value of trial {outside} is not used"):
        (point,) = ours.get_next_trials(1).values()
    assert point == space.params(hand.ask().x)


def test_a_trial_that_is_complete_without_a_value_still_runs():
    ours = client(PLAIN, num_initial=2)
    hand = ByHand.of(ours, "gp_bucb", kernel=bx.Fitted(), width=2.0, num_initial=2)
    asked = ours.get_next_trials(3)
    hand.ask(3)
    ours.complete_trial(0, {"cost": cost(asked[0])})
    hand.tell(0, cost(asked[0]))
    ours.complete_trial(1, {"weight": 2.0})
    ours.complete_trial(2)
    with pytest.warns(
        HostWarning, match=r"trials \[1, 2\] are completed but have no value of cost"
    ):
        trials = ours.get_next_trials(1)
    assert parameters_of(trials) == hand.ask(1)
    ours.attach_data(2, {"cost": 0.5})
    hand.tell(2, 0.5)
    with pytest.warns(HostWarning, match=r"trials \[1\] are completed"):
        trials = ours.get_next_trials(1)
    assert parameters_of(trials) == hand.ask(1)


def test_a_trial_that_was_stopped_early_is_no_result():
    ours = client(PLAIN, num_initial=2)
    hand = ByHand.of(ours, "gp_bucb", kernel=bx.Fitted(), width=2.0, num_initial=2)
    asked = ours.get_next_trials(3)
    hand.ask(3)
    for index in (0, 1):
        ours.complete_trial(index, {"cost": cost(asked[index])})
        hand.tell(index, cost(asked[index]))
    ours.attach_data(2, {"cost": -100.0}, progression=1)
    ours.mark_trial_early_stopped(2)
    hand.abandon(2, failed=True)
    assert parameters_of(ours.get_next_trials(1)) == hand.ask(1)


def test_a_value_that_is_corrected():
    ours = client(PLAIN, num_initial=2)
    asked = ours.get_next_trials(3)
    for index, point in asked.items():
        ours.complete_trial(index, {"cost": 1 + cost(point)})
    ours.get_next_trials(1)
    ours.attach_data(1, {"cost": 7.0})
    ours.get_next_trials(1)
    (node,) = ours._generation_strategy._nodes
    assert node.strategy.history.values[1] == -7.0


def test_small_values_are_told_as_ax_saves_them():
    ours = client(PLAIN, num_initial=2)
    asked = ours.get_next_trials(2)
    for index in asked:
        ours.complete_trial(index, {"cost": 1.23456789e-8 * (1 + index)})
    with pytest.warns(HostWarning, match="ten decimals, so 1.23456789e-08 of trial 0 .* 1.23e-08"):
        ours.get_next_trials(1)
    (node,) = ours._generation_strategy._nodes
    told = node.strategy.history.values
    assert told == {i: -kept(1.23456789e-8 * (1 + i)) for i in (0, 1)} != {}
    ours.get_next_trials(1)  # warned once


def test_a_question_that_became_no_trial_is_asked_again():
    ours = client(PLAIN, num_initial=2)
    strategy, study = ours._generation_strategy, ours._experiment
    ((dropped,),) = strategy.gen(study)
    (point,) = ours.get_next_trials(1).values()
    assert dropped.arms[0].parameters == point


def test_the_best_trial_by_the_model():
    ours = client(PLAIN, num_initial=3)
    (node,) = ours._generation_strategy._nodes
    with pytest.raises(NoObservationsError, match="best needs at least one evaluated point"):
        node.best()
    points = ours.get_next_trials(4)
    for index, point in points.items():
        ours.complete_trial(index, {"cost": cost(point)})
    ours.get_next_trials(1)
    parameters, mean = node.best()
    x, negative = node.strategy.best()
    assert parameters in points.values() and list(parameters.values()) == x.tolist()
    assert mean == -negative and min(map(cost, points.values())) - 0.5 < mean


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("gp_buc", {}, "algorithm must be .*did you mean 'gp_bucb'"),
        ("gp_bucb", {"widht": 2.0}, "no argument 'widht'.*did you mean 'width'"),
        ("gp_bucb", {"width": -2.0}, "width|value"),
        ("certified_bucb", {}, "kernel must be given for certified_bucb"),
        ("gp_bucb", {"kernel": kernel(), "width": 2.0}, "missing .* 'noise_variance'"),
        (
            "gp_bucb",
            {"kernel": kernel(), "noise_variance": 0.1},
            "rkhs_bound and noise_std must be given",
        ),
        ("gp_bucb", {"num_points": 0}, "num_points must be at least 1"),
        ("gp_bucb", {"domain": bx.Box([[0.0], [1.0]])}, "domain must not be given"),
        ("gp_bucb", {"context_domain": 1}, "context_domain must not be given.*contexts="),
        ("gp_bucb", {"contexts": "heat"}, "contexts must be a list of names"),
        ("cgp_ucb", {}, "contexts must be given for cgp_ucb"),
        (
            "certified_bucb",
            {"contexts": ["heat"]} | METHODS["certified_bucb"],
            "contexts must not be",
        ),
        (
            "gp_bucb",
            {"kernel": kernel(), "noise_variance": 0.1, "width": 2.0, "mean": torch.sum},
            "mean cannot be saved, as its class builtin",
        ),
    ],
)
def test_wrong_arguments_are_refused_when_the_strategy_is_made(algorithm, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        generation_strategy(algorithm, **arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([ranged("a", 0.1, 0.9, logit_scale=True)], "'a' must not be of the kind logit_scale"),
        ([ranged("a", is_fidelity=True, target_value=1.0)], "'a' must not be a fidelity"),
        ([FixedParameter("a", ParameterType.INT, 1)], "two values"),
    ],
)
def test_parameters_that_no_strategy_has(parameters, message):
    with pytest.raises(UnsupportedError, match=message):
        generation_strategy("gp_bucb").gen(experiment(search_space(*parameters)))


def test_constraints_that_no_strategy_has():
    a, b = ranged("a"), ranged("b")
    equal = SearchSpace([a, b], [ParameterConstraint(equality="a + b == 1")])
    with pytest.raises(UnsupportedError, match="constraints must be inequalities"):
        AxSpace(equal)
    c = ChoiceParameter("c", ParameterType.FLOAT, [0.1, 0.2, 0.7], is_ordered=True)
    with pytest.raises(UnsupportedError, match="'c' must have values at even steps"):
        AxSpace(search_space(a, c, constraints=["a + c <= 1"]))
    d = DerivedParameter("d", ParameterType.FLOAT, "2.0 * a")
    with pytest.raises(UserInputError, match=r"contexts must be parameters .* not computed.*'d'"):
        AxSpace(search_space(a, d), ["d"])
    with pytest.raises(UnsupportedError, match="contexts must be in no constraint, got 'b'"):
        AxSpace(search_space(a, b, constraints=["a + b <= 1"]), ["b"])


def test_objectives_that_no_strategy_has():
    several = client(PLAIN, objective="-cost, gain")
    with pytest.raises(UnsupportedError, match="objective must be a single one"):
        several.get_next_trials(1)
    constrained = client(PLAIN)
    constrained.configure_optimization("-cost", outcome_constraints=["weight <= 3"])
    with pytest.raises(UnsupportedError, match="outcome_constraints must be none"):
        constrained.get_next_trials(1)


def test_fixed_features_of_the_generation_strategy():
    study = experiment(search_space(ranged("a"), FixedParameter("b", ParameterType.INT, 3)))
    strategy = generation_strategy("gp_bucb", num_initial=3)
    run = strategy.gen_single_trial(study, fixed_features=ObservationFeatures({"b": 3}))
    assert run.arms[0].parameters["b"] == 3
