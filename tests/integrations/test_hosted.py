"""A strategy whose memory is its host equals one that is asked and told by hand."""

from __future__ import annotations

import json
import math
import multiprocessing
from typing import Any

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.domains.choices import Choice
from botorch_ext.domains.parameters import Integer, Real
from botorch_ext.domains.space import Space
from botorch_ext.exceptions import (
    BotorchExtWarning,
    BrokenStudyError,
    HostWarning,
    NewerStudyError,
    StudyError,
    WaitingForObservations,
)
from botorch_ext.integrations.host_trials import HostTrial, Record
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.recipes import Recipe
from tests.integrations.hosts import Host, objective

SPACE = Space(
    {
        "rate": Real(1e-3, 0.5, log=True),
        "depth": Integer(2, 9),
        "kind": Choice(("rbf", "linear", "poly")),
    }
)
PLAIN = Space({"a": Real(2.0, 5.0), "b": Real(-1.0, 3.0)})
FIXED = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 2.0}
METHODS = {
    "gp_bucb": Recipe("gp_bucb", FIXED | {"num_initial": 2}),
    "fitted": Recipe("gp_bucb", {"kernel": bx.Fitted(every=2), "width": 2.0, "num_initial": 4}),
    "integrated_ei": Recipe("integrated_ei", {"num_initial": 4}),
}


def _asked_by_hand(strategy: bx.Strategy, space: Space) -> dict[str, Any]:
    return space.params(strategy.ask().x)


def _next(hosted: HostedStrategy, host: Host) -> tuple[dict[str, Any], str]:
    hosted.follow(host.trials)
    return hosted.ask()


@pytest.mark.parametrize(
    ("name", "minimize"), [(name, name != "fitted") for name in METHODS] + [("gp_bucb", False)]
)
def test_it_asks_what_a_strategy_asks_by_hand(name: str, minimize: bool) -> None:
    strategy = METHODS[name].make(SPACE)
    hosted, host = HostedStrategy(strategy, SPACE, minimize), Host()
    sign = -1.0 if minimize else 1.0

    def answer(key: int) -> None:
        host.tell(key, objective(host.trials[key].values))
        strategy.tell(ids[key], sign * host.trials[key].value)

    ids: dict[int, int] = {}

    def ask() -> None:
        expected = strategy.ask()
        ids[len(host.trials)] = expected.id
        assert host.ask(hosted).values == SPACE.params(expected.x)

    for _ in range(4):
        ask()
    for key in (0, 2):
        answer(key)
    ask()
    host.set(1, status="failed")
    strategy.abandon(1, failed=True)
    host.set(3, status="abandoned")
    strategy.abandon(3)
    ask()
    values = {"rate": 0.02, "depth": 3, "kind": "poly"}
    host.add(values, 0.7)
    strategy.attach(SPACE.point(values), sign * 0.7)
    ids[6] = 6
    ask()
    # What is new is learnt in the order of the trials.
    host.tell(0, 1.5)
    strategy.correct(0, sign * 1.5)
    answer(5)
    ask()
    answer(4)
    for _ in range(2):
        ask()
    # The same again from what the host has alone.
    again = HostedStrategy(METHODS[name].make(SPACE), SPACE, minimize)
    assert _next(again, host) == _next(hosted, host)


@pytest.mark.parametrize("name", ["gp_bucb", "integrated_ei"])
def test_what_is_new_is_learnt_as_if_all_were_new(name: str) -> None:
    hosted, host = HostedStrategy(METHODS[name].make(SPACE), SPACE), Host()
    for step in range(7):
        host.ask(hosted)
        if step % 3 == 2:
            for key in (step, step - 1):
                host.tell(key, objective(host.trials[key].values))
        fresh = HostedStrategy(METHODS[name].make(SPACE), SPACE)
        fresh.follow(host.trials)
        hosted.follow(host.trials)
        assert len(fresh.strategy.events) == len(hosted.strategy.events)
        assert fresh.ask() == hosted.ask()
        hosted.follow(host.trials)  # the last question was not kept


def _asked_in_child(name: str, trials: list[HostTrial], queue: Any) -> None:
    torch.set_num_threads(1)
    hosted = HostedStrategy(METHODS[name].make(SPACE), SPACE)
    hosted.follow(trials)
    queue.put(hosted.ask())


def test_another_process_asks_the_same() -> None:
    hosted, host = HostedStrategy(METHODS["gp_bucb"].make(SPACE), SPACE), Host()
    for step in range(8):
        host.ask(hosted)
        if step % 2:
            host.tell(step, objective(host.trials[step].values))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_asked_in_child, args=("gp_bucb", host.trials, queue))
    child.start()
    answer = queue.get(timeout=60)
    child.join()
    assert answer == _next(hosted, host)


# --- pasts that change ----------------------------------------------------------------------------


def _with_answers(name: str = "gp_bucb", num_trials: int = 6) -> tuple[HostedStrategy, Host]:
    hosted, host = HostedStrategy(METHODS[name].make(SPACE), SPACE), Host()
    for key in range(num_trials):
        host.ask(hosted)
        if key % 2 == 0:
            host.tell(key, objective(host.trials[key].values))
    return hosted, host


def test_a_value_that_changed_is_corrected() -> None:
    hosted, host = _with_answers()
    by_hand = hosted.strategy
    host.tell(2, 1.75)
    by_hand.correct(2, 1.75)
    hosted.follow(host.trials)
    assert hosted.strategy.history.values == by_hand.history.values
    first = host.ask(hosted)
    again = HostedStrategy(METHODS["gp_bucb"].make(SPACE), SPACE)
    again.follow(host.trials[:-1])
    assert again.ask() == (first.values, first.record)
    # Also once it is in a record, and changed again.
    host.tell(2, 1.25)
    again.follow(host.trials)
    assert again.strategy.history.values[2] == 1.25
    assert again.ask() == _next(hosted, host)


@pytest.mark.parametrize(
    ("name", "status"), [("gp_bucb", "running"), ("fitted", "failed"), ("fitted", "abandoned")]
)
def test_a_value_that_is_taken_back_stays_once_it_is_recorded(name: str, status: Any) -> None:
    hosted, host = _with_answers(name)
    host.tell(5, 0.25)
    hosted.follow(host.trials)
    told = host.trials[0].value
    for key in (0, 5):
        host.set(key, status=status, value=None)
    with pytest.warns(
        BotorchExtWarning, match="trial 0 has lost its value: the strategy still uses it"
    ):
        hosted.follow(host.trials)
    history = hosted.strategy.history
    assert history.values[0] == told and 5 not in history.values
    again = HostedStrategy(METHODS[name].make(SPACE), SPACE)
    with pytest.warns(BotorchExtWarning, match="trial 0"):
        again.follow(host.trials)
    assert again.ask() == _next(hosted, host)  # which warns once
    host.tell(0, told + 1.0)
    hosted.follow(host.trials)
    assert hosted.strategy.history.values[0] == told + 1.0


def test_a_value_that_comes_late_is_attached() -> None:
    hosted, host = _with_answers()
    host.set(1, status="failed")
    host.ask(hosted)
    host.tell(1, 0.4)
    hosted.follow(host.trials)
    history = hosted.strategy.history
    assert history.attached == [7] and history.values[7] == 0.4
    assert torch.equal(history.trials[7].x, history.trials[1].x)
    host.ask(hosted)
    host.tell(1, 0.6)  # what was attached is corrected
    hosted.follow(host.trials)
    assert hosted.strategy.history.values[7] == 0.6
    again = HostedStrategy(METHODS["gp_bucb"].make(SPACE), SPACE)
    assert _next(again, host) == _next(hosted, host)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_a_value_that_is_no_number_is_a_failure(value: float | None) -> None:
    hosted, host = _with_answers()
    host.set(1, status="told", value=value)
    hosted.follow(host.trials)
    assert hosted.strategy.history.failed == {1}


def test_a_question_that_was_not_kept_was_not_asked() -> None:
    hosted, host = _with_answers()
    answer = _next(hosted, host)
    assert _next(hosted, host) == answer
    assert len(hosted.strategy.history.trials) == 7


def test_questions_in_a_row_are_pending_for_each_other() -> None:
    hosted, host = _with_answers()
    by_hand = hosted.strategy
    hosted.follow(host.trials)
    for _ in range(3):
        values, record = hosted.ask()
        assert values == _asked_by_hand(by_hand, SPACE)
        host.trials.append(HostTrial(len(host.trials), values, record=record))
    again = HostedStrategy(METHODS["gp_bucb"].make(SPACE), SPACE)
    assert _next(again, host) == _next(hosted, host)


# --- trials of others -----------------------------------------------------------------------------


def test_trials_of_others_are_attached_when_they_have_a_value() -> None:
    hosted, host = HostedStrategy(METHODS["gp_bucb"].make(PLAIN), PLAIN), Host()
    host.add({"a": 3.0, "b": 0.5}, 1.0)
    host.add({"a": 3.5, "b": 1.5}, None)
    host.add({"a": 9.0, "b": 1.5}, 2.0)  # outside
    host.add({"a": 4.0}, 2.0)  # another space
    host.add({"a": 4.0, "b": 2.0}, math.nan)
    with pytest.warns(HostWarning, match="values of 2 trials, 2 the first, are not used: none"):
        hosted.follow(host.trials)
    hosted.follow(host.trials)  # once
    history = hosted.strategy.history
    assert history.values == {0: 1.0} and history.attached == [0] and not history.failed
    host.tell(1, 3.0)
    hosted.follow(host.trials)
    assert list(hosted.strategy.history.values.values()) == [1.0, 3.0]


def test_records_of_another_strategy_are_trials_of_others() -> None:
    hosted, host = _with_answers()
    another = HostedStrategy(Recipe("gp_bucb", {"seed": 5}).make(SPACE), SPACE)
    another.follow(host.trials)
    assert another.strategy.history.attached == [0, 1, 2]
    host.ask(another)
    hosted.follow(host.trials)  # which runs, so that the first one knows nothing of it
    assert len(hosted.strategy.history.trials) == 6
    minimizing = HostedStrategy(METHODS["gp_bucb"].make(SPACE), SPACE, minimize=True)
    minimizing.follow(host.trials)
    assert minimizing.strategy.history.attached == [0, 1, 2]


def test_records_of_another_space_are_trials_of_others() -> None:
    spaces = [Space({"a": Choice(names)}) for names in (("x", "y", "z"), ("y", "z", "w"))]
    hosted, another = (
        HostedStrategy(METHODS["gp_bucb"].make(space), space) for space in spaces
    )  # of the same box
    host = Host()
    for key in range(4):
        host.ask(hosted)
        host.tell(key, float(key))
    with pytest.warns(HostWarning, match="are not used"):
        another.follow(host.trials)
    known = [trial for trial in host.trials if trial.values["a"] != "x"]
    history = another.strategy.history
    assert 0 < len(known) < 4 and history.num_asked == 0
    assert list(history.values.values()) == [trial.value for trial in known]
    asked = [spaces[1].params(trial.x) for trial in history.trials]
    assert asked == [trial.values for trial in known]


def test_a_copy_of_a_record_is_a_trial_of_others() -> None:
    hosted, host = _with_answers()
    host.add(dict(host.trials[1].values), 0.3, record=host.trials[1].record)
    hosted.follow(host.trials)
    history = hosted.strategy.history
    assert history.attached == [6] and 1 in history.pending


def _asks(hosted: HostedStrategy, host: Host) -> bool:
    try:
        host.ask(hosted)
    except WaitingForObservations:
        return False
    return True


@pytest.mark.filterwarnings("ignore:the value of trial 0 is not used")
def test_methods_that_take_no_other_results_ignore_them() -> None:
    arguments = FIXED | {"horizon": 30}
    hosted = HostedStrategy(Recipe("bpe", arguments).make(PLAIN), PLAIN)
    host = Host()
    host.add({"a": 3.0, "b": 0.5}, 1.0)
    hosted.follow(host.trials)
    assert not hosted.strategy.history.trials
    while _asks(hosted, host):
        pass
    asked = len(host.trials)
    for key in range(1, asked):
        host.tell(key, 0.1 * key)
    assert host.ask(hosted).record is not None
    again = HostedStrategy(Recipe("bpe", arguments).make(PLAIN), PLAIN)
    assert _next(again, host) == _next(hosted, host)


@pytest.mark.filterwarnings("ignore:the value of trial 1 is not used")
def test_contexts_come_with_trials() -> None:
    recipe = Recipe("cgp_ucb", {"num_initial": 2}, takes_contexts=True)
    make = lambda: HostedStrategy(recipe.make(PLAIN, context_domain=1), PLAIN)  # noqa: E731
    hosted, host = make(), Host()
    host.add({"a": 3.0, "b": 0.5}, 1.0, context=[0.3])
    host.add({"a": 3.0, "b": 0.7}, 1.0)  # without a context
    for step in range(4):
        host.ask(hosted, [0.1 * step])
        host.tell(step + 2, float(step))
    hosted.follow(host.trials)
    again = make()
    again.follow(host.trials)
    assert again.ask([0.25]) == hosted.ask([0.25])
    assert again.strategy.history.attached == [0]
    with pytest.raises(ValueError, match="context must be given"):
        hosted.ask()


# --- records --------------------------------------------------------------------------------------


def test_records_are_short() -> None:
    _, host = _with_answers(num_trials=9)
    first, *lengths = [len(trial.record) for trial in host.trials]
    assert max(lengths) <= 650 and sum(lengths) / len(lengths) <= 500
    assert first <= 2000  # it describes the strategy


def test_a_record_comes_back() -> None:
    before = (("told", 3, 0.1 + 0.2), ("failed", "b", None), ("corrected", 0, -1.5))
    record = Record("ab12", 4, before, [0.1, 1e-300], [0.5], {"width": 2.0, "nan": [math.inf]})
    again = Record.read(record.text())
    assert again == record
    assert json.loads(record.text())["version"] == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no json", BrokenStudyError),
        ("{}", BrokenStudyError),
        ('{"version":3}', NewerStudyError),
        ('{"version":1,"of":"a","number":"x","before":[],"x":[]}', BrokenStudyError),
        ('{"version":1,"of":"a","number":1,"before":[["told",1]],"x":[]}', BrokenStudyError),
        ('{"version":1,"of":"a","number":1,"before":[["sold",1,2]],"x":[]}', BrokenStudyError),
        ('{"version":1,"of":"a","number":1,"before":[],"y":[]}', BrokenStudyError),
    ],
)
def test_a_broken_record_is_refused(text: str, error: type[StudyError]) -> None:
    hosted = HostedStrategy(METHODS["gp_bucb"].make(PLAIN), PLAIN)
    with pytest.raises(error):
        hosted.follow([HostTrial(0, {"a": 3.0, "b": 0.5}, record=text)])


def test_a_record_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    hosted, host = _with_answers()
    answer = _next(hosted, host)
    good = host.trials[5]
    record = Record.read(good.record)
    wrong = Record(record.of, record.number, record.before, [99.0] * 3, None, record.info)
    host.set(5, record=wrong.text())
    with pytest.raises(BrokenStudyError, match="the trials of the host do not fit"):
        hosted.follow(host.trials)
    host.set(5, record=good.record)
    assert _next(hosted, host) == answer


@pytest.mark.filterwarnings("ignore:the record of trial . does not fit")
def test_records_that_others_do_not_fit_are_trials_of_others() -> None:
    """As where one was lost, or in a copy of a study with some of its trials."""
    hosted, host = HostedStrategy(METHODS["gp_bucb"].make(PLAIN), PLAIN), Host()
    for key in range(6):
        host.ask(hosted)
        host.tell(key, 0.5 + key)
    copy = Host()
    for trial in host.trials[:2] + host.trials[3:]:
        copy.add(dict(trial.values), trial.value, record=trial.record)
    again = HostedStrategy(METHODS["gp_bucb"].make(PLAIN), PLAIN)
    with pytest.warns(HostWarning, match="the record of trial .* does not fit the other trials"):
        again.follow(copy.trials)
    history = again.strategy.history
    assert sorted(history.values.values()) == [0.5, 1.5, 3.5, 4.5, 5.5]
    points = [again.space.params(history.trials[id].x) for id in history.values]
    assert sorted(map(repr, points)) == sorted(repr(dict(each.values)) for each in copy.trials)
    copy.ask(again)
    copy.tell(5, 7.5)
    for each in (again, HostedStrategy(METHODS["gp_bucb"].make(PLAIN), PLAIN)):
        each.follow(copy.trials)
        assert sorted(each.strategy.history.values.values())[-1] == 7.5
        assert not each.strategy.history.is_attached(max(each.strategy.history.values))


def test_records_of_another_objective_are_trials_of_others() -> None:
    def made(of: object) -> HostedStrategy:
        return HostedStrategy(METHODS["gp_bucb"].make(PLAIN), PLAIN, objective=of)

    hosted, host = made({"y": 1.0}), Host()
    host.ask(hosted)
    host.tell(0, 0.5)
    for of, num_asked in (({"y": 1.0}, 1), ({"z": 1.0}, 0), (None, 0)):
        again = made(of)
        again.follow(host.trials)
        assert again.strategy.history.num_asked == num_asked
