"""Posteriors: a slice with its confidence band, and heat maps with asked points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from botorch.models.model import Model
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.plotting.maps import draw_heat_map, legend_above, scatter_in_order
from botorch_ext.plotting.slices import (
    Band,
    Slice,
    draw_band,
    draw_evaluations,
    draw_truth,
    label_slice,
)
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CHUNK = 256

Quantity = Literal["mean", "std", "upper"]


def plot_posterior_1d(
    model: Model,
    bounds: Box | Tensor,
    width: float = 2.0,
    X: Tensor | None = None,
    Y: Tensor | None = None,
    ax: Axes | None = None,
    *,
    truth: Callable[[Tensor], Tensor] | None = None,
    dim: int = 0,
    slice_at: Tensor | Sequence[float] | None = None,
    num_points: int = 200,
) -> Axes:
    """The posterior along one coordinate: mean, confidence band and evaluated points.

    Args:
        model: Any BoTorch model of one output without batch dimensions; of an ensemble the mixture
            is drawn.
        bounds: The box, or its ``2 x d`` bounds.
        width: How many standard deviations the band reaches to each side.
        X: ``n x d`` evaluated points. Where d > 1 they are projected on the slice, drawn hollow.
        Y: Their values, ``n`` or ``n x 1``; needed where ``X`` is given.
        ax: Where to draw; a new figure unless given.
        truth: The noiseless function, from ``n x d`` to ``n``, drawn dashed.
        dim: The coordinate along which the slice runs.
        slice_at: ``d``: the point the slice runs through; needed where d > 1.
        num_points: How many grid points.

    Returns:
        The axes.

    Raises:
        ValueError: A missing ``slice_at`` or ``Y``, or an argument of the wrong shape.
    """
    corners = _corners(bounds)
    num_dims = corners.shape[1]
    _require_width(width)
    observations = _observations(X, Y, num_dims)
    line = Slice.through_box(corners, dim, slice_at, num_points)
    mean, std = _mean_and_std(model, line.points)

    ax = axes_or_new(ax)
    reach = f"mean ± {width:.3g} std"
    draw_band(ax, line, Band(mean, width * std, "posterior mean", PALETTE[0], reach))
    if truth is not None:
        draw_truth(ax, line, truth)
    if observations is not None:
        draw_evaluations(ax, line, *observations, PALETTE[1])
    label_slice(ax, line)
    ax.legend(fontsize="small")
    return ax


def plot_posterior_2d(
    model: Model,
    bounds: Box | Tensor,
    X: Tensor | None = None,
    ax: Axes | None = None,
    *,
    quantity: Quantity = "mean",
    width: float = 2.0,
    num_points: int = 50,
) -> Axes:
    """A heat map of the posterior over a 2-d box, with the asked points in order.

    The points grow and redden from the first to the last. Their legend stands above the map: a
    title needs ``pad=24``.

    Args:
        model: Any BoTorch model of two inputs and one output, without batch dimensions.
        bounds: The box, or its ``2 x 2`` bounds.
        X: ``n x 2`` asked points, in order.
        ax: Where to draw; a new figure unless given.
        quantity: "mean", "std", or "upper" (mean + width * std).
        width: The multiplier of the standard deviation in "upper".
        num_points: Grid points along each axis.

    Returns:
        The axes; the colour bar is drawn beside them.

    Raises:
        ValueError: An unknown quantity, or an argument of the wrong shape.
    """
    labels = {
        "mean": "posterior mean",
        "std": "posterior standard deviation",
        "upper": f"upper confidence bound, mean + {width:g} std",
    }
    if quantity not in labels:
        raise ValueError(f"quantity must be one of {sorted(labels)}, got {quantity!r}")
    _require_width(width)
    corners = _corners(bounds)
    if corners.shape[1] != 2:
        raise ValueError(f"bounds must have two columns, got shape {tuple(corners.shape)}")
    points = None if X is None else _as_rows(X, 2)
    sides = [
        host.linspace(float(lower), float(upper), num_points, dtype=corners.dtype)
        for lower, upper in corners.T
    ]
    grid = torch.cartesian_prod(*sides).to(corners)  # (num_points^2, 2)
    mean, std = _mean_and_std(model, grid)
    shown = {"mean": mean, "std": std, "upper": mean + width * std}[quantity]
    across, up = (side.numpy() for side in sides)

    ax = axes_or_new(ax)
    draw_heat_map(ax, across, up, shown.reshape(num_points, num_points).T, labels[quantity])
    if points is not None and len(points) > 0:
        scatter_in_order(ax, points)
        legend_above(ax, 2)
    ax.set_xlabel("x[0]")
    ax.set_ylabel("x[1]")
    return ax


def _mean_and_std(model: Model, grid: Tensor) -> tuple[np.ndarray, np.ndarray]:
    means, stds = [], []
    with torch.no_grad():
        for chunk in grid.unsqueeze(-2).split(_CHUNK):  # (c, 1, d)
            posterior: Any = model.posterior(chunk)
            mean, variance = posterior.mean, posterior.variance
            if isinstance(posterior, GaussianMixturePosterior):
                mean, variance = posterior.mixture_mean, posterior.mixture_variance
            if mean.shape != (len(chunk), 1, 1):
                raise ValueError(
                    "model must have one output and no batch dimensions, got a posterior mean of "
                    f"shape {tuple(mean.shape)} at {len(chunk)} points"
                )
            means.append(to_numpy(mean).reshape(-1))
            stds.append(to_numpy(variance.clamp_min(0).sqrt()).reshape(-1))
    return np.concatenate(means), np.concatenate(stds)


def _corners(bounds: Box | Tensor) -> Tensor:
    return bounds.bounds if isinstance(bounds, Box) else Box(bounds).bounds


def _observations(
    X: Tensor | None, Y: Tensor | None, num_dims: int
) -> tuple[np.ndarray, np.ndarray] | None:
    if X is None:
        if Y is not None:
            raise ValueError("X must be given where Y is, got None")
        return None
    if Y is None:
        raise ValueError("Y must be given where X is, got None")
    points = _as_rows(X, num_dims)
    values = to_numpy(Y)
    if values.shape not in ((len(points),), (len(points), 1)):
        raise ValueError(
            f"Y must have shape ({len(points)},) or ({len(points)}, 1), got {values.shape}"
        )
    return points, values.reshape(-1)


def _as_rows(X: Tensor, num_dims: int) -> np.ndarray:
    rows = to_numpy(X)
    if rows.ndim != 2 or rows.shape[1] != num_dims:
        raise ValueError(f"X must have shape (n, {num_dims}), got {rows.shape}")
    return rows


def _require_width(width: float) -> None:
    if not 0.0 <= width < float("inf"):
        raise ValueError(f"width must be finite and at least 0, got {width}")
