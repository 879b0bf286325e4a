"""One function for each algorithm, under the name of its paper.

Each returns a `Strategy` and documents all its arguments. An argument of the same name means the
same in every function. Numbers are in the units of the observations.
"""

from botorch_ext.algorithms.balancing import regret_balancing
from botorch_ext.algorithms.breadthwise import breadthwise_exploration
from botorch_ext.algorithms.certified import certified_bucb
from botorch_ext.algorithms.contextual import cgp_ucb
from botorch_ext.algorithms.credible import credible_ucb
from botorch_ext.algorithms.insured import insured_ucb, safe_ucb
from botorch_ext.algorithms.late_feedback import gp_bucb, gp_ucb_sdf
from botorch_ext.algorithms.lengthscales import a_gp_ucb, lb_gp_ucb
from botorch_ext.algorithms.optimistic import ec_gp_ucb, gp_ucb, igp_ucb
from botorch_ext.algorithms.phased import bpe, bpe_delay, phased_uncertainty_sampling
from botorch_ext.algorithms.practical import integrated_ei
from botorch_ext.algorithms.safe import safe_exploration
from botorch_ext.algorithms.stable import he_stable_opt, stable_opt
from botorch_ext.algorithms.thompson import thompson_sampling
from botorch_ext.algorithms.unknown_hyperparameters import expected_ucb, he_gp_ucb, mle_ucb

__all__ = [
    "a_gp_ucb",
    "bpe",
    "bpe_delay",
    "breadthwise_exploration",
    "certified_bucb",
    "cgp_ucb",
    "credible_ucb",
    "ec_gp_ucb",
    "expected_ucb",
    "gp_bucb",
    "gp_ucb",
    "gp_ucb_sdf",
    "he_gp_ucb",
    "he_stable_opt",
    "igp_ucb",
    "insured_ucb",
    "integrated_ei",
    "lb_gp_ucb",
    "mle_ucb",
    "phased_uncertainty_sampling",
    "regret_balancing",
    "safe_exploration",
    "safe_ucb",
    "stable_opt",
    "thompson_sampling",
]
