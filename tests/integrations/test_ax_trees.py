"""Hierarchical search spaces of Ax: an arm has the parameters that count, and no others."""

import pytest
import torch

pytest.importorskip("ax")

from ax.api.configs import ChoiceParameterConfig
from ax.core.parameter import ChoiceParameter, FixedParameter, ParameterType
from ax.exceptions.core import UnsupportedError

import botorch_ext as bx
from botorch_ext.domains.choices import Choice
from botorch_ext.domains.parameters import Integer, Real
from botorch_ext.domains.space import Space
from botorch_ext.integrations.ax import generation_strategy
from botorch_ext.integrations.ax_space import AxSpace
from tests.integrations.in_ax import (
    ByHand,
    client,
    experiment,
    in_range,
    loaded,
    parameters_of,
    ranged,
    search_space,
)


def choice(name, dependents, kind="str"):
    return ChoiceParameterConfig(
        name=name,
        parameter_type=kind,
        values=list(dependents),
        is_ordered=False,
        dependent_parameters={value: names for value, names in dependents.items() if names},
    )


TREE = (
    choice("model", {"linear": ["penalty"], "forest": ["depth"], "boosting": ["booster"]}),
    in_range("penalty", 1e-4, 1.0, scaling="log"),
    in_range("depth", 1, 9, kind="int"),
    choice("booster", {"gbtree": [], "dart": ["rate"]}),
    in_range("rate", 0.1, 0.5),
    in_range("share", 2.0, 5.0),
)


def names_of(arm):
    """The definition, without an order."""
    names = {"model", "share"}
    if arm["model"] == "linear":
        names |= {"penalty"}
    elif arm["model"] == "forest":
        names |= {"depth"}
    else:
        names |= {"booster", "rate"} if arm["booster"] == "dart" else {"booster"}
    return names


def cost(arm):
    if arm["model"] == "linear":
        return 0.2 + arm["penalty"]
    if arm["model"] == "forest":
        return 0.1 * abs(arm["depth"] - 3)
    return 0.3 + arm.get("rate", 0.0)


def by_hand(**arguments):
    parameters = {
        "model": Choice(("linear", "forest", "boosting")),
        "penalty": Real(1e-4, 1.0, log=True),
        "depth": Integer(1, 9),
        "booster": Choice(("gbtree", "dart")),
        "rate": Real(0.1, 0.5),
        "share": Real(2.0, 5.0),
    }
    conditions = {
        "penalty": ("model", ["linear"]),
        "depth": ("model", ["forest"]),
        "booster": ("model", ["boosting"]),
        "rate": ("booster", ["dart"]),
    }
    space = Space(parameters, conditions=conditions)
    return ByHand(space, bx.algorithms.integrated_ei(space, **arguments))


def test_arms_are_those_of_ask_and_tell_also_when_loaded(tmp_path):
    ours, hand = (
        client(TREE, "integrated_ei", num_initial=8, seed=2),
        by_hand(num_initial=8, seed=2),
    )
    seen = set()
    for round in range(3):
        asked = ours.get_next_trials(4)
        assert parameters_of(asked) == hand.ask(4)
        for index, arm in asked.items():
            assert arm.keys() == names_of(arm)
            assert ours._experiment.search_space.check_membership(arm)
            seen.add((arm["model"], arm.get("booster")))
            ours.complete_trial(index, {"cost": cost(arm)})
            hand.tell(index, cost(arm))
        if round == 1:
            ours.save_to_json_file(str(tmp_path / "lab.json"))
            ours = loaded("JSON", tmp_path)
    assert len(seen) == 4


def test_attached_arms_of_a_branch_are_data():
    ours, hand = client(TREE, "integrated_ei", num_initial=1), by_hand(num_initial=1)
    for arm in ({"model": "forest", "depth": 4, "share": 3.0}, {"model": "boosting", "share": 2.5}):
        arm |= {"booster": "dart", "rate": 0.25} if arm["model"] == "boosting" else {}
        ours.complete_trial(ours.attach_trial(arm), {"cost": cost(arm)})
        hand.strategy.attach(hand.space.point(arm), -cost(arm))
    assert parameters_of(ours.get_next_trials(3)) == hand.ask(3)


def test_a_root_that_is_fixed():
    space = search_space(
        FixedParameter("root", ParameterType.STRING, "all", dependents={"all": ["a", "b"]}),
        ranged("a", 2.0, 3.0),
        ranged("b"),
        constraints=["a + b <= 2.5"],
    )
    (run,) = generation_strategy("gp_bucb", num_initial=1).gen(experiment(space))[0]
    assert run.arms[0].parameters.keys() == {"root", "a", "b"}
    assert AxSpace(space).chosen.conditions == {}


def test_contexts_and_constraints_of_a_tree_are_refused():
    def tree(**options):
        kind = ChoiceParameter(
            "kind",
            ParameterType.STRING,
            ["u", "v"],
            is_ordered=False,
            sort_values=False,
            dependents={"u": ["a"]},
        )
        return search_space(kind, ranged("a"), ranged("b"), **options)

    for name in ("kind", "a"):
        with pytest.raises(UnsupportedError, match=f"contexts must neither depend .*'{name}'"):
            AxSpace(tree(), [name])
    assert AxSpace(tree(), ["b"]).chosen.names == ("kind", "a")
    with pytest.raises(UnsupportedError, match="a must have no condition to be in a constraint"):
        AxSpace(tree(constraints=["a + b <= 1.5"]))


def test_points_of_arms_are_at_rest_where_nothing_counts():
    space = AxSpace(client(TREE)._experiment.search_space).chosen
    x = space.point({"model": "forest", "depth": 4, "share": 3.0})
    assert torch.allclose(x, x.new_tensor([1.0, 1e-2, 4.0, 0.0, 0.3, 3.0]))
