"""A table goes out, is saved by another program, and comes back as the same trials and values."""

import csv
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import TableWarning
from botorch_ext.strategies import RandomSearch
from tests.tables.spaces import PRINTED, rows_of, spaces, text_of, values

pytest.importorskip("sqlalchemy")
pytest.importorskip("pandas")
openpyxl = pytest.importorskip("openpyxl")

# To make a failing example smaller takes minutes, since each has files of its own.
settings.register_profile("tables", settings.get_profile("tests"), phases=[Phase.generate])
AS_DRAWN = settings.get_profile("tables")

# How a spreadsheet saves a sheet: separator, decimal comma, quotes, first line, encoding.
SAVED = [
    (",", False, csv.QUOTE_MINIMAL, "", "utf-8"),
    (",", False, csv.QUOTE_ALL, "\r\n \n", "utf-8-sig"),
    (";", True, csv.QUOTE_MINIMAL, "", "utf-8"),
    (";", False, csv.QUOTE_ALL, "\v\n", "utf-16"),
    ("\t", True, csv.QUOTE_MINIMAL, "", "utf-16"),
    ("|", True, csv.QUOTE_MINIMAL, "sep=|\r\n", "utf-8"),
]


def saved(path, rows, how):
    """Writes rows as a spreadsheet does, with an empty row and an empty column."""
    delimiter, _, quoting, first, encoding = how
    rows = [[*row, ""] for row in (*rows, [""] * len(rows[0]))]
    text = first + text_of(rows, delimiter, quoting)
    path.write_bytes(text.encode(encoding))


def as_workbook(path, frame):
    """Writes a frame as a spreadsheet does, its numbers as numbers and its texts as texts."""
    book = openpyxl.Workbook()
    book.active.append([None])  # a first row that is empty
    rows = [[*frame.columns], *frame.astype(object).where(frame.notna(), None).to_numpy().tolist()]
    for i, row in enumerate(rows, start=2):
        for j, content in enumerate(row, start=1):
            cell = book.active.cell(i, j, content)
            if isinstance(content, str):
                cell.data_type = "s"  # also where it begins as a formula does
    book.save(path)


def in_16_digits(cell):
    """A number as openpyxl writes it."""
    return float(f"{cell:.16g}") if isinstance(cell, float) else cell


def in_style(number, has_comma):
    """A number as it is written with a decimal point or a decimal comma."""
    return number.replace(".", ",") if has_comma else number


@settings(AS_DRAWN, max_examples=14)
@given(
    space=spaces(),
    numbers=st.lists(values(), min_size=3, max_size=3),
    how=st.sampled_from(SAVED),
    asks_with_comma=st.booleans(),
    minimize=st.booleans(),
)
def test_a_sheet_is_asked_filled_in_saved_and_told(space, numbers, how, asks_with_comma, minimize):
    with TemporaryDirectory() as folder:
        place, sheet = f"{folder}/lab.db", Path(folder) / "sheet.csv"
        study = bx.Study(
            place, RandomSearch(space, seed=1), minimize=minimize, objective="result", unit="%"
        )
        options = ["--decimal-comma"] if asks_with_comma else []
        assert main(["ask", place, "-n", "3", "--csv", str(sheet), *options]) == 0
        trials = study.strategy.history.trials
        written = sheet.read_bytes().decode("utf-8-sig")
        head, *rows = rows_of(written, ";" if asks_with_comma else ",")
        assert head[0] == "trial" and head[-1] == "result [%]" and len(rows) == 3
        for row, trial in zip(rows, trials, strict=True):
            assert row[0] == str(trial.id)
            for cell, (name, value) in zip(row[1:-1], trial.params.items(), strict=True):
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                read = float(cell.replace(",", ".")) if is_number else cell
                assert read == value or cell.removeprefix("'") == str(value), name
        is_choice = [isinstance(each, bx.Choice) for each in space.parameters.values()]
        texts = [False, *is_choice, False]
        for row, number in zip(rows, numbers, strict=True):
            row[-1] = repr(number)
            row[:] = [
                cell if fixed else in_style(cell.replace(",", "."), how[1])
                for cell, fixed in zip(row, texts, strict=True)
            ]
        Random(1).shuffle(rows)
        saved(sheet, [head, *rows], how)
        assert main(["tell", place, str(sheet)]) == 0
        sign = -1.0 if minimize else 1.0
        assert study.strategy.history.values == {i: sign * n for i, n in enumerate(numbers)}


@settings(AS_DRAWN, max_examples=8)
@given(
    space=spaces(PRINTED),
    numbers=st.lists(values(), min_size=4, max_size=4, unique=True),
    minimize=st.booleans(),
    how=st.sampled_from(SAVED[:2]),
)
def test_all_trials_of_a_study_are_results_of_another(space, numbers, minimize, how):
    with TemporaryDirectory() as folder:
        options = {"minimize": minimize, "objective": "result"}
        study = bx.Study(f"{folder}/lab.db", RandomSearch(space, seed=1), **options)
        trials = study.ask(5)
        for trial, number in zip(trials[:3], numbers, strict=False):
            study.tell(trial, number)
        study.correct(trials[1], numbers[3])
        study.abandon(trials[3], failed=True)
        values = numbers[0], numbers[3], numbers[2], None
        expected = list(zip(trials, values, strict=False))
        sheet = Path(folder) / "all.csv"
        assert main(["trials", f"{folder}/lab.db", "--csv", "-o", str(sheet)]) == 0
        saved(sheet, rows_of(sheet.read_text("utf-8-sig")), how)
        frame = study.to_pandas()
        frame.to_csv(f"{folder}/frame.csv")  # with its index
        as_workbook(Path(folder) / "lab.xlsx", frame.drop(columns=["asked_at", "ended_at"]))
        tables = {
            "workbook": Path(folder) / "lab.xlsx",
            "a": sheet,
            "b": Path(folder) / "frame.csv",
            "c": frame,
        }
        for name, table in tables.items():
            other = bx.Study(f"{folder}/{name}.db", RandomSearch(space, seed=2), **options)
            if isinstance(table, Path):
                assert main(["attach", f"{folder}/{name}.db", str(table)]) == 0
            else:
                with pytest.warns(TableWarning, match="left out: row 4 .*counted from 0"):
                    other.attach(table)
            history = other.strategy.history
            found = [(each.params, history.value_told(each.id)) for each in history.trials]
            digits = in_16_digits if name == "workbook" else (lambda number: number)
            assert found == [
                ({each: digits(cell) for each, cell in trial.params.items()}, digits(value))
                for trial, value in expected
            ]
            assert history.attached == [0, 1, 2, 3] and history.failed == {3}
            again = other.to_pandas()
            assert again["result"].tolist()[:3] == [digits(value) for _, value in expected[:3]]
            assert list(again["state"]) == ["attached"] * 3 + ["failed"]


def test_contexts_and_conditions_and_numbered_columns_go_round(tmp_path):
    tree = bx.Space(
        model=bx.Choice(["linear", "forest"]),
        depth=bx.Integer(1, 9),
        conditions={"depth": ("model", ["forest"])},
    )
    odd = bx.Space(
        dose=bx.Integer(-2, -1), size=bx.Integer(-9, -5, step=4), rate=bx.Real(0.1, 0.3, step=0.2)
    )
    humid, box = bx.Space({"humidity, in %": bx.Real(0, 1)}), bx.Box([(0, 1), (2, 9)], integer=[1])
    for number, (space, contexts) in enumerate(
        ((tree, None), (tree, humid), (box, 2), (odd, None))
    ):
        first, second = (tmp_path / f"{kind}{number}.db" for kind in ("first", "second"))
        given = None if contexts is None else [0.25, 0.5][: 1 if contexts is humid else 2]
        studies = [
            bx.Study(place, RandomSearch(space, seed=1, context_domain=contexts))
            for place in (first, second)
        ]
        trials, sheet = studies[0].ask(6, context=given), tmp_path / "all.csv"
        studies[0].tell_all({trial.id: 0.5 * trial.id for trial in trials})
        assert main(["trials", str(first), "--csv", "-o", str(sheet)]) == 0
        frame = studies[0].to_pandas()
        assert main(["attach", str(second), str(sheet)]) == 0
        history = studies[1].strategy.history
        assert [t.point.tolist() for t in history.trials] == [t.point.tolist() for t in trials]
        assert [t.params for t in history.trials] == [t.params for t in trials]
        assert history.values == {trial.id: 0.5 * trial.id for trial in trials}
        if contexts is not None:
            heads = ["humidity, in %"] if contexts is humid else ["context0", "context1"]
            assert frame[heads].to_numpy().tolist() == [given] * 6


def test_long_names_and_choices_with_many_digits_are_written_whole(tmp_path):
    smiles, name = "C1=CC=C(C=C1)C(=O)OC2=CC=CC=C2C(=O)NC3=CC=CC=C3", "x" * 50
    space = bx.Space(
        {
            name: bx.Real(0, 1),
            "ligand": bx.Choice([smiles, "none"]),
            "dose": bx.Choice([0.123456789, 2]),
        }
    )
    first, second = (
        bx.Study(tmp_path / f"{place}.db", RandomSearch(space, seed=1), objective="y" * 50)
        for place in ("first", "second")
    )
    first.tell_all({trial.id: 0.5 for trial in first.ask(6)})
    sheet = tmp_path / "all.csv"
    assert main(["trials", str(tmp_path / "first.db"), "--csv", "-o", str(sheet)]) == 0
    assert main(["attach", str(tmp_path / "second.db"), str(sheet)]) == 0
    points = [
        [trial.params for trial in study.strategy.history.trials] for study in (first, second)
    ]
    assert points[0] == points[1] and {smiles, "none"} == {point["ligand"] for point in points[0]}


@settings(AS_DRAWN, max_examples=8)
@given(space=spaces(PRINTED), numbers=st.lists(values(), min_size=3, max_size=3))
def test_a_workbook_is_asked_filled_in_and_told(space, numbers):
    with TemporaryDirectory() as folder:
        place, path = f"{folder}/lab.db", f"{folder}/to_do.XLSX"
        study = bx.Study(place, RandomSearch(space, seed=1), objective="result", unit="%")
        assert main(["ask", place, "-n", "3", "--csv", path]) == 0
        book = openpyxl.load_workbook(path)
        head, *rows = book.active.iter_rows()
        assert len(book.sheetnames) == 1 and head[0].value == "trial" and len(rows) == 3
        for row, trial, result in zip(rows, study.strategy.history.trials, numbers, strict=True):
            cells = [cell.value for cell in row]
            assert cells == [trial.id, *map(in_16_digits, trial.params.values()), None]
            row[-1].value = result
        book.save(path)
        assert main(["tell", place, path]) == 0
        assert study.strategy.history.values == dict(enumerate(map(in_16_digits, numbers)))


def test_all_trials_in_a_workbook(tmp_path):
    place, path = f"{tmp_path}/lab.db", f"{tmp_path}/all.xlsx"
    space = bx.Space({"=day": bx.Choice(["1", "=1+1"]), "x": bx.Real(0, 1)})
    study = bx.Study(place, RandomSearch(space, seed=1), objective="result")
    study.tell(study.ask(), 0.25)
    study.attach({"=day": "=1+1", "x": 0.5}, 7.0)
    assert main(["trials", place, "-o", path]) == 0
    sheet = openpyxl.load_workbook(path).active
    heads = [cell.value for cell in sheet[1]]
    rows = [dict(zip(heads, row, strict=True)) for row in sheet.iter_rows(min_row=2)]
    assert heads[:5] == ["trial", "state", "=day", "x", "result"]
    assert [row["result"].value for row in rows] == [0.25, 7.0]
    assert [cell.data_type for cell in (sheet["C1"], rows[1]["=day"])] == ["s", "s"]
    assert sheet["C1"].quotePrefix and rows[1]["=day"].quotePrefix and not sheet["D1"].quotePrefix
    assert rows[0]["ended_at"].is_date and rows[0]["asked_at"].value <= rows[0]["ended_at"].value
    assert rows[1]["asked_at"].value is None
    other = bx.Study(f"{tmp_path}/other.db", RandomSearch(space, seed=2), objective="result")
    assert main(["attach", f"{tmp_path}/other.db", path]) == 0
    assert other.strategy.history.values == {0: 0.25, 1: 7.0}
