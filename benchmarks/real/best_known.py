"""Best known losses of the tasks whose least loss nobody knows.

    python -m benchmarks.real.best_known [NAME ...]

Searches each for about 2,000 evaluations and writes what it finds to best_known.json.
"""

from __future__ import annotations

import json
import sys

from benchmarks.real.report import BEST_KNOWN, best_known
from benchmarks.real.runs import worker_of
from benchmarks.real.tasks import TASKS

_EVALUATIONS = 2000


def main() -> None:
    """Searches and writes."""
    found = dict(best_known())
    unknown = [name for name, task in TASKS.items() if task.least is None]
    for name in sys.argv[1:] or unknown:
        found[name], seconds = worker_of("tasks").call(
            "search", task=name, evaluations=_EVALUATIONS
        )
        print(f"{name}: {found[name]:.6g}, {seconds:.0f} s", flush=True)
        ordered = {name: found[name] for name in unknown if name in found}
        BEST_KNOWN.write_text(json.dumps(ordered, indent=2) + "\n")


if __name__ == "__main__":
    main()
