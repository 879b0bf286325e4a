"""Events of a study, and the record of all that happened."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, Space
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.outside_points import params_outside
from botorch_ext.domains.points import numbered
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.state import Log, shallow

# How many numbers of a point are shown.
_MOST_SHOWN = 10
_UNCHANGING = {bool, int, float, str, type(None)}


@dataclass(frozen=True, eq=False)
class Trial:
    """One question.

    Args:
        id: 0, 1, 2, ... in the order of asking.
        x: The ``d``-dim point to evaluate.
        context: The ``d_z``-dim context it was asked in, or None.
        info: What was known when it was asked, plain numbers and strings.
        domain: Where the point lies, which names its columns; strategies fill it in.
    """

    id: int
    x: Tensor
    context: Tensor | None = None
    info: dict[str, Any] = field(default_factory=dict)
    domain: Domain | None = field(default=None, repr=False)

    @property
    def params(self) -> dict[str, Any]:
        """The point by name, plain Python values of all columns that count, as `Box.params` gives
        them: ``{"temperature": 61.5, "solvent": "dmso"}`` in a `Space`, ``{"x0": 0.3, "x1": 2.0}``
        elsewhere."""
        if self.domain is None:
            return numbered(self.x)
        if is_outside_domain(self) and isinstance(self.domain, Box):
            return params_outside(self.domain, self.x)
        return self.domain.params_of(self.x)

    @property
    def given(self) -> dict[str, Any] | Tensor:
        """The point as an objective gets it: `params` in a `Space`, ``x`` elsewhere."""
        return self.params if isinstance(self.domain, Space) else self.x

    @property
    def place(self) -> str:
        """The point and the context for messages, as `place_of` writes them."""
        if is_outside_domain(self) and isinstance(self.domain, Space):
            return str(self.params)
        return place_of(self.x, self.context, self.domain)

    def __repr__(self) -> str:
        """The id and the place, in a line."""
        return f"Trial {self.id} at {self.place}"

    @property
    def point(self) -> Tensor:
        """The joint row that models see: ``x``, then the context where there is one."""
        return with_context(self.x, self.context)

    def copy(self) -> Trial:
        """A trial that shares nothing with this one."""
        context = None if self.context is None else self.context.clone()
        return Trial(self.id, self.x.clone(), context, _copied(self.info), self.domain)


def place_of(x: Tensor, context: Tensor | None = None, domain: Domain | None = None) -> str:
    """A point and its context as people read them: by name in a `Space`, elsewhere in six digits,
    long ones cut off.

    Args:
        x: The ``d``-dim point.
        context: ``d_z`` numbers, or None.
        domain: The domain of the point, where it is known.
    """
    place = str(domain.params_of(x)) if isinstance(domain, Space) else _in_digits(x)
    return place if context is None else f"{place} in context {_in_digits(context)}"


def _in_digits(x: Any) -> str:
    if not isinstance(x, Tensor) or x.ndim != 1:  # no point, which is about to be refused
        return short(x)
    numbers = [f"{number:.6g}" for number in x[:_MOST_SHOWN].tolist()]
    more = [f"... of {len(x)}"] if len(x) > _MOST_SHOWN else []
    return f"[{', '.join(numbers + more)}]"


def is_outside_domain(trial: Any) -> bool:
    """Whether a trial is data from outside of the domain: a result that was attached."""
    info = getattr(trial, "info", None)
    return isinstance(info, dict) and info.get("attached") is True and info.get("outside") is True


def _copied(plain: Any) -> Any:
    """A copy of numbers, strings, dicts and lists; several times as fast as `deepcopy`."""
    if type(plain) in _UNCHANGING:
        return plain
    if isinstance(plain, dict):
        return {k: v if type(v) in _UNCHANGING else _copied(v) for k, v in plain.items()}
    if isinstance(plain, list):
        return [v if type(v) in _UNCHANGING else _copied(v) for v in plain]
    return deepcopy(plain)


@dataclass(frozen=True, eq=False)
class Asked:
    """A trial was handed out."""

    trial: Trial


@dataclass(frozen=True)
class Told:
    """A trial was answered."""

    id: int
    value: float


@dataclass(frozen=True)
class Abandoned:
    """A trial will never be answered; ``failed``: as its evaluation failed."""

    id: int
    failed: bool = False


@dataclass(frozen=True, eq=False)
class Attached:
    """A result came that was not asked for."""

    trial: Trial
    value: float


@dataclass(frozen=True)
class Corrected:
    """A value that was told, or attached, was wrong."""

    id: int
    value: float


Event = Asked | Told | Abandoned | Attached | Corrected


def copied(event: Event) -> Event:
    """An event that shares nothing with this one that could be changed."""
    if isinstance(event, Asked | Attached):
        return replace(event, trial=event.trial.copy())
    return event


def as_told_right(events: Sequence[Event]) -> list[Event]:
    """Events as they would be had every value been told right in the first place; corrections stay
    where they are."""
    right = {event.id: event.value for event in events if isinstance(event, Corrected)}
    told: list[Event] = []
    for event in events:
        match event:
            case Told(id, value):
                event = Told(id, right.get(id, value))
            case Attached(trial, value):
                event = Attached(trial, right.get(trial.id, value))
        told.append(event)
    return told


class History:
    """All events so far, and what follows from them alone. It is never changed: the history
    `after` another event takes its place."""

    def __init__(self) -> None:
        self.events: Log[Event] = Log()
        self.trials: Log[Trial] = Log()
        self.values: dict[int, float] = {}
        self.abandoned: set[int] = set()
        # Of those that are abandoned.
        self.failed: set[int] = set()
        # The ids of results that were not asked for, ascending.
        self.attached: list[int] = []
        # The ids of attached results whose points lie outside the domain.
        self.outside: set[int] = set()
        # Of those whose value was another one before.
        self.corrected: set[int] = set()
        self._pending: dict[int, None] = {}
        #: What values are multiplied by where they are shown: -1 where they are negated costs.
        self.sign = 1.0

    @property
    def pending(self) -> list[int]:
        """Ids asked and neither told nor abandoned, in the order of asking."""
        return list(self._pending)

    @property
    def num_asked(self) -> int:
        """Trials that were handed out."""
        return len(self.trials) - len(self.attached)

    @property
    def unanswered(self) -> list[int]:
        """Ids of trials that pend or whose evaluation failed, in the order of asking."""
        return sorted((*self._pending, *self.failed)) if self.failed else self.pending

    def is_attached(self, id: int) -> bool:
        """Whether a trial, maybe the next one, was not asked for."""
        if not self.attached:
            return False
        place = bisect_left(self.attached, id)
        return self.attached[place : place + 1] == [id]

    def asked_before(self, id: int) -> int:
        """How many trials were handed out before one, which may be the next."""
        return id - bisect_left(self.attached, id)

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        return shallow(self)  # no event changes it

    def after(self, event: Event) -> History:
        """The history with one more event, which `check` has accepted."""
        new = shallow(self)
        new.events = self.events.with_item(event)
        match event:
            case Asked(trial):
                new.trials = self.trials.with_item(trial)
                new._pending = self._pending | {trial.id: None}
            case Told(id, value):
                new.values = self.values | {id: value}
                new._pending = {other: None for other in self._pending if other != id}
            case Abandoned(id, failed):
                new.abandoned = self.abandoned | {id}
                if failed:
                    new.failed = self.failed | {id}
                new._pending = {other: None for other in self._pending if other != id}
            case Attached(trial, value):
                new.attached = [*self.attached, trial.id]
                if is_outside_domain(trial):
                    new.outside = self.outside | {trial.id}
                new.trials = self.trials.with_item(trial)
                new.values = self.values | {trial.id: value}
            case Corrected(id, value):
                new.corrected = self.corrected | {id}
                new.values = self.values | {id: value}
        return new

    def check(self, event: Event) -> None:
        """Raises unless the event can follow.

        Raises:
            UnknownTrialError: The trial is not pending; where a value is corrected, it has none.
            ValueError: The value is NaN or infinite, or a new trial has not the next id.
        """
        if isinstance(event, Asked | Attached):
            if event.trial.id != len(self.trials):
                raise ValueError(
                    f"id must be {len(self.trials)}, the next one, got {event.trial.id}"
                )
        else:
            self._check_id(event)
        if isinstance(event, Told | Attached | Corrected) and not math.isfinite(event.value):
            id = event.trial.id if isinstance(event, Attached) else event.id
            shown = self.sign * event.value
            raise ValueError(f"value must be finite, got {shown} for trial {id}")

    def _check_id(self, event: Told | Abandoned | Corrected) -> None:
        corrects = isinstance(event, Corrected)
        if event.id not in (self.values if corrects else self._pending):
            state = "unknown"
            if event.id in self._pending:
                state = "pending"
            elif event.id in self.values:
                told = self.sign * self.values[event.id]
                state = f"already told ({told}); correct changes a value"
            elif event.id in self.abandoned:
                state = "abandoned"
            kind = "trials that have a value" if corrects else "pending trials"
            raise UnknownTrialError(f"id must be one of the {kind}, got {event.id}: {state}")

    def told_points(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The told points, ``n x d`` or with their contexts ``n x (d + d_z)``, and their values
        ``n``, in the order of telling."""
        if not self.values:
            return like.new_zeros(0, like.shape[-1]), like.new_zeros(0)
        told = [self.trials[id] for id in self.values]
        parts = [torch.stack([trial.x for trial in told])]
        contexts = [trial.context for trial in told if trial.context is not None]
        if contexts:  # of all or of none
            parts.append(torch.stack(contexts))
        X = torch.cat(parts, dim=-1)
        return X, X.new_tensor(list(self.values.values()))
