"""Studies that many processes share, and processes that are killed."""

import pytest

from benchmarks.studies import many_processes
from benchmarks.studies.kills import Lost, NeverKilled, lines, play
from benchmarks.studies.strategies import box, finite
from benchmarks.studies.victims import BETWEEN, COMMITTING, DECIDING, RETURNING
from tests.studies.kept import at_random, failing


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


ASK, TELL = ("ask", [3], {}), ("tell", [1, 0.5], {})


def settled(returned, under_way, moment, change=lambda kept: None):
    """What is said of the events of these calls after a change."""
    study, never_killed = at_random(), NeverKilled(at_random())
    for name, given, options in [*returned, *([under_way] if under_way else [])]:
        getattr(study, name)(*given, **options)
    kept = lines(study)
    change(kept)
    return never_killed.settle(returned, under_way, moment, kept)


@pytest.mark.parametrize(
    ("returned", "under_way", "moment", "change"),
    [
        ([ASK, TELL], None, BETWEEN, lambda kept: kept.pop()),
        ([ASK, TELL], None, BETWEEN, lambda kept: kept.insert(0, kept.pop())),
        ([ASK], TELL, RETURNING, lambda kept: kept.pop()),
        ([ASK], TELL, DECIDING, lambda kept: None),
        ([], ASK, COMMITTING, lambda kept: kept.pop()),
        ([ASK], None, BETWEEN, lambda kept: kept.append(kept.pop().replace("1", "2", 1))),
    ],
    ids=["lost", "order", "lost in the call", "too early", "half", "another question"],
)
def test_what_is_lost_is_noticed_and_what_may_be_lost_is_not(returned, under_way, moment, change):
    with pytest.raises(Lost):
        settled(returned, under_way, moment, change)
    assert settled([ASK], TELL, COMMITTING)
    assert not settled([ASK], TELL, COMMITTING, lambda kept: kept.pop())
