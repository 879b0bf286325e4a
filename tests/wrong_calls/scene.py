"""What users have at hand in the middle of their work."""

from __future__ import annotations

import atexit
import inspect
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
BOUNDS = {"rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.1}
#: What some algorithms are given besides what they need.
OWN: dict[str, dict[str, Any]] = {
    "bpe_delay": {"delay": 3},
    "certified_bucb": {"horizon": 30},
    "cgp_ucb": {"context_domain": 1, "kernel": rbf(0.9, 0.5, 0.7)},
    "regret_balancing": {"max_information_gain": 2.0},
    "safe_exploration": {
        "model": bx.KernelGP(rbf(0.9, 0.5), LAMBDA),
        "outcome_models": {"pressure": bx.KernelGP(rbf(0.9, 0.5), LAMBDA)},
        "thresholds": {"pressure": "<= 5.0"},
        "safe_seed": bx.FiniteSet(bx.Box(ROWS).sample(24, seed=3)).points[:1],
    },
}


OF_LENGTHSCALES = ("a_gp_ucb", "lb_gp_ucb")


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
        self.at_random = bx.strategies.RandomSearch(bx.Space(a=bx.Real(2.0, 5.0)))

    def model(self, **more: Any) -> bx.KernelGP:
        return bx.KernelGP(self.kernel, LAMBDA, **more)

    def candidates(self) -> bx.CandidateModels:
        return bx.CandidateModels([self.kernel, rbf(0.5)], LAMBDA)

    def lengthscales(self) -> bx.CandidateModels:
        return bx.CandidateModels.lengthscales(rbf(1.0), [1.0, 0.5], LAMBDA)

    def fresh(self) -> bx.Strategy:
        return bx.OptimisticStrategy(self.grid, self.model(), 2.0, seed=1)

    def asked(self, domain: Any, kernel: Any = None, contexts: Any = None, **given: Any) -> Any:
        """Three trials have values, the fourth is pending, the fifth is attached."""
        model = bx.KernelGP(kernel or self.kernel, LAMBDA)
        made = bx.OptimisticStrategy(
            domain, model, 2.0, seed=1, num_initial=4, context_domain=contexts
        )
        for value in self.Y.tolist():
            made.tell(made.ask(**given).id, value)
        made.ask(**given)
        made.attach(made.history.trials[0].x, 0.3, **given)
        return made

    @property
    def study(self) -> bx.Study:
        """All scenes share it: a study cannot be copied."""
        return _study()

    def arguments(self, method: str) -> dict[str, Any]:
        """Arguments with which an algorithm works."""
        taken = inspect.signature(getattr(bx.algorithms, method)).parameters
        known = {
            "domain": self.box if method in ("breadthwise_exploration", "lb_gp_ucb") else self.grid,
            "models": self.lengthscales() if method in OF_LENGTHSCALES else self.candidates(),
            "horizon": 20,
            "minimum": -1.0,
            "misspecification": 0.1,
            "radius": 0.1,
        }
        given = {
            key: known[key] for key, p in taken.items() if key in known and p.default is p.empty
        }
        usual = BOUNDS | (
            {"kernel": self.kernel, "noise_variance": LAMBDA} if "kernel" in taken else {}
        )
        return given | {key: usual[key] for key in usual if key in taken} | OWN.get(method, {})

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
    begun.attach({"a": 3.0, "b": -2.0}, 0.2)
    return begun


@cache
def scene() -> Scene:
    """The scene of all refused calls, which leave it as it is."""
    return Scene()
