"""Launch paths: hot paths of the library, counted on a pretended GPU.

Each takes whether it is to be small, runs with everything on the device, and returns what it
counted and over how many steps. Launches and stops hardly depend on sizes; on a box they depend on
the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.optim import optimize_acqf
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.pretend_cuda import Tally, counting
from benchmarks.performance.box import strategy_on_box
from benchmarks.performance.data import noisy_data, single_task_gp
from benchmarks.performance.delayed_studies import bpe_delay, problem_on_box
from benchmarks.performance.many_models import lengthscales, strategy_of_lengthscales
from benchmarks.performance.planner import random_set, started
from botorch_ext.problems import Problem, RKHSFunction

_CUDA = torch.device("cuda")


class Counted(NamedTuple):
    """What was counted.

    Args:
        tally: Over all steps.
        steps: How many.
    """

    tally: Tally
    steps: int

    @property
    def launches(self) -> float:
        """Of one step."""
        return self.tally.launches / self.steps

    @property
    def stops(self) -> float:
        """Of one step."""
        return self.tally.num_stops / self.steps


Path = Callable[[bool], Counted]


def _added(n: int, small: bool) -> Counted:
    n, settle, more = 60 if small else n, 2, 10
    kernel = rbf(0.8)
    X, Y = noisy_data(n + settle + more, 6, kernel, 0, _CUDA)
    rows = [(X[i : i + 1], Y[i : i + 1]) for i in range(n, n + settle + more)]
    model = bx.KernelGP(kernel, 1e-2, device=_CUDA)
    model.add(X[:n], Y[:n])
    for row in rows[:settle]:  # where the buffers grow
        model.add(*row)
    with counting() as tally:
        for row in rows[settle:]:
            model.add(*row)
    return Counted(tally, more)


def _played(strategy: bx.Strategy, problem: Problem, before: int, steps: int) -> Counted:
    """Asked and told; the function itself does not count."""
    tally = Tally()
    for step in range(before + steps):
        counted = tally if step >= before else Tally()
        with counting(counted):
            trial = strategy.ask()
        value = float(problem(trial.x.unsqueeze(0)))
        with counting(counted):
            strategy.tell(trial.id, value)
    return Counted(tally, steps)


def _finite(num_points: int, small: bool) -> Counted:
    domain = random_set(100 if small else num_points, 0, _CUDA)
    strategy = bx.algorithms.gp_ucb(
        domain, rbf(0.3), noise_variance=4e-4, rkhs_bound=2.0, noise_std=0.02
    )
    problem = RKHSFunction.random(domain, rbf(0.3), norm=2.0, num_centers=50)
    return _played(strategy, problem, 20, 20)


def _finite_models(small: bool) -> Counted:
    domain = random_set(100 if small else 2500, 0, _CUDA)
    models = bx.CandidateModels.lengthscales(
        RBFKernel(), lengthscales(32), noise_variance=0.05**2, device=_CUDA
    )
    strategy = bx.algorithms.he_gp_ucb(domain, models, noise_std=0.05, rkhs_bound=2.0)
    problem = RKHSFunction.random(domain, rbf(0.3), norm=2.0, num_centers=50)
    return _played(strategy, problem, 20, 20)


def _planned(num_points: int, q: int, whole: bool, small: bool) -> Counted:
    num_points, q = (200, 40) if small else (num_points, q)
    domain = random_set(num_points, 0, _CUDA)
    model = started(rbf(0.3), domain.points[:1])
    with counting() as tally:
        bx.plan(domain, model, q)
    return Counted(tally, 1 if whole else q)


def _planned_on_box(small: bool) -> Counted:
    q = 10 if small else 99
    box = bx.Box([[0.0] * 6, [1.0] * 6], device=_CUDA)
    model = started(rbf(1.0), box.sample(1, 0))
    with counting() as tally:
        bx.plan(box, model, q)
    return Counted(tally, q)


def _asked(ask_of: Callable[[int], Callable[[], object]], problems: int, small: bool) -> Counted:
    """One question of each problem."""
    tally, problems = Tally(), 1 if small else problems
    for seed in range(problems):
        ask = ask_of(seed)
        with counting(tally):
            ask()
    return Counted(tally, problems)


# Kernel, lengthscale, whether the data are gathered around a good point.
_PROBLEMS = ((rbf, 0.3, False), (rbf, 0.6, True), (matern, 0.3, True), (matern, 0.6, False))


def _on_box(seed: int) -> Callable[[], object]:
    kind, scale, gathered = _PROBLEMS[seed]
    X, Y = noisy_data(500, 6, kind(scale), seed, _CUDA, gathered)
    return strategy_on_box(X, Y, kind(scale), seed).ask


def _botorch_on_box(seed: int) -> Callable[[], object]:
    kind, scale, gathered = _PROBLEMS[seed]
    X, Y = noisy_data(500, 6, kind(scale), seed, _CUDA, gathered)
    ucb = UpperConfidenceBound(single_task_gp(X, Y, kind(scale), 1e-2), beta=4.0)
    with torch.no_grad():
        ucb(X[:1].unsqueeze(-2))  # fills the caches of the model
    bounds = torch.stack([X.new_zeros(6), X.new_ones(6)])
    torch.manual_seed(seed)
    return lambda: optimize_acqf(ucb, bounds, q=1, num_restarts=10, raw_samples=512)


def _of_lengthscales(seed: int) -> Callable[[], object]:
    kind, scale, gathered = _PROBLEMS[seed]
    X, Y = noisy_data(200, 4, kind(scale), seed, _CUDA, gathered)
    return strategy_of_lengthscales(X, Y, kind is rbf, lengthscales(16), seed).ask


def _stable(seed: int) -> Callable[[], object]:
    box = bx.Box([[0.0] * 2, [1.0] * 2], device=_CUDA)
    data = noisy_data(50, 2, rbf(0.3), seed, _CUDA)
    return bx.algorithms.stable_opt(
        box, rbf(0.3), noise_variance=1e-2, radius=0.1, width=2.0, initial=data, seed=seed
    ).ask


def _opened(small: bool) -> Counted:
    problem, number = problem_on_box(_CUDA), 2 if small else 3
    domain = problem.domain
    strategy = bpe_delay(domain, 50, None) if small else bpe_delay(domain, 1000)
    while True:
        with counting() as tally:
            trial = strategy.ask()
        if len(strategy.rounds) == number:
            return Counted(tally, len(strategy.rounds[-1].points) if small else 1)
        strategy.tell(trial.id, float(problem(trial.x.unsqueeze(0))))


def _breadthwise(small: bool) -> Counted:
    box = bx.Box([[1.0, -1.0], [2.0, 0.5]], device=_CUDA)
    problem = RKHSFunction.random(box, matern(0.5), norm=1.0, noise_std=0.03, seed=3)
    strategy = bx.algorithms.breadthwise_exploration(
        box,
        matern(0.5),
        noise_variance=0.03**2,
        horizon=3000,
        rkhs_bound=1.0,
        noise_std=0.03,
    )
    return _played(strategy, problem, 0, 40 if small else 400)


PATHS: Mapping[str, Path] = {
    "KernelGP.add, n=1000": partial(_added, 1000),
    "KernelGP.add, n=4000": partial(_added, 4000),
    "gp_ucb, finite, N=2500, ask and tell": partial(_finite, 2500),
    "gp_ucb, finite, N=100k, ask and tell": partial(_finite, 100_000),
    "plan, finite, N=10k, q=300, per point": partial(_planned, 10_000, 300, False),
    "plan, finite, N=1e6, q=200, whole call": partial(_planned, 1_000_000, 200, True),
    "plan, box, d=6, q=99, per point": _planned_on_box,
    "ec_gp_ucb, box, d=6, n=500, ask, mean of 4": partial(_asked, _on_box, 4),
    "optimize_acqf of BoTorch, the same": partial(_asked, _botorch_on_box, 4),
    "he_gp_ucb, box, d=4, n=200, 16 models, ask, mean of 4": partial(_asked, _of_lengthscales, 4),
    "he_gp_ucb, finite, N=2500, 32 models, ask and tell": _finite_models,
    "stable_opt, box, d=2, n=50, ask": partial(_asked, _stable, 1),
    "bpe_delay, box, opening of a round of about 500 points": _opened,
    "breadthwise, d=2, step, mean of 400": _breadthwise,
}
