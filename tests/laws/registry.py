"""The registry of what obeys the laws: methods, the scenarios they are tried in, and what they do
about pending trials.

One line of `ENTRIES` says where a method is tried and with which policies. A new method is added
here, and is under every law.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

import botorch_ext as bx
from botorch_ext import algorithms, strategies
from tests.laws.scenarios import MINIMUM, SCENARIOS, Scenario, matern, rbf, value_of

# The observations are far from what so small a B allows, so that models are rejected. Nothing here
# asks for widths that hold.
B, SIGMA, DELTA, LAMBDA = 0.25, 0.03, 0.1, 0.02
NUMBERS: dict[str, Any] = {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
HORIZON = 24

POLICIES: dict[str, dict[str, Any]] = {
    "ignore": {"pending": "ignore"},
    "hallucinate": {"pending": "hallucinate"},
    "inflate": {"pending": "hallucinate", "inflate": True},
    "censor": {"pending": "censor", "minimum": MINIMUM},
    "timeout": {"pending": "censor", "minimum": MINIMUM, "timeout": 3},
}

# A strategy in a scenario, from what the policy and the seed say.
Make = Callable[..., strategies.Strategy]


# --- how methods are made -------------------------------------------------------------------------


# What a method is given besides the domain and its numbers.
Given = Callable[[Scenario], dict[str, Any]]


def _kernel(scenario: Scenario) -> dict[str, Any]:
    return {"kernel": scenario.kernel(), "noise_variance": LAMBDA}


def _parts(scenario: Scenario) -> dict[str, Any]:
    return {**scenario.parts(), "noise_variance": LAMBDA}


def _fits(scenario: Scenario) -> dict[str, Any]:
    """Fits at some of the questions only."""
    return {"kernel": bx.Fitted(every=2), "width": 2.0}


def _made(
    method: str, given: Given = _kernel, numbers: dict[str, Any] = NUMBERS, **fixed: Any
) -> Make:
    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        arguments = {**given(scenario), **numbers, **fixed, **scenario.options(), **options}
        if method in ("gp_bucb", "gp_ucb_sdf"):  # a pending policy by its name
            del arguments["pending"]
        return getattr(algorithms, method)(scenario.domain(), **arguments)

    return make


@cache
def _several(scenario: Scenario) -> bx.CandidateModels:
    """Models that share no form; some of their prior means lie above what is observed."""
    kernels = [scenario.kernel(s) for s in (0.4, 1.0, 2.5)] + [scenario.kernel(0.8, matern)]
    means = [_level(3.5), None, None, _level(1.5)]
    return bx.CandidateModels(kernels, [0.02, 0.02, 0.05, 0.02], means, device=scenario.device)


@cache
def _lengthscales(scenario: Scenario) -> bx.CandidateModels:
    return bx.CandidateModels.lengthscales(
        rbf(1.0), [2.5, 1.0, 0.4], LAMBDA, means=_level(0.7), device=scenario.device
    )


@cache
def _twins(scenario: Scenario) -> bx.CandidateModels:
    """Two lengthscales, and what else f may be at every point."""
    kernels = [scenario.kernel(scale) for scale in (0.5, 1.5)]
    return bx.CandidateModels(kernels, LAMBDA, device=scenario.device).with_nugget(0.2)


@cache
def _growing(scenario: Scenario) -> bx.CandidateModels:
    return bx.CandidateModels.growing(
        rbf(1.0), 2.0, LAMBDA, dim=scenario.dim, device=scenario.device
    )


def _level(value: float) -> Any:
    return lambda X: X.new_full(X.shape[:-1], value)


def _of(models: Callable[[Scenario], Any]) -> Given:
    return lambda scenario: {"models": models(scenario)}


def _thompson(kernel: Callable[[Scenario], Any]) -> Given:
    return lambda scenario: {"kernel": kernel(scenario)}


def _rough(nu: float) -> Given:
    def given(scenario: Scenario) -> dict[str, Any]:
        kernel = scenario.kernel(3.0, lambda *scales: matern(*scales, nu=nu))
        return {"kernel": kernel, "noise_variance": 1e-3}

    return given


def _nothing(scenario: Scenario) -> dict[str, Any]:
    return {} if scenario.started else {"num_initial": 2}


def _particles(scenario: Scenario) -> dict[str, Any]:
    return {"models": bx.Particles(8), **_nothing(scenario)}


def _random(scenario: Scenario, **options: Any) -> strategies.Strategy:
    return strategies.RandomSearch(scenario.domain(), **scenario.options(), **options)


def _contextwise(scenario: Scenario, *, seed: int, **options: Any) -> strategies.Strategy:
    """One that knows contexts, one that does not, and one that plays at random."""
    alone = Scenario(scenario.domain, started=scenario.started)
    bases = [
        _made("gp_ucb")(scenario, seed=seed, **options),
        _made("gp_ucb")(alone, seed=seed + 1, **options),
        _random(alone, seed=seed + 2),
    ]

    def key(context: Any) -> int:
        return int(4 * abs(float(context[0]))) % 3

    return bx.ContextwiseStrategy(bases, key)


# --- the registry ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A method in a scenario with a policy."""

    method: str
    scenario_name: str
    policy: str
    device: torch.device = torch.device("cpu")

    @property
    def name(self) -> str:
        return " | ".join((self.method, self.scenario_name, self.policy))

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS[self.scenario_name].on(self.device)

    @property
    def num_actions(self) -> int:
        """The length of a session: short if an ask searches a box, shorter if it searches balls."""
        if not self.scenario.is_box or self.method in QUICK:
            return 44
        return 10 if "stable_opt" in self.method else 22

    def offer(self, step: int, seed: int) -> dict[str, Any]:
        """Arguments of the ask at a step."""
        return self.scenario.offer(step, seed)

    def value(self, x: torch.Tensor, context: torch.Tensor | None) -> float:
        """What is observed, but for noise."""
        return value_of(x, context)

    def make(self, seed: int = 0) -> strategies.Strategy:
        """A strategy without events."""
        options = POLICIES.get(self.policy, {})
        return METHODS[self.method](self.scenario, seed=seed, **options)


IN_ROUNDS = {**NUMBERS, "rkhs_bound": 0.3, "noise_variance": 0.01, "horizon": HORIZON}
OF_TREES = {"rkhs_bound": 1.0, "noise_std": 0.02, "horizon": 60}
SEVERAL, SCALES, GROWING = _of(_several), _of(_lengthscales), _of(_growing)
METHODS: dict[str, Make] = {
    "gp_ucb": _made("gp_ucb"),
    "igp_ucb": _made("igp_ucb"),
    "ec_gp_ucb": _made("ec_gp_ucb", misspecification=0.05),
    "gp_bucb": _made("gp_bucb"),
    "gp_ucb_sdf": _made("gp_ucb_sdf"),
    "cgp_ucb": _made("cgp_ucb", _parts),
    "cgp_ucb, sum": _made("cgp_ucb", _parts, combination="sum", misspecification=0.05),
    "he_gp_ucb": _made("he_gp_ucb", SEVERAL),
    "he_gp_ucb, misspecified": _made("he_gp_ucb", SCALES, misspecification=0.05),
    "he_gp_ucb, bayesian": _made("he_gp_ucb", SEVERAL, rkhs_bound=None, setting="bayesian"),
    "he_gp_ucb, growing": _made("he_gp_ucb", GROWING),
    "mle_ucb": _made("mle_ucb", SEVERAL),
    "expected_ucb": _made("expected_ucb", SEVERAL),
    "a_gp_ucb": _made("a_gp_ucb", SCALES),
    "lb_gp_ucb": _made("lb_gp_ucb", SCALES, rkhs_bound=0.02, noise_std=0.005),
    "lb_gp_ucb, growing": _made("lb_gp_ucb", GROWING, rkhs_bound=None),
    "stable_opt": _made("stable_opt", radius=0.3),
    "he_stable_opt": _made("he_stable_opt", SEVERAL, radius=0.3, norm="linf"),
    "phased_uncertainty_sampling": _made("phased_uncertainty_sampling", numbers=IN_ROUNDS),
    "bpe": _made("bpe", numbers=IN_ROUNDS),
    "bpe_delay": _made("bpe_delay", numbers=IN_ROUNDS, delay=3),
    "breadthwise_exploration": _made("breadthwise_exploration", _rough(0.5), OF_TREES),
    "breadthwise_exploration, smooth": _made("breadthwise_exploration", _rough(1.5), OF_TREES),
    "regret_balancing": _made(
        "regret_balancing",
        horizon=200,
        reward_range=(-2.5, 1.5),
        misspecifications=(0.4, 0.1, 0.05),
        max_information_gain=6.0,
        c=0.02,
        c1=0.003,
        c2=0.02,
    ),
    "integrated_ei": _made("integrated_ei", _nothing, {}),
    "insured_ucb": _made("insured_ucb", rkhs_bound=1.5),
    "safe_ucb": _made("safe_ucb", SEVERAL, rkhs_bound=1.5),
    "safe_ucb, certificates": _made(
        "safe_ucb", SEVERAL, rkhs_bound=1.5, width=0.1, certificates=True, horizon=60
    ),
    "random": _random,
    "contextwise": _contextwise,
    "gp_ucb, fitted": _made("gp_ucb", _fits, {}),
    "ec_gp_ucb, fitted": _made("ec_gp_ucb", _fits, {}, misspecification=0.05),
    "stable_opt, fitted": _made("stable_opt", _fits, {}, radius=0.3),
    "credible_ucb, growing": _made("credible_ucb", GROWING),
    "credible_ucb, nugget": _made("credible_ucb", _of(_twins)),
    "credible_ucb, particles": _made("credible_ucb", _particles, {}),
    "credible_ucb": _made("credible_ucb", SEVERAL),
    "bpe_delay, arrival": _made("bpe_delay", numbers=IN_ROUNDS, closing="arrival", kappa=1.5),
    "thompson_sampling": _made("thompson_sampling", numbers={}),
    "thompson_sampling, models": _made("thompson_sampling", _thompson(_several), {}),
    "thompson_sampling, fitted": _made(
        "thompson_sampling", _thompson(lambda _: bx.Fitted(every=2)), {}
    ),
    "certified_bucb": _made("certified_bucb", horizon=HORIZON, width=0.8),
    "certified_bucb, published": _made(
        "certified_bucb", horizon=HORIZON, buy="always", kappa=1.3, share=0.25, free_width=1.5
    ),
}


def _over(
    method: str, scenarios: Iterable[str], policies: Iterable[str] = ("none",)
) -> list[Entry]:
    policies = list(policies)
    return [Entry(method, scenario, policy) for scenario in scenarios for policy in policies]


SETS = [name for name in SCENARIOS if not SCENARIOS[name].is_box]
BOXES = [name for name in SCENARIOS if SCENARIOS[name].is_box]
ALONE = [name for name in SCENARIOS if SCENARIOS[name].contexts is None]
SETS_ALONE = [name for name in SETS if name in ALONE]
BOXES_ALONE = [name for name in BOXES if name in ALONE]
CONTEXTS = [name for name in SCENARIOS if name not in ALONE]
# Methods that do not search for the maximum of a bound.
QUICK = (
    "phased_uncertainty_sampling",
    "bpe",
    "bpe_delay",
    "bpe_delay, arrival",
    "breadthwise_exploration",
    "breadthwise_exploration, smooth",
    "random",
)
FEW = ("set", "set, contexts, changing", "box, started")
PLAIN = ("set, started", "line", "box")  # neither contexts nor changing actions
TWO = ("hallucinate", "timeout")

ENTRIES = [
    *_over("gp_ucb", SCENARIOS, POLICIES),
    *_over("igp_ucb", FEW, ("hallucinate", "inflate", "timeout")),
    *_over("ec_gp_ucb", FEW, POLICIES),
    *_over("gp_bucb", FEW, ("hallucinate", "inflate")),
    *_over("gp_ucb_sdf", FEW, ("censor", "timeout")),
    *_over("cgp_ucb", CONTEXTS, POLICIES),
    *_over("cgp_ucb, sum", ("set, contexts", "set, tasks, started", "line, contexts"), TWO),
    *_over("he_gp_ucb", SETS, POLICIES),
    *_over("he_gp_ucb", BOXES, TWO),
    *_over("he_gp_ucb", ("line",), ("ignore", "inflate", "censor")),
    *_over("he_gp_ucb, misspecified", PLAIN, ("hallucinate", "inflate", "timeout")),
    *_over("he_gp_ucb, bayesian", ("set", "set, changing"), TWO),
    *_over("he_gp_ucb, growing", PLAIN, TWO),
    *_over("mle_ucb", SETS, POLICIES),
    *_over("mle_ucb", BOXES, TWO),
    *_over("expected_ucb", SETS, POLICIES),
    *_over("expected_ucb", BOXES, TWO),
    *_over("a_gp_ucb", SETS_ALONE, POLICIES),
    *_over("a_gp_ucb", BOXES_ALONE, TWO),
    *_over("lb_gp_ucb", SETS_ALONE, POLICIES),
    *_over("lb_gp_ucb", BOXES_ALONE, TWO),
    *_over("lb_gp_ucb, growing", PLAIN, ("ignore", "hallucinate", "inflate")),
    *_over("stable_opt", ("set", "set, started"), POLICIES),
    *_over("stable_opt", ("line", "box"), ("hallucinate",)),
    *_over("he_stable_opt", ("set", "set, started"), POLICIES),
    *_over("he_stable_opt", ("line",), ("hallucinate",)),
    *_over("phased_uncertainty_sampling", ("set", "line", "box")),
    *_over("bpe", ("set", "line", "box")),
    *_over("bpe_delay", ("set", "line", "box")),
    *_over("breadthwise_exploration", ("line", "box")),
    *_over("breadthwise_exploration, smooth", ("line", "box")),
    *_over("regret_balancing", SCENARIOS, TWO),
    *_over("integrated_ei", SCENARIOS),
    *_over("insured_ucb", SCENARIOS),
    *_over("safe_ucb", SCENARIOS),
    *_over("safe_ucb, certificates", ("set", "set, started")),
    *_over("random", SCENARIOS),
    *_over("contextwise", CONTEXTS, TWO),
    *_over("gp_ucb, fitted", SCENARIOS, TWO),
    *_over("gp_ucb, fitted", ("set", "box"), ("ignore", "inflate", "censor")),
    *_over("ec_gp_ucb, fitted", FEW, ("hallucinate",)),
    *_over("stable_opt, fitted", ("set, started", "line"), ("hallucinate",)),
    *_over("credible_ucb", SETS, POLICIES),
    *_over("credible_ucb", BOXES, TWO),
    *_over("credible_ucb, nugget", FEW, POLICIES),
    *_over("credible_ucb, particles", SCENARIOS),
    *_over("credible_ucb, growing", PLAIN, TWO),
    *_over("bpe_delay, arrival", ("set", "line", "box")),
    *_over("certified_bucb", ("set", "set, started", "line", "box", "box, started")),
    *_over("thompson_sampling", SCENARIOS, ("ignore", "hallucinate")),
    *_over("thompson_sampling", FEW, ("inflate", "timeout")),
    *_over("thompson_sampling, models", ("set, contexts", "set", "line"), ("ignore",)),
    *_over("thompson_sampling, fitted", ("set", "set, contexts"), ("ignore",)),
    *_over("certified_bucb, published", ("set", "line")),
]


def _each_method_once(entries: list[Entry]) -> list[Entry]:
    """For each method the entry whose scenario and policy were chosen least before it."""
    chosen: list[Entry] = []
    used: Counter[str] = Counter()
    for method in METHODS:
        own = [entry for entry in entries if entry.method == method]
        if own:
            chosen.append(min(own, key=lambda e: (used[e.scenario_name], used[e.policy])))
            used.update((chosen[-1].scenario_name, chosen[-1].policy))
    return chosen


@cache
def entry_of(method: str) -> Entry:
    """One entry of a method: on a set, where it can be, without data from before, with pending
    trials in the models."""
    entries = [entry for entry in ENTRIES if entry.method == method]
    policies = ("hallucinate", "inflate", "censor", "timeout", "ignore", "none")
    first = min(entries, key=lambda e: (e.scenario.is_box, policies.index(e.policy)))
    plain = first.scenario_name.removesuffix(", started")
    return replace(first, scenario_name=plain if plain in SCENARIOS else first.scenario_name)


# Each method on a set and on a box, where it can be.
ON_SETS = _each_method_once([entry for entry in ENTRIES if not entry.scenario.is_box])
ON_BOXES = _each_method_once([entry for entry in ENTRIES if entry.scenario.is_box])
PLAYED = ON_SETS + ON_BOXES
