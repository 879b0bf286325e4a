"""Opening studies: the journal of a study, found or begun."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from botorch_ext.exceptions import AnotherStrategyError, NoStudyError
from botorch_ext.strategies import Strategy
from botorch_ext.studies.column_heads import ColumnHeads
from botorch_ext.studies.description import describe, described_strategy, require_same
from botorch_ext.studies.kept_strategy import kept_copy

if TYPE_CHECKING:
    from botorch_ext.studies.journal import Journal


def opened(
    place: str | os.PathLike[str],
    name: str,
    minimize: bool | None,
    strategy: Strategy | None,
    texts: dict[str, str | None],
) -> tuple[Journal, Strategy]:
    """Opens the journal of a study, or begins one.

    Args:
        place: A path or a URL, as for `Study`.
        name: The name of the study.
        minimize: Whether small values are good; None where the strategy or the study knows it.
        strategy: The strategy of the study; None where it is to be made again from the description
            of the study.
        texts: The ``objective`` and its ``unit``, None where the study knows them.

    Raises:
        NoStudyError: There is no such study, and no strategy to begin one.
        AnotherStrategyError: The study was begun with other arguments.
    """
    from botorch_ext.studies.databases import Database
    from botorch_ext.studies.journal import Journal

    database = Database(place)
    whose = f"study {name!r} in {database.name}"
    if strategy is None:
        there = database.alone(lambda: Journal.open(database, name))
        if there is None:
            raise NoStudyError(f"{database.name} holds no study {name!r}: give its strategy")
        strategy = described_strategy(there.description, whose)
    description = describe(strategy)
    described = description | {key: text for key, text in texts.items() if text is not None}

    def found() -> Journal:
        journal = Journal.open(database, name)
        if journal is None:
            minimizes = kept_copy(strategy, minimize).minimize
            ColumnHeads.of(strategy, texts["objective"] or "value", texts["unit"])
            journal = Journal.begin(database, name, minimizes, described)
        return journal

    journal = database.alone(found)
    require_same(journal.description, description, whose)
    for key, text in texts.items():
        kept = journal.description.get(key)
        if kept is not None and text not in (None, kept):
            raise AnotherStrategyError(
                f"{whose} was begun with other arguments: {key} is {kept!r} in the study, got "
                f"{text!r}"
            )
    said = strategy._minimize if minimize is None else minimize
    if said not in (None, journal.minimize):
        raise AnotherStrategyError(
            f"study {name!r} in {database.name} was begun with other arguments: minimize is "
            f"{journal.minimize} in the study, got {said}"
        )
    return journal, strategy
