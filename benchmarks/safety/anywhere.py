"""Runs of safe exploration in boxes and with contexts."""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.tight.runs import DELTA, LAM, SIGMA, B, Case

BOX, CONTEXTS = "box", "contexts"
# The numbers of actions and of contexts, and of the points at which a box is looked at.
_NUM_ACTIONS, _NUM_CONTEXTS, _NUM_LOOKS = 40, 8, 400


def functions_in_box(d: int | None, seed: int) -> tuple[bx.Box, Kernel, list[Any]]:
    """A box of d dimensions, or of 1 or 2 by the seed; a kernel; and an objective and an outcome of
    norm B."""
    d = d or 1 + seed % 2
    box, kernel = bx.Box([[0.0] * d, [1.0] * d]), rbf(0.3 * math.sqrt(d))
    random = bx.problems.RKHSFunction.random
    return box, kernel, [random(box, kernel, norm=B, seed=2 * seed + place) for place in range(2)]


def play_anywhere(case: Case) -> Row:
    """What was unsafe or falsely certified in a run, and when the alarm came.

    In a box d is 1 or 2, by the seed, and one seed is declared safe. With contexts, one action and
    one number of the context make a joint row, and the safest action of each context is a seed.
    """
    with_contexts = case.problem == CONTEXTS
    box, kernel, (value, outcome) = functions_in_box(2 if with_contexts else None, case.seed)
    looks = box.sample(_NUM_LOOKS, seed=case.seed)
    limit = float(outcome(looks).quantile(0.3))
    options = {}
    domain, seeds = box, looks[outcome(looks).argmax()].unsqueeze(0)
    contexts: list[list[float]] = []
    if with_contexts:
        actions, offered = looks[:_NUM_ACTIONS, :1], looks[:_NUM_CONTEXTS, 1]
        joint = torch.cartesian_prod(actions[:, 0], offered).view(_NUM_ACTIONS, _NUM_CONTEXTS, 2)
        looks = joint.reshape(-1, 2)
        outcomes = outcome(looks).view(_NUM_ACTIONS, _NUM_CONTEXTS)
        safest = joint[outcomes.argmax(dim=0), torch.arange(_NUM_CONTEXTS)]
        can_be_safe = outcomes.amax(dim=0) >= limit
        domain, seeds = bx.FiniteSet(actions), safest[can_be_safe]
        contexts = [[z] for z in offered[can_be_safe].tolist()]
        options["context_domain"] = 1
    model = bx.KernelGP(kernel, noise_variance=LAM)
    strategy = bx.algorithms.safe_exploration(
        domain,
        model,
        outcome_models={"outcome": model},
        thresholds={"outcome": f">= {limit!r}"},
        safe_seed=seeds,
        rkhs_bound=B,
        noise_std=SIGMA,
        delta=DELTA,
        bounds=case.method,  # pyright: ignore[reportArgumentType]
        **options,
    )
    generator = torch.Generator().manual_seed(case.seed)
    row: Row = {"unsafe": None, "falsely": False}
    for t in range(case.horizon):
        context = contexts[t % len(contexts)] if contexts else None
        trial = strategy.ask(context=context)
        noise = (SIGMA * torch.randn(2, generator=generator, dtype=torch.float64)).tolist()
        found, measured = (float(each(trial.point)) for each in (value, outcome))
        if row["unsafe"] is None and measured < limit and not _is_in(trial.point, seeds):
            row["unsafe"] = t + 1
        strategy.tell(trial, found + noise[0], {"outcome": measured + noise[1]})
    if contexts:
        looks = looks[looks[:, 1] == contexts[0][0]]
    slack, safe = strategy.slack(looks[:, : domain.dim], *contexts[:1]), outcome(looks) >= limit
    certified = slack > 0
    return row | {
        "falsely": bool((certified & ~safe & slack.isfinite()).any()),
        "refuted": strategy.report()["refuted_at"],
        "share": float((certified & safe).sum() / safe.sum()),
    }


def _is_in(x: Tensor, points: Tensor) -> bool:
    return bool((points == x).all(dim=-1).any())
