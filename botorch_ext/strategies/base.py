"""Ask and tell as a fold over events.

A strategy's state is changed by applying events and by nothing else. So its events are a complete
checkpoint: replaying them on a freshly made strategy costs no optimisation and gives the same next
question bit for bit on the same machine.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self, cast, overload

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, require_same_kind
from botorch_ext.domains.contexts import ContextLike, ContextSpace, as_context_space, with_context
from botorch_ext.exceptions import KernelBoundWarning, NoObservationsError, UnknownTrialError
from botorch_ext.immutable import Immutable
from botorch_ext.strategies.action_sets import Actions, Choices
from botorch_ext.strategies.admission import checked_data
from botorch_ext.strategies.arguments import Arguments, recorded
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    History,
    Told,
    Trial,
    copied,
)

# Evaluated points that join the screening of a box.
_NUM_INCUMBENTS = 8


class Strategy(ABC):
    """Decides what to evaluate next.

    A subclass implements `_decide` (what to ask, changing nothing that shows), `_absorb` (how an
    event changes its model), where a recorded trial can be wrong `_check_event`, and
    `evaluated_means`. Random choices draw from ``self._seed_of(step)``, so that they depend on the
    seed and the step alone. Attributes are state, and copied with it, unless they are `Immutable`.

    Args:
        domain: Where actions live.
        seed: Seeds every random choice.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``; it counts as
            steps. With contexts ``X`` is ``n x (d + d_z)``, actions first.
        num_initial: Sobol points (of a finite set: random members; where an ask is given actions,
            a random one of those) asked first; they count as steps.
        context_domain: The contexts that every ask then needs: a domain, their dimension d_z, or a
            `ContextSpace`. None: what is asked depends on no context.

    Raises:
        ValueError: Initial data of the wrong shape, not finite or outside the domain; a seed that
            is no whole number; a negative count.
    """

    #: Whether the actions may change from step to step.
    takes_actions: bool = False
    #: Whether the candidates may be divided among processes, by a `ShardedSet`.
    takes_shards: bool = False
    #: Whether a `Box` may have more than bounds: whole numbers, codes, constraints, other scales.
    takes_spaces: bool = False
    #: What it was made with.
    arguments: Arguments
    #: Why results that were not asked for are refused; None where they are taken.
    refuses_attached: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = recorded(cls.__init__)

    @recorded
    def __init__(
        self,
        domain: Domain,
        seed: int = 0,
        initial: tuple[Tensor, Tensor] | None = None,
        num_initial: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
    ) -> None:
        num_initial = whole_number(num_initial, "num_initial", least=0)
        if isinstance(domain, Box) and not self.takes_spaces:
            domain.require_plain(type(self).__name__)
        self.domain = domain
        self.seed = whole_number(seed, "seed")
        self.history = History()
        self.warnings: list[str] = []
        # Those that are yet to be raised.
        self._unraised: list[tuple[str, type[Warning]]] = []
        self._noted: set[type[Warning]] = set()
        # This strategy before its first event.
        self._pristine: _Pristine | None = None
        # Whether values are others than those by which recorded trials were chosen.
        self._is_corrected = False
        space = as_context_space(context_domain)
        if space is not None and space.domain is not None:
            require_same_kind(space.domain.like, domain.like, "context_domain")
        if isinstance(domain, FiniteSet) and domain.shard is not None:
            if not self.takes_shards:
                raise ValueError(f"domain must not be a ShardedSet for {type(self).__name__}")
            if space is not None:
                raise ValueError("context_domain must be None on a ShardedSet")
            self.takes_actions = False
        self.initial = None if initial is None else checked_data(domain, initial, space)
        if space is not None and space.dim is None and self.initial is not None:
            space = replace(space, dim=self.initial[0].shape[-1] - domain.dim)
        self.context_space = space
        if isinstance(domain, FiniteSet):
            self._initial_rows = domain.sample_indices(num_initial, self.seed).tolist()
            self._initial_points = domain.points[self._initial_rows]
        else:
            self._initial_rows = None
            self._initial_points = domain.sample(num_initial, self.seed)

    # --- asking and telling -----------------------------------------------------------------------

    @overload
    def ask(
        self,
        num_trials: None = None,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> Trial: ...

    @overload
    def ask(
        self,
        num_trials: int,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> list[Trial]: ...

    def ask(
        self,
        num_trials: int | None = None,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> Trial | list[Trial]:
        """The next question, or a list of ``num_trials`` questions.

        Args:
            num_trials: None for one trial, or how many to hand out as a list.
            context: ``d_z``, what is seen and not chosen at this step; needed exactly where the
                strategy has a ``context_domain``.
            actions: ``m x d`` points of the domain, those that there are at this step; None for all
                of it.

        Returns:
            A `Trial`, or a list of them.

        Raises:
            ValueError: ``num_trials`` is less than 1; a context that is missing, not expected, of
                the wrong size, not finite or none of the context domain; no action, actions outside
                the domain, or a method that always chooses from all of it.
            WaitingForObservations: The method must be told something first.
            HorizonReached: The method has not that many trials left.
        """
        choices = self._checked_choices(context, actions)
        if num_trials is None:
            self.require_askable(1, choices)
            return self._ask_one(choices)
        num_trials = whole_number(num_trials, "num_trials", least=1)
        self.require_askable(num_trials, choices)
        return [self._ask_one(choices) for _ in range(num_trials)]

    def tell(self, id: int, value: float) -> None:
        """Answers a trial, in any order, at any time.

        Args:
            id: The id of the trial.
            value: The observation; larger is better.

        Raises:
            UnknownTrialError: The trial was never asked, or is already told or abandoned.
            ValueError: The value is no number, NaN or infinite.
        """
        self._apply(_told(id, value))

    def abandon(self, id: int, failed: bool = False) -> None:
        """Gives up on a trial: it leaves `pending` and is no data.

        Args:
            id: The id of the trial.
            failed: Whether its evaluation failed. Methods that treat pending trials as more than
                nothing then treat it as a pending one for ever, so that they look elsewhere.

        Raises:
            UnknownTrialError: The trial was never asked, or is already told or abandoned.
            ValueError: ``failed`` is no bool.
        """
        self._apply(_abandoned(id, failed))

    def attach(self, x: Any, value: float, context: ContextLike | None = None) -> Trial:
        """Adds a result that was not asked for. It is an observation like those of ``initial``, and
        no play of any model.

        Args:
            x: The ``d``-dim point.
            value: The observation; larger is better.
            context: ``d_z``, what was seen; needed exactly where the strategy has a
                ``context_domain``.

        Returns:
            The trial that has it, with the next id and ``{"attached": True}`` as info, on a finite
            set with the row as ``index``.

        Raises:
            ValueError: A point outside the domain, a context that `ask` would refuse, a value that
                is no number, NaN or infinite, or a method that cannot use what it did not ask for.
        """
        id, context = len(self.history.trials), self.checked_context(context)
        X = self.domain.require_contains(x, "x")
        if len(X) != 1:
            raise ValueError(f"x must be one point, got {len(X)}")
        info = self._info_of_attached(X, context)
        trial = Trial(id, X[0].detach().clone(), context, info)
        self._apply(Attached(trial, one_number(value, "value", f" for trial {id}")))
        return trial.copy()

    def correct(self, id: int, value: float) -> None:
        """Replaces a value that was told, or attached, and was wrong. What was asked stands; what
        is computed from values is computed again, as if the value had been told right in the first
        place. Hyperparameters that were fitted are fitted anew at the next ask.

        Args:
            id: The id of the trial.
            value: The right observation.

        Raises:
            UnknownTrialError: The trial has no value.
            ValueError: The value is no number, NaN or infinite.
        """
        id = _plain_id(id)
        self._apply(Corrected(id, one_number(value, "value", f" for trial {id}")))

    def replay(self, events: Iterable[Event]) -> None:
        """Applies recorded events: the state is then that of the strategy that recorded them. Parts
        of the strategy that were read before, such as bases, are then no longer its own.

        Args:
            events: `events` of a strategy that was made with the same arguments.

        Raises:
            ValueError: An event that cannot follow the ones before it, or a trial that does not
                belong to the domain or that the method would not have asked. Whatever is raised,
                none of the events is then applied.
        """
        events = [copied(event) for event in self.checked(list(events))]
        history = deepcopy(self.history)
        for event in events:
            history.check(event)
            history.apply(event)
        after = self.clone()
        for event in events:
            after._apply(event)
        vars(self).update(vars(after))

    def follow(self, event: Event) -> None:
        """Applies one event that `checked` gave, without the copies that `replay` makes: it is the
        strategy's from now on. What it warns of is left to `take_warnings`.

        Raises:
            ValueError: As `replay`; this event alone is then not applied.
        """
        self._happen(event)

    def checked(self, events: Sequence[Event]) -> Iterator[Event]:
        """Events from elsewhere, each looked at when it is its turn, after those before it were
        applied or not.

        Raises:
            ValueError: One that can follow no events, or is of another domain.
        """
        are_members = self._are_members(events)
        for event in events:
            yield self._checked(event, are_members)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order; a copy."""
        return tuple(copied(event) for event in self.history.events)

    @property
    def pending(self) -> list[int]:
        """Ids asked and neither told nor abandoned."""
        return self.history.pending

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The told or initial point with the highest posterior mean, and that mean.

        Args:
            context: ``d_z``: the mean of every evaluated action at this context counts. None: at
                the context it was evaluated in.

        Returns:
            The ``d``-dim point and its mean.

        Raises:
            NoObservationsError: Nothing was evaluated yet.
            ValueError: A context that `ask` would refuse.
        """
        X, _ = self.evaluated()
        if context is not None:
            X = with_context(X[:, : self.domain.dim], self.checked_context(context))
        if not len(X):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        mean = self.evaluated_means() if context is None else self.means_at(X)
        top = int(mean.argmax())
        return X[top, : self.domain.dim].clone(), float(mean[top])

    def report(self) -> dict[str, Any]:
        """What the strategy did and knows, as plain numbers, strings and lists."""
        X, Y = self.evaluated()
        summary: dict[str, Any] = {
            "strategy": type(self).__name__,
            "num_asked": self.history.num_asked,
            "num_told": len(self.history.values) - len(self.history.attached),
            "num_initial": len(self._initial_points),
            "num_initial_data": 0 if self.initial is None else len(self.initial[0]),
            "pending": self.pending,
            "abandoned": sorted(self.history.abandoned),
            "failed": sorted(self.history.failed),
            "attached": list(self.history.attached),
            "corrected": sorted(self.history.corrected),
            "best": None,
            "best_observation": None,
            "warnings": list(self.warnings),
        }
        if len(X):
            x, mean = self.best()
            summary["best"] = {"x": x.tolist(), "mean": mean}
            summary["best_observation"] = float(Y.max())
        return summary

    # --- for strategies that play this one, and for pictures --------------------------------------

    def clone(self) -> Self:
        """A strategy in the same state that goes its own way from here."""
        return deepcopy(self)

    def evaluated(self) -> tuple[Tensor, Tensor]:
        """The initial and the told points, ``n x d`` or with contexts ``n x (d + d_z)``, and their
        ``n`` values."""
        like = self._initial_points
        X, Y = self.history.told_points(like)
        if self.initial is None:
            return X, Y
        if not len(X):
            return self.initial
        return torch.cat([self.initial[0], X]), torch.cat([self.initial[1], Y])

    @abstractmethod
    def evaluated_means(self) -> Tensor:
        """The posterior mean at the points of `evaluated`, in its order."""

    def means_at(self, X: Tensor) -> Tensor:
        """The posterior mean at ``n x (d + d_z)`` joint rows; for strategies with contexts."""
        raise NotImplementedError

    def check_joint(self, X: Tensor) -> None:  # noqa: B027 - not all have a model
        """A ValueError unless the model takes joint rows like these, ``n x (d + d_z)``."""

    def require_askable(  # noqa: B027 - most methods always can
        self, num_trials: int, choices: Choices
    ) -> None:
        """Raises `WaitingForObservations` or `HorizonReached` where the method cannot ask that many
        trials now for these choices; called before anything is asked, and changes nothing."""

    def checked_context(self, context: ContextLike | None, name: str = "context") -> Tensor | None:
        """A context as a ``d_z``-dim tensor, None where there are none; or a ValueError that names
        the argument."""
        who = type(self).__name__
        if self.context_space is None:
            if context is not None:
                raise ValueError(
                    f"{name} must be None for {who} without a context_domain, got {context!r}"
                )
            return None
        if context is None:
            raise ValueError(f"{name} must be given for {who} with a context_domain, got None")
        like, dim = self.domain.like, self._context_dim
        checked = self.context_space.checked(context, like, dim, name)
        if dim is None:
            self.check_joint(with_context(like[:1], checked))
        return checked

    def who_takes_no_actions(self) -> str:
        """The name of the method in the error where actions change and it takes none."""
        return f"{type(self).__name__}, whose actions never change"

    def next_trial(self, choices: Choices) -> Trial:
        """What `ask` records for these choices; changes nothing that shows."""
        id, step = len(self.history.trials), self.history.num_asked
        if step < len(self._initial_points):
            x, info = self._initial_point(step, choices)
        else:
            x, info = self._decide(choices)
        return Trial(id, x, choices.context, info)

    def check_recorded(self, trial: Trial, is_member: bool = False) -> None:
        """A ValueError unless a trial from elsewhere can be one of this domain and context;
        ``is_member`` says that its point is known to be one of the domain, and of its index."""
        if not isinstance(trial, Trial):
            raise ValueError(f"trial must be a Trial, got a {type(trial).__name__}")
        name = f"context of trial {trial.id}"
        if not isinstance(trial.context, Tensor | None):
            raise ValueError(f"{name} must be a tensor or None, got {trial.context!r}")
        self.checked_context(trial.context, name)
        if not isinstance(trial.info, dict):
            raise ValueError(f"info of trial {trial.id} must be a dict, got {trial.info!r}")
        if is_member:
            return
        name = f"x of trial {trial.id}"
        if not isinstance(trial.x, Tensor):
            raise ValueError(f"{name} must be a tensor, got a {type(trial.x).__name__}")
        X = self.domain.require_contains(trial.x, name)
        if trial.x.ndim != 1:
            shape = f"({self.domain.dim},)"
            raise ValueError(f"{name} must have shape {shape}, got {tuple(trial.x.shape)}")
        if not isinstance(self.domain, FiniteSet):
            return
        row = trial.info.get("index")
        if (
            not isinstance(row, int)
            or not 0 <= row < self.domain.num_points
            or not torch.equal(self.domain.points[row : row + 1], X)
        ):
            raise ValueError(f"{name} must be the point of its index, got index {row}")

    def _are_members(self, events: Sequence[Event]) -> bool:
        """Whether all points of events are those of the domain, and of their indices: one look at
        all of them takes as long as one at one of them."""
        trials = [event.trial for event in events if isinstance(event, Asked | Attached)]
        like, dim = self.domain.like, self.domain.dim
        for trial in trials:
            x = getattr(trial, "x", None)
            if not isinstance(x, Tensor) or x.shape != (dim,):
                return False
            if x.dtype != like.dtype or x.device != like.device:
                return False
        if not trials:
            return True
        X = torch.stack([trial.x for trial in trials])
        if not isinstance(self.domain, FiniteSet):
            return bool(X.isfinite().all()) and bool(self.domain.contains(X).all())
        rows = [isinstance(trial.info, dict) and trial.info.get("index") for trial in trials]
        if not all(type(row) is int and 0 <= row < self.domain.num_points for row in rows):
            return False
        return torch.equal(self.domain.points[rows], X)

    def _check_attached(self, trial: Trial, is_member: bool) -> None:
        """A ValueError unless a trial from elsewhere can be one that was attached."""
        Strategy.check_recorded(self, trial, is_member)
        expected = self._info_of_attached(trial.x.unsqueeze(0), trial.context)
        if trial.info != expected:
            raise ValueError(f"info of trial {trial.id} must be {expected}, got {trial.info}")

    def check_event(self, event: Event) -> None:
        """Raises, and changes nothing that shows, unless the event can come now.

        Raises:
            UnknownTrialError: The trial is not pending.
            ValueError: A trial that the method would not ask, or a value that it cannot take.
        """
        if isinstance(event, Attached) and self.refuses_attached is not None:
            who = type(self).__name__
            raise ValueError(f"{who} takes no attached results: {self.refuses_attached}")
        self.history.check(event)
        self._check_event(event)

    def fold(self, event: Event) -> None:
        """Changes the state by the event that `check_event` accepted last; what it warns of is
        raised by `ask`, `tell` and `abandon`, or taken by `take_warnings`."""
        if isinstance(event, Corrected):
            self._fold_again(event)
            return
        self.history.apply(event)
        try:
            self._absorb(event)
        except BaseException:
            self.history.undo()
            raise

    def take_warnings(self) -> list[tuple[str, type[Warning]]]:
        """The messages and categories of the warnings that are yet to be raised, once."""
        taken, self._unraised = self._unraised, []
        return taken

    def expect(self, category: type[Warning]) -> None:
        """Warnings of this category are not raised, nor reported: whoever made the strategy knows
        of them."""
        self._noted.add(category)

    # --- for subclasses ---------------------------------------------------------------------------

    @abstractmethod
    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        """The next point and what was known when it was chosen. It may bring a model up to date
        with the events, and changes nothing else: should it fail, nothing was asked."""

    def _check_event(self, event: Event) -> None:  # noqa: B027 - not all can be wrong
        """A ValueError, and no change that shows, where a recorded event is none that can come now:
        a trial that the method would not ask, a value that it cannot take."""

    @abstractmethod
    def _absorb(self, event: Event) -> None:
        """Updates the model for an event that was checked and is the last one of the history."""

    def _take_as_asked(self, is_corrected: bool) -> None:
        """Says whether values are others than those by which trials were chosen: a check of a
        record that depends on values is then left out, and what a record says of them is computed
        again."""
        self._is_corrected = is_corrected

    def _forget_fits(self, id: int) -> None:  # noqa: B027 - most methods fit nothing
        """Forgets what was fitted to the value of a trial that is now another."""

    def _fold_again(self, correction: Corrected) -> None:
        """Folds all events once more, as if every value had been told right."""
        history = deepcopy(self.history)
        history.apply(correction)
        after = cast(_Pristine, self._pristine).strategy.clone()
        after._take_as_asked(True)
        for event in history.as_told_right():
            after.check_event(event)
            after.fold(event)
        after._take_as_asked(False)
        after._forget_fits(correction.id)
        after.history.events, after.history.corrected = history.events, history.corrected
        after._pristine = self._pristine
        new = [warning for warning in after._unraised if warning[0] not in self.warnings]
        after._unraised = self._unraised + new
        vars(self).update(vars(after))

    def _ask_one(self, choices: Choices) -> Trial:
        trial = self.next_trial(choices)
        self._apply(Asked(trial))
        # Whatever the caller does to the answer, the record stays as it is.
        return trial.copy()

    def _is_play(self, id: int) -> bool:
        """Whether the method chose a trial, maybe the next one: it is neither attached nor one of
        the first points."""
        history = self.history
        is_late = history.asked_before(id) >= len(self._initial_points)
        return is_late and not history.is_attached(id)

    def _info_of_attached(self, X: Tensor, context: Tensor | None) -> dict[str, Any]:
        """What is recorded of one point, ``1 x d``, that was not asked for."""
        info: dict[str, Any] = {"attached": True}
        if isinstance(self.domain, FiniteSet):
            info["index"] = int(self.domain.index(X))
        return info

    def _initial_point(self, step: int, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        if choices.actions is not None:
            generator = torch.Generator().manual_seed(self._seed_of(step))
            row = int(torch.randint(len(choices.actions), (), generator=generator))
            return choices.actions[row].clone(), {"initial": True} | choices.places(row)
        info: dict[str, Any] = {"initial": True}
        if self._initial_rows is not None:
            info["index"] = self._initial_rows[step]
        return self._initial_points[step].clone(), info

    def _note(self, message: str, category: type[Warning]) -> None:
        """A warning: it goes into the report at once, and is raised after the event."""
        self.warnings.append(message)
        self._unraised.append((message, category))

    def _note_once(self, message: str, category: type[Warning]) -> None:
        """As `_note`, the first of a category alone."""
        if category not in self._noted:
            self._noted.add(category)
            self._note(message, category)

    def _raise_warnings(self) -> None:
        while self._unraised:  # a filter can make a warning an error
            message, category = self._unraised.pop(0)
            warnings.warn(message, category, stacklevel=_level_of_the_caller())

    def _note_large_kernel(self, largest: float, whose: str = "") -> None:
        if largest > 1 + 1e-6:
            allowed = "kernel must have k(x, x) <= 1 for the widths to be valid"
            self._note(f"{allowed}, got {largest:.6g}{whose}", KernelBoundWarning)

    def _incumbents(self) -> Tensor:
        """The evaluated actions with the largest observations."""
        X, Y = self.evaluated()
        return X[Y.topk(min(_NUM_INCUMBENTS, len(Y))).indices, : self.domain.dim]

    @property
    def _looks_at_kernel_later(self) -> bool:
        """Whether k(x, x) is looked at where trials are asked: `probes_of` knows too little of the
        contexts."""
        return self.context_space is not None and self.context_space.domain is None

    @property
    def _context_dim(self) -> int | None:
        """d_z; 0 without contexts, None before anything says how large they are."""
        if self.context_space is None:
            return 0
        if self.context_space.dim is not None:
            return self.context_space.dim
        if self.history.trials and self.history.trials[0].context is not None:
            return len(self.history.trials[0].context)
        return None

    def _checked_choices(self, context: ContextLike | None, actions: Actions | None) -> Choices:
        checked = self.checked_context(context)
        if actions is None:
            return Choices(checked)
        if not self.takes_actions:
            raise ValueError(f"actions must be None for {self.who_takes_no_actions()}")
        return Choices.among(actions, self.domain, checked)

    def _checked(self, event: Event, is_member: bool) -> Event:
        """An event from elsewhere, or a ValueError where it can follow no events; ``is_member`` as
        for `check_recorded`."""
        match event:
            case Asked(trial):
                self.check_recorded(trial, is_member)
                return event
            case Told(id, value):
                return _told(id, value)
            case Abandoned(id, failed):
                return _abandoned(id, failed)
            case Attached(trial, value):
                self._check_attached(trial, is_member)
                return Attached(trial, one_number(value, "value", f" for trial {trial.id}"))
            case Corrected(id, value):
                id = _plain_id(id)
                return Corrected(id, one_number(value, "value", f" for trial {id}"))
        raise ValueError(f"events must be those of a strategy, got a {type(event).__name__}")

    def _apply(self, event: Event) -> None:
        self._happen(event)
        # Last: should one of them be made an error, the event has happened all the same.
        self._raise_warnings()

    def _happen(self, event: Event) -> None:
        self.check_event(event)
        if self._pristine is None:
            self._pristine = _Pristine(self.clone())
        self.fold(event)

    def _seed_of(self, step: int) -> int:
        """A seed for one step: the same whether the steps before it were made or replayed."""
        return (self.seed * 1_000_003 + step) % 2**31


class _Pristine(Immutable):
    """A strategy that stays without events."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy


def _level_of_the_caller() -> int:
    """The ``stacklevel`` of the line that called this package."""
    level, frame = 1, sys._getframe(1)
    # Code that `exec` was given has no name.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("botorch_ext."):
        level, frame = level + 1, frame.f_back
    return level


def _plain_id(id: Any) -> int:
    return whole_number(id, "id", error=UnknownTrialError)


def _abandoned(id: Any, failed: Any) -> Abandoned:
    if not isinstance(failed, bool):
        raise ValueError(f"failed must be True or False, got {failed!r}")
    return Abandoned(_plain_id(id), failed)


def _told(id: Any, value: Any) -> Told:
    id = _plain_id(id)
    return Told(id, one_number(value, "value", f" for trial {id}"))
