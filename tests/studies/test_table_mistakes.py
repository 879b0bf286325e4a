"""What newcomers do wrong with tables is refused by name, and nothing of the study changes."""

from pathlib import Path

import numpy as np
import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import RandomSearch

pytest.importorskip("sqlalchemy")

SPACE = bx.Space(
    temperature=bx.Real(20, 80, unit="°C", digits=1),
    catalyst=bx.Real(1e-4, 1e-1, log=True, unit="mol/l"),
    equivalents=bx.Integer(1, 5),
    solvent=bx.Choice(["water", "ethanol", "dmso"]),
)
HEAD = "trial,temperature [°C],catalyst [mol/l],equivalents,solvent,yield [%]"
OLD = "temperature,catalyst,equivalents,solvent,yield\n"
ROW = "61.5,0.01,2,dmso,7\n"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Trial 0 is told, 1 abandoned, 2 and 3 pend."""
    monkeypatch.chdir(tmp_path)
    study = bx.Study("yield.db", RandomSearch(SPACE, seed=3), objective="yield", unit="%")
    study.ask(4)
    study.tell(0, 71.3)
    study.abandon(1)
    return study


def line(study, id, value="", **other):
    """A row of the sheet of a study, with something else in it."""
    params = study.strategy.history.trials[id].params | other
    return ",".join(map(str, [id, *params.values(), value])) + "\n"


def sheet(*rows, head=HEAD):
    return head + "\n" + "".join(rows)


# What is told: a text or bytes of a file, and what the message says.
TOLD = {
    "nothing is filled in": (lambda s: sheet(line(s, 2), line(s, 3)), "no result is filled in"),
    "told twice": (lambda s: sheet(line(s, 0, 71.3)), "has been told already"),
    "another value for a told trial": (
        lambda s: sheet(line(s, 2, 1), line(s, 0, 70)),
        "line 3: trial 0 is told already, 71.3; correct changes a value, got 70.0",
    ),
    "a trial that was abandoned": (
        lambda s: sheet(line(s, 1, 5)),
        "trial 1 was abandoned: attach its result",
    ),
    "the same id twice": (
        lambda s: sheet(line(s, 2, 5), line(s, 2, 6)),
        "line 3: trial 2 is in line 2 as well",
    ),
    "an id that was never asked": (
        lambda s: sheet(line(s, 2, 5).replace("2,", "12,", 1)),
        "trial must be from 0 to 3, got 12: is this the sheet of another study?",
    ),
    "no id": (
        lambda s: sheet(line(s, 2, 5).replace("2,", ",", 1)),
        "trial is empty: attach a result that was not asked for",
    ),
    "other settings than were asked": (
        lambda s: sheet(line(s, 2, 5, temperature=44.4)),
        "temperature is 44.4, asked was",
    ),
    "the sheet of another study": (
        lambda s: sheet(line(s, 2, 5, temperature=44.4, catalyst=0.05, solvent="water")),
        "otherwise this is the sheet of another study",
    ),
    "text in a number": (
        lambda s: sheet(line(s, 2, "ca. 5")),
        "line 2: yield must be a number, got 'ca. 5'",
    ),
    "a unit in a number": (lambda s: sheet(line(s, 2, "5 %")), "yield must be a number, got '5 %'"),
    "a date in a number": (lambda s: sheet(line(s, 2, "05. Jan")), "yield must be a number"),
    "decimal commas between commas": (
        lambda s: sheet(line(s, 2, "5,5")),
        "line 2 has 7 cells, and the first line 6: is there a decimal comma?",
    ),
    "quoted decimal commas between commas": (
        lambda s: sheet(line(s, 2, '"5,5"')),
        "yield must have a decimal point where commas separate cells, got 5,5",
    ),
    "signs for thousands": (
        lambda s: (
            sheet(line(s, 2, "1.234"), line(s, 3, "5,5")).replace(",", ";").replace("5;5", "5,5")
        ),
        "yield must not be ambiguous, got 1.234, which is either 1.234 or 1234",
    ),
    "not a number": (lambda s: sheet(line(s, 2, "nan")), "yield must be a number, got 'nan'"),
    "too large a number": (
        lambda s: sheet(line(s, 2, "1e999")),
        "line 2: yield must be finite, got inf",
    ),
    "a column is missing": (
        lambda s: sheet("2,5\n", head="trial,yield"),
        "column temperature [°C] is missing; column catalyst [mol/l] is missing",
    ),
    "no ids at all": (lambda s: OLD + ROW, "column trial is missing"),
    "a column is unknown": (
        lambda s: sheet(line(s, 2, 5), head=HEAD.replace("solvent", "solvents")),
        "column 'solvents' is unknown; did you mean 'solvent'?; column solvent is missing",
    ),
    "a column twice": (
        lambda s: sheet(line(s, 2, 5), head=HEAD.replace("solvent", "equivalents")),
        "column equivalents is there twice, as 'equivalents'",
    ),
    "a column without a name": (
        lambda s: sheet(line(s, 2, 5), head=HEAD.replace("solvent", "")),
        "column solvent is missing",
    ),
    "the wrong unit": (
        lambda s: sheet(line(s, 2, 5), head=HEAD.replace("°C", "K")),
        "column temperature must be in °C, got 'K': convert its values",
    ),
    "a unit where there is none": (
        lambda s: sheet(line(s, 2, 5), head=HEAD.replace("equivalents", "equivalents (g)")),
        "column equivalents must have no unit, got 'g'",
    ),
    "an empty file": (lambda s: b"", "is empty: its first line must have the names"),
    "an empty sheet": (lambda s: ";;;\n;;;\n", "is empty: its first line must have the names"),
    "the head alone": (lambda s: sheet(), "no result is filled in"),
    "an Excel file": (lambda s: b"PK\x03\x04" + bytes(99), "is a workbook or an archive: save"),
    "an old Excel file": (lambda s: b"\xd0\xcf\x11\xe0" + bytes(99), "save the sheet as CSV"),
    "the study itself": (lambda s: b"SQLite format 3\0" + bytes(99), "is a database"),
    "a picture": (lambda s: b"\x89PNG\r\n\x1a\n" + bytes(99), "is no text: save the sheet as CSV"),
    "a quote that does not end": (lambda s: sheet('2,"5\n'), "is no CSV: line 2"),
}
ATTACHED = {
    "a choice that is misspelt": (
        "61.5,0.01,2,etanol,7\n",
        "line 2: solvent must be one of ['water', 'ethanol', 'dmso'], got 'etanol'; did you mean "
        "'ethanol'?",
    ),
    "no result": (ROW + "61.5,0.02,2,dmso,\n", "line 3: yield is empty"),
    "no setting": (",0.01,2,dmso,7\n", "line 2: temperature is empty"),
    "nothing on a logarithmic scale": ("61.5,0,2,dmso,7\n", "catalyst must be above 0"),
    "text in a setting": ("warm,0.01,2,dmso,7\n", "temperature must be a number, got 'warm'"),
    "a row twice": (ROW + ROW, "line 3 is the result of line 2 once more"),
    "no rows": ("", "old.csv has no row below the names"),
    "several mistakes": (
        "warm,0.01,2,oil,7\n61.5,0.01,2,dmso,7\n61.5,0.01,2,,7\n",
        "line 4: solvent is empty",
    ),
}


def unchanged(study, capsys, *command):
    """The one line with which a command is refused that changes nothing."""
    before = study.events
    content = Path("yield.db").read_bytes()
    assert main([*command]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert Path("yield.db").read_bytes() == content
    assert len(study.events) == len(before)
    return captured.err


@pytest.mark.parametrize("mistake", TOLD)
def test_a_sheet_that_is_told_whole_or_not_at_all(study, capsys, tmp_path, mistake):
    made, message = TOLD[mistake]
    content = made(study)
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "to_do.csv").write_bytes(content)
    said = unchanged(study, capsys, "tell", "yield.db", "to_do.csv")
    assert message in said and said.startswith("botorch-ext: ")


@pytest.mark.parametrize("mistake", ATTACHED)
def test_results_of_before_are_taken_whole_or_not_at_all(study, capsys, tmp_path, mistake):
    rows, message = ATTACHED[mistake]
    (tmp_path / "old.csv").write_text(OLD + rows)
    assert message in unchanged(study, capsys, "attach", "yield.db", "old.csv")


def test_places_that_are_no_sheet(study, capsys, tmp_path):
    assert "no.csv: No such file" in unchanged(study, capsys, "tell", "yield.db", "no.csv")
    assert "Is a directory" in unchanged(study, capsys, "tell", "yield.db", str(tmp_path))
    assert "got no file" in unchanged(study, capsys, "tell", "other.db", "no.csv")
    assert not (tmp_path / "other.db").exists()


def test_ids_and_values_on_the_line(study, capsys):
    assert "got 2: pending" in unchanged(study, capsys, "correct", "yield.db", "2", "7")
    assert "got 9: never asked" in unchanged(study, capsys, "abandon", "yield.db", "9")
    assert "value must be a number" in unchanged(study, capsys, "correct", "yield.db", "0", "nan")
    said = unchanged(study, capsys, "correct", "yield.db", "0", "1,234")
    assert "value must not be ambiguous, got 1,234" in said
    said = unchanged(study, capsys, "ask", "yield.db", "-n", "0")
    assert "num_trials must be at least 1, got 0" in said
    said = unchanged(study, capsys, "ask", "yield.db", "--csv", "no/to_do.csv")
    assert "must lie in a folder that is there" in said
    assert "has no model" in unchanged(study, capsys, "recommended", "yield.db")


def test_a_frame_with_mistakes(study):
    good = {
        "temperature": 61.5,
        "catalyst": 0.01,
        "equivalents": 2,
        "solvent": "dmso",
        "yield": 7.0,
    }
    before = len(study.events)
    for rows, message in (
        ([good | {"solvent": "etanol"}], "row 0: solvent must be one of .*did you mean 'ethanol'"),
        ([good, good], "row 1 is the result of row 0 once more"),
        ([good | {"yield": None}], "row 0: yield is empty"),
        ([good | {"yield": "7 %"}], "row 0: yield must be one number, got '7 %'"),
        ([good | {"temperature": "61,5"}], "row 0: temperature must be one number, got '61,5'"),
        ([good | {"Yield": 1}], "column yield is there twice, as 'Yield'"),
        (
            [{"temperatur" if name == "temperature" else name: good[name] for name in good}],
            "column 'temperatur' is unknown.*did you mean 'temperature'",
        ),
        ([{"yield": 7.0}], r"column temperature \[°C\] is missing; .* solvent is missing"),
        ([good | {"yield": float("inf")}], "row 0: yield must be finite"),
        ([good | {"yield": np.ones(3)}], r"row 0: yield must be one number, got array"),
        ([good, good | {"temperature": np.ones(3)}], "row 1: temperature must be one number"),
        ([good | {"temperature": np.datetime64(50, "ns")}], "row 0: temperature must be one"),
        (good, "or a list of dicts, also for one row, got {"),
        ([], "a table must have rows, got none"),
        ("old.csv", "a table must be a pandas data frame or a list of dicts, .* got 'old.csv'"),
        ([good, 5], "a table must be a pandas data frame or a list of dicts"),
    ):
        with pytest.raises(TableError, match=message):
            study.attach(rows)
    with pytest.raises(ValueError, match="or give a point with its value"):
        study.attach([1.0, 2.0], outside=True)
    with pytest.raises(ValueError, match="value must be given for a point, got None"):
        study.attach(good, context=[0.5])
    assert len(study.events) == before
