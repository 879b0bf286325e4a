"""Figures of regret under misspecification."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from benchmarks.common.pictures import save
from benchmarks.common.repeated_runs import draw_means
from benchmarks.common.tables import Row
from benchmarks.misspecification.report import cautious, dims_of, regret_of
from benchmarks.misspecification.runs import EPSILONS
from botorch_ext.plotting import PALETTE, plot_regret

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Captions, in the order of the report.
PICTURES = {
    "regret.png": (
        "Regret on the lock-out instance, and regret per step against the misspecification "
        "for each dimension. The lines are means, the bars standard errors."
    ),
}

_LINES = {
    "GP-UCB": lambda rows, dim, eps: regret_of(rows, "gp_ucb", dim, eps),
    "EC-GP-UCB, told eps": lambda rows, dim, eps: regret_of(rows, "ec_gp_ucb", dim, eps),
    "Phased GP Uncertainty Sampling": lambda rows, dim, eps: regret_of(rows, "phased", dim, eps),
    "EC-GP-UCB, told eps while the truth is 0": cautious,
}
_STYLES = ("-", "--", "-.", ":")
_MARKERS = "os^D"


def draw(curves: dict[str, Tensor], generic: list[Row], path: Path) -> None:
    """Draws a panel of the lock-out instance, and one for each dimension of the generic
    perturbations: the regret per step against eps.

    Args:
        curves: For each method its regret per step on the lock-out instance, ``seeds x T``.
        generic: A row for each run on a generic perturbation.
        path: The PNG file.
    """
    import matplotlib.pyplot as plt

    dims = dims_of(generic)
    lines = len(dims) // 2 + 1
    figure = plt.figure(figsize=(8.4, 3.1 * lines + 0.6), layout="constrained")
    axes = figure.subplots(lines, 2).ravel()
    for ax in axes[len(dims) + 1 :]:
        ax.set_axis_off()
    plot_regret(curves, axes[0])
    for line, style in zip(axes[0].lines, _STYLES, strict=False):
        line.set_linestyle(style)
    axes[0].set_title("Lock-out instance", fontsize="medium")
    axes[0].get_legend().remove()
    for ax, dim in zip(axes[1:], dims, strict=False):
        _draw_dimension(ax, generic, dim)
    num_instances = len(regret_of(generic, "gp_ucb", dims[0], 0.0))
    for ax in axes[1 : len(dims) + 1]:
        ax.set_ylabel(f"regret per step\n(mean ± s.e., {num_instances} instances)")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    save(figure, path, 110)
    plt.close(figure)


def _draw_dimension(ax: Axes, generic: list[Row], dim: int) -> None:
    for i, (name, values) in enumerate(_LINES.items()):
        cells = [values(generic, dim, eps) for eps in EPSILONS]
        look: dict[str, Any] = {"color": PALETTE[i], "linestyle": _STYLES[i]}
        draw_means(ax, EPSILONS, cells, label=name, marker=_MARKERS[i], **look)
    ax.set_xticks(EPSILONS, [f"{eps:g}" for eps in EPSILONS], fontsize="small")
    ax.set_xlabel("misspecification eps")
    ax.set_title(f"Generic perturbations, d = {dim}", fontsize="medium")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
