"""Certificates: what certified elimination says of its regret, step by step."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy
from botorch_ext.strategies.fixed_design.certified import CertifiedElimination

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colours of the phases; free steps have none.
_SHADES = {"block": PALETTE[1], "wait": PALETTE[4], "rest": PALETTE[2]}


def plot_certificate(
    strategy: CertifiedElimination, ax: Axes | None = None, *, regret: Any = None
) -> Axes:
    """The certificate at each step of certified elimination, its phases shaded, rounds set apart by
    dotted lines.

    Args:
        strategy: Certified elimination that asked something.
        ax: Where to draw; a new figure unless given.
        regret: ``T``, the regret of each step, where it is known, in units of f; steps without
            regret are left out.

    Returns:
        The axes, on a logarithmic scale.

    Raises:
        ValueError: Nothing was asked, or another number of regrets than trials.
    """
    history = strategy.history
    infos = [trial.info for trial in history.trials if not history.is_attached(trial.id)]
    if not infos:
        raise ValueError("strategy must have asked something, got no trial")
    ax = axes_or_new(ax)
    steps = np.arange(1, len(infos) + 1)
    shown: set[str] = set()
    for phase, run in groupby(range(len(infos)), lambda i: infos[i].get("phase")):
        if phase in _SHADES:
            ids = list(run)
            label = None if phase in shown else phase
            shown.add(phase)
            look: dict[str, Any] = {"color": _SHADES[phase], "alpha": 0.25, "linewidth": 0}
            ax.axvspan(ids[0] + 0.5, ids[-1] + 1.5, label=label, **look)
    rounds = [info.get("round") for info in infos]
    for i in range(1, len(rounds)):
        if rounds[i] != rounds[i - 1]:
            ax.axvline(i + 0.5, color="black", linewidth=0.8, linestyle=":")
    if regret is not None:
        values = to_numpy(regret)
        if values.shape != steps.shape:
            raise ValueError(f"regret must have {len(steps)} entries, got {values.shape}")
        lost = values > 0
        ax.scatter(
            steps[lost], values[lost], s=8, linewidths=0, color=PALETTE[0], label="regret", zorder=3
        )
    known = [info.get("certificate") or np.nan for info in infos]  # zero has no logarithm
    ax.step(steps, known, where="mid", color="black", linewidth=2, label="certified regret")
    ax.set_yscale("log")
    ax.set_xlim(0.5, len(steps) + 0.5)
    ax.set_xlabel("step")
    ax.set_ylabel("regret")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax
