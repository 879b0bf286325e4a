"""Running study: who asks what when, what comes back, and what fails."""

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

from botorch_ext.exceptions import HorizonReached, TrialFailedWarning, WaitingForObservations
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.streams import Stream

# Of a point, or of a point and its context.
Objective = Callable[..., float | Tensor]


@dataclass(frozen=True)
class Failure:
    """A trial whose objective kept failing.

    Args:
        id: The trial.
        x: The ``d``-dim point.
        error: What the last attempt raised.
        context: Its ``d_z``-dim context, or None.
    """

    id: int
    x: Tensor
    error: BaseException
    context: Tensor | None = None


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
class RunningStudy:
    """The state of one call of `run`.

    Args:
        strategy: What to ask.
        objective: What is evaluated.
        given: The executor, a function that makes one, or None for this thread.
        sign: Of the objective, as the strategy sees it.
        max_retries: How often a failing trial is tried again.
        failure_value: What is told for a trial that is given up; None abandons it.
        contexts: Of the trials; None without contexts.
        actions: What there is to choose from; None for the whole domain.
    """

    strategy: Strategy
    objective: Objective
    given: Executor | Callable[[], Executor] | None
    sign: float
    max_retries: int
    failure_value: float | None
    contexts: Stream | None = None
    actions: Stream | None = None
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

    def _ask(self) -> Trial:
        step = len(self.strategy.history.trials)
        # Not protected from Ctrl-C: a user's function may wait for the world.
        context = None if self.contexts is None else self.contexts.at(step)
        actions = None if self.actions is None else self.actions.at(step)
        with _interrupt_later():
            return self.strategy.ask(context=context, actions=actions)

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
                            trial = self._ask()
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
        own = trial.copy()  # the objective may change it
        given = (own.x,) if own.context is None else (own.x, own.context)
        try:
            future = self.executor.submit(self.objective, *given)
        except BrokenExecutor:
            self._replace(self.executor)
            future = self.executor.submit(self.objective, *given)
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
        own = trial.copy()
        with _interrupt_later():
            self.failures.append(Failure(own.id, own.x, error, own.context))
            if self.failure_value is None:
                self.strategy.abandon(trial.id)
            else:
                self.strategy.tell(trial.id, self.sign * self.failure_value)
        place = f"{own.x.tolist()}"
        if own.context is not None:
            place += f" in context {own.context.tolist()}"
        warnings.warn(
            f"trial {own.id} at {place} failed {self.attempts[own.id]} times "
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
