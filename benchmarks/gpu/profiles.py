"""Profiles of the hot paths that are farthest from their floor."""

from __future__ import annotations

import csv

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.common.machine import describe_machine
from benchmarks.gpu.setting import Setting
from benchmarks.performance.hot_paths import PATHS
from benchmarks.performance.meters import Stopwatch

_NUM_PROFILES, _NUM_ROWS = 4, 20
# The small form of a path with more launches in a step is profiled: events of more fill the memory.
_MOST_LAUNCHES = 50_000


def profile_worst(setting: Setting) -> None:
    """Profiles the paths with the largest ratio of time to floor in the table of paths."""
    torch.set_num_threads(1)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * setting.has_gpu
    order = "cuda_time_total" if setting.has_gpu else "cpu_time_total"
    parts = [f"# Profiles of the worst paths\n\nOn {describe_machine(setting.device)}."]
    for name, launches in _worst(setting):
        path, small = PATHS[name], setting.smoke or launches > _MOST_LAUNCHES
        path(Stopwatch(setting.device), True)
        with profile(activities=activities) as profiler:
            path(Stopwatch(setting.device), small)
        table = profiler.key_averages().table(sort_by=order, row_limit=_NUM_ROWS)
        parts.append(f"## {name}{' (small)' * small}\n\n```\n{table.strip()}\n```")
    (setting.output / "profiles.md").write_text("\n\n".join(parts) + "\n")


def _worst(setting: Setting) -> list[tuple[str, float]]:
    """Names of paths, and the launches of a step."""
    with (setting.output / "paths.csv").open() as file:
        rows = list(csv.DictReader(file))
    if setting.has_gpu:
        rows.sort(key=lambda row: -float(row["GPU / floor"]))
    worst = rows[: _NUM_PROFILES if setting.has_gpu else 1]
    return [(row["path"], float(row["launches"])) for row in worst]
