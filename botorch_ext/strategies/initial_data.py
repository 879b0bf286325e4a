"""Data from before the study."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Domain, checked_like, checked_tensor
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.models.checks import checked_values


def checked_data(
    domain: Domain, data: tuple[Tensor, Tensor], space: ContextSpace | None = None
) -> tuple[Tensor, Tensor] | None:
    """A copy of data from before the study as ``n x d``, or with contexts ``n x (d + d_z)``, and
    ``n``; None where there is no row, or a ValueError that names ``initial``."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(f"initial must be a pair (X, Y), got {type(data).__name__}")
    X, Y = data
    if space is None:
        X = domain.require_contains(X, "initial X")
    else:
        X = _checked_joint(domain, X, space)
    if not isinstance(Y, Tensor):
        Y = checked_tensor(Y, X.dtype, X.device, "initial Y")
    Y = checked_values(Y, len(X), X, "initial Y")
    return (X.detach().clone(), Y.detach().clone()) if len(X) else None


def _checked_joint(domain: Domain, X: Any, space: ContextSpace) -> Tensor:
    name, d = "initial X", domain.dim
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
