"""How many threads of torch an ask has, and that asks do not wait for each other."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext import run
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies import threads
from botorch_ext.studies.threads import threads_for
from tests.objectives import f
from tests.strategies.sessions import RowsInTurn, finite, make
from tests.studies.kept import BOX


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


class Counts(RowsInTurn):
    """Notes how many threads it is asked and told with."""

    def __init__(self, domain):
        super().__init__(domain)
        self.asked, self.absorbed = [], []

    def _decide(self, choices):
        self.asked.append(torch.get_num_threads())
        return super()._decide(choices)

    def _absorb(self, event):
        self.absorbed.append(torch.get_num_threads())


class Meets(RandomSearch):
    """Decides together with another strategy, or not at all."""

    together = threading.Barrier(2)

    def _decide(self, choices):
        Meets.together.wait(timeout=20)
        return super()._decide(choices)


@pytest.mark.parametrize("kept", [False, True])
def test_asks_of_two_strategies_in_two_threads_overlap(kept, tmp_path):
    def ask(name):
        torch.set_num_threads(3)  # of this thread
        if kept:
            trial = bx.Study(tmp_path / f"{name}.db", Meets(BOX)).ask()
        else:
            trial = run(Meets(BOX), lambda x: 0.5, 1, progress=False).strategy.history.trials[0]
        return trial.id, torch.get_num_threads()

    Meets.together.reset()
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(ask, name) for name in "ab"]
        assert [future.result() for future in futures] == [(0, 3), (0, 3)]
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("workers", [None, 2])
def test_small_asks_have_one_thread_and_objectives_all(workers):
    strategy, evaluated = Counts(finite()), []

    def objective(x):
        evaluated.append(torch.get_num_threads())
        return f(x)

    executor = workers and partial(ThreadPoolExecutor, workers)
    options = {"executor": executor, "max_pending": workers or 1, "progress": False}
    run(strategy, objective, 5, **options)
    assert strategy.asked == [1] * 5 and strategy.absorbed == [1] * 10 and evaluated == [3] * 5
    assert torch.get_num_threads() == 3


def test_each_event_of_a_study_has_as_many_as_when_it_happened(monkeypatch, tmp_path):
    monkeypatch.setattr(threads, "_SMALL", 4 * finite().num_points)
    study = bx.Study(tmp_path / "lab.db", Counts(finite()))
    study.ask(8)
    study.tell(0, 0.5)
    lived = study.strategy
    assert lived.asked == [1] * 5 + [3] * 3  # large asks keep their threads
    again = bx.Study(tmp_path / "lab.db", Counts(finite()))
    assert again.strategy.absorbed == lived.absorbed == [1] * 5 + [3] * 4
    study.correct(0, 0.25)
    for corrected in (study, again, bx.Study(tmp_path / "lab.db", Counts(finite()))):
        assert corrected.strategy.absorbed == lived.absorbed
    small = bx.Study(tmp_path / "other.db", Counts(finite()))
    assert small._kept.read(lambda _: torch.get_num_threads()) == 1
    assert torch.get_num_threads() == 3


def _require_usable(expected):
    assert torch.get_num_threads() == expected
    with threads_for(make(finite())):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == expected


@pytest.mark.slow
def test_a_process_that_is_forked_beside_an_ask_has_its_threads():
    inside, ended = threading.Event(), threading.Event()

    def ask():
        torch.set_num_threads(3)  # of this thread
        with threads_for(make(finite())), threads_for(make(finite())):
            inside.set()
            ended.wait()

    beside = threading.Thread(target=ask)
    beside.start()
    inside.wait()
    try:

        def in_the_child():
            signal.alarm(20)  # should nobody give the lock back
            _require_usable(3)
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(torch.get_num_threads).result() == 3

        wait_for(in_a_fork(in_the_child, None))
    finally:
        ended.set()
        beside.join()
    _require_usable(3)


@pytest.mark.slow
def test_a_process_that_is_forked_within_an_ask_goes_on_in_it():
    with threads_for(make(finite())):
        wait_for(in_a_fork(lambda: _require_usable(1), None))
        assert torch.get_num_threads() == 1
    wait_for(in_a_fork(lambda: _require_usable(3), None))
    _require_usable(3)
