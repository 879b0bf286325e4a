"""What bad input gets from breadthwise exploration: an error that names the argument."""

import math

import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel

from botorch_ext import Box, FiniteSet, KernelGP
from botorch_ext.exceptions import HorizonReached, HorizonWarning, KernelBoundWarning
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.strategies import BreadthwiseExploration
from tests.strategies.fixed_design.breadthwise_sessions import (
    HORIZON,
    LAMBDA,
    ON_LINE,
    play_promptly,
    state,
)


def line(**options):
    return lambda: ON_LINE.make(**options)


def finite():
    return FiniteSet(torch.linspace(2, 5, 9).double()[:, None])


def of_model(domain=None, kernel=None, holder=None, rkhs_bound=1.5, **options):
    k = ON_LINE.kernel() if kernel is None else kernel
    domain = ON_LINE.box if domain is None else domain
    return lambda: BreadthwiseExploration(
        domain,
        KernelGP(k, LAMBDA, **options),
        1.0,
        20,
        rkhs_bound=rkhs_bound,
        holder=holder,
    )


def with_data():
    model = KernelGP(ON_LINE.kernel(), LAMBDA)
    model.add(torch.tensor([[3.0]]).double(), torch.zeros(1).double())
    return BreadthwiseExploration(ON_LINE.box, model, 1.0, 20, rkhs_bound=1.0)


PERIODIC = PeriodicKernel().double()

REFUSED = {
    "an unknown kernel": (line(kernel=PERIODIC), "kernel .*pass.* holder= .*got PeriodicKernel"),
    "an unknown kernel with a width": (line(kernel=PERIODIC, width=1.0), "kernel .*holder="),
    "horizon 0": (line(horizon=0), "horizon must be at least 1, got 0"),
    "horizon -3": (line(horizon=-3), "horizon must be at least 1, got -3"),
    "horizon 2.5": (line(horizon=2.5), "horizon must be a whole number, got 2.5"),
    "a box of width 0": (lambda: Box([[2.0], [2.0]]), "(bounds|lower|upper|width)"),
    "a box of width 0 in one direction": (
        lambda: Box([[2.0, 1.0], [3.0, 1.0]]),
        "(bounds|lower|upper|width)",
    ),
    "a finite set": (of_model(finite()), "domain must be a Box, .*got FiniteSet"),
    "no bound": (line(rkhs_bound=None), "rkhs_bound must be given, .*got None"),
    "no bound but a width": (
        line(rkhs_bound=None, width=1.0),
        "rkhs_bound must be given, also where width is, got None",
    ),
    "a negative bound": (line(rkhs_bound=-1.0), "rkhs_bound must be .*got -1.0"),
    "a bound that is NaN": (line(rkhs_bound=math.nan, width=1.0), "rkhs_bound must be .*got nan"),
    "an infinite bound": (of_model(rkhs_bound=math.inf), "rkhs_bound must be .*got inf"),
    "no noise": (line(noise_std=None), "noise_std must be given unless width is, got None"),
    "noise_variance 0": (line(noise_variance=0.0), "noise_variance must be positive .*got 0.0"),
    "delta 1.5": (line(delta=1.5), "delta must be in .*got 1.5"),
    "a negative width": (line(width=-1.0), "must be non-negative and finite, got -1.0"),
    "max_cells 0": (line(max_cells=0), "max_cells must be at least 1, got 0"),
    "max_cells 1.5": (line(max_cells=1.5), "max_cells must be a whole number, got 1.5"),
    "initial data": (
        line(initial=(torch.zeros(1, 1).double(), torch.zeros(1).double())),
        "initial must not be given",
    ),
    "initial points": (line(num_initial=3), "num_initial must not be given"),
    "a pending policy": (line(pending="hallucinate"), "pending must not be given"),
    "a holder constant of 0": (line(holder=(0.0, 1.0)), "constant of holder must be .*got 0.0"),
    "a NaN holder constant": (line(holder=(math.nan, 1.0)), "constant of holder must be .*got nan"),
    "an exponent of 0": (line(holder=(1.0, 0.0)), r"exponent of holder .*\(0, 1\], got 0.0"),
    "an exponent of 2": (line(holder=(1.0, 2.0)), r"exponent of holder .*\(0, 1\], got 2.0"),
    "a holder of three": (line(holder=(1.0, 1.0, 1.0)), "holder must be .*got"),
    "a holder of text": (line(holder="smooth"), "holder must be .*got 'smooth'"),
    "a holder of one number": (line(holder=1.0), "holder must be .*got 1.0"),
    "a holder in two dimensions": (
        line(holder=HolderConstants(1.0, 1.0, (1.0, 1.0), 1.0)),
        "lengthscales of holder must be 1 positive",
    ),
    "a holder with a lengthscale of 0": (
        line(holder=HolderConstants(1.0, 1.0, (0.0,), 1.0)),
        "lengthscales of holder must be 1 positive",
    ),
    "a prior mean that varies": (line(mean=lambda X: X[..., 0]), "mean must be constant"),
    "data": (with_data, "model must have no data, .*got 1 observations"),
    "another dtype": (of_model(dtype=torch.float32), "model must be torch.float64 .*got"),
    "lengthscales for more columns": (
        line(kernel=RBFKernel(ard_num_dims=3).double()),
        "(kernel|lengthscale).* 3",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="noise_sd"):
        ON_LINE.make(noise_sd=0.1)


def test_a_refused_call_changes_nothing():
    strategy, twin = ON_LINE.make(), ON_LINE.make()
    for s in (strategy, twin):
        play_promptly(s, ON_LINE.problem(), 20)
        s.ask()
    before = state(strategy)
    for call, message in (
        (lambda: strategy.ask(HORIZON), "num_trials must be at most 39, what the horizon of 60"),
        (lambda: strategy.ask(0), "num_trials must be at least 1"),
        (lambda: strategy.tell(20, math.nan), "value must be finite"),
        (lambda: strategy.tell(3, 0.1), "got 3: already told"),
        (lambda: strategy.tell(21, 0.1), "got 21: unknown"),
        (lambda: strategy.abandon(0), "got 0: already told"),
        (lambda: strategy.ask(context=[1.0]), "context must be None"),
        (lambda: strategy.ask(actions=[[3.0]]), "actions must be None"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        assert state(strategy) == before
    for s in (strategy, twin):
        s.abandon(20)
        play_promptly(s, ON_LINE.problem(), HORIZON - 21)
    assert state(strategy) == state(twin)


def test_nothing_is_asked_beyond_the_horizon():
    strategy = ON_LINE.but(horizon=3).make()
    play_promptly(strategy, ON_LINE.problem(), 3)
    with pytest.raises(HorizonReached, match=r"at most 0, .*horizon of 3 has left, got 1"):
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
