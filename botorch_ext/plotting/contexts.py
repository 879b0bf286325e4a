"""Contexts and actions: what is believed of each pair, and what was chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.domains import Box, FiniteSet, host
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.plotting.maps import draw_heat_map, legend_above, scatter_in_order
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsStrategy
from botorch_ext.strategies.base import Strategy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Labels along each axis, at most.
_MOST_CONTEXT_LABELS, _MOST_ACTION_LABELS = 8, 12

_MEAN = "posterior mean"
_RELATIVE = "posterior mean, less the highest in its context"
_BEST, _TRULY_BEST = "highest posterior mean", "truly best"
_BEST_COLOR, _TRUE_COLOR = PALETTE[1], PALETTE[6]


def plot_action_map(
    strategy: Strategy,
    contexts: Tensor | Sequence[Any],
    ax: Axes | None = None,
    *,
    truth: Callable[[Tensor], Tensor] | None = None,
    relative: bool = False,
    action_labels: Sequence[str] | None = None,
    context_labels: Sequence[str] | None = None,
) -> Axes:
    """A heat map of the posterior mean over contexts, from left to right, and the actions of a
    finite set, from bottom to top.

    A dot stands where an action was chosen in the very context, the larger the more often. In each
    context the action with the highest posterior mean has a frame.

    Args:
        strategy: One with contexts and a model, on a finite set of actions.
        contexts: ``n x d_z``, in the order of the picture.
        ax: Where to draw; a new figure unless given.
        truth: The noiseless function of ``m x (d + d_z)`` joint points, such as a
            `ContextualProblem`; the truly best actions are then marked as well.
        relative: Whether the highest mean in each context is subtracted, for contexts that matter
            more than actions do.
        action_labels: One for each action; their rows in the set unless given.
        context_labels: One for each context. Unless given, the contexts themselves where they are
            single numbers, else their positions.

    Returns:
        The axes; the colour bar is drawn beside them, the legend above them: a title needs
        ``pad=24``.

    Raises:
        ValueError: Another kind of strategy, no context, contexts that the strategy would refuse,
            or another number of labels.
    """
    space = _require_contexts(strategy)
    if not isinstance(strategy.domain, FiniteSet):
        raise ValueError("strategy must choose from a finite set, got a Box: plot_action_map_1d")
    actions, seen = strategy.domain.points, _checked(contexts, space, strategy.domain.like)
    numbers = seen[:, 0].tolist() if seen.shape[1] == 1 else range(len(seen))
    across = _labels(context_labels, "context_labels", [f"{number:.4g}" for number in numbers])
    up = _labels(action_labels, "action_labels", [str(row) for row in range(len(actions))])
    gains = _at_pairs(lambda X: strategy.means_at(X), actions, seen)  # (n, N), maximised
    sign, best = strategy.history.sign, gains.argmax(axis=1)

    width, height = 0.16 * len(seen) + 3, 0.13 * len(actions) + 1.4
    ax = axes_or_new(ax, (min(max(width, 5.5), 12.0), min(max(height, 3.2), 9.0)))
    shown = sign * (gains - gains.max(axis=1, keepdims=True) if relative else gains)
    positions, label = np.arange(len(seen)), _RELATIVE if relative else _MEAN
    draw_heat_map(ax, positions, np.arange(len(actions)), shown.T, label, cells=True)
    size = _cell_size(ax, len(seen), len(actions))
    _draw_counts(ax, _counts(strategy, seen), size)
    frame: dict[str, Any] = {"linestyle": "none", "zorder": 4, "markeredgewidth": 1.3}
    look = {"marker": "s", "markerfacecolor": "none", "markeredgecolor": _BEST_COLOR}
    ax.plot(positions, best, markersize=size, label=_BEST, **look, **frame)
    if truth is not None:
        values = sign * _at_pairs(truth, actions, seen)
        look = {"marker": "x", "color": _TRUE_COLOR, "markersize": 0.7 * size}
        ax.plot(positions, values.argmax(axis=1), label=_TRULY_BEST, **look, **frame)
    ax.set_xticks(*_some(across, _MOST_CONTEXT_LABELS))
    ax.set_yticks(*_some(up, _MOST_ACTION_LABELS))
    ax.set_xlabel("context")
    ax.set_ylabel("action")
    legend_above(ax, 3)
    return ax


def plot_action_map_1d(
    strategy: Strategy,
    ax: Axes | None = None,
    *,
    context_bounds: tuple[float, float] | None = None,
    truth: Callable[[Tensor], Tensor] | None = None,
    num_points: int = 60,
) -> Axes:
    """A heat map of the posterior mean over contexts that are single numbers, from left to right,
    and the actions of a box of one coordinate, from bottom to top, with the chosen pairs in order.

    Args:
        strategy: One with contexts and a model, on a box of one coordinate.
        ax: Where to draw; a new figure unless given.
        context_bounds: From which context to which. Unless given, the bounds of the context domain
            or, without one, the least and the largest context so far.
        truth: The noiseless function of ``m x 2`` joint points, such as a `ContextualProblem`; the
            truly best actions are then drawn as well.
        num_points: Grid points along each axis.

    Returns:
        The axes; the colour bar is drawn beside them, the legend above them: a title needs
        ``pad=38``.

    Raises:
        ValueError: Another kind of strategy, contexts of several numbers, or bounds that are
            missing or not a number and a larger one.
    """
    space = _require_contexts(strategy)
    if not isinstance(strategy.domain, Box) or strategy.domain.dim != 1:
        raise ValueError(
            f"strategy must choose from a box of one coordinate, got {strategy.domain!r}"
        )
    trials = strategy.history.trials
    pairs = torch.stack([trial.point for trial in trials]) if trials else None
    size = space.dim if pairs is None else pairs.shape[1] - 1
    if size not in (None, 1):
        raise ValueError(f"strategy must have contexts of one number, got {size}")
    asked = np.zeros((0, 2)) if pairs is None else to_numpy(pairs)[:, ::-1]  # context, action
    first, last = _context_range(space, asked[:, 0], context_bounds)
    like = strategy.domain.like
    line = host.linspace(first, last, num_points, dtype=like.dtype)
    lower, upper = strategy.domain.bounds[:, 0].tolist()
    up = host.linspace(lower, upper, num_points, dtype=like.dtype)
    actions, seen = up.unsqueeze(-1).to(like), line.unsqueeze(-1).to(like)
    gains = _at_pairs(lambda X: strategy.means_at(X), actions, seen)  # (n, m), maximised
    sign = strategy.history.sign

    ax = axes_or_new(ax)
    from matplotlib.patheffects import withStroke

    draw_heat_map(ax, line.numpy(), up.numpy(), sign * gains.T, _MEAN)
    if len(asked):
        inside = (asked[:, 0] >= first) & (asked[:, 0] <= last)
        scatter_in_order(ax, asked[inside])
    best = up.numpy()[gains.argmax(axis=1)]
    # Seen on light and on dark, and in the legend.
    edge = [withStroke(linewidth=3.5, foreground="black")]
    ax.plot(line.numpy(), best, color="white", path_effects=edge, label=_BEST, zorder=2.5)
    if truth is not None:
        best = up.numpy()[(sign * _at_pairs(truth, actions, seen)).argmax(axis=1)]
        ax.plot(line.numpy(), best, "--", color=_TRUE_COLOR, label=_TRULY_BEST, zorder=2.6)
    ax.set_xlabel("context")
    ax.set_ylabel("action")
    legend_above(ax, 2)
    return ax


def _require_contexts(strategy: Strategy) -> ContextSpace:
    has_model = isinstance(strategy, BoundsStrategy)
    if not has_model or strategy.context_space is None:
        kind = type(strategy).__name__
        raise ValueError(
            "strategy must be one that plays confidence bounds, with contexts, "
            f"got a {kind}" + " without contexts" * has_model
        )
    return strategy.context_space


def _checked(contexts: Tensor | Sequence[Any], space: ContextSpace, like: Tensor) -> Tensor:
    """``n x d_z``."""
    checked: list[Tensor] = []
    for position, context in enumerate(contexts):
        dim = len(checked[0]) if checked else None
        checked.append(space.checked(context, like, dim, f"contexts[{position}]"))
    if not checked:
        raise ValueError("contexts must hold at least one context, got none")
    return torch.stack(checked)


def _at_pairs(
    function: Callable[[Tensor], Tensor], actions: Tensor, contexts: Tensor
) -> np.ndarray:
    """``n x m`` values, a row for each context."""
    with torch.no_grad():
        rows = [function(with_context(actions, context)) for context in contexts]
    return to_numpy(torch.stack(rows))


def _counts(strategy: Strategy, contexts: Tensor) -> np.ndarray:
    """``n x N``: how often each action of the set was chosen in each context."""
    counts = np.zeros((len(contexts), len(strategy.domain.like)))
    for trial in strategy.history.trials:
        if trial.context is not None:
            same = to_numpy((contexts == trial.context).all(dim=-1)) > 0
            counts[same, trial.info["index"]] += 1
    return counts


def _draw_counts(ax: Axes, counts: np.ndarray, size: float) -> None:
    column, row = counts.nonzero()
    if not len(row):
        return
    most = counts.max()
    areas = (0.75 * size) ** 2 * counts[column, row] / most
    look: dict[str, Any] = {"color": "white", "edgecolors": "black", "linewidths": 0.5}
    label = "chosen" if most == 1 else f"chosen (largest: {most:.0f} times)"
    ax.scatter(column, row, s=areas.clip(3.0), label=label, zorder=3, **look)


def _cell_size(ax: Axes, num_columns: int, num_rows: int) -> float:
    """The shorter side of a cell in points, roughly: a layout may yet change the axes."""
    figure = ax.get_figure(root=True)
    box = ax.get_window_extent()
    dpi = figure.dpi if figure is not None else 100.0
    return 0.8 * 72 / dpi * min(box.width / num_columns, box.height / num_rows, dpi / 3)


def _labels(labels: Sequence[str] | None, name: str, default: Sequence[str]) -> Sequence[str]:
    labels = default if labels is None else labels
    if len(labels) != len(default):
        raise ValueError(f"{name} must be {len(default)} labels, got {len(labels)}")
    return labels


def _some(labels: Sequence[str], most: int) -> tuple[range, list[str]]:
    """Evenly spaced positions, and their labels."""
    positions = range(0, len(labels), -(-len(labels) // most))
    return positions, [labels[position] for position in positions]


def _context_range(
    space: ContextSpace, asked: np.ndarray, bounds: tuple[float, float] | None
) -> tuple[float, float]:
    if bounds is None and isinstance(space.domain, Box):
        first, last = space.domain.bounds[:, 0].tolist()
        return first, last
    if bounds is None and len(set(asked.tolist())) < 2:
        raise ValueError("context_bounds must be given before two contexts were seen, got None")
    first, last = (asked.min(), asked.max()) if bounds is None else bounds
    if not -np.inf < first < last < np.inf:
        raise ValueError(f"context_bounds must be a number and a larger one, got {bounds}")
    return float(first), float(last)
