"""What is called by another name now than in the recorded sessions.

A recorded trial is replayed with the info that `info` makes of its own; recorded reports are
compared with new ones after `report` has renamed them. Both are given the method of the entry (its
name in the registry) and a dict that they may change. Add a case where a name changes, and the
reason.
"""

from __future__ import annotations

from typing import Any

from botorch_ext.strategies import Event
from tests.laws.sessions import from_plain


def info(method: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """The info that the trial has now."""
    return recorded


def report(method: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """The report that there is now, but for keys that are new."""
    return recorded


def event(method: str, record: list[Any]) -> Event:
    """The event that there is now, from a recorded one."""
    if record[0] == "asked":
        record = [*record[:4], info(method, dict(record[4]))]  # without the step of the offer
    return from_plain(record)
