"""The points at which models are checked before a study begins."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace, with_context

# All 2^d corners of a box of so many dimensions are looked at.
_MOST_CORNERS_DIM = 8
# Pairs of an action and a context, and contexts of a box.
_MOST_PAIRS, _NUM_IN_BOX = 2**18, 64


def probes_of(domain: Domain, space: ContextSpace | None, seed: int) -> Tensor:
    """All points of a finite set; of a box a sample and the corners, two of them where there are
    too many; each with contexts.

    Args:
        domain: Where actions live.
        space: Which contexts there are, or None.
        seed: Of the samples.

    Returns:
        ``n x (d + d_z)`` joint rows; none where not even the size of contexts is known.
    """
    if isinstance(domain, FiniteSet):
        actions = domain.points
    else:
        corners = domain.bounds
        if domain.dim <= _MOST_CORNERS_DIM:
            corners = torch.cartesian_prod(*corners.T).view(-1, domain.dim)
        actions = torch.cat([corners, domain.sample(256, seed)])
    if space is None:
        return actions
    num_contexts = max(_MOST_PAIRS // len(actions), 1)
    if isinstance(space.domain, Box):
        num_contexts = min(num_contexts, _NUM_IN_BOX)
    contexts = space.probes(actions, num_contexts, seed)
    if not len(contexts):
        return actions.new_zeros(0, 0)
    return torch.cat([with_context(actions, context) for context in contexts])
