"""The command line: what it shows, that it only reads, and what it says of what is wrong."""

import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import StudyError
from botorch_ext.reports import overview
from botorch_ext.reports.words import duration, in_words
from botorch_ext.studies import databases, journal
from tests.studies.kept import at_random, gp_bucb, in_a_fork, wait_for
from tests.studies.test_broken_studies import NOBODY

COMMANDS = (["status"], ["trials"], ["trials", "--csv"])
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


@pytest.fixture
def clock(monkeypatch):
    """A time that stands still until it is moved."""

    class Clock:
        now = 1_795_000_000.25

        def time(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(journal, "time", clock)
    monkeypatch.setattr("botorch_ext.command_line.time", clock)
    return clock


def _shown(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def _refused(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("botorch-ext: ")
    assert shown.err.count("\n") == 1
    return shown.err


def _week(path, clock, **options):
    """Five asked; one is told at once, one late, one fails, one is dropped and one pends; one more
    comes unasked, and one value was typed wrong."""
    study = bx.Study(path, gp_bucb(), **options)
    trials = study.ask(5)
    study.tell(trials[1], 71.0)
    clock.now += 7200
    study.abandon(trials[2], failed=True)
    study.abandon(trials[3])
    study.attach([0.5, 2.5], -0.25)
    study.tell(trials[0], 1 / 3)
    clock.now += 60
    study.correct(1, 0.71)
    clock.now += 86_400
    return trials


def _rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


# --- what is shown --------------------------------------------------------------------------------


def test_status_says_what_runs(path, clock, capsys):
    trials = _week(path, clock, name="yeast")
    lines = _shown(capsys, "status", path).splitlines()
    assert lines[0] == f"study 'yeast' in {path}"
    said = {line[2:15].strip(): line[15:].strip() for line in lines[1:]}
    assert said["strategy"] == "OptimisticStrategy"
    assert said["looks for"] == "the largest value"
    assert said["began"] == "2026-11-18 11:06:40 UTC, 26 h ago"
    counts = "5 asked: 2 told, 1 pending, 1 failed, 1 abandoned; 1 attached; 1 corrected"
    assert said["trials"] == counts
    x = ", ".join(f"{part:.6g}" for part in trials[4].x.tolist())
    assert said["pending"] == f"trial 4 at ({x}), for 26 h"
    assert said["best so far"].startswith("0.71, trial 1 at (")
    assert said["last result"] == "0.333333, trial 0, 2026-11-18 13:06:40 UTC, 24 h ago"


def test_a_study_that_minimises_is_shown_in_its_own_sign(path, clock, capsys):
    _week(path, clock, minimize=True)
    text = _shown(capsys, "status", path)
    assert "the smallest value" in text and "best so far  -0.25, trial 5 at (0.5, 2.5)" in text
    study = bx.Study(path, gp_bucb())
    mean = study.ask().info["mean"]
    row = _rows(_shown(capsys, "trials", path, "--csv"))[-1]
    assert float(row["info_mean"]) == -mean != 0.0
    # What the model of the strategy sees is the negative.
    assert abs(float(row["info_mean"]) - study.best()[1]) < 1.0


def test_all_studies_and_those_without_trials_are_shown(path, clock, capsys):
    _week(path, clock, name="first")
    bx.Study(path, at_random(), name="second")
    both = _shown(capsys, "status", path)
    assert both.index("study 'first'") < both.index("study 'second'")
    alone = _shown(capsys, "status", path, "--name", "second")
    assert "first" not in alone and "none yet" in alone
    assert _shown(capsys, "trials", path, "--name", "second").split()[:2] == ["id", "state"]
    assert _rows(_shown(capsys, "trials", path, "--name", "second", "--csv")) == []


def test_many_pending_trials_are_counted(path, capsys):
    bx.Study(path, at_random()).ask(25)
    text = _shown(capsys, "status", path)
    assert "trial 9 at" in text and "trial 10 at" not in text and "and 15 more trials" in text
    assert "last result  none yet" in text


def test_the_table_of_trials_has_all_of_them(path, clock, capsys):
    _week(path, clock)
    head, *lines = _shown(capsys, "trials", path).splitlines()
    assert head.split()[:5] == ["id", "state", "x0", "x1", "value"]
    told = ["told", "told", "failed", "abandoned", "pending", "attached"]
    assert [line.split()[:2] for line in lines] == [[str(i), state] for i, state in enumerate(told)]
    assert lines[1].endswith("2026-11-18 11:06:40  2026-11-18 11:06:40   71")
    assert len({len(line) for line in (head, lines[1])}) == 1


def test_csv_has_every_bit_of_every_number(path, clock, capsys):
    _week(path, clock)
    study = bx.Study(path, gp_bucb())
    rows = _rows(_shown(capsys, "trials", path, "--csv"))
    history = study.strategy.history
    for row, trial in zip(rows, history.trials, strict=True):
        assert int(row["id"]) == trial.id
        assert [float(row["x0"]), float(row["x1"])] == trial.x.tolist()
        value = history.values.get(trial.id)
        assert row["value"] == ("" if value is None else repr(value))
        assert row["info_std"] == ("" if trial.id == 5 else repr(trial.info["std"]))
    assert rows[5]["value"] == "-0.25"  # a number, and no formula
    assert rows[0]["asked_at"] == "2026-11-18T11:06:40.250Z"
    assert rows[0]["ended_at"] == rows[5]["ended_at"] == "2026-11-18T13:06:40.250Z"
    assert rows[4]["ended_at"] == rows[5]["asked_at"] == ""
    assert (rows[1]["first_value"], rows[1]["value"]) == ("71.0", "0.71")
    assert rows[1]["corrected_at"] == "2026-11-18T13:07:40.250Z"
    assert rows[0]["first_value"] == rows[0]["corrected_at"] == ""


def test_contexts_have_columns(path, capsys):
    strategy = bx.strategies.RandomSearch(
        bx.Box([[-1.0], [1.0]]), context_domain=bx.Box([[0.0], [9.0]])
    )
    study = bx.Study(path, strategy)
    study.ask(context=[7.5])
    row = _rows(_shown(capsys, "trials", path, "--csv"))[0]
    assert row["context0"] == "7.5" and "x1" not in row
    assert "in context (7.5)" in _shown(capsys, "status", path)


def test_csv_goes_to_a_file(path, clock, capsys, tmp_path):
    _week(path, clock)
    shown = _shown(capsys, "trials", path, "--csv")
    assert _shown(capsys, "trials", path, "--csv", "-o", tmp_path / "lab.csv") == ""
    assert (tmp_path / "lab.csv").read_bytes() == shown.encode()


def test_words():
    assert [duration(s) for s in (-1, 0.5, 61, 119, 120, 7199, 7200, 172_799, 172_800)] == [
        *("less than 1 s", "less than 1 s", "61 s", "119 s", "2 min", "119 min", "2 h", "47 h"),
        "2 days",
    ]
    width = {"class": "Scaled", "width": {"class": "Constant", "value": 2.0}, "none": None}
    assert in_words(width) == "Scaled(width=Constant(value=2))"
    assert in_words({"dtype": "torch.float64", "values": [[0.1, 1e-9]]}) == "[[0.1, 1e-09]]"
    assert in_words({"dtype": "d", "shape": [900, 2], "sha256": "f"}) == "[900, 2] numbers"
    assert in_words([[1], [2], [3], [4], [5], [6], [7]]).endswith("[6], ... 7 in all]")
    assert in_words("\x1b[2J\u202e") == r"\x1b[2J\u202e"


# --- reads only -----------------------------------------------------------------------------------


def _state(folder):
    files = sorted(Path(folder).iterdir())
    return [(file.name, file.read_bytes(), file.stat().st_mtime_ns) for file in files]


def _all_commands(path, output):
    for command in (*COMMANDS, ["report", "-o", str(output)]):
        assert main([command[0], str(path), *command[1:]]) == 0


def test_nothing_is_written(path, clock, capsys, tmp_path_factory):
    def play():
        _week(path, clock)

    wait_for(in_a_fork(play))
    before = _state(path.parent)
    _all_commands(path, tmp_path_factory.mktemp("page") / "lab.html")
    assert _state(path.parent) == before and len(before) > 0


def test_a_log_of_a_process_that_was_killed_is_read(path, capsys, tmp_path_factory):
    def play():
        study = bx.Study(path, at_random())
        study.ask(3)
        os.kill(os.getpid(), 9)

    os.waitpid(in_a_fork(play), 0)
    copy = tmp_path_factory.mktemp("copy") / "lab.db"
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    before = [copy.read_bytes(), Path(f"{copy}-wal").read_bytes()]
    assert len(_rows(_shown(capsys, "trials", copy, "--csv"))) == 3
    assert [copy.read_bytes(), Path(f"{copy}-wal").read_bytes()] == before


def test_somebody_else_writes_meanwhile(path, clock, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "_PATIENCE", 0.1)
    _week(path, clock)
    study = bx.Study(path, gp_bucb())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("UPDATE botorch_ext_studies SET name = 'half'")
    _all_commands(path, tmp_path / "lab.html")
    assert "study 'study'" in capsys.readouterr().out
    connection.execute("ROLLBACK")
    connection.close()
    study.tell(4, 0.5)
    assert " 0 pending" not in _shown(capsys, "status", path)
    assert "3 told" in _shown(capsys, "status", path)


def test_a_file_that_may_only_be_read(clock, capsys):
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as output:
        path = Path(name) / "lab.db"
        wait_for(in_a_fork(lambda: _week(path, clock)))
        path.chmod(0o444)
        Path(name).chmod(0o555)
        Path(output).chmod(0o777)

        def as_nobody():
            if os.getuid() == 0:
                os.setuid(NOBODY)
            _all_commands(path, Path(output) / "lab.html")

        wait_for(in_a_fork(as_nobody))
        assert [file.name for file in Path(name).iterdir()] == ["lab.db"]
        Path(name).chmod(0o755)


def test_a_file_that_changes_while_it_is_read_is_read_again(path, clock, monkeypatch):
    wait_for(in_a_fork(lambda: _week(path, clock)))
    read, calls = overview._read, []

    def reading(database, name):
        found = read(database, name)
        if not calls:
            wait_for(in_a_fork(lambda: bx.Study(path, gp_bucb()).tell(4, 0.5)))
        calls.append(found)
        return found

    monkeypatch.setattr(overview, "_read", reading)
    found = overview.read_overview(path)
    assert len(calls) == 2 and [len(pair[0].pending) for pair in calls] == [1, 0]
    assert found is calls[1][0]


def _rewritten(path, description):
    """The study of a file with another description, as somebody may write one on purpose."""
    study = bx.Study(path, at_random())
    events = [study.ask(), study.tell(0, 0.5)]
    assert len(events) == 2
    bodies = study._journal.since
    with study._journal.reading() as connection:
        bodies = [entry.body for entry in bodies(connection, study._journal.start)[0]]
    other = databases.Database(path)
    new = journal.Journal.begin(other, "other", False, description)
    with new.writing() as connection:
        new.append(connection, new.start, bodies)


def test_what_is_only_read_cannot_be_written(path):
    bx.Study(path, at_random())
    only_read = databases.Database(path, read_only=True)
    with pytest.raises(StudyError), only_read.writing() as connection:
        connection.exec_driver_sql("DELETE FROM botorch_ext_studies")
    assert journal.Journal.names(only_read) == ["study"]


def test_no_strategy_is_made(path, capsys, tmp_path):
    described = {"strategy": {"class": "os.system", "command": "touch /tmp/it", "f": {"class": 1}}}
    _rewritten(path, described)
    arguments = ["--name", "other"]
    assert "os.system" in _shown(capsys, "status", path, *arguments)
    assert main(["report", str(path), *arguments, "-o", str(tmp_path / "lab.html")]) == 0
    assert "touch /tmp/it" in (tmp_path / "lab.html").read_text()
    for odd in ({}, {"strategy": None}, {"strategy": {}}, {"strategy": [1], "versions": 3}):
        _rewritten(tmp_path / f"{len(str(odd))}.db", odd)
        _all_odd = [str(tmp_path / f"{len(str(odd))}.db"), *arguments]
        assert main(["status", *_all_odd]) == 0
        assert main(["report", *_all_odd, "-o", str(tmp_path / "odd.html")]) == 0


def test_torch_is_not_loaded(path, tmp_path):
    wait_for(in_a_fork(lambda: bx.Study(path, at_random()).ask(3)))
    code = f"""
import sys
from botorch_ext.command_line import main
for command in (["status"], ["trials", "--csv"], ["report", "-o", {str(tmp_path / "a.html")!r}]):
    assert main([command[0], {str(path)!r}, *command[1:]]) == 0
assert not {{"torch", "gpytorch", "botorch", "pickle5"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_runs_as_a_module(path):
    wait_for(in_a_fork(lambda: bx.Study(path, at_random()).ask(3)))
    command = [sys.executable, "-m", "botorch_ext"]
    options = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([*command, "status", path], **options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 asked: 3 pending" in done.stdout
    missing = subprocess.run([*command, "status", path.with_name("other.db")], **options)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert not path.with_name("other.db").exists()


def test_whoever_reads_may_stop(path):
    wait_for(in_a_fork(lambda: bx.Study(path, at_random()).ask(2000)))
    command = f"{sys.executable} -m botorch_ext trials {path} --csv | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_places_that_hold_no_study(path, capsys, command, tmp_path):
    assert "got no file" in _refused(capsys, *command, path)
    assert not path.exists()
    assert "got no file" in _refused(capsys, *command, tmp_path)
    path.write_bytes(b"id,value\n1,2\n" * 100)
    assert "got another file" in _refused(capsys, *command, path)
    path.write_bytes(b"")
    assert "holds no study" in _refused(capsys, *command, path)
    assert path.read_bytes() == b"" and len(list(tmp_path.iterdir())) == 1
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    assert "got tables ['bookmarks']" in _refused(capsys, *command, path)
    assert "begins with mysql" in _refused(capsys, *command, "mysql://me:secret@host/lab")


def test_names(path, capsys, tmp_path):
    for name in ("first", "second"):
        bx.Study(path, at_random(), name=name)
    assert "holds no study 'third', but 'first', 'second'" in _refused(
        capsys, "status", path, "--name", "third"
    )
    for command in (["trials"], ["report", "-o", tmp_path / "lab.html"]):
        message = _refused(capsys, command[0], path, *command[1:])
        assert "several studies, say which by name: 'first', 'second'" in message
    assert not (tmp_path / "lab.html").exists()


def test_studies_that_are_broken_or_newer(path, capsys):
    wait_for(in_a_fork(lambda: bx.Study(path, at_random()).ask(200)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "was truncated or changed" in _refused(capsys, "status", path)
    for change, message in (
        ("UPDATE botorch_ext_events SET at = at + 1 WHERE number = 2", "event 2 of study 'study'"),
        ("UPDATE botorch_ext_studies SET schema = 9", "has schema 9"),
        ("UPDATE botorch_ext_studies SET description = 'x'", "cannot be read"),
        ("DELETE FROM botorch_ext_studies", "holds no study"),
    ):
        path.write_bytes(whole)
        connection = sqlite3.connect(path)
        with connection:
            assert connection.execute(change).rowcount
        connection.close()
        assert message in _refused(capsys, "trials", path)


@pytest.mark.parametrize(
    "bodies",
    [
        ['{"event":"told","id":0,"value":1.0}'],
        ['{"event":"asked","id":1,"x":[1.0],"context":null,"info":{}}'],
        ['{"event":"asked","id":0,"x":["1"],"context":null,"info":{}}'],
        ['{"event":"asked","id":0,"x":[1.0],"context":null,"info":[]}'],
        ['{"event":"asked","id":0,"x":[1.0],"context":null,"info":' + '{"a":' * 5000],
        [
            '{"event":"asked","id":0,"x":[1.0],"context":null,"info":{}}',
            '{"event":"asked","id":1,"x":[1.0,2.0],"context":null,"info":{}}',
        ],
        [
            '{"event":"asked","id":0,"x":[1.0],"context":null,"info":{}}',
            '{"event":"abandoned","id":0,"failed":false}',
            '{"event":"told","id":0,"value":1.0}',
        ],
        [
            '{"event":"asked","id":0,"x":[1.0],"context":null,"info":{}}',
            '{"event":"told","id":-1,"value":1.0}',
        ],
        [
            '{"event":"asked","id":0,"x":[1.0],"context":null,"info":{}}',
            '{"event":"corrected","id":0,"value":1.0}',
        ],
        [
            '{"event":"asked","id":0,"x":[1.0],"context":null,"info":{}}',
            '{"event":"told","id":0,"value":{"not finite":"nan"}}',
        ],
    ],
)
def test_events_that_cannot_be(path, capsys, bodies):
    new = journal.Journal.begin(databases.Database(path), "odd", False, {})
    with new.writing() as connection:
        new.append(connection, new.start, bodies)
    message = _refused(capsys, "status", path)
    assert "cannot be read" in message or "does not fit those before" in message


def test_outputs_that_cannot_be(path, clock, capsys, tmp_path):
    _week(path, clock)
    before = path.read_bytes()
    for output in (path, f"{path}-wal", tmp_path / "link.html"):
        if not Path(output).exists():
            os.link(path, output)
        message = _refused(capsys, "report", path, "-o", output)
        assert "must be another file than that of the study" in message
        _refused(capsys, "trials", f"sqlite:///{path}", "-o", output)
    assert path.read_bytes() == before
    assert "No such file" in _refused(capsys, "report", path, "-o", tmp_path / "no" / "lab.html")
    assert "Is a directory" in _refused(capsys, "trials", path, "-o", tmp_path)


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
def test_arguments_that_are_none(capsys, arguments):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    shown = capsys.readouterr()
    assert raised.value.code == 2 and shown.out == ""
    assert "usage: botorch-ext" in shown.err and "cret" not in shown.err


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://me:se@cret@127.0.0.1:1/lab",
        "postgresql://me:secret@127.0.0.1:1/lab",
        "postgresql://me:secret@host:port/lab",
        "mysql://me:se cret@host/lab",
    ],
)
def test_passwords_are_not_printed(capsys, place):
    assert "cret" not in _refused(capsys, "status", place)


@pytest.mark.parametrize(
    ("missing", "place", "message"),
    [
        ("sqlalchemy", "lab.db", "pip install 'botorch-ext[studies]'"),
        ("psycopg", "postgresql://host/lab", "pip install 'botorch-ext[postgresql]'"),
    ],
)
def test_what_is_not_installed_is_named(capsys, monkeypatch, missing, place, message):
    for module in ("databases", "journal"):
        monkeypatch.delitem(sys.modules, f"botorch_ext.studies.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    assert message in _refused(capsys, "status", place)


# --- what others wrote ----------------------------------------------------------------------------


def test_text_of_others_computes_and_steers_nothing(path, capsys):
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\x1b[31m", "plain", "\ud800"]
    info = {f"={i}": formula for i, formula in enumerate(formulas)} | {"number": -1.5}
    body = {"event": "asked", "id": 0, "x": [-1.0], "context": None, "info": info}
    new = journal.Journal.begin(databases.Database(path), "=\x1b[2J", False, {})
    with new.writing() as connection:
        new.append(connection, new.start, [json.dumps(body)])
    text = _shown(capsys, "trials", path, "--csv")
    row = _rows(text)[0]
    cells = [row[f"info_={i}"] for i in range(len(formulas))]
    escaped = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", r"\t=1", r"\r=1", r"\x1b[31m", "plain"]
    assert cells == [*escaped, r"\ud800"]
    assert (row["info_number"], row["x0"]) == ("-1.5", "-1.0")
    assert "\x1b" not in text + _shown(capsys, "status", path) + _shown(capsys, "trials", path)
