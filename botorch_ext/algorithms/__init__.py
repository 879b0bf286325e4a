"""One function for each published algorithm, by its paper's name. Each returns a `Strategy`.

The arguments mean the same everywhere, in the units of the observations. The docstring of a
function describes those that are its own; the others are:

- ``domain``: a `Box` or a `FiniteSet`; ``kernel``: a GPyTorch kernel with k(x, x) <= 1.
- ``models``: `CandidateModels`, in place of ``kernel`` and ``noise_variance``, for the methods that
  know several models.
- ``noise_variance``: lambda, the ridge of the model; ``noise_std``: sigma, the sub-Gaussian
  constant of the noise; ``rkhs_bound``: B; ``delta``: failure probability.
- ``width``: a width object or a number in place of the published one; ``noise_std``,
  ``rkhs_bound`` and ``delta`` are then optional.
- ``mean``: the prior mean of the model; zero if None.
- ``pending``: "ignore", "hallucinate" or "censor", what to do about trials that are asked and not
  told; with its options ``inflate``, ``minimum`` and ``timeout``, see `OptimisticStrategy`.
  Phased methods and breadthwise exploration take neither these nor initial data: their rounds
  start from the prior.
- ``radius`` and ``norm``: of the ball of perturbations, in the units of the coordinates; "l2" or
  "linf".
- ``seed``, ``initial``, ``num_initial``: see `OptimisticStrategy`.
- ``context_domain``: the contexts that every ask is then given: a domain, their dimension d_z or a
  `ContextSpace`; ``kernel`` (and every model) is then on joint rows, the action first.
- ``horizon``: T, the number of trials, for the methods that must know it.

An impossible or missing argument is a ValueError that names it.
"""

from botorch_ext.algorithms.balancing import regret_balancing
from botorch_ext.algorithms.breadthwise import breadthwise_exploration
from botorch_ext.algorithms.contextual import cgp_ucb
from botorch_ext.algorithms.optimistic import ec_gp_ucb, gp_bucb, gp_ucb, gp_ucb_sdf, igp_ucb
from botorch_ext.algorithms.phased import bpe, bpe_delay, phased_uncertainty_sampling
from botorch_ext.algorithms.stable import he_stable_opt, stable_opt
from botorch_ext.algorithms.unknown_hyperparameters import (
    a_gp_ucb,
    expected_ucb,
    he_gp_ucb,
    lb_gp_ucb,
    mle_ucb,
)

__all__ = [
    "a_gp_ucb",
    "bpe",
    "bpe_delay",
    "breadthwise_exploration",
    "cgp_ucb",
    "ec_gp_ucb",
    "expected_ucb",
    "gp_bucb",
    "gp_ucb",
    "gp_ucb_sdf",
    "he_gp_ucb",
    "he_stable_opt",
    "igp_ucb",
    "lb_gp_ucb",
    "mle_ucb",
    "phased_uncertainty_sampling",
    "regret_balancing",
    "stable_opt",
]
