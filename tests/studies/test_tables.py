"""Tables of studies: results of before, all trials, and sheets to fill in."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import (
    AnotherStrategyError,
    NoStudyError,
    OutsideDomainWarning,
    TableError,
)
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.answer_sheets import answer_sheet, answers_of
from botorch_ext.studies.csv_sheets import Sheet
from tests.studies.commands import shown

pytest.importorskip("sqlalchemy")

SPACE = bx.Space(
    temperature=bx.Real(20, 80, unit="°C", digits=1),
    equivalents=bx.Integer(1, 5),
    solvent=bx.Choice(["water", "dmso"]),
    scale=bx.Real(3, 3),
)
ROW = {"temperature": 61.5, "equivalents": 2, "solvent": "dmso", "yield": 7.0}
TREE = bx.Space(
    model=bx.Choice(["linear", "forest"]),
    depth=bx.Integer(1, 9),
    rate=bx.Real(0, 1),
    conditions={"depth": ("model", ["forest"])},
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def begun(path, space=SPACE, **options):
    options = {"objective": "yield", "unit": "%"} | options
    return bx.Study(path, RandomSearch(space, seed=1), **options)


def filled(tmp_path, study, trials, values, decimal_comma=False):
    """The sheet of some trials with values typed in, as it is read back."""
    head, *rows = answer_sheet(study, trials, decimal_comma).splitlines()
    rows = [f"{row}{value}" for row, value in zip(rows, values, strict=True)]
    path = tmp_path / "sheet.csv"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    return Sheet.read(path)


def test_names_of_the_objective_are_kept(path):
    study = begun(path)
    assert (study.objective, study.unit) == ("yield", "%")
    again = bx.Study(path)
    assert (again.objective, again.unit) == ("yield", "%")
    begun(path)
    for other, message in (
        ({"objective": "cost"}, "objective is 'yield' in the study, got 'cost'"),
        ({"unit": "g"}, "unit is '%' in the study, got 'g'"),
    ):
        with pytest.raises(AnotherStrategyError, match=message):
            begun(path, **other)


def test_a_study_without_a_name_of_its_objective(path):
    begun(path, objective=None, unit=None)
    study = bx.Study(path)
    assert (study.objective, study.unit) == ("value", None)
    named = begun(path)  # for this process: a description is never changed
    assert (named.objective, named.unit) == ("yield", "%")
    named.attach([ROW])
    assert bx.Study(path).objective == "value"


def test_objectives_that_are_no_names(path):
    for name in ("", " ", 5, "temperature", "trial", "\ud800"):
        with pytest.raises(ValueError, match="objective"):
            begun(path, objective=name)
    assert not path.exists()
    with pytest.raises(NoStudyError, match="give its strategy"):
        bx.Study(path)


def test_rows_are_results_like_others(path):
    study = begun(path)
    trials = study.attach([ROW, ROW | {"yield": 8.0}, ROW | {"scale": 3.0, "temperature": 20}])
    assert [trial.id for trial in trials] == [0, 1, 2]
    assert trials[2].params["temperature"] == 20.0
    study.correct(1, 9.0)
    with pytest.raises(TableError, match="row 1 is the result of trial 1 once more"):
        study.attach([ROW | {"temperature": 30.0}, ROW | {"yield": 9.0}])
    study.attach([ROW | {"temperature": 30.0}, ROW | {"yield": 8.0}])  # which it no longer is
    assert study.strategy.history.values == {0: 7.0, 1: 9.0, 2: 7.0, 3: 7.0, 4: 8.0}
    assert len(study.attach([ROW], repeat=True)) == 1
    with pytest.raises(ValueError, match="repeat must be False for a point"):
        study.attach(ROW, 7.0, repeat=True)
    with pytest.raises(ValueError, match="scale must be a number from 3 to 3"):
        study.attach([ROW | {"scale": 4.0}])


def test_heads_may_have_units_in_brackets(path):
    study = begun(path)
    row = {"temperature [°C]": 61.5, "equivalents": 2, "solvent": "dmso", "yield (%)": 7.0}
    assert study.attach([row])[0].params["temperature"] == 61.5
    with pytest.raises(
        TableError, match=r"column temperature must be in °C, got 'K': convert .* missing"
    ):
        study.attach([{"temperature [K]": 300} | {k: row[k] for k in [*row][1:]}])


def test_methods_that_learn_from_their_domain_alone_refuse_the_whole_table(path):
    strategy = bx.algorithms.thompson_sampling(SPACE, bx.Fitted())
    study = bx.Study(path, strategy, objective="yield")
    with pytest.raises(TableError, match=r"row 1: .* learns from points of its domain"):
        study.attach([ROW, ROW | {"temperature": 90.0}])
    assert not study.events
    (trial,) = begun(path, name="other").attach([ROW | {"temperature": 90.0}], outside=True)
    assert trial.params["temperature"] == 90.0 and trial.info["outside"]


def test_inactive_parameters_need_no_value(path):
    study = begun(path, TREE)
    rows = [
        {"model": "linear", "rate": 0.5, "yield": 1.0},
        {"model": "forest", "depth": 3, "rate": 0.5, "yield": 2.0},
    ]
    assert [trial.params for trial in study.attach(rows)] == [
        {"model": "linear", "rate": 0.5},
        {"model": "forest", "depth": 3, "rate": 0.5},
    ]
    with pytest.raises(TableError, match=r"row 0: .*depth"):
        study.attach([{"model": "forest", "rate": 0.5, "yield": 2.0}])
    with pytest.raises(TableError, match="must lie inside the space: a space with conditions"):
        study.attach([{"model": "linear", "rate": 1.5, "yield": 2.0}])


@pytest.mark.parametrize("context", [bx.Space(humidity=bx.Real(0, 1)), 1], ids=["named", "plain"])
def test_contexts_are_columns(path, context, tmp_path):
    strategy = RandomSearch(SPACE, seed=1, context_domain=context)
    study = bx.Study(path, strategy, objective="yield")
    name = "humidity" if isinstance(context, bx.Space) else "context0"
    (trial,) = study.attach([ROW | {name: 0.25}])
    assert trial.context.tolist() == [0.25]
    with pytest.raises(TableError, match=f"column {name} is missing"):
        study.attach([ROW])
    with pytest.raises(TableError, match=f"row 0: {name} is empty"):
        study.attach([ROW | {name: None}])
    asked = study.ask(context=[0.75])
    answers = answers_of(study, filled(tmp_path, study, [asked], [5]))
    assert answers.values == {1: 5.0}
    if pytest.importorskip("pandas"):
        assert study.to_pandas()[name].tolist() == [0.25, 0.75]


def test_contexts_with_one_value_have_their_own_columns(path, tmp_path, capsys):
    contexts = bx.Space(site=bx.Choice(["A"]), z=bx.Real(0, 1))
    strategy = bx.algorithms.integrated_ei(bx.Space(t=bx.Real(0, 1)), context_domain=contexts)
    study = bx.Study(path, strategy, objective="yield")
    first = study.ask(context={"z": 0.25})
    study.tell_all(answers_of(study, filled(tmp_path, study, [first], [1])).values)
    for i, site in enumerate(({}, {"site": "A"}, {"site": None})):
        (trial,) = study.attach([{"t": i / 4, "z": 0.75, "yield": 1.0 + i} | site])
        assert trial.context.tolist() == [0.75]
    with pytest.raises(TableError, match=r"row 0: site must be one of .'A'., got 'B'"):
        study.attach([{"t": 0.5, "z": 0.75, "site": "B", "yield": 1.0}])
    with pytest.raises(TableError, match="row 0: z is empty"):
        study.attach([{"t": 0.5, "z": None, "site": "A", "yield": 1.0}])
    for given in (["--context", "z=0.5"], ["--context", "z=0.5", "--context", "site=A"]):
        assert shown(capsys, "ask", path, *given).splitlines()[1].endswith(",A,0.5,")
    pytest.importorskip("pandas")
    frame = study.to_pandas()
    assert frame["site"].tolist() == ["A"] * 6
    assert frame["z"].tolist() == [0.25, 0.75, 0.75, 0.75, 0.5, 0.5]
    assert_close(study.predict(frame).mean, study.predict(study.strategy.history.trials).mean)


@pytest.mark.parametrize(
    "domain",
    [bx.Box([(0, 1), (2, 9)], integer=[1]), bx.FiniteSet([[0.5, 2.0], [0.25, 3.0]])],
    ids=["box", "set"],
)
def test_columns_without_names_are_numbered(path, domain, tmp_path):
    study = begun(path, domain)
    (trial,) = study.attach([{"x0": 0.5, "x1": 2, "yield": 1.0}])
    assert trial.x.tolist() == [0.5, 2.0]
    (asked,) = study.ask(1)
    answers = answers_of(study, filled(tmp_path, study, [asked], ["3,5"], decimal_comma=True))
    assert answers.values == {1: 3.5}


def test_costs_have_the_sign_of_the_user_in_tables(path, tmp_path):
    pandas = pytest.importorskip("pandas")
    study = bx.Study(
        path, bx.algorithms.integrated_ei(SPACE), minimize=True, objective="cost", unit="EUR"
    )
    rows = [ROW | {"temperature": 20.0 + 5 * i, "cost": 10.0 + i} for i in range(8)]
    for row in rows:
        del row["yield"]
    study.attach(pandas.DataFrame(rows))
    trial = study.ask()
    frame = study.to_pandas()
    assert frame["cost"][:8].tolist() == [10.0 + i for i in range(8)]
    assert frame["predicted mean"][8] == trial.info["mean"] > 0
    assert math.isnan(frame["cost"][8]) and frame["state"][8] == "pending"
    study.tell_all(answers_of(study, filled(tmp_path, study, [trial], [12.5])).values)
    assert study.to_pandas()["cost"][8] == 12.5 and study.strategy.history.values[8] == -12.5
    with pytest.raises(TableError, match=r"told already, 12.5; correct changes a value, got 13.0"):
        answers_of(study, filled(tmp_path, study, [trial], [13]))
    study.correct(trial, 13.0)
    (other,) = study.ask(1)
    for before in (12.5, 13):  # what the sheet says since before the correction, or after it
        answers = answers_of(study, filled(tmp_path, study, [trial, other], [before, 9]))
        assert (answers.known, answers.values) == ([trial.id], {other.id: 9.0})


def test_tables_of_a_study_are_predicted_as_they_are(path):
    """What `to_pandas` gives, rows of results, and heads with units, give the predictions of the
    points."""
    pandas = pytest.importorskip("pandas")
    study = bx.Study(
        path, bx.algorithms.integrated_ei(SPACE, seed=1), objective="yield", unit="%", minimize=True
    )
    rows = [ROW | {"temperature": 20.0 + 5 * i, "yield": 10.0 + i % 3} for i in range(9)]
    study.attach(rows)
    study.attach([ROW | {"temperature": 90.0}], outside=True)
    pending = study.ask()
    trials = study.strategy.history.trials
    expected = study.predict(trials[:9])
    frame = study.to_pandas()
    assert "predicted mean" in frame.columns
    with pytest.warns(OutsideDomainWarning, match=r"1 of 11 points .* rows \[9\]"):
        found = study.predict(frame)
    assert_close(found.mean[:9], expected.mean)
    assert_close(found.quantiles[10:], study.predict(pending).quantiles)
    names = {"temperature": "temperature [°C]", "yield": "yield (%)"}
    headed = pandas.DataFrame(rows).rename(columns=names)[
        ["solvent", "equivalents", *names.values()]
    ]
    for table in (headed, rows, headed.to_dict("records")):
        assert_close(study.predict(table).mean, expected.mean)
    assert_close(study.predict(rows[4]).mean, expected.mean[4:5])
    for column, message in (
        ({"temperature [K]": 300.0}, "column temperature must be in °C, got 'K'"),
        ({"temprature": 30.0}, "column 'temprature' is unknown.*temperature"),
    ):
        row = {"equivalents": 2, "solvent": "dmso"} | column
        with pytest.raises(TableError, match=message):
            study.predict([row])
    for wrong, message in (("ether", "solvent must be one of"), (None, "solvent is empty")):
        with pytest.raises(TableError, match=f"row 1: {message}"):
            study.predict([rows[0], ROW | {"solvent": wrong}])


def test_a_table_is_predicted_in_the_contexts_of_its_rows_or_in_one(path):
    pytest.importorskip("pandas")
    strategy = bx.algorithms.integrated_ei(SPACE, context_domain=bx.Space(humidity=bx.Real(0, 1)))
    study = bx.Study(path, strategy, objective="yield")
    for i in range(9):
        row = {"temperature": 20.0 + 5 * i, "yield": float(i % 4), "humidity": i / 8}
        study.attach([ROW | row])
    trials, frame = study.strategy.history.trials, study.to_pandas()
    own, dry = study.predict(frame), study.predict(frame, context=[0.25])
    assert_close(own.mean, study.predict(trials).mean)
    assert_close(dry.mean, study.predict(trials, context=[0.25]).mean)
    assert not torch.allclose(own.mean, dry.mean)
    without = frame.drop(columns="humidity")
    assert_close(study.predict(without, context=[0.25]).mean, dry.mean)
    with pytest.raises(TableError, match="column humidity is missing"):
        study.predict(without)


def test_all_answers_are_told_or_none(path):
    study = begun(path)
    study.ask(2)
    with pytest.raises(ValueError, match="got 7: never asked"):
        study.tell_all({0: 1.0, 7: 2.0})
    with pytest.raises(ValueError, match="must be finite"):
        study.tell_all({0: 1.0, 1: math.nan})
    assert study.pending == [0, 1]


def test_a_sheet_may_show_fewer_digits_than_were_asked(path, tmp_path):
    study = begun(path, bx.Space(a=bx.Real(0.001, 10, log=True), b=bx.Integer(1, 9)))
    (trial,) = study.ask(1)
    a, b = trial.params.values()
    for text, is_taken in ((f"{a:.15g}", True), (f"{a:.2f}", True), (f"{1.01 * a:.5g}", False)):
        sheet = filled(tmp_path, study, [trial], [5])
        sheet.rows[0].cells[1] = text
        if is_taken:
            assert answers_of(study, sheet).values == {0: 5.0}
        else:
            with pytest.raises(TableError, match=r"a is .*, asked was"):
                answers_of(study, sheet)
    sheet.rows[0].cells[1:3] = [repr(a), str(b + 1)]
    with pytest.raises(TableError, match="abandon the trial and attach the row without its id"):
        answers_of(study, sheet)


def test_a_row_of_a_sheet_is_attached_without_its_id(path, tmp_path):
    study = begun(path)
    (trial,) = study.ask(1)
    sheet = filled(tmp_path, study, [trial], [5])
    with pytest.raises(TableError, match="line 2: trial 0 is pending: tell it, or remove its id"):
        study.attach_sheet(sheet)
    sheet.rows[0].cells[0] = ""
    assert study.attach_sheet(sheet)[0].params == trial.params


def test_names_that_would_be_formulas_or_have_separators(path, tmp_path):
    names = ["=1+1", " -x", "a, b; c", 'say "hi"', "time [h]", "@"]
    space = bx.Space(
        {name: bx.Real(0, 1, unit="s") for name in names}, k=bx.Choice(["-", "+1", "a"])
    )
    study = begun(path, space)
    (trial,) = study.ask(1)
    assert answers_of(study, filled(tmp_path, study, [trial], [5])).values == {0: 5.0}
    assert study.attach([trial.params | {"yield": 3.0}])[0].params == trial.params


def test_frames_of_pandas_with_what_is_missing(path):
    pandas = pytest.importorskip("pandas")
    study = begun(path)
    frame = pandas.DataFrame([ROW, ROW | {"yield": None}], index=["monday", "tuesday"])
    with pytest.raises(TableError, match="row 'tuesday': yield is empty"):
        study.attach(frame)
    for kind in ("Int64", "string"):
        column = "equivalents" if kind == "Int64" else "solvent"
        missing = frame.assign(**{"yield": 1.0, column: pandas.array([ROW[column], None], kind)})
        with pytest.raises(TableError, match=f"row 'tuesday': {column} is empty"):
            study.attach(missing)
    whole = frame.assign(**{"yield": [1, 2]}).astype({"solvent": "category", "equivalents": "int8"})
    assert len(study.attach(whole)) == 2


def test_frames_need_pandas(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    study = begun(path)
    study.attach([ROW])
    with pytest.raises(ImportError, match="to_pandas needs pandas"):
        study.to_pandas()


def test_points_outside_are_shown_as_they_were_measured(path):
    study = begun(path)
    trials = study.attach([ROW | {"temperature": 85.25, "equivalents": 7}], outside=True)
    assert trials[0].params == {
        "temperature": 85.25,
        "equivalents": 7.0,
        "solvent": "dmso",
        "scale": 3.0,
    }
    result = bx.run(study, lambda params: 1.0, num_trials=1, progress=False)
    assert result.params[0] == trials[0].params and result.best_value == 1.0
    assert torch.equal(result.best_x, result.X[1])
