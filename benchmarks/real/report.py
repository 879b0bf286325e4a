"""Report of the benchmark of real problems."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from benchmarks.common.differences import Estimate, estimate
from benchmarks.common.tables import Row, markdown_table
from benchmarks.real.environments import OURS, PEERS
from benchmarks.real.runs import Case
from benchmarks.real.tasks import TASKS, Half, Task

BEST_KNOWN = Path(__file__).parent / "best_known.json"
# The least regret: where the least loss is known, and elsewhere, relative to the median regret of
# all losses that random search saw: the best known loss may be that far from the least one.
_FLOOR, _RELATIVE_FLOOR = 1e-8, 1e-3
# So many inputs are many; with fewer runs of each task a package has no rank.
_MANY, _FEW = 10, 5
# Budgets that have a line of their own.
_MANY_EVALUATIONS = (300, 1000)

_TITLES: dict[Half, str] = {
    "report": "Only reported",
    "confirm": "Held out, second set",
    "develop": "Developed on",
    "large": "Many inputs, many evaluations",
}

# log10 of the regret, by task, peer and seed.
Regrets = dict[str, dict[str, dict[int, float]]]


def report(rows: Sequence[Row], wanted: Sequence[Case]) -> str:
    """The Markdown text.

    Args:
        rows: One for each run there is.
        wanted: All runs there should be.
    """
    parts = ["# Real problems", _introduction()]
    for half, title in _TITLES.items():
        own = [row for row in rows if TASKS[row["problem"]].half == half]
        num_wanted = sum(TASKS[case.problem].half == half for case in wanted)
        if not own:
            continue
        parts.append(f"## {title}")
        if len(own) < num_wanted:
            parts.append(f"**{num_wanted - len(own)} of {num_wanted} runs are missing.**")
        regrets = log_regrets(own)
        parts += [markdown_table(_peer_rows(own, regrets, half))]
        parts += [markdown_table(_kind_rows(regrets)), markdown_table(_task_rows(regrets))]
        short = _ended_early(own)
        parts += [markdown_table(short)] if short else []
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _introduction() -> str:
    return (
        "Losses are minimised, one question at a time, by packages with their own defaults, first "
        "points among them. The score is the regret of what the users of a package take in the "
        "end: its loss without noise, minus the least loss, or the least one known. Differences "
        f"are of log10 regret, {OURS} minus the other: negative is better, -0.30 is half the "
        "regret. ± is the standard error over tasks, each with the mean of its runs, in brackets "
        "that of the runs on these tasks alone. *rank* is the mean over tasks of the rank of the "
        "mean, among the packages that have at least one run of each task; where inputs are not "
        "many, of those that are to have five. Runs on tasks of many inputs end early where "
        "they take too many seconds. "
        "Seconds are of one core, for a question with its answer, over a whole run, and the mean "
        "over tasks."
    )


@lru_cache
def best_known() -> dict[str, float]:
    """The least loss without noise that a long search found, or an earlier run, by task."""
    return json.loads(BEST_KNOWN.read_text()) if BEST_KNOWN.exists() else {}


def log_regrets(rows: Sequence[Row]) -> Regrets:
    """The regrets of what is recommended."""
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_task[row["problem"]].append(row)
    found: Regrets = {}
    for task, own in by_task.items():
        least, floor = TASKS[task].least, _FLOOR
        if least is None:
            losses = [row[kind] for row in own for kind in ("recommended", "observed")]
            least = min([*losses, best_known().get(task, math.inf)])
            random = [loss for row in own if row["method"] == "random" for loss in row["seen"]]
            seen = random or [loss for row in own for loss in row["seen"]]
            floor = max(_RELATIVE_FLOOR * (statistics.median(seen) - least), _FLOOR)
        by_peer: dict[str, dict[int, float]] = defaultdict(dict)
        for row in own:
            regret = max(row["recommended"] - least, floor)
            by_peer[row["method"]][row["seed"]] = math.log10(regret)
        found[task] = dict(by_peer)
    return found


def difference(regrets: Regrets, peer: str, keep: Callable[[Task], bool]) -> Estimate | None:
    """Ours minus a peer's, over the tasks that are kept."""
    found: dict[str, list[float]] = {}
    for task, of_peer in regrets.items():
        ours, theirs = of_peer.get(OURS, {}), of_peer.get(peer, {})
        shared = ours.keys() & theirs.keys()
        if shared and keep(TASKS[task]):
            found[task] = [ours[seed] - theirs[seed] for seed in sorted(shared)]
    return estimate(found) if found else None


def _ranks(scores: dict[str, float]) -> dict[str, float]:
    """From 1 for the least; equal ones share the mean of their ranks."""
    return {
        peer: sum((other < score) + (other == score) / 2 for other in scores.values()) + 0.5
        for peer, score in scores.items()
    }


def is_float(task: Task) -> bool:
    """Whether all inputs are real numbers."""
    return all(p.kind == "real" for p in task.parameters)


def _others() -> list[str]:
    return [peer for peer in PEERS if peer != OURS]


def _peer_rows(rows: Sequence[Row], regrets: Regrets, half: Half) -> list[Row]:
    complete = {
        peer
        for peer in PEERS
        if (half == "large" or PEERS[peer].seeds >= _FEW)
        and all(peer in of_peer for of_peer in regrets.values())
    }
    own_ranks: dict[str, list[float]] = defaultdict(list)
    for of_peer in regrets.values():
        means = {peer: statistics.fmean(of_peer[peer].values()) for peer in complete}
        for peer, rank in _ranks(means).items():
            own_ranks[peer].append(rank)
    found: list[Row] = []
    for peer in PEERS:
        own = [row for row in rows if row["method"] == peer]
        if not own:
            continue
        estimates = [
            None if peer == OURS else difference(regrets, peer, keep)
            for keep in (lambda task: True, is_float)
        ]
        of_tasks: dict[str, list[float]] = defaultdict(list)
        for row in own:
            of_tasks[row["problem"]].append(statistics.fmean(row["seconds"]))
        seconds = statistics.fmean(map(statistics.fmean, of_tasks.values()))
        found.append(
            {
                "package": peer,
                "tasks": len({row["problem"] for row in own}),
                "runs": len(own),
                "rank": statistics.fmean(own_ranks[peer]) if peer in complete else "",
                f"{OURS} minus it": str(estimates[0] or ""),
                "better in": "" if estimates[0] is None else f"{estimates[0].wins:.0%}",
                "real numbers alone": str(estimates[1] or ""),
                "seconds": f"{seconds:.2f}",
            }
        )
    return found


def _kind_rows(regrets: Regrets) -> list[Row]:
    kinds = sorted({TASKS[task].kind for task in regrets})
    groups: dict[str, Callable[[Task], bool]] = {
        kind: (lambda task, kind=kind: task.kind == kind) for kind in kinds
    }
    groups[f"d >= {_MANY}"] = lambda task: task.dim >= _MANY
    for budget in _MANY_EVALUATIONS:
        groups[f"{budget} evaluations"] = lambda task, budget=budget: task.evaluations == budget
    return [
        {"kind": name, "tasks": sum(keep(TASKS[task]) for task in regrets)}
        | {peer: _short(difference(regrets, peer, keep)) for peer in _others()}
        for name, keep in groups.items()
        if any(keep(TASKS[task]) for task in regrets)
    ]


def _task_rows(regrets: Regrets) -> list[Row]:
    found: list[Row] = []
    for task, of_peer in regrets.items():
        cells = {peer: statistics.fmean(seeds.values()) for peer, seeds in of_peer.items()}
        row: Row = {"task": task, "kind": TASKS[task].kind, "d": TASKS[task].dim}
        for peer in PEERS:
            row[peer] = f"{cells[peer]:.2f}" if peer in cells else ""
        found.append(row)
    return sorted(found, key=lambda row: (row["kind"], row["task"]))


def _ended_early(rows: Sequence[Row]) -> list[Row]:
    """How far runs came that took more seconds than their task allows."""
    return [
        {
            "ended early": row["method"],
            "task": row["problem"],
            "seed": row["seed"],
            "evaluations": len(row["seen"]),
            "seconds": round(sum(row["seconds"])),
        }
        for row in rows
        if len(row["seen"]) < TASKS[row["problem"]].evaluations
        and sum(row["seconds"]) > TASKS[row["problem"]].seconds
    ]


def _short(found: Estimate | None) -> str:
    if found is None:
        return ""
    return f"{found.mean:+.2f}" + ("" if math.isnan(found.error) else f" ± {found.error:.2f}")
