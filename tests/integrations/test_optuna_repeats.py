"""Points that run or have failed are not asked again."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext.exceptions import IndependentSamplingWarning

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState  # noqa: E402

from botorch_ext.integrations.optuna import ATTRIBUTE, StrategySampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

pytestmark = pytest.mark.filterwarnings("ignore:trials are sampled at random where")

KERNEL = RBFKernel()
KERNEL.lengthscale = 2.0
FIXED = {"kernel": KERNEL, "noise_variance": 0.01, "width": 1.5, "num_initial": 4}
GRID = {"x": IntDistribution(0, 3), "y": CategoricalDistribution([0, 1, 2, 3])}
SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
SPACES = {"grid": GRID, "square": SQUARE}


def _corner(trial: Any) -> float:
    return trial.params["x"] + trial.params["y"]


def _study(space: Any, storage: Any = None, **more: Any) -> Any:
    sampler = StrategySampler("gp_bucb", **(FIXED | {"search_space": space} | more))
    return optuna.create_study(
        study_name="one", storage=storage, load_if_exists=True, sampler=sampler
    )


def _after_ten(space: Any, **more: Any) -> Any:
    study = _study(space, **more)
    for _ in range(10):
        trial = study.ask(space)
        study.tell(trial, _corner(trial))
    return study


def _asked(study: Any, space: Any, number: int) -> list[tuple[Any, ...]]:
    return [tuple(study.ask(space).params.values()) for _ in range(number)]


@pytest.mark.parametrize("kind", SPACES)
def test_trials_that_run_are_all_elsewhere(kind: str) -> None:
    space = SPACES[kind]
    plain = _asked(_after_ten(space, repeat=True), space, 6)
    assert len(set(plain)) < 6  # what the method asks
    study = _after_ten(space)
    asked = _asked(study, space, 6)
    assert len(set(asked)) == 6 and asked[0] == plain[0]
    # Others on this storage ask the next question in the same way.
    others = [_study(space, study._storage) for _ in range(3)]
    running = {*asked, *(_asked(other, space, 1)[0] for other in others)}
    assert len(running) == 9


def test_a_point_taken_instead_runs_before_it_is_suggested() -> None:
    study = _after_ten(GRID)
    trials = [study.ask() for _ in range(6)]
    points = {(t.suggest_int("x", 0, 3), t.suggest_categorical("y", [0, 1, 2, 3])) for t in trials}
    assert len(points) == 6
    kept = [trial.system_attrs[ATTRIBUTE] for trial in study.trials[10:]]
    assert [set(each) for each in kept].count({"number", "space", "instead"}) >= 2


def test_what_was_found_instead_is_attached() -> None:
    study = _after_ten(SQUARE)
    trials = [study.ask(SQUARE) for _ in range(4)]
    for trial in trials:
        study.tell(trial, _corner(trial))
    study.ask(SQUARE)
    history = study.sampler._followed.hosted.strategy.history
    instead = [t for t in study.trials if "instead" in t.system_attrs[ATTRIBUTE]]
    found = {(*history.trials[id].x.tolist(), history.values[id]) for id in history.attached}
    assert instead
    assert found == {(*t.params.values(), -t.value) for t in instead if t.value is not None}
    again = _study(SQUARE, study._storage)
    assert again.ask(SQUARE).params == _copy_of(study).ask(SQUARE).params


def _copy_of(study: Any) -> Any:
    """The study without its last trial, which was asked after it."""
    storage = optuna.storages.InMemoryStorage()
    copy = _study(SQUARE, storage)
    copy.add_trials(study.trials[:-1])
    return copy


def test_a_point_that_failed_is_not_asked_again() -> None:
    def played(**more: Any) -> list[tuple[Any, ...]]:
        study, failed = _study(SQUARE, **more), []
        for _ in range(20):
            trial = study.ask(SQUARE)
            if trial.params["x"] < 0.05 and trial.params["y"] < 0.05:
                failed.append(tuple(trial.params.values()))
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, _corner(trial))
        return failed

    plain, failed = played(repeat=True), played()
    assert len(plain) - len(set(plain)) > 5
    assert failed and len(failed) == len(set(failed))


def test_where_all_points_run_the_question_of_the_method_is_taken() -> None:
    study = _after_ten(GRID)
    asked = _asked(study, GRID, 18)
    assert len(set(asked[:16])) == 16
    assert all("record" in trial.system_attrs[ATTRIBUTE] for trial in study.trials[26:])


def test_points_of_complete_trials_are_asked_again() -> None:
    study = _after_ten(GRID)
    for _ in range(3):
        trial = study.ask(GRID)
        study.tell(trial, _corner(trial))
        assert tuple(trial.params.values()) == (0, 0)


def test_among_some_points_of_the_space() -> None:
    study = _after_ten(SQUARE, num_points=30)
    asked = _asked(study, SQUARE, 30)
    assert len(set(asked)) == 30


def test_methods_with_rounds_repeat() -> None:
    arguments = {"kernel": KERNEL, "noise_variance": 0.01, "width": 1.0, "horizon": 40}
    space = {"x": IntDistribution(0, 2)}
    study = optuna.create_study(sampler=StrategySampler("bpe", search_space=space, **arguments))
    trials = [study.ask(space) for _ in range(4)]
    assert len({trial.params["x"] for trial in trials}) < 4
    assert all("record" in trial.system_attrs[ATTRIBUTE] for trial in study.trials)


@pytest.mark.filterwarnings("default:trials are sampled at random where")
def test_it_is_said_once() -> None:
    study = _after_ten(GRID)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _asked(study, GRID, 6)
    messages = [str(w.message) for w in caught if w.category is IndependentSamplingWarning]
    assert len(messages) == 1 and "repeat=True" in messages[0]


def test_repeat_is_true_or_false() -> None:
    with pytest.raises(ValueError, match="repeat must be"):
        StrategySampler("gp_bucb", repeat="no")
