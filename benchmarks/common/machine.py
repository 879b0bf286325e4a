"""Machine and versions, as the tables name them."""

from __future__ import annotations

import platform
from pathlib import Path

import botorch
import gpytorch
import torch


def describe_machine(device: torch.device | None = None) -> str:
    """Processor, threads, versions and, where one is used, the GPU; in one line."""
    parts = [
        _processor(),
        f"{torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''}",
        f"Python {platform.python_version()}",
        f"torch {torch.__version__}",
        f"gpytorch {gpytorch.__version__}",
        f"botorch {botorch.__version__}",
    ]
    if device is not None and device.type == "cuda":
        parts.insert(1, torch.cuda.get_device_name(device))
    return ", ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
