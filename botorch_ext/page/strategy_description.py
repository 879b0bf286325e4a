"""Strategy description: what the description of a study says of its strategy, for readers.

Files of others may hold any description, and none of them is an error.
"""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from botorch_ext.limits import AtLeast, AtMost, Limit
from botorch_ext.page.words import in_words, short

# Strategies that one plays which are shown, and levels at which they are compared.
_MOST_BASES, _DEEPEST = 12, 8
# The deepest nesting of a description, and the codes of Python's arrays for dtypes of tensors.
_DEEPEST_VALUES = 64
_LIMITS = {"AtLeast": AtLeast, "AtMost": AtMost}
_CODES = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "bool": "b"}


@dataclass(frozen=True)
class GivenData:
    """Data that a strategy was made with, of which there is no event.

    Args:
        count: How many observations they are.
        points: Their coordinates; none where they are too many to be kept.
        values: As the strategy sees them; none likewise.
    """

    count: int
    points: list[list[float]]
    values: list[float]


def readable(description: dict[str, Any]) -> dict[str, Any]:
    """A description whose parts are those of Python: objects are dicts of their class and their
    arguments, and tensors are lists."""
    return description | {"strategy": _readable(description.get("strategy"), 0)}


def _readable(plain: Any, depth: int) -> Any:
    if depth > _DEEPEST_VALUES:
        return "..."
    if isinstance(plain, list):
        return [_readable(part, depth + 1) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if "tensor" in plain:
        return _rows(plain)
    if len(plain) == 1 and "dict" in plain:
        parts = plain["dict"]
        pairs = parts if isinstance(parts, list) else as_dict(parts).items()
        pairs = [pair for pair in pairs if isinstance(pair, list | tuple) and len(pair) == 2]
        return {str(key): _readable(part, depth + 1) for key, part in pairs}
    if len(plain) == 1 and "dtype" in plain:
        return plain["dtype"]
    name = plain.get("class", plain.get("algorithm", plain.get("unknown")))
    if name is None:
        return plain
    inner = {
        key: _readable(part, depth + 1) for key, part in as_dict(plain.get("arguments")).items()
    }
    return {"class": str(name).rpartition(".")[2]} | inner | _values(plain)


def _values(plain: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a kernel or a mean, whose description has the numbers of the optimiser."""
    found, constraints = {}, as_dict(plain.get("constraints"))
    for key, tensor in as_dict(plain.get("values")).items():
        rows, given = _rows(as_dict(tensor)), constraints.get(f"{key}_constraint", ["Positive"])
        is_raw = key.startswith("raw_") and key != "raw_constant"
        if is_raw and given == ["Positive"]:
            rows = _each(lambda raw: max(raw, 0.0) + math.log1p(math.exp(-abs(raw))), rows)
        if not is_raw or given == ["Positive"] or listed(given)[-1:] == [None]:
            found[key.removeprefix("raw_")] = rows
    return found


def _each(function: Callable[[float], float], rows: Any) -> Any:
    if isinstance(rows, list):
        return [_each(function, row) for row in rows]
    return function(rows) if is_number(rows) else rows


def _rows(tensor: dict[str, Any]) -> Any:
    """The numbers of a tensor, nested as its shape says; its shape if they are unknown."""
    shape, values = tensor.get("shape"), tensor.get("values")
    if "bytes" in tensor and (code := _CODES.get(str(tensor.get("tensor")))) is not None:
        try:
            values = array(code, base64.b64decode(tensor["bytes"])).tolist()
        except (ValueError, TypeError):
            return tensor
    sizes = shape if isinstance(shape, list) and all(type(size) is int for size in shape) else None
    if not isinstance(values, list) or sizes is None or math.prod(sizes) != len(values):
        return {"dtype": tensor.get("tensor"), "shape": shape}
    for size in reversed(sizes[1:]):
        values = [values[i : i + size] for i in range(0, len(values), size)] if size else values
    return values if sizes else values[0]


def names(plain: Any, argument: str) -> bool:
    """Whether a readable description has an argument, at any depth, that is not None."""
    if isinstance(plain, list):
        return any(names(part, argument) for part in plain)
    if not isinstance(plain, dict):
        return False
    own = plain.get(argument) is not None
    return own or any(names(part, argument) for part in plain.values())


def called(description: dict[str, Any]) -> str:
    """What a strategy is called: the function it was made by, or its class."""
    strategy = description.get("strategy")
    of_class = strategy.get("class") if isinstance(strategy, dict) else strategy
    return short(in_words(of_class))


def arguments(description: dict[str, Any]) -> list[tuple[str, str]]:
    """The arguments of a strategy by name, in words; those that are None are left out."""
    return [
        (short(key), _alike(part) if key in ("bases", "bounds") else in_words(part))
        for key, part in as_dict(description.get("strategy")).items()
        if key != "class" and part is not None
    ]


def bases(description: dict[str, Any]) -> list[str]:
    """What sets each of the strategies apart that one plays; none where nothing does."""
    strategy = as_dict(description.get("strategy"))
    apart = _apart(strategy.get("bounds")) or _apart(strategy.get("bases"))
    return [", ".join(f"{key}={in_words(part)}" for key, part in one.items()) for one in apart]


def given_data(description: dict[str, Any]) -> GivenData | None:
    """The data that the strategy was made with, if there are some."""
    for strategy in strategies(description):
        initial = strategy.get("initial")
        if isinstance(initial, list) and len(initial) == 2:
            X, Y = initial
            points, values = finite_rows(X), finite_rows(Y)
            if values and len(points) in (0, len(values)):
                return GivenData(len(values), points, [row[0] for row in values])
    return None


def limits_of(description: dict[str, Any]) -> dict[str, Limit]:
    """The limits of outcomes by name, as far as they are limits."""
    found: dict[str, Limit] = {}
    for strategy in strategies(description):
        for name, plain in as_dict(strategy.get("outcomes")).items():
            kind = _LIMITS.get(str(as_dict(plain).get("class")))
            with suppress(ValueError, TypeError):
                limit = Limit.read(plain, name) if kind is None else kind(plain["bound"])
                unit = as_dict(plain).get("unit")
                found[name] = replace(limit, unit=short(unit) if isinstance(unit, str) else None)
    return found


def _alike(part: Any) -> str:
    """Things that differ in little: the first of them, and in what."""
    apart = _apart(part)
    if not apart:
        return in_words(part)
    each = "; ".join(in_words(one) for one in apart[:_MOST_BASES])
    words = f"{len(part)}, of which the first is {in_words(part[0])}; they differ in "
    return f"{words}{each}{', ...' if len(apart) > _MOST_BASES else ''}"


def _apart(plain: Any) -> list[dict[str, Any]]:
    """Of several things what differs among them, by name."""
    if not isinstance(plain, list) or not plain or not all(isinstance(one, dict) for one in plain):
        return []
    flat = [_flat(one) for one in plain]
    keys = [key for key in flat[0] if any(one.get(key) != flat[0][key] for one in flat)]
    return [{key[-1]: one.get(key) for key in keys} for one in flat] if keys else []


def _flat(plain: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    flat: dict[tuple[str, ...], Any] = {}
    for key, part in plain.items():
        inner = isinstance(part, dict) and len(above) < _DEEPEST
        flat |= _flat(part, (*above, key)) if inner else {(*above, key): part}
    return flat


def strategies(description: dict[str, Any]) -> list[dict[str, Any]]:
    """The strategy, and those that it plays."""
    strategy = as_dict(description.get("strategy"))
    return [strategy, *map(as_dict, listed(strategy.get("bases")))]


def as_dict(plain: Any) -> dict[str, Any]:
    """What is a dict; an empty one where it is anything else."""
    return plain if isinstance(plain, dict) else {}


def listed(plain: Any) -> list[Any]:
    """What is a list; an empty one where it is anything else."""
    return plain if isinstance(plain, list) else []


def finite_rows(plain: Any) -> list[list[float]]:
    """Rows of finite numbers; none where it is anything else."""
    rows = [row if isinstance(row, list) else [row] for row in listed(plain)]
    if not all(row and all(map(is_number, row)) for row in rows):
        return []
    return [[float(cell) for cell in row] for row in rows]


def is_number(plain: Any) -> TypeGuard[int | float]:
    """Whether it is a number that a float can be."""
    return type(plain) in (int, float) and abs(plain) <= sys.float_info.max
