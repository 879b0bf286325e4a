"""Optuna's studies ask what strategies ask by hand, on any storage and in any process."""

from __future__ import annotations

import copy
import json
import math
import multiprocessing
import pickle
import shutil
from typing import Any

import pytest
import torch
from gpytorch.kernels import RBFKernel

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
from tests.integrations.in_optuna import FIXED, SPACE, bowl, by_hand, sampler  # noqa: E402

MIXED = {
    "rate": FloatDistribution(1e-4, 0.1, log=True),
    "share": FloatDistribution(0.1, 0.75, step=0.05),
    "depth": IntDistribution(2, 9),
    "batch": IntDistribution(16, 512, log=True),
    "even": IntDistribution(2, 10, step=2),
    "kind": CategoricalDistribution(["rbf", None, True, 3]),
    "alone": CategoricalDistribution(["one"]),
}


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
    strategy.abandon(2, failed=True)
    strategy.tell(4, -0.75)
    asked, trial = study.ask(), strategy.ask()
    bowl(asked)
    assert asked.params == {"a": float(trial.x[0]), "b": float(trial.x[1])}


def test_results_of_a_study_stand_for_first_points() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(bowl, n_trials=8)
    study.sampler = StrategySampler("integrated_ei", seed=1)
    study.ask(SPACE)
    assert "particles" in study.trials[-1].system_attrs[ATTRIBUTE]["record"]


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


# --- arguments and what is kept -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("gp_bcub", {}, "did you mean 'gp_bucb'"),
        ("gp_bucb", {"widht": 2.0}, "gp_bucb takes no argument 'widht'"),
        ("certified_bucb", {}, "kernel must be given for certified_bucb"),
        ("cgp_ucb", {}, "needs a context for every trial, but StrategySampler provides none"),
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
        # The first one describes the strategy.
        assert len(json.dumps(trial.system_attrs)) < (2500 if trial.number == 0 else 500)
