"""Studies in a space of named parameters: params of trials and results, messages, what is kept."""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    ObjectiveError,
    OutsideDomainError,
    TrialFailedWarning,
    UnknownTrialError,
)
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.described_spaces import described_space
from botorch_ext.studies.description import describe
from botorch_ext.studies.plain_events import from_json, to_json
from tests.domains.drawn_spaces import a_space

PARAMETERS = {
    "temperature": bx.Real(20, 80, unit="°C", digits=1),
    "catalyst": bx.Real(1e-4, 1e-1, log=True, unit="mol/l"),
    "equivalents": bx.Integer(1, 5),
    "solvent": bx.Choice(["water", "ethanol", "dmso"]),
}
LIMIT = "0.5 * equivalents + temperature <= 60"
SPACE = bx.Space(PARAMETERS, constraints=[LIMIT])
KNOWN = {"temperature": 30.5, "catalyst": 0.01, "equivalents": 2, "solvent": "ethanol"}


def result_of(params: dict[str, Any]) -> float:
    """By name, of a dict alone."""
    assert list(params) == list(PARAMETERS)
    offset = {"water": 0.0, "ethanol": 0.5, "dmso": 1.5}[params["solvent"]]
    return offset - ((params["temperature"] - 41.5) / 20) ** 2 + 0.1 * params["equivalents"]


def at_random(**changes: Any) -> bx.Strategy:
    space = bx.Space(PARAMETERS | changes, constraints=[LIMIT])
    return RandomSearch(space, seed=3)


def is_settable(params: dict[str, Any]) -> bool:
    types = [float, float, int, str]
    return [type(value) for value in params.values()] == types and params["temperature"] == round(
        params["temperature"], 1
    )


# --- strategies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["integrated_ei", "credible_ucb", "gp_bucb"])
def test_trials_have_params(method):
    arguments: dict[str, Any] = {"num_initial": 3}
    arguments["initial"] = [KNOWN, KNOWN | {"solvent": "dmso"}], [0.3, 0.5]
    if method == "gp_bucb":
        arguments |= {"kernel": bx.Fitted(), "width": 2.0}
    if method == "credible_ucb":
        arguments["models"] = bx.Particles(8)
    strategy = getattr(bx.algorithms, method)(SPACE, **arguments)
    asked = strategy.ask(2)
    for trial in (*asked, strategy.attach(KNOWN, 0.4)):
        assert is_settable(trial.params) and trial.params == SPACE.params(trial.x)
        assert trial.given == trial.params and bool(SPACE.contains(trial.params))
    for _ in range(3):
        trial = strategy.ask()
        strategy.tell(trial, result_of(trial.params))
    assert strategy.history.trials[2].params == KNOWN
    again = type(strategy)(**strategy.arguments.given)
    again.replay(strategy.events)
    assert [t.params for t in again.history.trials] == [t.params for t in strategy.history.trials]
    assert torch.equal(again.ask().x, strategy.ask().x)
    x, _ = strategy.best()
    assert strategy.best_params() == SPACE.params(x)


def test_names_change_no_choice():
    ways = [bx.algorithms.integrated_ei(domain) for domain in (SPACE, SPACE.without_names())]
    for _ in range(12):
        named, unnamed = (strategy.ask() for strategy in ways)
        assert torch.equal(named.x, unnamed.x)
        value = result_of(named.params)
        for strategy, trial in zip(ways, (named, unnamed), strict=True):
            strategy.tell(trial, value)


def test_trials_elsewhere_have_the_names_of_columns():
    box = bx.Box([(0.0, 1.0), (1, 3), (2.0, 5.0)], integer=[1], conditions={2: (1, [2])})
    for domain in (box, bx.FiniteSet([[0.5, 1.0, 2.0]])):
        trial = RandomSearch(domain, seed=0).ask()
        names = ["x0", "x1", "x2"]
        if domain is box and trial.params["x1"] != 2:
            names.pop()
        assert trial.params == dict(zip(names, trial.x.tolist(), strict=False))
        assert trial.given is trial.x
    assert bx.Trial(0, torch.tensor([0.5, 2.0])).params == {"x0": 0.5, "x1": 2.0}


def test_a_master_and_a_context_have_names():
    seen = bx.Space(load=bx.Real(0, 1, step=0.1), day=bx.Choice(["mon", "tue"]))
    strategy = RandomSearch(SPACE, seed=0, context_domain=seen)
    trial = strategy.ask(context={"load": 0.3, "day": "tue"})
    assert trial.context.tolist() == [0.3, 1.0] and is_settable(trial.params)
    assert strategy.attach(KNOWN, 1.0, context={"load": 0, "day": "mon"}).params == KNOWN
    with pytest.raises(OutsideDomainError, match=r"day must be one of .*, got 'wed' in context"):
        strategy.ask(context={"load": 0.3, "day": "wed"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 81}, "temperature must be a number from 20 to 80 in steps of 0.1, got 81"),
        ({"temperature": "61"}, "temperature must be a number .*, got '61'"),
        ({"catalyst": 0}, "catalyst must be a number from 0.0001 to 0.1, got 0"),
        ({"equivalents": 2.5}, "equivalents must be a whole number from 1 to 5, got 2.5"),
        (
            {"solvent": "Water"},
            r"solvent must be one of \['water', .*\], got 'Water'",
        ),
        ({"temperature": 60}, r"0\.5 \* equivalents \+ temperature <= 60 must hold, got \{'temp"),
        (
            {"temperatur": 60},
            "must only have names of .*, got 'temperatur'; did you mean 'temperature'",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(change, message):
    strategy = RandomSearch(SPACE, seed=0)
    with pytest.raises(ValueError, match=message):
        strategy.attach(KNOWN | change, 1.0)
    with pytest.raises(ValueError, match=message):
        RandomSearch(SPACE, initial=([KNOWN, KNOWN | change], [1.0, 2.0]))
    assert not strategy.events
    del (missing := dict(KNOWN))["solvent"]
    with pytest.raises(ValueError, match="x must have solvent, got values for"):
        strategy.attach(missing, 1.0)


# --- runs -----------------------------------------------------------------------------------------


def test_an_objective_gets_a_dict():
    result = bx.optimize(result_of, SPACE, 12, progress=False, initial=([KNOWN], [0.6]))
    assert result.params == [SPACE.params(x) for x in result.X]
    assert result.best_params == SPACE.params(result.best_x)
    assert result.best_value == max(*result.Y.tolist(), 0.6)
    assert is_settable(result.recommended_params)
    assert result.recommended_params["solvent"] == "dmso"


def test_an_objective_in_another_process_gets_a_dict():
    with ProcessPoolExecutor(1) as executor:
        result = bx.run(at_random(), result_of, 3, executor=executor, progress=False)
    assert result.Y.tolist() == list(map(result_of, result.params))


def test_failures_say_where_by_name():
    def fail(params):
        raise RuntimeError("no power")

    with pytest.warns(TrialFailedWarning, match="at {'temperature': .*, 'solvent': '.*'} failed"):
        bx.run(at_random(), fail, 1, progress=False, max_retries=0)
    with pytest.raises(ObjectiveError, match="objective must be a function of a point"):
        bx.run(at_random(), lambda temperature, catalyst, **rest: 0.0, 1, progress=False)


# --- studies --------------------------------------------------------------------------------------


def test_a_study_keeps_its_space(tmp_path):
    path = tmp_path / "yield.db"
    study = bx.Study(path, at_random(), minimize=True)
    asked = study.ask(2)
    study.tell(asked[0], 3.5)
    assert study.attach(KNOWN, 2.5).params == KNOWN
    assert all(is_settable(trial.params) for trial in asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = bx.Study(path, at_random())
    trials = again.strategy.history.trials
    assert [trial.params for trial in trials] == [asked[0].params, asked[1].params, KNOWN]
    assert again.best_params() == KNOWN
    stranger = bx.Trial(1, asked[1].x + 0.1, None, {}, SPACE)
    with pytest.raises(UnknownTrialError, match=r"got Trial 1 at \{'temperature': "):
        again.tell(stranger, 1.0)
    result = bx.run(again, result_of, 4, progress=False)
    assert result.Y.tolist()[2:] == list(map(result_of, result.params[2:]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: at_random(temperature=bx.Real(20, 80, unit="K", digits=1)), r"temperature\.unit"),
        (lambda: at_random(temperature=bx.Real(20, 80, digits=1)), r"temperature\.unit"),
        (lambda: at_random(temperature=bx.Real(20, 80, unit="°C", digits=2)), r"digits is 1 in"),
        (lambda: at_random(solvent=bx.Choice(["water", "ethanol", "thf"])), r"values\[2\]"),
        (lambda: at_random(pressure=bx.Real(1, 2)), "parameters.pressure"),
        (
            lambda: RandomSearch(
                bx.Space(
                    {name.replace("solvent", "medium"): each for name, each in PARAMETERS.items()},
                    constraints=[LIMIT],
                ),
                seed=3,
            ),
            "parameters.solvent",
        ),
        (lambda: RandomSearch(bx.Space(PARAMETERS), seed=3), "constraints"),
        (lambda: RandomSearch(SPACE.without_names(), seed=3), "class is 'Space' in the study"),
    ],
)
def test_another_name_or_unit_is_another_study(tmp_path, make, message):
    bx.Study(tmp_path / "yield.db", at_random()).ask()
    with pytest.raises(AnotherStrategyError, match=message):
        bx.Study(tmp_path / "yield.db", make())


@pytest.mark.parametrize("seed", range(40))
def test_a_space_is_made_again_from_its_description(seed):
    for dtype in (torch.float64, torch.float32):
        space = a_space(seed, dtype)
        described = from_json(to_json(describe(RandomSearch(space))))["strategy"]["domain"]
        again = described_space(described)
        assert described == from_json(to_json(describe(RandomSearch(again))))["strategy"]["domain"]
        assert torch.equal(again.sample(9, 1), space.sample(9, 1))
        X = space.sample(9, 2)
        assert [again.params(x) for x in X] == [space.params(x) for x in X]
    for key in ("order", "parameters", "bounds"):
        broken = {name: part for name, part in described.items() if name != key}
        with pytest.raises(BrokenStudyError, match="the space of a study cannot be read"):
            described_space(broken)


def test_another_order_is_another_study(tmp_path):
    a, b = bx.Real(0, 1), bx.Real(0, 1)
    bx.Study(tmp_path / "s.db", RandomSearch(bx.Space(a=a, b=b))).ask()
    with pytest.raises(AnotherStrategyError, match=r"order\[0\] is 'a' in the study, got 'b'"):
        bx.Study(tmp_path / "s.db", RandomSearch(bx.Space(b=b, a=a)))


def test_the_constraint_may_be_written_otherwise(tmp_path):
    bx.Study(tmp_path / "s.db", at_random()).ask()
    other = ["60 >= temperature + equivalents / 2"]
    bx.Study(tmp_path / "s.db", RandomSearch(bx.Space(PARAMETERS, constraints=other), seed=3)).ask()
