"""Slices along one coordinate: the line, bands, the truth, evaluated points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.plotting.style import PALETTE, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Slice:
    """Points on a line along one coordinate.

    Args:
        points: ``n x d``, in order along the coordinate.
        dim: The coordinate.
    """

    points: Tensor
    dim: int

    @classmethod
    def through_box(
        cls,
        corners: Tensor,
        dim: int,
        slice_at: Tensor | Sequence[float] | None,
        num_points: int,
    ) -> Slice:
        """A grid from side to side of a box.

        Args:
            corners: ``2 x d``.
            dim: The coordinate along which it runs.
            slice_at: ``d``: a point it runs through; needed where d > 1.
            num_points: How many.

        Raises:
            ValueError: A coordinate that does not exist, or a missing or wrong ``slice_at``.
        """
        _require_coordinate(dim, corners.shape[1])
        base = _slice_point(slice_at, corners)
        positions = host.linspace(
            float(corners[0, dim]), float(corners[1, dim]), num_points, dtype=corners.dtype
        )
        points = base.repeat(num_points, 1)  # (num_points, d)
        points[:, dim] = positions.to(points)
        return cls(points, dim)

    @classmethod
    def through_candidates(cls, candidates: Tensor, dim: int) -> Slice:
        """All of ``N x 1`` candidates in order.

        Raises:
            ValueError: Candidates of several coordinates, or a coordinate that does not exist.
        """
        if candidates.shape[1] != 1:
            raise ValueError(
                f"a finite set must have one coordinate to be drawn, got {candidates.shape[1]}"
            )
        _require_coordinate(dim, 1)
        return cls(candidates[candidates[:, 0].argsort()], dim)

    @property
    def across(self) -> np.ndarray:
        """The positions along the coordinate."""
        return to_numpy(self.points[:, self.dim])


@dataclass(frozen=True)
class Band:
    """A curve with a band around it.

    Args:
        mean: ``n``.
        half_width: ``n``.
        label: Of the curve, in the legend.
        color: Of both.
        band_label: Of the band, in the legend; None for no entry.
        style: The line style of the curve.
        alpha: The opacity of the band.
        edges: Whether the band has thin lines along its edges.
        zorder: What has a higher one is drawn on top.
    """

    mean: np.ndarray
    half_width: np.ndarray
    label: str
    color: str
    band_label: str | None = None
    style: str = "-"
    alpha: float = 0.2
    edges: bool = False
    zorder: float = 2.0


def draw_band(ax: Axes, line: Slice, band: Band) -> None:
    """Draws the band and the curve in it."""
    lower, upper = band.mean - band.half_width, band.mean + band.half_width
    fill: dict[str, Any] = {"alpha": band.alpha, "linewidth": 0, "label": band.band_label}
    ax.fill_between(line.across, lower, upper, color=band.color, **fill)
    look: dict[str, Any] = {"color": band.color, "linestyle": band.style, "zorder": band.zorder}
    ax.plot(line.across, band.mean, linewidth=2, label=band.label, **look)
    if band.edges:
        for edge in (lower, upper):
            ax.plot(line.across, edge, linewidth=0.8, **look)


def draw_truth(ax: Axes, line: Slice, truth: Callable[[Tensor], Tensor]) -> None:
    """Draws the noiseless function, from ``n x d`` to ``n``."""
    with torch.no_grad():
        values = to_numpy(truth(line.points)).reshape(-1)
    ax.plot(
        line.across, values, color=PALETTE[6], linestyle="--", label="true function", zorder=3.5
    )


def draw_evaluations(
    ax: Axes, line: Slice, X: np.ndarray, Y: np.ndarray, color: str, markersize: float = 5
) -> None:
    """Draws ``n x d`` points with their ``n`` values; hollow where they are projected."""
    on_line = line.points.shape[1] == 1
    ax.plot(
        X[:, line.dim],
        Y,
        linestyle="none",
        marker="o",
        markersize=markersize,
        color=color,
        markerfacecolor=color if on_line else "none",
        label="evaluations" if on_line else "evaluations, projected on the slice",
        zorder=4,
        clip_on=False,
    )


def label_slice(ax: Axes, line: Slice) -> None:
    """Limits and labels of the axes."""
    ax.set_xlim(float(line.across[0]), float(line.across[-1]))
    ax.set_xlabel(_slice_label(line.points[0], line.dim))
    ax.set_ylabel("objective")


def _require_coordinate(dim: int, num_dims: int) -> None:
    if not 0 <= dim < num_dims:
        raise ValueError(f"dim must be at least 0 and below {num_dims}, got {dim}")


def _slice_point(slice_at: Tensor | Sequence[float] | None, corners: Tensor) -> Tensor:
    num_dims = corners.shape[1]
    if slice_at is None:
        if num_dims > 1:
            raise ValueError(f"slice_at must be given in {num_dims} dimensions, got None")
        return corners[0]
    point = torch.as_tensor(slice_at, dtype=corners.dtype, device=corners.device)
    if point.shape != (num_dims,):
        raise ValueError(f"slice_at must have shape ({num_dims},), got {tuple(point.shape)}")
    return point


def _slice_label(base: Tensor, dim: int) -> str:
    if len(base) == 1:
        return "x"
    others = [f"x[{j}] = {float(base[j]):.3g}" for j in range(len(base)) if j != dim]
    return f"x[{dim}]  ({', '.join(others) if len(others) < 4 else 'other coordinates fixed'})"
