"""The base class of all strategies: ask and tell, events, results and warnings."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any, Self, cast, overload

import torch
from torch import Tensor

from botorch_ext.checks import flag, short, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, Space, host, require_same_kind
from botorch_ext.domains.contexts import ContextLike, ContextSpace, as_context_space, with_context
from botorch_ext.domains.outside_points import outside_point
from botorch_ext.domains.ranks import first_highest, highest_first
from botorch_ext.domains.space import checked_parameters
from botorch_ext.exceptions import (
    KernelBoundWarning,
    ModelRefutedWarning,
    NoModelError,
    NoObservationsError,
    OutsideDomainError,
    OutsideDomainWarning,
)
from botorch_ext.limits import Limit
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.parameters import Parameter
from botorch_ext.records import check_record, decoded
from botorch_ext.state import Immutable, Log, shallow
from botorch_ext.strategies.action_sets import Actions, Choices
from botorch_ext.strategies.answers.expected_gain import ExpectedGain, gain_of
from botorch_ext.strategies.answers.importance import Importance, sobol_indices
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.answers.predictions import (
    LEVELS,
    Predictions,
    checked_levels,
    mirrored,
)
from botorch_ext.strategies.answers.recommendation import Recommendation, recommendation
from botorch_ext.strategies.constructor_arguments import Arguments, recorded
from botorch_ext.strategies.event_checks import (
    are_members,
    checked_event,
    id_of,
    require_outcomes,
    require_plain_noise,
    require_point,
)
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Change,
    Corrected,
    Event,
    Failed,
    FromElsewhere,
    History,
    Measured,
    Noted,
    Placeholder,
    Told,
    Trial,
    Widened,
    Withdrawn,
    as_told_right,
    copied,
    event_in_sign,
    is_outside_domain,
)
from botorch_ext.strategies.first_points import FirstPoints
from botorch_ext.strategies.initial_checks import InitialData, checked_data
from botorch_ext.strategies.named_points import Points, joint_rows
from botorch_ext.strategies.noted_warnings import NotedWarnings, level_of_the_caller
from botorch_ext.strategies.refutation import Alarm
from botorch_ext.strategies.replicas import NotReplicatedError, Replicas, Runs
from botorch_ext.widths.told_data import ToldData

# The largest number of trials of one ask; more would take hours.
_MOST_TRIALS = 100_000
# The arguments that have the sign of the values, besides models.
_VALUES = ("initial", "minimum", "reward_range")
# The number of evaluated points that join the screened points of a box.
_NUM_INCUMBENTS = 8


class Strategy(NotedWarnings):
    """The base class of all strategies: decides which point to evaluate next, by ask and tell.

    A strategy's state follows entirely from its event log: a new strategy with the same arguments
    that replays `events` asks the same next point, bit for bit on the same machine, without any
    optimisation. A call that raises an error leaves the state as it was.

    A subclass implements `_decide` (what to ask), `_absorb` (how an event changes the state),
    `evaluated_means`, and `_recall` if `_decide` changes the state. They work on a `successor`,
    which becomes the state once they are done. Random choices draw from ``self._seed_of(step)``, so
    that they depend on the seed and the step alone. Attributes that are lists, dicts or sets may be
    changed in place, but not the values in them; another attribute that changes is a `State`, or is
    replaced. Objects that were read before an event, such as the `bases` of a master, belong to the
    state of that time and are not updated.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, a `Space` or a `FiniteSet`.
        seed: The seed of every random choice.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``), or a triple ``(X, Y, std)`` with ``n`` standard errors, as for `tell`.
            They count as steps. With contexts ``X`` is ``n x (d + d_z)``, the action first;
            without, ``X`` may be a list of dicts of values by name. None: none.
        num_initial: The number of points that are asked first, which count as steps: Sobol points
            of a box, random members of a finite set, or a random one of the ``actions`` of an ask.
            None, allowed if `least_initial` is positive: first points are asked until
            `least_initial` results are initial, told, attached or pending. Failed trials count
            too, where at least three results do. `starts_near_middle` says where the points may
            lie.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context. None: no contexts.
        minimize: Whether small values are good. All values that are given and returned are then
            costs, in ``initial`` too; inside, their negative is maximised, and the models are
            models of that. None: large values are good, unless `bx.Study`, `bx.run` or another tool
            says that it minimises.

    Raises:
        ValueError: If the initial data have a wrong shape, are not finite or lie outside the
            domain, if the seed is not a whole number, or if a count is negative.

    Example:
        >>> import botorch_ext as bx
        >>> strategy = bx.algorithms.integrated_ei(bx.Space(time=bx.Real(0, 60, step=20)))
        >>> trials = strategy.ask(2)
        >>> [trial.params for trial in trials]
        [{'time': 20.0}, {'time': 40.0}]
        >>> strategy.tell(trials[0], 0.7)
        >>> strategy.abandon(trials[1], failed=True)
        >>> strategy.report()["num_told"], strategy.report()["failed"]
        (1, [1])
    """

    #: Whether `ask` takes ``actions``, which may change from step to step.
    takes_actions: bool = False
    #: Whether the domain may be a `ShardedSet`, which divides the candidates among processes.
    takes_shards: bool = False
    #: Whether a `Box` may have whole numbers, codes of categories, constraints or other scales.
    takes_spaces: bool = False
    #: The number of results before the models choose; 0 if ``num_initial`` alone decides.
    least_initial: int = 0
    #: Whether the first points of a box with more than 20 dimensions, all continuous and without
    #: constraints, lie in the middle half of each side, if neither ``num_initial`` nor contexts are
    #: given.
    starts_near_middle: bool = False
    #: Whether results outside a `Box` may be attached, for the models to learn from.
    takes_outside: bool = False
    #: Why `attach` refuses results that were not asked for; None if it takes them.
    refuses_attached: str | None = None
    #: The names of the numbers that are measured beside the value, of which every result must have
    #: all, and no others.
    outcome_names: tuple[str, ...] = ()
    #: The units of these numbers by name, as far as they are known.
    outcome_units: Mapping[str, str | None] = {}
    #: Why all results count as equally noisy; None if they may have standard errors and repeats.
    refuses_std: str | None = "its analysis is for results that are equally noisy"
    #: Why the space cannot be widened; None if it can.
    refuses_wider: str | None = "its analysis is for one domain"
    #: The dataclass of what ``info`` must have for a trial that the method chose; None: nothing.
    record: type | None = None
    #: The context manager, made from this state, in which events happen: it may limit threads.
    within: Callable[..., AbstractContextManager[Any]] = nullcontext
    #: The arguments that the strategy was made with.
    arguments: Arguments
    # The test of what the width assumes; None if it assumes nothing that can be tested.
    _alarm: Alarm | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = recorded(cls.__init__)
        if cls.record is not None:
            check_record(cls.record)

    @recorded
    def __init__(
        self,
        domain: Domain,
        seed: int = 0,
        initial: InitialData | None = None,
        num_initial: int | None = 0,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
    ) -> None:
        super().__init__()
        # What the user said: None leaves it to the tool that asks.
        self._minimize = None if minimize is None else flag(minimize, "minimize")
        self.history = History(-1.0 if minimize else 1.0)
        # The state before the first event; None until there is one.
        self._first: _StateBeforeEvents | None = None
        # Whether recorded trials are replayed with other values than they were chosen by.
        self._is_corrected = False
        if num_initial is not None or not self.least_initial:
            num_initial = whole_number(num_initial, "num_initial", least=0)
        if isinstance(domain, Box) and not self.takes_spaces:
            domain.require_plain(type(self).__name__)
        self.domain = domain
        self.seed = whole_number(seed, "seed")
        space = as_context_space(context_domain)
        if space is not None and space.domain is not None:
            require_same_kind(space.domain.like, domain.like, "context_domain")
        if isinstance(domain, FiniteSet) and domain.shard is not None:
            if not self.takes_shards:
                raise ValueError(f"domain must not be a ShardedSet for {type(self).__name__}")
            if space is not None:
                raise ValueError("context_domain must be None on a ShardedSet")
            self.takes_actions = False
        checked = None if initial is None else checked_data(domain, initial, space)
        # What is maximised, and the standard errors if there are any.
        self._initial: tuple[Tensor, Tensor] | None = None
        self._initial_std: Tensor | None = None
        if checked is not None:
            X, Y, self._initial_std = checked
            self._initial = X, -Y if minimize else Y
        self._require_no_std()
        if space is not None and space.dim is None and self._initial is not None:
            space = replace(space, dim=self._initial[0].shape[-1] - domain.dim)
        self.context_space = space
        num_given = 0 if self._initial is None else len(self._initial[1])
        self._first_points = FirstPoints(
            domain,
            self.seed,
            num_initial,
            self.least_initial,
            num_given,
            near_middle=self.starts_near_middle and space is None,
        )

    def __repr__(self) -> str:
        """The state after the last event, in a few lines."""
        return "\n  ".join([type(self).__name__, *self.history.lines])

    @property
    def minimize(self) -> bool:
        """Whether small values are good."""
        return self.history.sign < 0

    @property
    def initial(self) -> InitialData | None:
        """The observations from before the study, as they were given; None if there are none."""
        if self._initial is None:
            return None
        X, Y = self._initial
        Y = -Y if self.minimize else Y
        return (X, Y) if self._initial_std is None else (X, Y, self._initial_std)

    @property
    def num_first_points(self) -> int:
        """The number of points that are asked before any model chooses."""
        return self._first_points.num

    def set_minimize(self, minimize: bool | None) -> None:
        """Says whether small values are good, if it was not said when the strategy was made.

        Args:
            minimize: As for the class. None changes nothing.

        Raises:
            ValueError: If the strategy was made or used with the other sign, or if it minimises now
                and was made with values, which were those of what it maximises.
        """
        if minimize is None:
            return
        if flag(minimize, "minimize") == self.minimize:
            self._minimize = minimize
            return
        if self._minimize is not None or self.history.events:
            raise ValueError(
                f"minimize must be {self.minimize}, as when the strategy was begun, got {minimize}"
            )
        if given := self._values_given():
            raise ValueError(
                f"minimize must be given where the strategy is made, with its {' and '.join(given)}"
                f", got {minimize} for a strategy that was made without it"
            )
        self._turn()

    def _turn(self) -> None:
        """Minimises from now on; the strategy has no events and no values."""
        self._minimize, self.history = True, History(-1.0, self.limits)

    @property
    def limits(self) -> Mapping[str, Limit]:
        """The limits of the outcomes by name: the best result is one that keeps them."""
        return self.history.limits

    def _set_limits(self, limits: Mapping[str, Limit]) -> None:
        """Says which outcomes every result must have, and their limits."""
        self.outcome_names = tuple(limits)
        self.outcome_units = {name: limit.unit for name, limit in limits.items()}
        self.history = History(self.history.sign, limits)

    def _require_no_std(self) -> None:
        """Raises a ValueError if initial observations have standard errors that the strategy does
        not take."""
        if self._initial_std is not None and self.refuses_std is not None:
            raise ValueError(
                f"initial must have no std for {type(self).__name__}: {self.refuses_std}"
            )

    def _values_given(self) -> list[str]:
        """The names of the arguments that have the sign of the values."""
        given, passed = self.arguments.given, self.arguments.passed
        return [
            name
            for name, value in given.items()
            if (name in _VALUES and name in passed and value is not None)
            or (isinstance(value, KernelGP | CandidateModels) and value.has_values)
        ]

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
        """Asks for the next trial, or for several trials to run in parallel.

        Args:
            num_trials: The number of trials in the list; None for a single trial.
            context: The ``d_z`` numbers that are observed and not chosen at this step. Needed if
                the strategy has a ``context_domain``, and only then.
            actions: The ``m x d`` points of the domain that can be chosen at this step. None: the
                whole domain.

        Returns:
            A `Trial`, or a list of ``num_trials`` of them.

        Raises:
            ValueError: If ``num_trials`` is less than 1 or more than 100,000; if the context is
                missing, not expected, of the wrong size, not finite or outside the context domain;
                or if ``actions`` is empty, has points outside the domain, or is given to a method
                that always chooses from the whole domain.
            WaitingForObservations: If the method must be told a result first.
            HorizonReached: If the method has fewer trials left.
        """
        num = 1 if num_trials is None else num_trials
        after, trials = self._after_asking(num, "num_trials", context, actions)
        self._become(after)
        # Whatever the caller does to the answer, the record stays as it is.
        asked = [trial.copy(self.history.sign) for trial in trials]
        return asked[0] if num_trials is None else asked

    def tell(
        self,
        id: int | Trial,
        value: float | Sequence[float],
        outcomes: Mapping[str, float] | None = None,
        *,
        std: float | None = None,
    ) -> None:
        """Tells the result of a trial, in any order and at any time.

        Args:
            id: The trial, or its id.
            value: The observation; larger is better, unless the strategy minimises. Or the
                observations of repeats, of which the average counts, with a noise variance that is
                smaller by their number.
            outcomes: The other measured numbers by name, as in ``{"pressure": 3.1}``, for a
                strategy that has `outcome_names`: all of these, as they were measured. They are the
                same whether the strategy minimises or not. None: none.
            std: The standard error of the value, which is then the standard deviation of its
                noise. It must not be computed from the value itself. None: the noise is that of
                one observation, or of the average of repeats.

        Raises:
            UnknownTrialError: If the trial was never asked, or is already told or abandoned.
            ValueError: If the value, an outcome or the standard error is not a number, NaN or
                infinite; if the outcomes are not those that the strategy needs; or if the strategy
                counts all results as equally noisy, and gets a standard error or repeats.
        """
        given: Any = id_of(id, self.history.trials), value, outcomes, std
        self._happen(self._in_sign(checked_event(Told(*given))))

    def abandon(self, id: int | Trial, failed: bool = False) -> None:
        """Gives up on a trial, which leaves `pending` and never becomes an observation.

        Args:
            id: The trial, or its id.
            failed: Whether its evaluation failed. A method in which pending trials count then
                counts it as pending until `withdraw`, so that it looks elsewhere; `integrated_ei`
                models where evaluations fail.

        Raises:
            UnknownTrialError: If the trial was never asked, or is already told or abandoned.
            ValueError: If ``failed`` is not a bool.
        """
        self._happen(checked_event(Abandoned(id_of(id, self.history.trials), failed)))

    def attach(
        self,
        x: Any,
        value: float | Sequence[float] | None = None,
        context: ContextLike | None = None,
        *,
        outside: bool = False,
        outcomes: Mapping[str, float] | None = None,
        std: float | None = None,
        failed: bool = False,
    ) -> Trial:
        """Adds a result that was not asked for, an observation like those of ``initial``, or an
        evaluation that failed.

        Args:
            x: The ``d``-dim point, or a dict of its values by name, as ``params`` of a trial.
            value: The observation, as for `tell`; None for an evaluation that failed.
            context: The ``d_z`` numbers that were observed. Needed if the strategy has a
                ``context_domain``, and only then.
            outside: Whether a point outside the domain is kept as data, if the method
                `takes_outside`: the model learns from it, but it is never asked, recommended or
                the best. It may lie beyond bounds, between steps, or where constraints are
                violated.
            outcomes: The other measured numbers, as for `tell`.
            std: The standard error, as for `tell`.
            failed: Whether the evaluation failed, as for `abandon`; it has no value then.

        Returns:
            The trial that holds the result, with the next id. Its ``info`` has ``attached``, which
            is True; on a finite set the row as ``index``; and outside the domain ``outside``, which
            is True.

        Raises:
            ValueError: If the point lies outside the domain, if `ask` would refuse the context, if
                `tell` would refuse the value or the outcomes, if a failed evaluation has a value,
                outcomes or a standard error, or if the method cannot use results that it did not
                ask for.
        """
        given = {"value": value, "outcomes": outcomes, "std": std}
        return self._attached_as("x", x, context, outside, failed, given)

    def _attached_as(
        self,
        name: str,
        x: Any,
        context: ContextLike | None,
        outside: bool,
        failed: bool,
        given: dict[str, Any],
    ) -> Trial:
        """Attaches a result as `attach` does, with what was measured by name. ``name`` is what
        messages call the point."""
        if flag(failed, "failed") and (
            known := [name for name in given if given[name] is not None]
        ):
            raise ValueError(f"{' and '.join(known)} must be None for an evaluation that failed")
        id, context = len(self.history.trials), self.checked_context(context)
        try:
            X, mark = self.domain.require_contains(x, name), {}
        except OutsideDomainError as error:
            if not flag(outside, "outside"):
                raise
            self._require_outside(
                f"{error}; {type(self).__name__} learns from points of its domain"
            )
            X, mark = outside_point(cast(Box, self.domain), x, name)[None], {"outside": True}
        if len(X) != 1:
            raise ValueError(f"{name} must be one point, got {len(X)}")
        info = self._info_of_attached(X, context) | mark
        trial = Trial(id, X[0].detach().clone(), context, info, self.domain)
        event = Failed(trial) if failed else checked_event(Attached(trial, **given))
        self._happen(self._in_sign(event))
        return trial.copy()

    def correct(
        self,
        id: int | Trial,
        value: float | Sequence[float] | None = None,
        outcomes: Mapping[str, float] | None = None,
        *,
        std: float | None = None,
    ) -> None:
        """Replaces a wrong value, wrong outcomes or a wrong standard error that were told or
        attached.

        The trials that were asked stand. Everything that is computed from values is computed again,
        as if the right value had been told in the first place. Hyperparameters that were fitted are
        fitted again at the next ask.

        Args:
            id: The trial, or its id.
            value: The right observation, or those of all repeats; it has the standard error that
                is given with it. None, allowed if there is another argument: it stays.
            outcomes: The right numbers of wrong outcomes, by name; the others stay.
            std: The right standard error, as for `tell`.

        Raises:
            UnknownTrialError: If the trial has no value, or belongs to another strategy.
            ValueError: If `tell` would refuse an argument, or if there is none.
        """
        history = self.history
        id = id_of(id, history.trials)
        if value is None and (outcomes or std is not None) and id in history.values:
            value = history.repeats_told(id) or history.value_told(id)
            std = history.stds.get(id) if std is None else std
        given: Any = id, value, outcomes, std
        event = checked_event(Corrected(*given))
        outcomes = {**history.outcomes.get(id, {}), **event.outcomes}
        self._happen(self._in_sign(replace(event, outcomes=outcomes)))

    def withdraw(self, id: int | Trial) -> None:
        """Takes back an attached result or a failure.

        The result is then no observation any more; a trial that was asked and had failed counts as
        abandoned. The trials that were asked stand, and the attached trial keeps its id. Everything
        that is computed from results is computed again, as if the result had never been attached,
        or the trial had not failed. Hyperparameters that were fitted are fitted again at the next
        ask.

        Args:
            id: The attached or failed trial, or its id.

        Raises:
            UnknownTrialError: If the trial was not attached and has not failed, or is already
                withdrawn.
        """
        self._happen(Withdrawn(id_of(id, self.history.trials)))

    def note(self, id: int | Trial, text: str) -> None:
        """Keeps a note with a trial, which changes nothing that the strategy does. ``notes`` of the
        `history` has all notes.

        Args:
            id: The trial, or its id.
            text: The note, in place of the one before; an empty one removes it.

        Raises:
            UnknownTrialError: If there is no such trial.
            ValueError: If the note is no text.
        """
        self._happen(checked_event(Noted(id_of(id, self.history.trials), text)))

    def widen(self, parameters: Mapping[str, Parameter] | None = None, **named: Parameter) -> None:
        """Widens parameters of the `Space`, from which the next trials are asked.

        A range may get a lower ``low`` or a higher ``high``; its scale, steps, digits and unit
        stay. A choice may get further values at the end. Constraints and conditions stay as they
        are. All trials keep their points, and pending ones stay pending. Attached results that lay
        outside and lie in the wider space count as inside. First points that were not asked yet are
        those of the wider space. Hyperparameter samples are drawn anew at the next ask.

        Args:
            parameters: The wider parameters by name, as for `Space`. Others stay as they are.
            **named: The wider parameters by name.

        Raises:
            ValueError: If the method needs one domain, as all do but `integrated_ei`,
                `credible_ucb` with `Particles`, and `RandomSearch`; if the domain is no `Space`; if
                a name is unknown; if a parameter changes in another way, or gets its second value;
                or if nothing is wider.

        Example:
            >>> import botorch_ext as bx
            >>> space = bx.Space(temperature=bx.Real(20, 80), solvent=bx.Choice(["water", "dmso"]))
            >>> strategy = bx.algorithms.integrated_ei(space)
            >>> strategy.widen(temperature=bx.Real(20, 120))
            >>> strategy.domain.parameters["temperature"]
            Real(20, 120)
        """
        given = checked_parameters(parameters, named)
        wider, trials = self._wider(given), self.history.trials
        inside = [id for id in sorted(self.history.outside) if wider.contains(trials[id].x).item()]
        self._happen(Widened(len(trials), given, tuple(inside)))

    def _wider(self, parameters: Mapping[str, Parameter]) -> Space:
        """The domain with wider parameters; raises a ValueError if it cannot be widened so."""
        who = type(self).__name__
        if self.refuses_wider is not None:
            raise ValueError(f"{who} cannot be widened: {self.refuses_wider}")
        if not isinstance(self.domain, Space):
            raise ValueError(
                f"{who} must have a Space to be widened, whose parameters have names, got "
                f"{self.domain!r}"
            )
        return self.domain.widened(parameters)

    def _in_sign(self, event: Event) -> Event:
        """An event in the sign of the user, from what is maximised, or the other way."""
        return event_in_sign(event, self.history.sign)

    # --- events -----------------------------------------------------------------------------------

    def replay(self, events: Iterable[Event]) -> None:
        """Applies recorded events, which gives the state of the strategy that recorded them.

        Objects that were read from this strategy before, such as the bases of a master, are no
        longer part of it afterwards.

        Args:
            events: The `events` of a strategy that was made with the same arguments. Ids,
                membership of the domain, finite values and the types of the recorded ``info`` are
                checked; whether the method would have asked the same trials is not.

        Raises:
            ValueError: If an event cannot follow the ones before it, or if a trial does not belong
                to the domain. No event is applied if anything is raised.
        """
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise ValueError(f"events must be those of a strategy, got {short(events)}")
        events = [copied(self._in_sign(event)) for event in self.checked(list(events))]
        after = self.clone()
        after.follow(events)
        after._raise_warnings()
        vars(self).update(vars(after))

    def follow(self, events: Sequence[Event]) -> None:
        """Applies events as `replay` does, but without copies: the strategy owns the events from
        now on.

        Events up to the last correction are applied once, with the corrected values.
        `take_warnings` gives the warnings of the events.

        Raises:
            ValueError: As for `replay`; the wrong event and those after it are not applied.
        """
        checked, num_first = self.checked(events), _num_until_corrected(events)
        if num_first:
            try:
                first = [*self.history.events, *islice(checked, num_first)]
                vars(self).update(vars(self._corrected(first)))
            except ValueError:  # one after the other, to stop at the wrong event
                checked = self.checked(events)
        for event in checked:
            vars(self).update(vars(self.after(event)))

    def checked(self, events: Sequence[Event]) -> Iterator[Event]:
        """Checks events from elsewhere one by one, as the caller takes them from the iterator, and
        gives them in the sign of the `history`.

        Raises:
            ValueError: If an event could follow no other events, or has another domain.
        """
        known, reader = are_members(events, self.domain), self
        for number, given in enumerate(events, start=1):
            event = reader._checked(given, known)
            if isinstance(event, Widened):  # the events after it are those of a wider domain
                domain, reader = reader._wider(event.parameters), shallow(reader)
                reader.domain, known = domain, are_members(events[number:], domain)
            yield self._in_sign(event)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in the order in which they happened; a copy."""
        return tuple(copied(self._in_sign(event)) for event in self.history.events)

    @property
    def pending(self) -> list[int]:
        """The ids of trials that are asked and neither told nor abandoned, in the order of
        asking."""
        return self.history.pending

    def clone(self) -> Self:
        """A copy of the strategy in the same state; later events of either do not affect the
        other."""
        return deepcopy(self)

    def after(self, event: Event) -> Self:
        """The state after an event of the `history`, as a `successor` that has not raised its
        warnings yet.

        Raises:
            UnknownTrialError: If the trial is not pending.
            ValueError: If the event cannot come now, or if this method did not record the trial.
        """
        after = self.successor()
        with after.within(after):
            after._take(event)
        return after

    def check_event(self, event: Event) -> None:
        """Raises an error unless the event can come now; changes nothing.

        Raises:
            UnknownTrialError: If the trial is not pending.
            ValueError: If the event cannot come now.
        """
        if isinstance(event, FromElsewhere) and self.refuses_attached is not None:
            who = type(self).__name__
            raise ValueError(f"{who} takes no attached results: {self.refuses_attached}")
        self.history.check(event)
        if isinstance(event, Widened):
            self._wider(event.parameters)
            if not self.history.outside.issuperset(event.inside):
                raise ValueError(f"inside must be ids of outside results, got {event.inside}")
        self._check_measured(event)

    def _check_measured(self, event: Event) -> None:
        """Raises a ValueError if an event has a result that the strategy cannot take."""
        if isinstance(event, Measured):
            require_outcomes(event.outcomes, self.outcome_names, type(self).__name__)
            require_plain_noise(event, self.refuses_std, type(self).__name__)

    def successor(self) -> Self:
        new = super().successor()
        if not self.history.events:
            new._first = _StateBeforeEvents(self)
        return new

    # --- what was found ---------------------------------------------------------------------------

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The evaluated point with the best posterior mean, and that mean.

        Told, attached and initial points count, as far as they lie in the domain and their outcomes
        were measured within the limits.

        Args:
            context: ``d_z`` numbers: the means of all evaluated actions at this context are
                compared. None: each action is compared at the context that it was evaluated in.

        Returns:
            The ``d``-dim point and its posterior mean, in units of the observations.

        Raises:
            NoObservationsError: If no such point was evaluated yet.
            ValueError: If `ask` would refuse the context.
        """
        X, _ = self.evaluated()
        if context is not None:
            X = with_context(X[:, : self.domain.dim], self.checked_context(context))
        eligible = self._are_eligible(len(X))
        if not bool(eligible.any()):
            what = "one evaluated point within all limits" if self.limits else "one evaluated point"
            raise NoObservationsError(f"best needs at least {what}, got none")
        mean = self.evaluated_means() if context is None else self.means_at(X)
        top = int(first_highest(mean.masked_fill(~eligible, -math.inf)))
        return X[top, : self.domain.dim].clone(), self.history.sign * float(mean[top])

    def best_params(self, context: ContextLike | None = None) -> dict[str, Any]:
        """The point that `best` gives, by name.

        Args:
            context: As for `best`.

        Returns:
            A dict from names to values, as ``params`` of a trial.
        """
        return self.domain.params_of(self.best(context)[0])

    def predict(
        self,
        points: Points,
        *,
        context: ContextLike | None = None,
        levels: Sequence[float] = LEVELS,
    ) -> Predictions:
        """Predicts f, and an observation of it, at points, from the told data.

        A method with one GP predicts a normal distribution. A method with several GPs predicts
        their mixture: `integrated_ei` that of its hyperparameter samples; a method with candidate
        models that of the models that are not eliminated, weighted by their marginal likelihoods.
        Pending trials do not count.

        Points outside a `Box` are predicted with a warning if the method `takes_outside`. The model
        extrapolates there.

        Args:
            points: A trial or a list of trials; one ``d``-dim point or ``n x d`` points;
                or points by name: a dict, a list of dicts or a pandas data frame.
            context: The ``d_z`` numbers of the context, if the strategy takes contexts. None:
                trials are predicted in their own contexts.
            levels: The probabilities of the quantiles, in (0, 1).

        Returns:
            The `Predictions`, in units of the observations.

        Raises:
            NoModelError: If the method has no model.
            NoObservationsError: If the model needs an observation to know its scale, and has none.
            OutsideDomainError: If a point lies outside the domain, and the method does not
                `takes_outside`, or no model can say anything there: the point has an unknown
                choice, or the space has conditions.
            ValueError: If `ask` would refuse the context, or if a level is not between 0 and 1.

        Warns:
            OutsideDomainWarning: Points lie outside the domain. The message has their rows.
        """
        rows, checked, outside = joint_rows(
            points, self.domain, context, self.checked_context, self.takes_outside
        )
        levels = checked_levels(levels)
        if self.minimize:
            levels = mirrored(levels)
        found = Predictions.of(
            self._mixture(checked), rows, self.domain, levels, self._context_domain
        )
        found = replace(found, feasibility=self._feasibilities(rows, checked))
        if outside:
            warnings.warn(
                f"{len(outside)} of {len(rows)} points lie outside the domain, where the model "
                f"extrapolates: rows {short(outside)}, counted from 0",
                OutsideDomainWarning,
                stacklevel=level_of_the_caller(),
            )
        return found.negated() if self.minimize else found

    def recommended(self, context: ContextLike | None = None) -> Recommendation:
        """The point to use if the study ends now, with its prediction.

        It is the point of ``recommend`` if the method has that, which need not have been evaluated;
        else it is the point of `best`. Only evaluated points whose outcomes were measured within
        the limits are compared with it.

        Args:
            context: The ``d_z`` numbers of the context, if the strategy takes contexts.

        Returns:
            A `Recommendation`, in the units of the observations, which has the prediction and the
            posterior probability that the point is as good as every evaluated one.

        Raises:
            NoModelError: If the method has no model.
            NoObservationsError: If no point was evaluated yet.
            ValueError: If `ask` would refuse the context.
        """
        checked = self.checked_context(context)
        mixture, evaluated = self._mixture(checked), self._evaluated_actions(checked)
        if not len(evaluated) and not self.limits:
            raise NoObservationsError("recommended needs at least one evaluated point, got none")
        x, _ = getattr(self, "recommend", self.best)(context)
        found = recommendation(
            mixture,
            with_context(x, checked),
            with_context(evaluated, checked),
            self.domain,
            self._seed_of(len(self.history.trials)),
            self._context_domain,
            self._feasibility(x, checked),
        )
        return found.negated() if self.minimize else found

    def expected_gain(
        self,
        num: int = 1,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> ExpectedGain:
        """The expected gain of the next batch, compared with the noise, which says when to stop.

        The batch is the one that `ask` would give now; it is not asked.

        Args:
            num: The size of the batch.
            context: As for `ask`.
            actions: As for `ask`.

        Returns:
            An `ExpectedGain`, whose class has the definition.

        Raises:
            NoModelError: If the method has no model.
            NoObservationsError: If no point was evaluated yet.
            ValueError: If `ask` would raise it.
        """
        checked = self.checked_context(context)
        mixture, evaluated = self._mixture(checked), self._evaluated_actions(checked)
        if not len(evaluated):
            within = " within all limits" if self.limits else ""
            raise NoObservationsError(
                f"expected_gain needs at least one evaluated point{within}, got none"
            )
        _, trials = self._after_asking(num, "num", context, actions)
        batch = torch.stack([trial.x for trial in trials])
        pending = [self.history.trials[id].x for id in self.pending]
        pending = torch.stack(pending) if pending else evaluated[:0]
        feasibility = self._feasibilities(with_context(batch, checked), checked)
        if feasibility is not None and len(pending):
            known = self._feasibilities(with_context(pending, checked), checked)
            pending = pending[cast(Tensor, known) >= 0.5]
        return gain_of(
            mixture,
            with_context(torch.cat([evaluated, pending]), checked),
            with_context(batch, checked),
            self.domain,
            self._seed_of(len(self.history.trials)),
            self._context_domain,
            feasibility,
        )

    def importance(
        self, context: ContextLike | None = None, *, num_samples: int = 2048
    ) -> Importance:
        """The share of the variance of the posterior mean over the space that each parameter
        explains.

        Args:
            context: The ``d_z`` numbers of the context, if the strategy takes contexts: f is then
                the function of the action in this context.
            num_samples: N, a power of 2, at least 64. The posterior mean is computed at N (d + 2)
                points.

        Returns:
            An `Importance`, whose class has the definition.

        Raises:
            NoModelError: If the method has no model.
            NoObservationsError: If the model needs an observation to know its scale, and has none.
            ValueError: If the domain is not a `Box`, or if `ask` would refuse the context.
        """
        box = self.domain
        if not isinstance(box, Box):
            raise ValueError(
                "importance needs a Box, whose parameters vary independently, got a FiniteSet"
            )
        num_samples = whole_number(num_samples, "num_samples", least=64)
        if num_samples & (num_samples - 1):
            raise ValueError(f"num_samples must be a power of 2, got {num_samples}")
        checked = self.checked_context(context)
        mixture, seed = self._mixture(checked), self._seed_of(len(self.history.trials))

        def mean(U: Tensor) -> Tensor:
            return mixture.mean(with_context(box.from_unit(U.to(box.like)), checked))

        return Importance(box.names, *sobol_indices(mean, box.dim, num_samples, seed))

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts, which JSON can hold.

        Returns:
            A dict, to which each class adds keys of its own. All strategies have

            - ``strategy``: the name of the class;
            - ``num_asked``, ``num_told``: the numbers of trials that were asked, and told;
            - ``num_initial``: the number of first points, which no model chooses;
            - ``num_initial_data``: the number of observations in ``initial``;
            - ``pending``, ``abandoned``, ``failed``, ``attached``, ``withdrawn``, ``corrected``:
              the ids of the trials in these states; failed trials are abandoned ones, and attached
              ones have a value;
            - ``best``: the point of `best` as ``x`` (in a `Space` also by name, as ``params``) and
              its posterior ``mean``; None where it has none;
            - ``best_observation``: the best observation within the limits, noise included, or None;
            - ``minimize``: whether small values are good;
            - ``warnings``: the messages of all warnings so far.

            Strategies of one model whose width has an RKHS bound, a noise and a failure probability
            also have

            - ``refuted_at``: the number of observations when data refuted what the width assumes
              of f and of the noise, or None. The test is made after each of the first 32
              observations and more and more rarely after that, but not on a GPU, and by this
              method;
            - ``rkhs_norm_lower_bound``: the lower bound of the RKHS norm of f by which they are
              tested, as `rkhs_norm_lower_bound` computes it.
        """
        X, Y = self.evaluated()
        summary: dict[str, Any] = {
            "strategy": type(self).__name__,
            "minimize": self.minimize,
            "num_asked": self.history.num_asked,
            "num_told": self.history.num_told,
            "num_initial": self._first_points.num,
            "num_initial_data": 0 if self._initial is None else len(self._initial[0]),
            "pending": self.pending,
            "abandoned": sorted(self.history.abandoned),
            "failed": sorted(self.history.failed),
            "attached": [id for id in self.history.attached if id in self.history.values],
            "withdrawn": sorted(self.history.withdrawn),
            "corrected": sorted(self.history.corrected),
            "best": None,
            "best_observation": None,
            "warnings": list(self.warnings),
        }
        eligible = self._are_eligible(len(X))
        if bool(eligible.any()):
            x, mean = self.best()
            summary["best"] = {"x": x.tolist(), "mean": mean}
            if isinstance(self.domain, Space):
                summary["best"]["params"] = self.domain.params_of(x)
            best = Y[eligible].min() if self.minimize else Y[eligible].max()
            summary["best_observation"] = float(best)
        if self._alarm is not None:
            summary |= self._alarm.summary(self._told_data())
        return summary

    def evaluated(self) -> tuple[Tensor, Tensor]:
        """The initial, the told and the attached points, ``n x d`` or with contexts
        ``n x (d + d_z)``, and their ``n`` values, in this order."""
        X, Y = self._maximised()
        return X, -Y if self.minimize else Y

    def _maximised(self) -> tuple[Tensor, Tensor]:
        """The points of `evaluated`, and what is maximised there: their values, or the negative of
        their costs."""
        like = self.domain.like
        X, Y = self.history.told_points(like)
        if self._initial is None:
            return X, Y
        if not len(X):
            return self._initial[0].clone(), self._initial[1].clone()
        return torch.cat([self._initial[0], X]), torch.cat([self._initial[1], Y])

    def _relative_noise(self, noise_std: float) -> Tensor | None:
        """The noise variances at the points of `evaluated`, in its order, in units of that of one
        observation, whose standard deviation is given; None if all are 1."""
        history, given = self.history, self._initial_std
        if given is None and not history.stds and not history.repeats:
            return None
        told = [history.relative_noise(id, noise_std) or 1.0 for id in history.values]
        before = 0 if self._initial is None else len(self._initial[1])
        first = self.domain.like.new_ones(before)
        if given is not None:
            first = (given / noise_std).square()
        return torch.cat([first, first.new_tensor(told)])

    @abstractmethod
    def evaluated_means(self) -> Tensor:
        """The posterior mean of what is maximised at the ``n`` points of `evaluated`, in its order:
        ``n``."""

    def means_at(self, X: Tensor) -> Tensor:
        """The posterior mean of what is maximised at joint rows: ``n``. Only strategies with
        contexts need it.

        Args:
            X: ``n x (d + d_z)``, the action, then the context.
        """
        raise NotImplementedError

    def _incumbents(self) -> Tensor:
        """The evaluated actions with the largest observations."""
        X, Y = self._maximised()
        if self.history.outside:  # only then, as a mask makes the host wait for a GPU
            inside = self._are_inside(len(X))
            X, Y = X[inside], Y[inside]
        return X[highest_first(Y, _NUM_INCUMBENTS), : self.domain.dim]

    def _are_inside(self, num: int) -> Tensor:
        """Whether each of the ``num`` points of `evaluated` is a point of the domain."""
        inside = torch.ones(num, dtype=torch.bool, device=self.domain.device)
        if self.history.outside:
            first = num - len(self.history.values)
            inside[first:] = inside.new_tensor(
                [id not in self.history.outside for id in self.history.values]
            )
        return inside

    def _are_eligible(self, num: int) -> Tensor:
        """Whether each of the ``num`` points of `evaluated` may be the best one: it is inside, and
        its outcomes were measured within their limits."""
        if not self.limits:
            return self._are_inside(num)
        told = [self.history.is_eligible(id) for id in self.history.values]
        return host.tensor(told).to(self.domain.device)

    # --- for masters and for plots ----------------------------------------------------------------

    def check_joint(self, X: Tensor) -> None:
        """Raises a ValueError unless the model takes these joint rows, ``n x (d + d_z)``."""

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        """Raises `WaitingForObservations` or `HorizonReached` if the method cannot ask so many
        trials now; called before a trial is asked, and changes nothing."""

    def checked_context(self, context: ContextLike | None, name: str = "context") -> Tensor | None:
        """The context as a ``d_z``-dim tensor, or None if there are no contexts; raises a
        ValueError that names the argument."""
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
        """The subject of the error message if ``actions`` are given and the method takes none."""
        return f"{type(self).__name__}, whose actions never change"

    def next_trial(self, choices: Choices) -> Trial:
        """Decides the next trial; the state may change as in `_decide`."""
        id = len(self.history.trials)
        if self._first_points.include(self.history, id):
            seed = self._seed_of(self.history.asked_before(id))
            x, info = self._first_points.at(self.history, id, choices, seed)
        else:
            x, info = self._decide(choices)
        return Trial(id, x, choices.context, info, self.domain)

    def check_recorded(self, trial: Trial, is_member: bool = False) -> None:
        """Raises a ValueError unless a trial from elsewhere fits the domain and the contexts;
        ``is_member`` says that its point is known to be in the domain, and to be that of its
        ``index``."""
        if not isinstance(trial, Trial):
            raise ValueError(f"trial must be a Trial, got a {type(trial).__name__}")
        name = f"context of trial {trial.id}"
        if not isinstance(trial.context, Tensor | None):
            raise ValueError(f"{name} must be a tensor or None, got {trial.context!r}")
        self.checked_context(trial.context, name)
        if not isinstance(trial.info, dict):
            raise ValueError(f"info of trial {trial.id} must be a dict, got {trial.info!r}")
        if not is_member:
            require_point(trial, self.domain)

    def _check_attached(self, trial: Trial, is_member: bool) -> None:
        """Raises a ValueError unless a trial from elsewhere can be an attached one."""
        is_outside = is_outside_domain(trial)
        Strategy.check_recorded(self, trial, is_member or is_outside)
        if is_outside:
            name = f"x of trial {trial.id}"
            self._require_outside(f"{name} must lie in the domain of {type(self).__name__}")
            outside_point(cast(Box, self.domain), trial.x, name)
        expected = self._info_of_attached(trial.x.unsqueeze(0), trial.context)
        expected |= {"outside": True} if is_outside else {}
        if trial.info != expected:
            raise ValueError(f"info of trial {trial.id} must be {expected}, got {trial.info}")

    # --- for subclasses ---------------------------------------------------------------------------

    @abstractmethod
    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        """Chooses the next point, and returns it with its ``info``. The state may change only as
        `_recall`, and then `_absorb`, change it when the trial is replayed."""

    def _after_asking(
        self, num: Any, name: str, context: ContextLike | None, actions: Actions | None
    ) -> tuple[Self, list[Trial]]:
        """The state after ``num`` more trials are asked, and these trials; errors name the argument
        ``name``. This state stays as it is."""
        choices = self._checked_choices(context, actions)
        num = whole_number(num, name, least=1)
        if num > _MOST_TRIALS:
            raise ValueError(f"{name} must be at most {_MOST_TRIALS}, got {short(num)}")
        self.require_askable(num, choices)
        after = self.successor()
        return after, [after._asked(choices) for _ in range(num)]

    def _mixture(self, context: Tensor | None) -> GPMixture:
        """The posterior of f given the told data, for a ``d_z``-dim context or without contexts."""
        raise NoModelError(
            f"{type(self).__name__} has no model of the objective, and predicts nothing"
        )

    def _feasibilities(self, rows: Tensor, context: Tensor | None) -> Tensor | None:
        """The probabilities that ``n x (d + d_z)`` joint rows are feasible, as for
        `Recommendation`: ``n``, or None."""
        return None

    def _feasibility(self, x: Tensor, context: Tensor | None) -> float | None:
        """The same of a ``d``-dim point in a context."""
        found = self._feasibilities(with_context(x, context).unsqueeze(0), context)
        return None if found is None else float(found)

    def _evaluated_actions(self, context: Tensor | None) -> Tensor:
        """The ``n x d`` evaluated points that may be the best, to be compared in a ``d_z``-dim
        context."""
        X = self.evaluated()[0][:, : self.domain.dim]
        return X[self._are_eligible(len(X))]

    def _asked(self, choices: Choices) -> Trial:
        """Decides the next trial and updates this state with it."""
        with self.within(self):
            trial = self.next_trial(choices)
            self._apply(Asked(trial))
        return trial

    def _is_play(self, id: int, info: dict[str, Any] | None = None) -> bool:
        """Whether the method chose a trial, which may be the next one with a recorded ``info``: it
        is neither attached nor one of the first points."""
        is_first = self._first_points.include(self.history, id, info)
        return not is_first and not self.history.is_attached(id)

    def _require_outside(self, message: str) -> None:
        """Raises an `OutsideDomainError` unless points outside the domain may be data."""
        if not (self.takes_outside and isinstance(self.domain, Box)):
            raise OutsideDomainError(message)

    def _info_of_attached(self, X: Tensor, context: Tensor | None) -> dict[str, Any]:
        """The ``info`` of an attached point, ``1 x d``."""
        info: dict[str, Any] = {"attached": True}
        if isinstance(self.domain, FiniteSet):
            info["index"] = int(self.domain.index(X))
        return info

    def _note_large_kernel(self, largest: float, whose: str = "") -> None:
        if largest > 1 + 1e-6:
            allowed = "kernel must have k(x, x) <= 1 for the widths to be valid"
            self._note(f"{allowed}, got {largest:.6g}{whose}", KernelBoundWarning)

    @property
    def _looks_at_kernel_later(self) -> bool:
        """Whether k(x, x) is checked at asked trials, since `probes_of` does not know the
        contexts."""
        return self.context_space is not None and self.context_space.domain is None

    @property
    def _context_domain(self) -> Domain | None:
        """The domain of contexts, or None."""
        return None if self.context_space is None else self.context_space.domain

    @property
    def _context_dim(self) -> int | None:
        """d_z; 0 without contexts, None while the dimension is unknown."""
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

    def _seed_of(self, step: int) -> int:
        """The seed of one step, the same whether the steps before it were decided or replayed."""
        return seed_of_step(self.seed, step)

    def replicas(self, runs: Runs) -> Replicas:
        """The states of many runs of this strategy, which has no trials, for `replicate`.

        Args:
            runs: The runs, on the finite set of this strategy.

        Raises:
            NotReplicatedError: If runs of this strategy are not moved forward together.
        """
        raise NotReplicatedError(f"a {type(self).__name__}")

    def _recall(self, trial: Trial) -> Any:
        """Brings this state to where `_decide` left it when a trial was asked, from its ``info``,
        and returns the `record`. Raises a LookupError, TypeError or ValueError if ``info`` lacks
        what is needed, or has it in the wrong form; whether the method would ask the same trial is
        not checked."""
        if self.record is None:
            return None
        return decoded(self.record, trial.info, f"info of trial {trial.id}", among_others=True)

    @abstractmethod
    def _absorb(self, event: Event) -> None:
        """Updates this state, a successor that is not yet in use, for the last event of the
        history."""

    def _told_data(self) -> ToldData:
        """The told data as the model sees them, for the `Alarm`; subclasses that have one define
        it."""
        raise NotImplementedError

    def _take_as_asked(self, is_corrected: bool) -> None:
        """Sets whether trials are replayed with other values than they were chosen by: what their
        ``info`` says about values is then computed again."""
        self._is_corrected = is_corrected

    def _forget_fits(self, id: int) -> None:
        """Forgets what was fitted to the old value of a trial, or before a trial in the domain that
        was widened."""

    def _note_withdrawn(self, event: Withdrawn) -> None:
        """Adds an event to the history of which `_corrected` has left out the result."""
        self.history = self.history.after(event)

    # --- applying events --------------------------------------------------------------------------
    #
    # An event runs through `after`, which makes a successor, then `_take`, which checks it and
    # recalls what was decided (`_prepare`), and `_apply`, which adds it to the history and absorbs
    # it. `_become` then swaps the state in.

    def _checked(self, event: Event, is_member: bool) -> Event:
        """The event, in plain form; raises a ValueError if it could follow no other events.
        ``is_member`` is as for `check_recorded`."""
        if not isinstance(event, Event):
            raise ValueError(f"events must be those of a strategy, got a {type(event).__name__}")
        if isinstance(event, Asked):
            self.check_recorded(event.trial, is_member)
            return event
        if isinstance(event, FromElsewhere):
            self._check_attached(event.trial, is_member)
        return checked_event(event)

    def _happen(self, event: Event) -> None:
        self._become(self.after(event))

    def _prepare(self, event: Event) -> None:
        """Checks an event from elsewhere, and recalls what was decided with it."""
        self.check_event(event)
        if type(event) is not Asked or not self._is_play(event.trial.id, event.trial.info):
            return
        try:
            self._recall(event.trial)
        except (LookupError, TypeError) as error:
            raise ValueError(
                f"info of trial {event.trial.id} must be what {type(self).__name__} records, got "
                f"{short(event.trial.info)}"
            ) from error

    def _take(self, event: Event) -> None:
        """Checks an event from elsewhere, and updates this state for it."""
        self._prepare(event)
        self._apply(event)

    def _apply(self, event: Event) -> None:
        """Updates this state for an event that can come now."""
        if isinstance(event, Asked | FromElsewhere) and event.trial.domain is not self.domain:
            event = replace(event, trial=replace(event.trial, domain=self.domain))
        after = self.history.after(event)
        if isinstance(event, Failed):
            self._apply_placeholder(event.trial, failed=True)
            self.history = after
            return
        self.history = after
        if isinstance(event, Change):
            vars(self).update(vars(self._corrected(self.history.events)))
        if isinstance(event, Change | Noted):
            return
        if isinstance(event, Widened):
            self.domain = self._wider(event.parameters)
            self.history = self.history.on(self.domain)
            self._first_points = self._first_points.on(self.domain)
            self._forget_fits(event.id)
        self._absorb(event)
        # On a GPU a look would make the host wait.
        is_looked_at = isinstance(event, Told | Attached) and not self.domain.like.is_cuda
        if self._alarm is not None and is_looked_at:
            num_before = 0 if self._initial is None else len(self._initial[1])
            if self._alarm.begin(num_before + len(self.history.values)):
                said = self._alarm.look(self._told_data())
                if said is not None:
                    self._note_once(said, ModelRefutedWarning)

    def _apply_placeholder(self, trial: Trial, failed: bool) -> None:
        """Updates this state for an attached trial without a result as for one that was asked and
        abandoned."""
        self._apply(Placeholder(trial))
        self._apply(Abandoned(trial.id, failed))

    def _corrected(self, events: Sequence[Event]) -> Self:
        """The state after all events, with the corrected values, and without results and failures
        that were withdrawn, up to the last such change. Warnings that were raised before are not
        raised again."""
        first_state = _StateBeforeEvents(self) if self._first is None else self._first
        after: Self = first_state.state.clone()
        after._first = first_state
        first = events[: _num_until_corrected(events)]
        gone = {event.id for event in first if isinstance(event, Withdrawn)}
        history = after.history  # with what is corrected or withdrawn later
        after._take_as_asked(True)
        for event, right in zip(first, as_told_right(first), strict=True):
            with after.within(after):
                history.check(event)
                history = history.after(event)
                if isinstance(event, Change):
                    after._check_measured(event)
                    after._forget_fits(event.id)
                    if isinstance(event, Withdrawn):
                        after._note_withdrawn(event)
                elif isinstance(event, Abandoned) and event.failed and event.id in gone:
                    after._take(replace(event, failed=False))
                elif isinstance(event, FromElsewhere) and event.id in gone:
                    after.check_event(event)
                    after._apply_placeholder(event.trial, failed=False)
                else:
                    after._take(right)
        after._take_as_asked(False)
        after.history.events = Log(first)
        after.history.corrected = {event.id for event in first if isinstance(event, Corrected)}
        for event in events[len(first) :]:
            with after.within(after):
                after._take(event)
        after._unraised = [
            warning
            for warning in after._unraised
            if warning in self._unraised or warning[0] not in self.warnings
        ]
        return after

    def _become(self, after: Self) -> None:
        """Takes over a later state. Its warnings come last: if a filter makes one an error, the
        events have happened all the same."""
        vars(self).update(vars(after))
        if self._unraised:
            self._raise_warnings()


def seed_of_step(seed: int, step: int) -> int:
    """The seed of a step of a strategy with this seed."""
    return (seed * 1_000_003 + step) % 2**31


class _StateBeforeEvents(Immutable):
    """The state of a strategy before its first event."""

    def __init__(self, strategy: Strategy) -> None:
        self.state: Any = shallow(strategy)
        self.state._first = None


def _num_until_corrected(events: Sequence[Event]) -> int:
    """The number of events up to and including the last change of a result."""
    counts = range(len(events), 0, -1)
    return next((count for count in counts if isinstance(events[count - 1], Change)), 0)
