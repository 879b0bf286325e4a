"""BoTorch acquisition functions: confidence bounds, expected improvement, worst cases, variance."""

from botorch_ext.acquisition import input_constructors as _input_constructors  # noqa: F401  registers them
from botorch_ext.acquisition.certified import CertifiedSafe
from botorch_ext.acquisition.confidence_bound import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
)
from botorch_ext.acquisition.improvement import IntegratedLogEI
from botorch_ext.acquisition.optimistic import ExpectedUCB, OptimisticModelUCB
from botorch_ext.acquisition.stable import StableUCB
from botorch_ext.acquisition.variance import MaxVariance

__all__ = [
    "CertifiedSafe",
    "EnlargedUpperConfidenceBound",
    "ExpectedUCB",
    "IntegratedLogEI",
    "LowerConfidenceBound",
    "MaxVariance",
    "OptimisticModelUCB",
    "StableUCB",
]
