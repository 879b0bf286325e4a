"""Significant digits of what is asked: drawn points of drawn spaces against a loop over them."""

import itertools
import math
import random
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import botorch_ext as bx
from botorch_ext.codec import decode, encode
from tests.domains.drawn_spaces import a_space
from tests.domains.test_spaces import NAMES


def digits_of(parameter):
    """The definition of the default, None for all digits."""
    if not isinstance(parameter, bx.Real):
        return None
    if parameter.significant is not None:
        return None if parameter.significant == 17 else parameter.significant
    has_steps = parameter.step is not None or parameter.digits is not None
    return 3 if parameter.log and not has_steps else None


def around(number, digits):
    """The numbers with so many digits around a number, the nearest first."""
    written = f"{number:.{digits - 1}e}"
    mantissa, power = written.split("e")
    whole, place = int(mantissa.replace(".", "")), int(power) - digits + 1
    near = [float(f"{whole + k}e{place}") for k in (-1, 0, 1)]
    if abs(whole) == 10 ** (digits - 1):  # the next number towards zero has a smaller place
        k = 0 if whole > 0 else 2
        near[k] = float(f"{10 * whole - math.copysign(1, whole):.0f}e{place - 1}")
    below, above = max(n for n in near if n <= number), min(n for n in near if n >= number)
    return sorted({below, above}, key=lambda each: abs(each - number))


def settable(space, x):
    """The definition, one column after the other."""
    x = x.clone()
    for j, name in enumerate(space.names):
        digits = digits_of(space.parameters[name])
        if digits is None or not bool(space.active(x)[j]):
            continue
        for number in around(float(x[j]), digits):
            moved = x.clone()
            moved[j] = number
            if bool(space.contains(moved)):
                x = moved
                break
    return x


def a_rounded_space(seed, dtype=torch.float64):
    """A drawn space with more parameters that are rounded, and constraints that bind them."""
    draw, space = random.Random(seed), a_space(seed, dtype)
    low = draw.choice([1e-4, 0.00012345, 0.5, 9.876])
    parameters = {
        **space.parameters,
        "a": bx.Real(low, low * draw.choice([1.0004, 1.7, 1e3]), log=True),
        "b": bx.Real(-3.0, 4.0, significant=draw.choice([None, 1, 2, 17])),
        "c": bx.Real(1e-3, 1.0, log=True, significant=draw.choice([1, 2, 5])),
    }
    given = [*space._texts, *draw.choice([[], ["b + c <= 0.1"]])]
    given += [f"a >= {1.0002 * low!r}"] if low >= 0.5 and draw.random() < 0.3 else []
    given += draw.choice([[], [], ["b + c <= 0.3", "b + c >= 0.3"]])
    make = partial(bx.Space, parameters, conditions=space.named_conditions, dtype=dtype)
    try:
        return make(constraints=given)
    except ValueError:  # nothing satisfies all of them
        return make(constraints=space._texts)


@given(st.integers(0, 10**6))
def test_what_is_asked_has_the_nearest_digits_that_are_inside(seed):
    space = a_rounded_space(seed)
    X = space.sample(6, seed)
    expected = torch.stack([settable(space, x) for x in X])
    found = space.settable(X)
    assert torch.equal(found, expected)
    assert torch.equal(space.settable(found), found) and torch.equal(space.settable(X[0]), found[0])
    assert bool(space.contains(found).all()) and bool(space.contains(X).all())
    # It is no rule of what is allowed.
    for x in X:
        assert torch.equal(space.point(space.params(x)), x)


@given(st.integers(0, 10**6))
def test_in_single_precision_the_numbers_are_those_of_double_precision(seed):
    single = a_rounded_space(seed, torch.float32)
    for x in single.settable(single.sample(3, seed)):
        assert bool(single.contains(x))
        assert torch.equal(single.settable(x), x)
        params = single.params(x)
        assert torch.equal(single.point(params), x)
        # A number of up to seven digits stays, and is read in its own digits.
        for name, value in params.items():
            digits = digits_of(single.parameters[name])
            near = [] if digits is None else around(value, digits)
            assert all(value == each or abs(value - each) > 1e-7 * abs(value) for each in near)


def test_values_in_single_precision_are_the_decimals_that_were_set():
    parameters = {"a": bx.Real(0, 1, step=0.1), "b": bx.Real(1e-4, 1, log=True)}
    space = bx.Space(parameters, conditions={"b": ("a", [0.3, 0.7])}, dtype=torch.float32)
    params = {"a": 0.3, "b": 0.0149}
    assert space.params(space.point(params)) == params


def test_the_default_and_its_limits():
    assert bx.Real(1, 9, log=True).asked_digits == 3
    for parameter in (bx.Real(1, 9), bx.Real(1, 9, log=True, step=1), bx.Integer(1, 9, log=True)):
        assert getattr(parameter, "asked_digits", None) is None
    assert bx.Real(1, 9, log=True, significant=17).asked_digits is None
    assert bx.Real(1, 9, significant=4).asked_digits == 4
    for wrong in (0, 18, 2.5, "3", True):
        with pytest.raises(ValueError, match="significant must be"):
            bx.Real(1, 9, significant=wrong)
    for steps in ({"step": 1}, {"digits": 1}):
        with pytest.raises(ValueError, match="significant must be"):
            bx.Real(1, 9, significant=3, **steps)


def test_texts_of_parameters_have_their_digits():
    for significant in (None, 1, 17):
        space = bx.Space(a=bx.Real(0.1, 9, log=True, significant=significant))
        for other in (eval(repr(space), dict(NAMES)), decode(encode(space)), space.to()):
            assert other.parameters == space.parameters
    assert "significant" not in repr(bx.Real(1, 9, log=True))
    assert bx.Real(1, 9, log=True, significant=17).significant == 17


def test_numbers_just_beside_powers_of_ten_and_ends():
    parameter = bx.Real(1e-9, 1e9, log=True)
    numbers = [m * 10.0**e for m in (0.9996, 0.99949, 1, 1.004, 9.995) for e in range(-8, 9)]
    for number, sign in itertools.product(numbers, (1, -1)):
        for digits in (1, 3, 6):
            own = bx.Real(-1e10, 1e10, significant=digits)
            assert sorted({*own.settable(sign * number)}) == sorted(around(sign * number, digits))
    # Ends that are not rounded: the neighbour inside, or the number itself.
    space = bx.Space(a=bx.Real(0.12345, 0.98765, log=True), b=bx.Real(5.0002, 5.0008, log=True))
    ends = torch.tensor([[0.12345, 5.0005], [0.98765, 5.0005]], dtype=torch.float64)
    assert space.settable(ends).tolist() == [[0.124, 5.0005], [0.987, 5.0005]]
    assert parameter.settable(0.0149) == (0.0149, 0.0149)
