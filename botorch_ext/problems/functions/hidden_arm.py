"""Hidden arm: a good value at one point that a run never asked, among copies of it that are bad."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.domains import FiniteSet, as_points
from botorch_ext.problems.base import KnownFunction
from botorch_ext.problems.functions.perturbed import Perturbed, tabulated


def hidden_arm(problem: KnownFunction, played: Tensor, gap: float) -> Perturbed:
    """The problem with one value changed: at a point that was never played it is the best.

    Exact, for any kernel, method and seed: a run sees a function only where it evaluates it, so the
    method that played ``played`` plays the same on the changed problem, and its regret grows by
    ``gap`` a step. No model sees the point coming either: its neighbours are decoys, whose values
    are what f has there, so whoever tries them finds that the model is right. That defeats a
    candidate model with a nugget that belongs to f as well: after a few points that agree with f
    its evidence is too small, and it is gone. Ours.

    Args:
        problem: f, on a finite set.
        played: ``n x d``, the points of one or more runs on it.
        gap: By how much the hidden arm is better than the maximum of f, positive.

    Returns:
        f plus a bump at the never played point with the lowest value (ties: the first row), the
        least plausible of all; its misspecification is the height of the bump.

    Raises:
        ValueError: A domain that is no finite set, a gap that is not positive, points outside, or
            nothing that was not played.
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
    hidden = values.clone()
    hidden[rows] = math.inf
    row = int(hidden.argmin())
    if not math.isfinite(float(hidden[row])):
        raise ValueError("played must leave out a point of the domain, got all of them")
    bump = torch.zeros_like(values)
    bump[row] = values.max() + gap - values[row]
    return Perturbed(problem, tabulated(domain, bump), float(bump[row]))
