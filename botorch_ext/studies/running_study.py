"""RunningStudy: the loop of `run`, which asks, evaluates, tells, and handles failures."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pickle import PicklingError
from typing import Any, NamedTuple

from torch import Tensor
from tqdm import tqdm

from botorch_ext.exceptions import (
    ObjectiveError,
    StudyError,
    TrialFailedWarning,
    UntoldValueWarning,
)
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.studies.executors import (
    exit_of,
    is_lost,
    make_executor,
    require_picklable,
    shut_down,
    unpicklable,
    uses_threads,
)
from botorch_ext.studies.failures import Failure, Failures, checked_result
from botorch_ext.studies.questions import Questions
from botorch_ext.studies.stopping import Stopping
from botorch_ext.studies.target import Target, interrupt_later
from botorch_ext.studies.threads import in_worker_thread

# A function of a point, or of a point and its context; a point of a space is a dict by name. It
# returns a number, repeats or a number and its standard error, also with the outcomes by name.
Objective = Callable[..., Any]

# Seconds without a result before the executor is looked at.
_LOOK = 10.0


class UnderWay(NamedTuple):
    """One evaluation: its trial, its executor, and its start in seconds of the monotonic clock."""

    trial: Trial
    executor: Executor
    since: float


@dataclass
class RunningStudy:
    """The state of one call of `run`.

    Args:
        target: The strategy or the study that is asked.
        objective: The function that is evaluated.
        given: The executor, a function that makes one, or None for this thread.
        questions: Decides which trial is next.
        max_retries: How often a failing trial is tried again.
        failure_value: The value that is told for a trial that is given up; None abandons it.
        failed: The trials that were given up; decides whether there are too many.
        stopping: Decides whether the run ends before its last trial.
    """

    target: Target
    objective: Objective
    given: Executor | Callable[[], Executor] | None
    questions: Questions
    max_retries: int
    failure_value: float | None
    failed: Failures
    stopping: Stopping
    under_way: dict[Future, UnderWay] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    suspects: list[Trial] = field(default_factory=list)
    longest: float = 0.0
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.executor = make_executor(self.given)

    def best(self, strategy: Strategy) -> tuple[Tensor, float] | None:
        """The point, joined with its context, and the best value among the values that the
        objective returned, attached values and initial data."""
        history, found = strategy.history, None
        top = history.best(besides={failure.id for failure in self.failed.given_up})
        if top is not None:
            found = history.trials[top].point, history.values[top]
        if strategy.initial is not None:
            X, Y = strategy.initial[0], history.sign * strategy.initial[1]
            row = int(Y.argmax())
            if found is None or float(Y[row]) > found[1]:
                found = X[row], float(Y[row])
        return None if found is None else (found[0], history.sign * found[1])

    def is_unfinished(self, strategy: Strategy) -> bool:
        """Whether there are trials yet to be asked, or to be evaluated."""
        history = strategy.history
        return bool(history.pending) or history.num_asked < self.questions.num_trials

    def _best_value(self) -> float | None:
        best = self.target.read(self.best)
        return None if best is None else best[1]

    def loop(self, max_pending: int, bar: tqdm) -> None:
        ended = False
        try:
            require_picklable(self.objective, self.executor)
            self.questions.take_over()
            while True:
                self._fill(max_pending)
                if not self.under_way:
                    ended = True
                    return
                self._show(bar)
                finished, _ = wait(self.under_way, _LOOK, FIRST_COMPLETED)
                if not finished and is_lost(self.executor):
                    raise BrokenExecutor(
                        "the executor lost its cluster; all trials under way are still pending"
                    )
                for future in sorted(finished, key=self._order):
                    self._finish(future)
                self._show(bar)
        except BaseException as error:
            with interrupt_later():
                for future in self.under_way:
                    future.cancel()
                self._keep_finished()
            if not isinstance(error, KeyboardInterrupt):
                raise
            self.interrupted = True
        finally:
            self.target.close()
            if not isinstance(self.given, Executor):
                # What ended the run early says more than an executor that died with it.
                with nullcontext() if ended else suppress(Exception):
                    shut_down(self.executor, wait=ended)

    def _fill(self, max_pending: int) -> None:
        while len(self.under_way) < max_pending:
            if self.suspects:
                if not self.under_way:
                    self._submit(self.suspects.pop(0))
                return
            if self.stopping.is_over(self._best_value, self.target.asked.minimize):
                return
            trial = self.questions.next(None if self.under_way else 2 * self.longest)
            if trial is None:
                return
            self._submit(trial)

    def _order(self, future: Future) -> tuple[bool, int]:
        """The key by which finished futures are sorted: by id, so that runs repeat, and values
        before a break of the pool, which may end the run."""
        broken = not future.cancelled() and isinstance(future.exception(), BrokenExecutor)
        return broken, self.under_way[future].trial.id

    def _submit(self, trial: Trial) -> None:
        self.attempts[trial.id] = self.attempts.get(trial.id, 0) + 1
        own = trial.copy()  # the objective may change it
        given = (own.given,) if own.context is None else (own.given, own.context)
        call = self.objective
        if isinstance(self.executor, ThreadPoolExecutor):
            call = partial(in_worker_thread, call)
        since = time.monotonic()
        try:
            future = self.executor.submit(call, *given)
        except BrokenExecutor:
            self._replace(self.executor)
            future = self.executor.submit(call, *given)
        self.under_way[future] = UnderWay(trial, self.executor, since)

    def _finish(self, future: Future) -> None:
        trial, executor, since = self.under_way[future]
        self.longest = max(self.longest, time.monotonic() - since)
        if (ended := exit_of(future)) is not None:
            del self.under_way[future]
            self._retry_or_give_up(trial, ended)
            return
        try:
            measured = self._checked(trial, future.result())
        except ObjectiveError:
            raise
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
        except Exception as error:  # the study goes on whatever the objective raises
            if isinstance(error, PicklingError) and not uses_threads(executor):
                raise unpicklable(self.objective, error) from error
            del self.under_way[future]
            self._retry_or_give_up(trial, error)
        else:
            self.target.tell(trial, measured)
            del self.under_way[future]
            self.failed.value_came()
            self.stopping.call(trial, measured["value"])

    def _checked(self, trial: Trial, returned: Any) -> dict[str, Any]:
        target = self.target
        return checked_result(returned, target.outcome_names, target.takes_std, trial.id)

    def _keep_finished(self) -> None:
        """Tells the values that have come, and gives up trials whose value is not finite. A trial
        whose objective raised an exception stays pending, to be tried again."""
        self.target.be_brief()
        lost, failures = [], []
        for future in sorted(filter(Future.done, self.under_way), key=self._order):
            # Ctrl-C reaches the workers of a pool too, as an exception of the objective.
            if future.cancelled() or future.exception() is not None:
                continue
            trial, measured = self.under_way[future].trial, {}
            try:
                try:
                    measured = self._checked(trial, future.result())
                except ObjectiveError:
                    continue
                except ValueError as error:
                    failures.append(self._give_up(trial, error))
                else:
                    self.target.tell(trial, measured)
            except Exception as error:  # noqa: BLE001 - the error that ended the run is raised
                what = measured.get("value", "the failure")
                lost.append(f"{what} for trial {trial.id} at {trial.place} ({error})")
        for said in failures:
            warnings.warn(said, TrialFailedWarning, stacklevel=4)
        if lost:
            warnings.warn(
                f"the run ended, and values could not be told: {'; '.join(lost)}",
                UntoldValueWarning,
                stacklevel=4,
            )

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
        warnings.warn(self._give_up(trial, error), TrialFailedWarning, stacklevel=5)
        self.stopping.call(trial, math.nan)
        self.failed.require_going_on()

    def _give_up(self, trial: Trial, error: BaseException) -> str:
        """Gives up a trial, and returns the message of its warning."""
        failure, times = Failure.of(trial, error), self.attempts[trial.id]
        self.failed.add(failure)
        self.target.give_up(trial, self.failure_value)
        return (
            f"trial {failure.id} at {failure.place} failed {times} time{'s' if times > 1 else ''} "
            f"and was given up: {error!r}"
        )

    def _show(self, bar: tqdm) -> None:
        if bar.disable:
            return

        def show(strategy: Strategy) -> None:
            best, pending = self.best(strategy), len(strategy.pending)
            bar.n = strategy.history.num_asked - pending
            value = math.nan if best is None else best[1]
            bar.set_postfix(best=f"{value:.6g}", pending=pending)

        with suppress(StudyError):  # a bar is not worth an error, or a wait
            self.target.read_once(show)
