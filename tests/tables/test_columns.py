"""Columns that `status` and `trials` read from descriptions, against the spaces themselves."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import botorch_ext as bx
from botorch_ext.codec import encode
from botorch_ext.page.parameters import columns_of
from botorch_ext.page.strategy_description import readable
from tests.domains.drawn_spaces import a_space


def columns(strategy, num_x, num_context=0, text=str):
    """What a study without torch knows."""
    description = json.loads(json.dumps({"strategy": encode(strategy)}))
    return columns_of(readable(description), num_x, num_context, text)


@given(st.integers(0, 10**6))
def test_columns_are_those_of_the_space(seed):
    space, contexts = a_space(seed), a_space(seed + 1)
    found = columns(
        bx.strategies.RandomSearch(space, context_domain=contexts), space.dim, contexts.dim
    )
    for own, known in ((found.x, space), (found.context, contexts)):
        assert [column.name for column in own] == [*known.names]
        for column, name in zip(own, known.names, strict=True):
            parameter = known.parameters[name]
            assert column.unit == (parameter.unit or "") and column.log == parameter.log
            assert column.whole == isinstance(parameter, bx.Integer) and column.has_name
            if isinstance(parameter, bx.Choice):
                values = [str(value) for value in parameter.values]
                assert column.labels == tuple((float(i), each) for i, each in enumerate(values))
            else:
                assert column.labels == ()
    for x in space.sample(8, seed):
        counts = [found.counts(j, x.tolist()) for j in range(space.dim)]
        assert counts == space.active(x).tolist()


@pytest.mark.parametrize(
    ("parent", "values"),
    [
        (bx.Integer(-2, 6, step=2), [4, -2]),
        (bx.Real(0, 1, step=0.1), [0.3]),
        (bx.Choice([True, 1, None, [1, 2]]), [1]),
        (bx.Choice([1, True, None, [1, 2]]), [True, [1, 2]]),
    ],
)
def test_what_counts_with_some_values_counts_with_them(parent, values):
    depth = bx.Real(0, 1)
    space = bx.Space(a=parent, b=depth, c=depth, conditions={"b": ("a", values)})
    found = columns(bx.strategies.RandomSearch(space), 3)
    for x in torch.cat([space.sample(20, 1), space.ends]):
        assert [found.counts(j, x.tolist()) for j in range(3)] == space.active(x).tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"a": bx.Integer(-2, -1)},
        {"a": bx.Real(-1.5, -0.5, step=1.0)},
        {"a": bx.Integer(-9, -5, step=4)},
        {"a": bx.Real(0.2, 1.9, digits=0), "b": bx.Real(2, 2), "c": bx.Integer(1, 5, step=4)},
    ],
)
def test_parameters_of_two_values_have_a_column_and_those_of_one_have_none(parameters):
    space = bx.Space(parameters)
    found = columns(bx.strategies.RandomSearch(space), space.dim)
    assert [column.name for column in found.x] == [*space.names]


def test_any_description_has_columns():
    real = {"class": "Real", "arguments": {"low": 0, "high": 1}}
    for part in (
        {},
        {"class": "Real"},
        {"class": "Real", "arguments": {"low": 1, "high": 0}},
        {"class": "Real", "arguments": {"low": "0", "high": [1]}},
        {"class": "Real", "arguments": {"low": 0, "high": 10**400}},
        {"class": "Real", "arguments": {"low": 0, "high": 1, "step": 1e-300}},
        {"class": "Real", "arguments": {"low": 0, "high": 1, "no": 1}},
        {"class": "Choice", "arguments": {"values": 3}},
        {"class": "Choice", "arguments": {"values": ["a", "a"]}},
        {"class": "Path", "arguments": {"values": ["a", "b"]}},
        {"class": ["Real"], "arguments": {}},
        "Real",
    ):
        space = {"class": "Space", "arguments": {"parameters": {"dict": {"a": real, "b": part}}}}
        strategy = {"class": "strategies.RandomSearch", "arguments": {"domain": space}}
        found = columns_of(readable({"strategy": strategy}), 2, 1)
        assert [column.name for column in found.all] == ["x0", "x1", "context0"]
    for conditions in ({"a": 3}, {"a": ["a", [1]]}, {"a": ["b", 2]}, {"a": ["b", ["no"]]}, 3):
        arguments = {"parameters": {"dict": {"a": real, "b": real}}, "conditions": conditions}
        strategy = {
            "class": "strategies.RandomSearch",
            "arguments": {"domain": {"class": "Space", "arguments": arguments}},
        }
        found = columns_of(readable({"strategy": strategy}), 2, 0)
        assert len(found.x) == 2
        assert isinstance(found.counts(0, [0.5, 0.5]), bool)
