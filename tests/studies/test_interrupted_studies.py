"""Calls that are broken off, processes that are killed and many at once: no event is lost."""

import shutil
from unittest.mock import patch

import pytest
from sqlalchemy.engine.default import DefaultExecutionContext

import botorch_ext as bx
from benchmarks.studies import kills, many_processes
from benchmarks.studies.interrupts import Alarm, by_line, by_signal, play
from benchmarks.studies.strategies import box, finite
from botorch_ext.testing.interrupting import lines_of
from tests.studies.kept import POINTS, at_random, failing, on_a_set

CALLS = {
    "ask": lambda study: study.ask(2),
    "tell": lambda study: study.tell(3, 0.7),
    "abandon": lambda study: study.abandon(3, failed=True),
    "attach": lambda study: study.attach(POINTS.points[5], 0.4),
    "correct": lambda study: study.correct(1, 0.2),
}


def shown(study):
    """All there is of it, and the next question, which is not kept."""
    strategy = study.strategy.clone()
    posterior = strategy.posterior
    numbers = [posterior.mean.tolist(), posterior.std.tolist(), posterior.num_observations]
    trial = strategy.ask()
    return kills.lines(study), study.report(), numbers, trial.x.tolist(), trial.info


@pytest.fixture
def copy(tmp_path):
    """Opens copies of a study in which something pends."""
    begun = bx.Study(tmp_path / "begun.db", on_a_set())
    for value in (0.1, 0.5, 0.3):
        begun.tell(begun.ask().id, value)
    begun.ask(2)
    begun._journal.database.carry_over()

    def made(name):
        if not (tmp_path / name).exists():
            shutil.copy(tmp_path / "begun.db", tmp_path / name)
        return bx.Study(tmp_path / name, on_a_set())

    return made


@pytest.mark.parametrize(
    ("call", "breaks"),
    [("tell", 2), *(pytest.param(call, 8, marks=pytest.mark.slow) for call in CALLS)],
)
def test_a_call_broken_off_anywhere_leaves_the_study_as_its_file_is(copy, call, breaks):
    whole = copy("whole")
    total = lines_of(lambda: CALLS[call](whole))
    for number in range(breaks, 0, -1):
        study = copy(str(number))
        last = int(total * (number * 0.6180339887 % 1.0))
        assert lines_of(lambda: CALLS[call](study), last) == last  # noqa: B023
        fresh = copy(str(number))
        assert shown(study) == shown(fresh), last
        for opened in (study, fresh):
            opened._journal.database.engine.dispose()


# An interrupt may come within a callback of the garbage collector, which swallows it.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("raised", [KeyboardInterrupt, Alarm])
@pytest.mark.parametrize("how", [by_signal, by_line])
def test_calls_that_are_interrupted_leave_the_file_unlocked_and_whole(tmp_path, raised, how):
    row = play(tmp_path / "lab.db", at_random(), 60, 0, how(raised))
    assert row["interrupted"] == 60


def test_an_exception_of_a_signal_handler_comes_out_as_it_is(tmp_path):
    study = bx.Study(tmp_path / "lab.db", at_random())
    study.ask()
    execute = DefaultExecutionContext._init_statement.__func__

    def alarmed(*given):
        execute(*given)
        raise Alarm("too late")

    with (
        patch.object(DefaultExecutionContext, "_init_statement", classmethod(alarmed)),
        pytest.raises(Alarm, match="too late"),
    ):
        study.tell(0, 0.5)
    study.tell(0, 0.25)
    assert study.pending == []


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
    counts = kills.play(tmp_path / "lab.db", strategy, number, 0, watched, minimize)
    assert counts.total() == number
    assert len({moment for _, moment, _ in counts}) >= 3  # not all in one place
