"""Tables that other people and other programs wrote, and the tables that this library writes."""

import csv
import io

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import TableError, TableWarning, UnknownTrialError
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.answer_sheets import answer_sheet, answers_of
from botorch_ext.studies.csv_sheets import Sheet
from tests.studies.commands import refused, shown

pytest.importorskip("sqlalchemy")

SPACE = bx.Space(
    temperature=bx.Real(20, 80, unit="°C", digits=1),
    catalyst=bx.Real(1e-4, 1e-1, log=True),
    equivalents=bx.Integer(1, 5),
    dry=bx.Choice([True, False]),
)
ROWS = [
    {"temperature": 26.0, "catalyst": 0.01, "equivalents": 2, "dry": True, "yield": 7.0},
    {"temperature": 60.0, "catalyst": 0.02, "equivalents": 3, "dry": False, "yield": 9.0},
]
KELVIN = [row | {"temperature": row["temperature"] + 273.15} for row in ROWS]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begun(place="lab.db", space=SPACE, **options):
    strategy = RandomSearch(space, seed=3, **options)
    return bx.Study(place, strategy, objective="yield", unit="%")


def as_sheet(rows, path="old.csv"):
    """The path of a sheet of some dicts."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, [*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(buffer.getvalue())
    return path


# --- rows outside the space -----------------------------------------------------------------------


def test_a_column_in_another_unit_is_refused(capsys):
    study = begun()
    rule = r"row 0: temperature \[°C\] must be a number from 20 to 80 in steps of 0.1, got 299.15"
    with pytest.raises(TableError, match=f"every row lies outside .*{rule}.* is temperature in °C"):
        study.attach(KELVIN)
    said = refused(capsys, "attach", "lab.db", as_sheet(KELVIN))
    assert "line 3: temperature [°C] must be" in said and "is temperature in °C?" in said
    assert not study.events
    assert len(study.attach(KELVIN, outside=True)) == 2
    assert "attached 2 trials" in shown(
        capsys, "attach", "lab.db", "old.csv", "--outside", "--repeat"
    )


def test_the_hint_is_for_columns_that_lie_outside_in_every_row():
    wrong = [ROWS[0] | {"temperature": 300.0}, ROWS[1] | {"equivalents": 9}]
    with pytest.raises(TableError) as raised:
        begun().attach(wrong)
    assert "row 1: equivalents must be a whole number from 1 to 5, got 9" in str(raised.value)
    assert "°C?" not in str(raised.value)
    between_steps = [row | {"temperature": row["temperature"] + 0.05} for row in ROWS]
    with pytest.raises(TableError, match=r"in steps of 0.1, got 26.05; .* got 60.05$"):
        begun("steps.db").attach(between_steps)


def test_rows_outside_are_named_with_their_bounds():
    study = begun()
    wrong = ROWS[0] | {"temperature": 85.0, "equivalents": 2.5}
    with pytest.warns(TableWarning) as caught:
        study.attach([*ROWS, wrong])
    (warning,) = caught
    assert str(warning.message) == (
        "all rows were attached; rows that lie outside the space are kept as data and never asked: "
        "row 2: temperature [°C] must be a number from 20 to 80 in steps of 0.1, got 85.0, "
        "equivalents must be a whole number from 1 to 5, got 2.5"
    )
    assert warning.filename == __file__
    assert [trial.info.get("outside") for trial in study.strategy.history.trials] == [
        *(None, None),
        True,
    ]


def test_rows_against_a_constraint_and_outside_a_box_are_named():
    space = bx.Space(a=bx.Real(0, 1), b=bx.Real(0, 1), constraints=["a + b <= 1"])
    rows = [{"a": 0.5, "b": 0.25, "yield": 1.0}, {"a": 0.75, "b": 0.5, "yield": 1.0}]
    with pytest.warns(TableWarning, match="row 1: a \\+ b <= 1 must hold, got .* in the point"):
        begun(space=space).attach(rows)
    rows = [{"x0": 0.5, "yield": 1.0}, {"x0": 2.0, "yield": 1.0}]
    with pytest.warns(TableWarning, match="row 1: the point must lie in the box"):
        begun("box.db", bx.Box([(0, 1)])).attach(rows)


def test_what_was_attached_stays():
    study = begun()
    study.attach(ROWS)
    with pytest.raises(UnknownTrialError, match=r"attached .*; correct changes a value"):
        study.abandon(0)


# --- columns --------------------------------------------------------------------------------------


def test_unknown_columns_are_named_and_not_used(capsys):
    study = begun()
    rows = [row | {"operator": "Ada", "Notes": "cloudy", "yield 2": 3} for row in ROWS]
    with pytest.warns(TableWarning) as caught:
        study.attach(rows)
    assert [str(each.message) for each in caught] == [
        "columns that are not used: 'operator'; 'Notes'; 'yield 2'"
    ]
    assert caught[0].filename == __file__
    assert [trial.params for trial in study.strategy.history.trials] == [
        {name: row[name] for name in SPACE.names} for row in ROWS
    ]


def test_names_match_without_regard_to_case_where_that_is_unique():
    rows = [
        {"Temperature (°C)" if k == "temperature" else k.upper(): row[k] for k in row}
        for row in ROWS
    ]
    assert len(begun().attach(rows)) == 2
    cased = begun("cased.db", bx.Space(a=bx.Real(0, 1), A=bx.Real(5, 9)))
    (trial,) = cased.attach([{"a": 0.5, "A": 6.0, "YIELD": 1.0}])
    assert trial.params == {"a": 0.5, "A": 6.0}
    with pytest.raises(TableError, match=r"column B is missing"):
        begun("two.db", bx.Space(bb=bx.Real(0, 1), BB=bx.Real(0, 1), B=bx.Real(0, 1))).attach(
            [{"bb": 0.5, "BB": 0.5, "Bb": 0.5, "yield": 1.0}]
        )


# --- what this library writes ---------------------------------------------------------------------


def exported(capsys):
    """A study with a trial of each state, as CSV and as a data frame."""
    study = begun("first.db")
    study.attach(ROWS)
    study.attach([KELVIN[0]], outside=True)
    trials = study.ask(4)
    study.tell(trials[0], 5.0)
    study.tell(trials[1], 50.0)
    study.correct(trials[1], 55.0)
    study.abandon(trials[2], failed=True)
    return study, shown(capsys, "trials", "first.db", "--csv"), study.to_pandas()


def test_all_trials_are_results_of_another_study(capsys, folder):
    pandas = pytest.importorskip("pandas")
    study, text, frame = exported(capsys)
    (folder / "all.csv").write_text(text, encoding="utf-8")
    frame.to_csv("pandas.csv")
    frame.to_csv("without_index.csv", index=False)
    old = text.replace('"trial"', '"id"', 1)  # as version 0.2.0 wrote it
    (folder / "old.csv").write_text(old, encoding="utf-8")
    tables = [frame, Sheet.read("all.csv"), Sheet.read("old.csv")]
    tables += [
        Sheet.read("pandas.csv"),
        Sheet.read("without_index.csv"),
        pandas.read_csv("all.csv"),
    ]
    history = study.strategy.history
    results = [(history.trials[id].params, value) for id, value in sorted(history.values.items())]
    assert len(results) == 5
    for number, table in enumerate(tables):
        other = begun(f"other{number}.db")
        take = other.attach_sheet if isinstance(table, Sheet) else other.attach
        with pytest.warns(TableWarning) as caught:
            trials = take(table)
        left_out, outside = (str(each.message) for each in caught)
        first, last = ("line 7", "line 8") if isinstance(table, Sheet) else ("row 5", "row 6")
        assert left_out == f"trials without yield are left out: {first}; {last}", number
        assert "temperature [°C] must be" in outside and "got 299.15" in outside
        assert {each.filename for each in caught} == {__file__}
        values = other.strategy.history.values
        assert [(trial.params, values[trial.id]) for trial in trials] == results


def test_the_table_of_all_trials_is_an_answer_sheet(capsys, folder):
    study, text, _ = exported(capsys)
    head, *lines = text.splitlines()
    place = head.split(",").index('"yield [%]"')
    cells = lines[6].split(",")
    assert cells[:2] == ["6", '"pending"'] and cells[place] == '""'
    cells[place] = "12.5"
    (folder / "all.csv").write_text(
        "\n".join([head, *lines[:6], ",".join(cells)]), encoding="utf-8"
    )
    answers = answers_of(study, Sheet.read("all.csv"))
    assert answers.values == {6: 12.5} and answers.known == [0, 1, 2, 3, 4]
    with (
        pytest.warns(TableWarning, match="trials without yield are left out: line 7"),
        pytest.raises(TableError, match="trial 6 is pending: tell it, or remove its id"),
    ):
        study.attach_sheet(Sheet.read("all.csv"), repeat=True)


def test_a_table_of_all_trials_without_values_has_nothing_to_attach(capsys, folder):
    begun("first.db").ask(2)
    (folder / "all.csv").write_text(shown(capsys, "trials", "first.db", "--csv"), encoding="utf-8")
    with pytest.raises(TableError, match="there is no trial with a value"):
        begun().attach_sheet(Sheet.read("all.csv"))


def test_ids_of_others_are_not_those_of_trials():
    rows = [row | {"id": f"NB-{i}"} for i, row in enumerate(ROWS)]
    assert len(begun().attach(rows)) == 2
    named = begun("named.db", bx.Space(id=bx.Real(0, 9), state=bx.Real(0, 1)))
    (trial,) = named.attach([{"id": 4, "state": 0.5, "yield": 1.0}])
    assert trial.params == {"id": 4.0, "state": 0.5}


def test_the_frame_of_a_run_is_attached():
    pytest.importorskip("pandas")
    result = bx.run(RandomSearch(SPACE, seed=1), lambda params: 1.0, 3, progress=False)
    study = bx.Study("lab.db", RandomSearch(SPACE, seed=2))
    assert [trial.params for trial in study.attach(result.to_pandas())] == list(result.params)


@pytest.mark.parametrize("head", ["trial", "id"])
def test_the_result_of_a_pending_trial_is_told_and_not_attached(head):
    study = begun()
    trial = study.ask()
    rows = [{head: trial.id, **trial.params, "yield": 2.0}]
    with pytest.raises(TableError, match="row 0: trial 0 is pending: tell it, or remove its id"):
        study.attach(rows)
    study.abandon(trial)
    assert [each.id for each in study.attach(rows)] == [1]


def test_ids_that_became_floats_are_those_of_pending_trials(capsys, folder):
    """Rows without an id make the ids of a frame floats, as a spreadsheet may."""
    pandas = pytest.importorskip("pandas")
    study = begun()
    study.ask(2)
    asked = study.to_pandas()[["trial", *SPACE.names]].assign(**{"yield": [7.0, 8.0]})
    table = pandas.concat([asked, pandas.DataFrame(ROWS)], ignore_index=True)
    assert table["trial"].dtype == float
    with pytest.raises(TableError, match=r"row 0: trial 0 is pending.*row 1: trial 1 is pending"):
        study.attach(table)
    table.to_csv(folder / "old.csv", index=False)
    assert "line 2: trial 0 is pending" in refused(capsys, "attach", "lab.db", "old.csv")
    assert study.pending == [0, 1]


def test_warnings_about_a_table_of_points_point_to_the_caller():
    strategy = bx.algorithms.integrated_ei(bx.Space(time=bx.Real(1, 9)), seed=1)
    study = bx.Study("lab.db", strategy)
    study.attach([{"time": 1.0 + i, "value": i * i} for i in range(8)])
    with pytest.warns(TableWarning, match="columns that are not used: 'yields'") as caught:
        study.predict([{"time": 2.5, "yields": 1.0}])
    assert caught[0].filename == __file__
    with pytest.warns(TableWarning, match="trials without value are left out: row 0") as caught:
        study.attach([{"trial": 9, "time": 2.5}, {"time": 3.5, "value": 1.0}])
    assert caught[0].filename == __file__


def test_columns_like_those_that_are_not_needed_are_not_misspelt(capsys, folder):
    strategy = bx.algorithms.integrated_ei(bx.Space(time=bx.Real(1, 9)), seed=1)
    study = bx.Study("lab.db", strategy, objective="yield")
    study.attach([{"time": 1.0 + i, "yield": i * i} for i in range(8)])
    (folder / "points.csv").write_text("time,yields\n2.5,\n")
    assert main(["predict", "lab.db", "points.csv"]) == 0
    said = capsys.readouterr()
    assert said.err == "botorch-ext: columns that are not used: 'yields'\n"
    assert said.out.splitlines()[1].startswith("2.5,")


def test_a_sheet_may_have_ids_of_its_owner_beside_those_of_trials(folder):
    study = begun()
    study.ask()
    head, row = answer_sheet(study, study.strategy.history.trials).splitlines()
    (folder / "sheet.csv").write_text(f"id,{head}\nNB-7,{row}5\n", encoding="utf-8")
    assert answers_of(study, Sheet.read("sheet.csv")).values == {0: 5.0}


def test_the_round_trip_with_conditions_contexts_and_numbered_columns(capsys, folder):
    tree = bx.Space(
        model=bx.Choice(["linear", "forest"]),
        depth=bx.Integer(1, 9),
        conditions={"depth": ("model", ["forest"])},
    )
    for number, (space, context) in enumerate(
        ((tree, None), (SPACE, bx.Space(humidity=bx.Real(0, 1))), (bx.Box([(0, 1)]), 1))
    ):
        study = begun(f"first{number}.db", space, context_domain=context)
        trials = study.ask(4, context=None if context is None else [0.25])
        study.tell_all({trial.id: float(trial.id) for trial in trials})
        text = shown(capsys, "trials", f"first{number}.db", "--csv")
        (folder / "all.csv").write_text(text, encoding="utf-8")
        other = begun(f"other{number}.db", space, context_domain=context)
        again = other.attach_sheet(Sheet.read("all.csv"))
        assert [trial.point.tolist() for trial in again] == [t.point.tolist() for t in trials]


# --- digits that a spreadsheet shows --------------------------------------------------------------

ASKED = {"temperature": 48.5, "catalyst": 0.00321, "amount": 412.7, "equivalents": 3}
SHOWN = [
    ("catalyst", "0.00", False),
    ("catalyst", "3.2E-03", True),
    ("catalyst", "0.003", True),
    ("catalyst", "0.004", False),
    ("catalyst", "0.01", False),
    ("catalyst", "0.0", False),
    ("catalyst", "0", False),
    ("temperature", "48.50", True),
    ("temperature", "49", True),
    ("temperature", "48", True),
    ("temperature", "48.6", False),
    ("temperature", "50", False),
    ("amount", "413", True),
    ("amount", "4.1E+02", True),
    ("amount", "4E+02", False),
    ("amount", "412.6", False),
    ("equivalents", "3.0", True),
    ("equivalents", "4", False),
    ("equivalents", "", False),
]


@pytest.mark.parametrize(("name", "text", "is_taken"), SHOWN)
def test_a_sheet_shows_rounded_settings(name, text, is_taken, folder):
    space = bx.Space(
        temperature=bx.Real(20, 80, digits=1),
        catalyst=bx.Real(1e-4, 1e-1, log=True),
        amount=bx.Real(0, 1000),
        equivalents=bx.Integer(1, 5),
    )
    study = begun(space=space)
    study.attach(ASKED, 1.0)
    study.ask()
    trials = study.strategy.history.trials
    head, *rows = answer_sheet(study, trials).splitlines()
    place = head.split(",").index(name)
    cells = [row.split(",") for row in rows]
    cells[0][-1], cells[1][-1] = "1", "5"
    cells[0][place] = text
    (folder / "sheet.csv").write_text("\n".join([head, *map(",".join, cells)]), encoding="utf-8")
    if is_taken:
        assert answers_of(study, Sheet.read("sheet.csv")).values == {1: 5.0}
    else:
        with pytest.raises(TableError, match=f"line 2: {name} is .*, asked was {ASKED[name]}"):
            answers_of(study, Sheet.read("sheet.csv"))


@pytest.mark.parametrize(("text", "is_taken"), [("4", True), ("3", False), ("1E+1", False)])
def test_a_sheet_of_a_box_shows_numbers_rounded_as_that_of_a_space(text, is_taken, folder):
    """A number without decimals lies within 1 % of the range, not of the number."""
    study = begun(space=bx.Box([(0, 1000)]), context_domain=bx.Box([(-500, 500)]))
    trial = study.ask(actions=[[3.75]], context=[3.75])
    for cells in ((text, trial.context.item()), (trial.x.item(), text)):
        line = f"0,{cells[0]},{cells[1]},5"
        (folder / "sheet.csv").write_text(f"trial,x0,context0,yield\n{line}\n", encoding="utf-8")
        if is_taken:
            assert answers_of(study, Sheet.read("sheet.csv")).values == {0: 5.0}
        else:
            with pytest.raises(TableError, match=r"asked was 3\.75"):
                answers_of(study, Sheet.read("sheet.csv"))


def test_a_spreadsheet_that_shows_two_decimals_is_told(folder):
    study = begun()
    trials = study.ask(8)
    head, *rows = answer_sheet(study, trials).splitlines()
    lines = [head]
    for row, trial in zip(rows, trials, strict=True):
        cells = row.split(",")
        cells[1:3] = f"{trial.params['temperature']:.2f}", f"{trial.params['catalyst']:.2e}"
        lines.append(",".join([*cells[:4], cells[4].upper(), str(trial.id)]))
    (folder / "sheet.csv").write_text("\n".join(lines), encoding="utf-8")
    values = answers_of(study, Sheet.read("sheet.csv")).values
    assert values == {trial.id: float(trial.id) for trial in trials}
