"""Model pictures: slices of the model, importance of parameters, and contours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from botorch_ext.reports.drawing import (
    Picture,
    cell_edges,
    colored,
    drawn,
    in_lines,
    is_narrow,
    label_first,
    legend_above,
    scale_axis,
)
from botorch_ext.reports.model_numbers import (
    Contours,
    ImportanceNumbers,
    ModelNumbers,
    Recommended,
    SliceNumbers,
)
from botorch_ext.reports.overview import Overview
from botorch_ext.reports.trial_markers import BLUE, GREEN, SKY, ring
from botorch_ext.reports.words import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN_A_ROW = 3
# How far a band is drawn beyond means and observations, as a share of their range.
_BEYOND = 0.5
_MOST_BARS = 24


def model_pictures(overview: Overview, model: ModelNumbers) -> list[Picture]:
    """The pictures of the model for which there are numbers.

    Args:
        overview: The overview of the study.
        model: The model numbers.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    shown = []
    if model.slices and model.recommended is not None:
        shown.append(_slices(overview, model.slices, model.recommended))
    if model.importance is not None:
        shown.append(_importance(overview, model.importance))
    if model.contours is not None and model.recommended is not None:
        shown.append(_contours(overview, model.contours, model.recommended.x))
    return shown


# --- slices ---------------------------------------------------------------------------------------


def _slices(
    overview: Overview, slices: Sequence[SliceNumbers], recommended: Recommended
) -> Picture:
    x = recommended.x
    words = (
        "Each panel changes one parameter and leaves the others as they are at the recommended "
        "point, which is the dotted line. The curve is what the model predicts; it is sure to 50 % "
        "that the truth is in the dark band, and to 95 % that it is in the light one. Hollow dots "
        "are measurements nearby (the latest 80 at most), whose other parameters are a little "
        "different."
    )
    if recommended.context:
        words += f" The context is {overview.columns.context_in_words(recommended.context)}."
    counting = sum(overview.columns.counts(j, x) for j in range(len(x)))
    if len(slices) < counting:
        words += f" The {len(slices)} most important of {counting} parameters are shown."
    panels = {"panels": len(slices), "in_a_row": _IN_A_ROW}
    draw = partial(_draw_slices, overview, slices, x)
    return drawn("The model around the recommended point", words, draw, 2.6, **panels)


def _draw_slices(
    overview: Overview, slices: Sequence[SliceNumbers], x: Sequence[float], *axes: Axes
) -> None:
    low, high = _limits(slices)
    for own, ax in zip(slices, axes, strict=True):
        column = overview.columns.x[own.column]
        lowest, lower, upper, highest = own.quantiles
        if own.is_stepped:
            ax.vlines(own.across, lowest, highest, color=BLUE, alpha=0.35, linewidth=3)
            ax.vlines(own.across, lower, upper, color=BLUE, alpha=0.6, linewidth=6)
            ax.plot(own.across, own.means, "o", color=BLUE, markersize=5)
        else:
            ax.fill_between(own.across, lowest, highest, color=BLUE, alpha=0.15, linewidth=0)
            ax.fill_between(own.across, lower, upper, color=BLUE, alpha=0.3, linewidth=0)
            ax.plot(own.across, own.means, color=BLUE, linewidth=1.8)
        hollow: dict[str, Any] = {"markerfacecolor": "none", "edge": 1.1, "alpha": 1.0}
        xs, ys = ([pair[i] for pair in own.near] for i in range(2))
        colored(ax, xs, ys, "o", GREEN, **hollow)
        ax.axvline(x[own.column], color="grey", linewidth=1.2, linestyle=":")
        ax.set_ylim(low, high)
        scale_axis(ax, "x", column, min(own.across))
        if own.is_stepped:
            ax.margins(x=0.15)
        label_first(ax, overview.objective.title)


def _limits(slices: Sequence[SliceNumbers]) -> tuple[float, float]:
    """The limits of the vertical axis that all slices share. All means and observations are shown,
    and bands unless they go far beyond them."""
    near = [*(mean for own in slices for mean in own.means)]
    near += [value for own in slices for _, value in own.near]
    ends = [value for own in slices for row in own.quantiles for value in row]
    low, high = min(near), max(near)
    room = _BEYOND * (high - low)
    low, high = max(low - room, min(*ends, low)), min(high + room, max(*ends, high))
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


# --- importance -----------------------------------------------------------------------------------


def _importance(overview: Overview, importance: ImportanceNumbers) -> Picture:
    words = (
        "How much each parameter matters over the whole space: the share of the variance of the "
        "model's mean prediction that it explains, with all parameters drawn at random. The dark "
        "bar is what it explains alone, the light one what it explains alone and together with "
        "others (Sobol indices)."
    )
    number = len(importance.columns)
    if number > _MOST_BARS:
        words += f" The first {_MOST_BARS} of {number} parameters are shown."
    height = 1.0 + 0.3 * min(number, _MOST_BARS)
    draw = partial(_draw_importance, overview, importance)
    return drawn("Which parameters matter", words, draw, height)


def _draw_importance(overview: Overview, importance: ImportanceNumbers, ax: Axes) -> None:
    shown = importance.columns[:_MOST_BARS]
    places = range(len(shown))
    total, first = importance.total[: len(shown)], importance.first_order[: len(shown)]
    ax.barh(places, total, height=0.7, color=SKY, label="with others")
    ax.barh(places, [max(0.0, each) for each in first], height=0.35, color=BLUE, label="alone")
    most = 16 if is_narrow(ax) else 40
    ax.set_yticks(places, [cut(overview.columns.x[j].name, most) for j in shown])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(0, max(1.0, *total))
    ax.set_xlabel("share of the variance")
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    legend_above(ax)


# --- contours -------------------------------------------------------------------------------------


def _contours(overview: Overview, contours: Contours, x: Sequence[float]) -> Picture:
    first, second = (overview.columns.x[j] for j in contours.columns)
    words = (
        f"What the model predicts where {first.name} and {second.name} change, the two parameters "
        "that matter most, and the others are as at the recommended point, which is the ring. "
        "Yellow is best. Small dots are all measurements, wherever their other parameters are."
    )
    if any(None in row for row in contours.means):
        words += " Where it is empty, constraints exclude the point."
    title = "The two parameters that matter most"
    return drawn(title, words, partial(_draw_contours, overview, contours, x), 4.4)


def _draw_contours(overview: Overview, contours: Contours, x: Sequence[float], ax: Axes) -> None:
    j, k = contours.columns
    means = [[float("nan") if mean is None else mean for mean in row] for row in contours.means]
    cells = ax.pcolormesh(
        cell_edges(contours.across, overview.columns.x[j].log),
        cell_edges(contours.up, overview.columns.x[k].log),
        means,
        cmap="viridis_r" if overview.minimize else "viridis",
        rasterized=True,
    )
    figure = ax.get_figure(root=True)
    if figure is not None:
        label = in_lines(ax, "y", f"predicted {overview.objective.title}")
        bar = figure.colorbar(cells, ax=ax, label=label)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.solids.set_rasterized(True)  # type: ignore[union-attr]
    observed = overview.observed
    xs, ys = ([story.x[column] for story in observed] for column in (j, k))
    colored(ax, xs, ys, "o", "white", markersize=3.5, edge=0.6, markeredgecolor="black")
    ring(ax, x[j], x[k])
    ax.grid(visible=False)
    scale_axis(ax, "x", overview.columns.x[j], min(contours.across))
    scale_axis(ax, "y", overview.columns.x[k], min(contours.up))
