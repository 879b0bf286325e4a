"""Plain numbers: the numbers of lists, arrays and tensors as JSON, which are the same for all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.studies.translations import FLOAT64

# A larger tensor is described by its shape and digest only.
_MOST_NUMBERS = 200
# The deepest nesting that is read, because a stranger's description may be nested to any depth.
_DEEPEST = 16


def plain_tensor(value: Tensor) -> dict[str, Any]:
    """The numbers of a tensor. A large tensor has digests instead: in its own dtype, and in float64
    if its dtype is another one and float64 holds its numbers."""
    value = value.detach().cpu().contiguous()
    described: dict[str, Any] = {"dtype": str(value.dtype)}
    if value.numel() <= _MOST_NUMBERS:
        return described | {"values": value.tolist()}
    described |= {"shape": list(value.shape), "sha256": _digest(value)}
    double = value.double()
    if value.dtype is not torch.float64 and torch.equal(double.to(value.dtype), value):
        described[FLOAT64] = _digest(double)
    return described


def plain_array(value: np.ndarray) -> Any:
    """The numbers of an array, as `plain_tensor` describes them."""
    kind = value.dtype.newbyteorder("=") if value.dtype.itemsize <= 8 else np.dtype(np.float64)
    # This is a copy, because torch takes no reversed or read-only array.
    return plain_tensor(torch.from_numpy(np.array(value, dtype=kind)))


def same_numbers(one: Any, other: Any) -> bool:
    """Whether two parts of descriptions are the same numbers, of any dtype, in lists or tensors, as
    a column or a flat list. It is False if one of them is no numbers."""
    first = _Numbers.of(one)
    second = None if first is None else _Numbers.of(other)
    if first is None or second is None or first.shape != second.shape:
        return False
    if first.values is not None and second.values is not None:
        return _are_equal(first.values, second.values)
    return not first.digests.isdisjoint(second.digests)


@dataclass(frozen=True)
class _Numbers:
    """Numbers of a description.

    Args:
        shape: The shape, without ones at its end.
        values: All numbers; None if there are too many.
        known: The digests if there are too many numbers.
    """

    shape: tuple[int, ...]
    values: list[float] | None
    known: frozenset[str] = frozenset()

    @classmethod
    def of(cls, plain: Any, depth: int = 0) -> _Numbers | None:
        if type(plain) in (int, float):
            return cls((), [plain])
        if isinstance(plain, dict) and "dtype" in plain:
            if "values" in plain:
                return cls.of(plain["values"], depth)
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
        array = np.array(self.values, dtype=np.float64)
        exact = _are_equal(array.tolist(), self.values)
        return frozenset([_digest(torch.from_numpy(array))]) if exact else frozenset()


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
