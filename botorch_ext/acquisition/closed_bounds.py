"""Closed bounds: upper bounds of several models whose gradients need no autograd."""

from __future__ import annotations

from typing import Any

from botorch_ext.acquisition.alternatives import AlternativeBounds
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.robust.own_bounds import OwnBounds


def closed_bounds(acqf: AlternativeBounds) -> OwnBounds | None:
    """Those of an acquisition function, as it is now; None where they have no closed form."""
    if acqf.posterior_transform is not None:
        return None
    alternatives: Any = acqf.model
    parts, start = [], 0
    for model, count in zip(alternatives.models, alternatives.counts, strict=True):
        known = isinstance(model, KernelGP) and model.num_observations > 0
        if not known or not model.has_closed_form_gradient:
            return None
        parts.append((model, acqf.positions[start : start + count]))
        start += count
    return OwnBounds(parts, acqf.width, acqf.offset, 1.0 if acqf.maximize else -1.0)
