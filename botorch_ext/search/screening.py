"""Screening: points of a box that are looked at before some of them climb."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_ext.distances import distances
from botorch_ext.domains import Box
from botorch_ext.ranks import highest_first

# Of points around the best so far, in sides of the box.
_DISTANCES = (0.1, 0.2, 0.4)
# The share of these with a code of its own.
_NEW_CODE = 0.3
# Of a matrix of distances, held at once.
_ROWS = 1024


def screening_points(box: Box, num_points: int, seed: int) -> Tensor:
    """Sobol points, three quarters of them with random coordinates moved to the faces of the box.

    Much of a posterior variance sits on the boundary, where Sobol points never are.

    Args:
        box: Where.
        num_points: How many.
        seed: The same seed gives the same points.

    Returns:
        ``num_points x d``.
    """
    X = box.sample(num_points, seed)
    kept = num_points // 4
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([X[:kept], on_faces(X[kept:], box, generator)])


def on_faces(X: Tensor, box: Box, generator: torch.Generator) -> Tensor:
    """Each point with a random share of its coordinates moved to the nearest face of the box.

    Args:
        X: ``m x d``, in the box.
        box: The box.
        generator: On the CPU.

    Returns:
        ``m x d``.
    """
    share = torch.rand(len(X), 1, generator=generator)
    moved = (torch.rand(len(X), box.dim, generator=generator) < share).to(box.device)
    if box.is_plain:
        nearest = torch.where(X < (box.lower + box.upper) / 2, box.lower, box.upper)
        return torch.where(moved, nearest, X)
    moved[:, list(box.categories)] = False  # codes have no faces
    nearest = torch.where(box.to_unit(X) < 0.5, *box.ends)
    return box.nearby(torch.where(moved, nearest, X), X)


def near_points(
    X: Tensor,
    box: Box,
    num: int,
    seed: int,
    distances: tuple[float, ...] = _DISTANCES,
    num_columns: float = math.inf,
) -> Tensor:
    """Random points around given ones: bounds of short lengthscales have their maxima there, where
    few Sobol points fall.

    Args:
        X: ``m x d``, in the box.
        box: The box.
        num: How many.
        seed: The same seed gives the same points.
        distances: By turns, in sides of the box.
        num_columns: How many coordinates change, on average.

    Returns:
        ``num x d``.
    """
    generator = torch.Generator().manual_seed(seed)
    which = torch.randint(len(X), (num,), generator=generator)
    steps = torch.randn(num, box.dim, generator=generator, dtype=torch.float64)
    steps *= torch.tensor(distances, dtype=steps.dtype).repeat(num)[:num, None]
    if num_columns < box.dim:
        share = torch.rand(num, box.dim, generator=generator, dtype=torch.float64)
        steps *= (share < num_columns / box.dim) | (share == share.amin(dim=-1, keepdim=True))
    centers = X[which.to(X.device)]
    U = (box.to_unit(centers) + steps.to(X)).clamp(0, 1)
    if box.is_plain:
        return box.from_unit(U)
    for j in box.categories:  # none is near another
        others = torch.rand(num, generator=generator, dtype=torch.float64).to(X)
        stays = torch.rand(num, generator=generator) >= _NEW_CODE
        U[:, j] = torch.where(stays.to(X.device), box.to_unit(centers)[:, j], others)
    if box.conditions:  # what begins to count is nowhere yet
        anywhere = torch.rand(num, box.dim, generator=generator, dtype=torch.float64)
        U = torch.where(box.active(centers), U, anywhere.to(X))
    return box.nearby(box.from_unit(U), centers)


def spread_best(values: Tensor, X: Tensor, box: Box, num: int) -> Tensor:
    """The rows of the best points that have no better one near by, then of the best others.

    Args:
        values: ``*batch x m``.
        X: ``m x d``.
        box: Where the points lie.
        num: How many.

    Returns:
        At most ``num`` rows, ``*batch x num``.
    """
    return best_apart(values, X, box.to_distances, num, 8 * num, len(X) ** (-1 / box.dim))


def best_apart(
    values: Tensor,
    X: Tensor,
    scaled: Callable[[Tensor], Tensor],
    num: int,
    num_seen: int,
    distance: float,
) -> Tensor:
    """`spread_best` among the ``num_seen`` best, where points are near by that are, scaled, within
    a distance."""
    top = highest_first(values, num_seen)
    U = scaled(X[top])
    parts = []
    for start in range(0, max(U.shape[-2], 1), _ROWS):
        some = U[..., start : start + _ROWS, :]
        near = distances(some, U[..., : start + _ROWS, :]) < distance
        # `top` is sorted, so a better neighbour is an earlier one.
        parts.append(near.tril(diagonal=start - 1).any(dim=-1))
    shadowed = torch.cat(parts, dim=-1)
    return top.gather(-1, shadowed.to(torch.uint8).argsort(dim=-1, stable=True)[..., :num])
