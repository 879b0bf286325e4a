"""Limits on outcomes in sheets, on the command line, on pages and in curves."""

import csv

import pytest

import botorch_ext as bx
from botorch_ext.exceptions import AnotherStrategyError
from botorch_ext.page.overview import read_overview
from botorch_ext.plotting import plot_regret
from tests.studies.commands import refused, shown

pytest.importorskip("sqlalchemy")

SPACE = """
[parameters.time]
type = "real"
low = 0
high = 10
digits = 1

[outcomes.impurity]
at_most = 5.0
unit = "%"

[arguments]
num_initial = 4
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(SPACE, encoding="utf-8")
    return tmp_path


def tell_round(folder, capsys, num):
    """A round in a spreadsheet: yields rise with the time, impurities too."""
    sheet = f"{num}.csv"
    shown(capsys, "ask", "lab.db", "-n", str(num), "--csv", sheet)
    with open(folder / sheet, newline="", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    assert head == ["trial", "time", "yield [%]", "impurity [%]"]
    filled = [[*row[:2], str(3 * float(row[1])), row[1]] for row in rows]
    with open(folder / sheet, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *filled])
    shown(capsys, "tell", "lab.db", sheet)


def test_a_study_with_a_limit_by_sheets_and_the_command_line(folder, capsys):
    shown(capsys, "new", "lab.db", "space.toml", "--objective", "yield", "--unit", "%")
    tell_round(folder, capsys, 4)
    tell_round(folder, capsys, 2)
    study = bx.Study("lab.db")
    history = study.strategy.history
    within = {id: y for id, y in history.values.items() if history.outcomes[id]["impurity"] <= 5}
    best = max(within.values())
    assert 0 < len(within) < 6
    assert max(history.values.values()) > best
    said = shown(capsys, "status", "lab.db")
    assert f"best so far  {best:g} %" in said
    assert "limits       impurity at most 5 %" in said
    assert f"all kept in {len(within)} of 6 results" in said
    assert read_overview("lab.db").best.value == best
    for options in ([], ["--csv"]):
        assert "impurity" in (table := shown(capsys, "trials", "lab.db", *options))
        assert ("impurity [%]" if options else "impurity (%)") in table.splitlines()[0]
    within_5 = shown(capsys, "correct", "lab.db", "0", "--outcome", "Impurity=4")
    assert within_5 == "corrected trial 0 to impurity=4.0\n"
    shown(
        capsys, "correct", "lab.db", "0", "--outcome", f"impurity={history.outcomes[0]['impurity']}"
    )
    said = shown(capsys, "recommended", "lab.db")
    assert "probability that a trial is feasible: " in said
    assert study.recommended().params["time"] <= 5
    assert "as good as every evaluated point with probability: " in said
    (folder / "points.csv").write_text("time\n2\n8\n", encoding="utf-8")
    low, high = csv.DictReader(shown(capsys, "predict", "lab.db", "points.csv").splitlines())
    assert 1 >= float(low["feasibility"]) > float(high["feasibility"]) >= 0
    assert "a gain like this " in shown(capsys, "stop", "lab.db")
    assert plot_regret({"lab": study}).lines


def test_a_regret_without_any_result_within_the_limits_is_refused(folder, capsys):
    shown(capsys, "new", "lab.db", "space.toml")
    study = bx.Study("lab.db")
    study.tell(study.ask(), 1.0, {"impurity": 7.0})
    with pytest.raises(ValueError, match="got none"):
        plot_regret({"lab": study})
    said = shown(capsys, "recommended", "lab.db")
    assert "no point was found where it is 0.9" in said and "as good as every" not in said
    found = study.recommended().params["time"]
    evaluated = (
        "yes, in trial 0" if found == study.strategy.history.trials[0].params["time"] else "no"
    )
    assert f"was evaluated: {evaluated}\n" in said
    said = shown(capsys, "stop", "lab.db")
    assert said == "no result keeps the limits yet: another round is needed\n"
    assert read_overview("lab.db").best is None


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("", "impurity is empty: leave yield empty, too, until all results are there"),
        ("1.58; 1.26", "must be a number, got '1.58; 1.26': write the average of repeats"),
        ("<0.1", "must be a number, got '<0.1'\n"),
    ],
)
def test_an_outcome_that_cannot_be_told_is_named_once(folder, capsys, cell, message):
    shown(capsys, "new", "lab.db", "space.toml", "--objective", "yield")
    row = shown(capsys, "ask", "lab.db").splitlines()[1].split(",")
    (folder / "filled.csv").write_text(f"trial,time,yield,impurity\n{row[0]},{row[1]},3,{cell}\n")
    said = refused(capsys, "tell", "lab.db", "filled.csv")
    assert message in said and said.count("impurity") == 1


def test_a_study_is_continued_with_the_same_limits_only(folder):
    space, limits = bx.Space(time=bx.Real(0, 1)), {"impurity": bx.AtMost(5.0, unit="%")}
    bx.Study("lab.db", bx.algorithms.integrated_ei(space, outcomes=limits))
    bx.Study("lab.db", bx.algorithms.integrated_ei(space, outcomes=dict(limits)))
    others = bx.algorithms.integrated_ei(space, outcomes={"impurity": bx.AtMost(6.0, unit="%")})
    with pytest.raises(AnotherStrategyError, match="outcomes"):
        bx.Study("lab.db", others)
