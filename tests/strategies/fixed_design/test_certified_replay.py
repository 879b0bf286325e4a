"""Certified elimination against its pseudo-code, written out in plain loops and dense algebra."""

from collections import Counter
from itertools import pairwise

import pytest
import torch

from botorch_ext import algorithms, delays, simulate
from tests.oracles.certified import Certified, follow
from tests.strategies.fixed_design.certified_sessions import (
    CASES,
    HORIZON,
    PUBLISHED,
    SIXTH,
    followed,
    make,
    numbers,
    played,
)
from tests.strategies.fixed_design.phased_sessions import LAMBDA, play, points, rkhs
from tests.strategies.sessions import box, finite, kernel


@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_pseudo_code(case):
    oracle, strategy = followed(case), played(case)
    assert len(oracle.row) == HORIZON
    assert oracle.certificates == sorted(oracle.certificates, reverse=True)
    report = strategy.report()
    assert report["certificate"] == pytest.approx(oracle.c, rel=1e-7)
    assert sum(report["phases"].values()) == HORIZON - oracle.n.num_initial
    assert oracle.seen["A stayed"] > HORIZON / 2
    # The history of certificates has every change, and nothing twice in a row.
    at, trials = {}, strategy.history.trials
    entries = report["certificates"]
    for last, entry in pairwise(entries):
        assert (last["certificate"], last["volume"]) != (entry["certificate"], entry["volume"])
    for entry in entries:
        assert entry["by"] in trials[entry["trial"]].info
        at[entry["trial"]] = entry
    for id, entry in at.items():  # the last one, where both lines cut
        info = trials[id].info
        assert entry["certificate"] == info["certificate"]
        assert entry["round"] == info["round"] - (entry["by"] == "closing")
    asked = trials[oracle.n.num_initial :]
    changed = {
        trial.id
        for last, trial in pairwise(asked)
        if trial.info["certificate"] != last.info["certificate"]
    }
    decided = {trial.id for trial in trials if {"closing", "cut"} & trial.info.keys()}
    assert changed <= set(at) <= decided


@pytest.mark.parametrize("seed", range(6))
def test_histories_with_lost_and_reordered_observations(seed):
    options = {"width": 0.4 + 0.3 * seed, "kappa": 1 + 0.1 * seed, "share": 0.1 + 0.05 * seed}
    options["buy"] = "always" if seed % 2 else "useful"
    problem = rkhs(finite(), seed=seed)
    strategy = make(problem.domain, **options)
    play(strategy, problem, seed=20 + seed)
    oracle = follow(Certified(numbers(**options)), make(finite(), **options), strategy.events)
    assert len(oracle.row) == HORIZON


def test_the_cases_have_everything_in_them():
    seen = Counter()
    for case in CASES:
        seen += followed(case).seen
    for what in (
        *("free", "block", "wait", "rest", "rested", "blocks", "eliminated"),
        *("closed", "closed without all of the block", "told too late", "bought more"),
        *("put off", "pending would not do", "abandoned in a block"),
    ):
        assert seen[what] > 0, what
    assert any(followed(case).c < 0.2 for case in CASES)


@pytest.mark.parametrize("num_initial", [0, 40])
def test_published_widths_share_delta_among_rounds_points_and_two_bounds(num_initial):
    options = {**PUBLISHED, "num_initial": num_initial}
    strategy = make(finite(), **options)
    oracle = Certified(numbers(**options))
    assert oracle.R == (4 if num_initial == 0 else 3)
    width = float(strategy.block_width(1, strategy.model))
    assert width == pytest.approx(oracle.w_F(), rel=1e-12)
    assert float(strategy.told_width(1, strategy.model)) == pytest.approx(oracle.w_S(), rel=1e-12)
    assert strategy.certificate == 2 * PUBLISHED["rkhs_bound"]
    on_box = make(box(), **options).block_width
    assert (on_box.delta, on_box.num_rounds) == (PUBLISHED["delta"] / 2, oracle.R)


def test_any_rule_may_play_the_free_steps():
    asked = []

    def worst(model, region, pending, seed):
        """The point of the least mean: as bad as the region allows."""
        asked.append((model.num_observations, len(pending)))
        return region.points[model.mean_and_std(region.points)[0].argmin()]

    options = {"width": 1.0, "buy": "always", "share": 0.5, "free": worst}
    problem = rkhs(finite())
    strategy = make(problem.domain, **options)
    trace = simulate(strategy, problem, HORIZON, delay=delays.Poisson(4.0), seed=2)
    oracle = Certified(numbers(**options), free=False)
    follow(oracle, make(problem.domain, **options), strategy.events)
    phases = [trial.info["phase"] for trial in strategy.history.trials]
    assert len(asked) == HORIZON - phases.count("block")
    assert max(pending for _, pending in asked) > 0
    # The true widths are less than 1 here: what is certified holds.
    certified = [oracle.certificates[i] for i in range(HORIZON)]
    assert all(r <= c + 1e-9 for r, c in zip(trace.regret.tolist(), certified, strict=True))
    assert min(certified) < 0.5


@pytest.mark.parametrize("buy", ["useful", "always"])
def test_without_blocks_so_far_it_is_gp_bucb(buy):
    problem = rkhs(finite())
    strategy = make(problem.domain, **SIXTH, buy=buy)
    other = algorithms.gp_bucb(problem.domain, kernel(), noise_variance=LAMBDA, seed=3, **SIXTH)
    for one in (strategy, other):
        simulate(one, problem, 10, delay=delays.Poisson(5.0), seed=6)
    assert torch.equal(points(strategy), points(other))
    assert [trial.info["phase"] for trial in strategy.history.trials] == ["free"] * 10


@pytest.mark.parametrize(
    ("seed", "delay", "id", "phase"), [(6, 5, 10, "rest"), (9, 0, 115, "block")]
)
def test_a_block_is_useful_above_four_times_its_promise(seed, delay, id, phase):
    problem, width = rkhs(finite(), seed=seed), 0.5
    strategy = make(problem.domain, width=width)
    simulate(strategy, problem, HORIZON, delay=delays.Fixed(delay), seed=4)
    info = strategy.history.trials[id].info
    assert info["phase"] == phase
    assert info["certificate"] / (width * info["plan"]["promise"]) == pytest.approx(4, abs=0.2)
    follow(Certified(numbers(width=width)), make(problem.domain, width=width), strategy.events)


def test_a_block_is_put_off_for_a_round_at_most():
    problem, options = rkhs(finite()), {"width": 0.2, "free_width": 2.0}
    strategy = make(problem.domain, **options)
    for id in range(HORIZON):
        trial = strategy.ask()
        if id < strategy.schedule.length(1):  # nothing comes of the others
            strategy.tell(id, float(problem(trial.x)))
    cuts = [trial.info["cut"] for trial in strategy.history.trials if "cut" in trial.info]
    assert sum(cut["put_off"] for cut in cuts) == strategy.schedule.length(2)
    follow(Certified(numbers(**options)), make(problem.domain, **options), strategy.events)


def test_the_first_block_is_never_put_off():
    options, horizon = {"width": 1.0}, 600
    strategy = make(finite(), horizon, **options)
    strategy.ask(30)
    cut = next(trial.info["cut"] for trial in strategy.history.trials if "cut" in trial.info)
    assert not cut["put_off"]
    # What pends would do.
    assert strategy.posterior.std.max() < 0.5
    follow(
        Certified(numbers(horizon, **options)), make(finite(), horizon, **options), strategy.events
    )


def test_a_block_is_put_off_only_for_what_pended_when_it_was_due():
    problem, options = rkhs(finite()), {"width": 0.2, "free_width": 2.0}
    strategy = make(problem.domain, **options)
    put_off, watched = [], None
    while len(strategy.history.trials) < 70:
        if len(put_off) == 21:
            for id in watched:
                strategy.abandon(id)
        pending = strategy.pending
        trial = strategy.ask()
        if trial.id < 14:  # nothing comes of the others
            strategy.tell(trial.id, float(problem(trial.x)))
        if "cut" in trial.info and trial.info["round"] == 2:
            watched = pending if watched is None else watched
            put_off.append(trial.info["cut"]["put_off"])
    # Twenty others still pend then, which would do.
    assert put_off == [True] * 21 + [False]
    follow(Certified(numbers(**options)), make(problem.domain, **options), strategy.events)
