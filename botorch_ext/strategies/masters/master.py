"""Masters: strategies that hand each step to one of several base strategies."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, require_same_kind
from botorch_ext.domains.contexts import ContextLike, ContextSpace
from botorch_ext.exceptions import HorizonReached, NoObservationsError, WaitingForObservations
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    Failed,
    Noted,
    Placeholder,
    Told,
    Trial,
    Widened,
    Withdrawn,
)


class MasterStrategy(Strategy):
    """Hands each step to one of several base strategies; only that base learns from it.

    A subclass chooses the base that plays (`_choose`). A base knows only its own trials, which have
    ids of their own. A base may be a master. If the base that plays must wait, the master waits; if
    it has reached its horizon, the master has too.

    ``info`` of a trial has the position of its base as ``base``, and the ``info`` of that base as
    ``decision``; points of a finite set, or chosen from ``actions``, also have their row as
    ``index`` and ``action``.

    Args:
        bases: The strategies, at least one, without trials; they are copied. Bases that take no
            contexts are given none.
        context_domain: The contexts, as for `Strategy`. None: the contexts of the bases.
        minimize: As for `Strategy`. None: as the bases.

    Raises:
        ValueError: If there is no base, or if a base is not a strategy, has trials, or has another
            domain or sign or other outcomes than the first one.
    """

    takes_spaces = True  # as the bases do
    refuses_attached = "only the base that asked for a result learns from it"

    def __init__(
        self,
        bases: Sequence[Strategy],
        *,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
    ) -> None:
        _check_bases(bases)
        first = bases[0]
        if context_domain is None:
            spaces = (base.context_space for base in bases)
            context_domain = next((space for space in spaces if space is not None), None)
        minimize = first._minimize if minimize is None else minimize
        super().__init__(first.domain, first.seed, context_domain=context_domain, minimize=minimize)
        self.bases = [base.clone() for base in bases]
        for base in self.bases:
            base.set_minimize(self.minimize)
        self.takes_actions = all(base.takes_actions for base in bases)
        self._set_limits(first.limits)
        self.outcome_names, self.outcome_units = first.outcome_names, first.outcome_units
        # For each base, the ids that its trials have in the master.
        self._ids: list[list[int]] = [[] for _ in bases]
        for position, base in enumerate(bases):
            self.warnings += [f"base {position}: {message}" for message in base.warnings]

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The best of the best points of the bases, each compared by the posterior mean of its
        base.

        Args:
            context: As for `Strategy.best`.

        Returns:
            The ``d``-dim point and its posterior mean, in units of the observations.

        Raises:
            NoObservationsError: If no point was evaluated yet.
        """
        if context is not None:
            context = self.checked_context(context)
        answers = [
            base.best(None if base.context_space is None else context)
            for base in self._judges(context)
            if len(base._maximised()[0])
        ]
        if not answers:
            raise NoObservationsError("best needs at least one evaluated point, got none")
        return max(answers, key=lambda answer: self.history.sign * answer[1])

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `Strategy.report` and ``bases``, a list with a dict for each
            base: its class as ``strategy``, ``num_asked``, ``num_told`` and ``best``.
        """
        summary = super().report()
        summary["bases"] = [self._summary(position) for position in range(len(self.bases))]
        return summary

    # --- for subclasses ---------------------------------------------------------------------------

    @abstractmethod
    def _choose(self, choices: Choices, given: Sequence[int]) -> int:
        """The position of the base that plays next; changes nothing.

        Args:
            choices: The actions to choose from, and the context.
            given: The number of trials that each base will be given before this one.
        """

    def _judges(self, context: Tensor | None) -> list[Strategy]:
        """The bases whose best points are compared at a context, or, with None, at all contexts."""
        return self.bases

    def _summary(self, position: int) -> dict[str, Any]:
        """The dict of a base in the report."""
        base = self.bases[position]
        X, _ = base._maximised()
        x, mean = base.best() if len(X) else (None, None)
        return {
            "strategy": type(base).__name__,
            "num_asked": base.history.num_asked,
            "num_told": base.history.num_told,
            "best": None if x is None else {"x": x.tolist(), "mean": mean},
        }

    def _turn(self) -> None:
        super()._turn()
        for base in self.bases:
            base._turn()

    def _values_given(self) -> list[str]:
        return super()._values_given() + [
            f"{name} of base {position}"
            for position, base in enumerate(self.bases)
            for name in base._values_given()
        ]

    # --- decisions --------------------------------------------------------------------------------

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        given = [0] * len(self.bases)
        for available in range(num_trials):
            position = self._choose(choices, given)
            given[position] += 1
            base = self.bases[position]
            own = _own_choices(base, choices)
            base.checked_context(own.context)  # its context domain may differ from the master's
            try:
                base.require_askable(given[position], own)
            except WaitingForObservations as waits:
                ids = [self._ids[position][id] for id in waits.ids]
                told = f"the trials {ids}" if ids else "those"
                raise WaitingForObservations(
                    f"num_trials must be at most {available}, got {num_trials}: it is the turn of "
                    f"base {position}, which must first be told of {told}",
                    ids,
                    available,
                ) from waits
            except HorizonReached as reached:
                raise HorizonReached(
                    f"num_trials must be at most {available}, got {num_trials}: base {position} "
                    f"reaches its horizon of {reached.horizon}",
                    reached.horizon,
                ) from reached

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        position = self._choose(choices, [0] * len(self.bases))
        base = self.bases[position] = self.bases[position].successor()
        trial = base.next_trial(_own_choices(base, choices))
        rows = {name: trial.info[name] for name in ("index", "action") if name in trial.info}
        return trial.x, {"base": position, "decision": trial.info} | rows

    def who_takes_no_actions(self) -> str:
        bases = enumerate(self.bases)
        position, base = next(pair for pair in bases if not pair[1].takes_actions)
        return f"{type(self).__name__} with base {position}: {base.who_takes_no_actions()}"

    # --- the next state ---------------------------------------------------------------------------

    def check_recorded(self, trial: Trial, is_member: bool = False) -> None:
        super().check_recorded(trial, is_member)
        position, decision = (trial.info.get(name) for name in ("base", "decision"))
        name, count = f"info of trial {trial.id}", len(self.bases)
        if type(position) is not int or not 0 <= position < count:
            raise ValueError(f"base in the {name} must be one of {count}, got {position!r}")
        if not isinstance(decision, dict):
            raise ValueError(f"decision in the {name} must be a dict, got {decision!r}")
        is_member = is_member and decision.get("index") == trial.info.get("index")
        self.bases[position].check_recorded(self._own_trial(trial, trial.id), is_member)

    def _own_trial(self, trial: Trial, id: int) -> Trial:
        """The trial for its base, with another id."""
        base = self.bases[trial.info["base"]]
        context = None if base.context_space is None else trial.context
        return Trial(id, trial.x, context, trial.info["decision"]).copy()

    def _recall(self, trial: Trial) -> None:
        position, own = self._own_event(Asked(trial))
        base = self.bases[position] = self.bases[position].successor()
        try:
            base._prepare(own)
        except ValueError as error:
            its = len(self._ids[position])
            error.add_note(f"It is trial {its} of base {position}, here {trial.id}.")
            raise

    def _absorb(self, event: Event) -> None:
        position, own = self._own_event(event)
        base = self.bases[position]
        if type(event) is Asked:
            base._apply(own)
        else:
            base = self.bases[position] = base.after(own)
        if isinstance(event, Asked | Attached):
            self._ids[position] = [*self._ids[position], event.trial.id]
        for message, category in base.take_warnings():
            self._note(f"base {position}: {message}", category)

    def _own_event(self, event: Event) -> tuple[int, Event]:
        """The position of the base that an event belongs to, and the event for that base."""
        match event:
            case Told(id) | Abandoned(id) | Corrected(id) | Withdrawn(id) | Noted(id):
                position, own_id = self._base_and_id(id)
                return position, replace(event, id=own_id)
            case Attached(trial) | Failed(trial) | Placeholder(trial):
                position = trial.info["base"]
                base, id = self.bases[position], len(self._ids[position])
                context = None if base.context_space is None else trial.context
                info = base._info_of_attached(trial.x.unsqueeze(0), context)
                return position, replace(event, trial=Trial(id, trial.x.clone(), context, info))
            case Asked(trial):
                position = trial.info["base"]
                return position, Asked(self._own_trial(trial, len(self._ids[position])))
            case Widened():
                raise ValueError("the domain of bases cannot be widened")

    def _take_as_asked(self, is_corrected: bool) -> None:
        super()._take_as_asked(is_corrected)
        for base in self.bases:
            base._take_as_asked(is_corrected)

    def _forget_fits(self, id: int) -> None:
        position, own_id = self._base_and_id(id)
        self.bases[position]._forget_fits(own_id)

    def _note_withdrawn(self, event: Withdrawn) -> None:
        super()._note_withdrawn(event)
        position, own = self._own_event(event)
        self.bases[position]._note_withdrawn(cast(Withdrawn, own))

    def _base_and_id(self, id: int) -> tuple[int, int]:
        """The position of the base that a trial belongs to, and its id there."""
        position = self.history.trials[id].info["base"]
        return position, bisect_left(self._ids[position], id)

    def _maximised(self) -> tuple[Tensor, Tensor]:
        """The evaluated actions of all bases, ``n x d``, and what is maximised there, base by base,
        with the data that the bases began with."""
        X, Y = zip(*(base._maximised() for base in self.bases), strict=True)
        return torch.cat([own[:, : self.domain.dim] for own in X]), torch.cat(Y)

    def evaluated_means(self) -> Tensor:
        return torch.cat([base.evaluated_means() for base in self.bases])

    def check_joint(self, X: Tensor) -> None:
        for base in self.bases:
            if base.context_space is not None:
                base.check_joint(X)


def _own_choices(base: Strategy, choices: Choices) -> Choices:
    return choices if base.context_space is not None else replace(choices, context=None)


def _check_bases(bases: Sequence[Strategy]) -> None:
    if not isinstance(bases, Sequence) or not bases:
        raise ValueError(f"bases must be a sequence of at least one strategy, got {bases!r}")
    for position, base in enumerate(bases):
        name = f"base {position}"
        if not isinstance(base, Strategy):
            raise ValueError(f"bases must be strategies, got a {type(base).__name__} at {position}")
        if base.history.events:
            raise ValueError(f"{name} must have no trials, got {len(base.history.trials)}")
        domain, first = base.domain, bases[0].domain
        require_same_kind(domain.like, first.like, f"the domain of {name}")
        alike = type(domain) is type(first) and torch.equal(domain.like, first.like)
        if not alike or (isinstance(domain, Box) and repr(domain) != repr(first)):
            raise ValueError(f"the domain of {name} must be that of base 0, got {domain!r}")
        if (base.outcome_names, base.limits) != (bases[0].outcome_names, bases[0].limits):
            raise ValueError(
                f"the outcomes of {name} must be those of base 0, {bases[0].outcome_names}, got "
                f"{base.outcome_names}"
            )
