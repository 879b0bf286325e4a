"""Powers of the horizon that theory has for methods and for instances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_ext.analysis import (
    consistency_exponent,
    lower_exponent,
    minimax_exponent,
    upper_exponent,
)
from botorch_ext.plotting import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = {"sup_kernel_ucb": "SupKernelUCB", "gp_ucb": "GP-UCB", "pi_gp_ucb": "pi-GP-UCB"}
_MARKERS = "os^"


def plot_consistency(nu: float, growth: float, ax: Axes) -> None:
    """What a method must pay on an instance of some growth (solid) for what it promises on every
    function (dashed), against the dimension: the powers of T of both.

    The less a method promises, the less it must pay: where its bound is T, nothing. Where the
    growth is at most nu there is no lower bound, and no solid line.

    Source: Shekhar and Javidi 2022, figure 7; corollaries 2 to 4.

    Args:
        nu: The smoothness of the Matern kernel.
        growth: b.
        ax: Where to draw.
    """
    dims = range(1, 11)
    for (method, name), color, marker in zip(_NAMES.items(), PALETTE, _MARKERS, strict=False):
        worst = [consistency_exponent(method, nu, dim) for dim in dims]
        least = [lower_exponent(nu, growth, d, a) for d, a in zip(dims, worst, strict=True)]
        look: dict[str, Any] = {"color": color, "marker": marker, "linewidth": 1.6, "markersize": 5}
        ax.plot(dims, worst, "--", label=name, **look)
        if growth > nu:
            ax.plot(dims, _floats(least), "-", **look)
    ax.plot([], [], "--", color="0.3", label="on every function at most")
    if growth > nu:
        ax.plot([], [], "-", color="0.3", label="on this instance at least")
    ax.set_xticks(dims)
    ax.set_xlabel("dimension d")
    _finish(ax, f"nu = {nu:g}, b = {growth:g}")


def plot_instance_exponents(growth: float, dim: int, ax: Axes) -> None:
    """Between which powers of T regret can lie on an instance of some growth, against the
    smoothness of the kernel: at most, by breadthwise exploration, and at least, by any method that
    is of the minimax order on every function; and that order.

    Source: Shekhar and Javidi 2022, figure 8; propositions 1 and 2.

    Args:
        growth: b.
        dim: d.
        ax: Where to draw.
    """
    grid = np.linspace(0.1, 4.0, 157)
    worst = [minimax_exponent(nu, dim) for nu in grid]
    upper = [upper_exponent(nu, growth, dim) for nu in grid]
    least = [lower_exponent(nu, growth, dim, a) for nu, a in zip(grid, worst, strict=True)]
    ax.plot(grid, worst, "--", color=PALETTE[0], linewidth=2, label="minimax rate")
    label = "breadthwise exploration, at most"
    ax.plot(grid, upper, "--", color=PALETTE[5], linewidth=2, label=label)
    label = "of minimax order, at least (b > nu)"
    ax.plot(grid, _floats(least), "-", color=PALETTE[0], linewidth=2, label=label)
    ax.fill_between(grid, upper, worst, color=PALETTE[5], alpha=0.25, linewidth=0)
    ax.set_xlabel("smoothness nu")
    _finish(ax, f"b = {growth:g}, d = {dim}")


def _floats(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _finish(ax: Axes, title: str) -> None:
    ax.set_ylabel("power of T")
    ax.set_ylim(0, 1.3)  # the legend has no lines under it
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_title(title)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", loc="upper center", ncols=2)
