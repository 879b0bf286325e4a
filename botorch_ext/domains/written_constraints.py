"""Constraints written as texts, such as ``"0.5 * equivalents + temperature <= 60"``."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from keyword import iskeyword
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import host
from botorch_ext.domains.box import require_known
from botorch_ext.domains.function_constraints import ParamsFunction

#: Weights of parameters, and what the weighted sum of their values may be at most.
LinearConstraint = tuple[Mapping[str, float], float]
# The weights of a sum by the names of parameters; the constant term has the empty name.
_Sum = dict[str, float]

_FORM = (
    "must compare expressions of parameters by <= or >=, of numbers, + - * / **, exp, log, sqrt, "
    "abs, min and max, with backticks around names that have blanks, as in "
    '"0.5 * amount + `reaction time` <= 60" or "time * exp(rate) <= 4"; for anything else give a '
    "function of the dict of values"
)
_QUOTED = re.compile("`([^`]*)`")
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_OF_ONE = {"exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "abs": torch.abs}
_OF_SEVERAL = {"min": torch.minimum, "max": torch.maximum}


@dataclass(frozen=True)
class Comparison:
    """A comparison of expressions: a weighted sum of terms that must be at least 0."""

    text: str
    terms: tuple[tuple[float, ast.expr], ...]

    @staticmethod
    def of_weights(text: str, weights: Mapping[str, float], bound: float) -> Comparison:
        """The comparison of a linear constraint."""
        terms = ((-float(weight), ast.Name(name)) for name, weight in weights.items())
        return Comparison(text, ((1.0, ast.Constant(float(bound))), *terms))

    @property
    def names(self) -> dict[str, None]:
        """The names of its parameters."""
        return {name: None for _, term in self.terms for name in _names(term)}

    def slack(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The sum of the terms, and the sum of their absolute values.

        Args:
            values: The values of each parameter.

        Raises:
            ValueError: If a term is no expression of numbers.
        """
        terms = [weight * _value(term, values) for weight, term in self.terms]
        return reduce(torch.add, terms), reduce(torch.add, map(torch.abs, terms))


def is_matrix(constraints: Any) -> bool:
    """Whether constraints are matrices ``(A, b)`` of columns, without names."""
    if not isinstance(constraints, tuple | list) or len(constraints) != 2:
        return False
    kinds = (isinstance(each, str) or _is_weighted(each) or callable(each) for each in constraints)
    return not any(kinds)


def read(
    constraints: Any, names: Collection[str]
) -> Iterator[tuple[str, LinearConstraint | Comparison | ParamsFunction]]:
    """Reads constraints: the text or the name of each, and its weights and bound, its comparison or
    the function itself.

    Args:
        constraints: Texts, pairs of weights by name and a bound, and functions; or one of them.
        names: The names of the parameters.

    Raises:
        ValueError: A constraint is something else.
    """
    listed = constraints if isinstance(constraints, list | tuple) else [constraints]
    for each in listed:
        if isinstance(each, str):
            yield from ((each, found) for found in of_text(each, names))
        elif _is_weighted(each):
            yield written(*each), each
        elif callable(each):
            yield getattr(each, "__name__", short(each)), each
        else:
            raise ValueError(
                'constraints must be texts, as in "a + 2 * b <= 3", functions of the dict of '
                "values, or pairs of weights and a bound, as in ({'a': 1, 'b': 2}, 3), got "
                f"{short(each)}"
            )


def _is_weighted(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Mapping)


def of_text(text: str, names: Collection[str]) -> Iterator[LinearConstraint | Comparison]:
    """Reads the constraints of a text; ``0 <= a + b <= 1`` has two.

    Args:
        text: Expressions of parameters and numbers, compared by ``<=`` or ``>=``. Names that are no
            identifiers of Python stand between backticks: ``2 * `reaction time` <= 60``. The text
            is parsed, and never evaluated.
        names: The names of the parameters.

    Raises:
        ValueError: The text is something else, is an equality, or has an unknown name.
    """
    quoted = {f"quoted_{i}_": name for i, name in enumerate(_QUOTED.findall(text))}
    identifiers = iter(quoted)
    try:
        plain = _QUOTED.sub(lambda _: next(identifiers), text.strip())
        tree = ast.parse(plain, mode="eval").body
        if not isinstance(tree, ast.Compare):
            raise ValueError("there is no comparison")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = quoted.get(node.id, node.id)
        sides, found = [tree.left, *tree.comparators], _names(tree)
        for side in sides:
            _value(side, dict.fromkeys(found, host.tensor(1.0)))
        sums = [_sum_if_linear(side) for side in sides]
    except (SyntaxError, ValueError, RecursionError, MemoryError, ArithmeticError) as error:
        reason = "it cannot be parsed" if isinstance(error, SyntaxError) else error
        raise ValueError(f"constraints {_FORM}, got {text!r}: {reason}") from None
    require_known(found, names, "constraints")
    pairs = zip(tree.ops, pairwise(sums), pairwise(sides), strict=True)
    for operation, (left, right), compared in pairs:
        if isinstance(operation, ast.Eq):
            raise ValueError(
                f"constraints must not be equalities, got {text!r}: leave one of its parameters "
                "out of the space and compute it from the others, or write it twice, with <= and >="
            )
        if not isinstance(operation, ast.LtE | ast.GtE):
            raise ValueError(f"constraints {_FORM}, got {text!r}")
        is_less = isinstance(operation, ast.LtE)
        if left is None or right is None:
            sign = 1.0 if is_less else -1.0
            yield Comparison(text, (*_terms(compared[1], sign), *_terms(compared[0], -sign)))
            continue
        smaller, larger = (left, right) if is_less else (right, left)
        weights = _plus(smaller, larger, -1.0)
        bound = -weights.pop("", 0.0)
        yield weights, bound + 0.0


def _names(tree: ast.expr) -> dict[str, None]:
    """The names in an expression that are not those of functions."""
    nodes = list(ast.walk(tree))
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    named = [node for node in nodes if isinstance(node, ast.Name) and node not in functions]
    return {node.id: None for node in named}


def _terms(node: ast.expr, sign: float) -> Iterator[tuple[float, ast.expr]]:
    """The signed terms of a sum."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operation, right=right):
            yield from _terms(left, sign)
            yield from _terms(right, sign if isinstance(operation, ast.Add) else -sign)
        case _:
            yield sign, node


def _value(node: ast.expr, values: Mapping[str, Tensor]) -> Tensor:
    """The values of an expression; a ValueError if it is something else."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return host.tensor(float(number), dtype=torch.float64)
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            value = _value(operand, values)
            return value if isinstance(sign, ast.UAdd) else -value
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _OF_ONE:
            return _OF_ONE[name](_value(argument, values))
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as arguments, keywords=[]) if (
            name in _OF_SEVERAL
        ):
            return reduce(_OF_SEVERAL[name], [_value(each, values) for each in arguments])
    raise ValueError(f"{ast.unparse(node)!r} is no such expression")


def _sum_if_linear(node: ast.expr) -> _Sum | None:
    try:
        return _sum(node)
    except ValueError:
        return None


def _sum(node: ast.expr) -> _Sum:
    """The weighted sum of an expression; a ValueError if it is something else."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return {"": float(number)}
        case ast.Name(id=name):
            return {name: 1.0}
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            return _plus({}, _sum(operand), 1.0 if isinstance(sign, ast.UAdd) else -1.0)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            factor = 1.0 if isinstance(sign, ast.Add) else -1.0
            return _plus(_sum(left), _sum(right), factor)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operation, right=right):
            one, other = _sum(left), _sum(right)
            if isinstance(operation, ast.Mult) and one.keys() == {""}:
                one, other = other, one
            if other.keys() == {""}:
                number = other[""]
                return _plus({}, one, number if isinstance(operation, ast.Mult) else 1 / number)
    raise ValueError(f"{ast.unparse(node)!r} is no such sum")


def _plus(one: _Sum, other: _Sum, factor: float) -> _Sum:
    names = dict.fromkeys((*one, *other))
    return {name: one.get(name, 0.0) + factor * other.get(name, 0.0) for name in names}


def written(weights: Mapping[str, float], bound: float) -> str:
    """The text of a constraint, from which `of_text` reads the same numbers."""
    terms = []
    for name, weight in weights.items():
        shown = name if name.isidentifier() and not iskeyword(name) else f"`{name}`"
        terms.append(shown if weight == 1 else f"{_digits(weight)} * {shown}")
    return f"{' + '.join(terms)} <= {_digits(bound)}"


def _digits(number: float) -> str:
    """The shortest text from which Python reads the same number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
