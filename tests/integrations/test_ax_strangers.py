"""Nodes in Ax's JSON that come from strangers: nothing of them is called, or they are refused."""

import json
from functools import wraps

import pytest

pytest.importorskip("ax")

from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json

import botorch_ext as bx
from botorch_ext.integrations.ax import StrategyNode, allow_argument

pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")

MODEL = {
    "__type": "Type[Model]",
    "index": "SingleTaskGP",
    "class": "<class 'botorch.models.model.Model'>",
}
FUNCTION = {"class": "function", "state": {"name": "default_growth"}}


def saved():
    return json.loads(json.dumps(object_to_json(StrategyNode("gp_bucb"))))


def text(**arguments):
    return {"arguments": json.dumps(arguments)}


CHANGES = {
    "a class of Ax as algorithm": (
        text(train_Y=7) | {"algorithm": MODEL},
        "a saved node must have",
    ),
    "a class of Ax as argument": ({"kernel": MODEL}, "a saved node must have"),
    "an argument beside the text": ({"num_initial": 3}, "a saved node must have"),
    "its own arguments in the text": (text(algorithm="gp_bucb", name="x"), "an algorithm and its"),
    "a load that tries": (text(algorithm="gp_bucb", _is_loaded=False), "an algorithm and its"),
    "no algorithm": (text(num_initial=3), "an algorithm and its"),
    "a growth as algorithm": (text(algorithm=FUNCTION), "algorithm must be a function that is"),
    "a list as algorithm": (text(algorithm=["gp_bucb"]), "algorithm must be a function or its"),
    "another name of the module": (text(algorithm="arguments"), "algorithm must be a function or"),
    "no text": ({"arguments": ["gp_bucb"]}, "arguments of a saved node must be"),
    "a class as a name": ({"name": MODEL}, "name of a saved node must be"),
    "lists as contexts": ({"contexts": [["a"]]}, "contexts of a saved node must be"),
    "a truth value as a word": ({"should_deduplicate": "x"}, "should_deduplicate of a saved"),
    "numbers as criteria": ({"transition_criteria": [1]}, "transition_criteria of a saved node"),
    "classes as criteria": ({"pausing_criteria": [MODEL]}, "pausing_criteria of a saved node"),
    "a number as a status": ({"suggested_experiment_status": 5}, "suggested_experiment_status of"),
    "too many points": ({"num_points": 10**9}, "num_points must be at most"),
    "too many first points": (text(algorithm="gp_bucb", num_initial=10**8), "num_initial must be"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_node_that_was_changed_is_refused(change):
    changed, message = CHANGES[change]
    with pytest.raises(ValueError, match=message):
        object_from_json(saved() | changed)


def test_a_node_without_one_of_its_parts_is_refused():
    for part in saved().keys() - {"__type"}:
        node = saved()
        del node[part]
        with pytest.raises(ValueError, match="a saved node must have"):
            object_from_json(node)


def test_nothing_is_called_when_a_node_is_loaded(monkeypatch):
    calls, method = [], bx.algorithms.gp_bucb

    @wraps(method)
    def counted(*args, **kwargs):
        calls.append(kwargs)
        return method(*args, **kwargs)

    monkeypatch.setattr(bx.algorithms, "gp_bucb", counted)
    node = StrategyNode("gp_bucb", num_initial=3)
    made = len(calls)
    assert made
    object_from_json(json.loads(json.dumps(object_to_json(node))))
    assert len(calls) == made


def twice(X):
    return 2 * X[..., 0]


def test_a_mean_that_is_allowed_is_no_algorithm():
    allow_argument(twice)
    named = {"class": "function", "state": {"name": "twice"}}
    with pytest.raises(ValueError, match="algorithm must be a function that is allowed"):
        object_from_json(saved() | text(algorithm=named))
