"""`replicate`: runs all seeds of an experiment on a finite set together."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import flag, short, whole_number
from botorch_ext.domains import FiniteSet, host
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.models.replicated import Added
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.replicas import NotReplicatedError, Replicas, Results, Runs
from botorch_ext.studies.experiments import Experiment
from botorch_ext.studies.simulated_functions import same_points
from botorch_ext.studies.traces import Traces
from botorch_ext.widths import Width

# The most bytes of the posteriors of runs that are moved forward together on a CPU, and the share
# of the free memory of a GPU.
_MOST_BYTES, _SHARE_OF_FREE = 2**32, 0.5
# The number of trials of a run that is checked.
_NUM_CHECKED = 100


class DifferentRunError(RuntimeError):
    """A run that was moved forward with others asked another point than `simulate`."""


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
        ValueError: If an argument is impossible, or if a method is not supported: the page
            "Experiments with many seeds" lists those that are.
        RuntimeError: If a checked run asks another point than `simulate`.

    Warns:
        AllModelsRejectedWarning: Every model is refuted in a run. The last model stays.

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
    for name, strategy in methods.items():
        require_replicable(strategy, f"methods[{name!r}]")
    first, *others = (strategy.domain for strategy in methods.values())
    if any(not same_points(first, other) for other in others):
        raise ValueError("methods must have the same points as domains, got others")
    experiment = Experiment(first, problems, horizon, seeds, delay, noise_std, initial)
    if most_bytes is not None:
        most_bytes = whole_number(most_bytes, "most_bytes", least=1)
    checked = whole_number(checked, "checked", least=0)
    sizes = {}
    for name, strategy in methods.items():
        try:
            sizes[name] = chunk_size(experiment, strategy, most_bytes)
        except ValueError as error:
            raise ValueError(f"methods[{name!r}]: {error}") from error
    total = len(methods) * len(experiment) * experiment.horizon
    with tqdm(total=total, disable=not flag(progress, "progress"), unit="evaluation") as bar:
        return {
            name: replicated(experiment, strategy, sizes[name], checked, bar)
            for name, strategy in methods.items()
        }


def require_replicable(strategy: Any, name: str) -> None:
    """Raises a ValueError unless a strategy may be one whose runs are moved forward together."""
    if not isinstance(strategy, Strategy):
        raise ValueError(f"{name} must be a Strategy, got {short(strategy)}")
    if strategy.history.events:
        raise ValueError(f"{name} must have no trials, got {short(strategy)}")
    domain = strategy.domain
    # A class of the user's may do anything.
    parts = [strategy, getattr(strategy, "judge", None), *_widths_in(strategy)]
    foreign = [part for part in parts if part is not None and not _is_of_library(part)]
    reasons = {
        f"must be of the library, with a {type(foreign[0]).__name__}" if foreign else "": foreign,
        "must maximise, as problems do": strategy.minimize,
        "must have a FiniteSet as domain": not isinstance(domain, FiniteSet),
        "must not have a ShardedSet as domain": getattr(domain, "shard", None) is not None,
        "must have no contexts": strategy.context_space is not None,
        "must have no outcomes": bool(strategy.outcome_names),
    }
    for reason, is_so in reasons.items():
        if is_so:
            kind = type(strategy).__name__
            raise NotReplicatedError(f"{name}, which {reason}: a {kind} on {short(domain)}")


def _is_of_library(part: Any) -> bool:
    return type(part).__module__.startswith("botorch_ext.")


def _widths_in(strategy: Strategy) -> Iterator[Any]:
    """The widths of a strategy, and the widths inside these."""
    width = getattr(strategy, "width", None)
    left = list(width) if isinstance(width, list) else [width]
    while left:
        own = left.pop()
        if isinstance(own, Width):
            yield own
            left.append(getattr(own, "width", None))


@torch.no_grad()
def replicated(
    experiment: Experiment, strategy: Strategy, size: int, num_checked: int, bar: tqdm[Any]
) -> Traces:
    """All runs of one strategy, in chunks of a size, as `replicate` describes them."""
    start = time.perf_counter()
    chunks = [runs.tolist() for runs in host.arange(len(experiment)).split(size)]
    played = [_run(experiment, strategy, runs, bar) for runs in chunks]
    joined = {name: torch.cat([each[name] for each in played]).cpu() for name in played[0]}
    seconds, indices = time.perf_counter() - start, joined["indices"]
    for run in range(min(num_checked, len(experiment))):
        _check(experiment, strategy, run, indices[run])
    num_broken = int((joined.get("all_rejected_at", indices[:0]) >= 0).sum())
    if num_broken:
        message = (
            f"every model is rejected in {num_broken} of {len(experiment)} runs of a "
            f"{type(strategy).__name__}: the assumptions are broken, and the last one stays"
        )
        warnings.warn(message, AllModelsRejectedWarning, stacklevel=4)
    values = experiment.values.cpu().gather(1, indices).double()
    told_at = host.arange(1, experiment.horizon + 1) + torch.from_numpy(experiment.delays)
    return Traces(
        seeds=experiment.seeds,
        X=experiment.domain.points.cpu()[indices],
        values=values,
        observations=values + experiment.noise,
        delays=torch.from_numpy(experiment.delays),
        told_at=told_at.masked_fill(told_at >= experiment.horizon, -1),
        regret=experiment.best - values,
        seconds=seconds,
        simulated=partial(experiment.simulated, strategy),
        **joined,
    )


def _check(experiment: Experiment, strategy: Strategy, run: int, indices: Tensor) -> None:
    """Raises a `DifferentRunError` if `simulate` asks other points in a run."""
    num = min(experiment.horizon, _NUM_CHECKED)
    trials = experiment.simulated(strategy, run, num).strategy.history.trials
    for trial, asked in zip(trials, indices[:num].tolist(), strict=True):
        wanted = trial.info["index"]
        if asked != wanted:
            raise DifferentRunError(
                f"trial {trial.id} of run {run} of {type(strategy).__name__} is at point {asked}, "
                f"and simulate asks point {wanted}: please report it, and use simulate"
            )


def chunk_size(experiment: Experiment, strategy: Strategy, most_bytes: int | None) -> int:
    """The number of runs whose posteriors fit the memory.

    Raises:
        NotReplicatedError: If runs of this strategy are not moved forward together.
    """
    device = experiment.values.device
    if most_bytes is None:
        is_cuda = device.type == "cuda"
        free = torch.cuda.mem_get_info(device)[0] if is_cuda else 0
        most_bytes = int(_SHARE_OF_FREE * free) if is_cuda else _MOST_BYTES
    return max(most_bytes // max(_replicas(experiment, strategy, [0]).num_bytes, 1), 1)


def _replicas(experiment: Experiment, strategy: Strategy, runs: list[int]) -> Replicas:
    seeds, domain = [experiment.seeds[run] for run in runs], experiment.domain
    num_first, values = strategy.num_first_points, experiment.values
    first = torch.stack([domain.sample_indices(num_first, seed) for seed in seeds])
    if experiment.initial is not None:
        initial = experiment.initial[0][runs], experiment.initial[1][runs]
    elif strategy.initial is not None:
        X, Y = strategy.initial[:2]
        initial = domain.index(X).repeat(len(runs), 1), Y.flatten().repeat(len(runs), 1)
    else:
        none = values.new_zeros(len(runs), 0)
        initial = none.long(), none
    has_delays = bool(experiment.delays.any())
    own = Runs(seeds, experiment.horizon, has_delays, first.to(values.device), initial)
    return strategy.replicas(own)


def _run(
    experiment: Experiment, strategy: Strategy, runs: list[int], bar: tqdm[Any]
) -> dict[str, Tensor]:
    """The rows that some runs ask and what became of their models, by the fields of `Traces`."""
    replicas, horizon = _replicas(experiment, strategy, runs), experiment.horizon
    values = experiment.values[runs]
    noise = experiment.noise[runs].to(values)
    arrivals = _arrivals(experiment.delays[runs], values.device)
    index = torch.zeros(len(runs), horizon, dtype=torch.long, device=values.device)
    Y = torch.zeros_like(noise)
    newest = index[:, :0], Y[:, :0]
    for step, due in enumerate(arrivals):
        if due is not None:
            trials, on_host, added, at_once = due
            told = newest if at_once else (index.gather(1, trials), Y.gather(1, trials))
            replicas.tell(Results(step, trials, on_host, *told, added, at_once))
        row, now = replicas.ask(step), slice(step, step + 1)
        index[:, now] = row
        newest = row, torch.add(values.gather(1, row), noise[:, now], out=Y[:, now])
        bar.update(len(runs))
    return {"indices": index} | replicas.record()


def _arrivals(delays: np.ndarray, device: torch.device) -> list[Any]:
    """What is told before each ask: the trials, ``R x k``, on the device and on the host, which of
    them there are, and whether they are those that were asked last; None for nothing."""
    R, T = delays.shape
    due: list[list[list[int]]] = [[[] for _ in range(R)] for _ in range(T)]
    for r in range(R):
        for trial, step in enumerate((np.arange(T) + 1 + delays[r]).tolist()):
            if step < T:
                due[step][r].append(trial)
    shapes = [max(map(len, told)) for told in due]
    trials = np.zeros((R, sum(shapes)), dtype=np.int64)
    on = np.zeros(trials.shape, dtype=bool)
    for first, told in zip(np.cumsum([0, *shapes]), due, strict=False):
        for r, own in enumerate(told):
            trials[r, first : first + len(own)], on[r, first : first + len(own)] = own, True
    # One upload for all steps.
    on_device = (torch.from_numpy(each).to(device).split(shapes, dim=1) for each in (trials, on))
    on_host = (np.split(each, np.cumsum(shapes)[:-1], axis=1) for each in (trials, on))
    found: list[Any] = []
    parts = zip(*on_device, *on_host, strict=True)
    for step, (own, mask, own_on_host, mask_on_host) in enumerate(parts):
        added = None if mask_on_host.all() else Added(mask, mask_on_host)
        at_once = added is None and own_on_host.shape[1] == 1 and (own_on_host == step - 1).all()
        found.append((own, own_on_host, added, at_once) if own_on_host.size else None)
    return found
