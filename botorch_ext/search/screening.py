"""Screening: the points of a box that a search evaluates before some of them ascend."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.domains.distances import distances
from botorch_ext.domains.ranks import highest_first

# The distances of points around the best so far, in sides of the box.
_DISTANCES = (0.1, 0.2, 0.4)
# The share of these points whose code of a category is drawn anew.
_NEW_CODE = 0.3
# The largest number of rows of a matrix of distances.
_ROWS = 1024


def screening_points(box: Box, num_points: int, seed: int) -> Tensor:
    """Sobol points, three quarters of them with random coordinates moved to the faces of the box.

    The posterior variance is often largest on the boundary, where Sobol points never are.

    Args:
        box: The box.
        num_points: The number of points.
        seed: The seed of the points.

    Returns:
        The points, ``num_points x d``.
    """
    X = box.sample(num_points, seed)
    kept = num_points // 4
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([X[:kept], on_faces(X[kept:], box, generator)])


def screening_points_with(incumbents: Tensor, box: Box, num_points: int, seed: int) -> Tensor:
    """The incumbents, ``n x d``, then ``num_points`` points, a quarter of them near the
    incumbents."""
    X = screening_points(box, num_points, seed)
    if not len(incumbents):
        return X
    near = near_points(incumbents, box, num_points // 4, seed)
    return torch.cat([incumbents, near, X[len(near) :]])


def on_faces(X: Tensor, box: Box, generator: torch.Generator) -> Tensor:
    """The points, each with a random share of its coordinates moved to the nearest face of the box.

    Args:
        X: The points ``m x d``, in the box.
        box: The box.
        generator: The generator of the random numbers, on the CPU.

    Returns:
        The moved points, ``m x d``.
    """
    share = host.rand(len(X), 1, generator=generator)
    moved = (host.rand(len(X), box.dim, generator=generator) < share).to(box.device)
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
    """Random points around given ones, where bounds with short lengthscales have their maxima and
    few Sobol points fall.

    Args:
        X: The given points ``m x d``, in the box.
        box: The box.
        num: The number of points.
        seed: The seed of the points.
        distances: The distances, used in turn, in sides of the box.
        num_columns: The number of coordinates that change, on average.

    Returns:
        The points, ``num x d``.
    """
    generator = torch.Generator().manual_seed(seed)
    which = host.randint(len(X), (num,), generator=generator)
    steps = host.randn(num, box.dim, generator=generator, dtype=torch.float64)
    steps *= host.tensor(distances, dtype=steps.dtype).repeat(num)[:num, None]
    if num_columns < box.dim:
        share = host.rand(num, box.dim, generator=generator, dtype=torch.float64)
        steps *= (share < num_columns / box.dim) | (share == share.amin(dim=-1, keepdim=True))
    centers = X[which.to(X.device)]
    U = (box.to_unit(centers) + steps.to(X)).clamp(0, 1)
    if box.is_plain:
        return box.from_unit(U)
    for j in box.categories:  # categories have no neighbours
        others = host.rand(num, generator=generator, dtype=torch.float64).to(X)
        stays = host.rand(num, generator=generator) >= _NEW_CODE
        U[:, j] = torch.where(stays.to(X.device), box.to_unit(centers)[:, j], others)
    if box.conditions:  # a column that begins to count has no value yet
        anywhere = host.rand(num, box.dim, generator=generator, dtype=torch.float64)
        U = torch.where(box.active(centers), U, anywhere.to(X))
    return box.nearby(box.from_unit(U), centers)


def spread_best(values: Tensor, X: Tensor, box: Box, num: int) -> Tensor:
    """The rows of the best points without a better one nearby, then of the best others.

    Args:
        values: The values of the points, ``*batch x m``.
        X: The points, ``m x d``.
        box: The box of the points.
        num: The number of rows.

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
    """As `spread_best`, among the ``num_seen`` best points; points are nearby if they are within
    ``distance`` after scaling."""
    top = highest_first(values, num_seen)
    U = scaled(X[top])
    blocks = []
    for start in range(0, max(U.shape[-2], 1), _ROWS):
        some = U[..., start : start + _ROWS, :]
        near = distances(some, U[..., : start + _ROWS, :]) < distance
        # `top` is sorted, so a better neighbour is an earlier one.
        blocks.append(near.tril(diagonal=start - 1).any(dim=-1))
    shadowed = torch.cat(blocks, dim=-1)
    return top.gather(-1, shadowed.to(torch.uint8).argsort(dim=-1, stable=True)[..., :num])
