"""The trials of an Ax experiment, in the form that a strategy reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO

import pandas as pd
from ax.core.base_trial import BaseTrial
from ax.core.batch_trial import BatchTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import OptimizationNotConfiguredError, UnsupportedError, UserInputError

from botorch_ext.integrations.ax_space import AxSpace
from botorch_ext.integrations.host_trials import HostTrial, Status

#: The key of the record of a trial in the metadata of its candidate.
RECORD = "botorch_ext"
# The states that are not running. A trial that was stopped early counts as failed, since its value
# is not that of a whole evaluation.
_STATUS: dict[TrialStatus, Status] = {
    TrialStatus.COMPLETED: "told",
    TrialStatus.FAILED: "failed",
    TrialStatus.ABANDONED: "abandoned",
    TrialStatus.EARLY_STOPPED: "failed",
    TrialStatus.STALE: "abandoned",
}
# The means by the signatures of metrics, for each pair of a trial's index and an arm's name.
_Means = dict[tuple[int, str], dict[str, float]]


@dataclass(frozen=True)
class AxObjective:
    """The objective of an experiment.

    Args:
        weights: The weight of each metric in the maximised sum, by the signature of the metric.
    """

    weights: Mapping[str, float]

    @classmethod
    def of(cls, experiment: Experiment) -> AxObjective:
        """Read the objective of an experiment.

        Args:
            experiment: The experiment.

        Returns:
            The objective.

        Raises:
            OptimizationNotConfiguredError: If the experiment has no objective.
            UnsupportedError: If it has several objectives, or outcome constraints.
        """
        config = experiment.optimization_config
        if config is None:
            raise OptimizationNotConfiguredError("objective must be configured before trials")
        if config.objective.is_multi_objective:
            raise UnsupportedError(
                f"objective must be a single one, got {config.objective.expression!r}"
            )
        if config.outcome_constraints:
            raise UnsupportedError(
                f"outcome_constraints must be none for a strategy, got {config.outcome_constraints}"
            )
        return cls({name: float(weight) for name, weight in config.objective.metric_weights})

    @property
    def minimize(self) -> bool:
        """Whether smaller values are better: a single metric keeps its own units, while a weighted
        sum is always maximised."""
        return len(self.weights) == 1 and min(self.weights.values()) < 0

    def value(self, means: Mapping[str, float]) -> float | None:
        """The value of an arm.

        Args:
            means: The means of the metrics of the arm, by their signatures.

        Returns:
            The value; None if a metric is missing.
        """
        if not means.keys() >= self.weights.keys():
            return None
        if len(self.weights) == 1:
            return means[next(iter(self.weights))]
        return math.fsum(weight * means[name] for name, weight in self.weights.items())


@dataclass(frozen=True)
class AxTrials:
    """The trials of an experiment.

    Args:
        trials: The trials; each arm of a batch is one.
        without_value: The indices of complete trials without a value, which count as running.
        changed: The given and the saved value of each trial, by its index, for which Ax saves a
            different value than it was given.
    """

    trials: list[HostTrial]
    without_value: list[int]
    changed: dict[int, tuple[float, float]]

    @classmethod
    def of(
        cls, experiment: Experiment, data: Data, space: AxSpace, objective: AxObjective
    ) -> AxTrials:
        """Read the trials of an experiment, with the values that Ax saves, which have ten decimals.

        Args:
            experiment: The experiment.
            data: Its data.
            space: Its search space.
            objective: Its objective.

        Returns:
            The trials.
        """
        means, changed = _means(data, objective)
        trials, without = [], []
        for index, trial in experiment.trials.items():
            for each in _of_trial(trial, means, space, objective):
                if each.status == "told" and each.value is None:
                    without += [index] if index not in without[-1:] else []
                    each = replace(each, status="running")
                trials.append(each)
        return cls(trials, without, changed)


def _means(data: Data, objective: AxObjective) -> tuple[_Means, dict[int, tuple[float, float]]]:
    df = data.df
    df = df[df["metric_signature"].isin(list(objective.weights))]
    given = df["mean"].astype(float).tolist()
    # The same text that Ax writes, read in the same way.
    text = pd.DataFrame({"mean": given}).to_json()
    kept = pd.read_json(StringIO(text), dtype=False)["mean"].astype(float).tolist() if given else []
    means: _Means = {}
    changed = {}
    rows = zip(df["trial_index"], df["arm_name"], df["metric_signature"], given, kept, strict=True)
    for index, arm, metric, before, value in rows:
        means.setdefault((int(index), arm), {})[metric] = value
        if abs(value - before) > 1e-6 * abs(before):
            changed[int(index)] = before, value
    return means, changed


def _of_trial(
    trial: BaseTrial, means: _Means, space: AxSpace, objective: AxObjective
) -> Iterator[HostTrial]:
    is_batch = isinstance(trial, BatchTrial)
    given_up = {arm.name for arm in trial.abandoned_arms}
    for place, arm in enumerate(trial.arms):
        status = _STATUS.get(trial.status, "running")
        if is_batch and arm.name in given_up:
            status = "abandoned"
        try:
            context = space.context_of(arm.parameters)
        except UserInputError:  # a strategy takes no value at such a context
            context = None
        record = (trial._get_candidate_metadata(arm.name) or {}).get(RECORD)
        yield HostTrial(
            f"{trial.index}_{place}" if is_batch else trial.index,
            space.point_of(arm.parameters),
            status,
            objective.value(means.get((trial.index, arm.name), {})) if status == "told" else None,
            context,
            record if isinstance(record, str) else None,
        )
