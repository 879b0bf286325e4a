"""Figures of the runs with contexts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.pictures import save
from benchmarks.common.repeated_runs import column
from benchmarks.common.tables import Row
from benchmarks.contexts import peptides, sensors
from benchmarks.contexts.peptides import PEPTIDE_METHODS
from benchmarks.contexts.reasons import best_possible, measured_correlation
from benchmarks.contexts.sensors import SENSOR_METHODS, SENSOR_SETTINGS
from benchmarks.measured.binding_affinities import BindingAffinities
from benchmarks.measured.temperatures import STEPS_PER_DAY, Temperatures
from botorch_ext.plotting import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Captions, in the order of the report.
PICTURES = {
    "sensors.png": (
        "Regret on the sensors over the days, and the temperatures. Figure 3 of Krause and "
        "Ong 2011."
    ),
    "readings.png": (
        "Which sensor was read when. The sensors are in the order of how often they are the "
        "hottest: a method that follows the context reads near the dots."
    ),
    "peptides.png": (
        "Regret on the peptides, molecule after molecule. Figure 2 of Krause and Ong 2011."
    ),
}

# A kind of method has one look in both experiments.
_LOOKS: dict[str, dict[str, Any]] = {
    sensors.PRODUCT: {"color": PALETTE[0]},
    peptides.CGP: {"color": PALETTE[0]},
    sensors.ADDITIVE: {"color": PALETTE[5], "linestyle": "--"},
    sensors.MERGED: {"color": PALETTE[1], "linestyle": "-."},
    sensors.SEPARATE: {"color": PALETTE[2], "linestyle": (0, (4, 1, 1, 1, 1, 1))},
    peptides.SEPARATE: {"color": PALETTE[2], "linestyle": (0, (4, 1, 1, 1, 1, 1))},
    sensors.RANDOM: {"color": PALETTE[6], "linestyle": ":"},
}
# Half-hours of the moving average.
_WINDOW = 12


def draw(
    sensor_rows: Sequence[Row],
    data: Temperatures,
    peptide_rows: Sequence[Row],
    affinities: BindingAffinities,
    folder: Path,
) -> None:
    """Draws sensors.png (figure 3 of Krause and Ong 2011), readings.png (which sensors are read
    when) and peptides.png (figure 2).

    Args:
        sensor_rows: A row for each run, with its lists.
        data: All temperatures.
        peptide_rows: Likewise.
        affinities: The measurements.
        folder: For the files.
    """
    _draw_sensors(sensor_rows, data, folder / "sensors.png")
    _draw_readings(sensor_rows, data, folder / "readings.png")
    _draw_peptides(peptide_rows, affinities, folder / "peptides.png")


def _save(figure: Figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    save(figure, path, 110)
    plt.close(figure)


def _line(ax: Axes, x: np.ndarray, curves: np.ndarray, method: str) -> None:
    """Mean and standard error of ``seeds x T`` curves."""
    look = _LOOKS[method]
    middle = curves.mean(axis=0)
    ax.plot(x, middle, linewidth=2, label=method, **look)
    if len(curves) > 1:
        error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
        ax.fill_between(x, middle - error, middle + error, color=look["color"], alpha=0.2, lw=0)


def _made_up(synthetic: bool) -> str:
    return ", made-up data" if synthetic else ""


def _draw_sensors(rows: Sequence[Row], data: Temperatures, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 10.5), layout="constrained")
    axes = figure.subplot_mosaic([["a", "b"], ["c", "d"], ["e", "e"]])
    days = np.arange(1, data.num_steps - STEPS_PER_DAY + 1) / STEPS_PER_DAY
    window = min(_WINDOW, len(days))
    for (top, bottom), (curve, name) in zip(
        (("a", "c"), ("b", "d")),
        (("largest_curve", "largest"), ("mean_curve", "mean")),
        strict=True,
    ):
        for method in SENSOR_METHODS:
            curves = np.array(column(rows, curve, setting=sensors.MAIN, method=method))
            so_far = curves.cumsum(axis=1) / np.arange(1, curves.shape[1] + 1)
            _line(axes[top], days, so_far, method)
            sums = np.cumsum(np.pad(curves, ((0, 0), (1, 0))), axis=1)
            moving = (sums[:, window:] - sums[:, :-window]) / window
            _line(axes[bottom], days[window - 1 :], moving, method)
        axes[top].set_title(f"({top}) regret of the {name} of five readings, average so far")
        axes[bottom].set_title(f"regret of the {name} of five readings, average over six hours")
    for key in "abcd":
        ax = axes[key]
        ax.set_xlim(0, days[-1])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("days played")
        ax.set_ylabel("regret, degrees Celsius")
        ax.grid(alpha=0.3)
        for day in range(1, data.num_days - 1):
            ax.axvline(day, color="grey", linewidth=0.8)
    _draw_temperatures(axes["e"], data)
    handles, labels = axes["a"].get_legend_handles_labels()
    seeds = len({row["seed"] for row in rows})
    title = f"{SENSOR_SETTINGS[sensors.MAIN].title}, {seeds} first readings, mean ± s.e."
    figure.legend(handles, labels, loc="outside upper center", ncols=5, title=title)
    _save(figure, path)


def _draw_temperatures(ax: Axes, data: Temperatures) -> None:
    """Figure 3 (c): all sensors, and the hottest at each time."""
    days = np.arange(data.num_steps) / STEPS_PER_DAY - 1
    values = data.values.numpy()
    ax.plot(days, values.T, color="grey", linewidth=0.5, alpha=0.5)
    hottest = values.argmax(axis=0)
    often = np.bincount(hottest, minlength=len(values)).argsort()[::-1][: len(PALETTE) - 1]
    for color, sensor in zip(PALETTE, often, strict=False):
        at = hottest == sensor
        ax.plot(
            days[at],
            values[sensor, at],
            linestyle="none",
            marker="o",
            markersize=3.5,
            color=color,
            label=f"sensor {data.sensors[sensor]} hottest",
        )
    others = ~np.isin(hottest, often)
    ax.plot(
        days[others], values.max(axis=0)[others], "kx", markersize=4, label="another one hottest"
    )
    ax.axvspan(-1, 0, color="grey", alpha=0.15, linewidth=0)
    ax.text(0.01, 0.95, "fits the models", va="top", transform=ax.transAxes)
    # Room for the legend above the data.
    ax.set_ylim(top=values.max() + 0.4 * np.ptp(values))
    ax.set_xlim(-1, days[-1])
    ax.set_title(f"(c) temperatures of {data.num_sensors} sensors{_made_up(data.synthetic)}")
    ax.set_xlabel("days played")
    ax.set_ylabel("degrees Celsius")
    ax.legend(fontsize="small", ncols=4, loc="upper right")
    ax.grid(alpha=0.3)


def _draw_readings(rows: Sequence[Row], data: Temperatures, path: Path) -> None:
    """How often each sensor was read at each time, and which was the hottest.

    The sensors are in the order of how often they are the hottest, and of their mean temperature
    where they never are.
    """
    import matplotlib.pyplot as plt

    methods = SENSOR_METHODS[:4]
    figure, axes = plt.subplots(len(methods), 1, figsize=(9, 2.5 * len(methods)), sharex=True)
    figure.set_layout_engine("constrained")
    played = data.values[:, STEPS_PER_DAY:].numpy()
    hottest = played.argmax(axis=0)
    often = np.bincount(hottest, minlength=len(played))
    order = np.lexsort((-played.mean(axis=1), -often))
    place = np.argsort(order)
    days = np.arange(played.shape[1]) / STEPS_PER_DAY
    image = None
    for ax, method in zip(axes, methods, strict=True):
        runs = column(rows, "picks", setting=sensors.MAIN, method=method)
        counts = np.zeros(played.shape)
        for picks in runs:
            for step, read in enumerate(picks):
                np.add.at(counts[:, step], place[read], 1 / len(runs))
        image = ax.imshow(
            counts,
            aspect="auto",
            cmap="Blues",
            vmin=0,
            vmax=sensors.READINGS,
            interpolation="nearest",
            extent=(0, len(days) / STEPS_PER_DAY, len(played) + 0.5, 0.5),
        )
        centers = days + 0.5 / STEPS_PER_DAY
        ax.plot(centers, place[hottest] + 1, ".", color=PALETTE[1], markersize=3)
        ax.axhline((often > 0).sum() + 0.5, color="0.5", linewidth=0.8, linestyle=":")
        ax.set_title(f"{method}: readings (blue) and the hottest sensor (dots)", fontsize="medium")
        ax.set_ylabel("sensor, the one\nmost often hottest first", fontsize="small")
    never = "sensors below the dotted line are never the hottest"
    axes[-1].set_xlabel(f"days played{_made_up(data.synthetic)}; {never}")
    if image is not None:
        figure.colorbar(image, ax=list(axes), label="readings in a half-hour", shrink=0.5)
    _save(figure, path)


def _draw_peptides(rows: Sequence[Row], affinities: BindingAffinities, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(13.5, 10.5))
    figure.set_layout_engine("constrained")
    (average, worst), (similar, measured) = axes
    number = len(affinities.molecules)
    trials = 0
    for method in PEPTIDE_METHODS:
        curves = np.array(column(rows, "curve", setting=sensors.MAIN, method=method))
        trials = curves.shape[1] // number
        so_far = curves.cumsum(axis=1) / np.arange(1, curves.shape[1] + 1)
        _line(average, np.arange(1, curves.shape[1] + 1), so_far, method)
        gaps = np.array(column(rows, "gaps", setting=sensors.MAIN, method=method)).max(axis=1)
        _line(worst, np.arange(1, trials + 1), gaps, method)
    floor = best_possible(affinities, trials)
    average.axhline(floor, color="grey", linewidth=1)
    average.text(number * trials, floor, "best possible ", ha="right", va="bottom", color="grey")
    for molecule, name in enumerate(affinities.molecules):
        average.axvline(molecule * trials, color="grey", linewidth=0.8)
        average.text(
            (molecule + 0.5) * trials,
            0.985,
            name.removeprefix("HLA-"),
            transform=average.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=9,
        )
    average.set_xlim(1, number * trials)
    average.set_title(f"(2a) average regret so far{_made_up(affinities.synthetic)}")
    average.set_xlabel("trials")
    average.set_ylabel("regret, log10 of IC50")
    worst.set_xlim(1, trials)
    worst.set_title("(2b) worst case over the molecules: maximum minus best so far")
    worst.set_xlabel("trials with each molecule")
    worst.set_ylabel("largest gap, log10 of IC50")
    for ax in (average, worst):
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
    correlation, _ = measured_correlation(affinities)
    names = [name.removeprefix("HLA-") for name in affinities.molecules]
    _heat_map(similar, affinities.similarity.numpy(), names, "(2c) share of equal pocket residues")
    title = "correlation of the affinities, peptides measured with both"
    _heat_map(measured, correlation.numpy(), names, title)
    handles, labels = average.get_legend_handles_labels()
    seeds = len({row["seed"] for row in rows})
    title = f"{peptides.PEPTIDE_SETTINGS[sensors.MAIN].title}, {seeds} seeds, mean ± s.e."
    figure.legend(handles, labels, loc="outside upper center", ncols=4, title=title)
    _save(figure, path)


def _heat_map(ax: Axes, values: np.ndarray, names: Sequence[str], title: str) -> None:
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_yticks(range(len(names)), names)
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            dark = abs(value) > 0.6
            text = "" if np.isnan(value) else f"{value:.2f}"
            ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black")
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
