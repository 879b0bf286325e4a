"""The time of studies that are kept, and pages without pictures."""

import pytest

from botorch_ext.reports import drawing
from botorch_ext.studies import journal


@pytest.fixture
def clock(monkeypatch):
    """A time that stands still until it is moved."""

    class Clock:
        now = 1_795_000_000.25

        def time(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(journal, "time", clock)
    monkeypatch.setattr("botorch_ext.command_line.time", clock)
    return clock


@pytest.fixture
def empty_pictures(monkeypatch):
    """Nothing is drawn, which takes most of the time of a page: for tests of the rest of it."""
    monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
