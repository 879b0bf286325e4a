"""Optuna's studies ask what strategies ask by hand, on any storage and in any process."""

from __future__ import annotations

import copy
import json
import math
import multiprocessing
import pickle
import shutil
import warnings
from collections import Counter
from typing import Any

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.exceptions import HostWarning, IndependentSamplingWarning

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage, RDBStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from botorch_ext.integrations.optuna import ATTRIBUTE, StrategySampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

FIXED = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 2.0, "num_initial": 3}
SPACE = {"a": FloatDistribution(2.0, 5.0), "b": FloatDistribution(-1.0, 3.0)}
MIXED = {
    "rate": FloatDistribution(1e-4, 0.1, log=True),
    "share": FloatDistribution(0.1, 0.75, step=0.05),
    "depth": IntDistribution(2, 9),
    "batch": IntDistribution(16, 512, log=True),
    "even": IntDistribution(2, 10, step=2),
    "kind": CategoricalDistribution(["rbf", None, True, 3]),
    "alone": CategoricalDistribution(["one"]),
}


def bowl(trial: Any) -> float:
    a, b = trial.suggest_float("a", 2.0, 5.0), trial.suggest_float("b", -1.0, 3.0)
    return 0.2 * (a - 3.2) ** 2 + 0.2 * (b - 0.4) ** 2


def sampler(name: str = "gp_bucb", **more: Any) -> StrategySampler:
    return StrategySampler(name, **(FIXED | {"search_space": SPACE} | more))


def by_hand() -> bx.Strategy:
    return bx.algorithms.gp_bucb(bx.Box([[2.0, -1.0], [5.0, 3.0]]), **FIXED)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_study_asks_what_a_strategy_asks_by_hand(direction: str) -> None:
    study, strategy = optuna.create_study(direction=direction, sampler=sampler()), by_hand()
    sign = -1.0 if direction == "minimize" else 1.0
    for _ in range(6):
        asked = study.ask()
        value, trial = bowl(asked), strategy.ask()
        assert asked.params == {"a": float(trial.x[0]), "b": float(trial.x[1])}
        study.tell(asked, value)
        strategy.tell(trial.id, sign * value)


def test_running_trials_are_pending_and_others_attached() -> None:
    study, strategy = optuna.create_study(sampler=sampler()), by_hand()
    study.add_trial(
        optuna.create_trial(params={"a": 3.0, "b": 0.5}, distributions=SPACE, value=0.25)
    )
    study.enqueue_trial({"a": 4.5, "b": 2.5})
    given = study.ask()
    bowl(given)
    assert ATTRIBUTE not in study.trials[1].system_attrs
    strategy.attach([3.0, 0.5], -0.25)
    running = []
    for _ in range(5):
        running.append(study.ask())
        bowl(running[-1])
        trial = strategy.ask()
        assert running[-1].params == {"a": float(trial.x[0]), "b": float(trial.x[1])}
    # What is new is learnt in the order of the trials.
    study.tell(given, 4.0)
    study.tell(running[0], state=TrialState.FAIL)
    running[1].report(0.1, 0)
    study.tell(running[1], state=TrialState.PRUNED)
    study.tell(running[3], 0.75)
    strategy.attach([4.5, 2.5], -4.0)
    strategy.abandon(1, failed=True)
    strategy.abandon(2)
    strategy.tell(4, -0.75)
    asked, trial = study.ask(), strategy.ask()
    bowl(asked)
    assert asked.params == {"a": float(trial.x[0]), "b": float(trial.x[1])}


def test_parameters_of_every_kind() -> None:
    study = optuna.create_study(sampler=StrategySampler("integrated_ei", num_initial=5))

    def objective(trial: Any) -> float:
        values = {
            "rate": trial.suggest_float("rate", 1e-4, 0.1, log=True),
            "share": trial.suggest_float("share", 0.1, 0.75, step=0.05),
            "depth": trial.suggest_int("depth", 2, 9),
            "batch": trial.suggest_int("batch", 16, 512, log=True),
            "even": trial.suggest_int("even", 2, 10, step=2),
            "kind": trial.suggest_categorical("kind", ["rbf", None, True, 3]),
            "alone": trial.suggest_categorical("alone", ["one"]),
        }
        types = [float, float, int, int, int, (str, type(None), bool, int), str]
        assert all(isinstance(*each) for each in zip(values.values(), types, strict=True))
        return math.log10(values["rate"]) + values["share"] + values["depth"]

    study.optimize(objective, n_trials=10)
    assert all(trial.distributions == MIXED for trial in study.trials)
    asked = [ATTRIBUTE in trial.system_attrs for trial in study.trials]
    assert asked == [False] + 9 * [True]  # the space of the first trial was not known


def _storages(folder: Any) -> dict[str, Any]:
    return {
        "sqlite": lambda: RDBStorage(f"sqlite:///{folder}/study.db"),
        "journal": lambda: JournalStorage(JournalFileBackend(f"{folder}/study.log")),
    }


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
@pytest.mark.parametrize("algorithm", ["gp_bucb", "integrated_ei"])
def test_a_study_goes_on_in_another_process(tmp_path: Any, kind: str, algorithm: str) -> None:
    more = FIXED if algorithm == "gp_bucb" else {"num_initial": 3}
    storage = _storages(tmp_path)[kind]
    study = optuna.create_study(
        storage=storage(), study_name="one", sampler=StrategySampler(algorithm, **more)
    )
    study.optimize(bowl, n_trials=5)
    for _ in range(2):
        bowl(study.ask())
    elsewhere = tmp_path / "copy"
    elsewhere.mkdir()
    for file in tmp_path.glob("study.*"):
        shutil.copy(file, elsewhere)
    context: Any = multiprocessing.get_context("fork")
    queue = context.Queue()
    arguments = (_storages(elsewhere)[kind], algorithm, more, queue)
    child = context.Process(target=_asked_in_child, args=arguments)
    child.start()
    trials = [study.ask() for _ in range(2)]
    for trial in trials:
        bowl(trial)
    assert queue.get(timeout=60) == [trial.params for trial in trials]
    child.join()


def _asked_in_child(storage: Any, algorithm: str, more: dict[str, Any], queue: Any) -> None:
    torch.set_num_threads(1)
    study = optuna.load_study(
        study_name="one", storage=storage(), sampler=StrategySampler(algorithm, **more)
    )
    trials = [study.ask() for _ in range(2)]
    for trial in trials:
        bowl(trial)
    queue.put([trial.params for trial in trials])


# --- studies of one name --------------------------------------------------------------------------


def _shifted(trial: Any) -> float:
    return bowl(trial) + 0.3 * trial.params["a"]


def test_two_studies_of_one_name_are_two() -> None:
    shared = sampler()
    studies = [optuna.create_study(study_name="one", sampler=shared) for _ in range(2)]
    alone = optuna.create_study(study_name="one", sampler=sampler())
    studies[0].optimize(bowl, n_trials=5)
    for study in (studies[1], alone):
        study.optimize(_shifted, n_trials=5)
    assert [t.params for t in studies[1].trials] == [t.params for t in alone.trials]
    assert _numbers(studies[1].trials) == list(range(5))


@pytest.mark.parametrize("kind", ["sqlite", "journal", "memory"])
def test_a_study_that_is_deleted_and_made_again_begins_anew(tmp_path: Any, kind: str) -> None:
    made = _storages(tmp_path) | {"memory": optuna.storages.InMemoryStorage}
    storage, shared = made[kind](), sampler()
    first = optuna.create_study(study_name="one", storage=storage, sampler=shared)
    # A result of the same number and value at another place.
    for study, b in ((first, 0.5), (None, 2.5)):
        if study is None:
            optuna.delete_study(study_name="one", storage=storage)
            study = optuna.create_study(study_name="one", storage=storage, sampler=shared)
            if kind == "sqlite":  # it uses numbers again
                assert study._study_id == first._study_id
        values = {"a": 3.0, "b": b}
        study.add_trial(optuna.create_trial(params=values, distributions=SPACE, value=0.25))
        study.optimize(bowl if b == 0.5 else _shifted, n_trials=6)
    again = optuna.load_study(study_name="one", storage=storage, sampler=sampler())
    history, known = study.sampler._followed.hosted.strategy.history, study.trials[:-1]
    assert list(history.values.values()) == [-trial.value for trial in known]
    assert history.trials[0].x.tolist() == [3.0, 2.5]
    asked = [again.ask(), study.ask()]
    assert [bowl(trial) is not None for trial in asked]
    assert sorted(_numbers(study.trials[1:])) == list(range(8))


# --- several at once ------------------------------------------------------------------------------


def _optimize_in_child(storage: Any, num_trials: int) -> None:
    torch.set_num_threads(1)
    study = optuna.load_study(study_name="one", storage=storage(), sampler=sampler())
    study.optimize(bowl, n_trials=num_trials)


def _numbers(trials: Any) -> list[int]:
    return [json.loads(each.system_attrs[ATTRIBUTE]["record"])["number"] for each in trials]


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_several_processes_never_ask_the_same(tmp_path: Any, kind: str) -> None:
    storage = _storages(tmp_path)[kind]
    optuna.create_study(storage=storage(), study_name="one")
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=_optimize_in_child, args=(storage, 5), daemon=True) for _ in range(3)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout=120)
        assert child.exitcode == 0
    trials = optuna.load_study(study_name="one", storage=storage()).trials
    assert len(trials) == 15 and all(trial.state == TrialState.COMPLETE for trial in trials)
    assert len({tuple(trial.params.values()) for trial in trials}) == 15
    assert sorted(_numbers(trials)) == list(range(15))  # each knew all that were asked before


def test_threads_never_ask_the_same() -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(bowl, n_trials=12, n_jobs=4)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12
    numbers = [
        json.loads(each.system_attrs[ATTRIBUTE]["record"])["number"] for each in study.trials
    ]
    assert sorted(numbers) == list(range(12))


def test_first_trials_at_once_differ_too() -> None:
    studies = [optuna.create_study(sampler=StrategySampler("gp_bucb", **FIXED)) for _ in range(2)]
    asked = [studies[0].ask() for _ in range(3)]
    for trial in asked:
        bowl(trial)
    assert len({tuple(trial.params.values()) for trial in asked}) == 3
    bowl(studies[1].ask())
    assert studies[1].trials[0].params == asked[0].params  # they follow from the seed


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_a_copy_asks_the_same(copied: Any) -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(bowl, n_trials=4)
    study.sampler = copied(study.sampler)
    study.sampler.reseed_rng()
    strategy = by_hand()
    for trial in study.trials:
        strategy.tell(strategy.ask().id, -trial.value)
    asked = study.ask()
    bowl(asked)
    assert list(asked.params.values()) == strategy.ask().x.tolist()


# --- what cannot be asked -------------------------------------------------------------------------


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
    assert len(messages) == 1 and messages[0].endswith("no lock is known for a InMemoryStorage")
    assert optuna_locks.lock_of(Remote(), 0) is not None


# --- arguments and what is kept -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("gp_bcub", {}, "did you mean 'gp_bucb'"),
        ("gp_bucb", {"widht": 2.0}, "gp_bucb takes no argument 'widht'"),
        ("certified_bucb", {}, "kernel must be given for certified_bucb"),
        ("cgp_ucb", {}, "a context at every question, and StrategySampler has none"),
        ("gp_bucb", {"seed": 0.5}, "seed must be a whole number"),
        ("gp_bucb", {"search_space": {"a": 3}}, "a must have a distribution of Optuna, got 3"),
        ("gp_bucb", {"search_space": {"a": IntDistribution(0, 2**60)}}, "a cannot be searched"),
    ],
)
def test_wrong_arguments_are_refused_at_once(algorithm, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        StrategySampler(algorithm, **arguments)


def test_a_space_that_the_method_cannot_search_is_refused_by_name() -> None:
    arguments = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 1.0, "horizon": 8}
    space = {"a": FloatDistribution(0.1, 5.0, log=True)}
    with pytest.raises(ValueError, match=r"bpe searches .* logarithmic scales: a"):
        StrategySampler("bpe", search_space=space, **arguments)
    chosen = StrategySampler("bpe", search_space=space, num_points=20, **arguments)
    study = optuna.create_study(sampler=chosen)
    assert 0.1 <= study.ask(space).params["a"] <= 5.0


def test_what_is_kept_is_short_and_json() -> None:
    study = optuna.create_study(sampler=sampler())
    study.optimize(bowl, n_trials=6)
    for trial in study.trials:
        assert list(trial.system_attrs) == [ATTRIBUTE]
        assert len(json.dumps(trial.system_attrs)) < 500
