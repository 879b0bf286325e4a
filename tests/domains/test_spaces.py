"""Spaces of named parameters: round trips of values, points and texts, on drawn spaces."""

import ast
import copy
import itertools
import math
import pickle
import random
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.domains.outside_points import outside_point, params_outside
from botorch_ext.domains.written_constraints import of_text, written
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.parameters import Fixed, Ordered
from tests.domains.drawn_spaces import a_space

NAMES = {
    **{name: getattr(bx, name) for name in ("Space", "Real", "Integer", "Choice")},
    "Fixed": Fixed,
    "Ordered": Ordered,
}


def is_same(a: object, b: object) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def counts(name, space, params):
    """The definition, of a tree of one condition on the first value of a choice."""
    if name not in space.named_conditions:
        return True
    parent, (first,) = space.named_conditions[name]
    return is_same(params[parent], first)


seeds = st.integers(0, 10**6)


@given(seeds, st.sampled_from([torch.float64, torch.float32]))
def test_points_and_values_go_into_each_other_exactly(seed, dtype):
    space = a_space(seed, dtype)
    for x in space.sample(4, seed):
        params = space.params(x)
        assert torch.equal(space.point(params), x)
        again = space.params(space.point(params))
        assert all(is_same(again[name], value) for name, value in params.items())
        assert torch.equal(space.require_contains([params, params]), x.expand(2, -1))
        assert bool(space.contains(params))
        assert list(params) == [name for name in space.parameters if counts(name, space, params)]
        for name, value in params.items():
            parameter = space.parameters[name]
            assert type(value) in (int, float, str, bool, type(None))
            if isinstance(parameter, bx.Integer):
                assert type(value) is int and (value - parameter.low) % parameter.step == 0
            elif isinstance(parameter, bx.Real):
                assert type(value) is float and parameter.low <= value <= parameter.high
                if parameter.spacing is not None and parameter.digits is None:
                    steps = (value - parameter.low) / parameter.spacing
                    assert steps == pytest.approx(round(steps), abs=1e-6)
                if parameter.digits is not None:
                    assert value == round(value, parameter.digits)
            elif isinstance(parameter, bx.Choice):
                assert any(is_same(value, each) for each in parameter.values)
        for text in space._texts:
            left, bound = text.split("<=")
            assert eval(left, {}, params) <= float(bound) + 1e-4 * (1 + abs(float(bound)))


@given(seeds)
def test_a_space_is_the_box_of_its_columns_and_its_repr_the_same_space(seed):
    space = a_space(seed)
    box = space.without_names()
    assert type(box) is bx.Box and isinstance(space, bx.Box)
    assert len(space.names) == space.dim == box.dim
    assert torch.equal(space.sample(10, 1), box.sample(10, 1))
    text = repr(space).replace("nan", "math.nan")
    again = eval(text, {**NAMES, "math": math})
    for other in (again, copy.deepcopy(space), pickle.loads(pickle.dumps(space)), space.to()):
        assert repr(other) == repr(space) and torch.equal(other.bounds, space.bounds)
        assert torch.equal(other.sample(5, 2), space.sample(5, 2))
    single = space.to(torch.float32)
    assert isinstance(single, bx.Space) and single.dtype == torch.float32
    assert single.names == space.names and repr(single) == repr(space)


numbers = st.floats(-1e9, 1e9).filter(lambda number: abs(number) > 1e-9)


@given(st.lists(numbers, min_size=2, max_size=2), numbers)
def test_the_repr_of_matrix_constraints_has_all_digits(row, slack):
    bound = sum(max(0.0, a) for a in row) - abs(slack) * 1e-12
    space = bx.Space(a=bx.Real(0, 1), b=bx.Real(0, 1), constraints=([row], [bound]))
    again = eval(repr(space), dict(NAMES))
    for one, other in zip(again.constraints, space.constraints, strict=True):
        assert torch.equal(one, other)
    assert repr(again) == repr(space)


@given(seeds)
def test_a_wrong_value_is_refused_by_the_name_of_its_parameter(seed):
    space = a_space(seed)
    params = space.params(space.sample(1, seed)[0])
    for name in params:
        for wrong in ("no such", [1], 1e9):
            with pytest.raises(OutsideDomainError, match=rf"^{name} must be .*, got .* in params$"):
                space.point(params | {name: wrong})
            assert not bool(space.contains(params | {name: wrong}))
    x = space.point(params)
    for j, name in enumerate(space.names):
        if bool(space.active(x)[j]):
            X = torch.stack([x, x])
            X[1, j] = float(space.upper[j]) + 1.5
            with pytest.raises(OutsideDomainError, match=rf"^{name} must be .*, got .* in mine$"):
                space.require_contains(X, "mine")


# --- one parameter of each kind -------------------------------------------------------------------

SPACE = bx.Space(
    share=bx.Real(-2.5, 4.0),
    rate=bx.Real(1e-5, 0.3, log=True, unit="mol/l"),
    drop=bx.Real(0.1, 0.75, step=0.1),
    depth=bx.Integer(3, 9),
    width=bx.Integer(1, 512, log=True),
    batch=bx.Integer(10, 95, step=20),
    kind=bx.Choice(("rbf", None, True, 1, 2.5, math.nan)),
    size=Ordered((1, 2.5, 10)),
    one=bx.Choice(("alone",)),
    fixed=Fixed(7),
    narrow=bx.Real(2.0, 2.0),
)
VALUES = {
    "share": 0.1,
    "rate": 0.3,
    "drop": 0.7,
    "depth": 4,
    "width": 77,
    "batch": 30,
    "kind": True,
    "size": 2.5,
    "one": "alone",
    "fixed": 7,
    "narrow": 2.0,
}


def test_columns_are_in_the_units_of_their_parameters():
    assert list(SPACE.names) == [*VALUES][:8]
    lower = [-2.5, 1e-5, 0.1, 3, 1, 10, 0, 0]
    upper = [4.0, 0.3, 0.7, 9, 512, 90, 5, 2]
    assert SPACE.bounds.tolist() == [lower, upper]
    assert SPACE.integer == (3, 4, 7)
    assert SPACE.steps == {2: 0.1, 5: 20.0}
    assert SPACE.log == (1, 4)
    assert SPACE.categories == {6: (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)}
    assert [*SPACE.units.values()][:3] == [None, "mol/l", None]
    assert SPACE.params(SPACE.point(VALUES)) == VALUES


def test_values_of_another_type_are_the_same_choice():
    space = bx.Space(a=bx.Choice((1, 2)), b=bx.Integer(0, 5), c=bx.Real(0.0, 1.0))
    values = space.params(space.point({"a": 2.0, "b": 3.0, "c": 1}))
    assert values == {"a": 2, "b": 3, "c": 1.0}
    assert [type(value) for value in values.values()] == [int, int, float]
    # A list is the tuple that became one in JSON.
    choices = ((1, 2), (1.0, 2), ("a", (None, math.nan)), "a")
    space = bx.Space(kind=bx.Choice(choices))
    for number, value in enumerate(([1, 2], [1.0, 2], ["a", [None, math.nan]], "a")):
        point = space.point({"kind": value})
        assert point.tolist() == [number] and space.params(point)["kind"] is choices[number]
    for value in ([1, True], [1, 2, 3], ["a"], []):
        assert not space.contains({"kind": value})


REFUSED = [
    *(("share", math.nan), ("share", True), ("rate", 0.0), ("drop", 0.15), ("drop", 0.8)),
    *(("depth", 3.5), ("depth", 10), ("depth", True), ("batch", 20), ("kind", False), ("size", 2)),
    *(("one", "other"), ("fixed", 8), ("narrow", 2.1)),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_value_that_a_parameter_does_not_have_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got "):
        SPACE.point(VALUES | {name: value})
    assert not SPACE.contains(VALUES | {name: value})


def test_missing_and_unknown_values_are_refused_by_name():
    with pytest.raises(ValueError, match=r"params must .*'other'"):
        SPACE.point(VALUES | {"other": 1})
    values = {name: value for name, value in VALUES.items() if name not in ("one", "fixed")}
    assert SPACE.contains(values)  # there is one value
    del values["depth"]
    with pytest.raises(ValueError, match="params must have depth"):
        SPACE.point(values)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: bx.Space(), "parameters"),
        (lambda: bx.Space(a=(0, 1)), "a"),
        (lambda: bx.Space({"a": bx.Real(0, 1)}, a=bx.Real(0, 1)), "parameters"),
        (lambda: bx.Space({"": bx.Real(0, 1)}), "names of parameters"),
        (lambda: bx.Real(1.0, 0.0), "low"),
        (lambda: bx.Real(0.0, 1.0, log=True), "low"),
        (lambda: bx.Real(20, 80, unit=3), "unit"),
        (lambda: bx.Real(20, 80, digits=1, step=0.1), "digits"),
        (lambda: bx.Real(20, 80, digits=16), "digits"),
        (lambda: bx.Real(0.01, 0.09, digits=1), "digits"),
        (lambda: bx.Real(0.1, 2.0, log=True, step=0.2), "step"),
        (lambda: bx.Integer(0, 2**54), "high"),
        (lambda: bx.Integer(1, 8, log=True, step=2), "step"),
        (lambda: Ordered((1, 3, 2)), "values"),
        (lambda: bx.Choice({"a": [1, 2], "b": [1]}), "descriptors of 'b'"),
        (lambda: bx.Choice({"a": [1], "b": [math.nan]}), "descriptors of 'b'"),
        (lambda: bx.Choice({"a": [1, 3], "b": [0, 3], "c": [1, 3]}), "descriptors of 'c'"),
        (lambda: bx.Choice({"a": [1, 3], "b": [1, 3]}), "descriptors of 'b'"),
        (lambda: bx.Choice(["a", "b"], [[1]]), "descriptors"),
    ],
)
def test_an_impossible_space_is_refused_by_name(make, named):
    with pytest.raises(ValueError, match=rf"^{named}:? must "):
        make()


# --- conditions -----------------------------------------------------------------------------------

TREE = {
    "rate": bx.Real(1e-4, 1.0, log=True),
    "model": bx.Choice(("linear", "forest", "boosting")),
    "depth": bx.Integer(1, 9),
    "size": Ordered((0.1, 0.5, 2.0)),
    "alone": bx.Choice(("here",)),
    "share": bx.Real(0.0, 1.0),
    "tail": Fixed(2.0),
    "booster": bx.Choice(("gbtree", "dart")),
}
CONDITIONS = {
    "depth": ("model", ["forest", "boosting"]),
    "rate": ("booster", ["dart"]),
    "booster": ("model", ["boosting"]),
    "share": ("alone", ["here"]),
    "tail": ("size", [0.1, 2.0]),
    "alone": ("size", [0.5, 2.0]),
}
FOREST = bx.Space(TREE, conditions=CONDITIONS)


def counts_in_tree(name, values):
    if name not in CONDITIONS:
        return True
    parent, allowed = CONDITIONS[name]
    return counts_in_tree(parent, values) and values[parent] in allowed


def test_values_of_a_tree_are_those_that_count():
    flat = bx.Space(TREE)
    assert FOREST.names == flat.names == ("rate", "model", "depth", "size", "share", "booster")
    for x in flat.sample(100, seed=1):
        values = flat.params(x)
        expected = {name: v for name, v in values.items() if counts_in_tree(name, values)}
        point = FOREST.point(values)  # what does not count may be there
        assert FOREST.params(point) == FOREST.params(x) == expected
        assert bool((FOREST.point(expected) == point).all())


def test_what_counts_must_be_there_and_what_does_not_may_be_anything():
    values = {"model": "linear", "size": 0.1}
    assert FOREST.params(FOREST.point(values)) == values | {"tail": 2.0}
    assert FOREST.contains(values | {"depth": "deep", "rate": -3.0})
    for more in ({"model": "forest"}, {"model": "boosting", "depth": 1}, {"size": 0.5}):
        with pytest.raises(ValueError, match=r"params must have (depth|booster|share)"):
            FOREST.point(values | more)


NO_CONDITIONS = [
    ({"deep": ("model", ["forest"])}, "'deep'"),
    ({"depth": ("made", ["forest"])}, "'made'"),
    *(
        ({"depth": pair}, "condition of depth")
        for pair in (("model", ["forrest"]), ("share", [0.5]))
    ),
    ({"depth": ("model", "forest")}, "condition of depth"),
    ({"model": ("booster", ["dart"]), "booster": ("model", ["linear"])}, "conditions"),
]


def test_impossible_conditions_are_refused():
    for conditions, named in NO_CONDITIONS:
        with pytest.raises(ValueError, match=named):
            bx.Space(TREE, conditions=conditions)
    always = {"rate": ("model", ["linear"]), "share": ("alone", ["here"])}
    bx.Space(TREE, constraints=[({"depth": 1.0, "share": 1.0}, 5.0)], conditions=always)
    for name in ("depth", "tail", "share"):
        with pytest.raises(ValueError, match=f"{name} must have no condition"):
            bx.Space(TREE, constraints=[({name: 1.0}, 5.0)], conditions=CONDITIONS)


# --- constraints ----------------------------------------------------------------------------------


def test_constraints_hold_for_values_of_parameters_with_steps_and_one_value():
    a, b = [0.5 + 0.25 * k for k in range(7)], range(2, 21, 3)
    c, e = bx.Real(0.1, 5.0, log=True), bx.Choice(("x", "y"))
    parameters = {"a": bx.Real(0.5, 2.0, step=0.25), "b": bx.Integer(2, 20, step=3), "c": c}
    parameters |= {"d": Fixed(1.5), "e": e}
    rows = [({"a": 2.0, "b": -0.5, "c": 1.0, "d": 1.0}, 1.2), ({"a": 1.0, "b": 1.0}, 18.0)]
    space = bx.Space(parameters, constraints=rows)

    def holds(values):
        return all(sum(w * values[name] for name, w in row.items()) <= most for row, most in rows)

    grid = itertools.product(a, b, [0.1, 1.0, 3.3], [1.5], ["x"])
    points = [dict(zip(parameters, each, strict=True)) for each in grid]
    expected = [holds(values) for values in points]
    assert [bool(space.contains(values)) for values in points] == expected
    assert {*expected} == {True, False}
    assert all(holds(space.params(x)) for x in space.sample(50, seed=1))
    for name, constraint in (("e", {"e": 1.0}), ("constraints", {"d": 1.0})):
        with pytest.raises(ValueError, match=f"^{name} must "):
            bx.Space(parameters, constraints=[(constraint, 1.0)])


def a_sum(draw: random.Random, depth: int = 3) -> str:
    number = str(draw.choice((0, 2, 0.5, 1e-3, 3.25)))
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(("a", "b", "c", number))
    inner = a_sum(draw, depth - 1)
    return draw.choice(
        (
            f"{inner} + {a_sum(draw, depth - 1)}",
            f"{inner} - ({a_sum(draw, depth - 1)})",
            f"-({inner})",
            f"{number} * ({inner})",
            f"({inner}) / {draw.choice((4, 0.5, -2))}",
        )
    )


@given(seeds)
def test_a_text_holds_where_python_says_so(seed):
    draw = random.Random(seed)
    text = f"{a_sum(draw)} {draw.choice(('<=', '>='))} {a_sum(draw)}"
    text += " <= 7" if seed % 4 == 0 else ""
    pairs = list(of_text(text, ("a", "b", "c")))
    for _ in range(30):
        values = {name: draw.randint(-40, 40) / 8 for name in "abc"}
        gaps = [sum(w * values[n] for n, w in weights.items()) - bound for weights, bound in pairs]
        if all(abs(gap) > 1e-9 for gap in gaps):
            assert all(gap <= 0 for gap in gaps) == eval(text, {}, values)
    names = {name: f"{name} [{name}/s]" for name in "abc"}
    quoted = re.sub("[abc]", lambda found: f"`{names[found[0]]}`", text)
    assert list(of_text(quoted, names.values())) == [
        ({names[name]: weight for name, weight in weights.items()}, bound)
        for weights, bound in pairs
    ]


@given(st.lists(numbers, min_size=3, max_size=3), numbers)
def test_a_constraint_is_read_as_it_was_written(weights, bound):
    names = ("reaction time", "lambda", "temperature")
    pair = dict(zip(names, weights, strict=True)), bound
    assert list(of_text(written(*pair), names)) == [pair]
    assert written({"lambda": 1.0, "a b": -2.0}, 60.0) == "`lambda` + -2 * `a b` <= 60"


NO_CONSTRAINTS = [
    *("a == b", "a < b", "a * b < 1", "a ** 2 == 1", "sin(a) <= 1", "a / 0 <= 1", "abs(a, b) <= 1"),
    *("__import__('os').system('true') <= 1", "a.b <= 1", "True <= a", "'a' <= 1", "a + b", ""),
    *("a b <= 1", "`a <= 1", "`a b` <= 1", "a + temp <= 1", "1e308 * 10 * a <= 1"),
    "(" * 5000 + "a" + ")" * 5000 + " <= 1",
]


@pytest.mark.parametrize("text", NO_CONSTRAINTS)
def test_a_text_that_is_no_linear_constraint_is_refused(text):
    given = {"a": bx.Real(0, 1), "b": bx.Real(0, 1), "temperature": bx.Real(20, 80)}
    with pytest.raises(ValueError, match="constraints must "):
        bx.Space(given, constraints=[text])


def test_forms_of_constraints():
    given = {"a": bx.Real(0, 1), "b": bx.Integer(1, 4), "one": bx.Choice(["x"])}
    for form in (
        "a + 0.5 * b <= 2",
        ["a + 0.5 * b <= 2"],
        [({"a": 1, "b": 0.5}, 2)],
        ([[1, 0.5]], [2]),
        (torch.tensor([[1, 0.5]]).double(), torch.tensor([2.0]).double()),
    ):
        A, b = bx.Space(given, constraints=form).constraints
        assert A.tolist() == [[1.0, 0.5]] and b.tolist() == [2.0]
    between = bx.Space(given, constraints="0.25 <= a <= 0.5")
    assert between.constraints[0].tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    assert between.constraints[1].tolist() == [-0.25, 0.5]
    for wrong in (3, [3], [["a"]], {"a": 1}):
        with pytest.raises(ValueError, match="constraints must be texts"):
            bx.Space(given, constraints=wrong)


# --- points outside -------------------------------------------------------------------------------


@given(seeds)
def test_points_outside_keep_their_numbers(seed):
    space = a_space(seed)
    params = space.params(space.sample(1, seed)[0])
    if space.conditions:
        with pytest.raises(OutsideDomainError, match="x must "):
            outside_point(space, params)
        return
    for j, name in enumerate(space.names):
        parameter = space.parameters[name]
        if isinstance(parameter, bx.Real | bx.Integer):
            far = params | {name: float(space.upper[j]) + 0.3712}
            x = outside_point(space, far)
            assert params_outside(space, x) == pytest.approx(far, nan_ok=True)
            if isinstance(parameter, bx.Real) and parameter.spacing is None:
                assert float(x[j]) == far[name]
            below = 0.0 if parameter.log else math.inf
            with pytest.raises(ValueError, match=f"{name} must "):
                outside_point(space, params | {name: below})
        elif type(parameter) is bx.Choice:
            with pytest.raises(OutsideDomainError, match=f"{name} must "):
                outside_point(space, params | {name: "no such"})
    with pytest.raises(ValueError, match="x must have last"):
        outside_point(space, {name: value for name, value in params.items() if name != "last"})


# --- descriptors of choices -----------------------------------------------------------------------

SOLVENTS = {
    "water": [80.1, 1.0, 5],
    "dmso": [46.7, 1.1, 5],
    "thf": [7.6, 0.9, 5],
    "a": [2, 0.66, 5],
}


def test_choices_are_as_far_apart_as_their_standardised_descriptors():
    space = bx.Space(time=bx.Real(1, 9, log=True), solvent=bx.Choice(SOLVENTS))
    X = torch.stack([space.point({"time": 3, "solvent": name}) for name in SOLVENTS])
    features = Inputs(space).features(X)
    assert features.shape == (4, 3)  # one descriptor is the same for all
    assert Inputs(space).groups.tolist() == [0, 1, 1]
    table = np.array([*SOLVENTS.values()])[:, :2]
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    expected = np.linalg.norm(table[:, None] - table[None], axis=-1)
    found = torch.cdist(features, features)
    assert_close(found, torch.as_tensor(expected / expected.max()), rtol=0, atol=1e-12)
    without = Inputs(bx.Space(time=bx.Real(1, 9, log=True), solvent=bx.Choice([*SOLVENTS])))
    equal = torch.cdist(*(2 * [without.features(X)]))
    assert_close(equal, 1 - torch.eye(4).double())
    text = repr(space.parameters["solvent"])
    assert ast.literal_eval(text.removeprefix("Choice(").removesuffix(")")) == SOLVENTS
