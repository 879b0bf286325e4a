"""A lab's day by the command line alone."""

import re

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main

pytest.importorskip("pandas")


def yield_of(temperature, catalyst, equivalents, solvent):
    """Percent."""
    best = {"water": 40.0, "ethanol": 60.0, "dmso": 80.0}[solvent]
    return (
        best - 0.01 * (temperature - 45) ** 2 - 3 * abs(equivalents - 2) - 20 * abs(catalyst - 0.01)
    )


OLD = [
    {"temperature": 30.0, "catalyst": 0.001, "equivalents": 1, "solvent": "water"},
    {"temperature": 50.0, "catalyst": 0.01, "equivalents": 2, "solvent": "ethanol"},
    {"temperature": 40.0, "catalyst": 0.05, "equivalents": 3, "solvent": "dmso"},
    {"temperature": 25.5, "catalyst": 0.002, "equivalents": 5, "solvent": "dmso"},
    {"temperature": 55.0, "catalyst": 0.0005, "equivalents": 2, "solvent": "water"},
    {"temperature": 47.0, "catalyst": 0.02, "equivalents": 4, "solvent": "ethanol"},
    {"temperature": 81.0, "catalyst": 0.01, "equivalents": 2, "solvent": "dmso"},
    {"temperature": 58.0, "catalyst": 0.02, "equivalents": 2, "solvent": "ethanol"},
]


SPACE = """\
constraints = ["0.5 * equivalents + temperature <= 60"]

[parameters.temperature]
type = "real"
low = 20
high = 80
digits = 1
unit = "°C"

[parameters.catalyst]
type = "real"
low = 1e-4
high = 1e-1
log = true
unit = "mol/l"

[parameters.equivalents]
type = "integer"
low = 1
high = 5

[parameters.solvent]
type = "choice"
values = ["water", "ethanol", "dmso"]
"""


def as_libre_office_saves(text, filled):
    """A sheet as a German LibreOffice 7.4 saves it: semicolons, decimal commas, 15 digits, cp1252,
    other rows first, a column more.

    Args:
        text: What was written.
        filled: From the ids of trials to what a person types.
    """
    head, *rows = [line.split(",") for line in text.lstrip("\ufeff").splitlines()]
    for row in rows:
        row[-1] = filled.get(int(row[0]), "")
        row[1:3] = (f"{float(cell):.15g}".replace(".", ",") for cell in row[1:3])
    lines = [";".join([*cells, ""]) for cells in (head, *reversed(rows), [""] * len(head))]
    return "\r\n".join([*lines, ""]).encode("cp1252")


@pytest.mark.slow
def test_the_same_session_by_the_command_line_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(line, status=0):
        assert main(line.split(" ")) == status
        captured = capsys.readouterr()
        return captured.err if status else captured.out

    method = 'method = "gp_bucb"\narguments = { kernel = "Fitted", width = 2.0 }\n'
    (tmp_path / "space.toml").write_text(method + SPACE, encoding="utf-8")
    assert "largest yield in %" in run("new yield.db space.toml --objective yield --unit %")
    rows = [[*row.values(), yield_of(**row)] for row in OLD]
    old = [
        "temperature (°C);catalyst;equivalents;solvent;yield",
        *(";".join(map(str, row)) for row in rows),
    ]
    (tmp_path / "old.csv").write_text("\n".join(old), encoding="utf-8")
    assert main(["attach", "yield.db", "old.csv"]) == 0
    said = capsys.readouterr()
    assert said.out == "attached 8 trials: 0, 1, 2, 3, 4, 5, 6, 7\n"
    assert said.err == (
        "botorch-ext: old.csv: all rows were attached; rows that lie outside the space are kept "
        "as data and never asked: line 8: temperature [°C] must be a number from 20 to 80 in steps "
        "of 0.1, got 81.0\n"
    )
    assert "line 2 is the result of trial 0" in run("attach yield.db old.csv", status=2)
    assert run("ask yield.db -n 4 --csv to_do.csv") == (
        "wrote to_do.csv with 4 trials: 8, 9, 10, 11\n"
    )
    written = (tmp_path / "to_do.csv").read_text(encoding="utf-8")
    head = "trial,temperature [°C],catalyst [mol/l],equivalents,solvent,yield [%]"
    assert written.splitlines()[0] == f"\ufeff{head}"
    assert "is there already" in run("ask yield.db --csv to_do.csv", status=2)
    saved = as_libre_office_saves(written, {8: "71,3", 10: "64,25"})
    (tmp_path / "to_do.csv").write_bytes(saved)
    assert run("tell yield.db to_do.csv").splitlines() == [
        "told 2 trials: 10, 8",
        "still empty: 2 trials: 11, 9",
    ]
    message = run("tell yield.db to_do.csv", status=2)
    assert "every result in it has been told already" in message
    (tmp_path / "to_do.csv").write_bytes(
        as_libre_office_saves(written, {8: "71,3", 9: "7", 10: "64,25"})
    )
    assert run("tell yield.db to_do.csv").splitlines() == [
        "told 1 trial: 9",
        "still empty: 1 trial: 11",
        "told before: 2 trials: 10, 8",
    ]
    assert run("correct yield.db 9 57.1") == "corrected trial 9 to 57.1\n"
    assert run("abandon yield.db 11 --failed") == "abandoned trial 11, which failed\n"
    assert "no pending trials" in run("ask yield.db --pending", status=2)
    (tmp_path / "points.csv").write_text(
        "solvent,temperature,catalyst,equivalents\ndmso,45,0.01,2\nwater,45,0.01,2\n"
    )
    predicted = run("predict yield.db points.csv").splitlines()
    assert predicted[0].endswith(",solvent,mean,std,5 %,95 %,observed 5 %,observed 95 %")
    assert re.match(r"45\.0,0\.01,2,dmso,\d", predicted[1]) and len(predicted) == 3
    assert "yield [%], predicted mean: " in run("recommended yield.db")
    assert "11 told" not in run("status yield.db")
    assert len(run("trials yield.db --csv").splitlines()) == 13
    assert run("report yield.db -o yield.html") == ""
    frame = bx.Study("yield.db").to_pandas()
    assert frame["yield"][8:11].tolist() == [71.3, 57.1, 64.25]
    assert frame["state"][11] == "failed"
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert re.fullmatch(r"botorch-ext \d+\.\d+.*\n", capsys.readouterr().out)
