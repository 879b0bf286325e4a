"""A GPU measured: the tests on it, the library beside BoTorch on it and the CPU, in blocks.

    python -m benchmarks.gpu [--smoke] [--block NAME]

Each block runs in a process of its own, for at most ten minutes. Without a GPU two blocks run:
"paths" counts and predicts, "shards" divides candidates among processes. A smoke run plays the
blocks on the CPU. Writes benchmarks/results/gpu.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu.device_tests import run_device_tests
from benchmarks.gpu.micro import measure_micro
from benchmarks.gpu.paths import measure_large, measure_paths
from benchmarks.gpu.profiles import profile_worst
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.shards import measure_shards

_LIMIT = 600  # seconds of a block
_BENCHMARKS = Path(__file__).parent.parent


def _performance(module: str, device: str, setting: Setting) -> None:
    """A module of benchmarks.performance, on the GPU or on the CPU of the same machine."""
    command = [sys.executable, "-m", f"benchmarks.performance.{module}", "--device", device]
    command += ["--output", str(setting.output)] + ["--smoke"] * setting.smoke
    subprocess.run(command, check=True)


BLOCKS: Mapping[str, Callable[[Setting], None]] = {
    "tests": run_device_tests,
    "micro": measure_micro,
    "paths": measure_paths,
    **{
        f"performance-{module}-{device}": partial(_performance, module, device)
        for module in ("foundation", "phased", "models", "easy")
        for device in ("cuda", "cpu")
    },
    "large": measure_large,
    "shards": measure_shards,
    "profiles": profile_worst,
}
# A smoke run plays these alone: the others have a smoke run of their own, or are the test suite.
_IN_SMOKE = ("micro", "paths", "large", "shards", "profiles")


def main(argv: list[str] | None = None) -> None:
    """Runs one block, or all of them one after the other."""
    parser = argparse.ArgumentParser(description="Measures a GPU, in blocks.")
    parser.add_argument("--smoke", action="store_true", help="only show that it runs, in seconds")
    parser.add_argument("--block", choices=list(BLOCKS), help="this one only")
    given = parser.parse_args(argv)
    has_gpu = torch.cuda.is_available()
    output = _BENCHMARKS.parent / "out" / "benchmarks" if given.smoke else _BENCHMARKS / "results"
    output = output / "gpu"
    output.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if has_gpu and not given.smoke else "cpu")
    setting = Setting(given.smoke, device, output)
    if given.block is not None:
        BLOCKS[given.block](setting)
        return
    if given.smoke:  # one block shows that they run in processes of their own
        for name in _IN_SMOKE[1:]:
            BLOCKS[name](setting)
    names = _IN_SMOKE[:1] if given.smoke else tuple(BLOCKS) if has_gpu else ("paths", "shards")
    if not has_gpu and not given.smoke:
        print("There is no GPU here: paths are counted and predicted, and timed on the CPU.")
    failed = [name for name in names if not _passed(name, given.smoke, output)]
    if failed:
        sys.exit(f"blocks that failed or took over {_LIMIT} s: {', '.join(failed)}")


def _passed(name: str, smoke: bool, output: Path) -> bool:
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.gpu", "--block", name] + ["--smoke"] * smoke
    # A session of its own: what the block has started ends with it.
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(_LIMIT)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        if isinstance(error, KeyboardInterrupt):
            raise
    page = output / f"{name}.md"
    if page.exists():
        print(page.read_text())
    print(f"== {name}: {'passed' if code == 0 else 'FAILED'}, {time.perf_counter() - start:.0f} s")
    return code == 0


if __name__ == "__main__":
    main()
