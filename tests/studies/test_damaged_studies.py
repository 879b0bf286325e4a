"""Files and servers that are damaged, foreign, full, newer or none: nothing is lost."""

import ctypes
import os
import random
import resource
import shutil
import socket
import sqlite3
import sys
import traceback
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest

import botorch_ext as bx
from benchmarks.studies.kills import lines
from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    NetworkFileSystemWarning,
    NewerStudyError,
    NoStudyError,
    StudyError,
    UnreachableStudyError,
    UnwritableStudyError,
)
from botorch_ext.page.overview import read_overview
from botorch_ext.studies import databases, sqlite_files
from tests.helpers import without_package
from tests.studies.kept import answer_of_a_fork, at_random
from tests.studies.kept_methods import FILES
from tests.watch import RUNS, nothing_may

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000


def filled(path, number=5):
    """A study in its file alone, without a log beside it: asks and their answers. Its events."""
    study = bx.Study(path, at_random())
    study.tell_all({trial.id: 0.5 for trial in study.ask(number)})
    study._journal.database.close()
    return lines(study)


def restore(path, content):
    path.write_bytes(content)
    for beside in ("-wal", "-shm"):
        Path(f"{path}{beside}").unlink(missing_ok=True)


def execute(path, *changes):
    with closing(sqlite3.connect(path)) as connection, connection:
        for change in changes:
            connection.execute(change)


EVENTS, STUDIES = "botorch_ext_events", "botorch_ext_studies"
DESCRIPTIONS = "botorch_ext_descriptions"
MANY = "SELECT hex(zeroblob(9))"
DAMAGE = {
    "a value": (f"UPDATE {EVENTS} SET body = replace(body, '0.5', '0.6') WHERE number = 5", "5"),
    "a time": (f"UPDATE {EVENTS} SET at = at + 1 WHERE number = 2", "event 2"),
    "a digest": (f"UPDATE {EVENTS} SET digest = 'x' WHERE number = 4", "event 4"),
    "the last digest": (f"UPDATE {STUDIES} SET last_digest = 'x'", "event 9"),
    "an event lost": (f"DELETE FROM {EVENTS} WHERE number = 3", "event 3"),
    "the last lost": (f"DELETE FROM {EVENTS} WHERE number = 9", "event 9 .* is missing"),
    "the end lost": (f"DELETE FROM {EVENTS} WHERE number >= 6", "event 6 .* is missing"),
    "all lost": (f"DELETE FROM {EVENTS}", "event 0 .* is missing"),
    "an event again": (
        f"INSERT INTO {EVENTS} SELECT study, 10, at, body, digest FROM {EVENTS} WHERE number = 9",
        "event 10",
    ),
    "the sign": (f"UPDATE {STUDIES} SET minimize = 1", "event 0"),
    "the description": (f"UPDATE {DESCRIPTIONS} SET description = description || ' '", "event 0"),
    "a description that is none": (f"UPDATE {DESCRIPTIONS} SET description = '[1]'", "description"),
    "a last event that is a text": (f"UPDATE {STUDIES} SET last = 'x'", "the last event"),
    "a schema that is a text": (f"UPDATE {STUDIES} SET schema = 'x'", "schema x"),
    "a newer schema": (
        f"UPDATE {STUDIES} SET schema = 3",
        "has schema 3, and this version .* knows",
    ),
    # SQL of a stranger, which would run when the study is opened.
    "a trigger": (f"CREATE TRIGGER t AFTER INSERT ON {EVENTS} BEGIN {MANY}; END", "alone"),
    "a view": (f"CREATE VIEW v AS SELECT * FROM {EVENTS}", "alone"),
    "a table": ("CREATE TABLE more (a TEXT)", "alone"),
    "a default": (f"ALTER TABLE {STUDIES} ADD COLUMN a TEXT DEFAULT 'x'", "alone"),
    "a view in place of a table": (
        f"ALTER TABLE {EVENTS} RENAME TO others; CREATE VIEW {EVENTS} AS WITH RECURSIVE "
        "n(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n) SELECT 1 AS study, number "
        "FROM n",
        "alone",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_by_name(path, damage):
    change, message = DAMAGE[damage]
    before = filled(path)
    whole = path.read_bytes()
    execute(path, *change.split("; ") if "RENAME" in change else [change])
    error = NewerStudyError if "newer" in damage else BrokenStudyError
    with pytest.raises(error, match=message) as caught:
        bx.Study(path, at_random())
    assert "lab.db" in str(caught.value)
    restore(path, whole)
    assert lines(bx.Study(path, at_random())) == before


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_file(path, share):
    filled(path, 60)
    os.truncate(path, int(share * path.stat().st_size))
    with pytest.raises(BrokenStudyError, match="was truncated or changed"):
        bx.Study(path, at_random())


def test_every_changed_byte_that_matters_is_noticed(path):
    before = filled(path, 20)
    whole, changed = path.read_bytes(), 0
    for place in range(60, len(whole), 1999):
        restore(path, whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            assert lines(bx.Study(path, at_random())) == before  # in a part that is not used
        except StudyError:
            changed += 1
    assert changed > 3


@pytest.mark.parametrize("is_old", [False, True])
def test_a_file_that_was_cut_to_nothing(path, is_old):
    filled(path)
    os.truncate(path, 0)
    if is_old:  # and was read since
        os.utime(path, (path.stat().st_mtime, path.stat().st_mtime - 100.0))
    with pytest.raises(BrokenStudyError, match=r"is empty, as .*: restore it .*, or delete"):
        bx.Study(path, at_random())
    path.unlink()
    path.touch()  # as `mkstemp` makes one
    assert bx.Study(path, at_random()).ask().id == 0


@pytest.mark.parametrize(
    "content", [b"x,y\n1,2\n" * 500, bytes(range(256)) * 40, b"SQLite format 3\0" + b"\1" * 4000]
)
def test_a_file_of_something_else_is_left_as_it_is(path, content):
    path.write_bytes(content)
    with pytest.raises(NoStudyError, match="must be the file of a study, got another file"):
        bx.Study(path, at_random())
    path.unlink()
    execute(path, "CREATE TABLE bookmarks (url TEXT)")
    before = path.read_bytes()
    with pytest.raises(NoStudyError, match=r"must hold studies, got tables .'bookmarks'"):
        bx.Study(path, at_random())
    assert path.read_bytes() == before and not Path(f"{path}-wal").exists()


def test_a_class_that_a_file_names_is_not_imported(path):
    filled(path)
    execute(
        path, f"UPDATE {DESCRIPTIONS} SET description = replace(description, 'Random', 'this.R')"
    )
    sys.modules.pop("this", None)  # which prints when it is imported
    with pytest.raises(AnotherStrategyError, match=r"class is 'strategies\.this\.R"):
        bx.Study(path, at_random())
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://me:secret@host/lab", "begins with mysql"),
        ("sqlite://", "got a database in memory"),
        ("lab\0.db", "a zero character"),
        (None, "a study must be at a path"),
        ("postgresql://", "must have a host"),
        ("postgresql://me:secret@host:port/lab", "a URL that cannot be read"),
        ("postgresql://me:se@cret@host/lab", "must be written %40"),
        ("postgresql:me:secret@host/lab", "a URL without ://"),
        ("postgresql//me:secret@host/lab", "a URL without ://"),
        ("sqlite:///file:lab?mode=memory&uri=true", "must have no options, got mode, uri"),
        ("/dev/full", "/dev/full must be a file, got a device"),
    ],
)
def test_places_that_are_none(place, message):
    with pytest.raises(StudyError, match=message) as caught:
        bx.Study(place, at_random())
    assert "cret" not in str(caught.value) and "me:" not in str(caught.value)


def test_places_of_files_that_are_none(path):
    for nowhere in (path.parent, path.parent / "no folder" / "lab.db"):
        with pytest.raises(UnwritableStudyError, match="must be writable, and its folder there"):
            bx.Study(nowhere, at_random())
    path.symlink_to(path)
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
    pytest.importorskip("psycopg")
    with socket.socket() as nobody_answers:
        nobody_answers.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableStudyError, match="does not answer") as caught:
            bx.Study(url.format(port=nobody_answers.getsockname()[1]), at_random())
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_mounts_that_lose_locks(path, monkeypatch):
    mounts = path.with_name("mounts")
    monkeypatch.setattr(sqlite_files, "_MOUNTS", mounts)
    bx.Study(path.with_name("unknown.db"), at_random())  # there is no list of mounts
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/export {path.parent} nfs4 rw 0 0\n")
    with pytest.warns(NetworkFileSystemWarning, match="nfs4.*use PostgreSQL") as caught:
        bx.Study(path, at_random())
    assert caught[0].filename == __file__
    mounts.write_text(f"disk / ext4 rw 0 0\n/dev/sda {path} ext4 rw 0 0\n")
    with pytest.raises(StudyError, match="must not be a mount of a single file"):
        bx.Study(path, at_random())


@pytest.mark.parametrize(
    ("missing", "place", "message"),
    [
        ("sqlalchemy", "lab.db", "pip install 'botorch-ext.studies.'"),
        ("psycopg", "postgresql://host/lab", "pip install 'botorch-ext.postgresql.'"),
    ],
)
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, missing, place, message):
    modules = [f"botorch_ext.studies.{module}" for module in ("databases", "journal")]
    without_package(monkeypatch, missing, *modules)
    with pytest.raises((ImportError, StudyError), match=message):
        bx.Study(place if "://" in place else tmp_path / place, at_random())


def test_a_study_in_use_by_somebody_who_does_not_let_go(path, monkeypatch):
    monkeypatch.setattr(databases, "_LONGEST_WAIT", 0.1)
    study = bx.Study(path, at_random())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnreachableStudyError, match=r"was in use for 0\.1 s"):
            study.ask()
        assert study.pending == []
        other.execute("ROLLBACK")
    assert study.ask().id == 0


@pytest.mark.filterwarnings("ignore")
def test_nothing_in_a_hostile_file_runs_and_reading_changes_no_file(tmp_path):
    """HOSTILE_FILES=20000 tries more of them: bytes, texts of the tables and ends are changed."""
    kept = [path for path in sorted(FILES.glob("0.3.0/*.sqlite")) if path.stem != "contextwise"]
    rng = random.Random(0)
    contents, outcomes = [path.read_bytes() for path in kept], Counter()
    path = tmp_path / "hostile.db"
    for content in contents:  # or what they need would be imported under watch
        path.write_bytes(content)
        read_study(path)
    for _ in range(int(os.environ.get("HOSTILE_FILES", "150"))):
        content = bytearray(rng.choice(contents))
        for _ in range(rng.choice((1, 1, 1, 3, 30))):
            at, size = rng.randrange(len(content)), rng.choice((1, 1, 4, 64))
            content[at : at + size] = rng.choice((rng.randbytes(size), content[-size:], b""))
        if rng.randrange(10) == 0:
            del content[rng.randrange(1, len(content)) :]
        restore(path, content)
        with nothing_may(*RUNS):
            try:
                read_study(path)
                outcomes["read"] += 1
            except StudyError:
                outcomes["refused"] += 1
        assert path.read_bytes() == content
    assert min(outcomes["read"], outcomes["refused"]) > 20


def read_study(path):
    """All that reading looks at: the strategy with its events, and the trials without torch."""
    read_overview(path)
    study = bx.Study.only_read(path)
    return study.report(), study.events


def until_it_is_full(study, trials):
    """Tells trials as long as there is room, then asks for too many; returns the ids it told."""
    told = []
    with suppress(UnwritableStudyError):
        for trial in trials:
            study.tell(trial.id, 0.5)
            told.append(trial.id)
    with pytest.raises(UnwritableStudyError, match="is the disk full"):
        study.ask(500)
    assert 0 < len(told) < len(trials) == len(told) + len(study.pending)
    return told


@pytest.mark.slow
def test_a_full_disk_loses_the_call_that_did_not_fit_and_no_other(path):
    study = bx.Study(path, at_random())
    trials = study.ask(20)
    # There is a little room left in the file that grows with each call; more than the index takes.
    room = max(Path(f"{path}-wal").stat().st_size, 2**15) + 9_000

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        here = bx.Study(path, at_random())
        told = until_it_is_full(here, trials)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        here.tell(trials[-1].id, 0.25)
        return len(told), lines(here)

    told, after = answer_of_a_fork(fill, path.parent)
    assert lines(study) == after and len(after) == 20 + told + 1
    assert len(study.pending) == 20 - told - 1


def _is_mounted(place, size):
    """Whether a small file system could be made, seen by this process alone and gone with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir()
    others = 0 if os.getuid() == 0 else CLONE_NEWUSER
    if libc.unshare(CLONE_NEWNS | others) or libc.mount(
        *(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    ):
        return False
    return not libc.mount(b"tmpfs", bytes(place), b"tmpfs", 0, b"size=" + size)


@pytest.mark.slow
def test_a_file_system_that_is_full_and_has_room_again(tmp_path):
    none, small = tmp_path / "none", tmp_path / "small"

    def fill():
        if not _is_mounted(none, b"4k") or not _is_mounted(small, b"250k"):
            return "not allowed"
        with pytest.raises(UnwritableStudyError, match="is the disk full"):
            bx.Study(none / "lab.db", at_random())
        (small / "of others").write_bytes(bytes(120_000))
        study = bx.Study(small / "lab.db", at_random())
        told = until_it_is_full(study, study.ask(50))
        before = lines(study)
        (small / "of others").unlink()  # and the same object goes on
        study.tell(study.pending[0], 0.25)
        again = bx.Study(small / "lab.db", at_random())
        assert lines(again) == lines(study) and lines(study)[:-1] == before
        assert list(again.strategy.history.values) == [*told, len(told)]
        return "done"

    if answer_of_a_fork(fill, tmp_path) == "not allowed":
        pytest.skip("no file system of one's own here")


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_a_copy_of_the_file_alone_is_the_study(path, killed):
    def work():
        study = bx.Study(path, at_random())
        for trial in study.ask(30):
            study.tell(trial.id, 0.5)
        return lines(study)

    before = answer_of_a_fork(work, path.parent) if killed else work()
    shutil.copy(path, path.with_name("copy.db"))
    kept = lines(bx.Study(path.with_name("copy.db"), at_random()))
    assert 40 < len(kept) <= 60 and kept == before[: len(kept)]
