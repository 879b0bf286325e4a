"""Pages without pictures."""

import pytest

pytest.importorskip("sqlalchemy")


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Pictures take most of the time of a page, and are tested with the page."""
    monkeypatch.setattr("botorch_ext.reports.pictures.pictures", lambda *_: [])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"
