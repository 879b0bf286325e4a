"""What a study makes of tables: columns by name, rows outside the space, repeats, rounding."""

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import OutsideDomainWarning, TableError, TableWarning, UnknownTrialError
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.answer_sheets import answers_of
from botorch_ext.studies.sheets import Row, Sheet
from tests.helpers import rbf
from tests.studies.commands import refused, shown
from tests.studies.kept import PARAMETERS
from tests.tables.spaces import rows_of

pytest.importorskip("sqlalchemy")

SPACE = bx.Space(PARAMETERS | {"scale": bx.Real(3, 3)})
ROWS = [
    {"temperature": 26.0, "catalyst": 0.01, "equivalents": 2, "solvent": "dmso", "yield": 7.0},
    {"temperature": 60.0, "catalyst": 0.02, "equivalents": 3, "solvent": "water", "yield": 9.0},
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begun(place="lab.db", space=SPACE, **options):
    strategy = RandomSearch(space, seed=3, **options)
    return bx.Study(place, strategy, objective="yield", unit="%")


def modelled(minimize=False):
    """A study whose model is given."""
    kernel = rbf(20.0, 0.3, 2.0, 0.8).float()
    strategy = bx.algorithms.gp_bucb(SPACE, kernel, noise_variance=0.04, width=2.0)
    strategy.expect(bx.exceptions.PriorScaleWarning)
    return bx.Study("lab.db", strategy, objective="yield", unit="%", minimize=minimize)


def test_a_column_in_another_unit_is_refused_and_kept_where_one_says_so(folder, capsys):
    study = begun()
    kelvin = [row | {"temperature": row["temperature"] + 273.15} for row in ROWS]
    rule = r"row 0: temperature \[°C\] must be .* from 20 to 80 .* got 299.15"
    with pytest.raises(TableError, match=f"every row lies outside .*{rule}.*is temperature in °C"):
        study.attach(kelvin)
    head = "temperature,catalyst,equivalents,solvent,yield\n"
    sheet = head + "".join(",".join(map(str, row.values())) + "\n" for row in kelvin)
    (folder / "old.csv").write_text(sheet, encoding="utf-8")
    said = refused(capsys, "attach", "lab.db", "old.csv")
    assert "old.csv: every row lies outside" in said and "row 3: temperature [°C] must be" in said
    assert not study.events
    assert len(study.attach(kelvin, outside=True)) == 2
    assert "attached 2 trials" in shown(
        capsys, "attach", "lab.db", "old.csv", "--outside", "--repeat"
    )


def test_rows_outside_are_named_kept_and_never_the_best():
    study = begun()
    wrong = ROWS[0] | {"temperature": 85.25, "equivalents": 7, "yield": 99.0}
    with pytest.warns(
        TableWarning, match=r"row 2: temperature .* got 85.25, equivalents"
    ) as caught:
        trials = study.attach([*ROWS, wrong])
    assert caught[0].filename == __file__
    assert [trial.info.get("outside") for trial in trials] == [None, None, True]
    assert trials[2].params == {k: wrong[k] for k in ROWS[0] if k != "yield"} | {"scale": 3.0}
    with pytest.raises(UnknownTrialError, match="attached"):
        study.abandon(0)
    result = bx.run(study, lambda params: 1.0, num_trials=1, progress=False)
    assert result.best_value == 9.0 and torch.equal(result.best_x, result.X[1])
    space = bx.Space(a=bx.Real(0, 1), b=bx.Real(0, 1), constraints=["a + b <= 1"])
    rows = [{"a": 0.5, "b": 0.25, "yield": 1.0}, {"a": 0.75, "b": 0.5, "yield": 1.0}]
    with pytest.warns(TableWarning, match=r"row 1: a \+ b <= 1 must hold"):
        begun("sum.db", space).attach(rows)


def test_columns_are_found_by_name_and_others_are_named():
    study = begun()
    more = {"operator": "Ada", "Notes": "cloudy", "id": "NB-7"}
    row = {"Temperature (℃)": 26, "CATALYST": 0.01, "solvent": "dmso", "equivalents": 2.0}
    with pytest.warns(
        TableWarning, match="columns that are not used: 'operator'; 'Notes'; 'id'$"
    ) as got:
        (trial,) = study.attach([row | {"yield [%]": 7.0} | more])
    assert got[0].filename == __file__
    assert trial.params == {k: v for k, v in ROWS[0].items() if k != "yield"} | {"scale": 3.0}
    cased = begun("cased.db", bx.Space(a=bx.Real(0, 1), A=bx.Real(5, 9), state=bx.Real(0, 1)))
    (trial,) = cased.attach([{"a": 0.5, "A": 6.0, "state": 0.25, "YIELD": 1.0}])
    assert trial.params == {"a": 0.5, "A": 6.0, "state": 0.25}
    with pytest.raises(TableError, match="column B is missing"):
        begun("two.db", bx.Space(bb=bx.Real(0, 1), BB=bx.Real(0, 1), B=bx.Real(0, 1))).attach(
            [{"bb": 0.5, "BB": 0.5, "Bb": 0.5, "yield": 1.0}]
        )


def test_notes_have_a_column_unless_another_one_has_its_name():
    row = {"x0": 0.5, "NOTE (by Ada)": "hot", "value": 1.5}
    for objective, notes in (("value", {0: "hot"}), ("Note", {})):
        study = bx.Study(f"{objective}.db", RandomSearch(bx.Box([(0, 1)])), objective=objective)
        study.attach([row] if notes else [{"x0": 0.5, "note": 1.5}])
        assert study.strategy.history.notes == notes


@pytest.mark.parametrize("named", [True, False])
def test_contexts_are_columns(named):
    context = bx.Space(humidity=bx.Real(0, 1), site=bx.Choice(["A"])) if named else 1
    study = begun(context_domain=context)
    name = "humidity" if named else "context0"
    (trial,) = study.attach([ROWS[0] | {name: 0.25}])
    assert trial.context.tolist() == [0.25]
    for row, message in ((ROWS[0], "is missing"), (ROWS[0] | {name: None}, "is empty")):
        with pytest.raises(TableError, match=f"{name} {message}"):
            study.attach([row])
    if named:
        with pytest.raises(TableError, match="row 0: site must be one of"):
            study.attach([ROWS[0] | {name: 0.5, "site": "B"}])


def test_cells_may_be_empty_where_a_parameter_does_not_count():
    tree = {"depth": ("model", ["forest"])}
    space = bx.Space(model=bx.Choice(["linear", "forest"]), depth=bx.Integer(1, 9), conditions=tree)
    study = begun(space=space)
    rows = [{"model": "linear", "yield": 1.0}, {"model": "forest", "depth": 3, "yield": 2.0}]
    assert [t.params for t in study.attach(rows)] == [
        {"model": "linear"},
        {"model": "forest", "depth": 3},
    ]
    for wrong in ({"model": "forest", "yield": 2.0}, {"model": "forest", "depth": 99, "yield": 2}):
        with pytest.raises(TableError, match="row 0: "):
            study.attach([wrong])


def test_frames_of_pandas_with_what_is_missing():
    pandas = pytest.importorskip("pandas")
    study = begun()
    frame = pandas.DataFrame(ROWS, index=["monday", "tuesday"])
    for column, kind in (("yield", "float"), ("equivalents", "Int64"), ("solvent", "string")):
        missing = frame.assign(**{column: pandas.array([frame[column].iloc[0], None], kind)})
        with pytest.raises(TableError, match=f"row 'tuesday': {column} is empty"):
            study.attach(missing)
    frame = frame.astype({"solvent": "category", "equivalents": "int8"})
    for notes, kept in (([0, None], {0: "0"}), ([" ", "hot "], {3: "hot"})):
        study.attach(frame.assign(note=pandas.array(notes, "object")), repeat=True)
        assert {**study.strategy.history.notes} == {0: "0"} | kept


def test_a_result_twice_is_refused_and_a_correction_makes_another():
    study = begun()
    study.attach([ROWS[0], ROWS[0] | {"yield": 8.0}])
    study.correct(1, 9.0)
    with pytest.raises(TableError, match="row 1 is the result of trial 1 once more"):
        study.attach([ROWS[1], ROWS[0] | {"yield": 9.0}])
    study.attach([ROWS[1], ROWS[0] | {"yield": 8.0}])  # which it no longer is
    assert study.strategy.history.values == {0: 7.0, 1: 9.0, 2: 9.0, 3: 8.0}
    assert len(study.attach([ROWS[0]], repeat=True)) == 1


def test_the_result_of_a_pending_trial_is_told_and_not_attached():
    study = begun()
    trial = study.ask()
    row = {"trial": float(trial.id), **trial.params, "yield": 2.0}
    with pytest.raises(TableError, match="row 0: trial 0 is pending"):
        study.attach([row])
    study.abandon(trial)
    assert [each.id for each in study.attach([row])] == [1]


def test_values_in_a_sheet_from_before_or_after_a_correction_are_known(folder, capsys):
    """In the sign of the user, whichever values the strategy sees."""
    study = bx.Study("lab.db", RandomSearch(SPACE, seed=1), minimize=True)
    shown(capsys, "ask", "lab.db", "-n", "2", "--csv", "sheet.csv")
    head, first, second = (folder / "sheet.csv").read_text("utf-8-sig").splitlines()
    study.tell(0, 12.5)
    study.correct(0, 13.0)
    for value, told in ((12.5, "9"), (13, "9"), (14, None)):
        rows = f"{head}\n{first}{value}\n{second}{told or ''}\n"
        (folder / "sheet.csv").write_text(rows, encoding="utf-8")
        if told is None:
            assert "trial 0 is told already, 13.0" in refused(capsys, "tell", "lab.db", "sheet.csv")
        elif study.pending:
            said = shown(capsys, "tell", "lab.db", "sheet.csv")
            behind = "trial 0: the sheet has 12.5, the study 13.0\n"
            assert said == f"told 1 trial: 1\ntold before: 1 trial: 0\n{behind}"
    assert study.strategy.history.values == {0: -13.0, 1: -9.0}
    assert study.to_pandas()["value"].tolist() == [13.0, 9.0]


@pytest.mark.parametrize("minimize", [False, True])
def test_a_sheet_says_what_failed_and_corrects_what_it_is_asked_to(folder, capsys, minimize):
    study = bx.Study("lab.db", RandomSearch(SPACE, seed=1), minimize=minimize)
    shown(capsys, "ask", "lab.db", "-n", "4", "--csv", "sheet.csv")
    head, *rows = (folder / "sheet.csv").read_text("utf-8-sig").splitlines()

    def fill_in(*results):
        lines = [f"{row}{result}" for row, result in zip(rows, results, strict=True)]
        (folder / "sheet.csv").write_text("\n".join([head, *lines]), encoding="utf-8")

    fill_in("12.5", "Failed", "7", "")
    said = shown(capsys, "tell", "lab.db", "sheet.csv")
    assert said == "told 2 trials: 0, 2\nfailed 1 trial: 1\nstill empty: 1 trial: 3\n"
    assert list(study.to_pandas()["state"]) == ["told", "failed", "told", "pending"]
    fill_in("12.5", "failed", "8", "9")
    assert "trial 2 is told already, 7.0" in refused(capsys, "tell", "lab.db", "sheet.csv")
    said = shown(capsys, "tell", "lab.db", "sheet.csv", "--correct")
    before = "told before: 2 trials: 0, 1\n"
    assert said == f"told 1 trial: 3\n{before}corrected trial 2 from 7.0 to 8.0\n"
    assert "nothing to tell" in refused(capsys, "tell", "lab.db", "sheet.csv", "--correct")
    values = study.to_pandas()["value"]
    assert values.dropna().to_dict() == {0: 12.5, 2: 8.0, 3: 9.0}
    # A sheet from before the correction says nothing new, and where it is behind.
    fill_in("12.5", "failed", "7", "9")
    said = refused(capsys, "tell", "lab.db", "sheet.csv")
    assert said.endswith("told already; trial 2: the sheet has 7.0, the study 8.0\n")
    shown(capsys, "ask", "lab.db", "--csv", "more.csv")
    row = (folder / "more.csv").read_text("utf-8-sig").splitlines()[1]
    with (folder / "sheet.csv").open("a", encoding="utf-8") as sheet:
        sheet.write(f"\n{row}5")
    said = shown(capsys, "tell", "lab.db", "sheet.csv")
    assert said.startswith("told 1 trial: 4\n")
    assert said.endswith("trial 2: the sheet has 7.0, the study 8.0\n")


@pytest.mark.parametrize("minimize", [False, True])
def test_tables_are_predicted_as_their_points_are(minimize):
    pandas = pytest.importorskip("pandas")
    study = modelled(minimize)
    study.attach([row | {"temperature": 20.0 + i} for i, row in enumerate(ROWS * 4)])
    study.attach([ROWS[0] | {"temperature": 90.0}], outside=True)
    pending = study.ask()
    trials, frame = study.strategy.history.trials, study.to_pandas()
    expected = study.predict(trials[:8])
    X = torch.stack([trial.x for trial in trials[:8]])
    assert_close(expected.mean, study.strategy.predict(X).mean)
    assert frame["predicted mean"][9] == pytest.approx(pending.info["mean"])
    with pytest.warns(OutsideDomainWarning, match=r"1 of 10 points .* rows \[8\], counted from 0"):
        found = study.predict(frame)
    assert_close(found.mean[:8], expected.mean)
    assert_close(found.quantiles[9:], study.predict(pending).quantiles)
    rows = frame.iloc[:8][["solvent", "equivalents", "catalyst"]]
    headed = rows.assign(**{"temperature [°C]": frame["temperature"][:8]})
    for table in (headed, headed.to_dict("records")):
        assert_close(study.predict(table).mean, expected.mean)
    assert_close(study.predict(trials[4].params).mean, expected.mean[4:5])
    with pytest.raises(TableError, match="row 1: solvent is empty"):
        study.predict([trials[0].params, trials[1].params | {"solvent": None}])
    with pytest.warns(TableWarning, match="not used: 'yields'"):
        study.predict(pandas.DataFrame([trials[0].params | {"yields": 1.0}]))


@pytest.mark.parametrize("minimize", [False, True])
def test_the_command_says_what_the_next_batch_is_expected_to_gain(folder, capsys, minimize):
    study = modelled(minimize)
    study.attach(ROWS)
    said = shown(capsys, "stop", "lab.db", "-n", "3").splitlines()
    found = study.expected_gain(3)
    numbers = [float(line.rpartition(": ")[2]) for line in said[:3]]
    assert numbers == pytest.approx([found.gain, found.noise_std, found.probability], rel=6e-3)
    assert said[0].startswith("yield [%], expected gain of the next 3 trials: ")
    assert study.pending == [] and found.noise_std == pytest.approx(0.2)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.OutsideDomainWarning")
def test_the_command_predicts_the_points_of_a_sheet_in_order(folder, capsys):
    study = modelled()
    study.attach(ROWS)
    head = "solvent,temperature,catalyst,equivalents,notes\n"
    sheet = head + "dmso,25.5,0.01,2,a\nwater,70,0.02,5,b\ndmso,99,0.01,2,\n"
    (folder / "points.csv").write_text(sheet, encoding="utf-8")
    assert main(["predict", "lab.db", "points.csv", "--csv", "found.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "wrote found.csv with predictions at 3 points\n"
    assert "points.csv: columns that are not used: 'notes'" in captured.err
    assert captured.err.rstrip().endswith(": row 4")  # outside of the space, as in the file
    names, *rows = rows_of((folder / "found.csv").read_text("utf-8-sig"))
    columns = ["temperature [°C]", "catalyst [mol/l]", "equivalents", "solvent", "scale"]
    bands = ["5 %", "95 %", "observed 5 %", "observed 95 %"]
    assert names == [*columns, "mean", "std", *bands]
    points = [(25.5, 0.01, 2, "dmso", 3), (70, 0.02, 5, "water", 3), (99, 0.01, 2, "dmso", 3)]
    for row, numbers in zip(rows, points, strict=True):
        assert (float(row[0]), float(row[1]), int(row[2]), row[3]) == numbers[:4]
        point = dict(zip(SPACE.parameters, numbers, strict=True))
        found = study.predict([point]).to_pandas().iloc[0]
        # To the third digit of the standard deviation.
        close = pytest.approx(found[[*names[5:]]].tolist(), rel=0, abs=found["std"] / 199)
        assert [float(cell) for cell in row[5:]] == close


def test_a_workbook_of_a_lab_may_have_numbers_texts_and_units_of_their_own(tmp_path):
    """Numbers, texts with decimal commas, units in a second line, and an experiment that failed."""
    openpyxl = pytest.importorskip("openpyxl")
    space = bx.Space(heat=bx.Real(20, 130, unit="°C"), load=bx.Real(0.1, 20, log=True))
    study = bx.Study(tmp_path / "lab.db", RandomSearch(space), objective="yield", unit="%")
    book, path = openpyxl.Workbook(), tmp_path / "alt.xlsx"
    for row in (
        ["heat [°C]", "load", "yield"],
        ["(°C)", None, "[%]"],
        [55.5, 0.5, 71],
        ["60,5", "1,25", 70.25],
        [],
        [80, 2, "Failed"],
        [None, None, None],
        ["100", 3.5, "68,5"],
    ):
        book.active.append(row)
    book.save(path)
    trials = study.attach_sheet(Sheet.read(path))
    assert [list(trial.params.values()) for trial in trials] == [
        [55.5, 0.5],
        [60.5, 1.25],
        [80.0, 2.0],
        [100.0, 3.5],
    ]
    assert study.strategy.history.as_told == {0: 71.0, 1: 70.25, 3: 68.5}
    assert study.strategy.history.failed == {2}
    assert list(study.to_pandas()["state"]) == ["attached", "attached", "failed", "attached"]
    with pytest.raises(TableError, match="row 0 is the result of trial 2 once more"):
        study.attach([{"heat": 80.0, "load": 2.0, "yield": "failed"}])
    book.active["A3"] = "55.5"
    book.save(path)
    with pytest.raises(TableError, match=r"row 3: heat must have a decimal comma .*, got 55.5"):
        study.attach_sheet(Sheet.read(path))
    book.active.insert_rows(1)
    book.active["A1"] = "Ausbeuten 2026"
    book.save(path)
    with pytest.raises(TableError, match="delete the lines above the names"):
        Sheet.read(path)


@pytest.mark.parametrize("name", ["dose", "state"])
def test_failed_experiments_of_any_table_are_attached(folder, name):
    """They say it as a result or as a state; what else was measured does not count."""
    space = bx.Space({name: bx.Real(0, 20)})
    limits = {"impurity": bx.AtMost(5.0)}

    def made(place):
        return bx.Study(place, bx.algorithms.integrated_ei(space, outcomes=limits), objective="y")

    state = f"{name}_" if name == "state" else "state"
    lines = (
        f"{name},y,impurity,{state},State of the art",
        "1,7,2,solid,",
        "2,Failed,,,",
        "3, FAILED ,failed,told,",
        "4,,-,Failed,",
    )
    (folder / "old.csv").write_text("\n".join(lines), encoding="utf-8")
    study = made("lab.db")
    with pytest.warns(TableWarning, match="not used: 'State of the art'"):
        study.attach_sheet(Sheet.read("old.csv"))
    assert study.strategy.history.failed == {1, 2, 3} and len(study.events) == 4
    frame = study.to_pandas()
    assert frame[state].tolist() == ["attached", "failed", "failed", "failed"]
    again = made("again.db")
    again.attach(frame)
    assert again.to_pandas()[state].tolist() == frame[state].tolist()
    listed = made("listed.db")
    listed.attach([{name: 2, "y": "Failed ", "impurity": "-"}, {name: 3, "y": 8, "impurity": 1}])
    assert listed.strategy.history.failed == {0}


@pytest.mark.usefixtures("folder")
def test_a_column_that_is_called_like_the_states_is_not_used():
    study = begun(space=bx.Space(PARAMETERS))
    rows = [row | {"state": "solid", "State": "x", "yield": "failed"} for row in ROWS]
    with pytest.warns(TableWarning, match="not used: 'State'"):
        study.attach(rows)
    assert study.strategy.history.failed == {0, 1}


@pytest.mark.usefixtures("folder")
def test_what_a_lab_writes_in_place_of_a_result_is_answered():
    study = begun()
    trials = study.ask(2)
    known = trials[0].params | {"trial": 0, "yield": "n.d."}
    sheet = Sheet("a.csv", [*known], [Row(2, [*map(str, known.values())])], ",")
    with pytest.raises(TableError, match=r"'n.d.'; write failed if the experiment failed"):
        answers_of(study, sheet)
    study.abandon(trials[1], failed=True)
    with pytest.raises(
        UnknownTrialError,
        match="got 1: failed; withdraw takes that back; attach adds its result",
    ):
        study.correct(1, 3.0)
    with pytest.raises(TableError, match=r"is missing; is one of these meant: 'Kat. \[mol%\]'\?"):
        study.attach([{"Kat. [mol%]": 0.5, "yield": 2.0}])
