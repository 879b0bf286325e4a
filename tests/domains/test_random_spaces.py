"""Random spaces of named parameters: points and values go into each other exactly."""

import copy
import math
import pickle
import random
import re

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.domains.choices import Fixed, Ordered
from botorch_ext.domains.written_constraints import of_text, written
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.hyperparameters.inputs import Inputs

WORDS = ("water", "ethanol", "dmso", "thf", "none")


def a_parameter(draw: random.Random):
    low = round(draw.uniform(-50, 50), draw.randint(0, 3))
    positive = round(draw.uniform(0.01, 5), 3)
    kinds = [
        lambda: bx.Real(low, low + draw.uniform(0.1, 90)),
        lambda: bx.Real(positive, positive * draw.uniform(2, 1e4), log=True, unit="mol/l"),
        lambda: bx.Real(low, low + draw.uniform(1, 90), digits=draw.randint(0, 3), unit="°C"),
        lambda: bx.Real(low, low + draw.uniform(1, 9), step=draw.choice((0.1, 0.25, 0.3, 1 / 3))),
        lambda: bx.Real(1, draw.randint(2, 40), log=True, step=0.5),
        lambda: bx.Integer(round(low), round(low) + draw.randint(1, 30)),
        lambda: bx.Integer(1, draw.randint(2, 500), log=True),
        lambda: bx.Integer(round(low), round(low) + draw.randint(3, 99), step=draw.randint(2, 3)),
        lambda: bx.Choice(WORDS[: draw.randint(1, 5)]),
        lambda: bx.Choice([1, 2.5, True, None, "1"][: draw.randint(2, 5)]),
        lambda: Ordered((0.1, 1, 5)),
        lambda: bx.Choice({word: [len(word), i] for i, word in enumerate(WORDS)}),
        lambda: Fixed(7),
    ]
    return draw.choice(kinds)()


def a_space(seed: int, dtype: torch.dtype = torch.float64) -> bx.Space:
    """Of up to 7 parameters, with a tree and a constraint where there can be any."""
    draw = random.Random(seed)
    parameters = {f"p{i}": a_parameter(draw) for i in range(draw.randint(1, 7))}
    parameters["last"] = bx.Real(-1, 1)
    choices = [name for name, each in parameters.items() if type(each) is bx.Choice]
    conditions, free = {}, list(parameters)
    if choices and draw.random() < 0.7:
        child = draw.choice([name for name in parameters if name != choices[0]])
        conditions = {child: (choices[0], parameters[choices[0]].values[:1])}
        free.remove(child)
    lines = [name for name in free if isinstance(parameters[name], bx.Real | bx.Integer)]
    constraints = []
    if len(lines) > 1 and draw.random() < 0.7:
        a, b = parameters[lines[0]], parameters[lines[1]]
        weight = round(draw.uniform(-3, 3), 2)
        top = a.ends[1] + max(weight * end for end in b.ends)
        least = a.ends[0] + min(weight * end for end in b.ends)
        bound = least + draw.uniform(0.3, 0.9) * (top - least)
        constraints = [f"{lines[0]} + {weight} * {lines[1]} <= {bound!r}"]
    return bx.Space(parameters, constraints=constraints, conditions=conditions, dtype=dtype)


def counts(name, space, params):
    """The definition, of a tree of one condition on the first value of a choice."""
    if name not in space.named_conditions:
        return True
    parent, (first,) = space.named_conditions[name]
    return type(params[parent]) is type(first) and params[parent] == first


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(60))
def test_points_and_values_go_into_each_other_exactly(seed, dtype):
    space = a_space(seed, dtype)
    for x in space.sample(40, seed):
        params = space.params(x)
        assert torch.equal(space.point(params), x)
        assert space.params(space.point(params)) == params
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
                if parameter.digits is not None:
                    assert value == round(value, parameter.digits)
        for text in space._texts:
            left, bound = text.split("<=")
            assert eval(left, {}, params) <= float(bound) + 1e-4 * (1 + abs(float(bound)))


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_space_is_the_box_of_its_columns(seed):
    space = a_space(seed)
    box = space.without_names()
    assert type(box) is bx.Box and isinstance(space, bx.Box)
    assert len(space.names) == space.dim == box.dim
    assert torch.equal(space.sample(30, 1), box.sample(30, 1))
    again = eval(
        repr(space),
        {
            **vars(bx),
            "Space": bx.Space,
            "Real": bx.Real,
            "Fixed": Fixed,
            "Integer": bx.Integer,
            "Choice": bx.Choice,
            "Ordered": Ordered,
        },
    )
    for other in (again, copy.deepcopy(space), pickle.loads(pickle.dumps(space)), space.to()):
        assert repr(other) == repr(space) and torch.equal(other.bounds, space.bounds)
        assert torch.equal(other.sample(5, 2), space.sample(5, 2))
    single = space.to(torch.float32)
    assert isinstance(single, bx.Space) and single.dtype == torch.float32
    assert single.names == space.names and repr(single) == repr(space)


@pytest.mark.parametrize("seed", range(30))
def test_a_wrong_value_is_refused_by_the_name_of_its_parameter(seed):
    space = a_space(seed)
    params = space.params(space.sample(1, seed)[0])
    for name in params:
        for wrong in ("no such", math.nan, math.inf, [1], 1e9):
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


# --- constraints as texts -------------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(100))
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


def test_a_constraint_of_names_that_need_backticks_is_written_as_it_is_read():
    pair = {"reaction time": 0.5, "lambda": 1.0, "temperature": -2.0}, 60.0
    text = written(*pair)
    assert text == "0.5 * `reaction time` + `lambda` + -2 * temperature <= 60"
    assert list(of_text(text, pair[0])) == [pair]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a == b", "constraints must not be equalities, got 'a == b': leave one"),
        ("a < b", "constraints must be sums of parameters .*, got 'a < b'"),
        ("a * b <= 1", r"got 'a \* b <= 1': 'a \* b' is no such sum"),
        ("a ** 2 <= 1", "is no such sum"),
        ("1 / a <= 1", "is no such sum"),
        ("a / 0 <= 1", "got 'a / 0 <= 1': .*division"),
        ("abs(a) <= 1", r"'abs\(a\)' is no such sum"),
        ("__import__('os').system('true') <= 1", "is no such sum"),
        ("a.b <= 1", "'a.b' is no such sum"),
        ("True <= a", "'True' is no such sum"),
        ("'a' <= 1", "is no such sum"),
        ("a + b", "there is no comparison"),
        ("a = 1", "it cannot be parsed"),
        ("a b <= 1", "backticks around names that have blanks, .* got 'a b <= 1': it cannot be"),
        ("`a <= 1", "it cannot be parsed"),
        ("`a b` <= 1", "constraints must only have names of .*, got 'a b'"),
        ("a <= 1; b <= 2", "it cannot be parsed"),
        ("", "it cannot be parsed"),
        ("(" * 5000 + "a" + ")" * 5000 + " <= 1", "constraints must be sums"),
        ("a + " * 20000 + "a <= 1", "constraints must be sums"),
        (
            "a + temp <= 1",
            r"constraints must only have names of \['a', 'b', 'temperature'\], got 'temp'",
        ),
        ("temperatur <= 1", "got 'temperatur'; did you mean 'temperature'"),
        ("1e308 * 10 * a <= 1", "constraints must be finite"),
    ],
)
def test_a_text_that_is_no_linear_constraint_is_refused(text, message):
    given = {"a": bx.Real(0, 1), "b": bx.Real(0, 1), "temperature": bx.Real(20, 80)}
    with pytest.raises(ValueError, match=message):
        bx.Space(given, constraints=[text])


def test_forms_of_constraints():
    given = {"a": bx.Real(0, 1), "b": bx.Integer(1, 4), "one": bx.Choice(["x"])}
    spaces = [
        bx.Space(given, constraints=form)
        for form in (
            "a + 0.5 * b <= 2",
            ["a + 0.5 * b <= 2"],
            [({"a": 1, "b": 0.5}, 2)],
            ([[1, 0.5]], [2]),
            (torch.tensor([[1, 0.5]]).double(), torch.tensor([2.0]).double()),
        )
    ]
    for space in spaces:
        A, b = space.constraints
        assert A.tolist() == [[1.0, 0.5]] and b.tolist() == [2.0]
        with pytest.raises(OutsideDomainError, match=r"a \+ 0\.5 \* b <= 2 must hold, got \{'a'"):
            space.point({"a": 0.5, "b": 4})
    between = bx.Space(given, constraints="0.25 <= a <= 0.5")
    assert between.constraints[0].tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    for wrong in (3, [3], [["a"]], {"a": 1}):
        with pytest.raises(ValueError, match="constraints must be texts"):
            bx.Space(given, constraints=wrong)


# --- descriptors of choices ----------------------------------------------------------------------

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
    found = torch.cdist(features, features).numpy()
    assert np.allclose(found, expected / expected.max(), atol=1e-12)
    without = Inputs(bx.Space(time=bx.Real(1, 9, log=True), solvent=bx.Choice([*SOLVENTS])))
    equal = torch.cdist(*(2 * [without.features(X)]))
    assert torch.allclose(equal, 1 - torch.eye(4).double())
    assert repr(space.parameters["solvent"]).startswith("Choice({'water': [80.1, 1.0, 5.0], ")


def test_a_choice_learns_from_those_with_like_descriptors():
    """Values follow a descriptor: the mean at an unseen choice is near that of its neighbours."""
    names = {f"s{i}": [float(i)] for i in range(12)}
    value = {name: math.sin(0.5 * row[0]) for name, row in names.items()}
    errors = []
    for choice in (bx.Choice(names), bx.Choice([*names])):
        space = bx.Space(solvent=choice, time=bx.Real(0, 1))
        seen = [name for i, name in enumerate(names) if i % 3 != 1]
        X = [{"solvent": name, "time": 0.5} for name in seen for _ in range(2)]
        Y = [value[point["solvent"]] for point in X]
        strategy = bx.algorithms.integrated_ei(space, initial=(X, Y), num_initial=0)
        strategy.ask()
        unseen = [name for name in names if name not in seen]
        at = torch.stack([space.point({"solvent": name, "time": 0.5}) for name in unseen])
        mean, _ = strategy.posterior.mean_and_std(at)
        truth = torch.tensor([value[name] for name in unseen]).double()
        errors.append(float((mean - truth).abs().mean()))
    assert errors[0] < 0.1 < 0.4 < errors[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"a": [1, 2], "b": [1]},
            "descriptors of 'b' must be finite numbers, as many as every other value has",
        ),
        ({"a": [1], "b": [math.nan]}, "descriptors of 'b' must be finite"),
        ({"a": ["x"], "b": [1]}, "descriptors of 'a' must be one number, got 'x'"),
        (
            {"a": [1, 3], "b": [0, 3], "c": [1, 3]},
            "descriptors of 'c' must differ from those of 'a'",
        ),
        ({"a": [3], "b": [3]}, "descriptors of 'b' must differ from those of 'a'"),
    ],
)
def test_impossible_descriptors_are_refused_by_the_value(values, message):
    with pytest.raises(ValueError, match=message):
        bx.Choice(values)
    with pytest.raises(
        ValueError, match="descriptors must be given for each of the 2 values, got 1"
    ):
        bx.Choice(["a", "b"], [[1]])


# --- what is said of spaces -----------------------------------------------------------------------


def test_what_can_be_read_of_a_space():
    space = bx.Space(
        temperature=bx.Real(20, 80, unit="°C", digits=1),
        catalyst=bx.Real(1e-4, 1e-1, log=True, unit="mol/l"),
        equivalents=bx.Integer(1, 5),
        solvent=bx.Choice(["water", "ethanol", "dmso"]),
        constraints=["0.5 * equivalents + temperature <= 60"],
    )
    assert space.names == ("temperature", "catalyst", "equivalents", "solvent")
    assert space.units == {
        "temperature": "°C",
        "catalyst": "mol/l",
        "equivalents": None,
        "solvent": None,
    }
    assert repr(space) == (
        "Space(temperature=Real(20, 80, digits=1, unit='°C'), "
        "catalyst=Real(0.0001, 0.1, log=True, unit='mol/l'), equivalents=Integer(1, 5), "
        "solvent=Choice(['water', 'ethanol', 'dmso']), "
        "constraints=['0.5 * equivalents + temperature <= 60'])"
    )
    assert space.steps == {0: 0.1} and space.integer == (2,) and space.log == (1,)
    assert space.categories == {3: (0.0, 1.0, 2.0)}
    values = {"temperature": 81, "catalyst": 0.01, "equivalents": 2, "solvent": "dmso"}
    message = "temperature must be a number from 20 to 80 in steps of 0.1, got 81 in params"
    with pytest.raises(OutsideDomainError, match=message):
        space.point(values)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bx.Space(), "parameters must include one that has two values"),
        (lambda: bx.Space(a=(0, 1)), r"a must be a bx.Real, bx.Integer or bx.Choice.*got \(0, 1\)"),
        (lambda: bx.Space([bx.Real(0, 1)]), "parameters must be a dict of"),
        (
            lambda: bx.Space({"a": bx.Real(0, 1)}, a=bx.Real(0, 1)),
            "must have each name only once, got 'a'",
        ),
        (lambda: bx.Space({"": bx.Real(0, 1)}), "names of parameters must be non-empty strings"),
        (lambda: bx.Space({1: bx.Real(0, 1)}), "names of parameters must be non-empty strings"),
        (lambda: bx.Real("20", 80), "low must be one number, got '20'"),
        (lambda: bx.Real(20, 80, unit=3), "unit must be a string, got 3"),
        (
            lambda: bx.Real(20, 80, digits=1, step=0.1),
            "digits must be from 0 to 15 and given without st",
        ),
        (lambda: bx.Real(20, 80, digits=-1), "digits must be at least 0, got -1"),
        (lambda: bx.Real(0.01, 0.09, digits=1), "digits must allow a number from 0.01 to 0.09"),
        (lambda: bx.Real(0.01, 9, step=0.5, log=True), "step must give steps below twice low"),
        (lambda: bx.Choice("water"), r"values must be a list, as in \['water', 'ethanol'\]"),
    ],
)
def test_an_impossible_space_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_box_has_the_names_of_its_columns():
    box = bx.Box([(0.0, 1.0), (1, 3), (2.0, 5.0)], integer=[1], conditions={2: (1, [2])})
    assert box.names == ("x0", "x1", "x2")
    assert box.params([0.5, 2, 3.0]) == {"x0": 0.5, "x1": 2.0, "x2": 3.0}
    assert box.params([0.5, 1, 3.0]) == {"x0": 0.5, "x1": 1.0}
    assert box.point({"x0": 0.5, "x1": 1}).tolist() == [0.5, 1.0, 3.5]
    assert box.contains([{"x0": 0.5, "x1": 1}, {"x0": 1.5, "x1": 1}]).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"params must have x1, got values for \['x0'\]"):
        box.point({"x0": 0.5})
    with pytest.raises(
        ValueError, match=r"params must only have names of \['x0', 'x1', 'x2'\], got 'y'"
    ):
        box.point({"y": 0.5})
