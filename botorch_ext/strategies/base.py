"""Base of all strategies: ask and tell."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, overload

from torch import Tensor

from botorch_ext.checks import one_number, seed_number, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, require_same_kind
from botorch_ext.domains.contexts import ContextLike, ContextSpace, as_context_space, with_context
from botorch_ext.exceptions import KernelBoundWarning
from botorch_ext.strategies.action_sets import Actions, Choices
from botorch_ext.strategies.admission import checked_data
from botorch_ext.strategies.arguments import Arguments, recorded
from botorch_ext.strategies.events import Asked, Attached, Trial
from botorch_ext.strategies.findings import Findings
from botorch_ext.strategies.first_points import FirstPoints
from botorch_ext.strategies.recorded_events import abandoned, corrected, require_point, told


class Strategy(Findings):
    """Decides what to evaluate next.

    A subclass implements `_decide` (what to ask, changing nothing that shows), `_absorb` (how an
    event changes its model), where a recorded trial can be wrong `_check_event`, and
    `evaluated_means`. Random choices draw from ``self._seed_of(step)``, so that they depend on the
    seed and the step alone. Attributes are state, and copied with it, unless they are `Immutable`.

    Args:
        domain: Where actions live: a `Box`, its bounds or a `FiniteSet`.
        seed: Seeds every random choice.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``; it counts as
            steps. With contexts ``X`` is ``n x (d + d_z)``, actions first.
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
        super().__init__()
        if num_initial is not None or not self.least_initial:
            num_initial = whole_number(num_initial, "num_initial", least=0)
        if isinstance(domain, Box) and not self.takes_spaces:
            domain.require_plain(type(self).__name__)
        self.domain = domain
        self.seed = seed_number(seed)
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
            ValueError: ``num_trials`` is less than 1; a context that is missing, not expected, of
                the wrong size, not finite or none of the context domain; no action, actions outside
                the domain, or a method that always chooses from all of it.
            WaitingForObservations: The method must be told something first.
            HorizonReached: The method has not that many trials left.
        """
        self._make_whole()
        choices = self._checked_choices(context, actions)
        if num_trials is None:
            self.require_askable(1, choices)
            return self._asked(1, choices)[0]
        num_trials = whole_number(num_trials, "num_trials", least=1)
        self.require_askable(num_trials, choices)
        return self._asked(num_trials, choices)

    def tell(self, id: int, value: float) -> None:
        """Answers a trial, in any order, at any time.

        Args:
            id: The id of the trial.
            value: The observation; larger is better.

        Raises:
            UnknownTrialError: The trial was never asked, or is already told or abandoned.
            ValueError: The value is no number, NaN or infinite.
        """
        self._apply(told(id, value))

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
        self._apply(abandoned(id, failed))

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
        self._apply(corrected(id, value))

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
        """What `ask` records for these choices; changes nothing that shows."""
        id = len(self.history.trials)
        if self._first_points.include(self.history, id):
            seed = self._seed_of(self.history.asked_before(id))
            x, info = self._first_points.at(self.history, id, choices, seed)
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
        if not is_member:
            require_point(trial, self.domain)

    def _check_attached(self, trial: Trial, is_member: bool) -> None:
        """A ValueError unless a trial from elsewhere can be one that was attached."""
        Strategy.check_recorded(self, trial, is_member)
        expected = self._info_of_attached(trial.x.unsqueeze(0), trial.context)
        if trial.info != expected:
            raise ValueError(f"info of trial {trial.id} must be {expected}, got {trial.info}")

    # --- for subclasses ---------------------------------------------------------------------------

    @abstractmethod
    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        """The next point and what was known when it was chosen. It may bring a model up to date
        with the events, and changes nothing else; should it fail, that is undone as well: events
        alone say when it happens, or rounding would differ in a replay."""

    def _asked(self, num_trials: int, choices: Choices) -> list[Trial]:
        asked = []
        for _ in range(num_trials):
            with self.within(self):
                trial = self._change(self.next_trial, choices)
            self._happen(Asked(trial))
            # Whatever the caller does to the answer, the record stays as it is.
            asked.append(trial.copy())
        self._raise_warnings()
        return asked

    def _is_play(self, id: int) -> bool:
        """Whether the method chose a trial, maybe the next one: it is neither attached nor one of
        the first points."""
        is_first = self._first_points.include(self.history, id)
        return not is_first and not self.history.is_attached(id)

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
