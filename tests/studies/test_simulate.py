"""`simulate` against its definition in plain loops."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import botorch_ext as bx
from botorch_ext import Box, FiniteSet, run, simulate
from botorch_ext.delays import Geometric, Poisson, as_delay
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import HorizonReached, ObjectiveError, WaitingForObservations
from botorch_ext.models import KernelGP
from botorch_ext.problems import ContextualFunction, ContextualRKHSFunction, RKHSFunction
from botorch_ext.strategies import Asked, OptimisticStrategy, RandomSearch
from tests.helpers import rbf
from tests.strategies.sessions import (
    InRounds,
    InRoundsByContext,
    RowsInTurn,
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


def events(strategy):
    return [plain(event) for event in strategy.events]


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


# --- the definition -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "delay", [None, 0, 4, Poisson(3.5), Geometric(2.0), stats.gamma(2.0, scale=2.0)]
)
@pytest.mark.parametrize("domain", [finite, box])
def test_observations_arrive_when_the_definition_says(domain, delay):
    problem, horizon = rkhs(domain()), 12
    strategy = RandomSearch(problem.domain, seed=2)
    trace = simulate(strategy, problem, horizon, delay=delay, seed=3)
    noise, delays = drawn(delay, horizon)
    X = torch.stack([trial.x for trial in strategy.history.trials])
    values = torch.stack([problem(x) for x in X])
    # A point asked at step s with delay tau is told before the ask of step s + tau + 1.
    expected = []
    for step in range(horizon):
        arriving = [s for s in range(step) if s + delays[s] + 1 == step]
        expected += [("told", s) for s in arriving] + [("asked", step)]
    found = [
        ("asked", event.trial.id) if isinstance(event, Asked) else ("told", event.id)
        for event in strategy.events
    ]
    assert found == expected
    told = {event.id: event.value for event in strategy.events if hasattr(event, "value")}
    for id, value in told.items():
        assert value == pytest.approx(float(values[id]) + noise[id], rel=1e-9, abs=1e-12)
    told_at = [int(s + delays[s] + 1) for s in range(horizon)]
    assert trace.told_at.tolist() == [step if step < horizon else -1 for step in told_at]
    assert trace.delays.tolist() == delays.tolist() and torch.equal(trace.X, X)
    torch.testing.assert_close(trace.values, values, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(trace.observations, values + torch.from_numpy(noise))
    regret = [problem.optimal_value - v for v in values.tolist()]
    assert trace.regret.tolist() == pytest.approx(regret, abs=1e-9) and min(regret) >= -1e-9
    running = [sum(regret[: t + 1]) for t in range(horizon)]
    assert trace.cumulative_regret.tolist() == pytest.approx(running, abs=1e-8)
    least = [min(regret[: t + 1]) for t in range(horizon)]
    assert trace.simple_regret.tolist() == pytest.approx(least, abs=1e-9)
    assert trace.seconds > 0 and trace.strategy is strategy
    assert f"best value, without noise: {float(values.max()):.6g}" in repr(trace)


@pytest.mark.parametrize("delay", [None, 4, Poisson(3.5)])
def test_the_clock_jumps_while_a_strategy_waits_and_no_context_is_missed(delay):
    problem, horizon, size, asked = contextual(), 12, 3, []

    def context_of(index):
        asked.append(index)
        return Z[index].tolist()

    strategy = InRoundsByContext(problem.domain, CONTEXTS)
    trace = simulate(
        strategy, problem, horizon, contexts=context_of, actions=ACTIONS, delay=delay, seed=3
    )
    # By the definition: the clock ticks; at each tick arrivals are told and one point is asked, if
    # that is possible.
    due, expected, told_at, num_asked, now = {}, [], [-1] * horizon, 0, 0
    while num_asked < horizon:
        for id in sorted(id for id, arrival in due.items() if arrival == now):
            expected.append(("told", id))
            told_at[id] = num_asked
            del due[id]
        if num_asked % size or not due:
            due[num_asked] = now + int(trace.delays[num_asked]) + 1
            expected.append(("asked", num_asked))
            num_asked += 1
        now += 1
    assert [
        ("asked", event.trial.id) if isinstance(event, Asked) else ("told", event.id)
        for event in strategy.events
    ] == expected
    assert trace.told_at.tolist() == told_at and len(trace.regret) == horizon
    assert asked == list(range(horizon)) and torch.equal(trace.contexts, Z)
    for index, trial in enumerate(strategy.history.trials):
        assert torch.equal(trial.context, Z[index])
        assert torch.equal(trial.x, ACTIONS[index][index % len(ACTIONS[index])])


@pytest.mark.parametrize("delay", [None, Poisson(3.5)])
@pytest.mark.parametrize("changing", [False, True], ids=["all actions", "changing actions"])
@pytest.mark.parametrize("domain", [finite, pytest.param(box, marks=pytest.mark.slow)])
def test_a_simulation_with_contexts_is_the_loop_of_its_definition(domain, changing, delay):
    # On a box each ask is a search, and so is the maximum for each different context.
    horizon, num_different = (8, 8) if domain is finite else (6, 2)
    contexts = Z[torch.arange(horizon) % num_different]
    problem = contextual(domain())
    sets = [problem.domain.sample(1 + t % 5, seed=100 + t) for t in range(horizon)]
    actions = sets if changing else None
    strategy, by_hand = optimistic(problem.domain), optimistic(problem.domain)
    trace = simulate(
        strategy, problem, horizon, contexts=contexts, actions=actions, delay=delay, seed=3
    )
    (noise, delays), values = drawn(delay, horizon), []
    for step in range(horizon):
        for s in range(step):
            if s + delays[s] + 1 == step:
                by_hand.tell(s, values[s] + noise[s])
        there = None if actions is None else actions[step]
        trial = by_hand.ask(context=contexts[step], actions=there)
        values.append(float(problem([*trial.x.tolist(), *contexts[step].tolist()])))
    asked = [[e for e in events(s) if isinstance(e, tuple)] for s in (strategy, by_hand)]
    assert asked[0] == asked[1] and torch.equal(trace.contexts, contexts)
    assert trace.values.tolist() == pytest.approx(values, rel=1e-9)
    assert trace.observations.tolist() == pytest.approx((values + noise).tolist(), rel=1e-9)
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


def test_noise_and_delays_are_independent_streams_of_the_seed():
    problem = rkhs()

    def play(delay, seed, **options):
        strategy = RandomSearch(problem.domain, seed=options.pop("of_strategy", 2))
        return simulate(strategy, problem, 30, delay=delay, seed=seed, **options)

    def noise_of(trace):
        return trace.observations - trace.values

    prompt, late, later = play(None, 1), play(Poisson(3), 1), play(Poisson(9), 1)
    close = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(noise_of(prompt), noise_of(late), **close)
    torch.testing.assert_close(noise_of(late), noise_of(later), **close)
    # The delays do not depend on the noise, nor on the strategy.
    loud = play(Poisson(3), 1, noise_std=2.0, of_strategy=7)
    assert torch.equal(loud.delays, late.delays) and not torch.equal(loud.X, late.X)
    torch.testing.assert_close(noise_of(loud), 10 * noise_of(late), rtol=0, atol=1e-11)
    again, differs = play(Poisson(3), 1), play(Poisson(3), 2)
    assert events(again.strategy) == events(late.strategy)
    assert not torch.equal(differs.delays, late.delays)
    assert not torch.allclose(noise_of(differs), noise_of(late))
    assert noise_of(play(None, 1, noise_std=0.0)).abs().max() == 0


def test_the_end_of_the_strategy():
    for strategy in (InRounds(finite(), horizon=8), InRoundsByContext(finite(), CONTEXTS, 8)):
        problem = rkhs() if strategy.context_space is None else contextual()
        contexts = None if strategy.context_space is None else Z[:9]
        with pytest.raises(HorizonReached):
            simulate(strategy, problem, 9, contexts=contexts)
    with pytest.raises(WaitingForObservations, match="for ever"):
        simulate(Stuck(finite()), rkhs(), 9)


# --- what is simulated ----------------------------------------------------------------------------


def test_sets_within_the_box_of_the_problem_and_all_of_a_set():
    problem = rkhs(box(), noise_std=0.0)
    strategy = RandomSearch(finite())
    trace = simulate(strategy, problem, 8)
    expected = torch.stack([problem(trial.x) for trial in strategy.history.trials])
    torch.testing.assert_close(trace.values, expected)
    torch.testing.assert_close(trace.regret, problem.optimal_value - expected)
    known = rkhs(noise_std=0.0)
    trace = simulate(RowsInTurn(known.domain), known, 54)
    assert trace.simple_regret[-1] == pytest.approx(0.0, abs=1e-12)
    assert torch.equal(trace.X, known.domain.points)
    result = run(RowsInTurn(known.domain), known, 54, progress=False)
    assert result.best_value == pytest.approx(known.optimal_value)
    torch.testing.assert_close(result.best_x, known.optimizer)


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


def test_a_strategy_without_contexts_is_not_told_them():
    problem = contextual()
    strategy = RandomSearch(problem.domain)
    trace = simulate(strategy, problem, 6, contexts=Z[:6])
    assert all(trial.context is None for trial in strategy.history.trials)
    values = [
        float(problem([*x.tolist(), *z.tolist()])) for x, z in zip(trace.X, Z[:6], strict=True)
    ]
    assert trace.values.tolist() == pytest.approx(values, rel=1e-9)
    best = np.array([problem.optimal_value_at(z) for z in Z[:6]])
    assert trace.regret.tolist() == pytest.approx((best - values).tolist(), abs=1e-9)


@pytest.mark.parametrize("as_function", [False, True])
def test_changing_actions_without_contexts(as_function):
    problem = rkhs()
    strategy = make(problem.domain)
    given = (lambda index: ACTIONS[index]) if as_function else ACTIONS
    trace = simulate(strategy, problem, HORIZON, actions=given, delay=1)
    assert trace.contexts is None
    for step, trial in enumerate(strategy.history.trials):
        values = [float(problem(x)) for x in ACTIONS[step]]
        own = values[trial.info["action"]]
        assert torch.equal(trial.x, ACTIONS[step][trial.info["action"]])
        assert float(trace.values[step]) == pytest.approx(own, abs=1e-9)
        assert float(trace.regret[step]) == pytest.approx(max(values) - own, abs=1e-9)


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


# --- functions and tables -------------------------------------------------------------------------


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


def test_a_function_of_a_point():
    def f(x):
        return 3.0 - float(((x - torch.tensor([3.0, -2.0])) ** 2).sum())

    for domain in (finite(), box()):
        trace = simulate(RandomSearch(domain, seed=1), f, 5)
        assert trace.values.tolist() == pytest.approx([f(x) for x in trace.X])
        top = max(f(x) for x in domain.points) if isinstance(domain, FiniteSet) else 3.0
        assert (trace.regret + trace.values).tolist() == pytest.approx([top] * 5, abs=1e-7)


def test_a_function_of_named_parameters():
    space = bx.Space(a=bx.Real(0, 1), n=bx.Integer(1, 4), kind=bx.Choice(["x", "y"]))

    def f(params):
        assert 0 <= params["a"] <= 1 and params["n"] in range(1, 5)
        return (params["kind"] == "y") - (params["a"] - 0.3) ** 2 - abs(params["n"] - 3)

    trace = simulate(RandomSearch(space, seed=1), f, 5)
    assert trace.values.tolist() == pytest.approx([f(space.params(x)) for x in trace.X])
    assert (trace.regret + trace.values).tolist() == pytest.approx([1.0] * 5, abs=1e-7)


@pytest.mark.parametrize(
    ("problem", "domain"),
    [
        ([0.0] * 53, finite()),
        ([[0.0] * 54], finite()),
        ([0.0] * 53 + [math.nan], finite()),
        (["a"] * 54, finite()),
        (None, finite()),
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


# --- what is refused ------------------------------------------------------------------------------


def with_entry(value, at=7):
    contexts = Z.clone()
    contexts[at] = value
    return contexts


class Flat(ContextualFunction):
    def _evaluate(self, X):
        return X[:, 0]


TASKS = ContextSpace(dim=1, tasks=((0, 3),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"noise_std": -1.0}, "noise_std must be non-negative and finite, got -1.0"),
        ({"delay": -2}, "delay must be None, a whole number .*got -2"),
        ({"delay": 1.5}, "delay must be .*got 1.5"),
        ({"delay": stats.norm(5.0, 1.0)}, "delay must have a support not below 0"),
        ({"problem": rkhs(Box([[1.0], [2.0]]))}, "problem must have .* dimension 2"),
        ({"problem": rkhs(dtype=torch.float32)}, "problem must be torch.float64 .*float32"),
        ({"contexts": None}, "contexts must be given for a problem with contexts, got None"),
        ({"contexts": Z[:11]}, "contexts must have 12 entries, one for each step.* 11"),
        ({"contexts": torch.cat([Z, Z])[:13]}, "contexts must have 12 entries.* 13"),
        ({"contexts": torch.ones(12, 2).double()}, r"contexts\[0\] must have shape \(1,\), got"),
        ({"contexts": Z.float()}, r"contexts\[0\] must be torch\.float64"),
        ({"contexts": with_entry(math.nan)}, r"contexts\[7\] must be finite"),
        ({"contexts": with_entry(25.0)}, r"contexts\[7\] must lie in the box .* got \[25.0\]"),
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
        ({"problem": Flat(finite(), 2)}, "problem must have contexts of dimension 1, got 2"),
        ({"problem": rkhs()}, "problem must have contexts for a strategy with them, got a RKHS"),
        ({"problem": rkhs(), "strategy": make(finite())}, "contexts must be None for a problem"),
        (
            {"strategy": InRounds(finite()), "actions": [finite().points[:2]] * 12},
            "actions must be None for InRounds",
        ),
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
