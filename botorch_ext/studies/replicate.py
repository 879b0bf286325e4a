"""`replicate`: runs all seeds of an experiment on a finite set together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import amount, flag, short, whole_number
from botorch_ext.domains import FiniteSet
from botorch_ext.models.replicated import Added
from botorch_ext.problems import Problem
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.replicas import Replicas, Results, Runs
from botorch_ext.studies.simulate import Trace, simulate
from botorch_ext.studies.simulated_functions import as_problem
from botorch_ext.studies.streams import noise_and_delays

# The most bytes of the posteriors of runs that are moved forward together on a CPU, and the share
# of the free memory of a GPU.
_MOST_BYTES, _SHARE_OF_FREE = 2**32, 0.5
# The number of trials of a run that is checked.
_NUM_CHECKED = 100


@dataclass(frozen=True, eq=False)
class Traces:
    """The records of R simulations of T evaluations, with all tensors on the CPU.

    ``traces[r]`` is the `Trace` of a run, which is simulated again for it, with its strategy.

    Args:
        experiment: The experiment.
        strategy: The strategy, without trials.
        indices: The rows of the points that were asked, ``R x T``.
        values: The noiseless values, ``R x T``.
        observations: The noisy values, ``R x T``.
        delays: The delays in steps, ``R x T``.
        regret: The maximum of the problem minus the value, ``R x T``.
        seconds: The time that all runs took together.
    """

    experiment: _Experiment
    strategy: Strategy
    indices: Tensor
    values: Tensor
    observations: Tensor
    delays: Tensor
    regret: Tensor
    seconds: float

    def __getitem__(self, run: int) -> Trace:
        return self.experiment.simulated(self.strategy, run, self.experiment.horizon)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def cumulative_regret(self) -> Tensor:
        """The running sums of the regret, ``R x T``."""
        return self.regret.cumsum(dim=1)

    @property
    def simple_regret(self) -> Tensor:
        """The least regrets of the steps so far, ``R x T``."""
        return self.regret.cummin(dim=1).values

    def mean_and_error(self, name: str = "cumulative_regret") -> tuple[Tensor, Tensor]:
        """The mean over the runs at each step, and its standard error.

        Args:
            name: "cumulative_regret", "simple_regret", "regret", "values" or "observations".

        Returns:
            ``T`` means and ``T`` standard errors, which are nan for one run.

        Raises:
            ValueError: If the name is unknown.
        """
        known = ("cumulative_regret", "simple_regret", "regret", "values", "observations")
        if name not in known:
            raise ValueError(f"name must be one of {', '.join(known)}, got {short(name)}")
        rows = getattr(self, name)
        return rows.mean(dim=0), rows.std(dim=0) / len(self) ** 0.5


def replicate(
    methods: Mapping[str, Strategy],
    problems: Any,
    horizon: int,
    *,
    seeds: Sequence[int] | range = range(100),
    delay: Any = None,
    noise_std: float | None = None,
    initial: tuple[Tensor, Tensor] | None = None,
    most_bytes: int | None = None,
    checked: int = 1,
    progress: bool = False,
) -> dict[str, Traces]:
    """Runs all seeds of an experiment on a finite set together, as `simulate` runs one of them.

    A run asks the points that `simulate` asks with the same strategy, problem and seed. It is
    much faster on small sets, since a step of all runs takes few operations.

    Args:
        methods: The strategies by name, without trials, on `FiniteSet` domains with the same
            points. Their seeds are replaced by those of the runs.
        problems: A problem for all runs, as for `simulate`; or a list with one for each seed; or
            the values of the points in each run, ``R x N``.
        horizon: T, the number of evaluations of a run.
        seeds: The R seeds of the strategies, the noise and the delays.
        delay: The delays, as for `simulate`.
        noise_std: The standard deviation of the Gaussian noise; None takes that of each problem.
        initial: The rows and the values of observations from before each run, ``R x n0`` each;
            None for those of the strategies.
        most_bytes: The most bytes of the posteriors of runs that are moved forward together, as
            the runs are divided into chunks. None: 4 GiB, and on a GPU half of what is free.
        checked: The number of runs that are simulated too, for up to 100 evaluations, and
            compared.
        progress: Whether to show a progress bar.

    Returns:
        The `Traces` of each method.

    Raises:
        ValueError: If an argument is impossible, or if a method is none of those that are moved
            forward together: widths that are read at one model at a time, on finite sets without
            contexts.
        RuntimeError: If a checked run asks another point than `simulate`.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.5], [1.0]])
        >>> f = bx.problems.RKHSFunction.random(points, RBFKernel(), norm=1.0, seed=0)
        >>> method = bx.algorithms.gp_ucb(points, RBFKernel(), noise_variance=0.01, width=2.0)
        >>> traces = bx.replicate({"GP-UCB": method}, f, 20, seeds=range(8), noise_std=0.1)
        >>> traces["GP-UCB"].regret.shape
        torch.Size([8, 20])
    """
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(f"methods must be strategies by name, got {short(methods)}")
    horizon, seeds = (
        whole_number(horizon, "horizon", least=1),
        [whole_number(seed, "seeds", least=0) for seed in seeds],
    )
    if not seeds:
        raise ValueError("seeds must have at least one seed, got none")
    checked = whole_number(checked, "checked", least=0)
    for name, strategy in methods.items():
        _check_method(strategy, f"methods[{name!r}]")
    domain: Any = next(iter(methods.values())).domain
    experiment = _Experiment.of(domain, problems, horizon, seeds, delay, noise_std, initial)
    total = len(methods) * len(seeds) * horizon
    with tqdm(total=total, disable=not flag(progress, "progress"), unit="evaluation") as bar:
        return {
            name: experiment.run(strategy, most_bytes, checked, bar)
            for name, strategy in methods.items()
        }


def _check_method(strategy: Any, name: str) -> None:
    if not isinstance(strategy, Strategy):
        raise ValueError(f"{name} must be a Strategy, got {short(strategy)}")
    domain = strategy.domain
    reasons = {
        "must have no trials": bool(strategy.history.events),
        "must maximise, as problems do": strategy.minimize,
        "must have a FiniteSet as domain": not isinstance(domain, FiniteSet),
        "must not have a ShardedSet as domain": getattr(domain, "shard", None) is not None,
        "must have no contexts": strategy.context_space is not None,
        "must have no outcomes": bool(strategy.outcome_names),
    }
    for reason, is_so in reasons.items():
        if is_so:
            raise ValueError(f"{name} {reason}, got {short(strategy)} on {short(domain)}")


@dataclass(frozen=True, eq=False)
class _Experiment:
    """R problems on one finite set, with their noise and delays.

    Args:
        domain: The set of N points.
        problems: The problem of each run.
        horizon: T, the number of evaluations of a run.
        seeds: The seed of each run.
        delay: The distribution of the delays.
        noise_stds: The standard deviation of the noise of each run.
        initial: The rows and the values of observations from before the runs, ``R x n0`` each;
            None for those of the strategies.
        F: The values of all points, ``R x N``.
        best: The maximum of each problem, ``R x 1``.
        noise: The noise, ``R x T``.
        delays: The delays, ``R x T``.
    """

    domain: FiniteSet
    problems: list[Problem]
    horizon: int
    seeds: list[int]
    delay: Any
    noise_stds: list[float]
    initial: tuple[Tensor, Tensor] | None
    F: Tensor
    best: Tensor
    noise: Tensor
    delays: np.ndarray

    @classmethod
    def of(
        cls,
        domain: FiniteSet,
        problems: Any,
        horizon: int,
        seeds: list[int],
        delay: Any,
        noise_std: float | None,
        initial: tuple[Tensor, Tensor] | None,
    ) -> _Experiment:
        R, like = len(seeds), domain.like
        each = _one_for_each(problems, domain, R)
        for problem in each:
            if problem.domain is not domain and not _same_points(problem.domain, domain):
                raise ValueError(f"problems must be on the points of the methods, got {problem!r}")
            if problem.optimal_value is None:
                raise ValueError("problems must have a known optimal_value, got None")
        given = [p.noise_std if noise_std is None else noise_std for p in each]
        stds = [amount(std, "noise_std", "non-negative and finite") for std in given]
        drawn = [
            noise_and_delays(seed, horizon, std, delay)
            for seed, std in zip(seeds, stds, strict=True)
        ]
        noise, delays = (np.stack(values) for values in zip(*drawn, strict=True))
        values = {id(problem): problem(domain.points) for problem in each}
        F = torch.stack([values[id(problem)] for problem in each])
        best = like.new_tensor([[problem.optimal_value] for problem in each])
        if initial is not None:
            initial = _checked_initial(initial, R, domain)
        noise = torch.from_numpy(noise).to(like)
        return cls(
            domain, each, horizon, seeds, delay, stds, initial, F, best, noise, delays.astype(int)
        )

    def simulated(self, strategy: Strategy, run: int, horizon: int) -> Trace:
        """The `Trace` of one run."""
        given = {name: strategy.arguments.given[name] for name in strategy.arguments.passed}
        given["seed"] = self.seeds[run]
        if self.initial is not None:
            rows, values = (each[run] for each in self.initial)
            given["initial"] = self.domain.points[rows], values
        return simulate(
            type(strategy)(**given),
            self.problems[run],
            horizon,
            delay=self.delay,
            seed=self.seeds[run],
            noise_std=self.noise_stds[run],
        )

    def run(
        self, strategy: Strategy, most_bytes: int | None, num_checked: int, bar: tqdm[Any]
    ) -> Traces:
        """All runs of a strategy, in chunks."""
        start = time.perf_counter()
        size = self._chunk_size(strategy, most_bytes)
        chunks = torch.arange(len(self.seeds)).split(size)
        indices = torch.cat([self._run(strategy, chunk.tolist(), bar) for chunk in chunks]).cpu()
        seconds = time.perf_counter() - start
        for run in range(min(num_checked, len(self.seeds))):
            num = min(self.horizon, _NUM_CHECKED)
            trials = self.simulated(strategy, run, num).strategy.history.trials
            wanted = [trial.info["index"] for trial in trials]
            if indices[run, :num].tolist() != wanted:
                raise RuntimeError(
                    f"run {run} of {strategy!r} asked {indices[run, :num].tolist()}, and simulate "
                    f"asks {wanted}: please report it, and use simulate"
                )
        values = self.F.cpu().gather(1, indices).double()
        return Traces(
            experiment=self,
            strategy=strategy,
            indices=indices,
            values=values,
            observations=values + self.noise.cpu().double(),
            delays=torch.from_numpy(self.delays),
            regret=self.best.cpu().double() - values,
            seconds=seconds,
        )

    def _chunk_size(self, strategy: Strategy, most_bytes: int | None) -> int:
        """The number of runs whose posteriors fit the memory."""
        if most_bytes is None:
            most_bytes = _MOST_BYTES
            if self.F.is_cuda:
                most_bytes = int(_SHARE_OF_FREE * torch.cuda.mem_get_info(self.F.device)[0])
        most_bytes = whole_number(most_bytes, "most_bytes", least=1)
        one = self._replicas(strategy, [0]).num_bytes
        return max(most_bytes // max(one, 1), 1)

    def _replicas(self, strategy: Strategy, runs: list[int]) -> Replicas:
        seeds, domain, device = [self.seeds[run] for run in runs], self.domain, self.F.device
        first = strategy.num_first_points
        rows = [domain.sample_indices(first, seed) for seed in seeds]
        if self.initial is not None:
            initial = self.initial[0][runs], self.initial[1][runs]
        elif strategy.initial is None:
            initial = (
                self.F.new_zeros(len(runs), 0, dtype=torch.long),
                self.F.new_zeros(len(runs), 0),
            )
        else:
            X, Y = strategy.initial
            initial = domain.index(X).repeat(len(runs), 1), Y.flatten().repeat(len(runs), 1)
        has_delays = bool(self.delays[runs].any())
        first = torch.stack(rows).to(device)
        return strategy.replicas(Runs(seeds, self.horizon, has_delays, first, initial))

    @torch.no_grad()
    def _run(self, strategy: Strategy, runs: list[int], bar: tqdm[Any]) -> Tensor:
        """The rows that some runs ask, ``r x T``."""
        replicas = self._replicas(strategy, runs)
        F, noise = self.F[runs], self.noise[runs]
        arrivals = _arrivals(self.delays[runs], F.device)
        index = torch.zeros(len(runs), self.horizon, dtype=torch.long, device=F.device)
        Y = F.new_zeros(len(runs), self.horizon)
        for step in range(self.horizon):
            due = arrivals[step]
            if due is not None:
                trials, on_host, added, at_once = due
                told = index.gather(1, trials), Y.gather(1, trials)
                replicas.tell(Results(step, trials, on_host, *told, added, at_once))
            row = replicas.ask(step)
            index[:, step : step + 1] = row
            Y[:, step : step + 1] = F.gather(1, row) + noise[:, step : step + 1]
            bar.update(len(runs))
        return index


def _one_for_each(problems: Any, domain: FiniteSet, num: int) -> list[Any]:
    """The problem of each run."""
    is_table = isinstance(problems, Tensor | np.ndarray) and problems.ndim == 2
    is_list = isinstance(problems, list | tuple) and any(map(callable, problems))
    if not (is_table or is_list):
        return [as_problem(problems, domain)] * num
    if len(problems) != num:
        raise ValueError(
            f"problems must be one, or one for each of {num} seeds, got {len(problems)}"
        )
    return [as_problem(each, domain) for each in problems]


def _same_points(one: Any, other: FiniteSet) -> bool:
    return isinstance(one, FiniteSet) and torch.equal(one.points, other.points)


def _checked_initial(
    initial: tuple[Tensor, Tensor], num_runs: int, domain: FiniteSet
) -> tuple[Tensor, Tensor]:
    rows, values = (torch.as_tensor(each) for each in initial)
    if rows.shape != values.shape or rows.ndim != 2 or len(rows) != num_runs:
        raise ValueError(
            f"initial must be rows and values of shape {num_runs} x n, got {tuple(rows.shape)} and "
            f"{tuple(values.shape)}"
        )
    if rows.is_floating_point() or rows.min() < 0 or rows.max() >= domain.num_points:
        raise ValueError("initial must have rows of the finite set")
    return rows.to(domain.like.device), values.to(domain.like)


def _arrivals(delays: np.ndarray, device: torch.device) -> list[Any]:
    """What is told before each ask: the trials, ``R x k``, on the device and on the host, which of
    them there are, and whether they are those that were asked last; None for nothing."""
    R, T = delays.shape
    due: list[list[list[int]]] = [[[] for _ in range(R)] for _ in range(T)]
    for r in range(R):
        for trial, step in enumerate((np.arange(T) + 1 + delays[r]).tolist()):
            if step < T:
                due[step][r].append(trial)
    found: list[Any] = []
    for step, told in enumerate(due):
        k = max(map(len, told))
        if not k:
            found.append(None)
            continue
        trials, on = np.zeros((R, k), dtype=np.int64), np.zeros((R, k), dtype=bool)
        for r, own in enumerate(told):
            trials[r, : len(own)], on[r, : len(own)] = own, True
        added = None if on.all() else Added(torch.from_numpy(on).to(device), on)
        at_once = k == 1 and bool((on & (trials == step - 1)).all())
        found.append((torch.from_numpy(trials).to(device), trials, added, at_once))
    return found
