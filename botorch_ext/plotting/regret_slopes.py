"""Slopes of measured regret on log axes, beside powers of the horizon that theory has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_ext.analysis import fitted_slope
from botorch_ext.checks import one_number
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dv*P"
_STYLES: tuple[Any, ...] = ("-", "--", "-.", (0, (4, 1, 1, 1, 1, 1)))
_PREDICTED = "0.45"


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
