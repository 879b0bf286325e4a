"""The command line: what it shows of studies, what it makes, and what it refuses on one line."""

import errno
import json
import math
import os
import re
import shlex
import sqlite3
import sys
import time
from pathlib import Path

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.page.overview import read_overviews
from botorch_ext.page.words import duration
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.sheets import Sheet
from tests.studies.commands import COMMANDS, refused, rows_of, shown, week, with_events
from tests.studies.kept import at_random, gp_bucb

pytest.importorskip("sqlalchemy")
pytestmark = pytest.mark.usefixtures("no_pictures")


def test_status_says_what_runs(path, clock, capsys):
    trials = week(path, clock, name="yeast")
    lines = shown(capsys, "status", path).splitlines()
    assert lines[0] == f"study 'yeast' in {path}"
    said = {line[2:15].strip(): line[15:].strip() for line in lines[1:]}
    assert said["strategy"] == "gp_bucb"
    assert said["looks for"] == "the largest value"
    assert said["began"] == "2026-11-18 11:06:40 UTC, 26 h ago"
    counts = "5 asked: 2 told, 1 pending, 1 failed, 1 abandoned; 1 attached; 1 corrected"
    assert said["trials"] == counts
    x = ", ".join(f"{part:.6g}" for part in trials[4].x.tolist())
    assert said["pending"] == f"trial 4 at ({x}), for 26 h"
    assert said["best so far"].startswith("0.71, trial 1 at (")
    assert said["last result"] == "0.333333, trial 0, 2026-11-18 13:06:40 UTC, 24 h ago"


def test_a_study_that_minimises_is_shown_in_its_own_sign(path, clock, capsys):
    week(path, clock, minimize=True)
    text = shown(capsys, "status", path)
    assert "the smallest value" in text and "best so far  -0.25, trial 5 at (0.5, 2.5)" in text
    study = bx.Study(path, gp_bucb())
    mean = study.ask().info["mean"]
    row = rows_of(shown(capsys, "trials", path, "--csv"))[-1]
    assert float(row["info_mean"]) == mean != 0.0
    assert abs(float(row["info_mean"]) - study.best()[1]) < 1.0


def test_all_studies_and_those_without_trials_are_shown(path, clock, capsys):
    week(path, clock, name="first")
    bx.Study(path, at_random(), name="second")
    both = shown(capsys, "status", path)
    assert both.index("study 'first'") < both.index("study 'second'")
    alone = shown(capsys, "status", path, "--name", "second")
    assert "first" not in alone and "none yet" in alone
    assert shown(capsys, "trials", path, "--name", "second").split()[:2] == ["trial", "state"]
    assert rows_of(shown(capsys, "trials", path, "--name", "second", "--csv")) == []


def test_the_table_of_trials_has_all_of_them(path, clock, capsys):
    week(path, clock)
    head, *lines = shown(capsys, "trials", path).splitlines()
    assert head.split()[:5] == ["trial", "state", "x0", "x1", "value"]
    told = ["told", "told", "failed", "abandoned", "pending", "attached"]
    assert [line.split()[:2] for line in lines] == [[str(i), state] for i, state in enumerate(told)]
    assert lines[1].endswith("2026-11-18 11:06:40  2026-11-18 11:06:40   71")
    assert len({len(line) for line in (head, lines[1])}) == 1


def test_csv_goes_to_a_file(path, clock, capsys, tmp_path):
    week(path, clock)
    text = shown(capsys, "trials", path, "--csv")
    said = shown(capsys, "trials", path, "--csv", "-o", tmp_path / "lab.csv")
    assert said == f"wrote {tmp_path / 'lab.csv'} with 6 trials\n"
    assert (tmp_path / "lab.csv").read_bytes() == text.encode("utf-8-sig")


def test_durations_in_words():
    assert [duration(s) for s in (-1, 0.5, 61, 119, 120, 7199, 7200, 172_799, 172_800)] == [
        *("less than 1 s", "less than 1 s", "61 s", "119 s", "2 min", "119 min", "2 h", "47 h"),
        "2 days",
    ]


def test_text_of_others_computes_and_steers_nothing(path, capsys):
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\x1b[31m", "plain", "\ud800"]
    info = {f"={i}": formula for i, formula in enumerate(formulas)} | {"number": -1.5}
    body = {"event": "asked", "id": 0, "x": [-1.0], "context": None, "info": info}
    with_events(path, [body], name="=\x1b[2J")
    text = shown(capsys, "trials", path, "--csv")
    row = rows_of(text)[0]
    cells = [row[f"info_={i}"] for i in range(len(formulas))]
    escaped = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", r"\t=1", r"\r=1", r"\x1b[31m", "plain"]
    assert cells == [*escaped, r"\ud800"]
    assert (row["info_number"], row["x0"]) == ("-1.5", "-1.0")
    assert "\x1b" not in text + shown(capsys, "status", path) + shown(capsys, "trials", path)


PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
TIME = '[parameters.time]\ntype = "real"\nlow = 1\nhigh = 9\nunit = "s"\n'
SPACES = {
    "no TOML": ("parameters = {", "is no TOML in UTF-8"),
    "a name without quotes": (
        TIME.replace("time", "Äquivalente"),
        'put quotes around "Äquivalente"',
    ),
    "a blank in a name": ("[parameters]\nreaction time = 5\n", 'put quotes around "reaction time"'),
    "an unknown entry": ("minimise = true\n" + TIME, "got 'minimise'"),
    "no type": (
        "[parameters.time]\nlow = 1\nhigh = 9\n",
        "type of time must be one of real, integer",
    ),
    "another type": (TIME.replace("real", "float"), "choice, ordered, got 'float'"),
    "no end": (TIME.replace("high = 9\n", ""), "time: .*missing.*'high'"),
    "a misspelt end": (TIME.replace("high", "hihg"), "got 'hihg'; did you mean 'high'?"),
    "ends in the wrong order": (TIME.replace("9", "0"), "time: low must be at most high"),
    "a constraint of nothing": ('constraints = ["tiem <= 5"]\n' + TIME, "tiem"),
    "a constraint that is no expression": (
        'constraints = ["sin(time) <= 5"]\n' + TIME,
        "sin(time)",
    ),
    "an unknown method": ('method = "integrated_ie"\n' + TIME, "did you mean 'integrated_ei'?"),
    "outcomes without names": ("outcomes = 5\n" + TIME, "outcomes must have limits by name, got 5"),
    "an outcome without a limit": (
        TIME + '[outcomes.impurity]\nunit = "%"\n',
        "botorch-ext: space.toml: impurity must have at_most or at_least",
    ),
    "a limit that is no number": (
        TIME + '[outcomes.impurity]\nat_most = "5"\n',
        "bound must be",
    ),
    "limits of another method": (
        'method = "thompson_sampling"\n' + TIME + "[outcomes.impurity]\nat_most = 5\n",
        "outcomes",
    ),
    "constraints at the end": (
        TIME + 'constraints = ["time <= 5"]\n',
        "space.toml: constraints must stand above the first line in [brackets]",
    ),
    "constraints among arguments": (
        TIME + '[arguments]\nconstraints = ["time <= 5"]\n',
        "constraints must stand above the first line in [brackets]",
    ),
    "an unknown argument": (TIME + "[arguments]\nsead = 4\n", "sead"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mistake", SPACES)
def test_spaces_that_are_none(folder, capsys, mistake):
    text, message = SPACES[mistake]
    (folder / "space.toml").write_text(text, encoding="utf-8")
    said = refused(capsys, "new", "lab.db", "space.toml")
    assert all(part in said for part in message.split(".*"))
    assert not (folder / "lab.db").exists()


def test_files_that_are_there_or_not(folder, capsys):
    (folder / "space.toml").write_text(TIME, encoding="utf-8")
    assert "no.toml: No such file" in refused(capsys, "new", "lab.db", "no.toml")
    shown(capsys, "new", "lab.db", "space.toml")
    content = (folder / "lab.db").read_bytes()
    assert "lab.db is there already" in refused(capsys, "new", "lab.db", "space.toml")
    assert (folder / "lab.db").read_bytes() == content


def test_a_study_of_a_method_with_arguments(folder, capsys):
    space = {
        "parameters": {
            "time": {"type": "real", "low": 1, "high": 9, "log": True},
            "dose": {"type": "integer", "low": 1, "high": 5},
            "size": {"type": "ordered", "values": ["S", "M", "L"]},
            "kind": {"type": "choice", "values": ["a", "b"], "descriptors": [[0], [1]]},
        },
        "constraints": ["time + dose <= 12", "time * dose <= 20"],
        "method": "integrated_ei",
        "arguments": {"seed": 7, "num_initial": 3},
    }
    (folder / "space.json").write_text(json.dumps(space), encoding="utf-8")
    said = shown(capsys, "new", "lab.db", "space.json", "--minimize", "--objective", "cost")
    assert "smallest cost" in said
    study = bx.Study("lab.db")
    assert study.minimize and study.objective == "cost" and study.strategy.seed == 7
    assert study.strategy.domain.names == ("time", "dose", "size", "kind")
    assert study.strategy.report()["num_initial"] == 3
    assert not study.strategy.domain.contains({"time": 6, "dose": 4, "size": "S", "kind": "a"})
    sheet = shown(capsys, "ask", "lab.db", "-n", "2", "--decimal-comma")
    assert sheet.splitlines()[0] == "trial;time;dose;size;kind;cost"
    assert sheet == shown(capsys, "ask", "lab.db", "--pending", "--decimal-comma")


def test_contexts_on_the_line(capsys):
    strategy = RandomSearch(bx.Box([(0, 1)]), context_domain=bx.Space(humidity=bx.Real(0, 1)))
    bx.Study("lab.db", strategy)
    sheet = shown(capsys, "ask", "lab.db", "--context", "humidity=0.25")
    assert sheet.splitlines()[0] == "trial,x0,humidity,value" and ",0.25," in sheet
    for given, message in (
        ([], "context must be given for RandomSearch"),
        (["--context", "humidty=1"], "did you mean 'humidity'?"),
        (["--context", "humidity=wet"], "humidity must be a number, got 'wet'"),
        (["--context", "humidity=2"], "humidity must be a number from 0 to 1"),
        (["--context", "humidity=0", "--context", "x0=1"], "x0 is no context"),
        (["--context", "humidity=0", "--context", "foo=1"], "foo is no context"),
        (["--context", "humidity=0", "--context", "humidity=1"], "humidity is there twice"),
    ):
        assert message in refused(capsys, "ask", "lab.db", *given)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("7.1", 7.1), ("-1e-2", -0.01), ("-1,5E3", -1500.0), ("-,5", -0.5), ("-7", -7.0)],
)
def test_values_on_the_line_are_written_as_people_write_them(capsys, typed, value):
    study = bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])))
    study.tell(study.ask(), 1.0)
    assert shown(capsys, "correct", "lab.db", "0", typed) == (
        f"corrected trial 0 from 1.0 to {value}\n"
    )
    assert study.strategy.history.values == {0: value}


def test_an_attached_result_is_withdrawn_and_a_note_kept(path, clock, capsys):
    week(path, clock)
    assert shown(capsys, "withdraw", path, "5") == "withdrew trial 5\n"
    assert shown(capsys, "note", path, "1", "=1+1\x1b[31m") == "noted trial 1\n"
    assert shown(capsys, "note", path, "5", "in another unit") == "noted trial 5\n"
    assert "got 5: withdrawn" in refused(capsys, "withdraw", path, "5")
    assert "got 0: already told" in refused(capsys, "withdraw", path, "0")
    rows = rows_of(shown(capsys, "trials", path, "--csv"))
    assert [row["state"] for row in rows][-2:] == ["pending", "withdrawn"]
    assert rows[5]["value"] == "" and rows[5]["ended_at"] > rows[0]["ended_at"]
    assert [row["note"] for row in rows][1::4] == ["'=1+1\\x1b[31m", "in another unit"]
    lines = shown(capsys, "trials", path).splitlines()
    assert lines[0].split()[-2:] == ["was", "note"] and lines[2].endswith(" =1+1\\x1b[31m")
    assert lines[6].endswith("in another unit")
    status = shown(capsys, "status", path)
    assert "5 asked: 2 told, 1 pending, 1 failed, 1 abandoned; 1 withdrawn; 1 corrected" in status
    assert "last result  0.333333, trial 0" in status and "best so far  0.71" in status
    page = path.with_name("page.html")
    shown(capsys, "report", path, "--without-model", "-o", page)
    assert ">in another unit</td>" in page.read_text()
    assert shown(capsys, "note", path, "1", "") == "removed the note of trial 1\n"
    assert shown(capsys, "note", path, "5", "") == "removed the note of trial 5\n"
    rows = rows_of(shown(capsys, "trials", path, "--csv"))
    assert "note" not in rows[0]
    (failed,) = (row["trial"] for row in rows if row["state"] == "failed")
    said = f"withdrew the failure of trial {failed}\n"
    assert shown(capsys, "withdraw", path, failed) == said
    assert rows_of(shown(capsys, "trials", path, "--csv"))[int(failed)]["state"] == "abandoned"
    status = shown(capsys, "status", path)
    assert "5 asked: 2 told, 1 pending, 2 abandoned; 1 withdrawn; 1 corrected" in status


def test_a_column_of_notes_is_kept_also_of_trials_without_a_result(capsys, tmp_path):
    study = bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])))
    head, *rows = shown(capsys, "ask", "lab.db", "-n", "3").splitlines()
    ends = ("0.5,=hot", ",spilt", ",")
    lines = [f"{row}{end}" for row, end in zip(rows, ends, strict=True)]
    Path("week.csv").write_text("\n".join([f"{head},Note", *lines]))
    said = shown(capsys, "tell", "lab.db", "week.csv")
    lines = ["told 1 trial: 0", "still empty: 2 trials: 1, 2", "noted 2 trials: 0, 1"]
    assert said.splitlines() == lines
    assert study.strategy.history.notes == {0: "=hot", 1: "spilt"}
    # The sheet that the study writes says the same.
    study.note(1, "spilt,\nthen wiped")
    shown(capsys, "trials", "lab.db", "-o", "all.csv")
    assert "nothing to tell" in refused(capsys, "tell", "lab.db", "all.csv")
    # A sheet told again brings no note back.
    assert "nothing to tell" in refused(capsys, "tell", "lab.db", "week.csv")


def test_numbers_in_notes_are_no_decimal_signs(capsys):
    study = bx.Study("lab.db", RandomSearch(bx.FiniteSet([[0.5]])))
    shown(capsys, "ask", "lab.db")
    Path("week.csv").write_text("trial;x0;value;note\n0;0.5;1.25;3,5\n")
    assert "noted 1 trial: 0" in shown(capsys, "tell", "lab.db", "week.csv")
    other = bx.Study("other.db", RandomSearch(bx.FiniteSet([[0.5]])))
    other.attach_sheet(Sheet.read("week.csv"))
    assert study.strategy.history.notes == other.strategy.history.notes == {0: "3,5"}


def test_a_terminal_shows_how_long_a_command_takes(path, capsys, monkeypatch):
    bx.Study(path, RandomSearch(bx.Box([(0, 1)])))

    def read(*given):
        for _ in range(1000):
            if sys.stderr.getvalue():
                break
            time.sleep(0.01)
        return read_overviews(*given)

    monkeypatch.setattr("botorch_ext.command_line._PATIENCE", 0.01)
    monkeypatch.setattr("botorch_ext.command_line.read_overviews", read)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["status", str(path)]) == 0
    shown, cleared = capsys.readouterr().err.rsplit("\r", 1)
    assert re.fullmatch(r"(\rstatus: \d+ s)+", shown) and cleared == "\x1b[K"


def test_several_studies_in_one_place(capsys):
    for name in ("first", "second"):
        bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])), name=name).ask()
    assert "say which by name" in refused(capsys, "abandon", "lab.db", "0")
    assert shown(capsys, "abandon", "lab.db", "0", "--name", "second") == "abandoned trial 0\n"
    assert bx.Study("lab.db", name="first").pending == [0]
    assert bx.Study("lab.db", name="second").pending == []


def test_a_sheet_is_never_written_over_a_file_or_with_the_name_of_another_format(folder, capsys):
    study = bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])))
    said = shown(capsys, "ask", "lab.db", "-n", "2", "--csv", "new.csv")
    assert said == "wrote new.csv with 2 trials: 0, 1\n"
    said = shown(capsys, "ask", "lab.db", "--pending", "--csv", "again.csv")
    assert said == "wrote again.csv with 2 trials: 0, 1\n"
    assert (folder / "new.csv").read_bytes() == (folder / "again.csv").read_bytes()
    (folder / "to_do.csv").write_text("filled in")
    assert "may be filled in: name another file" in refused(
        capsys, "ask", "lab.db", "--csv", "to_do.csv"
    )
    assert (folder / "to_do.csv").read_text() == "filled in"
    said = refused(capsys, "ask", "lab.db", "--csv", "new.ods")
    assert "new.ods must be named as .csv or as .xlsx" in said
    assert not (folder / "new.ods").exists() and study.pending == [0, 1]


def test_a_copy_of_an_open_study_lacks_nothing(folder, capsys):
    study = bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])), name="first")
    bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])), name="second")
    study.tell(study.ask(), 7.0)
    study.ask(2)
    assert (folder / "lab.db-wal").exists()
    said = shown(capsys, "copy", "lab.db", "monday.db")
    assert said.splitlines() == [
        "copied the study 'first' with 3 trials to monday.db",
        "copied the study 'second' with 0 trials to monday.db",
    ]
    copied = bx.Study("monday.db", name="first")
    assert copied.pending == study.pending == [1, 2]
    assert [*map(repr, copied.events)] == [*map(repr, study.events)]
    assert copied.ask().id == study.ask().id == 3
    content = (folder / "monday.db").read_bytes()
    (folder / "other.db-wal").touch()
    for target, message in (
        ("monday.db", "monday.db is there already"),
        ("other.db", "other.db-wal is there already"),
        ("lab.db", "lab.db is there already"),
        ("no/monday.db", "a folder that is there"),
    ):
        assert message in refused(capsys, "copy", "lab.db", target)
    assert "got no file" in refused(capsys, "copy", "no.db", "tuesday.db")
    assert "pg_dump" in refused(capsys, "copy", "postgresql+psycopg://me@host/lab", "tuesday.db")
    assert (folder / "monday.db").read_bytes() == content and not (folder / "tuesday.db").exists()


def test_what_is_written_can_be_set_and_read(folder, capsys):
    text = '[parameters.dose]\ntype = "real"\nlow = 1e-4\nhigh = 0.1\nlog = true\n'
    (folder / "space.toml").write_text(text + TIME, encoding="utf-8")
    shown(capsys, "new", "lab.db", "space.toml")
    (folder / "old.csv").write_text("dose,time,value\n0.0123456789,3.3,0.25\n", encoding="utf-8")
    shown(capsys, "attach", "lab.db", "old.csv")
    sheet = rows_of(shown(capsys, "ask", "lab.db", "-n", "9"))
    assert all(row["dose"] == repr(float(f"{float(row['dose']):.2e}")) for row in sheet)
    study = bx.Study("lab.db")
    study.tell_all({int(row["trial"]): float(row["dose"]) - 0.5 for row in sheet})
    # A trial as it was set is whole in the table for programs, and can be read in the one for eyes.
    assert rows_of(shown(capsys, "trials", "lab.db", "--csv"))[0]["dose"] == "0.0123456789"
    assert "0.0123457" in shown(capsys, "trials", "lab.db")
    lines = "".join(f"{row['dose']},{row['time [s]']}\n" for row in sheet)
    (folder / "points.csv").write_text(f"dose,time\n{lines}", encoding="utf-8")
    found = rows_of(shown(capsys, "predict", "lab.db", "points.csv"))
    numbers = study.predict([trial.params for trial in study.strategy.history.trials[1:]]).numbers
    for i, row in enumerate(found):
        assert row["dose"] == sheet[i]["dose"]
        last = 10.0 ** (math.floor(math.log10(numbers["std"][i])) - 2)
        for name, whole in numbers.items():
            assert abs(float(row[name]) - float(whole[i])) <= 0.5001 * last
            assert float(row[name]) == pytest.approx(round(float(row[name]) / last) * last)


def words_and_numbers(text):
    number = r"-?\d+(?:\.\d+)?"
    return re.sub(number, "#", text), [float(each) for each in re.findall(number, text)]


@pytest.mark.slow
def test_the_page_is_followed_in_an_empty_folder(folder, capsys):
    files = iter(["old.csv", "to_do.csv", "to_do.csv", "points.csv"])
    asked = None
    walk = PAGE[PAGE.index("Begin in an empty folder") : PAGE.index("### More entries")]
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", walk, re.DOTALL | re.MULTILINE):
        if kind == "toml":
            (folder / "space.toml").write_text(block, encoding="utf-8")
        elif kind == "none":
            file = folder / next(files)
            if asked is None and file.exists():
                asked = file.read_text(encoding="utf-8-sig")
                assert asked.splitlines() == block.splitlines()
            file.write_text(block, encoding="utf-8")
        elif kind == "sh":
            said = "".join(shown(capsys, *shlex.split(line)[1:]) for line in block.splitlines())
        else:
            said = re.sub(r"(Space\(temperature=[^)]*\)).*", r"\1, ...)", said)
            words, numbers = words_and_numbers(said)
            shown_words, rounded = words_and_numbers(block)
            assert words.split() == shown_words.split()
            assert numbers == pytest.approx(rounded, rel=0.02)
    assert next(files, None) is None
    rows = rows_of((folder / "all.csv").read_text(encoding="utf-8-sig"))
    states = ["attached", "attached", "told", "told", "pending", "failed"]
    assert [row["state"] for row in rows] == states


def test_the_entries_of_the_page(folder, capsys):
    parameters, outcomes, entries = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1:]
    more = TIME.replace("time", '"reaction time"') + (
        TIME.replace("time", "temperature")
        + '[parameters]\ncatalyst = { type = "choice", values = ["none", "Pd", "Ni"] }\n'
        + 'loading = { type = "real", low = 1, high = 9 }\n'
    )
    (folder / "space.toml").write_text(f"{entries}{more}{parameters}", encoding="utf-8")
    shown(capsys, "new", "other.db", "space.toml")
    strategy = bx.Study("other.db").strategy
    assert strategy.domain.named_conditions == {"loading": ("catalyst", ["Pd", "Ni"])}
    assert bx.Fitted() in strategy.arguments.given.values()
    kinds = [type(strategy.domain.parameters[name]).__name__ for name in ("size", "solvent")]
    assert kinds == ["Ordered", "Choice"]
    assert len(strategy.domain.parameters["solvent"].descriptors) == 3
    (folder / "limits.toml").write_text(f"{more}{outcomes}", encoding="utf-8")
    shown(capsys, "new", "limits.db", "limits.toml")
    assert bx.Study("limits.db").strategy.limits == {"impurity": bx.AtMost(5.0, unit="%")}


def test_the_help_of_a_command_ends_with_one_stop(capsys):
    for command in ("stop", "ask"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        description = capsys.readouterr().out.split("\n\n")[1]
        assert re.fullmatch(r"[A-Z][^.?]*[.?]", description)


@pytest.mark.parametrize("command", COMMANDS)
def test_places_that_hold_no_study(path, capsys, command, tmp_path):
    assert "got no file" in refused(capsys, *command, path)
    assert not path.exists()
    assert "got no file" in refused(capsys, *command, tmp_path)
    path.write_bytes(b"id,value\n1,2\n" * 100)
    assert "got another file" in refused(capsys, *command, path)
    path.write_bytes(b"")
    assert "holds no study" in refused(capsys, *command, path)
    assert path.read_bytes() == b"" and len(list(tmp_path.iterdir())) == 1
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    assert "got tables ['bookmarks']" in refused(capsys, *command, path)
    assert "begins with mysql" in refused(capsys, *command, "mysql://me:secret@host/lab")


def test_names(path, capsys, tmp_path):
    for name in ("first", "second"):
        bx.Study(path, at_random(), name=name)
    assert "holds no study 'third', but 'first', 'second'" in refused(
        capsys, "status", path, "--name", "third"
    )
    for command in (["trials"], ["report", "-o", tmp_path / "lab.html"]):
        message = refused(capsys, command[0], path, *command[1:])
        assert "several studies, say which by name: 'first', 'second'" in message
    assert not (tmp_path / "lab.html").exists()


ASKED = {"event": "asked", "id": 0, "x": [1.0], "context": None, "info": {}}
TOLD = {"event": "told", "id": 0, "value": 1.0}
ABANDONED = {"event": "abandoned", "id": 0, "failed": False}
CORRECTED = {"event": "corrected", "id": 0, "value": 1.0}


@pytest.mark.parametrize(
    "events",
    [
        [TOLD],
        [ASKED | {"id": 1}],
        [ASKED | {"x": ["1"]}],
        [ASKED | {"info": []}],
        [ASKED | {"x": [{"not finite": "inf"}]}],
        [ASKED, ASKED | {"id": 1, "x": [1.0, 2.0]}],
        [ASKED, ABANDONED, TOLD],
        [ASKED, TOLD | {"id": -1}],
        [ASKED, CORRECTED],
        [ASKED, TOLD, {"event": "withdrawn", "id": 0}],
        [{"event": "noted", "id": 0, "text": "dull"}],
        [ASKED, {"event": "noted", "id": 0, "text": 3}],
        [ASKED, TOLD | {"value": {"not finite": "nan"}}],
    ],
)
def test_events_that_cannot_be(path, capsys, events):
    with_events(path, events)
    message = refused(capsys, "status", path)
    assert "cannot be read" in message or "does not fit those before" in message


def test_outputs_that_cannot_be(path, clock, capsys, tmp_path):
    week(path, clock)
    bx.Study(tmp_path / "other.db", at_random()).ask()
    link = tmp_path / "link.html"
    os.link(path, link)
    kept = [path, *tmp_path.glob("other.db*")]
    before = [each.read_bytes() for each in kept]
    for output in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal", link):
        message = refused(capsys, "report", path, "--without-model", "-o", output)
        assert "must be another file than that of the study" in message
    link.unlink()
    for output in tmp_path.glob("other.db*"):
        for command in (["report"], ["trials", "--csv"]):
            message = refused(capsys, command[0], path, *command[1:], "-o", output)
            assert "output must be no database" in message or "-shm" in str(output)
    assert [each.read_bytes() for each in kept] == before
    assert "No such file" in refused(capsys, "trials", path, "-o", tmp_path / "no" / "lab.csv")
    assert "Is a directory" in refused(capsys, "trials", path, "-o", tmp_path)


def test_an_output_is_whole_or_as_it_was(path, capsys, tmp_path, monkeypatch):
    bx.Study(path, at_random()).ask()
    output, link = tmp_path / "kept" / "lab.csv", tmp_path / "link.csv"
    output.parent.mkdir()
    output.write_text("before")
    output.chmod(0o640)
    link.symlink_to(output)
    assert shown(capsys, "trials", path, "-o", link) == f"wrote {link} with 1 trial\n"
    written = output.read_text()
    assert "asked" in written and link.is_symlink() and output.stat().st_mode & 0o777 == 0o640

    def closed(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "lab.csv.new")

    with monkeypatch.context() as patch:
        patch.setattr("botorch_ext.command_line._replace", closed)
        said = refused(capsys, "trials", path, "-o", output)
    assert f"{output}: the folder {output.parent} must be writable" in said

    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert f"{output}: No space left" in refused(capsys, "trials", path, "--csv", "-o", output)
    assert output.read_text() == written and list(output.parent.iterdir()) == [output]
    assert main(["trials", str(path), "-o", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_names_steer_no_terminal_and_hide_nothing(capsys, tmp_path):
    steering = tmp_path / "\x1b[2Jlab.db"
    assert r"\x1b[2Jlab.db" in refused(capsys, "status", steering)
    assert r"\x1b[2J" in refused(capsys, "report", steering, "-o", "\x1b[2J/lab.html")
    bx.Study(steering, at_random(), name="a@b").ask()
    assert main(["status", str(steering)]) == 0
    assert r"\x1b[2Jlab.db" in capsys.readouterr().out
    message = refused(capsys, "status", steering, "--name", "x://y")
    assert "holds no study 'x://y', but 'a@b'" in message


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["postgresql://me:se@cret@host/lab"],
        ["status"],
        ["report", "lab.db"],
        ["status", "lab.db", "postgresql://me:se@cret@host/lab"],
        ["trials", "lab.db", "--postgresql://me:se@cret@host/lab"],
    ],
)
def test_arguments_that_are_none_show_no_password(capsys, arguments):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    shown = capsys.readouterr()
    assert raised.value.code == 2 and shown.out == ""
    assert "usage: botorch-ext" in shown.err and "cret" not in shown.err
    for place in ("postgresql://me:se@cret@127.0.0.1:1/lab", "mysql://me:se cret@host/lab"):
        assert "cret" not in refused(capsys, "status", place)
