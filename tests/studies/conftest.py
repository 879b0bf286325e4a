"""Pages without pictures."""

import pytest

from botorch_ext.page import drawing


@pytest.fixture
def empty_pictures(monkeypatch):
    """Nothing is drawn, which takes most of the time of a page: for tests of the rest of it."""
    monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
