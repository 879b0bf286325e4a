"""The same numbers open a study whatever holds them, and other numbers never do."""

from __future__ import annotations

import itertools
import warnings
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import AnotherStrategyError
from botorch_ext.strategies import Strategy
from botorch_ext.studies.description import describe, require_same
from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.plain_numbers import same_numbers

BOX = bx.Box([(-1.0, 1.0), (2.0, 5.0)])
# In all of these dtypes the same numbers.
_FEW, _MANY = 4, 130

CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "tuple": lambda numbers: tuple(numbers.tolist()),
    "list of arrays": list,
    "array": lambda numbers: numbers,
    "float32 array": lambda numbers: numbers.astype(np.float32),
    "reversed array": lambda numbers: numbers[::-1].copy()[::-1],
    "foreign byte order": lambda numbers: numbers.astype(">f8"),
    "tensor": torch.as_tensor,
    "frame": pd.DataFrame,
    "named frame": lambda numbers: (
        pd.DataFrame(numbers).add_prefix("x").set_index(0 * numbers[:, 0])
    ),
}
# Of values alone.
COLUMNS: dict[str, Callable[[np.ndarray], Any]] = {
    **CONTAINERS,
    "n": lambda numbers: numbers[:, 0],
    "list of n": lambda numbers: numbers[:, 0].tolist(),
    "tensor of n": lambda numbers: torch.as_tensor(numbers[:, 0]),
    "series": lambda numbers: pd.Series(numbers[:, 0], name="y"),
    "series of float32": lambda numbers: pd.Series(numbers[:, 0].astype(np.float32)),
}


def _data(num: int, changed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(-8, 9, num) / 8, 2 + rng.integers(0, 25, num) / 8], axis=1)
    Y = rng.integers(-16, 17, (num, 1)) / 4
    if changed:
        Y[num // 2] += 0.25
    return X, Y


def _made(X: Any, Y: Any) -> Strategy:
    return bx.algorithms.integrated_ei(BOX, initial=(X, Y))


def _require_same(first: Strategy, second: Strategy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_same(from_json(to_json(describe(first))), describe(second), "it")


@pytest.mark.parametrize("num", [_FEW, _MANY])
@pytest.mark.parametrize("container", COLUMNS)
def test_the_same_numbers_are_the_same_study_and_others_are_another(container, num):
    held, rows = COLUMNS[container], CONTAINERS.get(container, pd.DataFrame)
    X, Y = _data(num)
    _, others = _data(num, changed=True)
    for as_x, as_y in ((np.asarray, np.asarray), (rows, held), (np.ndarray.tolist, held)):
        _require_same(_made(as_x(X), as_y(Y)), _made(rows(X), held(Y)))
        _require_same(_made(rows(X), held(Y)), _made(as_x(X), as_y(Y)))
        for kept, given in ((Y, others), (others, Y)):
            first, second = _made(as_x(X), as_y(kept)), _made(rows(X), held(given))
            with pytest.raises(AnotherStrategyError, match="initial"):
                _require_same(first, second)
    moved = X.copy()
    moved[1, 0] = 0.0625
    with pytest.raises(AnotherStrategyError, match="initial"):
        _require_same(_made(rows(X), held(Y)), _made(rows(moved), held(Y)))


NUMBERS = {
    "float": 2.0,
    "int": 2,
    "float64": np.float64(2),
    "float32": np.float32(2),
    "int8": np.int8(2),
    "array": np.array(2.0),
    "tensor": torch.tensor(2.0),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_one_number_is_the_same_of_every_kind(kind):
    def made(width: Any) -> Strategy:
        return bx.algorithms.gp_bucb(BOX, _kernel(), noise_variance=0.01, width=width)

    def _kernel() -> Any:
        return bx.kernels.NuggetKernel(0.5)

    _require_same(made(2.0), made(NUMBERS[kind]))
    _require_same(made(NUMBERS[kind]), made(2.0))
    with pytest.raises(AnotherStrategyError, match="width is 2"):
        _require_same(made(NUMBERS[kind]), made(2.5))


def test_a_float32_that_rounds_to_the_number_is_another_number():
    X, Y = _data(_FEW)
    for off in (1e-9, 2e-16):
        with pytest.raises(AnotherStrategyError, match="initial"):
            _require_same(_made(X, Y.astype(np.float32)), _made(X, Y + off))
        X_many, Y_many = _data(_MANY)
        with pytest.raises(AnotherStrategyError, match="initial"):
            _require_same(_made(X_many, Y_many.astype(np.float32)), _made(X_many, Y_many + off))


@pytest.mark.parametrize("num", [_FEW, _MANY])
def test_what_a_domain_computes_in_is_compared(num):
    def made(dtype: torch.dtype) -> Strategy:
        return bx.strategies.RandomSearch(bx.FiniteSet(torch.as_tensor(_data(num)[0], dtype=dtype)))

    _require_same(made(torch.float32), made(torch.float32))
    message = r"domain\.dtype\S* is 'torch.float32' in the study, got 'torch.float64'"
    with pytest.raises(AnotherStrategyError, match=message):
        _require_same(made(torch.float32), made(torch.float64))


@pytest.mark.parametrize("num", [_FEW, _MANY])
def test_nan_is_the_same_nan(num):
    box = bx.Box([(0, 1), (0.0, 1.0)], integer=[0], conditions={1: (0, [1])})
    X, Y = np.zeros((num, 2)), np.arange(float(num))
    X[:, 1] = np.nan
    forms = [X, X.tolist(), torch.tensor(X), pd.DataFrame(X)]
    made = [bx.algorithms.integrated_ei(box, initial=(form, Y)) for form in forms]
    for first, second in itertools.product(made, repeat=2):
        _require_same(first, second)
    other = bx.algorithms.integrated_ei(box, initial=([[1.0, 0.5], *X[1:].tolist()], Y))
    for each in made:
        with pytest.raises(AnotherStrategyError, match="initial"):
            _require_same(each, other)


def test_shapes_and_kinds_that_are_others():
    def same(one: Any, other: Any) -> bool:
        return same_numbers(from_json(to_json(plain(one))), from_json(to_json(plain(other))))

    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    for other in (frame.astype("Float64"), frame.astype(object), frame.astype(int)):
        assert same(frame, other) and not same(frame, other + 1)
    assert same(range(3), [0, 1, 2]) and same(array("d", [0.5, 1.0]), [0.5, 1.0])
    assert same([[1.0], [2.0]], torch.tensor([1.0, 2.0])) and same([], np.zeros(0))
    assert same([[[1.0, 2.0]], [[3.0, 4.0]]], np.arange(1.0, 5).reshape(2, 1, 2))
    many = torch.arange(300) % 100 / 4
    assert same(many.bfloat16(), many.double()) and same(many.bfloat16(), many.half().numpy())
    for one, other in [
        (many.bfloat16(), many.flip(0).bfloat16()),
        ([1.0, 2.0], [[1.0, 2.0]]),
        ([1.0, 2.0, 3.0, 4.0], [[1.0, 2.0], [3.0, 4.0]]),
        ([1, 0], [True, False]),
        (1, True),
        (2**53, 2**53 + 1),
        (np.full(300, 2**53), np.full(300, 2**53 + 1)),
        (["1.0"], [1.0]),
        ([1.0, None], [1.0, 0.0]),
        (np.zeros(300), np.zeros(301)),
        (np.zeros((300, 2)), np.zeros((2, 300))),
        ({"dtype": 3}, [3]),
    ]:
        assert not same(one, other) and not same(other, one)
