"""Dask workers: a study on a cluster of processes, one of which is killed every few seconds.

    python -m benchmarks.studies.dask_workers [--smoke] [--workers N] [--trials N]

Fails unless every trial is told once, with its value. Writes report.md.
"""

from __future__ import annotations

import logging
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import torch
from distributed import Client, LocalCluster
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.kernels import rbf
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, markdown_table
from botorch_ext.strategies import Asked, Told


def value_at(x: Tensor) -> float:
    """The objective."""
    return math.sin(float(x[0])) + math.cos(float(x[1]))


def evaluate(folder: str, x: Tensor) -> float:
    """The objective, after up to a second; leaves a file for each call."""
    (Path(folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(random.random())
    return value_at(x)


class Killer(threading.Thread):
    """Kills one of the workers of a cluster every few seconds, which then starts another one.

    Args:
        cluster: Of processes.
        interval: Seconds between two deaths.
        seed: Of who dies.
    """

    def __init__(self, cluster: LocalCluster, interval: float, seed: int) -> None:
        super().__init__(daemon=True)
        self._cluster, self._interval = cluster, interval
        self._random, self._stopped = random.Random(seed), threading.Event()
        self.kills = 0

    def run(self) -> None:
        while not self._stopped.wait(self._interval):
            alive = [nanny.pid for nanny in self._cluster.workers.values() if nanny.pid]
            if alive:
                os.kill(self._random.choice(alive), signal.SIGKILL)
                self.kills += 1

    def stop(self) -> None:
        """Returns when nobody will be killed any more."""
        self._stopped.set()
        self.join()


def play(options: Options, workers: int, trials: int, interval: float, folder: str) -> Row:
    """Runs the study, and counts."""
    axis = torch.linspace(-5, 5, 40, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis))
    strategy = bx.algorithms.gp_bucb(domain, rbf(1.0), noise_variance=0.01, width=2.0)
    study = bx.Study(Path(folder) / "study.db", strategy)
    calls = Path(folder) / "calls"
    calls.mkdir()
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        protocol="tcp://",
        # None would be port 8787 of every interface.
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        local_directory=folder,
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster) as client:
        killer = Killer(cluster, interval, options.seed)
        killer.start()
        start = time.perf_counter()
        result = bx.run(
            study,
            partial(evaluate, str(calls)),
            trials,
            executor=lambda: client.get_executor(pure=False),
            max_pending=2 * workers,
            progress=False,
        )
        seconds = time.perf_counter() - start
        killer.stop()
    asked = [event.trial.id for event in study.events if isinstance(event, Asked)]
    told = [event.id for event in study.events if isinstance(event, Told)]
    right = all(y == value_at(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))
    return {
        "processes": workers,
        "trials": trials,
        "killed": killer.kills,
        "evaluations begun": len(list(calls.iterdir())),
        "given up": len(result.failures),
        "all told once": asked == sorted(told) == list(range(trials)),
        "with their values": right,
        "seconds": seconds,
    }


def main(argv: list[str] | None = None) -> None:
    """Runs the study and writes the table."""
    options = parse_options(
        "studies.dask_workers",
        "A study on a cluster whose workers are killed.",
        argv,
        more={
            "workers": {"type": int, "help": "processes of the cluster (default: 8)"},
            "trials": {"type": int, "help": "of the study (default: 500)"},
        },
    )
    workers = options.more["workers"] or (2 if options.smoke else 8)
    trials = options.more["trials"] or (12 if options.smoke else 500)
    interval = 2.0 if options.smoke else 3.0
    with tempfile.TemporaryDirectory() as folder:
        row = play(options, workers, trials, interval, folder)
    text = "# A study on a cluster whose workers are killed\n\n" + markdown_table([row])
    write_report(options, text, f"one killed every {interval:g} s")
    if not (row["all told once"] and row["with their values"] and not row["given up"]):
        sys.exit("a trial was lost, told twice or told a wrong value")


if __name__ == "__main__":
    main()
