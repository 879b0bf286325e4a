"""White perturbation: an independent one at every point of a finite set."""

from __future__ import annotations

import torch

from botorch_ext.domains import FiniteSet
from botorch_ext.problems.functions.perturbed import Perturbation, tabulated


def white(domain: FiniteSet, misspecification: float, seed: int) -> Perturbation:
    """A perturbation without any structure: +eps or -eps at each point, by a fair coin.

    No kernel can learn it. A model with a nugget that belongs to f is right about it, and takes it
    for a reason to try every point once, on 500 points for 500 steps; one that ignores it goes for
    the maximum of f and is at most 2 eps below the best. Ours.

    Args:
        domain: The finite set.
        misspecification: eps.
        seed: Of the coins.

    Returns:
        A perturbation for `Perturbed`.

    Raises:
        ValueError: eps is not finite.
    """
    generator = torch.Generator().manual_seed(seed)
    coins = torch.randint(2, (domain.num_points,), generator=generator)
    return tabulated(domain, misspecification * (2 * coins - 1).to(domain.dtype))
