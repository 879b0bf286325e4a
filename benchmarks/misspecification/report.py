"""Report on misspecification: its claims and tables."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from benchmarks.common.repeated_runs import column, mean_and_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.misspecification.runs import EPSILONS, NAMES

# Regret of the lock-out instance in independent runs, before this benchmark was written.
_BEFOREHAND = {"gp_ucb": 218, "ec_gp_ucb": 16, "phased": 4}


def report(locked: list[Row], generic: list[Row]) -> str:
    """The Markdown text: the claims, then the numbers they rest on.

    Args:
        locked: A row for each run on the lock-out instance.
        generic: A row for each run on a generic perturbation.

    Returns:
        The text.
    """
    parts = [
        "# Misspecification: GP-UCB, EC-GP-UCB and Phased GP Uncertainty Sampling",
        "The methods of Bogunovic and Krause 2021, *Misspecified Gaussian Process Bandit "
        "Optimization*, beside GP-UCB.",
        "Theoretical widths everywhere. EC-GP-UCB is told eps, the other two are not. ± is one "
        "standard error.",
        markdown_table(_claims(locked, generic)),
        "## Lock-out: three arms, made to defeat GP-UCB",
        markdown_table([_lock_out_row(locked, method) for method in NAMES]),
        "Phased sampling takes one of two courses, by which of two equally uncertain arms it asks "
        "first; over 200 seeds each about as often.",
        "## Generic perturbations: regret per step",
        "Functions of norm 2 with an RBF kernel, plus fast cosines or a dent at the maximiser of "
        "size eps. *Uniform* is what random play loses.",
        markdown_table(
            [_generic_row(generic, dim, eps) for dim in dims_of(generic) for eps in EPSILONS]
        ),
        "Phased sampling cannot cost more than asking everywhere does. Where its regret is that of "
        "random play (d = 4) it has eliminated next to nothing within the horizon, and the ratio "
        "is limited by how little GP-UCB has learnt.",
        "Growth of the regret per step with eps (least squares):",
        markdown_table([_slope_row(generic, dim) for dim in dims_of(generic)]),
        "## The price of caution: the model is right, EC-GP-UCB is told eps all the same",
        markdown_table([_price_row(generic, dim) for dim in dims_of(generic)]),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _claims(locked: list[Row], generic: list[Row]) -> list[Row]:
    plays = {method: column(locked, "best_arm_played", method=method) for method in NAMES}
    regrets = {method: column(locked, "cumulative_regret", method=method) for method in NAMES}
    least, most = min(plays["ec_gp_ucb"]), locked[0]["horizon"] / 2
    found = min(plays["phased"])
    as_before = all(
        abs(statistics.fmean(regrets[method]) - _BEFOREHAND[method]) < 1
        for method in ("gp_ucb", "ec_gp_ucb")
    )
    # Which of two equally uncertain arms is asked first decides between two courses.
    courses = Counter(f"{regret:.1f}" for regret in regrets["phased"])
    cells = [(dim, eps) for dim in dims_of(generic) for eps in EPSILONS[1:]]
    same = all(
        regret_of(generic, "gp_ucb", dim, 0.0) == regret_of(generic, "ec_gp_ucb", dim, 0.0)
        for dim in dims_of(generic)
    )
    price = {dim: _ratio(generic, "phased", dim, 0.0) for dim in dims_of(generic)}
    claims = [
        (
            "lock-out: GP-UCB never plays the best arm",
            f"at most {max(plays['gp_ucb'])} times",
            max(plays["gp_ucb"]) == 0,
        ),
        (
            "lock-out: EC-GP-UCB finds it and stays there",
            f"played {least} times of {locked[0]['horizon']} at least",
            least > most,
        ),
        (
            "lock-out: phased sampling finds it and stays there",
            f"played {found} times of {locked[0]['horizon']} at least",
            found > most,
        ),
        (
            "lock-out: regret 218 and 16 in independent runs",
            ", ".join(
                f"{statistics.fmean(regrets[method]):.1f}" for method in ("gp_ucb", "ec_gp_ucb")
            ),
            as_before,
        ),
        (
            "lock-out: phased sampling, regret 4 in independent runs (at most 5; ties decide)",
            ", ".join(
                f"{regret} ({count} of {len(regrets['phased'])} seeds)"
                for regret, count in sorted(courses.items())
            ),
            max(regrets["phased"]) <= 5,
        ),
        *(
            (
                f"generic perturbations: GP-UCB is better than {NAMES[method]}",
                f"in {sum(_ratio(generic, method, *cell) > 1 for cell in cells)} of {len(cells)} "
                "cells of d and eps > 0",
                all(_ratio(generic, method, *cell) > 1 for cell in cells),
            )
            for method in ("ec_gp_ucb", "phased")
        ),
        (
            "eps = 0: phased sampling pays several times GP-UCB's regret (twice or more)",
            ", ".join(f"{ratio:.1f} (d = {dim})" for dim, ratio in price.items()),
            min(price.values()) >= 2,
        ),
        (
            "told eps = 0, EC-GP-UCB is GP-UCB",
            "equal regret in every run" if same else "not equal",
            same,
        ),
    ]
    return [{"claim": claim, "measured": found, "holds": holds} for claim, found, holds in claims]


def _lock_out_row(rows: list[Row], method: str) -> Row:
    regret = column(rows, "cumulative_regret", method=method)
    plays = column(rows, "best_arm_played", method=method)
    return {
        "method": NAMES[method],
        "seeds": len(regret),
        "T": rows[0]["horizon"],
        "cumulative regret, mean": f"{statistics.fmean(regret):.2f}",
        "sd": f"{statistics.stdev(regret):.2f}",
        "best arm played, mean": statistics.fmean(plays),
        "in independent runs": _BEFOREHAND[method],
    }


def _generic_row(rows: list[Row], dim: int, epsilon: float) -> Row:
    cells = {method: regret_of(rows, method, dim, epsilon) for method in NAMES}
    row: Row = {"d": dim, "eps": epsilon}
    row |= {NAMES[method]: mean_and_error(cell) for method, cell in cells.items()}
    for method in ("ec_gp_ucb", "phased"):
        better = sum(a < b for a, b in zip(cells["gp_ucb"], cells[method], strict=True))
        ratio = _ratio(rows, method, dim, epsilon)
        name = NAMES[method].split()[0]
        row[f"{name} / GP-UCB (GP-UCB better)"] = f"{ratio:.2f} ({better} of {len(cells[method])})"
    where: dict[str, Any] = {"method": "gp_ucb", "dim": dim, "misspecification": epsilon}
    uniform = column(rows, "uniform_regret_per_step", **where)
    return row | {"uniform": f"{statistics.fmean(uniform):.2f}"}


def _price_row(rows: list[Row], dim: int) -> Row:
    told = {f"told {eps:g}": mean_and_error(cautious(rows, dim, eps)) for eps in EPSILONS}
    return (
        {"d": dim} | told | {NAMES["phased"]: mean_and_error(regret_of(rows, "phased", dim, 0.0))}
    )


def _slope_row(rows: list[Row], dim: int) -> Row:
    row: Row = {"d": dim}
    for method, name in NAMES.items():
        means = [statistics.fmean(regret_of(rows, method, dim, eps)) for eps in EPSILONS]
        row[name] = statistics.linear_regression(EPSILONS, means).slope
    return row


def _ratio(rows: list[Row], method: str, dim: int, epsilon: float) -> float:
    ours, plain = (regret_of(rows, name, dim, epsilon) for name in (method, "gp_ucb"))
    return statistics.fmean(ours) / statistics.fmean(plain)


def regret_of(rows: list[Row], method: str, dim: int, epsilon: float) -> list[float]:
    """Regret per step of the runs of one cell; EC-GP-UCB is told eps."""
    told = epsilon if method == "ec_gp_ucb" else 0.0
    where: dict[str, Any] = {"dim": dim, "misspecification": epsilon, "told": told}
    return column(rows, "regret_per_step", method=method, **where)


def cautious(rows: list[Row], dim: int, told: float) -> list[float]:
    """Regret per step of EC-GP-UCB told eps while the truth is 0."""
    where: dict[str, Any] = {"dim": dim, "misspecification": 0.0, "told": told}
    return column(rows, "regret_per_step", method="ec_gp_ucb", **where)


def dims_of(rows: list[Row]) -> list[int]:
    """The dimensions that were played."""
    return sorted({row["dim"] for row in rows})
