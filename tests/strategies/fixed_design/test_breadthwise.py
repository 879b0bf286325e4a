"""Breadthwise exploration as users see it; test_breadthwise_replay.py checks what it decides."""

import json
from itertools import pairwise

import pytest
import torch
from gpytorch.kernels import ScaleKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

from botorch_ext import Box, algorithms, run
from botorch_ext.exceptions import HorizonReached, HorizonWarning, KernelBoundWarning
from botorch_ext.widths import Constant, Width
from tests.helpers import tolerance
from tests.oracles.posterior import dense_posterior
from tests.strategies.fixed_design.breadthwise_sessions import (
    HORIZON,
    LAMBDA,
    ON_LINE,
    both,
    observe,
    play,
    play_promptly,
    points,
    state,
)


@both
def test_the_report_is_plain_numbers(case):
    strategy = case.make()
    assert strategy.report()["levels"][0]["num_evaluations"] == 0
    play_promptly(strategy, case.problem(), HORIZON)
    report = strategy.report()
    assert json.loads(json.dumps(report)) == report
    assert report["strategy"] == "BreadthwiseExploration"
    assert report["num_told"] == report["horizon"] == HORIZON
    width = {"name": "AnytimeFixedDesign", "rkhs_bound": 1.5, "noise_std": 0.02}
    assert report["width"].items() >= width.items()
    levels = report["levels"]
    assert [level["level"] for level in levels] == list(range(len(levels)))
    assert sum(level["num_evaluations"] for level in levels) == HORIZON
    assert [level["refined"] for level in levels] == [True] * (len(levels) - 1) + [False]
    for above, below in pairwise(levels):
        assert below["num_cells"] == 2 * above["num_kept"]
        assert below["volume"] <= above["volume"]
        assert below["slack"] < above["slack"]
    for level, summary in zip(strategy.levels, levels, strict=True):
        assert summary["half_diagonal"] == level.half_diagonal
        assert summary["volume"] == level.num_cells / 2**level.depth


@both
def test_best_is_the_best_posterior_mean_of_all_that_was_told(case):
    strategy = case.make()
    play(strategy, case.problem(), seed=4)
    values = strategy.history.values
    assert 0 < len(values) < HORIZON
    X = points(strategy)[list(values)]
    mean, _ = dense_posterior(case.kernel(), X, X.new_tensor(list(values.values())), X, LAMBDA)
    x, value = strategy.best()
    assert value == pytest.approx(mean.max().item(), rel=1e-7)
    assert torch.equal(x, X[mean.argmax()])


def test_a_prior_mean_moves_everything_with_it():
    # f + 7 with the prior mean 7 is f with none.
    seven = ConstantMean().double().requires_grad_(False)
    seven.constant.fill_(7.0)
    plainly, shifted = ON_LINE.make(), ON_LINE.make(mean=seven)
    problem = ON_LINE.problem()
    for strategy, shift in ((plainly, 0.0), (shifted, 7.0)):
        run(strategy, lambda x, shift=shift: problem(x) + shift, HORIZON, progress=False)
    assert torch.equal(points(plainly), points(shifted))
    for one, two in zip(plainly.levels[:-1], shifted.levels[:-1], strict=True):
        assert one.threshold + 7 == pytest.approx(two.threshold, abs=1e-9)
        assert torch.equal(one.kept, two.kept)


class Widening(Width):
    """A width and an offset that depend on the step."""

    def __call__(self, t, model):
        return 0.5 + 0.01 * t

    def offset(self, t, model):
        return 0.02


def test_an_offset_widens_both_bounds():
    strategy = ON_LINE.make(width=Widening())
    play_promptly(strategy, ON_LINE.problem(), HORIZON)
    assert len(strategy.levels) > 4
    for level, after in pairwise(strategy.levels):
        w = 0.5 + 0.01 * (after.first + 1)
        lower = level.mean - w * level.std - 0.02
        upper = level.mean + w * level.std + 0.02
        assert level.width == pytest.approx(w)
        assert level.threshold == pytest.approx(lower.max().item(), abs=1e-12)
        assert torch.equal(level.kept, upper + level.slack >= lower.max())
        largest = w * level.std.max().item() + 0.02
        assert largest < level.slack > HORIZON**-0.5


def test_float32():
    domain = Box([[2.0], [5.0]], dtype=torch.float32)
    numbers = ON_LINE.numbers
    k = ON_LINE.kernel()
    strategy = algorithms.breadthwise_exploration(domain, k, **numbers)
    problem = ON_LINE.problem()
    run(strategy, lambda x: problem(x.double()), HORIZON, progress=False)
    X = points(strategy)
    assert X.dtype == strategy.levels[-1].mean.dtype == torch.float32
    wide = algorithms.breadthwise_exploration(ON_LINE.box, k, **numbers)
    run(wide, problem, HORIZON, progress=False)
    assert [level.num_cells for level in wide.levels] == [
        level.num_cells for level in strategy.levels
    ]
    fresh = algorithms.breadthwise_exploration(domain, k, **numbers)
    fresh.replay(strategy.events)
    assert fresh.report() == strategy.report()


def test_a_constant_width_is_a_float():
    one, two = ON_LINE.make(width=0.7), ON_LINE.make(width=Constant(0.7))
    for strategy in (one, two):
        play_promptly(strategy, ON_LINE.problem(), 30)
    assert state(one) == state(two)


def test_levels_can_be_looked_at_while_trials_are_out():
    strategy, problem = ON_LINE.make(), ON_LINE.problem()
    strategy.ask(2)
    observe(strategy, problem, [1])
    level = strategy.levels[-1]
    assert (level.depth, level.first, level.num_evaluations) == (1, 0, 1)
    assert level.counts.tolist() == ([0, 1] if strategy.history.trials[1].x[0] > 3.5 else [1, 0])
    y = torch.tensor([strategy.history.values[1]], dtype=torch.float64)
    mean, covariance = dense_posterior(
        ON_LINE.kernel(), points(strategy)[1:], y, level.centers, LAMBDA
    )
    assert_close(level.mean, mean, **tolerance(torch.float64))
    assert_close(level.std, covariance.diagonal().sqrt(), **tolerance(torch.float64))


def test_nothing_is_asked_beyond_the_horizon():
    strategy = ON_LINE.but(horizon=3).make()
    play_promptly(strategy, ON_LINE.problem(), 3)
    with pytest.raises(HorizonReached, match=r"at most 0, .*horizon of 3, got 1"):
        strategy.ask()
    with pytest.raises(HorizonReached, match="got 4"):
        ON_LINE.but(horizon=3).make().ask(4)
    assert ON_LINE.but(horizon=1).make().ask().id == 0


def test_a_kernel_above_1_is_warned_of():
    k = ScaleKernel(ON_LINE.kernel()).double()
    k.outputscale = torch.tensor(4.0, dtype=torch.float64)
    with pytest.warns(KernelBoundWarning, match="got 4"):
        strategy = ON_LINE.make(kernel=k)
    # C_k is that of the scaled kernel.
    assert strategy.levels[0].slack == pytest.approx(2 * ON_LINE.make().levels[0].slack, rel=1e-12)


@pytest.mark.parametrize("rkhs_bound", [0.0, 0.04])
def test_a_bound_so_small_that_nothing_is_refined_is_warned_of(rkhs_bound):
    # V_0 = 2.15 B, and 1/sqrt(T) = 0.13: where f has large units, T is short.
    with pytest.warns(HorizonWarning, match="only the center .* 1/sqrt.horizon. = 0.129"):
        strategy = ON_LINE.make(rkhs_bound=rkhs_bound)
    assert len(strategy.report()["warnings"]) == 1
    play_promptly(strategy, ON_LINE.problem(), HORIZON)
    assert strategy.report()["levels"][0]["num_evaluations"] == HORIZON
    assert ON_LINE.make(rkhs_bound=0.08).report()["warnings"] == []
