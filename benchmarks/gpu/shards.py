"""Shards: one finite set divided among GPUs, or among processes of the CPU where there are none."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

import botorch_ext as bx
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.gpu.setting import Setting
from benchmarks.performance.planner import random_set

_STEPS, _SETTLE = 40, 20


def measure_shards(setting: Setting) -> None:
    """A step of GP-UCB on one device, and on more of them."""
    devices = torch.cuda.device_count() if setting.has_gpu else 2
    num_points = 10_000 if setting.smoke else 10_000_000 if setting.has_gpu else 1_000_000
    rows: list[Row] = []
    picks: list[list[int]] = []
    for size in sorted({1, 2, devices} & set(range(1, devices + 1))):
        with tempfile.TemporaryDirectory() as folder:
            play = partial(_played, size, num_points, setting.has_gpu, Path(folder) / "meeting")
            # CUDA does not survive a fork, which imports nothing again.
            context = multiprocessing.get_context("spawn" if setting.has_gpu else "fork")
            with ProcessPoolExecutor(size, mp_context=context) as pool:
                found = list(pool.map(play, range(size)))
        picks += [rows_of_one for rows_of_one, _ in found]
        taken = max(time for _, time in found)
        rows.append(
            {
                "processes": size,
                "candidates": num_points,
                "ms for a step": 1e3 * taken,
                "picks equal": all(picked == picks[0] for picked in picks),
            }
        )
    text = "GP-UCB, ask and tell, the median of the 20 steps after the first 20; one thread each."
    setting.write("shards", "Candidates divided among processes", text, rows)


def _played(
    size: int, num_points: int, on_gpu: bool, meeting: Path, rank: int
) -> tuple[list[int], float]:
    """The rows that one of the processes was given, and the median seconds of a step."""
    torch.set_num_threads(1)
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    points = random_set(num_points, 0, device).points
    domain: bx.FiniteSet
    if size == 1:
        domain = bx.FiniteSet(points)
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        backend = "nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, f"file://{meeting}", rank=rank, world_size=size)
        domain = bx.ShardedSet(points)
    strategy = bx.algorithms.gp_ucb(domain, rbf(0.3), noise_variance=4e-4, width=2.0)
    rows: list[int] = []

    def step() -> None:
        trial = strategy.ask()
        rows.append(trial.info["index"])
        strategy.tell(trial.id, float(torch.sin(5 * trial.x).sum()))

    times = [seconds(step, device) for _ in range(_STEPS)]
    if size > 1:
        dist.destroy_process_group()
    return rows, statistics.median(times[_SETTLE:])
