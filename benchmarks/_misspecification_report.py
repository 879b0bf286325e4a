"""The tables and the picture of experiment M."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from benchmarks._harness import Row, markdown_table
from botorch_ext.plotting import PALETTE, plot_regret

EPSILONS = (0.0, 0.05, 0.1, 0.2)
NAMES = {"gp_ucb": "GP-UCB", "ec_gp_ucb": "EC-GP-UCB"}
# Regret of the lock-out instance in independent runs, before this benchmark was written.
_BEFOREHAND = {"gp_ucb": 218, "ec_gp_ucb": 16}


def report(locked: list[Row], generic: list[Row]) -> str:
    """The Markdown text: the claims, then the numbers they rest on.

    Args:
        locked: A row for each run on the lock-out instance.
        generic: A row for each run on a generic perturbation.

    Returns:
        The text.
    """
    parts = [
        "# Misspecification: GP-UCB and EC-GP-UCB",
        "Theoretical widths everywhere. ± is one standard error.",
        markdown_table(_claims(locked, generic)),
        "## Lock-out: three arms, made to defeat GP-UCB",
        markdown_table([_lock_out_row(locked, method) for method in NAMES]),
        "## Generic perturbations: regret per step",
        "Functions of norm 2 with an RBF kernel, plus fast cosines or a dent at the maximiser of "
        "size eps; EC-GP-UCB is told eps. *Uniform* is what random play loses.",
        markdown_table(
            [_generic_row(generic, dim, eps) for dim in _dims(generic) for eps in EPSILONS]
        ),
        "Growth of the regret per step with eps (least squares):",
        markdown_table([_slope_row(generic, dim) for dim in _dims(generic)]),
        "## The price of caution: the model is right, EC-GP-UCB is told eps all the same",
        markdown_table([_price_row(generic, dim) for dim in _dims(generic)]),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _claims(locked: list[Row], generic: list[Row]) -> list[Row]:
    plays = {
        method: [row["best_arm_played"] for row in locked if row["method"] == method]
        for method in NAMES
    }
    regrets = {method: _of(locked, "cumulative_regret", method=method) for method in NAMES}
    never = max(plays["gp_ucb"]) == 0
    always = min(plays["ec_gp_ucb"]) > locked[0]["horizon"] / 2
    as_before = all(
        abs(statistics.fmean(regrets[method]) - before) < 1
        for method, before in _BEFOREHAND.items()
    )
    cells = [(dim, eps) for dim in _dims(generic) for eps in EPSILONS[1:]]
    won = [_ratio(generic, dim, eps) > 1 for dim, eps in cells]
    same = all(
        _of(generic, "cumulative_regret", method="gp_ucb", dim=dim, misspecification=0.0)
        == _enlarged(generic, dim, 0.0, 0.0, "cumulative_regret")
        for dim in _dims(generic)
    )
    claims = [
        (
            "lock-out: GP-UCB never plays the best arm",
            f"at most {max(plays['gp_ucb'])} times",
            never,
        ),
        (
            "lock-out: EC-GP-UCB finds it and stays there",
            f"played {min(plays['ec_gp_ucb'])} times of {locked[0]['horizon']} at least",
            always,
        ),
        (
            "lock-out: regret 218 and 16 in independent runs",
            " and ".join(f"{statistics.fmean(values):.1f}" for values in regrets.values()),
            as_before,
        ),
        (
            "generic perturbations: GP-UCB is the better method",
            f"in {sum(won)} of {len(cells)} cells of d and eps > 0",
            all(won),
        ),
        (
            "told eps = 0, EC-GP-UCB is GP-UCB",
            "equal regret in every run" if same else "not equal",
            same,
        ),
    ]
    return [{"claim": claim, "measured": found, "holds": holds} for claim, found, holds in claims]


def _lock_out_row(rows: list[Row], method: str) -> Row:
    regret = _of(rows, "cumulative_regret", method=method)
    plays = _of(rows, "best_arm_played", method=method)
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
    plain = _of(rows, method="gp_ucb", dim=dim, misspecification=epsilon)
    enlarged = _enlarged(rows, dim, epsilon, epsilon)
    better = sum(a < b for a, b in zip(plain, enlarged, strict=True))
    uniform = _of(
        rows, "uniform_regret_per_step", method="gp_ucb", dim=dim, misspecification=epsilon
    )
    return {
        "d": dim,
        "eps": epsilon,
        "GP-UCB": _mean_and_error(plain),
        "EC-GP-UCB": _mean_and_error(enlarged),
        "EC-GP-UCB / GP-UCB": _ratio(rows, dim, epsilon),
        "GP-UCB better": f"{better} of {len(plain)}",
        "uniform": f"{statistics.fmean(uniform):.2f}",
    }


def _price_row(rows: list[Row], dim: int) -> Row:
    told = {f"told {eps:g}": _mean_and_error(_enlarged(rows, dim, 0.0, eps)) for eps in EPSILONS}
    return {"d": dim} | told


def _slope_row(rows: list[Row], dim: int) -> Row:
    row: Row = {"d": dim}
    for method, name in NAMES.items():
        row[name] = statistics.linear_regression(EPSILONS, _means(rows, method, dim)).slope
    return row


def _ratio(rows: list[Row], dim: int, epsilon: float) -> float:
    plain = _of(rows, method="gp_ucb", dim=dim, misspecification=epsilon)
    return statistics.fmean(_enlarged(rows, dim, epsilon, epsilon)) / statistics.fmean(plain)


def _means(rows: list[Row], method: str, dim: int) -> list[float]:
    """The mean regret per step at each eps; EC-GP-UCB is told it."""
    if method == "gp_ucb":
        cells = [_of(rows, method=method, dim=dim, misspecification=eps) for eps in EPSILONS]
    else:
        cells = [_enlarged(rows, dim, eps, eps) for eps in EPSILONS]
    return [statistics.fmean(cell) for cell in cells]


def _enlarged(
    rows: list[Row], dim: int, epsilon: float, told: float, column: str = "regret_per_step"
) -> list[float]:
    return _of(rows, column, method="ec_gp_ucb", dim=dim, misspecification=epsilon, told=told)


def _of(rows: list[Row], column: str = "regret_per_step", **where: Any) -> list[float]:
    """One column of the rows whose other columns have these values, in the order of the seeds."""
    kept = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return [row[column] for row in sorted(kept, key=lambda row: row["seed"])]


def _dims(rows: list[Row]) -> list[int]:
    return sorted({row["dim"] for row in rows})


def _mean_and_error(values: list[float]) -> str:
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.fmean(values):.3f} ± {error:.3f}"


def draw(curves: dict[str, list[list[float]]], generic: list[Row], path: Path) -> None:
    """Draws two panels: the lock-out instance, and the regret per step against eps.

    Args:
        curves: For each method its regret per step on the lock-out instance, ``seeds x T``.
        generic: A row for each run on a generic perturbation.
        path: The PNG file.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.4), layout="constrained")
    plot_regret(curves, left)
    left.set_title("Lock-out instance")

    def plain(dim: int, eps: float) -> list[float]:
        return _of(generic, method="gp_ucb", dim=dim, misspecification=eps)

    lines = {
        "GP-UCB": plain,
        "EC-GP-UCB, told eps": lambda dim, eps: _enlarged(generic, dim, eps, eps),
        "EC-GP-UCB, told eps\nwhile the truth is 0": lambda dim, eps: _enlarged(
            generic, dim, 0.0, eps
        ),
    }
    styles: list[Any] = ["-", "--", ":", "-."]
    markers, dims = "os^D", _dims(generic)
    for color, values in zip(PALETTE, lines.values(), strict=False):
        for dim, style, marker in zip(dims, styles, markers, strict=False):
            cells = [values(dim, eps) for eps in EPSILONS]
            means = [statistics.fmean(cell) for cell in cells]
            errors = [statistics.stdev(cell) / math.sqrt(len(cell)) for cell in cells]
            look = {"color": color, "linestyle": style, "marker": marker}
            right.errorbar(EPSILONS, means, errors, capsize=2, **look)
    handles = [
        Line2D([], [], color=color, label=name) for color, name in zip(PALETTE, lines, strict=False)
    ]
    handles += [
        Line2D([], [], color="black", linestyle=style, marker=marker, label=f"d = {dim}")
        for dim, style, marker in zip(dims, styles, markers, strict=False)
    ]
    right.legend(handles=handles, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    num_instances = len(plain(dims[0], 0.0))
    right.set_xlabel("misspecification eps")
    right.set_ylabel(f"regret per step\n(mean ± standard error, {num_instances} instances)")
    right.set_title("Generic perturbations")
    right.set_xticks(EPSILONS)
    right.set_ylim(bottom=0)
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)
