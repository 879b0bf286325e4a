"""Methods of the insured benchmark: each a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import botorch_ext as bx
from benchmarks.delayed_feedback import runs
from benchmarks.insured.problems import Instance
from botorch_ext import delays
from botorch_ext.widths import Scaled, SelfNormalized

GP_UCB, EC_GP_UCB, INSURED, SAFE = "GP-UCB", "EC-GP-UCB", "insured", "safe"
CREDIBLE, NUGGET = "credible", "nugget"
GP_BUCB, BPE_DELAY = "GP-BUCB", "BPE-Delay"
USEFUL, ALWAYS, ORACLE = "certified, useful", "certified, always", "certified, worst rule"
ORACLE_USEFUL = "certified, useful, worst rule"
THEORY = ", theory"
# Of the delayed-feedback paper, in place of every width.
_WIDTH = math.sqrt(6)
# Of the theoretical width: an index as users choose it, and tests that are too narrow.
_FACTOR = 0.3


@dataclass(frozen=True)
class Task:
    """What a method is made for.

    Args:
        instance: Its problem, and what it is told.
        horizon: T.
        setting: Its name, that of the law of the delays where there are any.
    """

    instance: Instance
    horizon: int
    setting: str


@dataclass(frozen=True)
class Method:
    """A method and what it was made of.

    Args:
        algorithm: Its name in `bx.algorithms`.
        options: Beside what all are told; a function is called with the task.
        model: What comes after the domain, from the task.
        revision: Raised when its answers change: rows of another one are stale.
    """

    algorithm: str
    options: Mapping[str, Any]
    model: Callable[[Task], Any] = lambda task: task.instance.kernel
    revision: int = 1

    @property
    def settings(self) -> str:
        """All that it is made of; functions by their names."""
        options = sorted((key, _named(value)) for key, value in self.options.items())
        return repr((self.algorithm, options, _named(self.model), self.revision))

    def strategy(self, task: Task, seed: int) -> bx.Strategy:
        """A fresh one."""
        instance, model = task.instance, self.model(task)
        told = {
            "noise_std": instance.problem.noise_std,
            "rkhs_bound": instance.rkhs_bound,
            "delta": instance.delta,
            "seed": seed,
        }
        if not isinstance(model, bx.CandidateModels):
            told["noise_variance"] = instance.noise_variance
        chosen = {k: v(task) if callable(v) else v for k, v in self.options.items()}
        make = getattr(bx.algorithms, self.algorithm)
        return make(instance.problem.domain, model, **(told | chosen))


def _named(value: Any) -> str:
    if isinstance(value, partial):
        return f"{_named(value.func)}({value.keywords})"
    return value.__qualname__ if callable(value) else repr(value)


def _method(algorithm: str, **options: Any) -> Method:
    return Method(algorithm, options)


def _of_models(algorithm: str, **options: Any) -> Method:
    return Method(algorithm, options, lambda task: task.instance.models)


def _with_nugget(task: Task) -> Any:
    """The plain model, and its twin with a nugget that belongs to f."""
    instance = task.instance
    plain = bx.CandidateModels(instance.kernel, instance.noise_variance)
    return plain.with_nugget(instance.rkhs_bound / 4)


def _theory(task: Task, factor: float = 1.0) -> Scaled:
    instance = task.instance
    width = SelfNormalized(instance.rkhs_bound, instance.problem.noise_std, instance.delta)
    return Scaled(width, factor)


def _allowance(task: Task) -> delays.Allowance:
    """As in the delayed-feedback benchmark: the paper's, where it knows the tails."""
    if task.setting in runs.POISSON:
        return runs.exponential(task.setting, printed=False)
    return delays.Quantile(runs.DELAYS[task.setting])


def _worst(task: Task) -> Callable[..., Any]:
    """The free rule that knows f and plays the worst point of the region."""
    f = task.instance.problem

    def rule(model: Any, region: Any, pending: Any, seed: int) -> Any:
        return region.points[int(f(region.points).argmin())]

    return rule


def _horizon(task: Task) -> int:
    return task.horizon


_SMALL: dict[str, Any] = {
    "rkhs_bound": lambda task: _FACTOR * task.instance.rkhs_bound,
    "noise_std": lambda task: _FACTOR * task.instance.problem.noise_std,
    "width": _theory,
}
_NARROW: dict[str, Any] = {"width": partial(_theory, factor=_FACTOR)}


def _kappa(task: Task) -> float:
    return 1.0 if task.setting in runs.POISSON else math.sqrt(2)


_certified = partial(_method, "certified_bucb", horizon=_horizon, kappa=_kappa)
_bpe_delay = partial(_method, "bpe_delay", horizon=_horizon)
# The free rule keeps its practical width where the certificates have the theoretical ones.
_PRACTICAL, _THEORETICAL = {"width": _WIDTH}, {"width": None, "free_width": _WIDTH}

METHODS = {
    GP_UCB: _method("gp_ucb"),
    f"{GP_UCB}, 0.3": _method("gp_ucb", **_NARROW),
    EC_GP_UCB: _method("ec_gp_ucb", misspecification=lambda task: task.instance.misspecification),
    INSURED: _method("insured_ucb"),
    f"{INSURED}, 0.3": _method("insured_ucb", **_NARROW),
    f"{INSURED}, narrow tests": _method("insured_ucb", **_SMALL),
    SAFE: _method("safe_ucb"),
    f"{SAFE}, certificates": _method("safe_ucb", certificates=True, horizon=_horizon),
    NUGGET: Method("credible_ucb", {}, _with_nugget),
    CREDIBLE: _of_models("credible_ucb"),
    f"{SAFE}, models": _of_models("safe_ucb"),
    "CGP-UCB": _method("cgp_ucb", context_domain=1),
    f"{INSURED}, contexts": _method("insured_ucb", context_domain=1),
    GP_BUCB: _method("gp_bucb", **_PRACTICAL),
    BPE_DELAY: _bpe_delay(delay=_allowance, **_PRACTICAL),
    USEFUL: _certified(**_PRACTICAL),
    ALWAYS: _certified(buy="always", **_PRACTICAL),
    ORACLE: _certified(buy="always", free=_worst, **_PRACTICAL),
    ORACLE_USEFUL: _certified(free=_worst, **_PRACTICAL),
    f"{GP_BUCB}{THEORY}": _method("gp_bucb"),
    f"{BPE_DELAY}{THEORY}": _bpe_delay(delay=_allowance),
    f"{USEFUL}{THEORY}": _certified(**_THEORETICAL),
    f"{ALWAYS}{THEORY}": _certified(buy="always", **_THEORETICAL),
    f"{ORACLE}{THEORY}": _certified(buy="always", free=_worst, **_THEORETICAL),
}
