"""The registry of what obeys the laws: methods, the scenarios they are tried in, and what they do
about pending trials.

One line of `ENTRIES` says where a method is tried and with which policies. A new method is added
here, and is under every law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from gpytorch.means import ConstantMean

import botorch_ext as bx
from botorch_ext import algorithms, strategies, widths
from tests.laws.scenarios import POLICIES, SCENARIOS, Scenario, matern, rbf, value_of

# The observations are far from what so small a B allows, so that models are rejected. Nothing here
# asks for widths that hold.
B, SIGMA, DELTA, LAMBDA = 0.25, 0.03, 0.1, 0.02
NUMBERS: dict[str, Any] = {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
HORIZON = 24

# A strategy in a scenario, from what the policy and the seed say.
Make = Callable[..., strategies.Strategy]


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


def _limited(scenario: Scenario) -> dict[str, Any]:
    """Two outcomes; at the first and the last point they are safe, in every context."""
    model = bx.KernelGP(scenario.kernel(), LAMBDA, device=scenario.device)
    domain = scenario.domain()
    return {
        "model": model,
        "outcome_models": {"first": model, "second": model},
        "thresholds": {"first": "<= 1.9", "second": ">= -2"},
        "safe_seed": domain.bounds if isinstance(domain, bx.Box) else domain.points[[0, -1]],
    }


@cache
def _growing(scenario: Scenario) -> bx.CandidateModels:
    return bx.CandidateModels.growing(
        rbf(1.0), 2.0, LAMBDA, dim=scenario.dim, device=scenario.device
    )


def _level(value: float) -> ConstantMean:
    return ConstantMean().double().initialize(constant=torch.tensor(value, dtype=torch.float64))


def _of(models: Callable[[Scenario], Any]) -> Given:
    return lambda scenario: {"models": models(scenario)}


def _thompson(kernel: Callable[[Scenario], Any]) -> Given:
    return lambda scenario: {"kernel": kernel(scenario)}


def _rough(nu: float) -> Given:
    def given(scenario: Scenario) -> dict[str, Any]:
        kernel = scenario.kernel(3.0, partial(matern, nu=nu))
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
        return 10 if "stable_opt" in self.method or "safe_exploration" in self.method else 22

    @property
    def is_random(self) -> bool:
        return self.method.partition(",")[0] in ("random", "thompson_sampling")

    @property
    def draws_particles(self) -> bool:
        return self.method.startswith("integrated_ei") or self.method == "credible_ucb, particles"

    @property
    def refits_after_correction(self) -> bool:
        return self.method.endswith(", fitted") or self.draws_particles

    @property
    def depends_on_trial_number(self) -> bool:
        """Whether the next trial depends on the number of trials, and not on the data alone."""
        return self.is_random or self.draws_particles or self.method in BY_NUMBER

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
    "gp_ucb, ladder": _made("gp_ucb", width=widths.Ladder(1.5, 0.1, 0.1)),
    "igp_ucb": _made("igp_ucb"),
    "ec_gp_ucb": _made("ec_gp_ucb", misspecification=0.05),
    "ec_gp_ucb, pointwise dual": _made(
        "ec_gp_ucb",
        misspecification=0.05,
        enlargement="pointwise",
        width=widths.Dual(1.5, 0.1, 0.1, (1, 10)),
    ),
    "gp_bucb": _made("gp_bucb"),
    "gp_ucb_sdf": _made("gp_ucb_sdf"),
    "cgp_ucb": _made("cgp_ucb", _parts),
    "cgp_ucb, sum": _made("cgp_ucb", _parts, combination="sum", misspecification=0.05),
    "he_gp_ucb": _made("he_gp_ucb", SEVERAL),
    "he_gp_ucb, misspecified": _made("he_gp_ucb", SCALES, misspecification=0.05),
    "he_gp_ucb, pointwise ladder": _made(
        "he_gp_ucb",
        SCALES,
        misspecification=0.05,
        enlargement="pointwise",
        width=widths.Ladder(1.5, 0.1, 0.1),
    ),
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
    "bpe, ladder": _made("bpe", numbers=IN_ROUNDS, bounds="ladder"),
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
    "integrated_ei, deterministic": _made(
        "integrated_ei", _nothing, {"deterministic": True, "particles": bx.Particles(8)}
    ),
    "insured_ucb": _made("insured_ucb", rkhs_bound=1.5),
    "safe_ucb": _made("safe_ucb", SEVERAL, rkhs_bound=1.5),
    "safe_ucb, certificates": _made(
        "safe_ucb", SEVERAL, rkhs_bound=1.5, width=0.1, certificates=True, horizon=60
    ),
    "safe_exploration": _made(
        "safe_exploration",
        _limited,
        rkhs_bound=(4.0, 3.0, 5.0),
        bounds="ladder",
        radius=0.6,
        misspecification=0.01,
    ),
    "safe_exploration, anywhere": _made(
        "safe_exploration", _limited, rkhs_bound=(4.0, 3.0, 5.0), misspecification=0.01
    ),
    "safe_exploration, widest": _made(
        "safe_exploration", _limited, rkhs_bound=(4.0, 3.0, 5.0), rule="widest"
    ),
    "safe_exploration, refuted": _made("safe_exploration", _limited),
    "safe_ucb, ladder": _made(
        "safe_ucb", SEVERAL, rkhs_bound=1.5, bounds="ladder", certificates=True, horizon=60
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
    "thompson_sampling": _made("thompson_sampling", numbers={}),
    "thompson_sampling, models": _made("thompson_sampling", _thompson(_several), {}),
    "thompson_sampling, fitted": _made(
        "thompson_sampling", _thompson(lambda _: bx.Fitted(every=2)), {}
    ),
    "certified_bucb": _made("certified_bucb", horizon=HORIZON, width=0.8),
    "certified_bucb, ladder": _made(
        "certified_bucb", horizon=HORIZON, buy="always", share=0.25, bounds="ladder"
    ),
    "certified_bucb, published": _made(
        "certified_bucb", horizon=HORIZON, buy="always", kappa=1.3, share=0.25, free_width=1.5
    ),
}


# Methods that take turns by the number of trials.
BY_NUMBER = (
    "insured_ucb",
    "safe_exploration",
    "safe_exploration, anywhere",
    "safe_exploration, widest",
)
# Methods that do not search for the maximum of a bound.
QUICK = (
    "phased_uncertainty_sampling",
    "bpe",
    "bpe, ladder",
    "bpe_delay",
    "breadthwise_exploration",
    "breadthwise_exploration, smooth",
    "random",
)
# Methods whose sessions on sets take more than half a second: only long ones are played.
HEAVY = (
    "cgp_ucb, sum",
    "credible_ucb, growing",
    "credible_ucb, nugget",
    "credible_ucb, particles",
    "ec_gp_ucb, fitted",
    "expected_ucb",
    "gp_ucb, fitted",
    "he_stable_opt",
    "insured_ucb",
    "integrated_ei",
    "mle_ucb",
    "regret_balancing",
    "safe_ucb",
    "safe_ucb, certificates",
    "stable_opt, fitted",
    "thompson_sampling, fitted",
    "thompson_sampling, models",
)


def _in(method: str, policy: str, *scenarios: str) -> list[Entry]:
    return [Entry(method, scenario, policy) for scenario in scenarios]


# Each method on a set and on a box, where it can be; scenarios and policies take turns.
ENTRIES = [
    *_in("gp_ucb", "ignore", "set", "line"),
    *_in("gp_ucb, ladder", "inflate", "set, contexts, changing", "line"),
    *_in("igp_ucb", "hallucinate", "set, contexts, changing", "box, started"),
    *_in("ec_gp_ucb", "inflate", "set", "box, started"),
    *_in("ec_gp_ucb, pointwise dual", "hallucinate", "set, started", "box"),
    *_in("gp_bucb", "hallucinate", "set, contexts, changing", "box, started"),
    *_in("gp_ucb_sdf", "censor", "set", "box, started"),
    *_in("gp_ucb_sdf", "censor", "curve, started"),
    *_in("cgp_ucb", "timeout", "set, contexts", "codes, contexts"),
    *_in("cgp_ucb, sum", "timeout", "set, tasks, started", "line, contexts"),
    *_in("he_gp_ucb", "ignore", "set, started"),
    *_in("he_gp_ucb", "hallucinate", "box"),
    *_in("he_gp_ucb, misspecified", "inflate", "set, started", "line"),
    *_in("he_gp_ucb, pointwise ladder", "hallucinate", "set, started", "line"),
    *_in("he_gp_ucb, bayesian", "hallucinate", "set, changing"),
    *_in("he_gp_ucb, growing", "timeout", "set, started", "box"),
    *_in("mle_ucb", "censor", "set, changing"),
    *_in("mle_ucb", "hallucinate", "blend, started"),
    *_in("expected_ucb", "ignore", "set, contexts"),
    *_in("expected_ucb", "timeout", "space, started"),
    *_in("a_gp_ucb", "inflate", "set, changing"),
    *_in("a_gp_ucb", "hallucinate", "line, changing"),
    *_in("lb_gp_ucb", "censor", "set"),
    *_in("lb_gp_ucb", "timeout", "numbers, started"),
    *_in("lb_gp_ucb, growing", "ignore", "set, started", "line"),
    *_in("stable_opt", "hallucinate", "set", "box"),
    *_in("he_stable_opt", "inflate", "set, started"),
    *_in("he_stable_opt", "hallucinate", "line"),
    *_in("phased_uncertainty_sampling", "none", "set", "box"),
    *_in("bpe", "none", "set", "line"),
    *_in("bpe, ladder", "none", "set"),
    *_in("bpe_delay", "none", "set", "box"),
    *_in("regret_balancing", "timeout", "set, tasks, started", "line, contexts, started"),
    *_in("integrated_ei", "none", "set, contexts", "tree, started"),
    *_in("integrated_ei, deterministic", "none", "space, started"),
    *_in("insured_ucb", "none", "set, tasks, started", "codes, contexts"),
    *_in("safe_ucb", "none", "set, contexts, changing", "tree, started"),
    *_in("safe_ucb, certificates", "none", "set, started"),
    *_in("safe_exploration", "hallucinate", "set"),
    *_in("safe_exploration, anywhere", "hallucinate", "set, contexts", "box"),
    *_in("safe_exploration, widest", "ignore", "line, contexts"),
    *_in("safe_exploration, refuted", "ignore", "set"),
    *_in("safe_ucb, ladder", "none", "set"),
    *_in("random", "none", "set, changing", "line, changing", "space, started"),
    *_in("contextwise", "hallucinate", "set, contexts"),
    *_in("contextwise", "timeout", "line, contexts"),
    *_in("gp_ucb, fitted", "timeout", "set, tasks, started"),
    *_in("gp_ucb, fitted", "hallucinate", "line, contexts, started"),
    *_in("ec_gp_ucb, fitted", "hallucinate", "set, contexts, changing", "box, started"),
    *_in("stable_opt, fitted", "hallucinate", "set, started", "line"),
    *_in("credible_ucb, growing", "timeout", "set, started", "box"),
    *_in("credible_ucb, nugget", "censor", "set, contexts, changing", "box, started"),
    *_in("credible_ucb, particles", "none", "set, changing", "line, tasks, changing"),
    *_in("credible_ucb, particles", "none", "space, started"),
    *_in("credible_ucb", "ignore", "set, contexts"),
    *_in("credible_ucb", "timeout", "numbers, started"),
    *_in("thompson_sampling", "ignore", "set, tasks, started", "codes, contexts"),
    *_in("thompson_sampling, models", "ignore", "set, contexts", "line"),
    *_in("thompson_sampling, fitted", "ignore", "set, contexts"),
    *_in("certified_bucb", "none", "set, started", "box, started"),
    *_in("certified_bucb, published", "none", "set", "line"),
    *_in("certified_bucb, ladder", "none", "set"),
    *_in("breadthwise_exploration", "none", "line"),
    *_in("breadthwise_exploration, smooth", "none", "box"),
]
ON_SETS = [entry for entry in ENTRIES if not entry.scenario.is_box]
ON_BOXES = [entry for entry in ENTRIES if entry.scenario.is_box]


@cache
def entry_of(method: str) -> Entry:
    """The first entry of a method, but in the simplest scenario and with the simplest policy."""
    first = next(entry for entry in ENTRIES if entry.method == method)
    policy = first.policy if first.policy in ("none", "censor") else "hallucinate"
    if first.scenario.is_box:
        return first
    needs_contexts = method in ("cgp_ucb", "cgp_ucb, sum", "contextwise")
    scenario = "set, contexts" if needs_contexts else "set"
    return replace(first, scenario_name=scenario, policy=policy)
