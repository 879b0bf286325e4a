"""`simulate` with contexts and changing actions, against its definition in plain loops."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import Box, FiniteSet, simulate
from botorch_ext.delays import Poisson, as_delay
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import HorizonReached
from botorch_ext.models import KernelGP
from botorch_ext.problems import ContextualFunction, ContextualRKHSFunction, RKHSFunction
from botorch_ext.strategies import OptimisticStrategy
from botorch_ext.strategies.random_search import RandomSearch
from tests.strategies.sessions import (
    InRounds,
    InRoundsByContext,
    both_domains,
    box,
    finite,
    kernel,
    make,
    plain,
)

CONTEXTS = Box([[10.0], [24.0]])
HORIZON = 12


def joint_kernel():
    k = RBFKernel(ard_num_dims=3).double()
    k.lengthscale = torch.tensor([0.9, 0.5, 5.0], dtype=torch.float64)
    return k


def problem_on(domain, noise_std=0.2):
    return ContextualRKHSFunction.random(
        domain, CONTEXTS, joint_kernel(), norm=1.5, num_centers=9, noise_std=noise_std, seed=1
    )


def optimistic(domain, **options):
    model = KernelGP(joint_kernel(), 0.02)
    return OptimisticStrategy(domain, model, 2.0, seed=5, context_domain=CONTEXTS, **options)


def some_contexts(num=HORIZON, num_different=HORIZON):
    return CONTEXTS.sample(num_different, seed=8)[torch.arange(num) % num_different]


def some_actions(domain, num=HORIZON):
    """Sets of 1 to 5 points."""
    return [domain.sample(1 + t % 5, seed=100 + t) for t in range(num)]


def events(strategy):
    return [plain(event) for event in strategy.events]


@pytest.mark.parametrize("delay", [None, Poisson(3.5)])
@pytest.mark.parametrize("changing", [False, True], ids=["all actions", "changing actions"])
@both_domains
def test_a_simulation_is_the_loop_of_its_definition(domain, changing, delay):
    # On a box each ask is a search, and so is the maximum for each different context.
    horizon, num_different = (HORIZON, HORIZON) if domain is finite else (7, 3)
    contexts = some_contexts(horizon, num_different)
    problem = problem_on(domain())
    actions = some_actions(problem.domain, horizon) if changing else None
    strategy, by_hand = optimistic(problem.domain), optimistic(problem.domain)
    trace = simulate(
        strategy, problem, horizon, contexts=contexts, actions=actions, delay=delay, seed=3
    )
    noise_stream, delay_stream = np.random.SeedSequence(3).spawn(2)
    noise = 0.2 * np.random.default_rng(noise_stream).standard_normal(horizon)
    delays = as_delay(delay).sample(horizon, np.random.default_rng(delay_stream))
    values = []
    for step in range(horizon):
        for s in range(step):
            if s + delays[s] + 1 == step:
                by_hand.tell(s, values[s] + noise[s])
        there = None if actions is None else actions[step]
        trial = by_hand.ask(context=contexts[step], actions=there)
        values.append(float(problem([*trial.x.tolist(), *contexts[step].tolist()])))
        if there is not None:
            assert trial.x.tolist() in there.tolist()
    asked = [[e for e in events(s) if isinstance(e, tuple)] for s in (strategy, by_hand)]
    assert asked[0] == asked[1]
    assert torch.equal(trace.contexts, contexts)
    assert trace.values.tolist() == pytest.approx(values, rel=1e-9)
    assert trace.observations.tolist() == pytest.approx((values + noise).tolist(), rel=1e-9)
    assert trace.X.shape == (horizon, 2)
    # The best that could have been chosen, by looking at every point there was; on a box by a grid.
    grid = finite().points
    if domain is box:
        sides = [torch.linspace(*side, 60).double() for side in box().bounds.T.tolist()]
        grid = torch.cartesian_prod(*sides)
    for step, z in enumerate(contexts):
        points = grid if actions is None else actions[step]
        all_values = problem(torch.cat([points, z.expand(len(points), 1)], dim=-1))
        regret = float(all_values.max()) - values[step]
        slack = 2e-3 if domain is box and actions is None else 1e-9
        assert regret - 1e-9 <= float(trace.regret[step]) <= regret + slack
    assert (trace.regret >= -1e-9).all()


def test_a_context_can_be_a_function_of_the_number_of_the_evaluation():
    problem, contexts = problem_on(finite()), some_contexts()
    actions, asked = some_actions(problem.domain), []

    def context_of(index):
        asked.append(index)
        return contexts[index].tolist()

    called = simulate(
        optimistic(problem.domain),
        problem,
        HORIZON,
        contexts=context_of,
        actions=lambda index: actions[index],
        delay=2,
    )
    known = simulate(
        optimistic(problem.domain), problem, HORIZON, contexts=contexts, actions=actions, delay=2
    )
    assert asked == list(range(HORIZON))
    assert events(called.strategy) == events(known.strategy)
    assert torch.equal(called.regret, known.regret)
    assert torch.equal(called.contexts, contexts)


@both_domains
def test_a_strategy_without_contexts_is_not_told_them(domain):
    problem, contexts = problem_on(domain()), some_contexts(7, num_different=3)
    strategy = make(problem.domain)
    trace = simulate(strategy, problem, 7, contexts=contexts)
    trials = strategy.history.trials
    assert all(trial.context is None for trial in trials)
    # The values depend on the contexts all the same.
    values = [
        float(problem([*trial.x.tolist(), *z.tolist()]))
        for trial, z in zip(trials, contexts, strict=True)
    ]
    assert trace.values.tolist() == pytest.approx(values, rel=1e-9)
    best = [problem.optimal_value_at(z) for z in contexts]
    assert trace.regret.tolist() == pytest.approx((np.array(best) - values).tolist(), abs=1e-9)
    assert torch.equal(trace.contexts, contexts)


@pytest.mark.parametrize("delay", [None, 4, Poisson(3.5)])
def test_a_strategy_that_waits_misses_no_context(delay):
    problem, contexts = problem_on(finite()), some_contexts(14, 14)
    actions, asked = some_actions(problem.domain, 14), []

    def context_of(index):
        asked.append(index)
        return contexts[index]

    strategy = InRoundsByContext(problem.domain, CONTEXTS)
    trace = simulate(strategy, problem, 14, contexts=context_of, actions=actions, delay=delay)
    assert asked == list(range(14))
    assert torch.equal(torch.stack([t.context for t in strategy.history.trials]), contexts)
    for index, trial in enumerate(strategy.history.trials):
        assert torch.equal(trial.x, actions[index][index % len(actions[index])])
    assert torch.equal(trace.contexts, contexts)
    without = RKHSFunction.random(finite(), kernel(), 1.5)
    plainly = simulate(InRounds(without.domain), without, 14, delay=delay)
    assert trace.told_at.tolist() == plainly.told_at.tolist()


def test_the_horizon_of_a_strategy_ends_a_simulation_with_contexts():
    problem = problem_on(finite())
    strategy = InRoundsByContext(problem.domain, CONTEXTS, horizon=8)
    with pytest.raises(HorizonReached):
        simulate(strategy, problem, 9, contexts=some_contexts(9))


@pytest.mark.parametrize("as_function", [False, True])
@both_domains
def test_changing_actions_without_contexts(domain, as_function):
    problem = RKHSFunction.random(domain(), kernel(), norm=1.5, num_centers=9, noise_std=0.2)
    actions = some_actions(problem.domain)
    strategy = make(problem.domain)
    given = (lambda index: actions[index]) if as_function else actions
    trace = simulate(strategy, problem, HORIZON, actions=given, delay=1)
    for step, trial in enumerate(strategy.history.trials):
        values = [float(problem(x)) for x in actions[step]]
        assert torch.equal(trial.x, actions[step][trial.info["action"]])
        assert float(trace.values[step]) == pytest.approx(values[trial.info["action"]], abs=1e-9)
        regret = max(values) - values[trial.info["action"]]
        assert float(trace.regret[step]) == pytest.approx(regret, abs=1e-9)
    assert trace.contexts is None


class Unknown:
    """A problem whose maximum over the domain nobody knows."""

    def __init__(self):
        self.domain, self.noise_std, self.optimal_value, self.optimizer = box(), 0.0, None, None

    def __call__(self, X):
        return X.sum(dim=-1)


def test_an_unknown_maximum_is_no_obstacle_where_actions_are_given():
    strategy = RandomSearch(box(), seed=2)
    actions = some_actions(box())
    trace = simulate(strategy, Unknown(), HORIZON, actions=actions)
    best = [max(sum(x) for x in points.tolist()) for points in actions]
    expected = [b - float(v) for b, v in zip(best, trace.X.sum(dim=-1), strict=True)]
    assert trace.regret.tolist() == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="problem must have a known optimal_value, got None"):
        simulate(RandomSearch(box()), Unknown(), HORIZON)


def test_it_lives_on_the_device_of_its_domain(device):
    domain, contexts = finite(device=device), some_contexts().to(device)
    problem = ContextualRKHSFunction.random(
        domain, CONTEXTS.to(device=device), joint_kernel(), norm=1.5, num_centers=9
    )
    strategy = RandomSearch(domain, seed=2, context_domain=1)
    trace = simulate(strategy, problem, HORIZON, contexts=contexts)
    assert trace.contexts.device.type == trace.X.device.type == "cpu"
    rows = torch.cat([trace.X, trace.contexts], dim=-1).to(device)
    torch.testing.assert_close(trace.values, problem(rows).cpu())


def with_entry(value, at=7):
    contexts = some_contexts()
    contexts[at] = value
    return contexts


class Flat(ContextualFunction):
    def _evaluate(self, X):
        return X[:, 0]


TASKS = ContextSpace(dim=1, tasks=((0, 3),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contexts": None}, "contexts must be given for a problem with contexts, got None"),
        ({"contexts": some_contexts(11)}, "contexts must have 12 entries, one for each step.* 11"),
        ({"contexts": some_contexts(13)}, "contexts must have 12 entries, one for each step.* 13"),
        ({"contexts": torch.ones(12, 2).double()}, r"contexts\[0\] must have shape \(1,\), got"),
        ({"contexts": some_contexts()[:, 0]}, r"contexts\[0\] must have shape \(1,\), got \(\)"),
        ({"contexts": some_contexts().float()}, r"contexts\[0\] must be torch\.float64"),
        ({"contexts": with_entry(math.nan)}, r"contexts\[7\] must be finite"),
        ({"contexts": with_entry(25.0)}, r"contexts\[7\] must lie in the box .* got \[25.0\]"),
        ({"contexts": lambda index: [1.0, 2.0]}, r"contexts of step 0 must have shape \(1,\)"),
        ({"contexts": 3.0}, "contexts must be values, one for each step, .*got a float"),
        (
            {
                "contexts": with_entry(3.0) // 1,
                "strategy": RandomSearch(finite(), context_domain=TASKS),
            },
            r"contexts\[0\] must have a task in column 0, a whole number from 0 to 2",
        ),
        ({"actions": [finite().points[:2]] * 11}, "actions must have 12 entries, .* got 11"),
        ({"actions": [finite().points[:0]] * 12}, r"actions\[0\] must hold at least one point"),
        (
            {"actions": [finite().points[:2]] * 11 + [finite().points[:2] + 0.1]},
            r"actions\[11\] must be one of the 54 points",
        ),
        ({"actions": lambda index: torch.ones(2, 3).double()}, "actions of step 0 must have shape"),
        ({"problem": Flat(finite(), 2)}, "problem must have contexts of dimension 1, got 2"),
        (
            {"problem": RKHSFunction.random(finite(), kernel(), 1.5)},
            "problem must have contexts for a strategy with them, got a RKHSFunction",
        ),
        (
            {"problem": RKHSFunction.random(finite(), kernel(), 1.5), "strategy": make(finite())},
            "contexts must be None for a problem without contexts",
        ),
        (
            {"strategy": InRounds(finite()), "actions": [finite().points[:2]] * 12},
            "actions must be None for InRounds",
        ),
    ],
)
def test_streams_that_do_not_fit_are_refused_before_anything_is_asked(options, message):
    arguments = {
        "strategy": RandomSearch(finite(), context_domain=CONTEXTS),
        "problem": problem_on(finite()),
        "horizon": HORIZON,
        "contexts": some_contexts(),
    } | options
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)
    assert arguments["strategy"].events == ()


def test_a_set_of_actions_may_be_that_of_many_steps():
    few = FiniteSet(box().sample(6, seed=1))
    first, second = few.points[:2], few.points[2:]
    problem = problem_on(few)
    trace = simulate(
        RandomSearch(few, context_domain=1),
        problem,
        HORIZON,
        contexts=some_contexts(),
        actions=[first] * 6 + [second] * 6,
    )
    rows = few.index(trace.X)
    assert (rows[:6] < 2).all()
    assert (rows[6:] >= 2).all()
