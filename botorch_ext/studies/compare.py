"""`compare`: runs several methods on several problems, with many seeds."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from tqdm import tqdm

from botorch_ext.checks import flag, short, whole_number
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.answers.tables import frame
from botorch_ext.strategies.replicas import NotReplicatedError
from botorch_ext.studies.executors import require_picklable, shut_down
from botorch_ext.studies.experiments import Experiment
from botorch_ext.studies.replicate import (
    DifferentRunError,
    chunk_size,
    replicated,
    require_replicable,
)
from botorch_ext.studies.traces import NUMBERS, Score, Trace, Traces

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Comparison:
    """The records of several methods on several problems.

    Args:
        traces: The `Traces` by the name of the problem and then of the method.
    """

    traces: dict[str, dict[str, Traces]]

    def __repr__(self) -> str:
        """The mean cumulative regret of each method on each problem."""
        lines = ["Comparison by cumulative regret"]
        for problem, methods in self.traces.items():
            for method, traces in methods.items():
                mean, error = traces.mean_and_error()[-1].tolist()
                lines.append(f"{problem}, {method}: {mean:.6g} +- {error:.2g}")
        return "\n  ".join(lines)

    def to_pandas(self) -> pd.DataFrame:
        """All evaluations as a data frame.

        Returns:
            A row for each evaluation, with the columns ``problem``, ``method`` and those of
            `Traces.to_pandas`.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas as pd

        rows = []
        for problem, methods in self.traces.items():
            for method, traces in methods.items():
                own = traces.to_pandas()
                own.insert(0, "problem", problem)
                own.insert(1, "method", method)
                rows.append(own)
        return pd.concat(rows, ignore_index=True)

    def summary(self, score: Score = "cumulative_regret") -> pd.DataFrame:
        """The score after the last evaluation.

        Args:
            score: As for `Traces.mean_and_error`.

        Returns:
            A row for each problem and method, with the columns ``problem``, ``method``, ``runs``,
            ``mean``, ``error``, the standard error of the mean, and ``seconds``.

        Raises:
            ValueError: If the score is unknown.
            ImportError: pandas is not installed.
        """
        rows: list[tuple[Any, ...]] = []
        for problem, methods in self.traces.items():
            for method, traces in methods.items():
                last = traces.mean_and_error(score)[-1].tolist()
                rows.append((problem, method, len(traces), *last, traces.seconds))
        names = ("problem", "method", "runs", "mean", "error", "seconds")
        return frame(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


Method = Strategy | Callable[[Any], Strategy]


def compare(
    methods: Mapping[str, Method],
    problems: Any,
    horizon: int,
    *,
    seeds: Sequence[int] | range = range(20),
    delay: Any = None,
    noise_std: float | None = None,
    processes: int = 1,
    progress: bool = False,
) -> Comparison:
    """Runs several methods on several problems, with the same noise and delays for all methods.

    Runs on finite sets are moved forward together, as `replicate` does it; others are simulated one
    after the other, or in several processes.

    Args:
        methods: By name a strategy without trials, or a function from a problem to such a strategy,
            for problems with different domains. The seed of the strategy is replaced by those of
            the runs.
        problems: By name what `replicate` takes as ``problems``; or one of these, without a name.
        horizon: T, the number of evaluations of a run.
        seeds: The R seeds of the strategies, the noise and the delays.
        delay: The delays, as for `simulate`.
        noise_std: The standard deviation of the Gaussian noise; None takes that of each problem.
        processes: The number of processes, of one thread each, for runs that are simulated.
            Strategies and problems are then pickled, and a script needs
            ``if __name__ == "__main__":``.
        progress: Whether to show a progress bar.

    Returns:
        A `Comparison`.

    Raises:
        ValueError: If an argument is impossible, or if a strategy or a problem is one that
            `simulate` does not take.
        ObjectiveError: If a strategy or a problem cannot be pickled for another process.

    Warns:
        RuntimeWarning: A run asked another point than `simulate` when it was moved forward with
            others. The runs of its method are simulated instead; please report it.
        AllModelsRejectedWarning: Every model is refuted in a run. The last model stays.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.5], [1.0]])
        >>> f = bx.problems.RKHSFunction.random(points, RBFKernel(), norm=1.0, seed=0)
        >>> methods = {
        ...     "GP-UCB": bx.algorithms.gp_ucb(points, RBFKernel(), noise_variance=0.01, width=2.0),
        ...     "random": bx.strategies.RandomSearch(points),
        ... }
        >>> comparison = bx.compare(methods, f, 20, seeds=range(8), noise_std=0.1)
        >>> comparison.summary()["runs"].tolist()
        [8, 8]
    """
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(f"methods must be strategies by name, got {short(methods)}")
    named = problems if isinstance(problems, Mapping) else {"problem": problems}
    if not named:
        raise ValueError("problems must be at least one, got none")
    processes = whole_number(processes, "processes", least=1)
    pairs: list[tuple[str, str, Experiment, Strategy]] = []
    for problem, given in named.items():
        for method, own in methods.items():
            strategy = _strategy(own, given, f"methods[{method!r}]")
            options = horizon, seeds, delay, noise_std
            pairs.append((problem, method, Experiment(strategy.domain, given, *options), strategy))
    total = sum(len(experiment) * experiment.horizon for _, _, experiment, _ in pairs)
    found: dict[str, dict[str, Traces]] = {problem: {} for problem in named}
    with tqdm(total=total, disable=not flag(progress, "progress"), unit="evaluation") as bar:
        for problem, method, experiment, strategy in pairs:
            name = f"methods[{method!r}]"
            found[problem][method] = _traces(experiment, strategy, name, processes, bar)
    return Comparison(found)


def _strategy(method: Any, problems: Any, name: str) -> Strategy:
    """The strategy of a method for a problem, or for a list of problems on one domain."""
    if isinstance(method, Strategy):
        return method
    if not callable(method):
        raise ValueError(
            f"{name} must be a Strategy or a function of a problem, got {short(method)}"
        )
    if isinstance(problems, list | tuple) and any(map(callable, problems)):
        raise ValueError(f"{name} must be a Strategy if problems are lists, one for each seed")
    strategy = method(problems)
    if not isinstance(strategy, Strategy):
        raise ValueError(f"{name} must return a Strategy, got {short(strategy)}")
    return strategy


def _traces(
    experiment: Experiment, strategy: Strategy, name: str, processes: int, bar: tqdm[Any]
) -> Traces:
    """The records of all runs of one method."""
    try:
        require_replicable(strategy, name)
        size = chunk_size(experiment, strategy, None)
        return replicated(experiment, strategy, size, 1, bar)
    except NotReplicatedError:
        pass
    except DifferentRunError as error:
        message = f"{name} is simulated run by run: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        bar.total += len(experiment) * experiment.horizon
    simulated, traces = partial(experiment.simulated, strategy), []
    for trace in _in_processes(simulated, len(experiment), processes):
        traces.append(trace)
        bar.update(experiment.horizon)
    stacked = {
        name: torch.stack([getattr(trace, name) for trace in traces]) for name in ("X", *NUMBERS)
    }
    seconds = sum(trace.seconds for trace in traces)
    return Traces(seeds=experiment.seeds, seconds=seconds, simulated=simulated, **stacked)


def _in_processes(
    function: Callable[[int], Trace], num_runs: int, processes: int
) -> Iterator[Trace]:
    if processes == 1:
        yield from map(function, range(num_runs))
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (function,))
    try:
        require_picklable(function, pool, "methods and problems")
        yield from pool.map(_play, range(num_runs))
    finally:
        # An error, or Ctrl-C, waits for no other run.
        shut_down(pool, wait=False)


# The function of a process, which is sent once and not with each run.
_function: Any = None


def _begin(function: Callable[[int], Trace]) -> None:
    global _function
    torch.set_num_threads(1)
    _function = function


def _play(run: int) -> Trace:
    return _function(run)
