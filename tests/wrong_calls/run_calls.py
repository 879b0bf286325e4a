"""Running, with strategies, objectives and options as users give them."""

import numpy as np
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext import algorithms
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import BoundsStrategy
from tests.wrong_calls.calls import LAMBDA, refused, refused_values, working_values, works

POINT = [3.0, -2.0]
NO_OBJECTIVE = {
    "a number": 3.0,
    "nothing": None,
    "a string": "sin",
    "of nothing": lambda: 0.0,
    "of two arguments": lambda x, y: 0.0,
    "to nothing": lambda x: None,
    "to a pair": lambda x: (0.0, 0.1),
    "to a dict": lambda x: {"loss": 0.0},
    "to a bool": lambda x: True,
    "to masked": lambda x: np.ma.masked,
    "to a string": lambda x: "0.5",
}
NO_STRATEGY = {
    "a function": algorithms.gp_ucb,
    "the class": bx.OptimisticStrategy,
    "a lambda": lambda x: 0.0,
    "nothing": None,
    "a string": "gp_ucb",
}


def run(s, objective=lambda x: float(x[0]), num_trials=6, **more):
    return bx.run(s.strategy, objective, num_trials, progress=False, **more)


def problem(s, domain=None):
    domain = s.box if domain is None else domain
    return RKHSFunction(RBFKernel().double(), domain.sample(3, 0), [1.0, -1.0, 0.5], domain)


class Unsolved:
    noise_std, optimal_value, optimizer = 0.1, None, None

    def __init__(self, domain) -> None:
        self.domain = domain

    def __call__(self, X):
        return X.sum(dim=-1)


def balanced(s, **more):
    return algorithms.regret_balancing(
        s.box,
        s.kernel,
        noise_variance=LAMBDA,
        rkhs_bound=1.0,
        noise_std=0.1,
        horizon=20,
        max_information_gain=2.0,
        **more,
    )


def searched_by(s, search):
    return BoundsStrategy(s.box, bx.KernelGP(s.kernel, LAMBDA), 2.0, search=search)


def judged_by(s, judge):
    return BoundsStrategy(s.box, bx.KernelGP(s.kernel, LAMBDA), 2.0, judge=judge)


CALLS = [
    # --- run, optimize
    *refused_values(
        "strategy",
        "run",
        lambda s, strategy: bx.run(strategy, lambda x: 0.0, 3, progress=False),
        NO_STRATEGY,
    ),
    *refused_values(
        "strategy",
        "simulate",
        lambda s, strategy: bx.simulate(strategy, s.gp, 3),
        {k: NO_STRATEGY[k] for k in ("a function", "the class", "nothing")},
    ),
    *refused_values(
        "problem",
        "simulate",
        lambda s, p: bx.simulate(s.strategy, p, 3),
        {"a function": lambda x: 0.0, "nothing": None, "a box": bx.Box([(0, 1), (0, 1)])},
    ),
    *refused_values("objective", "run", run, NO_OBJECTIVE),
    *refused_values(
        "objective",
        "optimize",
        lambda s, o: bx.optimize(o, s.box, 3, progress=False),
        {k: NO_OBJECTIVE[k] for k in ("a number", "nothing", "to a bool", "to a pair")},
    ),
    *working_values(
        "run to",
        lambda s, kind: list(run(s, lambda x: kind(float(x[0]))).Y),
        {
            "a numpy number": np.float64,
            "an array": lambda v: np.array([v]),
            "a tensor": lambda v: torch.tensor([[v]], dtype=torch.float64),
        },
        float,
    ),
    *refused(
        "domain",
        box_before_objective=lambda s: bx.optimize(s.box, lambda x: 0.0, 3, progress=False),
    ),
    *refused(
        "executor",
        executor_by_number=lambda s: run(s, executor=4),
        executor_by_word=lambda s: run(s, executor="threads"),
    ),
    *refused(
        "max_pending",
        nothing_under_way=lambda s: run(s, max_pending=0),
        several_under_way_in_one_thread=lambda s: run(s, max_pending=2),
    ),
    *refused("horizon", no_step=lambda s: bx.simulate(s.strategy, problem(s), 0)),
    *refused(
        "noise_std",
        negative_noise=lambda s: bx.simulate(s.strategy, problem(s), 3, noise_std=-0.1),
    ),
    *refused("delay", a_negative_delay=lambda s: bx.simulate(s.strategy, problem(s), 3, delay=-1)),
    *refused(
        "problem",
        a_problem_of_unknown_maximum=lambda s: bx.simulate(s.strategy, Unsolved(s.box), 3),
        a_problem_of_another_dimension=lambda s: bx.simulate(
            s.strategy, problem(s, bx.Box([[1.0], [2.0]])), 3
        ),
    ),
    *refused(
        "minimize",
        minimize_by_word=lambda s: run(s, minimize="yes"),
        optimize_minimize_by_word=lambda s: bx.optimize(
            lambda x: 0.0, s.box, 3, minimize="loss", progress=False
        ),
    ),
    *refused(
        "progress", progress_by_word=lambda s: bx.run(s.strategy, lambda x: 0.0, 6, progress="no")
    ),
    *refused(
        "contexts",
        contexts_where_there_are_none=lambda s: run(s, contexts=[[0.5]] * 6),
        too_few_contexts=lambda s: bx.run(
            s.seeing, lambda x, z: 0.0, 9, contexts=[[0.5]], progress=False
        ),
        contexts_by_word=lambda s: bx.run(
            s.seeing, lambda x, z: 0.0, 9, contexts=3, progress=False
        ),
    ),
    *refused(
        "actions",
        actions_by_number=lambda s: run(s, actions=3),
        too_few_actions=lambda s: run(s, actions=[[POINT]]),
    ),
    *refused("strategy", Study_of_a_function=lambda s: bx.Study("never.db", algorithms.gp_ucb)),
    # --- other names
    *refused("search", a_search_by_word=lambda s: searched_by(s, "highest")),
    *refused("judge", a_judge_by_word=lambda s: judged_by(s, "likelihood")),
    *refused(
        "rounds",
        rounds_by_number=lambda s: bx.PhasedElimination(
            s.box, bx.KernelGP(s.kernel, LAMBDA), 2.0, 3, 20
        ),
    ),
    *refused(
        "setting",
        a_setting_misspelt=lambda s: algorithms.he_gp_ucb(
            s.box, s.models, noise_std=0.1, setting="bayes", width=2.0
        ),
    ),
    *refused(
        "reward_range",
        a_range_of_one_number=lambda s: balanced(s, reward_range=1.0),
        a_range_upside_down=lambda s: balanced(s, reward_range=(1.0, 0.0)),
        a_range_of_words=lambda s: balanced(s, reward_range=("low", "high")),
    ),
    *refused(
        "misspecifications",
        levels_by_word=lambda s: balanced(s, misspecifications="all"),
        one_level=lambda s: balanced(s, misspecifications=0.1),
        a_negative_level=lambda s: balanced(s, misspecifications=[-0.1]),
    ),
    *works(
        lambda s: balanced(s, misspecifications=[0.2, 0.1]),
        levels_in_an_array=lambda s: balanced(s, misspecifications=np.array([0.2, 0.1])),
    ),
]
