"""Methods of the practice benchmark: each a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import botorch
import optuna
from optuna.samplers import GPSampler, TPESampler
from torch import Tensor

import botorch_ext as bx
from benchmarks.practice.botorch_methods import (
    Acquire,
    BoTorchLoop,
    Effort,
    confidence_bound,
    noisy_improvement,
)
from benchmarks.practice.library_methods import StrategyLoop
from benchmarks.practice.optuna_methods import OptunaLoop
from botorch_ext.strategies import RandomSearch

OURS, FITTED, REFERENCE, RANDOM = "integrated_ei", "gp_bucb, fitted", "qLogNEI", "random"
_SMOKE = Effort(restarts=1, raw_samples=8, draws=8)


class Loop(Protocol):
    """A method at work. Questions are numbered from 0, in the order of asking."""

    def ask(self) -> Tensor:
        """The next ``d``-dim point."""
        ...

    def tell(self, which: int, value: float) -> None:
        """The result of the question of that number."""
        ...

    def abandon(self, which: int) -> None:
        """No result of that question will come."""
        ...

    def evaluated(self) -> Tensor | None:
        """The evaluated point it recommends by its model, or None where it has no model."""
        ...

    def recommended(self) -> Tensor | None:
        """The point of the box it recommends by its model, or None where it has none."""
        ...


@dataclass(frozen=True)
class Start:
    """What a method begins with.

    Args:
        box: ``2 x d`` bounds.
        initial: ``m x d`` Sobol points that are asked first, those of `bx.Box.sample` with the
            seed.
        seed: Of everything random.
        smoke: Whether only to show that it runs.
    """

    box: Tensor
    initial: Tensor
    seed: int
    smoke: bool


@dataclass(frozen=True)
class Method:
    """A method and what it was made of.

    Args:
        make: A fresh loop.
        settings: Whatever changes its answers. Rows of other settings are stale.
        recommends: What its users get: the ``box`` argmax of its posterior mean, the ``evaluated``
            point with the largest one, or that of the largest value ``observed``.
    """

    make: Callable[[Start], Loop]
    settings: str
    recommends: Literal["box", "evaluated", "observed"]


def _botorch(acquire: Acquire, *, matern: bool = False) -> Method:
    def make(start: Start) -> Loop:
        effort = _SMOKE if start.smoke else Effort()
        return BoTorchLoop(start.box, start.initial, start.seed, acquire, matern, effort)

    kernel = "Matern 5/2" if matern else "default"
    settings = f"{acquire.__name__}, {kernel}, {Effort()}, botorch {botorch.__version__}"
    return Method(make, settings, "evaluated")


def _optuna(sampler: type[Any], **options: Any) -> Method:
    def make(start: Start) -> Loop:
        return OptunaLoop(start.box, start.initial, start.seed, sampler, **options)

    settings = f"{sampler.__name__}, {options}, optuna {optuna.__version__}"
    return Method(make, settings, "observed")


def _strategy(
    make: Callable[..., bx.Strategy],
    settings: str,
    recommends: Literal["box", "evaluated", "observed"],
    **arguments: Any,
) -> Method:
    """Of the library: ``settings`` has a revision, raised when the method's answers change."""

    def loop(start: Start) -> Loop:
        options = {"num_initial": len(start.initial), "seed": start.seed}
        return StrategyLoop(make(bx.Box(start.box), **arguments, **options))

    return Method(loop, settings, recommends)


METHODS = {
    OURS: _strategy(bx.algorithms.integrated_ei, "revision 4", "box"),
    FITTED: _strategy(
        bx.algorithms.gp_bucb, "revision 1", "evaluated", kernel=bx.Fitted(), width=2.0
    ),
    REFERENCE: _botorch(noisy_improvement),
    RANDOM: _strategy(RandomSearch, "revision 1", "observed"),
    "TPE": _optuna(TPESampler, constant_liar=True),
    "qLogNEI, Matern": _botorch(noisy_improvement, matern=True),
    "UCB": _botorch(confidence_bound),
    "GPSampler": _optuna(GPSampler),
}
