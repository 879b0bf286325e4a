"""Studies and runs with named parameters, and the tables of both."""

from datetime import UTC, datetime

import pandas as pd
import pytest

import botorch_ext as bx
from botorch_ext.exceptions import (
    AnotherStrategyError,
    ObjectiveError,
    OutsideDomainError,
    TrialFailedWarning,
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
