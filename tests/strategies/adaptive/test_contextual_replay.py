"""CGP-UCB and action sets: every pick is a maximiser, by replay through dense algebra.

The histories have late, reordered, lost and timed-out observations.
"""

import math
from itertools import cycle

import pytest

from botorch_ext import KernelGP, OptimisticStrategy, algorithms, widths
from botorch_ext.strategies import Told
from tests.strategies.adaptive.contextual_replay import check_optimistic
from tests.strategies.adaptive.contextual_sessions import (
    ARD,
    NOISE_VARIANCE,
    SETTINGS,
    contextual_data,
    offers,
    play,
    policy_options,
    rbf,
    rbf_of,
)
from tests.strategies.adaptive.model_sessions import grid
from tests.strategies.sessions import POLICIES, all_policies, box, data, finite, script

B, SIGMA, DELTA, EPS = 1.5, 0.1, 0.1, 0.05
NUMBERS = {
    "noise_variance": NOISE_VARIANCE,
    "rkhs_bound": B,
    "noise_std": SIGMA,
    "delta": DELTA,
}


def self_normalized(model, t, gain):
    ratio = SIGMA / math.sqrt(model.noise_variance)
    return ratio * math.sqrt(2 * math.log(1 / DELTA) + 2 * gain) + B


def chowdhury_gopalan(model, t, gain):
    ratio = SIGMA / math.sqrt(model.noise_variance)
    return B + ratio * math.sqrt(2 * (gain + 1 + math.log(1 / DELTA)))


def enlarged(model, t, gain):
    return self_normalized(model, t, gain) + EPS * math.sqrt(t) / math.sqrt(model.noise_variance)


# name: options of cgp_ucb, the width written out
WIDTHS = {
    "self-normalized": ({}, self_normalized),
    "enlarged": ({"misspecification": EPS}, enlarged),
    "chowdhury-gopalan": (
        {"width": widths.ChowdhuryGopalan(B, SIGMA, DELTA)},
        chowdhury_gopalan,
    ),
    "constant": ({"width": 0.8}, lambda model, t, gain: 0.8),
}


def make(name, domain, policy, kind="enlarged", **more):
    setting = SETTINGS[name]
    options, _ = WIDTHS[kind]
    return algorithms.cgp_ucb(
        domain,
        **setting.parts(),
        context_domain=setting.domain(),
        **{**NUMBERS, **options, **policy_options(policy), **more},
    )


def check(name, domain, policy, kind="enlarged", length=50, seed=71, share=0.4, fine=None, **more):
    setting = SETTINGS[name]
    strategy = make(name, domain, policy, kind, **more)
    chosen_from = play(
        strategy, script(length, seed), offers(setting, domain, 3 * length, seed, share)
    )
    _, width = WIDTHS[kind]
    initial = more.get("initial")
    num_picks = check_optimistic(
        strategy, policy, chosen_from, setting.gram, NOISE_VARIANCE, width, initial, fine
    )
    return strategy, num_picks


# --- finite sets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        *zip(cycle(["product", "tasks"]), POLICIES),
        ("tasks", "ignore"),
        ("sum", "ignore"),
        ("sum", "censor"),
        ("sum of tasks", "hallucinate"),
        ("sum of tasks", "timeout"),
        ("hours and tasks", "inflate"),
        ("hours and tasks", "timeout"),
        ("any joint kernel", "ignore"),
        ("any joint kernel", "inflate"),
    ],
)
def test_every_pick_is_a_maximiser_at_its_context(name, policy):
    strategy, num_picks = check(name, finite(), policy)
    assert num_picks > 18
    told = [event.id for event in strategy.events if isinstance(event, Told)]
    assert told != sorted(told)
    assert strategy.history.abandoned
    assert bool(strategy.report()["told_too_late"]) == (policy == "timeout")


@pytest.mark.parametrize("kind", WIDTHS)
def test_with_every_width(kind):
    check("product", finite(), "hallucinate", kind, length=36, seed=72)


@all_policies
def test_initial_data_and_initial_points_count_as_steps(policy):
    initial = contextual_data(SETTINGS["product"], finite(), 6)
    strategy, num_picks = check(
        "product", finite(), policy, length=40, seed=73, initial=initial, num_initial=3
    )
    assert [trial.info.get("initial", False) for trial in strategy.history.trials[:4]] == [
        True,
        True,
        True,
        False,
    ]
    assert num_picks > 10


# --- action sets alone ----------------------------------------------------------------------------


@all_policies
@pytest.mark.parametrize("domain", [finite, box])
def test_action_sets_without_contexts(domain, policy):
    initial = data(domain(), 3)
    strategy = OptimisticStrategy(
        domain(),
        KernelGP(rbf(ARD), NOISE_VARIANCE),
        widths.Enlarged(widths.SelfNormalized(B, SIGMA, DELTA), EPS),
        initial=initial,
        **policy_options(policy),
    )
    length = 60 if domain is finite else 24
    chosen_from = play(strategy, script(length, 74), offers(None, domain(), 3 * length, 74, 0.8))
    check_optimistic(
        strategy, policy, chosen_from, rbf_of(ARD), NOISE_VARIANCE, enlarged, initial, grid(15)
    )


# --- boxes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "policy"), list(zip(SETTINGS, [*POLICIES, "hallucinate"], strict=True))
)
def test_no_action_of_a_fine_grid_beats_a_pick_on_a_box(name, policy):
    initial = contextual_data(SETTINGS[name], box(), 4)
    strategy, num_picks = check(
        name, box(), policy, length=26, seed=75, fine=grid(15), initial=initial, num_initial=1
    )
    assert num_picks > 8
    assert all(box().contains(trial.x).all() for trial in strategy.history.trials)
