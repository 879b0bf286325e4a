"""Studies: the rounds of phased elimination in the plane, and feedback in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy
from botorch_ext.strategies import Abandoned, Asked, Strategy, Told
from botorch_ext.strategies.fixed_design.phased import PhasedElimination
from botorch_ext.strategies.fixed_design.round import Round

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN_TIME, _LATE, _PENDING, _ABANDONED = "in time", "too late", "pending", "abandoned"
_COLORS = {
    _IN_TIME: PALETTE[0],
    _LATE: PALETTE[1],
    _PENDING: PALETTE[3],
    _ABANDONED: PALETTE[6],
}
_SURVIVING = PALETTE[2]


def plot_rounds_2d(
    strategy: PhasedElimination,
    axes: Sequence[Axes] | None = None,
    *,
    maximizer: Tensor | Sequence[float] | None = None,
    num_points: int = 120,
) -> Sequence[Axes]:
    """One panel for each round: where it could ask, what it asked, and what became of it.

    Args:
        strategy: A phased elimination on two coordinates, at any time.
        axes: Where to draw, one for each round; a new figure unless given.
        maximizer: The ``2`` coordinates of the true maximiser, where it is known.
        num_points: Grid points along each axis to draw the region of a box with.

    Returns:
        The axes.

    Raises:
        ValueError: Another number of coordinates than two, no round yet, or another number of axes
            than rounds.
    """
    if strategy.domain.dim != 2:
        raise ValueError(f"strategy must have two coordinates, got {strategy.domain.dim}")
    rounds = strategy.rounds
    if not rounds:
        raise ValueError("strategy must have asked something, got no round")
    axes = _panels(len(rounds)) if axes is None else axes
    if len(axes) != len(rounds):
        raise ValueError(f"axes must be one for each of the {len(rounds)} rounds, got {len(axes)}")
    states = _states(strategy)
    for ax, round in zip(axes, rounds, strict=True):
        _draw_survivors(ax, strategy, round, num_points)
        asked = [id for id in round.ids if id in states]
        for state, color in _COLORS.items():
            ids = [id for id in asked if states[id][0] == state]
            if ids:
                points = to_numpy(round.points[[id - round.first for id in ids]])
                label = state if state in (_PENDING, _ABANDONED) else f"told {state}"
                look: dict[str, Any] = {"s": 14, "linewidths": 0.4, "edgecolors": "white"}
                ax.scatter(points[:, 0], points[:, 1], color=color, label=label, zorder=3, **look)
        if maximizer is not None:
            x = to_numpy(maximizer)
            star: dict[str, Any] = {
                "marker": "*",
                "s": 160,
                "color": "white",
                "edgecolors": "black",
            }
            ax.scatter(x[0], x[1], label="maximiser", zorder=4, **star)
        share = f"{100 * round.choice.volume:.3g} % of the domain"
        ax.set_title(f"round {round.number}: {len(asked)} points\n{share}", fontsize="medium")
        ax.set_xlabel("x[0]")
        ax.set_ylabel("x[1]")
    _legend_above(axes)
    return axes


def plot_feedback(strategy: Strategy, ax: Axes | None = None) -> Axes:
    """When each trial was asked and told, in steps: one line for each trial, from left to right.

    For phased elimination, rounds are separated by vertical lines, and feedback that came after its
    round had closed has a colour of its own.

    Args:
        strategy: Any strategy that asked something.
        ax: Where to draw; a new figure unless given.

    Returns:
        The axes.

    Raises:
        ValueError: Nothing was asked.
    """
    states = _states(strategy)
    if not states:
        raise ValueError("strategy must have asked something, got no trial")
    ax = axes_or_new(ax)
    phased, linewidth = isinstance(strategy, PhasedElimination), min(2.0, 300 / len(states))
    for state, color in _COLORS.items():
        ids = [id for id in states if states[id][0] == state]
        if ids:
            ends = [states[id][1] for id in ids]
            label = state if state in (_PENDING, _ABANDONED) else f"told {state}"
            if state == _IN_TIME and not phased:
                label = "told"
            ax.hlines(ids, ids, ends, color=color, linewidth=linewidth, label=label)
    if isinstance(strategy, PhasedElimination):
        for round in strategy.rounds:
            ax.axvline(round.first, color="black", linewidth=0.8, linestyle=":")
            ax.annotate(
                f"round {round.number}",
                (round.first, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, 2),
                textcoords="offset points",
                fontsize="small",
            )
    ax.set_xlim(0, max(end for _, end in states.values()))
    ax.set_ylim(len(states), 0)
    ax.set_xlabel("trials asked so far (steps)")
    ax.set_ylabel("trial")
    for line in ax.legend(fontsize="small", loc="lower left").get_lines():
        line.set_linewidth(2.0)
    return ax


def _states(strategy: Strategy) -> dict[int, tuple[str, int]]:
    """From the id of each asked trial to what became of it, and how many had been asked by then."""
    states: dict[int, tuple[str, int]] = {}
    num_asked = 0
    for event in strategy.events:
        match event:
            case Asked(trial):
                num_asked += 1
                states[trial.id] = _PENDING, 0
            case Told(id):
                states[id] = _IN_TIME, num_asked
            case Abandoned(id):
                states[id] = _ABANDONED, num_asked
    for id, (state, _) in states.items():
        if state == _PENDING:
            states[id] = state, num_asked
    if isinstance(strategy, PhasedElimination):
        for round in strategy.rounds:
            for id in round.told_too_late(strategy.history):
                states[id] = _LATE, states[id][1]
    return states


def _draw_survivors(ax: Axes, strategy: PhasedElimination, round: Round, num_points: int) -> None:
    like = strategy.domain.like
    if isinstance(round.survivors, Tensor):
        lower, upper = to_numpy(like.amin(dim=0)), to_numpy(like.amax(dim=0))
        points = to_numpy(like[round.survivors])
        look: dict[str, Any] = {"marker": "s", "s": 10, "linewidths": 0, "color": _SURVIVING}
        ax.scatter(points[:, 0], points[:, 1], alpha=0.35, label="surviving candidates", **look)
    else:
        lower, upper = to_numpy(round.survivors.box.lower), to_numpy(round.survivors.box.upper)
        sides = [np.linspace(lower[j], upper[j], num_points) for j in range(2)]
        grid = torch.cartesian_prod(*(like.new_tensor(side) for side in sides))
        inside = to_numpy(round.survivors.contains(grid)).reshape(num_points, num_points).T
        ax.contourf(*sides, inside, levels=[0.5, 1.5], colors=[_SURVIVING], alpha=0.3)
        ax.fill([], [], color=_SURVIVING, alpha=0.3, linewidth=0, label="surviving region")
    margin = 0.02 * (upper - lower)
    ax.set_xlim(lower[0] - margin[0], upper[0] + margin[0])
    ax.set_ylim(lower[1] - margin[1], upper[1] + margin[1])


def _panels(num_panels: int) -> list[Axes]:
    import matplotlib.pyplot as plt

    columns = min(num_panels, 4)
    rows = math.ceil(num_panels / columns)
    size = (3.4 * columns, 3.5 * rows + 0.5)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat[num_panels:]:
        figure.delaxes(ax)
    return list(axes.flat[:num_panels])


def _legend_above(axes: Sequence[Axes]) -> None:
    """One legend for all panels, outside them: inside it would hide points."""
    handles = {}
    for ax in axes:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    labels = [label for label in handles if label != "maximiser"]
    labels += [label for label in handles if label == "maximiser"]
    figure = axes[0].get_figure(root=True)
    if figure is not None:
        look: dict[str, Any] = {"loc": "outside upper center", "ncols": len(labels)}
        figure.legend([handles[label] for label in labels], labels, **look)
