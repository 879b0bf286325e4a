"""`replicate` beside `simulate`: the same points, and the time of all seeds.

python -m benchmarks.replicates [--smoke] [--device cuda] [--output FOLDER]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, markdown_table
from botorch_ext import delays
from botorch_ext.problems import RKHSFunction

NOISE_STD = 0.1
_LAM = NOISE_STD**2
_WIDTH = 2.0
# N, T and the number of seeds of a row of the table of times, and the repeats, each of all seeds
# together and of two seeds one by one, in turns.
_SIZES = ((200, 500, 64), (1_000, 500, 64), (2_500, 200, 64), (2_500, 1_000, 32))
_REPEATS = 3


@dataclass(frozen=True)
class Case:
    """A method whose points are compared.

    Args:
        name: Its name in the table.
        make: A function from a finite set and a horizon to the strategy.
        delay: The delays.
    """

    name: str
    make: Callable[[bx.FiniteSet, int], bx.Strategy]
    delay: Any = None


def _gp_bucb(domain: bx.FiniteSet, horizon: int) -> bx.Strategy:
    return bx.algorithms.gp_bucb(domain, matern(0.3), noise_variance=_LAM, width=_WIDTH)


def _sdf(domain: bx.FiniteSet, horizon: int) -> bx.Strategy:
    options: dict[str, Any] = {"noise_variance": _LAM, "width": _WIDTH, "minimum": -2.0}
    return bx.algorithms.gp_ucb_sdf(domain, matern(0.3), **options)


def _gp_ucb(domain: bx.FiniteSet, horizon: int) -> bx.Strategy:
    return bx.algorithms.gp_ucb(domain, matern(0.3), noise_variance=_LAM, width=_WIDTH)


def _bpe_delay(domain: bx.FiniteSet, horizon: int) -> bx.Strategy:
    options: dict[str, Any] = {"noise_variance": _LAM, "width": 1.0, "horizon": horizon}
    return bx.algorithms.bpe_delay(domain, matern(0.3), delay=30, **options)


def _he_gp_ucb(domain: bx.FiniteSet, horizon: int) -> bx.Strategy:
    scales = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.5]
    models = bx.CandidateModels.lengthscales(matern(0.3), scales, noise_variance=_LAM)
    return bx.algorithms.he_gp_ucb(domain, models, noise_std=NOISE_STD, rkhs_bound=0.5)


_LATE = delays.Poisson(25)
CASES = (
    Case("GP-UCB", _gp_ucb),
    Case("GP-BUCB", _gp_bucb, _LATE),
    Case("GP-UCB-SDF", _sdf, _LATE),
    Case("HE-GP-UCB, 8 models", _he_gp_ucb),
    Case("BPE-Delay", _bpe_delay, _LATE),
)


def main(argv: list[str] | None = None) -> None:
    """Compares the points, times both ways and writes the report."""
    options = parse_options("replicates", "All seeds of an experiment.", argv, device=True)
    torch.set_num_threads(1)
    text = "\n".join(_report(options))
    write_report(options, text, f"one thread, {_REPEATS} repeats")


def _report(options: Options) -> Iterator[str]:
    side, horizon, num = (8, 60, 2) if options.smoke else (50, 1_000, 3)
    yield "# All seeds of an experiment together\n"
    yield (
        "`bx.replicate` moves the runs of all seeds forward together, and `bx.simulate` plays one "
        "run. Kernel Matern 5/2 of lengthscale 0.3, lambda = 0.01, noise 0.1.\n"
    )
    yield "## The same points\n"
    yield (
        f"{num} runs of {horizon:,} trials on a grid of {side} x {side} points, whose symmetry "
        "makes exact ties. Delays are Poisson(25) for GP-BUCB, GP-UCB-SDF and BPE-Delay.\n"
    )
    yield markdown_table(list(_equality(side, horizon, num, options.device)))
    yield "## The time\n"
    yield (
        "CPU time of all seeds of GP-UCB with width 2 (d = 3) beside that of as many runs of "
        "`simulate`: the least of the repeats, in which `simulate` plays two runs. On a GPU it is "
        "wall time.\n"
    )
    yield markdown_table(list(_times(options)))


def _equality(side: int, horizon: int, num: int, device: torch.device) -> Iterator[Row]:
    axis = torch.linspace(0, 1, side, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis), device=device)
    problems = [
        RKHSFunction.random(domain, rbf(0.2), norm=2.0, noise_std=NOISE_STD, seed=seed)
        for seed in range(num)
    ]
    for case in CASES:
        method = {case.name: case.make(domain, horizon)}
        options: dict[str, Any] = {"seeds": range(num), "delay": case.delay, "checked": 0}
        traces = bx.replicate(method, problems, horizon, **options)[case.name]
        equal = 0
        for run in range(num):
            trials = traces[run].strategy.history.trials
            other = torch.tensor([trial.info["index"] for trial in trials])
            equal += int((other == cast(Tensor, traces.indices)[run]).sum())
        yield {"method": case.name, "equal points": f"{equal:,} of {num * horizon:,}"}


def _times(options: Options) -> Iterator[Row]:
    sizes, repeats = ((50, 20, 4),) if options.smoke else _SIZES, 1 if options.smoke else _REPEATS
    is_cuda = options.device.type == "cuda"
    for n, horizon, num in sizes:
        generator = torch.Generator().manual_seed(0)
        points = torch.rand(n, 3, dtype=torch.float64, generator=generator)
        domain = bx.FiniteSet(points, device=options.device)
        problems = [
            RKHSFunction.random(domain, matern(0.3), norm=2.0, noise_std=NOISE_STD, seed=seed)
            for seed in range(num)
        ]
        method, pairs = {"a": _gp_ucb(domain, horizon)}, []
        for repeat in range(repeats):
            seeds = [2 * repeat % num, (2 * repeat + 1) % num]
            one = _seconds(partial(_one_by_one, domain, problems, horizon, seeds), is_cuda) / 2
            every = _seconds(partial(_together, method, problems, horizon), is_cuda)
            pairs.append((one, every))
        one, every = (min(each) for each in zip(*pairs, strict=True))
        yield {
            "N": n,
            "T": horizon,
            "seeds": num,
            "simulate, s a run": one,
            "replicate, s": every,
            "us a step and seed": 1e6 * every / (horizon * num),
            "times as fast": num * one / every,
        }


def _one_by_one(
    domain: bx.FiniteSet, problems: list[RKHSFunction], horizon: int, seeds: list[int]
) -> None:
    for seed in seeds:
        bx.simulate(_gp_ucb(domain, horizon), problems[seed], horizon, seed=seed)


def _together(methods: dict[str, bx.Strategy], problems: list[RKHSFunction], horizon: int) -> None:
    bx.replicate(methods, problems, horizon, seeds=range(len(problems)), checked=0)


def _seconds(function: Callable[[], None], is_cuda: bool) -> float:
    clock = time.perf_counter if is_cuda else time.process_time
    start = clock()
    function()
    return clock() - start


if __name__ == "__main__":
    main()
