"""How many threads of torch an ask has, and that they come back."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext import run
from botorch_ext.studies import threads
from botorch_ext.studies.threads import in_worker_thread, is_small, threads_for
from tests.objectives import f
from tests.strategies.sessions import RowsInTurn, box, data, finite, make, plain


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


def test_small_asks_have_one_thread_and_objectives_all():
    strategy, evaluated = Counts(finite()), []

    def objective(x):
        evaluated.append(torch.get_num_threads())
        return f(x)

    run(strategy, objective, 5, progress=False)
    assert strategy.asked == [1] * 5
    assert strategy.absorbed == [1] * 10
    assert evaluated == [3] * 5
    assert torch.get_num_threads() == 3


def test_workers_that_are_threads_keep_theirs():
    strategy, evaluated = Counts(finite()), []

    def objective(x):
        evaluated.append(torch.get_num_threads())
        return f(x)

    executor = partial(ThreadPoolExecutor, 2)
    run(strategy, objective, 8, executor=executor, max_pending=2, progress=False)
    assert strategy.asked == [1] * 8
    assert evaluated == [3] * 8


def test_a_worker_that_begins_beside_an_ask_has_its_threads_in_the_end():
    with ThreadPoolExecutor(1) as pool:
        with threads_for(make(finite())):
            bare = pool.submit(torch.get_num_threads).result()
        assert bare == pool.submit(torch.get_num_threads).result() == 1  # why it has to wait
    with ThreadPoolExecutor(1) as pool:
        with threads_for(make(finite())):
            future = pool.submit(in_worker_thread, torch.get_num_threads)
            with pytest.raises(TimeoutError):
                future.result(0.05)
        assert future.result() == 3


def test_large_asks_keep_their_threads(monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 4 * finite().num_points)
    strategy = Counts(finite())
    run(strategy, f, 8, progress=False)
    assert strategy.asked == [1] * 5 + [3] * 3


def test_each_event_of_a_study_has_as_many_as_when_it_happened(monkeypatch, tmp_path):
    monkeypatch.setattr(threads, "_SMALL", 4 * finite().num_points)
    study = bx.Study(tmp_path / "lab.db", Counts(finite()))
    study.ask(8)
    study.tell(0, 0.5)
    lived = study.strategy
    assert lived.asked == [1] * 5 + [3] * 3
    again = bx.Study(tmp_path / "lab.db", Counts(finite()))
    assert again.strategy.absorbed == lived.absorbed == [1] * 5 + [3] * 4
    study.correct(0, 0.25)
    opened = bx.Study(tmp_path / "lab.db", Counts(finite()))
    for corrected in (study, again, opened):
        assert corrected.strategy.absorbed == lived.absorbed


def test_what_is_read_of_a_study_is_computed_with_the_threads_of_an_ask(tmp_path):
    study = bx.Study(tmp_path / "lab.db", Counts(finite()))
    study.tell(study.ask(), 0.5)
    assert study._kept.read(lambda _: torch.get_num_threads()) == 1
    assert torch.get_num_threads() == 3


def test_they_come_back_whatever_happens():
    strategy = make(finite())
    with threads_for(strategy):
        with threads_for(strategy):  # a strategy that asks another one
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    with pytest.raises(KeyError), threads_for(strategy):
        raise KeyError
    assert torch.get_num_threads() == 3


def test_two_asks_at_once_do_not_take_each_others_threads():
    first, second, inside = make(finite()), make(finite()), threading.Event()
    seen = []

    def other():
        torch.set_num_threads(3)  # of this thread
        inside.wait()
        with threads_for(second):
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    beside = threading.Thread(target=other)
    beside.start()
    with threads_for(first):
        inside.set()
        beside.join(0.05)
        assert seen == []  # it waits
        assert torch.get_num_threads() == 1
    beside.join()
    assert seen == [1, 3]
    assert torch.get_num_threads() == 3


def _require_usable(expected):
    assert torch.get_num_threads() == expected
    with threads_for(make(finite())):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == expected


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

        wait_for(in_a_fork(in_the_child, None))
    finally:
        ended.set()
        beside.join()
    _require_usable(3)


def test_a_process_that_is_forked_within_an_ask_goes_on_in_it():
    with threads_for(make(finite())):
        wait_for(in_a_fork(lambda: _require_usable(1), None))
        assert torch.get_num_threads() == 1
    wait_for(in_a_fork(lambda: _require_usable(3), None))
    _require_usable(3)


def test_what_is_small():
    many = bx.FiniteSet(torch.linspace(0, 1, 200_000, dtype=torch.float64)[:, None])
    assert is_small(make(finite()))
    assert is_small(make(box(), initial=data(box(), 2048)))
    assert not is_small(make(box(), initial=data(box(), 2049)))
    zeros = many.points.new_zeros(21)
    assert is_small(RowsInTurn(many, initial=(many.points[:20], zeros[:20])))
    assert not is_small(RowsInTurn(many, initial=(many.points[:21], zeros)))


@pytest.mark.parametrize("domain", [finite, box])
def test_the_questions_are_those_of_asks_with_one_thread(domain):
    by_hand, strategy = make(domain(), num_initial=3), make(domain(), num_initial=3)
    run(strategy, f, 8, progress=False)
    torch.set_num_threads(1)
    for _ in range(8):
        trial = by_hand.ask()
        by_hand.tell(trial.id, f(trial.x))
    assert [plain(e) for e in strategy.events] == [plain(e) for e in by_hand.events]
