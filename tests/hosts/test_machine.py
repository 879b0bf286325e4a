"""Every host asks what the bare strategy asks that is told the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import botorch_ext as bx
from tests.hosts.machine import ACTIONS, PLAIN, SPACE, InStudy, Machine, Memory, quietly
from tests.hosts.methods import ARGUMENTS, recipe

pytestmark = quietly

#: Their arguments are in the sign of what is maximised.
OF_REWARDS = ("gp_ucb_sdf", "regret_balancing")
#: One of each action, in an order in which each can happen.
SCRIPT = [("ask", 0), ("ask", 0), ("ask", 0), ("tell", 1), ("attach", 1), ("ask", 0)]
SCRIPT += [("correct", 0), ("fail", 0), ("resume", 0), ("ask", 0), ("give up", 0), ("tell", 0)]
SCRIPT += [("correct", 1), ("ask", 0), ("late", 0), ("resume", 0), ("tell", 0), ("ask", 0)]


def test_every_algorithm_has_arguments():
    assert ARGUMENTS.keys() == set(bx.algorithms.__all__)


#: One of each class of strategies; the others are slow together.
QUICK = ("bpe_delay", "certified_bucb", "cgp_ucb", "credible_ucb", "gp_ucb", "gp_ucb_sdf")
QUICK += ("insured_ucb", "integrated_ei", "regret_balancing", "thompson_sampling")
METHODS = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ARGUMENTS
]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_in_a_host_of_the_least(name):
    is_boxed = name == "breadthwise_exploration"
    space, chosen = (PLAIN, recipe(name)) if is_boxed else (SPACE, recipe(name, num_points=25))
    host = Memory(chosen, space, minimizes=name not in OF_REWARDS)
    if name == "cgp_ucb":
        host.contexts = lambda key: [0.25 * (key % 4)]
    machine = Machine(host, chosen, space)
    machine.run(SCRIPT)
    assert machine.num_asked >= 3


@pytest.mark.parametrize("minimizes", [False, True])
@settings(max_examples=10)
@given(actions=ACTIONS)
def test_any_order_in_a_host_of_the_least(minimizes, actions):
    chosen = recipe("gp_bucb", num_points=40)
    Machine(Memory(chosen, minimizes=minimizes), chosen).run(actions)


@settings(max_examples=8)
@given(actions=ACTIONS)
def test_any_order_with_rounds(actions):
    chosen = recipe("certified_bucb", num_points=40)
    Machine(Memory(chosen), chosen).run(actions)


@settings(max_examples=8)
@given(actions=ACTIONS)
def test_any_order_in_a_space(actions):
    chosen = recipe("gp_bucb", num_initial=30)  # of first points, or each ask searches the space
    Machine(Memory(chosen), chosen).run(actions)


@pytest.mark.parametrize("minimizes", [False, True])
@settings(max_examples=6)
@given(actions=ACTIONS)
def test_any_order_in_a_study(tmp_path_factory, minimizes, actions):
    chosen = recipe("gp_bucb", num_points=40)
    study = InStudy(chosen, tmp_path_factory.mktemp("study"), minimizes)
    Machine(study, chosen).run(actions)


@settings(max_examples=10)
@given(actions=ACTIONS)
def test_any_order_in_optuna(actions):
    pytest.importorskip("optuna")
    from tests.hosts.in_optuna import InOptuna

    chosen = recipe("gp_bucb", num_points=40)
    Machine(InOptuna(chosen, minimizes=len(actions) % 2 == 0), chosen).run(actions)


@settings(max_examples=3)
@given(actions=ACTIONS)
def test_any_order_in_ax(tmp_path_factory, actions):
    pytest.importorskip("ax")
    from tests.hosts.in_ax import InAx

    chosen = recipe("gp_bucb", num_points=40)
    Machine(InAx(chosen, tmp_path_factory.mktemp("ax")), chosen).run(actions)


@pytest.mark.parametrize("name", ["bpe", "integrated_ei"])
def test_one_of_each_action_in_ax(tmp_path, name):
    pytest.importorskip("ax")
    from tests.hosts.in_ax import InAx

    chosen = recipe(name, num_points=25)
    Machine(InAx(chosen, tmp_path), chosen).run(SCRIPT)
