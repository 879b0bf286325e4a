"""Report on unknown hyperparameters: its tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.common.repeated_runs import column, difference, is_less, mean_and_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.unknown_hyperparameters.claims import claim_rows, select
from benchmarks.unknown_hyperparameters.experiments import (
    DELTA,
    EXPECTED,
    EXPERIMENTS,
    HE,
    METHODS,
    MLE,
    NORM_OF_C,
)
from benchmarks.unknown_hyperparameters.norms import CLOSE, needed_norms
from benchmarks.unknown_hyperparameters.robust import robust_claim_rows, robust_rows

# With different functions or models.
_WITH_NORMS = ("a", "a, wide", "b", "b, shared")


def report(rows: Sequence[Row], robust: Sequence[Row]) -> str:
    """The Markdown text: the claims, then the numbers they rest on.

    Args:
        rows: A row for each run.
        robust: A row for each run on the robust problem.

    Returns:
        The text.
    """
    names = [name for name in EXPERIMENTS if any(row["experiment"] == name for row in rows)]
    parts = [
        "# Unknown hyperparameters: HE-GP-UCB and its rivals",
        "The four experiments of Ziomek, Adachi and Osborne 2024, *Beyond Lengthscales: No-regret "
        "Bayesian Optimisation With Unknown Hyperparameters Of Any Type*, section 7 and appendix "
        "J, and a robust problem.",
        _SETTING.format(delta=DELTA),
        "## Does eliminating beat maximum likelihood?",
        _DUEL,
        markdown_table(
            [_duel_row(rows, name, width) for name in names for width in EXPERIMENTS[name].widths]
        ),
        "## What figure 2 of Ziomek et al. claims",
        _CLAIMS,
    ]
    for name in names:
        parts += [f"### {_heading(rows, name)}", markdown_table(claim_rows(rows, name))]
    parts += ["## Regret", _REGRET]
    for name in names:
        methods = [method for method in METHODS if method in EXPERIMENTS[name].methods]
        parts += [
            f"### {_heading(rows, name)}",
            markdown_table(
                [_regret_row(rows, name, method, "cumulative_regret") for method in methods]
            ),
            "Best regret:",
            markdown_table([_regret_row(rows, name, method, "best_regret") for method in methods]),
        ]
    parts += [
        "## What HE-GP-UCB rejects",
        _REJECTIONS.format(delta=DELTA),
        markdown_table(
            [
                _rejection_row(rows, name, width)
                for name in names
                for width in EXPERIMENTS[name].widths
            ]
        ),
        "## Which bounds are honest",
        _NORMS.format(norm=NORM_OF_C),
        markdown_table([row for name in _WITH_NORMS for row in _norm_rows(name)]),
        "## Robust: a high narrow peak beside a lower wide one",
        _ROBUST,
        markdown_table(robust_claim_rows(robust)),
        markdown_table(robust_rows(robust)),
        "## Time",
        _time(rows),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


_SETTING = (
    "Mean ± one standard error over the seeds. Cumulative regret counts the T steps after the "
    "initial points, best regret those as well; initial points are uniform, i.i.d. and, with their "
    "noise, the same for all methods. delta = {delta}; noise of sd 0.05 unless another one is "
    "named; the models' noise variance is its square. *Theory* is the width of HE-GP-UCB, "
    "`SelfNormalized` with delta/2, for all methods; A-GP-UCB's has the bound B l_0 / l. "
    "LB-GP-UCB has candidates of its own, lengthscales exp(-i), i = 0, 1, ...; it suspects regret "
    "bounds with B = 1, whatever the width. "
    "*Bayesian* is `BayesFinite` with delta/2. In (c) and (d) the rows of the grid and the order "
    "of the candidate models are shuffled for each seed, so that ties are broken at random. The "
    "function of (c) and the heights of (d) are ours, as the paper shows pictures without numbers. "
    "In (b) each candidate has the period and the lengthscale of its fit; with *one lengthscale* "
    "all have that of the whole signal and differ in the period alone: the paper does not say."
)
_DUEL = (
    "Cumulative regret at the end, paired differences: better and worse by more than two standard "
    "errors, or neither."
)
_CLAIMS = (
    "One method has less than another: by more than two standard errors of the paired difference, "
    "which is in brackets. Fixed before anything was run."
)
_REGRET = "Cumulative regret at the end, for each width."
_REJECTIONS = (
    "With a valid width the true model goes in at most a share delta = {delta} of the runs. In (a) "
    "no candidate is true unless the peak is wide. Steps count from the first after the initial "
    "points; *all* says in how many runs even the last model was refuted, which stays."
)
_NORMS = (
    "The norm of a function in the RKHS of a candidate that is as close to f as the column says, "
    "everywhere on the grid: by ridge regression, an upper bound on the least such norm. A width "
    "with that B is valid up to a misspecification so large. In (c) the norm of f in the RKHS of "
    "the true model is {norm}, rounded up. *None*: no ridge above 1e-12 comes so close."
)
_ROBUST = (
    "Points are moved by up to 0.1 before they count. The maximum is on the narrow peak, the "
    "stable optimum at the centre of the wide one. Candidates of HE-StableOpt: lengthscales 0.4, "
    "0.2, 0.1 and 0.05 (true, the only one whose RKHS holds the narrow peak); StableOpt and GP-UCB "
    "know it. *Theory* has the norm of f, rounded up to one digit; delta/2 in HE-StableOpt, delta "
    "in the others. Around the wide peak: within 0.2 of its centre; on the narrow one: within "
    "0.1. The first table says where each "
    "method ends, the second what it pays in the worst case."
)


def _heading(rows: Sequence[Row], name: str) -> str:
    cell = select(rows, name, EXPERIMENTS[name].widths[0])
    seeds = len({row["seed"] for row in cell})
    return f"{EXPERIMENTS[name].title}: T = {cell[0]['horizon']}, {seeds} seeds"


def _duel_row(rows: Sequence[Row], name: str, width: str) -> Row:
    cell = select(rows, name, width)
    row: Row = {"experiment": EXPERIMENTS[name].title, "width": width}
    for other in (MLE, EXPECTED):
        mean, error = difference(cell, "cumulative_regret", HE, other)
        if is_less(cell, "cumulative_regret", HE, other):
            verdict = "better"
        elif is_less(cell, "cumulative_regret", other, HE):
            verdict = "**worse**"
        else:
            verdict = "neither"
        theirs = statistics.fmean(column(cell, "cumulative_regret", method=other))
        row[f"{HE} against {other}"] = f"{verdict}: {mean:+.3g} ± {error:.2g} of {theirs:.3g}"
    return row


def _regret_row(rows: Sequence[Row], name: str, method: str, score: str) -> Row:
    row: Row = {"method": method}
    for width in EXPERIMENTS[name].widths:
        row[width] = mean_and_error(column(select(rows, name, width), score, method=method))
    return row


def _rejection_row(rows: Sequence[Row], name: str, width: str) -> Row:
    cell = [row for row in select(rows, name, width) if row["method"] == HE]
    problem = EXPERIMENTS[name].problem(cell[0]["seed"])
    true = [row["true_model_rejected"] for row in cell if row["true_model_rejected"] != ""]
    wrong = len(problem.names) - (problem.true_model is not None)
    steps = [row["first_rejection"] for row in cell if row["first_rejection"] != ""]
    return {
        "experiment": EXPERIMENTS[name].title,
        "width": width,
        "true model rejected": f"{sum(true)} of {len(true)}" if true else "none is true",
        "wrong models rejected": (
            f"{statistics.fmean(row['wrong_models_rejected'] for row in cell):.1f} of {wrong}"
        ),
        "first rejection, median step": f"{statistics.median(steps):.0f}" if steps else "never",
        "runs with one": f"{len(steps)} of {len(cell)}",
        "all": f"{sum(row['all_rejected'] for row in cell)} of {len(cell)}",
    }


def _norm_rows(name: str) -> list[Row]:
    problem = EXPERIMENTS[name].problem(0)
    table = []
    for i, norms in enumerate(needed_norms(problem)):
        model = problem.names[i] + (" (true)" if i == problem.true_model else "")
        row: Row = {"experiment": EXPERIMENTS[name].title, "model": model}
        for close, norm in zip(CLOSE, norms, strict=True):
            row[f"within {close:g}"] = "none" if math.isinf(norm) else f"{norm:.3g}"
        table.append(row)
    return table


def _time(rows: Sequence[Row]) -> str:
    cell = select(rows, "a", EXPERIMENTS["a"].widths[0])
    seconds = sum(row["seconds"] for row in cell)
    by_method = ", ".join(
        f"{method} {sum(column(cell, 'seconds', method=method)):.1f}"
        for method in EXPERIMENTS["a"].methods
    )
    seeds = len({row["seed"] for row in cell})
    return (
        f"Experiment (a) with the first width, {len(by_method.split(','))} methods, {seeds} seeds "
        f"of {cell[0]['horizon']} steps on a grid of 500 points: **{seconds:.1f} s** on one thread "
        f"(the times of runs, or their shares of the time of all seeds together, added up: "
        f"{by_method})."
    )
