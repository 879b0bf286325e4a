"""Best known losses of the tasks whose least loss nobody knows.

    python -m benchmarks.real.best_known [NAME ...] [--smoke]

Searches each for some thousand evaluations and writes what it finds to best_known.json, unless what
is there is less: the losses of the Lasso and of the support vector regression with many inputs are
from runs of the default. If the revision of a task is raised, its line is to be deleted first.
"""

from __future__ import annotations

import argparse
import json

from benchmarks.real.report import BEST_KNOWN, best_known
from benchmarks.real.runs import worker_of
from benchmarks.real.tasks import TASKS

# An evaluation takes far less where no learner is trained.
_EVALUATIONS = {"chemistry": 20_000, "mixed": 20_000}
_OF_LEARNERS = 2000


def main() -> None:
    """Searches and writes."""
    unknown = [name for name, task in TASKS.items() if task.least is None]
    parser = argparse.ArgumentParser(description="Best known losses.")
    parser.add_argument("names", nargs="*", default=unknown, help="tasks (default: all)")
    parser.add_argument("--smoke", action="store_true", help="a short search; writes nothing")
    given = parser.parse_args()
    found = dict(best_known())
    for name in ["elastic net on diabetes"] if given.smoke else given.names:
        evaluations = _EVALUATIONS.get(TASKS[name].kind, _OF_LEARNERS)
        if given.smoke:
            evaluations //= 20
        loss, seconds = worker_of(TASKS[name].environment).call(
            "search", task=name, evaluations=evaluations
        )
        print(f"{name}: {loss:.6g}, {seconds:.0f} s", flush=True)
        if not given.smoke:
            found[name] = min(loss, found.get(name, loss))
            ordered = {name: found[name] for name in unknown if name in found}
            BEST_KNOWN.write_text(json.dumps(ordered, indent=2) + "\n")


if __name__ == "__main__":
    main()
