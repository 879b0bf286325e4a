"""White perturbations, which are independent at all points of a finite set."""

from __future__ import annotations

import torch

from botorch_ext.domains import FiniteSet, host
from botorch_ext.problems.functions.perturbed import Perturbation, tabulated


def white(domain: FiniteSet, misspecification: float, seed: int) -> Perturbation:
    """Make a perturbation without any structure: +eps or -eps at each point, by a fair coin.

    No kernel can learn it. A model with a nugget that belongs to f is correct, and therefore tries
    every point once: on 500 points it takes 500 steps. A model that ignores the perturbation finds
    the maximum of f, whose value is at most 2 eps below the best. The perturbation is our own.

    Args:
        domain: The finite set.
        misspecification: eps, the size of the perturbation, in units of f.
        seed: The seed of the coins.

    Returns:
        A perturbation for `Perturbed`.

    Raises:
        ValueError: If eps is not finite.
    """
    generator = torch.Generator().manual_seed(seed)
    coins = host.randint(2, (domain.num_points,), generator=generator)
    return tabulated(domain, misspecification * (2 * coins - 1).to(domain.dtype))
