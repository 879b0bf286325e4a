"""The registry of what obeys the laws: methods, the scenarios they are tried in, and what they do
about pending trials.

One line of `ENTRIES` says where a method is tried and with which policies. A new method is added
here, and is under every law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
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


def _one_model(method: str, **fixed: Any) -> Make:
    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        return getattr(algorithms, method)(
            scenario.domain(),
            scenario.kernel(),
            noise_variance=LAMBDA,
            **{**NUMBERS, **fixed},
            **scenario.options(),
            **options,
        )

    return make


def _by_name(method: str, **fixed: Any) -> Make:
    """A method that is a pending policy: it is told only the options of it."""
    inner = _one_model(method, **fixed)

    def make(scenario: Scenario, *, pending: str, **options: Any) -> strategies.Strategy:
        return inner(scenario, **options)

    return make


def _fitted(method: str, **fixed: Any) -> Make:
    """Fits at some of the questions only."""

    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        return getattr(algorithms, method)(
            scenario.domain(),
            bx.Fitted(every=2),
            width=2.0,
            **fixed,
            **scenario.options(),
            **options,
        )

    return make


def _cgp_ucb(**fixed: Any) -> Make:
    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        return algorithms.cgp_ucb(
            scenario.domain(),
            **scenario.parts(),
            noise_variance=LAMBDA,
            **NUMBERS,
            **fixed,
            **scenario.options(),
            **options,
        )

    return make


Models = Callable[[Scenario], bx.CandidateModels]


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


def _many_models(method: str, models: Models = _several, **fixed: Any) -> Make:
    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        return getattr(algorithms, method)(
            scenario.domain(),
            models(scenario),
            **{**NUMBERS, **fixed},
            **scenario.options(),
            **options,
        )

    return make


def _thompson(models: Callable[[Scenario], Any] | None = None) -> Make:
    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        kernel = scenario.kernel() if models is None else models(scenario)
        noise = {"noise_variance": LAMBDA} if models is None else {}
        options = {**noise, **scenario.options(), **options}
        return algorithms.thompson_sampling(scenario.domain(), kernel, **options)

    return make


def _in_rounds(method: str, **fixed: Any) -> Make:
    numbers = {**NUMBERS, "rkhs_bound": 0.3, "noise_variance": 0.01, "horizon": HORIZON, **fixed}

    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        return getattr(algorithms, method)(
            scenario.domain(), scenario.kernel(), **numbers, **options
        )

    return make


def _breadthwise(nu: float) -> Make:
    numbers = {"rkhs_bound": 1.0, "noise_std": 0.02, "noise_variance": 1e-3, "horizon": 60}

    def make(scenario: Scenario, **options: Any) -> strategies.Strategy:
        kernel = scenario.kernel(3.0, lambda *scales: matern(*scales, nu=nu))
        return algorithms.breadthwise_exploration(scenario.domain(), kernel, **numbers, **options)

    return make


def _integrated_ei(scenario: Scenario, **options: Any) -> strategies.Strategy:
    own = {"num_initial": 2, **scenario.options()}
    return algorithms.integrated_ei(scenario.domain(), **own, **options)


def _credible_particles(scenario: Scenario, **options: Any) -> strategies.Strategy:
    own = {"num_initial": 2, **scenario.options()}
    return algorithms.credible_ucb(scenario.domain(), bx.Particles(8), **own, **options)


def _random(scenario: Scenario, **options: Any) -> strategies.Strategy:
    return strategies.RandomSearch(scenario.domain(), **scenario.options(), **options)


def _contextwise(scenario: Scenario, *, seed: int, **options: Any) -> strategies.Strategy:
    """One that knows contexts, one that does not, and one that plays at random."""
    alone = Scenario(scenario.domain, started=scenario.started)
    bases = [
        _one_model("gp_ucb")(scenario, seed=seed, **options),
        _one_model("gp_ucb")(alone, seed=seed + 1, **options),
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
        """Of a recorded session: fewer where an ask searches a box, and for balls in one still
        fewer."""
        if not self.scenario.is_box or self.method in QUICK:
            return 44
        return 10 if self.method.partition(",")[0] in ("stable_opt", "he_stable_opt") else 22

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


METHODS: dict[str, Make] = {
    "gp_ucb": _one_model("gp_ucb"),
    "igp_ucb": _one_model("igp_ucb"),
    "ec_gp_ucb": _one_model("ec_gp_ucb", misspecification=0.05),
    "gp_bucb": _by_name("gp_bucb"),
    "gp_ucb_sdf": _by_name("gp_ucb_sdf"),
    "cgp_ucb": _cgp_ucb(),
    "cgp_ucb, sum": _cgp_ucb(combination="sum", misspecification=0.05),
    "he_gp_ucb": _many_models("he_gp_ucb"),
    "he_gp_ucb, misspecified": _many_models("he_gp_ucb", _lengthscales, misspecification=0.05),
    "he_gp_ucb, bayesian": _many_models("he_gp_ucb", rkhs_bound=None, setting="bayesian"),
    "he_gp_ucb, growing": _many_models("he_gp_ucb", _growing),
    "mle_ucb": _many_models("mle_ucb"),
    "expected_ucb": _many_models("expected_ucb"),
    "a_gp_ucb": _many_models("a_gp_ucb", _lengthscales),
    "lb_gp_ucb": _many_models("lb_gp_ucb", _lengthscales, rkhs_bound=0.02, noise_std=0.005),
    "lb_gp_ucb, growing": _many_models("lb_gp_ucb", _growing, rkhs_bound=None),
    "stable_opt": _one_model("stable_opt", radius=0.3),
    "he_stable_opt": _many_models("he_stable_opt", radius=0.3, norm="linf"),
    "phased_uncertainty_sampling": _in_rounds("phased_uncertainty_sampling"),
    "bpe": _in_rounds("bpe"),
    "bpe_delay": _in_rounds("bpe_delay", delay=3),
    "breadthwise_exploration": _breadthwise(nu=0.5),
    "breadthwise_exploration, smooth": _breadthwise(nu=1.5),
    "regret_balancing": _one_model(
        "regret_balancing",
        horizon=200,
        reward_range=(-2.5, 1.5),
        misspecifications=(0.4, 0.1, 0.05),
        max_information_gain=6.0,
        c=0.02,
        c1=0.003,
        c2=0.02,
    ),
    "integrated_ei": _integrated_ei,
    "insured_ucb": _one_model("insured_ucb", rkhs_bound=1.5),
    "safe_ucb": _many_models("safe_ucb", rkhs_bound=1.5),
    "safe_ucb, certificates": _many_models(
        "safe_ucb", rkhs_bound=1.5, width=0.1, certificates=True, horizon=60
    ),
    "random": _random,
    "contextwise": _contextwise,
    "gp_ucb, fitted": _fitted("gp_ucb"),
    "ec_gp_ucb, fitted": _fitted("ec_gp_ucb", misspecification=0.05),
    "stable_opt, fitted": _fitted("stable_opt", radius=0.3),
    "credible_ucb, growing": _many_models("credible_ucb", _growing),
    "credible_ucb, nugget": _many_models("credible_ucb", _twins),
    "credible_ucb, particles": _credible_particles,
    "credible_ucb": _many_models("credible_ucb"),
    "bpe_delay, arrival": _in_rounds("bpe_delay", closing="arrival", kappa=1.5),
    "thompson_sampling": _thompson(),
    "thompson_sampling, models": _thompson(_several),
    "thompson_sampling, fitted": _thompson(lambda scenario: bx.Fitted(every=2)),
    "certified_bucb": _one_model("certified_bucb", horizon=HORIZON, width=0.8),
    "certified_bucb, published": _one_model(
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


def _pairs(entry: Entry) -> set[Any]:
    """What an entry tries together: every two of method, scenario, kind of domain and policy."""
    traits = {
        "method": entry.method.partition(",")[0],
        "scenario": entry.scenario_name,
        "is_box": entry.scenario.is_box,
        "policy": entry.policy,
    }
    return set(combinations(traits.items(), 2))


def _each_method_once() -> list[Entry]:
    """For each method the entry with the most pairs that no method before it has."""
    chosen: list[Entry] = []
    seen: set[Any] = set()
    for method in METHODS:
        entries = [entry for entry in ENTRIES if entry.method == method]
        chosen.append(max(entries, key=lambda entry: len(_pairs(entry) - seen)))
        seen |= _pairs(chosen[-1])
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


# The entries that are played anew for every law.
PLAYED = _each_method_once()
