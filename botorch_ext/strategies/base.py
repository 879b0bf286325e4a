"""Base of all strategies: ask and tell, events, what was found and what is warned of."""

from __future__ import annotations

import math
import sys
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
from botorch_ext.domains.outside_points import outside_point
from botorch_ext.exceptions import (
    KernelBoundWarning,
    NoModelError,
    NoObservationsError,
    OutsideDomainError,
)
from botorch_ext.predictions.expected_gain import ExpectedGain, gain_of
from botorch_ext.predictions.importance import Importance, sobol_indices
from botorch_ext.predictions.mixture import GPMixture
from botorch_ext.predictions.predictions import LEVELS, Predictions
from botorch_ext.predictions.recommendation import Recommendation, recommendation
from botorch_ext.ranks import highest_first
from botorch_ext.state import Immutable, Log, State, shallow
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

# Trials of one ask: more would take hours.
_MOST_TRIALS = 100_000
# Evaluated points that join the screening of a box.
_NUM_INCUMBENTS = 8


class Strategy(State):
    """Decides what to evaluate next.

    The state follows from the events alone, and is replaced rather than changed: `_decide` and
    `_absorb` work on a `successor`, which becomes the state once they are done. So a call that
    breaks off leaves the state as it was, and replaying `events` on a freshly made strategy costs
    no optimisation and gives the same next question bit for bit on the same machine.

    A subclass implements `_decide` (what to ask), `_absorb` (how an event changes the state),
    `evaluated_means`, and `_recall` where `_absorb` needs more than the event. Random
    choices draw from ``self._seed_of(step)``, so that they depend on the seed and the step alone.
    Lists, dicts and sets that are attributes may be changed in place, what they hold may not;
    other values that change are a `State`, or are replaced. Parts that were read before an event,
    such as `bases` of a master, belong to the state of that time and do not follow.

    Args:
        domain: Where actions live: a `Box`, its bounds, a `Space` or a `FiniteSet`.
        seed: Seeds every random choice.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``; it counts as
            steps. With contexts ``X`` is ``n x (d + d_z)``, actions first; without, it may be a
            list of dicts of values by name.
        num_initial: Sobol points (of a finite set: random members; where an ask is given actions,
            a random one of those) asked first; they count as steps. None, where `least_initial` is
            positive: as long as fewer results than that are there, given, told or attached, or
            pend.
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
    #: How many results there should be before its models choose; 0 for a method that is told how
    #: many points come first.
    least_initial: int = 0
    #: Whether results outside of a `Box` may be attached: its models learn from them.
    takes_outside: bool = False
    #: Why results that were not asked for are refused; None where they are taken.
    refuses_attached: str | None = None
    #: Whether the seed decides what is asked besides where a search looks.
    is_random: bool = False
    #: Why the next question depends on the number of trials before it, not on the data alone;
    #: None where it depends on the data alone.
    depends_on_trial_number: str | None = None
    #: Why a correction may change what is known although it changes no value; None where not.
    refits_after_correction: str | None = None
    #: Why a context may have no best point although there are results of others; None where not.
    separates_contexts: str | None = None
    #: What events happen in, given this state: they may want few threads.
    within: Callable[..., AbstractContextManager[Any]] = nullcontext
    #: What it was made with.
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
        self.warnings: list[str] = []
        # Warnings that are yet to be raised.
        self._unraised: list[tuple[str, type[Warning]]] = []
        self._noted: set[type[Warning]] = set()
        self.history = History()
        # What `_decide` has worked out that `_absorb` needs for the same trial.
        self._ahead: Any = None
        # This state before its first event; None while there is none.
        self._first: _First | None = None
        # Whether values are others than those by which recorded trials were chosen.
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
            ValueError: ``num_trials`` is less than 1 or more than 100,000; a context that is
                missing, not expected, of the wrong size, not finite or none of the context domain;
                no action, actions outside the domain, or a method that always chooses from all of
                it.
            WaitingForObservations: The method must be told something first.
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
            failed: Whether its evaluation failed. Methods that treat pending trials as more than
                nothing then treat it as a pending one for ever, so that they look elsewhere.

        Raises:
            UnknownTrialError: The trial was never asked, or is already told or abandoned.
            ValueError: ``failed`` is no bool.
        """
        self._happen(abandoned(id_of(id, self.history.trials), failed))

    def attach(
        self, x: Any, value: float, context: ContextLike | None = None, *, outside: bool = False
    ) -> Trial:
        """Adds a result that was not asked for. It is an observation like those of ``initial``, and
        no play of any model.

        Args:
            x: The ``d``-dim point, or a dict of its values by name, as ``params`` of a trial.
            value: The observation; larger is better.
            context: ``d_z``, what was seen; needed exactly where the strategy has a
                ``context_domain``.
            outside: Whether a point outside the domain is kept as data, where the method
                `takes_outside`: its model learns from it, and it is never asked, recommended or
                the best. It may lie beyond bounds, between steps, or where constraints do not
                hold.

        Returns:
            The trial that has it, with the next id and ``{"attached": True}`` as info, on a finite
            set with the row as ``index``, outside the domain with ``{"outside": True}``.

        Raises:
            ValueError: A point outside the domain, a context that `ask` would refuse, a value that
                is no number, NaN or infinite, or a method that cannot use what it did not ask for.
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
        """Replaces a value that was told, or attached, and was wrong. What was asked stands; what
        is computed from values is computed again, as if the value had been told right in the first
        place. Hyperparameters that were fitted are fitted anew at the next ask.

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
        """Applies recorded events: the state is then that of the strategy that recorded them. Parts
        of the strategy that were read before, such as bases, are then no longer its own.

        Args:
            events: `events` of a strategy that was made with the same arguments. What its trials
                record is trusted: ids, membership of the domain, finite values and the types of
                what is read are checked, and not whether the method would have asked the same.

        Raises:
            ValueError: An event that cannot follow the ones before it, or a trial that does not
                belong to the domain. Whatever is raised, none of the events is then applied.
        """
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise ValueError(f"events must be those of a strategy, got {short(events)}")
        events = [copied(event) for event in self.checked(list(events))]
        after = self.clone()
        after.follow(events)
        after._raise_warnings()
        vars(self).update(vars(after))

    def follow(self, events: Sequence[Event]) -> None:
        """Applies events without the copies that `replay` makes: they are the strategy's from now
        on. Up to the last correction they are applied once, as if every value had been told right.
        Their warnings are left to `take_warnings`.

        Raises:
            ValueError: As `replay`; the event that is wrong and those after it are not applied.
        """
        checked, num_first = self.checked(events), _num_until_corrected(events)
        if num_first:
            try:
                first = [*self.history.events, *islice(checked, num_first)]
                vars(self).update(vars(self._corrected(first)))
            except ValueError:  # one after the other, to stop at the one that is wrong
                checked = self.checked(events)
        for event in checked:
            vars(self).update(vars(self.after(event)))

    def checked(self, events: Sequence[Event]) -> Iterator[Event]:
        """Events from elsewhere, each checked when it is its turn, after those before it were
        applied or not.

        Raises:
            ValueError: One that can follow no events, or is of another domain.
        """
        known = are_members(events, self.domain)
        for event in events:
            yield self._checked(event, known)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order; a copy."""
        return tuple(copied(event) for event in self.history.events)

    @property
    def pending(self) -> list[int]:
        """Ids asked and neither told nor abandoned."""
        return self.history.pending

    def clone(self) -> Self:
        """A strategy in the same state that goes its own way from here."""
        return deepcopy(self)

    def after(self, event: Event) -> Self:
        """The successor of this state after an event, whose warnings it has yet to raise.

        Raises:
            UnknownTrialError: The trial is not pending.
            ValueError: An event that cannot come now, or a trial whose record is none of this
                method.
        """
        after = self.successor()
        with after.within(after):
            after._take(event)
        return after

    def check_event(self, event: Event) -> None:
        """Raises, and changes nothing, unless the event can come now.

        Raises:
            UnknownTrialError: The trial is not pending.
            ValueError: An event that cannot come now.
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
        inside = self._are_inside(len(X))
        if not bool(inside.any()):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        mean = self.evaluated_means() if context is None else self.means_at(X)
        top = int(mean.masked_fill(~inside, -math.inf).argmax())
        return X[top, : self.domain.dim].clone(), float(mean[top])

    def best_params(self, context: ContextLike | None = None) -> dict[str, Any]:
        """The point that `best` gives, by name, as ``params`` of a trial."""
        return self.domain.params_of(self.best(context)[0])

    def predict(
        self,
        points: Points,
        *,
        context: ContextLike | None = None,
        levels: Sequence[float] = LEVELS,
    ) -> Predictions:
        """What the model of the told data predicts at points: of f, and of an observation there.

        A method of one GP predicts a normal distribution, one with several GPs their mixture:
        `integrated_ei` that of its hyperparameter samples, a set of candidate models that of those
        which are not eliminated, by their marginal likelihoods. Pending trials count for nothing.

        Args:
            points: Trials, ``n x d`` points of the domain, or one of either; points by name, as a
                dict, a list of dicts or a pandas data frame.
            context: ``d_z``, where the strategy takes contexts. None: trials are in their own.
            levels: The probabilities of the quantiles.

        Returns:
            `Predictions`, in units of the observations.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: The model has no scale before it knows an observation.
            ValueError: Points outside the domain, a context that `ask` would refuse, or levels that
                are not between 0 and 1.
        """
        rows, checked = joint_rows(points, self.domain, context, self.checked_context)
        return Predictions.of(self._mixture(checked), rows, self.domain, levels)

    def recommended(self, context: ContextLike | None = None) -> Recommendation:
        """The point to settle for now: that of ``recommend`` where the method has one, which need
        not have been evaluated, else that of `best`; with what is predicted there, and the
        posterior probability that it is as good as every evaluated point.

        Args:
            context: ``d_z``, where the strategy takes contexts.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: Nothing was evaluated yet.
            ValueError: A context that `ask` would refuse.
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
        """What the next batch is expected to gain, beside the noise: says when to stop. The batch
        is what `ask` would give now, and is not asked.

        Args:
            num: The size of the batch.
            context: As for `ask`.
            actions: As for `ask`.

        Returns:
            `ExpectedGain`, which has the definition.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: Nothing was evaluated yet.
            ValueError: What `ask` would raise.
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
            self.domain.dim,
            self._seed_of(len(self.history.trials)),
        )

    def importance(
        self, context: ContextLike | None = None, *, num_samples: int = 2048
    ) -> Importance:
        """How much of the variance of f over the space each parameter explains, by the posterior
        mean.

        Args:
            context: ``d_z``, where the strategy takes contexts: f is then that of this context.
            num_samples: N, a power of 2 from 64 on; the mean is computed at N (d + 2) points.

        Returns:
            `Importance`, which has the definition.

        Raises:
            NoModelError: The method has no model.
            NoObservationsError: The model has no scale before it knows an observation.
            ValueError: A domain that is no `Box`, or a context that `ask` would refuse.
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
        """What the strategy did and knows, as plain numbers, strings and lists."""
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
        """The initial, the told and the attached points, ``n x d`` or with contexts
        ``n x (d + d_z)``, and their ``n`` values."""
        like = self.domain.like
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

    def _incumbents(self) -> Tensor:
        """The evaluated actions with the largest observations."""
        X, Y = self.evaluated()
        if self.history.outside:  # a mask makes a GPU's host wait
            inside = self._are_inside(len(X))
            X, Y = X[inside], Y[inside]
        return X[highest_first(Y, _NUM_INCUMBENTS), : self.domain.dim]

    def _are_inside(self, num: int) -> Tensor:
        """Which of the ``num`` points of `evaluated` are points of the domain."""
        inside = torch.ones(num, dtype=torch.bool, device=self.domain.device)
        if self.history.outside:
            first = num - len(self.history.values)
            inside[first:] = inside.new_tensor(
                [id not in self.history.outside for id in self.history.values]
            )
        return inside

    # --- for strategies that play this one, and for pictures --------------------------------------

    def check_joint(self, X: Tensor) -> None:
        """A ValueError unless the model takes joint rows like these, ``n x (d + d_z)``."""

    def require_askable(self, num_trials: int, choices: Choices) -> None:
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
        """The trial that `ask` records for these choices."""
        id = len(self.history.trials)
        if self._first_points.include(self.history, id):
            seed = self._seed_of(self.history.asked_before(id))
            x, info = self._first_points.at(self.history, id, choices, seed)
        else:
            x, info = self._decide(choices)
        return Trial(id, x, choices.context, info, self.domain)

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
        if not is_member:
            require_point(trial, self.domain)

    def _check_attached(self, trial: Trial, is_member: bool) -> None:
        """A ValueError unless a trial from elsewhere can be one that was attached."""
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
        """The next point and what was known when it was chosen. It may change the state only in
        ways that `_recall` and `_absorb` repeat where the trial is replayed."""

    def _after_asking(
        self, num: Any, name: str, context: ContextLike | None, actions: Actions | None
    ) -> tuple[Self, list[Trial]]:
        """The state after ``num`` more trials are asked, and these; or an error that names the
        argument. This state stays as it is."""
        choices = self._checked_choices(context, actions)
        num = whole_number(num, name, least=1)
        if num > _MOST_TRIALS:
            raise ValueError(f"{name} must be at most {_MOST_TRIALS}, got {short(num)}")
        self.require_askable(num, choices)
        after = self.successor()
        return after, [after._asked(choices) for _ in range(num)]

    def _mixture(self, context: Tensor | None) -> GPMixture:
        """What is known of f from the told data, for a ``d_z``-dim context or for none."""
        raise NoModelError(
            f"{type(self).__name__} has no model of the objective, and predicts nothing"
        )

    def _evaluated_actions(self, context: Tensor | None) -> Tensor:
        """The ``n x d`` evaluated points that are compared in a ``d_z``-dim context, or in none."""
        X = self.evaluated()[0][:, : self.domain.dim]
        return X[self._are_inside(len(X))]

    def _asked(self, choices: Choices) -> Trial:
        """Decides the next trial and takes it in."""
        with self.within(self):
            trial = self.next_trial(choices)
            self._apply(Asked(trial))
        return trial

    def _is_play(self, id: int) -> bool:
        """Whether the method chose a trial, maybe the next one: it is neither attached nor one of
        the first points."""
        is_first = self._first_points.include(self.history, id)
        return not is_first and not self.history.is_attached(id)

    def _require_outside(self, message: str) -> None:
        """An `OutsideDomainError` unless points outside the domain may be data."""
        if not (self.takes_outside and isinstance(self.domain, Box)):
            raise OutsideDomainError(message)

    def _info_of_attached(self, X: Tensor, context: Tensor | None) -> dict[str, Any]:
        """What is recorded of one point, ``1 x d``, that was not asked for."""
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

    def _seed_of(self, step: int) -> int:
        """A seed for one step: the same whether the steps before it were made or replayed."""
        return (self.seed * 1_000_003 + step) % 2**31

    def _recall(self, trial: Trial) -> Any:
        """What `_decide` has left in `_ahead` when a trial was asked, from what the trial records.
        A LookupError, TypeError or ValueError says that it does not record what `_absorb` needs,
        in the right form; whether the method would ask it is not asked."""

    @abstractmethod
    def _absorb(self, event: Event) -> None:
        """Changes this state, a successor that nobody else has, for the last event of the
        history."""

    def _take_as_asked(self, is_corrected: bool) -> None:
        """Says whether values are others than those by which trials were chosen: what records say
        of values is then computed again."""
        self._is_corrected = is_corrected

    def _forget_fits(self, id: int) -> None:
        """Forgets what was fitted to the value of a trial that is now another."""

    # --- what happens -----------------------------------------------------------------------------

    def _checked(self, event: Event, is_member: bool) -> Event:
        """An event from elsewhere, or a ValueError where it can follow no events; ``is_member`` as
        for `check_recorded`."""
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
        """Checks an event that comes from elsewhere, and recalls what was decided with it."""
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
        """Changes this state for an event that can come now."""
        if isinstance(event, Asked | Attached) and event.trial.domain is not self.domain:
            event = replace(event, trial=replace(event.trial, domain=self.domain))
        self.history = self.history.after(event)
        if isinstance(event, Corrected):
            vars(self).update(vars(self._corrected(self.history.events)))
        else:
            self._absorb(event)
        self._ahead = None

    def _corrected(self, events: Sequence[Event]) -> Self:
        """The state after all events: up to the last correction they are applied as if every value
        had been told right. What was raised before is not raised again."""
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
        """Goes over to a later state. Its warnings come last: should one of them be made an error,
        what it warns of has happened all the same."""
        vars(self).update(vars(after))
        if self._unraised:
            self._raise_warnings()

    # --- warnings ---------------------------------------------------------------------------------

    def take_warnings(self) -> list[tuple[str, type[Warning]]]:
        """The messages and categories of the warnings that are yet to be raised, once."""
        taken, self._unraised = self._unraised, []
        return taken

    def expect(self, category: type[Warning]) -> None:
        """Warnings of this category are not raised, nor reported: whoever made the strategy knows
        of them."""
        self._noted.add(category)

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
        """Raises all of them; the first that a filter makes an error comes last, and tells of the
        other errors."""
        first = None
        for message, category in self.take_warnings():
            try:
                warnings.warn(message, category, stacklevel=_level_of_the_caller())
            except Warning as error:
                if first is None:
                    first = error
                else:
                    first.add_note(message)
        if first is not None:
            raise first


class _First(Immutable):
    """The state of a strategy before its first event."""

    def __init__(self, strategy: Strategy) -> None:
        self.state: Any = shallow(strategy)
        self.state._first = None


def _num_until_corrected(events: Sequence[Event]) -> int:
    """How many events there are up to the last correction."""
    places = range(len(events), 0, -1)
    return next((place for place in places if isinstance(events[place - 1], Corrected)), 0)


def _level_of_the_caller() -> int:
    """The ``stacklevel`` of the line that called this package."""
    level, frame = 1, sys._getframe(1)
    # Code that `exec` was given has no name.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("botorch_ext."):
        level, frame = level + 1, frame.f_back
    return level
