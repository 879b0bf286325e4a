"""What an instance costs, and what theory and measurements say of regret."""

from botorch_ext.analysis.complexity import (
    Complexity,
    ComplexityTerm,
    lower_complexity,
    upper_complexity,
)
from botorch_ext.analysis.costs import InstanceCost, instance_cost, least_regret, regret_lower_bound
from botorch_ext.analysis.exponents import (
    consistency_exponent,
    lower_exponent,
    minimax_exponent,
    upper_exponent,
)
from botorch_ext.analysis.packing import greedy_packing
from botorch_ext.analysis.slopes import Slope, fitted_slope

__all__ = [
    "Complexity",
    "ComplexityTerm",
    "InstanceCost",
    "Slope",
    "consistency_exponent",
    "fitted_slope",
    "greedy_packing",
    "instance_cost",
    "least_regret",
    "lower_complexity",
    "lower_exponent",
    "minimax_exponent",
    "regret_lower_bound",
    "upper_complexity",
    "upper_exponent",
]
