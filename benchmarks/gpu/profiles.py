"""Profiles of the hot paths that are farthest from their floor."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.common.machine import describe_machine
from benchmarks.common.timing import synchronize
from benchmarks.gpu.setting import Setting
from benchmarks.performance.hot_paths import PATHS
from benchmarks.performance.meters import Stopwatch

_NUM_PROFILES, _NUM_ROWS = 4, 20
# Launches in the steps that are profiled: events of more take minutes to sum up.
_MOST_LAUNCHES = 40_000


class _Profiler:
    """Profiles the first steps of a path.

    Args:
        device: Where the path runs.
        steps: How many.
    """

    def __init__(self, device: torch.device, steps: int) -> None:
        self.device = device
        self._left = steps
        on_gpu = [ProfilerActivity.CUDA] * (device.type == "cuda")
        self._profile = profile(activities=[ProfilerActivity.CPU, *on_gpu], acc_events=True)

    @contextmanager
    def measured(self, steps: int = 1) -> Iterator[None]:
        if self._left <= 0:
            yield
            return
        self._left -= steps
        with self._profile:
            yield
            synchronize(self.device)

    def table(self) -> str:
        order = "device_time_total" if self.device.type == "cuda" else "cpu_time_total"
        return self._profile.key_averages().table(sort_by=order, row_limit=_NUM_ROWS).strip()


def profile_worst(setting: Setting) -> None:
    """Profiles the paths with the largest ratio of time to floor in the table of paths."""
    torch.set_num_threads(1)
    parts = [f"# Profiles of the worst paths\n\nOn {describe_machine(setting.device)}."]
    for name, launches in _worst(setting):
        path, small = PATHS[name], setting.smoke or launches > _MOST_LAUNCHES
        path(Stopwatch(setting.device), True)
        profiler = _Profiler(setting.device, max(int(_MOST_LAUNCHES // launches), 1))
        path(profiler, small)
        parts.append(f"## {name}{' (small)' * small}\n\n```\n{profiler.table()}\n```")
        (setting.output / "profiles.md").write_text("\n\n".join(parts) + "\n")


def _worst(setting: Setting) -> list[tuple[str, float]]:
    """Names of paths, and the launches of a step."""
    with (setting.output / "paths.csv").open() as file:
        rows = list(csv.DictReader(file))
    if setting.has_gpu:
        rows.sort(key=lambda row: -float(row["GPU / floor"]))
    worst = rows[: _NUM_PROFILES if setting.has_gpu else 1]
    return [(row["path"], float(row["launches"])) for row in worst]
