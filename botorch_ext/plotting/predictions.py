"""Predictions of a study: slices of the model, and which parameters matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.domains.space import Space
from botorch_ext.plotting.slices import Slice, draw_evaluations
from botorch_ext.plotting.style import PALETTE, axes_or_new, figure_of, to_numpy
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.answers.importance import Importance
from botorch_ext.strategies.answers.predictions import LEVELS, Predictions
from botorch_ext.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
# Observations are drawn where the root mean square of their distances to a slice, in sides of the
# box, is at most this.
_NEAR = 0.25
# A band that goes further beyond means and observations, in their ranges, leaves the axes.
_BEYOND = 0.5


def plot_importance(
    study: Study | Strategy | Importance,
    ax: Axes | None = None,
    *,
    context: ContextLike | None = None,
) -> Axes:
    """How much of the variance of f over the space each parameter explains, the most important one
    on top: alone (first-order Sobol index), and with others (total index).

    Args:
        study: A study, a strategy, or what its `importance` gave.
        ax: Where to draw; a new figure unless given.
        context: ``d_z``, where the strategy takes contexts.

    Returns:
        The axes.

    Raises:
        ValueError: What `Strategy.importance` raises.
    """
    found = study if isinstance(study, Importance) else study.importance(context)
    order = found.total.argsort().tolist()
    first, total = to_numpy(found.first_order[order]), to_numpy(found.total[order])
    places = np.arange(len(order))
    ax = axes_or_new(ax, (6.4, max(2.0, 0.9 + 0.35 * len(order))))
    look: dict[str, Any] = {"color": PALETTE[0]}
    ax.barh(places, total, height=0.7, alpha=0.35, label="with others (total)", **look)
    ax.barh(places, first.clip(0), height=0.35, label="alone (first order)", **look)
    ax.set_yticks(places, [found.names[j] for j in order])
    ax.set_xlim(0, max(1.0, float(total.max(initial=0.0))))
    ax.set_xlabel("share of the variance of the posterior mean over the space")
    ax.grid(axis="x", alpha=0.3)
    ax.legend(fontsize="small", loc="lower right")
    return ax


def plot_slices(
    study: Study | Strategy,
    dims: Sequence[int] | None = None,
    *,
    slice_at: Tensor | Sequence[float] | None = None,
    context: ContextLike | None = None,
    levels: tuple[float, float] = LEVELS,
    num_points: int = 100,
) -> list[Axes]:
    """Slices of the model through a point, one for each parameter: the posterior mean, the band
    between two quantiles of f, and the observations nearby, projected on the slice: those whose
    other columns are a quarter of a side away at most, in root mean square.

    Columns are drawn as the space is sampled: log scales logarithmically, whole numbers and
    categories as points with bars. What constraints exclude is left out. The columns of a `Space`
    have their units, and its choices their values.

    Args:
        study: A study or a strategy, on a `Box`.
        dims: The columns along which slices run; all those that count at the point if None.
        slice_at: ``d``: the point the slices run through; the recommended one if None.
        context: ``d_z``, where the strategy takes contexts.
        levels: The probabilities of the two quantiles.
        num_points: How many grid points a slice has.

    Returns:
        The axes, one for each slice.

    Raises:
        ValueError: A domain that is no `Box`, columns that do not exist, a point outside the box,
            or what `Strategy.recommended` raises.
    """
    strategy = study.strategy if isinstance(study, Study) else study
    box = strategy.domain
    if not isinstance(box, Box):
        raise ValueError("plot_slices needs a study on a Box, got one on a FiniteSet")
    if dims is not None and not (dims and all(0 <= dim < box.dim for dim in dims)):
        raise ValueError(f"dims must be columns from 0 to {box.dim - 1}, got {dims}")
    if slice_at is None:
        slice_at = study.recommended(context).x
    base = box.require_contains(slice_at, "slice_at")[0]
    if dims is None:
        dims = box.active(base).nonzero().flatten().tolist()
    X, Y = strategy.evaluated()
    X = X[:, : box.dim]
    axes = figure_of(len(dims), _COLUMNS)
    for ax, dim in zip(axes, dims, strict=True):
        line = slice_through(box, base, dim, num_points)
        found = study.predict(line.points, context=context, levels=levels)
        _draw(ax, line, found, is_stepped=dim in box.stepped and len(line.points) < num_points)
        near = near_slice(box, base, X, dim)
        shown = to_numpy(Y[near])
        draw_evaluations(ax, line, to_numpy(X[near]), shown, PALETTE[1], 4)
        ax.axvline(float(base[dim]), color=PALETTE[6], linewidth=0.8, linestyle=":")
        if dim in box.log:
            ax.set_xscale("log")
        _label_column(ax, box, dim, found.names[dim])
        _limit(ax, found, shown)
    axes[0].set_ylabel("objective")
    axes[0].legend(fontsize="x-small")
    return axes


def slice_through(box: Box, base: Tensor, dim: int, num_points: int) -> Slice:
    """Points of a box along one column, those that its other columns and constraints allow."""
    across = grid_of(box, base, dim, num_points)
    points = base.repeat(len(across), 1)
    points[:, dim] = across
    return Slice(points[box.contains(points)], dim)


def grid_of(box: Box, base: Tensor, dim: int, num_points: int) -> Tensor:
    """Numbers of a column, as the box is sampled: all of a few steps or categories, else so many
    from end to end.

    Args:
        box: The space.
        base: ``d``: a point of it.
        dim: The column.
        num_points: How many.

    Returns:
        ``num_points``, or fewer.
    """
    num = num_points
    if dim in box.categories:
        num = len(box.categories[dim])
    elif dim in box.stepped:
        sides = (box.ends[1, dim] - box.ends[0, dim]) / box.distances[dim]
        num = min(num, round(float(sides)) + 1)
    # The middles of equal parts, and both ends of what is continuous.
    unit = (host.arange(num) + 0.5) / num if dim in box.stepped else host.linspace(0, 1, num)
    varied = box.to_unit(base).repeat(num, 1)
    varied[:, dim] = unit.to(varied)
    return box.from_unit(varied)[:, dim]


def near_slice(box: Box, base: Tensor, X: Tensor, dim: int) -> Tensor:
    """Which of ``n x d`` points are near the slice along a column through a point, ``d``: those
    whose other columns are a quarter of a side away at most, in root mean square."""
    apart = (box.to_distances(X) - box.to_distances(base)).square()
    others = [j for j in range(box.dim) if j != dim]
    return apart[:, others].sum(dim=-1) <= _NEAR**2 * len(others)


def _draw(ax: Axes, line: Slice, found: Predictions, is_stepped: bool) -> None:
    mean, (low, high) = to_numpy(found.mean), to_numpy(found.quantiles).T
    band = f"{100 * found.levels[0]:.3g} % to {100 * found.levels[-1]:.3g} % of f"
    look: dict[str, Any] = {"color": PALETTE[0]}
    if is_stepped:
        bars = np.stack([mean - low, high - mean]).clip(0)
        ax.errorbar(line.across, mean, bars, fmt="s", markersize=4, capsize=3, label=band, **look)
        return
    ax.fill_between(line.across, low, high, alpha=0.2, linewidth=0, label=band, **look)
    ax.plot(line.across, mean, linewidth=2, label="posterior mean", **look)


def _label_column(ax: Axes, box: Box, dim: int, name: str) -> None:
    """Labels a column with its name; in a `Space` also with its unit and the values of a choice."""
    label, values = name, None
    codes = box.categories.get(dim)
    if isinstance(box, Space):
        parameter = box.parameters[name]
        if parameter.unit is not None:
            label = f"{name} ({parameter.unit})"
        if codes is not None:
            values = [str(parameter.decoded(code)) for code in codes]
    if codes is not None:
        ax.set_xticks(codes, values)
    ax.set_xlabel(label)


def _limit(ax: Axes, found: Predictions, shown: np.ndarray) -> None:
    """Keeps means and observations in sight of bands that go far beyond them."""
    near, ends = np.concatenate([to_numpy(found.mean), shown]), to_numpy(found.quantiles)
    low, high = float(near.min()), float(near.max())
    room = _BEYOND * (high - low) + float(np.median(np.ptp(ends, axis=-1)))
    low, high = max(low - room, float(ends.min())), min(high + room, float(ends.max()))
    low, high = min(low, float(near.min())), max(high, float(near.max()))
    margin = 0.05 * (high - low)
    if margin:
        ax.set_ylim(low - margin, high + margin)
