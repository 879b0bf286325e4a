"""Predictions of a study: slices and contours of the model, and which parameters matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from botorch_ext.aligned import cut
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
# Characters of the names of columns and of the values of a choice.
_MOST_CHARACTERS = 24
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
    ax.set_yticks(places, [cut(found.names[j], _MOST_CHARACTERS) for j in order])
    ax.set_xlim(0, max(1.0, float(total.max(initial=0.0))))
    ax.set_xlabel("share of the variance of the posterior mean over the space")
    ax.grid(axis="x", alpha=0.3)
    ax.legend(fontsize="small", loc="lower right")
    return ax


def plot_slices(
    study: Study | Strategy,
    dims: Sequence[int] | None = None,
    axes: Sequence[Axes] | None = None,
    *,
    slice_at: Tensor | Sequence[float] | None = None,
    context: ContextLike | None = None,
    levels: Sequence[float] = LEVELS,
    num_points: int = 100,
) -> Sequence[Axes]:
    """Slices of the model through a point, one for each parameter: the posterior mean, the bands
    between quantiles of f, and the observations nearby, projected on the slice: those in the
    context whose other columns are a quarter of a side away at most, in root mean square.

    Columns are drawn as the space is sampled: log scales logarithmically, whole numbers and
    categories as points with bars. What constraints exclude is left out. The columns of a `Space`
    have their units, and its choices their values. All slices have the same vertical limits.

    Args:
        study: A study or a strategy, on a `Box`.
        dims: The columns along which slices run; all those that count at the point if None.
        axes: Where to draw, one for each slice; a new figure unless given.
        slice_at: ``d``: the point the slices run through; the recommended one if None.
        context: ``d_z``, where the strategy takes contexts.
        levels: The probabilities of the quantiles, in ascending order. A band lies between the
            first and the last of them, a narrower one between the second and the last but one, and
            so on.
        num_points: How many grid points a slice has.

    Returns:
        The axes, one for each slice.

    Raises:
        ValueError: A domain that is no `Box`, columns that do not exist, a point outside the box,
            another number of axes than slices, or what `Strategy.recommended` raises.
    """
    strategy, box = _on_a_box(study, "plot_slices")
    base, dims = _through(study, box, dims, slice_at, context)
    axes = figure_of(len(dims), _COLUMNS) if axes is None else axes
    if len(axes) != len(dims):
        raise ValueError(f"axes must be one for each of the {len(dims)} slices, got {len(axes)}")
    X, Y = _observations(strategy, context)
    ranges = []
    for ax, dim in zip(axes, dims, strict=True):
        line = slice_through(box, base, dim, num_points)
        found = study.predict(line.points, context=context, levels=levels)
        _draw(ax, line, found, is_stepped=dim in box.stepped and len(line.points) < num_points)
        near = near_slice(box, base, X, dim)
        shown = to_numpy(Y[near])
        draw_evaluations(ax, line, to_numpy(X[near]), shown, PALETTE[1], 4)
        ax.axvline(float(base[dim]), color=PALETTE[6], linewidth=0.8, linestyle=":")
        _label_column(ax, box, dim)
        ranges.append((np.concatenate([to_numpy(found.mean), shown]), to_numpy(found.quantiles)))
    _limit(axes, *map(np.concatenate, zip(*ranges, strict=True)))
    axes[0].set_ylabel(_objective(study))
    axes[0].legend(fontsize="x-small")
    return axes


def plot_contours(
    study: Study | Strategy,
    dims: Sequence[int] | None = None,
    ax: Axes | None = None,
    *,
    slice_at: Tensor | Sequence[float] | None = None,
    context: ContextLike | None = None,
    num_points: int = 40,
) -> Axes:
    """The posterior mean where two parameters change, through a point, which has a ring, and all
    observations in the context, wherever their other columns are.

    Columns are drawn as by `plot_slices`. What constraints exclude is empty. The lightest colour is
    the best, which is the lowest mean if the strategy minimises.

    Args:
        study: A study or a strategy, on a `Box`.
        dims: The two columns, from left to right and from bottom to top; the two most important of
            those that count at the point if None.
        ax: Where to draw; a new figure unless given.
        slice_at: ``d``: the point the plane runs through; the recommended one if None.
        context: ``d_z``, where the strategy takes contexts.
        num_points: How many grid points each side has.

    Returns:
        The axes; the colour bar is drawn beside them.

    Raises:
        ValueError: A domain that is no `Box`, other than two columns, columns that do not exist, a
            point outside the box, or what `Strategy.recommended` raises.
    """
    strategy, box = _on_a_box(study, "plot_contours")
    base, known = _through(study, box, dims, slice_at, context)
    if dims is None:
        total = study.importance(context).total
        known = sorted(known, key=lambda j: -float(total[j]))[:2]
    if len(known) != 2:
        raise ValueError(f"dims must be two columns, got {list(known)}")
    sides = [grid_of(box, base, dim, num_points) for dim in known]
    across, up = (side.flatten() for side in torch.meshgrid(*sides, indexing="xy"))
    points = base.repeat(len(across), 1)
    points[:, known[0]], points[:, known[1]] = across, up
    inside = box.contains(points)
    means = np.full(len(points), np.nan)
    means[inside.cpu()] = to_numpy(study.predict(points[inside], context=context).mean)
    ax = axes_or_new(ax)
    edges = (_edges(to_numpy(s), dim in box.log) for s, dim in zip(sides, known, strict=True))
    colors = "viridis_r" if study.minimize else "viridis"
    mesh = ax.pcolormesh(*edges, means.reshape(len(sides[1]), -1), cmap=colors, rasterized=True)
    figure = ax.get_figure(root=True)
    if figure is not None:
        bar = figure.colorbar(mesh, ax=ax, label=f"posterior mean of {_objective(study)}")
        bar.solids.set_rasterized(True)  # type: ignore[union-attr]
    X = to_numpy(_observations(strategy, context)[0][:, known])
    mark: dict[str, Any] = {"linestyle": "none", "marker": "o", "clip_on": False}
    look = {"markersize": 4, "markerfacecolor": "white", "markeredgecolor": "black"}
    ax.plot(*X.T, label="evaluations", markeredgewidth=0.6, **mark, **look)
    look = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": PALETTE[1]}
    ax.plot(*to_numpy(base[known]), label="point", markeredgewidth=1.8, **mark, **look)
    ax.grid(visible=False)
    _label_column(ax, box, known[0])
    _label_column(ax, box, known[1], "y")
    return ax


def _on_a_box(study: Study | Strategy, who: str) -> tuple[Strategy, Box]:
    strategy = study.strategy if isinstance(study, Study) else study
    if not isinstance(strategy.domain, Box):
        raise ValueError(f"{who} needs a study on a Box, got one on a FiniteSet")
    return strategy, strategy.domain


def _through(
    study: Study | Strategy,
    box: Box,
    dims: Sequence[int] | None,
    slice_at: Tensor | Sequence[float] | None,
    context: ContextLike | None,
) -> tuple[Tensor, list[int]]:
    """The point, ``d``, and the columns, those that count there unless they are given."""
    if dims is not None and not (dims and all(0 <= dim < box.dim for dim in dims)):
        raise ValueError(f"dims must be columns from 0 to {box.dim - 1}, got {dims}")
    if slice_at is None:
        slice_at = study.recommended(context).x
    base = box.require_contains(slice_at, "slice_at")[0]
    return base, box.active(base).nonzero().flatten().tolist() if dims is None else list(dims)


def _observations(strategy: Strategy, context: ContextLike | None) -> tuple[Tensor, Tensor]:
    """The observations of the domain in the context, ``n x d`` and ``n``."""
    X, Y = strategy.evaluated()
    inside = strategy._are_inside(len(X))
    X, Y = X[inside], Y[inside]
    dim, space = strategy.domain.dim, strategy.context_space
    if space is not None and context is not None:
        here = (X[:, dim:] == space.checked(context, X, X.shape[1] - dim)).all(dim=-1)
        X, Y = X[here], Y[here]
    return X[:, :dim], Y


def _objective(study: Study | Strategy) -> str:
    """The name of the values with their unit, as far as they are known."""
    if not isinstance(study, Study):
        return "objective"
    name = cut(study.objective, _MOST_CHARACTERS)
    return f"{name} ({cut(study.unit, _MOST_CHARACTERS)})" if study.unit else name


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
    mean, quantiles = to_numpy(found.mean), to_numpy(found.quantiles).T
    look: dict[str, Any] = {"color": PALETTE[0]}
    for i, (low, high) in enumerate(zip(quantiles, quantiles[::-1], strict=True)):
        if i >= len(quantiles) // 2:
            break
        band = f"{100 * found.levels[i]:.3g} % to {100 * found.levels[-1 - i]:.3g} % of f"
        if is_stepped:
            width = 2.0 + 3.0 * i
            ax.vlines(line.across, low, high, alpha=0.5, linewidth=width, label=band, **look)
        else:
            ax.fill_between(line.across, low, high, alpha=0.2, linewidth=0, label=band, **look)
    mark: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 5}
    ax.plot(
        line.across, mean, linewidth=2, label="posterior mean", **look, **mark if is_stepped else {}
    )


def _edges(centers: np.ndarray, log: bool) -> np.ndarray:
    """The ``n + 1`` edges of cells around ascending numbers, halfway between them."""
    if log:
        return np.exp(_edges(np.log(centers), False))
    inner = (centers[1:] + centers[:-1]) / 2
    return np.concatenate([2 * centers[:1] - inner[:1], inner, 2 * centers[-1:] - inner[-1:]])


def _label_column(ax: Axes, box: Box, dim: int, which: Literal["x", "y"] = "x") -> None:
    """Gives an axis the scale of a column and its name; in a `Space` also its unit and the values
    of a choice."""
    name = box.names[dim]
    label, values = cut(name, _MOST_CHARACTERS), None
    codes = box.categories.get(dim)
    if isinstance(box, Space):
        parameter = box.parameters[name]
        if parameter.unit is not None:
            label = f"{label} ({cut(parameter.unit, _MOST_CHARACTERS)})"
        if codes is not None:
            values = [cut(str(parameter.decoded(code)), _MOST_CHARACTERS) for code in codes]
    axis = ax.xaxis if which == "x" else ax.yaxis
    if dim in box.log:
        ax.set(**{f"{which}scale": "log"})
    if codes is not None:
        axis.set_ticks(codes, values)
    elif dim in box.integer and dim not in box.log:
        ax.locator_params(axis=which, integer=True)
    axis.set_label_text(label)


def _limit(axes: Sequence[Axes], near: np.ndarray, ends: np.ndarray) -> None:
    """Keeps means and observations, ``n``, in sight of bands, ``m x k``, that go far beyond
    them."""
    low, high = float(near.min()), float(near.max())
    room = _BEYOND * (high - low) + float(np.median(np.ptp(ends, axis=-1)))
    low, high = max(low - room, min(low, ends.min())), min(high + room, max(high, ends.max()))
    margin = 0.05 * (high - low)
    for ax in axes if margin else ():
        ax.set_ylim(low - margin, high + margin)
