"""Finite study: a whole one on a finite set, beside the same study as a plain loop."""

from __future__ import annotations

import math
import statistics

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.performance.speed_table import ratio_row
from botorch_ext.problems import RKHSFunction

_LENGTHSCALE = 1.0
_NOISE_VARIANCE = 4e-4
_NOISE_STD = 0.02
_RKHS_BOUND = 2.0
_DELTA = 0.1


class PlainLoop:
    """GP-UCB with an RBF kernel on N candidates, written out.

    Args:
        candidates: ``N x d``.
        values: ``N`` observations, one for each candidate.
        horizon: T, at most so many steps.
    """

    def __init__(self, candidates: Tensor, values: list[float], horizon: int) -> None:
        self.X, self.values = candidates, values
        self.mean = candidates.new_zeros(len(candidates))
        self.variance = candidates.new_ones(len(candidates))
        self.V = candidates.new_empty(horizon, len(candidates))
        self.information_gain = 0.0
        self.picks: list[int] = []

    def bound(self) -> Tensor:
        """mean + w std, with the width of Bogunovic and Krause 2021, lemma 1."""
        radius = math.sqrt(2 * math.log(1 / _DELTA) + 2 * self.information_gain)
        width = _NOISE_STD / math.sqrt(_NOISE_VARIANCE) * radius + _RKHS_BOUND
        return self.mean + width * self.variance.clamp_min(0).sqrt()

    def step(self) -> None:
        """Evaluates the candidate with the highest bound."""
        self.evaluate(int(self.bound().argmax()))

    def evaluate(self, row: int) -> None:
        """One kernel row and one matrix-vector product."""
        n = len(self.picks)
        squared = (self.X - self.X[row]).square().sum(dim=-1) / _LENGTHSCALE**2
        v = (-0.5 * squared).exp() - self.V[:n, row].contiguous() @ self.V[:n]  # (N,)
        pivot = math.sqrt(float(v[row]) + _NOISE_VARIANCE)
        v /= pivot
        self.mean.add_(v, alpha=(self.values[row] - float(self.mean[row])) / pivot)
        self.variance.sub_(v.square())
        self.V[n] = v
        self.information_gain += math.log(pivot**2 / _NOISE_VARIANCE) / 2
        self.picks.append(row)


def finite_posterior(options: Options) -> list[Row]:
    """GP-UCB on a 50 x 50 grid, strategy overhead included, against the plain loop."""
    side, horizon, repeats = (10, 40, 1) if options.smoke else (50, 1000, 7)
    domain, values = values_on_grid(side, options.seed, options.device)
    ours, plain, picks = [], [], []
    for _ in range(repeats):
        picks, times = play_on_grid(domain, values, horizon)
        ours.append(times)
        loop = PlainLoop(domain.points, values, horizon)
        plain.append([seconds(loop.step, domain.device) for _ in range(horizon)])

    name = f"FinitePosterior, GP-UCB ask/tell, N={side**2}"
    ours_total, plain_total = (
        statistics.median(sum(times) for times in runs) for runs in (ours, plain)
    )
    study = f"{name}: T={horizon}"
    rows = [ratio_row(study, "the plain loop", ours_total, plain_total, at_most=2)]
    counts = (horizon // 4, horizon // 2, horizon)
    ours_step, plain_step = ([_step_seconds(runs, n) for n in counts] for runs in (ours, plain))
    for i, n in enumerate(counts):
        rows.append(
            ratio_row(f"{name}: one step, n={n}", "the plain loop", ours_step[i], plain_step[i])
        )
    # Linear in n: four times the observations cost at most four times as much.
    growth = f"{name}: one step, n={counts[2]}"
    rows.append(
        ratio_row(growth, f"one step, n={counts[0]}", ours_step[2], ours_step[0], at_most=4)
    )
    miss = f"{name}: most by which a pick misses the highest bound"
    gap = _largest_gap(PlainLoop(domain.points, values, horizon), picks)
    largest = max(map(abs, values))
    rows.append(ratio_row(miss, "the largest observation", gap, largest, unit="of y", at_most=1e-9))
    return rows


def values_on_grid(side: int, seed: int, device: torch.device) -> tuple[bx.FiniteSet, list[float]]:
    """A square grid, and an observation at each of its points."""
    axis = torch.linspace(-5, 5, side, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis), device=device)
    f = RKHSFunction.random(domain, rbf(_LENGTHSCALE), norm=_RKHS_BOUND, seed=seed)
    noise = torch.randn(side**2, generator=torch.Generator().manual_seed(seed))
    return domain, (f(domain.points).cpu() + _NOISE_STD * noise).tolist()


def _step_seconds(runs: list[list[float]], n: int) -> float:
    """The median step of a tenth of the horizon around n (at its end, of the last tenth)."""
    horizon = len(runs[0])
    first = min(n - horizon // 20, horizon - horizon // 10)
    return statistics.median(
        second for times in runs for second in times[first : first + horizon // 10]
    )


def play_on_grid(
    domain: bx.FiniteSet, values: list[float], horizon: int
) -> tuple[list[int], list[float]]:
    """The rows that GP-UCB picks, and the seconds of each step."""
    strategy = bx.algorithms.gp_ucb(
        domain,
        rbf(_LENGTHSCALE),
        noise_variance=_NOISE_VARIANCE,
        rkhs_bound=_RKHS_BOUND,
        noise_std=_NOISE_STD,
        delta=_DELTA,
    )
    picks: list[int] = []

    def step() -> None:
        trial = strategy.ask()
        picks.append(trial.info["index"])
        strategy.tell(trial.id, values[picks[-1]])

    return picks, [seconds(step, domain.device) for _ in range(horizon)]


def _largest_gap(loop: PlainLoop, picks: list[int]) -> float:
    """How far the bound of a pick lies below the highest bound, at most; ties do not count."""
    gap = 0.0
    for row in picks:
        bound = loop.bound()
        gap = max(gap, float(bound.max() - bound[row]))
        loop.evaluate(row)
    return gap
