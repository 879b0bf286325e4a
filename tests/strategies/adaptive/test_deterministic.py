"""integrated_ei without noise: no noise in the samples, no point twice, the best value seen is
recommended."""

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import AnotherStrategyError, HorizonReached
from botorch_ext.hyperparameters.prior import Prior
from tests.oracles.particles import model_of, standardised

BOX = bx.Box([[2.0, -3.0], [5.0, -1.0]])
FEW = bx.Particles(8)
SPACE = bx.Space(
    speed=bx.Integer(1, 3),
    part=bx.Choice(["a", "b"]),
    length=bx.Real(0.0, 1.0, digits=0),
    conditions={"length": ("part", ["b"])},
)  # 9 points
SET = bx.FiniteSet(BOX.sample(9, 1))


def f(x):
    return float(torch.sin(2 * x[0]) - (x[-1] + 2) ** 2 + 0.1 * torch.sin(40 * x).sum())


def make(domain=BOX, particles=FEW, **options):
    return bx.algorithms.integrated_ei(domain, particles, deterministic=True, **options)


def data(num):
    X = BOX.sample(num, 5)
    return X, X.new_tensor([f(x) for x in X])


def test_the_samples_are_models_without_noise_but_a_jitter():
    X, Y = data(9)
    strategy = make(initial=(X, Y), num_initial=0)
    U, F = BOX.to_unit(X), BOX.sample(20, 3)
    y, center, scale = standardised(Y)
    means, variances = [], []
    for row in strategy.posterior.parameters:
        kernel, noise = model_of(row)
        assert float(noise) == pytest.approx(1e-8)
        K, k = kernel(U, U) + 1e-8 * torch.eye(9), kernel(U, BOX.to_unit(F))
        weights = torch.linalg.solve(K, torch.stack([torch.ones(9), y], dim=-1).to(K))
        constant = weights[:, 1].sum() / weights[:, 0].sum()
        means.append(constant + k.mT @ (weights[:, 1] - constant * weights[:, 0]))
        variances.append(1 - (k * torch.linalg.solve(K, k)).sum(dim=0))
    mean = torch.stack(means).mean(dim=0)
    variance = torch.stack(variances).mean(dim=0) + torch.stack(means).var(dim=0, correction=0)
    found_mean, found_std = strategy.posterior.mean_and_std(F)
    assert_close(found_mean, center + scale * mean, rtol=1e-5, atol=1e-5)
    assert_close(found_std, scale * variance.sqrt(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("minimize", [False, True])
def test_the_best_value_seen_is_recommended(minimize):
    sign = -1 if minimize else 1
    X, Y = data(9)
    strategy = make(initial=(X, sign * Y), num_initial=0, minimize=minimize)
    strategy.attach([6.0, -2.0], sign * 9.0, outside=True)
    x, top = X[Y.argmax()], sign * float(Y.max())
    assert strategy.best()[0].equal(x)
    assert strategy.best()[1] == top
    for found, mean in (strategy.recommend(), (strategy.recommended().x, top)):
        assert found.equal(x)
        assert mean == pytest.approx(top, abs=1e-4)


@pytest.mark.parametrize("domain", [SET, SPACE], ids=["set", "space"])
@pytest.mark.parametrize("num_initial", [1, None])
def test_no_member_is_asked_twice_until_none_is_left(domain, num_initial):
    """Data from before, pending and failed trials count; one that was abandoned is asked again."""
    known = domain.points[:2] if domain is SET else SPACE.listed[:2]
    strategy = make(domain, initial=(known[:1], [0.3]), num_initial=num_initial)
    strategy.attach(known[1], 0.4)
    asked = [strategy.ask()]
    strategy.abandon(asked.pop(), failed=False)
    while len(asked) < 6:
        asked.append(strategy.ask())
        if len(asked) == 3:
            strategy.abandon(asked[-1], failed=True)
        elif len(asked) % 2:
            strategy.tell(asked[-1], float(asked[-1].x[0]))
    with pytest.raises(HorizonReached, match="at most 1, since"):
        strategy.ask(2)
    asked.append(strategy.ask())
    with pytest.raises(HorizonReached, match="at most 0"):
        strategy.ask()
    rows = torch.stack([*known, *(trial.x for trial in asked)])
    assert len(rows.unique(dim=0)) == 9
    if domain is SET:
        assert all(SET.points[trial.info["index"]].equal(trial.x) for trial in asked)


def test_a_run_ends_where_every_point_was_asked():
    result = bx.optimize(f, SET, 20, particles=FEW, deterministic=True, progress=False)
    assert sorted(result.X.tolist()) == sorted(SET.points.tolist())
    assert f(result.recommended_x) == max(f(x) for x in SET.points)


def test_actions_and_contexts_have_their_own_points():
    strategy = make(SET, context_domain=1, num_initial=2)
    first = [strategy.ask(context=[z], actions=SET.points[:3]) for z in (0.1, 0.7) for _ in "abc"]
    for z, trials in ((0.1, first[:3]), (0.7, first[3:])):
        assert sorted(trial.info["action"] for trial in trials) == [0, 1, 2]
        with pytest.raises(HorizonReached):
            strategy.ask(context=[z], actions=SET.points[:3])
    assert strategy.ask(context=[0.1]).info["index"] > 2


def test_points_of_a_box_are_apart():
    """Also where nothing is left to gain, and where few points can be set."""
    box = bx.Box([(0.0, 1.0)])
    strategy = make(box, num_initial=3)
    for _ in range(12):
        trial = strategy.ask()
        strategy.tell(trial, -((float(trial.x) - 0.3) ** 2))
    X = torch.stack([trial.x for trial in strategy.history.trials])
    assert torch.pdist(X).min() > 1e-6
    coarse = make(bx.Space(a=bx.Real(0, 100, digits=1), b=bx.Real(0, 90, digits=0)), num_initial=3)
    for _ in range(8):
        trial = coarse.ask()
        coarse.tell(trial, -abs(float(trial.x[0]) - 30.04))
    assert len({tuple(trial.x.tolist()) for trial in coarse.history.trials}) == 8


def test_a_kept_study_opens_and_asks_the_same(tmp_path):
    study = bx.Study(tmp_path / "kept.db", make(SPACE, num_initial=2))
    for trial in study.ask(4):
        study.tell(trial, float(trial.x[0]))
    again = make(SPACE, num_initial=2)
    again.replay(study.strategy.events)
    trial, same = study.ask(), again.ask()
    assert trial.x.equal(same.x)
    assert trial.info == same.info
    opened = bx.Study(tmp_path / "kept.db")
    assert opened.strategy.deterministic
    assert opened.ask().x.equal(again.ask().x)
    with pytest.raises(AnotherStrategyError, match="deterministic"):
        bx.Study(
            tmp_path / "kept.db", bx.algorithms.integrated_ei(SPACE, bx.Particles(8), num_initial=2)
        )


@pytest.mark.parametrize(("noise", "is_small"), [((1e-4, 8e-4), True), ((0.3, 0.5), False)])
def test_where_the_samples_agree_that_noise_is_small_the_best_value_is_recommended(noise, is_small):
    """It is small if it is below the variance where the mean is best, which is recommended if it is
    not small."""
    (X, Y), points = data(12), BOX.sample(4000, 1)
    particles = bx.Particles(8, Prior(noise=noise))
    strategy = bx.algorithms.integrated_ei(BOX, particles, initial=(X, Y), num_initial=0)
    means = strategy.posterior.mean(points)
    top, U, agreeing = BOX.to_unit(points[means.argmax()][None]), BOX.to_unit(X), 0
    for row in strategy.posterior.parameters:
        kernel, variance = model_of(row)
        k = kernel(U, top)
        spent = k.mT @ torch.linalg.solve(kernel(U, U) + variance * torch.eye(12), k)
        agreeing += bool(variance < 1 - spent)
    assert (agreeing >= 0.9 * 8) == is_small
    x, mean = strategy.recommend()
    assert x.equal(X[Y.argmax()]) == is_small
    assert is_small or mean >= means.max() - 1e-6


def test_an_optimisation_that_goes_on_is_as_it_was_made():
    with pytest.raises(ValueError, match="deterministic"):
        bx.optimize(f, make(), 3, deterministic=True)
