"""Drawing: pictures of matplotlib as SVG that takes the colours and the font of its page."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from botorch_ext.aligned import cut
from botorch_ext.page.overview import Overview, State, TrialStory
from botorch_ext.page.parameters import Column
from botorch_ext.page.words import in_words
from botorch_ext.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN, PINK, _ORANGE, SKY, _ = PALETTE
_GREY = "#7f7f7f"
# Of trials in each state, the marker and the colour.
LOOKS: dict[State, tuple[str, str]] = {
    "told": ("o", BLUE),
    "attached": ("D", GREEN),
    "pending": ("^", _ORANGE),
    "failed": ("X", RED),
    "abandoned": ("s", _GREY),
}
# Marks of a kind from which on they are drawn as an image.
MOST_MARKS = 400
# What is raised for numbers that cannot be drawn, and by a model.
_WRONG = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
_MOST_CODES, _MOST_CHARACTERS = 12, 18
# The width of a picture, and the sides of a panel, in inches of 72 points: as wide as a phone, so
# that letters are as large there as they are beside the picture.
_WIDTH, _PANEL = 4.6, (2.4, 2.2)
# Characters of a label in an inch.
_PER_INCH = 11
# Stand for the colours that the page gives to text, to lines of a grid, and to what is behind them.
_INK, _GRID, BEHIND = "#010203", "#040506", "#070809"
_LOOK = {
    "axes.edgecolor": _GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "date.converter": "concise",
    "figure.dpi": 72,
    "figure.facecolor": "none",
    "font.size": 10,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": _INK,
    # A dollar sign in a name is one.
    "text.parse_math": False,
    "timezone": "UTC",
    "xtick.color": _GRID,
    "xtick.labelcolor": _INK,
    "ytick.color": _GRID,
    "ytick.labelcolor": _INK,
}
# Four entries are no wider than a picture.
_LEGEND: dict[str, Any] = {
    "loc": "outside upper left",
    "handletextpad": 0.4,
    "handlelength": 1.2,
    "columnspacing": 0.9,
}


@dataclass(frozen=True)
class Picture:
    """A picture and its description.

    Args:
        title: The title above the picture.
        words: The description in plain sentences, also for readers who cannot see the picture.
        svgs: The drawing, or one for each panel; empty if it failed.
        has_panels: Whether it has panels.
    """

    title: str
    words: str
    svgs: list[str]
    has_panels: bool = False


def drawn(
    title: str,
    words: str,
    draw: Callable[..., None],
    height: float = 3.0,
    panels: int | None = None,
) -> Picture:
    """A picture.

    Args:
        title: As in `Picture`.
        words: As in `Picture`.
        draw: Is given the axes, of each panel if there are panels.
        height: The height in inches, of a picture without panels.
        panels: How many panels there are; None for a picture without.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    with _looking() as make:
        size = (_WIDTH, height) if panels is None else _PANEL
        figures = [make(figsize=size, layout="constrained") for _ in range(panels or 1)]
        try:
            draw(*(figure.add_subplot() for figure in figures))
            svgs = [_svg(figure, f"{title} {i}") for i, figure in enumerate(figures)]
            return Picture(title, words, svgs, panels is not None)
        except _WRONG as error:  # the other pictures and the tables are still there
            return Picture(
                title, f"This picture could not be drawn: {in_words(str(error))}. {words}", []
            )


def scale_axis(ax: Axes, which: Literal["x", "y"], column: Column, least: float = 1.0) -> None:
    """Gives an axis its label, its scale and its ticks.

    Args:
        ax: The axes, with everything that is drawn.
        which: The axis.
        column: The column along the axis.
        least: The smallest number that is shown: a logarithmic scale has only positive
            ones.
    """
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_label_text(column.title)
    if column.log and least > 0:
        ax.set(**{f"{which}scale": "log"})
    elif 0 < len(column.labels) <= _MOST_CODES:
        codes, labels = zip(*column.labels, strict=True)
        axis.set_ticks(codes, [cut(label, _MOST_CHARACTERS) for label in labels])
    elif column.whole:
        ax.locator_params(axis=which, integer=True)


def legend_above(ax: Axes) -> None:
    """Draws the legend above the axes, where it hides no marks."""
    from matplotlib.lines import Line2D

    if (inside := ax.get_legend()) is not None:
        inside.remove()
    figure = ax.get_figure(root=True)
    if figure is not None:
        shown = figure.legend(*ax.get_legend_handles_labels(), ncols=4, **_LEGEND)
        for handle in shown.legend_handles:
            if handle is not None:
                handle.set_rasterized(False)
            if isinstance(handle, Line2D):  # marks that are many are pale, and bars are told by it
                handle.set_alpha(1.0)


def marks(
    ax: Axes, across: Sequence[float], up: Sequence[float], marker: str, color: Any, **look: Any
) -> None:
    """Draws marks, if there are any, smaller ones if there are many."""
    if len(across):
        many = len(across) > MOST_MARKS
        shown: dict[str, Any] = {"markersize": 3 if many else 5, "alpha": 0.6 if many else 0.9}
        ax.plot(across, up, marker, color=color, markeredgewidth=0, **shown | look)


def mark_states(ax: Axes, overview: Overview, across: Callable[[TrialStory], float]) -> None:
    """A mark for each trial at the height of its value; at the bottom if it has none."""
    for state, (marker, color) in LOOKS.items():
        own, where = overview.having(state), {}
        if state not in ("told", "attached"):
            where = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        heights = [story.value or 0.0 for story in own]
        marks(ax, list(map(across, own)), heights, marker, color, label=state, **where)


def ring(ax: Axes, across: float, up: float) -> None:
    """A ring around the best trial."""
    look: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.8, "markersize": 13}
    ax.plot(across, up, "o", color=RED, linestyle="none", label="best", clip_on=False, **look)


@contextmanager
def _looking() -> Iterator[type[Figure]]:
    import matplotlib
    from matplotlib.figure import Figure

    look: Any = _LOOK
    with matplotlib.rc_context(look), warnings.catch_warnings():
        # The font is that of the page, which may have more.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers near the largest ones
        yield Figure


def _svg(figure: Figure, salt: str) -> str:
    """The drawing, whose ids are no other's on the page."""
    import matplotlib

    for ax in figure.axes:
        _fit(ax)
    buffer = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    return _on_a_page(buffer.getvalue())


def _fit(ax: Axes) -> None:
    """Labels no longer than their axis, plain numbers on log scales, and many marks as an image."""
    import numpy as np
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    place, figure = ax.get_position(), ax.get_figure(root=True)
    width, height = figure.get_size_inches() if figure is not None else (_WIDTH, _WIDTH)
    for axis, inches in ((ax.xaxis, place.width * width), (ax.yaxis, place.height * height)):
        most = max(8, int(_PER_INCH * inches))
        axis.set_label_text(fill(axis.get_label_text(), most))
        if axis.get_scale() == "log":
            axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
            axis.set_minor_formatter(NullFormatter())
        elif axis is ax.xaxis and isinstance(axis.get_major_locator(), FixedLocator):
            labels = axis.get_majorticklabels()
            aslant = sum(len(label.get_text()) for label in labels) > most
            for label in labels if aslant else ():
                label.set(rotation=45, ha="right", rotation_mode="anchor")
    for line in ax.lines:
        line.set_rasterized(np.size(line.get_xdata()) > MOST_MARKS)
    for marks in ax.collections:
        if max(len(marks.get_paths()), np.size(marks.get_offsets()) // 2) > MOST_MARKS:
            marks.set_rasterized(True)


def _on_a_page(svg: str) -> str:
    """The drawing without what only a file needs."""
    svg = svg[svg.index("<svg") :].replace("xlink:href", "href")
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"', "", svg, count=3)
    # Others are the same in each picture.
    used = {*re.findall(r'href="#([^"]*)"', svg), *re.findall(r"url\(#([^)]*)\)", svg)}
    svg = re.sub(r' id="([^"]*)"', lambda id: id[0] if id[1] in used else "", svg)
    # What is black would be lost on a dark page.
    svg = re.sub(f"{_INK}|#000000", "currentColor", svg)
    return svg.replace(_GRID, "var(--line)").replace(BEHIND, "var(--card)")
