"""The events of a study, and the history that follows from them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, Space
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.outside_points import params_outside
from botorch_ext.domains.points import numbered
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.limits import Limit
from botorch_ext.parameters import Parameter
from botorch_ext.records import in_sign
from botorch_ext.state import Log, shallow

# The number of coordinates that a message shows.
_MOST_SHOWN = 10
T = TypeVar("T")

_UNCHANGING = {bool, int, float, str, type(None)}


@dataclass(frozen=True, eq=False)
class Trial:
    """A point to evaluate, as a strategy asks it.

    Args:
        id: The number of the trial: 0, 1, 2, ... in the order of asking.
        x: The ``d``-dim point to evaluate.
        context: The ``d_z``-dim context that it was asked in, or None.
        info: What was known when it was asked, as plain numbers, strings, lists and dicts. The
            class of the strategy explains the keys. Points that no model chose have ``initial`` or
            ``attached``, which are True. Points of a finite set have their row as ``index``; points
            chosen from the ``actions`` of an ask have their row there as ``action``.
        domain: The domain of the point, which names its columns; strategies fill it in.

    Example:
        >>> import botorch_ext as bx
        >>> strategy = bx.strategies.RandomSearch(bx.FiniteSet([[1.5]]))
        >>> trial = strategy.ask()
        >>> trial.id, trial.x.tolist(), trial.params, trial.info
        (0, [1.5], {'x0': 1.5}, {'index': 0})
    """

    id: int
    x: Tensor
    context: Tensor | None = None
    info: dict[str, Any] = field(default_factory=dict)
    domain: Domain | None = field(default=None, repr=False)

    @property
    def params(self) -> dict[str, Any]:
        """The point by name, in plain Python values, without columns that do not count:
        ``{"temperature": 61.5, "solvent": "dmso"}`` in a `Space`, ``{"x0": 0.3, "x1": 2.0}`` in
        other domains."""
        if self.domain is None:
            return numbered(self.x)
        if is_outside_domain(self) and isinstance(self.domain, Box):
            return params_outside(self.domain, self.x)
        return self.domain.params_of(self.x)

    @property
    def given(self) -> dict[str, Any] | Tensor:
        """The point as an objective gets it: `params` in a `Space`, ``x`` in other domains."""
        return self.params if isinstance(self.domain, Space) else self.x

    @property
    def place(self) -> str:
        """The point and the context as text for messages, see `place_of`."""
        if is_outside_domain(self) and isinstance(self.domain, Space):
            return str(self.params)
        return place_of(self.x, self.context, self.domain)

    def __repr__(self) -> str:
        """The id and the place, in a line."""
        return f"Trial {self.id} at {self.place}"

    @property
    def point(self) -> Tensor:
        """The joint row that models see: ``x``, then the context if there is one; ``d + d_z``."""
        return with_context(self.x, self.context)

    def copy(self, sign: float = 1.0) -> Trial:
        """A trial that shares nothing with this one but its domain.

        Args:
            sign: The factor of the values in ``info``.
        """
        context = None if self.context is None else self.context.clone()
        info = in_sign(_copied(self.info), sign)
        copy = Trial(self.id, self.x.clone(), context, info, self.domain)
        vars(copy)["_original"] = self
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_original"}

    def is_copy_of(self, other: Trial) -> bool:
        """Whether `copy` of another trial made this one. This needs no coordinates, for which the
        host would wait if they are on a GPU.

        Args:
            other: The other trial.
        """
        return vars(self).get("_original") is other


def place_of(x: Tensor, context: Tensor | None = None, domain: Domain | None = None) -> str:
    """A point and its context as text: by name in a `Space`, else the first ten coordinates with
    six digits.

    Args:
        x: The ``d``-dim point.
        context: The ``d_z`` numbers of the context, or None.
        domain: The domain of the point, if it is known.
    """
    place = str(domain.params_of(x)) if isinstance(domain, Space) else _in_digits(x)
    return place if context is None else f"{place} in context {_in_digits(context)}"


def _in_digits(x: Any) -> str:
    if not isinstance(x, Tensor) or x.ndim != 1:  # not a point, so it is about to be refused
        return short(x)
    numbers = [f"{number:.6g}" for number in x[:_MOST_SHOWN].tolist()]
    more = [f"... of {len(x)}"] if len(x) > _MOST_SHOWN else []
    return f"[{', '.join(numbers + more)}]"


def counts_of_trials(told: int, failed: int, pending: int) -> str:
    """How many trials were told, failed and are pending, as people read it; a zero is left out,
    except for the told trials."""
    counts = ((told, "told"), (failed, "failed"), (pending, "pending"))
    return ", ".join(f"{number} {kind}" for number, kind in counts if number or kind == "told")


def is_outside_domain(trial: Any) -> bool:
    """Whether a trial is an attached result whose point lies outside the domain."""
    info = getattr(trial, "info", None)
    return isinstance(info, dict) and info.get("attached") is True and info.get("outside") is True


def _copied(plain: Any) -> Any:
    """A copy of nested dicts and lists of plain values; several times as fast as `deepcopy`."""
    if type(plain) in _UNCHANGING:
        return plain
    if isinstance(plain, dict):
        return {k: v if type(v) in _UNCHANGING else _copied(v) for k, v in plain.items()}
    if isinstance(plain, list):
        return [v if type(v) in _UNCHANGING else _copied(v) for v in plain]
    return deepcopy(plain)


@dataclass(frozen=True, eq=False)
class _OfTrial:
    id: int


@dataclass(frozen=True, eq=False)
class _OfNewTrial:
    trial: Trial

    @property
    def id(self) -> int:
        """The id of the trial."""
        return self.trial.id


@dataclass(frozen=True, eq=False)
class Measured:
    """The base class of events with a result; their arguments are those of `Told`."""

    value: float
    outcomes: Mapping[str, float] = field(default_factory=dict, hash=False)
    std: float | None = None
    repeats: tuple[float, ...] = ()

    @property
    def measured(self) -> dict[str, Any]:
        """What was measured, by the names of the arguments."""
        return {each.name: getattr(self, each.name) for each in fields(Measured)}


@dataclass(frozen=True, eq=False)
class Asked(_OfNewTrial):
    """The event that a trial was asked.

    Args:
        trial: The trial.
    """


@dataclass(frozen=True)
class Told(Measured, _OfTrial):
    """The event that the result of a trial was told.

    Args:
        id: The id of the trial.
        value: The observation, the average of repeats.
        outcomes: The other measured numbers by name, which have no sign.
        std: The standard error of the value; None for that of one observation, or of the average
            of as many as there are repeats.
        repeats: The observations of which the value is the average; none for a single one.
    """


@dataclass(frozen=True)
class Abandoned(_OfTrial):
    """The event that a trial was given up: it will never be told.

    Args:
        id: The id of the trial.
        failed: Whether its evaluation failed.
    """

    failed: bool = False


@dataclass(frozen=True, eq=False)
class Attached(Measured, _OfNewTrial):
    """The event that a result was attached, which was not asked for.

    The other arguments are those of `Told`.

    Args:
        trial: The trial that holds the point, with the next id.
    """


@dataclass(frozen=True, eq=False)
class Failed(_OfNewTrial):
    """The event that a failed evaluation was attached, which was not asked for.

    Args:
        trial: The trial that holds the point, with the next id.
    """


@dataclass(frozen=True)
class Corrected(Measured, _OfTrial):
    """The event that a told or attached result was replaced. Its arguments are those of `Told`, for
    the right result."""


@dataclass(frozen=True)
class Withdrawn(_OfTrial):
    """The event that an attached result or a failure was taken back. Its trial keeps its id.

    Args:
        id: The id of the trial.
    """


@dataclass(frozen=True)
class Noted(_OfTrial):
    """The event that a note was written to a trial, in place of the one before.

    Args:
        id: The id of the trial.
        text: The note; an empty one removes it.
    """

    text: str


@dataclass(frozen=True)
class Widened(_OfTrial):
    """The event that parameters of the space were widened, see `Strategy.widen`.

    Args:
        id: The number of trials before, which is the id of the next one.
        parameters: The parameters that changed, by name.
        inside: The ids of attached results that lay outside the space and lie in the wider one.
    """

    parameters: Mapping[str, Parameter] = field(hash=False)
    inside: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Placeholder(Asked):
    """The event that stands, where events are applied, for an attached trial without a result: one
    that failed, or that is withdrawn later. `Abandoned` follows at once.

    Args:
        trial: The trial that was attached.
    """


Event = Asked | Told | Abandoned | Attached | Failed | Corrected | Withdrawn | Noted | Widened
# The events that bring a point from elsewhere.
FromElsewhere = Attached | Failed
# The events that change a result after it was told or attached.
Change = Corrected | Withdrawn


def copied(event: Event) -> Event:
    """A copy of an event that shares no mutable value with it."""
    if isinstance(event, Widened):
        return replace(event, parameters=dict(event.parameters))
    if isinstance(event, Asked | FromElsewhere):
        event = replace(event, trial=event.trial.copy())
    if isinstance(event, Measured) and event.outcomes:
        event = replace(event, outcomes=dict(event.outcomes))
    return event


def event_in_sign(event: Event, sign: float) -> Event:
    """An event whose values are multiplied by the sign of a user, as for `in_sign`."""
    if sign < 0 and isinstance(event, Asked):
        return Asked(replace(event.trial, info=in_sign(event.trial.info, sign)))
    if sign > 0 or not isinstance(event, Measured):
        return event
    repeats = tuple(sign * value for value in event.repeats)
    return replace(event, value=sign * event.value, repeats=repeats)


def as_told_right(events: Sequence[Event]) -> list[Event]:
    """The events with the corrected values in place of the wrong ones; the corrections stay where
    they are."""
    right = {event.id: event for event in events if isinstance(event, Corrected)}
    told: list[Event] = []
    for event in events:
        if isinstance(event, Told | Attached) and (last := right.get(event.id)) is not None:
            event = replace(event, **last.measured)
        told.append(event)
    return told


class History:
    """All events so far, and what follows from them alone. A history is never changed: `after`
    gives a new one. Its values are of what the strategy maximises, the negative of costs.

    The attributes are

    - ``events`` and ``trials``: sequences of all of them;
    - ``values``: a dict from ids to observations, in the order of telling;
    - ``outcomes``: a dict from ids to the other measured numbers by name, of results with any;
    - ``stds``, ``repeats``: dicts from ids to standard errors, and to the observations of which the
      value is the average, of results that have them;
    - ``abandoned``, ``failed``, ``corrected``: sets of ids; failed trials are abandoned ones;
    - ``attached``: a list of ids, ascending; ``outside``: the set of those whose points lie outside
      the domain; ``withdrawn``: the set of those that have no value any more;
    - ``notes``: a dict from ids to notes, of trials that have one.

    Args:
        sign: The factor from values to what the user told: -1 if the user minimises.
        limits: The limits of outcomes by name.
    """

    def __init__(self, sign: float = 1.0, limits: Mapping[str, Limit] | None = None) -> None:
        self.limits = dict(limits or {})
        self.events: Log[Event] = Log()
        self.trials: Log[Trial] = Log()
        self.values: dict[int, float] = {}
        self.outcomes: dict[int, Mapping[str, float]] = {}
        self.stds: dict[int, float] = {}
        self.repeats: dict[int, tuple[float, ...]] = {}
        self.abandoned: set[int] = set()
        self.failed: set[int] = set()
        self.attached: list[int] = []
        self.outside: set[int] = set()
        self.corrected: set[int] = set()
        self.withdrawn: set[int] = set()
        self.notes: dict[int, str] = {}
        self._pending: dict[int, None] = {}
        self.sign = sign

    @property
    def pending(self) -> list[int]:
        """The ids of trials that are asked and neither told nor abandoned, in the order of
        asking."""
        return list(self._pending)

    @property
    def as_told(self) -> dict[int, float]:
        """The ``values`` in the sign of the user."""
        return {id: self.sign * value for id, value in self.values.items()}

    def value_told(self, id: int) -> float | None:
        """The value of a trial in the sign of the user.

        Args:
            id: The id of the trial.

        Returns:
            The value; None if the trial has none.
        """
        value = self.values.get(id)
        return None if value is None else self.sign * value

    def repeats_told(self, id: int) -> tuple[float, ...]:
        """The observations of which the value of a trial is the average, in the sign of the user;
        none if it is a single one.

        Args:
            id: The id of the trial.
        """
        return tuple(self.sign * value for value in self.repeats.get(id, ()))

    def relative_noise(self, id: int, noise_std: float) -> float | None:
        """The noise variance of a result in units of that of one observation.

        Args:
            id: The id of the trial.
            noise_std: The standard deviation of the noise of one observation.

        Returns:
            The ratio; None for 1, where nothing was said of the noise of the result.
        """
        if (std := self.stds.get(id)) is not None:
            return (std / noise_std) ** 2
        repeats = self.repeats.get(id)
        return None if repeats is None else 1 / len(repeats)

    @property
    def num_asked(self) -> int:
        """The number of trials that were asked; attached results do not count."""
        return len(self.trials) - len(self.attached)

    @property
    def num_told(self) -> int:
        """The number of trials that were told; attached results do not count."""
        return len(self.values) - sum(id in self.values for id in self.attached)

    @property
    def unanswered(self) -> list[int]:
        """The ids of trials that are pending or failed, in the order of asking."""
        return sorted((*self._pending, *self.failed)) if self.failed else self.pending

    @property
    def lines(self) -> list[str]:
        """The counts of trials and the best value that was told, as people read them."""
        lines = [
            "trials: " + counts_of_trials(len(self.values), len(self.failed), len(self._pending))
        ]
        if (top := self.best()) is not None:
            value = self.sign * self.values[top]
            lines.append(f"best value told: {value:.6g} at {self.trials[top].place}")
        return lines

    def best(self, besides: Collection[int] = ()) -> int | None:
        """The id of the trial with the largest value, told or attached, the first of several.

        Args:
            besides: Ids of trials that are left out, beside those that `is_eligible` leaves out.

        Returns:
            The id; None where no trial is left.
        """
        left = [id for id in self.values if self.is_eligible(id) and id not in besides]
        return max(left, key=self.values.__getitem__, default=None)

    def is_eligible(self, id: int) -> bool:
        """Whether a result may be the best one: its point lies in the domain, and its outcomes were
        measured within their limits.

        Args:
            id: The id of the trial.
        """
        return id not in self.outside and all(
            limit.holds(self.outcomes[id][name]) for name, limit in self.limits.items()
        )

    def is_attached(self, id: int) -> bool:
        """Whether a trial, which may be the next one, was attached."""
        if not self.attached:
            return False
        position = bisect_left(self.attached, id)
        return self.attached[position : position + 1] == [id]

    def asked_before(self, id: int) -> int:
        """The number of trials that were asked before a trial, which may be the next one."""
        return id - bisect_left(self.attached, id)

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        return shallow(self)  # no event changes it

    def after(self, event: Event) -> History:
        """The history after one more event, which `check` has accepted."""
        new = shallow(self)
        new.events = self.events.with_item(event)
        match event:
            case Asked(trial):
                new.trials = self.trials.with_item(trial)
                new._pending = self._pending | {trial.id: None}
                if isinstance(event, Placeholder):
                    new._attach(trial)
            case Told(id):
                new._pending = _without(self._pending, id)
            case Abandoned(id, failed):
                if failed or not self.is_attached(id):
                    new.abandoned = self.abandoned | {id}
                if failed:
                    new.failed = self.failed | {id}
                new._pending = _without(self._pending, id)
            case Attached(trial) | Failed(trial):
                new._attach(trial)
                new.trials = self.trials.with_item(trial)
                if isinstance(event, Failed):
                    new.failed = self.failed | {trial.id}
                    new.abandoned = self.abandoned | {trial.id}
            case Corrected(id):
                new.corrected = self.corrected | {id}
            case Withdrawn(id) if not self.is_attached(id):
                new.failed = self.failed - {id}
            case Withdrawn(id):
                new.failed, new.abandoned = self.failed - {id}, self.abandoned - {id}
                new.withdrawn = self.withdrawn | {id}
                for name in ("values", "outcomes", "stds", "repeats"):
                    setattr(new, name, _without(getattr(self, name), id))
            case Noted(id, text):
                new.notes = self.notes | {id: text} if text else _without(self.notes, id)
            case Widened(inside=inside):
                new.outside = self.outside.difference(inside)
        if isinstance(event, Measured):
            new.values = self.values | {event.id: event.value}
            if event.outcomes:
                new.outcomes = self.outcomes | {event.id: event.outcomes}
            if event.std is not None:
                new.stds = self.stds | {event.id: event.std}
            if event.repeats:
                new.repeats = self.repeats | {event.id: event.repeats}
        return new

    def on(self, domain: Domain) -> History:
        """The history in a wider domain.

        Args:
            domain: The domain, in which the points of all trials are the same points.
        """
        new = shallow(self)
        trials = [replace(trial, domain=domain) for trial in self.trials]
        new.trials = Log(
            replace(trial, info={"attached": True})
            if is_outside_domain(trial) and trial.id not in self.outside
            else trial
            for trial in trials
        )
        return new

    def check(self, event: Event) -> None:
        """Raises an error unless the event can follow.

        Raises:
            UnknownTrialError: If the trial is not pending, or has no value to correct, or was not
                attached and has not failed, or does not exist, as the event needs it.
            ValueError: If the value is NaN or infinite, or if a new trial has not the next id.
        """
        if isinstance(event, Asked | FromElsewhere | Widened):
            if event.id != len(self.trials):
                raise ValueError(f"id must be {len(self.trials)}, the next one, got {event.id}")
        else:
            self._check_id(event)
        if isinstance(event, Measured) and not math.isfinite(event.value):
            shown = self.sign * event.value
            raise ValueError(f"value must be finite, got {shown} for trial {event.id}")

    def _check_id(self, event: Told | Abandoned | Corrected | Withdrawn | Noted) -> None:
        id, is_told = event.id, event.id in self.values
        match event:
            case Told() | Abandoned():
                kind, can_come = "pending trials", id in self._pending
            case Corrected():
                kind, can_come = "trials that have a value", is_told
            case Withdrawn():
                kind = "attached results or failed trials"
                can_come = (is_told and self.is_attached(id)) or id in self.failed
            case Noted():
                kind, can_come = "trials", 0 <= id < len(self.trials)
        if can_come:
            return
        state = "never asked"
        if id in self._pending:
            state = "pending; abandon gives it up" if isinstance(event, Withdrawn) else "pending"
        elif is_told:
            how = "attached" if self.is_attached(id) else "already told"
            state = f"{how} ({self.sign * self.values[id]}); correct changes a value"
        elif id in self.abandoned or id in self.withdrawn:
            state = "withdrawn" if id in self.withdrawn else "abandoned"
            if id in self.failed:
                state = "failed; withdraw takes that back"
            if isinstance(event, Corrected):
                state += "; attach adds its result"
        raise UnknownTrialError(f"id must be one of the {kind}, got {id}: {state}")

    def _attach(self, trial: Trial) -> None:
        """Adds a trial to the attached ones of this history, which is being made."""
        self.attached = [*self.attached, trial.id]
        if is_outside_domain(trial):
            self.outside = self.outside | {trial.id}

    def told_points(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The told and attached points, and their values, in the order of telling.

        Args:
            like: A tensor of the dtype, the device and the last dimension d of the points.

        Returns:
            The points, ``n x d`` or with contexts ``n x (d + d_z)``, and their ``n`` values.
        """
        if not self.values:
            return like.new_zeros(0, like.shape[-1]), like.new_zeros(0)
        told = [self.trials[id] for id in self.values]
        columns = [torch.stack([trial.x for trial in told])]
        contexts = [trial.context for trial in told if trial.context is not None]
        if contexts:  # all trials have one, or none has
            columns.append(torch.stack(contexts))
        X = torch.cat(columns, dim=-1)
        return X, X.new_tensor(list(self.values.values()))


def _without(known: dict[int, T], id: int) -> dict[int, T]:
    """A dict without an id."""
    return {other: value for other, value in known.items() if other != id}
