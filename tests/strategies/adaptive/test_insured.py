"""Insured methods against their definition: every level, probe and price, replayed through plain
loops and dense algebra."""

import math

import pytest
import torch

from botorch_ext import Box, CandidateModels, FiniteSet, algorithms, problems
from botorch_ext.exceptions import HorizonReached
from botorch_ext.strategies.adaptive.ledger import Terms
from tests.helpers import rbf
from tests.laws.scenarios import quietly
from tests.oracles.insured import Insured
from tests.oracles.models import Candidate
from tests.strategies.sessions import scaled

pytestmark = quietly
B, SIGMA, DELTA = 1.0, 0.05, 0.1
# Numbers that make everything happen within few steps.
EAGER = Terms(alpha=0.5, beta=0.6, purse=0.4, max_follow_ups=2, override=1.0)
# A suspect that is not offered is let go at once.
HASTY = Terms(alpha=0.5, beta=2.0, purse=0.4, max_follow_ups=1, override=1.0)


def line(num):
    return torch.linspace(0, 1, num, dtype=torch.float64).unsqueeze(-1)


def matrix(kernel, X):
    return kernel(X, X).to_dense().detach()


def bent(X, kernel, eps, seed):
    """A function of the RKHS of norm 1, with a perturbation of size eps."""
    g, K = torch.Generator().manual_seed(seed), matrix(kernel, X)
    weights = torch.randn(len(X), generator=g, dtype=torch.float64)
    f = K @ weights / math.sqrt(float(weights @ K @ weights))
    return f + eps * (2 * torch.rand(len(X), generator=g, dtype=torch.float64) - 1)


def _locked():
    problem = problems.lock_out()
    return problem.domain.points, problem(problem.domain.points), problem.kernel


def _bent_line(eps, seed):
    return line(25), bent(line(25), rbf(0.2), eps, seed), rbf(0.2)


# points, values and the kernel; noise variance and noise
CASES = {
    "right": (_bent_line(0.0, 0), 1e-2, 0.05),
    "rough": (_bent_line(0.3, 1), 1e-2, 0.02),
    "rougher": (_bent_line(0.6, 2), 1e-2, 0.02),
    # A kernel above 1: the bounds start from its own standard deviation.
    "large": ((*_bent_line(0.3, 1)[:2], scaled(rbf(0.2), 2.25)), 1e-2, 0.02),
    # Three arms of which the linear model excludes the best.
    "locked": (_locked(), 1e-3, 0.01),
    # Four times what B allows: even the last level is refuted.
    "wrong": ((line(25), 4 * _bent_line(0.0, 1)[1], rbf(0.2)), 1e-2, 0.02),
}


def pair(domain, P, kernels, ridge, sigma, terms=EAGER, watched=None, **options):
    """A strategy, and the oracle of its decisions on the points or pairs ``P``."""
    options |= {"rkhs_bound": B, "noise_std": sigma, "terms": terms}
    several = len(kernels) > 1
    if several:
        models = CandidateModels(kernels, ridge)
        strategy = algorithms.safe_ucb(domain, models, **options)
    else:
        strategy = algorithms.insured_ucb(domain, kernels[0], noise_variance=ridge, **options)
    more = {name: options.get(name) for name in ("width", "credibility", "horizon")}
    models = [Candidate.at(P, kernel, ridge) for kernel in kernels]
    oracle = Insured(models, B, sigma, DELTA, restricted=several, watched=watched, **more)
    if terms is not None:
        oracle.c |= {name: value for name, value in vars(terms).items() if name in oracle.c}
    return strategy, oracle


def run(strategy, oracle, P, f, steps, sigma, delay=0, changing=False, contexts=None, **more):
    """Plays and compares; the kinds of all trials, and their levels.

    Rows are those of ``P``: points, or pairs of an action and a context, all actions of a context
    together. A share of the results is ``lost``; so many results were there ``before``.
    """
    before, lost = more.get("before", 0), more.get("lost", 0.0)
    g, N = torch.Generator().manual_seed(3), len(P) // (1 if contexts is None else len(contexts))
    kinds, levels, pending, price, charged = [], [], [], 0.0, {"large": 0.0, "small": 0.0}

    def row_of(point):
        return int((P == point).all(-1).nonzero()[0])

    for t in range(1 + before, steps + 1 + before):
        offer, offered = {}, list(range(N))
        if changing:
            own = torch.Generator().manual_seed(t)
            offered = torch.randperm(N, generator=own)[: max(2 * N // 3, 2)].tolist()
            offer["actions"] = strategy.domain.points[offered]
        if contexts is not None:
            number = t * t % len(contexts)
            offer["context"] = contexts[number]
            offered = [N * number + x for x in offered]
        trial = strategy.ask(**offer)
        row, info = row_of(trial.point), trial.info
        if "initial" not in info:
            oracle.hint = info.get("plan", {}).get("plan", [])
            expected = oracle.ask(t, [row for _, _, row in pending], offered)
            assert (row, info["kind"]) == (expected["row"], expected["kind"]), (t, expected)
            assert info["level"] == expected["level"]
            assert info.get("suspected") == expected["suspected"]
            assert info["cost"] == pytest.approx(expected["cost"], abs=1e-7)
            if oracle.watched is not None:
                oracle.watched |= {row_of(P.new_tensor(new)) for new in info["watched"]}
                assert row in oracle.watched
            if info["kind"] == "exploit":
                price += info["cost"]
            elif info["kind"] != "block":
                charged["small" if info["purse"] == "small" else "large"] += info["cost"]
            kinds.append(info["kind"])
            levels.append(info["level"])
            oracle.asked(info["kind"], trial.id)
        wait = int(torch.randint(0, delay + 1, (), generator=g)) if delay else 0
        pending.append((t + wait, trial.id, row))
        for entry in [entry for entry in pending if entry[0] <= t]:
            pending.remove(entry)
            if lost and float(torch.rand((), generator=g)) < lost:
                strategy.abandon(entry[1])
                continue
            noise = sigma * float(torch.randn((), generator=g, dtype=torch.float64))
            value = float(f[entry[2]]) + noise
            strategy.tell(entry[1], value)
            oracle.tell(entry[2], value, entry[1])
    report, terms = strategy.report(), strategy.terms
    assert report["level"] == levels[-1]
    assert report["misspecification"] == terms.levels(B)[levels[-1]]
    assert report["may_have_lost"] == pytest.approx(price)
    assert report["budget"] == pytest.approx(terms.budget(price, B, t + 1))
    for purse, sums in (("large", oracle.big), ("small", oracle.small)):
        assert report["charged"][purse] == pytest.approx(sums, abs=1e-6)
        assert sum(sums) == pytest.approx(charged[purse], abs=1e-6)
    assert [own["level"] for own in report["refuted"]] == list(range(levels[-1]))
    for own in report["refuted"]:
        assert own["lower"] > own["upper"]
    return kinds, levels


def test_the_terms_are_those_that_were_measured():
    oracle = Insured([Candidate.at(line(1), rbf(1.0), 1.0)], 2.0, 1.0, DELTA)
    assert {name: getattr(Terms(), name) for name in oracle.c} == oracle.c
    assert Terms().levels(2.0) == oracle.eps


@pytest.mark.parametrize(
    ("case", "terms", "delay", "changing", "width"),
    [
        ("right", None, 4, False, None),
        ("rough", None, 0, False, None),
        ("rough", EAGER, 4, True, 0.7),
        ("large", EAGER, 0, False, None),
        ("locked", EAGER, 0, False, None),
        ("locked", None, 4, True, 0.7),
        ("wrong", EAGER, 4, False, None),
        ("rougher", HASTY, 0, True, None),
    ],
)
def test_every_decision_is_that_of_the_definition(case, terms, delay, changing, width):
    (X, f, kernel), ridge, sigma = CASES[case]
    strategy, oracle = pair(FiniteSet(X), X, [kernel], ridge, sigma, terms, width=width)
    kinds, levels = run(strategy, oracle, X, f, 45, sigma, delay, changing)
    if case == "rough":
        assert {"probe", "exploit", *(["follow-up"] if terms else [])} <= set(kinds)
    assert (levels[-1] == 6) == (case == "wrong")


@pytest.mark.parametrize(
    ("case", "delay", "credibility", "width"),
    [("right", 4, None, None), ("rough", 0, 0.5, None), ("rough", 4, None, 30.0)],
)
def test_the_same_with_several_models_inside_what_they_leave(case, delay, credibility, width):
    (X, f, _), ridge, sigma = CASES[case]
    kernels = [rbf(lengthscale) for lengthscale in (0.6, 0.2, 0.05)]
    more = {"credibility": credibility, "width": width}
    strategy, oracle = pair(FiniteSet(X), X, kernels, ridge, sigma, **more)
    run(strategy, oracle, X, f, 40, sigma, delay)
    assert len({trial.info["model"] for trial in strategy.history.trials}) > 1


@pytest.mark.parametrize(("seed", "changing", "delay"), [(0, False, 4), (1, True, 0)])
def test_the_same_with_contexts(seed, changing, delay):
    N, sigma, ridge, kernel = 9, 0.02, 1e-2, rbf(0.3)
    X, contexts = line(N), line(3)
    joint = torch.cat([X.repeat(3, 1), contexts.repeat_interleave(N, 0)], -1)
    f = bent(joint, kernel, 0.2, seed)
    options = {"watched": set(), "context_domain": FiniteSet(contexts)}
    strategy, oracle = pair(FiniteSet(X), joint, [kernel], ridge, sigma, **options)
    kinds, _ = run(strategy, oracle, joint, f, 40, sigma, delay, changing, contexts)
    assert "probe" in kinds


@pytest.mark.parametrize("num_initial", [0, 3])
def test_the_same_with_data_from_before_and_trials_given_up(num_initial):
    (X, f, kernel), ridge, sigma = CASES["rough"]
    before = torch.tensor([3, 17, 3])
    Y = f[before] + torch.tensor([0.02, -0.01, 0.0], dtype=torch.float64)
    options = {"initial": (X[before], Y), "num_initial": num_initial}
    strategy, oracle = pair(FiniteSet(X), X, [kernel], ridge, sigma, **options)
    for row, value in zip(before.tolist(), Y.tolist(), strict=True):
        oracle.tell(row, value)
    run(strategy, oracle, X, f, 40, sigma, delay=3, before=3, lost=0.3)


def test_the_same_on_a_box_of_few_points():
    box, X = Box([[0.0], [8.0]], integer=[0]), torch.arange(9, dtype=torch.float64).unsqueeze(-1)
    strategy, oracle = pair(box, X, [rbf(2.5)], 1e-2, 0.02, watched=set())
    kinds, _ = run(strategy, oracle, X, bent(X, rbf(2.5), 0.3, 4), 30, 0.02)
    assert "probe" in kinds


@pytest.mark.parametrize(
    ("eps", "delay", "horizon", "lost"),
    [
        (0.0, 4, 70, 0.0),
        (0.0, 0, 70, 0.3),
        pytest.param(0.0, 4, 200, 0.0, marks=pytest.mark.slow),
        pytest.param(0.2, 0, 200, 0.0, marks=pytest.mark.slow),
    ],
)
def test_the_same_with_certificates(eps, delay, horizon, lost):
    ridge, sigma, width = 0.05, 0.02, 0.1  # an index that hardly looks around
    X, f, _ = _bent_line(eps, 0)
    options = {"horizon": horizon, "certificates": True, "width": width}
    strategy, oracle = pair(FiniteSet(X), X, [rbf(0.3), rbf(0.15)], ridge, sigma, **options)
    kinds, _ = run(strategy, oracle, X, f, horizon, sigma, delay, lost=lost)
    infos = [trial.info for trial in strategy.history.trials]
    plans = [info["round"] for info in infos if "plan" in info]
    assert lost == 0 or len(set(plans)) < len(plans)  # what was lost was planned again
    assert eps or horizon < 200 or "block" in kinds
    for info in infos:
        promise = info["cost"] if info["kind"] == "block" else info["certificate"]
        if info["kind"] in ("exploit", "block") and strategy.levels[info["level"]] >= eps:
            assert float(f.max()) - float(f[info["index"]]) <= promise + 1e-9
    assert strategy.report()["certificates"] == [info["certificate"] for info in infos]
    with pytest.raises(HorizonReached):
        strategy.ask()


def test_a_right_model_in_float32_is_not_refuted_by_rounding():
    X, f, kernel = _bent_line(0.0, 0)
    numbers = {"noise_variance": 1e-4, "rkhs_bound": B, "noise_std": 0.01}
    strategy = algorithms.insured_ucb(FiniteSet(X.float()), kernel.float(), **numbers)
    g = torch.Generator().manual_seed(0)
    for _ in range(60):
        trial = strategy.ask()
        noise = 0.01 * float(torch.randn((), generator=g))
        strategy.tell(trial.id, float(f[trial.info["index"]]) + noise)
    assert strategy.report()["level"] == 0
