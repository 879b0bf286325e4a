"""Robust problem: a high narrow peak beside a lower wide one."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.kernels import rbf
from benchmarks.common.repeated_runs import column, mean_and_error
from benchmarks.common.tables import Row
from benchmarks.unknown_hyperparameters.runs import DELTA
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.problems import TwoPeaks

STABLE, HE_STABLE, GP = "StableOpt", "HE-StableOpt", "GP-UCB"
ROBUST_METHODS = (HE_STABLE, STABLE, GP)
ROBUST_WIDTHS = ("constant 3", "theory")
# How many uniform points come first, and over how many last steps "in the end" is taken.
_NUM_INITIAL, _LAST = 3, 10
_SIDE = 40


def make(name: str) -> TwoPeaks:
    """The problem on a line of 500 points, a square of 40 x 40 points, or a box."""
    axis = torch.linspace(0, 1, _SIDE, dtype=torch.float64)
    domains: Mapping[str, bx.Domain | None] = {
        "line": None,
        "square": bx.FiniteSet(torch.cartesian_prod(axis, axis)),
        "box": bx.Box([[0.0], [1.0]]),
    }
    return TwoPeaks(domains[name])


@dataclass(frozen=True)
class RobustCase:
    """One run.

    Args:
        problem: "line", "square" or "box".
        width: One of `ROBUST_WIDTHS`.
        method: One of `ROBUST_METHODS`.
        seed: Of noise and initial points.
        horizon: T, after the initial points.
    """

    problem: str
    width: str
    method: str
    seed: int
    horizon: int


def run_robust(case: RobustCase) -> Row:
    """Plays one method.

    Returns:
        The case, its scores, and two lists that are no columns of a table: ``curve``, the stable
        regret of each step, and ``centers``, the ``T x d`` points that were chosen (where points
        are moved, before the move).
    """
    problem = make(case.problem)
    rng = np.random.default_rng([case.seed, 0])
    if isinstance(problem.domain, bx.FiniteSet):
        points = problem.domain.points
        X = points[torch.from_numpy(rng.integers(len(points), size=_NUM_INITIAL))]
    else:
        X = problem.domain.from_unit(torch.from_numpy(rng.random((_NUM_INITIAL, 1))))
    Y = problem(X) + problem.noise_std * torch.from_numpy(rng.standard_normal(_NUM_INITIAL))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AllModelsRejectedWarning)
        strategy = _strategy(case, problem, (X, Y))
        trace = bx.simulate(strategy, problem, case.horizon, seed=case.seed)
    centers = trace.X
    if case.method != GP:
        centers = torch.tensor(
            [trial.info["center"] for trial in strategy.history.trials], dtype=torch.float64
        )
    regret = problem.robust_regret(centers)
    row: Row = {name: getattr(case, name) for name in RobustCase.__annotations__}
    row |= {
        "stable_regret": float(regret.sum()),
        "last_stable_regret": float(regret[-_LAST:].mean()),
        "last_on_narrow_peak": _near(centers, problem, 0),
        "last_on_wide_peak": _near(centers, problem, 1),
        "true_model_rejected": "",
        "wrong_models_rejected": "",
        "seconds": round(trace.seconds, 3),
    }
    if case.method == HE_STABLE:
        models = strategy.report()["models"]
        gone = {i for i, model in enumerate(models) if model["status"] == "rejected"}
        row["true_model_rejected"] = problem.true_model in gone
        row["wrong_models_rejected"] = len(gone - {problem.true_model})
    return row | {"curve": regret.tolist(), "centers": centers.tolist()}


def _near(centers: Tensor, problem: TwoPeaks, peak: int) -> float:
    """The share of the last steps within two standard deviations, at most 0.2, of a peak."""
    distance = (centers[-_LAST:] - problem.centers[peak]).norm(dim=-1)
    return float((distance <= min(0.2, 2 * problem.stds[peak])).double().mean())


def _strategy(case: RobustCase, problem: TwoPeaks, initial: tuple[Tensor, Tensor]) -> bx.Strategy:
    true = problem.lengthscales[problem.true_model]
    common: dict[str, Any] = {
        "delta": DELTA,
        "seed": case.seed,
        "initial": initial,
        "noise_std": problem.noise_std,
        "rkhs_bound": math.ceil(10 * problem.rkhs_norm(true)) / 10,
        "width": 3.0 if case.width == "constant 3" else None,
    }
    moved: dict[str, Any] = {"radius": problem.radius, "norm": problem.norm}
    ridge = problem.noise_std**2
    match case.method:
        case "HE-StableOpt":
            # The true model is not the first: equal bounds go to the first.
            order = list(reversed(range(len(problem.names))))
            models = problem.candidates(order=order)
            return bx.algorithms.he_stable_opt(problem.domain, models, **moved, **common)
        case "StableOpt":
            return bx.algorithms.stable_opt(
                problem.domain, rbf(true), noise_variance=ridge, **moved, **common
            )
    return bx.algorithms.gp_ucb(problem.domain, rbf(true), noise_variance=ridge, **common)


def robust_cases(
    horizons: Mapping[str, int], seeds: Mapping[str, int], first_seed: int
) -> Iterator[RobustCase]:
    """All runs.

    Args:
        horizons: T of each problem.
        seeds: How many of each problem.
        first_seed: The first of them.
    """
    for name, horizon in horizons.items():
        for width in ROBUST_WIDTHS:
            for method in ROBUST_METHODS:
                for seed in range(first_seed, first_seed + seeds[name]):
                    yield RobustCase(name, width, method, seed, horizon)


def robust_rows(rows: Sequence[Row]) -> list[Row]:
    """A row of the table for each problem, width and method."""
    table = []
    for name in dict.fromkeys(row["problem"] for row in rows):
        for width in ROBUST_WIDTHS:
            for method in ROBUST_METHODS:
                where: dict[str, Any] = {"problem": name, "width": width, "method": method}
                rejected = column(rows, "true_model_rejected", **where)
                gone = column(rows, "wrong_models_rejected", **where)
                he = method == HE_STABLE
                table.append(
                    where
                    | {
                        "T": rows_of(rows, **where)[0]["horizon"],
                        "stable regret": mean_and_error(column(rows, "stable_regret", **where)),
                        "of the last 10, per step": mean_and_error(
                            column(rows, "last_stable_regret", **where)
                        ),
                        "on the narrow peak": _share(rows, "last_on_narrow_peak", where),
                        "around the wide one": _share(rows, "last_on_wide_peak", where),
                        "true model rejected": f"{sum(rejected)} of {len(rejected)}" if he else "",
                        "wrong ones": f"{statistics.fmean(gone):.1f} of 3" if he else "",
                    }
                )
    return table


def robust_claim_rows(rows: Sequence[Row]) -> list[Row]:
    """Whether each method ends where it should: fixed beforehand, mean over the runs of the share
    of the last steps that is 0.9 at least."""
    claims = [
        ("StableOpt ends around the wide peak", STABLE, "last_on_wide_peak"),
        ("HE-StableOpt ends around the wide peak", HE_STABLE, "last_on_wide_peak"),
        ("GP-UCB ends on the narrow peak", GP, "last_on_narrow_peak"),
    ]
    names = list(dict.fromkeys(row["problem"] for row in rows))
    table = []
    for claim, method, score in claims:
        row: Row = {"claim (nine of ten of the last 10 steps)": claim}
        for name in names:
            for width in ROBUST_WIDTHS:
                found = statistics.fmean(
                    column(rows, score, problem=name, width=width, method=method)
                )
                row[f"{name}, {width}"] = f"{'yes' if found >= 0.9 else '**no**'} ({found:.2f})"
        table.append(row)
    return table


def rows_of(rows: Sequence[Row], **where: Any) -> list[Row]:
    """The rows whose columns have these values."""
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def _share(rows: Sequence[Row], score: str, where: Mapping[str, Any]) -> str:
    return f"{statistics.fmean(column(rows, score, **where)):.0%}"
