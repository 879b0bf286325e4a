"""Parameters of a study: what its columns are called, and how their numbers are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from botorch_ext.page.strategy_description import as_dict, finite_rows, listed, strategies
from botorch_ext.page.words import number, short
from botorch_ext.parameters import Choice, Fixed, Integer, Ordered, Parameter, Real

#: Stands for the number of a column that does not count.
NOTHING = "\u2013"
_KINDS = {kind.__name__: kind for kind in (Real, Integer, Choice, Ordered, Fixed)}


@dataclass(frozen=True)
class Column:
    """A column of the points, the contexts or the values of a study.

    Args:
        name: What it is called.
        unit: What its numbers are in; empty where that is not said.
        log: Whether its scale is logarithmic.
        whole: Whether it has whole numbers alone.
        labels: From the codes of a choice to what they stand for; empty where it has none.
        has_name: Whether the user gave the name.
        needs: Where the column does not always count: the place of the column it depends on, and
            the numbers there with which it counts.
    """

    name: str
    unit: str = ""
    log: bool = False
    whole: bool = False
    labels: tuple[tuple[float, str], ...] = ()
    has_name: bool = False
    needs: tuple[int, tuple[float, ...]] | None = None

    @property
    def title(self) -> str:
        """The name with the unit, as over a column of a table."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def words(self, value: float | None) -> str:
        """A number of the column, without its unit."""
        return dict(self.labels).get(value, number(value)) if value is not None else ""

    def amount(self, value: float | None) -> str:
        """A number of the column with its unit."""
        return self.with_unit(self.words(value))

    def with_unit(self, words: str) -> str:
        """Words for a number with the unit behind them."""
        return f"{words} {self.unit}" if words and self.unit else words


@dataclass(frozen=True)
class Columns:
    """The columns of a study."""

    x: tuple[Column, ...]
    context: tuple[Column, ...]

    @property
    def all(self) -> tuple[Column, ...]:
        """The columns of points, then those of contexts."""
        return (*self.x, *self.context)

    def cells(self, x: Sequence[float], context: Sequence[float] = ()) -> list[str]:
        """The numbers of a point and a context, for a table; a dash where a column does not
        count."""
        known = zip((*self.x, *self.context[: len(context)]), (*x, *context), strict=False)
        return [
            column.words(number) if j >= len(x) or self.counts(j, x) else NOTHING
            for j, (column, number) in enumerate(known)
        ]

    def at(self, x: Sequence[float], context: Sequence[float] = ()) -> str:
        """A point with its context in words: with names, or as numbers in brackets."""
        words = _in_words(self.x, self.cells(x))
        return f"{words} in context {self.context_in_words(context)}" if context else words

    def context_in_words(self, context: Sequence[float]) -> str:
        """A context, with names or as numbers in brackets."""
        return _in_words(
            self.context, [c.words(z) for c, z in zip(self.context, context, strict=True)]
        )

    def counts(self, j: int, x: Sequence[float]) -> bool:
        """Whether column j of points counts at a point."""
        seen = set()
        while (needs := self.x[j].needs) is not None and j not in seen:
            seen.add(j)
            j, numbers = needs
            if j >= len(x) or x[j] not in numbers:
                return False
        return True


def columns_of(
    description: dict[str, Any],
    num_x: int,
    num_context: int,
    text: Callable[[str], str] = short,
) -> Columns:
    """The columns of a study by the description of its strategy, which may be that of anybody.
    ``text`` is applied to names, units and choices."""
    found: dict[str, list[Column]] = {}
    for strategy in strategies(description):
        contexts = as_dict(strategy.get("context_domain"))
        spaces = (
            ("x", num_x, strategy.get("domain")),
            ("context", num_context, contexts.get("domain", contexts)),
        )
        for prefix, num, space in spaces:
            named = _named(as_dict(space), num, text)
            if prefix not in found or named:
                found[prefix] = named or _numbered(as_dict(space), prefix, num)
    x, context = (
        tuple(found.get(prefix) or _numbered({}, prefix, num))
        for prefix, num in (("x", num_x), ("context", num_context))
    )
    return Columns(x, context)


def _in_words(columns: Sequence[Column], cells: Sequence[str]) -> str:
    """Numbers with their names and units, or in brackets where they have none."""
    if not columns or not columns[0].has_name:
        return f"({', '.join(cells)})"
    named = zip(columns, cells, strict=False)
    return ", ".join(
        f"{column.name} {column.with_unit(cell)}" for column, cell in named if cell != NOTHING
    )


def _numbered(space: dict[str, Any], prefix: str, num: int) -> list[Column]:
    """Columns without names: those of a box, or of no space that is known."""
    log, integer = (_places(space.get(key)) for key in ("log", "integer"))
    codes = {key: finite_rows([each]) for key, each in as_dict(space.get("categories")).items()}
    return [
        Column(
            f"{prefix}{j}",
            log=j in log,
            whole=j in integer,
            labels=tuple((code, number(code)) for row in codes.get(str(j), []) for code in row),
            needs=_needs(space, j, num),
        )
        for j in range(num)
    ]


def _named(space: dict[str, Any], num: int, text: Callable[[str], str]) -> list[Column]:
    """Columns of named parameters; none where it is no space of so many columns."""
    try:
        parameters = {n: _parameter(each) for n, each in as_dict(space.get("parameters")).items()}
        free = [name for name, each in parameters.items() if each.ends[0] < each.ends[1]]
        needs = {
            name: (free.index(parent), tuple(map(parameters[parent].encoded, values)))
            for name, (parent, values) in as_dict(space.get("conditions")).items()
            if parent in free
        }
    except (LookupError, TypeError, ValueError):  # of parameters that cannot be made
        return []
    return [
        Column(
            text(name),
            unit=text(known.unit or ""),
            log=known.log,
            whole=isinstance(known, Integer),
            labels=_labels(known, text),
            has_name=True,
            needs=needs.get(name),
        )
        for name in (free if len(free) == num else ())
        for known in [parameters[name]]
    ]


def _parameter(plain: dict[str, Any]) -> Parameter:
    arguments = dict(plain)
    return _KINDS[arguments.pop("class")](**arguments)


def _labels(parameter: Parameter, text: Callable[[str], str]) -> tuple[tuple[float, str], ...]:
    values = parameter.values if isinstance(parameter, Choice) else ()
    return tuple((float(code), text(str(value))) for code, value in enumerate(values))


def _needs(space: dict[str, Any], j: int, num: int) -> tuple[int, tuple[float, ...]] | None:
    needed = as_dict(space.get("conditions")).get(str(j))
    if not isinstance(needed, list) or len(needed) != 2:
        return None
    parent, rows = needed[0], finite_rows([needed[1]])
    if type(parent) is not int or not 0 <= parent < num or not rows:
        return None
    return parent, tuple(rows[0])


def _places(plain: Any) -> list[int]:
    return [j for j in listed(plain) if type(j) is int]
