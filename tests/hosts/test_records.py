"""Strategies in hosts: how they are made, and what they make of records and of others' trials."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.exceptions import BrokenStudyError, HostWarning, NewerStudyError, StudyError
from botorch_ext.integrations.host_trials import HostTrial, Record
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.recipes import Recipe, UnsearchableSpace
from botorch_ext.parameters import Choice
from tests.hosts.machine import PLAIN, SPACE, Memory, objective
from tests.hosts.methods import recipe

QUICK = recipe("gp_bucb", num_points=40)
INSIDE = {"depth": 3, "kind": "poly", "rate": 0.02}


def with_answers(num_trials: int = 6) -> Memory:
    """A host in which every other trial has a value."""
    host = Memory(QUICK)
    for key in range(num_trials):
        values = host.ask()
        if key % 2 == 0:
            host.tell(key, objective(values))
    host.hosted.follow(host.trials)
    return host


def history(host: Memory) -> Any:
    return host.hosted.strategy.history


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no json", BrokenStudyError),
        ("{}", BrokenStudyError),
        ('{"version":4}', NewerStudyError),
        ('{"version":1,"of":"a","number":"x","before":[],"x":[]}', BrokenStudyError),
        ('{"version":1,"of":"a","number":1,"before":[["failed",1,2]],"x":[]}', BrokenStudyError),
        ('{"version":1,"of":"a","number":1,"before":[["sold",1,2]],"x":[]}', BrokenStudyError),
    ],
)
def test_a_broken_record_is_refused(text: str, error: type[StudyError]) -> None:
    with pytest.raises(error):
        Memory(QUICK).hosted.follow([HostTrial(0, INSIDE, record=text)])


def test_a_record_whose_point_is_outside_is_refused_and_changes_nothing() -> None:
    host = with_answers()
    good = host.trials[5]
    record = Record.read(good.record)
    host.trials[5] = replace(good, record=replace(record, x=[99.0] * 3).text())
    with pytest.raises(BrokenStudyError, match="the trials of the host do not fit"):
        host.hosted.follow(host.trials)
    host.trials[5] = good
    assert host.ask() == with_answers().ask()


@pytest.mark.parametrize("status", ["running", "failed", "abandoned"])
def test_a_value_that_is_taken_back_stays_once_it_is_recorded(status: Any) -> None:
    host = with_answers()
    host.tell(5, 0.25)
    host.hosted.follow(host.trials)
    told = host.trials[0].value
    for key in (0, 5):
        host.trials[key] = replace(host.trials[key], status=status, value=None)
    for _ in range(2):  # a new one says it too, and each says it once
        with pytest.warns(HostWarning, match="trial 0 has lost its value"):
            host.hosted.follow(host.trials)
        host.hosted.follow(host.trials)
        assert history(host).values[0] == told and 5 not in history(host).values
        host.resume()
    host.tell(0, told + 1.0)
    host.hosted.follow(host.trials)
    assert history(host).values[0] == told + 1.0


def test_trials_of_others_are_attached_when_they_have_a_value() -> None:
    host = Memory(Recipe("gp_bucb", {"num_initial": 2}), PLAIN)
    host.attach({"a": 3.0, "b": 0.5}, 1.0)
    host.trials.append(HostTrial(1, {"a": 3.5, "b": 1.5}))
    host.attach({"a": 9.0, "b": 1.5}, 2.0)  # outside
    host.attach({"a": 4.0}, 2.0)  # another space
    host.attach({"a": 4.0, "b": 2.0}, math.nan)
    with pytest.warns(HostWarning, match="values of 2 trials, 2 the first, are not used: none"):
        host.hosted.follow(host.trials)
    host.hosted.follow(host.trials)  # once
    assert history(host).values == {0: 1.0} and history(host).attached == [0]
    host.tell(1, 3.0)
    host.hosted.follow(host.trials)
    assert [*history(host).values.values()] == [1.0, 3.0] and not history(host).failed


def test_records_of_another_strategy_sign_or_objective_are_trials_of_others() -> None:
    host = with_answers()
    others = [
        HostedStrategy(recipe("gp_bucb", num_points=40, width=2.5).make(SPACE), SPACE),
        HostedStrategy(QUICK.make(SPACE), SPACE, minimize=True),
        HostedStrategy(QUICK.make(SPACE), SPACE, objective={"y": 1.0}),
    ]
    for other in others:
        other.follow(host.trials)
        assert other.strategy.history.num_asked == 0
        assert len(other.strategy.history.attached) == 3
        assert not other.has_asked(host.trials[0])
    assert host.hosted.has_asked(host.trials[0])
    # What runs of another one is unknown.
    values, record = others[0].ask()
    host.trials.append(HostTrial(6, values, record=record))
    host.hosted.follow(host.trials)
    assert len(history(host).trials) == 6


def test_records_of_another_space_of_the_same_box_are_trials_of_others() -> None:
    chosen = Recipe("gp_bucb", {"num_initial": 2})
    spaces = [bx.Space({"a": Choice(names)}) for names in (("x", "y", "z"), ("y", "z", "w"))]
    host, another = (Memory(chosen, space) for space in spaces)
    for key in range(4):
        host.ask()
        host.tell(key, float(key))
    with pytest.warns(HostWarning, match="not used"):
        another.hosted.follow(host.trials)
    known, found = [trial for trial in host.trials if trial.values["a"] != "x"], history(another)
    assert 0 < len(known) < 4 and found.num_asked == 0
    assert [*found.values.values()] == [trial.value for trial in known]
    assert [spaces[1].params(each.x) for each in found.trials] == [each.values for each in known]


def test_records_that_others_do_not_fit_are_trials_of_others() -> None:
    """As where one was lost, or in a copy of a study with some of its trials."""
    host, copy = Memory(QUICK), Memory(QUICK)
    for key in range(6):
        host.ask()
        host.tell(key, 0.5 + key)
    kept = host.trials[:2] + host.trials[3:]
    copy.trials = [replace(trial, key=key) for key, trial in enumerate(kept)]
    with pytest.warns(HostWarning, match="the record of trial .* does not fit the other trials"):
        copy.hosted.follow(copy.trials)
    assert sorted(history(copy).values.values()) == [0.5, 1.5, 3.5, 4.5, 5.5]
    copy.ask()
    copy.tell(5, 7.5)
    copy.hosted.follow(copy.trials)
    assert [*history(copy).values.values()][-1] == 7.5 and history(copy).num_asked > 2


@pytest.mark.parametrize(
    "fact",
    [("attached", 1, 0.5), ("attached", 0, 0.5), ("corrected", 1, 0.5), ("told", 0, 0.5)],
    ids=["it runs", "it has a value", "it has none", "it was told"],
)
def test_a_record_of_what_cannot_have_happened_is_the_trial_of_others(fact: Any) -> None:
    host = with_answers(4)
    last = host.trials[3]
    record = Record.read(last.record)
    host.trials[3] = replace(last, record=replace(record, before=(*record.before, fact)).text())
    host.resume()
    with pytest.warns(HostWarning, match="the record of trial 3 does not fit the other trials"):
        host.hosted.follow(host.trials)
    assert history(host).num_asked == 3


A, B = bx.Real(2.0, 5.0), bx.Real(-1.0, 3.0)
BOTH = bx.Space(a=A, b=B)
FEW = bx.Space(a=bx.Integer(2, 9), b=bx.Choice(("x", "y", "z")))
MIXED = bx.Space(a=A, b=bx.Choice(("x", "y", "z")))
KERNEL = {"kernel": RBFKernel(), "noise_variance": 0.01}
PHASED = KERNEL | {"horizon": 40, "width": 1.0}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("gp_bucb", {}, {"model": bx.Fitted(), "width": 2.0, "num_initial": 8}),
        ("gp_bucb", {"width": 1.0, "num_initial": 2, "seed": 4}, {"width": 1.0, "seed": 4}),
        ("gp_bucb", {"width": 1.0, "num_initial": 2}, {"num_initial": 2}),
        ("gp_bucb", KERNEL | {"width": 1.0}, {"num_initial": 0}),
        ("gp_bucb", {"kernel": bx.Fitted(), "width": 1.0}, {"num_initial": 8}),
        ("thompson_sampling", {}, {"width": 1.0}),
    ],
)
def test_what_is_not_given_is_fitted_and_a_width_that_is_declared_is_kept(
    name, arguments, expected
):
    strategy = Recipe(name, arguments).make(MIXED)
    assert strategy.arguments.given.items() >= expected.items()
    assert repr(strategy.domain) == repr(MIXED.without_names())
    for other in ("credible_ucb", "integrated_ei"):
        assert isinstance(Recipe(other).make(MIXED).particles, bx.Particles)


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("GP-BUCB", {}, "did you mean 'gp_bucb'"),
        (3, {}, "algorithm must be a function or one of .*, got 3"),
        ("gp_bucb", {"Width": 2.0}, "'Width'; did you mean 'width'"),
        ("gp_bucb", {"domain": BOTH}, "domain must not be given to Recipe"),
        ("gp_bucb", {"width": -2.0}, "non-negative and finite, got -2.0"),
        ("gp_bucb", KERNEL, "rkhs_bound and noise_std"),
        ("bpe", KERNEL, "horizon must be given for bpe"),
        ("cgp_ucb", {}, "cgp_ucb needs a context for every trial, but Recipe provides none"),
    ],
)
def test_wrong_arguments_are_refused_before_there_is_a_space(algorithm, arguments, message):
    with pytest.raises(ValueError, match=message):
        Recipe(algorithm, arguments)
    with pytest.raises(ValueError, match="num_points must be at least 1, got 0"):
        Recipe("gp_bucb", num_points=0)


@pytest.mark.parametrize("algorithm", ["bpe", "certified_bucb"])
def test_a_method_for_plain_boxes_gets_all_points_where_they_are_few(algorithm):
    recipe = Recipe(algorithm, PHASED)
    assert repr(recipe.make(BOTH).domain) == repr(BOTH.without_names())
    domain = recipe.make(FEW).domain
    assert isinstance(domain, bx.FiniteSet) and domain.num_points == 24
    assert FEW.contains(domain.points).all()
    assert Recipe("gp_bucb", num_points=1000).make(FEW).domain.num_points == 24


@pytest.mark.parametrize(
    ("space", "what"),
    [
        (bx.Space(a=bx.Real(0.5, 5.0, log=True), b=B), "logarithmic scales: a"),
        (MIXED, "steps, whole numbers or choices: b"),
        (bx.Space(a=A, b=B, constraints=["a + b <= 5"]), "constraints: of the space"),
    ],
)
def test_a_method_for_plain_boxes_refuses_others_by_name(space, what):
    with pytest.raises(UnsearchableSpace, match=rf"bpe searches .*{what}\. Give num_points=1000"):
        Recipe("bpe", PHASED).make(space)
    domain = Recipe("bpe", PHASED, num_points=50).make(space).domain
    assert isinstance(domain, bx.FiniteSet) and domain.num_points == 50
    assert space.contains(domain.points).all()


def test_contexts_are_those_of_the_arguments_or_of_the_host():
    days = bx.Box([[0.0], [7.0]])
    recipe = Recipe("cgp_ucb", {"context_domain": days}, takes_contexts=True)
    assert recipe.make(BOTH, context_domain=1).context_space.domain is days
    recipe = Recipe("cgp_ucb", takes_contexts=True)
    assert recipe.is_contextual and recipe.make(BOTH, context_domain=1).context_space.dim == 1
    assert not Recipe("gp_bucb", takes_contexts=True).is_contextual


def test_records_of_a_machine_with_other_last_digits_are_known() -> None:
    """A set of 300 points, which a record describes in short."""
    own = {name: each for name, each in SPACE.parameters.items() if name == "rate"}
    space = bx.Space(own | {"share": bx.Real(0.0, 1.0)})
    X = space.sample(300, seed=3)

    def hosted(points: torch.Tensor) -> HostedStrategy:
        strategy = bx.algorithms.gp_bucb(
            bx.FiniteSet(points), RBFKernel(), noise_variance=0.1, width=2.0
        )
        return HostedStrategy(strategy, space)

    here, trials = hosted(X), []
    for key in range(4):
        here.follow(trials)
        values, record = here.ask()
        trials.append(HostTrial(key, values, "told", float(key), record=record))
    here.follow(trials)
    there = hosted(X * (1 - 1e-15))
    there.follow(trials)
    assert all(there.has_asked(trial) for trial in trials)
    assert there.ask()[0].keys() == here.ask()[0].keys()
    moved = X.clone()
    moved[17] += 1e-3
    swapped = X[[1, 0, *range(2, 300)]]
    for points in (moved, swapped, X.flip(0)):
        other = hosted(points)
        other.follow(trials)
        assert not any(other.has_asked(trial) for trial in trials)
