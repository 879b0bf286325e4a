"""Several runs on one study: what each evaluates, where they end, and values that come late."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext import run
from botorch_ext.exceptions import TrialFailedWarning, UntoldValueWarning
from botorch_ext.strategies import Abandoned, Asked, Attached
from botorch_ext.studies import questions, running_trials
from botorch_ext.studies.running_trials import Claims
from tests.objectives import f
from tests.strategies.sessions import InRounds, finite
from tests.studies.kept import at_random

quiet = partial(run, progress=False)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "lab.db"


def at_once(*calls):
    """What calls return, each in a thread of its own."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def broken(x):
    raise OSError("no instrument here")


class Phased(InRounds):
    refuses_attached = "it learns from its own points alone"


def in_rounds(place):
    return bx.Study(place, InRounds(finite(), 4))


# --- which trials a run evaluates -----------------------------------------------------------------


def test_a_run_leaves_alone_what_another_has_under_way(place):
    begun, ended = threading.Event(), threading.Event()

    def slow(x):
        begun.set()
        assert ended.wait(20)
        return 0.25

    def other():
        try:
            assert begun.wait(20)
            return quiet(bx.Study(place, at_random()), broken, 1)
        finally:
            ended.set()

    result, nothing = at_once(lambda: quiet(bx.Study(place, at_random()), slow, 1), other)
    assert nothing.failures == []
    assert nothing.ids == []
    assert result.Y.tolist() == [0.25]


def test_a_run_that_was_interrupted_leaves_its_trials_to_others(place):
    study = bx.Study(place, at_random())

    def interrupted(x):
        raise KeyboardInterrupt

    assert quiet(study, interrupted, 3).interrupted
    assert study.pending == [0]
    assert quiet(bx.Study(place, at_random()), lambda x: 0.5, 3).ids == [0, 1, 2]


def test_a_claim_ends_with_its_process_whatever_becomes_of_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(running_trials, "gettempdir", lambda: str(tmp_path))
    reader, writer = os.pipe()

    def work():
        Claims("lab").take(7)
        kept = Claims("lab")
        assert kept.take(3)
        child = in_a_fork(lambda: time.sleep(30))
        os.write(writer, child.to_bytes(8, "little"))
        time.sleep(30)

    process = in_a_fork(work)
    grandchild = int.from_bytes(os.read(reader, 8), "little")
    try:
        assert not Claims("lab").take(3)
        another = Claims("another lab")
        assert another.take(3)
        another.give_back()
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.kill(grandchild, 0)  # it lives
        own, other = Claims("lab"), Claims("lab")
        assert own.take(3) and own.take(3)
        assert not other.take(3)
        own.give_back()
        assert other.take(3)
        other.give_back(3)
        assert own.take(3)
        own.give_back(3)
    finally:
        os.kill(grandchild, signal.SIGKILL)
        os.close(reader)
        os.close(writer)
    assert not list(tmp_path.glob("*-3"))


def test_only_what_a_dead_process_had_is_evaluated_twice(place, tmp_path):
    bx.Study(place, at_random())
    number, workers = 24, 2

    def work(own):
        def objective(x):
            with (tmp_path / f"{own}.txt").open("a") as seen:
                seen.write(f"{x.tolist()}\n")
            time.sleep(0.05)
            return 0.5

        pool = partial(ThreadPoolExecutor, workers)
        quiet(bx.Study(place, at_random()), objective, number, executor=pool, max_pending=workers)

    first, second = [in_a_fork(partial(work, own)) for own in range(2)]
    while not (tmp_path / "0.txt").exists() or len((tmp_path / "0.txt").read_text()) < 200:
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    third = in_a_fork(partial(work, 2))
    wait_for(second)
    wait_for(third)
    study = bx.Study(place, at_random())
    assert study.pending == []
    assert len(study.events) == 2 * number
    seen = [(tmp_path / f"{own}.txt").read_text().splitlines() for own in range(3)]
    assert len(set().union(*seen)) == number
    assert sum(map(len, seen)) <= number + workers
    assert len(set(seen[1]) & set(seen[2])) == 0


def test_what_a_dead_process_had_and_fails_is_given_up(place):
    bx.Study(place, at_random()).ask()
    study = bx.Study(place, at_random())
    fails(study)
    assert study.pending == []


# --- where they end -------------------------------------------------------------------------------


def test_runs_end_together_at_the_number_of_trials(place):
    bx.Study(place, at_random())
    number = 24

    def one():
        return quiet(bx.Study(place, at_random()), lambda x: 1.0, number)

    at_once(*[one] * 6)
    assert bx.Study(place, at_random()).report()["num_asked"] == number


@pytest.mark.parametrize("kind", ["function", "iterator"])
def test_each_trial_has_the_context_of_its_step(place, kind):
    def opened():
        domain = bx.FiniteSet([[2.0], [3.0], [5.0]])
        return bx.Study(place, bx.strategies.RandomSearch(domain, context_domain=1))

    opened()
    number, given = 20, [iter([[100.0 * own + step] for step in range(20)]) for own in range(4)]

    def one(own):
        contexts = (lambda step: [float(step)]) if kind == "function" else given[own]
        return quiet(opened(), lambda x, z: float(z), number, contexts=contexts)

    at_once(*[partial(one, own) for own in range(4)])
    seen = [float(trial.context) for trial in opened().strategy.history.trials]
    if kind == "function":
        assert seen == [float(step) for step in range(number)]
    else:  # nothing that an iterator gave is left out
        assert len(seen) == number
        for own in range(4):
            of_own = [value for value in seen if value // 100 == own]
            assert of_own == [100.0 * own + step for step in range(len(of_own))]


# --- methods that wait ----------------------------------------------------------------------------


def test_runs_wait_for_each_other(place):
    in_rounds(place)

    def slow(x):
        time.sleep(0.05)
        return f(x)

    results = at_once(*[lambda: quiet(in_rounds(place), slow, 12)] * 3)
    assert all(result.failures == [] for result in results)
    study = in_rounds(place)
    assert study.pending == []
    assert study.report()["num_told"] == 12


def test_what_nobody_answers_is_taken_over_in_the_end(place, monkeypatch):
    monkeypatch.setattr(questions, "_LEAST_WAIT", 0.3)
    study, other, seen = in_rounds(place), in_rounds(place), []

    def objective(x):
        if not seen:  # somebody asks for all that there is, and dies
            while len(other.pending) < 4:
                other.ask()
        seen.append(x.tolist())
        return f(x)

    assert sorted(quiet(study, objective, 8).ids) == list(range(8))
    assert len(seen) == 8


def test_what_comes_while_a_run_waits_is_not_evaluated_again(place, monkeypatch):
    study, other, seen, threads = in_rounds(place), in_rounds(place), [], []

    def objective(x):
        if not seen:
            ids = [other.ask().id for _ in range(3)]
            threads.append(threading.Timer(0.7, lambda: [other.tell(id, 0.5) for id in ids]))
            threads[0].start()
        seen.append(x.tolist())
        return f(x)

    assert sorted(quiet(study, objective, 8).ids) == list(range(8))
    threads[0].join()
    assert len(seen) == 5


# --- values that come late ------------------------------------------------------------------------


@pytest.fixture
def on_other_machines(monkeypatch):
    """Runs that do not see what each has under way."""
    monkeypatch.setattr(Claims, "take", lambda self, id: True)


def late(opened, answer, **options):
    """A run with one trial, whose value comes after somebody else's answer."""

    def objective(x):
        answer(opened())
        return 0.25

    return quiet(opened(), objective, 1, **options)


def fails(study):
    with pytest.warns(TrialFailedWarning):
        quiet(study, broken, 1)
    assert study.events[-1] == Abandoned(0, failed=True)


@pytest.mark.usefixtures("on_other_machines")
@pytest.mark.parametrize("minimize", [False, True])
def test_the_value_of_a_trial_that_fails_elsewhere_is_attached(place, minimize):
    result = late(lambda: bx.Study(place, at_random(), minimize=minimize), fails)
    study = bx.Study(place, at_random())
    attached = study.events[-1]
    assert isinstance(attached, Attached) and attached.value == 0.25
    assert torch.equal(attached.trial.x, study.strategy.history.trials[0].x)
    assert result.Y.tolist() == [0.25] and result.best_value == 0.25
    assert len(study.events) == 3


@pytest.mark.usefixtures("on_other_machines")
def test_a_late_value_is_attached_beside_an_older_result_like_it(place):
    def answer(study):
        study.attach(study.strategy.history.trials[0].x, 0.25)
        study.abandon(0, failed=True)

    late(lambda: bx.Study(place, at_random()), answer)
    kinds = [type(event) for event in bx.Study(place, at_random()).events]
    assert kinds == [Asked, Attached, Abandoned, Attached]


@pytest.mark.usefixtures("on_other_machines")
@pytest.mark.parametrize(
    ("opened", "answer", "reason"),
    [
        (lambda place: bx.Study(place, at_random()), lambda s: s.abandon(0), "it was abandoned"),
        (lambda place: bx.Study(place, at_random()), lambda s: s.tell(0, 7.0), "it was told 7.0"),
        (lambda place: bx.Study(place, Phased(finite(), 4)), fails, "it was abandoned"),
    ],
    ids=["given up by a person", "told by a person", "a method that takes no attached results"],
)
def test_a_value_that_cannot_be_used_is_shown(place, opened, answer, reason):
    with pytest.warns(UntoldValueWarning, match=f"value 0.25 of trial 0 at .*: {reason} meanwhile"):
        late(lambda: opened(place), answer)


@pytest.mark.usefixtures("on_other_machines")
def test_the_same_value_twice_is_told_once(place):
    late(lambda: bx.Study(place, at_random()), lambda study: study.tell(0, 0.25))
    assert len(bx.Study(place, at_random()).events) == 2
