"""Practical asks: what a question of integrated_ei costs, by observations and dimension."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern
from benchmarks.common.tables import Row
from benchmarks.performance.botorch_loop import BoTorchLoop
from benchmarks.performance.data import noisy_data
from benchmarks.performance.speed_table import fact_row, ratio_row
from botorch_ext.problems import RKHSFunction

_DIM, _FEW, _MANY, _BASE = 6, 40, 500, 50
_COUNTS, _DIMS = (100, 200, 400), (2, 12, 20)
# Observations and dimensions beyond those: of an ask and its answer, and of the first ask.
_LARGE, _GIVEN = ((2000, 6), (2000, 20), (2000, 100)), 1000
# What a question at most costs with many observations, in seconds.
_MOST = 2.0


class _Loop:
    """A loop that has seen data, and whose steps are timed.

    Args:
        ask: The next question and its ``d``-dim point.
        tell: Takes that question and the value there.
        value: Of a ``d``-dim point.
    """

    def __init__(
        self,
        ask: Callable[[], tuple[Any, Tensor]],
        tell: Callable[[Any, float], None],
        value: Callable[[Tensor], float],
    ) -> None:
        self._ask, self._tell, self._value = ask, tell, value
        started = time.process_time()
        self._asked = ask()  # models and searches start here
        self.first = time.process_time() - started

    def step(self) -> float:
        """Seconds of one core for an answer and the next question."""
        question, x = self._asked
        value = self._value(x)
        started = time.process_time()
        self._tell(question, value)
        self._asked = self._ask()
        return time.process_time() - started


def asked_beside_botorch(options: Options) -> list[Row]:
    """A question with its particles, beside a step of qLogNEI with its fit."""
    steps = 1 if options.smoke else 11
    data = _data(_FEW, _DIM, options.seed)
    ours, theirs = _integrated(*data, options.seed), _noisy_improvement(*data, options.seed)
    taken = [(ours.step(), theirs.step()) for _ in range(steps)]
    name = f"integrated_ei: an answer and the next question, d={_DIM}, n={_FEW}, 32 particles (CPU)"
    against = "qLogNEI: fit, 128 draws, 10 restarts, 512 raw samples (CPU)"
    medians = [statistics.median(column) for column in zip(*taken, strict=True)]
    row = ratio_row(name, against, *medians, at_most=1 / 3)
    row["required"] += " (reach for 1/10)"
    return [row]


def growth(options: Options) -> list[Row]:
    """How the cost grows with observations and dimension, and what it is with many."""
    counts, dims, many = (_COUNTS, _DIMS, _MANY)
    if options.smoke:
        counts, dims, many = (60,), (2,), 70
    base = _seconds(_BASE, _DIM, options)
    against = f"d={_DIM}, n={_BASE}"
    sizes = [(n, _DIM) for n in counts] + [(_BASE, dim) for dim in dims]
    rows = [
        ratio_row(f"integrated_ei, d={dim}, n={n}", against, _seconds(n, dim, options), base)
        for n, dim in sizes
    ]
    seconds = _seconds(many, _DIM, options)
    what = f"integrated_ei, d={_DIM}, n={many}: seconds"
    return [*rows, fact_row(what, "", seconds, f"< {_MOST:g} s", seconds < _MOST)]


def large(options: Options) -> list[Row]:
    """What an ask costs with thousands of observations, and the first one after many results."""
    sizes, given = (((70, 2),), 70) if options.smoke else (_LARGE, _GIVEN)
    rows = [
        fact_row(f"integrated_ei, d={dim}, n={n}: seconds", "", _seconds(n, dim, options), "", "")
        for n, dim in sizes
    ]
    first = _integrated(*_data(given, _DIM, options.seed), options.seed).first
    what = f"integrated_ei, d={_DIM}: seconds of the first ask after {given} given results"
    return [*rows, fact_row(what, "", first, "", "")]


def _seconds(n: int, dim: int, options: Options) -> float:
    loop = _integrated(*_data(n, dim, options.seed), options.seed)
    return statistics.median(loop.step() for _ in range(1 if options.smoke else 5))


def _data(n: int, dim: int, seed: int) -> tuple[Tensor, Tensor, Callable[[Tensor], float]]:
    """Data as a study gathers them, ``n x d`` and ``n``, and the function that they are of."""
    kernel = matern(0.3 * dim**0.5)
    X, Y = noisy_data(n, dim, kernel, seed, torch.device("cpu"), gathered=True)
    f = RKHSFunction.random(_cube(dim), kernel, norm=1.0, num_centers=200, seed=seed)
    mean, std = float(f(X).mean()), float(f(X).std())
    return X, Y[:, 0], lambda x: (float(f(x)) - mean) / std


def _cube(dim: int) -> bx.Box:
    return bx.Box([[0.0] * dim, [1.0] * dim])


def _integrated(X: Tensor, Y: Tensor, value: Callable[[Tensor], float], seed: int) -> _Loop:
    box = _cube(X.shape[1])
    strategy = bx.algorithms.integrated_ei(box, initial=(X, Y), num_initial=0, seed=seed)

    def ask() -> tuple[int, Tensor]:
        trial = strategy.ask()
        return trial.id, trial.x

    return _Loop(ask, strategy.tell, value)


def _noisy_improvement(X: Tensor, Y: Tensor, value: Callable[[Tensor], float], seed: int) -> _Loop:
    loop = BoTorchLoop(_cube(X.shape[1]).bounds, X, Y[:, None], seed)
    return _Loop(lambda: (x := loop.ask(), x), loop.tell, value)
