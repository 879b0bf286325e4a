"""Reference: the best setting of each task, and the share of the box that fails.

    python -m benchmarks.failures.reference [NAME ...] [--smoke]

Searches each by differential evolution, and counts failures in a Sobol sample. Writes what it finds
to reference.json.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution
from scipy.stats import qmc

from benchmarks.failures.tasks import REFERENCE, TASKS, Task, reference
from benchmarks.real.spaces import Params


def main() -> None:
    """Searches and writes."""
    parser = argparse.ArgumentParser(description="Best settings, and shares that fail.")
    parser.add_argument("names", nargs="*", default=list(TASKS), help="tasks (default: all)")
    parser.add_argument("--smoke", action="store_true", help="a short search; writes nothing")
    given = parser.parse_args()
    found = reference() if REFERENCE.exists() else {}
    for name in list(TASKS)[:1] if given.smoke else given.names:
        found[name] = search(TASKS[name], *((8, 20) if given.smoke else (17, 1000)))
        print(f"{name}: {found[name]}", flush=True)
    if not given.smoke:
        ordered = {name: found[name] for name in TASKS if name in found}
        REFERENCE.write_text(json.dumps(ordered, indent=2) + "\n")


def search(task: Task, log2_points: int, generations: int) -> dict[str, float]:
    """The least and the greatest loss of a task, and the share of the box that fails.

    Args:
        task: The task.
        log2_points: The binary logarithm of the size of the Sobol sample.
        generations: Of each of three searches.
    """
    lower, upper = np.array([p.ends for p in task.parameters]).T
    # Each choice has an equal part of the side.
    half = np.array([0.499999 * (p.kind == "choice") for p in task.parameters])
    lower, upper = lower - half, upper + half

    def params(numbers: Any) -> Params:
        return {p.name: p.value(x) for p, x in zip(task.parameters, numbers, strict=True)}

    def loss(numbers: Any) -> float:
        seen = task.loss(params(numbers))
        return math.inf if seen is None else seen

    points = qmc.Sobol(len(lower), rng=0).random_base2(log2_points)
    losses = np.array([loss(lower + share * (upper - lower)) for share in points])
    succeeded = np.isfinite(losses)
    bounds = list(zip(lower, upper, strict=True))
    start = lower + points[np.argsort(losses)[:40]] * (upper - lower)
    found = [
        differential_evolution(
            loss, bounds, maxiter=generations, tol=0, init=init, rng=seed, polish=False
        ).fun
        for seed, init in enumerate((start, "sobol", "sobol"))
    ]
    return {
        "least": float(min(found)),
        "greatest": float(losses[succeeded].max()),
        "failing": float(1 - succeeded.mean()),
    }


if __name__ == "__main__":
    main()
