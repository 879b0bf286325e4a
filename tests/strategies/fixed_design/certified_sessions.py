"""Certified elimination, sessions of it, and the oracle that has followed them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch

from botorch_ext import CertifiedElimination, algorithms, delays, simulate
from botorch_ext.domains import Domain
from tests.oracles.certified import Certified, Numbers, follow
from tests.strategies.fixed_design.phased_sessions import DELTA, LAMBDA, SIGMA, B, play, rkhs
from tests.strategies.sessions import data, finite, kernel

HORIZON = 130
PUBLISHED = {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
SIXTH = {"width": math.sqrt(6)}
KAPPA = math.sqrt(2)

# name: the arguments besides the problem, and the delays; None for feedback in any order, some of
# it lost.
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "at once": ({**SIXTH, "buy": "always"}, delays.Fixed(0)),
    "useful": (SIXTH, delays.Poisson(5.0)),
    "late": ({"width": 1.0, "buy": "always"}, delays.Poisson(25.0)),
    "heavy": (
        {**SIXTH, "kappa": KAPPA, "buy": "always", "share": 0.25},
        delays.LogNormal(2.0, 1.5),
    ),
    "put off": ({"width": 0.5, "free_width": 2.0}, delays.Fixed(35)),
    "published, small B": (
        {**PUBLISHED, "rkhs_bound": 0.4, "buy": "always", "free_width": 1.3},
        delays.Poisson(5.0),
    ),
    # f exceeds this bound, so that both bounds are clipped where they matter.
    "clipped": ({"width": 1.0, "rkhs_bound": 0.5, "buy": "always"}, delays.Poisson(5.0)),
    "in any order, kappa": ({"width": 1.5, "buy": "always", "kappa": KAPPA}, None),
    "started, published": (
        {**PUBLISHED, "num_initial": 6, "initial": data(finite(), 5)},
        delays.Poisson(9.0),
    ),
}


def make(domain: Domain, horizon: int = HORIZON, **options: Any) -> CertifiedElimination:
    given = {"noise_variance": LAMBDA, "seed": 3, **options}
    return algorithms.certified_bucb(domain, kernel(), horizon=horizon, **given)


def numbers(horizon: int = HORIZON, **options: Any) -> Numbers:
    """What the oracle is given for a strategy with these arguments on the finite set."""
    domain = finite()
    with torch.no_grad():
        K = kernel()(domain.points).to_dense()
    before = []
    if "initial" in options:
        X, Y = options["initial"]
        before = list(zip(domain.index(X).tolist(), Y.tolist(), strict=True))
    return Numbers(
        K,
        LAMBDA,
        horizon,
        rho=options.get("share", 1 / 8),
        kappa=options.get("kappa", 1.0),
        buy=options.get("buy", "useful"),
        B=options.get("rkhs_bound"),
        sigma=options.get("noise_std"),
        delta=options.get("delta", 0.1),
        width=options.get("width"),
        free_width=options.get("free_width", options.get("width", 2.0)),
        before=before,
        num_initial=options.get("num_initial", 0),
    )


@cache
def played(case: str) -> CertifiedElimination:
    """A session of a case; nobody may change it."""
    options, delay = CASES[case]
    problem = rkhs(finite())
    strategy = make(problem.domain, **options)
    if delay is None:
        play(strategy, problem, seed=11)
    else:
        simulate(strategy, problem, HORIZON, delay=delay, seed=4)
    return strategy


@cache
def followed(case: str) -> Certified:
    """The oracle at the end of a case."""
    options, _ = CASES[case]
    oracle = Certified(numbers(**options))
    return follow(oracle, make(finite(), **options), played(case).events)
