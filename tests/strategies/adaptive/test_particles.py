"""Methods over hyperparameter samples: integrated_ei and credible_ucb over particles, each question
against dense algebra, and what they do with odd data."""

import math
from functools import cache

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.search.trust_region import region_around
from botorch_ext.strategies import Asked
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.testing.states import question
from tests.oracles.particles import dense_log_improvement, hull, model_of, standardised

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])
SET = bx.FiniteSet(BOX.sample(80, 1))
FEW = Particles(8)
both = pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
METHODS = {"integrated_ei": bx.algorithms.integrated_ei, "credible": bx.algorithms.credible_ucb}
both_methods = pytest.mark.parametrize("method", METHODS)


def f(x):
    return float(torch.sin(2 * x[0]) - (x[-1] + 2) ** 2)


def make(method, domain=BOX, particles=FEW, **options):
    return METHODS[method](domain, particles, **{"num_initial": 3, **options})


def played(method, steps, domain=BOX, waits=False, **options):
    """Every third trial stays pending, if that is said."""
    strategy = make(method, domain, **options)
    for step in range(steps):
        trial = strategy.ask()
        if not waits or step % 3 != 1:
            strategy.tell(trial.id, f(trial.x))
    return strategy


@cache
def known(method):
    """A strategy after some results; a test plays a clone."""
    return played(method, 6)


def grid(num=41):
    axes = [torch.linspace(a, b, num, dtype=torch.float64) for a, b in BOX.bounds.T.tolist()]
    return torch.cartesian_prod(*axes)


def dense_bounds(strategy, info, points, pending, width, c):
    """Of each credible particle of a trial its place, and means, standard deviations and upper
    bounds at points: ``m x n`` each."""
    X, Y = strategy.evaluated()
    U, V, F = (hull(strategy.domain).to_unit(Z) for Z in (X, torch.cat([X, pending]), points))
    y, center, scale = standardised(Y)
    places = [u for u, value in enumerate(info["values"]) if max(info["values"]) - value <= c]
    means, stds = [], []
    for u in places:
        kernel, noise = model_of(torch.tensor(info["parameters"][u], dtype=torch.float64))
        inverse = (kernel(U, U) + noise * torch.eye(len(U))).inverse()
        constant = (inverse @ y).sum() / inverse.sum()
        mean = constant + kernel(F, U) @ inverse @ (y - constant)
        k = kernel(V, F)
        spent = k * torch.linalg.solve(kernel(V, V) + noise * torch.eye(len(V)), k)
        means.append(center + scale * mean)
        stds.append(scale * (1 - spent.sum(dim=0)).clamp_min(0).sqrt())
    means, stds = torch.stack(means), torch.stack(stds)
    return places, means, stds, means + width * stds


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        (SET, {"credibility": 1.0, "width": 0.7}),
        (SET, {"delta": 0.7, "width": 3.0}),
        pytest.param(BOX, {}, marks=pytest.mark.slow),
    ],
)
def test_every_decision_is_the_highest_bound_of_the_credible_particles(domain, options):
    strategy = played("credible", 12, domain, waits=True, **options)
    width = options.get("width", 2.0)
    c = options.get("credibility", math.log(8 / options.get("delta", 0.1)))
    again, particles, sizes, num = make("credible", domain, **options), None, [], 0
    for event in strategy.events:
        if isinstance(event, Asked) and not event.trial.info.get("initial"):
            trial, info = event.trial, event.trial.info
            particles = info.get("particles", particles)
            points = domain.points if domain is SET else grid()
            points = torch.cat([trial.x[None], points])
            pending = [again.history.trials[id].x for id in again.pending]
            pending = torch.stack(pending) if pending else points[:0]
            places, means, stds, bounds = dense_bounds(again, particles, points, pending, width, c)
            u = places.index(info["model"])
            assert_close(info["mean"], float(means[u, 0]), rtol=1e-6, atol=1e-7)
            assert_close(info["std"], float(stds[u, 0]), rtol=1e-6, atol=1e-7)
            spread = float(bounds.max() - bounds.amax(dim=0).min())
            assert bounds[u, 0] >= bounds.max() - 1e-7 * spread
            sizes.append(len(places))
            num += 1
        again.replay([event])
    assert num == 9
    assert min(sizes) < 8  # some particles are not credible
    report = again.report()
    assert report["credibility"] == pytest.approx(c)
    assert report["current_width"] == width
    # The bands of the next question are what is played.
    X = domain.sample(40, 5)
    bands = again.bands(X)
    assert bands[0].shape == bands[1].shape == (report["num_credible"], 40)
    trial = again.clone().ask()
    top = trial.info["mean"] + width * trial.info["std"]
    assert sum(bands).max() <= top + 1e-9
    assert_close(float(sum(again.bands(trial.x[None])).max()), top, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("num_pending", [0, 2])
def test_the_question_is_the_highest_log_improvement_of_the_dense_models(num_pending):
    """Of the recorded particles, by textbook algebra, on a grid."""
    strategy = known("integrated_ei").clone()
    first = strategy.ask()
    trials = [first, *(strategy.ask() for _ in range(num_pending))]
    points = torch.cat([trials[-1].x[None], grid(31)])
    pending = torch.stack([trial.x for trial in trials])[:-1]
    values = dense_log_improvement(strategy, first, points, pending)
    assert_close(float(values[0]), trials[-1].info["log_improvement"], rtol=1e-4, atol=1e-4)
    assert values[0] > values[1:].max() - 1e-4
    # Only the first knows something new.
    assert ["particles" in trial.info for trial in trials] == [True] + num_pending * [False]


@pytest.mark.slow
def test_large_sets_are_looked_at_by_a_few_models_first():
    points = BOX.sample(6000, 0)
    strategy = played("integrated_ei", 7, bx.FiniteSet(points))
    trial = strategy.ask()
    values = dense_log_improvement(strategy, trial, points, points[:0])
    assert values.max() - trial.info["log_improvement"] < 1e-4


def noisy(trial, means):
    return means[trial.info["index"]] + 0.5 * math.sin(7.0 * trial.id**2)


def test_points_of_a_set_are_asked_again():
    """What another observation teaches counts where everything was asked: in turn, the best more
    often, and those that were tried once are not forgotten."""
    means = [0.0, 0.4, 0.5, 0.1, 0.45, -3.0]
    arms = bx.FiniteSet(torch.arange(6.0, dtype=torch.float64).unsqueeze(-1))
    strategy = make("integrated_ei", arms, num_initial=6)
    for _ in range(26):
        trial = strategy.ask()
        strategy.tell(trial.id, noisy(trial, means))
    asked = [trial.info["index"] for trial in strategy.history.trials]
    counts = [asked.count(arm) for arm in range(6)]
    assert counts[5] == 1
    assert sorted(counts)[-3] >= 3


@both_methods
def test_the_report_has_the_quartiles_of_the_particles(method):
    strategy = known(method).clone()
    info, Y = strategy.ask().info["particles"], strategy.evaluated()[1]
    columns = torch.tensor(info["parameters"], dtype=torch.float64)
    of, report = columns.new_tensor([0.25, 0.5, 0.75]), strategy.report()
    assert report["num_particles"] == 8
    lengthscales = columns[:, :2].exp().quantile(of, dim=0)
    assert_close(torch.tensor(report["lengthscales"]).double(), lengthscales)
    assert_close(torch.tensor(report["smoothness"]).double(), columns[:, 3].sigmoid().quantile(of))
    if not info.get("bend"):
        noise_std = (columns[:, 2] / 2).exp() * standardised(Y)[2]
        assert_close(torch.tensor(report["noise_std"]).double(), noise_std.quantile(of))


@pytest.mark.parametrize(
    ("space", "context"),
    [(3, [0.1, 0.2, 0.3]), (bx.FiniteSet([[0.0], [1.0], [2.0]]), [1.0]), (ContextSpace(), [0.1])],
)
def test_in_contexts_it_can_be_asked_and_read_before_anything_is_told(space, context):
    strategy = make("integrated_ei", num_initial=0, context_domain=space)
    assert strategy.report()["num_particles"] == 8
    X = torch.stack([strategy.ask(context=context).x for _ in range(2)])
    assert torch.pdist(BOX.to_unit(X)).min() > 0.1
    strategy.tell(1, 0.3)
    assert BOX.contains(strategy.ask(context=context).x).all()


@both_methods
@both
def test_before_anything_is_told_the_prior_is_played(method, domain):
    X = torch.stack([trial.x for trial in make(method, domain, num_initial=0).ask(3)])
    assert torch.pdist(BOX.to_unit(X)).min() > 0.1


@pytest.mark.parametrize("num_given", [0, 5, 8, 20])
@pytest.mark.parametrize("attached", [False, True])
def test_results_stand_for_first_points_where_no_number_is_said(num_given, attached):
    X, num_sobol = SET.sample(num_given, 3), max(8 - num_given, 0)
    Y = X.new_tensor([f(x) for x in X])
    initial = (X, Y) if num_given and not attached else None
    strategy = make("integrated_ei", SET, initial=initial, num_initial=None)
    for x, y in zip(X, Y, strict=True) if attached else ():
        strategy.attach(x, y)
    trials = strategy.ask(num_sobol + 1)
    assert ["particles" in trial.info for trial in trials] == num_sobol * [False] + [True]
    # A number that is said is kept.
    said = make("integrated_ei", SET, initial=initial, num_initial=2)
    assert ["initial" in trial.info for trial in said.ask(3)] == [True, True, False]


def test_first_points_go_on_where_those_that_are_known_left_off():
    first = [trial.x for trial in make("integrated_ei", num_initial=None).ask(8)]
    X = torch.stack(first[:3])
    initial = (X, X.new_tensor([0.1, 0.2, 0.3]))
    strategy = make("integrated_ei", initial=initial, num_initial=None)
    strategy.attach(first[3], 0.4)
    assert [trial.x.tolist() for trial in strategy.ask(4)] == [x.tolist() for x in first[4:]]
    on_set = make("integrated_ei", bx.FiniteSet(BOX.sample(12, 5)), num_initial=None)
    known = on_set.next_trial(Choices())
    on_set.attach(known.x, 0.1)
    assert len({trial.info["index"] for trial in [known, *on_set.ask(7)]}) == 8


def test_a_trial_that_was_given_up_stands_for_no_first_point():
    strategy = make("integrated_ei", num_initial=None)
    trials = strategy.ask(8)
    for trial in trials[:3]:
        strategy.abandon(trial.id)
    more = strategy.ask(4)
    assert ["initial" in trial.info for trial in more] == [True, True, True, False]
    assert len({tuple(trial.x.tolist()) for trial in trials + more[:3]}) == 11
    with pytest.raises(ValueError, match="num_initial"):
        bx.algorithms.gp_bucb(BOX, bx.Fitted(), width=2.0, num_initial=None)


@pytest.mark.parametrize(
    ("num_failed", "num_given", "num_more"),
    [(3, 0, 0), (5, 0, 0), (6, 0, 1), (8, 0, 3), (6, 1, 1), (7, 1, 2), (5, 3, 0)],
)
def test_failed_trials_stand_for_first_points_once_three_results_are_there(
    num_failed, num_given, num_more
):
    X = BOX.sample(num_given, 3)
    initial = (X, X.new_tensor([f(x) for x in X])) if num_given else None
    strategy = make("integrated_ei", initial=initial, num_initial=None)
    trials = strategy.ask(8 - num_given)
    for trial in trials:
        if trial.id < num_failed:
            strategy.abandon(trial, failed=True)
        else:
            strategy.tell(trial, f(trial.x))
    more = strategy.ask(num_more + 1)
    assert ["initial" in trial.info for trial in more] == num_more * [True] + [False]
    again = make("integrated_ei", initial=initial, num_initial=None)
    again.replay(strategy.events)
    assert question(again, {}) == question(strategy, {})


def test_a_study_that_asked_more_first_points_after_failures_opens():
    old, strategy = (make("integrated_ei", num_initial=num) for num in (12, None))
    for trial in old.ask(8):
        old.abandon(trial, failed=True) if trial.id < 4 else old.tell(trial, f(trial.x))
    strategy.replay(old.events)
    assert "particles" in strategy.clone().ask().info
    strategy.replay([Asked(old.ask())])
    assert "initial" in strategy.history.trials[8].info
    assert "particles" in strategy.ask().info


def test_first_points_of_many_inputs_lie_in_the_middle_half_of_each_side():
    def first(box, **options):
        trials = bx.algorithms.integrated_ei(box, FEW, **options).ask(3)
        return torch.stack([trial.x for trial in trials])

    wide = bx.Box([(1.0, 100.0), *([(0.0, 8.0)] * 20)], log=[0])
    U, X = wide.to_unit(wide.sample(4, 0)), wide.sample(1, 9)  # Sobol points
    assert_close(wide.to_unit(first(wide)), (U[:3] + 0.5) / 2)
    assert_close(wide.to_unit(first(wide, initial=(X, X[:, 0]))), (U[1:] + 0.5) / 2)
    assert_close(wide.to_unit(first(wide, num_initial=3)), U[:3])
    ends = [[1.0] * 21, [100.0] * 21]
    narrow, whole = bx.Box([end[:20] for end in ends]), bx.Box(ends, integer=[0])
    for box in (narrow, whole, bx.Box(ends, constraints=([[1.0] * 21], [2000.0]))):
        assert torch.equal(first(box), box.sample(3, 0))
    in_contexts = bx.algorithms.integrated_ei(bx.Box(ends), FEW, context_domain=1)
    assert torch.equal(in_contexts.ask(context=[0.5]).x, bx.Box(ends).sample(1, 0)[0])


@pytest.mark.parametrize(
    "values",
    [[0.7] * 4, [1e12, -1e12, 3e12, 0.0], [1e-300, 2e-300, 0.0], [0.0, 1e160, -1e160, 1e300]],
)
def test_odd_values_get_a_sensible_question_and_a_report(values):
    strategy = make("integrated_ei")
    for value in values:
        strategy.tell(strategy.ask().id, value)
    told, trial = strategy.evaluated()[0], strategy.ask()
    assert (BOX.to_unit(told) - BOX.to_unit(trial.x)).norm(dim=-1).min() > 1e-6
    assert math.isfinite(strategy.best()[1])
    assert all(map(math.isfinite, strategy.report()["noise_std"]))


@pytest.mark.parametrize("noise", [(1e-12, 1e-9), (1e-4, 4.0)])
def test_noise_below_what_keeps_factors_apart_is_none(noise):
    particles = Particles(8, Prior(noise=noise, noise_location=math.log(noise[0])))
    X = torch.cat([SET.points[:9], SET.points[:1]])
    Y = torch.tensor([f(x) for x in X], dtype=torch.float64)
    strategy = make("integrated_ei", SET, particles, initial=(X, Y), num_initial=0)
    for trial in strategy.ask(2):
        assert math.isfinite(trial.info["log_improvement"])


def many(num, dim=2):
    box = bx.Box([[2.0] * dim, [5.0] * dim])
    X = box.sample(num, 3)
    return box, X, torch.sin(2 * X[:, 0]) - (X[:, -1] - 3).square()


@pytest.mark.slow
def test_particles_of_many_observations_stay_and_replay_asks_the_same():
    box, X, Y = many(150)
    strategy = make("integrated_ei", box, initial=(X, Y), num_initial=0)
    for _ in range(5):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    has_moved = ["particles" in strategy.history.trials[id].info for id in range(5)]
    assert has_moved == [True, False, False, True, False]
    again = make("integrated_ei", box, initial=(X, Y), num_initial=0)
    again.replay(strategy.events)
    assert torch.equal(again.ask().x, strategy.ask().x)
    # The models that were extended are those of all observations.
    points, posterior = box.sample(9, 1), strategy.posterior
    joint = strategy.evaluated()[0]
    exact = Ensemble.of(posterior.parameters, posterior.inputs, joint, posterior.outcomes)
    assert_close(posterior.mean(points), exact.mean(points))


def test_many_dimensions_are_searched_around_the_best_point():
    box, X, Y = many(40, dim=24)
    strategy = make("integrated_ei", box, initial=(X, Y))
    for trial in strategy.ask(3):
        strategy.tell(trial.id, -9.0)
    center = X[strategy.posterior.mean_at_rows()[:40].argmax()]
    x = strategy.ask().x
    assert bool(region_around(center, 0.8, box).contains(x))
    assert not torch.equal(x, center)
