"""Noted warnings: warnings of a state that are kept for its report, and raised after an event."""

from __future__ import annotations

import sys
import warnings

from botorch_ext.state import State


class NotedWarnings(State):
    """A state that notes warnings while it changes, and raises them once it has changed."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        # Warnings that are yet to be raised.
        self._unraised: list[tuple[str, type[Warning]]] = []
        self._noted: set[type[Warning]] = set()

    def take_warnings(self) -> list[tuple[str, type[Warning]]]:
        """Takes the warnings that are not yet raised, so that they are never raised.

        Returns:
            Their messages and categories.
        """
        taken, self._unraised = self._unraised, []
        return taken

    def expect(self, category: type[Warning]) -> None:
        """Expects warnings: those of this category are neither raised nor reported.

        Args:
            category: The class of the warnings.
        """
        self._noted.add(category)

    def _note(self, message: str, category: type[Warning]) -> None:
        """Notes a warning: it is in the report at once, and is raised after the event."""
        self.warnings.append(message)
        self._unraised.append((message, category))

    def _note_once(self, message: str, category: type[Warning]) -> None:
        """Notes a warning, if it is the first of its category."""
        if category not in self._noted:
            self._noted.add(category)
            self._note(message, category)

    def _raise_warnings(self) -> None:
        """Raises all warnings. If a filter makes some of them errors, the first of these is raised
        at the end, with the others as notes."""
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
    """The ``stacklevel`` of the line that called this package."""
    level, frame = 1, sys._getframe(1)
    # Code that `exec` was given has no name.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("botorch_ext."):
        level, frame = level + 1, frame.f_back
    return level
