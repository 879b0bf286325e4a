"""FollowedStudy: a study of Optuna and the strategy that follows its trials."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_ext.domains import FiniteSet
from botorch_ext.domains.space import Condition, Space
from botorch_ext.integrations.counted import form_of
from botorch_ext.integrations.host_trials import HostTrial, Record, Status
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.optuna_spaces import as_kept, space_of
from botorch_ext.integrations.recipes import Recipe

#: The attribute of a trial that has its number, a digest of the space, and the record of its
#: question, or the point that was taken instead of it.
ATTRIBUTE = "botorch_ext:asked"

# How many points are drawn to find one that is free.
_NUM_DRAWN = 512
_Point = tuple[float, ...]

_STATUS: dict[TrialState, Status] = {
    TrialState.COMPLETE: "told",
    TrialState.FAIL: "failed",
    # No result, and not to be asked again at once.
    TrialState.PRUNED: "failed",
}


def trials_of(study: Study) -> list[FrozenTrial]:
    """All trials, also where a pruner shows some alone.

    Args:
        study: Of Optuna.
    """
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


@dataclass(frozen=True)
class _Seen:
    """A trial: what tells it from one of the same number in a study that was made again, how the
    strategy sees it, and its point where it runs or has failed."""

    identity: tuple[Any, ...]
    parts: list[HostTrial]
    taken: _Point | None


class FollowedStudy:
    """A study, one search space of it, and the strategy that follows its trials.

    Args:
        study: Of Optuna.
        search_space: Distributions by name.
        recipe: Of the strategy.
        conditions: As those of `Space`.

    Raises:
        ValueError: A space that the method cannot search.
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
        # Points are read in the space they were asked in: columns of another mean something else.
        self._digest = hashlib.sha256(_text_of(self.space).encode()).hexdigest()[:8]
        minimize = study.directions[0] == StudyDirection.MINIMIZE
        self._strategy = recipe.make(self.space)
        self.hosted = HostedStrategy(self._strategy, self.space, minimize)
        self._ended: dict[int, _Seen] = {}  # trials that will not change any more
        self._taken: set[_Point] = set()
        #: Whether a trial runs at a point of this space that was asked with other arguments, or as
        #: one of another space.
        self.has_foreign = False

    def is_of(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        trials: list[FrozenTrial],
    ) -> bool:
        """Whether it is of this study and space, and the study was not deleted and made again.

        Args:
            study: Of Optuna.
            search_space: Distributions by name.
            trials: All of the study.
        """
        if self._key != _key(study, search_space):
            return False
        there = {trial.number: trial for trial in trials}
        return all(
            number in there and _identity(there[number]) == ended.identity
            for number, ended in self._ended.items()
        )

    def follow(self, trials: list[FrozenTrial]) -> None:
        """Learns all that the trials say.

        Args:
            trials: All of the study but the one that is asked.
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
        """The values of the next trial, given the trials that it followed last, and what to keep
        with it in `ATTRIBUTE`: ``number``, ``space`` and ``record``, or ``instead`` for a random
        point.

        Args:
            number: Of the trial.
            repeat: Whether a point may be asked that runs or has failed. Methods that take no
                results but their own always may.
            seed: Of the random point.

        Raises:
            WaitingForObservations: The method must be told something first.
            HorizonReached: The method has no trials left.
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
        """A random point that neither runs nor has failed; None where none is found."""
        domain = self._strategy.domain
        X = domain.points if isinstance(domain, FiniteSet) else domain.listed
        if X is None:
            X = domain.sample(_NUM_DRAWN, seed)
        else:
            X = X[torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))]
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
    """What tells studies and their spaces apart; names and ids may come again in other storages."""
    ordered = sorted(search_space.items(), key=lambda item: item[0])
    return weakref.ref(study._storage), study._study_id, study.directions, ordered


def _identity(trial: FrozenTrial) -> tuple[Any, ...]:
    return trial._trial_id, trial.datetime_start, trial.datetime_complete


def _text_of(space: Space) -> str:
    """The parameters of a space as version 0.2.0 wrote them."""
    texts = []
    for name, each in space.parameters.items():
        form = form_of(each)
        kind = form.pop("class")
        given = ", ".join(f"{key}={value!r}" for key, value in form.items())
        texts.append(f"{name!r}: {kind}({given})")
    return f"{{{', '.join(texts)}}}"


def _parts(trial: FrozenTrial, space: Space, digest: str) -> list[HostTrial]:
    """A trial as the strategy sees it; two where another point was evaluated than was asked."""
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
    # Not all need be suggested yet.
    values = params if x is None else space.params(x) | params
    if record is not None and status == "told" and x is not None and not _is_at(values, x, space):
        alone = HostTrial(f"{trial.number} where it was evaluated", params, status, value)
        return [HostTrial(trial.number, {}, "abandoned", record=record), alone]
    return [HostTrial(trial.number, values, status, value, record=record)]


def _asked_point(asked: Mapping[str, Any], space: Space) -> Tensor | None:
    """The point that was asked in this space, None where it is broken, which the strategy says."""
    try:
        if "instead" in asked:
            x = [asked["instead"][name] for name in space.names]
        else:
            x = Record.read(asked["record"]).x
        return space.require_contains(x, "x")[0]
    except (ValueError, KeyError):
        return None


def _is_at(values: Mapping[str, Any], x: Tensor, space: Space) -> bool:
    """Whether values are those of a point."""
    own = _point_of(values, space)
    return own is None or torch.equal(own, x)


def _point_of(values: Mapping[str, Any], space: Space) -> Tensor | None:
    """The point of values; None where they are of another space, or not all known."""
    try:
        return space.point(values)
    except ValueError:
        return None
