"""Linear constraints written as texts, such as ``"0.5 * equivalents + temperature <= 60"``."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from keyword import iskeyword
from typing import Any

from botorch_ext.checks import short
from botorch_ext.domains.box import require_known

#: Weights of parameters, and what the weighted sum of their values may be at most.
LinearConstraint = tuple[Mapping[str, float], float]
# The weights of a sum by the names of parameters; the constant term has the empty name.
_Sum = dict[str, float]

_FORM = (
    "must be sums of parameters times numbers with <= or >=, and backticks around names that have "
    'blanks, as in "0.5 * amount + `reaction time` <= 60"'
)
_QUOTED = re.compile("`([^`]*)`")


def is_matrix(constraints: Any) -> bool:
    """Whether constraints are matrices ``(A, b)`` of columns, without names."""
    if not isinstance(constraints, tuple | list) or len(constraints) != 2:
        return False
    return not any(isinstance(each, str) or _is_weighted(each) for each in constraints)


def read(
    constraints: Any, names: Collection[str]
) -> Iterator[tuple[str, Mapping[str, float], float]]:
    """Reads constraints: the text, the weights and the bound of each.

    Args:
        constraints: Texts, and pairs of weights by name and a bound; or one text.
        names: The names of the parameters.

    Raises:
        ValueError: A constraint is something else.
    """
    listed = constraints if isinstance(constraints, list | tuple) else [constraints]
    for each in listed:
        if isinstance(each, str):
            yield from ((each, *pair) for pair in of_text(each, names))
        elif _is_weighted(each):
            yield written(*each), *each
        else:
            raise ValueError(
                'constraints must be texts, as in "a + 2 * b <= 3", or pairs of weights and a '
                f"bound, as in ({{'a': 1, 'b': 2}}, 3), got {short(each)}"
            )


def _is_weighted(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Mapping)


def of_text(text: str, names: Collection[str]) -> Iterator[LinearConstraint]:
    """Reads the constraints of a text; ``0 <= a + b <= 1`` has two.

    Args:
        text: Sums of parameters times numbers, compared by ``<=`` or ``>=``. Names that are no
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
        sides = [_sum(side) for side in (tree.left, *tree.comparators)]
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError) as error:
        reason = "it cannot be parsed" if isinstance(error, SyntaxError) else error
        raise ValueError(f"constraints {_FORM}, got {text!r}: {reason}") from None
    found = {node.id: None for node in ast.walk(tree) if isinstance(node, ast.Name)}
    require_known(found, names, "constraints")
    for operation, (left, right) in zip(tree.ops, pairwise(sides), strict=True):
        if isinstance(operation, ast.Eq):
            raise ValueError(
                f"constraints must not be equalities, got {text!r}: leave one of its parameters "
                "out of the space and compute it from the others, or write it twice, with <= and >="
            )
        if not isinstance(operation, ast.LtE | ast.GtE):
            raise ValueError(f"constraints {_FORM}, got {text!r}")
        smaller, larger = (left, right) if isinstance(operation, ast.LtE) else (right, left)
        weights = _plus(smaller, larger, -1.0)
        bound = -weights.pop("", 0.0)
        yield weights, bound + 0.0


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
