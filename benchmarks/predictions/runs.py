"""The runs: a study in batches of four, what was predicted on the way, and what was true."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.real.tasks.functions import FUNCTIONS
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.answers.expected_gain import gain_of
from botorch_ext.strategies.answers.importance import sobol_indices

BATCH = 4
FIRST_LOOK = 20
BANDS = (0.5, 0.95)
# The ends of both bands.
_LEVELS = (0.025, 0.25, 0.75, 0.975)
_NUM_POINTS = 256
_A = torch.tensor([0.0, 1.0, 4.5, 9.0, 99.0, 99.0], dtype=torch.float64)
_NUM_TRUE_SAMPLES = 2**15


@dataclass(frozen=True)
class Case:
    """One study of a function.

    Args:
        problem: A key of `FUNCTIONS`.
        noise: The standard deviation of the noise, in ranges of the function.
        seed: Of everything random.
        num_trials: Evaluations, in batches of four.
    """

    problem: str
    noise: float
    seed: int
    num_trials: int


@dataclass(frozen=True)
class ImportanceCase:
    """One study of a function whose Sobol indices are known.

    Args:
        function: Its name.
        seed: Of everything random.
        num_trials: Evaluations, in batches of four.
        asked: Whether the method chooses the points; else they are Sobol points.
    """

    function: str
    seed: int
    num_trials: int
    asked: bool


def play(case: Case) -> list[Row]:
    """The rows of all looks at a study: one after each batch from 20 trials on."""
    function = FUNCTIONS[case.problem]
    box = bx.Box(list(function.bounds))
    strategy = bx.algorithms.integrated_ei(box, seed=case.seed)
    noise_std = case.noise * function.width
    generator = torch.Generator().manual_seed(1_000 + case.seed)
    points = box.sample(_NUM_POINTS, seed=500 + case.seed)
    truth, rows = function(points), []

    def noisy(values: Tensor) -> Tensor:
        noise = torch.randn(len(values), generator=generator, dtype=torch.float64)
        return values + noise_std * noise

    while True:
        n = len(strategy.history.values)
        row: Row = {"problem": case.problem, "noise": case.noise, "seed": case.seed, "trials": n}
        if n >= FIRST_LOOK:
            row |= _recommended(strategy, function, function.best)
            row |= _shares(strategy, points, truth, noisy(truth), "space")
        trials = strategy.ask(BATCH)
        batch = torch.stack([trial.x for trial in trials])
        f = function(batch)
        observed = noisy(f)
        if n >= FIRST_LOOK:
            row |= _shares(strategy, trials, f, observed, "asked")
            row |= _gain(strategy, batch, function)
            for name in ("gain", "gained", "noise_std", "seen", "regret", "shortfall"):
                row[name] /= function.width
            rows.append(row)
        if n >= case.num_trials:
            return rows
        for trial, value in zip(trials, observed.tolist(), strict=True):
            strategy.tell(trial, value)


def play_importance(case: ImportanceCase) -> list[Row]:
    """A row for each parameter: its indices, by the model and true ones."""
    function, box = importance_functions()[case.function]
    strategy = bx.algorithms.integrated_ei(box, seed=case.seed)
    if case.asked:
        while len(strategy.history.values) < case.num_trials:
            for trial in strategy.ask(BATCH):
                strategy.tell(trial, float(function(trial.x[None])))
    else:
        for x in box.sample(case.num_trials, seed=case.seed):
            strategy.attach(x, float(function(x[None])))
    found = strategy.importance()
    first, total = true_indices(case.function)
    return [
        {
            "function": case.function,
            "points": "asked" if case.asked else "Sobol",
            "seed": case.seed,
            "parameter": name,
            "first": float(found.first_order[j]),
            "true first": first[j],
            "total": float(found.total[j]),
            "true total": total[j],
        }
        for j, name in enumerate(found.names)
    ]


def importance_functions() -> dict[str, tuple[Callable[[Tensor], Tensor], bx.Box]]:
    """Functions of known importance, and where."""
    hartmann = FUNCTIONS["Hartmann6 in 20"]
    return {
        "Ishigami": (_ishigami, bx.Box([(-math.pi, math.pi)] * 3)),
        "g-function": (_g_function, bx.Box([(0.0, 1.0)] * 6)),
        "Hartmann6 in 20": (hartmann, bx.Box(list(hartmann.bounds))),
    }


def true_indices(name: str) -> tuple[list[float], list[float]]:
    """First-order and total indices: by their formulas, those of Hartmann6 from 32,768 scrambled
    Sobol points of the function itself."""
    function, box = importance_functions()[name]
    if name == "Ishigami":
        a, b = 7.0, 0.1
        one = 0.5 * (1 + b * math.pi**4 / 5) ** 2
        two, mixed = a**2 / 8, b**2 * math.pi**8 * (1 / 18 - 1 / 50)
        total = one + two + mixed
        return [one / total, two / total, 0.0], [(one + mixed) / total, two / total, mixed / total]
    if name == "g-function":
        own = 1 / (3 * (1 + _A) ** 2)
        whole = (1 + own).prod()
        variance = whole - 1
        return (own / variance).tolist(), (own * whole / (1 + own) / variance).tolist()
    first, total, _ = sobol_indices(
        lambda U: function(box.from_unit(U)), box.dim, _NUM_TRUE_SAMPLES, seed=0
    )
    return first.tolist(), total.tolist()


def _recommended(strategy: Strategy, f: Callable[[Tensor], Tensor], optimum: float) -> Row:
    """What is said of the recommended point, and what is true of it."""
    recommended, (told, values) = strategy.recommended(), strategy.evaluated()
    here = float(f(recommended.x[None]))
    return {
        "seen": float(values.max() - values.min()),
        "regret": optimum - here,
        "probability": recommended.probability,
        "is_best": float(here >= float(f(told).max())),
        "shortfall": recommended.shortfall,
    }


def _gain(strategy: Strategy, batch: Tensor, f: Callable[[Tensor], Tensor]) -> Row:
    """What the batch that was just asked was expected to gain, as `Strategy.expected_gain` says
    before it is asked, and what it gained. Calling that would choose the batch twice."""
    told = strategy.evaluated()[0]
    gain = gain_of(strategy._mixture(None), told, batch, strategy.domain, strategy.seed)
    gained = max(float(f(batch).max()) - float(f(told).max()), 0.0)
    return {"gain": gain.gain, "noise_std": gain.noise_std, "gained": gained}


def _shares(
    strategy: Strategy, points: Tensor | list[Trial], f: Tensor, observed: Tensor, where: str
) -> Row:
    """The shares of values and of observations inside the bands."""
    found, row = strategy.predict(points, levels=_LEVELS), {}
    for what, values, ends in (
        ("f", f, found.quantiles),
        ("y", observed, found.observation_quantiles),
    ):
        for band, low, high in ((BANDS[0], 1, 2), (BANDS[1], 0, 3)):
            inside = (values >= ends[:, low]) & (values <= ends[:, high])
            row[f"{where} {what} {band:g}"] = float(inside.double().mean())
    return row


def _ishigami(X: Tensor) -> Tensor:
    x, y, z = X.unbind(dim=-1)
    return x.sin() + 7 * y.sin() ** 2 + 0.1 * z**4 * x.sin()


def _g_function(X: Tensor) -> Tensor:
    return (((4 * X - 2).abs() + _A) / (1 + _A)).prod(dim=-1)
