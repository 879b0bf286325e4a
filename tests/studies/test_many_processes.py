"""Studies that many processes share, and processes that are killed."""

import pytest

from benchmarks.studies import many_processes
from benchmarks.studies.kills import play
from benchmarks.studies.strategies import box, finite
from tests.studies.kept import failing


@pytest.mark.slow
def test_eight_processes_ask_and_tell_at_once(tmp_path):
    row = many_processes.play(tmp_path / "lab.db", box(), 8, 5)
    assert row["trials"] == 40 and row["pending at once, at most"] >= 8
    assert not failing(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "number", "watched", "minimize"),
    [(finite(20), 35, False, True), (box(), 15, True, False)],
    ids=["alone", "watched"],
)
def test_kills_lose_nothing(tmp_path, strategy, number, watched, minimize):
    counts = play(tmp_path / "lab.db", strategy, number, 0, watched, minimize)
    assert counts.total() == number
    assert len({moment for _, moment, _ in counts}) >= 3  # not all in one place
