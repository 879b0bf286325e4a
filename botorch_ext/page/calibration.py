"""Calibration: predictions at the time of asking against measured values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from botorch_ext.page.drawing import BLUE, MOST_MARKS, RED, Picture, drawn, legend_above
from botorch_ext.page.overview import Overview
from botorch_ext.page.strategy_description import is_number
from botorch_ext.page.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Standard deviations from the mean to the ends of the 50 % and 95 % bands of a normal distribution.
_HALF, _MOST = 0.6744897501960817, 1.959963984540054
# The fewest values of which shares are shown.
_FEWEST = 3


def calibration(overview: Overview, noise_std: float) -> Picture | None:
    """The picture of the calibration, with the shares inside the 50 % and 95 % bands; None if fewer
    than three trials have a prediction and a value.

    Args:
        overview: The overview of the study.
        noise_std: The standard deviation of the noise of a measurement; 0 if it is unknown.
    """
    known = []  # means and standard deviations of a measurement, and its value
    for story in overview.observed:
        mean, std = story.info.get("mean"), story.info.get("std")
        if is_number(mean) and is_number(std):
            known.append((mean, math.hypot(std, story.noise_std(noise_std)), story.value or 0.0))
    if len(known) < _FEWEST:
        return None
    shares = [
        sum(abs(value - mean) <= num * std for mean, std, value in known) / len(known)
        for num in (_HALF, _MOST)
    ]
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
    draw = partial(_draw, overview.objective.title, known)
    return drawn("Predicted against measured", words, draw, 3.6)


def _draw(title: str, known: Sequence[tuple[float, float, float]], ax: Axes) -> None:
    many = len(known) > MOST_MARKS
    for inside, color, label in ((True, BLUE, "inside 95 %"), (False, RED, "outside")):
        own = [row for row in known if (abs(row[2] - row[0]) <= _MOST * row[1]) is inside]
        if own:
            means, stds, values = zip(*own, strict=True)
            ax.errorbar(
                means,
                values,
                xerr=[_MOST * std for std in stds],
                fmt="o",
                color=color,
                ecolor=(color, 0.3),
                markersize=3 if many else 5,
                elinewidth=0.6 if many else 1.2,
                label=label,
            )
    both = [number for mean, _, value in known for number in (mean, value)]
    low, high = min(both), max(both)
    room = 0.08 * (high - low) or 1.0
    ax.plot([low, high], [low, high], color="grey", linewidth=1.2, label="as predicted")
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel(f"predicted {title}")
    ax.set_ylabel(f"measured {title}")
    legend_above(ax)
