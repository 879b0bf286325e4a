"""`run`: evaluates an objective on any executor, in parallel if wanted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import amount, flag, short, whole_number
from botorch_ext.exceptions import ObjectiveError
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.events import counts_of_trials, place_of
from botorch_ext.studies.failures import Failure, Failures, require_taken
from botorch_ext.studies.questions import Questions
from botorch_ext.studies.running_study import Objective, RunningStudy
from botorch_ext.studies.stopping import Callback, Stopping
from botorch_ext.studies.streams import Source, Stream, action_stream, context_stream
from botorch_ext.studies.study import Study
from botorch_ext.studies.target import Target
from botorch_ext.studies.trial_frames import columns_by_name, table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunResult:
    """The result of `run`, in the sign of the objective.

    Args:
        strategy: The strategy, with all its state; another run may continue it. If a study was run,
            a copy of its strategy: continue the study, not the copy.
        ids: The ids of the told and attached trials, in the order of telling.
        X: The ``n x d`` points of these trials, without contexts.
        Y: The ``n`` values of these trials: returned by the objective, attached, or
            ``failure_value`` for the trials in ``failures``.
        best_x: The ``d``-dim point with the best value that was returned, attached or given as
            initial data of the strategy, or None. Points outside the domain do not count.
        best_value: The value of ``best_x``, or None.
        contexts: ``n x d_z``, the contexts of ``X``; None without contexts.
        best_context: The ``d_z``-dim context of ``best_x``, or None.
        failures: The trials that were given up in this run, each a `Failure`.
        interrupted: Whether Ctrl-C ended the run. Trials without a result are pending.
        stopped_by: ``"callback"``, ``"time_limit"`` or ``"target"``, the argument that ended the
            run before ``num_trials`` were evaluated, or None.
        seconds: How long this run took, evaluations included.
    """

    strategy: Strategy
    ids: list[int]
    X: Tensor
    Y: Tensor
    best_x: Tensor | None
    best_value: float | None
    contexts: Tensor | None
    best_context: Tensor | None
    failures: list[Failure]
    interrupted: bool
    stopped_by: str | None
    seconds: float

    def __repr__(self) -> str:
        """The counts of trials, the time and the best value, in a few lines."""
        pending = len(self.strategy.pending)
        trials = counts_of_trials(len(self.ids), len(self.failures), pending)
        lines = [f"{type(self).__name__}", f"trials: {trials}", f"seconds: {self.seconds:.3g}"]
        if self.best_x is not None:
            place = place_of(self.best_x, self.best_context, self.strategy.domain)
            lines.append(f"best value: {self.best_value:.6g} at {place}")
        if self.stopped_by is not None or self.interrupted:
            lines.append(f"stopped by: {self.stopped_by or 'Ctrl-C'}")
        return "\n  ".join(lines)

    @property
    def params(self) -> list[dict[str, Any]]:
        """The points of ``X`` by name, as ``params`` of trials."""
        return [self.strategy.history.trials[id].params for id in self.ids]

    def to_pandas(self) -> pd.DataFrame:
        """The told trials as a data frame.

        Returns:
            A row for each trial, with the columns ``trial``, the id; the parameters by name; the
            contexts by name, or ``context0`` and so on where they have none; and ``value``. A
            column of the library whose name a parameter or context has is called ``trial_`` or
            ``value_``.

        Raises:
            ImportError: pandas is not installed.
        """
        trials = [self.strategy.history.trials[id] for id in self.ids]
        names = dict.fromkeys(name for row in self.params for name in row)
        named = columns_by_name(trials, self.strategy, names)
        return table({"trial": self.ids}, named, {"value": self.Y})

    @property
    def best_params(self) -> dict[str, Any] | None:
        """``best_x`` by name, or None."""
        return None if self.best_x is None else self.strategy.domain.params_of(self.best_x)


def run(
    strategy: Strategy | Study,
    objective: Objective,
    num_trials: int,
    *,
    contexts: Source | None = None,
    actions: Source | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    max_pending: int = 1,
    minimize: bool | None = None,
    progress: bool = True,
    max_retries: int = 0,
    failure_value: float | None = None,
    max_consecutive_failures: int | None = 10,
    callback: Callback | None = None,
    time_limit: float | None = None,
    target: float | None = None,
) -> RunResult:
    """Evaluates an objective until the strategy was asked ``num_trials`` trials. Trials of earlier
    runs count, attached results do not.

    The run first evaluates trials that are pending from an earlier run, or from a process that
    died, so that the same call resumes an interrupted run. If the strategy waits for results, it is
    asked again when a trial under way has its result. The run also ends at the horizon of the
    strategy, or at the end of an iterator of contexts or actions.

    Any number of runs may share a study, and end together. On one machine, a run never evaluates a
    trial that another run has under way, and waits for it if the strategy waits. If the process of
    the other run is dead, its trials are evaluated again. Runs on other machines are not known.
    Their pending trials are evaluated here too: when this run begins, and, if the strategy waits,
    after twice the time of an evaluation. The first value counts. If another run gave up the trial
    as failed, a value that comes later is attached.

    If the database of a study cannot be reached, the run tries again for ten minutes and then ends
    with the error. However a run ends, it tells the values that have come.

    Ctrl-C ends the run: it asks nothing more, tells the values that have come, and returns. A trial
    that a worker still evaluates stays pending; its result is lost, and the call that resumes the
    run evaluates it again. A second Ctrl-C is raised, and also leaves the strategy whole.

    A trial whose objective fails is tried again ``max_retries`` times and then given up. The
    strategy then avoids its place, or is told ``failure_value``. An objective that can never be
    evaluated ends the run at once, and so do too many failures in a row. The results that were told
    stay.

    A callback, a time limit or a target may end the run before its last trial. The run then asks
    nothing more, and evaluates and tells the trials under way. The same call without that argument
    continues it.

    While a small strategy computes, torch has one thread. An objective has as many threads as
    before.

    Example:
        >>> import botorch_ext as bx
        >>> strategy = bx.strategies.RandomSearch(bx.Box([(0.0, 20.0), (1.0, 80.0)]))
        >>> result = bx.run(strategy, lambda x: -float(x[0]), num_trials=5, progress=False)
        >>> result.ids, result.X.shape, result.stopped_by
        ([0, 1, 2, 3, 4], torch.Size([5, 2]), None)

    Args:
        strategy: The strategy, or the `Study`.
        objective: A function from a ``d``-dim point to a number; with contexts, from a point and
            its ``d_z``-dim context. If the domain is a `Space`, the point is a dict of values by
            name, the ``params`` of the trial. In place of the number it may return repeats,
            ``[84.1, 85.3]``, or the number with its standard error, ``{"value": 84.1, "std":
            0.4}``, for a strategy that takes them. If the strategy has `outcome_names`, the
            function returns the number and a dict of the outcomes, as in ``0.7, {"pressure":
            3.1}``. With a process pool the function must be picklable.
        num_trials: The total number of trials that the strategy is asked.
        contexts: The contexts of the trials, for strategies with contexts. A function from the
            number of a trial to its context, called just before the trial is asked, and again if
            the strategy had to wait or another run was first; or an iterator; or ``T x d_z``
            contexts that are known in advance, at least ``num_trials`` of them. A trial that is
            evaluated again keeps its context.
        actions: The actions available for each trial, ``m x d``, given like ``contexts``; None for
            the whole domain.
        executor: Any `concurrent.futures.Executor`, or a function that makes one. The run makes the
            executor of a function again if its workers die, and shuts it down at the end. None
            evaluates in this thread.
        max_pending: How many trials may be under way at once.
        minimize: Whether the objective is a cost, whose negative the strategy is told. The strategy
            must then have no values of its own, as for a `Study`. None: as in the study, or in the
            first run of this strategy; a new strategy maximises. If a strategy was told negative
            costs by hand, or was replayed, say it in every call.
        progress: Whether to show a progress bar with the best value and the number of pending
            trials.
        max_retries: How often a failing trial is tried again before it is given up. Trials that
            were under way when the workers of an executor died are always tried again, because
            nobody knows which of them failed.
        failure_value: The value that the strategy is told for a trial that is given up, in the sign
            of the objective. It is never the best value of this run. None abandons the trial as
            failed: the trial is no data, and optimistic methods treat its place as known.
        max_consecutive_failures: How many trials given up in a row end the run; None never ends it.
            The run ends sooner if the first ``max_pending`` trials, and at least three, all fail in
            the same way.
        callback: A function that the run calls in this thread after each told trial, with the trial
            and its value as the objective returned it, or the average of repeats. The value is NaN
            if the trial was given up. The run ends if the function returns True; other return
            values are ignored. An exception of the function ends the run at once, and is raised
            after the values that have come were told. Values that are told at such an end, or after
            Ctrl-C, are not passed to it.
        time_limit: Seconds after which nothing more is asked. No evaluation is cut short.
        target: The value that is good enough. The run ends once the best value, as in the result,
            is at least the target, or at most the target for a cost. Values of earlier runs and of
            other processes count.

    Returns:
        A `RunResult`.

    Raises:
        ValueError: A count is impossible, several trials may be pending without an executor, the
            strategy does not take contexts or actions, a study or a strategy has another sign, the
            callback is no function of two arguments, the time limit is not positive, or the target
            is not finite.
        ObjectiveError: The objective cannot be called, returned no number, or cannot be pickled for
            a process pool. The trials under way are still pending.
        RepeatedFailures: Too many trials failed in a row.
        WaitingForObservations: The strategy waits and no trial is under way, here or elsewhere.
        BrokenExecutor: The workers of an executor died and ``executor`` is no function that makes a
            new one, or a cluster of Dask is gone.
        StudyError: The study cannot be reached for too long, or cannot be written.

    Warns:
        TrialFailedWarning: A trial was given up.
        UntoldValueWarning: A value was computed but not told, because another run had answered its
            trial or the study could not be reached.
    """
    if not isinstance(strategy, Strategy | Study):
        raise ValueError(f"strategy must be a Strategy or a Study, got {strategy!r}")
    for name, value, least in (
        ("num_trials", num_trials, 1),
        ("max_pending", max_pending, 1),
        ("max_retries", max_retries, 0),
        ("max_consecutive_failures", max_consecutive_failures, 1),
    ):
        if value is not None or name != "max_consecutive_failures":
            whole_number(value, name, least)
    if not callable(objective):
        raise ObjectiveError(f"objective must be a function, got {short(objective)}")
    stopping = Stopping(callback, time_limit, target)
    flag(progress, "progress")
    if not (executor is None or isinstance(executor, Executor) or callable(executor)):
        raise ValueError(
            f"executor must be an Executor, a function that makes one, or None, got {executor!r}"
        )
    if executor is None and max_pending > 1:
        raise ValueError(f"max_pending must be 1 without an executor, got {max_pending}")
    if failure_value is not None:
        failure_value = amount(failure_value, "failure_value", "finite")
    asked = Target(strategy)
    if asked.outcome_names and failure_value is not None:
        raise ValueError(
            f"failure_value must be None for a strategy with outcomes, got {failure_value}"
        )
    streams, done = asked.read(
        lambda now: (
            _streams(now, objective, num_trials, contexts, actions),
            now.history.num_asked - len(now.pending),
        )
    )
    if isinstance(strategy, Strategy):
        strategy.set_minimize(minimize)
    elif minimize is not None and flag(minimize, "minimize") != strategy.minimize:
        raise ValueError(f"minimize must be that of the study, {strategy.minimize}, got {minimize}")
    running = RunningStudy(
        asked,
        objective,
        executor,
        Questions(asked, num_trials, *streams, stopping.is_late),
        max_retries,
        failure_value,
        Failures(max_consecutive_failures, max_pending),
        stopping,
    )
    with tqdm(total=num_trials, initial=done, disable=not progress, unit="trial") as bar:
        running.loop(max_pending, bar)
    return asked.read(partial(_result, running))


def _streams(
    strategy: Strategy,
    objective: Objective,
    num_trials: int,
    contexts: Source | None,
    actions: Source | None,
) -> tuple[Stream | None, Stream | None]:
    space, domain = strategy.context_space, strategy.domain
    if contexts is None and space is not None:
        raise ValueError("contexts must be given for a strategy with contexts, got None")
    if contexts is not None and space is None:
        raise ValueError(
            "contexts must be None for a strategy without contexts, "
            f"got a {type(contexts).__name__}"
        )
    seen = offered = None
    if contexts is not None and space is not None:
        seen = context_stream(contexts, space, domain.like)
        seen.require_length(num_trials, exact=False)
    if actions is not None:
        offered = action_stream(actions, domain)
        offered.require_length(num_trials, exact=False)
    require_taken(objective, 1 if space is None else 2)
    return seen, offered


def _result(running: RunningStudy, strategy: Strategy) -> RunResult:
    domain, history = strategy.domain, strategy.history
    points, told = history.told_points(domain.like)
    X, contexts = points[:, : domain.dim], None
    if strategy.context_space is not None:
        contexts = points[:, domain.dim :]
    Y = history.sign * told
    best = running.best(strategy)
    best_point = None if best is None else best[0].clone()
    return RunResult(
        strategy=strategy if strategy is running.target.asked else strategy.clone(),
        ids=list(history.values),
        X=X,
        Y=Y,
        best_x=None if best_point is None else best_point[: domain.dim],
        best_value=None if best is None else float(Y.new_tensor(best[1])),
        contexts=contexts,
        best_context=None if best_point is None or contexts is None else best_point[domain.dim :],
        failures=running.failed.given_up,
        interrupted=running.interrupted,
        stopped_by=running.stopping.reason if running.is_unfinished(strategy) else None,
        seconds=running.stopping.seconds,
    )
