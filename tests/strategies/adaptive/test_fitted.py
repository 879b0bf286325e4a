"""Strategies whose hyperparameters come from their data."""

import json
import math
from functools import cache
from itertools import cycle

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

import botorch_ext as bx
from botorch_ext.strategies import Asked, Trial
from botorch_ext.strategies.adaptive import refits

BOX = bx.Box([[2.0, -7.0], [5.0, -6.2]])
GRID = bx.FiniteSet(BOX.sample(40, seed=1))
SEEN = bx.Box([[-1.0], [3.0]])
MINIMUM = 90.0
# Of means of 100 under a noise variance of a ten-thousandth of that of f.
CLOSE = {"rtol": 1e-6, "atol": 1e-6}
both = pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "set"])
POLICIES = {
    "ignore": {"pending": "ignore"},
    "hallucinate": {"pending": "hallucinate"},
    "inflate": {"pending": "hallucinate", "inflate": True},
    "censor": {"pending": "censor", "minimum": MINIMUM},
    "timeout": {"pending": "censor", "minimum": MINIMUM, "timeout": 2},
}
all_policies = pytest.mark.parametrize("policy", POLICIES)


def f(x, context=None):
    z = 0.0 if context is None else float(context.sum())
    return 100.0 + 30.0 * math.sin(2 * float(x[0]) + z) + 20.0 * math.cos(3 * float(x[1]))


def make(domain, policy="hallucinate", fitted=None, **options):
    fitted = bx.Fitted() if fitted is None else fitted
    options = {"seed": 3, "num_initial": 3, **POLICIES[policy], **options}
    return bx.algorithms.gp_ucb(domain, fitted, width=2.0, **options)


def played(strategy, steps=5, contexts=None):
    """Asked by threes; told late and out of order; one is abandoned, and some stay pending."""
    for step in range(steps):
        offer = {} if contexts is None else {"context": contexts.sample(9, seed=2)[step % 9]}
        trials = strategy.ask(3, **offer)
        for id in (trials[2].id, trials[0].id - 2):
            if id in strategy.pending and step != 2:
                trial = strategy.history.trials[id]
                strategy.tell(id, f(trial.x, trial.context))
        if step == 1:
            strategy.abandon(trials[1].id)
    return strategy


@cache
def _session(domain, policy):
    return played(make(domain, policy))


def one_session(domain, policy="hallucinate"):
    """A strategy in a session that is played once."""
    return _session(domain, policy).clone()


def told(strategy):
    """Joint rows and values of what models know, by the policy also what is censored."""
    rows, values = [], []
    if strategy.initial is not None:
        rows, values = list(strategy.initial[0]), strategy.initial[1].tolist()
    late = strategy.report()["told_too_late"]
    policy = strategy.report()["pending_policy"]
    for trial in strategy.history.trials:
        value = strategy.history.values.get(trial.id)
        if trial.id in strategy.history.abandoned:
            continue
        if value is None or trial.id in late:
            if policy != "censor":
                continue
            value = MINIMUM
        rows.append(trial.point)
        values.append(value)
    return torch.stack(rows), torch.tensor(values, dtype=torch.float64)


def moments(numbers, X, y, pending, Z, sides):
    """Textbook mean and standard deviation; pending rows count in the second alone."""
    kernel = MaternKernel(nu=2.5, ard_num_dims=X.shape[-1]).double()
    kernel.lengthscale = torch.tensor(numbers["lengthscales"], dtype=torch.float64)

    @torch.no_grad()
    def k(A, B):
        return numbers["outputscale"] * kernel(A / sides, B / sides).to_dense()

    def weights(rows):
        noise = numbers["noise_variance"] * torch.eye(len(rows), dtype=torch.float64)
        return torch.linalg.solve(k(rows, rows) + noise, k(rows, Z))

    mean = numbers["mean"] + weights(X).mT @ (y - numbers["mean"])
    rows = torch.cat([X, pending])
    variance = numbers["outputscale"] - (k(rows, Z) * weights(rows)).sum(dim=0)
    return mean, variance.clamp_min(0).sqrt()


def asked_by_a_fit(strategy):
    return [trial.id for trial in strategy.history.trials if "fit" in trial.info]


@both
@all_policies
def test_bands_are_the_textbook_ones_of_the_fit_with_pending_trials(domain, policy):
    strategy = one_session(domain, policy)
    numbers = strategy.report()["fit"]
    X, y = told(strategy)
    pending = [strategy.history.trials[id].x for id in strategy.pending]
    if policy in ("hallucinate", "inflate"):
        pending = torch.stack(pending)
    else:
        pending = X[:0]
    sides = BOX.upper - BOX.lower
    if domain is GRID:
        sides = GRID.points.amax(dim=0) - GRID.points.amin(dim=0)
    Z = domain.sample(5, seed=6)
    mean, half_width = (values[0] for values in strategy.bands(Z))
    expected, std = moments(numbers, X, y, pending, Z, sides)
    torch.testing.assert_close(mean, expected, **CLOSE)
    width = strategy.report()["current_width"]
    assert (width == 2.0) == (policy != "inflate")
    torch.testing.assert_close(half_width, width * std, **CLOSE)


@both
@all_policies
def test_a_refit_keeps_every_row(domain, policy):
    strategy = one_session(domain, policy)
    strategy.tell(strategy.pending[0], 107.0)
    before = strategy.posterior
    num_rows, num_pending = before.num_observations, len(before.factor.pending)
    trial = strategy.ask()
    assert "fit" in trial.info
    after = strategy.posterior
    counted = policy != "ignore"
    assert after.num_observations == num_rows + counted
    assert len(after.factor.pending) == num_pending + (policy in ("hallucinate", "inflate"))
    X, _ = told(strategy)
    assert len(X) + len(after.factor.pending) == after.num_observations
    assert sorted(strategy._rows.current().ids) == sorted(
        id
        for id in range(len(strategy.history.trials))
        if id not in strategy.history.abandoned and (counted or id in strategy.history.values)
    )


@both
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
    strategy.ask()
    strategy.ask()
    assert asked_by_a_fit(strategy) == [6, 12]
    assert strategy.report()["fit"]["num_fits"] == 2
    assert strategy.report()["fit"]["num_data"] == 5


@both
def test_every_says_how_many_data_make_a_fit_due(domain):
    X = domain.sample(3, seed=8)
    initial = X, torch.tensor([f(x) for x in X]).double()
    strategy = make(domain, fitted=bx.Fitted(every=4), num_initial=0, initial=initial)
    for _ in range(12):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    # With 3 data, then where 2 + 4, 2 + 8 and 2 + 12 are reached.
    assert asked_by_a_fit(strategy) == [0, 3, 7, 11]


@both
def test_what_is_told_too_late_is_no_datum(domain):
    strategy = make(domain, "timeout", num_initial=0)
    strategy.ask(6)
    for id in range(6):
        strategy.tell(id, 100.0 + id)
    assert strategy.report()["told_too_late"] == [0, 1, 2]
    fit = strategy.ask().info["fit"]
    assert fit["outputscale"] == pytest.approx(1.0)  # of 103, 104, 105


@pytest.mark.parametrize(("domain", "policy"), list(zip(cycle([BOX, GRID]), POLICIES)))
def test_replay_fits_nothing_and_goes_on_bit_for_bit(domain, policy, monkeypatch):
    strategy = one_session(domain, policy)
    assert len(asked_by_a_fit(strategy)) >= 2
    events = json.loads(json.dumps([trial.info for trial in strategy.history.trials]))
    other = make(domain, policy)

    def none(*_, **__):
        raise AssertionError("a replay must not fit")

    with monkeypatch.context() as patch:
        patch.setattr(refits, "most_probable", none)
        other.replay(
            Asked(Trial(e.trial.id, e.trial.x, None, events[e.trial.id]))
            if isinstance(e, Asked)
            else e
            for e in strategy.events
        )
    assert other.report() == strategy.report()
    for _ in range(2):
        ours, theirs = strategy.ask(), other.ask()
        assert torch.equal(ours.x, theirs.x) and ours.info == theirs.info
        for one in (strategy, other):
            one.tell(ours.id, f(ours.x))
    assert "fit" in strategy.ask().info


def test_recorded_numbers_are_those_that_replay_plays_by():
    """Not those that a fit would find now."""
    strategy = one_session(BOX)
    last = strategy.history.trials[asked_by_a_fit(strategy)[-1]]
    other_fit = {**last.info["fit"], "mean": 50.0, "lengthscales": [0.3, 0.7]}
    events = [
        Asked(Trial(last.id, last.x, None, {**last.info, "fit": other_fit}))
        if isinstance(event, Asked) and event.trial.id == last.id
        else event
        for event in strategy.events
    ]
    other = make(BOX)
    other.replay(events)
    numbers = other.report()["fit"]
    assert numbers["mean"] == 50.0 and numbers["lengthscales"] == [0.3, 0.7]
    Z = BOX.sample(5, seed=6)
    X, y = told(other)
    expected, _ = moments(numbers, X, y, X[:0], Z, BOX.upper - BOX.lower)
    torch.testing.assert_close(other.bands(Z)[0][0], expected, **CLOSE)


WRONG = {
    "a list": ([0.1], "fit in the info of trial 3 must be a dict with"),
    "nothing": (None, "must be a dict with"),
    "too few": ({"mean": 1.0}, "must be a dict with"),
    "more": ({"more": 1.0}, "must be a dict with"),
    "one lengthscale": ({"lengthscales": [0.3]}, "must be a list of 2 numbers"),
    "a number": ({"lengthscales": 0.3}, "must be a list of 2 numbers"),
    "zero": ({"lengthscales": [0.0, 1.0]}, "lengthscales in the fit .* must be positive, got 0.0"),
    "NaN": ({"mean": math.nan}, "mean in the fit .* must be finite, got nan"),
    "infinity": ({"outputscale": math.inf}, "outputscale in the fit .* must be finite"),
    "negative": ({"noise_variance": -1.0}, "noise_variance in the fit .* must be positive"),
    "text": ({"mean": "1.0"}, "mean in the fit .* must be finite"),
    "truth": ({"outputscale": True}, "outputscale in the fit .* must be finite, got True"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_recorded_fit_is_checked_before_anything_happens(wrong):
    strategy = make(BOX)
    for trial in strategy.ask(3):
        strategy.tell(trial.id, f(trial.x))
    before, events = strategy.report(), strategy.events
    ahead = strategy.clone()
    trial = ahead.ask()
    changed, message = WRONG[wrong]
    record = {**trial.info["fit"], **changed} if isinstance(changed, dict) else changed
    if wrong == "too few":
        record = changed
    with pytest.raises(ValueError, match=message):
        strategy.replay([Asked(Trial(3, trial.x, None, {**trial.info, "fit": record}))])
    assert strategy.report() == before
    assert len(strategy.events) == len(events)
    assert strategy.ask().info == trial.info


@both
@pytest.mark.parametrize("values", [[], [3.0], [3.0] * 5, [1e12] * 4, [0.0] * 3])
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


@pytest.mark.slow
@both
def test_large_values_and_duplicates(domain):
    small, large = make(domain), make(domain)
    for step in range(10):
        one, other = small.ask(), large.ask()
        for strategy, trial, scale in ((small, one, 1.0), (large, other, 1e12)):
            strategy.tell(trial.id, scale * (f(one.x) + 0.1 * step))
    # The same questions, but for what rounding makes of a search.
    torch.testing.assert_close(one.x, other.x, rtol=1e-2, atol=1e-2)
    again = make(domain, initial=(one.x.repeat(6, 1), torch.arange(6.0).double()))
    assert bool(domain.contains(again.ask(5)[-1].x).all())


@pytest.mark.parametrize("penalty", [1e20, 1e100])
def test_a_penalty_does_not_end_the_study(penalty):
    strategy = make(BOX)
    for step in range(8):
        trial = strategy.ask()
        strategy.tell(trial.id, -penalty if step == 3 else f(trial.x))
    assert strategy.report()["fit"]["outputscale"] > penalty
    assert bool(BOX.contains(strategy.ask().x))


def test_fewer_data_than_columns():
    box = bx.Box([[0.0] * 12, [3.0] * 12])
    strategy = bx.algorithms.gp_ucb(box, bx.Fitted(), width=2.0, num_initial=2)
    for _ in range(4):
        trial = strategy.ask()
        strategy.tell(trial.id, float(trial.x.sum()))
    assert len(strategy.ask().info["fit"]["lengthscales"]) == 12


@pytest.mark.parametrize("contexts", [SEEN, 1, bx.FiniteSet([[0.0], [1.0], [2.0]])])
def test_contexts_have_lengthscales_and_ranges_of_their_own(contexts):
    method = bx.algorithms.cgp_ucb
    known = contexts if isinstance(contexts, bx.Box | bx.FiniteSet) else SEEN

    def fresh():
        return method(BOX, bx.Fitted(), width=2.0, num_initial=2, context_domain=contexts)

    strategy = played(fresh(), contexts=known)
    numbers = strategy.report()["fit"]
    assert len(numbers["lengthscales"]) == 3
    X, y = told(strategy)
    pending = torch.stack([strategy.history.trials[id].point for id in strategy.pending])
    last = strategy.history.trials[asked_by_a_fit(strategy)[-1]]
    if contexts == 1:  # as far as the contexts that were told at the fit
        at_fit = X[[id < last.id for id in sorted(strategy.history.values)]]
        side = at_fit[:, 2].max() - at_fit[:, 2].min()
    else:
        side = torch.tensor(4.0 if contexts is SEEN else 2.0)
    sides = torch.cat([BOX.upper - BOX.lower, side.double()[None]])
    Z, context = BOX.sample(5, seed=6), known.sample(1, seed=9)[0]
    joint = torch.cat([Z, context.expand(5, 1)], dim=-1)
    expected, std = moments(numbers, X, y, pending, joint, sides)
    mean, half_width = (values[0] for values in strategy.bands(Z, context))
    torch.testing.assert_close(mean, expected, **CLOSE)
    torch.testing.assert_close(half_width, 2.0 * std, **CLOSE)
    other = fresh()
    other.replay(strategy.events)
    assert other.ask(context=context).info == strategy.ask(context=context).info


def test_changing_actions():
    strategy = make(BOX, num_initial=2)
    for step in range(5):
        actions = BOX.sample(6, seed=step)
        trial = strategy.ask(actions=actions)
        assert torch.equal(actions[trial.info["action"]], trial.x)
        strategy.tell(trial.id, f(trial.x))
    assert "fit" in strategy.ask(actions=actions).info


@pytest.mark.slow
@both
def test_stable_opt_takes_it(domain):
    strategy = bx.algorithms.stable_opt(domain, bx.Fitted(), width=2.0, radius=0.2, num_initial=3)
    for _ in range(6):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    other = bx.algorithms.stable_opt(domain, bx.Fitted(), width=2.0, radius=0.2, num_initial=3)
    other.replay(strategy.events)
    assert other.report() == strategy.report()
    assert strategy.report()["fit"]["num_fits"] == 3


def test_misspecification_stays_in_the_units_of_the_user():
    strategy = bx.algorithms.ec_gp_ucb(
        BOX, bx.Fitted(), width=2.0, misspecification=0.5, num_initial=3
    )
    for trial in strategy.ask(3):
        strategy.tell(trial.id, f(trial.x))
    trial = strategy.ask()
    enlargement = 0.5 * math.sqrt(4 / trial.info["fit"]["noise_variance"])
    assert trial.info["width"] == pytest.approx(2.0 + enlargement)


def test_before_the_first_fit_means_are_in_units_of_what_was_observed():
    strategy = make(BOX, num_initial=8)
    for trial in strategy.ask(4):
        strategy.tell(trial.id, 1e6 + trial.id)
    numbers = strategy.report()["fit"]
    assert numbers["num_fits"] == 0
    assert numbers["mean"] == pytest.approx(1e6 + 1.5)
    assert strategy.best()[1] == pytest.approx(1e6 + 2.5, abs=2)


def test_a_question_that_is_not_asked_leaves_nothing():
    strategy = one_session(BOX)
    strategy.tell(strategy.pending[0], 111.0)
    before = strategy.report()
    trial = strategy.successor().next_trial(strategy._checked_choices(None, None))
    assert "fit" in trial.info
    assert strategy.report() == before
    strategy.tell(strategy.pending[0], 95.0)
    expected = make(BOX)
    expected.replay(strategy.events)
    assert strategy.ask().info == expected.ask().info != trial.info


ADAPTIVE = ("gp_ucb", "igp_ucb", "ec_gp_ucb", "gp_bucb", "gp_ucb_sdf", "cgp_ucb", "stable_opt")
MORE = {
    "ec_gp_ucb": {"misspecification": 0.1},
    "gp_ucb_sdf": {"minimum": 0.0},
    "cgp_ucb": {"context_domain": SEEN},
    "stable_opt": {"radius": 0.1},
}


@pytest.mark.parametrize("name", ADAPTIVE)
def test_numbers_that_come_from_the_fit_are_refused_by_name(name):
    method, more = getattr(bx.algorithms, name), {"width": 2.0, **MORE.get(name, {})}
    method(BOX, bx.Fitted(), **more)
    for argument, value in (("noise_variance", 0.1), ("mean", lambda X: X[..., 0])):
        with pytest.raises(ValueError, match=rf"{name}\(\): {argument} must not be given with a"):
            method(BOX, bx.Fitted(), **{argument: value}, **more)
    with pytest.raises(TypeError, match=rf"{name}\(\) missing 1 required .*: 'noise_variance'"):
        method(BOX, RBFKernel(), **more)


def test_contexts_may_be_known_by_their_number_alone():
    strategy = bx.algorithms.cgp_ucb(BOX, bx.Fitted(), width=2.0, context_domain=2)
    for i in range(10):
        trial = strategy.ask(context=[0.1 * i, 0.5 - 0.2 * (i % 3)])
        strategy.tell(trial.id, float(trial.point.sin().sum()))
    assert len(strategy.report()["fit"]["lengthscales"]) == BOX.dim + 2


def test_contexts_of_unknown_size_are_refused():
    with pytest.raises(ValueError, match="context_domain must be a domain or the dimension"):
        bx.algorithms.cgp_ucb(BOX, bx.Fitted(), width=2.0)


DESIGNED = ("phased_uncertainty_sampling", "bpe", "bpe_delay", "breadthwise_exploration")


WHY_NOT = dict.fromkeys(DESIGNED, "what it asks follows from the prior") | {
    "regret_balancing": "the regret bounds",
    "certified_bucb": "its certificates",
}


@pytest.mark.parametrize(("name", "why"), WHY_NOT.items())
def test_methods_of_a_fixed_prior_say_why_not(name, why):
    for arguments, named in (((BOX, bx.Fitted()), {}), ((BOX,), {"kernel": bx.Fitted()})):
        with pytest.raises(ValueError, match=rf"{name}\(\): kernel must not be Fitted: {why}"):
            getattr(bx.algorithms, name)(*arguments, **named)


def test_judges_need_fixed_models():
    with pytest.raises(ValueError, match="model must not be Fitted with a judge"):
        bx.algorithms.mle_ucb(BOX, bx.Fitted(), noise_std=0.1, width=2.0)
