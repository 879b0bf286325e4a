"""Mistakes in tables are refused by file, line and column, and the study stays as it was."""

from pathlib import Path

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import RandomSearch
from tests.studies.kept import SPACE

pytest.importorskip("sqlalchemy")

HEAD = "trial,temperature [°C],catalyst [mol/l],equivalents,solvent,yield [%]\n"
OLD = "temperature,catalyst,equivalents,solvent,yield\n"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Trial 0 is told, 1 abandoned, 2 and 3 pend. No mistake changes it."""
    place = tmp_path_factory.mktemp("study") / "yield.db"
    study = bx.Study(place, RandomSearch(SPACE, seed=3), objective="yield", unit="%")
    study.ask(4)
    study.tell(0, 71.3)
    study.abandon(1)
    return study


@pytest.fixture(autouse=True)
def refused(study, tmp_path, monkeypatch, capsys):
    """The one line with which a command on a sheet is refused; the study stays as it was."""
    monkeypatch.chdir(tmp_path)
    place, events = study._journal.database.name, len(study.events)
    content = Path(place).read_bytes()

    def refused(command, *arguments, sheet=None):
        if sheet is not None:
            Path("to_do.csv").write_text(sheet, encoding="utf-8")
            arguments = ("to_do.csv", *arguments)
        assert main([command, str(place), *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1
        return captured.err.removeprefix("botorch-ext: ")

    yield refused
    assert Path(place).read_bytes() == content and len(study.events) == events


def line(study, id, value="", **other):
    """A row of the sheet of a study, with something else in it."""
    params = study.strategy.history.trials[id].params | other
    return ",".join(map(str, [id, *params.values(), value])) + "\n"


# What is told, and what the message names.
TOLD = {
    "nothing is filled in": (lambda s: HEAD + line(s, 2) + line(s, 3), "no result is filled in"),
    "another value": (
        lambda s: HEAD + line(s, 2, 1) + line(s, 0, 70),
        "row 3: trial 0 is told already, 71.3; correct, or tell --correct, changes a value, got 70",
    ),
    "failed after a result": (lambda s: HEAD + line(s, 0, "failed"), "is told already, 71.3"),
    "failed after it was given up": (lambda s: HEAD + line(s, 1, "failed"), "was abandoned"),
    "abandoned": (lambda s: HEAD + line(s, 1, 5), "trial 1 was abandoned"),
    "an id twice": (lambda s: HEAD + line(s, 2, 5) + line(s, 2, 6), "row 3: trial 2 is in row 2"),
    "never asked": (lambda s: HEAD + "12" + line(s, 2, 5)[1:], "from 0 to 3, got 12"),
    "another setting": (lambda s: HEAD + line(s, 2, 5, temperature=44.4), "temperature is 44.4"),
    "a setting is gone": (lambda s: HEAD + line(s, 2, 5, solvent=""), "solvent is empty"),
    "text": (lambda s: HEAD + line(s, 2, "ca. 5"), "row 2: yield must be a number, got 'ca. 5'"),
    "a decimal comma": (lambda s: HEAD + line(s, 2, "5,5"), "row 2 has 7 cells"),
    "a quoted comma": (lambda s: HEAD + line(s, 2, '"5,5"'), "yield must have a decimal point"),
    "columns are missing": (
        lambda s: "trial,yield\n2,5\n",
        "column temperature [°C] is missing; column catalyst [mol/l] is missing",
    ),
    "misspelt": (
        lambda s: HEAD.replace("solvent", "solvents") + line(s, 2, 5),
        "column 'solvents' is unknown; did you mean 'solvent'?",
    ),
    "a column twice": (
        lambda s: HEAD.replace("solvent", "equivalents") + line(s, 2, 5),
        "column equivalents is there twice",
    ),
    "another unit": (
        lambda s: HEAD.replace("°C", "K") + line(s, 2, 5),
        "column temperature must be in °C, got 'K'",
    ),
    "a unit where there is none": (
        lambda s: HEAD.replace("equivalents", "equivalents (g)") + line(s, 2, 5),
        "column equivalents must have no unit",
    ),
}
ATTACHED = {
    "misspelt choice": ("61.5,0.01,2,etanol,7\n", "row 2: solvent must be one of"),
    "no result": ("61.5,0.01,2,dmso,7\n61.5,0.02,2,dmso,\n", "row 3: yield is empty"),
    "zero of a log": ("61.5,0,2,dmso,7\n", "row 2: catalyst must be above 0"),
    "twice": ("61.5,0.01,2,dmso,7\n\n" * 2, "row 4 is the result of row 2 once more"),
    "no rows": ("", "no row below the names"),
    "all outside": ("299,0.01,2,dmso,7\n", "row 2: temperature [°C] must be a number from 20"),
    "several": ("warm,0.01,2,oil,7\n61.5,0.01,2,dmso,7\n1,1,2,,7\n", "row 4: solvent is empty"),
}


@pytest.mark.parametrize("mistake", TOLD)
def test_a_sheet_is_told_whole_or_not_at_all(study, refused, mistake):
    made, message = TOLD[mistake]
    said = refused("tell", sheet=made(study))
    assert message in said and said.startswith("to_do.csv: ")


@pytest.mark.parametrize("mistake", ATTACHED)
def test_results_of_before_are_taken_whole_or_not_at_all(refused, mistake):
    rows, message = ATTACHED[mistake]
    said = refused("attach", sheet=OLD + rows)
    assert message in said and said.startswith("to_do.csv: ")
    assert " in x" not in said


def test_places_that_are_no_sheet_and_numbers_that_are_none(refused, tmp_path):
    assert "no.csv: No such file" in refused("tell", "no.csv")
    assert "Is a directory" in refused("tell", str(tmp_path))
    for arguments, message in (
        (("correct", "2", "7"), "got 2: pending"),
        (("abandon", "9"), "got 9: never asked"),
        (("correct", "0", "nan"), "value must be a number"),
        (("correct", "0", "1,234"), "value must not be ambiguous"),
        (("ask", "-n", "0"), "num_trials must be at least 1"),
        (("ask", "--csv", "no/to_do.csv"), "a folder that is there"),
        (("recommended",), "has no model"),
        (("stop",), "has no model"),
    ):
        assert message in refused(*arguments)


GOOD = {"temperature": 61.5, "catalyst": 0.01, "equivalents": 2, "solvent": "dmso", "yield": 7.0}
FRAMES = [
    ([GOOD | {"solvent": "etanol"}], "row 0: solvent must be one of"),
    ([GOOD, GOOD], "row 1 is the result of row 0 once more"),
    ([GOOD | {"yield": "7 %"}], "row 0: yield must be one number"),
    ([GOOD, GOOD | {"temperature": "61,5"}], "row 1: temperature must be one number"),
    ([GOOD | {"yield": float("inf")}], "row 0: yield must be finite"),
]


@pytest.mark.parametrize(("rows", "message"), FRAMES)
def test_rows_in_memory_are_counted_from_0_and_the_message_says_so(study, rows, message):
    with pytest.raises(TableError, match=message) as raised:
        study.attach(rows)
    assert "(rows are counted from 0)" in str(raised.value)
    pd = pytest.importorskip("pandas")
    with pytest.raises(TableError, match=message):
        study.attach(pd.DataFrame(rows))
    labels = [f"day {i}" for i in range(len(rows))]
    with pytest.raises(TableError, match=r"day .*\(rows have the labels of the index\)"):
        study.attach(pd.DataFrame(rows, index=labels))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([GOOD | {"Yield": 1}], "column yield is there twice, as 'Yield'"),
        ([{"yield": 7.0}], r"column temperature \[°C\] is missing; .* solvent is missing"),
        (GOOD, "a list of dicts, also for one row"),
        ([], "a table must have rows"),
        ([GOOD, 5], "a table must be a pandas data frame or a list of dicts"),
    ],
)
def test_tables_in_memory_that_are_none(study, table, message):
    with pytest.raises(TableError, match=message):
        study.attach(table)
    for given, options in (([1.0, 2.0], {"outside": True}), (GOOD, {"context": [0.5]})):
        with pytest.raises(ValueError, match=r"point|value"):
            study.attach(given, **options)
