"""Notes: warnings of a strategy, in its report at once and raised when what was done is done."""

from __future__ import annotations

import sys
import warnings


class Notes:
    """What a strategy warns of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        # Those that are yet to be raised.
        self._unraised: list[tuple[str, type[Warning]]] = []
        self._noted: set[type[Warning]] = set()

    def take_warnings(self) -> list[tuple[str, type[Warning]]]:
        """The messages and categories of the warnings that are yet to be raised, once."""
        taken, self._unraised = self._unraised, []
        return taken

    def expect(self, category: type[Warning]) -> None:
        """Warnings of this category are not raised, nor reported: whoever made the strategy knows
        of them."""
        self._noted.add(category)

    def _note(self, message: str, category: type[Warning]) -> None:
        """A warning: it goes into the report at once, and is raised after the event."""
        self.warnings.append(message)
        self._unraised.append((message, category))

    def _note_once(self, message: str, category: type[Warning]) -> None:
        """As `_note`, the first of a category alone."""
        if category not in self._noted:
            self._noted.add(category)
            self._note(message, category)

    def _raise_warnings(self) -> None:
        while self._unraised:  # a filter can make a warning an error
            message, category = self._unraised.pop(0)
            warnings.warn(message, category, stacklevel=_level_of_the_caller())


def _level_of_the_caller() -> int:
    """The ``stacklevel`` of the line that called this package."""
    level, frame = 1, sys._getframe(1)
    # Code that `exec` was given has no name.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("botorch_ext."):
        level, frame = level + 1, frame.f_back
    return level
