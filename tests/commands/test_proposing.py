"""The command that proposes a space from earlier results, as labs have them."""

import datetime
import shlex
import tomllib

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from tests.studies.commands import refused, shown

pytest.importorskip("sqlalchemy")
openpyxl = pytest.importorskip("openpyxl")

HEADING = ["Nr.", "Temperatur", "Zeit", "Äquivalente", "Zyklen", "Ligand", "Ausbeute", "Bemerkung"]
UNITS = [None, "[°C]", "[h]", None, None, "[frisch]", "[%]", None]
ROWS = [
    [1, 30, "1,5", 1, 3, "L1", 31.5, "ok"],
    [2, 55, "2,5", 2, 4, "L2", 64, None],
    [3, "40,5", 9, 1.5, 9, "L3", "Failed", "geplatzt"],
    [4, 45, 2, 1.5, 5, "L1", None, "läuft"],
    [5, 62.5, "4", 1.5, 6, "L1", "70,25", "leicht gelb"],
    [6, 50, 1, 1, 7, "L2", 12, "x"],
    [7, 50, 2, 2, 8, "L2", 13, "y"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workbook(path, *rows, **cells):
    """Writes rows, and then cells by their places."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for place, value in cells.items():
        book.active[place] = value
    book.save(path)


def proposed(capsys, *arguments):
    """What the command says, but its last line, and the arguments in that line, which begins the
    study."""
    *lines, begins = shown(capsys, "new", "lab.db", "space.toml", *arguments).splitlines()
    return lines, shlex.split(begins)[1:]


def test_a_space_is_proposed_from_earlier_results(folder, capsys):
    old = (
        "trial,reaction time [h],catalyst [mol/l],equivalents,solvent,fixed,empty,asked_at,"
        "yield [%]\n"
        "0,1.5,0.0001,2,dmso,3,,2026,7\n1,12.25,0.05,5,water,3,,2026,9.5\n2,3,0.1,1,dmso,3,,2026,8\n"
    )
    (folder / "old.csv").write_text(old, encoding="utf-8")
    said, begin = proposed(capsys, "--from", "old.csv")
    assert said[:2] == [
        "wrote space.toml with 5 parameters",
        "result: yield, the last column of numbers; --objective names another one",
    ]
    assert not (folder / "lab.db").exists()
    assert begin == ["new", "lab.db", "space.toml", "--objective", "yield", "--unit", "%"]
    shown(capsys, *begin)
    assert dict(bx.Study("lab.db").strategy.domain.parameters) == {
        "reaction time": bx.Real(1.5, 12.25, digits=2, unit="h"),
        "catalyst": bx.Real(0.0001, 0.1, log=True, unit="mol/l"),
        "equivalents": bx.Real(1, 5, digits=1),
        "solvent": bx.Choice(["dmso", "water"]),
        "fixed": bx.Integer(3, 3),
    }
    assert main(["attach", "lab.db", "old.csv"]) == 0
    assert capsys.readouterr().out == "attached 3 trials: 0, 1, 2\n"
    assert bx.Study("lab.db").strategy.history.values == {0: 7.0, 1: 9.5, 2: 8.0}
    for arguments, message in (
        (["lab.db", "b.toml", "--from", "old.csv"], "lab.db is there already"),
        (["b.db", "space.toml", "--from", "old.csv"], "would replace it: name another file, or"),
        (["b.db", "b.toml", "--from", "no.csv"], "no.csv: No such file"),
        (
            ["b.db", "b.toml", "--from", "old.csv", "--objective", "yeld"],
            "old.csv: one column must be the objective, got 'yeld'; did you mean 'yield'?",
        ),
    ):
        assert message in refused(capsys, "new", *arguments)
    assert not (folder / "b.toml").exists()


def test_a_workbook_of_a_lab(folder, capsys):
    workbook("old.xlsx", HEADING, UNITS, *ROWS)
    said, begin = proposed(capsys, "--from", "old.xlsx", "--minimize")
    assert said == [
        "wrote space.toml with 5 parameters",
        "result: Ausbeute, the last column of numbers; --objective names another one",
        "left out: Nr. (running numbers), Bemerkung (texts)",
        "rows without a result: 6",
        "Check the file, and begin the study:",
    ]
    text = (folder / "space.toml").read_text(encoding="utf-8")
    assert all(f"# {line}\n" in text for line in said[2:4])
    shown(capsys, *begin)
    study = bx.Study("lab.db")
    assert study.minimize and study.heads.head(study.objective) == "Ausbeute [%]"
    assert dict(study.strategy.domain.parameters) == {
        "Temperatur": bx.Real(30, 62.5, digits=1, unit="°C"),
        "Zeit": bx.Real(1, 9, digits=1, unit="h"),
        "Äquivalente": bx.Real(1, 2, digits=1),
        "Zyklen": bx.Integer(3, 9),
        "Ligand [frisch]": bx.Choice(["L1", "L2", "L3"]),
    }
    workbook("told.xlsx", HEADING, UNITS, *(row for row in ROWS if row[0] != 4))
    assert main(["attach", "lab.db", "told.xlsx"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "attached 6 trials: 0, 1, 2, 3, 4, 5\n" and "outside" not in captured.err
    assert study.strategy.history.failed == {2} and len(study.strategy.history.values) == 5
    (folder / "space.toml").unlink()
    (folder / "lab.db").rename("first.db")
    workbook("told.xlsx", HEADING, UNITS, *(row for row in ROWS if row[0] not in (3, 4)))
    said, begin = proposed(capsys, "--from", "told.xlsx", "--objective", "Zyklen")
    assert said[1] == "result: Zyklen" and begin[-2:] == ["--objective", "Zyklen"]


@pytest.mark.parametrize(
    ("cells", "messages"),
    [
        (
            {"B4": "40 °C", "C3": datetime.datetime(2026, 5, 2)},
            [
                "old.xlsx: Temperatur: row 4 is '40 °C', which is no number; Zeit: row 3 is the "
                "date '2026-05-02"
            ],
        ),
        ({"G4": "n. b."}, ["Ausbeute: row 4 is 'n. b.', which is no number"]),
        ({"D4": "1.5"}, ["Äquivalente: row 4 is '1.5'", "with the decimal sign of the others"]),
        ({"B2": "°C"}, ["Temperatur: row 2 is '°C', which is no number", "in the heading"]),
        ({"C1": None}, ["row 2 has '[h]' in a column without a name", "delete the lines above"]),
        ({"C1": "Temperatur"}, ["column Temperatur is there twice"]),
    ],
)
def test_what_remains_doubtful_is_refused(folder, capsys, cells, messages):
    # A second line of units is one where all cells are in brackets.
    units = {"G2": "%"} if {"B2", "C1"} & cells.keys() else {}
    workbook("old.xlsx", HEADING, UNITS, *ROWS, **units, **cells)
    said = refused(capsys, "new", "lab.db", "space.toml", "--from", "old.xlsx")
    assert all(message in said for message in messages)
    assert not (folder / "space.toml").exists()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["a", "b", "a", "c", "c", "a", "b"], "choice"),
        (["one", "two", "three", "four", "five", "six", "six"], "texts"),
        (["it was cold", "it was warm", "it was cold", "-", "-", "-"], "choice"),
        (["it was too cold", "it was warm", "a leak again", "no, too cold"], "texts"),
        (["a", "", "", "b", "", "", ""], "texts, mostly empty"),
        (["2026-01-05", "5.1.2026", "1/5/26"], "dates"),
        (["1", "2", "3", "4", "5", "6", "7"], "running numbers"),
        (["1", "2", "3"], "real"),
        (["0", "5", "10", "15", "20", "25", "30"], "integer"),
        (["5", "x", "y", "z"], "choice"),
    ],
)
def test_columns_of_each_kind(folder, capsys, column, expected):
    lines = "".join(f"{cell};{i % 3 + 5};{i + 0.5}\n" for i, cell in enumerate(column))
    (folder / "old.csv").write_text(f"first;second;result\n{lines}", encoding="utf-8")
    said, _ = proposed(capsys, "--from", "old.csv")
    found = tomllib.loads((folder / "space.toml").read_text(encoding="utf-8"))["parameters"]
    if "first" in found:
        assert found["first"]["type"] == expected
    else:
        assert said[2] == f"left out: first ({expected})"


@pytest.mark.parametrize("name", ["Nr", "Lfd. Nr.", "Versuchsnummer", "#", "ID", "Run no."])
def test_columns_that_number_the_rows_by_their_names(folder, capsys, name):
    (folder / "old.csv").write_text(f"{name};a;y\nV-7;1;2\nV-9;2;3\n", encoding="utf-8")
    said, _ = proposed(capsys, "--from", "old.csv")
    assert said[2] == f"left out: {name} (running numbers)"


def test_experiments_that_failed_are_in_the_space(folder, capsys):
    old = "T,L,y,imp,state\n1,L1,7,2,attached\n2,L1,8,3,attached\n6,L2,,-,failed\n4,L1,failed,-,\n"
    (folder / "old.csv").write_text(old + "9,L1,,,pending\n", encoding="utf-8")
    said, _ = proposed(capsys, "--from", "old.csv", "--objective", "y", "--outcome", "imp")
    assert "rows without a result: 6" in said
    found = tomllib.loads((folder / "space.toml").read_text(encoding="utf-8"))["parameters"]
    assert (found["T"]["low"], found["T"]["high"]) == (1, 6)
    assert found["L"]["values"] == ["L1", "L2"]


def test_signs_may_be_said(folder, capsys):
    (folder / "old.csv").write_text("a|y\n1.234|7\n1.500|8\n", encoding="utf-8")
    proposed(capsys, "--from", "old.csv", "--separator", "|", "--decimal", ".")
    found = tomllib.loads((folder / "space.toml").read_text(encoding="utf-8"))["parameters"]
    assert found == {"a": {"type": "real", "low": 1.234, "high": 1.5, "digits": 3}}


@pytest.mark.parametrize("text", ["a,y\n1,failed\n2,\n", "y\n1\n2.5\n", "a,y\nx,u\nz,v\n"])
def test_tables_that_have_no_results_or_no_parameters(folder, capsys, text):
    (folder / "old.csv").write_text(text, encoding="utf-8")
    said = refused(capsys, "new", "lab.db", "space.toml", "--from", "old.csv", "--objective", "y")
    assert "a row with a result" in said or "'u', which is no number" in said


def test_percentages_of_a_workbook_are_proposed_and_attached_as_they_are_shown(folder, capsys):
    workbook("old.xlsx", ["water [%]", "yield [%]"], [0.05, 0.601], [0.2, 0.35], [0.12, 0.4])
    book = openpyxl.load_workbook("old.xlsx")
    for row in book.active["A2:B4"]:
        for cell in row:
            cell.number_format = "0.0%"
    book.save("old.xlsx")
    shown(capsys, "new", "lab.db", "space.toml", "--from", "old.xlsx")
    text = (folder / "space.toml").read_text(encoding="utf-8")
    assert "low = 5\nhigh = 20\n" in text
    shown(capsys, "new", "lab.db", "space.toml", "--objective", "yield", "--unit", "%")
    shown(capsys, "attach", "lab.db", "old.xlsx")
    assert bx.Study("lab.db").strategy.history.values == {0: 60.1, 1: 35.0, 2: 40.0}
    book.active["A1"].value = "water"
    book.save("fractions.xlsx")
    said = refused(capsys, "new", "other.db", "other.toml", "--from", "fractions.xlsx")
    assert "water: row 2 is '5%', which is no number" in said


def test_outcomes_are_proposed_with_limits_to_fill_in(folder, capsys):
    old = "Time,Yield [%],Impurity [%]\n1,60,2\n2,70,4\n3,80,6\n"
    (folder / "old.csv").write_text(old, encoding="utf-8")
    options = ("--objective", "yield", "--outcome")
    said = refused(capsys, "new", "lab.db", "space.toml", "--from", "old.csv", *options, "imp")
    assert "one column must be an outcome, got 'imp'" in said
    both = "Time,time [h],Yield\n1,5,60\n2,6,70\n"
    (folder / "both.csv").write_text(both, encoding="utf-8")
    said, _ = proposed(capsys, "--from", "both.csv", "--objective", "time")
    assert said[1] == "result: time"
    (folder / "space.toml").unlink()
    said, begin = proposed(capsys, "--from", "old.csv", *options, "impurity")
    assert said[0] == "wrote space.toml with 1 parameter" and begin[-4:-2] == [
        "--objective",
        "Yield",
    ]
    assert "at_most or at_least" in refused(capsys, *begin)
    text = (folder / "space.toml").read_text(encoding="utf-8")
    assert "# constraints = [" in text.split("[parameters")[0]
    (folder / "space.toml").write_text(text.replace("# at_most", "at_most").replace(", or", " #"))
    shown(capsys, *begin)
    shown(capsys, "attach", "lab.db", "old.csv")
    assert bx.Study("lab.db").strategy.history.outcomes[2] == {"Impurity": 6.0}
    assert "needs --from" in refused(capsys, "new", "a.db", "space.toml", "--outcome", "impurity")
