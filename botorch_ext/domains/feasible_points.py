"""Feasible points of a box with columns of whole numbers or codes, or with linear constraints."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains.linear_constraints import LinearConstraints
from botorch_ext.domains.scales import Scales

# Sobol points drawn at once; where less than this share of the first of them is feasible, points
# are drawn in another way.
_DRAWN, _LEAST_SHARE = 4096, 1 / 64
# The points of a space are listed where there are at most so many, of so many combinations.
MOST_LISTED, _MOST_COMBINATIONS = 4096, 2**17
# Of the chain that walks through the polytope of the constraints.
_BURN_IN, _THINNING, _NUM_TRIES = 200, 3, 4
# Extreme points that are sought where nothing else gives a feasible one.
_NUM_EXTREME = 16


def all_points(scales: Scales, constraints: LinearConstraints | None) -> Tensor | None:
    """All points, ``n x d``, in lexicographic order; None where a column is continuous or there
    are too many."""
    d = scales.ends.shape[1]
    if len(scales.stepped) < d:
        return None
    if math.prod(scales.num_values(j) for j in range(d)) > _MOST_COMBINATIONS:
        return None
    X = torch.cartesian_prod(*(scales.values(j) for j in range(d))).view(-1, d)
    if constraints is not None:
        X = X[constraints.hold(X)]
    return X if len(X) <= MOST_LISTED else None


def sampled(
    scales: Scales,
    constraints: LinearConstraints,
    listed: Tensor | None,
    num_points: int,
    seed: int,
) -> Tensor:
    """Random feasible points: Sobol points where many of those are, else points of the list, or of
    a walk through the polytope of the constraints with numbers and codes rounded.

    Args:
        scales: Of the columns.
        constraints: Of the points.
        listed: All points, where they are few.
        num_points: How many.
        seed: The same seed gives the same points.

    Returns:
        ``num_points x d``; some come again where no others are found.
    """
    ends = scales.ends
    engine = SobolEngine(ends.shape[1], scramble=True, seed=seed)
    found, num_found = [], 0
    while num_found < num_points:
        X = scales.from_unit(engine.draw(_DRAWN, dtype=torch.float64).to(ends))
        X = X[constraints.hold(X)]
        found.append(X)
        num_found += len(X)
        if len(found) == 1 and len(X) < _DRAWN * _LEAST_SHARE:
            if listed is not None:
                found, num_found = [_shuffled(listed, num_points, seed)], num_points
            elif num_found < num_points:
                found.append(_few_feasible(scales, constraints, num_points - num_found, seed))
                num_found = num_points
    return torch.cat(found)[:num_points]


def _shuffled(X: Tensor, num_points: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rounds = -(-num_points // len(X))
    rows = [torch.randperm(len(X), generator=generator) for _ in range(rounds)]
    return X[torch.cat(rows).to(X.device)]


def _few_feasible(
    scales: Scales, constraints: LinearConstraints, num_points: int, seed: int
) -> Tensor:
    X = _walked(scales, constraints, num_points, seed)
    if not len(X):
        generator = torch.Generator().manual_seed(seed)
        d = scales.ends.shape[1]
        directions = torch.randn(_NUM_EXTREME, d, generator=generator, dtype=torch.float64)
        low, high = scales.cells
        directions = directions.to(low) / (high - low)
        directions[0] = 0  # of which a point is known to be found
        points = [constraints.extreme_point(scales, direction) for direction in directions]
        X = torch.stack([point for point in points if point is not None])
    return X.repeat(-(-num_points // len(X)), 1)[:num_points]


def _walked(scales: Scales, constraints: LinearConstraints, num_points: int, seed: int) -> Tensor:
    """At most so many feasible points of BoTorch's walk through the columns that constraints look
    at, the others those of Sobol points."""
    from botorch.exceptions import BotorchError
    from botorch.utils.sampling import HitAndRunPolytopeSampler

    columns = constraints.columns
    inside, equal = _split(constraints.A[:, columns], constraints.b)
    bounds = scales.cells[:, columns].double().cpu()
    engine = SobolEngine(scales.ends.shape[1], scramble=True, seed=seed)
    found: list[Tensor] = []
    try:
        sampler = HitAndRunPolytopeSampler(
            inequality_constraints=inside,
            equality_constraints=equal,
            bounds=bounds,
            n_burnin=_BURN_IN,
            n_thinning=_THINNING,
            seed=seed,
        )
        for _ in range(_NUM_TRIES):
            X = scales.from_unit(engine.draw(num_points, dtype=torch.float64).to(scales.ends))
            X[:, columns] = sampler.draw(num_points).to(X)
            X = constraints.nearby(X, scales)
            found.append(X[constraints.hold(X)])
            if sum(map(len, found)) >= num_points:
                break
    except (BotorchError, ValueError):  # a polytope too thin to walk in
        pass
    return torch.cat(found)[:num_points] if found else scales.ends[:0]


def _split(
    A: Tensor, b: Tensor
) -> tuple[tuple[Tensor, Tensor] | None, tuple[Tensor, Tensor] | None]:
    """Constraints as those that are inequalities and, of pairs that say the opposite, equalities;
    as BoTorch takes them."""
    A, b = A.double().cpu(), b.double().cpu()
    rows = torch.cat([A, b[:, None]], dim=-1)
    opposite = (rows[:, None] == -rows).all(dim=-1)
    of_pairs, first = opposite.any(dim=-1), opposite.triu(1).any(dim=-1)
    inside = (A[~of_pairs], b[~of_pairs, None]) if not bool(of_pairs.all()) else None
    return inside, (A[first], b[first, None]) if bool(first.any()) else None
