"""Standard errors and repeats in tables, sheets, the command line and pages."""

import json

import numpy as np
import pandas as pd
import pytest

import botorch_ext as bx
from botorch_ext.exceptions import TableError, TableWarning
from botorch_ext.page.overview import read_overview
from botorch_ext.page.tables import as_table, as_text
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.sheets import Sheet
from tests.helpers import rbf
from tests.studies.commands import refused, shown

pytest.importorskip("sqlalchemy")

SPACE = bx.Space(time=bx.Real(0, 1))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begun(**options):
    return bx.Study("lab.db", RandomSearch(SPACE), objective="yield", unit="%", **options)


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_sheet_tells_repeats_and_standard_errors(folder, capsys, separator):
    study = begun()
    times = [f"{trial.params['time']!r}" for trial in study.ask(3)]
    quote = '"' if separator == ";" else ""
    rows = [
        ["trial", "time", "yield [%]", "yield std [%]"],
        ["0", times[0], f"{quote}84.1; 85.3;84.7{quote}", ""],
        ["1", times[1], "48.0", "0.5"],
        ["2", times[2], "failed", ""],
    ]
    sheet = "".join(f"{separator.join(row)}\n" for row in rows)
    (folder / "filled.csv").write_text(sheet, encoding="utf-8")
    assert "told 2 trials: 0, 1" in shown(capsys, "tell", "lab.db", "filled.csv")
    history = study.strategy.history
    assert history.values == {0: pytest.approx(84.7), 1: 48.0}
    assert (history.stds, history.repeats) == ({1: 0.5}, {0: (84.1, 85.3, 84.7)})
    # The same sheet says nothing new; another standard error does.
    assert "nothing to tell" in refused(capsys, "tell", "lab.db", "filled.csv")
    (folder / "filled.csv").write_text(sheet.replace("0.5", "0.4"), encoding="utf-8")
    said = refused(capsys, "tell", "lab.db", "filled.csv")
    assert "trial 1 is told already, 48.0 +- 0.5" in said and "got 48.0 +- 0.4" in said
    shown(capsys, "tell", "lab.db", "filled.csv", "--correct")
    assert study.strategy.history.stds == {1: 0.4}
    shown(capsys, "correct", "lab.db", "0", "84.0; 86.0", "--std", "0.7")
    assert shown(capsys, "correct", "lab.db", "1", "47") == (
        "corrected trial 1 from 48.0 to 47.0\n"
        "its standard error 0.4 was dropped; --std 0.4 keeps it\n"
    )
    assert (
        shown(capsys, "correct", "lab.db", "1", "--std", "0.4") == "corrected trial 1 to std=0.4\n"
    )
    last = bx.Study("lab.db").strategy.history
    assert (last.values[0], last.stds[0], last.repeats[0]) == (85.0, 0.7, (84.0, 86.0))


def test_a_sheet_without_standard_errors_keeps_them(folder, capsys):
    study = begun()
    times = [f"{trial.params['time']!r}" for trial in study.ask(2)]
    study.tell(0, 84.1, std=0.5)
    sheet = f"trial,time,yield\n0,{times[0]},84.1\n1,{times[1]},70.2\n"
    (folder / "filled.csv").write_text(sheet, encoding="utf-8")
    said = "told 1 trial: 1\ntold before: 1 trial: 0\n"
    assert shown(capsys, "tell", "lab.db", "filled.csv", "--correct") == said
    assert study.strategy.history.stds == {0: 0.5}
    (folder / "filled.csv").write_text(sheet.replace("84.1", "84.3"), encoding="utf-8")
    assert "trial 0 from 84.1 to 84.3\nthe standard error 0.5 of trial 0 was dropped" in shown(
        capsys, "tell", "lab.db", "filled.csv", "--correct"
    )
    assert bx.Study("lab.db").strategy.history.stds == {}


def test_a_corrected_outcome_leaves_repeats_and_standard_errors(folder, capsys):
    strategy = bx.algorithms.integrated_ei(SPACE, outcomes={"dirt": "<= 5"})
    study = bx.Study("lab.db", strategy, objective="yield")
    times = [f"{trial.params['time']!r}" for trial in study.ask(2)]
    study.tell(0, 84.1, {"dirt": 3.0}, std=0.5)
    study.tell(1, [84.0, 86.0], {"dirt": 3.0})
    rows = f"0,{times[0]},84.1,3.2\n1,{times[1]},85.0,3.4\n"
    (folder / "filled.csv").write_text(f"trial,time,yield,dirt\n{rows}", encoding="utf-8")
    said = shown(capsys, "tell", "lab.db", "filled.csv", "--correct")
    assert said == "corrected trial 0\ncorrected trial 1\n"
    last = bx.Study("lab.db").strategy.history
    assert (last.stds, last.repeats) == ({0: 0.5}, {1: (84.0, 86.0)})
    assert last.outcomes == {0: {"dirt": 3.2}, 1: {"dirt": 3.4}}


@pytest.mark.parametrize("minimize", [False, True])
def test_a_table_attaches_them_and_all_trials_show_them(folder, capsys, minimize):
    study = begun(minimize=minimize)
    study.attach(
        pd.DataFrame(
            {
                "time": [0.1, 0.2, 0.3],
                "yield": [1.0, np.array([2.0, 4.0]), 5.0],
                "yield std": [0.2, None, None],
            }
        )
    )
    study.attach({"time": 0.4}, [6.0, 8.0], std=0.1)
    frame = study.to_pandas()
    assert frame["yield"].tolist() == [1.0, 3.0, 5.0, 7.0]
    assert frame["yield std"].fillna(-1).tolist() == [0.2, -1, -1, 0.1]
    assert frame["yield repeats"].fillna(-1).tolist() == [-1, 2, -1, 2]
    study.note(0, "yellow")
    overview = read_overview("lab.db")
    assert overview.outcomes == ["yield std", "yield repeats"]
    assert "yield repeats" in as_text(overview).splitlines()[0]
    # A table of all trials is what the study knows, and results of another study.
    shown(capsys, "trials", "lab.db", "-o", "all.csv")
    assert Sheet.read("all.csv").heads == as_table(overview).heads
    assert "nothing to tell" in refused(capsys, "tell", "lab.db", "all.csv")
    other = bx.Study("other.db", RandomSearch(SPACE), objective="yield", unit="%")
    with pytest.warns(TableWarning, match="columns that are not used: 'yield repeats'$"):
        other.attach_sheet(Sheet.read("all.csv"))
    assert other.strategy.history.notes == {0: "yellow"}
    assert other.strategy.history.stds == {0: 0.2, 3: 0.1}
    again = bx.Study("lab.db").strategy
    assert again.history.repeats == study.strategy.history.repeats


def test_a_result_with_another_standard_error_is_the_same_one(folder):
    """A sheet to which the column was added later would otherwise attach everything twice."""
    study, row = begun(), {"time": 0.5, "yield": 48.0}
    study.attach([row | {"yield std": 0.5}])
    for again in (row, row | {"yield std": 0.2}):
        with pytest.raises(TableError, match=r"row 0 is the result of trial 0 once more .* repeat"):
            study.attach([again])
    study.attach([row | {"yield std": 0.2}], repeat=True)
    assert study.strategy.history.stds == {0: 0.5, 1: 0.2}


def test_wrong_cells_are_named(folder):
    study = begun()
    for row, message in (
        ({"time": 0.5, "yield": 1.0, "yield std": 0.0}, "row 0: yield std must be positive"),
        ({"time": 0.5, "yield": [1.0, float("nan")]}, "row 0: yield must be finite"),
        ({"time": 0.5, "yield": [1.0, "a"]}, "row 0: yield must be one number"),
    ):
        with pytest.raises(TableError, match=message):
            study.attach([row])
    with pytest.raises(ValueError, match="stds must be of trials in values, got those of"):
        study.tell_all({}, stds={3: 0.1})
    assert not study.events


def test_a_method_for_equal_noise_has_no_column_and_refuses_repeats(folder):
    strategy = bx.algorithms.ec_gp_ucb(
        bx.Box([[0.0], [1.0]]),
        rbf(0.3),
        noise_variance=0.01,
        misspecification=0.1,
        width=2.0,
    )
    study = bx.Study("lab.db", strategy, objective="yield")
    assert study.heads.std is None
    with pytest.raises(TableError, match=r"row 0: value must be one number for .*: Enlarged"):
        study.attach([{"x0": 0.5, "yield": [1.0, 2.0]}])


def test_the_default_of_the_command_line_uses_them(folder, capsys):
    """A space file, a sheet with repeats and a standard error, and a prediction."""
    (folder / "space.toml").write_text(
        "[parameters.time]\ntype = 'real'\nlow = 0\nhigh = 1\n", encoding="utf-8"
    )
    shown(capsys, "new", "lab.db", "space.toml", "--objective", "yield")
    rows = "".join(
        f"{i / 7},{cell},{std}\n"
        for i, (cell, std) in enumerate(
            [("1; 1.2", ""), ("2", "0.5"), ("1.5", ""), ("0.3", "2"), ("0.1", ""), ("0", "")]
        )
    )
    (folder / "old.csv").write_text(f"time,yield,yield std\n{rows}", encoding="utf-8")
    shown(capsys, "attach", "lab.db", "old.csv")
    study = bx.Study("lab.db")
    assert study.strategy.posterior.outcomes.noise.shares.tolist() == [0.5, 0, 1, 0, 1, 1]
    assert json.dumps(study.strategy.report())
