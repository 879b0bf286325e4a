"""Files that are full, read-only, truncated, changed, newer, or no studies: named errors, and
nothing lost."""

import ctypes
import os
import resource
import sqlite3
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from benchmarks.studies.kills import lines
from botorch_ext.exceptions import (
    BrokenStudyError,
    NewerStudyError,
    NoStudyError,
    StudyError,
    UnreachableStudyError,
    UnwritableStudyError,
    VersionWarning,
)
from botorch_ext.studies import databases, sqlite_files
from botorch_ext.studies.event_lines import from_text
from botorch_ext.studies.journal import MADE_BEFORE
from botorch_ext.studies.plain_events import from_json, to_json
from tests.studies.kept import BOX, answer_of_a_fork, at_random

NOBODY = 65534
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def _filled(path, number=200, **options):
    study = bx.Study(path, at_random(), **options)
    for trial in study.ask(number):
        if trial.id % 20 == 0:
            study.tell(trial.id, 0.1 * trial.id)
    return lines(study)


def _closed(path, number=200):
    """A study in its file alone, and its events."""
    before = answer_of_a_fork(lambda: _filled(path, number), path.parent)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return before


def test_a_full_disk_loses_the_call_that_did_not_fit_and_no_other(path):
    study = bx.Study(path, at_random())
    trials = study.ask(20)
    # There is a little room left in the file that grows with each call; more than the index takes.
    room = max(Path(f"{path}-wal").stat().st_size, 2**15) + 9_000

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        here, told = bx.Study(path, at_random()), 0
        with suppress(UnwritableStudyError):
            for trial in trials:
                here.tell(trial.id, 0.5)
                told += 1
        with pytest.raises(UnwritableStudyError, match="is the disk full"):
            here.ask(500)
        assert len(here.pending) == 20 - told
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        here.tell(trials[-1].id, 0.25)
        return told, lines(here)

    told, after = answer_of_a_fork(fill, path.parent)
    assert 0 < told < 20
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


def test_a_file_system_without_room_for_any_study(tmp_path):
    def begin():
        if not _is_mounted(tmp_path / "small", b"4k"):
            return "not allowed"
        with pytest.raises(UnwritableStudyError, match="is the disk full"):
            bx.Study(tmp_path / "small" / "lab.db", at_random())
        return None

    if answer_of_a_fork(begin, tmp_path) == "not allowed":
        pytest.skip("no file system of one's own here")


def test_a_full_file_system_and_room_again(tmp_path):
    def fill():
        place = tmp_path / "small"
        if not _is_mounted(place, b"250k"):
            return "not allowed"
        (place / "of others").write_bytes(bytes(120_000))
        study = bx.Study(place / "lab.db", at_random())
        trials, told = study.ask(50), []
        with suppress(UnwritableStudyError):
            for trial in trials:
                study.tell(trial.id, 0.5)
                told.append(trial.id)
        with pytest.raises(UnwritableStudyError, match="is the disk full"):
            study.ask(300)
        before = lines(study)
        (place / "of others").unlink()  # and the same object goes on
        study.tell(study.pending[0], 0.25)
        again = bx.Study(place / "lab.db", at_random())
        assert lines(again) == lines(study) and lines(study)[:-1] == before
        assert list(again.strategy.history.values) == [*told, len(told)]
        return len(told), len(before)

    answer = answer_of_a_fork(fill, tmp_path)
    if answer == "not allowed":
        pytest.skip("no file system of one's own here")
    told, events = answer
    assert 0 < told < 50 and events == 50 + told


def test_a_file_that_must_not_be_written(path):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "lab.db"
        before = _closed(path, 5)
        path.chmod(0o444)

        def as_nobody():
            if os.getuid() == 0:
                os.setuid(NOBODY)
            with pytest.raises(UnwritableStudyError, match="must be writable"):
                bx.Study(path, at_random()).ask()
            with pytest.raises(UnwritableStudyError, match="must be writable"):
                bx.Study(Path(folder) / "new.db", at_random())

        wait_for(in_a_fork(as_nobody))
        path.chmod(0o644)
        assert lines(bx.Study(path, at_random())) == before


@pytest.mark.parametrize(
    "content", [b"x,y\n1,2\n" * 500, bytes(range(256)) * 40, b"SQLite format 3\0" + b"\1" * 4000]
)
def test_a_file_that_is_no_study(path, content):
    path.write_bytes(content)
    with pytest.raises(NoStudyError, match="must be the file of a study, got another file"):
        bx.Study(path, at_random())
    assert path.read_bytes() == content


def test_a_database_of_something_else(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    with pytest.raises(NoStudyError, match=r"must hold studies, got tables .'bookmarks'"):
        bx.Study(path, at_random())
    for nowhere in (path.parent, path.parent / "no folder" / "lab.db"):
        with pytest.raises(UnwritableStudyError, match="must be writable, and its folder there"):
            bx.Study(nowhere, at_random())


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.95])
def test_a_truncated_file(path, share):
    before = _closed(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(BrokenStudyError, match="was truncated or changed"):
        bx.Study(path, at_random())
    path.write_bytes(whole)
    assert lines(bx.Study(path, at_random())) == before


def test_every_changed_byte_that_matters_is_noticed(path):
    before = _closed(path, 40)
    whole = path.read_bytes()
    changed = 0
    for place in range(60, len(whole), 1999):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            assert lines(bx.Study(path, at_random())) == before  # in a part that is not used
        except StudyError:
            changed += 1
        for leftover in ("-wal", "-shm"):
            Path(f"{path}{leftover}").unlink(missing_ok=True)
    assert changed > 3
    path.write_bytes(whole)
    assert lines(bx.Study(path, at_random())) == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE botorch_ext_events SET body = replace(body, '0.5', '0.6') WHERE number = 5",
        "UPDATE botorch_ext_events SET at = at + 1 WHERE number = 2",
        "DELETE FROM botorch_ext_events WHERE number = 3",
        "DELETE FROM botorch_ext_events WHERE number = 0",
        "UPDATE botorch_ext_studies SET minimize = 1",
    ],
)
def test_changed_and_missing_events_are_noticed(path, change):
    study = bx.Study(path, at_random())
    for trial in study.ask(5):
        study.tell(trial.id, 0.5)
    with sqlite3.connect(path) as connection:
        assert connection.execute(change).rowcount == 1
    connection.close()
    with pytest.raises(BrokenStudyError, match=r"event \d of study 'study' in .* was changed"):
        bx.Study(path, at_random())


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ("DELETE FROM botorch_ext_events WHERE number = 9", 9),
        ("DELETE FROM botorch_ext_events WHERE number >= 6", 6),
        ("DELETE FROM botorch_ext_events", 0),
    ],
)
def test_a_file_that_lost_its_last_events(path, change, number):
    study = bx.Study(path, at_random())
    for trial in study.ask(5):
        study.tell(trial.id, 0.5)
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(BrokenStudyError, match=f"event {number} of study 'study' .* is missing"):
        bx.Study(path, at_random())


@pytest.mark.parametrize("last", ["'x'", "X'00'", "1.5"])
def test_a_last_event_that_is_no_number(path, last):
    study = bx.Study(path, at_random())
    study.ask(2)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE botorch_ext_studies SET last = {last}")
    connection.close()
    with pytest.raises(BrokenStudyError, match=r"the last event of study 'study' .* was changed"):
        bx.Study(path, at_random())


def test_tables_as_they_are_made_today_are_among_those_that_any_version_takes(path):
    """So that another version of SQLAlchemy, which may write them otherwise, locks nobody out."""
    _closed(path, 1)
    with sqlite3.connect(path) as connection:
        texts = [text for (text,) in connection.execute("SELECT sql FROM sqlite_schema") if text]
    connection.close()
    known = ["".join(text.split()) for text in MADE_BEFORE]
    assert len(texts) == 2
    assert all("".join(text.split()) in known for text in texts)


@pytest.mark.parametrize("is_old", [False, True])
def test_a_file_that_was_cut_to_nothing(path, is_old):
    _closed(path, 3)
    os.truncate(path, 0)
    if is_old:  # and was read since
        os.utime(path, (path.stat().st_mtime, path.stat().st_mtime - 100.0))
    with pytest.raises(BrokenStudyError, match=r"is empty, as .*: restore it .*, or delete"):
        bx.Study(path, at_random())
    path.unlink()
    path.touch()  # as `mkstemp` makes one
    assert bx.Study(path, at_random()).ask().id == 0


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t AFTER INSERT ON botorch_ext_events BEGIN SELECT hex(zeroblob(9)); END",
        "CREATE VIEW v AS SELECT * FROM botorch_ext_events",
        "CREATE TABLE more (a TEXT)",
        "CREATE INDEX i ON botorch_ext_events (abs(number))",
        "ALTER TABLE botorch_ext_events ADD COLUMN more TEXT AS (hex(zeroblob(1000000000)))",
        "ALTER TABLE botorch_ext_studies ADD COLUMN more TEXT DEFAULT 'x'",
        "ALTER TABLE botorch_ext_studies ADD COLUMN more TEXT CHECK (abs(id) > 0)",
    ],
)
def test_sql_of_a_stranger_in_a_file(path, change):
    _closed(path, 3)
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(BrokenStudyError, match="must hold the tables of studies alone"):
        bx.Study(path, at_random())


def test_a_view_in_place_of_a_table(path):
    _closed(path, 3)
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE botorch_ext_events RENAME TO others")
    connection.execute(
        "CREATE VIEW botorch_ext_events AS WITH RECURSIVE n(number) AS "
        "(SELECT 0 UNION ALL SELECT number + 1 FROM n) SELECT 1 AS study, number FROM n"
    )
    connection.commit()
    connection.close()
    with pytest.raises(BrokenStudyError, match="must hold the tables of studies alone"):
        bx.Study(path, at_random())


def test_a_text_that_is_too_long_is_not_read(path, monkeypatch):
    _closed(path, 3)
    monkeypatch.setattr(sqlite_files, "_LONGEST_TEXT", 10_000)
    assert bx.Study(path, at_random()).pending == [1, 2]
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            f"UPDATE botorch_ext_events SET body = '{'x' * 20_000}' WHERE number = 1"
        )
    connection.close()
    with pytest.raises(BrokenStudyError, match="too big"):
        bx.Study(path, at_random())


def test_analyzed_files_open(path):
    _closed(path, 3)
    connection = sqlite3.connect(path)
    connection.execute("ANALYZE")
    connection.close()
    assert bx.Study(path, at_random()).pending == [1, 2]


def test_a_newer_schema(path):
    _filled(path, 3)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE botorch_ext_studies SET schema = 2, description = 'tomorrow'")
    connection.close()
    with pytest.raises(NewerStudyError, match=r"has schema 2, and this version .* knows 1"):
        bx.Study(path, at_random())


def test_a_schema_before_the_first(path):
    _filled(path, 3)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE botorch_ext_studies SET schema = 0")
    connection.close()
    with pytest.raises(BrokenStudyError, match="has schema 0, which no version wrote"):
        bx.Study(path, at_random())


def test_a_study_of_schema_1_is_read(path):
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_1.sql").read_text())
    connection.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionWarning)
        study = bx.Study(path, at_random(3), name="kept")
    assert study.minimize and study.pending == [1]
    history = study.strategy.history
    assert history.values == {0: -0.1, 3: -1 / 3} and history.failed == {2}
    assert study.ask().id == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"event":"told","id":0}',
        '{"event":"told","id":"0","value":1.0}',
        '{"event":"told","id":0,"value":NaN}',
        '{"event":"told","id":0,"value":1.0,"more":2}',
        '{"event":"told","id":0,"value":true}',
        '{"event":"os.system","id":0}',
        '{"event":"abandoned","id":0}',
        '{"event":"asked","id":0,"x":"ab","context":null,"info":{}}',
        '{"event":"asked","id":0,"x":[[1.0],[1.0,2.0]],"context":null,"info":{}}',
    ],
)
def test_text_that_is_no_event(text):
    with pytest.raises(BrokenStudyError, match="cannot be read"):
        from_text(text, BOX.like, 1.0)


def test_numbers_survive_as_text():
    plain = {
        "a": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 2**70],
        "b": [float("inf"), -float("inf")],
        "c": {"": None, "ü\u2028": [True, "x"]},
    }
    assert repr(from_json(to_json(plain))) == repr(plain)
    assert repr(from_json(to_json([float("nan")]))) == "[nan]"


def test_a_study_in_use_by_somebody_who_does_not_let_go(path, monkeypatch):
    monkeypatch.setattr(databases, "_LONGEST_WAIT", 0.1)
    study = bx.Study(path, at_random())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnreachableStudyError, match=r"was in use for 0\.1 s"):
        study.ask()
    assert study.pending == []
    other.execute("ROLLBACK")
    other.close()
    assert study.ask().id == 0
