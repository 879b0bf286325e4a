"""What an Optuna study samples at random is said, once, by name and reason."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext.exceptions import HostWarning, IndependentSamplingWarning

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_ext.integrations.optuna import ATTRIBUTE, StrategySampler  # noqa: E402
from tests.integrations.in_optuna import FIXED  # noqa: E402

SPACE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
ROUNDS = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 1.0, "horizon": 8}


def _said(
    objective: Callable[[Any], float], num_trials: int = 6, name: str = "gp_bucb", **more: Any
) -> tuple[Any, list[str]]:
    """A study after some trials, and what it warned of."""
    arguments = ROUNDS if name == "certified_bucb" else FIXED
    study = optuna.create_study(sampler=StrategySampler(name, **(arguments | more)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study.optimize(objective, n_trials=num_trials)
    kinds = (IndependentSamplingWarning, HostWarning)
    return study, [str(w.message) for w in caught if issubclass(w.category, kinds)]


def _num_asked(study: Any) -> int:
    return sum(ATTRIBUTE in trial.system_attrs for trial in study.trials)


def test_ranges_that_change_are_said() -> None:
    study, said = _said(lambda t: t.suggest_float("x", 0.0, 1.0 + t.number))
    assert said == ["x is sampled at random: not all trials have it with the same range"]
    assert _num_asked(study) == 1  # the second


def test_trials_without_a_common_parameter_are_said() -> None:
    _, said = _said(lambda t: t.suggest_float("a" if t.number % 2 else "b", 0.0, 1.0))
    assert [message.split(":")[0] for message in said] == [
        f"{name} is sampled at random" for name in "ab"
    ]


def test_results_that_are_all_nan_are_said() -> None:
    _, said = _said(lambda t: t.suggest_float("x", 0.0, 1.0) * math.nan)
    assert len(said) == 1 and "until one is complete" in said[0] and "NaN" in said[0]


def test_a_study_whose_space_is_known_says_nothing() -> None:
    study, said = _said(lambda t: t.suggest_float("x", 0.0, 1.0) + t.suggest_int("n", 0, 9))
    assert said == [] and _num_asked(study) == 5
    study.enqueue_trial({"n": 3})
    study.optimize(lambda t: t.suggest_float("x", 0.0, 1.0) + t.suggest_int("n", 0, 9), 1)


def test_first_trials_at_once_say_nothing() -> None:
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", **FIXED))
    first, second = study.ask(), study.ask()
    study.tell(first, first.suggest_float("x", 0.0, 1.0))
    second.suggest_float("x", 0.0, 1.0)  # it began when nothing was known


def test_names_of_the_search_space_are_compared() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 2.0, 3.0)
        return x + trial.suggest_float("z", 0.0, 1.0)

    _, said = _said(objective, search_space=SPACE)
    assert said == [
        f"x is sampled at random: search_space has another range, {SPACE['x']}",
        "z is sampled at random: it is not in search_space",
        "y of search_space is not suggested: the values that the strategy chooses for it have no "
        "effect, as in trial 0",
    ]


def test_a_parameter_that_cannot_be_searched_is_random() -> None:
    study, said = _said(lambda t: t.suggest_float("x", 0.0, 1.0) + t.suggest_int("odd", 0, 2**60))
    assert len(said) == 1 and said[0].startswith("odd is sampled at random") and "2^53" in said[0]
    assert _num_asked(study) == 5 and len(study.trials) == 6


def test_a_space_that_the_method_cannot_search_is_random() -> None:
    def objective(trial: Any) -> float:
        return trial.suggest_float("rate", 0.1, 1.0, log=True) + trial.suggest_float("x", 0.0, 1.0)

    study, said = _said(objective, name="certified_bucb")
    assert len(said) == 1 and "logarithmic scales: rate" in said[0]
    assert _num_asked(study) == 0 and len(study.trials) == 6


def test_the_end_of_a_horizon_is_said() -> None:
    def objective(trial: Any) -> float:
        return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0)

    study, said = _said(objective, 10, "certified_bucb", search_space=SPACE)
    assert said[-1].endswith("its horizon of 8 trials has ended") and _num_asked(study) == 8


def test_a_search_space_of_single_values_is_no_mistake() -> None:
    space = {"x": FloatDistribution(1.0, 1.0), "c": CategoricalDistribution(["a"])}
    _, said = _said(
        lambda t: t.suggest_float("x", 1.0, 1.0) + len(t.suggest_categorical("c", ["a"])),
        search_space=space,
    )
    assert said == []


def test_a_search_space_that_does_not_fit_is_refused_at_construction() -> None:
    with pytest.raises(ValueError, match="kernel must take points of dimension"):
        StrategySampler(
            "gp_bucb", search_space=SPACE, **(FIXED | {"kernel": RBFKernel(ard_num_dims=3)})
        )
    for distribution in (IntDistribution(0, 2**60), FloatDistribution(-1e308, 1e308)):
        with pytest.raises(ValueError, match="n cannot be searched"):
            StrategySampler("gp_bucb", search_space={"n": distribution}, **FIXED)


def test_a_trial_of_another_seed_that_runs_is_said() -> None:
    storage = optuna.storages.InMemoryStorage()
    studies = [
        optuna.create_study(
            study_name="one",
            storage=storage,
            load_if_exists=True,
            sampler=StrategySampler("gp_bucb", seed=seed, search_space=SPACE, **FIXED),
        )
        for seed in (0, 1)
    ]
    studies[0].ask(SPACE)
    with pytest.warns(HostWarning, match="other arguments .such as another seed"):
        studies[1].ask(SPACE)
    studies[1].ask(SPACE)


def test_choices_that_are_equal_in_python_are_one() -> None:
    choices = [True, 1, 1.0, False, 0, "0"]
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", **FIXED))
    space = {"c": CategoricalDistribution(choices), "x": FloatDistribution(0.0, 1.0)}
    values = {"c": 1, "x": 0.5}
    study.add_trial(optuna.create_trial(params=values, distributions=space, value=1.0))

    def objective(trial: Any) -> float:
        chosen = trial.suggest_categorical("c", choices)
        return trial.suggest_float("x", 0.0, 1.0) + (chosen is True)

    study.optimize(objective, n_trials=8)
    history = study.sampler._followed.hosted.strategy.history
    assert len(history.attached) == 1 and not history.abandoned
    assert {type(t.params["c"]) for t in study.trials[1:]} <= {bool, str}


def test_a_trial_that_runs_in_a_space_that_has_shrunk_is_said() -> None:
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", repeat=True, **FIXED))
    study.tell(study.ask(SPACE), 1.0)
    study.ask(SPACE)
    study.tell(study.ask({"x": SPACE["x"]}), 0.5)  # from here on there is x alone
    with pytest.warns(HostWarning, match="another seed. or in another space: .* until"):
        study.ask({"x": SPACE["x"]})
