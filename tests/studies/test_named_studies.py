"""Studies and runs with named parameters, and the tables of both."""

import warnings
from datetime import UTC, datetime

import pandas as pd
import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import (
    AnotherStrategyError,
    ObjectiveError,
    OutsideDomainError,
    TableError,
    TrialFailedWarning,
)
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.sheets import Sheet
from tests.studies.kept import PARAMETERS

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


def test_an_objective_gets_a_dict_and_failures_say_where(tmp_path):
    result = bx.run(at_random(), result_of, 4, progress=False)
    assert result.params == [SPACE.params(x) for x in result.X]
    assert result.Y.tolist() == pytest.approx(list(map(result_of, result.params)))
    assert result.best_params == SPACE.params(result.best_x)
    study = bx.Study(tmp_path / "lab.db", at_random())
    assert [trial.params for trial in study.attach(result.to_pandas())] == result.params

    def fail(params):
        raise RuntimeError("no power")

    with pytest.warns(TrialFailedWarning, match="at {'temperature': .*, 'solvent': '.*'} failed"):
        bx.run(at_random(), fail, 1, progress=False)
    with pytest.raises(ObjectiveError, match="objective must be a function of a point"):
        bx.run(at_random(), lambda temperature, catalyst, **rest: 0.0, 1, progress=False)


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


TAKEN = ("State", "asked_at", "ended_at", "predicted mean", "state_")


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
    sheet = tmp_path / "all.csv"
    assert main(["trials", str(tmp_path / "lab.db"), "--csv", "-o", str(sheet)]) == 0
    for number, given in enumerate((table, Sheet.read(sheet))):
        other = bx.Study(tmp_path / f"{number}.db", strategy, objective="std")
        with warnings.catch_warnings():  # all of its columns are known
            warnings.simplefilter("error")
            attach = other.attach if given is table else other.attach_sheet
            (attached,) = attach(given)
        assert attached.params == trial.params


def test_the_table_of_a_run(tmp_path):
    space = bx.Space(trial=bx.Real(5, 6), value=bx.Real(7, 8))
    strategy = RandomSearch(space, seed=1, context_domain=CONTEXTS)
    given = [[0.1 * j, j % 2] for j in range(4)]
    result = bx.run(strategy, lambda p, z: p["trial"] + z[0], 4, contexts=given, progress=False)
    table = result.to_pandas()
    assert [*table] == ["trial_", "trial", "value", "load", "day", "value_"]
    assert table["trial_"].tolist() == result.ids and table["value_"].tolist() == result.Y.tolist()
    assert table[["trial", "value"]].to_dict("records") == result.params
    assert table["load"].tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert table["day"].tolist() == ["mon", "tue"] * 2
    box = RandomSearch(bx.Box([(0, 1)]), context_domain=2)
    plain = bx.run(box, lambda x, z: float(z[1]), 2, contexts=[[1.0, 2.0]] * 2, progress=False)
    assert [*plain.to_pandas()] == ["trial", "x0", "context0", "context1", "value"]
    assert plain.to_pandas()["context1"].tolist() == [2.0, 2.0]
    same = RandomSearch(bx.Space(context0=bx.Real(5, 6)), context_domain=1)
    taken = bx.run(same, lambda p, z: 0.0, 1, contexts=[[1.0]], progress=False).to_pandas()
    assert taken["context0"].item() >= 5 and taken["context0_"].item() == 1.0


def test_empty_rows_of_a_table_are_left_out(tmp_path):
    study = bx.Study(tmp_path / "lab.db", RandomSearch(bx.Space(a=bx.Real(0, 1)), seed=1))
    frame = pd.DataFrame({"a": [0.25, None, 0.5], "value": [1.0, float("nan"), 2.0]})
    assert [trial.params["a"] for trial in study.attach(frame)] == [0.25, 0.5]
    rows = [{}, {"a": 0.75, "value": 3.0}, {"a": None, "value": " "}]
    assert [trial.params["a"] for trial in study.attach(rows)] == [0.75]
    before = len(study.events)
    for wrong in ([{}, {"a": None}], [{"a": 0.1, "value": 1.0}, {"a": 0.2}], frame.iloc[1:2]):
        with pytest.raises(TableError):
            study.attach(wrong)
    assert len(study.events) == before
