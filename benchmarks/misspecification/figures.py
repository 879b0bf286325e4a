"""Figures of regret under misspecification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common.repeated_runs import draw_means
from benchmarks.common.tables import Row
from benchmarks.misspecification.report import cautious, dims_of, regret_of
from benchmarks.misspecification.runs import EPSILONS
from botorch_ext.plotting import PALETTE, plot_regret


def draw(curves: dict[str, list[list[float]]], generic: list[Row], path: Path) -> None:
    """Draws two panels: the lock-out instance, and the regret per step against eps.

    Args:
        curves: For each method its regret per step on the lock-out instance, ``seeds x T``.
        generic: A row for each run on a generic perturbation.
        path: The PNG file.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    figure, (left, right) = plt.subplots(1, 2, figsize=(13.5, 4.6), layout="constrained")
    plot_regret(curves, left)
    left.set_title("Lock-out instance")

    lines = {
        "GP-UCB": lambda dim, eps: regret_of(generic, "gp_ucb", dim, eps),
        "EC-GP-UCB, told eps": lambda dim, eps: regret_of(generic, "ec_gp_ucb", dim, eps),
        "Phased GP\nUncertainty Sampling": lambda dim, eps: regret_of(generic, "phased", dim, eps),
        "EC-GP-UCB, told eps\nwhile the truth is 0": lambda dim, eps: cautious(generic, dim, eps),
    }
    styles: list[Any] = ["-", "--", ":", "-."]
    markers, dims = "os^D", dims_of(generic)
    for color, values in zip(PALETTE, lines.values(), strict=False):
        for dim, style, marker in zip(dims, styles, markers, strict=False):
            cells = [values(dim, eps) for eps in EPSILONS]
            draw_means(right, EPSILONS, cells, color=color, linestyle=style, marker=marker)
    handles = [
        Line2D([], [], color=color, label=name) for color, name in zip(PALETTE, lines, strict=False)
    ]
    handles += [
        Line2D([], [], color="black", linestyle=style, marker=marker, label=f"d = {dim}")
        for dim, style, marker in zip(dims, styles, markers, strict=False)
    ]
    right.legend(handles=handles, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    num_instances = len(regret_of(generic, "gp_ucb", dims[0], 0.0))
    right.set_xlabel("misspecification eps")
    right.set_ylabel(f"regret per step\n(mean ± standard error, {num_instances} instances)")
    right.set_title("Generic perturbations")
    right.set_xticks(EPSILONS)
    right.set_ylim(bottom=0)
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)
