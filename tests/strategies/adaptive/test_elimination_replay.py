"""HE-GP-UCB against its definition: every pick a maximiser, every rejection the same and no other.

The histories are replayed through plain loops and dense algebra (`model_oracle`), which share no
code with the library.
"""

import math
import warnings
from itertools import cycle

import pytest
import torch

from botorch_ext import CandidateModels, algorithms, widths
from botorch_ext.strategies import Abandoned, Asked, Told
from botorch_ext.testing.nearness import assert_near
from tests.helpers import devices, tolerance
from tests.oracles.models import (
    Candidate,
    EliminationTest,
    Session,
    check_record,
    predictions,
    upper_bounds,
    xi,
)
from tests.strategies.adaptive.model_sessions import (
    DELTA,
    NUMBERS,
    SETS,
    SIGMA,
    B,
    grid,
    level,
    make,
    oracle,
    play_and_note,
    rbf,
    self_normalized,
)
from tests.strategies.sessions import LAMBDA, POLICIES, box, data, f, finite, kernel, play, script

EPS = 0.04
TOL = tolerance(torch.float64)


class WithOffset(widths.Width):
    """A width and an offset that depend on the step."""

    def __call__(self, t, model):
        return 0.4 + 0.02 * t

    def offset(self, t, model):
        return 0.3 / t


def chowdhury_gopalan(model, t, gain):
    ratio = SIGMA / math.sqrt(model.noise_variance)
    return B + ratio * math.sqrt(2 * (gain + 1 + math.log(2 / DELTA)))


def bayes_finite(model, t, gain):
    return math.sqrt(2 * math.log(54 * math.pi**2 * t**2 / (3 * DELTA)))


def enlarged(model, t, gain):
    return self_normalized()(model, t, gain) + EPS * math.sqrt(t) / math.sqrt(model.noise_variance)


EACH = [0.3, 0.5, widths.SelfNormalized(0.7, SIGMA, DELTA / 2), 0.2, 0.4, 0.6]


def each(model, t, gain):
    u = model.position
    return self_normalized(0.7)(model, t, gain) if u == 2 else EACH[u]


# name: options of he_gp_ucb, the width written out, its offset
WIDTHS = {
    "frequentist": ({}, self_normalized(), None),
    "chowdhury_gopalan": (
        {"width": widths.ChowdhuryGopalan(B, SIGMA, DELTA / 2)},
        chowdhury_gopalan,
        None,
    ),
    "bayesian": ({"setting": "bayesian", "rkhs_bound": None}, bayes_finite, None),
    "constant": ({"width": 0.6}, lambda model, t, gain: 0.6, None),
    "misspecified": ({"misspecification": EPS}, enlarged, None),
    "one for each": ({"width": EACH}, each, None),
    "offset": ({"width": WithOffset()}, lambda model, t, gain: 0.4 + 0.02 * t, lambda t: 0.3 / t),
}


def check(strategy, alive_after, candidates, policy, width, row, offset=None, eps=0.0, initial=()):
    """Replays a history; returns the test it ends with."""
    offset = (lambda t: 0.0) if offset is None else offset
    session = Session(policy, row, initial or ([], []))
    test = EliminationTest(len(candidates), SIGMA, DELTA, eps)
    records = {record.t: record for record in strategy.tests}
    assert len(records) == len(strategy.tests)
    matched = 0
    for event, alive in zip(strategy.events, alive_after, strict=True):
        if isinstance(event, Asked) and not event.trial.info.get("initial"):
            info, x = event.trial.info, row(event.trial)
            u = info["model"]
            # The pick: no alive model promises more anywhere.
            bounds = upper_bounds(candidates, session, width, offset)
            assert u in test.alive
            # Rounding of a posterior with condition number 1e4 leaves about nine digits.
            assert bounds[test.alive].max().item() - bounds[u, x].item() <= 1e-7
            check_record(info, predictions(session, candidates[u], x, width, offset))
        session.apply(event)
        if isinstance(event, Told) and event.id in session.values:
            info = session.info[event.id]
            if not info.get("initial"):
                u, t = info["model"], session.told.t - 1
                was_alive = u in test.alive
                told = info["told"]
                bound = told["width"] * told["std"] + told["offset"]
                test.tell(u, event.value - told["mean"], bound, t)
                if was_alive:
                    record = records[t]
                    matched += 1
                    assert record.model == u
                    assert record.error == pytest.approx(test.error(u), **abs_and_rel(1e-9))
                    assert record.trial == event.id
                    assert record.count == len(test.errors[u])
                    assert record.bound == pytest.approx(test.allowance(u, t), **abs_and_rel(1e-9))
                    assert record.fails == (test.rejected_at.get(u) == t or t in test.refused)
        assert alive == test.alive
    assert matched >= 6
    assert list(strategy.alive) == test.alive
    check_report(strategy, test)
    return test


def abs_and_rel(value):
    return {"rel": value, "abs": value}


def check_report(strategy, test):
    lines = strategy.report()["models"]
    assert [line["name"] for line in lines] == list(strategy.names)
    for u, line in enumerate(lines):
        assert line["status"] == ("rejected" if u in test.rejected_at else "alive")
        assert line["rejected_at"] == test.rejected_at.get(u)
        assert line["margin"] == pytest.approx(
            line["bound"] - abs(line["running_error"]), **abs_and_rel(1e-9)
        )
        if u not in test.rejected_at:
            assert line["times_played"] >= len(test.errors[u])
            assert line["running_error"] == pytest.approx(test.error(u), **abs_and_rel(1e-9))


def on_finite(
    policy="hallucinate", kind="frequentist", name="mixed", seed=21, device="cpu", **more
):
    """Plays a set of models on the finite set and checks it all."""
    options, width, offset = WIDTHS[kind]
    domain, initial = finite(device=device), ()
    if "initial" in more:
        X, Y = more["initial"]
        initial = (domain.index(X).tolist(), Y.tolist())
    strategy = make("he_gp_ucb", domain, policy, name, **options, **more)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        alive_after = play_and_note(strategy, script(110, seed))
    test = check(
        strategy,
        alive_after,
        oracle(name, finite().points),
        policy,
        width,
        lambda trial: trial.info["index"],
        offset,
        EPS if kind == "misspecified" else 0.0,
        initial,
    )
    # One warning when the last model would have been rejected, however often it would have been.
    lines = strategy.report()["warnings"]
    assert [str(warning.message) for warning in caught] == lines
    assert len(lines) == bool(test.refused)
    return test


def some_of(test):
    """Whether models were rejected and models were kept."""
    return 0 < len(test.rejected_at) < test.num_models


@pytest.mark.parametrize(
    ("name", "device"),
    [*((name, "cpu") for name in SETS), ("mixed", devices()[1])],
    indirect=["device"],
)
def test_every_pick_and_every_rejection_is_that_of_the_definition(name, device):
    assert some_of(on_finite(name=name, device=device))


@pytest.mark.parametrize(("policy", "name"), list(zip(POLICIES, cycle(["mixed", "periods"]))))
def test_with_every_pending_policy(policy, name):
    assert on_finite(policy, name=name, seed=23).rejected_at


@pytest.mark.parametrize(("policy", "kind"), list(zip(cycle(["hallucinate", "ignore"]), WIDTHS)))
def test_with_every_width(policy, kind):
    # Far-off prior means, where the widths are wide.
    name = "high means" if kind == "bayesian" else "mixed"
    assert some_of(on_finite(policy, kind, name, seed=25))


def test_with_initial_data_and_initial_points_which_count_as_steps():
    test = on_finite("timeout", name="periods", initial=data(finite(), 7), num_initial=4)
    assert some_of(test)
    assert min(test.rejected_at.values()) > 7 + 1


def test_data_the_models_hold_counts_like_initial_data():
    X, Y = data(finite(), 6)
    models = SETS["mixed"][0]()
    models.add(X, Y)
    told = algorithms.he_gp_ucb(finite(), models, seed=5, **NUMBERS)
    given = make("he_gp_ucb", finite(), initial=(X, Y))
    for strategy in (told, given):
        play(strategy, script(40, seed=24))
    for a, b in zip(told.history.trials, given.history.trials, strict=True):
        assert_near(a.info, b.info)
    assert told.alive == given.alive
    assert models.num_observations == 6  # what was given stays as it is


def test_the_noise_term_of_the_test_written_out():
    # 2 R^2 ln(2 |U| pi^2 t^2 / (3 delta)): |U| counts all models, t = 1 at the first observation.
    expected = 2 * 0.0009 * math.log(2 * 3 * math.pi**2 * 25 / 0.3)
    assert xi(5, 3, 0.03, 0.1) == pytest.approx(expected, rel=1e-12)
    strategy = make("he_gp_ucb", finite(), name="means", width=0.0, initial=data(finite(), 4))
    trial = strategy.ask()
    strategy.tell(trial.id, trial.info["mean"] + 0.01)
    (record,) = strategy.tests
    assert record.t == 5
    assert record.error == pytest.approx(0.01, abs=1e-12)
    assert record.bound == pytest.approx(math.sqrt(expected), rel=1e-9)


@pytest.mark.parametrize("outside", [False, True])
def test_the_threshold_is_where_the_formula_puts_it(outside):
    # One observation a millionth within the allowance, and one a millionth beyond it.
    strategy = make("he_gp_ucb", finite(), name="means")
    trial = strategy.ask()
    info = trial.info
    allowance = math.sqrt(xi(1, 3, SIGMA, DELTA)) + info["width"] * info["std"]
    for sign in (-1,) if outside else (1, -1):
        twin = make("he_gp_ucb", finite(), name="means")
        twin.ask()
        twin.tell(0, info["mean"] + sign * allowance * (1 + (1e-6 if outside else -1e-6)))
        assert (info["model"] in twin.alive) == (not outside)


def test_errors_of_different_sign_cancel():
    # The test looks at the sum, so a model may err to and fro.
    strategy = make("he_gp_ucb", finite(), name="means", width=0.05)
    first = strategy.ask().info
    rejected = make("he_gp_ucb", finite(), name="means", width=0.05)
    rejected.ask()
    strategy.tell(0, first["mean"] + 0.14)
    second = strategy.ask().info
    assert second["model"] == first["model"]
    strategy.tell(1, second["mean"] - 0.2)
    assert first["model"] in strategy.alive
    rejected.tell(0, first["mean"] - 0.2)
    assert first["model"] not in rejected.alive


def test_abandoned_trials_are_no_part_of_any_test():
    strategy, twin = (make("he_gp_ucb", finite()) for _ in range(2))
    for s in (strategy, twin):
        s.tell(s.ask().id, -0.1)
    strategy.abandon(strategy.ask().id)
    for s in (strategy, twin):
        trial = s.ask()
        s.tell(trial.id, -0.3)
    mine, other = ([(r.t, r.model, r.error, r.bound) for r in s.tests] for s in (strategy, twin))
    assert mine == other


# --- on a box -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        pytest.param("hallucinate", "mixed", marks=pytest.mark.slow),
        ("timeout", "means"),
        ("hallucinate", "additive"),
    ],
)
def test_no_point_of_a_fine_grid_and_no_model_beats_a_pick_on_a_box(policy, name):
    X, Y = data(box(), 3)
    strategy = make("he_gp_ucb", box(), policy, name, initial=(X, Y))
    alive_after = play_and_note(strategy, script(34, seed=26))
    asked = torch.stack([trial.x for trial in strategy.history.trials])
    fine = grid(21)
    points = torch.cat([fine, X, asked])
    initial = list(range(len(fine), len(fine) + len(X)))
    test = check(
        strategy,
        alive_after,
        oracle(name, points),
        policy,
        self_normalized(),
        lambda trial: len(fine) + len(X) + trial.id,
        initial=(initial, Y.tolist()),
    )
    assert test.rejected_at or name == "additive"


# --- one model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["frequentist", "bayesian"])
def test_one_model_is_gp_ucb_with_half_the_delta(setting):
    numbers = {"noise_std": 0.1, "delta": 0.1}
    if setting == "frequentist":
        numbers["rkhs_bound"] = 1.5
        plain = algorithms.gp_ucb(
            finite(), kernel(), noise_variance=LAMBDA, **{**numbers, "delta": 0.05}
        )
    else:
        width = widths.BayesFinite(54, 0.05)
        plain = algorithms.gp_ucb(finite(), kernel(), noise_variance=LAMBDA, width=width)
    models = CandidateModels(kernel(), LAMBDA)
    he = algorithms.he_gp_ucb(finite(), models, setting=setting, **numbers)
    for strategy in (he, plain):
        for _ in range(20):
            trial = strategy.ask()
            strategy.tell(trial.id, f(trial.x))
    for a, b in zip(he.history.trials, plain.history.trials, strict=True):
        assert a.info["index"] == b.info["index"]
        assert a.info["width"] == pytest.approx(b.info["width"], rel=1e-12)


# --- this file ------------------------------------------------------------------------------------


def test_the_oracle_rejects_models_and_keeps_models():
    # Two models that differ in their prior mean alone; what follows can be reckoned by hand.
    points = finite().points
    models = [Candidate.at(points, rbf(0.7), LAMBDA, mean) for mean in (None, level(9.0))]
    test = EliminationTest(2, 0.1, 0.1)
    test.tell(1, -0.5 - 9.0, 2.0, 1)
    assert test.rejected_at == {1: 1}
    assert test.allowance(1, 1) == pytest.approx(
        2.0 + math.sqrt(0.02 * math.log(4 * math.pi**2 / 0.3)), rel=1e-12
    )
    test.tell(0, 0.9, 0.5, 2)
    test.tell(0, 0.9, 0.5, 3)
    assert test.alive == [0]
    assert test.refused == [2, 3]
    assert [m.mean([], [])[0].item() for m in models] == [0.0, 9.0]
    session = Session("timeout", lambda trial: trial.info["index"])
    for event in (Abandoned(0), Told(1, 0.5)):
        session.rows.update({0: 3, 1: 4})
        session.apply(event)
    assert session.told.rows == session.believed.rows == [4]
