"""Protocol: calls to an object in another process, as lines of JSON.

A request is ``{"call": name, "with": arguments}``, its answer ``{"result": ..., "seconds": ...}``,
the seconds of one core that it took, or ``{"error": traceback}``. Nothing is imported but the
standard library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from select import select
from typing import Any

_ROOT = Path(__file__).parents[2]
# Seconds that a call may take.
_PATIENCE = 1800


class WorkerError(Exception):
    """A call that failed in the worker, with its traceback there."""


class Worker:
    """A process that answers calls; it ends when this one does.

    Args:
        python: The interpreter of its environment.
        name: The peer, or the environment of tasks.
    """

    def __init__(self, python: Path, name: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [str(python), "-c", f"from benchmarks.real.worker import answer; answer({name!r})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def call(self, name: str, **arguments: Any) -> tuple[Any, float]:
        """The result of a call and the seconds of one core that it took.

        Raises:
            WorkerError: The call failed, or the process is gone.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"call": name, "with": arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError("the worker has ended") from None
        if not select([self._process.stdout], [], [], _PATIENCE)[0]:
            self.close()
            raise WorkerError(f"the worker has not answered {name} for {_PATIENCE} s")
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"the worker has ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["result"], answer["seconds"]

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.communicate()


def serve(make: Callable[[], Any]) -> None:
    """Answers calls of the methods of an object until there are no more. What libraries print, also
    while it is made, goes to the standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    target = make()
    for line in sys.stdin:
        request = json.loads(line)
        start = time.process_time()
        try:
            result = getattr(target, request["call"])(**request["with"])
            answer = {"result": result, "seconds": time.process_time() - start}
            text = json.dumps(answer)
        except Exception:  # noqa: BLE001
            text = json.dumps({"error": traceback.format_exc()})
        answers.write(text + "\n")
        answers.flush()
