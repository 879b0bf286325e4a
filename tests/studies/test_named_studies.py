"""Studies and runs with named parameters: params of trials, tables whose columns keep their names,
and what is kept of a space."""

import warnings
from datetime import UTC, datetime

import pandas as pd
import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import (
    AnotherStrategyError,
    ObjectiveError,
    OutsideDomainError,
    TrialFailedWarning,
    UnknownTrialError,
)
from botorch_ext.strategies import RandomSearch

PARAMETERS = {
    "temperature": bx.Real(20, 80, unit="°C", digits=1),
    "catalyst": bx.Real(1e-4, 1e-1, log=True, unit="mol/l"),
    "equivalents": bx.Integer(1, 5),
    "solvent": bx.Choice(["water", "ethanol", "dmso"]),
}
LIMIT = "0.5 * equivalents + temperature <= 60"
SPACE = bx.Space(PARAMETERS, constraints=[LIMIT])
KNOWN = {"temperature": 30.5, "catalyst": 0.01, "equivalents": 2, "solvent": "ethanol"}
CONTEXTS = bx.Space(load=bx.Real(0, 1, step=0.1), day=bx.Choice(["mon", "tue"]))


def result_of(params):
    """By name, of a dict alone."""
    assert list(params) == list(PARAMETERS)
    offset = {"water": 0.0, "ethanol": 0.5, "dmso": 1.5}[params["solvent"]]
    return offset - ((params["temperature"] - 41.5) / 20) ** 2 + 0.1 * params["equivalents"]


def at_random(**changes):
    return RandomSearch(bx.Space(PARAMETERS | changes, constraints=[LIMIT]), seed=3)


# --- params ---------------------------------------------------------------------------------------


def test_trials_have_params_and_names_change_no_choice():
    data = [KNOWN, KNOWN | {"solvent": "dmso"}], [0.3, 0.5]
    options = {"kernel": bx.Fitted(), "width": 2.0, "num_initial": 2}
    named = bx.algorithms.gp_bucb(SPACE, initial=data, **options)
    points = torch.stack([SPACE.point(row) for row in data[0]])
    unnamed = bx.algorithms.gp_bucb(SPACE.without_names(), initial=(points, data[1]), **options)
    for _ in range(3):
        trial, other = named.ask(), unnamed.ask()
        assert torch.equal(trial.x, other.x)
        assert trial.params == SPACE.params(trial.x) == trial.given
        assert [type(value) for value in trial.params.values()] == [float, float, int, str]
        assert trial.params["temperature"] == round(trial.params["temperature"], 1)
        assert other.given is other.x and other.params.keys() == {"x0", "x1", "x2", "x3"}
        for one, asked in ((named, trial), (unnamed, other)):
            one.tell(asked, result_of(trial.params))
    assert named.attach(KNOWN, 0.4).params == KNOWN
    assert named.best_params() == SPACE.params(named.best()[0])


def test_an_objective_gets_a_dict_and_failures_say_where():
    result = bx.run(at_random(), result_of, 4, progress=False)
    assert result.params == [SPACE.params(x) for x in result.X]
    assert result.Y.tolist() == pytest.approx(list(map(result_of, result.params)))
    assert result.best_params == SPACE.params(result.best_x)

    def fail(params):
        raise RuntimeError("no power")

    with pytest.warns(TrialFailedWarning, match="at {'temperature': .*, 'solvent': '.*'} failed"):
        bx.run(at_random(), fail, 1, progress=False)
    with pytest.raises(ObjectiveError, match="objective must be a function of a point"):
        bx.run(at_random(), lambda temperature, catalyst, **rest: 0.0, 1, progress=False)


# --- what is kept ---------------------------------------------------------------------------------


def test_a_study_keeps_its_space(tmp_path):
    path = tmp_path / "yield.db"
    study = bx.Study(path, at_random(), minimize=True)
    first, second = study.ask(2)
    study.tell(first, 3.5)
    assert study.attach(KNOWN, 2.5).params == KNOWN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = bx.Study(path, at_random())
    assert [trial.params for trial in again.strategy.history.trials] == [
        *(first.params, second.params, KNOWN)
    ]
    assert again.best_params() == KNOWN
    stranger = bx.Trial(1, second.x + 0.1, None, {}, SPACE)
    with pytest.raises(UnknownTrialError, match=r"got Trial 1 at \{'temperature': "):
        again.tell(stranger, 1.0)
    otherwise = ["60 >= temperature + equivalents / 2"]
    assert bx.Study(
        path, RandomSearch(bx.Space(PARAMETERS, constraints=otherwise), seed=3)
    ).minimize


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (PARAMETERS | {"temperature": bx.Real(20, 80, unit="K", digits=1)}, r"temperature\.unit"),
        (PARAMETERS | {"temperature": bx.Real(20, 80, unit="°C", digits=2)}, r"digits is 1 in"),
        (PARAMETERS | {"solvent": bx.Choice(["water", "ethanol", "thf"])}, r"values\[2\]"),
        (PARAMETERS | {"pressure": bx.Real(1, 2)}, "parameters.pressure"),
        (dict(reversed(PARAMETERS.items())), "domain"),
    ],
)
def test_another_name_or_unit_is_another_study(tmp_path, parameters, message):
    bx.Study(tmp_path / "yield.db", at_random())
    for domain, named in (
        (bx.Space(parameters, constraints=[LIMIT]), message),
        (bx.Space(PARAMETERS), "constraints"),
        (SPACE.without_names(), "class is 'Space' in the study"),
    ):
        with pytest.raises(AnotherStrategyError, match=named):
            bx.Study(tmp_path / "yield.db", RandomSearch(domain, seed=3))


# --- tables ---------------------------------------------------------------------------------------


def test_the_table_of_a_study(tmp_path, clock):
    strategy = RandomSearch(SPACE, seed=3, context_domain=CONTEXTS)
    study = bx.Study(tmp_path / "lab.db", strategy, minimize=True, objective="cost", unit="€")
    monday = {"load": 0.3, "day": "mon"}
    trials = study.ask(4, context=monday)
    clock.now += 60
    study.tell(trials[0], 3.5)
    study.abandon(trials[1], failed=True)
    study.abandon(trials[2])
    study.attach(KNOWN, 2.5, {"load": 1, "day": "tue"})
    clock.now += 60
    study.correct(0, 4.5)
    table = study.to_pandas()
    assert [*table] == [
        *("trial", "state", *PARAMETERS, "load", "day", "cost", "asked_at", "ended_at")
    ]
    assert table["state"].tolist() == ["told", "failed", "abandoned", "pending", "attached"]
    assert table["cost"].tolist()[::4] == [4.5, 2.5] and table["cost"].isna().sum() == 3
    assert table["load"].tolist() == [0.3] * 4 + [1.0] and table["day"][4] == "tue"
    assert table[[*PARAMETERS]].iloc[1].to_dict() == trials[1].params
    begun = datetime.fromtimestamp(clock.now - 120, UTC)
    assert table["asked_at"][0] == begun and pd.isna(table["asked_at"][4])
    ended = [None if pd.isna(at) else (at - begun).seconds for at in table["ended_at"]]
    assert ended == [60, 60, 60, None, 60]
    with pytest.raises(OutsideDomainError, match=r"day must be one of .*, got 'wed' in context"):
        study.ask(context={"load": 0.3, "day": "wed"})


TAKEN = ("state", "asked_at", "ended_at", "predicted mean", "state_")


def test_columns_of_the_library_take_no_name_of_the_user(tmp_path):
    """A study and a run with parameters and contexts that are called as the columns are."""
    space = bx.Space({name: bx.Real(j, j + 1) for j, name in enumerate(TAKEN)})
    contexts = bx.Space(value=bx.Real(0, 1))
    strategy = RandomSearch(space, seed=1, context_domain=contexts)
    study = bx.Study(tmp_path / "lab.db", strategy, objective="std")
    trial = study.ask(context={"value": 0.5})
    study.tell(trial, 7.0)
    table = study.to_pandas()
    assert [*table] == ["trial", "state__", *TAKEN, "value", "std", "asked_at_", "ended_at_"]
    assert table[[*TAKEN]].iloc[0].to_dict() == trial.params
    assert (table["state__"][0], table["value"][0], table["std"][0]) == ("told", 0.5, 7.0)
    assert table["asked_at_"][0] <= table["ended_at_"][0]
    with warnings.catch_warnings():  # all of its columns are known
        warnings.simplefilter("error")
        other = bx.Study(tmp_path / "other.db", strategy, objective="std")
        (attached,) = other.attach(table)
    assert attached.params == trial.params
