"""Picture of the insured methods: what they lose where nothing is wrong, where the model is wrong
and where results come late, as multiples of what the method without insurance loses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.pictures import save
from benchmarks.common.tables import Row
from benchmarks.insured.claims import cells, pairs, ratio
from benchmarks.insured.methods import (
    ALWAYS,
    BPE_DELAY,
    EC_GP_UCB,
    GP_BUCB,
    GP_UCB,
    INSURED,
    NUGGET,
    SAFE,
    USEFUL,
)
from botorch_ext.plotting import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Captions, in the order of the report.
PICTURES = {
    "regret.png": (
        "Cumulative regret as multiples of that of GP-UCB and GP-BUCB. The intervals are "
        "two standard errors of the ratio of means."
    ),
}

# The title, the tables, their horizon, whose regret is 1, and whose is compared.
_PANELS = (
    ("Nothing is wrong", ("price",), 300, GP_UCB, (INSURED, SAFE)),
    ("The model is wrong", ("generic", "worst"), 300, GP_UCB, (INSURED, SAFE, EC_GP_UCB, NUGGET)),
    ("Results come late", ("delays",), 1000, GP_BUCB, (USEFUL, ALWAYS, BPE_DELAY)),
)
_LOOKS: dict[str, dict[str, Any]] = {
    INSURED: {"color": PALETTE[2], "marker": "o"},
    SAFE: {"color": PALETTE[3], "marker": "D"},
    EC_GP_UCB: {"color": PALETTE[1], "marker": "s"},
    NUGGET: {"color": PALETTE[6], "marker": "v"},
    USEFUL: {"color": PALETTE[0], "marker": "^"},
    ALWAYS: {"color": PALETTE[4], "marker": "P"},
    BPE_DELAY: {"color": PALETTE[5], "marker": "X"},
}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draws regret.png: a line for each cell, with practical widths; intervals are two standard
    errors of the ratio of means."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(_PANELS), figsize=(13.5, 6.6), layout="constrained")
    for ax, (title, tables, horizon, base, methods) in zip(axes, _PANELS, strict=True):
        names = _draw_ratios(
            ax, [cells(rows, table=[t], horizon=[horizon]) for t in tables], base, methods
        )
        if not names:
            ax.set_axis_off()
            continue
        ax.set_xscale("linear" if tables == ("price",) else "log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.axvline(1, color="0.3", linewidth=0.9, zorder=1)
        ax.set_yticks(range(len(names)), names, fontsize="small")
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_title(f"{title}, T = {horizon}", fontsize="medium")
        ax.set_xlabel(f"cumulative regret, {base} = 1")
        ax.grid(alpha=0.3, axis="x")
        handles, labels = ax.get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        ax.legend(
            shown.values(),
            shown,
            fontsize="small",
            ncols=2,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.09),
        )
    save(figure, folder / "regret.png", 100)
    plt.close(figure)


def _draw_ratios(
    ax: Axes, of_tables: Sequence[dict[str, list[Row]]], base: str, methods: Sequence[str]
) -> list[str]:
    """A line for each cell that the base has played; their names, from above."""
    names: list[str] = []
    for name, cell in [item for table in of_tables for item in table.items()]:
        found = [method for method in methods if len(pairs(cell, method, base)) > 1]
        for method in found:
            mean, error = ratio(cell, method, base)
            place = len(names) + 0.5 * (methods.index(method) + 0.5) / len(methods) - 0.25
            look = {**_LOOKS[method], "markersize": 4.5, "capsize": 1.5, "linewidth": 1.2}
            ax.errorbar(mean, place, xerr=2 * error, label=method, linestyle="none", **look)
        if found:
            names.append(name.rpartition(", T = ")[0].replace(", sequential", ""))
    return names
