"""Files of studies that are copied, moved, deleted or looked at while they are open."""

import json
import os
import shutil
import signal
import sqlite3
import threading
import time
from pathlib import Path
from unittest.mock import patch

import pytest

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext.exceptions import BrokenStudyError, MovedStudyError, StudyError
from botorch_ext.studies import sqlite_files
from tests.studies.kept import at_random


def _files(path):
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm")]


class Onlooker:
    """A process that was there before, opens the study when it is asked to, and closes it."""

    def __init__(self, path):
        self._path, self._answer = path, path.with_name("answer.json")
        self._asked, self._asks = os.pipe()
        self._answered, self._answers = os.pipe()
        self._process = in_a_fork(self._work)

    def _work(self):
        while os.read(self._asked, 1) == b"?":
            study = bx.Study(self._path, at_random())
            self._answer.write_text(json.dumps(study.pending))
            study._journal.database.close()
            os.write(self._answers, b"!")

    def sees(self):
        os.write(self._asks, b"?")
        os.read(self._answered, 1)
        return json.loads(self._answer.read_text())

    def end(self):
        os.write(self._asks, b".")
        wait_for(self._process)


@pytest.fixture
def onlooker(path):
    one = Onlooker(path)
    yield one
    one.end()


@pytest.mark.slow
@pytest.mark.parametrize("copied", [1, 3])
def test_a_process_that_copies_its_own_file_keeps_what_it_tells(path, onlooker, copied):
    study = bx.Study(path, at_random())
    study.ask(6)
    study.tell(0, 1.0)
    for file in _files(path)[:copied]:
        shutil.copy(file, path.parent / f"copy-{file.name}")  # the system drops its locks
    assert onlooker.sees() == [1, 2, 3, 4, 5]
    study.tell(1, 2.0)
    study.tell(2, 3.0)
    assert onlooker.sees() == study.pending == [3, 4, 5]


@pytest.mark.slow
def test_where_locks_are_dropped_with_any_descriptor_it_is_noticed(path, onlooker, monkeypatch):
    monkeypatch.setattr(sqlite_files.Hold, "take", lambda *_: None)
    study, beside = bx.Study(path, at_random()), bx.Study(path, at_random(), name="beside")
    study.ask(6)
    beside.ask()
    study.tell(0, 1.0)
    path.read_bytes()
    assert onlooker.sees() == [1, 2, 3, 4, 5]
    with pytest.raises(MovedStudyError, match=r"lab\.db-wal was moved, deleted or replaced"):
        study.tell(1, 2.0)
    study.tell(1, 2.0)
    beside.tell(0, 1.0)
    assert onlooker.sees() == study.pending == [2, 3, 4, 5]
    assert bx.Study(path, at_random(), name="beside").pending == []


def test_a_file_that_is_moved_away_and_brought_back_or_deleted(path):
    study, other = bx.Study(path, at_random()), bx.Study(path, at_random(), name="other")
    study.ask(3)
    study.tell(0, 1.0)
    away = path.with_name("away.db")
    path.rename(away)
    for use in (lambda: study.tell(1, 2.0), lambda: study.pending, other.ask, study.ask):
        with pytest.raises(MovedStudyError, match="bring it back"):
            use()
    assert not path.exists()
    assert bx.Study(away, at_random()).pending == [1, 2]  # all of it, without the log
    away.rename(path)
    study.tell(1, 2.0)
    assert study.pending == bx.Study(path, at_random()).pending == [2]
    assert other.ask().id == 0
    for file in _files(path):
        file.unlink()
    for _ in range(2):  # and one that is deleted is not made anew
        with pytest.raises(MovedStudyError):
            study.tell(2, 3.0)
    assert not path.exists()


def test_a_file_with_two_names_is_refused(path):
    study, other = bx.Study(path, at_random()), path.with_name("other.db")
    study.ask()
    os.link(path, other)
    assert study.ask().id == 1  # as where somebody makes a backup of links
    for name in (path, other):
        with pytest.raises(StudyError, match=r"must have one name, got a file with 2"):
            bx.Study(name, at_random())
    other.unlink()
    assert bx.Study(path, at_random()).pending == [0, 1]


def test_a_file_that_is_moved_while_a_call_decides(path):
    study = bx.Study(path, at_random())
    decide = bx.strategies.RandomSearch._decide

    def and_move(*given):
        path.rename(path.with_name("away.db"))
        return decide(*given)

    with (
        patch.object(bx.strategies.RandomSearch, "_decide", and_move),
        pytest.raises(MovedStudyError, match="look whether the last call was kept"),
    ):
        study.ask()
    path.with_name("away.db").rename(path)
    assert study.pending == bx.Study(path, at_random()).pending == [0]


def test_a_backup_in_place_of_the_file_is_not_gone_on_with_in_silence(path):
    study, backup = bx.Study(path, at_random()), path.with_name("backup.db")
    study.ask(2)
    with sqlite3.connect(path) as connection:
        connection.execute(f"VACUUM INTO '{backup}'")
    connection.close()
    study.tell(0, 1.0)
    backup.rename(path)
    with pytest.raises(MovedStudyError):
        study.tell(1, 2.0)
    with pytest.raises(BrokenStudyError, match=r"event 2 of study 'study' .* is missing"):
        study.tell(1, 2.0)
    again = bx.Study(path, at_random())
    again.tell(1, 2.0)
    assert bx.Study(path, at_random()).pending == [0]


@pytest.mark.slow
def test_eight_processes_begin_a_study_at_once(path):
    start = time.time() + 0.3

    def work():
        while time.time() < start:
            pass
        bx.Study(path, at_random()).ask()

    children = [in_a_fork(work) for _ in range(8)]
    for child in children:
        wait_for(child)
    assert bx.Study(path, at_random()).pending == list(range(8))


def test_an_interrupt_is_heard_while_a_call_waits(path):
    study = bx.Study(path, at_random())
    study.ask()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        study.tell(0, 1.0)
    assert time.monotonic() - before < 3.0
    timer.join()
    other.execute("ROLLBACK")
    other.close()
    study.tell(0, 1.0)
    assert study.pending == []


@pytest.mark.slow
def test_forks_beside_a_thread_that_asks(path):
    study, ended, failed = bx.Study(path, at_random()), threading.Event(), []

    def ask():
        try:
            while not ended.is_set():
                study.tell(study.ask().id, 0.5)
        except Exception as error:  # noqa: BLE001 - raised in the thread of the test
            failed.append(error)

    def in_the_child():
        signal.alarm(20)  # should a lock be left that nobody gives back
        bx.Study(path, at_random()).ask()

    beside = threading.Thread(target=ask)
    beside.start()
    for _ in range(15):
        wait_for(in_a_fork(in_the_child))
    ended.set()
    beside.join()
    assert failed == [] and len(bx.Study(path, at_random()).pending) == 15
