"""What users give where numbers, points and bounds belong."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import torch

from tests.wrong_calls.calls import PAIRS, ROWS

NOT_A_NUMBER = {
    "a string": "0.5",
    "bytes": b"0.5",
    "nothing": None,
    "a bool": True,
    "a numpy bool": np.True_,
    "a tensor of a bool": torch.tensor(True),
    "complex": 0.5 + 0j,
    "numpy complex": np.complex128(0.5),
    "a list": [0.5],
    "two numbers": torch.tensor([0.5, 0.5]),
    "an array of two": np.array([0.5, 0.5]),
    "no number at all": torch.tensor([]),
    "masked": np.ma.masked,
    "a masked array": np.ma.array([0.5]),
    "a date": np.datetime64("2026-01-01", "ns"),
    "a time span": np.timedelta64(3, "s"),
    "a function": abs,
    "a class": float,
    "a dict": {"value": 0.5},
    "pandas NA": pd.NA,
    "NaN": math.nan,
    "infinity": math.inf,
    "numpy NaN": np.float64("nan"),
}
#: Of each kind one.
FEW_NOT_NUMBERS = {
    kind: NOT_A_NUMBER[kind]
    for kind in ("a string", "a bool", "masked", "two numbers", "complex", "NaN")
}
HALF = {
    "numpy float": np.float64(0.5),
    "numpy float32": np.float32(0.5),
    "array without dimensions": np.array(0.5),
    "array of one": np.array([0.5]),
    "tensor without dimensions": torch.tensor(0.5).double(),
    "tensor of one": torch.tensor([0.5]).double(),
    "float32 tensor": torch.tensor(0.5),
    "float16 tensor": torch.tensor(0.5).half(),
    "a tensor with a gradient": torch.tensor(0.5, requires_grad=True),
    "a fraction": Fraction(1, 2),
    "a decimal": Decimal("0.5"),
}
ONE = {"an int": 1, "numpy int": np.int64(1), "int tensor": torch.tensor(1), "uint8": np.uint8(1)}
NOT_A_COUNT = {
    "a float": 2.0,
    "a fraction": 2.5,
    "a string": "2",
    "a bool": True,
    "a numpy bool": np.True_,
    "a tensor of a bool": torch.tensor(True),
    "a list": [2],
    "NaN": math.nan,
    "masked": np.ma.masked,
}


class Table:
    """Something of another library that becomes an array."""

    def __init__(self, rows) -> None:
        self.rows = rows

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype=dtype)


def as_people_write(rows: list) -> dict:
    """The same numbers in forms that are all read."""
    array = np.array(rows, dtype=np.float64)
    frozen = array.copy()
    frozen.setflags(write=False)
    return {
        "a list": rows,
        "a tuple": tuple(rows),
        "an array": array,
        "an array in reversed order": array[::-1].copy()[::-1],
        "an array that is read only": frozen,
        "an array of the other byte order": array.astype(">f8"),
        "a DataFrame": pd.DataFrame(array) if array.ndim == 2 else pd.Series(array),
        "another array": Table(rows),
        "a list of arrays": list(array),
        "a list of tensors": list(torch.tensor(rows, dtype=torch.float64)),
    }


def no_points(rows: list) -> dict:
    """What are no points, made of some that are."""
    array = np.array(rows, dtype=np.float64)
    return {
        "a string": "points",
        "nothing": None,
        "objects": array.astype(object),
        "strings": [[str(value) for value in row] for row in rows],
        "ragged": [*rows, [1.0]],
        "complex numbers": array.astype(complex),
        "a complex tensor": torch.tensor(array).to(torch.complex128),
        "bools": array > 0,
        "a tensor of bools": torch.tensor(array) > 0,
        "bools in lists": [[True, False]],
        "a masked array": np.ma.array(array, mask=array > 4.5),
        "a sparse tensor": torch.tensor(array).to_sparse(),
        "dates": np.full(array.shape, np.datetime64("2026-01-01")),
        "a dict": {"x": rows},
        "a function": abs,
        "float32": torch.tensor(array).float(),
        "float16": torch.tensor(array).half(),
        "one column more": np.hstack([array, array[:, :1]]),
        "NaN": array * math.nan,
        "one number": 3.0,
    }


BOUNDS = {
    "rows": ROWS,
    "a tuple of rows": tuple(ROWS),
    "a tensor": torch.tensor(ROWS).double(),
    "an array": np.array(ROWS),
    "pairs": PAIRS,
    "a tuple of pairs": tuple(PAIRS),
    "another array": Table(ROWS),
    "tensors": list(torch.tensor(ROWS).double()),
}
NO_DOMAIN = {
    "a string": "unit cube",
    "nothing": None,
    "a number": 2,
    "the class": torch.nn.Module,
    "three rows": np.zeros((3, 2)),
    "upside down": ROWS[::-1],
    "masked bounds": np.ma.array(ROWS),
    "NaN": [[2.0, math.nan], [5.0, -1.5]],
    "pairs and lists": [(2.0, 5.0), [-3.0, -1.5]],
    "a dict": {"x": (2.0, 5.0)},
}
