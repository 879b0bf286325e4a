"""The time of a step with tight bounds, relative to that with `SelfNormalized`."""

from __future__ import annotations

import statistics
import time

import torch

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tabled_runs import keep_times
from benchmarks.common.tables import Row
from benchmarks.tight.runs import COVERED, LAM, width_of

_METHODS = ("SelfNormalized", *COVERED)
# The data before the steps that are timed, the number of these steps and of repeats.
_GIVEN, _STEPS, _REPEATS = 100, 10, 5


def times(options: Options) -> None:
    """Times steps on sets and in boxes, and writes times.json."""
    domains = {
        f"{n} points": bx.FiniteSet(points(n, 2)) for n in ((50,) if options.smoke else (300, 2000))
    }
    dims = (1,) if options.smoke else (2, 4)
    domains |= {f"box, d = {d}": bx.Box([[0.0] * d, [1.0] * d]) for d in dims}
    repeats = 1 if options.smoke else _REPEATS
    found = {name: _ratios(domain, repeats) for name, domain in domains.items()}
    keep_times(options, found)


def time_row(name: str, seconds: dict[str, list[float]]) -> Row:
    """The row of a domain, with the ratios of all methods."""
    plain = seconds["SelfNormalized"]
    row: Row = {"domain": name, "SelfNormalized, ms": 1000 * statistics.median(plain)}
    for method in COVERED:
        pairs = zip(seconds[method], plain, strict=True)
        row[method] = statistics.median(own / other for own, other in pairs)
    return row


def _ratios(domain: bx.Box | bx.FiniteSet, repeats: int) -> dict[str, list[float]]:
    """The seconds of a step of each method, one number for each repeat, in turns."""
    found: dict[str, list[float]] = {method: [] for method in _METHODS}
    for _ in range(repeats):
        for method in _METHODS:
            found[method].append(_step(domain, method))
    return found


def _step(domain: bx.Box | bx.FiniteSet, method: str) -> float:
    """The mean seconds of an ask and a tell."""
    X = domain.sample(_GIVEN, seed=1)
    strategy = bx.algorithms.gp_ucb(
        domain,
        rbf(0.3 * domain.dim**0.5),
        noise_variance=LAM,
        width=width_of(method),
        initial=(X, X.sin().sum(dim=-1)),
    )
    strategy.tell(strategy.ask(), 0.0)
    start = time.perf_counter()
    for _ in range(_STEPS):
        trial = strategy.ask()
        strategy.tell(trial, float(trial.x.sin().sum()))
    return (time.perf_counter() - start) / _STEPS


def points(num: int, dim: int) -> torch.Tensor:
    """Random points in the unit cube."""
    return torch.rand(num, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
