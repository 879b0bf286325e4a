"""Domains: where actions live, a box in R^d or a finite set of points, and contexts beside them."""

from botorch_ext.domains.box import Box
from botorch_ext.domains.contexts import (
    ContextLike,
    ContextSpace,
    as_context_space,
    with_context,
)
from botorch_ext.domains.finite_set import Domain, FiniteSet
from botorch_ext.domains.points import as_points, checked_like, checked_tensor, require_same_kind
from botorch_ext.domains.space import Space
from botorch_ext.parameters import Choice, Integer, Real

__all__ = [
    "Box",
    "Choice",
    "ContextLike",
    "ContextSpace",
    "Domain",
    "FiniteSet",
    "Integer",
    "Real",
    "Space",
    "as_context_space",
    "as_points",
    "checked_like",
    "checked_tensor",
    "require_same_kind",
    "with_context",
]
