"""Report on regret balancing: its tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.common.repeated_runs import column, mean_and_error, standard_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.regret_balancing.runs import BALANCING, NAMES

# What a master may lose, in multiples of the regret of EC-GP-UCB that knows eps.
_FACTOR = 3.0


def report(rows: Sequence[Row]) -> str:
    """The Markdown text: the claims, the numbers they rest on, and what follows for a user.

    Args:
        rows: One for each run.

    Returns:
        The text.
    """
    generic, locked = (_of(rows, problem) for problem in ("generic", "lock-out"))
    cells = _cells(generic)
    parts = [
        "# Regret-bound balancing: nobody is told the misspecification",
        "Algorithm 3 of Bogunovic and Krause 2021, *Misspecified Gaussian Process Bandit "
        "Optimization*, and heuristics after it.",
        "EC-GP-UCB strategies that are told different eps, and a master that plays the one whose "
        "bound says it has lost least. *Published*: the number of bases, their eps and the "
        "constants of the paper. The others are heuristics: bases told 0.4, 0.2, 0.1 and 0.05 with "
        "c1 = c2 = 0.1; the same with constants ten times smaller, also c; and a fifth base told "
        "0, which is GP-UCB. Theoretical widths everywhere. ± is one standard error.",
        "Functions of norm 2 with an RBF kernel, plus fast cosines or a dent at the maximiser of "
        "size eps; at each step 100 new uniform points of [0, 1]^d to choose from. The range of "
        "the rewards is that of f over the box, and on each side the largest eps and six standard "
        "deviations of the Gaussian noise; a reward outside would be refused, none is clipped.",
        markdown_table(_claims(rows)),
        "## Generic perturbations: regret per step",
        "*Uniform* is what random play loses.",
        markdown_table([_regret_row(generic, *cell) for cell in cells]),
        "Growth of the regret per step with eps (least squares, for each instance):",
        markdown_table([_slope_row(generic, dim) for dim in _dims(generic)]),
        "## What the bases did",
        "Of the heuristic with four bases: the share of steps each base played, and what it lost "
        "per step.",
        markdown_table([_bases_row(generic, *cell) for cell in cells]),
        "Who was eliminated: in how many runs, of which true eps, and after how many observations "
        "(median and range). A bound is broken where the base had lost more at the end than its "
        "candidate bound says; who breaks none should stay.",
        markdown_table([_elimination_row(rows, *key) for key in _elimination_keys(rows)]),
        "## Lock-out: three arms, made to defeat GP-UCB",
        "eps = 0.25, all three arms at every step.",
        markdown_table([_lock_out_row(locked, method) for method in NAMES]),
        "## What follows",
        _conclusion(generic, locked),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


# --- claims ---------------------------------------------------------------------------------------


def _claims(rows: Sequence[Row]) -> list[Row]:
    generic, locked = (_of(rows, problem) for problem in ("generic", "lock-out"))
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
        failing = [cell for cell in _cells(generic) if _ratio(generic, method, *cell) > _FACTOR]
        listed = ", ".join(
            f"d = {dim}, eps = {eps:g}: {_ratio(generic, method, dim, eps):.1f}"
            for dim, eps in failing
        )
        most = max(_ratio(generic, method, *cell) for cell in _cells(generic))
        claims.append(
            (
                f"{NAMES[method]}: at most {_FACTOR:g} times the regret of EC-GP-UCB that knows "
                f"eps, in {len(_cells(generic))} cells of d and eps",
                f"fails in {len(failing)}: {listed}" if failing else f"at most {most:.1f} times",
                not failing,
            )
        )
        ratio = _locked_ratio(locked, method)
        claims.append(
            (f"{NAMES[method]}: the same on the lock-out", f"{ratio:.1f} times", ratio <= _FACTOR)
        )
    wrong = [row for row in locked if row["method"] == "with_zero"]
    right = sum(_gone(row) == [0.0] for row in wrong)
    claims.append(
        (
            "lock-out: of five bases the one told 0, which is locked out, goes, and no other",
            f"in {right} of {len(wrong)} runs",
            right == len(wrong),
        )
    )
    growth = [
        (dim, statistics.fmean(found), standard_error(found))
        for dim in _dims(generic)
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
        _regret(generic, "gp_ucb", dim, 0.0) == _regret(generic, "ec_gp_ucb", dim, 0.0)
        for dim in _dims(generic)
    )
    claims.append(
        ("told eps = 0, EC-GP-UCB is GP-UCB", "equal regret" if same else "not equal", same)
    )
    return [{"claim": claim, "measured": found, "holds": holds} for claim, found, holds in claims]


def _conclusion(generic: Sequence[Row], locked: Sequence[Row]) -> str:
    cells = _cells(generic)
    ratios = [_ratio(generic, "heuristic", *cell) for cell in cells]
    plain = [
        statistics.fmean(_regret(generic, "heuristic", *cell))
        / statistics.fmean(_regret(generic, "gp_ucb", *cell))
        for cell in cells
    ]
    bold = [row for row in locked if row["method"] == "bolder"]
    alone, saved = (
        statistics.fmean(column(locked, "cumulative_regret", method=method))
        for method in ("gp_ucb", "with_zero")
    )
    return "\n".join(
        [
            "- With the published constants gamma_T is so large beside sqrt(T) that one base is "
            "all there is, with eps_1 = 1 / sqrt(gamma_T) of the range of the rewards, and its "
            "candidate bound is n: an EC-GP-UCB told an eps that the kernel and the horizon "
            "choose. A user gains nothing from it.",
            f"- With the heuristic constants the regret is {min(ratios):.1f} to {max(ratios):.1f} "
            f"times that of EC-GP-UCB that knows eps, and {min(plain):.1f} to {max(plain):.1f} "
            "times that of GP-UCB. Cautious bases keep what their bounds say, since these allow "
            "what caution costs, and are rightly not eliminated. So all go on playing about "
            "equally often, each learns from its own share of the observations, and the master "
            "loses what its bases lose on average: where the true eps is small, many times what "
            "the best one loses alone.",
            "- Smaller c1 and c2 choose the same bases, since only ratios of bounds count, once "
            "the bounds are below n and while none is eliminated. Bounds so small that they "
            "do not hold can eliminate a base for its caution. On the lock-out: "
            f"{_eliminations(bold)}.",
            "- What it is for is a base that fails: GP-UCB alone loses "
            f"{alone:.0f} on the lock-out, as one of five bases {saved:.0f} in all, since it is "
            "found out. So use `regret_balancing` with `misspecifications` from plausible to "
            "hopeful where a wrong model could hide the best points, you know no eps and actions "
            "change from step to step; else `gp_ucb`, or `ec_gp_ucb` with a cautious eps.",
        ]
    )


# --- rows -----------------------------------------------------------------------------------------


def _regret_row(rows: Sequence[Row], dim: int, eps: float) -> Row:
    row: Row = {"d": dim, "eps": eps}
    row |= {name: mean_and_error(_regret(rows, method, dim, eps)) for method, name in NAMES.items()}
    ratio = _ratio(rows, "heuristic", dim, eps)
    uniform = column(rows, "uniform_regret_per_step", method="gp_ucb", **_where(dim, eps))
    return row | {
        "c1 = c2 = 0.1 / EC-GP-UCB": f"{ratio:.2f}",
        "uniform": f"{statistics.fmean(uniform):.2f}",
    }


def _slope_row(rows: Sequence[Row], dim: int) -> Row:
    return {"d": dim} | {
        name: mean_and_error(slopes(rows, method, dim)) for method, name in NAMES.items()
    }


def slopes(rows: Sequence[Row], method: str, dim: int) -> list[float]:
    """The growth of the regret per step with eps, of each instance."""
    levels = sorted({row["misspecification"] for row in rows if row["dim"] == dim})
    instances = zip(*(_regret(rows, method, dim, eps) for eps in levels), strict=True)
    return [statistics.linear_regression(levels, regret).slope for regret in instances]


def _bases_row(rows: Sequence[Row], dim: int, eps: float) -> Row:
    runs = [row for row in rows if row["method"] == "heuristic" and _at(row, dim, eps)]
    row: Row = {"d": dim, "eps": eps}
    for base, told in enumerate(runs[0]["told"].split()):
        plays = [_numbers(run["plays"])[base] for run in runs]
        regret = [_numbers(run["base_regret"])[base] for run in runs]
        share = sum(plays) / sum(run["horizon"] for run in runs)
        row[f"told {told}"] = f"{share:.0%}, {sum(regret) / max(sum(plays), 1):.3f}"
    return row


def _elimination_keys(rows: Sequence[Row]) -> list[tuple[str, int, str]]:
    problems = dict.fromkeys((row["problem"], row["dim"]) for row in rows)
    return [(*problem, method) for problem in problems for method in BALANCING]


def _elimination_row(rows: Sequence[Row], problem: str, dim: int, method: str) -> Row:
    runs = [
        row for row in rows if (row["problem"], row["dim"], row["method"]) == (problem, dim, method)
    ]
    broken = sum(
        lost > bound
        for run in runs
        for lost, bound in zip(_numbers(run["base_regret"]), _numbers(run["bound"]), strict=True)
    )
    gains = [run["max_information_gain"] for run in runs]
    return {
        "problem": problem if problem == "lock-out" else f"d = {dim}",
        "method": NAMES[method],
        "runs": len(runs),
        "told": ", ".join(_told(runs)),
        "gamma_T": f"{statistics.fmean(gains):.0f}",
        "bounds broken": broken,
        "eliminated": _eliminations(runs),
    }


def _eliminations(runs: Sequence[Row]) -> str:
    gone: dict[float, list[tuple[float, int]]] = {}
    for run in runs:
        for told, step in zip(_gone(run), _steps(run), strict=True):
            gone.setdefault(told, []).append((run["misspecification"], step))
    listed = []
    for told, found in sorted(gone.items(), reverse=True):
        steps = [step for _, step in found]
        levels = ", ".join(f"{eps:g}" for eps in sorted({eps for eps, _ in found}))
        listed.append(
            f"told {told:g} in {len(found)} (eps {levels}), after {statistics.median(steps):.0f} "
            f"({min(steps)} to {max(steps)})"
        )
    return "; ".join(listed) or "none"


def _told(runs: Sequence[Row]) -> list[str]:
    """What each base was told; a range where it depends on the instance."""
    columns = zip(*(_numbers(run["told"]) for run in runs), strict=True)
    return [
        f"{min(levels):g}"
        if min(levels) == max(levels)
        else f"{min(levels):.2f} to {max(levels):.2f}"
        for levels in columns
    ]


def _lock_out_row(rows: Sequence[Row], method: str) -> Row:
    runs = [row for row in rows if row["method"] == method]
    regret = [run["cumulative_regret"] for run in runs]
    gone = sum(bool(run["eliminated"]) for run in runs)
    return {
        "method": NAMES[method],
        "seeds": len(runs),
        "T": runs[0]["horizon"],
        "cumulative regret": f"{statistics.fmean(regret):.1f} ± {standard_error(regret):.1f}",
        "runs with an elimination": gone if method in BALANCING else "-",
    }


# --- columns --------------------------------------------------------------------------------------


def _of(rows: Sequence[Row], problem: str) -> list[Row]:
    return [row for row in rows if row["problem"] == problem]


def _dims(rows: Sequence[Row]) -> list[int]:
    return sorted({row["dim"] for row in rows})


def _cells(rows: Sequence[Row]) -> list[tuple[int, float]]:
    return sorted({(row["dim"], row["misspecification"]) for row in rows})


def _where(dim: int, eps: float) -> dict[str, Any]:
    return {"dim": dim, "misspecification": eps}


def _at(row: Row, dim: int, eps: float) -> bool:
    return row["dim"] == dim and row["misspecification"] == eps


def _regret(rows: Sequence[Row], method: str, dim: int, eps: float) -> list[float]:
    """Per step."""
    return column(rows, "regret_per_step", method=method, **_where(dim, eps))


def _ratio(rows: Sequence[Row], method: str, dim: int, eps: float) -> float:
    ours, told = (_regret(rows, name, dim, eps) for name in (method, "ec_gp_ucb"))
    return statistics.fmean(ours) / statistics.fmean(told)


def _locked_ratio(rows: Sequence[Row], method: str) -> float:
    ours, told = (column(rows, "cumulative_regret", method=name) for name in (method, "ec_gp_ucb"))
    return statistics.fmean(ours) / statistics.fmean(told)


def _numbers(cell: str) -> list[float]:
    return [float(number) for number in cell.split()]


def _gone(row: Row) -> list[float]:
    """What the bases were told that were eliminated in a run."""
    told = _numbers(row["told"])
    return [told[int(pair.split(":")[0])] for pair in row["eliminated"].split()]


def _steps(row: Row) -> list[int]:
    return [int(pair.split(":")[1]) for pair in row["eliminated"].split()]
