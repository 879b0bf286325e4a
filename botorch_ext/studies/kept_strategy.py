"""KeptStrategy: a strategy in memory that is kept up to date with the journal of its study."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor

from botorch_ext.codec import encode, is_same
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.exceptions import BrokenStudyError, ForkedStudyError, StudyError
from botorch_ext.strategies import Asked, Event, Strategy
from botorch_ext.strategies.event_lines import as_text, from_text
from botorch_ext.strategies.events import FromElsewhere
from botorch_ext.studies.description import versions
from botorch_ext.studies.threads import give_threads_back, limits_threads, threads_for

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from botorch_ext.studies.journal import Journal

T = TypeVar("T")
_VERSION = versions()["botorch-ext"]


def kept_copy(strategy: Strategy, minimize: bool | None) -> Strategy:
    """A copy of a strategy for a study or another tool that saves its events.

    Args:
        strategy: The strategy, without events.
        minimize: Whether small values are good; None where the strategy says it.

    Raises:
        ValueError: The strategy was made with another sign, or has values in one.
    """
    copy = strategy.clone()
    copy.set_minimize(minimize)
    copy.within = threads_for
    return copy


def in_domain(event: Event, strategy: Strategy) -> Event:
    """An event whose point and context are those of the domains, which may have other last digits
    on the machine where the event was written."""
    if not isinstance(event, Asked | FromElsewhere):
        return event
    trial, space = event.trial, strategy.context_space
    x, context = trial.x, trial.context
    if isinstance(event, Asked) or not isinstance(strategy.domain, Box):
        x = _nearest(x, strategy.domain, trial.info.get("index"))
    if context is not None and space is not None:
        context = _nearest(context, space.domain, None)
    if x is trial.x and context is trial.context:
        return event
    return replace(event, trial=replace(trial, x=x, context=context))


def _nearest(x: Tensor, domain: Domain | None, row: Any) -> Tensor:
    """The nearest point of a domain if it has the same numbers, else the point itself. ``row`` is
    the row of a finite set that is known to be meant, or None."""
    own = x
    if isinstance(domain, FiniteSet) and len(x) == domain.dim:
        if not (isinstance(row, int) and 0 <= row < domain.num_points):
            row = int((domain.points - x).abs().sum(dim=-1).argmin())
        own = domain.points[row]
    elif isinstance(domain, Box) and len(x) == domain.dim:
        own = torch.minimum(torch.maximum(x, domain.lower), domain.upper)
    if torch.equal(own, x) or not is_same(encode(own), encode(x)):
        return x
    return own.clone()


class KeptStrategy:
    """A strategy whose events are those of a journal. An action changes a successor of the
    strategy, which takes its place once the journal has the new events."""

    def __init__(self, strategy: Strategy, journal: Journal) -> None:
        self._process = os.getpid()
        self._strategy = kept_copy(strategy, journal.minimize)
        self._journal, self._position = journal, journal.start

    @property
    def known(self) -> Strategy:
        """The strategy at the end of the last call, to be read only; the journal is not read."""
        return self._strategy

    def change(self, act: Callable[[Strategy], T]) -> T:
        """The result of an action on the up-to-date strategy, under the lock of the study. The
        events of the action are saved."""

        def turn() -> T:
            answer, raised = None, None
            with self._journal.writing() as connection:
                self._catch_up(connection)
                strategy = self._strategy.successor()
                try:
                    answer = act(strategy)
                except Warning as warning:  # made an error by a filter: it has happened
                    raised = warning
                new = strategy.history.events[self._position.count :]
                bodies = [as_text(strategy._in_sign(event), _VERSION) for event in new]
                position = self._journal.append(connection, self._position, bodies)
            self._strategy, self._position = strategy, position
            if raised is not None:
                raise raised
            return cast(T, answer)

        return self._alone(turn)

    def read(self, look: Callable[[Strategy], T]) -> T:
        """The result of a function that only reads the up-to-date strategy."""

        def reading() -> T:
            with self._journal.reading() as connection:
                self._catch_up(connection)
            with threads_for(self._strategy):  # what is read may be kept for the next ask
                return look(self._strategy)

        return self._alone(reading)

    def _alone(self, call: Callable[[], T]) -> T:
        """The result of a call that no other thread, and no other call of this thread,
        interrupts."""
        self._require_own_turn()
        nested = limits_threads()
        try:
            return self._journal.database.alone(call)
        finally:
            if not nested:
                give_threads_back()

    def _catch_up(self, connection: Connection) -> None:
        entries, position = self._journal.since(connection, self._position)
        strategy, like = self._strategy.successor(), self._strategy.domain.like
        events = [from_text(entry.body, like) for entry in entries]
        events = [in_domain(event, strategy) for event in events]
        try:
            strategy.follow(events)
        except ValueError as error:
            number = len(strategy.history.events)
            raise BrokenStudyError(
                f"event {number} of study {self._journal.name!r} does not fit this strategy: "
                f"{error}"
            ) from error
        # The process that asked and told has raised these warnings; the report has them.
        strategy.take_warnings()
        self._strategy, self._position = strategy, position

    def _require_own_turn(self) -> None:
        if os.getpid() != self._process:
            raise ForkedStudyError(
                f"study {self._journal.name!r} was opened before this process was forked: open it "
                "again here"
            )
        if self._journal.database.is_alone:
            raise StudyError(
                f"study {self._journal.name!r} was used from inside one of its own calls, as by a "
                "signal handler or a mean function"
            )
