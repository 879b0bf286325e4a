"""Hidden arm: the best value at one point that a run never evaluated, among points that look
alike and are bad."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.domains import FiniteSet, as_points
from botorch_ext.problems.base import KnownFunction
from botorch_ext.problems.functions.perturbed import Perturbed, tabulated


def hidden_arm(
    problem: KnownFunction, played: Tensor, gap: float, *, misspecification: float = math.inf
) -> Perturbed:
    """Change a problem at a single point that was never evaluated, so that this point is the best.

    The construction is exact for any kernel, method and seed. A run sees a function only where it
    evaluates it, so the method that evaluated ``played`` does the same on the changed problem, and
    its regret grows by ``gap`` per step. No model can predict the point either. Its neighbours are
    decoys with unchanged values of f, so a method that tries them finds the model confirmed. This
    also defeats a candidate model with a nugget that belongs to f: after a few points that agree
    with f its marginal likelihood is too small, and the model is dropped. A method that pays for
    probes needs about as many probes as there are points. The construction is our own.

    Args:
        problem: The problem f, on a finite set.
        played: The points that one or more runs evaluated, ``n x d``.
        gap: The amount by which the hidden arm exceeds the maximum of f, positive.
        misspecification: The largest height that the bump may have.

    Returns:
        f plus a bump at one point that was not evaluated: the least plausible one, which has the
        lowest value that the misspecification allows (the first row among equal ones). Its
        misspecification is the height of the bump.

    Raises:
        ValueError: If the domain is not a finite set, the gap is not positive, a point lies
            outside, every point was evaluated, or the misspecification allows none of the others.
    """
    domain = problem.domain
    if not isinstance(domain, FiniteSet):
        raise ValueError(f"problem must have a finite set for its domain, got {domain!r}")
    if not 0.0 < gap < math.inf:
        raise ValueError(f"gap must be positive and finite, got {gap}")
    rows = domain.index(as_points(played, domain.dim, domain.like, "played"))
    if bool((rows < 0).any()):
        raise ValueError("played must be points of the domain, got a point that is not")
    values = problem(domain.points)
    heights = values.max() + gap - values
    heights[rows] = -math.inf
    if not bool((heights > 0).any()):
        raise ValueError("played must leave out a point of the domain, got all of them")
    allowed = heights.masked_fill(heights > misspecification, -math.inf)
    row = int(allowed.argmax())
    if not float(allowed[row]) <= misspecification or float(allowed[row]) < 0:
        least = float(heights[heights > 0].min())
        raise ValueError(
            f"misspecification must be at least {least:g}, the lowest possible bump, got "
            f"{misspecification}"
        )
    bump = torch.zeros_like(values)
    bump[row] = heights[row]
    return Perturbed(problem, tabulated(domain, bump), float(bump[row]))
