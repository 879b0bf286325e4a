"""Boxes with more than bounds: what is given is moved into them or refused.

That every point that is asked is one of theirs is in the laws.
"""

import pytest
import torch

import botorch_ext as bx
from botorch_ext import algorithms, strategies
from botorch_ext.analysis.information_gain import greedy_information_gain
from botorch_ext.search.region import Region
from tests.helpers import rbf

NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1, "noise_variance": 0.01}
COUNTS = bx.Box([(0, 12), (1, 9)], integer=[0, 1], constraints=([[1, 2]], [17]))
TREE = bx.Box(
    [(0, 1), (1e-5, 1.0), (2.0, 5.0), (0, 2), (4.0, 6.0)],
    log=[1],
    integer=[3],
    categories={0: [0, 1]},
    conditions={1: (0, [0]), 2: (0, [1]), 3: (0, [1]), 4: (3, [2])},
)


def test_points_and_contexts_outside_are_refused():
    def make(**options):
        return algorithms.gp_ucb(COUNTS, rbf(3.0, 3.0, 1.0), **NUMBERS, **options)

    contexts = bx.Box([(0.0, 4.0)], integer=[0])
    strategy, initial = make(context_domain=contexts), torch.tensor([[9.0, 9.0, 1.0]]).double()
    with pytest.raises(ValueError, match="actions"):
        strategy.ask(actions=[[2.5, 3.0]], context=[1.0])
    with pytest.raises(ValueError, match="context"):
        strategy.ask(context=[2.5])
    with pytest.raises(ValueError, match="initial"):
        make(context_domain=contexts, initial=(initial, [1.0]))
    trial = strategy.clone().ask(context=[1.0])
    trial.x[0] = 0.5
    with pytest.raises(ValueError, match="trial 0"):
        strategy.replay([strategies.Asked(trial)])


@pytest.mark.parametrize("method", ["gp_bucb", "integrated_ei"])
def test_whatever_inactive_columns_have_is_replaced(method):
    nan = float("nan")
    given = [[0.0, 0.1, nan, -3.0, nan], [1.0, 9.0, 3.0, 1.0, 0.0]]
    replaced = [[0.0, 0.1, 3.5, 1.0, 5.0], [1.0, 1e-5**0.5, 3.0, 1.0, 5.0]]
    X = torch.tensor(given, dtype=torch.float64)
    options = {"initial": (X, [0.3, 0.1])}
    strategy = algorithms.integrated_ei(TREE, bx.Particles(8), **options)
    if method == "gp_bucb":
        kernel = rbf(0.4, 0.4, 1.2, 0.8, 0.8)
        strategy = algorithms.gp_bucb(TREE, kernel, **NUMBERS, **options)
    for x, expected in zip(strategy.initial[0].tolist(), replaced, strict=True):
        assert x == pytest.approx(expected)
    assert strategy.attach(X[1], 0.2).x.tolist() == pytest.approx(replaced[1])
    asked = strategy.ask(actions=X).x.tolist()
    assert any(asked == pytest.approx(x) for x in replaced)


def test_inactive_columns_of_contexts_are_replaced():
    seen = bx.Box([(0, 1), (2.0, 4.0)], integer=[0], conditions={1: (0, [1])})
    strategy = strategies.RandomSearch(COUNTS, context_domain=seen)
    assert strategy.ask(context=[0.0, 9.0]).context.tolist() == [0.0, 3.0]
    assert strategy.ask(context=[1.0, 2.5]).context.tolist() == [1.0, 2.5]


def _one(method, **more):
    return lambda box: getattr(algorithms, method)(box, rbf(3.0), **NUMBERS, **more)


REFUSE = {
    "stable_opt": _one("stable_opt", radius=0.1),
    "phased_uncertainty_sampling": _one("phased_uncertainty_sampling", horizon=20),
    "bpe": _one("bpe", horizon=20),
    "bpe_delay": _one("bpe_delay", horizon=20, delay=2),
    "breadthwise_exploration": _one("breadthwise_exploration", horizon=20),
    "plan": lambda box: bx.plan(box, bx.KernelGP(rbf(1.0), 0.01), 3),
    "greedy_information_gain": lambda box: greedy_information_gain(rbf(1.0), box, 3, 0.01),
    "Region": Region,
}


@pytest.mark.parametrize("method", REFUSE)
def test_methods_that_know_plain_boxes_only_say_so(method):
    if method != "Region":
        REFUSE[method](bx.Box(COUNTS.bounds, dtype=torch.float64))
    for box in (COUNTS, TREE):
        with pytest.raises(ValueError, match=r"nothing but bounds"):
            REFUSE[method](box)
