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
# The mean and the standard error by the signatures of metrics, for each pair of a trial's index and
# an arm's name.
_Measured = dict[tuple[int, str], dict[str, tuple[float, float]]]


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

    def result(
        self, measured: Mapping[str, tuple[float, float]]
    ) -> tuple[float | None, float | None]:
        """The value of an arm and its standard error, which is that of independent metrics.

        Args:
            measured: The means of the metrics of the arm, and their standard errors, by the
                signatures of the metrics.

        Returns:
            The value, which is None if a metric is missing; and the standard error, which is None
            unless all metrics have a positive finite one.
        """
        if not measured.keys() >= self.weights.keys():
            return None, None
        is_one = len(self.weights) == 1
        own = [(1 if is_one else weight, *measured[name]) for name, weight in self.weights.items()]
        value = math.fsum(weight * mean for weight, mean, _ in own)
        std = math.hypot(*(weight * sem for weight, _, sem in own))
        return value, std if all(0 < sem < math.inf for _, _, sem in own) else None


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
        measured, changed = _measured(data, objective)
        trials, without = [], []
        for index, trial in experiment.trials.items():
            for each in _of_trial(trial, measured, space, objective):
                if each.status == "told" and each.value is None:
                    without += [index] if index not in without[-1:] else []
                    each = replace(each, status="running")
                trials.append(each)
        return cls(trials, without, changed)


def _measured(
    data: Data, objective: AxObjective
) -> tuple[_Measured, dict[int, tuple[float, float]]]:
    df = data.df
    df = df[df["metric_signature"].isin(list(objective.weights))]
    given = df[["mean", "sem"]].astype(float)
    # The same text that Ax writes, read in the same way.
    text = given.reset_index(drop=True).to_json()
    kept = pd.read_json(StringIO(text), dtype=False).astype(float) if len(given) else given
    measured: _Measured = {}
    changed = {}
    columns = [df[name] for name in ("trial_index", "arm_name", "metric_signature")]
    columns += [given["mean"].tolist(), kept["mean"].tolist(), kept["sem"].tolist()]
    for index, arm, metric, before, value, sem in zip(*columns, strict=True):
        measured.setdefault((int(index), arm), {})[metric] = value, sem
        if abs(value - before) > 1e-6 * abs(before):
            changed[int(index)] = before, value
    return measured, changed


def _of_trial(
    trial: BaseTrial, measured: _Measured, space: AxSpace, objective: AxObjective
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
        value, std = objective.result(measured.get((trial.index, arm.name), {}))
        yield HostTrial(
            f"{trial.index}_{place}" if is_batch else trial.index,
            space.point_of(arm.parameters),
            status,
            value if status == "told" else None,
            context,
            record if isinstance(record, str) else None,
            std,
        )
