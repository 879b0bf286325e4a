"""Outcomes: the numbers that are measured beside the value of a trial."""

import math
import re

import pandas as pd
import pytest

import botorch_ext as bx
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.page.model_summary import ModelSummary
from botorch_ext.page.overview import read_overview
from botorch_ext.page.page import page
from botorch_ext.page.tables import as_table, as_text
from botorch_ext.plain_events import PlainRecord
from botorch_ext.strategies import Corrected, RandomSearch, Told
from botorch_ext.strategies.masters.contextwise import ContextwiseStrategy
from botorch_ext.studies.answer_sheets import answer_sheet, answers_of
from botorch_ext.studies.sheets import Sheet
from botorch_ext.testing import check_strategy


class Measured(RandomSearch):
    """Needs two outcomes, and uses none."""

    outcome_names = ("pressure", "purity")


GOOD = {"purity": 0.5, "pressure": 3}


SPACE = bx.Space(time=bx.Real(0, 1))


def measured(**given):
    return Measured(SPACE, **given)


def begun(path, **given):
    return bx.Study(path, measured(), objective="yield", **given)


def test_outcomes_obey_the_laws_of_strategies():
    check_strategy(lambda seed: measured(seed=seed), is_random=True)


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        (None, "outcomes must have the names 'pressure', 'purity' for Measured, got none"),
        ({"purity": 1.0}, "for Measured, got 'purity'"),
        ({**GOOD, "more": 1.0}, "got 'purity', 'pressure', 'more'"),
        ({**GOOD, "purity": math.nan}, "outcomes['purity'] must be finite, got nan"),
        ({**GOOD, "purity": "1"}, "outcomes['purity'] must be one number"),
        ({1: 2.0}, "outcomes must have names that are texts, got 1"),
        ([3.0, 0.5], "outcomes must be a dict of numbers by name"),
    ],
)
def test_wrong_outcomes_are_refused_and_change_nothing(outcomes, message):
    strategy = measured()
    strategy.ask()
    for call in (
        lambda: strategy.tell(0, 1.0, outcomes),
        lambda: strategy.attach({"time": 0.5}, 1.0, outcomes=outcomes),
        lambda: strategy.replay([Told(0, 1.0, outcomes)]),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
    assert len(strategy.events) == 1


def test_a_strategy_without_outcomes_refuses_them():
    strategy = RandomSearch(bx.Box([(0.0, 1.0)]))
    strategy.ask()
    with pytest.raises(ValueError, match="outcomes must be None for RandomSearch"):
        strategy.tell(0, 1.0, {"pressure": 3.1})
    with pytest.raises(ValueError, match="outcomes must be None for RandomSearch"):
        strategy.replay([Told(0, 1.0, {"pressure": 3.1})])


def test_corrections_replace_what_is_given_and_costs_do_not_turn_outcomes():
    strategy = measured(minimize=True)
    strategy.ask(2)
    strategy.tell(0, 1.0, GOOD)
    strategy.tell(1, 2.0, GOOD)
    strategy.correct(0, outcomes={"pressure": -4.0})
    strategy.correct(1, 5.0)
    assert strategy.history.outcomes == {0: {"pressure": -4.0, "purity": 0.5}, 1: GOOD}
    assert strategy.history.as_told == {0: 1.0, 1: 5.0}
    assert strategy.events[-2] == Corrected(0, 1.0, {"pressure": -4.0, "purity": 0.5})
    fresh = measured(minimize=True)
    fresh.replay(strategy.events)
    assert fresh.events[2:] == strategy.events[2:]
    with pytest.raises(ValueError, match="'pressure', 'purity'"):
        strategy.correct(0, outcomes={"presure": 4.0})
    with pytest.raises(ValueError, match="value must be one number, got None"):
        strategy.correct(0)


def test_masters_hand_outcomes_on():
    master = ContextwiseStrategy([measured(), measured(seed=1)], lambda z: 1, context_domain=1)
    master.ask(context=[0.0])
    master.tell(0, 1.0, GOOD)
    assert master.bases[1].history.outcomes == {0: GOOD}
    with pytest.raises(ValueError, match=r"the outcomes of base 1 must be those of base 0"):
        ContextwiseStrategy([measured(), RandomSearch(SPACE)], lambda z: 1, context_domain=1)


def test_hosts_refuse_what_needs_outcomes():
    with pytest.raises(ValueError, match="strategy must need no outcomes"):
        HostedStrategy(measured(), SPACE)


def test_events_without_outcomes_are_written_as_before():
    assert PlainRecord("told", 3, value=0.5).line() == '{"event":"told","id":3,"value":0.5}'


def test_a_study_keeps_outcomes(tmp_path):
    study = begun(tmp_path / "s.db", minimize=True)
    study.ask(2)
    study.tell(0, 1.0, GOOD)
    study.attach({"time": 0.5}, 2.0, outcomes=GOOD)
    study.correct(2, outcomes={"purity": 0.25})
    with pytest.raises(ValueError, match="outcomes must be of trials in values"):
        study.tell_all({1: 1.0}, outcomes={0: GOOD})
    study.tell_all({1: 4.0}, outcomes={1: GOOD})
    expected = {0: GOOD, 1: GOOD, 2: {"purity": 0.25, "pressure": 3.0}}
    assert begun(tmp_path / "s.db").strategy.history.outcomes == expected
    frame = study.to_pandas()
    assert frame["purity"].tolist() == [0.5, 0.5, 0.25]
    assert frame["yield"].tolist() == [1.0, 4.0, 2.0]
    other = begun(tmp_path / "other.db")
    other.attach(frame)
    assert other.strategy.history.outcomes == expected
    with pytest.raises(bx.exceptions.TableError, match="column purity is missing"):
        other.attach(frame.drop(columns="purity"))
    overview = read_overview(tmp_path / "s.db")
    table = as_table(overview)
    assert [row[table.heads.index("pressure")] for row in table.rows] == [3.0] * 3
    assert "purity" in as_text(overview)
    assert not overview.corrected
    assert "purity" in page(overview, 0.0, ModelSummary())


def test_sheets_have_a_column_for_each_outcome(tmp_path):
    study = begun(tmp_path / "s.db")
    table = answer_sheet(study, study.ask(3))
    assert table.heads == ["trial", "time", "yield", "pressure", "purity"]

    def filled(*results):
        frame = pd.DataFrame(table.rows, columns=table.heads).astype(object)
        frame.loc[:, "yield":] = results
        frame.to_csv(tmp_path / "filled.csv", index=False)
        return Sheet.read(tmp_path / "filled.csv")

    none, first = [None] * 3, [1.0, 3.0, 0.5]
    sheet = filled(first, none, ["failed", None, None])
    found = answers_of(study, sheet)
    assert (found.values, found.failed, found.empty) == ({0: 1.0}, [2], [1])
    study.tell_all(found.values, outcomes=found.outcomes, failed=found.failed)
    assert study.strategy.history.outcomes == {0: GOOD}
    with pytest.raises(bx.exceptions.TableError, match="every result in it has been told"):
        answers_of(study, sheet)
    with pytest.raises(bx.exceptions.TableError, match="row 3: purity is empty"):
        answers_of(study, filled(first, [1.0, 2.0, None], none))
    with pytest.raises(bx.exceptions.TableError, match="row 3: yield is empty"):
        answers_of(study, filled(first, [None, 2.0, 1.0], none))
    changed = filled([1.0, 3.0, 0.75], none, none)
    with pytest.raises(bx.exceptions.TableError, match=r"trial 0 is told already, 1\.0 with"):
        answers_of(study, changed)
    assert answers_of(study, changed, correct=True).outcomes == {0: {**GOOD, "purity": 0.75}}


def _result(params):
    return params["time"], {"pressure": 2 * params["time"], "purity": 0.0}


def test_objectives_return_outcomes():
    result = bx.run(measured(), _result, num_trials=3, progress=False)
    told = result.strategy.history
    assert {id: each["pressure"] / 2 for id, each in told.outcomes.items()} == told.values
    with pytest.raises(bx.exceptions.ObjectiveError, match="a number and a dict of 'pressure'"):
        bx.run(measured(), lambda x: 1.0, num_trials=3, progress=False)
    with pytest.raises(ValueError, match="failure_value must be None"):
        bx.run(measured(), _result, num_trials=3, failure_value=0.0, progress=False)


def test_simulated_functions_have_outcomes():
    trace = bx.simulate(measured(), _result, horizon=4, noise_std=0.1)
    pressures = [each["pressure"] for each in trace.strategy.history.outcomes.values()]
    assert pressures == (2 * trace.values[:3]).tolist()

    class Silent:
        domain, noise_std, optimal_value = trace.strategy.domain, 0.0, 1.0

        def __call__(self, X):
            return X.sum(dim=-1)

    with pytest.raises(ValueError, match="problem must have the outcomes"):
        bx.simulate(measured(), Silent(), horizon=2)
