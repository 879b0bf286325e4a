"""Figures of the runs on easy and hard instances."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.pictures import save
from benchmarks.common.tables import Row
from benchmarks.easy_instances.claims import (
    OURS,
    at_least,
    at_most,
    instances_of,
    late_slope,
    regret_curve,
)
from benchmarks.easy_instances.exponents import plot_consistency, plot_instance_exponents
from benchmarks.easy_instances.runs import NAMES, Case, Instance, play
from botorch_ext.plotting import (
    PALETTE,
    plot_regret_slopes,
    plot_tree,
)
from botorch_ext.strategies import BreadthwiseExploration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Captions, in the order of the report.
PICTURES = {
    "regret.png": (
        "Cumulative regret on each instance, on log axes. The grey lines begin where the "
        "regret of breadthwise exploration begins, and have the slopes that theory has for "
        "it."
    ),
    "slopes.png": (
        "Slopes of the regret over the last three horizons. The boxes are where theory has "
        "the slope of breadthwise exploration."
    ),
    "exponents.png": (
        "Powers of T that theory has for methods and for instances. Figures 7 and 8 of "
        "Shekhar and Javidi 2022."
    ),
    "trees.png": (
        "The cells that breadthwise exploration evaluated. Sharp maxima and flat ones, on "
        "the line and in the plane."
    ),
}

# nu and b of figure 7, b of figure 8.
_PROMISES = ((1.5, 2.0), (2.5, 4.0))
_GROWTHS = (1.0, 2.0)
_MARKERS = "os^D"
_LOWEST = 0.1  # the least slope that is drawn


def draw(rows: Sequence[Row], trees: Sequence[Case], folder: Path) -> None:
    """Draws regret.png, slopes.png, exponents.png (figures 7 and 8 of Shekhar and Javidi 2022) and
    trees.png.

    Args:
        rows: One for each run and horizon.
        trees: Runs of breadthwise exploration, whose cells are drawn.
        folder: For the files.
    """
    _draw_regret(rows, folder / "regret.png")
    _draw_slopes(rows, folder / "slopes.png")
    _draw_exponents(folder / "exponents.png")
    _draw_trees(trees, folder / "trees.png")


def _draw_regret(rows: Sequence[Row], path: Path) -> None:
    """A column for each dimension, and a panel in it for each instance."""
    import matplotlib.pyplot as plt

    instances = instances_of(rows)
    dims = sorted({each.dim for each in instances})
    columns = [[each for each in instances if each.dim == dim] for dim in dims]
    height = max(len(column) for column in columns)
    size = (4.8 * len(dims), 3.6 * height)
    figure, axes = plt.subplots(
        height, len(dims), figsize=size, layout="constrained", squeeze=False
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for i, column in enumerate(columns):
        for ax, instance in zip(axes[:, i], column, strict=False):
            ax.set_axis_on()
            curves = {name: regret_curve(rows, instance, method) for method, name in NAMES.items()}
            powers = {"at most": at_most(instance, OURS)}
            if (least := at_least(instance, OURS)) is not None:
                powers["at least"] = least
            plot_regret_slopes(curves, ax, exponents=powers)
            ax.set_title(str(instance), fontsize="medium")
            ax.set_ylabel("cumulative regret" if i == 0 else "")
            for text in ax.get_legend().get_texts():
                text.set_fontsize("x-small")
    figure.supxlabel(
        "Mean ± standard error; in the legends the slopes with their 95 % intervals.\nGrey lines "
        "begin where the regret of breadthwise exploration begins, with the slopes that theory has "
        "for it",
        fontsize="small",
    )
    _save(figure, path)


def _draw_slopes(rows: Sequence[Row], path: Path) -> None:
    """The slope of each method on each instance over its last horizons, and where theory has that
    of breadthwise exploration."""
    import matplotlib.pyplot as plt

    instances = instances_of(rows)
    figure, ax = plt.subplots(figsize=(12, 5), layout="constrained")
    for i, instance in enumerate(instances):
        least, most = at_least(instance, OURS), at_most(instance, OURS)
        label = "between propositions 1 and 2, breadthwise" if i == 0 else None
        bottom = _LOWEST if least is None else least
        look: dict[str, Any] = {"color": PALETTE[5], "alpha": 0.35, "linewidth": 0}
        ax.bar(i, most - bottom, 0.86, bottom, label=label, **look)
    for j, (method, name) in enumerate(NAMES.items()):
        places = [i + 0.2 * (j - 1.5) for i in range(len(instances))]
        slopes = [late_slope(rows, each, method) for each in instances]
        error = [[s.slope - s.low for s in slopes], [s.high - s.slope for s in slopes]]
        look = {"color": PALETTE[j], "marker": _MARKERS[j], "linestyle": "none", "capsize": 2}
        ax.errorbar(places, [s.slope for s in slopes], error, markersize=5, label=name, **look)
    names = [f"nu = {each.nu:g}\nb = {each.growth:g}\nd = {each.dim}" for each in instances]
    ax.set_xticks(range(len(instances)), names, fontsize="small")
    ax.set_ylim(_LOWEST, 1.25)
    ax.set_ylabel("slope over the last three horizons\n(95 % interval)")
    ax.grid(alpha=0.3, axis="y")
    ax.legend(fontsize="small", ncols=3, loc="upper center")
    _save(figure, path)


def _draw_exponents(path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 9), layout="constrained")
    for ax, (nu, growth) in zip(axes[0], _PROMISES, strict=True):
        plot_consistency(nu, growth, ax)
    for ax, growth in zip(axes[1], _GROWTHS, strict=True):
        plot_instance_exponents(growth, 2, ax)
    _save(figure, path)


def _draw_trees(cases: Sequence[Case], path: Path) -> None:
    import matplotlib.pyplot as plt

    dims = sorted({case.instance.dim for case in cases})
    figure = plt.figure(figsize=(16, 6.2 * len(dims)), layout="constrained")
    # Rows of panels with room of their own beside them.
    for part, dim in zip(figure.subfigures(len(dims), squeeze=False)[:, 0], dims, strict=True):
        shown = [case for case in cases if case.instance.dim == dim]
        axes = part.subplots(1, len(shown), squeeze=False)
        for ax, case in zip(axes[0], shown, strict=True):
            strategy, problem, _ = play(case)
            if not isinstance(strategy, BreadthwiseExploration):
                raise TypeError(f"method must be {OURS}, got {case.method}")
            plot_tree(strategy, ax, problem=problem)
            ax.set_title(f"{case.instance}, T = {case.horizons[-1]}", pad=24 if dim == 2 else 6)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    save(figure, path, 90)
    plt.close(figure)


def to_draw(instances: Sequence[Instance], horizon: int, seed: int) -> list[Case]:
    """Runs whose trees are drawn: a sharp and a flat maximum on the line and in the plane, where
    there are such instances."""
    wanted = (
        Instance(0.5, 0.75, 1),
        Instance(0.5, 4.0, 1),
        Instance(1.5, 2.0, 2),
        Instance(2.5, 4.0, 2),
    )
    return [Case(each, OURS, seed, (horizon,)) for each in wanted if each in instances]
