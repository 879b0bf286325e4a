"""Column heads: the names of the columns in a study's tables, with their units."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from botorch_ext.aligned import free_names
from botorch_ext.checks import did_you_mean, named
from botorch_ext.domains import Box, Space
from botorch_ext.exceptions import TableError, TableWarning
from botorch_ext.parameters import Parameter
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.noted_warnings import level_of_the_caller
from botorch_ext.studies.sheets import IN_MEMORY, Origin, harmless

#: The column of the ids of trials.
TRIAL = "trial"
_NOTE = "note"
# Other columns of tables that this library writes.
_WRITTEN = re.compile(
    r"(state|note|(asked|ended|corrected)_at|first_value|info_.*|(predicted )?(mean|std)"
    r"|(observed )?[\d.]+ %|feasibility|.* repeats)_*"
)
# Of these, columns that people fill in, or that tell about results, and that are not read.
_TOLD = re.compile(r"note_+|.* repeats_*")
_WITH_UNIT = re.compile(r"(?P<name>.*\S)\s*[\[(](?P<unit>[^\[\]()]*)[\])]")


@dataclass(frozen=True)
class ColumnHeads:
    """The columns of a study.

    Args:
        params: The unit of each parameter by its name, None for a parameter without a unit.
        contexts: The unit of each context by its name, likewise.
        objective: The name of the objective.
        unit: The unit of the objective, None where it has none.
        outcomes: The unit of each outcome that is measured beside the objective by its name.
        std: The name of the standard error of the objective, which a table need not have; None if
            the strategy takes none.
        optional: The names of parameters and contexts whose cells may be empty: those with only one
            value, and those that do not always count.
        parameters: The parameters and contexts of a `Space` by name.
        note: The name of the notes, which a table need not have; None if another column has it.
    """

    params: Mapping[str, str | None]
    contexts: Mapping[str, str | None]
    objective: str
    unit: str | None
    outcomes: Mapping[str, str | None]
    std: str | None
    optional: Collection[str]
    parameters: Mapping[str, Parameter]
    note: str | None

    @classmethod
    def of(cls, strategy: Strategy, objective: str, unit: str | None) -> ColumnHeads:
        """The columns of a study.

        Raises:
            ValueError: Two columns have the same name.
        """
        domain, space = strategy.domain, strategy.context_space
        params, known, optional = _columns(domain)
        contexts: dict[str, str | None] = {}
        if space is not None and isinstance(space.domain, Space):
            contexts, more, empty = _columns(space.domain)
            known, optional = known | more, optional | empty
        elif space is not None:
            contexts = {f"context{j}": None for j in range(strategy._context_dim or 0)}
        outcomes: dict[str, str | None] = dict.fromkeys(strategy.outcome_names)
        outcomes |= strategy.outcome_units
        names = [TRIAL, *params, *contexts, objective, *outcomes]
        std = f"{objective} std" if strategy.refuses_std is None else None
        std = None if std in names else std
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"objective, outcomes, contexts and parameters must have names that differ "
                    f"from each other and from {TRIAL!r}, got {name!r} twice"
                )
        note = None if _NOTE in map(str.casefold, (*names, std or "")) else _NOTE
        return cls(params, contexts, objective, unit, outcomes, std, optional, known, note)

    def head(self, name: str) -> str:
        """The head of a column: its name, with its unit in brackets."""
        unit = self.units.get(name)
        return f"{name} [{unit}]" if unit else name

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of each column by its name."""
        units = {**self.params, **self.contexts, self.objective: self.unit, **self.outcomes}
        return units | ({} if self.std is None else {self.std: self.unit})

    @property
    def results(self) -> list[str]:
        """The names of what is measured: the objective, then the outcomes."""
        return [self.objective, *self.outcomes]

    @property
    def needed(self) -> list[str]:
        """The names of parameters and contexts that every table must have."""
        return [name for name in (*self.params, *self.contexts) if name not in self.optional]

    def read(
        self, heads: Sequence[object], needed: Collection[str], origin: Origin = IN_MEMORY
    ) -> dict[str, int]:
        """Finds the columns of a table. Names match without regard to case where only one name is
        meant. Other columns are not used.

        Args:
            heads: The heads of the table: names, or names with their units.
            needed: The names that must be there.
            origin: The table, for messages.

        Returns:
            From the names of columns to their places in the table: ``trial``, parameters, contexts,
            the objective, its standard error, the outcomes and ``note``.

        Raises:
            TableError: A name is missing, misspelt or there twice, or has another unit. The message
                names all mistakes.

        Warns:
            TableWarning: Columns are not used: those that this library does not write, and numbers
                of repeats. They are named.
        """
        texts = [str(head).strip() for head in heads]
        places: dict[str, int] = {}
        unknown, wrong = [], []
        for place, text in enumerate(texts):
            try:
                name = self.name(text)
            except ValueError as error:
                wrong.append(str(error))
                continue
            if name in places:
                wrong.append(f"column {name} is there twice, as {text!r}")
            elif name is not None:
                places[name] = place
            elif text and (not is_written(text) or _TOLD.fullmatch(text)):
                unknown.append(text)
        wanted = (*self.params, *self.contexts, *needed)
        lost = [name for name in wanted if name not in places]
        misspelt = {text: did_you_mean(name_and_unit(text)[0], lost) for text in unknown}
        wrong += [f"column {text!r} is unknown{hint}" for text, hint in misspelt.items() if hint]
        missing = [name for name in needed if name not in places]
        wrong += [f"column {self.head(name)} is missing" for name in missing]
        if missing and (others := [text for text in unknown if not misspelt[text]]):
            wrong.append(f"is one of these meant: {', '.join(map(repr, others))}?")
        if wrong:
            raise TableError(origin.message(named(wrong)))
        if unknown:
            warnings.warn(
                origin.message(f"columns that are not used: {named(list(map(repr, unknown)))}"),
                TableWarning,
                stacklevel=level_of_the_caller(),
            )
        return places

    def name(self, text: str) -> str | None:
        """The name of the column that a head means; None where it means none.

        Raises:
            ValueError: The head has another unit than the column.
        """
        names = (TRIAL, *self.units, *([] if self.note is None else [self.note]))
        for name in names:
            whole = (name, self.head(name))
            if text in [each.strip() for each in (*whole, *map(harmless, whole))]:
                return name
        stem, unit = name_and_unit(text)
        same = [name for name in names if name.casefold() == stem.casefold()]
        name = stem if stem in same else same[0] if len(same) == 1 else None
        if name is None or unit is None or name == self.note:
            return name
        wanted = self.units.get(name)
        if wanted is None:
            raise ValueError(f"column {name} must have no unit, got {unit!r}")
        # Compatible characters, such as ℃ and °C, are the same.
        if len({unicodedata.normalize("NFKC", text.strip()) for text in (wanted, unit)}) == 2:
            raise ValueError(f"column {name} must be in {wanted}, got {unit!r}: convert its values")
        return name


def state_place(heads: Sequence[object], names: Collection[str]) -> int | None:
    """The place of the column in which this library writes the states of trials; None without one.

    Args:
        heads: The heads of a table.
        names: The names of parameters, contexts and results, one of which may be ``state``.
    """
    (name,), texts = free_names(["state"], names), [str(head).strip() for head in heads]
    return texts.index(name) if name in texts else None


def is_written(head: str) -> bool:
    """Whether a head is one of a column that this library adds to tables."""
    return _WRITTEN.fullmatch(head) is not None


def name_and_unit(text: str) -> tuple[str, str | None]:
    """The name and the unit of a head; None where it has no unit."""
    found = _WITH_UNIT.fullmatch(text)
    return (found["name"], found["unit"]) if found is not None else (text, None)


def _columns(
    domain: object,
) -> tuple[dict[str, str | None], dict[str, Parameter], set[str]]:
    """The units by name, the parameters by name, and the names whose cells may be empty."""
    if isinstance(domain, Space):
        optional = {*domain.parameters} - {*domain.names} | {*domain.named_conditions}
        return dict(domain.units), dict(domain.parameters), optional
    names = domain.names  # pyright: ignore[reportAttributeAccessIssue]
    conditions = domain.conditions if isinstance(domain, Box) else {}
    return dict.fromkeys(names), {}, {names[j] for j in conditions}
