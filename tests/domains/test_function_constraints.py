"""Constraints by texts that are not linear and by Python functions, in spaces."""

import math

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.codec import allow_argument, decode, encode
from botorch_ext.domains.written_constraints import Comparison, of_text
from botorch_ext.exceptions import OutsideDomainError

RANGES = {
    "a": bx.Real(20, 120),
    "b": bx.Real(1, 60, log=True, significant=2),
    "n": bx.Integer(1, 9),
    "one": bx.Choice([2.0]),
    "kind": bx.Choice(["x", "y", "z"]),
}
# What Python computes, with the same functions of numbers.
MEANING = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt, "abs": abs, "min": min, "max": max}

TEXTS = [
    *("a * b <= 3000", "3000 >= a * b", "a * b - 3000 <= 0", "a / b <= 7 * n", "-a ** 2 <= -900"),
    *("sqrt(a) + log(b) / log(10) <= 11", "exp(n / 3) <= b", "2 ** n <= a + b", "n ** one <= 40"),
    *("abs(a - 70) >= 5 * abs(n - 4)", "min(a, 10 * b, 9 * n) >= 30", "max(a, b) <= 100 / one"),
    *("1 <= a / b <= 40", "n * one * 3 <= 40", "log(a - 50) <= 3", "a + b <= 90 <= n * a"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_mean_what_python_computes(text):
    space = bx.Space(RANGES, constraints=[text])
    X = bx.Space(RANGES).sample(300, 1)

    def holds(x):
        try:
            return bool(eval(text, {"__builtins__": {}}, MEANING | space.params_of(x)))
        except ValueError:  # the logarithm of a negative number
            return False

    expected = [holds(x) for x in X]
    assert 3 < sum(expected) < 297
    assert space.contains(X).tolist() == expected
    Z = space.sample(200, 2)
    assert len(Z) == 200 and bool(space.contains(Z).all())
    assert all(holds(x) for x in Z)


def test_linear_texts_stay_linear():
    for text in ("a + 2 * b <= 3", "0 <= (a - b) / 4", "2 * (3 + a) * 4 <= n"):
        assert not any(isinstance(each, Comparison) for each in of_text(text, RANGES))
    (linear, curved) = of_text("a + b <= 90 <= n * a", RANGES)
    assert linear == ({"a": 1.0, "b": 1.0}, 90.0) and isinstance(curved, Comparison)
    assert isinstance(bx.Space(RANGES, constraints="a + b <= 90").constraints, tuple)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a * temp <= 3", "got 'temp'"),
        ("exp * a <= 3", "got 'exp'"),
        ("kind * a <= 3", "kind must be a range of numbers"),
        ("a * b < 3", "must compare"),
        ("a * b == 3", "must not be equalities"),
        ("sin(a) <= 1", r"'sin\(a\)' is no such expression"),
        ("exp(a, b) <= 1", "no such expression"),
        ("min(a) <= 1", "no such expression"),
        ("a.real * b <= 1", "no such expression"),
        ("a[0] * b <= 1", "no such expression"),
        ("(a if b else n) <= 1", "no such expression"),
        ("a * b", "there is no comparison"),
        ("a * b <= 1e3 * 'x'", "no such expression"),
        ("a" + " * a" * 3000 + " <= 1", "constraints must"),
        ("a * b >= 1e9", "a \\* b >= 1e9 does not hold"),
        ("one ** 2 >= 5", "5 does not hold"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        bx.Space(RANGES, constraints=[text])


def test_texts_need_parameters_that_always_count():
    conditions = {"b": ("kind", ["x"])}
    with pytest.raises(ValueError, match="b must have no condition"):
        bx.Space(RANGES, constraints=["a * b <= 3000"], conditions=conditions)


def test_functions_get_the_values_that_count():
    seen = []

    def allowed(params):
        seen.append(params)
        return params["kind"] != "y" or params["n"] < 4

    space = bx.Space(RANGES, constraints=allowed, conditions={"b": ("kind", ["x", "y"])})
    X = space.sample(100, 0)
    seen.clear()
    assert bool(space.contains(X).all())
    assert seen == [space.params(x) for x in X] or len(seen) == 200
    for params in seen:
        assert type(params["n"]) is int and params["one"] == 2.0
        assert ("b" in params) == (params["kind"] != "z")
    assert {params["kind"] for params in seen} == {"x", "y", "z"}
    with pytest.raises(OutsideDomainError, match=r"allowed must hold, got \{'a': 50.0, .* in x"):
        space.require_contains(space.bounds.new_tensor([50.0, 7.5, 5.0, 1.0]), "x")
    # Outside of the ranges the function is not asked.
    seen.clear()
    assert not space.contains([500.0, 7.5, 5.0, 1.0])
    assert not space.contains([50.0, 7.5, 5.5, 1.0]) and not seen


@pytest.mark.parametrize("kind", [bool, np.bool_, torch.tensor, float, np.float64])
def test_what_functions_may_return(kind):
    def allowed(params):
        return (
            kind(params["a"] <= 70)
            if kind in (bool, np.bool_, torch.tensor)
            else kind(below(params))
        )

    def below(params):
        return 70 - params["a"]

    space = bx.Space(RANGES, constraints=[allowed])
    X = bx.Space(RANGES).sample(50, 3)
    assert space.contains(X).tolist() == (X[:, 0] <= 70).tolist()


@pytest.mark.parametrize("wrong", [None, "yes", math.nan, [True], np.array([1.0, 2.0]), KeyError])
def test_errors_of_functions_name_the_function_and_the_point(wrong):
    space = []

    def limit(params):
        if space and params["a"] > 50:
            if wrong is KeyError:
                raise KeyError("dose")
            return wrong
        return True

    space.append(bx.Space(RANGES, constraints=["a * b <= 3000", limit]))
    point = space[0].bounds.new_tensor([60.0, 2.0, 3.0, 1.0])
    with pytest.raises(ValueError, match=r"constraint limit must return .* at \{'a': 60.0, 'b'"):
        space[0].contains(point)
    # No function is asked where a text does not hold.
    assert not space[0].contains(space[0].bounds.new_tensor([60.0, 59.0, 3.0, 1.0]))


def test_errors_of_functions_while_a_strategy_asks_change_nothing():
    calls = []

    def limit(params):
        calls.append(params)
        if len(calls) == 2000:
            raise RuntimeError("no connection")
        return True

    strategy = bx.algorithms.integrated_ei(bx.Space(RANGES, constraints=limit), num_initial=2)
    for _ in range(2):
        strategy.tell(strategy.ask(), 1.0)
    num_events = []

    def ask_often():
        for _ in range(99):
            num_events.append(len(strategy.events))
            strategy.ask()

    with pytest.raises(ValueError, match=r"constraint limit must return .*no connection"):
        ask_often()
    assert len(strategy.events) == num_events[-1]
    assert strategy.ask().id == num_events[-1] - 2


def near_a_curve(params):
    return 0.5 - abs(params["a"] * params["b"] - 1500)


def in_a_corner(params):
    return params["a"] > 118 and params["b"] > 57 and params["n"] == 7


TINY = {
    "text": ["abs(a * b - 1500) <= 0.05"],
    "texts": ["a * b >= 1499.9", "a * b <= 1500.1", "b >= 20", "a + b <= 100"],
    "number": [near_a_curve],
    "a number and a text": [near_a_curve, "a + b <= 100"],
    "true or false": [in_a_corner],
}


@pytest.mark.parametrize("name", TINY)
def test_few_points_are_found_and_sampled(name):
    space = bx.Space(RANGES, constraints=TINY[name])
    X = space.sample(400, 4)
    assert bool(space.contains(X).all())
    assert len(X.unique(dim=0)) > 100
    if name != "true or false":  # all along the curve
        U = bx.Space(RANGES).to_unit(X)
        assert float(U[:, 0].max() - U[:, 0].min()) > (0.4 if "a + b <= 100" in TINY[name] else 0.8)
        assert X[:, 2:].unique(dim=0).shape[0] > 20
    assert torch.equal(bx.Space(RANGES, constraints=TINY[name]).sample(400, 4), X)


def test_walks_are_uniform_in_the_unit_cube():
    space = bx.Space(a=bx.Real(0, 1), b=bx.Real(0, 1), constraints="(a - 1) ** 2 + b ** 2 <= 0.01")
    X = torch.cat([space.sample(512, seed) for seed in range(8)])
    radius = ((X[:, 0] - 1).square() + X[:, 1].square()).sqrt() / 0.1
    # 512 points of 128 chains: the standard error of each mean is at most 0.03.
    assert float((radius <= 0.5).double().mean()) == pytest.approx(0.25, abs=0.12)
    assert float((1 - X[:, 0] >= X[:, 1]).double().mean()) == pytest.approx(0.5, abs=0.12)


def test_nothing_feasible_names_the_constraint():
    def never(params):
        return params["a"] - 130

    with pytest.raises(ValueError, match="all of them: never does not hold"):
        bx.Space(RANGES, constraints=["a * b <= 3000", never])
    with pytest.raises(ValueError, match=r"a \* b <= 2999 does not hold|3000 does not hold"):
        bx.Space(RANGES, constraints=["a * b >= 3000", "a * b <= 2999"])
    with pytest.raises(ValueError, match=r"exp\(1\) <= 2 does not hold"):
        bx.Space(RANGES, constraints=["exp(1) <= 2"])


def test_points_are_listed_if_they_are_few():
    def odd(params):
        return (params["n"] + params["k"]) % 2 == 1

    given = {"n": bx.Integer(1, 9), "k": bx.Integer(1, 9)}
    space = bx.Space(given, constraints=[odd, "n * k <= 20"])
    expected = [[n, k] for n in range(1, 10) for k in range(1, 10) if (n + k) % 2 and n * k <= 20]
    assert space.listed.tolist() == expected
    only = bx.Space(given, constraints=[lambda p: p == {"n": 3, "k": 8}])
    assert only.listed.tolist() == [[3, 8]] == only.sample(1, 0).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_moved_and_rounded_points_hold(seed):
    def allowed(params):
        return params["kind"] != "y" or params["n"] * params["b"] <= 100

    constraints = ["a * b <= 2000", "a + 10 * n <= 130", allowed]
    for dtype in (torch.float64, torch.float32):
        space = bx.Space(RANGES, constraints=constraints, dtype=dtype)
        free = bx.Space(RANGES, dtype=dtype)
        targets, points = free.sample(200, seed), space.sample(200, seed + 1)
        moved = space.nearby(targets, points)
        assert bool(space.contains(moved).all())
        inside = space.contains(targets)
        torch.testing.assert_close(moved[inside], targets[inside])
        # A text that stops a point is reached, as where nothing else does.
        only = bx.Space(RANGES, constraints="a * b <= 2000", dtype=dtype)
        outside = targets[~only.contains(targets)]
        near = only.nearby(outside, only.sample(1, 0).expand_as(outside))
        products = near[:, 0] * near[:, 1]
        torch.testing.assert_close(products, torch.full_like(products, 2000), rtol=1e-4, atol=0)
        assert bool((products <= 2000).all())
        rounded = space.settable(points)
        assert bool(space.contains(rounded).all())
        short = [math.isclose(float(f"{b:.2g}"), b, rel_tol=1e-6) for b in rounded[:, 1].tolist()]
        assert sum(short) > 190
        assert float((space.corners if len(space.corners) else points)[0, 0]) >= 20


def test_gradients_are_those_of_differences():
    space = bx.Space(RANGES, constraints=["a * b <= 3000", "sqrt(a) * n - exp(b / 60) <= 60"])
    X, step = space.sample(20, 1), 1e-6
    slack, size, gradient = space.constraints.slack_and_gradient(X)
    torch.testing.assert_close(slack[:, 0], 3000 - X[:, 0] * X[:, 1])
    assert bool((size >= slack.abs()).all())
    for j in range(space.dim):
        move = step * torch.eye(space.dim, dtype=X.dtype)[j]
        above, below = (space.constraints.slack_and_gradient(X + s * move)[0] for s in (1, -1))
        torch.testing.assert_close(
            gradient[..., j], (above - below) / (2 * step), atol=1e-5, rtol=1e-5
        )


def limit_of_kind(params):
    return params["a"] <= (70 if params["kind"] == "x" else 110)


def test_conversions_keep_the_constraints():
    given = ["a + 2 * n <= 120", "a * b <= 3000", limit_of_kind]
    space = bx.Space(RANGES, constraints=given)
    X = bx.Space(RANGES).sample(200, 5)
    expected = space.contains(X)
    assert not space.is_filled and not space.is_plain
    same = [
        bx.Space(**space.to_arguments()),
        space.to(),
        space.without_names(),
        space.without_names().to(),
    ]
    for box in same:
        assert torch.equal(box.contains(X), expected)
        assert torch.equal(box.sample(20, 3), space.sample(20, 3))
    single = space.to(torch.float32)
    assert torch.equal(single.contains(X.float()), expected)
    assert "limit_of_kind" in repr(space) and "a * b <= 3000" in repr(space.without_names())
    with pytest.raises(OutsideDomainError, match="x must satisfy a \\* b <= 3000"):
        space.without_names().require_contains(X.new_tensor([100.0, 50.0, 1.0, 0.0]), "x")
    # Texts need no whole numbers; functions may.
    relaxed = space.without_steps()
    assert relaxed.constraints.names == ["a + 2 * n <= 120", "a * b <= 3000"]
    assert bool(relaxed.contains(space.sample(50, 1)).all())
    assert bx.Space(RANGES, constraints=limit_of_kind).without_steps().constraints is None


def test_descriptions_have_texts_and_the_names_of_functions():
    space = bx.Space(RANGES, constraints=["a * b <= 3000", limit_of_kind])
    plain = encode(space)
    assert plain["arguments"]["constraints"] == ["a * b <= 3000", {"function": "limit_of_kind"}]
    with pytest.raises(ValueError, match="allow_argument"):
        decode(plain)
    allow_argument(limit_of_kind)
    again = decode(plain)
    assert torch.equal(again.sample(9, 1), space.sample(9, 1))
    assert encode(again) == plain
    text = bx.Space(RANGES, constraints="a * b <= 3000")
    assert encode(decode(encode(text))) == encode(text)


def test_few_calls_of_functions():
    calls = []

    def allowed(params):
        calls.append(params)
        return params["a"] * params["b"] <= 3000

    space = bx.Space(RANGES, constraints=allowed)
    assert len(calls) <= 512
    calls.clear()
    space.sample(512, 0)
    assert 512 <= len(calls) <= 1024
    calls.clear()
    space.contains(space.sample(1, 0).expand(300, -1))
    assert len(calls) == 512 + 300


def test_methods_of_plain_boxes_refuse_them_by_name():
    space = bx.Space(RANGES, constraints=limit_of_kind)
    with pytest.raises(ValueError, match=r"nothing but bounds for bpe, got .*limit_of_kind"):
        space.require_plain("bpe")
