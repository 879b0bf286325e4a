"""Analysis: the cost of an instance, regret bounds from theory, and slopes of measured regret."""

from botorch_ext.analysis.complexity import (
    Complexity,
    ComplexityTerm,
    lower_complexity,
    upper_complexity,
)
from botorch_ext.analysis.costs import InstanceCost, instance_cost, least_regret, regret_lower_bound
from botorch_ext.analysis.elimination_bounds import (
    he_gp_ucb_bayes_bound,
    he_gp_ucb_bayes_continuous_bound,
    he_gp_ucb_bound,
    he_stable_opt_bound,
)
from botorch_ext.analysis.exponents import (
    consistency_exponent,
    lower_exponent,
    minimax_exponent,
    upper_exponent,
)
from botorch_ext.analysis.insured_bounds import (
    certified_bucb_bound,
    information_gain_bound,
    insured_ucb_bound,
)
from botorch_ext.analysis.packing import greedy_packing
from botorch_ext.analysis.phased_bounds import (
    bpe_bound,
    bpe_continuous_bound,
    phased_uncertainty_sampling_bound,
)
from botorch_ext.analysis.regret_bounds import (
    cgp_ucb_bayes_bound,
    cgp_ucb_bayes_continuous_bound,
    cgp_ucb_bound,
    ec_gp_ucb_bound,
)
from botorch_ext.analysis.slopes import Slope, fitted_slope

__all__ = [
    "Complexity",
    "ComplexityTerm",
    "InstanceCost",
    "Slope",
    "bpe_bound",
    "bpe_continuous_bound",
    "certified_bucb_bound",
    "cgp_ucb_bayes_bound",
    "cgp_ucb_bayes_continuous_bound",
    "cgp_ucb_bound",
    "consistency_exponent",
    "ec_gp_ucb_bound",
    "fitted_slope",
    "greedy_packing",
    "he_gp_ucb_bayes_bound",
    "he_gp_ucb_bayes_continuous_bound",
    "he_gp_ucb_bound",
    "he_stable_opt_bound",
    "information_gain_bound",
    "instance_cost",
    "insured_ucb_bound",
    "least_regret",
    "lower_complexity",
    "lower_exponent",
    "minimax_exponent",
    "phased_uncertainty_sampling_bound",
    "regret_lower_bound",
    "upper_complexity",
    "upper_exponent",
]
