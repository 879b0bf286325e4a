"""Hidden arm: a good value at one point that a run never asked, among copies of it that are bad."""

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
    """The problem with one value changed: at a point that was never played it is the best.

    Exact, for any kernel, method and seed: a run sees a function only where it evaluates it, so the
    method that played ``played`` plays the same on the changed problem, and its regret grows by
    ``gap`` a step. No model sees the point coming either: its neighbours are decoys, whose values
    are what f has there, so whoever tries them finds that the model is right. That defeats a
    candidate model with a nugget that belongs to f as well: after a few points that agree with f
    its evidence is too small, and it is gone. Whoever buys probes needs about as many as there are
    points. Ours.

    Args:
        problem: f, on a finite set.
        played: ``n x d``, the points of one or more runs on it.
        gap: By how much the hidden arm is better than the maximum of f, positive.
        misspecification: The height of the bump at most.

    Returns:
        f plus a bump at the never played point with the lowest value that the misspecification
        allows (ties: the first row), the least plausible of all; its misspecification is the
        height of the bump.

    Raises:
        ValueError: A domain that is no finite set, a gap that is not positive, points outside,
            nothing that was not played, or a misspecification that allows none of it.
    """
    domain = problem.domain
    if not isinstance(domain, FiniteSet):
        raise ValueError(f"problem must have a finite set for its domain, got {domain!r}")
    if not 0.0 < gap < math.inf:
        raise ValueError(f"gap must be positive and finite, got {gap}")
    rows = domain.index(as_points(played, domain.dim, domain.like, "played"))
    if bool((rows < 0).any()):
        raise ValueError("played must be points of the domain, got others")
    values = problem(domain.points)
    heights = values.max() + gap - values
    heights[rows] = -math.inf
    if not bool((heights > 0).any()):
        raise ValueError("played must leave out a point of the domain, got all of them")
    allowed = heights.masked_fill(heights > misspecification, -math.inf)
    row = int(allowed.argmax())
    if not float(allowed[row]) <= misspecification or float(allowed[row]) < 0:
        least = float(heights[heights > 0].min())
        raise ValueError(f"misspecification must be at least {least:g}, got {misspecification}")
    bump = torch.zeros_like(values)
    bump[row] = heights[row]
    return Perturbed(problem, tabulated(domain, bump), float(bump[row]))
