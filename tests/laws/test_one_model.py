"""Methods over several models are GP-UCB where there is one model, with every pending policy, in
every context and among changing actions."""

from collections import Counter
from itertools import product

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import algorithms, widths
from botorch_ext.testing.sessions import Session
from tests.laws.registry import ALONE, LAMBDA, POLICIES, Entry
from tests.laws.scenarios import SCENARIOS, rbf
from tests.laws.shared_sessions import quietly

pytestmark = quietly

# It grows with the information gain and with t.
WIDTH = widths.Enlarged(widths.SelfNormalized(1.5, 0.1, 0.1), 0.05)
# Nothing is refuted with so much noise; half of delta is left for the width.
METHODS = {
    "he_gp_ucb": {"noise_std": 9.0, "delta": 0.2},
    "mle_ucb": {},
    "expected_ucb": {},
    "credible_ucb": {},
    "a_gp_ucb": {},
    "lb_gp_ucb": {"noise_std": 9.0},
}
KNOW_NO_CONTEXTS = ("a_gp_ucb", "lb_gp_ucb")


def _cases():
    """Each method with each policy, in the scenarios in turn."""
    used = Counter()
    for method, policy in product(METHODS, POLICIES):
        allowed = ALONE if method in KNOW_NO_CONTEXTS else SCENARIOS
        scenario = min(allowed, key=lambda name: used[name])
        used[scenario] += 1
        yield method, Entry("gp_ucb", scenario, policy)


@pytest.mark.parametrize(
    ("method", "entry"), [pytest.param(*case, id=f"{case[0]}, {case[1].name}") for case in _cases()]
)
def test_one_model_is_gp_ucb(method, entry):
    scenario = entry.scenario
    known = {**scenario.options(), **POLICIES[entry.policy], "width": WIDTH, "seed": 6}
    if method in KNOW_NO_CONTEXTS:
        kernel, models = rbf(0.8), bx.CandidateModels.lengthscales(rbf(1.0), [0.8], LAMBDA)
    else:
        kernel, models = scenario.kernel(), bx.CandidateModels(scenario.kernel(), LAMBDA)
    plain, several = (
        Session(entry, 6, num_actions=12 if scenario.is_box else 30) for _ in range(2)
    )
    plain.strategy = algorithms.gp_ucb(scenario.domain(), kernel, noise_variance=LAMBDA, **known)
    make = getattr(algorithms, method)
    several.strategy = make(scenario.domain(), models, **METHODS[method], **known)
    for session in (plain, several):
        session.play()
    trials = several.strategy.history.trials
    for one, other in zip(trials, plain.strategy.history.trials, strict=True):
        if scenario.is_box:
            # Where both climb the same hill, a flat top leaves half the digits of the point.
            assert_close(one.x, other.x, rtol=1e-5, atol=1e-5)
        else:
            assert torch.equal(one.x, other.x)
        assert one.info.get("index") == other.info.get("index")
        assert one.info.get("initial") == other.info.get("initial")
        if entry.policy == "ignore" and "mean" in other.info:  # elsewhere not of told data alone
            for name in ("mean", "std", "width"):
                assert one.info[name] == pytest.approx(other.info[name], rel=1e-5, abs=1e-6)
    (x, mean), (expected, height) = several.strategy.best(), plain.strategy.best()
    assert_close(x, expected, rtol=1e-5, atol=1e-5)
    assert mean == pytest.approx(height, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "seed"),
    [("he_gp_ucb", 4), ("mle_ucb", 5), ("expected_ucb", 6), ("credible_ucb", 7)],
)
def test_one_model_is_searched_for_as_gp_ucb_is_among_many_hills(method, seed):
    sides = torch.tensor([[2.0, -3.0, 10.0, 0.0], [5.0, -1.5, 14.0, 2.0]]).double()
    domain, contexts = bx.Box(sides), bx.Box([[-1.0], [0.5]])
    X = torch.cat([domain.sample(200, seed), contexts.sample(200, seed + 50)], dim=-1)
    Y = torch.randn(200, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = rbf(0.9, 0.45, 1.2, 0.6, 0.45)
    known = {"context_domain": contexts, "initial": (X, Y), "width": 2.0, "seed": seed}
    plain = algorithms.gp_ucb(domain, kernel, noise_variance=LAMBDA, **known)
    models = bx.CandidateModels(kernel, LAMBDA)
    several = getattr(algorithms, method)(domain, models, **METHODS[method], **known)
    context = contexts.sample(1, seed + 70)
    points = [strategy.ask(context=context[0]).x for strategy in (several, plain)]
    model = bx.KernelGP(kernel, LAMBDA)
    model.add(X, Y)
    with torch.no_grad():
        joint = torch.cat([torch.stack(points), context.expand(2, -1)], dim=-1)
        mean, std = model.mean_and_std(joint)
    one, other = (mean + 2.0 * std).tolist()
    assert one == pytest.approx(other, rel=1e-6)
