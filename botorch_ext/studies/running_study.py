"""Running study: who asks what when, what comes back, and what fails."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pickle import PicklingError

from torch import Tensor
from tqdm import tqdm

from botorch_ext.exceptions import (
    HorizonReached,
    ObjectiveError,
    RepeatedFailures,
    TrialFailedWarning,
    UnknownTrialError,
    WaitingForObservations,
)
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.executors import (
    is_lost,
    make_executor,
    require_picklable,
    shut_down,
    unpicklable,
)
from botorch_ext.studies.failures import Failure, Failures, checked_value
from botorch_ext.studies.streams import Stream
from botorch_ext.studies.study import Study
from botorch_ext.studies.threads import in_worker_thread, threads_for

# Of a point, or of a point and its context.
Objective = Callable[..., float | Tensor]

# Seconds without a result before the executor is looked at.
_PATIENCE = 10.0


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


@dataclass
class RunningStudy:
    """The state of one call of `run`.

    Args:
        target: What to ask.
        objective: What is evaluated.
        given: The executor, a function that makes one, or None for this thread.
        sign: Of the objective, as the strategy sees it.
        max_retries: How often a failing trial is tried again.
        failure_value: What is told for a trial that is given up; None abandons it.
        failed: Those that were given up, and when there are too many.
        contexts: Of the trials; None without contexts.
        actions: What there is to choose from; None for the whole domain.
    """

    target: Strategy | Study
    objective: Objective
    given: Executor | Callable[[], Executor] | None
    sign: float
    max_retries: int
    failure_value: float | None
    failed: Failures
    contexts: Stream | None = None
    actions: Stream | None = None
    under_way: dict[Future, tuple[Trial, Executor]] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    suspects: list[Trial] = field(default_factory=list)
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.executor = make_executor(self.given)

    @property
    def strategy(self) -> Strategy:
        """Up to date; reading it may read a file."""
        return self.target if isinstance(self.target, Strategy) else self.target.strategy

    def best_id(self, strategy: Strategy) -> int | None:
        """The trial with the best value that an objective returned, or that was attached."""
        values = dict(strategy.history.values)
        for failure in self.failed.given_up:
            values.pop(failure.id, None)
        return max(values, key=values.__getitem__, default=None)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Around whatever changes the strategy; a study sees to its threads by itself."""
        small = threads_for(self.target) if isinstance(self.target, Strategy) else nullcontext()
        with _interrupt_later(), small:
            yield

    def _answer(self, id: int, value: float | None) -> None:
        """Tells a value, or that there will be none."""
        shared = isinstance(self.target, Study)
        # Others may have answered a trial of a study meanwhile: that stands.
        with suppress(UnknownTrialError) if shared else nullcontext():
            if value is None:
                self.target.abandon(id, failed=True)
            else:
                self.target.tell(id, value if shared else self.sign * value)

    def _ask(self, step: int) -> Trial:
        # Not protected from Ctrl-C: a user's function may wait for the world.
        context = None if self.contexts is None else self.contexts.at(step)
        actions = None if self.actions is None else self.actions.at(step)
        with self._changing():
            return self.target.ask(context=context, actions=actions)

    def loop(self, num_trials: int, max_pending: int, bar: tqdm) -> None:
        ended = False
        try:
            require_picklable(self.objective, self.executor)
            strategy = self.strategy
            waiting = [strategy.history.trials[id] for id in strategy.pending]
            while True:
                while len(self.under_way) < max_pending:
                    if self.suspects:
                        if not self.under_way:
                            self._submit(self.suspects.pop(0))
                        break
                    num_asked = self.strategy.history.num_asked
                    if waiting:
                        self._submit(waiting.pop(0))
                    elif num_asked < num_trials:
                        try:
                            trial = self._ask(num_asked)
                        except WaitingForObservations:
                            if not self.under_way:
                                raise
                            break
                        except HorizonReached:
                            num_trials = num_asked
                            break
                        self._submit(trial)
                    else:
                        break
                if not self.under_way:
                    ended = True
                    return
                self._show(bar)
                finished, _ = wait(self.under_way, _PATIENCE, FIRST_COMPLETED)
                if not finished and is_lost(self.executor):
                    raise BrokenExecutor(
                        "the executor lost its cluster; all trials under way are still pending"
                    )
                for future in sorted(finished, key=self._order):
                    self._finish(future)
                self._show(bar)
        except (KeyboardInterrupt, ObjectiveError, RepeatedFailures) as error:
            with self._changing():
                for future in self.under_way:
                    future.cancel()
                self._keep_finished()
            if not isinstance(error, KeyboardInterrupt):
                raise
            self.interrupted = True
        finally:
            if not isinstance(self.given, Executor):
                # What ended the run early says more than an executor that died with it.
                with nullcontext() if ended else suppress(Exception):
                    shut_down(self.executor, wait=ended)

    def _order(self, future: Future) -> tuple[bool, int]:
        """Equal results whatever order a set of futures has; values before a break of the pool,
        which may end the run."""
        broken = not future.cancelled() and isinstance(future.exception(), BrokenExecutor)
        return broken, self.under_way[future][0].id

    def _submit(self, trial: Trial) -> None:
        self.attempts[trial.id] = self.attempts.get(trial.id, 0) + 1
        own = trial.copy()  # the objective may change it
        given = (own.x,) if own.context is None else (own.x, own.context)
        call = self.objective
        if isinstance(self.executor, ThreadPoolExecutor):
            call = partial(in_worker_thread, call)
        try:
            future = self.executor.submit(call, *given)
        except BrokenExecutor:
            self._replace(self.executor)
            future = self.executor.submit(call, *given)
        self.under_way[future] = trial, self.executor

    def _finish(self, future: Future) -> None:
        trial, executor = self.under_way[future]
        try:
            value = checked_value(future.result())
        except ObjectiveError:
            raise
        except PicklingError as error:
            raise unpicklable(self.objective, error) from error
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
            with self._changing():
                self._answer(trial.id, value)
                del self.under_way[future]
                self.failed.value_came()

    def _keep_finished(self) -> None:
        """Tells the values that have come; whatever failed stays pending, to be tried again."""
        for future in sorted(filter(Future.done, self.under_way), key=self._order):
            try:
                value = checked_value(future.result())
            except Exception:  # noqa: BLE001 - whatever the objective raised
                continue
            self._answer(self.under_way[future][0].id, value)

    def _replace(self, broken: Executor) -> None:
        if broken is not self.executor:
            return  # done already
        if isinstance(self.given, Executor):
            raise BrokenExecutor(
                "the workers of the executor died and it cannot be used any more; pass a function "
                "that makes an executor to have it replaced. All trials under way are still "
                "pending: run with a new executor continues the study."
            )
        shut_down(self.executor, wait=False)
        self.executor = make_executor(self.given)

    def _retry_or_give_up(self, trial: Trial, error: BaseException) -> None:
        if self.attempts[trial.id] <= self.max_retries:
            self._submit(trial)
            return
        failure = Failure.of(trial, error)
        with self._changing():
            self.failed.add(failure)
            self._answer(trial.id, self.failure_value)
        warnings.warn(
            f"trial {failure.id} at {failure.place} failed {self.attempts[failure.id]} times "
            f"and was given up: {error!r}",
            TrialFailedWarning,
            stacklevel=5,
        )
        self.failed.require_going_on()

    def _show(self, bar: tqdm) -> None:
        if bar.disable:
            return
        strategy = self.strategy
        best, pending = self.best_id(strategy), len(strategy.pending)
        bar.n = strategy.history.num_asked - pending
        value = math.nan if best is None else self.sign * strategy.history.values[best]
        bar.set_postfix(best=f"{value:.6g}", pending=pending)
