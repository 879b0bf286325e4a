"""Calibration: predictions at the time of asking against measured values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from botorch_ext.reports.drawing import MOST_MARKS, Picture, drawn, in_lines, legend_above
from botorch_ext.reports.overview import Overview
from botorch_ext.reports.strategy_description import is_number
from botorch_ext.reports.trial_markers import BLUE, RED
from botorch_ext.reports.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Standard deviations from the mean to the ends of the 50 % and 95 % bands of a normal distribution.
_HALF, _MOST = 0.6744897501960817, 1.959963984540054
# The fewest values of which shares are shown.
_FEWEST = 3


@dataclass(frozen=True)
class Predicted:
    """A measurement with its prediction.

    Args:
        mean: The predicted mean of the measurement.
        std: The predicted standard deviation of the measurement.
        value: The measured value.
    """

    mean: float
    std: float
    value: float

    def is_within(self, num_stds: float) -> bool:
        """Whether the value is at most so many standard deviations from the mean."""
        return abs(self.value - self.mean) <= num_stds * self.std


def predicted(overview: Overview, noise_std: float) -> list[Predicted]:
    """The trials that have a value and recorded a prediction.

    Args:
        overview: The overview of the study.
        noise_std: The standard deviation of the noise of a measurement; 0 if it is unknown.
    """
    found = []
    for story in overview.observed:
        mean, std = story.info.get("mean"), story.info.get("std")
        if is_number(mean) and is_number(std) and std >= 0 and story.value is not None:
            found.append(Predicted(mean, math.hypot(std, noise_std), story.value))
    return found


def calibration(overview: Overview, noise_std: float) -> Picture | None:
    """The picture of the calibration, with the shares inside the 50 % and 95 % bands; None if fewer
    than three trials have a prediction and a value.

    Args:
        overview: The overview of the study.
        noise_std: The standard deviation of the noise, as for `predicted`.
    """
    known = predicted(overview, noise_std)
    if len(known) < _FEWEST:
        return None
    shares = [sum(each.is_within(num) for each in known) / len(known) for num in (_HALF, _MOST)]
    words = (
        f"{counted(len(known), 'trial')} had a prediction when they were asked and have a value. "
        f"{100 * shares[0]:.0f} % of the values were inside the band that should hold 50 % of "
        f"them, and {100 * shares[1]:.0f} % inside the band that should hold 95 %, which is drawn. "
        "A value on the line is what was predicted. "
    )
    if any("model" in story.info for story in overview.observed):
        words += "Each prediction is that of the model that the trial was asked for. "
    words += (
        "The bands count the noise of a measurement, as the model sees it today."
        if noise_std
        else "The noise of a measurement is not known here, so that the bands are too narrow."
    )
    return drawn("Predicted against measured", words, partial(_draw, overview, known), 3.8)


def _draw(overview: Overview, known: Sequence[Predicted], ax: Axes) -> None:
    many = len(known) > MOST_MARKS
    for is_within, color, label in ((True, BLUE, "inside 95 %"), (False, RED, "outside")):
        own = [each for each in known if each.is_within(_MOST) is is_within]
        if own:
            ax.errorbar(
                [each.mean for each in own],
                [each.value for each in own],
                xerr=[_MOST * each.std for each in own],
                fmt="o",
                color=color,
                ecolor=(color, 0.3),
                markersize=3 if many else 5,
                elinewidth=0.6 if many else 1.2,
                label=label,
                rasterized=many,
            )
    values = [each.value for each in known]
    means = [each.mean for each in known]
    low, high = min(values + means), max(values + means)
    room = 0.08 * (high - low) or 1.0
    ax.plot([low, high], [low, high], color="grey", linewidth=1.2, label="as predicted")
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel(in_lines(ax, "x", f"predicted {overview.objective.title}"))
    ax.set_ylabel(in_lines(ax, "y", f"measured {overview.objective.title}"))
    legend_above(ax)
