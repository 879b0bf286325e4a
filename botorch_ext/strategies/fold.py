"""Fold over events.

A strategy's state is changed by applying events and by nothing else. So its events are a complete
checkpoint: replaying them on a freshly made strategy costs no optimisation and gives the same next
question bit for bit on the same machine.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from itertools import islice
from typing import Any, Generic, Self, TypeVar

from botorch_ext.checks import one_number, short
from botorch_ext.domains import Domain
from botorch_ext.immutable import Immutable
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    History,
    Told,
    Trial,
    as_told_right,
    copied,
)
from botorch_ext.strategies.notes import Notes
from botorch_ext.strategies.recorded_events import abandoned, are_members, corrected, told

_State = TypeVar("_State")
_Result = TypeVar("_Result")


class EventFold(Notes, ABC):
    """A state that is changed by applying events and by nothing else.

    A subclass says how an event changes it, and what can be no event of it. Attributes are state,
    and copied with it, unless they are `Immutable`.
    """

    #: Where the points of events live.
    domain: Domain
    #: Why results that were not asked for are refused; None where they are taken.
    refuses_attached: str | None = None
    #: What events happen in, given this state: they may want few threads.
    within: Callable[..., AbstractContextManager[Any]] = nullcontext
    #: Whether what breaks off half way is undone at once; who says no does it where `is_torn`.
    undoes: bool = True

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        # This state before its first event.
        self._pristine: _Pristine[Self] | None = None
        # How many events had happened when something began to change the state, until it is done.
        self._torn_at: int | None = None
        # Whether values are others than those by which recorded trials were chosen.
        self._is_corrected = False

    def replay(self, events: Iterable[Event]) -> None:
        """Applies recorded events: the state is then that of the strategy that recorded them. Parts
        of the strategy that were read before, such as bases, are then no longer its own.

        Args:
            events: `events` of a strategy that was made with the same arguments.

        Raises:
            ValueError: An event that cannot follow the ones before it, or a trial that does not
                belong to the domain or that the method would not have asked. Whatever is raised,
                none of the events is then applied.
        """
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise ValueError(f"events must be those of a strategy, got {short(events)}")
        events = [copied(event) for event in self.checked(list(events))]
        after = self.clone()
        after.follow(events)
        after._raise_warnings()
        vars(self).update(vars(after))

    def follow(self, events: Sequence[Event]) -> None:
        """Applies events without the copies that `replay` makes: they are the strategy's from now
        on. Up to the last correction they are folded once, as if every value had been told right.
        What they warn of is left to `take_warnings`.

        Raises:
            ValueError: As `replay`; the event that is wrong and those after it are not applied.
        """
        self._make_whole()
        checked, num_first = self.checked(events), _num_until_corrected(events)
        if num_first:
            try:
                first = [*self.history.events, *islice(checked, num_first)]
                self._become(self._after(first))
            except ValueError:  # one after the other, to stop at the one that is wrong
                checked = self.checked(events)
        for event in checked:
            self._happen(event)

    def checked(self, events: Sequence[Event]) -> Iterator[Event]:
        """Events from elsewhere, each looked at when it is its turn, after those before it were
        applied or not.

        Raises:
            ValueError: One that can follow no events, or is of another domain.
        """
        known = are_members(events, self.domain)
        for event in events:
            yield self._checked(event, known)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order; a copy."""
        return tuple(copied(event) for event in self.history.events)

    @property
    def pending(self) -> list[int]:
        """Ids asked and neither told nor abandoned."""
        return self.history.pending

    def clone(self) -> Self:
        """A strategy in the same state that goes its own way from here."""
        return deepcopy(self)

    def started(self) -> Self:
        """A clone of a strategy that has no events and gets none: it begins there, and needs no
        copy of its own to begin again."""
        new = self.clone()
        new._pristine = _Pristine(self)
        return new

    def check_event(self, event: Event) -> None:
        """Raises, and changes nothing that shows, unless the event can come now.

        Raises:
            UnknownTrialError: The trial is not pending.
            ValueError: A trial that the method would not ask, or a value that it cannot take.
        """
        if isinstance(event, Attached) and self.refuses_attached is not None:
            who = type(self).__name__
            raise ValueError(f"{who} takes no attached results: {self.refuses_attached}")
        self.history.check(event)
        self._check_event(event)

    def fold(self, event: Event) -> None:
        """Changes the state by the event that `check_event` accepted last; what it warns of is
        raised by the call that made the event, or taken by `take_warnings`."""
        self.history.apply(event)
        if isinstance(event, Corrected):
            self._become(self._after(self.history.events))
        else:
            self._absorb(event)

    @property
    def is_torn(self) -> bool:
        """Whether something broke off that was to change the state, and was not undone."""
        return self._torn_at is not None

    # --- for subclasses ---------------------------------------------------------------------------

    @abstractmethod
    def check_recorded(self, trial: Trial, is_member: bool = False) -> None:
        """A ValueError unless a trial from elsewhere can be one of this domain and context;
        ``is_member`` says that its point is known to be one of the domain, and of its index."""

    @abstractmethod
    def _check_attached(self, trial: Trial, is_member: bool) -> None:
        """A ValueError unless a trial from elsewhere can be one that was attached."""

    def _check_event(self, event: Event) -> None:
        """A ValueError, and no change that shows, where a recorded event is none that can come now:
        a trial that the method would not ask, a value that it cannot take."""

    @abstractmethod
    def _absorb(self, event: Event) -> None:
        """Updates the model for an event that was checked and is the last one of the history."""

    def _take_as_asked(self, is_corrected: bool) -> None:
        """Says whether values are others than those by which trials were chosen: a check of a
        record that depends on values is then left out, and what a record says of them is computed
        again."""
        self._is_corrected = is_corrected

    def _forget_fits(self, id: int) -> None:
        """Forgets what was fitted to the value of a trial that is now another."""

    # --- what happens -----------------------------------------------------------------------------

    def _checked(self, event: Event, is_member: bool) -> Event:
        """An event from elsewhere, or a ValueError where it can follow no events; ``is_member`` as
        for `check_recorded`."""
        match event:
            case Asked(trial):
                self.check_recorded(trial, is_member)
                return event
            case Told(id, value):
                return told(id, value)
            case Abandoned(id, failed):
                return abandoned(id, failed)
            case Attached(trial, value):
                self._check_attached(trial, is_member)
                return Attached(trial, one_number(value, "value", f" for trial {trial.id}"))
            case Corrected(id, value):
                return corrected(id, value)
        raise ValueError(f"events must be those of a strategy, got a {type(event).__name__}")

    def _after(self, events: Sequence[Event]) -> Self:
        """This state after all of its events: up to the last correction they are folded as if every
        value had been told right."""
        after = self._beginning().clone()
        after._pristine = self._pristine
        first = events[: _num_until_corrected(events)]
        after._take_as_asked(True)
        for event in as_told_right(first):
            with after.within(after):
                after.check_event(event)
                if isinstance(event, Corrected):
                    after._forget_fits(event.id)
                else:
                    after.fold(event)
        after._take_as_asked(False)
        after.history.events = list(first)
        after.history.corrected = {event.id for event in first if isinstance(event, Corrected)}
        for event in events[len(first) :]:
            with after.within(after):
                after.check_event(event)
                after.fold(event)
        return after

    def _become(self, after: Self) -> None:
        """Takes over another state; what was raised already is not raised again."""
        after._unraised = [
            warning
            for warning in after._unraised
            if warning in self._unraised or warning[0] not in self.warnings
        ]
        vars(self).update(vars(after))

    def _change(self, change: Callable[..., _Result], *given: Any) -> _Result:
        """Calls what changes the state. Should it break off, whatever the reason, the state is made
        anew from the events before."""
        self._beginning()
        self._torn_at = len(self.history.events)
        try:
            result = change(*given)
            self._torn_at = None
        except BaseException:
            if self.undoes:
                self._make_whole()
            raise
        return result

    def _beginning(self) -> Self:
        """This state before its first event."""
        if self._pristine is None:
            self._pristine = _Pristine(self.clone())
        return self._pristine.state

    def _make_whole(self) -> None:
        """Makes the state anew where it `is_torn`."""
        if self._torn_at is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one that is an error may be what broke off
            self._become(self._after(self.history.events[: self._torn_at]))

    def _apply(self, event: Event) -> None:
        self._happen(event)
        # Last: should one of them be made an error, the event has happened all the same.
        self._raise_warnings()

    def _happen(self, event: Event) -> None:
        self._make_whole()
        with self.within(self):
            self.check_event(event)
            self._change(self.fold, event)


class _Pristine(Immutable, Generic[_State]):
    """A state that stays without events."""

    def __init__(self, state: _State) -> None:
        self.state = state


def _num_until_corrected(events: Sequence[Event]) -> int:
    """How many events there are up to the last correction."""
    places = range(len(events), 0, -1)
    return next((place for place in places if isinstance(events[place - 1], Corrected)), 0)
