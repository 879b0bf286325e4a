"""Dask workers: a study on a cluster of processes, one of which is killed every few seconds."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import threading
import time
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import dask.config
from distributed import Client, LocalCluster

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, Tables
from benchmarks.studies.objectives import evaluate, value_at
from benchmarks.studies.strategies import finite
from botorch_ext.strategies import Asked, Told


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


def play(seed: int, workers: int, trials: int, interval: float, folder: Path) -> Row:
    """Runs the study, and counts."""
    study = bx.Study(folder / "study.db", finite())
    calls = folder / "calls"
    calls.mkdir()
    # Workers that are killed start again at once: with what they need already there.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distributed", "benchmarks.studies.objectives"])
    forkserver.ensure_running()
    # Dask gives up what four workers died with, which is not rare where one dies every second.
    more = {"distributed.scheduler.allowed-failures": trials}
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"} | more)
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        protocol="tcp://",
        # None would be port 8787 of every interface.
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        local_directory=str(folder),
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster) as client:
        killer = Killer(cluster, interval, seed)
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
        "none given up": not result.failures,
        "all told once": asked == sorted(told) == list(range(trials)),
        "with their values": right,
        "seconds": seconds,
    }


def tables(options: Options, folder: Path) -> Tables:
    """Eight workers, 500 trials."""
    workers, trials, interval = (2, 8, 1.0) if options.smoke else (8, 500, 3.0)
    text = f"One of the processes of a cluster of Dask is killed every {interval:g} s."
    return [(text, [play(options.seed, workers, trials, interval, folder)])]
