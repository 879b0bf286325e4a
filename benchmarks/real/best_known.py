"""Best known losses of the tasks whose least loss nobody knows.

    python -m benchmarks.real.best_known [NAME ...]

Searches each for some thousand evaluations and writes what it finds to best_known.json.
"""

from __future__ import annotations

import json
import sys

from benchmarks.real.report import BEST_KNOWN, best_known
from benchmarks.real.runs import worker_of
from benchmarks.real.tasks import TASKS

# An evaluation takes far less where no learner is trained.
_EVALUATIONS = {"chemistry": 20_000, "mixed": 20_000}
_OF_LEARNERS = 2000


def main() -> None:
    """Searches and writes."""
    found = dict(best_known())
    unknown = [name for name, task in TASKS.items() if task.least is None]
    for name in sys.argv[1:] or unknown:
        evaluations = _EVALUATIONS.get(TASKS[name].kind, _OF_LEARNERS)
        found[name], seconds = worker_of("tasks").call("search", task=name, evaluations=evaluations)
        print(f"{name}: {found[name]:.6g}, {seconds:.0f} s", flush=True)
        ordered = {name: found[name] for name in unknown if name in found}
        BEST_KNOWN.write_text(json.dumps(ordered, indent=2) + "\n")


if __name__ == "__main__":
    main()
