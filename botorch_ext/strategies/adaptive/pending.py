"""The rows of a posterior, some of which belong to pending trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from torch import Tensor

from botorch_ext.checks import amount, flag, whole_number
from botorch_ext.state import State, shallow
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Event,
    History,
    Told,
    Trial,
)

Pending = Literal["ignore", "hallucinate", "censor"]


@dataclass(frozen=True)
class PendingPolicy:
    """How pending trials (asked, not told) count in a posterior.

    Args:
        pending: "ignore": not at all. "hallucinate": in the standard deviation and in the width,
            not in the mean. "censor": in mean, standard deviation and width, as observations of
            ``minimum``.
        inflate: Whether "hallucinate" multiplies the width by exp(information gain of the pending
            points given the told ones).
        minimum: A lower bound on the values of f, for "censor" only.
        timeout: m, for "censor" only: a trial that was asked at step s and is not told before the
            ask of step s + m + 1 stays censored for ever. None: a result counts however late it is
            told.

    Raises:
        ValueError: If the policy is unknown, or if an option does not belong to it.
    """

    pending: Pending = "hallucinate"
    inflate: bool = False
    minimum: float | None = None
    timeout: int | None = None

    def __post_init__(self) -> None:
        pending, minimum, timeout = self.pending, self.minimum, self.timeout
        if not isinstance(pending, str) or pending not in ("ignore", "hallucinate", "censor"):
            raise ValueError(
                f'pending must be "ignore", "hallucinate" or "censor", got {pending!r}'
            )
        if flag(self.inflate, "inflate") and pending != "hallucinate":
            raise ValueError(
                f'inflate must be False unless pending is "hallucinate", got {pending!r}'
            )
        if (minimum is None) == (pending == "censor"):
            raise ValueError(
                f'minimum must be given exactly when pending is "censor", got {minimum}'
            )
        if minimum is not None:
            object.__setattr__(self, "minimum", amount(minimum, "minimum", "finite"))
        if timeout is not None and (pending != "censor" or whole_number(timeout, "timeout") < 0):
            raise ValueError(
                f'timeout must be a non-negative count, with pending "censor", got {timeout}'
            )


class Growing(Protocol):
    """A posterior to which rows can be added, and from which they can be removed."""

    @property
    def noise_variance(self) -> Tensor: ...

    @property
    def num_observations(self) -> int: ...

    @property
    def train_inputs(self) -> tuple[Tensor]: ...

    @property
    def relative_noise(self) -> Tensor | None: ...

    def add(self, X: Tensor, Y: Tensor | None, relative_noise: Tensor | None = None) -> None: ...

    def set_targets(self, rows: list[int], Y: Tensor) -> None: ...

    def remove(self, row: int) -> None: ...

    def fork(self) -> Self: ...

    def successor(self) -> Self: ...


_Posterior = TypeVar("_Posterior", bound=Growing)


class TrialRows(State, Generic[_Posterior]):
    """A posterior whose rows follow the events of a study.

    The trial that was asked last gets its row when the next event comes; if it is told at once,
    this costs one update. Values of earlier trials wait for the next event of another kind, or the
    next choice; if several are told in a row, they cost one update together.

    Args:
        posterior: The posterior; its rows so far belong to no trial. If it has ``add_candidate``,
            it is given the ``index`` of trials, else their points.
        policy: How pending trials count.
        noise_std: The standard deviation of the noise whose variance is the noise variance of the
            posterior, by which standard errors are divided; None if there are none.
    """

    def __init__(
        self, posterior: _Posterior, policy: PendingPolicy, noise_std: float | None = None
    ) -> None:
        self.posterior = posterior
        self.policy = policy
        self.noise_std = math.nan if noise_std is None else noise_std
        self.told_too_late: list[int] = []
        # The number of observations, with those from before the first ask.
        self.num_data = posterior.num_observations
        # The id of the trial of each row; None for rows from before the first ask.
        self.ids: list[int | None] = [None] * posterior.num_observations
        self._newest: Trial | None = None
        # Maps rows to values that the posterior does not have yet.
        self._waiting: dict[int, float] = {}

    def successor(self) -> Self:
        return shallow(self)  # posterior and lists are replaced, never changed in place

    def catch_up(self) -> None:
        """Adds the waiting rows and values, so that ``posterior`` has all events. The events decide
        when this happens, not the readers, as rounding would differ in a replay otherwise."""
        if self._newest is not None:
            self._enter(self._newest, self.policy.minimum)
            self._newest = None
        if self._waiting:
            self.posterior = self.posterior.successor()
            values = self.posterior.noise_variance.new_tensor([*self._waiting.values()])
            self.posterior.set_targets([*self._waiting], values)
            self._waiting = {}

    def current(self) -> Self:
        """These rows if they have all events, else a fork that has all events."""
        if self._newest is None and not self._waiting:
            return self
        fork = copy(self)
        fork.posterior = self.posterior.fork()
        fork.catch_up()
        return fork

    def for_means(self) -> Self:
        """These rows if their means are those after all events, else a fork with such means. A
        hallucinated row does not change means."""
        return self.current() if self._waiting or self.policy.pending == "censor" else self

    def moved_to(
        self, posterior: _Posterior, first: Sequence[float | None], history: History
    ) -> Self:
        """These rows in another posterior, which has none yet; all events must have entered.

        Args:
            posterior: The other posterior.
            first: The values of the rows that belong to no trial; None for pending ones.
            history: The history, with the values of the other rows.
        """
        new = copy(self)
        new.posterior = posterior
        told = {id: value for id, value in history.values.items() if id not in self.told_too_late}
        ids: list[Any] = self.ids[len(first) :]
        values = [told.get(id, self.policy.minimum) for id in ids]
        values = [*first, *values]
        if values:
            posterior.add(*self.posterior.train_inputs, None, self.posterior.relative_noise)
        known = {row: value for row, value in enumerate(values) if value is not None}
        if known:
            like = posterior.noise_variance
            posterior.set_targets([*known], like.new_tensor([*known.values()]))
        return new

    @property
    def num_rows(self) -> int:
        """The number of rows after all events."""
        return self.posterior.num_observations + (self._newest is not None)

    def without(self, rows: list[int]) -> _Posterior:
        """A copy of the posterior without some of its rows, ascending."""
        posterior = self.posterior.fork()
        for row in reversed(rows):
            posterior.remove(row)
        return posterior

    def told(self, history: History) -> _Posterior:
        """The posterior of the told data alone, after all events."""
        now = self.current()
        untold = now.untold(history)
        return now.without(untold) if untold else now.posterior

    def untold(self, history: History) -> list[int]:
        """The rows of trials that are pending, failed, or told too late."""
        told = history.values.keys() - set(self.told_too_late)
        return [row for row, id in enumerate(self.ids) if id is not None and id not in told]

    def known(self, history: History) -> list[int]:
        """The rows of the told data."""
        untold = set(self.untold(history))
        return [row for row in range(len(self.ids)) if row not in untold]

    def absorb(self, event: Event, history: History) -> bool:
        """Updates the rows for the last event of the history.

        Returns:
            Whether the event added an observation.
        """
        keeps_pending = self.policy.pending != "ignore"
        if isinstance(event, Asked):
            self.catch_up()
            if keeps_pending:
                self._newest = event.trial
            return False
        if isinstance(event, Attached):
            self.catch_up()
            noise = history.relative_noise(event.trial.id, self.noise_std)
            self._enter(event.trial, event.value, noise)
            self.num_data += 1
            return True
        if isinstance(event, Abandoned) and event.failed:
            return False  # it counts as pending for ever
        at_once = self._newest is not None and self._newest.id == event.id
        if at_once:
            self._newest = None
        elif self._newest is not None or isinstance(event, Abandoned):
            self.catch_up()
        has_row = not at_once and keeps_pending
        match event:
            case Told(id, value):
                if self.policy.timeout is not None and self._timed_out(id, history):
                    self.told_too_late = [*self.told_too_late, id]
                    return False
                noise = history.relative_noise(id, self.noise_std)
                if has_row and noise is None:
                    self._waiting = self._waiting | {self.ids.index(id): value}
                else:
                    if has_row:  # it has the noise of one observation
                        self.catch_up()
                        self._leave(id)
                    self._enter(history.trials[id], value, noise)
                self.num_data += 1
                return True
            case Abandoned(id) if has_row:
                self._leave(id)
        return False

    def _enter(self, trial: Trial, value: float | None, noise: float | None = None) -> None:
        self.posterior = self.posterior.successor()
        add_candidate: Any = getattr(self.posterior, "add_candidate", None)
        if add_candidate is not None:
            add_candidate(trial.info["index"], value, noise)
        else:
            Y, own = (
                None if number is None else trial.x.new_tensor([number])
                for number in (value, noise)
            )
            self.posterior.add(trial.point.unsqueeze(0), Y, own)
        self.ids = [*self.ids, trial.id]

    def _leave(self, id: int) -> None:
        self.posterior = self.posterior.successor()
        self.posterior.remove(self.ids.index(id))
        self.ids = [other for other in self.ids if other != id]

    def _timed_out(self, id: int, history: History) -> bool:
        timeout: Any = self.policy.timeout
        return history.num_asked - history.asked_before(id) > timeout + 1
