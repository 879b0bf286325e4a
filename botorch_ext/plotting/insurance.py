"""Insurance over time: its budget, what was charged, what was probed, and which levels went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from botorch_ext.plotting.style import PALETTE, axes_or_new
from botorch_ext.strategies.adaptive.insured import InsuredStrategy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = {"probe": ("o", "probe"), "follow-up": (".", "probe repeated")}


def plot_insurance(strategy: InsuredStrategy, ax: Axes | None = None) -> Axes:
    """The insurance over the steps of a study: what it may spend, what its probes were charged, and
    when they refuted a level of misspecification.

    The curve is the budget of the step; the steps below it are what probes were charged so far, at
    most, if the level of their time holds. Repeats, and the probe that follows a refuted level,
    need no room in the budget. A mark is a probe, or a probe repeated; a dotted line is the end of
    a level, with the misspecification that is assumed from then on.

    Args:
        strategy: An insured strategy that asked something.
        ax: Where to draw; a new figure unless given.

    Returns:
        The axes.

    Raises:
        ValueError: No insured strategy, or one that asked nothing but initial points.
    """
    if not isinstance(strategy, InsuredStrategy):
        raise ValueError(f"strategy must be insured, got a {type(strategy).__name__}")
    trials = [trial for trial in strategy.history.trials if "kind" in trial.info]
    if not trials:
        raise ValueError("strategy must have asked more than initial points, got none")
    ax = axes_or_new(ax, (8.0, 4.0))
    first, terms, bound = strategy.first_step, strategy.terms, strategy.insurance.rkhs_bound
    steps = np.array([first + strategy.history.asked_before(trial.id) for trial in trials])
    costs = np.array([trial.info["cost"] for trial in trials])
    kinds = np.array([trial.info["kind"] for trial in trials])
    lost = np.concatenate([[0.0], np.where(kinds == "exploit", costs, 0.0).cumsum()[:-1]])
    budget = [terms.budget(own, bound, int(t)) for own, t in zip(lost, steps, strict=True)]
    charged = np.where(np.isin(kinds, list(_MARKS)), costs, 0.0).cumsum()
    ax.plot(steps, budget, color=PALETTE[0], linestyle="--", label="budget")
    ax.plot(steps, charged, color=PALETTE[1], drawstyle="steps-post", label="charged")
    for kind, (marker, label) in _MARKS.items():
        of_kind = kinds == kind
        if of_kind.any():
            ax.plot(
                steps[of_kind],
                charged[of_kind],
                marker,
                color=PALETTE[1],
                markersize=6,
                label=label,
            )
    height = max(max(budget), charged[-1])
    for number, refuted in enumerate(_refuted(strategy)):
        step, level = first + refuted["trial"], refuted["level"] + 1
        ax.axvline(step, color="0.5", linestyle=":", linewidth=1.0)
        ax.annotate(
            f"eps = {strategy.levels[level]:.3g}",
            (step, height * (1.0 - 0.08 * (number % 4))),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize="small",
            color="0.3",
        )
    ax.set_xlabel("step")
    ax.set_ylabel("regret, at most")
    ax.set_ylim(bottom=0.0)
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False, loc="center right")
    for edge in ("top", "right"):
        ax.spines[edge].set_visible(False)
    return ax


def _refuted(strategy: InsuredStrategy) -> list[dict[str, int]]:
    """For each trial at which levels went, the last of them."""
    return list({refuted["trial"]: refuted for refuted in strategy.refutations}.values())
