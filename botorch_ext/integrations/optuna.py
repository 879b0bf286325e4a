"""Optuna: a sampler that asks the strategies of this library."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from botorch_ext.checks import flag, whole_number
from botorch_ext.domains.space import Condition
from botorch_ext.exceptions import (
    HorizonReached,
    HostWarning,
    IndependentSamplingWarning,
    WaitingForObservations,
)
from botorch_ext.integrations.optuna_locks import lock_of
from botorch_ext.integrations.optuna_spaces import free, parameter, space_of
from botorch_ext.integrations.optuna_trials import ATTRIBUTE, FollowedStudy, trials_of
from botorch_ext.integrations.recipes import Recipe, UnsearchableSpace
from botorch_ext.strategies import Strategy

__all__ = ["ATTRIBUTE", "StrategySampler"]


class StrategySampler(BaseSampler):
    """An Optuna sampler that asks a strategy of this library.

    Example:
        >>> import optuna
        >>> from botorch_ext.integrations.optuna import StrategySampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=StrategySampler("gp_bucb", seed=1))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", -1, 1) - 0.3) ** 2, n_trials=12)
        >>> len(study.trials)
        12

    The storage of the study is its only memory. The system attributes of each trial have a record,
    so another process with the same arguments, or this process after a crash, asks the next trial
    that this process would have asked. Running trials are pending.

    Parallel processes on one storage ask one after the other, under a lock: a file beside that of
    SQLite or of a journal, whose name ends in ``.asking.lock``, or an advisory lock of PostgreSQL.
    On other storages two processes that ask at the same time may ask for the same point. All
    processes must use the same arguments, including the seed.

    The search space consists of the parameters that all completed trials have in common, unless
    ``search_space`` is given. The first trial, and all parameters that some trials do not have, are
    therefore sampled independently at random. So are trials some of whose parameters are given, as
    by ``enqueue_trial``; trials of studies with several objectives; and trials for which the method
    cannot ask because it waits for observations or has reached its horizon. The results of such
    trials, and of trials of other samplers, are attached if the method takes such results. While
    they run, the strategy does not know of them; the sampler only avoids exactly their points,
    unless ``repeat`` is set.

    Failed trials of the strategy stay pending for ever, and so do pruned trials, since their last
    report is not a result. The strategy explores less near them. It does not ask for a failed point
    again unless ``repeat`` is set. Constraints of Optuna are ignored. A trial whose process died
    stays running, and pending, until it is marked as failed, as the heartbeat of Optuna's storages
    does.

    Args:
        algorithm: The name of an algorithm in `botorch_ext.algorithms`, or a function of a domain
            and arguments.
        search_space: The distributions by name, if they are known beforehand; None for those that
            all completed trials have in common.
        conditions: For objectives that suggest some names of ``search_space`` only in a branch: a
            dict from such a name to its parent, which is a choice or has whole numbers, and the
            values of the parent for which the name is suggested, as in
            ``{"depth": ("model", ["forest"])}``. If the parent is not suggested, the name is not
            either. The strategy then searches the tree, and chooses no value for names that are not
            suggested.
        num_points: The number of points of the space among which the method chooses, for methods
            that cannot search logarithmic scales, whole numbers or choices; None searches the space
            itself.
        repeat: Whether the strategy may ask for a point where a trial runs or has failed; points of
            complete trials may always be asked for again. Otherwise a random point replaces it,
            which follows from the seed and the number of the trial; if no other point is found, as
            on a small space, the point itself is asked for. Methods that take only their own
            results, such as those with rounds, always repeat.
        **arguments: The arguments of the algorithm except the domain. If the algorithm takes a
            `Fitted` kernel and none is given, one is fitted after 8 first points (``num_initial``),
            and the ``width`` is 2 unless it is given or the algorithm has a default. The seed is 0
            unless it is given. Values such as ``minimum`` refer to the maximised function.

    Raises:
        ValueError: If the algorithm is unknown, or an argument is missing, unknown or impossible.

    Warns:
        IndependentSamplingWarning: If a value was sampled at random that the strategy should have
            chosen; once for each reason.
        HostWarning: If no lock is known for the storage, a name of ``search_space`` is not
            suggested, or a running trial was asked with other arguments or in another space; once
            each.
    """

    def __init__(
        self,
        algorithm: str | Callable[..., Strategy],
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        conditions: Mapping[str, Condition] | None = None,
        num_points: int | None = None,
        repeat: bool = False,
        **arguments: Any,
    ) -> None:
        self._recipe = Recipe(algorithm, arguments, type(self).__name__, num_points)
        self._repeat = flag(repeat, "repeat")
        self._seed = whole_number(arguments.get("seed", 0), "seed")
        self._search_space: dict[str, BaseDistribution] | None = None
        self._conditions = dict(conditions or {})
        if search_space is not None:
            self._search_space = dict(search_space)
            for name, distribution in search_space.items():
                parameter(name, distribution)
            if free(search_space):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they come again when it is asked
                    self._recipe.make(space_of(self._chosen(search_space), self._conditions))
        elif conditions:
            raise ValueError(f"conditions must be given with search_space, got {self._conditions}")
        self._warned: set[str] = set()
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(vars(self))
        del kept["_lock"], kept["_followed"]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        # Several threads may optimise one study.
        self._lock = threading.RLock()
        self._followed: FollowedStudy | None = None  # the study that asked last

    def reseed_rng(self) -> None:
        """Do nothing, since all random numbers follow from the seed and the trial."""

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The distributions of the parameters that the strategy chooses; Optuna calls this."""
        if len(study.directions) > 1:
            return {}
        if self._search_space is not None:
            return self._chosen(self._search_space)
        found = free(intersection_search_space(trials_of(study)))
        for name, distribution in list(found.items()):
            try:
                parameter(name, distribution)
            except ValueError as error:
                self._warn_once(f"{name} is sampled at random: {error}")
                del found[name]
        return found

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask the strategy for the values of a trial; Optuna calls this.

        Args:
            study: The study.
            trial: The trial to sample.
            search_space: The distributions that `infer_relative_search_space` returned.

        Returns:
            The values by name; empty if the strategy cannot ask.
        """
        given = {*trial.params, *trial.system_attrs.get("fixed_params", {})}
        if not search_space or given & free(search_space).keys():
            return {}
        lock = lock_of(study._storage, study._study_id)
        if lock is None:
            self._warn_once(
                "two processes that ask at once may ask for the same point, since "
                f"{type(study._storage).__name__} has no lock",
                HostWarning,
            )
        # The lock of the storage comes last, since other processes wait for it.
        with self._lock, lock or nullcontext():
            trials = trials_of(study)
            if self._followed is None or not self._followed.is_of(study, search_space, trials):
                try:
                    self._followed = FollowedStudy(
                        study, search_space, self._recipe, self._conditions
                    )
                except UnsearchableSpace as error:
                    self._warn_once(f"trials are sampled at random, all of them: {error}")
                    return {}
            followed = self._followed
            followed.follow([other for other in trials if other.number != trial.number])
            if followed.has_foreign:
                self._warn_once(
                    "a running trial was asked with other arguments (such as another seed) or in "
                    "another space: this sampler does not know of it until it is complete",
                    HostWarning,
                )
            seed = self._seed_of(trial)
            try:
                values, kept = followed.ask(trial.number, self._repeat, seed)
            except (WaitingForObservations, HorizonReached) as error:
                why: Any = error
                if isinstance(error, HorizonReached):
                    why = f"its horizon of {error.horizon} trials has ended"
                self._warn_once(f"trials are sampled at random as the method cannot ask: {why}")
                return {}
            study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, kept)
        if "instead" in kept:
            self._warn_once(
                "trials are sampled at random where the method asks for a point that runs or has "
                "failed: set repeat=True to ask for it again"
            )
        return values

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Sample a value at random; Optuna calls this for parameters that the strategy does not
        choose.

        Returns:
            The value, which follows from the seed, the trial and the name.
        """
        reason = self._why_random(study, trial, param_name, param_distribution)
        if reason is not None:
            self._warn_once(reason)
        sampler = RandomSampler(seed=self._seed_of(trial, param_name))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Warn if a complete trial lacks a parameter of ``search_space``; Optuna calls this."""
        if state == TrialState.COMPLETE and len(study.directions) == 1:
            for name in free(self._search_space or {}):
                if name not in trial.params and name not in self._conditions:
                    self._warn_once(
                        f"{name} of search_space is not suggested: the values that the strategy "
                        f"chooses for it have no effect, as in trial {trial.number}",
                        HostWarning,
                    )

    def _why_random(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> str | None:
        """The reason why the strategy did not choose a value; None if this was intended."""
        if len(study.directions) > 1:
            return "trials are sampled at random: the study has several objectives"
        if trial.system_attrs.get("fixed_params"):
            return None
        if self._search_space is not None:
            if name not in self._search_space:
                return f"{name} is sampled at random: it is not in search_space"
            known = self._search_space[name]
            if known != distribution:
                return f"{name} is sampled at random: search_space has another range, {known}"
            if name in self._conditions and ATTRIBUTE in trial.system_attrs:
                return f"{name} is sampled at random: by the conditions it does not count here"
            return None
        began = trial.datetime_start or datetime.max
        ended = [
            each
            for each in trials_of(study)
            if each.datetime_complete is not None and each.datetime_complete <= began
        ]
        if not ended:
            return None
        if all(each.state != TrialState.COMPLETE for each in ended):
            return (
                "trials are sampled at random until one is complete: all trials so far failed (a "
                "NaN result counts as failed) or were pruned"
            )
        if self.infer_relative_search_space(study, trial).get(name) == distribution:
            return None
        return f"{name} is sampled at random: not all trials have it with the same range"

    def _chosen(self, search_space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
        """The distributions with more than one value, and those that take part in a condition."""
        named = {*self._conditions, *(parent for parent, _ in self._conditions.values())}
        return free(search_space) | {
            name: each for name, each in search_space.items() if name in named
        }

    def _seed_of(self, trial: FrozenTrial, name: str = "") -> int:
        text = f"{self._seed}/{trial.number}/{name}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    def _warn_once(
        self, message: str, category: type[Warning] = IndependentSamplingWarning
    ) -> None:
        reason = message.partition(":")[0]
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(message, category, stacklevel=3)
