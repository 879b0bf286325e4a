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

from botorch_ext.integrations.host_records import HostTrial, Record, Status
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.optuna_spaces import space_of
from botorch_ext.integrations.recipes import Recipe
from botorch_ext.integrations.spaces import NamedSpace

#: The attribute of a trial that has its number and the record of its question.
ATTRIBUTE = "botorch_ext:asked"

_STATUS: dict[TrialState, Status] = {
    TrialState.COMPLETE: "told",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "abandoned",
}


def trials_of(study: Study) -> list[FrozenTrial]:
    """All trials, also where a pruner shows some alone.

    Args:
        study: Of Optuna.
    """
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


@dataclass(frozen=True)
class _Ended:
    """A trial that will not change any more: what tells it from one of the same number in a study
    that was made again, and how the strategy sees it."""

    identity: tuple[Any, ...]
    parts: list[HostTrial]


class FollowedStudy:
    """A study, one search space of it, and the strategy that follows its trials.

    Args:
        study: Of Optuna.
        search_space: Distributions by name.
        recipe: Of the strategy.

    Raises:
        ValueError: A space that the method cannot search.
    """

    def __init__(
        self, study: Study, search_space: Mapping[str, BaseDistribution], recipe: Recipe
    ) -> None:
        self._key = _key(study, search_space)
        self.space = space_of(dict(self._key[-1]))
        minimize = study.directions[0] == StudyDirection.MINIMIZE
        self.hosted = HostedStrategy(recipe.make(self.space), self.space, minimize)
        self._ended: dict[int, _Ended] = {}

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
        parts: list[HostTrial] = []
        for trial in trials:
            ended = self._ended.get(trial.number)
            if ended is None:
                ended = _Ended(_identity(trial), _parts(trial, self.space))
                if trial.state.is_finished():
                    self._ended[trial.number] = ended
            parts += ended.parts
        self.hosted.follow(parts)


def _key(study: Study, search_space: Mapping[str, BaseDistribution]) -> tuple[Any, ...]:
    """What tells studies and their spaces apart; names and ids may come again in other storages."""
    ordered = sorted(search_space.items(), key=lambda item: item[0])
    return weakref.ref(study._storage), study._study_id, study.directions, ordered


def _identity(trial: FrozenTrial) -> tuple[Any, ...]:
    return trial._trial_id, trial.datetime_start, trial.datetime_complete


def _parts(trial: FrozenTrial, space: NamedSpace) -> list[HostTrial]:
    """A trial as the strategy sees it; two where another point was evaluated than was asked."""
    status = _STATUS.get(trial.state, "running")
    value = trial.value if status == "told" else None
    values = {name: trial.params[name] for name in space.parameters if name in trial.params}
    asked = trial.system_attrs.get(ATTRIBUTE)
    # A retry has the attributes of the trial that failed.
    if asked is None or asked["number"] != trial.number:
        return [HostTrial(trial.number, values, status, value)]
    record = asked["record"]
    if status == "told" and not _is_at(values, record, space):
        alone = HostTrial(f"{trial.number} where it was evaluated", values, status, value)
        return [HostTrial(trial.number, {}, "abandoned", record=record), alone]
    return [HostTrial(trial.number, values, status, value, record=record)]


def _is_at(values: Mapping[str, Any], record: str, space: NamedSpace) -> bool:
    """Whether the values of a trial, as far as it has any, are those of its record."""
    try:
        x = torch.tensor(Record.read(record).x, dtype=torch.float64)
        return torch.equal(space.to_point(space.to_values(x) | dict(values)), x)
    except ValueError:  # of another space
        return True
