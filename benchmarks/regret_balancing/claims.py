"""Claims about regret balancing, checked on the rows of the runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.common.repeated_runs import column, standard_error
from benchmarks.common.tables import Row
from benchmarks.regret_balancing.runs import BALANCING, NAMES

# What a master may lose, in multiples of the regret of EC-GP-UCB that knows eps.
_FACTOR = 3.0


def claim_rows(rows: Sequence[Row]) -> list[Row]:
    """What is claimed, what was measured, and whether it holds."""
    generic, locked = (of_problem(rows, problem) for problem in ("generic", "lock-out"))
    published = [row for row in rows if row["method"] == "published"]
    counts = sorted({len(row["told"].split()) for row in published})
    gone = sum(bool(row["eliminated"]) for row in published)
    claims = [
        (
            "published constants: no base is ever eliminated",
            f"in {gone} of {len(published)} runs; {' to '.join(map(str, counts))} "
            f"base{'s' if counts[-1] > 1 else ''}",
            gone == 0,
        ),
    ]
    for method in BALANCING[1:]:
        failing = [cell for cell in cells_of(generic) if ratio_of(generic, method, *cell) > _FACTOR]
        listed = ", ".join(
            f"d = {dim}, eps = {eps:g}: {ratio_of(generic, method, dim, eps):.1f}"
            for dim, eps in failing
        )
        most = max(ratio_of(generic, method, *cell) for cell in cells_of(generic))
        claims.append(
            (
                f"{NAMES[method]}: at most {_FACTOR:g} times the regret of EC-GP-UCB that knows "
                f"eps, in {len(cells_of(generic))} cells of d and eps",
                f"fails in {len(failing)}: {listed}" if failing else f"at most {most:.1f} times",
                not failing,
            )
        )
        ratio = locked_ratio(locked, method)
        claims.append(
            (f"{NAMES[method]}: the same on the lock-out", f"{ratio:.1f} times", ratio <= _FACTOR)
        )
    wrong = [row for row in locked if row["method"] == "with_zero"]
    right = sum(told_to_eliminated(row) == [0.0] for row in wrong)
    claims.append(
        (
            "lock-out: of five bases the one told 0, which is locked out, goes, and no other",
            f"in {right} of {len(wrong)} runs",
            right == len(wrong),
        )
    )
    growth = [
        (dim, statistics.fmean(found), standard_error(found))
        for dim in dims_of(generic)
        for found in [slopes(generic, "ec_gp_ucb", dim)]
    ]
    claims.append(
        (
            "the regret per step of EC-GP-UCB that is told eps grows with eps (slope above two "
            "standard errors)",
            ", ".join(f"{slope:.2f} ± {error:.2f} (d = {dim})" for dim, slope, error in growth),
            all(slope > 2 * error for _, slope, error in growth),
        )
    )
    same = all(
        regret_of(generic, "gp_ucb", dim, 0.0) == regret_of(generic, "ec_gp_ucb", dim, 0.0)
        for dim in dims_of(generic)
    )
    claims.append(
        ("told eps = 0, EC-GP-UCB is GP-UCB", "equal regret" if same else "not equal", same)
    )
    return [{"claim": claim, "measured": found, "holds": holds} for claim, found, holds in claims]


def slopes(rows: Sequence[Row], method: str, dim: int) -> list[float]:
    """The growth of the regret per step with eps, of each instance."""
    levels = sorted({row["misspecification"] for row in rows if row["dim"] == dim})
    instances = zip(*(regret_of(rows, method, dim, eps) for eps in levels), strict=True)
    return [statistics.linear_regression(levels, regret).slope for regret in instances]


def of_problem(rows: Sequence[Row], problem: str) -> list[Row]:
    """The rows of one problem."""
    return [row for row in rows if row["problem"] == problem]


def dims_of(rows: Sequence[Row]) -> list[int]:
    """The dimensions that were played."""
    return sorted({row["dim"] for row in rows})


def cells_of(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """The pairs of dimension and eps that were played."""
    return sorted({(row["dim"], row["misspecification"]) for row in rows})


def where(dim: int, eps: float) -> dict[str, Any]:
    """The columns of a cell."""
    return {"dim": dim, "misspecification": eps}


def regret_of(rows: Sequence[Row], method: str, dim: int, eps: float) -> list[float]:
    """Regret per step of a method in a cell, of each run."""
    return column(rows, "regret_per_step", method=method, **where(dim, eps))


def ratio_of(rows: Sequence[Row], method: str, dim: int, eps: float) -> float:
    """Mean regret of a method in a cell, as a multiple of that of EC-GP-UCB that is told eps."""
    ours, told = (regret_of(rows, name, dim, eps) for name in (method, "ec_gp_ucb"))
    return statistics.fmean(ours) / statistics.fmean(told)


def locked_ratio(rows: Sequence[Row], method: str) -> float:
    """The same on the lock-out instance."""
    ours, told = (column(rows, "cumulative_regret", method=name) for name in (method, "ec_gp_ucb"))
    return statistics.fmean(ours) / statistics.fmean(told)


def numbers(cell: str) -> list[float]:
    """The numbers in a cell of the table."""
    return [float(number) for number in cell.split()]


def told_to_eliminated(row: Row) -> list[float]:
    """What the bases were told that were eliminated in a run."""
    told = numbers(row["told"])
    return [told[int(pair.split(":")[0])] for pair in row["eliminated"].split()]
