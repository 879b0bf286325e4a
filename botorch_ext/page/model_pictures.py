"""Model pictures: slices, importance and contours of a study, as `botorch_ext.plotting` draws
them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botorch_ext.domains import Box
from botorch_ext.page.drawing import Picture, drawn, legend_above
from botorch_ext.page.model_summary import LEVELS, ModelSummary
from botorch_ext.page.overview import Overview
from botorch_ext.plotting import plot_contours, plot_importance, plot_slices
from botorch_ext.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from botorch_ext.strategies.answers import Recommendation

_MOST_SLICES, _NUM_POINTS = 12, 60


def model_pictures(
    overview: Overview, model: ModelSummary, study: Study, recommended: Recommendation
) -> list[Picture]:
    """The pictures of the model; none if the study is not on a `Box`.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    box, x, importance = study.strategy.domain, recommended.x, model.importance
    if not isinstance(box, Box):
        return []
    order = list(range(box.dim))
    if importance is not None:
        order = importance.total.argsort(descending=True, stable=True).tolist()
    order = [j for j in order if bool(box.active(x)[j])]
    shown = [_slices(overview, study, recommended, order)]
    if importance is not None:
        words = (
            "How much each parameter matters over the whole space: the share of the variance of "
            "the model's mean prediction that it explains, with all parameters drawn at random. "
            "The dark bar is what it explains alone, the light one what it explains alone and "
            "together with others (Sobol indices)."
        )

        def draw(ax: Axes) -> None:
            plot_importance(importance, ax)
            ax.grid(axis="y", visible=False)
            ax.set_xlabel("share of the variance")
            legend_above(ax)

        shown.append(drawn("Which parameters matter", words, draw, 1.0 + 0.3 * box.dim))
    if len(order) > 1:
        shown.append(_contours(overview, study, box, recommended, order[:2]))
    return shown


def _slices(overview: Overview, study: Study, found: Recommendation, order: list[int]) -> Picture:
    words = (
        "Each panel changes one parameter and leaves the others as they are at the recommended "
        "point, which is the dotted line. The curve is what the model predicts; it is sure to 50 % "
        "that the truth is in the dark band, and to 95 % that it is in the light one. Hollow dots "
        "are measurements nearby, whose other parameters are a little different."
    )
    if found.context is not None:
        words += f" The context is {overview.columns.context_in_words(found.context.tolist())}."
    shown = order[:_MOST_SLICES]
    if len(shown) < len(order):
        words += f" The {len(shown)} most important of {len(order)} parameters are shown."

    def draw(*axes: Axes) -> None:
        at = {"slice_at": found.x, "context": found.context}
        plot_slices(study, shown, axes, levels=LEVELS, num_points=_NUM_POINTS, **at)
        legend = axes[0].get_legend()
        if legend is not None:
            legend.remove()

    return drawn("The model around the recommended point", words, draw, panels=len(shown))


def _contours(
    overview: Overview, study: Study, box: Box, found: Recommendation, dims: list[int]
) -> Picture:
    first, second = (overview.columns.x[j].name for j in dims)
    words = (
        f"What the model predicts where {first} and {second} change, the two parameters that "
        "matter most, and the others are as at the recommended point, which is the ring. Yellow is "
        "best. Small dots are all measurements, wherever their other parameters are."
    )
    if box.constraints is not None:
        words += " Where it is empty, a constraint excludes the point."

    def draw(ax: Axes) -> None:
        plot_contours(study, dims, ax, slice_at=found.x, context=found.context)

    return drawn("The two parameters that matter most", words, draw, 3.6)
