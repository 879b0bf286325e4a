"""Exact Gaussian process posteriors whose kernel is fixed, one or many at once."""

from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP

__all__ = ["CandidateModels", "FiniteCandidates", "FinitePosterior", "KernelGP"]
