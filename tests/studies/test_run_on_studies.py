"""`run` on a study: several runs at once, others that answer, outages, and kills."""

import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest
import torch

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext import run
from botorch_ext.exceptions import TrialFailedWarning, UnreachableStudyError, UntoldValueWarning
from botorch_ext.strategies import Abandoned, Asked, Attached, RandomSearch, Told, Withdrawn
from botorch_ext.studies import questions, running_trials, target
from botorch_ext.studies.journal import Journal
from botorch_ext.studies.running_trials import Claims
from tests.objectives import f
from tests.strategies.sessions import InRounds, RowsInTurn, finite
from tests.studies.kept import at_random
from tests.studies.test_run_workers import ByHand
from tests.studies.test_run_workers import at_once as evaluated

quiet = partial(run, progress=False)


class Rows(RowsInTurn):
    """Takes attached results too."""

    def _info_of_attached(self, X, context):
        return {"index": int(self.domain.index(X))}


class Phased(InRounds):
    refuses_attached = "it learns from its own points alone"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(running_trials, "gettempdir", lambda: str(tmp_path))
    return tmp_path / "lab.db"


def opened(place, **more):
    return bx.Study(place, Rows(finite()), **more)


def in_rounds(place):
    return bx.Study(place, InRounds(finite(), 4))


def random(place, **more):
    return bx.Study(place, at_random(), **more)


def kinds(study, kind):
    found = [event for event in study.events if isinstance(event, kind)]
    return [event.trial.id if kind is Asked else event.id for event in found]


def at_once(*calls):
    """What calls return, each in a thread of its own."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def broken(x):
    raise OSError("no instrument here")


def test_attached_results_are_none_of_the_trials_that_are_run(place, capsys):
    study = opened(place)
    study.attach(finite().points[5], 0.3)
    quiet(study, f, 3)
    study.attach(finite().points[2], 9.0)
    result = run(opened(place), f, 6)
    assert kinds(study, Asked) == kinds(study, Told) == [1, 2, 3, 5, 6, 7]
    assert result.ids == list(range(8)) and result.best_value == 9.0
    assert torch.equal(result.best_x, finite().points[2])
    assert "6/6 " in capsys.readouterr().err  # the bar counts as the run does
    assert quiet(opened(place), f, 6).ids == result.ids  # there is nothing left to do
    quiet(result.strategy, f, 8)  # a copy
    assert len(study.events) == 14
    with pytest.raises(ValueError, match="minimize must be that of the study, False"):
        quiet(study, f, 9, minimize=True)
    contextual = RandomSearch(bx.FiniteSet([[2.0], [3.0], [5.0]]), context_domain=1)
    study = bx.Study(place, contextual, name="contexts")
    study.attach([3.0], 0.5, context=[7.0])
    result = quiet(study, lambda x, z: float(x + z), 3, contexts=[[0.5], [1.5], [2.5]])
    assert result.contexts.tolist() == [[7.0], [0.5], [1.5], [2.5]]


def test_what_someone_else_tells_meanwhile_stands(place):
    study, other = opened(place), opened(place)

    def objective(x):
        trials = other.strategy.history.trials
        if len(trials) == 3:
            other.tell(2, 0.125)
        if len(trials) == 5:
            other.abandon(4)
        if len(trials) == 6:
            other.tell(5, 0.25)
            raise RuntimeError("and it fails here")
        return f(x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = quiet(study, objective, 7)
    found = [warning.category for warning in caught]
    assert found == [UntoldValueWarning, UntoldValueWarning, TrialFailedWarning]
    values = dict(zip(result.ids, result.Y.tolist(), strict=True))
    assert sorted(values) == [0, 1, 2, 3, 5, 6] and (values[2], values[5]) == (0.125, 0.25)
    assert study.pending == []


def test_a_run_leaves_alone_what_another_has_under_way(place):
    begun, ended = threading.Event(), threading.Event()

    def slow(x):
        begun.set()
        assert ended.wait(20)
        return 0.25

    def other():
        try:
            assert begun.wait(20)
            return quiet(random(place), broken, 1)
        finally:
            ended.set()

    result, nothing = at_once(lambda: quiet(random(place), slow, 1), other)
    assert (nothing.failures, nothing.ids, result.Y.tolist()) == ([], [], [0.25])


def test_a_run_that_was_interrupted_leaves_its_trials_to_others(place):
    def interrupted(x):
        raise KeyboardInterrupt

    assert quiet(random(place), interrupted, 3).interrupted and random(place).pending == [0]
    assert quiet(random(place), lambda x: 0.5, 3).ids == [0, 1, 2]


@pytest.mark.parametrize("kind", ["function", "iterator"])
def test_each_trial_has_the_context_of_its_step(place, kind):
    def contextual():
        domain = bx.FiniteSet([[2.0], [3.0], [5.0]])
        return bx.Study(place, RandomSearch(domain, context_domain=1))

    contextual()
    number, given = 12, [iter([[100.0 * own + step] for step in range(12)]) for own in range(3)]

    def one(own):
        contexts = (lambda step: [float(step)]) if kind == "function" else given[own]
        return quiet(contextual(), lambda x, z: float(z), number, contexts=contexts)

    at_once(*[partial(one, own) for own in range(3)])
    seen = [float(trial.context) for trial in contextual().strategy.history.trials]
    assert len(seen) == number
    if kind == "function":
        assert seen == [float(step) for step in range(number)]
    for own in range(3 if kind == "iterator" else 0):  # nothing that it gave is left out
        of_own = [value for value in seen if value // 100 == own]
        assert of_own == [100.0 * own + step for step in range(len(of_own))]


def test_runs_wait_for_each_other(place):
    in_rounds(place)
    results = at_once(*[lambda: quiet(in_rounds(place), f, 8)] * 2)
    assert all(result.failures == [] for result in results)
    assert in_rounds(place).pending == [] and in_rounds(place).report()["num_told"] == 8


@pytest.mark.parametrize("is_answered", [False, True])
def test_what_others_ask_is_waited_for_and_taken_over_if_nobody_answers(
    place, monkeypatch, is_answered
):
    monkeypatch.setattr(questions, "_PAUSE", 0.05)
    if not is_answered:
        monkeypatch.setattr(questions, "_LEAST_WAIT", 0.1)
    study, other, seen, threads = in_rounds(place), in_rounds(place), [], []

    def objective(x):
        if not seen:  # somebody asks for all that there is, and dies or answers later
            ids = [other.ask().id for _ in range(3)]
            answer = (lambda: [other.tell(id, 0.5) for id in ids]) if is_answered else len
            threads.append(threading.Timer(0.2, answer, [] if is_answered else [ids]))
            threads[0].start()
        seen.append(x.tolist())
        return f(x)

    assert sorted(quiet(study, objective, 8).ids) == list(range(8))
    threads[0].join()
    assert len(seen) == (5 if is_answered else 8)


@pytest.fixture
def on_other_machines(monkeypatch):
    """Runs that do not see what each has under way."""
    monkeypatch.setattr(Claims, "take", lambda self, id: True)


def late(study, other, answer):
    """A run with one trial, whose value comes after somebody else's answer."""

    def objective(x):
        answer(other)
        return 0.25

    return quiet(study, objective, 1)


def fails(study):
    with pytest.warns(TrialFailedWarning):
        quiet(study, broken, 1)
    assert study.events[-1] == Abandoned(0, failed=True)


@pytest.mark.usefixtures("on_other_machines")
@pytest.mark.parametrize("minimize", [False, True])
def test_the_value_of_a_trial_that_fails_elsewhere_is_attached(place, minimize):
    def attaches_and_fails(study):
        study.attach(study.strategy.history.trials[0].x, 0.25)
        study.abandon(0, failed=True)

    # Their failure is taken back.
    expected = {fails: [Asked, Abandoned, Withdrawn, Attached]}
    # Beside an older result like it.
    expected[attaches_and_fails] = [Asked, Attached, Abandoned, Withdrawn, Attached]
    for name, (answer, kinds) in zip("ab", expected.items(), strict=True):
        study, other = random(place, name=name, minimize=minimize), random(place, name=name)
        result = late(study, other, answer)
        events = random(place, name=name).events
        assert [type(event) for event in events] == kinds and events[-1].value == 0.25
        assert torch.equal(events[-1].trial.x, events[0].trial.x)
        assert random(place, name=name).strategy.history.failed == set()
        assert set(result.Y.tolist()) == {0.25} and result.best_value == 0.25


@pytest.mark.usefixtures("on_other_machines")
@pytest.mark.parametrize(
    ("make", "answer", "reason"),
    [
        (at_random, lambda study: study.abandon(0), "it was abandoned"),
        (at_random, lambda study: study.tell(0, 7.0), "it was told 7.0"),
        (lambda: Phased(finite(), 4), fails, "it was abandoned"),
    ],
    ids=["given up by a person", "told by a person", "a method that takes no attached results"],
)
def test_a_value_that_cannot_be_used_is_shown(place, make, answer, reason):
    study, other = (bx.Study(place, make()) for _ in range(2))
    with pytest.warns(UntoldValueWarning, match=f"value 0.25 of trial 0 at .*: {reason} meanwhile"):
        late(study, other, answer)
    same = random(place, name="same")
    late(same, random(place, name="same"), lambda study: study.tell(0, 0.25))
    assert len(same.events) == 2  # the same value twice is told once


@pytest.fixture
def outage(monkeypatch):
    """While it is set no database answers."""
    away = threading.Event()
    for name in ("reading", "writing"):
        usual = getattr(Journal, name)

        @contextmanager
        def use(self, usual=usual):
            if away.is_set():
                raise UnreachableStudyError("away")
            with usual(self) as connection:
                yield connection

        monkeypatch.setattr(Journal, name, use)
    return away


@pytest.mark.parametrize("progress", [False, True])
def test_a_run_waits_for_a_study_that_comes_back(place, outage, progress):
    calls, back = [], threading.Timer(0.3, outage.clear)

    def objective(x):
        calls.append(x)
        if len(calls) == 4:
            outage.set()
            back.start()
        return 0.5

    options = {"executor": partial(ThreadPoolExecutor, 2), "max_pending": 2}
    result = run(random(place), objective, 8, progress=progress, **options)
    back.join()
    assert sorted(result.ids) == list(range(8)) and len(calls) == 8


def test_values_that_cannot_be_told_are_shown(place, outage, monkeypatch):
    monkeypatch.setattr(target, "_PATIENCE", 0.1)
    study, calls = random(place), []

    def objective(x):
        calls.append(x)
        if len(calls) == 4:
            outage.set()
        return float(len(calls))

    with (
        pytest.warns(UntoldValueWarning) as caught,
        pytest.raises(UnreachableStudyError, match="away"),
    ):
        quiet(study, objective, 12, executor=ByHand(evaluated), max_pending=4)
    outage.clear()
    assert study.pending == [0, 1, 2, 3]
    for id in range(4):
        assert f"{id + 1.0} for trial {id} at " in str(caught[0].message)


def test_a_warning_that_is_made_an_error_loses_no_value(place):
    study, calls = random(place), []

    def objective(x):
        calls.append(x)
        return broken(x) if len(calls) == 3 else 0.5

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TrialFailedWarning):
            quiet(study, objective, 20, executor=ByHand(evaluated), max_pending=8)
    assert (study.report()["num_told"], study.report()["failed"], study.pending) == (7, [2], [])


def test_a_claim_to_a_file_that_was_just_removed_is_none(place, monkeypatch):
    first, second, third = (Claims("lab") for _ in range(3))
    assert first.take(3)
    usual = os.open

    def opens(path, *rest):
        file = usual(path, *rest)
        first.give_back(3)  # another run has it no more, before it can be locked
        return file

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opens)
        assert second.take(3)
    assert not third.take(3)
    second.give_back(3)


@pytest.mark.slow
def test_a_claim_ends_with_its_process_whatever_becomes_of_its_children(place, tmp_path):
    reader, writer = os.pipe()

    def work():
        kept = Claims("lab")
        assert kept.take(3)
        child = in_a_fork(lambda: time.sleep(30))
        os.write(writer, child.to_bytes(8, "little"))
        time.sleep(30)

    process = in_a_fork(work)
    grandchild = int.from_bytes(os.read(reader, 8), "little")
    try:
        assert not Claims("lab").take(3)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.kill(grandchild, 0)  # it lives
        own = Claims("lab")
        assert own.take(3)
        own.give_back(3)
    finally:
        os.kill(grandchild, signal.SIGKILL)
        os.close(reader)
        os.close(writer)
    assert not list(tmp_path.glob("*-3"))


@pytest.mark.slow
def test_only_what_a_dead_process_had_is_evaluated_twice(place, tmp_path):
    random(place)
    number, workers = 24, 2

    def work(own):
        def objective(x):
            with (tmp_path / f"{own}.txt").open("a") as seen:
                seen.write(f"{x.tolist()}\n")
            time.sleep(0.05)
            return 0.5

        pool = partial(ThreadPoolExecutor, workers)
        quiet(random(place), objective, number, executor=pool, max_pending=workers)

    first, second = [in_a_fork(partial(work, own)) for own in range(2)]
    while not (tmp_path / "0.txt").exists() or len((tmp_path / "0.txt").read_text()) < 200:
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    third = in_a_fork(partial(work, 2))
    wait_for(second)
    wait_for(third)
    study = random(place)
    assert study.pending == [] and len(study.events) == 2 * number
    seen = [(tmp_path / f"{own}.txt").read_text().splitlines() for own in range(3)]
    assert len(set().union(*seen)) == number and sum(map(len, seen)) <= number + workers
    assert len(set(seen[1]) & set(seen[2])) == 0
