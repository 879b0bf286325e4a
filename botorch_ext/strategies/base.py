"""Strategy: the base of all strategies, with ask and tell, events, predictions and reports."""

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

from botorch_ext.checks import flag, one_number, short, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, Space, require_same_kind
from botorch_ext.domains.contexts import ContextLike, ContextSpace, as_context_space, with_context
from botorch_ext.domains.outside import outside_point
from botorch_ext.exceptions import (
    KernelBoundWarning,
    NoModelError,
    NoObservationsError,
    OutsideDomainError,
    OutsideDomainWarning,
)
from botorch_ext.predictions.expected_gain import ExpectedGain, gain_of
from botorch_ext.predictions.importance import Importance, sobol_indices
from botorch_ext.predictions.mixture import GPMixture
from botorch_ext.predictions.predictions import LEVELS, Predictions
from botorch_ext.predictions.recommendation import Recommendation, recommendation
from botorch_ext.ranks import highest_first
from botorch_ext.state import Immutable, Log, shallow
from botorch_ext.strategies.action_sets import Actions, Choices
from botorch_ext.strategies.constructor_arguments import Arguments, recorded
from botorch_ext.strategies.event_checks import (
    abandoned,
    are_members,
    corrected,
    id_of,
    require_point,
    told,
)
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    History,
    Told,
    Trial,
    as_told_right,
    copied,
    is_outside_domain,
)
from botorch_ext.strategies.first_points import FirstPoints
from botorch_ext.strategies.initial_checks import checked_data
from botorch_ext.strategies.named_points import Points, joint_rows
from botorch_ext.strategies.noted_warnings import NotedWarnings, level_of_the_caller

# The most trials of one ask, which would take hours.
_MOST_TRIALS = 100_000
# How many evaluated points join the screening of a box.
_NUM_INCUMBENTS = 8


class Strategy(NotedWarnings):
    """A strategy decides what to evaluate next.

    Its state follows entirely from its event log. An event replaces the state instead of changing
    it: `_decide` and `_absorb` work on a `successor`, which becomes the state once they are done.
    A call that breaks off therefore leaves the state as it was. Replaying `events` on a new
    strategy with the same arguments runs no optimisation, and the next trial is the same, bit for
    bit, on the same machine.

    A subclass implements `_decide` (what to ask), `_absorb` (how an event changes the state),
    `evaluated_means`, and `_recall` if `_absorb` needs more than the event. Random choices draw
    from ``self._seed_of(step)``, so that they depend only on the seed and the step. Attributes that
    are lists, dicts or sets may be changed in place, but not what they hold. Other attributes that
    change are a `State`, or are replaced. Parts that were read before an event, such as `bases` of
    a master, belong to the earlier state and are not updated.

    Args:
        domain: The actions: a `Box`, its bounds, a `Space` or a `FiniteSet`.
        seed: The seed of every random choice.
        initial: ``(X, Y)``, data the user already has, ``n x d`` and ``n x 1`` or ``n``; they count
            as steps. With contexts, ``X`` is ``n x (d + d_z)``, actions first. Without contexts,
            ``X`` may be a list of dicts of values by name.
        num_initial: How many Sobol points are asked first; they count as steps. On a finite set
            they are random members, and random actions where an ask is given actions. None is
            allowed where `least_initial` is positive: initial points are then asked until that many
            results are given, told, attached or pending.
        context_domain: The contexts, if every ask needs one: a domain, their dimension d_z, or a
            `ContextSpace`. None: there are no contexts.

    Raises:
        ValueError: Initial data have the wrong shape, are not finite or lie outside the domain; the
            seed is no whole number; or a count is negative.
    """

    #: Whether the actions may change from step to step.
    takes_actions: bool = False
    #: Whether the candidates may be divided among processes, by a `ShardedSet`.
    takes_shards: bool = False
    #: Whether a `Box` may have whole numbers, categories, constraints or other scales.
    takes_spaces: bool = False
    #: How many results there must be before the models choose; 0 for a method that is told the
    #: number of initial points.
    least_initial: int = 0
    #: Whether results outside a `Box` may be attached, so that the models learn from them.
    takes_outside: bool = False
    #: Why the method refuses attached results; None if it takes them.
    refuses_attached: str | None = None
    #: Whether the seed decides what is asked, not only where a search looks.
    is_random: bool = False
    #: Why the next trial depends on the number of trials before it; None if it depends only on
    #: the data.
    depends_on_trial_number: str | None = None
    #: Why a correction may change the model although it changes no value; None if it cannot.
    refits_after_correction: str | None = None
    #: Why a context may have no best point although other contexts have results; None if it
    #: always has one.
    separates_contexts: str | None = None
    #: The context manager in which events happen, such as one that limits threads.
    within: Callable[..., AbstractContextManager[Any]] = nullcontext
    #: The arguments that the strategy was made with.
    arguments: Arguments

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
        num_initial: int | None = 0,
        context_domain: Domain | int | ContextSpace | None = None,
    ) -> None:
        super().__init__()
        self.history = History()
        # What `_decide` computed for `_absorb`, for the same trial.
        self._ahead: Any = None
        # This state before its first event; None while there is none.
        self._first: _First | None = None
        # Whether values differ from those by which recorded trials were chosen.
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
        self.initial = None if initial is None else checked_data(domain, initial, space)
        if space is not None and space.dim is None and self.initial is not None:
            space = replace(space, dim=self.initial[0].shape[-1] - domain.dim)
        self.context_space = space
        num_given = 0 if self.initial is None else len(self.initial[1])
        self._first_points = FirstPoints(
            domain, self.seed, num_initial, self.least_initial, num_given
        )

    def __repr__(self) -> str:
        """The state after the last event, in a few lines."""
        return "\n  ".join([type(self).__name__, *self.history.lines])

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
        """Asks what to evaluate next.

        Args:
            num_trials: The size of the batch, or None for one trial.
            context: ``d_z``, the context, which is seen and not chosen at this step; needed exactly
                if the strategy has a ``context_domain``.
            actions: ``m x d`` points of the domain, the actions available at this step; None for
                the whole domain.

        Returns:
            A `Trial`, or a list of trials if ``num_trials`` is given.

        Raises:
            ValueError: ``num_trials`` is less than 1 or more than 100,000; the context is missing,
                not expected, of the wrong size, not finite or outside the context domain; there is
                no action, an action lies outside the domain, or the method always chooses from the
                whole domain.
            WaitingForObservations: The method must first be told something.
            HorizonReached: The method has not that many trials left.
        """
        num = 1 if num_trials is None else num_trials
        after, trials = self._after_asking(num, "num_trials", context, actions)
        self._become(after)
        # Whatever the caller does to the answer, the record stays as it is.
        asked = [trial.copy() for trial in trials]
        return asked[0] if num_trials is None else asked

    def tell(self, id: int | Trial, value: float) -> None:
        """Answers a trial, in any order, at any time.

        Args:
            id: The trial, or its id.
            value: The observation; larger is better.

        Raises:
            UnknownTrialError: The trial was never asked, or is already told or abandoned.
            ValueError: The value is no number, NaN or infinite.
        """
        self._happen(told(id_of(id, self.history.trials), value))

    def abandon(self, id: int | Trial, failed: bool = False) -> None:
        """Gives up on a trial: it leaves `pending` and is no data.

        Args:
            id: The trial, or its id.
            failed: Whether its evaluation failed. Methods that take account of pending trials then
                treat it as pending for ever, so that they look elsewhere.

        Raises:
            UnknownTrialError: The trial was never asked, or is already told or abandoned.
            ValueError: ``failed`` is no bool.
        """
        self._happen(abandoned(id_of(id, self.history.trials), failed))

    def attach(
        self, x: Any, value: float, context: ContextLike | None = None, *, outside: bool = False
    ) -> Trial:
        """Adds a result that was not asked for. The result is an observation like those of
        ``initial``, and counts as no choice of any model.

        Args:
            x: The ``d``-dim point, or a dict of its values by name, as ``params`` of a trial.
            value: The observation; larger is better.
            context: ``d_z``, the context of the result; needed exactly if the strategy has a
                ``context_domain``.
            outside: Whether a point outside the domain is kept as data, if the method
                `takes_outside`. The model learns from the point, which is never asked, recommended
                or the best. It may lie beyond bounds, between steps, or where constraints do not
                hold.

        Returns:
            The trial of the result, with the next id. Its info has ``"attached": True``, on a
            finite set the row as ``"index"``, and outside the domain ``"outside": True``.

        Raises:
            OutsideDomainError: The point lies outside the domain.
            ValueError: The context is one that `ask` would refuse, the value is no number, NaN or
                infinite, or the method refuses attached results.
        """
        id, context = len(self.history.trials), self.checked_context(context)
        try:
            X, mark = self.domain.require_contains(x, "x"), {}
        except OutsideDomainError as error:
            if not flag(outside, "outside"):
                raise
            self._require_outside(
                f"{error}; {type(self).__name__} learns from points of its domain"
            )
            X, mark = outside_point(cast(Box, self.domain), x)[None], {"outside": True}
        if len(X) != 1:
            raise ValueError(f"x must be one point, got {len(X)}")
        info = self._info_of_attached(X, context) | mark
        trial = Trial(id, X[0].detach().clone(), context, info, self.domain)
        self._happen(Attached(trial, one_number(value, "value", f" for trial {id}")))
        return trial.copy()

    def correct(self, id: int | Trial, value: float) -> None:
        """Replaces a told or attached value that was wrong. The trials that were asked stay. All
        that is computed from values is computed again, as if the right value had been told at
        first. Hyperparameters that were fitted are fitted again at the next ask.

        Args:
            id: The trial, or its id.
            value: The right observation.

        Raises:
            UnknownTrialError: The trial has no value, or is one of another strategy.
            ValueError: The value is no number, NaN or infinite.
        """
        self._happen(corrected(id_of(id, self.history.trials), value))

    # --- events -----------------------------------------------------------------------------------

    def replay(self, events: Iterable[Event]) -> None:
        """Applies recorded events. The state is then that of the strategy that recorded them. Parts
        of the strategy that were read before, such as bases, are not updated.

        Args:
            events: `events` of a strategy that was made with the same arguments. Their ids,
                membership of the domain, finite values and types are checked. Whether the method
                would have asked the same trials is not checked.

        Raises:
            ValueError: An event cannot follow the events before it, or a trial does not belong to
                the domain. None of the events is then applied.
        """
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise ValueError(f"events must be those of a strategy, got {short(events)}")
        events = [copied(event) for event in self.checked(list(events))]
        after = self.clone()
        after.follow(events)
        after._raise_warnings()
        vars(self).update(vars(after))

    def follow(self, events: Sequence[Event]) -> None:
        """Applies events without the copies that `replay` makes, so that they belong to the
        strategy from now on. Up to the last correction, events are applied once, as if every value
        had been told right. Their warnings are left to `take_warnings`.

        Args:
            events: Events, as for `replay`.

        Raises:
            ValueError: As `replay`; the event that is wrong and the events after it are not
                applied.
        """
        checked, num_first = self.checked(events), _num_until_corrected(events)
        if num_first:
            try:
                first = [*self.history.events, *islice(checked, num_first)]
                vars(self).update(vars(self._corrected(first)))
            except ValueError:  # apply one after the other, to stop at the event that is wrong
                checked = self.checked(events)
        for event in checked:
            vars(self).update(vars(self.after(event)))

    def checked(self, events: Sequence[Event]) -> Iterator[Event]:
        """Events from elsewhere, each checked when the caller takes it.

        Args:
            events: The events.

        Raises:
            ValueError: An event can follow no events, or its point lies in another domain.
        """
        known = are_members(events, self.domain)
        for event in events:
            yield self._checked(event, known)

    @property
    def events(self) -> tuple[Event, ...]:
        """A copy of all events, in order."""
        return tuple(copied(event) for event in self.history.events)

    @property
    def pending(self) -> list[int]:
        """The ids of pending trials: asked, and neither told nor abandoned."""
        return self.history.pending

    def clone(self) -> Self:
        """A copy of the strategy in the same state, independent from now on."""
        return deepcopy(self)

    def after(self, event: Event) -> Self:
        """The successor of this state after an event. Its warnings are not yet raised.

        Args:
            event: The event.

        Raises:
            UnknownTrialError: The trial is not pending.
            ValueError: The event cannot come now, or the trial does not record what this method
                records.
        """
        after = self.successor()
        with after.within(after):
            after._take(event)
        return after

    def check_event(self, event: Event) -> None:
        """Raises an error unless the event can come now, and changes nothing.

        Args:
            event: The event.

        Raises:
            UnknownTrialError: The trial is not pending.
            ValueError: The event cannot come now.
        """
        if isinstance(event, Attached) and self.refuses_attached is not None:
            who = type(self).__name__
            raise ValueError(f"{who} takes no attached results: {self.refuses_attached}")
        self.history.check(event)

    def successor(self) -> Self:
        new = super().successor()
        if not self.history.events:
            new._first = _First(self)
        return new

    # --- what was found ---------------------------------------------------------------------------

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The told, attached or initial point with the highest posterior mean, and that mean.

        Args:
            context: ``d_z``, the context at which the means of all evaluated actions are compared.
                None: each action is compared at the context it was evaluated in.

        Returns:
            The ``d``-dim point and its mean.

        Raises:
            NoObservationsError: Nothing was evaluated yet.
            ValueError: The context is one that `ask` would refuse.
        """
        X, _ = self.evaluated()
        if context is not None:
            X = with_context(X[:, : self.domain.dim], self.checked_context(context))
        inside = self._are_inside(len(X))
        if not bool(inside.any()):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        mean = self.evaluated_means() if context is None else self.means_at(X)
        top = int(mean.masked_fill(~inside, -math.inf).argmax())
        return X[top, : self.domain.dim].clone(), float(mean[top])

    def best_params(self, context: ContextLike | None = None) -> dict[str, Any]:
        """The point that `best` gives, by name, as ``params`` of a trial.

        Args:
            context: As for `best`.

        Raises:
            NoObservationsError: Nothing was evaluated yet.
            ValueError: The context is one that `ask` would refuse.
        """
        return self.domain.params_of(self.best(context)[0])

    def predict(
        self,
        points: Points,
        *,
        context: ContextLike | None = None,
        levels: Sequence[float] = LEVELS,
    ) -> Predictions:
        """Predicts f, and an observation, at points from the told data.

        A method with one GP predicts a normal distribution. A method with several GPs predicts
        their mixture: `integrated_ei` over its hyperparameter samples, a set of candidate models
        over the models that are not eliminated, weighted by their marginal likelihoods. Pending
        trials have no effect.

        Points outside a `Box` are predicted with a warning if the method `takes_outside`. The model
        extrapolates there.

        Args:
            points: Trials, ``n x d`` points, or one of either; or points by name: a dict, a list of
                dicts or a pandas data frame.
            context: ``d_z``, where the strategy takes contexts. None: each trial keeps its own
                context.
            levels: The probabilities of the quantiles, between 0 and 1.

        Returns:
            `Predictions`, in the units of the observations.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: The model has no scale before it knows an observation.
            OutsideDomainError: A point lies outside the domain, and the method does not
                `takes_outside`, or no model can say anything there: the point has an unknown
                choice, or a space has conditions.
            ValueError: A context is one that `ask` would refuse, or levels are not between 0 and 1.

        Warns:
            OutsideDomainWarning: Points lie outside the domain; the message has their rows.
        """
        rows, checked, outside = joint_rows(
            points, self.domain, context, self.checked_context, self.takes_outside
        )
        found = Predictions.of(self._mixture(checked), rows, self.domain, levels)
        if outside:
            warnings.warn(
                f"{len(outside)} of {len(rows)} points lie outside the domain, where the model "
                f"extrapolates: rows {short(outside)}, counted from 0",
                OutsideDomainWarning,
                stacklevel=level_of_the_caller(),
            )
        return found

    def recommended(self, context: ContextLike | None = None) -> Recommendation:
        """The point to settle for now, with its prediction and the posterior probability that no
        evaluated point is better. If the method has ``recommend``, its point is taken, which need
        not have been evaluated; else the point of `best`.

        Args:
            context: ``d_z``, where the strategy takes contexts.

        Returns:
            A `Recommendation`, in the units of the observations.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: Nothing was evaluated yet.
            ValueError: The context is one that `ask` would refuse.
        """
        checked = self.checked_context(context)
        mixture, evaluated = self._mixture(checked), self._evaluated_actions(checked)
        if not len(evaluated):
            raise NoObservationsError("recommended needs at least one evaluated point, got none")
        x, _ = getattr(self, "recommend", self.best)(context)
        return recommendation(
            mixture,
            with_context(x, checked),
            with_context(evaluated, checked),
            self.domain,
            self._seed_of(len(self.history.trials)),
        )

    def expected_gain(
        self,
        num: int = 1,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> ExpectedGain:
        """The expected gain of the next batch, to be compared with the noise: it helps to decide
        when to stop. The batch is the one that `ask` would give now, and is not asked.

        Args:
            num: The size of the batch.
            context: As for `ask`.
            actions: As for `ask`.

        Returns:
            An `ExpectedGain`, whose docstring has the definition.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: Nothing was evaluated yet.
            ValueError: `ask` would refuse an argument.
            WaitingForObservations: As `ask`.
            HorizonReached: As `ask`.
        """
        checked = self.checked_context(context)
        mixture, evaluated = self._mixture(checked), self._evaluated_actions(checked)
        if not len(evaluated):
            raise NoObservationsError("expected_gain needs at least one evaluated point, got none")
        _, trials = self._after_asking(num, "num", context, actions)
        batch = torch.stack([trial.x for trial in trials])
        pending = [self.history.trials[id].x for id in self.pending]
        return gain_of(
            mixture,
            with_context(torch.cat([evaluated, *(x[None] for x in pending)]), checked),
            with_context(batch, checked),
            self.domain,
            self._seed_of(len(self.history.trials)),
        )

    def importance(
        self, context: ContextLike | None = None, *, num_samples: int = 2048
    ) -> Importance:
        """The share of the variance of the posterior mean over the space that each parameter
        explains.

        Args:
            context: ``d_z``, where the strategy takes contexts: the context whose posterior mean
                counts.
            num_samples: N, a power of 2 from 64 on; the mean is computed at N (d + 2) points.

        Returns:
            An `Importance`, whose docstring has the definition.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: The model has no scale before it knows an observation.
            ValueError: The domain is no `Box`, or the context is one that `ask` would refuse.
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
        """What the strategy did and knows, as plain numbers, strings and lists.

        Returns:
            A dict with the keys ``strategy``, the name of the class; ``num_asked`` and
            ``num_told``, how many trials were asked and told; ``num_initial``, how many initial
            points are asked first; ``num_initial_data``, the number of rows of ``initial``;
            ``pending``, ``abandoned``, ``failed``, ``attached`` and ``corrected``, the ids of such
            trials, where ``failed`` are among the abandoned; ``best``, the point ``x`` that `best`
            gives, its ``mean``, and in a `Space` its ``params``, or None; ``best_observation``, the
            largest observation at a point of the domain, or None; and ``warnings``, the messages of
            all warnings so far. Subclasses add keys.
        """
        X, Y = self.evaluated()
        summary: dict[str, Any] = {
            "strategy": type(self).__name__,
            "num_asked": self.history.num_asked,
            "num_told": len(self.history.values) - len(self.history.attached),
            "num_initial": self._first_points.num,
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
        inside = self._are_inside(len(X))
        if bool(inside.any()):
            x, mean = self.best()
            summary["best"] = {"x": x.tolist(), "mean": mean}
            if isinstance(self.domain, Space):
                summary["best"]["params"] = self.domain.params_of(x)
            summary["best_observation"] = float(Y[inside].max())
        return summary

    def evaluated(self) -> tuple[Tensor, Tensor]:
        """The initial, told and attached data.

        Returns:
            The points, ``n x d`` or with contexts ``n x (d + d_z)``, and their ``n`` values.
        """
        like = self.domain.like
        X, Y = self.history.told_points(like)
        if self.initial is None:
            return X, Y
        if not len(X):
            return self.initial
        return torch.cat([self.initial[0], X]), torch.cat([self.initial[1], Y])

    @abstractmethod
    def evaluated_means(self) -> Tensor:
        """The ``n`` posterior means at the points of `evaluated`, in its order."""

    def means_at(self, X: Tensor) -> Tensor:
        """The ``n`` posterior means at ``n x (d + d_z)`` joint rows; for strategies with
        contexts."""
        raise NotImplementedError

    def _incumbents(self) -> Tensor:
        """The evaluated actions with the largest observations."""
        X, Y = self.evaluated()
        if self.history.outside:  # a mask makes a GPU's host wait
            inside = self._are_inside(len(X))
            X, Y = X[inside], Y[inside]
        return X[highest_first(Y, _NUM_INCUMBENTS), : self.domain.dim]

    def _are_inside(self, num: int) -> Tensor:
        """A mask of the ``num`` points of `evaluated` that lie in the domain."""
        inside = torch.ones(num, dtype=torch.bool, device=self.domain.device)
        if self.history.outside:
            first = num - len(self.history.values)
            inside[first:] = inside.new_tensor(
                [id not in self.history.outside for id in self.history.values]
            )
        return inside

    # --- for strategies that use this one as a base, and for plots --------------------------------

    def check_joint(self, X: Tensor) -> None:
        """Raises a ValueError unless the model takes joint rows of this shape,
        ``n x (d + d_z)``."""

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        """Raises `WaitingForObservations` or `HorizonReached` if the method cannot ask that many
        trials now for these choices. It is called before anything is asked, and changes
        nothing."""

    def checked_context(self, context: ContextLike | None, name: str = "context") -> Tensor | None:
        """A context as a ``d_z``-dim tensor, or None without contexts. The ValueError of a wrong
        context names the argument."""
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
        """The name of a method that takes no actions, in the error of an ask with actions."""
        return f"{type(self).__name__}, whose actions never change"

    def next_trial(self, choices: Choices) -> Trial:
        """The next trial, for these choices, as `ask` records it."""
        id = len(self.history.trials)
        if self._first_points.include(self.history, id):
            seed = self._seed_of(self.history.asked_before(id))
            x, info = self._first_points.at(self.history, id, choices, seed)
        else:
            x, info = self._decide(choices)
        return Trial(id, x, choices.context, info, self.domain)

    def check_recorded(self, trial: Trial, is_member: bool = False) -> None:
        """Raises a ValueError unless a trial from elsewhere fits the domain and the contexts.
        ``is_member`` says that its point is known to lie in the domain, at its index."""
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
        """Raises a ValueError unless a trial from elsewhere can have been attached."""
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
        """The next point, and the info of its trial. This method may change the state only in ways
        that `_recall` and `_absorb` repeat when the trial is replayed."""

    def _after_asking(
        self, num: Any, name: str, context: ContextLike | None, actions: Actions | None
    ) -> tuple[Self, list[Trial]]:
        """The state after ``num`` more trials were asked, and these trials. This state stays as it
        is. The error of a wrong number names the argument."""
        choices = self._checked_choices(context, actions)
        num = whole_number(num, name, least=1)
        if num > _MOST_TRIALS:
            raise ValueError(f"{name} must be at most {_MOST_TRIALS}, got {short(num)}")
        self.require_askable(num, choices)
        after = self.successor()
        return after, [after._asked(choices) for _ in range(num)]

    def _mixture(self, context: Tensor | None) -> GPMixture:
        """The model of f given the told data, for a ``d_z``-dim context or without contexts."""
        raise NoModelError(
            f"{type(self).__name__} has no model of the objective, and predicts nothing"
        )

    def _evaluated_actions(self, context: Tensor | None) -> Tensor:
        """The ``n x d`` evaluated points that are compared in a ``d_z``-dim context, or without
        contexts."""
        X = self.evaluated()[0][:, : self.domain.dim]
        return X[self._are_inside(len(X))]

    def _asked(self, choices: Choices) -> Trial:
        """Decides the next trial and applies its event."""
        with self.within(self):
            trial = self.next_trial(choices)
            self._apply(Asked(trial))
        return trial

    def _is_play(self, id: int) -> bool:
        """Whether the method chose a trial, which may be the next one. It did not choose attached
        trials and initial points."""
        is_first = self._first_points.include(self.history, id)
        return not is_first and not self.history.is_attached(id)

    def _require_outside(self, message: str) -> None:
        """Raises an `OutsideDomainError` unless points outside the domain may be data."""
        if not (self.takes_outside and isinstance(self.domain, Box)):
            raise OutsideDomainError(message)

    def _info_of_attached(self, X: Tensor, context: Tensor | None) -> dict[str, Any]:
        """The info of a trial that is attached, at one point, ``1 x d``."""
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
        """Whether k(x, x) is checked when trials are asked, because `probes_of` knows too little
        about the contexts."""
        return self.context_space is not None and self.context_space.domain is None

    @property
    def _context_dim(self) -> int | None:
        """d_z; 0 without contexts, None while it is unknown."""
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
        """The seed of one step, which is the same if earlier steps were replayed."""
        return (self.seed * 1_000_003 + step) % 2**31

    def _recall(self, trial: Trial) -> Any:
        """What `_decide` left in `_ahead` when a trial was asked, from what the trial records. A
        LookupError, TypeError or ValueError says that the trial does not record what `_absorb`
        needs in the right form. Whether the method would ask the trial is not checked."""

    @abstractmethod
    def _absorb(self, event: Event) -> None:
        """Changes this state for the last event of the history. The state is a successor that
        nobody else uses."""

    def _take_as_asked(self, is_corrected: bool) -> None:
        """Sets whether values differ from those by which trials were chosen. Numbers in records
        that depend on values are then computed again."""
        self._is_corrected = is_corrected

    def _forget_fits(self, id: int) -> None:
        """Forgets what was fitted to the value of a trial that is now corrected."""

    # --- applying events --------------------------------------------------------------------------

    def _checked(self, event: Event, is_member: bool) -> Event:
        """A checked event from elsewhere; a ValueError if it can follow no events. ``is_member`` is
        that of `check_recorded`."""
        match event:
            case Asked(trial):
                self.check_recorded(trial, is_member)
                return event
            case Told(id, value):
                return told(id, value)
            case Abandoned(id, failed):
                return abandoned(id, failed)
            case Attached(trial, value):
                self._check_attached(trial, is_member)
                return Attached(trial, one_number(value, "value", f" for trial {trial.id}"))
            case Corrected(id, value):
                return corrected(id, value)
        raise ValueError(f"events must be those of a strategy, got a {type(event).__name__}")

    def _happen(self, event: Event) -> None:
        self._become(self.after(event))

    def _prepare(self, event: Event) -> None:
        """Checks an event from elsewhere, and recalls what was decided with it."""
        self.check_event(event)
        if not isinstance(event, Asked) or not self._is_play(event.trial.id):
            return
        try:
            self._ahead = self._recall(event.trial)
        except (LookupError, TypeError) as error:
            raise ValueError(
                f"info of trial {event.trial.id} must be what {type(self).__name__} records, got "
                f"{short(event.trial.info)}"
            ) from error

    def _take(self, event: Event) -> None:
        """Checks an event from elsewhere and changes this state for it."""
        self._prepare(event)
        self._apply(event)

    def _apply(self, event: Event) -> None:
        """Changes this state for an event that was checked."""
        if isinstance(event, Asked | Attached) and event.trial.domain is not self.domain:
            event = replace(event, trial=replace(event.trial, domain=self.domain))
        self.history = self.history.after(event)
        if isinstance(event, Corrected):
            vars(self).update(vars(self._corrected(self.history.events)))
        else:
            self._absorb(event)
        self._ahead = None

    def _corrected(self, events: Sequence[Event]) -> Self:
        """The state after all events. Up to the last correction they are applied as if every value
        had been told right. Warnings that were raised before are not raised again."""
        first_state = _First(self) if self._first is None else self._first
        after: Self = first_state.state.clone()
        after._first = first_state
        first = events[: _num_until_corrected(events)]
        after._take_as_asked(True)
        for event in as_told_right(first):
            with after.within(after):
                if isinstance(event, Corrected):
                    after.check_event(event)
                    after._forget_fits(event.id)
                else:
                    after._take(event)
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
        """Replaces this state by a later one, then raises its warnings: if a filter makes a warning
        an error, the event has happened all the same."""
        vars(self).update(vars(after))
        if self._unraised:
            self._raise_warnings()


class _First(Immutable):
    """The state of a strategy before its first event."""

    def __init__(self, strategy: Strategy) -> None:
        self.state: Any = shallow(strategy)
        self.state._first = None


def _num_until_corrected(events: Sequence[Event]) -> int:
    """How many events there are up to the last correction."""
    places = range(len(events), 0, -1)
    return next((place for place in places if isinstance(events[place - 1], Corrected)), 0)
