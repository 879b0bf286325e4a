"""Figures of the runs with regret balancing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.pictures import save
from benchmarks.common.repeated_runs import column, draw_means
from benchmarks.common.tables import Row
from benchmarks.regret_balancing.runs import LEVELS, NAMES, Case, Outcome
from botorch_ext.plotting import PALETTE, plot_regret

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Captions, in the order of the report.
PICTURES = {
    "regret.png": (
        "Regret per step against the misspecification, and the lock-out over time. "
        "Balancing is told no misspecification."
    ),
    "tests.png": (
        "Elimination tests of single runs. A base is dropped where the upper end of its "
        "rewards falls below the highest lower end."
    ),
}

_MARKERS = "os^Dv*"


def draw_regret(played: Sequence[tuple[Case, Outcome]], path: Path) -> None:
    """Draws the regret per step against eps for each dimension, and the lock-out over time.

    Args:
        played: All runs.
        path: The PNG file.
    """
    import matplotlib.pyplot as plt

    rows = [outcome.row for case, outcome in played if case.problem == "generic"]
    dims = sorted({row["dim"] for row in rows})
    figure, axes = plt.subplots(
        1, len(dims) + 1, figsize=(4.2 * len(dims) + 4.6, 4.4), layout="constrained", squeeze=False
    )
    for ax, dim in zip(axes[0], dims, strict=False):
        _draw_against_eps(ax, [row for row in rows if row["dim"] == dim])
        ax.set_title(f"d = {dim}")
    axes[0, 0].set_ylabel("regret per step (mean ± standard error)")
    curves: dict[str, list[list[float]]] = {name: [] for name in NAMES.values()}
    for case, outcome in played:
        if case.problem == "lock-out":
            curves[NAMES[case.method]].append(outcome.regret)
    last = axes[0, -1]
    plot_regret(curves, last)
    last.set_title("Lock-out instance")
    last.set_yscale("log")  # all but two of the lines end between 10 and 20
    if last.get_legend() is not None:
        last.get_legend().remove()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(NAMES) // 2)
    save(figure, path, 120)
    plt.close(figure)


def _draw_against_eps(ax: Axes, rows: Sequence[Row]) -> None:
    levels = sorted({row["misspecification"] for row in rows})
    for color, marker, (method, name) in zip(PALETTE, _MARKERS, NAMES.items(), strict=False):
        cells = [
            column(rows, "regret_per_step", method=method, misspecification=eps) for eps in levels
        ]
        draw_means(ax, levels, cells, color=color, marker=marker, label=name)
    ax.set_xlabel("misspecification eps")
    ax.set_xticks(levels)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)


def draw_tests(played: Sequence[tuple[Case, Outcome]], path: Path) -> None:
    """Draws the elimination tests of single runs: the upper end of each base over time, and the
    highest lower end; a base goes where its line falls below.

    Args:
        played: The runs to show, of masters.
        path: The PNG file.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    levels = [f"{eps:g}" for eps in (*LEVELS, 0.0)]
    colors = dict(zip(levels, PALETTE, strict=False))
    count = len(played)
    figure, axes = plt.subplots(
        1, count, figsize=(3.9 * count, 4.6), layout="constrained", squeeze=False, sharey=True
    )
    for ax, (case, outcome) in zip(axes[0], played, strict=True):
        told = outcome.row["told"].split()
        for base, eps in enumerate(told):
            _draw_upper(ax, outcome, base, colors.get(eps, "gray"))
        highest = {test.t: test.highest for test in outcome.tests}
        ax.plot(list(highest), list(highest.values()), color="black", linestyle="--")
        where = "lock-out" if case.problem == "lock-out" else f"d = {case.dim}"
        ax.set_title(f"{where}, eps = {case.misspecification:g}\n{NAMES[case.method]}", fontsize=10)
        ax.set_xlabel("observations")
        ax.set_ylim(-0.2, 2.4)
        ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("mean reward of the best actions,\nrewards rescaled to [0, 1]")
    handles = [
        Line2D([], [], color=color, label=f"upper end, told {eps}") for eps, color in colors.items()
    ]
    handles += [
        Line2D([], [], color="gray", label="upper end, the published base"),
        Line2D([], [], color="black", linestyle="--", label="highest lower end"),
        Line2D([], [], color="gray", marker="X", linestyle="none", label="eliminated"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    save(figure, path, 120)
    plt.close(figure)


def _draw_upper(ax: Axes, outcome: Outcome, base: int, color: str) -> None:
    tests = [test for test in outcome.tests if test.base == base]
    t, upper = [test.t for test in tests], [test.upper for test in tests]
    ax.plot(t, upper, color=color)
    if tests and tests[-1].fails:
        ax.plot(t[-1], upper[-1], color=color, marker="X", markersize=11)
