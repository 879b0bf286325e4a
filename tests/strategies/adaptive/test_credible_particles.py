"""credible_ucb over particles: every decision by dense algebra, what it records, and replay."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.strategies import Asked
from botorch_ext.strategies.events import Trial
from tests.oracles.particles import model_of, standardised

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])
SET = bx.FiniteSet(BOX.sample(80, 1))
FEW = Particles(8)
DELTA = 0.1


def f(x):
    return float(torch.sin(2 * x[0]) - (x[-1] + 2) ** 2)


def make(domain=BOX, **options):
    return bx.algorithms.credible_ucb(domain, FEW, **{"num_initial": 3, **options})


def played(steps, domain=BOX, **options):
    """Every third trial stays pending."""
    strategy = make(domain, **options)
    for step in range(steps):
        trial = strategy.ask()
        if step % 3 != 1:
            strategy.tell(trial.id, f(trial.x))
    return strategy


def dense_bounds(strategy, info, points, pending, width, c):
    """Of each credible particle of a trial its place, and means, standard deviations and upper
    bounds at points: ``m x n`` each."""
    X, Y = strategy.evaluated()
    box = strategy.domain
    if isinstance(box, bx.FiniteSet):
        box = bx.Box(torch.stack([box.points.amin(dim=0), box.points.amax(dim=0)]))
    U, V, F = (box.to_unit(Z) for Z in (X, torch.cat([X, pending]), points))
    y, center, scale = standardised(Y)
    values = torch.tensor(info["values"], dtype=torch.float64)
    places = [u for u, value in enumerate(info["values"]) if max(info["values"]) - value <= c]
    assert (values.max() - values - c).abs().min() > 1e-9
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


def grid(num=41):
    axes = [torch.linspace(a, b, num, dtype=torch.float64) for a, b in BOX.bounds.T.tolist()]
    return torch.cartesian_prod(*axes)


@pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
@pytest.mark.parametrize(
    "options", [{}, {"credibility": 1.0, "width": 0.7}, {"delta": 0.7, "width": 3.0}]
)
def test_every_decision_is_the_highest_bound_of_the_credible_particles(domain, options):
    strategy = played(12, domain, **options)
    width = options.get("width", 2.0)
    c = options.get("credibility", math.log(8 / options.get("delta", DELTA)))
    again, particles, sizes, num = make(domain, **options), None, set(), 0
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
            sizes.add(len(places))
            num += 1
        again.replay([event])
    assert num == 9
    assert min(sizes) < 8  # some particles are not credible
    report = again.report()
    assert report["credibility"] == pytest.approx(c)
    assert report["current_width"] == width


@pytest.mark.parametrize("domain", [SET, BOX], ids=["set", "box"])
def test_replay_moves_no_particles_and_asks_the_same(domain, monkeypatch):
    strategy = played(9, domain)
    strategy.ask()
    with monkeypatch.context() as patched:
        for name in ("started", "moved"):
            patched.setattr(Particles, name, lambda *_: pytest.fail("particles were moved"))
        again = make(domain)
        again.replay(strategy.events)
        one, other = strategy.ask(), again.ask()
        assert torch.equal(one.x, other.x)
        assert one.info == other.info
    for each in (again, strategy):
        each.tell(one.id, 0.3)
    assert strategy.ask().info == again.ask().info


def test_the_bands_are_what_is_played():
    strategy = played(8)
    X = BOX.sample(400, 5)
    mean, half_width = strategy.bands(X)
    report, trial = strategy.report(), strategy.clone().ask()
    assert mean.shape == half_width.shape == (report["num_credible"], 400)
    top = trial.info["mean"] + 2.0 * trial.info["std"]
    assert (mean + half_width).max() <= top + 1e-9
    mean, half_width = strategy.bands(trial.x[None])
    assert_close(float((mean + half_width).max()), top, rtol=1e-8, atol=1e-8)


def test_in_contexts_the_action_of_the_context_is_asked():
    line = bx.Box([[0.0], [1.0]])
    strategy = bx.algorithms.credible_ucb(line, FEW, num_initial=4, context_domain=line)
    for step in range(18):
        context = torch.tensor([step % 5 / 4], dtype=torch.float64)
        trial = strategy.ask(context=context)
        strategy.tell(trial.id, -float((trial.x[0] - context[0]) ** 2))
    x, _ = strategy.recommend(context=[0.6])
    assert abs(float(x) - 0.6) < 0.1
    few = torch.tensor([[0.1], [0.5], [0.95]], dtype=torch.float64)
    trial = strategy.ask(context=[0.5], actions=few)
    assert trial.info["action"] == 1


def test_before_anything_is_told_the_prior_is_played():
    for domain in (BOX, SET):
        X = torch.stack([trial.x for trial in make(domain, num_initial=0).ask(3)])
        assert torch.pdist(BOX.to_unit(X)).min() > 0.1


@pytest.mark.parametrize("model", [8, -1, 1.5, None])
def test_a_recorded_particle_that_there_is_not_is_refused(model):
    strategy = played(6)
    trial = strategy.clone().ask()
    wrong = Trial(trial.id, trial.x, None, {**trial.info, "model": model})
    with pytest.raises(ValueError, match="model"):
        strategy.replay([Asked(wrong)])
    strategy.replay([Asked(trial)])
