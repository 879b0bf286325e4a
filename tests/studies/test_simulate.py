"""`simulate` against its definition in plain loops."""

import math
from contextlib import suppress

import numpy as np
import pytest
import torch
from scipy import stats

from botorch_ext import Box, FiniteSet, simulate
from botorch_ext.delays import Geometric, Poisson, as_delay
from botorch_ext.exceptions import HorizonReached, ObjectiveError, WaitingForObservations
from botorch_ext.models import KernelGP
from botorch_ext.problems import ContextualRKHSFunction, Function, RKHSFunction
from botorch_ext.strategies import Asked, OptimisticStrategy, RandomSearch
from tests.helpers import pairwise, rbf
from tests.strategies.sessions import (
    InRounds,
    InRoundsByContext,
    Stuck,
    box,
    finite,
    kernel,
    make,
    plain,
)

CONTEXTS = Box([[10.0], [24.0]])
Z = CONTEXTS.sample(12, seed=8)
HORIZON = 12
ACTIONS = [finite().sample(1 + t % 5, seed=100 + t) for t in range(HORIZON)]


def rkhs(domain=None, noise_std=0.2, **kind):
    domain = finite(**kind) if domain is None else domain
    return RKHSFunction.random(domain, kernel(), norm=1.5, num_centers=9, noise_std=noise_std)


def contextual(domain=None, noise_std=0.2):
    domain = finite() if domain is None else domain
    numbers = {"norm": 1.5, "num_centers": 9, "noise_std": noise_std, "seed": 1}
    return ContextualRKHSFunction.random(domain, CONTEXTS, rbf(0.9, 0.5, 5.0), **numbers)


def optimistic(domain):
    model = KernelGP(rbf(0.9, 0.5, 5.0), 0.02)
    return OptimisticStrategy(domain, model, 2.0, seed=5, context_domain=CONTEXTS)


def drawn(delay, horizon, seed=3):
    """The noise and the delays of a simulation."""
    noise_stream, delay_stream = np.random.SeedSequence(seed).spawn(2)
    noise = 0.2 * np.random.default_rng(noise_stream).standard_normal(horizon)
    return noise, as_delay(delay).sample(horizon, np.random.default_rng(delay_stream))


def values_at(problem, points, context):
    """Of points in a context, if there is one."""
    if context is not None:
        points = torch.cat([points, context.expand(len(points), 1)], dim=-1)
    return problem(points)


def by_the_definition(strategy, problem, contexts, actions, noise, delays):
    """At each tick of a clock what has arrived is told, and one point is asked if that is possible.

    Returns:
        The values of the points, and how many had been asked when each was told, or -1.
    """
    due, values, told_at, now = {}, [], [-1] * len(noise), 0
    while len(values) < len(noise):
        for id in sorted(id for id, arrival in due.items() if arrival == now):
            strategy.tell(id, values[id] + noise[id])
            told_at[id] = len(values)
        step = len(values)
        context = None if contexts is None else contexts[step]
        with suppress(WaitingForObservations):
            known = None if strategy.context_space is None else context
            trial = strategy.ask(context=known, actions=actions and actions[step])
            values.append(float(values_at(problem, trial.x[None], context)))
            # What is asked now with delay tau is told tau + 1 ticks later, before the ask.
            due[step] = now + int(delays[step]) + 1
        now += 1
    return values, told_at


# A problem, the strategy, and how many different contexts there are.
PLAYED = {
    "a set": lambda: (rkhs(), RandomSearch(finite(), seed=2), 0),
    "a box": lambda: (rkhs(box()), RandomSearch(box(), seed=2), 0),
    "rounds": lambda: (rkhs(), InRounds(finite()), 0),
    "contexts": lambda: (contextual(), optimistic(finite()), 12),
    "contexts and rounds": lambda: (contextual(), InRoundsByContext(finite(), CONTEXTS), 12),
    "contexts that it is not told": lambda: (contextual(), RandomSearch(finite()), 12),
    # Each ask is a search, and so is the maximum for each different context.
    "contexts and a box": lambda: (contextual(box()), optimistic(box()), 2),
}


@pairwise(
    played=PLAYED,
    delay=[None, 0, 4, Poisson(3.5), Geometric(2.0), stats.gamma(2.0, scale=2.0)],
    changing=[False, True],
)
def test_a_simulation_is_the_loop_of_its_definition(played, delay, changing):
    problem, strategy, num_different = PLAYED[played]()
    horizon = 6 if played == "contexts and a box" else 12
    contexts = Z[torch.arange(horizon) % num_different] if num_different else None
    actions = ACTIONS[:horizon] if changing and played != "rounds" else None
    options = {"contexts": contexts, "actions": actions, "delay": delay, "seed": 3}
    by_hand, (noise, delays) = strategy.clone(), drawn(delay, horizon)
    if changing and contexts is not None:
        options["contexts"] = lambda step: contexts[step].tolist()
    trace = simulate(strategy, problem, horizon, **options)
    values, told_at = by_the_definition(by_hand, problem, contexts, actions, noise, delays)
    found, expected = (
        [plain(event) if isinstance(event, Asked) else event.id for event in each.events]
        for each in (strategy, by_hand)
    )
    assert found == expected and trace.strategy is strategy and trace.seconds > 0
    assert f"best value, without noise: {max(values):.6g}" in repr(trace)
    assert strategy.history.values == pytest.approx(by_hand.history.values, rel=1e-9, abs=1e-12)
    assert trace.told_at.tolist() == told_at and trace.delays.tolist() == delays.tolist()
    assert torch.equal(trace.X, torch.stack([trial.x for trial in strategy.history.trials]))
    assert trace.contexts is contexts is None or torch.equal(trace.contexts, contexts)
    assert trace.values.tolist() == pytest.approx(values, rel=1e-9, abs=1e-12)
    assert trace.observations.tolist() == pytest.approx((values + noise).tolist(), rel=1e-9)
    # The best that could have been chosen, by looking at every point there was; on a box by a grid.
    sides = [torch.linspace(*side, 60).double() for side in box().bounds.T.tolist()]
    is_set = isinstance(problem.domain, FiniteSet)
    grid = problem.domain.points if is_set else torch.cartesian_prod(*sides)
    slack = 1e-9 if is_set or actions is not None else 2e-3
    for step in range(horizon):
        points = grid if actions is None else actions[step]
        context = None if contexts is None else contexts[step]
        regret = float(values_at(problem, points, context).max()) - values[step]
        assert regret - 1e-9 <= float(trace.regret[step]) <= regret + slack
    regret = trace.regret.tolist()
    running = [sum(regret[: t + 1]) for t in range(horizon)]
    assert trace.cumulative_regret.tolist() == pytest.approx(running, abs=1e-8)
    least = [min(regret[: t + 1]) for t in range(horizon)]
    assert trace.simple_regret.tolist() == pytest.approx(least, abs=1e-9)


def test_the_end_of_the_strategy():
    with pytest.raises(HorizonReached):
        simulate(InRounds(finite(), horizon=8), rkhs(), 9)
    with pytest.raises(WaitingForObservations, match="for ever"):
        simulate(Stuck(finite()), rkhs(), 9)


def test_it_lives_on_the_device_of_its_domain(device):
    domain = finite(device=device)
    problem = rkhs(domain)
    trace = simulate(RandomSearch(domain), problem, 10, delay=2)
    assert trace.X.device.type == trace.values.device.type == "cpu"
    assert trace.values.tolist() == pytest.approx([float(problem(x.to(device))) for x in trace.X])
    joint = ContextualRKHSFunction.random(
        domain, CONTEXTS.to(device=device), rbf(0.9, 0.5, 5.0), norm=1.5, num_centers=9
    )
    strategy = RandomSearch(domain, seed=2, context_domain=1)
    trace = simulate(strategy, joint, HORIZON, contexts=Z.to(device))
    assert trace.contexts.device.type == trace.X.device.type == "cpu"
    rows = torch.cat([trace.X, trace.contexts], dim=-1).to(device)
    torch.testing.assert_close(trace.values, joint(rows).cpu())


class Unknown:
    """A problem whose maximum over the domain nobody knows."""

    def __init__(self):
        self.domain, self.noise_std, self.optimal_value, self.optimizer = box(), 0.0, None, None

    def __call__(self, X):
        return X.sum(dim=-1)


def test_an_unknown_maximum_is_no_obstacle_where_actions_are_given():
    actions = [box().sample(1 + t % 5, seed=t) for t in range(HORIZON)]
    trace = simulate(RandomSearch(box(), seed=2), Unknown(), HORIZON, actions=actions)
    best = [max(sum(x) for x in points.tolist()) for points in actions]
    expected = [b - float(v) for b, v in zip(best, trace.X.sum(dim=-1), strict=True)]
    assert trace.regret.tolist() == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="problem must have a known optimal_value, got None"):
        simulate(RandomSearch(box()), Unknown(), HORIZON)


@pytest.mark.parametrize("as_values", [list, np.array, torch.tensor])
def test_the_values_of_the_points_of_a_set(as_values):
    values = [math.sin(i) for i in range(54)]
    trace = simulate(RandomSearch(finite(), seed=1), as_values(values), 9, noise_std=0.1, seed=2)
    rows = finite().index(trace.X).tolist()
    assert trace.values.tolist() == pytest.approx([values[row] for row in rows])
    assert trace.regret.tolist() == pytest.approx([max(values) - values[row] for row in rows])
    noise = trace.observations - trace.values
    expected = 0.5 * drawn(None, 9, seed=2)[0]
    assert noise.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    quiet = simulate(RandomSearch(finite(), seed=1), as_values(values), 9)
    assert torch.equal(quiet.observations, quiet.values)


@pytest.mark.parametrize("domain", [finite(), box()], ids=repr)
def test_a_function_of_a_point(domain):
    def f(x):
        return 3.0 - float(((x - torch.tensor([3.0, -2.0])) ** 2).sum())

    trace = simulate(RandomSearch(domain, seed=1), f, 5)
    assert trace.values.tolist() == pytest.approx([f(x) for x in trace.X])
    top = max(f(x) for x in domain.points) if isinstance(domain, FiniteSet) else 3.0
    assert (trace.regret + trace.values).tolist() == pytest.approx([top] * 5, abs=1e-7)


@pytest.mark.parametrize(
    ("problem", "domain"),
    [
        ([0.0] * 53, finite()),
        ([0.0] * 53 + [math.nan], finite()),
        ([0.0] * 54, box()),
        (lambda x, z: 0.0, finite()),
        (lambda x: "a", finite()),
    ],
)
def test_what_is_no_problem_is_refused(problem, domain):
    strategy = RandomSearch(domain)
    with pytest.raises((ValueError, ObjectiveError), match=r"^(problem|objective) must"):
        simulate(strategy, problem, 5)
    with pytest.raises(ValueError, match="problem must have contexts for a strategy with them"):
        simulate(RandomSearch(finite(), context_domain=1), lambda x: 0.0, 5)
    assert strategy.events == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": stats.norm(5.0, 1.0)}, "delay must have a support not below 0"),
        ({"problem": rkhs(Box([[1.0], [2.0]]))}, "problem must have .* dimension 2"),
        ({"contexts": None}, "contexts must be given for a problem with contexts, got None"),
        ({"contexts": Z[:11]}, "contexts must have 12 entries, one for each step.* 11"),
        ({"contexts": Z + 14}, r"contexts\[\d\] must lie in the box"),
        ({"actions": [finite().points[:2]] * 11}, "actions must have 12 entries, .* got 11"),
        (
            {"actions": [finite().points[:2] + 0.1] * 12},
            r"actions\[0\] must be one of the 54 points",
        ),
        ({"problem": rkhs()}, "problem must have contexts for a strategy with them, got a RKHS"),
        ({"problem": rkhs(), "strategy": make(finite())}, "contexts must be None for a problem"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_asked(options, message):
    arguments = {
        "strategy": RandomSearch(finite(), context_domain=CONTEXTS),
        "problem": contextual(),
        "horizon": HORIZON,
        "contexts": Z,
    } | options
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)
    assert arguments["strategy"].events == ()


def test_values_of_a_set_with_the_same_points_are_computed_at_once() -> None:
    points = torch.linspace(0, 1, 9, dtype=torch.float64)[:, None]
    sizes = []

    def f(X: torch.Tensor) -> torch.Tensor:
        sizes.append(len(X))
        return X[:, 0]

    strategy = RandomSearch(FiniteSet(points))
    problem = Function(FiniteSet(points.clone()), f)
    trace = simulate(strategy, problem, 5)
    assert set(sizes) == {9}
    assert torch.equal(trace.values, trace.X[:, 0])
