"""The command line only reads: nothing is written, nobody is waited for, nothing is made."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext.command_line import main
from botorch_ext.exceptions import UnwritableStudyError
from botorch_ext.page import overview
from botorch_ext.studies import databases
from tests.studies.commands import COMMANDS, rows_of, shown, week
from tests.studies.kept import at_random, gp_bucb

NOBODY = 65534
ROOT = Path(__file__).parents[2]


def _state(folder):
    files = sorted(Path(folder).iterdir())
    return [(file.name, file.read_bytes(), file.stat().st_mtime_ns) for file in files]


def _all_commands(path, output, *options):
    for command in (*COMMANDS, ["report", *options, "-o", str(output)]):
        assert main([command[0], str(path), *command[1:]]) == 0


@pytest.mark.usefixtures("empty_pictures")
def test_nothing_is_written(path, clock, capsys, tmp_path_factory):
    def play():
        week(path, clock)

    wait_for(in_a_fork(play))
    before = _state(path.parent)
    _all_commands(path, tmp_path_factory.mktemp("page") / "lab.html")
    assert _state(path.parent) == before and len(before) > 0


@pytest.mark.slow
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
    assert len(rows_of(shown(capsys, "trials", copy, "--csv"))) == 3
    assert [copy.read_bytes(), Path(f"{copy}-wal").read_bytes()] == before


@pytest.mark.usefixtures("empty_pictures")
def test_somebody_else_writes_meanwhile(path, clock, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "_LONGEST_WAIT", 0.1)
    week(path, clock)
    study = bx.Study(path, gp_bucb())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("UPDATE botorch_ext_studies SET name = 'half'")
    _all_commands(path, tmp_path / "lab.html", "--without-model")
    assert "study 'study'" in capsys.readouterr().out
    connection.execute("ROLLBACK")
    connection.close()
    study.tell(4, 0.5)
    assert " 0 pending" not in shown(capsys, "status", path)
    assert "3 told" in shown(capsys, "status", path)


@pytest.mark.slow
def test_a_file_that_may_only_be_read(clock, capsys):
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as output:
        path = Path(name) / "lab.db"
        wait_for(in_a_fork(lambda: week(path, clock)))
        _all_commands(path, Path(output) / "first.html")  # imports what nobody may not read
        path.chmod(0o444)
        Path(name).chmod(0o555)
        Path(output).chmod(0o777)

        def as_nobody():
            if os.getuid() == 0:
                os.setuid(NOBODY)
            _all_commands(path, Path(output) / "lab.html")
            for place in (path, path.with_name("new.db")):
                with pytest.raises(UnwritableStudyError, match="must be writable"):
                    bx.Study(place, gp_bucb()).ask()

        wait_for(in_a_fork(as_nobody))
        assert [file.name for file in Path(name).iterdir()] == ["lab.db"]
        Path(name).chmod(0o755)


def test_a_file_that_changes_while_it_is_read_is_read_again(path, clock, monkeypatch):
    wait_for(in_a_fork(lambda: week(path, clock)))
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


@pytest.mark.slow
def test_torch_is_not_loaded_and_it_runs_as_a_module(path, tmp_path):
    wait_for(in_a_fork(lambda: bx.Study(path, at_random()).ask(3)))
    code = f"""
import sys
from botorch_ext.command_line import main
page = ["report", "--without-model", "-o", {str(tmp_path / "a.html")!r}]
for command in (["status"], ["trials", "--csv"], page):
    assert main([command[0], {str(path)!r}, *command[1:]]) == 0
assert not {{"torch", "gpytorch", "botorch", "pickle5"}} & set(sys.modules)
"""
    options = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "botorch_ext", "status"]
    done = subprocess.run([*command, path], **options)
    assert (done.returncode, done.stderr) == (0, "") and "3 asked: 3 pending" in done.stdout
    missing = subprocess.run([*command, path.with_name("other.db")], **options)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert not path.with_name("other.db").exists()


@pytest.mark.slow
def test_whoever_reads_may_stop(path):
    wait_for(in_a_fork(lambda: bx.Study(path, at_random()).ask(2000)))
    command = f"{sys.executable} -m botorch_ext trials {path} --csv | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
