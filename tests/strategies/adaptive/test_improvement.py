"""ImprovementStrategy: what it asks, what it records, and what it does with odd data."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.screening import near_points
from botorch_ext.search.trust_region import region_around
from botorch_ext.strategies import Asked
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive import particle_strategy
from botorch_ext.strategies.events import Trial
from tests.oracles.particles import model_of, standardised

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])
FEW = Particles(8)


def f(x):
    return float(torch.sin(2 * x[0]) - (x[-1] + 2) ** 2)


def played(steps, domain=BOX, **options):
    strategy = bx.algorithms.integrated_ei(domain, FEW, **{"num_initial": 3, **options})
    for _ in range(steps):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    return strategy


def test_replay_moves_no_particles(monkeypatch):
    strategy = played(7)
    strategy.ask()
    with monkeypatch.context() as patched:
        for name in ("started", "moved"):
            patched.setattr(Particles, name, lambda *_: pytest.fail("particles were moved"))
        again = bx.algorithms.integrated_ei(BOX, FEW, num_initial=3)
        again.replay(strategy.events)
        assert torch.equal(again.ask().x, strategy.ask().x)  # with no more data
    for each in (again, strategy):
        each.tell(7, 0.3)
    assert torch.equal(again.ask().x, strategy.ask().x)


def steep(x):
    """Values over many orders of magnitude."""
    return -math.exp(4 * (1.5 - f(x)))


def test_steep_outcomes_are_bent_and_replayed_so():
    def played(strategy, steps):
        for _ in range(steps):
            trial = strategy.ask()
            strategy.tell(trial.id, steep(trial.x))
        return strategy

    strategy = played(bx.algorithms.integrated_ei(BOX, FEW), 14)
    records = [strategy.history.trials[id].info.get("particles", {}) for id in range(14)]
    assert any(record.get("bend", 0) > 0 for record in records)
    again = bx.algorithms.integrated_ei(BOX, FEW)
    again.replay(strategy.events)
    assert again.report() == strategy.report()
    assert torch.equal(again.ask().x, strategy.ask().x)
    # Means are in units of the observations, whatever they were made of.
    X, Y = strategy.evaluated()
    means = strategy.means_at(X)
    assert ((-means).log() - (-Y).log()).abs().median() < 0.5


@pytest.mark.parametrize(("num_given", "num_sobol"), [(0, 8), (5, 3), (8, 0), (20, 0)])
def test_results_that_are_given_stand_for_first_points(num_given, num_sobol):
    X = BOX.sample(num_given, 3)
    initial = (X, X.new_tensor([f(x) for x in X])) if num_given else None
    strategy = bx.algorithms.integrated_ei(BOX, FEW, initial=initial)
    trials = [strategy.ask() for _ in range(num_sobol + 1)]
    assert ["particles" in trial.info for trial in trials] == num_sobol * [False] + [True]
    assert strategy.report()["num_initial"] == num_sobol
    # A number that is said is kept.
    told = bx.algorithms.integrated_ei(BOX, initial=initial, num_initial=2)
    assert told.report()["num_initial"] == 2


@pytest.mark.parametrize(("num_initial", "num_sobol"), [(None, 5), (6, 6)])
def test_attached_results_stand_for_first_points_where_no_number_is_said(num_initial, num_sobol):
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=num_initial)
    for x in BOX.sample(2, 3):
        strategy.attach(x, f(x))
    trials = [strategy.ask()]
    strategy.attach(*(x := BOX.sample(1, 4)), f(x[0]))
    trials += [strategy.ask() for _ in range(num_sobol)]
    assert ["particles" in trial.info for trial in trials] == num_sobol * [False] + [True]
    again = bx.algorithms.integrated_ei(BOX, FEW, num_initial=num_initial)
    again.replay(strategy.events)
    again.tell(trials[-1].id, 0.3)
    strategy.tell(trials[-1].id, 0.3)
    assert torch.equal(again.ask().x, strategy.ask().x)


def test_first_points_go_on_where_those_that_are_known_left_off():
    first = [trial.x for trial in bx.algorithms.integrated_ei(BOX, FEW).ask(8)]
    X = torch.stack(first[:3])
    strategy = bx.algorithms.integrated_ei(BOX, FEW, initial=(X, X.new_tensor([0.1, 0.2, 0.3])))
    strategy.attach(first[3], 0.4)
    assert [trial.x.tolist() for trial in strategy.ask(4)] == [x.tolist() for x in first[4:]]
    points = bx.FiniteSet(BOX.sample(12, 5))
    on_set = bx.algorithms.integrated_ei(points, FEW)
    known = on_set.next_trial(Choices())
    on_set.attach(known.x, 0.1)
    assert len({trial.info["index"] for trial in [known, *on_set.ask(7)]}) == 8


def test_first_points_of_many_inputs_lie_in_the_middle_half_of_each_side():
    def first(box, **options):
        trials = bx.algorithms.integrated_ei(box, FEW, **options).ask(3)
        return torch.stack([trial.x for trial in trials])

    wide = bx.Box([(1.0, 100.0), *([(0.0, 8.0)] * 20)], log=[0])
    U = wide.to_unit(wide.sample(4, 0))  # Sobol points
    eight = torch.stack([trial.x for trial in bx.algorithms.integrated_ei(wide, FEW).ask(8)])
    assert (eight[:, 0] >= 10**0.5).all() and (eight[:, 0] <= 10**1.5).all()
    assert (eight[:, 1:] >= 2).all() and (eight[:, 1:] <= 6).all()
    central = (U + 0.5) / 2
    assert_close(wide.to_unit(first(wide)), central[:3])
    X = wide.sample(1, 9)
    assert_close(wide.to_unit(first(wide, initial=(X, X[:, 0]))), central[1:])
    assert_close(wide.to_unit(first(wide, num_initial=3)), U[:3])
    # A study of an earlier version asked Sobol points of the whole box, and goes on.
    earlier = bx.algorithms.integrated_ei(wide, FEW, num_initial=8)
    trials = earlier.ask(3)
    goes_on = bx.algorithms.integrated_ei(wide, FEW)
    goes_on.replay(earlier.events)
    assert_close(wide.to_unit(goes_on.ask().x), central[3])
    assert torch.equal(goes_on.history.trials[0].x, trials[0].x)


def test_first_points_of_other_boxes_lie_anywhere():
    ends = [[1.0] * 21, [100.0] * 21]
    narrow, whole = bx.Box([end[:20] for end in ends]), bx.Box(ends, integer=[0])
    constrained = bx.Box(ends, constraints=([[1.0] * 21], [2000.0]))
    for box in (narrow, whole, constrained):
        trials = bx.algorithms.integrated_ei(box, FEW).ask(3)
        assert torch.equal(torch.stack([trial.x for trial in trials]), box.sample(3, 0))
    wide = bx.Box(ends)
    in_contexts = bx.algorithms.integrated_ei(wide, FEW, context_domain=1)
    assert torch.equal(in_contexts.ask(context=[0.5]).x, wide.sample(1, 0)[0])


def test_a_trial_that_was_given_up_stands_for_no_first_point():
    strategy = bx.algorithms.integrated_ei(BOX, FEW)
    trials = strategy.ask(8)
    for trial in trials[:3]:
        strategy.abandon(trial.id, failed=trial.id == 0)
    more = strategy.ask(4)
    assert ["initial" in trial.info for trial in more] == [True, True, True, False]
    assert len({tuple(trial.x.tolist()) for trial in trials + more[:3]}) == 11
    again = bx.algorithms.integrated_ei(BOX, FEW)
    again.replay(strategy.events)
    for each in (strategy, again):
        each.abandon(more[0].id)
        each.abandon(more[1].id)
    assert torch.equal(again.ask().x, strategy.ask().x)
    assert "initial" in again.history.trials[-1].info


def test_methods_that_are_told_how_many_points_come_first_must_be():
    with pytest.raises(ValueError, match="num_initial must be"):
        bx.algorithms.gp_bucb(BOX, bx.Fitted(), width=2.0, num_initial=None)


@pytest.mark.parametrize("num_pending", [0, 2])
def test_the_question_is_the_highest_log_improvement_of_the_dense_models(num_pending):
    """Of the recorded particles, by textbook algebra, on a grid."""
    strategy = played(7)
    first = strategy.ask()
    trials = [first, *(strategy.ask() for _ in range(num_pending))]
    grid = torch.cartesian_prod(*torch.stack([torch.linspace(a, b, 41) for a, b in BOX.bounds.T]))
    points = torch.cat([trials[-1].x[None], grid.double()])
    pending = torch.stack([trial.x for trial in trials])[:-1]
    values = dense_log_improvement(strategy, first, points, pending)
    assert_close(float(values[0]), trials[-1].info["log_improvement"], rtol=1e-4, atol=1e-4)
    assert values[0] > values[1:].max() - 1e-4


def dense_log_improvement(strategy, first, points, pending, box=BOX):
    """The average over the particles of ``first`` and draws of each, those that the strategy makes
    for its last trial, of the expected improvement on the largest value drawn at told and pending
    points."""
    X, Y = strategy.evaluated()
    U, V = (box.to_unit(Z) for Z in (torch.cat([X, pending]), points))
    n, r = len(X), len(X) + len(pending)
    y, _, _ = standardised(Y)
    particles = torch.tensor(first.info["particles"]["parameters"], dtype=torch.float64)
    generator = torch.Generator().manual_seed(strategy._seed_of(first.id + len(pending)))
    normals = torch.randn(len(particles), 2, r, 4, generator=generator, dtype=torch.float64)
    normal, total, num = torch.distributions.Normal(0.0, 1.0), torch.zeros(len(points)), 0
    for particle, (own, of_noise) in zip(particles, normals, strict=True):
        kernel, noise = model_of(particle)
        K = kernel(U, U) + 1e-8 * torch.eye(r)
        noisy = (kernel(U, U) + noise * torch.eye(r))[:n, :n].inverse()
        y_residual = y - (noisy @ y).sum() / noisy.sum()
        for sign in (1, -1):
            for draw in range(own.shape[1]):
                # A draw from the prior, moved to what the data say.
                f = torch.linalg.cholesky(K) @ own[:, draw] * sign
                seen = f[:n] + sign * (noise - 1e-8).sqrt() * of_noise[:n, draw]
                f = f + K[:, :n] @ noisy @ (y_residual - seen)
                k = torch.linalg.solve(K, kernel(U, V))
                std = (1 - (k * kernel(U, V)).sum(dim=0)).sqrt()
                z = (k.mT @ f - f.max()) / std
                total = total + std * (normal.log_prob(z).exp() + z * normal.cdf(z))
                num += 1
    return (total / num).log()


@pytest.mark.parametrize(("num_given", "seed"), [(12, 5), (20, 3)])
def test_in_six_dimensions_no_patient_search_finds_more(monkeypatch, num_given, seed):
    generator = torch.Generator().manual_seed(seed)
    box = bx.Box([[-2.0] * 6, [3.0] * 6])
    X = box.sample(num_given, seed)
    Y = X.sin().sum(-1) + 0.1 * torch.randn(num_given, generator=generator, dtype=torch.float64)
    strategy = bx.algorithms.integrated_ei(box, FEW, seed=seed, initial=(X, Y), num_initial=0)
    objectives = []

    def seen(objective, *arguments, **options):
        objectives.append(objective)
        return maximize_on_box(objective, *arguments, **options)

    monkeypatch.setattr(particle_strategy, "maximize_on_box", seen)
    trial = strategy.ask()
    near = near_points(torch.cat([trial.x[None], X[Y.topk(5).indices]]), box, 1000, 5, (0.03, 0.1))
    best = maximize_on_box(objectives[-1], box, 1, 2048, 60, near, 1e-11, again=True)[1]
    assert trial.info["log_improvement"] > float(best) - 1e-6


def test_pending_trials_are_kept_away_from():
    strategy = played(6)
    trials = strategy.ask(5)
    X = BOX.to_unit(torch.stack([trial.x for trial in trials]))
    assert torch.pdist(X).min() > 1e-3
    # Only the first knows something new.
    assert ["particles" in trial.info for trial in trials] == [True, False, False, False, False]
    for trial in trials[3:]:
        strategy.abandon(trial.id)
    strategy.tell(trials[2].id, 0.1)
    assert "particles" in strategy.ask().info


def test_the_recommendation_is_the_top_of_the_mean():
    strategy = played(9)
    x, mean = strategy.recommend()
    posterior = strategy.posterior
    assert_close(float(posterior.mean(x[None])), mean)
    everywhere = torch.cat([BOX.sample(500, 1), strategy.evaluated()[0]])
    assert posterior.mean(everywhere).max() <= mean + 1e-9
    assert mean >= strategy.best()[1]
    with pytest.raises(NoObservationsError, match="recommend"):
        bx.algorithms.integrated_ei(BOX).recommend()


def test_a_study_in_contexts_learns_of_all_of_them():
    """At a context never seen the recommendation follows the others."""
    strategy = bx.algorithms.integrated_ei(
        bx.Box([[0.0], [1.0]]), FEW, num_initial=4, context_domain=bx.Box([[0.0], [1.0]])
    )
    for step in range(16):
        context = torch.tensor([step % 5 / 4], dtype=torch.float64)
        trial = strategy.ask(context=context)
        strategy.tell(trial.id, -float((trial.x[0] - context[0]) ** 2))
    x, _ = strategy.recommend(context=[0.6])
    assert abs(float(x) - 0.6) < 0.1


def test_what_is_not_there_is_not_to_be_improved_on():
    """With changing actions the incumbent is among those that there are."""
    strategy = played(6)
    offered = torch.tensor([[2.2, -2.9], [4.9, -1.1], [2.3, -2.8]], dtype=torch.float64)
    trial = strategy.ask(actions=offered)
    assert (offered == trial.x).all(dim=-1).any()
    assert trial.info["log_improvement"] > math.log(1e-3)


def noisy(trial, means):
    return means[trial.info["index"]] + 0.5 * math.sin(7.0 * trial.id**2)


def test_points_of_a_set_are_asked_again():
    """What another observation teaches counts where everything was asked: in turn, the best more
    often, and those that were tried once are not forgotten."""
    means = [0.0, 0.4, 0.5, 0.1, 0.45, -3.0]
    arms = bx.FiniteSet(torch.arange(6.0, dtype=torch.float64).unsqueeze(-1))
    strategy = bx.algorithms.integrated_ei(arms, FEW, num_initial=6)
    for _ in range(40):
        trial = strategy.ask()
        strategy.tell(trial.id, noisy(trial, means))
    asked = [trial.info["index"] for trial in strategy.history.trials]
    counts = [asked.count(arm) for arm in range(6)]
    assert counts[5] == 1
    assert sorted(counts)[-3] >= 5
    assert len({trial.info["index"] for trial in strategy.ask(6)}) >= 2


def test_choices_of_a_box_are_asked_again():
    box = bx.Box([(0, 2), (0, 1)], integer=[0, 1])
    strategy = bx.algorithms.integrated_ei(box, FEW, num_initial=4)
    for _ in range(20):
        trial = strategy.ask()
        assert "index" not in trial.info
        strategy.tell(trial.id, float(trial.x.sum()) / 3 + 0.5 * math.sin(7.0 * trial.id**2))
    X = strategy.evaluated()[0]
    assert len(X.unique(dim=0)) == 6


@pytest.mark.parametrize("noise", [(1e-12, 1e-9), (1e-4, 4.0)])
def test_noise_below_what_keeps_factors_apart_is_none(noise):
    particles = Particles(8, Prior(noise=noise, noise_location=math.log(noise[0])))
    X = torch.cat([BOX.sample(9, 0), BOX.sample(1, 0)])
    Y = torch.tensor([f(x) for x in X], dtype=torch.float64)
    strategy = bx.algorithms.integrated_ei(BOX, particles, initial=(X, Y), num_initial=0)
    for trial in strategy.ask(2):
        assert math.isfinite(trial.info["log_improvement"])


# --- odd data -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [0.7] * 6,
        [1e12, -1e12, 3e12, 0.0, 1e11, -2e12],
        [1e-300, 2e-300, 0.0, 3e-300, 1e-300, 0.0],
        [1e12, 1e12 + 1, 1e12 + 2, 1e12, 1e12 + 5, 1e12],
        [0.0, 1e160, 1.0, -1e160, 1e300, 0.0],
    ],
)
def test_odd_values_get_a_sensible_question_and_a_report(values):
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=3)
    for value in values:
        trial = strategy.ask()
        assert BOX.contains(trial.x).all()
        assert all(math.isfinite(trial.info.get(name, 0)) for name in ("mean", "std"))
        strategy.tell(trial.id, value)
    told, _ = strategy.evaluated()
    x = strategy.ask().x
    assert (BOX.to_unit(told) - BOX.to_unit(x)).norm(dim=-1).min() > 1e-6
    assert math.isfinite(strategy.best()[1])
    assert all(map(math.isfinite, strategy.report()["noise_std"]))


def test_duplicates_and_fewer_data_than_dimensions():
    box = bx.Box([[0.0] * 9, [1.0] * 9])
    X = box.sample(2, 0)[[0, 0, 0, 1]]
    Y = torch.tensor([1.0, 1.0, 1.3, 0.2], dtype=torch.float64)
    strategy = bx.algorithms.integrated_ei(box, FEW, initial=(X, Y), num_initial=0)
    trial = strategy.ask()
    assert box.contains(trial.x).all()
    assert (trial.x - X).norm(dim=-1).min() > 1e-3


@pytest.mark.parametrize("num_pending", [0, 3])
def test_it_can_be_asked_before_anything_is_told(num_pending):
    strategy = bx.algorithms.integrated_ei(BOX, FEW, num_initial=0)
    X = torch.stack([strategy.ask().x for _ in range(num_pending + 1)])
    assert BOX.contains(X).all()
    if num_pending:
        assert torch.pdist(BOX.to_unit(X)).min() > 0.2
    of_set = bx.algorithms.integrated_ei(bx.FiniteSet(BOX.sample(30, 0)), FEW, num_initial=0)
    assert len({of_set.ask().info["index"] for _ in range(4)}) == 4


@pytest.mark.parametrize("num_initial", [0, 1])
@pytest.mark.parametrize(
    ("space", "context"),
    [
        (BOX, [2.5, -2.0]),
        (3, [0.1, 0.2, 0.3]),
        (bx.FiniteSet([[0.0], [1.0], [2.0]]), [1.0]),
        (ContextSpace(), [0.1, 0.2]),
    ],
)
def test_in_contexts_it_can_be_asked_and_read_before_anything_is_told(space, context, num_initial):
    options = {"num_initial": num_initial, "context_domain": space}
    strategy = bx.algorithms.integrated_ei(BOX, FEW, **options)
    assert strategy.report()["num_particles"] == 8
    X = torch.stack([strategy.ask(context=context).x for _ in range(3)])
    assert torch.pdist(BOX.to_unit(X)).min() > 0.1
    strategy.tell(1, 0.3)
    assert BOX.contains(strategy.ask(context=context).x).all()


def test_failures_told_as_very_low_values_hide_nothing():
    def half_fails(x):
        return -1e6 if x[0] < 3 else f(x)

    result = bx.optimize(half_fails, BOX, 18, particles=FEW, progress=False)
    best = max(f(x) for x in BOX.sample(500, 0))
    assert f(result.recommended_x) > best - 0.05


def test_large_sets_are_looked_at_by_a_few_models_first():
    points = BOX.sample(6000, 0)
    strategy = played(7, bx.FiniteSet(points))
    trial = strategy.ask()
    box = bx.Box(torch.stack([points.amin(dim=0), points.amax(dim=0)]))
    values = dense_log_improvement(strategy, trial, points, points[:0], box)
    assert values.max() - trial.info["log_improvement"] < 1e-4


# --- recorded trials ------------------------------------------------------------------------------


def changed(info, **parts):
    return {**info, "particles": {**info["particles"], **parts}}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda info: {**info, "mean": "high"}, "mean"),
        (lambda info: {**info, "mean": math.nan}, "mean"),
        (lambda info: changed(info, values=[0.0]), "values"),
        (lambda info: changed(info, parameters=[[math.nan] * 4] * 8), "parameters"),
        (lambda info: changed(info, parameters="none"), "parameters"),
        (lambda info: {**info, "particles": 3}, "parameters"),
        (lambda info: changed(info, bend=-1.0), "bend"),
    ],
)
def test_wrong_records_are_refused_by_name(change, named):
    strategy = played(5)
    before = strategy.report()
    trial = strategy.clone().ask()
    wrong = Trial(trial.id, trial.x, None, change(trial.info))
    with pytest.raises(ValueError, match=named):
        strategy.replay([Asked(wrong)])
    assert strategy.report() == before
    strategy.replay([Asked(trial)])


# --- many observations and many dimensions --------------------------------------------------------


def many(num, dim=2):
    box = bx.Box([[2.0] * dim, [5.0] * dim])
    X = box.sample(num, 3)
    return box, X, torch.sin(2 * X[:, 0]) - (X[:, -1] - 3).square()


def test_particles_of_many_observations_stay_and_replay_asks_the_same():
    box, X, Y = many(150)
    strategy = bx.algorithms.integrated_ei(box, FEW, initial=(X, Y))
    for _ in range(5):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    has_moved = ["particles" in strategy.history.trials[id].info for id in range(5)]
    assert has_moved == [True, False, False, True, False]
    again = bx.algorithms.integrated_ei(box, FEW, initial=(X, Y))
    again.replay(strategy.events)
    assert torch.equal(again.ask().x, strategy.ask().x)
    # The models that were extended are those of all observations.
    points = box.sample(9, 1)
    parameters, joint = strategy.posterior.parameters, strategy.evaluated()[0]
    exact = Ensemble.of(parameters, strategy.posterior.inputs, joint, strategy.posterior.outcomes)
    assert_close(strategy.posterior.mean(points), exact.mean(points))


def test_a_study_that_moved_more_particles_at_every_ask_goes_on(monkeypatch):
    box, X, Y = many(150)
    with monkeypatch.context() as patched:
        patched.setattr(Particles, "are_due", lambda self, before, now: now != before)
        patched.setattr(Particles, "number", lambda self, n: self.num_particles)
        before = bx.algorithms.integrated_ei(box, Particles(16), initial=(X, Y))
        for _ in range(3):
            trial = before.ask()
            before.tell(trial.id, f(trial.x))
    monkeypatch.setattr(Particles, "number", lambda self, n: self.num_particles // 2)
    strategy = bx.algorithms.integrated_ei(box, Particles(16), initial=(X, Y))
    strategy.replay(before.events)
    assert "particles" not in strategy.ask().info
    assert len(strategy.posterior.parameters) == 16


def test_many_dimensions_are_searched_around_the_best_point():
    box, X, Y = many(40, dim=24)
    strategy = bx.algorithms.integrated_ei(box, FEW, initial=(X, Y))
    center = X[strategy.posterior.mean_at_rows().argmax()]
    x = strategy.ask().x
    assert bool(region_around(center, 0.8, box).contains(x))
    assert not torch.equal(x, center)
