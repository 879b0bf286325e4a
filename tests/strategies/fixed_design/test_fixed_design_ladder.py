"""Bounds of fixed designs at several ridges, against dense algebra."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import botorch_ext as bx
from botorch_ext import algorithms, simulate, widths
from botorch_ext.strategies.adaptive.running_bounds import RunningBounds
from botorch_ext.strategies.fixed_design.survivors import at_ridges, evaluated_at
from tests.helpers import drawn, rbf, tolerance
from tests.oracles.tight import Tight
from tests.strategies.fixed_design import sessions
from tests.strategies.fixed_design.sessions import B, rkhs
from tests.strategies.sessions import box, finite, kernel

RIDGES = (0.5, 1.0, 8.0, 60.0)
PUBLISHED = {"rkhs_bound": B, "noise_std": sessions.SIGMA, "delta": sessions.DELTA}


def oracle_of(domain, rows, y, lam, **numbers):
    """The bounds at all points of a set from observations at some rows."""
    with torch.no_grad():
        K = kernel()(domain.points.double()).to_dense().numpy()
    return Tight(K[np.ix_(rows, rows)], K[rows], np.diag(K), np.array(y), lam, **numbers)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(3))
def test_a_round_is_judged_by_the_least_half_widths(dtype, seed):
    lam, bound, sigma, delta = (10 ** drawn(4, seed=seed, low=-2.0, high=0.0)).tolist()
    domain, num_rounds, mean = finite(dtype=dtype), 4, 0.2
    ladder = widths.FixedDesignLadder(bound, sigma, delta, domain.num_points, num_rounds, RIDGES)
    made = {"noise_variance": lam, "width": ladder, "mean": mean}
    strategy = sessions.phased("bpe", domain, 60, **made)
    simulate(strategy, rkhs(domain, seed), 60, seed=seed)
    closed = strategy.rounds[:-1]
    assert len(closed) > 1
    for round, after in zip(closed, strategy.rounds[1:], strict=True):
        trials = [strategy.history.trials[id] for id in round.closing.arrived]
        rows = [trial.info["index"] for trial in trials]
        y = [strategy.history.values[trial.id] - mean for trial in trials]
        numbers = {"B": bound, "sigma": sigma, "delta": delta, "ridges": RIDGES}
        oracle = oracle_of(domain, rows, y, lam, **numbers)
        union = 4 * num_rounds * domain.num_points
        middle, half = oracle.fixed(union)
        published = bound + sigma * np.sqrt(2 * np.log(union / delta) / lam)
        assert (half <= published * oracle.std(lam) + 1e-12).all()
        inside = round.survivors.numpy()
        upper, lower = (mean + middle + sign * half for sign in (1, -1))
        threshold = lower[inside].max()
        assert round.closing.threshold == pytest.approx(threshold, abs=tolerance(dtype)["atol"])
        clear = np.abs(upper[inside] - threshold) > tolerance(dtype)["atol"]
        kept = np.isin(inside, after.survivors.numpy())
        assert (kept == (upper[inside] >= threshold))[clear].all()


def test_a_block_certifies_by_the_least_half_widths():
    domain, problem = finite(), rkhs(finite(), 1)
    given = {"horizon": 130, "buy": "always", "bounds": "ladder", **PUBLISHED}
    strategy, y, num_closings = sessions.certified(domain, **given), {}, 0
    assert strategy.told_width == widths.Mixture(B, sessions.SIGMA, sessions.DELTA / 2)
    for _ in range(130):
        survivors, certificate = strategy.survivors.numpy(), strategy.certificate
        trial = strategy.ask()
        sessions.observe(strategy, problem, [trial.id])
        y[trial.id] = strategy.history.values[trial.id]
        if "closing" not in trial.info:
            continue
        num_closings += 1
        block = [
            other
            for other in strategy.history.trials[: trial.id]
            if (other.info["phase"], other.info["round"]) == ("block", trial.info["round"] - 1)
        ]
        rows = [other.info["index"] for other in block]
        width = strategy.block_width
        numbers = {"B": B, "sigma": sessions.SIGMA, "delta": width.delta, "ridges": width.ridges}
        told = [y[other.id] for other in block]
        oracle = oracle_of(domain, rows, told, sessions.LAMBDA, **numbers)
        middle, half = oracle.fixed(4 * width.num_rounds * width.num_points)
        upper, lower = (np.clip(middle + sign * half, -B, B)[survivors] for sign in (1, -1))
        left = upper >= lower.max() - 1e-9
        cut = trial.info["closing"]
        assert cut["threshold"] == pytest.approx(lower.max(), abs=1e-9)
        expected = min(certificate, upper[left].max() - lower[left].min())
        assert cut["certificate"] == pytest.approx(expected, abs=1e-9)
    assert num_closings > 2


def test_running_bounds_take_the_ridge_with_the_least_half_width_at_each_level():
    m, R, M, n = 2, 3, 2, 5
    mean, std, own = drawn(m * R, n, seed=1), drawn(m * R, n, seed=2), drawn(m * R, M, seed=3)
    levels = torch.tensor([0.0, 0.4], dtype=torch.float64)
    wide = torch.zeros(m, n, dtype=torch.float64), torch.full((m, n), 9.0, dtype=torch.float64)
    bounds = RunningBounds(wide, 1.0, levels).tightened(mean, std, own, R)
    for u in range(m):
        for level in range(M):
            for x in range(n):
                rows = [u * R + r for r in range(R)]
                half, row = min((float(own[row, level] * std[row, x]), row) for row in rows)
                half += float(levels[level])
                assert float(bounds.upper[u, level, x]) == pytest.approx(float(mean[row, x]) + half)
                assert float(bounds.lower[u, level, x]) == pytest.approx(float(mean[row, x]) - half)


def test_one_ridge_is_the_mixture():
    domain = finite()
    numbers = *PUBLISHED.values(), domain.num_points, 4
    asked = []
    for width in (
        widths.FixedDesignMixture(*numbers),
        widths.FixedDesignLadder(*numbers, ridges=(1,)),
    ):
        strategy = sessions.phased("bpe", domain, 60, width=width)
        simulate(strategy, rkhs(domain, 2), 60, seed=2)
        asked.append([trial.info["index"] for trial in strategy.history.trials])
    assert asked[0] == asked[1]


@pytest.mark.parametrize("seed", range(3))
def test_no_weights_of_the_observations_give_a_narrower_bound(seed):
    X, x, lam = drawn(5, 2, seed=seed), drawn(1, 2, seed=seed + 9), 0.02
    k = rbf(0.5)
    with torch.no_grad():
        K, cross = k(X).to_dense().numpy(), k(X, x).to_dense().numpy()[:, 0]
    bound, sigma = 1.3, 0.2
    beta = np.sqrt(2 * np.log(4 * 3 * 7 / 0.1))

    def parts(zeta):
        s = np.sqrt(max(1 - 2 * zeta @ cross + zeta @ K @ zeta, 1e-300))
        return s, np.linalg.norm(zeta)

    def value(zeta):
        s, norm = parts(zeta)
        gradient = bound * (K @ zeta - cross) / s + sigma * beta * zeta / norm
        return bound * s + sigma * beta * norm, gradient

    start = np.linalg.solve(K + lam * np.eye(5), cross)
    found = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    s, norm = parts(found.x)
    best = sigma * beta * s / (bound * norm)  # where Cauchy and Schwarz are equal
    ladder = widths.FixedDesignLadder(bound, sigma, 0.1, 7, 3, (1.0, best / lam))
    model = bx.KernelGP(k, lam)
    model.add(X, drawn(5, seed=seed))
    at = at_ridges(model, ladder)
    std = at.mean_and_std(x)[1][:, 0]
    half = (std * std.new_tensor(evaluated_at(ladder, at)[0])).min()
    assert float(half) == pytest.approx(found.fun, abs=1e-9)


@pytest.mark.parametrize("method", ["bpe", "certified_bucb"])
def test_the_maximiser_is_lost_in_no_run(method):
    k = rbf(0.3)
    for seed in range(60):
        domain = bx.FiniteSet(drawn(25, 1 + seed % 2, seed=seed))
        problem = bx.problems.RKHSFunction.random(domain, k, 2.0, noise_std=0.1, seed=seed)
        given = {"noise_variance": 0.01, "rkhs_bound": 2.0, "noise_std": 0.1, "bounds": "ladder"}
        more = {} if method == "bpe" else {"buy": "always"}
        strategy = getattr(algorithms, method)(domain, k, horizon=40, **given, **more)
        simulate(strategy, problem, 40, seed=seed)
        survivors = strategy.rounds[-1].survivors if method == "bpe" else strategy.survivors
        assert int(problem(domain.points).argmax()) in survivors.tolist()


def test_bounds_are_named():
    domain, numbers = finite(), (B, sessions.SIGMA, sessions.DELTA)
    num = domain.num_points
    for bounds, of_rounds in (
        ("published", widths.FixedDesign),
        ("mixture", widths.FixedDesignMixture),
        ("ladder", widths.FixedDesignLadder),
    ):
        told = widths.SelfNormalized if bounds == "published" else widths.Mixture
        bpe = sessions.phased("bpe", domain, 110, bounds=bounds)
        assert bpe.width == of_rounds(*numbers, num, bpe.width.num_rounds)
        safe = algorithms.safe_ucb(
            domain, kernel(), noise_variance=0.01, **PUBLISHED, certificates=True, horizon=60,
            bounds=bounds,
        )  # fmt: skip
        assert safe.block_width == of_rounds(*numbers, num, safe.schedule.num_rounds)
        assert safe.width == told(*numbers)
    on_box = sessions.phased("bpe", box(), 110, bounds="mixture")
    assert isinstance(on_box.width, widths.FixedDesignNetMixture)


def test_a_ladder_needs_a_finite_set():
    ladder = widths.FixedDesignLadder(1.0, 0.1, 0.1, 10, 4)
    for given in ({"bounds": "ladder"}, {"width": ladder}, {"bounds": "narrow"}):
        with pytest.raises(ValueError, match=r"bounds must be|width must not be"):
            sessions.phased("bpe", box(), 110, **given)
    model = bx.KernelGP(kernel(), 0.01)
    with pytest.raises(ValueError, match="width must not be"):
        bx.CertifiedElimination(box(), model, 100, ladder, 1.0)
