"""Trials of an Ax experiment as a strategy reads them."""

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

#: Under what the record of a question stands in the metadata of its candidate.
RECORD = "botorch_ext"
# Those that run or are to run are not among them. A trial that was stopped early has the value of
# something else than a whole evaluation.
_STATUS: dict[TrialStatus, Status] = {
    TrialStatus.COMPLETED: "told",
    TrialStatus.FAILED: "failed",
    TrialStatus.ABANDONED: "abandoned",
    TrialStatus.EARLY_STOPPED: "failed",
    TrialStatus.STALE: "abandoned",
}
# From the index of a trial and the name of an arm to means by the signatures of metrics.
_Means = dict[tuple[int, str], dict[str, float]]


@dataclass(frozen=True)
class AxObjective:
    """What is optimised.

    Args:
        weights: From the signature of a metric to its weight in what is maximised.
    """

    weights: Mapping[str, float]

    @classmethod
    def of(cls, experiment: Experiment) -> AxObjective:
        """That of an experiment.

        Raises:
            OptimizationNotConfiguredError: It has none.
            UnsupportedError: Several objectives, or constraints of outcomes.
        """
        config = experiment.optimization_config
        if config is None:
            raise OptimizationNotConfiguredError("objective must be configured before trials")
        if config.objective.is_multi_objective:
            raise UnsupportedError(f"objective must be one, got {config.objective.expression!r}")
        if config.outcome_constraints:
            raise UnsupportedError(
                f"outcome_constraints must be none for a strategy, got {config.outcome_constraints}"
            )
        return cls({name: float(weight) for name, weight in config.objective.metric_weights})

    @property
    def minimize(self) -> bool:
        """Whether smaller values are better: one metric is in its own units, a sum is what is
        maximised."""
        return len(self.weights) == 1 and min(self.weights.values()) < 0

    def value(self, means: Mapping[str, float]) -> float | None:
        """Of an arm, from the means of its metrics; None where one is missing."""
        if not means.keys() >= self.weights.keys():
            return None
        if len(self.weights) == 1:
            return means[next(iter(self.weights))]
        return math.fsum(weight * means[name] for name, weight in self.weights.items())


@dataclass(frozen=True)
class AxTrials:
    """The trials of an experiment.

    Args:
        trials: Each arm of a batch is one.
        without_value: Indices of those that are complete and have no value; they count as running.
        changed: From the index to two values, where Ax saves another one than it was given.
    """

    trials: list[HostTrial]
    without_value: list[int]
    changed: dict[int, tuple[float, float]]

    @classmethod
    def of(
        cls, experiment: Experiment, data: Data, space: AxSpace, objective: AxObjective
    ) -> AxTrials:
        """Those of an experiment, with values as they are once it was saved: Ax keeps ten
        decimals."""
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
    # The very text that Ax writes, and the way it reads it.
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
        except UserInputError:  # none of a strategy: it then takes no value there
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
