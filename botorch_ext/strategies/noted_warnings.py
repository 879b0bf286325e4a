"""Noted warnings: warnings of a state that are kept for its report, and raised after an event."""

from __future__ import annotations

import sys
import warnings

from botorch_ext.state import State


class NotedWarnings(State):
    """A state that notes warnings while it changes, and raises them once it has changed."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        # Messages and categories of warnings that have not been raised yet.
        self._unraised: list[tuple[str, type[Warning]]] = []
        self._noted: set[type[Warning]] = set()

    def take_warnings(self) -> list[tuple[str, type[Warning]]]:
        """The messages and categories of the warnings not raised yet, which are then forgotten."""
        taken, self._unraised = self._unraised, []
        return taken

    def expect(self, category: type[Warning]) -> None:
        """Suppresses warnings of a category, which are then neither raised nor reported."""
        self._noted.add(category)

    def _note(self, message: str, category: type[Warning]) -> None:
        """Adds a warning to the report at once; it is raised after the event."""
        self.warnings.append(message)
        self._unraised.append((message, category))

    def _note_once(self, message: str, category: type[Warning]) -> None:
        """As `_note`, but only for the first warning of a category."""
        if category not in self._noted:
            self._noted.add(category)
            self._note(message, category)

    def _raise_warnings(self) -> None:
        """Raises all warnings. If filters make some of them errors, the first error is raised last,
        with the others as notes."""
        first = None
        for message, category in self.take_warnings():
            try:
                warnings.warn(message, category, stacklevel=level_of_the_caller())
            except Warning as error:
                if first is None:
                    first = error
                else:
                    first.add_note(message)
        if first is not None:
            raise first


def level_of_the_caller() -> int:
    """The ``stacklevel`` of the line outside this package that called it."""
    level, frame = 1, sys._getframe(1)
    # Code that `exec` was given has no name.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("botorch_ext."):
        level, frame = level + 1, frame.f_back
    return level
