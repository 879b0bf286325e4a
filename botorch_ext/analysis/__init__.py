"""What an instance costs, and what theory and measurements say of regret."""

from botorch_ext.analysis.exponents import (
    consistency_exponent,
    lower_exponent,
    minimax_exponent,
    upper_exponent,
)
from botorch_ext.analysis.packing import greedy_packing
from botorch_ext.analysis.slopes import Slope, fitted_slope

__all__ = [
    "Slope",
    "consistency_exponent",
    "fitted_slope",
    "greedy_packing",
    "lower_exponent",
    "minimax_exponent",
    "upper_exponent",
]
