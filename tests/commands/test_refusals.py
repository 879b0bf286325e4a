"""The command line: what it says of what is wrong, on one line."""

import errno
import json
import os
import sqlite3
from pathlib import Path

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.studies import databases, journal
from tests.studies.commands import COMMANDS, refused, week
from tests.studies.kept import at_random


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
        [ASKED, TOLD | {"value": {"not finite": "nan"}}],
    ],
)
def test_events_that_cannot_be(path, capsys, events):
    new = journal.Journal.begin(databases.Database(path), "odd", False, {})
    with new.writing() as connection:
        new.append(connection, new.start, [json.dumps(event) for event in events])
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
    assert main(["trials", str(path), "-o", str(link)]) == 0
    written = output.read_text()
    assert "asked" in written and link.is_symlink() and output.stat().st_mode & 0o777 == 0o640

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
