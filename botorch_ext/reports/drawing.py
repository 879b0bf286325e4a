"""Drawing: pictures of matplotlib as SVG that takes the colours and the font of its page."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from botorch_ext.reports.parameters import Column
from botorch_ext.reports.words import cut, in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Marks in a picture from which on they are drawn as an image.
MOST_MARKS = 400
# So that seven entries are no wider than the axes.
_LEGEND: dict[str, Any] = {"handletextpad": 0.4, "handlelength": 1.4, "columnspacing": 0.9}
# What matplotlib raises of numbers that it cannot draw.
_WRONG = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
_MOST_TICKS, _MOST_CODES = 5, 12
# Inches of 72 points: on a screen, and on a phone.
_WIDTH, _NARROW = 8.0, 4.6
# Characters of the labels of a choice from which on they are drawn aslant, and of one of them.
_MOST_CHARACTERS, _LONGEST = 22, 18
# Characters of a label in an inch, of a wide font.
_PER_INCH = 10
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


@dataclass(frozen=True)
class Picture:
    """A picture and its description.

    Args:
        title: The title above the picture.
        words: The description in plain sentences, also for readers who cannot see the picture.
        svg: The drawing; empty if it failed.
        narrow: The drawing for a phone.
    """

    title: str
    words: str
    svg: str
    narrow: str


def drawn(
    title: str,
    words: str,
    draw: Callable[..., None],
    height: float,
    *,
    panels: int = 1,
    in_a_row: int = 1,
) -> Picture:
    """A picture.

    Args:
        title: As in `Picture`.
        words: As in `Picture`.
        draw: Is given the axes of each panel.
        height: Of a row, in inches.
        panels: How many there are.
        in_a_row: Of them; on a phone one less, and one at least.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    svgs = []
    for width, columns in ((_WIDTH, in_a_row), (_NARROW, max(1, in_a_row - 1))):
        with _looking(f"{title} {width}") as figure:
            try:
                svgs.append(_svg(figure, draw, width, height, panels, columns))
            except _WRONG as error:  # the other pictures and the tables are still there
                words = f"This picture could not be drawn: {in_words(str(error))}. {words}"
                return Picture(title, words, "", "")
    return Picture(title, words, *svgs)


def _svg(
    figure: Figure,
    draw: Callable[..., None],
    width: float,
    height: float,
    panels: int,
    in_a_row: int,
) -> str:
    rows = -(-panels // in_a_row)
    figure.set_size_inches(width, height * rows)
    figure.set_layout_engine("constrained", wspace=0.1)
    axes = [figure.add_subplot(rows, min(in_a_row, panels), i + 1) for i in range(panels)]
    draw(*axes)
    buffer = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return _on_a_page(buffer.getvalue())


def colored(
    ax: Axes, across: Sequence[float], up: Sequence[float], marker: str, color: Any, **look: Any
) -> None:
    """Draws marks, if there are any; many marks are drawn as an image."""
    if len(across):
        many = len(across) > MOST_MARKS
        size = 3.0 if many else 5.0
        shown = {"markersize": size, "alpha": 0.6 if many else 0.9, "rasterized": many} | look
        ax.plot(across, up, marker, color=color, markeredgewidth=shown.pop("edge", 0), **shown)


def legend_above(ax: Axes) -> None:
    """Draws the legend above the axes, where it hides no marks."""
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    shown = ax.legend(ncols=3 if is_narrow(ax) else 7, **_LEGEND, **where)
    for handle in shown.legend_handles:
        if handle is not None:
            handle.set(alpha=1.0, rasterized=False)


def is_narrow(ax: Axes) -> bool:
    """Whether a drawing is for a phone."""
    return ax.figure.get_figure(root=True).get_figwidth() < _WIDTH  # type: ignore[union-attr]


def scale_axis(ax: Axes, which: Literal["x", "y"], column: Column, least: float = 1.0) -> None:
    """Gives an axis its label, its scale and few ticks.

    Args:
        ax: The axes, with everything that is drawn.
        which: The axis.
        column: The column along the axis.
        least: The smallest number that is shown: a logarithmic scale has only positive
            ones.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis = ax.xaxis if which == "x" else ax.yaxis
    ax.set(**{f"{which}label": in_lines(ax, which, column.title)})
    if column.log and least > 0:
        ax.set(**{f"{which}scale": "log"})
        axis.set_major_locator(LogLocator(numticks=_MOST_TICKS - 1))
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
        axis.set_minor_formatter(NullFormatter())
    elif 0 < len(column.labels) <= _MOST_CODES:
        labels = [cut(label, _LONGEST) for _, label in column.labels]
        aslant = which == "x" and sum(map(len, labels)) > _MOST_CHARACTERS
        look: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        axis.set_ticks([code for code, _ in column.labels], labels, **(look if aslant else {}))
    else:
        steps = [1, 2, 5, 10] if column.whole else [1, 2, 2.5, 5, 10]
        axis.set_major_locator(MaxNLocator(_MOST_TICKS, steps=steps, integer=column.whole))


def in_lines(ax: Axes, which: Literal["x", "y"], label: str) -> str:
    """A label in lines that are no longer than its axis."""
    place, size = ax.get_position(), ax.figure.get_figure(root=True).get_size_inches()  # type: ignore[union-attr]
    inches = place.width * size[0] if which == "x" else place.height * size[1]
    return fill(label, max(8, int(_PER_INCH * inches)))


def label_first(ax: Axes, label: str) -> None:
    """Labels the vertical axis that the panels of a row share, only at the first panel."""
    place = ax.get_subplotspec()
    if place is None or place.is_first_col():
        ax.set_ylabel(in_lines(ax, "y", label))
    else:
        ax.tick_params(labelleft=False)


def cell_edges(centers: Sequence[float], log: bool) -> list[float]:
    """The edges of cells around numbers that ascend, halfway between them."""
    if log:
        return [math.exp(edge) for edge in cell_edges(list(map(math.log, centers)), False)]
    inner = [(low + high) / 2 for low, high in pairwise(centers)]
    if not inner:
        return [centers[0] - 0.5, centers[0] + 0.5]
    return [2 * centers[0] - inner[0], *inner, 2 * centers[-1] - inner[-1]]


@contextmanager
def _looking(title: str) -> Iterator[Figure]:
    import matplotlib
    from matplotlib.figure import Figure

    look: Any = _LOOK | {"svg.hashsalt": title}
    with matplotlib.rc_context(look), warnings.catch_warnings():
        # The font is that of the page, which may have more.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers near the largest ones
        yield Figure()


def _on_a_page(svg: str) -> str:
    """The drawing without what only a file needs."""
    svg = svg[svg.index("<svg") :].replace("xlink:href", "href")
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"', "", svg, count=3)
    # Others are the same in each picture.
    used = {*re.findall(r'href="#([^"]*)"', svg), *re.findall(r"url\(#([^)]*)\)", svg)}
    svg = re.sub(r' id="([^"]*)"', lambda id: id[0] if id[1] in used else "", svg)
    return (
        svg.replace(_INK, "currentColor")
        .replace(_GRID, "var(--line)")
        .replace(BEHIND, "var(--card)")
    )
