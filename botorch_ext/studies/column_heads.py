"""Column heads: what the columns of a study's tables are called, with units."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from botorch_ext.checks import did_you_mean, short
from botorch_ext.domains import Box, Space
from botorch_ext.domains.choices import Fixed
from botorch_ext.domains.parameters import Parameter
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import Strategy
from botorch_ext.studies.csv_sheets import harmless

#: The column of the ids of trials.
TRIAL = "trial"
_WITH_UNIT = re.compile(r"(?P<name>.*\S)\s*[\[(](?P<unit>[^\[\]()]*)[\])]")


@dataclass(frozen=True)
class ColumnHeads:
    """The columns of a study.

    Args:
        params: From the names of parameters to their units, None where they have none.
        contexts: Likewise, of contexts.
        objective: What the values are called.
        unit: What they are in, if that is said.
        optional: The names of parameters that may have no value: those with one value, and those
            that do not always count.
        parameters: Those that the columns have by name, where they have.
    """

    params: Mapping[str, str | None]
    contexts: Mapping[str, str | None]
    objective: str
    unit: str | None
    optional: Collection[str]
    parameters: Mapping[str, Parameter]

    @classmethod
    def of(cls, strategy: Strategy, objective: str, unit: str | None) -> ColumnHeads:
        """Those of a study of a strategy.

        Raises:
            ValueError: Two columns of one name.
        """
        domain, space = strategy.domain, strategy.context_space
        params, known, optional = _columns(domain)
        contexts: dict[str, str | None] = {}
        if space is not None and isinstance(space.domain, Space):
            contexts, more, _ = _columns(space.domain)
            known |= more
        elif space is not None:
            contexts = {f"context{j}": None for j in range(_context_dim(strategy))}
        names = [TRIAL, *params, *contexts, objective]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"objective, contexts and parameters must have names that differ from each "
                    f"other and from {TRIAL!r}, got {name!r} twice"
                )
        return cls(params, contexts, objective, unit, optional, known)

    def head(self, name: str) -> str:
        """What stands over a column: its name, with its unit in brackets."""
        unit = self.units.get(name)
        return f"{name} [{unit}]" if unit else name

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of each column by its name."""
        return {**self.params, **self.contexts, self.objective: self.unit}

    @property
    def needed(self) -> list[str]:
        """The columns of parameters and contexts that no table may lack."""
        return [name for name in (*self.params, *self.contexts) if name not in self.optional]

    def read(
        self, heads: Sequence[object], needed: Collection[str], others: Collection[str]
    ) -> dict[str, int]:
        """Where columns stand in a table.

        Args:
            heads: Those of the table: names, or names with their units.
            needed: The names that must be there.
            others: Names that may be there, beside those of parameters and contexts.

        Returns:
            From names to places.

        Raises:
            TableError: A name that is missing, unknown or there twice, or another unit; the message
                names all that is wrong.
        """
        allowed = dict.fromkeys([*others, *self.params, *self.contexts, *needed])
        places: dict[str, int] = {}
        wrong = []
        for place, given in enumerate(heads):
            try:
                name = self._name(given, allowed)
                if name in places:
                    raise ValueError(f"column {name} is there twice")
                places[name] = place
            except ValueError as error:
                wrong.append(str(error))
        wrong += [f"column {self.head(name)} is missing" for name in needed if name not in places]
        if wrong:
            raise TableError.of(wrong)
        return places

    def _name(self, given: object, allowed: Collection[str]) -> str:
        """The column that a head means, or a ValueError."""
        if not isinstance(given, str):
            raise ValueError(f"columns must have names, got {short(given)}")
        text = given.strip()
        for name in allowed:
            whole = (name, self.head(name))
            if text in [each.strip() for each in (*whole, *map(harmless, whole))]:
                return name
        found = _WITH_UNIT.fullmatch(text)
        if found is not None and found["name"] in allowed:
            name, unit = found["name"], self.units.get(found["name"])
            if unit is None:
                raise ValueError(f"column {name} must have no unit, got {found['unit']!r}")
            if _same_unit(unit, found["unit"]):
                return name
            raise ValueError(f"column {name} must be in {unit}, got {found['unit']!r}")
        stem = found["name"] if found is not None else text
        hint = did_you_mean(stem, allowed)
        raise ValueError(f"column {short(text)} is unknown, of {list(allowed)}{hint}")


def _context_dim(strategy: Strategy) -> int:
    """d_z, 0 before anything says it."""
    space, trials = strategy.context_space, strategy.history.trials
    if space is not None and space.dim is not None:
        return space.dim
    return len(trials[0].context) if trials and trials[0].context is not None else 0


def _columns(
    domain: object,
) -> tuple[dict[str, str | None], dict[str, Parameter], set[str]]:
    """Names with units, the parameters by name, and the names that may have no value."""
    if isinstance(domain, Space):
        optional = {n for n, each in domain.parameters.items() if isinstance(each, Fixed)}
        optional |= {*domain.parameters} - {*domain.names} | {*domain.named_conditions}
        return dict(domain.units), dict(domain.parameters), optional
    names = domain.names  # pyright: ignore[reportAttributeAccessIssue]
    conditions = domain.conditions if isinstance(domain, Box) else {}
    return dict.fromkeys(names), {}, {names[j] for j in conditions}


def _same_unit(one: str, other: str) -> bool:
    """Whether two units are the same text; a sign of one character is as its parts."""
    return unicodedata.normalize("NFKC", one.strip()) == unicodedata.normalize(
        "NFKC", other.strip()
    )
