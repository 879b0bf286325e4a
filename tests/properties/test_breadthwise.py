"""Breadthwise exploration keeps the cell of the maximiser, as V_h is added where cells are kept."""

import math

import numpy as np
import pytest
import torch

from botorch_ext import Box, algorithms
from botorch_ext.problems import RKHSFunction
from tests.helpers import matern
from tests.oracles.breadthwise import Oracle
from tests.properties.instances import DELTA, MOST_VIOLATIONS, RUNS

pytestmark = pytest.mark.slow

NORM, LOW, HIGH, SIGMA = 0.7, 2.0, 3.4, 0.01
NUMBERS = {
    "rkhs_bound": NORM,
    "noise_variance": 1e-3,
    "noise_std": SIGMA,
    "delta": DELTA,
    "horizon": 300,
}
# 1/sqrt(T): with a smaller V_h nothing is refined any more.
LEAST_SLACK = 300**-0.5
GRID = torch.linspace(LOW, HIGH, 4001, dtype=torch.float64)


def two_hills(seed):
    """Hills of nearly the same height, of exactly known norm, and where the higher one is."""
    g = torch.Generator().manual_seed(seed)
    centers = LOW + (HIGH - LOW) * torch.rand(2, 1, generator=g, dtype=torch.float64)
    weights = 1.0 - 0.03 * torch.rand(2, generator=g, dtype=torch.float64)
    k = matern(0.2)
    weights *= NORM / (weights @ k(centers).to_dense() @ weights).detach().sqrt()
    problem = RKHSFunction(k, centers, weights, Box([(LOW, HIGH)]), noise_std=SIGMA)
    return problem, float(GRID[problem(GRID[:, None]).argmax()])


def holds(lower, upper, x):
    """Whether one of the cells has a point, up to the step of the grid it is from."""
    return bool(((lower - 4e-4 <= x) & (x <= upper + 4e-4)).any())


def keeps(problem, x):
    """Whether the cell of the maximiser stays, and whether a quarter of the box is dropped."""
    strategy = algorithms.breadthwise_exploration(Box([(LOW, HIGH)]), matern(0.2), **NUMBERS)
    # What follows is evaluated on one level and drops nothing.
    while strategy.levels[-1].slack > LEAST_SLACK:
        trial = strategy.ask()
        noise = torch.randn((), generator=torch.Generator().manual_seed(7 * trial.id + 1)).item()
        strategy.tell(trial, float(problem(trial.x)) + SIGMA * noise)
    last = strategy.levels[-1]
    return holds(last.lower, last.upper, x), last.num_cells < 0.75 * 2**last.depth


def keeps_without_slack(problem, x, seed):
    """Whether it stays where V_h is left out of the retention test."""
    oracle = Oracle(matern(0.2), ((LOW, HIGH),), (math.sqrt(5 / 3), 1.0, (0.2,)), **NUMBERS)
    noise = np.random.default_rng(seed)
    while oracle.level.slack > LEAST_SLACK:
        while oracle.refines(oracle.std()):
            judged = oracle.judge()
            oracle.refine(judged.margin - oracle.level.slack >= 0)
        row = int(oracle.std().argmax())
        center = torch.tensor(oracle.level.cells[row].center, dtype=torch.float64)
        oracle.tell(oracle.ask(row), float(problem(center)) + SIGMA * noise.normal())
    ends = torch.tensor([cell.intervals[0] for cell in oracle.level.cells])
    return holds(ends[:, 0], ends[:, 1], x)


def test_the_cell_of_the_maximiser_stays():
    kept, dropping, kept_without = 0, 0, 0
    for seed in range(RUNS):
        problem, x = two_hills(seed)
        stays, drops = keeps(problem, x)
        kept += stays
        dropping += drops
        kept_without += keeps_without_slack(problem, x, seed)
    assert RUNS - kept <= MOST_VIOLATIONS
    assert dropping > 0.9 * RUNS  # dropping nothing would keep the maximiser too
    # Among n runs in which one of two methods that are as good as each other loses it, it is always
    # the second with probability 2^-n: 1e-4 for n = 14.
    assert kept - kept_without >= 14
