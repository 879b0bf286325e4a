"""Every pick on a finite set is a maximiser: replay through the pseudo-code in dense algebra."""

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from botorch_ext import FiniteSet, algorithms
from botorch_ext.strategies import Abandoned, Asked, Told
from tests.helpers import devices, pairwise, steps_on
from tests.oracles.posterior import dense_information_gain, dense_posterior

B, SIGMA, DELTA, LAMBDA, EPS = 1.5, 0.1, 0.1, 0.02, 0.07
MINIMUM, TIMEOUT = -2.0, 6


def domain(device="cpu"):
    x = torch.linspace(2.0, 5.0, 9, dtype=torch.float64)
    y = torch.linspace(-3.0, -1.0, 7, dtype=torch.float64)
    return FiniteSet(torch.cartesian_prod(x, y), device=device)


def kernel(kind):
    k = (RBFKernel() if kind == "rbf" else MaternKernel(nu=2.5)).double()
    k.lengthscale = torch.tensor(0.8, dtype=torch.float64)
    return k


def f(points):
    return torch.sin(2 * points[:, 0]) * torch.cos(points[:, 1]) + 0.3 * points[:, 1]


def self_normalized(gain, n):
    return SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / DELTA) + 2 * gain) + B


def chowdhury_gopalan(gain, n):
    return B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * (gain + 1 + math.log(1 / DELTA)))


def enlarged(gain, n):
    return self_normalized(gain, n) + EPS * math.sqrt(n + 1) / math.sqrt(LAMBDA)


# name: options, width(information gain, number of observations), pending policy
METHODS = {
    "gp_ucb": ({"pending": "ignore"}, self_normalized, "ignore"),
    "igp_ucb": ({}, chowdhury_gopalan, "hallucinate"),
    "ec_gp_ucb": ({"misspecification": EPS}, enlarged, "hallucinate"),
    "gp_bucb": ({}, self_normalized, "hallucinate"),
    "gp_bucb_inflated": ({"inflate": True}, self_normalized, "inflate"),
    "gp_ucb_sdf": ({"minimum": MINIMUM, "timeout": TIMEOUT}, self_normalized, "censor"),
}


def make(method, k, points, **more):
    options, *_ = METHODS[method]
    build = getattr(algorithms, method.removesuffix("_inflated"))
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
    return build(points, k, **numbers, **options, **more)


def play(strategy, num_steps, seed, late):
    """A session with late, reordered and lost observations."""
    g = torch.Generator().manual_seed(seed)
    values = f(strategy.domain.points).tolist()
    due = []
    for step in range(num_steps):
        for item in [d for d in due if d[0] <= step]:
            due.remove(item)
            if torch.rand((), generator=g) < 0.06:
                strategy.abandon(item[1])
            else:
                strategy.tell(item[1], item[2])
        trial = strategy.ask()
        delay = int(torch.randint(0, 12, (), generator=g)) if late else 0
        noise = SIGMA * torch.randn((), generator=g).item()
        due.append((step + delay + 1, trial.id, values[trial.info["index"]] + noise))
    return strategy


def oracle_scores(method, k, points, before):
    """The scores of all candidates by the definition, from the events before an ask."""
    _, width, policy = METHODS[method]
    asked = [e.trial for e in before if isinstance(e, Asked)]
    values = {e.id: e.value for e in before if isinstance(e, Told)}
    gone = {e.id for e in before if isinstance(e, Abandoned)}
    if policy == "censor":
        # Too late: at the tell, the ask of step s + m + 1 had already been made.
        num_asked, late = 0, set()
        for e in before:
            num_asked += isinstance(e, Asked)
            if isinstance(e, Told) and num_asked > e.id + 1 + TIMEOUT:
                late.add(e.id)
        rows = [t for t in asked if t.id not in gone]
        y = [MINIMUM if t.id in late else values.get(t.id, MINIMUM) for t in rows]
        mean_rows, mean_y, std_rows = rows, y, rows
    else:
        mean_rows = [t for t in asked if t.id in values]
        mean_y = [values[t.id] for t in mean_rows]
        std_rows = mean_rows if policy == "ignore" else [t for t in asked if t.id not in gone]
    P = points.points

    def at(trials):
        return P[[t.info["index"] for t in trials]]

    zero = torch.zeros(len(P), dtype=P.dtype)
    mean, variance = zero, k(P, diag=True).detach()
    if mean_rows:
        y = torch.tensor(mean_y, dtype=P.dtype)
        mean = dense_posterior(k, at(mean_rows), y, P, LAMBDA)[0]
    gain = 0.0
    if std_rows:
        y = torch.zeros(len(std_rows), dtype=P.dtype)
        variance = dense_posterior(k, at(std_rows), y, P, LAMBDA)[1].diagonal()
        gain = dense_information_gain(k, at(std_rows), LAMBDA)
    w = width(gain, len(std_rows))
    if policy == "inflate":
        told = dense_information_gain(k, at(mean_rows), LAMBDA) if mean_rows else 0.0
        w *= math.exp(gain - told)
    return mean + w * variance.clamp_min(0).sqrt(), w


@pairwise(method=METHODS, kind=["rbf", "matern"], late=[False, True], device=devices())
def test_every_pick_is_a_maximiser(method, kind, late, device):
    k = kernel(kind)
    strategy = play(
        make(method, k.to(device), domain(device), seed=3), steps_on(device, 60), 5, late=late
    )
    k, points = kernel(kind), domain()
    for i, event in enumerate(strategy.events):
        if not isinstance(event, Asked):
            continue
        scores, w = oracle_scores(method, k, points, strategy.events[:i])
        picked = scores[event.trial.info["index"]].item()
        # Rounding of a posterior with condition number 1e4 leaves about nine digits.
        assert scores.max().item() - picked <= 1e-7
        assert event.trial.info["width"] == pytest.approx(w, rel=1e-7)
        upper = event.trial.info["mean"] + w * event.trial.info["std"]
        assert upper == pytest.approx(picked, rel=1e-6, abs=1e-6)
    assert (len(strategy.pending) > 2) == late
    if method == "gp_ucb_sdf" and late:
        assert strategy.report()["told_too_late"]


def picks(strategy):
    return [event.trial.info["index"] for event in strategy.events if isinstance(event, Asked)]


def test_no_misspecification_makes_ec_gp_ucb_gp_ucb():
    k = kernel("rbf")
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
    ec = algorithms.ec_gp_ucb(domain(), k, misspecification=0.0, seed=1, **numbers)
    plain = algorithms.gp_ucb(domain(), k, seed=1, **numbers)
    assert picks(play(ec, 50, 2, late=True)) == picks(play(plain, 50, 2, late=True))


@pytest.mark.parametrize("method", ["gp_bucb", "gp_bucb_inflated", "gp_ucb_sdf"])
def test_without_delay_the_pending_policies_are_gp_ucb(method):
    k = kernel("matern")
    plain = make("gp_ucb", k, domain(), seed=1)
    assert picks(play(make(method, k, domain(), seed=1), 50, 2, late=False)) == picks(
        play(plain, 50, 2, late=False)
    )
