"""The time of a step of safe exploration, relative to that of `gp_ucb` with the same bounds."""

from __future__ import annotations

import statistics
import time

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tabled_runs import keep_times
from benchmarks.common.tables import Row
from benchmarks.tight.runs import DELTA, LAM, SIGMA, B
from benchmarks.tight.times import points
from botorch_ext.widths import Ladder, Mixture

_BOUNDS = {"mixture": Mixture, "ladder": Ladder}
# The data before the steps that are timed, the number of these steps and of repeats.
_GIVEN, _STEPS, _REPEATS = 100, 20, 5


def times(options: Options) -> None:
    """Times steps on sets of two sizes, and writes times.json."""
    repeats = 1 if options.smoke else _REPEATS
    found = {
        f"{bounds}, N = {n}": [
            (_step(n, bounds), _step(n, bounds, safe=False)) for _ in range(repeats)
        ]
        for n in ((50,) if options.smoke else (300, 2000))
        for bounds in _BOUNDS
    }
    keep_times(options, found)


def time_row(name: str, pairs: list[tuple[float, float]]) -> Row:
    """The row of a set and bounds."""
    return {
        "bounds": name,
        "safe_exploration, ms": 1000 * statistics.median(own for own, _ in pairs),
        "gp_ucb, ms": 1000 * statistics.median(other for _, other in pairs),
        "ratio": statistics.median(own / other for own, other in pairs),
    }


def _step(num: int, bounds: str, *, safe: bool = True) -> float:
    """The mean seconds of an ask and a tell."""
    domain = bx.FiniteSet(points(num, 2))
    kernel = rbf(0.3 * 2**0.5)
    if safe:
        model = bx.KernelGP(kernel, noise_variance=LAM)
        strategy = bx.algorithms.safe_exploration(
            domain,
            model,
            outcome_models={"outcome": model},
            thresholds={"outcome": ">= 0"},
            safe_seed=domain.points[:1],
            rkhs_bound=B,
            noise_std=SIGMA,
            bounds=bounds,  # pyright: ignore[reportArgumentType]
        )
    else:
        width = _BOUNDS[bounds](B, SIGMA, DELTA)
        strategy = bx.algorithms.gp_ucb(domain, kernel, noise_variance=LAM, width=width)
    start = 0.0
    for step in range(_GIVEN + _STEPS):
        if step == _GIVEN:
            start = time.perf_counter()
        trial = strategy.ask()
        value = float(trial.x.sin().sum())
        strategy.tell(trial, value, {"outcome": value} if safe else None)
    return (time.perf_counter() - start) / _STEPS
