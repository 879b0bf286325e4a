"""Every algorithm of the library with arguments that are quick."""

from __future__ import annotations

from typing import Any

import botorch_ext as bx
from botorch_ext.integrations.recipes import Recipe
from tests.helpers import matern, rbf

RIDGE: dict[str, Any] = {"kernel": rbf(1.5), "noise_variance": 0.01}
BOUNDS = {"rkhs_bound": 1.5, "noise_std": 0.1}
LENGTHSCALES = bx.CandidateModels.lengthscales(matern(1.0), [3.0, 1.5, 0.7], 0.01)
MODELS = {"models": LENGTHSCALES, **BOUNDS}
HORIZON = {"horizon": 12}

#: The arguments of each algorithm besides the domain; contexts are given by the host.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "a_gp_ucb": {**MODELS, "lengthscale_0": 3.0},
    "bpe": {**RIDGE, **HORIZON, "width": 1.0},
    "bpe_delay": {**RIDGE, **HORIZON, **BOUNDS, "delay": 2},
    "breadthwise_exploration": {**RIDGE, **HORIZON, **BOUNDS},
    "certified_bucb": {**RIDGE, "horizon": 40, "width": 2.0, "num_initial": 2},
    "cgp_ucb": {**RIDGE, "width": 2.0},
    "credible_ucb": MODELS,
    "ec_gp_ucb": {**RIDGE, **BOUNDS, "misspecification": 0.1},
    "expected_ucb": MODELS,
    "gp_bucb": {**RIDGE, "width": 2.0, "num_initial": 2},
    "gp_ucb": {**RIDGE, "width": 2.0},
    "gp_ucb_sdf": {**RIDGE, "width": 2.0, "minimum": -5.0},
    "he_gp_ucb": {**MODELS, "num_initial": 2},
    "he_stable_opt": {**MODELS, "radius": 0.1},
    "igp_ucb": {**RIDGE, **BOUNDS},
    "insured_ucb": {**RIDGE, **BOUNDS},
    "integrated_ei": {"particles": bx.Particles(8), "num_initial": 4},
    "lb_gp_ucb": MODELS,
    "mle_ucb": MODELS,
    "phased_uncertainty_sampling": {**RIDGE, **HORIZON, "width": 1.0},
    "regret_balancing": {
        **RIDGE,
        **BOUNDS,
        **HORIZON,
        "max_information_gain": 2.0,
        "reward_range": (-20.0, 20.0),
    },
    "safe_ucb": {**MODELS, "certificates": False},
    "stable_opt": {**RIDGE, "width": 2.0, "radius": 0.1},
    "thompson_sampling": RIDGE,
}


def recipe(name: str, num_points: int | None = None, **more: Any) -> Recipe:
    arguments = ARGUMENTS[name] | more
    return Recipe(name, arguments, num_points=num_points, takes_contexts=name == "cgp_ucb")
