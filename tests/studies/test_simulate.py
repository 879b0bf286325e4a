"""`simulate` against its definition; test_runner.py tests `run`."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from botorch_ext import Box, run, simulate
from botorch_ext.delays import Geometric, Poisson, as_delay
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import Asked
from tests.strategies.sessions import InRounds, RowsInTurn, Stuck, box, finite, kernel, make, plain


def events(strategy):
    return [plain(event) for event in strategy.events]


def rkhs(domain, noise_std=0.2):
    return RKHSFunction.random(domain, kernel(), norm=1.5, num_centers=9, noise_std=noise_std)


@pytest.mark.parametrize(
    "delay", [None, 0, 4, Poisson(3.5), Geometric(2.0), stats.gamma(2.0, scale=2.0)]
)
@pytest.mark.parametrize("domain", [finite, box])
def test_observations_arrive_when_the_definition_says(domain, delay):
    problem, horizon = rkhs(domain()), 14
    strategy = make(problem.domain)
    trace = simulate(strategy, problem, horizon, delay=delay, seed=3)
    noise_stream, delay_stream = np.random.SeedSequence(3).spawn(2)
    noise = 0.2 * np.random.default_rng(noise_stream).standard_normal(horizon)
    delays = as_delay(delay).sample(horizon, np.random.default_rng(delay_stream))
    X = torch.stack([trial.x for trial in strategy.history.trials])
    values = torch.stack([problem(x) for x in X])
    # A point asked at step s with delay tau is told before the ask of step s + tau + 1.
    expected = []
    for step in range(horizon):
        arriving = [s for s in range(step) if s + delays[s] + 1 == step]
        expected += [("told", s, values[s].item() + noise[s]) for s in arriving]
        expected.append(("asked", step))
    got = [
        ("asked", event.trial.id) if isinstance(event, Asked) else ("told", event.id, event.value)
        for event in strategy.events
    ]
    assert [e[:2] for e in got] == [e[:2] for e in expected]
    told = [[e[2] for e in events if e[0] == "told"] for events in (got, expected)]
    assert told[0] == pytest.approx(told[1], rel=1e-9, abs=1e-12)
    told_at = [int(s + delays[s] + 1) for s in range(horizon)]
    assert trace.told_at.tolist() == [step if step < horizon else -1 for step in told_at]
    assert trace.delays.tolist() == delays.tolist()
    assert torch.equal(trace.X, X)
    torch.testing.assert_close(trace.values, values, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(trace.observations, values + torch.from_numpy(noise))
    regret = [problem.optimal_value - v for v in values.tolist()]
    assert trace.regret.tolist() == pytest.approx(regret, abs=1e-9)
    assert min(regret) >= -1e-9
    running = [sum(regret[: t + 1]) for t in range(horizon)]
    assert trace.cumulative_regret.tolist() == pytest.approx(running, abs=1e-8)
    least = [min(regret[: t + 1]) for t in range(horizon)]
    assert trace.simple_regret.tolist() == pytest.approx(least, abs=1e-9)
    assert trace.seconds > 0
    assert trace.strategy is strategy


@pytest.mark.parametrize("delay", [None, 4, Poisson(3.5), Geometric(6.0)])
def test_the_clock_jumps_while_a_strategy_waits(delay):
    problem, horizon, size = rkhs(finite()), 14, 3
    strategy = InRounds(problem.domain, size)
    trace = simulate(strategy, problem, horizon, delay=delay, seed=3)
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
    assert trace.told_at.tolist() == told_at
    assert len(trace.regret) == horizon  # one for each evaluation, none for waiting
    told = {event.id: event.value for event in strategy.events if not isinstance(event, Asked)}
    assert all(trace.observations[id].item() == value for id, value in told.items())


def test_simulate_ends_with_an_error_at_the_horizon_of_a_strategy():
    problem = rkhs(finite())
    with pytest.raises(HorizonReached):
        simulate(InRounds(problem.domain, horizon=8), problem, 9)


def test_a_strategy_that_waits_for_nothing_is_not_simulated():
    problem = rkhs(finite())
    with pytest.raises(WaitingForObservations, match="for ever"):
        simulate(Stuck(problem.domain), problem, 9)


def noise_of(trace):
    return trace.observations - trace.values


def test_noise_and_delays_are_independent_streams_of_the_seed():
    problem = rkhs(finite())

    def play(delay, seed, **options):
        return simulate(make(problem.domain), problem, 30, delay=delay, seed=seed, **options)

    prompt, late, later = play(None, 1), play(Poisson(3), 1), play(Poisson(9), 1)
    close = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(noise_of(prompt), noise_of(late), **close)
    torch.testing.assert_close(noise_of(late), noise_of(later), **close)
    # The delays do not depend on the noise, nor on the strategy.
    loud = play(Poisson(3), 1, noise_std=2.0)
    assert torch.equal(loud.delays, late.delays)
    torch.testing.assert_close(noise_of(loud), 10 * noise_of(late), rtol=0, atol=1e-11)
    other = simulate(make(problem.domain, seed=99, num_initial=9), problem, 30, delay=3, seed=1)
    torch.testing.assert_close(noise_of(other), noise_of(late), **close)
    again, differs = play(Poisson(3), 1), play(Poisson(3), 2)
    assert events(again.strategy) == events(late.strategy)
    assert torch.equal(again.observations, late.observations)
    assert not torch.equal(differs.delays, late.delays)
    assert not torch.allclose(noise_of(differs), noise_of(late))
    assert noise_of(play(None, 1, noise_std=0.0)).abs().max() == 0


def test_a_finite_set_inside_the_problem_s_box_is_evaluated_point_by_point():
    problem = rkhs(box(), noise_std=0.0)
    strategy = make(finite())
    trace = simulate(strategy, problem, 8)
    expected = torch.stack([problem(trial.x) for trial in strategy.history.trials])
    torch.testing.assert_close(trace.values, expected)
    torch.testing.assert_close(trace.regret, problem.optimal_value - expected)


def test_tables_of_values_and_devices(device):
    domain = finite(device=device)
    problem = rkhs(domain)
    trace = simulate(make(domain), problem, 10, delay=2)
    assert trace.X.device.type == trace.values.device.type == "cpu"
    assert trace.values.tolist() == pytest.approx([float(problem(x.to(device))) for x in trace.X])


def test_any_strategy_can_be_run_and_simulated():
    problem = rkhs(finite(), noise_std=0.0)
    trace = simulate(RowsInTurn(problem.domain), problem, 54)
    assert trace.simple_regret[-1] == pytest.approx(0.0, abs=1e-12)
    assert torch.equal(trace.X, problem.domain.points)
    result = run(RowsInTurn(problem.domain), problem, 54, progress=False)
    assert result.best_value == pytest.approx(problem.optimal_value)
    torch.testing.assert_close(result.best_x, problem.optimizer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"noise_std": -1.0}, "noise_std must be non-negative and finite, got -1.0"),
        ({"noise_std": math.nan}, "noise_std must be non-negative and finite, got nan"),
        ({"delay": -2}, "delay must be None, a whole number .*got -2"),
        ({"delay": 1.5}, "delay must be .*got 1.5"),
        ({"delay": stats.norm(5.0, 1.0)}, "delay must have a support not below 0"),
        ({"problem": rkhs(Box([[1.0], [2.0]]))}, "problem must have .* dimension 2, got 1"),
        ({"problem": rkhs(finite(dtype=torch.float32))}, "problem must be torch.float64 .*float32"),
    ],
)
def test_simulate_refuses(options, message):
    strategy = make(finite())
    arguments = {"problem": rkhs(finite()), "horizon": 5, **options}
    with pytest.raises(ValueError, match=message):
        simulate(strategy, **arguments)
    assert strategy.events == ()
