"""Powers of the horizon: what theory says of instances, and slopes of measured regret beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_ext.analysis import (
    consistency_exponent,
    fitted_slope,
    lower_exponent,
    minimax_exponent,
    upper_exponent,
)
from botorch_ext.checks import one_number
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_METHODS = ("sup_kernel_ucb", "gp_ucb", "pi_gp_ucb")
_NAMES = {
    "sup_kernel_ucb": "SupKernelUCB",
    "gp_ucb": "GP-UCB",
    "pi_gp_ucb": "pi-GP-UCB",
    "igp_ucb": "IGP-UCB",
    "bpe": "BPE",
    "breadthwise_exploration": "breadthwise exploration",
}
_MARKERS = "os^Dv*P"
_STYLES: tuple[Any, ...] = ("-", "--", "-.", (0, (4, 1, 1, 1, 1, 1)))
_PREDICTED = "0.45"


def plot_consistency(
    nu: float,
    growth: float,
    ax: Axes | None = None,
    *,
    dims: Sequence[int] = tuple(range(1, 11)),
    methods: Sequence[str] = _METHODS,
) -> Axes:
    """What a method must pay on an instance of some growth (solid) for what it promises on every
    function (dashed), against the dimension: the powers of T of both.

    The less a method promises, the less it must pay: where its bound is T, nothing. Where the
    growth is at most nu there is no lower bound, and no solid line.

    Source: Shekhar and Javidi 2022, figure 7; corollaries 2 to 4.

    Args:
        nu: The smoothness of the Matern kernel.
        growth: b.
        ax: Where to draw; a new figure unless given.
        dims: The dimensions d.
        methods: Names that `consistency_exponent` knows.

    Returns:
        The axes.

    Raises:
        ValueError: An unknown method, or an impossible number.
    """
    lines = []
    for method in methods:
        worst = [consistency_exponent(method, nu, dim) for dim in dims]
        least = [lower_exponent(nu, growth, d, a) for d, a in zip(dims, worst, strict=True)]
        lines.append((_NAMES[method], worst, least))
    ax = axes_or_new(ax)
    for i, (name, worst, least) in enumerate(lines):
        look: dict[str, Any] = {
            "color": PALETTE[i % len(PALETTE)],
            "marker": _MARKERS[i % len(_MARKERS)],
        }
        look |= {"linewidth": 1.6, "markersize": 5}
        ax.plot(dims, worst, "--", label=name, **look)
        if growth > nu:
            ax.plot(dims, _floats(least), "-", **look)
    ax.plot([], [], "--", color="0.3", label="on every function at most")
    if growth > nu:
        ax.plot([], [], "-", color="0.3", label="on this instance at least")
    ax.set_xticks(dims)
    ax.set_xlabel("dimension d")
    _finish(ax, f"nu = {nu:g}, b = {growth:g}")
    return ax


def plot_instance_exponents(
    growth: float,
    dim: int,
    ax: Axes | None = None,
    *,
    nus: Sequence[float] | None = None,
) -> Axes:
    """Between which powers of T regret can lie on an instance of some growth, against the
    smoothness of the kernel: at most, by breadthwise exploration, and at least, by any method that
    is of the minimax order on every function; and that order.

    Source: Shekhar and Javidi 2022, figure 8; propositions 1 and 2.

    Args:
        growth: b.
        dim: d.
        ax: Where to draw; a new figure unless given.
        nus: The values of nu, increasing; 0.1 to 4 unless given.

    Returns:
        The axes.

    Raises:
        ValueError: An impossible number.
    """
    grid = np.linspace(0.1, 4.0, 157) if nus is None else to_numpy(nus)
    worst = [minimax_exponent(nu, dim) for nu in grid]
    upper = [upper_exponent(nu, growth, dim) for nu in grid]
    least = [lower_exponent(nu, growth, dim, a) for nu, a in zip(grid, worst, strict=True)]
    ax = axes_or_new(ax)
    ax.plot(grid, worst, "--", color=PALETTE[0], linewidth=2, label="minimax rate")
    label = "breadthwise exploration, at most"
    ax.plot(grid, upper, "--", color=PALETTE[5], linewidth=2, label=label)
    label = "of minimax order, at least (b > nu)"
    ax.plot(grid, _floats(least), "-", color=PALETTE[0], linewidth=2, label=label)
    ax.fill_between(grid, upper, worst, color=PALETTE[5], alpha=0.25, linewidth=0)
    ax.set_xlabel("smoothness nu")
    _finish(ax, f"b = {growth:g}, d = {dim}")
    return ax


def plot_regret_slopes(
    curves: Mapping[str, tuple[Any, Any]],
    ax: Axes | None = None,
    *,
    exponents: Mapping[str, float] | None = None,
    fit_from: float = 0.0,
) -> Axes:
    """Cumulative regret on log axes, with fitted slopes, and lines of predicted ones.

    The legend has the slope of each method with its 95 % interval over the runs (`fitted_slope`).
    Predicted lines begin where the first curve begins: only their slopes mean something.

    Args:
        curves: From the name of a method to numbers of steps or horizons (``n``, increasing), and
            the cumulative regret at each (``runs x n`` or ``n``), positive. Single runs, and curves
            of fewer than two points from ``fit_from`` on, have no fitted line.
        ax: Where to draw; a new figure unless given.
        exponents: From a label to the power of T of a line to draw beside the curves.
        fit_from: The least t that counts for the slope.

    Returns:
        The axes.

    Raises:
        ValueError: No curve, one of the wrong shape, or numbers that are not positive.
    """
    fit_from, arrays = one_number(fit_from, "fit_from"), _as_curves(curves)
    ax = axes_or_new(ax)
    for i, (name, (t, regret)) in enumerate(arrays.items()):
        mean = regret.mean(axis=0)
        look: dict[str, Any] = {"color": PALETTE[i % len(PALETTE)]}
        kept = t >= fit_from
        label = name
        if len(regret) > 1 and kept.sum() > 1:
            slope, low, high = fitted_slope(t[kept].tolist(), regret[:, kept].tolist())
            label += f": {slope:.2f} [{low:.2f}, {high:.2f}]"
            middle = np.exp(np.log(t[kept]).mean()), np.exp(np.log(regret[:, kept]).mean())
            line: dict[str, Any] = {"linestyle": _STYLES[i % len(_STYLES)], "linewidth": 1.4}
            ax.plot(t[kept], _power(t[kept], slope, middle), **line, **look)
        error = regret.std(axis=0, ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else None
        # Hollow, and lines of different dashes: methods that do the same lie on each other.
        look |= {"linestyle": "none", "marker": _MARKERS[i % len(_MARKERS)], "fillstyle": "none"}
        ax.errorbar(t, mean, yerr=error, capsize=2, label=label, **look)
    t, regret = next(iter(arrays.values()))
    anchor = float(t[0]), float(regret[:, 0].mean())
    styles: tuple[Any, ...] = (":", "-.", "--", (0, (1, 4)))
    for style, (label, exponent) in zip(styles * 9, (exponents or {}).items(), strict=False):
        line: dict[str, Any] = {"color": _PREDICTED, "linestyle": style, "linewidth": 1.4}
        label = f"{label}: {one_number(exponent, label):.2f}"
        ax.plot(t, _power(t, exponent, anchor), label=label, zorder=1, **line)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("evaluations T")
    ax.set_ylabel("cumulative regret (mean ± standard error)")
    ax.grid(alpha=0.3, which="both")
    # Measured ones first.
    predicted = [line for line in ax.lines if line.get_color() == _PREDICTED]
    ax.legend(handles=[*ax.containers, *predicted], fontsize="small")
    return ax


def _power(t: np.ndarray, exponent: float, through: tuple[float, float]) -> np.ndarray:
    return through[1] * (t / through[0]) ** exponent


def _floats(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _finish(ax: Axes, title: str) -> None:
    ax.set_ylabel("power of T")
    ax.set_ylim(0, 1.3)  # the legend has no lines under it
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_title(title)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", loc="upper center", ncols=2)


def _as_curves(
    curves: Mapping[str, tuple[Any, Any]],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    if len(curves) == 0:
        raise ValueError("curves must hold at least one method, got none")
    arrays = {}
    for name, (t, regret) in curves.items():
        t, regret = to_numpy(t), np.atleast_2d(to_numpy(regret))
        if t.ndim != 1 or 0 in regret.shape or regret.shape[1:] != t.shape:
            raise ValueError(
                f"curves[{name!r}] must have t of shape (n,) and regret of (runs, n), "
                f"got {t.shape} and {regret.shape}"
            )
        if not ((t > 0).all() and (regret > 0).all()):
            raise ValueError(f"curves[{name!r}] must be positive, for log axes")
        arrays[name] = t, regret
    return arrays
