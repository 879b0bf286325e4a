"""Figures of a page are kept and not rendered, which takes most of the time of a page."""

from contextlib import contextmanager

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


@contextmanager
def kept_figures():
    """The figures that are drawn, one for each picture or panel."""
    from matplotlib.figure import Figure

    kept = []

    def keep(figure, file, **_):
        kept.append(figure)
        file.write("<svg></svg>")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", keep)
        yield kept


@pytest.fixture
def figures():
    with kept_figures() as kept:
        yield kept
