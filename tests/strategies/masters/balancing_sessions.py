"""Sessions of regret balancing, in which bases are eliminated within a few steps."""

from __future__ import annotations

import torch

from botorch_ext import algorithms
from tests.strategies.sessions import LAMBDA, Action, box, f, finite, kernel, plain, script

B, SIGMA, GAMMA = 1.5, 0.1, 6.0


def make(domain, levels=(0.4, 0.2, 0.1, 0.05), policy="hallucinate", **changed):
    policies = {"censor": {"pending": "censor", "minimum": -2.5}, "timeout": {"timeout": 3}}
    policies["timeout"] |= policies["censor"]
    options = {
        "noise_variance": LAMBDA,
        "rkhs_bound": B,
        "noise_std": SIGMA,
        "horizon": 200,
        "reward_range": (-2.5, 1.5),
        "misspecifications": levels,
        "max_information_gain": GAMMA,
        "seed": 5,
        **policies.get(policy, {"pending": policy}),
        **changed,
    }
    return algorithms.regret_balancing(domain, kernel(), **options)


def drive(strategy, actions: list[Action], choices=lambda step: None, value=f):
    """Plays a script; ``choices`` gives the actions of each ask."""
    for kind, share, noise in actions:
        if kind.startswith("ask") or not strategy.pending:
            for _ in range(3 if kind == "ask three" else 1):
                strategy.ask(actions=choices(len(strategy.history.trials)))
            continue
        id = strategy.pending[int(share * len(strategy.pending))]
        if kind == "tell":
            strategy.tell(id, value(strategy.history.trials[id].x) + noise)
        else:
            strategy.abandon(id)


def prompt(num_steps, seed):
    """A script in which every question is answered before the next."""
    noise = 0.1 * torch.randn(num_steps, generator=torch.Generator().manual_seed(seed))
    return [step for e in noise.tolist() for step in (("ask", 0.0, 0.0), ("tell", 0.0, e))]


def some_rows(step):
    g = torch.Generator().manual_seed(700 + step)
    return torch.randperm(54, generator=g)[:7]


def some_points(step):
    return box().sample(9, seed=300 + step)


# What makes eliminations happen in so few steps.
BOLD = {"c": 0.02, "c1": 0.003, "c2": 0.02}
INSTANCES = {
    "prompt": (finite, prompt(60, seed=1), {}, {**BOLD}),
    "late": (finite, script(130, seed=2), {}, {**BOLD}),
    "late, other constants": (
        finite,
        script(130, seed=3),
        {},
        {"c": 0.03, "c1": 0.002, "c2": 0.04, "delta": 0.03, "levels": (0.5, 0.0)},
    ),
    "late, ignored": (finite, script(110, seed=4), {}, {**BOLD, "policy": "ignore"}),
    "late, censored": (finite, script(120, seed=5), {}, {**BOLD, "policy": "timeout"}),
    "action sets": (finite, script(140, seed=6), {"rows": some_rows}, {**BOLD}),
    "box": (box, prompt(25, seed=7), {}, {**BOLD, "levels": (0.6, 0.05)}),
    "box, late": (box, script(60, seed=8), {}, {**BOLD, "levels": (0.6, 0.05)}),
    "box, action sets": (box, script(90, seed=9), {"points": some_points}, {**BOLD}),
    "published constants": (finite, script(90, seed=10), {}, {"levels": (0.3, 0.1)}),
}


def choices_of(domain, varying):
    if "rows" in varying:
        return lambda step: domain.points[varying["rows"](step)]
    return varying.get("points", lambda step: None)


def snapshot(strategy):
    return (
        [plain(event) for event in strategy.events],
        strategy.report(),
        strategy.active,
        strategy.tests,
        [[plain(event) for event in base.events] for base in strategy.bases],
    )
