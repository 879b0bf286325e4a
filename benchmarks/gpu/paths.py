"""Hot paths on a GPU: counted, predicted, and timed beside the CPU and BoTorch."""

from __future__ import annotations

import math
import os
import statistics
import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import torch
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor
from tqdm import tqdm

from benchmarks.common.pretend_cuda import PretendCUDA
from benchmarks.common.processes import in_processes
from benchmarks.common.tables import Row
from benchmarks.gpu.predictions import BEFORE, floor_ms, predicted_ms
from benchmarks.gpu.setting import Setting
from benchmarks.performance.hot_paths import LARGE, OF_BOTORCH, PATHS, Path
from benchmarks.performance.meters import LaunchMeter, Stopwatch

# A path is played again until it has taken so many seconds, at most so often.
_SECONDS, _MOST_PLAYS = 3.0, 5
_CPU = torch.device("cpu")


class Timed(NamedTuple):
    """The times of the steps of a path, in milliseconds, and what it chose."""

    median: float
    p90: float
    picks: Tensor


def timed(path: Path, device: torch.device, threads: int, smoke: bool) -> Timed:
    """Plays a path on a device with so many threads, after a small one that is not counted."""
    torch.set_num_threads(threads)
    path(Stopwatch(device), True)
    watch, start, plays, picks = Stopwatch(device), time.perf_counter(), 0, torch.empty(0)
    while plays < _MOST_PLAYS and (not plays or time.perf_counter() - start < _SECONDS):
        picks = path(watch, smoke).cpu()
        plays += 1
        if smoke:
            break
    steps = sorted(1e3 * taken for taken in watch.seconds)
    return Timed(statistics.median(steps), steps[math.ceil(0.9 * len(steps)) - 1], picks)


def _counted(smoke: bool, name: str) -> LaunchMeter:
    """Plays a path on the pretended GPU, in a process that sees no other."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    meter = LaunchMeter()
    with PretendCUDA():
        PATHS[name](meter, smoke)
    return meter


def measure_paths(setting: Setting) -> None:
    """Every hot path: launches and stops, the CPU with one thread and with all, and the GPU."""
    warnings.filterwarnings("ignore", category=InputDataWarning)
    text = (
        "Times are milliseconds of a step. Launches and stops are counted on a pretended GPU; "
        "predicted: 5 to 10 us for a launch, 20 us for a stop, 4.3 TB/s (an H200, before anything "
        "was measured). The floor moves the same bytes with one launch and one stop. Picks are "
        "equal where they agree with those of the CPU to 1e-6."
    )
    rows: list[Row] = []
    paths = _few(PATHS, setting)
    # At once, before anything is timed.
    processes = 1 if setting.smoke else min(len(paths), os.cpu_count() or 1)
    names = [name for name, _ in paths]
    counts = in_processes(partial(_counted, setting.smoke), names, processes, "counts")
    for (name, path), count in tqdm(list(zip(paths, counts, strict=True)), unit="path"):
        rows.append(_row(name, path, count, setting))
        setting.write("paths", "Hot paths on a GPU", text, rows)


def _row(name: str, path: Path, count: LaunchMeter, setting: Setting) -> Row:
    low, high = predicted_ms(count)
    floor = floor_ms(count)
    one = timed(path, _CPU, 1, setting.smoke)
    all_threads = timed(path, _CPU, os.cpu_count() or 1, setting.smoke)
    launches_before, stops_before = BEFORE.get(name, ("", ""))
    row: Row = {
        "path": name,
        "launches before": launches_before,
        "launches": count.launches,
        "stops before": stops_before,
        "stops": count.stops,
        "CPU, 1 thread": one.median,
        "CPU, all threads": all_threads.median,
        "predicted": f"{low:.2g}-{high:.2g}",
        "floor": floor,
        "GPU": "",
        "GPU, p90": "",
        "GPU / floor": "",
        "BoTorch on the GPU": "",
        "picks equal": "",
    }
    if not setting.has_gpu:
        return row
    on_gpu = timed(path, setting.device, 1, setting.smoke)
    row |= {"GPU": on_gpu.median, "GPU, p90": on_gpu.p90, "GPU / floor": on_gpu.median / floor}
    row["picks equal"] = _agree(one.picks, on_gpu.picks)
    if name in OF_BOTORCH:
        row["BoTorch on the GPU"] = timed(OF_BOTORCH[name], setting.device, 1, False).median
    return row


def _agree(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-6, atol=1e-9)


def measure_large(setting: Setting) -> None:
    """Sizes that a CPU does not reach, on the GPU alone, with the memory they take there."""
    text = "Times are milliseconds of a step; memory is the peak of what was allocated."
    rows: list[Row] = []
    for name, path in tqdm(_few(LARGE, setting), unit="path"):
        rows.append(_large_row(name, path, setting))
        setting.write("large", "Sizes beyond a CPU", text, rows)


def _few(paths: Mapping[str, Path], setting: Setting) -> list[tuple[str, Path]]:
    return list(paths.items())[: 1 if setting.smoke else None]


def _large_row(name: str, path: Path, setting: Setting) -> Row:
    if setting.has_gpu:
        torch.cuda.reset_peak_memory_stats(setting.device)
    try:
        taken = timed(path, setting.device, 1, setting.smoke)
    except torch.cuda.OutOfMemoryError:
        return {"path": name, "median": "out of memory", "p90": "", "GiB": ""}
    peak = torch.cuda.max_memory_allocated(setting.device) / 2**30 if setting.has_gpu else ""
    return {"path": name, "median": taken.median, "p90": taken.p90, "GiB": peak}
