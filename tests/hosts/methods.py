"""Every algorithm of the library with arguments that are quick."""

from __future__ import annotations

from typing import Any

import botorch_ext as bx
from botorch_ext.integrations.recipes import Recipe
from tests.helpers import matern, rbf
from tests.wrong_calls.scene import scene

#: For spaces of any dimension.
SHARED: dict[str, Any] = {
    "kernel": rbf(1.5),
    "noise_variance": 0.01,
    "models": bx.CandidateModels.lengthscales(matern(1.0), [3.0, 1.5, 0.7], 0.01),
}
OWN: dict[str, dict[str, Any]] = {
    "certified_bucb": {"horizon": 40, "width": 2.0, "num_initial": 2},
    "cgp_ucb": {"width": 2.0},
    "gp_bucb": {"width": 2.0, "num_initial": 2},
    "gp_ucb_sdf": {"minimum": -5.0},
    "integrated_ei": {"particles": bx.Particles(8), "num_initial": 4},
    "regret_balancing": {"reward_range": (-20.0, 20.0)},
    "safe_ucb": {"certificates": False},
}


def recipe(name: str, num_points: int | None = None, **more: Any) -> Recipe:
    """An algorithm without its domain; contexts are given by the host."""
    known = scene().arguments(name)
    given = {
        key: SHARED.get(key, value)
        for key, value in known.items()
        if key not in ("domain", "context_domain")
    }
    arguments = given | OWN.get(name, {}) | more
    return Recipe(name, arguments, num_points=num_points, takes_contexts=name == "cgp_ucb")
