"""BoTorch's test functions as problems: always maximised, with an exact optimum."""

import math

import pytest
import torch
from botorch.test_functions import synthetic
from scipy.optimize import minimize

from botorch_ext.problems import SyntheticProblem
from tests.helpers import tolerance

NAMES = (
    "Ackley Beale Branin Bukin Cosine8 DropWave DixonPrice EggHolder Griewank Hartmann HolderTable "
    "Levy Michalewicz Powell Rastrigin Rosenbrock Shekel SixHumpCamel StyblinskiTang ThreeHumpCamel"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_values_are_to_be_maximised_and_the_maximum_is_the_stated_one(name):
    function, sign = getattr(synthetic, name)(), 1 if name == "Cosine8" else -1
    problem = SyntheticProblem(function)
    assert problem.optimal_value == pytest.approx(sign * function.optimal_value, abs=1e-4)
    assert problem.optimal_value == float(problem(problem.optimizer))
    X = problem.domain.sample(5000, seed=1)
    assert problem.optimal_value >= float(problem(X).max())
    torch.testing.assert_close(problem(X), sign * function.evaluate_true(X), **tolerance(X.dtype))
    negated = SyntheticProblem(getattr(synthetic, name)(negate=True))
    assert torch.equal(negated(X), problem(X))
    assert negated.optimal_value == problem.optimal_value


def test_the_optimum_is_more_exact_than_stated_also_where_bounds_leave_out_maximisers():
    # Branin: 10 / (8 pi) in closed form. Hartmann: a search of its own from the stated optimum.
    for bounds in (None, [(-5.0, 0.0), (10.0, 15.0)]):
        branin = SyntheticProblem(synthetic.Branin(bounds=bounds))
        assert branin.optimal_value == pytest.approx(-10 / (8 * math.pi), abs=1e-10)
        assert bool(branin.domain.contains(branin.optimizer))
    assert branin.domain.bounds.tolist() == [[-5.0, 10.0], [0.0, 15.0]]
    function = synthetic.Hartmann(6)
    found = minimize(
        lambda x: float(function.evaluate_true(torch.from_numpy(x))),
        function.optimizers[0].numpy(),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxfev": 4000},
    )
    assert SyntheticProblem(function).optimal_value == pytest.approx(-found.fun, abs=1e-10)


def test_values_are_noiseless_and_the_noise_is_taken_over():
    noisy = synthetic.Branin(noise_std=0.3)
    problem = SyntheticProblem(noisy)
    X = problem.domain.sample(10, seed=0)
    assert torch.equal(problem(X), problem(X))
    assert (problem.noise_std, SyntheticProblem(noisy, noise_std=0.1).noise_std) == (0.3, 0.1)
    assert SyntheticProblem(synthetic.Branin()).noise_std == 0.0


def test_a_function_without_stated_maximiser_keeps_its_stated_optimum():
    problem = SyntheticProblem(synthetic.TrajectoryPlanning())
    assert problem.optimizer is None
    assert problem.optimal_value == 0.0
