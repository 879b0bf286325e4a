"""Stateless BoTorch acquisition functions."""

from botorch_ext.acquisition import input_constructors as _input_constructors  # noqa: F401  registers them
from botorch_ext.acquisition.confidence_bound import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
)

__all__ = ["EnlargedUpperConfidenceBound", "LowerConfidenceBound"]
