"""Checks of initial data, and the points at which models are checked before a study."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet, checked_like
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.models.checks import checked_values

#: Observations from before a study: points, values and, if they differ in noise, standard errors.
InitialData = tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]

# The largest numbers of pairs of an action and a context, and of contexts of a box.
_MOST_PAIRS, _NUM_IN_BOX = 2**18, 64


def probes_of(domain: Domain, space: ContextSpace | None, seed: int) -> Tensor:
    """The points at which models are checked, each joined with contexts: all points of a finite
    set; of a box a sample and the corners, or two of them if there are too many.

    Returns:
        The joint rows, ``n x (d + d_z)``; without rows if the dimension of the contexts is unknown.
    """
    if isinstance(domain, FiniteSet):
        actions = domain.points
    else:
        actions = torch.cat([domain.corners, domain.sample(256, seed)])
    if space is None:
        return actions
    num_contexts = max(_MOST_PAIRS // len(actions), 1)
    if isinstance(space.domain, Box):
        num_contexts = min(num_contexts, _NUM_IN_BOX)
    contexts = space.probes(actions, num_contexts, seed)
    if not len(contexts):
        return actions.new_zeros(0, 0)
    return torch.cat([with_context(actions, context) for context in contexts])


def checked_data(
    domain: Domain, data: InitialData, space: ContextSpace | None = None
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """A checked copy of initial data: points ``n x d``, or with contexts ``n x (d + d_z)``, values
    ``n`` and standard errors ``n``, or None for these; None without rows. Raises a ValueError that
    names ``initial``."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise ValueError(
            f"initial must be a pair (X, Y) or a triple (X, Y, std), got {type(data).__name__}"
        )
    X, Y = data[:2]
    std = data[2] if len(data) == 3 else None
    if space is None:
        X = domain.require_contains(X, "initial X")
    else:
        X = checked_joint(domain, X, space, "initial X")
    Y = checked_values(Y, len(X), X, "initial Y")
    if std is not None:
        std = checked_values(std, len(X), X, "initial std").detach().clone()
        if not bool((std > 0).all()):
            raise ValueError(f"initial std must be positive, got {short(std)}")
    return (X.detach().clone(), Y.detach().clone(), std) if len(X) else None


def checked_joint(domain: Domain, X: Any, space: ContextSpace, name: str) -> Tensor:
    """Checked joint rows, ``n x (d + d_z)``; raises a ValueError that names the argument."""
    d = domain.dim
    X = checked_like(X, domain.like, name)
    if X.ndim != 2 or X.shape[-1] <= d:
        raise ValueError(
            f"{name} must have shape (n, d + d_z) with d = {d} columns of actions, then those of "
            f"contexts, got {tuple(X.shape)}"
        )
    actions = domain.require_contains(X[:, :d], f"{name}, its actions,")
    contexts = [
        space.checked(context, domain.like, X.shape[-1] - d, f"context of row {row} of {name}")
        for row, context in enumerate(X[:, d:])
    ]
    return torch.cat([actions, torch.stack(contexts)], dim=-1) if contexts else X[:0]
