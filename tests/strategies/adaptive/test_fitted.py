"""Strategies whose hyperparameters are fitted to their data: when, to what, and what follows."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.strategies import Abandoned, Asked, Told, Trial
from tests.helpers import matern
from tests.oracles.posterior import dense_posterior
from tests.strategies.sessions import MINIMUM, POLICIES, Setting, play, scaled

BOX = bx.Box([[2.0, -7.0], [5.0, -6.2]])
SIDES = BOX.upper - BOX.lower
GRID = bx.FiniteSet(BOX.sample(40, seed=1))
SEEN = bx.Box([[-1.0], [3.0]])
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def f(x):
    return 100.0 + 30.0 * math.sin(2 * float(x[0])) + 20.0 * math.cos(3 * float(x[1]))


def make(domain, policy="hallucinate", fitted=None, **options):
    fitted = bx.Fitted() if fitted is None else fitted
    options = {"seed": 3, "num_initial": 3, **POLICIES[policy], **options}
    return bx.algorithms.gp_ucb(domain, fitted, width=2.0, **options)


def tell_some(strategy, number):
    for _ in range(number):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))


def asked_by_a_fit(strategy):
    return [trial.id for trial in strategy.history.trials if "fit" in trial.info]


def data_of(strategy, until=None):
    """Joint rows and values that models know before a trial is asked, and the rows that pend."""
    report, trials = strategy.report(), strategy.history.trials
    policy, n = report["pending_policy"], len(trials) if until is None else until
    asked = [i for i, e in enumerate(strategy.events) if isinstance(e, Asked)]
    events = strategy.events[: asked[until]] if until is not None else strategy.events
    told = {event.id: event.value for event in events if isinstance(event, Told)}
    gone = {e.id for e in events if isinstance(e, Abandoned) and not e.failed}
    for id in report["told_too_late"]:
        told.pop(id, None)
    if policy == "censor":
        told |= {id: MINIMUM for id in range(n) if id not in told and id not in gone}
    rows = [id for id in range(n) if id in told]
    pending = [id for id in range(n) if id not in told and id not in gone]
    X = torch.stack([trial.point for trial in trials])
    y = torch.tensor([told[id] for id in rows], dtype=torch.float64)
    X, pending = X[rows], X[pending if policy == "hallucinate" else []]
    if strategy.initial is not None:
        X, y = (torch.cat(pair) for pair in zip(strategy.initial, (X, y), strict=True))
    return X, y, pending


def moments(numbers, X, y, pending, Z, sides):
    """Textbook mean and standard deviation; pending rows count in the second alone."""
    scales = torch.tensor(numbers["lengthscales"]).double() * sides
    kernel = scaled(matern(*scales.tolist()), numbers["outputscale"])
    noise, rows = numbers["noise_variance"], torch.cat([X, pending])
    mean, _ = dense_posterior(kernel, X, y - numbers["mean"], Z, noise)
    _, covariance = dense_posterior(kernel, rows, rows.new_zeros(len(rows)), Z, noise)
    return numbers["mean"] + mean, covariance.diagonal().clamp_min(0).sqrt()


def check_bands(strategy, domain, sides, context=None):
    """The bands are the textbook ones of the numbers in use."""
    X, y, pending = data_of(strategy)
    report = strategy.report()
    Z = domain.sample(5, seed=6)
    joint = Z if context is None else torch.cat([Z, context.expand(5, -1)], dim=-1)
    expected, std = moments(report["fit"], X, y, pending, joint, sides)
    mean, half_width = (values[0] for values in strategy.bands(Z, context))
    assert_close(mean, expected, **CLOSE)
    assert_close(half_width, report["current_width"] * std, **CLOSE)


@pytest.mark.parametrize(
    ("domain", "policy"),
    list(zip([BOX, GRID, BOX, GRID, GRID], POLICIES, strict=True)),
)
def test_the_model_is_the_textbook_one_of_the_fit(domain, policy):
    X = domain.sample(3, seed=9)
    strategy = make(domain, policy, initial=(X, torch.tensor([f(x) for x in X]).double()))
    play(strategy, policy, None, 20, seed=4)
    assert policy != "timeout" or strategy.report()["told_too_late"]
    assert len(asked_by_a_fit(strategy)) >= 2
    sides = SIDES if domain is BOX else GRID.points.amax(dim=0) - GRID.points.amin(dim=0)
    check_bands(strategy, domain, sides)
    assert (strategy.report()["current_width"] == 2.0) == (policy != "inflate")
    # A fit keeps every row.
    for id in strategy.pending[:1]:
        strategy.tell(id, 0.7)
    strategy.ask(2)
    check_bands(strategy, domain, sides)
    # What was asked by a fit had the highest bound of it.
    last = strategy.history.trials[asked_by_a_fit(strategy)[-1]]
    Z = torch.cat([last.x[None], BOX.sample(400, 2) if domain is BOX else GRID.points])
    X, y, pending = data_of(strategy, last.id)
    mean, std = moments(last.info["fit"], X, y, pending, Z, sides)
    assert float(mean[0]) == pytest.approx(last.info["mean"], rel=1e-6, abs=1e-6)
    bounds = mean + last.info["width"] * std
    assert bounds.max() - bounds[0] <= 1e-6


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "set"])
def test_fits_follow_the_number_of_told_data_alone(domain):
    strategy = make(domain, num_initial=4)
    strategy.ask(4)
    strategy.tell(2, 100.0)
    strategy.ask(2)  # one datum is not enough
    assert asked_by_a_fit(strategy) == []
    strategy.tell(0, 120.0)
    strategy.ask(4)
    assert asked_by_a_fit(strategy) == [6]  # the first of four
    strategy.ask()
    strategy.abandon(7)
    strategy.ask()
    assert asked_by_a_fit(strategy) == [6]
    for id in (9, 1, 8):
        strategy.tell(id, 90.0 + id)
    strategy.ask(2)
    assert asked_by_a_fit(strategy) == [6, 12]
    assert strategy.report()["fit"]["num_fits"] == 2
    assert strategy.report()["fit"]["num_data"] == 5


def test_recorded_numbers_are_those_that_replay_plays_by():
    """Not those that a fit would find now."""
    strategy = make(BOX)
    tell_some(strategy, 5)
    last = strategy.history.trials[asked_by_a_fit(strategy)[-1]]
    other_fit = {**last.info["fit"], "mean": 50.0, "lengthscales": [0.3, 0.7]}
    events = list(strategy.events)
    events[2 * last.id] = Asked(Trial(last.id, last.x, None, {**last.info, "fit": other_fit}))
    other = make(BOX)
    other.replay(events)
    numbers = other.report()["fit"]
    assert numbers["mean"] == 50.0
    assert numbers["lengthscales"] == [0.3, 0.7]
    check_bands(other, BOX, SIDES)


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "set"])
@pytest.mark.parametrize("values", [[], [3.0], [1e12] * 4, [0.0] * 3])
def test_few_or_equal_values_give_a_sensible_question(domain, values):
    strategy = make(domain, num_initial=0)
    for value in values:
        strategy.tell(strategy.ask().id, value)
    seen = [trial.x for trial in strategy.history.trials]
    trial = strategy.ask()
    assert bool(domain.contains(trial.x))
    assert all(not torch.equal(trial.x, x) for x in seen)
    numbers = strategy.report()["fit"]
    assert numbers["mean"] == (values[0] if values else 0.0)
    if len(values) > 1:
        assert trial.info["fit"]["lengthscales"] == numbers["lengthscales"]


def test_a_penalty_and_few_data_in_many_columns_do_not_end_the_study():
    strategy = make(BOX)
    tell_some(strategy, 3)
    strategy.tell(strategy.ask().id, -1e100)
    tell_some(strategy, 2)
    assert strategy.report()["fit"]["outputscale"] > 1e100
    assert bool(BOX.contains(strategy.ask().x))
    strategy = make(bx.Box([[0.0] * 12, [3.0] * 12]), num_initial=2)
    tell_some(strategy, 2)
    assert len(strategy.ask().info["fit"]["lengthscales"]) == 12


@pytest.mark.parametrize("contexts", [SEEN, 1, bx.FiniteSet([[0.0], [1.0], [2.0]])])
def test_contexts_have_lengthscales_and_ranges_of_their_own(contexts):
    setting = Setting(lambda num, g: torch.arange(num).double()[:, None] % 3, contexts)
    strategy = bx.algorithms.cgp_ucb(
        BOX, bx.Fitted(), width=2.0, num_initial=2, context_domain=contexts
    )
    play(strategy, "hallucinate", setting, 24, seed=2)
    assert len(strategy.report()["fit"]["lengthscales"]) == 3
    side = torch.tensor([4.0 if contexts is SEEN else 2.0]).double()  # 2 as far as they were told
    X = data_of(strategy, asked_by_a_fit(strategy)[-1])[0]
    assert set(X[:, 2].tolist()) == {0.0, 1.0, 2.0}
    check_bands(strategy, BOX, torch.cat([SIDES, side]), torch.tensor([1.0]).double())
    with pytest.raises(ValueError, match="context_domain"):  # of unknown size
        bx.algorithms.cgp_ucb(BOX, bx.Fitted(), width=2.0)


def test_misspecification_and_means_stay_in_the_units_of_the_user():
    strategy = bx.algorithms.ec_gp_ucb(
        BOX, bx.Fitted(), width=2.0, misspecification=0.5, num_initial=3
    )
    tell_some(strategy, 3)
    trial = strategy.ask()
    enlargement = 0.5 * math.sqrt(4 / trial.info["fit"]["noise_variance"])
    assert trial.info["width"] == pytest.approx(2.0 + enlargement)
    # Before the first fit too.
    strategy = make(BOX, num_initial=8)
    for trial in strategy.ask(4):
        strategy.tell(trial.id, 1e6 + trial.id)
    numbers = strategy.report()["fit"]
    assert numbers["num_fits"] == 0
    assert numbers["mean"] == pytest.approx(1e6 + 1.5)
    assert strategy.best()[1] == pytest.approx(1e6 + 2.5, abs=2)


MORE = {
    "gp_ucb": {},
    "igp_ucb": {},
    "ec_gp_ucb": {"misspecification": 0.1},
    "gp_bucb": {},
    "gp_ucb_sdf": {"minimum": 0.0},
    "cgp_ucb": {"context_domain": SEEN},
    "stable_opt": {"radius": 0.1},
    "thompson_sampling": {},
}


@pytest.mark.parametrize("name", MORE)
def test_numbers_that_come_from_the_fit_are_refused_by_name(name):
    method, more = getattr(bx.algorithms, name), {"width": 2.0, **MORE[name]}
    method(BOX, bx.Fitted(), **more)
    for argument, value in (("noise_variance", 0.1), ("mean", lambda X: X[..., 0])):
        with pytest.raises(ValueError, match=argument):
            method(BOX, bx.Fitted(), **{argument: value}, **more)
    with pytest.raises(TypeError, match="noise_variance"):
        method(BOX, matern(0.5), **more)


@pytest.mark.parametrize(
    "name", ["bpe", "breadthwise_exploration", "regret_balancing", "certified_bucb", "mle_ucb"]
)
def test_methods_of_fixed_models_refuse_it(name):
    more = {"noise_std": 0.1, "width": 2.0} if name == "mle_ucb" else {}
    with pytest.raises(ValueError, match="Fitted"):
        getattr(bx.algorithms, name)(BOX, bx.Fitted(), **more)
