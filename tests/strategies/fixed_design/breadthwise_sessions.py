"""Cases of breadthwise exploration, and how their sessions are replayed through the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from gpytorch.kernels import Kernel

from botorch_ext import algorithms
from botorch_ext.domains import Box
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import Abandoned, Asked, BreadthwiseExploration, Told
from tests.helpers import matern, rbf
from tests.oracles.breadthwise import Oracle
from tests.strategies.adaptive.joint_kernels import scaled
from tests.strategies.fixed_design.sessions import Wait, observe

NUS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
# The constants C_k and xi, for lengthscale 1.
HOLDER = {
    "matern12": (math.sqrt(2), 0.5),
    "matern32": (math.sqrt(3), 1.0),
    "matern52": (math.sqrt(5 / 3), 1.0),
    "rbf": (1.0, 1.0),
}
LINE = ((2.0, 5.0),)
PLANE = ((2.0, 5.0), (-3.0, -1.5))


@dataclass(frozen=True)
class Case:
    """A kernel, a box, and the numbers of the method."""

    kind: str
    lengthscales: Sequence[float]
    ends: Sequence[tuple[float, float]]
    rkhs_bound: float = 1.5
    noise_variance: float = 1e-3
    noise_std: float = 0.02
    delta: float = 0.1
    horizon: int = 300
    outputscale: float = 1.0
    # What differs between the arguments of the strategy and those of the oracle.
    strategy: dict[str, Any] = field(default_factory=dict)
    oracle: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, Any]:
        names = ("noise_variance", "horizon", "rkhs_bound", "noise_std", "delta")
        return {name: getattr(self, name) for name in names}

    def kernel(self) -> Kernel:
        seen = [j for j, scale in enumerate(self.lengthscales) if scale < math.inf]
        scales = [self.lengthscales[j] for j in seen]
        more = {"active_dims": seen} if len(seen) < len(self.lengthscales) else {}
        nu = NUS.get(self.kind)
        kernel = rbf(*scales, **more) if nu is None else matern(*scales, nu=nu, **more)
        return kernel if self.outputscale == 1.0 else scaled(kernel, self.outputscale)

    def make(self, **changed: Any) -> BreadthwiseExploration:
        options = {"kernel": self.kernel(), **self.numbers, **self.strategy, **changed}
        return algorithms.breadthwise_exploration(Box(self.ends), **options)

    def make_oracle(self) -> Oracle:
        constant, exponent = HOLDER[self.kind]
        holder = math.sqrt(self.outputscale) * constant, exponent, self.lengthscales
        options = {"holder": holder, **self.numbers, **self.oracle}
        return Oracle(self.kernel(), self.ends, **options)

    def problem(self, seed: int = 0) -> RKHSFunction:
        box, norm = Box(self.ends), self.rkhs_bound
        return RKHSFunction.random(box, self.kernel(), norm, 4, noise_std=self.noise_std, seed=seed)

    def but(self, **changed: Any) -> Case:
        return replace(self, **changed)


def play_promptly(strategy: BreadthwiseExploration, problem: RKHSFunction, number: int) -> None:
    for _ in range(number):
        observe(strategy, problem, [strategy.ask().id])


def replay(strategy: BreadthwiseExploration, oracle: Oracle, waits: Sequence[Wait] = ()) -> Oracle:
    """Follows a history with the oracle, comparing every decision."""
    waiting = {wait.num_events: wait for wait in waits if not wait.available}
    for number, event in enumerate(strategy.events):
        if number in waiting:
            assert oracle.refines(oracle.std()) is not False
            assert sorted(oracle.missing) == waiting[number].ids
        match event:
            case Asked(trial):
                _follow(strategy, oracle, trial)
            case Told(id, value):
                oracle.tell(id, value)
            case Abandoned(id):
                oracle.abandon(id)
    _compare_cells(strategy.levels[-1], oracle)
    last = strategy.levels[-1]
    assert (last.kept, last.threshold, last.width) == (None, None, None)
    for depth, (level, expected) in enumerate(zip(strategy.levels, oracle.levels, strict=True)):
        assert level.depth == depth
        counts = [0] * len(expected.cells)
        for id in expected.values:
            counts[expected.evaluated[id]] += 1
        assert level.counts.tolist() == counts
        assert level.num_evaluations == sum(counts)
    return oracle


def _follow(strategy: BreadthwiseExploration, oracle: Oracle, trial: Any) -> None:
    """One ask: the refinements before it, and the pick."""
    info, before = trial.info, len(oracle.levels)
    while len(oracle.levels) <= info["level"]:
        judged = _judge(oracle)
        played = strategy.levels[len(oracle.levels) - 1]
        _compare_cells(played, oracle)
        # Tolerances: rounding of dense algebra, condition number 3e4.
        assert played.width == pytest.approx(judged.width, rel=1e-9)
        assert played.threshold == pytest.approx(judged.threshold, abs=1e-7)
        assert played.mean.numpy() == pytest.approx(judged.mean, abs=1e-7)
        assert played.std.numpy() == pytest.approx(judged.std, abs=1e-7)
        # Cells within rounding of the threshold may be kept or not.
        kept = played.kept.numpy()
        clear = np.abs(judged.margin) > 1e-9
        assert np.array_equal(kept[clear], (judged.margin >= 0)[clear])
        assert not oracle.is_crowded(kept)
        oracle.refine(kept)
    crowded = info.get("opening", {}).get("crowded")
    if crowded is not None:
        kept = _judge(oracle).margin >= 0
        assert oracle.is_crowded(kept)
        assert crowded == 2 * kept.sum()
        oracle.put_off()
    std = oracle.std()
    assert oracle.refines(std) is not True
    assert len(oracle.levels) == info["level"] + 1
    assert ("opening" in info) == (len(oracle.levels) > before or crowded is not None)
    row = [cell.code for cell in oracle.level.cells].index(info["cell"])
    assert std.max() - std[row] <= 1e-7
    assert info["std"] == pytest.approx(std[row], abs=1e-7)
    assert info["slack"] == pytest.approx(oracle.level.slack, rel=1e-12)
    assert trial.x.tolist() == pytest.approx(oracle.level.cells[row].center, rel=1e-13)
    if len(oracle.levels) > before:
        assert strategy.levels[info["level"]].first == trial.id
    assert oracle.ask(row) == trial.id


def _judge(oracle: Oracle) -> Any:
    """What is kept of a level that must be refined, or put off, now."""
    assert oracle.refines(oracle.std()) is not False
    assert not oracle.missing
    return oracle.judge()


def _compare_cells(level: Any, oracle: Oracle) -> None:
    """The active cells of the current level of the oracle."""
    cells = oracle.level.cells
    assert level.codes.tolist() == [cell.code for cell in cells]
    ends = np.array([cell.intervals for cell in cells])
    assert level.lower.numpy() == pytest.approx(ends[..., 0], rel=1e-13)
    assert level.upper.numpy() == pytest.approx(ends[..., 1], rel=1e-13)
    assert level.centers.numpy() == pytest.approx(ends.mean(axis=-1), rel=1e-13)
    radius = cells[0].half_diagonal(oracle.root, oracle.units)
    assert level.half_diagonal == pytest.approx(radius, rel=1e-12)
    assert level.slack == pytest.approx(oracle.level.slack, rel=1e-12)
