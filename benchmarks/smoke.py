"""Smoke runs of all benchmarks, as many at once as there are cores, up to four.

    python -m benchmarks.smoke [NAME ...]

Whatever defines or calls main() below this folder is a command, wherever it lies; one that does not
call it fails. Each runs in a fork of this process, which imports once what most of them need.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import runpy
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

_BENCHMARKS = Path(__file__).parent
_COMMAND = re.compile(r'^(def main\(|if __name__ == "__main__")', re.MULTILINE)
_CALL = re.compile(r"^    main\(\)", re.MULTILINE)
_IMPORTED = (
    "botorch_ext",
    "botorch.acquisition",
    "matplotlib.pyplot",
    "scipy.stats",
    "sklearn.svm",
)


@dataclass
class _Run:
    """A command under way, and the file of what it prints."""

    module: str
    output: Path
    process: BaseProcess = field(init=False)
    start: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_play, args=(self.module, self.output))
        self.process.start()

    def passed(self) -> bool:
        """Waits for its end, and prints what it printed and whether it passed."""
        self.process.join()
        passed = self.process.exitcode == 0
        outcome = "passed" if passed else "FAILED"
        print(f"== {self.module} --smoke\n{self.output.read_text(errors='replace')}")
        print(f"== {self.module}: {outcome}, {time.perf_counter() - self.start:.0f} s", flush=True)
        return passed


def _play(module: str, output: Path) -> None:
    """Runs a command as ``python -m`` does."""
    with output.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    sys.argv = [module, "--smoke"]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _commands() -> list[str]:
    """The modules that are commands."""
    found = []
    for path in sorted(_BENCHMARKS.rglob("*.py")):
        text = path.read_text()
        if path == Path(__file__) or not _COMMAND.search(text):
            continue
        place = path.relative_to(_BENCHMARKS.parent)
        if not _CALL.search(text):
            sys.exit(f"{place} never calls main()")
        found.append(".".join(place.with_suffix("").parts).removesuffix(".__main__"))
    return found or sys.exit("no command found in benchmarks/")


def main() -> None:
    """Runs the commands that are named, or all."""
    to_run = sys.argv[1:] or _commands()
    for name in _IMPORTED:
        importlib.import_module(name)
    running: dict[int, _Run] = {}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        while to_run or running:
            while to_run and len(running) < min(os.cpu_count() or 1, 4):
                run = _Run(to_run[0], Path(folder, to_run.pop(0)))
                running[run.process.sentinel] = run
            ended = [sentinel for sentinel in wait(list(running)) if isinstance(sentinel, int)]
            failed += [run.module for run in map(running.pop, ended) if not run.passed()]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
