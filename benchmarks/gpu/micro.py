"""Micro measurements: what a launch, a stop, a distance and a triangular solve take on a GPU."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import median_seconds, seconds
from benchmarks.gpu.predictions import BANDWIDTH, CDIST_ENTRY, LAUNCH, STOP
from benchmarks.gpu.setting import Setting
from botorch_ext.kernels.frozen import freeze
from botorch_ext.models.triangular import solve_triangular

_MANY = 1000  # launches or stops that are timed together


def measure_micro(setting: Setting) -> None:
    """Times the parts that the predictions are made of, and looks for PyTorch's defects."""
    torch.set_num_threads(1)
    rows = [*_latencies(setting), *_throughputs(setting), *_solves(setting), *_defects(setting)]
    text = (
        "The predictions are those that the table of paths is made with; where there is none, "
        "nobody had a number."
    )
    setting.write("micro", "Launches, stops and kernels, one by one", text, rows)


def _row(what: str, unit: str, predicted: float | str, measured: float | str) -> Row:
    return {"what": what, "unit": unit, "predicted": predicted, "measured": measured}


def _latencies(setting: Setting) -> list[Row]:
    device, many = setting.device, 10 if setting.smoke else _MANY
    x, host = torch.zeros(1, device=device), torch.zeros(1)

    def repeated(act: Callable[[], object]) -> float:
        def all_of_them() -> None:
            for _ in range(many):
                act()

        return median_seconds(all_of_them, 5, device) / many

    return [
        _row(
            "a launch: x.add_(1) of one number",
            "us",
            f"{LAUNCH[0]}-{LAUNCH[1]}",
            _us(repeated(lambda: x.add_(1))),
        ),
        _row("a stop: x.item()", "us", STOP, _us(repeated(x.item))),
        _row("an upload of one number", "us", STOP, _us(repeated(lambda: host.to(device)))),
    ]


def _us(value: float) -> float:
    return 1e6 * value


def _throughputs(setting: Setting) -> list[Row]:
    device, N = setting.device, 10_000 if setting.smoke else 1_000_000
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(N, 6, dtype=torch.float64, generator=generator).to(device)
    V = torch.rand(64, N, dtype=torch.float64, generator=generator).to(device)
    w = torch.rand(64, dtype=torch.float64, generator=generator).to(device)
    kernel = freeze(rbf(0.3), X.dtype, device)
    copied = median_seconds(V.clone, 5, device)
    product = median_seconds(lambda: w @ V, 5, device)
    distances = median_seconds(lambda: torch.cdist(X[:1], X), 5, device)
    row = median_seconds(lambda: kernel(X[:1], X), 5, device)
    million = f"{N:.0e}"
    return [
        _row("copy of 64 rows, both ways", "TB/s", BANDWIDTH / 1e12, 2e-12 * V.nbytes / copied),
        _row(
            f"64 rows of {million} times a vector",
            "TB/s",
            BANDWIDTH / 1e12,
            1e-12 * V.nbytes / product,
        ),
        _row(
            f"torch.cdist, an entry of a row of {million}", "ns", CDIST_ENTRY, 1e9 * distances / N
        ),
        _row(f"a kernel row of {million} here, an entry", "ns", "", 1e9 * row / N),
    ]


def _solves(setting: Setting) -> list[Row]:
    rows = []
    for n in (100, 200) if setting.smoke else (1000, 4000, 16_000):
        L = _triangle(n, setting.device)
        for columns in (1, 256):
            right = torch.ones(n, columns, dtype=L.dtype, device=L.device)
            taken = median_seconds(
                lambda L=L, right=right: torch.linalg.solve_triangular(L, right, upper=False),
                5,
                L.device,
            )
            rows.append(_row(f"triangular solve, n={n}, {columns} columns", "ms", "", 1e3 * taken))
    return rows


def _triangle(n: int, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(n)
    L = torch.rand(n, n, dtype=torch.float64, generator=generator).tril() / math.sqrt(n)
    return (L + torch.eye(n, dtype=torch.float64)).to(device)


def _defects(setting: Setting) -> list[Row]:
    """What PyTorch gets wrong on some builds for CUDA, and what stands here instead."""
    device, columns = setting.device, 1000 if setting.smoke else 2**19 + 64
    corner = _triangle(4, device).expand(3, 4, 4).contiguous()
    right = torch.ones(3, 4, columns, dtype=corner.dtype, device=device)
    exact = torch.linalg.inv(corner) @ right
    rows = []
    for name, solve in (
        (
            "torch.linalg.solve_triangular",
            lambda: torch.linalg.solve_triangular(corner, right, upper=False),
        ),
        ("solve_triangular here", lambda: solve_triangular(corner, right)),
    ):
        error = float((solve() - exact).abs().max())
        rows.append(_row(f"3 x 4 rows, {columns} columns, largest error: {name}", "", "", error))
    two, right = corner[0, :2, :2].contiguous(), right[0, :2].contiguous()
    for name, solve in (
        (
            "torch.linalg.solve_triangular",
            lambda: torch.linalg.solve_triangular(two, right, upper=False),
        ),
        ("solve_triangular here", lambda: solve_triangular(two, right)),
    ):
        rows.append(
            _row(f"2 rows, {columns} columns: {name}", "ms", "", 1e3 * seconds(solve, device))
        )
    # In a process of its own: a launch that fails leaves CUDA unusable.
    many = 10 if setting.smoke else 2148
    code = (
        "import torch; X = torch.rand(1_000_000, 4, dtype=torch.float64, "
        f"device='{device.type}'); print(float(torch.cdist(X[:{many}], X).sum()) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1][:80]
    outcome = "works" if done.returncode == 0 else last
    rows.append(_row(f"torch.cdist of {many} x 1e6", "", "fails", outcome.replace("|", "/")))
    return rows
