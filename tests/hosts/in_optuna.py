"""Studies of Optuna for the tests, and the adapter of the machine."""

from __future__ import annotations

import pickle
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import botorch_ext as bx
from botorch_ext.integrations.optuna import StrategySampler
from botorch_ext.integrations.recipes import Recipe
from tests.helpers import rbf
from tests.hosts.machine import SPACE as NAMED
from tests.hosts.machine import Values

optuna.logging.set_verbosity(optuna.logging.ERROR)

FIXED = {"kernel": rbf(1.0), "noise_variance": 0.01, "width": 2.0, "num_initial": 3}
SPACE = {"a": FloatDistribution(2.0, 5.0), "b": FloatDistribution(-1.0, 3.0)}
#: The space of the machine.
DISTRIBUTIONS = {
    "depth": IntDistribution(2, 9),
    "kind": CategoricalDistribution(NAMED.parameters["kind"].values),
    "rate": FloatDistribution(1e-3, 0.5, log=True),
}


def bowl(trial: Any) -> float:
    a, b = trial.suggest_float("a", 2.0, 5.0), trial.suggest_float("b", -1.0, 3.0)
    return 0.2 * (a - 3.2) ** 2 + 0.2 * (b - 0.4) ** 2


def sampler(name: str = "gp_bucb", **more: Any) -> StrategySampler:
    return StrategySampler(name, **(FIXED | {"search_space": SPACE} | more))


def by_hand() -> bx.Strategy:
    return bx.algorithms.gp_bucb(bx.Box([[2.0, -1.0], [5.0, 3.0]]), **FIXED)


def history(study: Any) -> Any:
    """What the strategy of a study knew when it was asked last."""
    return study.sampler._followed.hosted.strategy.history


class InOptuna:
    """A study of Optuna in memory."""

    cannot = ("late", "correct")
    is_immediate = False

    def __init__(self, recipe: Recipe, minimizes: bool = True) -> None:
        self.recipe, self.minimizes = recipe, minimizes
        direction = "minimize" if minimizes else "maximize"
        self.study = optuna.create_study(direction=direction, study_name="one")
        self.study.sampler = self._sampler()

    def _sampler(self) -> StrategySampler:
        more = {"search_space": DISTRIBUTIONS, "num_points": self.recipe.num_points}
        return StrategySampler(self.recipe.algorithm, repeat=True, **more, **self.recipe.arguments)

    def ask(self) -> Values:
        return self.study.ask(DISTRIBUTIONS).params

    def tell(self, key: int, value: float) -> None:
        self.study.tell(key, value)

    def fail(self, key: int, value: float) -> None:
        if key % 2:
            self.study.tell(key, state=TrialState.FAIL)
        else:  # NaN is a failure
            self.study.tell(key, float("nan"))

    def give_up(self, key: int) -> bool:
        self.study.tell(key, state=TrialState.PRUNED)
        return True

    def attach(self, values: Values, value: float) -> None:
        if len(self.study.trials) % 2:
            self.study.enqueue_trial(values)
            self.study.tell(self.study.ask(DISTRIBUTIONS), value)
        else:
            kept = {"params": values, "distributions": DISTRIBUTIONS, "value": value}
            self.study.add_trial(optuna.create_trial(**kept))

    def resume(self) -> None:
        if len(self.study.trials) % 2:
            self.study.sampler = pickle.loads(pickle.dumps(self.study.sampler))
        else:
            more = {"storage": self.study._storage, "sampler": self._sampler()}
            self.study = optuna.load_study(study_name="one", **more)

    def strategy(self) -> bx.Strategy:
        return self.study.sampler._followed.hosted.strategy
