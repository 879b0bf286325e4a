"""Places of studies that are none, that are far away, and what must never be shown of them."""

import socket
import sqlite3
import sys
import traceback

import pytest

import botorch_ext as bx
from botorch_ext.exceptions import (
    AnotherStrategyError,
    NetworkFileSystemWarning,
    StudyError,
    UnreachableStudyError,
)
from botorch_ext.studies import sqlite_files
from tests.studies.kept import at_random


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def test_a_network_file_system_is_warned_of(path, monkeypatch):
    mounts = path.parent / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/export {path.parent} nfs4 rw 0 0\n")
    kind = sqlite_files._file_system_of
    monkeypatch.setattr(sqlite_files, "_MOUNTS", mounts)
    with pytest.warns(NetworkFileSystemWarning, match="nfs4.*use PostgreSQL") as caught:
        bx.Study(path, at_random())
    assert caught[0].filename == __file__
    assert kind("/home/lab.db", mounts) == "ext4"
    assert kind("/home/lab.db", path / "nothing") is None


def test_a_call_waits_for_the_disk(path):
    for study in (bx.Study(path, at_random()), bx.Study(path, at_random())):
        study.ask()
        for begun in (study._journal.reading, study._journal.writing):
            with begun() as connection:
                settings = ("synchronous", "journal_mode")
                found = [connection.exec_driver_sql(f"PRAGMA {each}").scalar() for each in settings]
            assert found == [2, "wal"]  # 2 is FULL: fsync before a commit returns


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://me:secret@host/lab", "begins with mysql"),
        ("sqlite://", "got a database in memory"),
        (":memory:", "got a database in memory"),
        ("", "got a database in memory"),
        ("lab\0.db", "a zero character"),
        (b"lab.db", "a study must be at a path"),
        (None, "a study must be at a path"),
        ("postgresql://", "must have a host"),
        ("postgresql://me:secret@host:port/lab", "a URL that cannot be read"),
        ("postgresql://me:se@cret@host/lab", "must be written %40"),
        ("postgresql://me:12/se@cret@host/lab", "must be written %40"),
        ("postgresql:me:secret@host/lab", "a URL without ://"),
        ("PostgreSQL+psycopg:/me:secret@host/lab", "a URL without ://"),
        ("postgresql//me:secret@host/lab", "a URL without ://"),
        ("sqlite:///file:lab?mode=memory&uri=true", "must have no options, got mode, uri"),
        ("/dev/full", "/dev/full must be a file, got a device"),
    ],
)
def test_places_that_are_none(place, message):
    with pytest.raises(StudyError, match=message) as caught:
        bx.Study(place, at_random())
    assert "cret" not in str(caught.value) and "me:" not in str(caught.value)


def test_symbolic_links_that_lead_to_each_other(path):
    other = path.with_name("other.db")
    path.symlink_to(other)
    other.symlink_to(path)
    with pytest.raises(StudyError, match=r"lab\.db"):
        bx.Study(path, at_random())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@127.0.0.1:{port}/lab",
        "postgresql://me@127.0.0.1:{port}/lab?password=secret",
        "postgresql://me:secret@127.0.0.1:{port}/lab?no_such_option=1",
        "postgresql://me:secret@no.such.host.invalid/lab",
    ],
)
def test_errors_of_a_server_show_no_password(url):
    with socket.socket() as nobody_answers:
        nobody_answers.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableStudyError, match="does not answer") as caught:
            bx.Study(url.format(port=nobody_answers.getsockname()[1]), at_random())
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_class_that_a_file_names_is_not_imported(path):
    bx.Study(path, at_random())
    with sqlite3.connect(path) as connection:
        change = "UPDATE botorch_ext_studies SET description = replace(description, ?, ?)"
        connection.execute(change, ["RandomSearch", "antigravity.RandomSearch"])
    connection.close()
    with pytest.raises(AnotherStrategyError, match=r"class is .antigravity"):
        bx.Study(path, at_random())
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("missing", "place", "message"),
    [
        ("sqlalchemy", "lab.db", "pip install 'botorch-ext.studies.'"),
        ("psycopg", "postgresql://host/lab", "pip install 'botorch-ext.postgresql.'"),
    ],
)
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, missing, place, message):
    for module in ("databases", "journal"):
        monkeypatch.delitem(sys.modules, f"botorch_ext.studies.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises((ImportError, StudyError), match=message):
        bx.Study(place if "://" in place else tmp_path / place, at_random())
