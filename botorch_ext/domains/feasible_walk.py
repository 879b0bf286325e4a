"""Feasible points where few points of a box satisfy constraints by functions: a search for the
first ones, and a random walk from them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains import host
from botorch_ext.domains.function_constraints import FunctionConstraints
from botorch_ext.domains.scales import Scales

# The number of points that are tried before none is found to be feasible.
_MOST_TRIED = 2**17
# The chains; the rounds in which all of them look for feasible points; their steps in the walk, and
# the largest number of points that are tried for a step.
_NUM_CHAINS, _NUM_ROUNDS, _NUM_STEPS, _NUM_TRIES = 256, 32, 16, 12


def found_points(constraints: FunctionConstraints, scales: Scales, num_drawn: int) -> Tensor:
    """Feasible points, found among Sobol points, and by chains from those that violate the
    constraints least, which move where they are violated less.

    Args:
        constraints: The constraints.
        scales: The scales of the columns.
        num_drawn: The number of points that are drawn at once.

    Returns:
        One or more points of the unit cube, ``n x d``.

    Raises:
        ValueError: If none is found; the message names the constraints.
    """
    generator = torch.Generator().manual_seed(0)
    engine = SobolEngine(scales.ends.shape[1], scramble=True, seed=0)

    def excess(U: Tensor) -> Tensor:
        violations = constraints.violations(scales.spread(U.to(scales.ends)))
        return violations.cpu().double().sum(dim=-1)

    U = engine.draw(num_drawn, dtype=torch.float64)
    left = excess(U)
    for number in range(_MOST_TRIED // num_drawn):
        rows = left.argsort(stable=True)[:_NUM_CHAINS]
        U, left = U[rows], left[rows]
        holds = left == 0
        if bool(holds.all()) or (number >= _NUM_ROUNDS and bool(holds.any())):
            break
        lengths = 10 ** (-4 * host.rand(len(U), 1, generator=generator, dtype=U.dtype))
        near = (U + lengths * _directions(U, generator)).clamp(0, 1)
        if not number:
            near = scales.to_unit(constraints.moved(scales.spread(U.to(scales.ends)))).to(U)
        below = excess(near)
        U = torch.where((below < left)[:, None], near, U)
        more = engine.draw(num_drawn - len(U), dtype=U.dtype)
        U, left = torch.cat([U, more]), torch.cat([torch.minimum(below, left), excess(more)])
    if bool((left == 0).any()):
        return U[left == 0]
    nearest = scales.spread(U[left.argmin()].to(scales.ends))
    raise ValueError(
        "constraints must leave a feasible point in the space, got none that satisfies all of "
        f"them: {constraints.broken_by(nearest)} does not hold at the nearest point found"
    )


def walked(constraints: FunctionConstraints, scales: Scales, starts: Tensor) -> Tensor:
    """Points of chains that sample feasible points uniformly in the unit cube: each step draws a
    point on a line through the last one, and shortens the line until the point is feasible (slice
    sampling, Neal 2003).

    Args:
        constraints: The constraints.
        scales: The scales of the columns.
        starts: Feasible points of the unit cube, ``n x d``, from which the chains start.

    Returns:
        Feasible points, ``m x d``.
    """
    generator = torch.Generator().manual_seed(0)
    U = starts[host.arange(_NUM_CHAINS) % len(starts)]
    for _ in range(_NUM_STEPS):
        direction = _directions(U, generator)
        ends = torch.stack([-U, 1 - U]) / direction
        low, high = ends.amin(dim=0).amax(dim=-1), ends.amax(dim=0).amin(dim=-1)
        rows = host.arange(len(U))
        for _ in range(_NUM_TRIES):
            place = low + (high - low) * host.rand(len(U), generator=generator, dtype=U.dtype)
            tried = (U + place[:, None] * direction).clamp(0, 1)[rows]
            holds = constraints.hold(scales.spread(tried.to(scales.ends))).cpu()
            U = U.index_copy(0, rows[holds], tried[holds])
            rows = rows[~holds]
            if not len(rows):
                break
            low[rows] = torch.where(place[rows] < 0, place[rows], low[rows])
            high[rows] = torch.where(place[rows] > 0, place[rows], high[rows])
    return scales.spread(U.to(scales.ends))


def _directions(U: Tensor, generator: torch.Generator) -> Tensor:
    """Random directions, one for each of ``n x d`` points; every second one changes one column."""
    directions = host.randn(*U.shape, generator=generator, dtype=U.dtype)
    columns = host.randint(U.shape[1], (len(U),), generator=generator)
    is_other = host.arange(U.shape[1]) != columns[:, None]
    directions[1::2][is_other[1::2]] = 1e-300
    return directions
