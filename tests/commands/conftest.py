"""The time of studies and commands, and pages without pictures."""

import pytest

from botorch_ext.studies import journal

pytest.importorskip("sqlalchemy")


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


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Pictures take most of the time of a page, and are tested with the page."""
    monkeypatch.setattr("botorch_ext.reports.pictures.pictures", lambda *_: [])
