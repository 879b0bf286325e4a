"""Trials that Optuna's studies have beside those a strategy chose."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from typing import Any

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext.exceptions import HostWarning, IndependentSamplingWarning

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from botorch_ext.integrations.optuna import ATTRIBUTE, StrategySampler  # noqa: E402
from tests.integrations.in_optuna import FIXED, SPACE, bowl, by_hand, sampler  # noqa: E402


def _warnings_of(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is IndependentSamplingWarning]


def test_parameters_that_not_all_trials_have_are_sampled_at_random() -> None:
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", **FIXED))

    def objective(trial: Any) -> float:
        value = bowl(trial)
        return value + (trial.suggest_float("c", 0.0, 1.0) if trial.number % 2 else 0.0)

    messages = _warnings_of(lambda: study.optimize(objective, n_trials=6))
    assert messages == ["c is sampled at random: not all trials have it with the same range"]
    asked = [ATTRIBUTE in trial.system_attrs for trial in study.trials]
    assert asked == [False] + 5 * [True]


def test_a_space_that_changes_begins_anew_with_what_is_known() -> None:
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", **FIXED))
    study.optimize(lambda trial: trial.suggest_float("d", 0, 1) + bowl(trial), n_trials=4)
    study.optimize(bowl, n_trials=2)  # from here on there are two parameters
    study.optimize(bowl, n_trials=1)
    strategy = by_hand()
    for trial in study.trials[:5]:
        strategy.attach([trial.params["a"], trial.params["b"]], -trial.value)
    # The sixth trial was the first that was asked in that space.
    assert list(study.trials[5].params.values()) == strategy.ask().x.tolist()


def test_a_value_that_was_evaluated_elsewhere_is_attached_there() -> None:
    study = optuna.create_study(sampler=sampler())

    def narrower(trial: Any) -> float:
        return trial.suggest_float("a", 2.0, 2.001) + trial.suggest_float("b", -1.0, 3.0)

    with pytest.warns(IndependentSamplingWarning, match="a is sampled at random"):
        study.optimize(narrower, n_trials=1)
    bowl(study.ask())
    hosted = study.sampler._followed.hosted
    history = hosted.strategy.history
    assert history.abandoned == {0} and history.attached == [1]
    assert history.trials[1].x.tolist() == list(study.trials[0].params.values())


def test_methods_that_wait_or_have_ended_are_sampled_at_random() -> None:
    arguments = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 1.0, "horizon": 8}
    study = optuna.create_study(sampler=StrategySampler("bpe", search_space=SPACE, **arguments))
    messages = _warnings_of(lambda: study.optimize(bowl, n_trials=12))
    assert len(messages) == 1 and "as the method cannot ask: " in messages[0]
    asked = Counter(ATTRIBUTE in trial.system_attrs for trial in study.trials)
    assert asked == {True: 8, False: 4}


def test_several_objectives_are_sampled_at_random() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    messages = _warnings_of(lambda: study.optimize(lambda t: (bowl(t), 1.0), n_trials=3))
    assert messages == ["trials are sampled at random: the study has several objectives"]


def test_given_parameters_stay() -> None:
    study = optuna.create_study(sampler=sampler())
    study.enqueue_trial({"a": 4.0})
    trial = study.ask()
    bowl(trial)
    assert trial.params["a"] == 4.0 and -1.0 <= trial.params["b"] <= 3.0
    assert ATTRIBUTE not in study.trials[0].system_attrs


def test_a_retry_is_a_trial_of_its_own() -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(bowl, n_trials=3)
    failed = study.ask()
    bowl(failed)
    study.tell(failed, state=TrialState.FAIL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        retry = optuna.storages.RetryHeartbeatStaleTrialCallback()
    retry(study, study.trials[3])
    retried = study.ask()
    value = bowl(retried)
    assert retried.params == failed.params
    study.tell(retried, value)
    bowl(study.ask())
    history = study.sampler._followed.hosted.strategy.history
    assert history.failed == {3} and history.attached == [4] and history.values[4] == -value


@pytest.mark.parametrize(
    "pruner", [optuna.pruners.HyperbandPruner(1, 9), optuna.pruners.MedianPruner()]
)
def test_pruners_do_not_hide_trials(pruner: Any) -> None:
    study = optuna.create_study(sampler=sampler(), pruner=pruner)

    def objective(trial: Any) -> float:
        value = bowl(trial)
        for step in range(9):
            trial.report(value + step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=10)
    numbers = [
        json.loads(each.system_attrs[ATTRIBUTE]["record"])["number"] for each in study.trials
    ]
    assert numbers == list(range(10))


def test_an_objective_that_is_nan_fails() -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(lambda trial: bowl(trial) * math.nan, n_trials=2)
    bowl(study.ask())
    assert study.sampler._followed.hosted.strategy.history.failed == {0, 1}


def test_a_storage_without_a_lock_is_said() -> None:
    class Remote(optuna.storages.InMemoryStorage):
        pass

    from botorch_ext.integrations import optuna_locks

    study = optuna.create_study(sampler=sampler())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botorch_ext.integrations.optuna.lock_of", lambda storage, study_id: None)
        with pytest.warns(HostWarning) as caught:
            study.optimize(bowl, n_trials=2)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 1 and messages[0].endswith("since InMemoryStorage has no lock")
    assert optuna_locks.lock_of(Remote(), 0) is not None


@pytest.mark.filterwarnings("ignore:the values of . trials")
def test_records_of_another_space_give_no_results() -> None:
    def objective(*names: str) -> Any:
        return lambda trial: sum(trial.suggest_float(name, -1.0, 2.0) for name in names)

    def space(*names: str) -> dict[str, Any]:
        return {name: optuna.distributions.FloatDistribution(-1.0, 2.0) for name in names}

    study = optuna.create_study(sampler=sampler(search_space=space("a", "b")))
    study.optimize(objective("a", "b"), n_trials=5)
    study.sampler = sampler(search_space=space("a", "c"))
    study.optimize(objective("a", "c"), n_trials=2)
    history = study.sampler._followed.hosted.strategy.history
    assert history.attached == [] and len(history.trials) == 2  # none of the five has a c
    study.sampler = sampler(search_space=space("c"))
    study.optimize(objective("c"), n_trials=1)
    history = study.sampler._followed.hosted.strategy.history
    found = [history.trials[id].x.tolist() for id in history.attached]
    assert found == [[trial.params["c"]] for trial in study.trials[5:7]]


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_results_with_choices_that_a_storage_keeps_as_lists_are_attached() -> None:
    space = {"layers": optuna.distributions.CategoricalDistribution([(8,), (16, 8), (32, 16)])}
    study = optuna.create_study(storage="sqlite://", sampler=optuna.samplers.RandomSampler(seed=0))
    for value in range(4):
        study.tell(study.ask(space), value)
    given = [tuple(trial.params["layers"]) for trial in study.trials]
    assert isinstance(study.trials[0].params["layers"], list) and len(set(given)) > 1
    study.sampler = sampler(search_space=space)
    for _ in range(2):
        asked = study.ask(space)
        assert asked.params["layers"] in space["layers"].choices
        study.tell(asked, 0.5)
    history = study.sampler._followed.hosted.strategy.history
    found = [history.trials[id].x.item() for id in history.attached]
    assert found == [space["layers"].choices.index(choice) for choice in given]
    assert [history.values[id] for id in history.attached] == [-0.0, -1.0, -2.0, -3.0]


def test_a_point_that_was_pruned_is_not_asked_at_once_again() -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(bowl, n_trials=4)
    points = set()
    for _ in range(4):
        trial = study.ask()
        bowl(trial)
        points.add(tuple(trial.params.values()))
        study.tell(trial, state=TrialState.PRUNED)
    assert len(points) == 4
