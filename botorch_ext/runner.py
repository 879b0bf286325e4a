"""Studies: `run` evaluates a real objective, `simulate` a known function with delays and noise."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import whole_number
from botorch_ext.exceptions import HorizonReached, TrialFailedWarning, WaitingForObservations
from botorch_ext.strategies import Strategy, Trial

Objective = Callable[[Tensor], float | Tensor]


@dataclass(frozen=True)
class Failure:
    """A trial whose objective kept failing.

    Args:
        id: The trial.
        x: The ``d``-dim point.
        error: What the last attempt raised.
    """

    id: int
    x: Tensor
    error: BaseException


@dataclass(frozen=True)
class RunResult:
    """What a study found, in the sign of the objective.

    Args:
        strategy: The strategy, with all its state; it can be run on.
        ids: The told trials, in the order of telling.
        X: ``n x d``, their points.
        Y: ``n``, what they were told: the values the objective returned, and ``failure_value`` for
            the trials in ``failures``.
        best_x: The ``d``-dim point with the best value the objective returned, or None.
        best_value: That value, or None.
        failures: Trials that were given up in this run.
        interrupted: Whether Ctrl-C ended the run. Trials that had not come are pending.
    """

    strategy: Strategy
    ids: list[int]
    X: Tensor
    Y: Tensor
    best_x: Tensor | None
    best_value: float | None
    failures: list[Failure]
    interrupted: bool


def run(
    strategy: Strategy,
    objective: Objective,
    num_trials: int,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    max_pending: int = 1,
    minimize: bool = False,
    progress: bool = True,
    max_retries: int = 1,
    failure_value: float | None = None,
) -> RunResult:
    """Runs a study until the strategy has ``num_trials`` trials, those of earlier runs included.

    Trials that are pending from an earlier run are evaluated first, so that the same call continues
    an interrupted study. A strategy that waits is asked again when one of the trials under way has
    come; the horizon of a strategy ends the study.

    Ctrl-C stops asking, tells what has come and returns. A trial that a worker is still evaluating
    stays pending; its result is lost, and continuing the study evaluates it again. A second Ctrl-C
    is raised, and leaves the strategy whole as well.

    Args:
        strategy: What to ask.
        objective: A ``d``-dim point to a number. With a process pool it must be picklable.
        num_trials: The total number of trials of the strategy.
        executor: Any `concurrent.futures.Executor`, or a function that makes one, which is then
            remade when its workers die and shut down at the end. None evaluates in this thread.
        max_pending: How many trials may be under way at once.
        minimize: The objective is a cost. The strategy is told its negative, and keeps no note of
            it: say the same in every call that continues a study.
        progress: Show a progress bar with the best value and the number of pending trials.
        max_retries: How often a failing trial is tried again before it is given up.
        failure_value: What the strategy is told for a trial that is given up, in the sign of the
            objective; it is never the best value of this run. None abandons the trial: it is no
            data, and a deterministic strategy may well ask it again.

    Returns:
        A `RunResult`.

    Raises:
        ValueError: An impossible count, or several pending trials without an executor.
        WaitingForObservations: The strategy waits and no trial is under way.
        BrokenExecutor: The workers of an executor died and ``executor`` is no function that makes a
            new one.

    Warns:
        TrialFailedWarning: A trial was given up.
    """
    for name, value, least in (
        ("num_trials", num_trials, 1),
        ("max_pending", max_pending, 1),
        ("max_retries", max_retries, 0),
    ):
        whole_number(value, name, least)
    if not (executor is None or isinstance(executor, Executor) or callable(executor)):
        raise ValueError(
            f"executor must be an Executor, a function that makes one, or None, got {executor!r}"
        )
    if executor is None and max_pending > 1:
        raise ValueError(f"max_pending must be 1 without an executor, got {max_pending}")
    if failure_value is not None and not math.isfinite(failure_value):
        raise ValueError(f"failure_value must be finite, got {failure_value}")
    study = _Study(
        strategy, objective, executor, -1.0 if minimize else 1.0, max_retries, failure_value
    )
    done = len(strategy.history.trials) - len(strategy.pending)
    with tqdm(total=num_trials, initial=done, disable=not progress, unit="trial") as bar:
        study.loop(num_trials, max_pending, bar)
    return study.result()


class _Inline(Executor):
    """Evaluates at once, in this thread. Ctrl-C passes through."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whatever the objective raises is the trial's failure
            future.set_exception(error)
        return future


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: a strategy is never left half changed."""
    main = threading.current_thread() is threading.main_thread()  # no other has signals
    if not main or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    received = []
    handler = signal.signal(signal.SIGINT, lambda *args: received.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received and callable(handler):
            handler(*received[0])


def _value_of(future: Future) -> float:
    value = float(future.result())
    if not math.isfinite(value):
        raise ValueError(f"objective must return a finite value, got {value}")
    return value


@dataclass
class _Study:
    strategy: Strategy
    objective: Objective
    given: Executor | Callable[[], Executor] | None
    sign: float
    max_retries: int
    failure_value: float | None
    under_way: dict[Future, tuple[Trial, Executor]] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    suspects: list[Trial] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.executor = self._make_executor()
        # In the sign of the strategy; kept up to date, since the progress bar shows it.
        self.best_id = max(self.values, key=self.values.__getitem__, default=None)

    @property
    def values(self) -> dict[int, float]:
        return self.strategy.history.values

    def _tell(self, trial: Trial, value: float) -> None:
        self.strategy.tell(trial.id, self.sign * value)
        if self.best_id is None or self.values[trial.id] > self.values[self.best_id]:
            self.best_id = trial.id

    def _make_executor(self) -> Executor:
        if self.given is None:
            return _Inline()
        return self.given if isinstance(self.given, Executor) else self.given()

    def loop(self, num_trials: int, max_pending: int, bar: tqdm) -> None:
        history = self.strategy.history
        try:
            waiting = [history.trials[id] for id in self.strategy.pending]
            while True:
                while len(self.under_way) < max_pending:
                    if self.suspects:
                        if not self.under_way:
                            self._submit(self.suspects.pop(0))
                        break
                    if waiting:
                        self._submit(waiting.pop(0))
                    elif len(history.trials) < num_trials:
                        try:
                            with _interrupt_later():
                                trial = self.strategy.ask()
                        except WaitingForObservations:
                            if not self.under_way:
                                raise
                            break
                        except HorizonReached:
                            num_trials = len(history.trials)
                            break
                        self._submit(trial)
                    else:
                        break
                if not self.under_way:
                    return
                self._show(bar)
                finished, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                for future in sorted(finished, key=self._order):
                    self._finish(future)
                self._show(bar)
        except KeyboardInterrupt:
            self.interrupted = True
            with _interrupt_later():
                for future in self.under_way:
                    future.cancel()
                self._keep_finished()
        finally:
            if not isinstance(self.given, Executor):
                self.executor.shutdown(wait=not self.interrupted, cancel_futures=True)

    def _order(self, future: Future) -> tuple[bool, int]:
        """Equal results whatever order a set of futures has; values before a break of the pool,
        which may end the run."""
        broken = not future.cancelled() and isinstance(future.exception(), BrokenExecutor)
        return broken, self.under_way[future][0].id

    def _submit(self, trial: Trial) -> None:
        self.attempts[trial.id] = self.attempts.get(trial.id, 0) + 1
        x = trial.x.clone()  # the objective may change it
        try:
            future = self.executor.submit(self.objective, x)
        except BrokenExecutor:
            self._replace(self.executor)
            future = self.executor.submit(self.objective, x)
        self.under_way[future] = trial, self.executor

    def _finish(self, future: Future) -> None:
        trial, executor = self.under_way[future]
        try:
            value = _value_of(future)
        except BrokenExecutor as error:
            del self.under_way[future]
            alone = executor is self.executor and not self.under_way
            self._replace(executor)
            if alone:
                self._retry_or_give_up(trial, error)
            else:
                # Every trial of a broken executor ends here, and nobody knows whose worker died.
                # They are tried again one at a time: the next death has one cause.
                self.attempts[trial.id] -= 1
                self.suspects.append(trial)
        except Exception as error:  # noqa: BLE001 - the study goes on whatever the objective raises
            del self.under_way[future]
            self._retry_or_give_up(trial, error)
        else:
            with _interrupt_later():
                self._tell(trial, value)
                del self.under_way[future]

    def _keep_finished(self) -> None:
        """Tells the values that have come; whatever failed stays pending, to be tried again."""
        for future in sorted(filter(Future.done, self.under_way), key=self._order):
            try:
                value = _value_of(future)
            except Exception:  # noqa: BLE001 - whatever the objective raised
                continue
            self._tell(self.under_way[future][0], value)

    def _replace(self, broken: Executor) -> None:
        if broken is not self.executor:
            return  # done already
        if isinstance(self.given, Executor):
            raise BrokenExecutor(
                "the workers of the executor died and it cannot be used any more; pass a function "
                "that makes an executor to have it replaced. All trials under way are still "
                "pending: run with a new executor continues the study."
            )
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._make_executor()

    def _retry_or_give_up(self, trial: Trial, error: BaseException) -> None:
        if self.attempts[trial.id] <= self.max_retries:
            self._submit(trial)
            return
        with _interrupt_later():
            self.failures.append(Failure(trial.id, trial.x.clone(), error))
            if self.failure_value is None:
                self.strategy.abandon(trial.id)
            else:
                self.strategy.tell(trial.id, self.sign * self.failure_value)
        warnings.warn(
            f"trial {trial.id} at {trial.x.tolist()} failed {self.attempts[trial.id]} times "
            f"and was given up: {error!r}",
            TrialFailedWarning,
            stacklevel=5,
        )

    def _show(self, bar: tqdm) -> None:
        if bar.disable:
            return
        pending = len(self.strategy.pending)
        bar.n = len(self.strategy.history.trials) - pending
        best = math.nan if self.best_id is None else self.sign * self.values[self.best_id]
        bar.set_postfix(best=f"{best:.6g}", pending=pending)

    def result(self) -> RunResult:
        history = self.strategy.history
        domain = self.strategy.domain
        X, told = history.told_points(domain.like)
        X = X[:, : domain.dim]  # without contexts
        Y = self.sign * told
        ids = list(history.values)
        top = None if self.best_id is None else ids.index(self.best_id)
        return RunResult(
            strategy=self.strategy,
            ids=ids,
            X=X,
            Y=Y,
            best_x=None if top is None else X[top],
            best_value=None if top is None else float(Y[top]),
            failures=self.failures,
            interrupted=self.interrupted,
        )
