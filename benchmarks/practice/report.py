"""Report of the practice benchmark: its tables."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.common.tables import Row, markdown_table
from benchmarks.practice.claims import claim_rows
from benchmarks.practice.costs import cost_ratios, seconds_of
from benchmarks.practice.differences import (
    LEAST_RUNS,
    Pair,
    estimate,
    known_cells,
    paired,
)
from benchmarks.practice.methods import METHODS, OURS, REFERENCE
from benchmarks.practice.problems import TUNED, problems, scale_of
from benchmarks.practice.ranks import log_regrets, means, ranks, scores, shared_seeds
from benchmarks.practice.runs import FIRST_SEED, FLOOR
from benchmarks.practice.settings import ONE_AT_A_TIME, PRIMARY, SETTINGS

_KIND_NAMES = {
    "box": "box argmax of the mean",
    "evaluated": "evaluated point of largest mean",
    "observed": "largest value seen",
    "common": "BoTorch's default model on the data",
}
_DIMS = {"2": (1, 2), "3 to 6": (3, 6), "8 to 10": (7, 10), "20": (11, 20)}


def report(rows: Sequence[Row], missing: int) -> str:
    """The Markdown text.

    Args:
        rows: One for each run there is.
        missing: How many are not there.
    """
    parts = ["# Practice: bounds, noisy results and nothing else"]
    if missing:
        parts.append(f"**A partial table: {missing} of {missing + len(rows)} runs are missing.**")
    parts += [*_introduction(), *_of_claims(rows), *_of_differences(rows), *_of_cells(rows)]
    parts += [*_of_ranks(rows), *_of_costs(rows), *_of_problems()]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _introduction() -> list[str]:
    return [
        "A method gets bounds and noisy values. Its score is the regret of the point that it would "
        "recommend at the end: the largest value of the function over the box, or the largest one "
        "known, minus the value there without noise, at least "
        f"{FLOOR:g} of the range. The range of a function is the largest minus the least value of "
        "8,192 Sobol points of its box (2,048 for the real tasks); noise is Gaussian, and its "
        "standard deviation is given as a share of the range.",
        "Runs are paired: with the same seed all methods of a cell (a setting, a problem and a "
        "noise) get the same first Sobol points, the same noise and the same durations. "
        f"Differences are of log10 regret, {OURS} or another method minus {REFERENCE} unless a "
        "heading says otherwise; "
        "negative is better, -0.30 is half the regret. ± is the standard error over problems, each "
        "with the mean of its runs (m_p of problem p of P: sd(m_p) / sqrt(P)); in brackets that of "
        "the runs on these problems alone (sqrt(sum_p s_p^2 / n_p) / P, s_p^2 the variance of n_p "
        "pairs within their cells; - where there are too few). Like is compared with like: the box "
        "argmax of the posterior mean with that of the other, climbed to from the five best "
        "evaluated points in both, or the evaluated points. Only *own* compares what the users of "
        "each get: Optuna and random search, say, recommend the largest value they saw. Functions "
        "of one family, as Ackley with 2 and with 5 inputs, count as problems of their own.",
        f"The default was tuned on {', '.join(TUNED)}, with other seeds; on the others it is only "
        f"reported. Seeds of the table start at {FIRST_SEED}.",
    ]


def _of_claims(rows: Sequence[Row]) -> list[str]:
    return [
        "## Claims, fixed before the runs",
        "The box argmax of the posterior mean of both:",
        markdown_table(claim_rows(rows, "box")),
        "The evaluated point of largest posterior mean of both:",
        markdown_table(claim_rows(rows, "evaluated")),
        f"What the users of each get, their *own*: {OURS} recommends the box argmax, and loops "
        f"around {REFERENCE} an evaluated point, since the mean of one fitted model can promise "
        "much where nothing was evaluated:",
        markdown_table(claim_rows(rows, "own")),
    ]


def _of_differences(rows: Sequence[Row]) -> list[str]:
    ours = [
        row for group, pairs in _groups(rows) if (row := _difference_row(group, pairs)) is not None
    ]
    others = [method for method in METHODS if method != REFERENCE]
    return [
        f"## {OURS} minus {REFERENCE}",
        "The last groups are of all problems that are played one question at a time, the further "
        "ones among them. Those were chosen after the claims, so no claim is about these rows. A "
        "few problems can make much of a mean: the median over problems is of the box argmax.",
        _table(ours),
        f"## Each method minus {REFERENCE}",
        f"The problems of *{PRIMARY}*, both noises. With BoTorch's default model one model "
        "recommends for all: that column tells how good the data are that a method gathered.",
        _table([_others_row(rows, method, method, REFERENCE) for method in others]),
        f"## {OURS} minus each method",
        "As above; each row takes off the method it names.",
        _table([_others_row(rows, method, OURS, method) for method in others if method != OURS]),
    ]


def _groups(rows: Sequence[Row]) -> list[tuple[str, dict[str, list[Pair]]]]:
    """The pairs of each kind in each group that has some."""
    of_kinds = {kind: paired(rows, OURS, REFERENCE, kind) for kind in (*_KIND_NAMES, "own")}
    found = []
    for settings in (*((name,) for name in SETTINGS), ONE_AT_A_TIME):
        what = SETTINGS[settings[0]]
        splits: list[bool | None] = [None]
        if not set(TUNED).isdisjoint(what.names):
            # Only the first setting has problems that are tuned on.
            splits += [True, False] if len(settings) == 1 else [False]
        for noise in (*what.noises, *([None] if len(what.noises) > 1 else [])):
            for tuned in splits:
                kept = {
                    kind: [pair for pair in pairs if _belongs(pair, settings, noise, tuned)]
                    for kind, pairs in of_kinds.items()
                }
                of = {None: "", True: ", tuned on", False: ", only reported"}[tuned]
                level = "both noises" if noise is None else f"{noise:.1%} noise"
                found.append((f"{' and '.join(settings)}, {level}{of}", kept))
    return found


def _belongs(pair: Pair, settings: Sequence[str], noise: float | None, tuned: bool | None) -> bool:
    return (
        pair.setting in settings
        and noise in (None, pair.noise)
        and tuned in (None, pair.problem in TUNED)
    )


def _difference_row(group: str, pairs: dict[str, list[Pair]]) -> Row | None:
    if not pairs["observed"]:
        return None
    row: Row = {"group": group}
    first = estimate(pairs["observed"])
    row |= {"problems": first.problems, "runs": first.runs}
    for kind, few in pairs.items():
        row[_KIND_NAMES.get(kind, kind)] = str(estimate(few)) if few else "-"
    found = estimate(pairs["box"] or pairs["observed"])
    return row | {"median": f"{found.median:+.2f}", "better in": f"{found.wins:.0%}"}


def _others_row(rows: Sequence[Row], name: str, first: str, second: str) -> Row:
    pairs = {
        kind: [pair for pair in paired(rows, first, second, kind) if pair.setting == PRIMARY]
        for kind in (*_KIND_NAMES, "own")
    }
    estimates = {kind: estimate(few) for kind, few in pairs.items() if few}
    counts = {
        count: max((getattr(found, count) for found in estimates.values()), default=0)
        for count in ("problems", "runs")
    }
    columns = {_KIND_NAMES.get(kind, kind): str(estimates.get(kind, "-")) for kind in pairs}
    return {"method": name} | counts | columns


def _of_cells(rows: Sequence[Row]) -> list[str]:
    """All cells, those where ours is worse first."""
    pairs = paired(rows, OURS, REFERENCE, "box")
    regrets = log_regrets(rows, "box")
    listed = []
    for cell, found in known_cells(pairs).items():
        both = means({method: regrets[cell][method] for method in (OURS, REFERENCE)})
        setting, problem, noise = cell
        listed.append(
            {
                "setting": setting,
                "problem": f"{problem}, tuned on" if problem in TUNED else problem,
                "noise": f"{noise:.1%}",
                "difference": found.mean,
                "standard error": found.error_of_runs,
                "better in": f"{found.wins:.0%} of {found.runs}",
            }
            | {f"regret of {name}": 10**value for name, value in both.items()}
        )
    listed.sort(key=lambda row: -row["difference"])
    losses = sum(row["difference"] > 0 for row in listed)
    sure = [
        sum(sign * row["difference"] > 2 * row["standard error"] for row in listed)
        for sign in (1, -1)
    ]
    return [
        "## Where it loses, and where it gains",
        f"Its mean is worse in {losses} of {len(listed)} cells, in {sure[0]} by more than two "
        f"standard errors of the runs, and better by as much in {sure[1]}; cells with fewer than "
        f"{LEAST_RUNS} seeds are left out. The largest loss first, the largest gain last; box "
        "argmax of both, geometric means of the regret.",
        _table(listed),
    ]


def _of_ranks(rows: Sequence[Row]) -> list[str]:
    regrets = log_regrets(rows, "own")
    of_settings: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    cells = []
    for (setting, problem, noise), of_cell in sorted(regrets.items()):
        places, score = ranks(means(of_cell)), scores(of_cell)
        if len(places) > 1:  # one alone has no rank
            for method, place in places.items():
                of_settings[setting][method].append(place)
        if setting == PRIMARY and score:
            cells.append(
                {"problem": problem, "noise": f"{noise:.1%}", "seeds": len(shared_seeds(of_cell))}
                | {m: f"{score[m]:.2f} ({places[m]:g})" if m in score else "" for m in METHODS}
            )
    means_of = [
        {
            "setting": f"{setting}, {max(map(len, found.values()))} cells",
            "methods": len(found),
            "seeds, at least": min(
                len(shared_seeds(of)) for cell, of in regrets.items() if cell[0] == setting
            ),
        }
        | {m: f"{statistics.fmean(found[m]):.1f}" if m in found else "" for m in METHODS}
        for setting, found in of_settings.items()
    ]
    return [
        "## Ranks",
        "Mean over the cells of the rank of the mean log10 regret over the seeds that all methods "
        "of the cell have, 1 the best, of what the users of each method get: "
        + "; ".join(f"{m}: {_KIND_NAMES[method.recommends]}" for m, method in METHODS.items())
        + ".",
        _table(means_of),
        f"*{PRIMARY.capitalize()}*: mean log10 of the regret, as a multiple of the mean regret of "
        "random search, and the rank.",
        _table(cells),
    ]


def _of_costs(rows: Sequence[Row]) -> list[str]:
    table = []
    for method in METHODS:
        found = [row for row in rows if row["method"] == method and row["setting"] == PRIMARY]
        if found:
            line: Row = {"method": method}
            for name, (least, most) in _DIMS.items():
                taken = [
                    seconds_of(row)
                    for row in found
                    if least <= problems()[row["problem"]].dim <= most
                ]
                line[f"d = {name}"] = f"{statistics.median(taken):.3f}" if taken else "-"
            ratios = cost_ratios(rows, method, REFERENCE)
            line[f"of {REFERENCE}'s"] = f"{statistics.median(ratios):.2f}" if ratios else "-"
            table.append(line)
    return [
        "## Cost",
        "Seconds of one core for a question and its answer, after the initial ones: medians over "
        "runs of their means; and the median ratio of paired runs. The search for the recommended "
        "point is not in it. Runs go on for hours beside others, and paired ones at different "
        "times: `python -m benchmarks.performance.practical` measures side by side.",
        _table(table),
    ]


def _of_problems() -> list[str]:
    table = [
        {
            "problem": problem.name,
            "d": problem.dim,
            "evaluations": problem.evaluations,
            "range": scale_of(problem.name).width,
            "largest value": scale_of(problem.name).best,
            "tuned on": "yes" if problem.is_tuned else "no",
            "settings": ", ".join(
                name for name, setting in SETTINGS.items() if problem.name in setting.names
            ),
        }
        for problem in problems().values()
    ]
    return [
        "## Problems and settings",
        _table(table),
        "*4* and *16 workers*: so many evaluations under way, of log-normal durations (sigma 0.5). "
        "*Late*: a question at each step, results after Poisson(10) steps, 60 evaluations. "
        "*Failing*: evaluations fail where the first two inputs are both beyond 0.6 of their "
        "sides; the library abandons them, BoTorch's loops keep them pending, Optuna marks them as "
        "failed. *Outliers*: 3 % of the values (rounded up to a whole number) are too low by one "
        "to three ranges. *Steps*: values are rounded to 20 levels over the range. *Further*: one "
        "question at a time, on ten functions that were chosen after the claims and before any "
        "method had played them; no claim is about them. (Four changes of the default were then "
        "tried on them, with other seeds, and none was taken.) Eight Sobol "
        "points come first, or those asked before two results are there. The box of Ackley, "
        "Alpine, Griewank, Cosine8, DropWave and the three-hump camel is not the usual one, whose "
        "centre is their maximum.",
        "The largest values of the real tasks come from a search: "
        "`python -m benchmarks.practice.best_known`.",
    ]


def _table(rows: Sequence[Row]) -> str:
    return markdown_table(rows) if rows else "No runs yet."


def _or_empty(regret: float | None) -> float | str:
    return "" if regret is None else regret
