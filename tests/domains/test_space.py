"""Named parameters of every kind, as boxes and back."""

import itertools
import math

import pytest
import torch

from botorch_ext.domains.choices import Choice, Fixed, Ordered
from botorch_ext.domains.parameters import Integer, Real
from botorch_ext.domains.space import Space

PARAMETERS = {
    "share": Real(-2.5, 4.0),
    "rate": Real(1e-5, 0.3, log=True),
    "drop": Real(0.1, 0.75, step=0.1),
    "depth": Integer(3, 9),
    "width": Integer(1, 512, log=True),
    "batch": Integer(10, 95, step=20),
    "kind": Choice(("rbf", None, True, 1, 2.5, math.nan)),
    "size": Ordered((1, 2.5, 10)),
    "one": Choice(("alone",)),
    "fixed": Fixed(7),
    "narrow": Real(2.0, 2.0),
}
SPACE = Space(PARAMETERS)
# Some of the values of each parameter.
VALUES = {
    "share": [-2.5, 0.1, 4.0],
    "rate": [1e-5, 0.3, 0.012345678901234567],
    "drop": [0.1, 0.3, 0.7],
    "depth": [3, 4, 9],
    "width": [1, 77, 512],
    "batch": [10, 30, 90],
    "kind": ["rbf", None, True, 1, 2.5, math.nan],
    "size": [1, 2.5, 10],
    "one": ["alone"],
    "fixed": [7],
    "narrow": [2.0],
}


def _identical(a: object, b: object) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def test_values_come_back_as_they_were() -> None:
    longest = max(map(len, VALUES.values()))
    for i in range(longest):
        values = {name: some[i % len(some)] for name, some in VALUES.items()}
        again = SPACE.params(SPACE.point(values))
        assert list(again) == list(PARAMETERS)
        assert all(_identical(again[name], values[name]) for name in values), (values, again)
        assert SPACE.contains(values)


def test_every_point_is_that_of_its_values() -> None:
    X = SPACE.sample(200, seed=3)
    for x in X:
        values = SPACE.params(x)
        assert SPACE.contains(values)
        assert torch.equal(SPACE.point(values), x)
        assert 0.1 <= values["drop"] <= 0.75
        assert values["batch"] in (10, 30, 50, 70, 90)
        assert values["one"] == "alone" and values["fixed"] == 7 and values["narrow"] == 2.0
        assert all(type(value) in (int, float, str, bool, type(None)) for value in values.values())


def test_columns_are_in_the_units_of_their_parameters() -> None:
    names = ["share", "rate", "drop", "depth", "width", "batch", "kind", "size"]
    assert list(SPACE.names) == names
    lower = [-2.5, 1e-5, 0.1, 3, 1, 10, 0, 0]
    upper = [4.0, 0.3, 0.7, 9, 512, 90, 5, 2]
    assert SPACE.bounds.tolist() == [lower, upper]
    assert SPACE.integer == (3, 4, 7)
    assert SPACE.steps == {2: 0.1, 5: 20.0}
    assert SPACE.log == (1, 4)
    assert SPACE.categories == {6: (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)}


def test_numbers_of_another_type_are_the_same_choice() -> None:
    space = Space({"a": Choice((1, 2)), "b": Integer(0, 5), "c": Real(0.0, 1.0)})
    values = space.params(space.point({"a": 2.0, "b": 3.0, "c": 1}))
    assert values == {"a": 2, "b": 3, "c": 1.0}
    assert [type(value) for value in values.values()] == [int, int, float]


def test_a_list_is_the_tuple_that_became_one_in_json() -> None:
    choices = ((1, 2), (1.0, 2), ("a", (None, math.nan)), "a")
    space = Space({"kind": Choice(choices)})
    for number, value in enumerate(([1, 2], [1.0, 2], ["a", [None, math.nan]], "a")):
        point = space.point({"kind": value})
        assert point.tolist() == [number] and space.params(point)["kind"] is choices[number]
    for value in ([1, True], [1, 2, 3], ["a"], []):
        assert not space.contains({"kind": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share", 4.1),
        ("share", math.nan),
        ("share", "1"),
        ("share", True),
        ("rate", 0.0),
        ("drop", 0.15),
        ("drop", 0.8),
        ("depth", 3.5),
        ("depth", 10),
        ("depth", True),
        ("batch", 20),
        ("kind", "linear"),
        ("kind", False),
        ("size", 2),
        ("one", "other"),
        ("fixed", 8),
        ("narrow", 2.1),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: object) -> None:
    values = {each: some[0] for each, some in VALUES.items()} | {name: value}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got "):
        SPACE.point(values)
    assert not SPACE.contains(values)


def test_missing_and_unknown_values_are_refused_by_name() -> None:
    values = {name: some[0] for name, some in VALUES.items()}
    with pytest.raises(
        ValueError, match=r"params must only have names of \['share'.*, got 'other'"
    ):
        SPACE.point(values | {"other": 1})
    del values["one"], values["fixed"]  # there is one value
    assert SPACE.contains(values)
    del values["depth"]
    with pytest.raises(ValueError, match="params must have depth"):
        SPACE.point(values)


def test_constraints_hold_for_values() -> None:
    parameters = {
        "a": Real(0.5, 2.0, step=0.25),
        "b": Integer(2, 20, step=3),
        "c": Real(0.1, 5.0, log=True),
        "d": Fixed(1.5),
        "e": Choice(("x", "y")),
    }
    weights, bound = {"a": 2.0, "b": -0.5, "c": 1.0, "d": 1.0}, 1.2
    space = Space(parameters, constraints=[(weights, bound), ({"a": 1.0, "b": 1.0}, 18.0)])

    def holds(values: dict) -> bool:
        first = sum(weight * values[name] for name, weight in weights.items()) <= bound
        return first and values["a"] + values["b"] <= 18.0

    grid = [0.5 + 0.25 * k for k in range(7)], range(2, 21, 3), [0.1, 1.0, 3.3], [1.5], ["x"]
    held = 0
    for each in itertools.product(*grid):
        values = dict(zip(parameters, each, strict=True))
        assert space.contains(values) == holds(values)
        held += holds(values)
    assert 0 < held < 7 * 7 * 3
    assert all(holds(space.params(x)) for x in space.sample(100, seed=1))


@pytest.mark.parametrize(
    ("parameters", "constraints", "message"),
    [
        ({}, [], "parameters must include one that has two values or more, got"),
        ({"a": Fixed(1)}, [], "parameters must include one that has two values or more, got"),
        (
            {"a": Real(0, 1)},
            [({"b": 1.0}, 1.0)],
            r"constraints must only have names of \['a'\], got 'b'",
        ),
        ({"a": Choice((1, 2))}, [({"a": 1.0}, 1.0)], "a must be a range of numbers to be in a"),
        ({"a": Ordered((1, 2))}, [({"a": 1.0}, 1.0)], "a must be a range of numbers to be in a"),
        ({"a": Real(0, 1)}, [({"a": 1.0}, -1.0)], "constraints must leave a feasible point"),
        (
            {"a": Real(0, 1), "b": Fixed(3)},
            [({"b": 1.0}, 2.0)],
            "constraints must leave a feasible point, got",
        ),
    ],
)
def test_an_impossible_space_is_refused(parameters, constraints, message) -> None:
    with pytest.raises(ValueError, match=message):
        Space(parameters, constraints=constraints)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(1.0, 0.0), "low must be at most high, both finite, got 1.0 and 0.0"),
        (lambda: Real(0.0, math.inf), "low must be at most high, both finite"),
        (lambda: Real(0.0, 1.0, log=True), "low must be above 0 on a logarithmic scale"),
        (
            lambda: Real(0.1, 2.0, log=True, step=0.2),
            "step must give steps below twice low on a log",
        ),
        (lambda: Real(1.0, 2.0, step=0.0), "step must be positive and finite, got 0.0"),
        (lambda: Integer(1.5, 3), r"low must be a whole number up to 2\^53, got 1.5"),
        (lambda: Integer(0, 2**54), r"high must be a whole number up to 2\^53"),
        (lambda: Integer(1, 8, log=True, step=2), "step must be below twice low on a logarithmic"),
        (lambda: Choice(()), "values must have at least one entry, got none"),
        (lambda: Choice(("a", "b", "a")), "values must differ from each other, got 'a' twice"),
        (lambda: Ordered((1, 3, 2)), "values must be in ascending order"),
        (lambda: Ordered((1, "a")), "values must be one number, got 'a'"),
    ],
)
def test_an_impossible_parameter_is_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_names_may_have_an_order() -> None:
    space = Space({"grade": Ordered(("low", "middle", "high"))})
    assert space.integer == (0,) and not space.categories
    assert space.params(space.point({"grade": "middle"})) == {"grade": "middle"}


# --- conditions -----------------------------------------------------------------------------------

TREE = {
    "rate": Real(1e-4, 1.0, log=True),
    "model": Choice(("linear", "forest", "boosting")),
    "depth": Integer(1, 9),
    "size": Ordered((0.1, 0.5, 2.0)),
    "alone": Choice(("here",)),
    "share": Real(0.0, 1.0),
    "tail": Fixed(2.0),
    "booster": Choice(("gbtree", "dart")),
}
CONDITIONS = {
    "depth": ("model", ["forest", "boosting"]),
    "rate": ("booster", ["dart"]),
    "booster": ("model", ["boosting"]),
    "share": ("alone", ["here"]),
    "tail": ("size", [0.1, 2.0]),
    "alone": ("size", [0.5, 2.0]),
}
FOREST = Space(TREE, conditions=CONDITIONS)


def _counts(name: str, values: dict[str, object]) -> bool:
    """The definition."""
    if name not in CONDITIONS:
        return True
    parent, allowed = CONDITIONS[name]
    return _counts(parent, values) and values[parent] in allowed


def test_values_of_a_tree_are_those_that_count() -> None:
    flat = Space(TREE)
    assert FOREST.names == flat.names == ("rate", "model", "depth", "size", "share", "booster")
    for x in flat.sample(200, seed=1):
        values = flat.params(x)
        expected = {name: value for name, value in values.items() if _counts(name, values)}
        point = FOREST.point(values)  # what does not count may be there
        assert FOREST.params(point) == FOREST.params(x) == expected
        assert bool((FOREST.point(expected) == point).all())


def test_what_counts_must_be_there_and_what_does_not_may_be_anything() -> None:
    values = {"model": "linear", "size": 0.1}
    assert FOREST.params(FOREST.point(values)) == values | {"tail": 2.0}
    assert FOREST.contains(values | {"depth": "deep", "rate": -3.0})
    for more in ({"model": "forest"}, {"model": "boosting", "depth": 1}, {"size": 0.5}):
        with pytest.raises(ValueError, match=r"params must have (depth|booster|share)"):
            FOREST.point(values | more)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"deep": ("model", ["forest"])}, "conditions must only have names of .*got 'deep'"),
        ({"depth": ("made", ["forest"])}, "conditions must only have names of .*got 'made'"),
        ({"depth": ("model", ["forrest"])}, "condition of depth: model must be one of .*'forrest'"),
        ({"depth": ("share", [0.5])}, "condition of depth: share must be a choice or .*whole"),
        (
            {"depth": "model"},
            "condition of depth must be the name of a parent and a list of its values",
        ),
        ({"depth": ("model", "forest")}, "condition of depth must be the name .*'forest'"),
        ({"model": ("booster", ["dart"]), "booster": ("model", ["linear"])}, "must be trees"),
    ],
)
def test_an_impossible_condition_is_refused(conditions, message) -> None:
    with pytest.raises(ValueError, match=message):
        Space(TREE, conditions=conditions)


def test_a_constraint_of_what_may_not_count_is_refused() -> None:
    always = {"rate": ("model", ["linear"]), "share": ("alone", ["here"])}
    Space(TREE, constraints=[({"depth": 1.0, "share": 1.0}, 5.0)], conditions=always)
    for name in ("depth", "tail", "share"):
        with pytest.raises(
            ValueError, match=f"{name} must have no condition to be in a constraint"
        ):
            Space(TREE, constraints=[({name: 1.0}, 5.0)], conditions=CONDITIONS)
