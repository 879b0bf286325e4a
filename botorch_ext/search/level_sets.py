"""Uniform points of a set {margin >= 0} in the unit cube, and an estimate of its volume.

Many chains run as one batch. Sets that are too small to be hit by chance are reached through a
sequence of nested larger sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.domains import host

# From ``m x d`` points and a level to ``m`` margins; below the level any smaller number will do.
Margin = Callable[[Tensor, Tensor | float], Tensor]

# Share of the points that each of the nested sets keeps of the one before.
_KEPT = 0.2
# The chains run in so many groups, whose estimates are compared for the standard error.
NUM_GROUPS = 16
# Smaller than 0.2 to this power of the cube, a set counts as empty.
_MAX_LEVELS = 24
# Draws of a move, and how many of them are evaluated together: only very thin sets keep points in
# place.
_EVALUATED_TOGETHER = [1, 2, 4, 9]
_NUM_DRAWS = sum(_EVALUATED_TOGETHER)


@dataclass(frozen=True, eq=False)
class LevelSetSample:
    """The points and the volume that `sample_level_set` found.

    Args:
        points: ``m x d`` points, uniform in the set; none if the set was not reached.
        volume: The estimated volume; 0 if the set was not reached.
        standard_error: The standard error of the volume. If the set was not reached, it is the
            volume of the smallest nested set that was.
    """

    points: Tensor
    volume: float
    standard_error: float


def sample_level_set(
    margin: Margin, U: Tensor, num_points: int, num_sweeps: int, generator: torch.Generator
) -> LevelSetSample:
    """Draw uniform points of a set by multilevel splitting.

    At each level the best fifth of the points is copied, and the copies move by hit-and-run among
    points that are at least as good, until a fifth lies in the set.

    The volume is the product of the shares that survive. The point that sets a level is not
    counted, which makes the product unbiased for independent points. The standard error is a
    jackknife of the logarithm over groups of chains that are never mixed, so it includes what the
    points of a group have in common. It does not include a part of the set that is so small, or so
    far from the rest, that no point ever reached it.

    Source: Au and Beck 2001 (subset simulation); Guyader, Hengartner and Matzner-Lober 2011 (its
    bias).

    Args:
        margin: The function that defines the set {margin >= 0}.
        U: ``m x d`` points, uniform in the unit cube; m is a multiple of `NUM_GROUPS`.
        num_points: How many points to return, at most m.
        num_sweeps: How many sweeps of hit-and-run are made within the set itself.
        generator: A random generator on the CPU.

    Returns:
        The points, the volume and its standard error.
    """
    values = margin(U, -torch.inf)
    # Within the larger sets points need not forget where they came from: what the chains have in
    # common is in the standard error.
    few_sweeps = max(4, U.shape[-1])
    shares: list[Tensor] = []
    while True:
        level = _next_level(values).clamp_max(0)
        survives = values >= level
        (survivors,) = survives.nonzero(as_tuple=True)
        shares.append(survives.view(NUM_GROUPS, -1).to(U.dtype).mean(dim=-1))
        done, rises = torch.stack([level >= 0, (values > level).any()]).tolist()
        if not done and (len(shares) == _MAX_LEVELS or not rises):
            return LevelSetSample(U[:0], 0.0, _product(torch.stack(shares))[0])
        if not done:
            # Of m uniform numbers the k-th smallest has a mean inverse of m / (k - 1).
            count = max(len(survivors), 2)
            shares[-1] = shares[-1] * (count - 1) / count
        pool, rows = U[survivors], _copies(survives, survivors, generator)
        if done:
            rows = rows[host.randperm(len(rows), generator=generator)[:num_points].to(U.device)]
        sweeps = num_sweeps if done else few_sweeps
        U, values = hit_and_run(margin, U[rows], values[rows], level, sweeps, pool, generator)
        if done:
            return LevelSetSample(U, *_product(torch.stack(shares)))


def _next_level(values: Tensor) -> Tensor:
    """What the best fifth reaches."""
    level = values.topk(max(1, int(_KEPT * len(values)))).values[-1]
    # On a plateau that most points share: its upper edge, where it has one.
    above = torch.where(values > level, values, torch.inf).amin()
    crowded = (values >= level).to(values.dtype).mean() > 0.5
    return torch.where(crowded & above.isfinite(), above, level)


def _product(shares: Tensor) -> tuple[float, float]:
    """The product over levels of the mean share, and its standard error: ``levels x groups``."""
    without_one = (shares.sum(dim=-1, keepdim=True) - shares) / (NUM_GROUPS - 1)
    logs = without_one.clamp_min(torch.finfo(shares.dtype).tiny).log().sum(dim=0)
    volume = shares.mean(dim=-1).prod()
    variance = (NUM_GROUPS - 1) * (logs - logs.mean()).square().mean()
    return float(volume), float(volume * variance.sqrt())


def _copies(survives: Tensor, survivors: Tensor, generator: torch.Generator) -> Tensor:
    """Rows that replace each group by equally many copies of each of its survivors."""
    grouped = survives.view(NUM_GROUPS, -1)
    size = grouped.shape[-1]
    key = host.rand(NUM_GROUPS, size, generator=generator).to(survives.device)
    order = torch.where(grouped, key, 2).argsort(dim=-1)  # survivors first, in random order
    count = grouped.sum(dim=-1, keepdim=True)
    turn = torch.arange(size, device=survives.device)
    rows = order.gather(-1, turn % count.clamp_min(1))
    rows = rows + size * torch.arange(NUM_GROUPS, device=survives.device)[:, None]
    # A group without survivors goes on from those of the others; its share stays zero.
    lent = host.randint(len(survivors), (NUM_GROUPS, size), generator=generator)
    return torch.where(count > 0, rows, survivors[lent.to(survives.device)]).flatten()


def hit_and_run(
    margin: Margin,
    U: Tensor,
    values: Tensor,
    level: Tensor | float,
    num_sweeps: int,
    pool: Tensor,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Moves every point at random within {margin >= level}; uniform points stay uniform.

    A sweep draws a line through each point and a uniform point of its chord in the cube; where
    that is outside the set, the chord is cut there, on the far side of the point, and another is
    drawn (Neal 2003: slice sampling, the shrinkage procedure). Half of the lines point in
    directions between two points of the pool, which suits sets that are thin and oblique.

    The draws of a point do not depend on the margin, so several of them are evaluated together;
    the first in the set counts. The next draws are evaluated only for points that have none in the
    set so far. A point stays where it is if no draw is in the set. That, too, leaves uniform points
    uniform: a move is as likely as the move back, draw for draw.

    Args:
        margin: The function that defines the set.
        U: ``m x d`` points of the set in the unit cube.
        values: The ``m`` margins of ``U``.
        level: The least margin of the set.
        num_sweeps: How many moves each point makes.
        pool: ``p x d`` points spread like the set.
        generator: A random generator on the CPU.

    Returns:
        ``m x d`` points of the set and their ``m`` margins.
    """
    m, d = U.shape
    normal = host.randn(num_sweeps, m, d, generator=generator, dtype=torch.float64)
    coins = host.rand(num_sweeps, m, 1 + _NUM_DRAWS, generator=generator, dtype=torch.float64)
    pairs = host.randint(len(pool), (num_sweeps, m, 2), generator=generator)
    numbers = torch.cat([normal, coins, pairs], dim=-1).to(U)  # one upload
    for sweep in numbers.mT.contiguous():
        normal, coins, draws, pairs = sweep.split([d, 1, _NUM_DRAWS, 2])
        direction, lower, upper = _lines(U, pool, normal.mT, coins[0], pairs.long())
        moves = []
        for draw in draws:
            moves.append(torch.lerp(lower, upper, draw))
            below = moves[-1] < 0
            lower, upper = moves[-1].where(below, lower), upper.where(below, moves[-1])
        starts, rows = U, torch.arange(m, device=U.device)
        for some in torch.stack(moves).split(_EVALUATED_TOGETHER):
            moved = (starts + some[:, rows, None] * direction[rows]).clamp(0, 1)  # k x r x d
            moved_values = margin(moved.flatten(0, 1), level).view(len(some), -1)
            inside = moved_values >= level
            first = inside.to(torch.uint8).argmax(dim=0, keepdim=True)
            stays = ~inside.any(dim=0)
            ends = starts.where(stays[:, None], moved.take_along_dim(first[..., None], 0)[0])
            U = U.index_copy(0, rows, ends)
            values = values.index_copy(
                0, rows, values[rows].where(stays, moved_values.gather(0, first)[0])
            )
            rows = rows[stays]
            if not len(rows):
                break
            starts = U[rows]
    return U, values


def _lines(
    U: Tensor, pool: Tensor, normal: Tensor, coins: Tensor, pairs: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A line through each point: a direction, ``m x d``, and where it enters and leaves the cube,
    ``m`` each; from normal and uniform numbers and ``2 x m`` rows of the pool."""
    between = pool[pairs[0]] - pool[pairs[1]]
    along = (coins < 0.5) & (between != 0).any(dim=-1)
    direction = torch.where(along[:, None], between, normal)
    direction = direction / direction.norm(dim=-1, keepdim=True)
    direction = torch.where(direction == 0, torch.finfo(U.dtype).tiny ** 0.5, direction)
    to_faces = torch.stack([-U / direction, (1 - U) / direction])  # 2 x m x d
    return direction, to_faces.amin(dim=0).amax(dim=-1), to_faces.amax(dim=0).amin(dim=-1)
