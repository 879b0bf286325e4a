"""Certified elimination against its pseudo-code, written out in plain loops and dense algebra."""

import math
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
import torch

from botorch_ext import delays, simulate
from botorch_ext.strategies import Asked
from tests.helpers import tolerance
from tests.oracles.certified import Certified, Numbers, follow
from tests.oracles.posterior import dense_posterior
from tests.strategies.fixed_design import sessions
from tests.strategies.fixed_design.sessions import LAMBDA, B, certified
from tests.strategies.sessions import both_domains, box, data, finite, kernel, slow_on_a_box

# Long enough for two blocks in a box, one of which is bought again.
HORIZON, SHORT = 130, 44
ALWAYS = {"width": 1.0, "buy": "always"}
PUBLISHED = {"rkhs_bound": B, "noise_std": sessions.SIGMA, "delta": sessions.DELTA}
SIXTH, KAPPA = {"width": math.sqrt(6)}, math.sqrt(2)
HEAVY = {**SIXTH, "kappa": KAPPA, "buy": "always", "share": 0.25}
SMALL = {**PUBLISHED, "rkhs_bound": 0.4, "buy": "always", "free_width": 1.3}
STARTED = {**PUBLISHED, "num_initial": 6, "initial": data(finite(), 5)}
# name: the arguments besides the problem, and the delays; None for feedback in any order, some of
# it lost.
CASES = {
    "at once": ({**SIXTH, "buy": "always"}, delays.Fixed(0)),
    "useful": (SIXTH, delays.Poisson(5.0)),
    "late": (ALWAYS, delays.Poisson(25.0)),
    "heavy": (HEAVY, delays.LogNormal(2.0, 1.5)),
    "put off": ({"width": 0.5, "free_width": 2.0}, delays.Fixed(35)),
    "published, small B": (SMALL, delays.Poisson(5.0)),
    # f exceeds this bound, so that both bounds are clipped where they matter.
    "clipped": ({**ALWAYS, "rkhs_bound": 0.5}, delays.Poisson(5.0)),
    "in any order, kappa": ({"width": 1.5, "buy": "always", "kappa": KAPPA}, None),
    "started, published": (STARTED, delays.Poisson(9.0)),
}


def numbers(horizon=HORIZON, **options):
    """What the oracle is given for a strategy with these arguments on the finite set."""
    domain, before = finite(), []
    with torch.no_grad():
        K = kernel()(domain.points).to_dense()
    if "initial" in options:
        X, Y = options["initial"]
        before = list(zip(domain.index(X).tolist(), Y.tolist(), strict=True))
    names = {"share": "rho", "rkhs_bound": "B", "noise_std": "sigma"}
    same = ("kappa", "buy", "delta", "width", "free_width", "num_initial")
    names |= {name: name for name in same}
    given = {theirs: options[ours] for ours, theirs in names.items() if ours in options}
    given.setdefault("free_width", options.get("width", 2.0))
    return Numbers(K, LAMBDA, horizon, before=before, **given)


def follow_again(strategy, horizon=HORIZON, is_bucb=True, **options):
    """The oracle that has followed a strategy on the set."""
    oracle = Certified(numbers(horizon, **options), is_bucb)
    return follow(oracle, certified(strategy.domain, horizon, **options), strategy.events)


@cache
def followed(case):
    """A session of a case, and the oracle at its end; nobody may change them."""
    options, delay = CASES[case]
    problem = sessions.rkhs(finite())
    strategy = certified(problem.domain, **options)
    if delay is None:
        sessions.play(strategy, problem, seed=12, lost=0.2)
    else:
        simulate(strategy, problem, HORIZON, delay=delay, seed=4)
    return strategy, follow_again(strategy, **options)


@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_pseudo_code(case):
    strategy, oracle = followed(case)
    assert len(oracle.row) == HORIZON
    assert oracle.certificates == sorted(oracle.certificates, reverse=True)
    report, trials = strategy.report(), strategy.history.trials
    assert report["certificate"] == pytest.approx(oracle.c, rel=1e-7)
    asked = trials[oracle.n.num_initial :]
    assert report["phases"] == Counter(trial.info["phase"] for trial in asked)
    # The history of certificates has every change, and nothing twice in a row.
    at = {entry["trial"]: entry for entry in report["certificates"]}  # the last where both cut
    for last, entry in pairwise(report["certificates"]):
        assert (last["certificate"], last["volume"]) != (entry["certificate"], entry["volume"])
    for id, entry in at.items():
        info = trials[id].info
        assert entry["by"] in info
        assert entry["certificate"] == info["certificate"]
        assert entry["round"] == info["round"] - (entry["by"] == "closing")
    for last, trial in pairwise(asked):
        assert trial.info["certificate"] == last.info["certificate"] or trial.id in at


def test_the_cases_have_everything_in_them():
    ends = [followed(case)[1] for case in CASES]
    seen = sum((oracle.seen for oracle in ends), Counter())
    for what in (
        *("free", "block", "wait", "rest", "rested", "blocks", "eliminated", "closed", "put off"),
        *("closed without all of the block", "told too late", "bought more", "A stayed"),
        *("pending would not do", "abandoned in a block"),
    ):
        assert seen[what] > 0, what
    assert any(oracle.c < 0.2 for oracle in ends)


@pytest.mark.parametrize("num_initial", [0, 40])
def test_published_widths_share_delta_among_rounds_points_and_two_bounds(num_initial):
    options = {**PUBLISHED, "num_initial": num_initial}
    strategy, oracle = certified(finite(), **options), Certified(numbers(**options))
    assert oracle.R == (4 if num_initial == 0 else 3)
    width = float(strategy.block_width(1, strategy.model))
    assert width == pytest.approx(oracle.w_F(), rel=1e-12)
    assert float(strategy.told_width(1, strategy.model)) == pytest.approx(oracle.w_S(), rel=1e-12)
    assert strategy.certificate == 2 * PUBLISHED["rkhs_bound"]
    on_box = certified(box(), **options).block_width
    assert (on_box.delta, on_box.num_rounds) == (PUBLISHED["delta"] / 2, oracle.R)


@pytest.mark.parametrize("horizon", [8, 11, 12, 13, 14])
def test_the_round_that_the_horizon_cuts_has_no_block(horizon):
    """Of rounds of 4, 7 and 10 steps, 12 leave the third one step, 11 none."""
    problem, options = sessions.rkhs(finite()), {**ALWAYS, "share": 0.5}
    strategy = certified(problem.domain, horizon, **options)
    simulate(strategy, problem, horizon, seed=1)
    follow_again(strategy, horizon, **options)


def test_any_rule_may_play_the_free_steps():
    asked = []

    def worst(model, region, pending, seed):
        """The point of the least mean: as bad as the region allows."""
        asked.append((model.num_observations, len(pending)))
        return region.points[model.mean_and_std(region.points)[0].argmin()]

    problem, options = sessions.rkhs(finite()), {**ALWAYS, "share": 0.5, "free": worst}
    strategy = certified(problem.domain, **options)
    trace = simulate(strategy, problem, HORIZON, delay=delays.Poisson(4.0), seed=2)
    oracle = follow_again(strategy, is_bucb=False, **options)
    assert max(pending for _, pending in asked) > 0
    # The true widths are less than 1 here: what is certified holds.
    regret = trace.regret.tolist()
    assert all(r <= c + 1e-9 for r, c in zip(regret, oracle.certificates, strict=True))
    assert min(oracle.certificates) < 0.5


@pytest.mark.parametrize(
    ("seed", "delay", "id", "phase"), [(6, 5, 10, "rest"), (9, 0, 115, "block")]
)
def test_a_block_is_useful_above_four_times_its_promise(seed, delay, id, phase):
    problem, width = sessions.rkhs(finite(), seed=seed), 0.5
    strategy = certified(problem.domain, width=width)
    simulate(strategy, problem, HORIZON, delay=delays.Fixed(delay), seed=4)
    info = strategy.history.trials[id].info
    assert info["phase"] == phase
    assert info["certificate"] / (width * info["plan"]["promise"]) == pytest.approx(4, abs=0.2)
    follow_again(strategy, width=width)


@pytest.mark.parametrize("abandons", [False, True])
def test_a_block_is_put_off_for_what_pended_when_it_was_due(abandons):
    """For as long as the round at most, or until nothing of it pends any more."""
    problem, options = sessions.rkhs(finite()), {"width": 0.2, "free_width": 2.0}
    strategy, put_off, watched = certified(problem.domain, **options), [], None
    for _ in range(HORIZON):
        if abandons and len(put_off) == 21:
            for id in watched:
                if id in strategy.pending:
                    strategy.abandon(id)
        pending = strategy.pending
        trial = strategy.ask()
        if trial.id < strategy.schedule.length(1):  # nothing comes of the others
            strategy.tell(trial.id, float(problem(trial.x)))
        if "cut" in trial.info and trial.info["round"] == 2:
            watched = pending if watched is None else watched
            put_off.append(trial.info["cut"]["put_off"])
    assert sum(put_off) == (21 if abandons else strategy.schedule.length(2))
    follow_again(strategy, **options)


@slow_on_a_box
def test_a_rule_is_given_what_is_told_and_where_it_may_ask(domain):
    seen = []

    def rule(model, region, pending, seed):
        assert torch.is_grad_enabled()  # it may climb by gradients
        X = region.points if domain is finite else region.population(16, seed).points
        seen.append((model, region, pending, seed))
        return X[seed % len(X)].clone().requires_grad_()

    problem = sessions.rkhs(domain())
    strategy = certified(problem.domain, SHORT, **ALWAYS, free=rule)
    simulate(strategy, problem, SHORT, delay=delays.Fixed(2), seed=1)
    assert len({seed for *_, seed in seen}) == len(seen)
    model, region, pending, _ = seen[-1]
    assert torch.equal(pending, sessions.points(strategy, range(SHORT - 3, SHORT - 1)))
    X = sessions.points(strategy, range(SHORT - 3))
    assert not X.requires_grad
    y = X.new_tensor([strategy.history.values[id] for id in range(SHORT - 3)])
    Z = problem.domain.sample(5, seed=3)
    mean, _ = dense_posterior(kernel(), X, y, Z, LAMBDA)
    torch.testing.assert_close(model.mean_at(Z), mean, **tolerance(Z.dtype))
    assert len(region.points) < 54 if domain is finite else region.constraints


@both_domains
@pytest.mark.parametrize("answer", [[9.0, 9.0], [2.0], [math.nan, -2.0], None, "here"])
def test_a_rule_that_leaves_the_domain_is_refused(domain, answer):
    strategy = certified(domain(), SHORT, **ALWAYS, free=lambda *_: answer)
    with pytest.raises(ValueError, match="free must"):
        strategy.ask()
    assert strategy.events == ()


def test_a_rule_may_not_ask_what_was_eliminated():
    problem = sessions.rkhs(finite())
    worst = problem.domain.points[problem(problem.domain.points).argmin()]

    def rule(model, region, pending, seed):
        return region.points[seed % len(region.points)] if model.num_observations < 25 else worst

    strategy = certified(problem.domain, SHORT, width=0.5, free=rule)
    with pytest.raises(ValueError, match="free must"):
        simulate(strategy, problem, SHORT, seed=1)
    assert int(problem.domain.index(worst)) not in strategy.survivors


@pytest.mark.parametrize(
    ("options", "delay", "horizon"),
    [
        (ALWAYS, delays.Fixed(1), 16),
        pytest.param({"width": 2.0, "buy": "always"}, delays.Fixed(0), 60, marks=pytest.mark.slow),
        pytest.param(
            {**ALWAYS, "share": 0.25, "free_width": 1.5},
            *(delays.Fixed(3), 60),
            marks=pytest.mark.slow,
        ),
        pytest.param(PUBLISHED, delays.Poisson(4.0), 60, marks=pytest.mark.slow),
    ],
)
def test_on_a_box_what_is_asked_is_a_maximum_in_the_region_and_certified(options, delay, horizon):
    problem = sessions.rkhs(box(), seed=1)
    strategy, fresh = (certified(problem.domain, horizon, **options) for _ in range(2))
    trace = simulate(strategy, problem, horizon, delay=delay, seed=4)
    grid, certificate, bought, counts = box().sample(1000, seed=3), math.inf, [], Counter()
    alive, at_grid, region = torch.ones(1000, dtype=torch.bool), problem(grid), fresh.survivors
    free_width = options.get("free_width", options.get("width", 2.0))

    def moments(ids, Z):
        if not ids:
            return Z.new_zeros(len(Z)), Z.new_ones(len(Z))
        X, y = sessions.points(strategy, ids), trace.observations[ids]
        mean, covariance = dense_posterior(kernel(), X, y, Z, LAMBDA)
        return mean, covariance.diag().clamp_min(0).sqrt()

    for event in strategy.events:
        told = list(fresh.history.values)
        fresh.follow([event])
        if not isinstance(event, Asked):
            continue
        trial = event.trial
        if fresh.survivors is not region:
            region = fresh.survivors
            inside = region.contains(grid)
            assert not bool((inside & ~alive).any())  # never grows
            assert any(name in trial.info for name in ("closing", "cut"))
            alive = inside
        assert bool(region.contains(trial.x).all())
        assert fresh.certificate <= certificate
        certificate = fresh.certificate
        # Of every point of the region, not of the asked ones alone.
        assert float(trace.regret[trial.id]) <= certificate + 1e-9
        assert problem.optimal_value - float(at_grid[alive].min()) <= certificate + 1e-6
        Z, phase = torch.cat([trial.x[None], grid[alive]]), trial.info["phase"]
        if phase == "block":
            bought = [] if "plan" in trial.info else bought
            score, short = moments(bought, Z)[1], 0.05  # the best of a few climbers
            bought = [*bought, trial.id]
        else:
            score = moments(told, Z)[0] + free_width * moments(list(range(trial.id)), Z)[1]
            short = 1e-3
        counts[phase] += 1
        assert score[0] >= score.max() - short * (score.max() - score.min()) - 1e-9
    assert bool(region.contains(problem.optimizer).all())
    assert region.constraints or "width" not in options
    assert counts["block"] or "buy" not in options
    assert min(counts[phase] for phase in ("free", "block", "wait")) >= 3 or "share" not in options
