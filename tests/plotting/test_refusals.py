"""What cannot be drawn is refused by the name of the argument, and leaves no figure."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext import plotting
from botorch_ext.strategies import OptimisticStrategy, RandomSearch
from tests.helpers import rbf

LINE, PLANE = bx.Box([[2.0], [5.0]]), bx.Box([[2.0, -7.0], [5.0, -6.2]])
ARMS = bx.FiniteSet(PLANE.sample(5, seed=0))
DAY = bx.Box([[8.0], [10.0]])
NUMBERS = {"noise_variance": 0.1, "width": 1.0}


def ucb(domain=PLANE, context_domain=None):
    return OptimisticStrategy(
        domain, bx.KernelGP(rbf(0.5), 0.1), 2.0, context_domain=context_domain
    )


def tree(dim):
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    numbers = {"noise_variance": 0.01, "noise_std": 0.1, "rkhs_bound": 1.0, "horizon": 10}
    return bx.algorithms.breadthwise_exploration(box, rbf(0.5), **numbers)


def elimination(domain):
    models = bx.CandidateModels.lengthscales(rbf(1.0), [0.3, 0.9], 0.1)
    return bx.algorithms.he_gp_ucb(domain, models, noise_std=0.1, width=1.0)


def rounds(domain=ARMS, asked=0):
    strategy = bx.algorithms.bpe(domain, rbf(0.4), horizon=9, **NUMBERS)
    if asked:
        strategy.ask(asked)
    return strategy


def certified():
    return bx.algorithms.certified_bucb(ARMS, rbf(0.5), horizon=9, **NUMBERS)


def insured():
    numbers = {"noise_variance": 0.1, "noise_std": 0.1, "rkhs_bound": 1.0}
    return bx.algorithms.insured_ucb(ARMS, rbf(0.5), **numbers)


def hill(dim):
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    return bx.problems.RKHSFunction.random(box, rbf(0.5), norm=1.0)


class TwoOutputs(torch.nn.Module):
    def posterior(self, X):
        class Posterior:
            mean = torch.zeros(*X.shape[:-1], 2)
            variance = torch.ones(*X.shape[:-1], 2)

        return Posterior()


MODEL, X = bx.KernelGP(rbf(0.5), 0.1), PLANE.sample(4, seed=0)
AT = {"slice_at": [3.0, -6.5]}
ONE = {"a": [1.0]}
# Each: the function of `botorch_ext.plotting`, the argument, and a call's arguments.
REFUSED = [
    ("regret", "curves", lambda: [{}]),
    ("regret", r"curves\['a'\]", lambda: [{"a": [object()]}]),
    ("regret", "center", lambda: [ONE], {"center": "mode"}),
    ("best_value", r"curves\['a'\]", lambda: [{"a": np.ones((1, 2, 3))}]),
    ("best_value", "curves", lambda: [[1.0, 3.0]]),
    ("posterior_1d", "slice_at", lambda: [MODEL, PLANE]),
    ("posterior_1d", "slice_at", lambda: [MODEL, PLANE], {"slice_at": [3.0]}),
    ("posterior_1d", "dim", lambda: [MODEL, PLANE], AT | {"dim": 2}),
    ("posterior_1d", "width", lambda: [MODEL, PLANE, -1], AT),
    ("posterior_1d", "Y", lambda: [MODEL, PLANE, 2.0, X], AT),
    ("posterior_1d", "X", lambda: [MODEL, PLANE, 2.0, None, X[:, :1]], AT),
    ("posterior_1d", "Y", lambda: [MODEL, PLANE, 2.0, X, X[1:, :1]], AT),
    ("posterior_2d", "X", lambda: [MODEL, PLANE, X[:, :1]]),
    ("posterior_2d", "bounds", lambda: [MODEL, LINE]),
    ("posterior_2d", "quantity", lambda: [MODEL, PLANE], {"quantity": "lower"}),
    ("posterior_2d", "model", lambda: [TwoOutputs(), PLANE]),
    ("action_map", "strategy", lambda: [ucb(ARMS), [[9.0]]]),
    ("action_map", "strategy", lambda: [RandomSearch(ARMS, context_domain=1), [[9.0]]]),
    ("action_map", "strategy", lambda: [ucb(LINE, DAY), [[9.0]]]),
    ("action_map", "contexts", lambda: [ucb(ARMS, DAY), []]),
    ("action_map", r"contexts\[1\]", lambda: [ucb(ARMS, DAY), [[9.0], [25.0]]]),
    ("action_map", "action_labels", lambda: [ucb(ARMS, DAY), [[9.0]]], {"action_labels": ["a"]}),
    ("action_map", "context_labels", lambda: [ucb(ARMS, DAY), [[9.0]]], {"context_labels": []}),
    ("action_map_1d", "strategy", lambda: [ucb(LINE)]),
    ("action_map_1d", "strategy", lambda: [RandomSearch(LINE, context_domain=1)]),
    ("action_map_1d", "strategy", lambda: [ucb(ARMS, DAY)]),
    ("action_map_1d", "strategy", lambda: [ucb(LINE, 2)]),
    ("action_map_1d", "context_bounds", lambda: [ucb(LINE, 1)]),
    ("action_map_1d", "context_bounds", lambda: [ucb(LINE, 1)], {"context_bounds": (3.0, 3.0)}),
    ("models", "strategy", lambda: [RandomSearch(LINE)]),
    ("models", "strategy", lambda: [elimination(LINE)]),
    ("model_bands", "strategy", lambda: [RandomSearch(LINE)]),
    ("model_bands", "dim", lambda: [elimination(LINE)], {"dim": 1}),
    ("model_bands", "num_shown", lambda: [elimination(LINE)], {"num_shown": 0}),
    ("model_bands", "slice_at", lambda: [elimination(PLANE)]),
    ("model_bands", "set", lambda: [elimination(ARMS)]),
    ("slices", "dims", lambda: [bx.algorithms.gp_ucb(PLANE, rbf(0.5), **NUMBERS), [4]]),
    ("rounds_2d", "strategy", lambda: [rounds(LINE)]),
    ("rounds_2d", "strategy", lambda: [rounds()]),
    ("feedback", "strategy", lambda: [rounds()]),
    ("regret_slopes", "curves", lambda: [{}]),
    ("regret_slopes", r"curves\['a'\]", lambda: [{"a": ([1, 2], [1.0])}]),
    ("regret_slopes", r"curves\['a'\]", lambda: [{"a": ([[1, 2]], [1.0, 2.0])}]),
    ("regret_slopes", r"curves\['a'\]", lambda: [{"a": ([1, 2], [0.0, 2.0])}]),
    ("certificate", "strategy", lambda: [ucb()]),
    ("certificate", "strategy", lambda: [certified()]),
    ("insurance", "strategy", lambda: [ucb()]),
    ("insurance", "strategy", lambda: [insured()]),
    ("tree", "strategy", lambda: [ucb(LINE)]),
    ("tree", "strategy", lambda: [tree(3)]),
    ("tree", "color", lambda: [tree(1)], {"color": "red"}),
    ("tree", "problem", lambda: [tree(1)], {"problem": hill(2)}),
    ("tree", "problem", lambda: [tree(2)], {"problem": hill(1)}),
]


@pytest.mark.parametrize(("name", "argument", "given", "options"), [(*r, {})[:4] for r in REFUSED])
def test_what_cannot_be_drawn_is_refused_by_the_name_of_the_argument(
    name, argument, given, options
):
    with pytest.raises((ValueError, TypeError), match=rf"\b{argument}"):
        getattr(plotting, f"plot_{name}")(*given(), **options)
    assert not plt.get_fignums()


def test_there_is_one_panel_for_each_round():
    with pytest.raises(ValueError, match="axes"):
        plotting.plot_rounds_2d(rounds(asked=1), plt.subplots(1, 2)[1])
