"""Studies of Optuna whose objective suggests a parameter only in some branches."""

import warnings
from typing import Any

import pytest

from botorch_ext.exceptions import HostWarning, IndependentSamplingWarning

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

import botorch_ext as bx  # noqa: E402
from botorch_ext.integrations.optuna import StrategySampler  # noqa: E402

SPACE = {
    "booster": CategoricalDistribution(["gbtree", "dart"]),
    "depth": IntDistribution(1, 9),
    "model": CategoricalDistribution(["linear", "forest", "boosting"]),
    "penalty": FloatDistribution(1e-4, 1.0, log=True),
    "rate": FloatDistribution(0.1, 0.5),
    "share": FloatDistribution(2.0, 5.0),
}
CONDITIONS = {
    "penalty": ("model", ["linear"]),
    "depth": ("model", ["forest"]),
    "booster": ("model", ["boosting"]),
    "rate": ("booster", ["dart"]),
}
MORE = {"seed": 2, "num_initial": 6}


def objective(trial: Any) -> float:
    model = trial.suggest_categorical("model", ["linear", "forest", "boosting"])
    value = 0.01 * trial.suggest_float("share", 2.0, 5.0)
    if model == "linear":
        return value + 0.2 + trial.suggest_float("penalty", 1e-4, 1.0, log=True)
    if model == "forest":
        return value + 0.1 * abs(trial.suggest_int("depth", 1, 9) - 3)
    value += 0.3
    if trial.suggest_categorical("booster", ["gbtree", "dart"]) == "dart":
        value += trial.suggest_float("rate", 0.1, 0.5)
    return value


def box() -> bx.Box:
    """The columns in the order of the names."""
    return bx.Box(
        [(0, 1), (1, 9), (0, 2), (1e-4, 1.0), (0.1, 0.5), (2.0, 5.0)],
        log=[3],
        integer=[1],
        categories={0: [0, 1], 2: [0, 1, 2]},
        conditions={3: (2, [0]), 1: (2, [1]), 0: (2, [2]), 4: (0, [1])},
    )


def test_a_tree_is_asked_as_by_hand_and_the_same_after_a_crash(tmp_path):
    url = f"sqlite:///{tmp_path / 'tree.db'}"
    hand = bx.algorithms.integrated_ei(box(), **MORE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndependentSamplingWarning)
        warnings.simplefilter("error", HostWarning)
        for _ in range(2):
            sampler = StrategySampler(
                "integrated_ei", search_space=SPACE, conditions=CONDITIONS, **MORE
            )
            study = optuna.create_study(
                storage=url, study_name="tree", load_if_exists=True, sampler=sampler
            )
            study.optimize(objective, n_trials=7)
    sizes = set()
    for trial in study.trials:
        asked = hand.ask()
        codes = ["gbtree", "dart"], ["linear", "forest", "boosting"]
        booster, depth, model, penalty, rate, share = asked.x.tolist()
        named = {"model": codes[1][int(model)], "share": share}
        named |= {
            "linear": {"penalty": penalty},
            "forest": {"depth": int(depth)},
            "boosting": {"booster": codes[0][int(booster)]}
            | ({"rate": rate} if booster == 1 else {}),
        }[named["model"]]
        assert trial.params == named
        sizes.add(len(named))
        hand.tell(asked.id, -trial.value)
    assert sizes == {3, 4}


def test_results_of_others_are_data_in_their_branch():
    sampler = StrategySampler(
        "integrated_ei", search_space=SPACE, conditions=CONDITIONS, num_initial=1
    )
    study = optuna.create_study(sampler=sampler)
    hand = bx.algorithms.integrated_ei(box(), num_initial=1)
    rest = box().sample(1, 0)[0]
    for params in (
        {"model": "forest", "depth": 4, "share": 3.0},
        {"model": "boosting", "booster": "dart", "rate": 0.2, "share": 2.5},
    ):
        study.add_trial(
            optuna.trial.create_trial(
                params=params, distributions={name: SPACE[name] for name in params}, value=0.3
            )
        )
        x = rest.clone()
        for place, name in enumerate(SPACE):
            if name in params:
                x[place] = SPACE[name].to_internal_repr(params[name])
        hand.attach(x, -0.3)
    for _ in range(3):
        trial, asked = study.ask(), hand.ask()
        value = objective(trial)
        assert trial.params["share"] == asked.x[5]
        study.tell(trial, value)
        hand.tell(asked.id, -value)


def test_a_parameter_that_does_not_count_is_sampled_at_random_and_said():
    sampler = StrategySampler("integrated_ei", search_space=SPACE, conditions=CONDITIONS, **MORE)
    study = optuna.create_study(sampler=sampler)

    def suggests_all(trial: Any) -> float:
        trial.suggest_int("depth", 1, 9)
        return objective(trial)

    with pytest.warns(IndependentSamplingWarning) as caught:
        study.optimize(suggests_all, n_trials=6)
    assert [str(each.message) for each in caught] == [
        "depth is sampled at random: by the conditions it does not count here"
    ]


def test_parents_with_one_value():
    space = SPACE | {"model": CategoricalDistribution(["linear"])}
    conditions = {"penalty": ("model", ["linear"]), "rate": ("booster", ["dart"])}
    sampler = StrategySampler("integrated_ei", search_space=space, conditions=conditions)
    trial = optuna.create_study(sampler=sampler).ask()
    assert trial.suggest_categorical("model", ["linear"]) == "linear"
    assert {*trial.relative_params} >= {"penalty", "depth", "booster"}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"deep": ("model", ["forest"])}, "conditions must only have names of .*got 'deep'"),
        ({"depth": ("model", ["forrest"])}, "condition of depth: model must be one of"),
        ({"depth": ("share", [3.0])}, "condition of depth: share must be a choice"),
    ],
)
def test_impossible_conditions_are_refused(conditions, message):
    with pytest.raises(ValueError, match=message):
        StrategySampler("integrated_ei", search_space=SPACE, conditions=conditions)


def test_conditions_without_a_space_are_refused():
    with pytest.raises(ValueError, match="conditions must be given with search_space"):
        StrategySampler("integrated_ei", conditions=CONDITIONS)
