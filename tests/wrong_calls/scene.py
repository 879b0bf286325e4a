"""What users have at hand in the middle of their work."""

from __future__ import annotations

import atexit
from functools import cache
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import botorch_ext as bx
from botorch_ext.problems import RKHSFunction
from tests.helpers import drawn, rbf
from tests.hosts.machine import said

LAMBDA = 0.02
ROWS = [[2.0, -3.0], [5.0, -1.5]]
RIDGE: dict[str, Any] = {"noise_variance": LAMBDA}
BOUNDS = {"rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.1}
HORIZON = {"horizon": 20}
#: What algorithms are given besides the kernel or the models, and `BOUNDS`.
OWN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("gp_ucb", "igp_ucb", "gp_bucb", "insured_ucb", "thompson_sampling"), RIDGE),
    **dict.fromkeys(
        ("bpe", "phased_uncertainty_sampling", "breadthwise_exploration"), RIDGE | HORIZON
    ),
    "bpe_delay": {**RIDGE, **HORIZON, "delay": 3},
    "certified_bucb": {**RIDGE, "horizon": 30},
    "cgp_ucb": {**RIDGE, "context_domain": 1},
    "ec_gp_ucb": {**RIDGE, "misspecification": 0.1},
    "gp_ucb_sdf": {**RIDGE, "minimum": -1.0},
    "he_stable_opt": {"radius": 0.1},
    "regret_balancing": {**RIDGE, **HORIZON, "max_information_gain": 2.0},
    "stable_opt": {**RIDGE, "radius": 0.1},
}
OF_LENGTHSCALES = ("a_gp_ucb", "lb_gp_ucb")
OF_MODELS = ("he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb", "safe_ucb", "he_stable_opt")


class Scene:
    def __init__(self) -> None:
        self.box = bx.Box(ROWS)
        self.grid = bx.FiniteSet(self.box.sample(24, seed=3))
        self.kernel = rbf(0.9, 0.5)
        self.X, self.Y = self.grid.points[:3].clone(), drawn(3, seed=1)
        self.gp = self.model()
        self.gp.add(self.X, self.Y)
        self.finite = bx.FinitePosterior(self.kernel, self.grid.points, LAMBDA)
        self.finite.add(self.X, self.Y)
        self.models = self.candidates()
        self.models.add(self.X, self.Y)
        self.problem = RKHSFunction(self.kernel, self.X, self.Y, self.box, noise_std=0.1)
        self.on_grid = RKHSFunction(self.kernel, self.X, self.Y, self.grid, noise_std=0.1)
        self.strategy = self.asked(self.box)
        self.seeing = self.asked(
            self.grid, rbf(0.9, 0.5, 0.7), bx.Box([[0.0], [1.0]]), context=[0.5]
        )

    def model(self, **more: Any) -> bx.KernelGP:
        return bx.KernelGP(self.kernel, LAMBDA, **more)

    def candidates(self) -> bx.CandidateModels:
        return bx.CandidateModels([self.kernel, rbf(0.5)], LAMBDA)

    def lengthscales(self) -> bx.CandidateModels:
        return bx.CandidateModels.lengthscales(rbf(1.0), [1.0, 0.5], LAMBDA)

    def fresh(self) -> bx.Strategy:
        return bx.OptimisticStrategy(self.grid, self.model(), 2.0, seed=1)

    def asked(self, domain: Any, kernel: Any = None, contexts: Any = None, **given: Any) -> Any:
        """Three trials have values, the fourth is pending."""
        model = bx.KernelGP(kernel or self.kernel, LAMBDA)
        made = bx.OptimisticStrategy(
            domain, model, 2.0, seed=1, num_initial=4, context_domain=contexts
        )
        for value in self.Y.tolist():
            made.tell(made.ask(**given).id, value)
        made.ask(**given)
        return made

    @property
    def study(self) -> bx.Study:
        """All scenes share it: a study cannot be copied."""
        return _study()

    def arguments(self, method: str) -> dict[str, Any]:
        """Arguments with which an algorithm works."""
        domain = self.box if method in ("breadthwise_exploration", "lb_gp_ucb") else self.grid
        given: dict[str, Any] = {"domain": domain, **BOUNDS, **OWN.get(method, {})}
        if method == "integrated_ei":
            return {"domain": domain}
        if method in OF_MODELS:
            return {**given, "models": self.candidates()}
        if method in OF_LENGTHSCALES:
            return {**given, "models": self.lengthscales()}
        if method == "thompson_sampling":
            return {"domain": domain, "kernel": self.kernel, **RIDGE}
        kernel = rbf(0.9, 0.5, 0.7) if method == "cgp_ucb" else self.kernel
        return {**given, "kernel": kernel}

    def state(self) -> Any:
        """All that a refused call must leave as it is."""
        told = (self.strategy, self.seeing, self.study)
        return [
            *([said(event) for event in each.events] for each in told),
            *(model.num_observations for model in (self.gp, self.finite, self.models)),
            *(part.tolist() for part in (self.X, self.Y, self.grid.points, self.finite.mean)),
            *(repr(part.posterior(self.X).mean.tolist()) for part in (self.gp,)),
            repr(self.box),
        ]


@cache
def _study() -> bx.Study:
    folder = mkdtemp()
    atexit.register(rmtree, folder)
    made = bx.OptimisticStrategy(
        bx.Space(a=bx.Real(2.0, 5.0), b=bx.Real(-3.0, -1.5)), bx.KernelGP(rbf(0.5), LAMBDA), 2.0
    )
    begun = bx.Study(f"{folder}/study.db", made, minimize=True)
    for value in (0.3, -0.2, 0.1):
        begun.tell(begun.ask(), value)
    begun.ask(2)
    return begun
