"""Plain numbers: the numbers of lists, arrays and tensors as JSON, which are the same for all."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.studies.translations import FLOAT64

# A larger tensor is described by its shape and digest only: in the records of Ax and Optuna, and in
# a study, which keeps tensors whole so that its strategy can be made again.
_MOST_NUMBERS, _MOST_OF_A_STUDY = 200, 2**16
# A longer whole number is no float.
_MOST_BITS = 1000
# How far numbers may be from each other and still be the same, relatively: what is computed differs
# in its last digits from one processor to another. The second one is relative to the largest number
# of a tensor, in which a zero may be 1e-17 elsewhere.
_SAME, _SAME_BESIDE_THE_LARGEST = 1e-9, 1e-15
# Tensors in float32 have seven digits.
_SAME_IN_FLOAT32 = 1e-6
# The deepest nesting that is read, because a stranger's description may be nested to any depth.
_DEEPEST = 16


def plain_tensor(value: Tensor, whole: bool = False) -> dict[str, Any]:
    """The numbers of a tensor. A large tensor has digests instead: in its own dtype, and in float64
    if its dtype is another one and float64 holds its numbers.

    Args:
        value: The tensor.
        whole: Whether a tensor of up to 65,536 numbers is no large one; else one of up to 200.
    """
    value = value.detach().cpu().contiguous()
    described: dict[str, Any] = {"dtype": str(value.dtype)}
    if value.numel() <= (_MOST_OF_A_STUDY if whole else _MOST_NUMBERS):
        return described | {"values": value.tolist()}
    described |= {"shape": list(value.shape), "sha256": _digest(value)}
    double = value.double()
    if value.dtype is not torch.float64 and torch.equal(double.to(value.dtype), value):
        described[FLOAT64] = _digest(double)
    return described


def plain_array(value: np.ndarray, whole: bool = False) -> Any:
    """The numbers of an array, as `plain_tensor` describes them."""
    kind = value.dtype.newbyteorder("=") if value.dtype.itemsize <= 8 else np.dtype(np.float64)
    # This is a copy, because torch takes no reversed or read-only array.
    return plain_tensor(torch.from_numpy(np.array(value, dtype=kind)), whole)


def same_numbers(one: Any, other: Any) -> bool:
    """Whether two parts of descriptions are the same numbers, of any dtype, in lists or tensors, as
    a column or a flat list. It is False if one of them is no numbers.

    Numbers are the same if they differ by at most 1e-9 relatively, in float32 by 1e-6. Two whole
    numbers, such as seeds, and numbers of which only a digest is known must be equal.
    """
    first = _Numbers.of(one)
    second = None if first is None else _Numbers.of(other)
    if first is None or second is None or first.shape != second.shape:
        return False
    if first.values is not None and second.values is not None:
        same = _SAME_IN_FLOAT32 if "float32" in first.dtype + second.dtype else _SAME
        return _are_close(first.values, second.values, same)
    return not first.digests.isdisjoint(second.digests)


@dataclass(frozen=True)
class _Numbers:
    """Numbers of a description.

    Args:
        shape: The shape, without ones at its end.
        values: All numbers; None if there are too many.
        known: The digests if there are too many numbers.
        dtype: The dtype of a tensor; empty for numbers of a list.
    """

    shape: tuple[int, ...]
    values: list[float] | None
    known: frozenset[str] = frozenset()
    dtype: str = ""

    @classmethod
    def of(cls, plain: Any, depth: int = 0) -> _Numbers | None:
        if type(plain) is float or (type(plain) is int and plain.bit_length() <= _MOST_BITS):
            return cls((), [plain])
        if isinstance(plain, dict) and "dtype" in plain:
            if "values" in plain:
                found = cls.of(plain["values"], depth)
                return None if found is None else replace(found, dtype=str(plain["dtype"]))
            known = [plain[key] for key in ("sha256", FLOAT64) if isinstance(plain.get(key), str)]
            shape = plain.get("shape")
            if known and isinstance(shape, list) and all(type(size) is int for size in shape):
                return cls(_without_ones(shape), None, frozenset(known))
        if not isinstance(plain, list) or depth > _DEEPEST:
            return None
        values: list[float] = []
        inner: tuple[int, ...] = ()
        for i, part in enumerate(plain):
            one = cls.of(part, depth + 1)
            if one is None or one.values is None or (i and one.shape != inner):
                return None
            inner = one.shape
            values += one.values
        return cls(_without_ones([len(plain), *inner]), values)

    @cached_property
    def digests(self) -> frozenset[str]:
        if self.values is None:
            return self.known
        dtypes = {torch.float64, getattr(torch, self.dtype.removeprefix("torch."), None)}
        tensors = [
            host.tensor(self.values, dtype=dtype)
            for dtype in dtypes
            if isinstance(dtype, torch.dtype)
        ]
        exact = [each for each in tensors if _are_equal(each.flatten().tolist(), self.values)]
        return frozenset(map(_digest, exact))


def equal_numbers(one: Any, other: Any) -> bool:
    """Whether two parts of descriptions are the same numbers, bit for bit."""
    first, second = _Numbers.of(one), _Numbers.of(other)
    if first is None or second is None or first.shape != second.shape:
        return False
    if first.values is not None and second.values is not None:
        return _are_equal(first.values, second.values)
    return not first.digests.isdisjoint(second.digests)


def _are_close(values: list[float], others: list[float], same: float) -> bool:
    """Whether numbers are the same one by one, NaN and NaN."""
    finite = [abs(value) for value in (*values, *others) if math.isfinite(value)]
    slack = same * _SAME_BESIDE_THE_LARGEST / _SAME * max(finite, default=0.0)
    return all(_is_close(a, b, same, slack) for a, b in zip(values, others, strict=True))


def _is_close(a: float, b: float, same: float, slack: float) -> bool:
    if type(a) is int and type(b) is int:
        return a == b
    return math.isclose(a, b, rel_tol=same, abs_tol=slack) or (a != a and b != b)


def _are_equal(values: list[float], others: list[float]) -> bool:
    """Whether numbers are equal one by one, NaN to NaN."""
    return all(a == b or (a != a and b != b) for a, b in zip(values, others, strict=True))


def _without_ones(shape: list[int]) -> tuple[int, ...]:
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return tuple(shape)


def _digest(value: Tensor) -> str:
    # NumPy has no bfloat16, but its bytes.
    return hashlib.sha256(value.view(torch.uint8).numpy().tobytes()).hexdigest()
