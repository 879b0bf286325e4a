"""Hot paths of the library, and of BoTorch for the same, whose steps a `Meter` measures.

Each runs with everything on the device of the meter. Launches and stops hardly depend on sizes; on
a box they depend on the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.optim import optimize_acqf
from gpytorch.kernels import Kernel, RBFKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from benchmarks.performance.botorch_loop import BoTorchLoop
from benchmarks.performance.box import strategy_on_box
from benchmarks.performance.data import noisy_data, single_task_gp
from benchmarks.performance.delayed_studies import bpe_delay, problem_on_box
from benchmarks.performance.many_models import lengthscales, strategy_of_lengthscales
from benchmarks.performance.meters import Meter
from benchmarks.performance.planner import random_set, started
from botorch_ext.problems import Problem, RKHSFunction

# Observations that come before those that are measured, and how many these are.
_SETTLE, _MORE = 2, 10
# Of a meter and whether it is to be small, to what it chose or found: the same on every device.
Path = Callable[[Meter, bool], Tensor]


def _observations(n: int, meter: Meter) -> tuple[Kernel, Tensor, Tensor]:
    """A kernel, and n points and values to add one by one, and a few that settle everything."""
    kernel = rbf(0.8)
    return kernel, *noisy_data(n + _SETTLE + _MORE, 6, kernel, 0, meter.device)


def _added(n: int, meter: Meter, small: bool) -> Tensor:
    n = 60 if small else n
    kernel, X, Y = _observations(n, meter)
    rows = [(X[i : i + 1], Y[i : i + 1]) for i in range(n, n + _SETTLE + _MORE)]
    model = bx.KernelGP(kernel, 1e-2, device=meter.device)
    model.add(X[:n], Y[:n])
    for row in rows[:_SETTLE]:  # where the buffers grow
        model.add(*row)
    for row in rows[_SETTLE:]:
        with meter.measured():
            model.add(*row)
    return model.mean_at(X[:4])


def _conditioned(n: int, meter: Meter, small: bool) -> Tensor:
    """What BoTorch does for `_added`."""
    n = 60 if small else n
    kernel, X, Y = _observations(n, meter)
    model = single_task_gp(X[:n], Y[:n], kernel, 1e-2)
    with torch.no_grad():
        model.posterior(X[:1])  # fills the caches that conditioning starts from
        for i in range(n, n + 3):
            new = X[i : i + 1]
            with meter.measured():
                posterior = model.condition_on_observations(new, Y[i : i + 1]).posterior(new)
                _ = posterior.variance  # pyright: ignore[reportAttributeAccessIssue]
    return X[:4]


def _played(
    strategy: bx.Strategy, problem: Problem, before: int, steps: int, meter: Meter
) -> Tensor:
    """Asked and told; the function itself does not count."""
    for step in range(before + steps):
        measures = step >= before
        with meter.measured() if measures else nullcontext():
            trial = strategy.ask()
        value = float(problem(trial.x.unsqueeze(0)))
        with meter.measured(0) if measures else nullcontext():
            strategy.tell(trial.id, value)
    return torch.stack([trial.x for trial in strategy.history.trials])


def _finite(num_points: int, meter: Meter, small: bool) -> Tensor:
    domain = random_set(100 if small else num_points, 0, meter.device)
    strategy = bx.algorithms.gp_ucb(
        domain, rbf(0.3), noise_variance=4e-4, rkhs_bound=2.0, noise_std=0.02
    )
    problem = RKHSFunction.random(domain, rbf(0.3), norm=2.0, num_centers=50)
    return _played(strategy, problem, 20, 20, meter)


def _finite_models(method: str, num_models: int, meter: Meter, small: bool) -> Tensor:
    domain = random_set(100 if small else 2500, 0, meter.device)
    models = bx.CandidateModels.lengthscales(
        RBFKernel(), lengthscales(num_models), noise_variance=0.05**2, device=meter.device
    )
    make = getattr(bx.algorithms, method)
    strategy = make(domain, models, noise_std=0.05, rkhs_bound=2.0)
    problem = RKHSFunction.random(domain, rbf(0.3), norm=2.0, num_centers=50)
    return _played(strategy, problem, 20, 20, meter)


def _planned(num_points: int, q: int, whole: bool, meter: Meter, small: bool) -> Tensor:
    num_points, q = (200, 40) if small else (num_points, q)
    domain = random_set(num_points, 0, meter.device)
    model = started(rbf(0.3), domain.points[:1])
    with meter.measured(1 if whole else q):
        plan = bx.plan(domain, model, q)
    return plan.X


def _planned_on_box(meter: Meter, small: bool) -> Tensor:
    q = 10 if small else 99
    box = bx.Box([[0.0] * 6, [1.0] * 6], device=meter.device)
    model = started(rbf(1.0), box.sample(1, 0))
    with meter.measured(q):
        plan = bx.plan(box, model, q)
    return plan.std


Question = Callable[[int, torch.device], Callable[[], Tensor]]


def _asked(question: Question, problems: int, meter: Meter, small: bool) -> Tensor:
    """One question of each problem."""
    asked = []
    for seed in range(1 if small else problems):
        ask = question(seed, meter.device)
        with meter.measured():
            asked.append(ask())
    return torch.stack(asked)


def _first(strategy: bx.Strategy) -> Callable[[], Tensor]:
    return lambda: strategy.ask().x


# Kernel, lengthscale, whether the data are gathered around a good point.
_PROBLEMS = ((rbf, 0.3, False), (rbf, 0.6, True), (matern, 0.3, True), (matern, 0.6, False))


def _on_box(seed: int, device: torch.device) -> Callable[[], Tensor]:
    kind, scale, gathered = _PROBLEMS[seed]
    X, Y = noisy_data(500, 6, kind(scale), seed, device, gathered)
    return _first(strategy_on_box(X, Y, kind(scale), seed))


def _botorch_on_box(seed: int, device: torch.device) -> Callable[[], Tensor]:
    kind, scale, gathered = _PROBLEMS[seed]
    X, Y = noisy_data(500, 6, kind(scale), seed, device, gathered)
    ucb = UpperConfidenceBound(single_task_gp(X, Y, kind(scale), 1e-2), beta=4.0)
    with torch.no_grad():
        ucb(X[:1].unsqueeze(-2))  # fills the caches of the model
    bounds = torch.stack([X.new_zeros(6), X.new_ones(6)])
    torch.manual_seed(seed)
    return lambda: optimize_acqf(ucb, bounds, q=1, num_restarts=10, raw_samples=512)[0][0]


def _integrated(n: int, meter: Meter, small: bool) -> Tensor:
    """Asks of particles that move from the data of one to those of the next."""
    n, asks = (16, 2) if small else (n, 4)
    X, Y = noisy_data(n + asks, 6, rbf(0.8), 0, meter.device)
    box = bx.Box(torch.stack([X.new_zeros(6), X.new_ones(6)]))
    strategy = bx.algorithms.integrated_ei(box, initial=(X[:n], Y[:n]), num_initial=0)
    strategy.tell(strategy.ask().id, float(Y[n]))
    asked = []
    for value in Y[n:].flatten().tolist():
        with meter.measured():
            trial = strategy.ask()
        strategy.tell(trial.id, value)
        asked.append(trial.x)
    return torch.stack(asked)


def _improved(n: int, meter: Meter, small: bool) -> Tensor:
    """What BoTorch does for `_integrated`: a fit and a search by qLogNEI."""
    n, asks = (16, 1) if small else (n, 4)
    X, Y = noisy_data(n + asks, 6, rbf(0.8), 0, meter.device)
    loop = BoTorchLoop(torch.stack([X.new_zeros(6), X.new_ones(6)]), X[:n], Y[:n], 0)
    asked = []
    for value in Y[n:].flatten().tolist():
        with meter.measured():
            asked.append(loop.ask())
        loop.tell(asked[-1], value)
    return torch.stack(asked)


def _of_lengthscales(num_models: int, seed: int, device: torch.device) -> Callable[[], Tensor]:
    kind, scale, gathered = _PROBLEMS[seed]
    X, Y = noisy_data(200, 4, kind(scale), seed, device, gathered)
    return _first(strategy_of_lengthscales(X, Y, kind is rbf, lengthscales(num_models), seed))


def _stable(seed: int, device: torch.device) -> Callable[[], Tensor]:
    box = bx.Box([[0.0] * 2, [1.0] * 2], device=device)
    data = noisy_data(50, 2, rbf(0.3), seed, device)
    return _first(
        bx.algorithms.stable_opt(
            box, rbf(0.3), noise_variance=1e-2, radius=0.1, width=2.0, initial=data, seed=seed
        )
    )


def _opened(meter: Meter, small: bool) -> Tensor:
    problem, number = problem_on_box(meter.device), 2 if small else 3
    strategy = bpe_delay(problem.domain, 50, None) if small else bpe_delay(problem.domain, 1000)
    lengths = strategy.round_lengths.lengths(strategy.horizon, strategy.delta)
    while len(strategy.rounds) < number:
        asked = len(strategy.history.trials)
        opens = len(strategy.rounds) == number - 1 and asked == strategy.rounds[-1].ids.stop
        with meter.measured(lengths[number - 1] if small else 1) if opens else nullcontext():
            trial = strategy.ask()
        strategy.tell(trial.id, float(problem(trial.x.unsqueeze(0))))
    return strategy.rounds[-1].points


def _breadthwise(meter: Meter, small: bool) -> Tensor:
    box = bx.Box([[1.0, -1.0], [2.0, 0.5]], device=meter.device)
    problem = RKHSFunction.random(box, matern(0.5), norm=1.0, noise_std=0.03, seed=3)
    strategy = bx.algorithms.breadthwise_exploration(
        box,
        matern(0.5),
        noise_variance=0.03**2,
        horizon=3000,
        rkhs_bound=1.0,
        noise_std=0.03,
    )
    return _played(strategy, problem, 0, 40 if small else 400, meter)


PATHS: Mapping[str, Path] = {
    "KernelGP.add, n=1000": partial(_added, 1000),
    "KernelGP.add, n=4000": partial(_added, 4000),
    "gp_ucb, finite, N=2500, ask and tell": partial(_finite, 2500),
    "gp_ucb, finite, N=100k, ask and tell": partial(_finite, 100_000),
    "plan, finite, N=10k, q=300, per point": partial(_planned, 10_000, 300, False),
    "plan, finite, N=1e6, q=200, whole call": partial(_planned, 1_000_000, 200, True),
    "plan, box, d=6, q=99, per point": _planned_on_box,
    "ec_gp_ucb, box, d=6, n=500, ask, mean of 4": partial(_asked, _on_box, 4),
    "he_gp_ucb, box, d=4, n=200, 16 models, ask, mean of 4": partial(
        _asked, partial(_of_lengthscales, 16), 4
    ),
    "he_gp_ucb, finite, N=2500, 32 models, ask and tell": partial(_finite_models, "he_gp_ucb", 32),
    "credible_ucb, finite, N=2500, 32 models, ask and tell": partial(
        _finite_models, "credible_ucb", 32
    ),
    "integrated_ei, box, d=6, n=40, ask": partial(_integrated, 40),
    "integrated_ei, box, d=6, n=300, ask": partial(_integrated, 300),
    "stable_opt, box, d=2, n=50, ask": partial(_asked, _stable, 1),
    "bpe_delay, box, opening of a round of about 500 points": _opened,
    "breadthwise, d=2, step, mean of 400": _breadthwise,
}
# What BoTorch does for the path of this name.
OF_BOTORCH: Mapping[str, Path] = {
    "KernelGP.add, n=1000": partial(_conditioned, 1000),
    "KernelGP.add, n=4000": partial(_conditioned, 4000),
    "ec_gp_ucb, box, d=6, n=500, ask, mean of 4": partial(_asked, _botorch_on_box, 4),
    "integrated_ei, box, d=6, n=40, ask": partial(_improved, 40),
    "integrated_ei, box, d=6, n=300, ask": partial(_improved, 300),
}
# Sizes that a CPU does not reach, or not in time.
LARGE: Mapping[str, Path] = {
    **{
        f"gp_ucb, finite, N={N:.0e}, ask and tell": partial(_finite, N)
        for N in (10**4, 10**6, 10**7)
    },
    **{f"KernelGP.add, n={n}": partial(_added, n) for n in (8000, 16_000)},
    **{
        f"he_gp_ucb, finite, N=2500, {m} models, ask and tell": partial(
            _finite_models, "he_gp_ucb", m
        )
        for m in (64, 512)
    },
    **{
        f"he_gp_ucb, box, d=4, n=200, {m} models, ask": partial(
            _asked, partial(_of_lengthscales, m), 2
        )
        for m in (64, 512)
    },
    "plan, finite, N=1e6, q=2000, per point": partial(_planned, 1_000_000, 2000, False),
}
