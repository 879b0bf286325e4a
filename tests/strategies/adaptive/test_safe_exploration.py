"""Safe exploration: its decisions, what it certifies, and what it does when models are refuted."""

import re
import warnings

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.exceptions import ModelRefutedError, ModelRefutedWarning
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.widths.tight import RIDGES
from botorch_ext.widths.told_data import ToldData
from tests.helpers import rbf
from tests.oracles.safe import Quantity, SafeOracle

N, DELTA, SIGMA, LAMBDA = 40, 0.1, 0.1, 0.01
X = torch.linspace(0, 1, N, dtype=torch.float64).unsqueeze(-1)
POINTS = bx.FiniteSet(X)
KERNELS = [rbf(0.3), rbf(0.25), rbf(0.4)]
MODELS = [bx.KernelGP(kernel, LAMBDA) for kernel in KERNELS]
B = (2.0, 2.0, 1.5)
TRUTHS = torch.stack(
    [
        bx.problems.RKHSFunction.random(POINTS, kernel, norm=norm, seed=seed)(X)
        for seed, (kernel, norm) in enumerate(zip(KERNELS, B, strict=True))
    ]
)
LIMITS = float(TRUTHS[1].quantile(0.85)), float(TRUTHS[2].quantile(0.15))
SAFE = (TRUTHS[1] <= LIMITS[0]) & (TRUTHS[2] >= LIMITS[1])
MARGINS = torch.minimum(LIMITS[0] - TRUTHS[1], TRUTHS[2] - LIMITS[1])
SEED = int(MARGINS.argmax())


def made(**given):
    numbers = {"rkhs_bound": B, "noise_std": SIGMA, "safe_seed": X[[SEED]]}
    return bx.algorithms.safe_exploration(
        POINTS,
        MODELS[0],
        outcome_models={"pressure": MODELS[1], "purity": MODELS[2]},
        thresholds={"pressure": f"<= {LIMITS[0]!r}", "purity": f">={LIMITS[1]!r}"},
        **numbers | given,
    )


def results(seed, eps=0.0):
    """Noisy results at the points, and the worst error of a misspecified model at each."""
    rng = np.random.default_rng(seed)
    while True:
        noise = SIGMA * rng.standard_normal(3)
        yield lambda row, noise=noise: (TRUTHS[:, row].numpy() + noise + eps).tolist()


def told(strategy, id, values):
    strategy.tell(id, values[0], dict(zip(("pressure", "purity"), values[1:], strict=True)))


@pytest.mark.parametrize(
    ("options", "eps", "lag"),
    [
        ({}, 0.0, 0),
        ({"bounds": "ladder", "radius": 0.08}, 0.0, 3),
        ({"misspecification": 0.05, "rule": "widest"}, 0.05, 0),
        ({"misspecification": 0.05, "bounds": "ladder"}, 0.05, 2),
    ],
)
def test_decisions_are_those_of_plain_loops(options, eps, lag):
    ridges = RIDGES if options.get("bounds") == "ladder" else (1.0,)
    limits = [None, (-1, LIMITS[0]), (1, LIMITS[1])]
    quantities = [
        Quantity(kernel(X).to_dense().detach().numpy(), LAMBDA, b, SIGMA, DELTA / 3, eps, ridges, h)
        for kernel, b, h in zip(KERNELS, B, limits, strict=True)
    ]
    near = np.linalg.norm(X[:, None] - X, axis=-1) <= options.get("radius", 0.0)
    oracle = SafeOracle(quantities, [SEED], near, options.get("rule", "goal"))
    strategy, values, rows = made(**options), results(1), []
    for step, result in zip(range(100), values, strict=False):
        trial = strategy.ask()
        rows.append(trial.info["index"])
        chosen = trial.info["index"], trial.info["kind"], trial.info.get("target")
        assert chosen == oracle.ask()
        assert trial.info["certified"] == len(oracle.certified())
        if step >= lag:
            measured = result(rows[step - lag])
            told(strategy, step - lag, measured)
            oracle.tell(rows[step - lag], measured)
    assert strategy.refuted_at is None
    assert len(set(rows)) > 5
    lower, upper = quantities[0].lower, quantities[0].upper
    S = oracle.certified()
    possible = {*S, *(x for x in range(N) if all(q.may_be_safe(x) for q in quantities[1:]))}
    best = max(lower[x] for x in S)
    inside, outside = strategy.certificate()
    assert inside == pytest.approx(max(upper[x] for x in S) - best)
    assert outside == pytest.approx(max(0.0, max(upper[x] for x in possible) - best))
    x, worst = strategy.recommend()
    assert worst == pytest.approx(best)
    assert int(POINTS.index(x[None])) in S


def _nearest_limit(rows, strategy, seed):
    """The certified point with the least true margin."""
    return int(rows[MARGINS[rows].argmin()])


@pytest.mark.parametrize("options", [{}, {"bounds": "ladder"}, {"misspecification": 0.05}])
def test_no_rule_leaves_what_is_safe_where_the_models_are_right(options):
    eps = options.get("misspecification", 0.0)
    for seed in range(5):
        strategy, values = made(rule=_nearest_limit, **options), results(seed, eps=-eps)
        certified = strategy.certified
        for result in (next(values) for _ in range(40)):
            trial = strategy.ask()
            assert SAFE[trial.info["index"]]
            told(strategy, trial, result(trial.info["index"]))
            assert (strategy.certified | ~certified).all()
            certified = strategy.certified
        assert certified.sum() > 1
        assert not (certified & ~SAFE).any()
        assert strategy.refuted_at is None


def test_seeds_are_asked_in_turn_until_there_is_a_result():
    bound = (2.0, 0.0, 0.0)  # which alone says that all points are safe
    strategy = made(safe_seed=X[[SEED, 3]], rule=lambda *_: SEED, rkhs_bound=bound)
    assert strategy.certified.nonzero().squeeze(-1).tolist() == sorted([SEED, 3])
    assert [trial.info["index"] for trial in strategy.ask(3)] == [SEED, 3, SEED]
    strategy.abandon(0)
    trial = strategy.ask()
    assert trial.info == {"index": 3, "kind": "seed", "certified": 2}
    told(strategy, trial, [0.0, 0.0, 0.0])
    assert strategy.ask().info["kind"] == "rule"


def test_costs_are_minimised_within_the_same_limits():
    costs = made(minimize=True, rkhs_bound=[2.0, 2.0, 1.5])
    strategy, values = made(), results(2)
    for result in (next(values) for _ in range(20)):
        trial, same = strategy.ask(), costs.ask()
        assert trial.info == same.info
        value, *others = result(trial.info["index"])
        told(strategy, trial, [value, *others])
        told(costs, same, [-value, *others])
    assert costs.recommend()[1] == -strategy.recommend()[1]


def _refuted(**given):
    """A strategy whose outcomes contradict a bound of a hundredth."""
    strategy = made(rkhs_bound=(2.0, 0.01, 2.0), safe_seed=X[:2], **given)
    strategy.ask(3)
    told(strategy, 0, [0.3, 0.0, 0.0])
    with pytest.warns(ModelRefutedWarning, match="of 'pressure' was refuted after 2"):
        told(strategy, 1, [0.1, -3.0, 0.0])
    return strategy


def test_refuted_models_certify_nothing():
    strategy = _refuted()
    report = strategy.report()
    assert report["refuted_at"] == 2
    assert report["inside"] is report["outside"] is None
    assert report["certified"] == 2
    trial = strategy.ask()
    results = {row: [] for row in (0, 1)}
    for id, value in strategy.history.values.items():
        results[strategy.history.trials[id].info["index"]].append(value)
    means = {row: sum(own) / len(own) for row, own in results.items() if own}
    assert trial.info["kind"] == "seed"
    assert trial.info["index"] == max(means, key=means.get)
    stopped = _refuted(on_refuted="stop")
    with pytest.raises(ModelRefutedError, match="refuted after"):
        stopped.ask()


def test_a_norm_above_the_bound_refutes_before_bounds_contradict_each_other(monkeypatch):
    def count():
        strategy = made(rkhs_bound=(2.0, 0.5, 2.0))
        signs = [1.0, -1.0, 1.0, -1.0]
        for step in range(60):
            strategy.attach(
                X[step % 4], 0.0, outcomes={"pressure": 0.3 * signs[step % 4], "purity": 0.0}
            )
            if strategy.refuted_at is not None:
                return strategy.refuted_at
        return 100

    with pytest.warns(ModelRefutedWarning, match="of 'pressure' was refuted"):
        first = count()
    monkeypatch.setattr(ToldData, "refute", lambda *_: False)
    warnings.simplefilter("ignore", ModelRefutedWarning)
    assert first < count()


def test_a_correction_takes_certificates_back():
    strategy, values = made(), results(0)
    for result in (next(values) for _ in range(30)):
        trial = strategy.ask()
        told(strategy, trial, result(trial.info["index"]))
    assert not strategy.report()["uncertified"]
    first = strategy.certified.sum()
    strategy.correct(0, outcomes={"pressure": strategy.history.outcomes[0]["pressure"] + 0.3})
    right = made()
    right.replay(strategy.events)
    assert torch.equal(right.certified, strategy.certified)
    assert strategy.certified.sum() != first


def test_a_study_makes_the_method_again(tmp_path):
    study = bx.Study(tmp_path / "s.db", made(bounds="ladder", radius=0.1))
    for result in (next(results(3)) for _ in range(4)):
        trial = study.ask()
        told(study, trial, result(trial.info["index"]))
    again, alone = bx.Study(tmp_path / "s.db"), study.strategy
    assert torch.equal(again.strategy.certified, alone.certified)
    assert again.ask().info == alone.ask().info
    assert main(["correct", str(tmp_path / "s.db"), "0", "--outcome", "pressure=-0.5"]) == 0
    assert study.strategy.history.outcomes[0]["pressure"] == -0.5
    assert main(["correct", str(tmp_path / "s.db"), "0", "--outcome", "pressure=low"]) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"thresholds": {"pressure": "<= 1"}}, "thresholds must have the names"),
        ({"thresholds": {"pressure": "<= 1", "purity": 3.0}}, "must be a text like"),
        ({"thresholds": {"pressure": "<= 1", "purity": ">= x"}}, "must be a text like"),
        ({"safe_seed": X[:0]}, "safe_seed must have at least one point"),
        ({"safe_seed": [[9.0]]}, "safe_seed"),
        ({"rkhs_bound": (1.0, 2.0)}, "rkhs_bound must be one number, or one for each of 3"),
        ({"bounds": "dual"}, 'bounds must be "mixture" or "ladder"'),
        ({"rule": "best"}, 'rule must be "goal" or "widest"'),
        ({"pending": "censor"}, 'pending must be "hallucinate" or "ignore"'),
        ({"outcome_models": {}}, "outcome_models must be a dict by the names"),
        ({"model": KERNELS[0]}, "models must be KernelGPs"),
    ],
)
def test_impossible_arguments_are_refused(given, message):
    arguments = {
        "domain": POINTS,
        "model": MODELS[0],
        "outcome_models": {"pressure": MODELS[1], "purity": MODELS[2]},
        "thresholds": {"pressure": "<= 1", "purity": ">= 0"},
        "safe_seed": X[:1],
        "rkhs_bound": B,
        "noise_std": SIGMA,
    }
    with pytest.raises(ValueError, match=re.escape(message)):
        bx.algorithms.safe_exploration(**arguments | given)


def test_a_rule_must_return_a_certified_row():
    strategy = made(rule=lambda rows, strategy, seed: (SEED + 1) % N)
    told(strategy, strategy.ask(), [0.0, *LIMITS])
    with pytest.raises(ValueError, match="rule must return the row of a certified point"):
        strategy.ask()


def test_covariances_of_a_candidate_count_pending_points():
    posterior = FinitePosterior(KERNELS[0], X, torch.tensor([LAMBDA, 4 * LAMBDA]).double())
    K = KERNELS[0](X).to_dense().detach()
    torch.testing.assert_close(posterior.covariance_of_candidate(3), K[3].expand(2, N))
    posterior.add_candidate(7, 0.3)
    posterior.add_candidate(9, None)
    for row, ridge in enumerate((LAMBDA, 4 * LAMBDA)):
        k = K[[7, 9]]
        inner = k[:, [7, 9]] + ridge * torch.eye(2).double()
        expected = K[3] - k[:, 3] @ torch.linalg.solve(inner, k)
        torch.testing.assert_close(posterior.covariance_of_candidate(3)[row], expected)
