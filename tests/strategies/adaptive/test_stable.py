"""StableOpt and HE-StableOpt against their definitions, by replay in plain loops."""

import math
import warnings

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import CandidateModels, algorithms
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.strategies import Told
from tests.helpers import fine_ball, rbf
from tests.laws.scenarios import quietly
from tests.oracles.models import RunningTests, check_record, predictions, upper_bounds
from tests.strategies import sessions
from tests.strategies.adaptive import test_candidate_models as several
from tests.strategies.adaptive.judged import log_evidence
from tests.strategies.sessions import LAMBDA, box, data, f, finite, play

pytestmark = quietly
RADIUS = 0.6


def make(domain, policy="hallucinate", name="alone", **more):
    options = {**several.NUMBERS, "seed": 5, "radius": RADIUS, **sessions.POLICIES[policy], **more}
    return algorithms.he_stable_opt(domain, several.candidate_models(name), **options)


def distance(x, z, norm, radii):
    gap = [abs(a - b) / r for a, b, r in zip(x.tolist(), z.tolist(), radii, strict=True)]
    return math.hypot(*gap) if norm == "l2" else max(gap)


def neighbours(points, norm, radii):
    """Of each point the rows within reach."""
    return [
        [j for j, z in enumerate(points) if distance(x, z, norm, radii) <= 1 + 1e-12]
        for x in points
    ]


def check(played, name, radii, norm="l2", eps=0.0, initial=None):
    """Every decision, every test and every rejection; returns the tests."""
    strategy, points = played.strategy, finite().points
    near, tests = (
        neighbours(points, norm, radii),
        RunningTests(len(several.MODELS[name]), several.SIGMA, several.DELTA, eps, num_sides=2),
    )

    def width(model, t, gain):
        enlarged = eps * math.sqrt(t) / math.sqrt(model.noise_variance)
        return several.self_normalized(several.B, several.DELTA / 2)(model, t, gain) + enlarged

    for place, (event, session, question) in enumerate(sessions.questions(played, initial)):
        if question is not None:
            models, info, first = (
                question.models(several.MODELS[name]),
                question.trial.info,
                question.own,
            )
            center, x = info["center_index"], info["index"]
            u, v = info["model"], info["pessimistic"]["model"]
            assert info["center"] == points[center].tolist()
            assert {u, v} <= set(tests.alive)
            assert x in near[center]
            upper = upper_bounds(models, session, width)[:, first + 1 :]
            told = session.believed
            means = torch.stack([model.mean(told.rows, told.y) for model in models])
            lower = 2 * means[:, first + 1 :] - upper
            # x_t, u_t: no alive model has a better worst case anywhere.
            worst = torch.stack([upper[:, own].amin(dim=-1) for own in near], dim=-1)
            assert worst[tests.alive].max() - worst[u, center] <= 1e-7
            # delta_t, v_t: no alive model fears anything worse within reach.
            assert lower[v, x] - lower[tests.alive][:, near[center]].min() <= 1e-7
            for record in (info, info["pessimistic"]):
                expected = predictions(session, models[record["model"]], first, width)
                check_record(record, expected, digits=6)
        if isinstance(event, Told) and session.is_in_time(event.id):
            info = session.info[event.id]
            for side, record in (("optimistic", info), ("pessimistic", info.get("pessimistic"))):
                if "model" in info:
                    tests.tell(session.told.t, event, record, side)
        assert played.alive[place] == tests.alive
    tests.check(strategy.tests)
    check_best(played, name, near, tests.alive, initial)
    assert bool(strategy.report()["all_rejected_at"]) == bool(tests.refused)
    for u, line in enumerate(strategy.report()["models"]):
        for side, own in (("optimistic", line), ("pessimistic", line["pessimistic"])):
            assert own["times_told"] == tests.sums.get((side, u), (0,))[0]
    return tests


def check_best(played, name, near, alive, initial):
    """The centre with the best worst case of the likeliest mean."""
    strategy, points = played.strategy, finite().points
    session, rows = sessions.known(played, initial)
    models = sessions.candidates(several.MODELS[name], torch.cat([rows, points]))
    u = max(alive, key=lambda u: log_evidence(models, session)[u])
    believed = session.believed
    mean = models[u].mean(believed.rows, believed.y)[len(rows) :]
    centers = [] if initial is None else finite().index(initial[0]).tolist()
    for id in strategy.history.values:
        info = strategy.history.trials[id].info
        centers.append(info.get("center_index", info["index"]))
    worst = {i: float(mean[near[i]].min()) for i in centers}
    x, value = strategy.best()
    assert value == pytest.approx(max(worst.values()), rel=1e-6, abs=1e-7)
    assert worst[int(finite().index(x))] == pytest.approx(value, rel=1e-6, abs=1e-7)
    assert strategy.report()["best"]["mean"] == value


@pytest.mark.parametrize(
    ("policy", "name", "more"),
    [
        ("ignore", "lengthscales", {"norm": "linf"}),
        ("hallucinate", "alone", {"norm": "linf", "radius": (0.8, 0.3)}),
        ("inflate", "alone", {"misspecification": 0.03}),
        ("censor", "lengthscales", {"radius": (0.4, 0.7)}),
        ("timeout", "lengthscales", {}),
    ],
)
def test_every_decision_and_every_rejection_is_that_of_the_definition(policy, name, more):
    initial = None
    if policy in ("timeout", "ignore"):
        initial = data(finite(), 5)
        more = more | {"initial": initial, "num_initial": 2}
    strategy = make(finite(), policy, name, **more)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        played = play(strategy, policy, None, 34, seed=21)
    radius = more.get("radius", RADIUS)
    radii = radius if isinstance(radius, tuple) else (radius, radius)
    eps = more.get("misspecification", 0.0)
    tests = check(played, name, radii, more.get("norm", "l2"), eps, initial)
    assert strategy.report()["radius"] == (list(radii) if isinstance(radius, tuple) else radius)
    if policy == "hallucinate":
        assert len(tests.alive) < tests.num_models


def test_both_sides_reject():
    # f lies between -1.9 and 0.1: the high model promises too much, the low one threatens too much.
    models = CandidateModels.prior_means(
        rbf(0.7), [None, sessions.level(6.0), sessions.level(-8.0)], LAMBDA
    )
    strategy = algorithms.he_stable_opt(finite(), models, radius=RADIUS, **several.NUMBERS)
    for _ in range(6):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    failed = {(test.side, test.model) for test in strategy.tests if test.fails}
    assert {("optimistic", 1), ("pessimistic", 2)} <= failed
    assert strategy.alive == [0]
    with warnings.catch_warnings(record=True) as caught:  # it stays, also where it fails
        warnings.simplefilter("always")
        for _ in range(3):
            strategy.tell(strategy.ask().id, 9.0)
    assert strategy.alive == [0]
    assert [test.side for test in strategy.tests[-6:]] == ["optimistic", "pessimistic"] * 3
    assert strategy.tests[-2].fails
    assert len(caught) == 1


@sessions.both_domains
def test_one_model_without_a_radius_is_gp_ucb(domain):
    numbers = {
        "noise_variance": LAMBDA,
        "rkhs_bound": several.B,
        "noise_std": several.SIGMA,
        "seed": 5,
    }
    numbers |= {"initial": data(domain(), 3), **sessions.POLICIES["inflate"]}
    stable = algorithms.stable_opt(domain(), sessions.kernel(), radius=0.0, **numbers)
    plain = algorithms.gp_ucb(domain(), sessions.kernel(), **numbers)
    for strategy in (stable, plain):
        play(strategy, "inflate", None, 20 if domain is finite else 9, seed=28)
    mine, other = (torch.stack([t.x for t in s.history.trials]) for s in (stable, plain))
    # Where both climb the same hill, a flat top leaves half the digits of the point.
    assert_close(mine, other, rtol=1e-5, atol=1e-5)
    assert stable.best()[1] == pytest.approx(plain.best()[1], rel=1e-6)
    for a, b in zip(stable.history.trials, plain.history.trials, strict=True):
        assert a.info.get("width") == pytest.approx(b.info.get("width"), rel=1e-9)


@pytest.mark.parametrize("norm", ["l2", pytest.param("linf", marks=pytest.mark.slow)])
def test_picks_on_a_box_are_at_least_as_good_as_a_fine_search(norm):
    models = CandidateModels([rbf(0.8), rbf(0.4)], [0.02, 0.05], [None, sessions.level(-0.4)])
    strategy = algorithms.he_stable_opt(
        box(), models, radius=0.3, norm=norm, initial=data(box(), 5), **several.NUMBERS
    )
    strategy.ask()
    dense = strategy.clone()
    trial = strategy.ask()
    center = torch.tensor(trial.info["center"], dtype=torch.float64)
    assert bool(box().contains(torch.stack([center, trial.x])).all())
    assert distance(center, trial.x, norm, (0.3, 0.3)) <= 1 + 1e-9

    def bounds(Z, sign):
        mean, half_width = dense.bands(Z)
        return mean + sign * half_width

    # Any centre of a grid, by the grid of its ball: that can only look better than it is.
    around = fine_ball(box().bounds, center, 0.3, norm, 21)
    mine = bounds(around, 1)[trial.info["model"]].min()
    sides = [torch.linspace(*side, 6, dtype=torch.float64) for side in box().bounds.T.tolist()]
    for x in torch.cartesian_prod(*sides):
        for count in (4, 15):  # some of the points are enough where they are worse already
            worst = bounds(fine_ball(box().bounds, x, 0.3, norm, count), 1).amin(dim=-1).max()
            if worst <= mine:
                break
        assert mine >= worst - 2e-3
    asked = bounds(trial.x.unsqueeze(0), -1)[trial.info["pessimistic"]["model"]]
    assert asked <= bounds(around, -1).min() + 1e-8
    with pytest.raises(NoObservationsError):
        algorithms.stable_opt(box(), rbf(0.8), noise_variance=0.1, radius=0.3, width=1.0).best()
    strategy.tell(trial.id, 0.5)
    x, value = strategy.best()
    posterior = strategy.posterior.single(int(strategy.evidence().argmax()))
    centers = [*strategy.initial[0], center]
    worst = [
        posterior.mean_and_std(fine_ball(box().bounds, c, 0.3, norm, 21))[0].min().item()
        for c in centers
    ]
    assert max(worst) - 1e-2 <= value <= max(worst) + 1e-8
    assert x.tolist() in [center.tolist() for center in centers]
