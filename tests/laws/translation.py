"""What is called by another name now than in the recorded sessions.

A recorded trial is replayed with the info that `info` makes of its own; recorded questions and
reports are compared with new ones as `asked` and `report` rename them. All are given the method of
the entry (its name in the registry) and a dict that they may change. Add a case where a name
changes, and the reason.
"""

from __future__ import annotations

from typing import Any

from botorch_ext.strategies import Event
from tests.laws.sessions import from_plain


def info(method: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """The info that the trial has now."""
    return recorded


def asked(method: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """Of the info that a question has now, what a recorded one says of it: all of `info`, but for
    what the recorded one does not know."""
    return info(method, recorded)


def report(method: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """The report that there is now, but for keys that are new."""
    return recorded


def event(method: str, record: list[Any]) -> Event:
    """The event that there is now, from a recorded one."""
    if record[0] == "asked":
        record = [*record[:4], info(method, dict(record[4]))]  # without the step of the offer
    return from_plain(record)
