"""FollowedStudy: a study of Optuna and the strategy that follows its trials."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_ext.domains import FiniteSet, host
from botorch_ext.domains.space import Condition, Space
from botorch_ext.integrations.host_trials import HostTrial, Record, Status
from botorch_ext.integrations.hosted import HostedStrategy, digest_of
from botorch_ext.integrations.optuna_spaces import as_kept, space_of
from botorch_ext.integrations.recipes import Recipe

#: The attribute of a trial with its number, a digest of the space, and the record of the strategy,
#: or the random point that was asked instead.
ATTRIBUTE = "botorch_ext:asked"

# The number of points that are drawn to find one that is free.
_NUM_DRAWN = 512
_Point = tuple[float, ...]

_STATUS: dict[TrialState, Status] = {
    TrialState.COMPLETE: "told",
    TrialState.FAIL: "failed",
    # A pruned trial has no result and should not be asked again at once.
    TrialState.PRUNED: "failed",
}


def trials_of(study: Study) -> list[FrozenTrial]:
    """All trials of a study, also if a pruner shows only some of them.

    Returns:
        The trials, not copied.
    """
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


@dataclass(frozen=True)
class _Seen:
    """A trial that was read: its identity, which differs from that of the same number in a study
    that was made again; the trials that the strategy sees; and its point if it runs or failed."""

    identity: tuple[Any, ...]
    parts: list[HostTrial]
    taken: _Point | None


class FollowedStudy:
    """A study with one of its search spaces, and the strategy that follows its trials.

    Args:
        study: A study of Optuna.
        search_space: Distributions by name.
        recipe: The recipe of the strategy.
        conditions: Conditions as for `Space`; None for none.

    Raises:
        ValueError: If the method cannot search the space.
    """

    def __init__(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        recipe: Recipe,
        conditions: Mapping[str, Condition] | None = None,
    ) -> None:
        self._key = _key(study, search_space)
        self.space = space_of(dict(self._key[-1]), conditions)
        # Points are read only in the space in which they were asked, since columns of another space
        # have other meanings.
        self._digest = digest_of(self.space.parameters)
        minimize = study.directions[0] == StudyDirection.MINIMIZE
        self._strategy = recipe.make(self.space, minimize=minimize)
        self.hosted = HostedStrategy(self._strategy, self.space, minimize)
        self._ended: dict[int, _Seen] = {}  # trials that will not change any more
        self._taken: set[_Point] = set()
        #: Whether a running trial at a point of this space was asked with other arguments, or in
        #: another space.
        self.has_foreign = False

    def is_of(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        trials: list[FrozenTrial],
    ) -> bool:
        """Whether this object belongs to a study and a search space, and the study was not deleted
        and made again."""
        if self._key != _key(study, search_space):
            return False
        there = {trial.number: trial for trial in trials}
        return all(
            number in there and _identity(there[number]) == ended.identity
            for number, ended in self._ended.items()
        )

    def follow(self, trials: list[FrozenTrial]) -> None:
        """Learn the present state of the trials.

        Args:
            trials: All trials of the study except the one that is being asked.
        """
        seen = [self._ended.get(trial.number) or self._see(trial) for trial in trials]
        self._taken = {each.taken for each in seen if each.taken is not None}
        parts = [part for each in seen for part in each.parts]
        self.hosted.follow(parts)
        self.has_foreign = any(
            part.outcome == "running"
            and part.record is not None
            and _point_of(part.values, self.space) is not None
            and not self.hosted.has_asked(part)
            for part in parts
        )

    def ask(self, number: int, repeat: bool, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Ask for the next trial, given the trials that were followed last.

        Args:
            number: The number of the trial.
            repeat: Whether a point may be asked that runs or has failed. Methods that take only
                their own results always repeat.
            seed: The seed of the random point.

        Returns:
            The values by name, and the value of `ATTRIBUTE` to store with the trial: a dict with
            ``number``, ``space`` and ``record``, or ``instead`` for a random point.

        Raises:
            WaitingForObservations: If the method needs results of pending trials first.
            HorizonReached: If the method has no trials left.
        """
        may_differ = not (repeat or self._strategy.refuses_attached) and self._taken
        before = self.hosted.state() if may_differ else None
        values, record = self.hosted.ask()
        kept = {"number": number, "space": self._digest}
        if before is not None and tuple(self.space.point(values).tolist()) in self._taken:
            x = self._free_point(seed)
            if x is not None:
                self.hosted.return_to(before)
                instead = dict(zip(self.space.names, x, strict=True))
                return self.space.params(x), kept | {"instead": instead}
        return values, kept | {"record": record}

    def _free_point(self, seed: int) -> _Point | None:
        """A random point at which no trial runs or has failed; None if none is found."""
        domain = self._strategy.domain
        X = domain.points if isinstance(domain, FiniteSet) else domain.listed
        if X is None:
            X = domain.sample(_NUM_DRAWN, seed)
        else:
            X = X[host.randperm(len(X), generator=torch.Generator().manual_seed(seed))]
        points = (tuple(x) for x in X.tolist())
        return next((point for point in points if point not in self._taken), None)

    def _see(self, trial: FrozenTrial) -> _Seen:
        parts = _parts(trial, self.space, self._digest)
        taken = None
        if parts[0].outcome in ("running", "failed"):
            x = _point_of(parts[0].values, self.space)
            taken = None if x is None else tuple(x.tolist())
        seen = _Seen(_identity(trial), parts, taken)
        if trial.state.is_finished():
            self._ended[trial.number] = seen
        return seen


def _key(study: Study, search_space: Mapping[str, BaseDistribution]) -> tuple[Any, ...]:
    """The identity of a study and a search space; names and ids may recur in other storages."""
    ordered = sorted(search_space.items(), key=lambda item: item[0])
    return weakref.ref(study._storage), study._study_id, study.directions, ordered


def _identity(trial: FrozenTrial) -> tuple[Any, ...]:
    return trial._trial_id, trial.datetime_start, trial.datetime_complete


def _parts(trial: FrozenTrial, space: Space, digest: str) -> list[HostTrial]:
    """A trial as the strategy sees it; two trials if another point was evaluated than was asked."""
    status = _STATUS.get(trial.state, "running")
    value = trial.value if status == "told" else None
    params = {
        name: as_kept(trial.params[name], trial.distributions[name])
        for name in space.parameters
        if name in trial.params
    }
    asked = trial.system_attrs.get(ATTRIBUTE)
    # A retry has the attributes of the trial that failed.
    if asked is None or asked["number"] != trial.number:
        return [HostTrial(trial.number, params, status, value)]
    record = asked.get("record")
    x = _asked_point(asked, space) if asked.get("space") == digest else None
    # Some parameters may not be suggested yet.
    values = params if x is None else space.params(x) | params
    if record is not None and status == "told" and x is not None and not _is_at(values, x, space):
        alone = HostTrial(f"{trial.number} where it was evaluated", params, status, value)
        return [HostTrial(trial.number, {}, "abandoned", record=record), alone]
    return [HostTrial(trial.number, values, status, value, record=record)]


def _asked_point(asked: Mapping[str, Any], space: Space) -> Tensor | None:
    """The point that was asked in this space; None if the record is broken, of which the strategy
    tells."""
    try:
        if "instead" in asked:
            x = [asked["instead"][name] for name in space.names]
        else:
            x = Record.read(asked["record"]).x
        return space.require_contains(x, "x")[0]
    except (ValueError, KeyError):
        return None


def _is_at(values: Mapping[str, Any], x: Tensor, space: Space) -> bool:
    """Whether values are those of a point, or do not determine a point yet."""
    own = _point_of(values, space)
    return own is None or torch.equal(own, x)


def _point_of(values: Mapping[str, Any], space: Space) -> Tensor | None:
    """The point with these values; None if they are of another space or not all known."""
    try:
        return space.point(values)
    except ValueError:
        return None
