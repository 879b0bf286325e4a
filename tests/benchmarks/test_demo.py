"""The demo is killed in the middle, twice, and ends as if nothing had happened."""

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from functools import partial
from unittest.mock import patch

import pytest

from benchmarks import demo
from benchmarks.measured.svc import SVCTuning
from benchmarks.studies.forks import in_a_fork, is_alive, wait_for


def _play(folder):
    arguments = ["demo", "--smoke", "--output", str(folder)]
    # Of a picture nothing is kept, and it takes as long as the studies.
    with patch.object(sys, "argv", arguments), patch.object(demo, "picture"):
        demo.main()


def _events(folder):
    """What was asked and told, as it lies in the file."""
    place = f"file:{folder / 'demo.db'}?mode=ro"
    with closing(sqlite3.connect(place, uri=True)) as connection:
        query = "SELECT study, number, body FROM botorch_ext_events ORDER BY study, number"
        return connection.execute(query).fetchall()


def _num_events(folder):
    try:
        return len(_events(folder))
    except sqlite3.OperationalError:  # there is no file yet, or no table
        return 0


@pytest.mark.slow
def test_the_demo_is_killed_and_goes_on(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    SVCTuning("breast_cancer").evaluate([0.0, 0.0])  # the processes are born warm
    whole.mkdir()
    for name in ("demo.db", "demo.png"):  # of a demo that ended
        (whole / name).write_text("of last time")
    wait_for(in_a_fork(partial(_play, whole)))
    expected = _events(whole)
    assert len(expected) == 64  # four methods, eight trials each, asked and told
    killed.mkdir()
    for number in (5, 35):
        child = in_a_fork(partial(_play, killed))
        while _num_events(killed) < number:
            assert is_alive(child)
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        wait_for(child, -signal.SIGKILL)
        events = _events(killed)
        assert number <= len(events) < len(expected) and events == expected[: len(events)]
    wait_for(in_a_fork(partial(_play, killed)))
    assert _events(killed) == expected
    assert (killed / "report.md").read_text() == (whole / "report.md").read_text()
