"""Every host asks what the bare strategy asks that is told the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import botorch_ext as bx
from tests.hosts.machine import ACTIONS, PLAIN, SPACE, InStudy, Machine, Memory, quietly
from tests.hosts.methods import recipe

pytestmark = quietly

#: Arguments of methods in the sign of the costs.
OF_COSTS = {"gp_ucb_sdf": {"minimum": 5.0}}
#: One of each action, in an order in which each can happen.
SCRIPT = [("ask", 0), ("ask", 0), ("ask", 0), ("tell", 1), ("attach", 1), ("ask", 0)]
SCRIPT += [("correct", 0), ("fail", 0), ("resume", 0), ("ask", 0), ("give up", 0), ("tell", 0)]
SCRIPT += [("correct", 1), ("ask", 0), ("late", 0), ("resume", 0), ("tell", 0), ("ask", 0)]


#: One of each class of strategies; the others are slow together.
QUICK = ("bpe_delay", "certified_bucb", "cgp_ucb", "credible_ucb", "gp_ucb", "gp_ucb_sdf")
QUICK += ("insured_ucb", "integrated_ei", "regret_balancing", "thompson_sampling")
METHODS = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in bx.algorithms.__all__
    if name != "safe_exploration"  # hosts keep no outcomes
]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_in_a_host_of_the_least(name):
    is_boxed = name == "breadthwise_exploration"
    chosen = recipe(name, None if is_boxed else 25, **OF_COSTS.get(name, {}))
    space = PLAIN if is_boxed else SPACE
    host = Memory(chosen, space, minimizes=True)
    if name == "cgp_ucb":
        host.contexts = lambda key: [0.25 * (key % 4)]
    machine = Machine(host, chosen, space)
    machine.run(SCRIPT)
    assert machine.num_asked >= 3


def in_optuna(chosen, folder, minimizes):
    pytest.importorskip("optuna")
    from tests.hosts.in_optuna import InOptuna

    return InOptuna(chosen, minimizes)


def in_ax(chosen, folder, minimizes):
    pytest.importorskip("ax")
    from tests.hosts.in_ax import InAx

    return InAx(chosen, folder)


def in_memory(chosen, folder, minimizes):
    return Memory(chosen, minimizes=minimizes)


#: A host, its method, and how many orders are drawn.
HOSTS = {
    "memory": (in_memory, recipe("gp_bucb", num_points=40), 10),
    "memory, with rounds": (in_memory, recipe("certified_bucb", num_points=40), 8),
    # Of first points, or each ask searches the space.
    "memory, in a space": (in_memory, recipe("gp_bucb", num_initial=30), 8),
    "study": (InStudy, recipe("gp_bucb", num_points=40), 6),
    "optuna": (in_optuna, recipe("gp_bucb", num_points=40), 6),
    "ax": (in_ax, recipe("gp_bucb", num_points=40), 3),
}


@pytest.mark.parametrize("minimizes", [False, True])
@pytest.mark.parametrize("name", HOSTS)
def test_any_order_in_any_host(tmp_path_factory, name, minimizes):
    make, chosen, number = HOSTS[name]

    @settings(max_examples=number)
    @given(actions=ACTIONS)
    def play(actions):
        Machine(make(chosen, tmp_path_factory.mktemp("host"), minimizes), chosen).run(actions)

    play()
