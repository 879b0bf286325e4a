"""Contextual problems: values, norms and the best value at a context, against plain loops."""

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.problems import ContextualFunction, ContextualRKHSFunction
from tests.helpers import tolerance

ACTIONS = Box([[2.0, -7.0], [5.0, -6.2]])
CONTEXTS = Box([[10.0], [24.0]])
ARMS = FiniteSet(ACTIONS.sample(40, seed=4))
TASKS = FiniteSet([[0.0], [1.0], [2.0]])
CLOSE = tolerance(torch.float64)


def kernel(nu=2.5):
    """RBF over the actions times Matern over the context."""
    actions = RBFKernel(ard_num_dims=2, active_dims=[0, 1]).double()
    actions.lengthscale = torch.tensor([0.9, 0.3], dtype=torch.float64)
    contexts = MaternKernel(nu=nu, active_dims=[2]).double()
    contexts.lengthscale = 4.0
    return actions * contexts


def kernel_value(a, b):
    """The same, of two joint points as lists."""
    squared = ((a[0] - b[0]) / 0.9) ** 2 + ((a[1] - b[1]) / 0.3) ** 2
    r = math.sqrt(5) * abs(a[2] - b[2]) / 4.0
    return math.exp(-squared / 2) * (1 + r + r * r / 3) * math.exp(-r)


def make(domain=ACTIONS, contexts=CONTEXTS, **options):
    return ContextualRKHSFunction.random(
        domain, contexts, kernel(), norm=2.0, **{"num_centers": 12, "seed": 3} | options
    )


def test_values_and_norm_are_their_definitions_written_as_loops():
    joint = Box([[2.0, -7.0, 10.0], [5.0, -6.2, 24.0]])
    centers, weights = joint.sample(6, seed=1), [1.0, -2.0, 0.5, 3.0, -1.0, 0.1]
    f = ContextualRKHSFunction(kernel(), centers, weights, ACTIONS, noise_std=0.3)
    rows = list(zip(centers.tolist(), weights, strict=True))
    squared = sum(a * b * kernel_value(x, y) for x, a in rows for y, b in rows)
    assert f.norm == pytest.approx(math.sqrt(squared), rel=1e-9)
    X = joint.sample(5, seed=2)
    values = [sum(a * kernel_value(x, point) for x, a in rows) for point in X.tolist()]
    torch.testing.assert_close(f(X), torch.tensor(values, dtype=torch.float64), **CLOSE)
    assert f(X[0]).shape == f(X[0].tolist()).shape == ()
    assert (f.context_dim, f.noise_std, f.domain) == (1, 0.3, ACTIONS)


@pytest.mark.parametrize("contexts", [CONTEXTS, TASKS])
@pytest.mark.parametrize("domain", [ACTIONS, ARMS])
def test_a_random_function_has_the_norm_and_centers_of_pairs(domain, contexts):
    f = make(domain, contexts)
    assert f.norm == pytest.approx(2.0, rel=1e-9)
    centers = f.joint.centers
    assert centers.shape == (12, 3)
    assert bool(domain.contains(centers[:, :2].contiguous()).all())
    assert bool(contexts.contains(centers[:, 2:].contiguous()).all())
    again, other = make(domain, contexts), make(domain, contexts, seed=4)
    x = torch.cat([ARMS.points, torch.ones(40, 1).double()], dim=-1)
    assert torch.equal(f(x), again(x))
    assert not torch.allclose(f(x), other(x))


@pytest.mark.parametrize("pair", [(ACTIONS, CONTEXTS), (ARMS, TASKS), (ACTIONS, TASKS)])
def test_actions_and_contexts_of_centers_are_not_correlated(pair):
    # Independent pairs correlate by more than 5 / sqrt(400) with a probability of 6e-7.
    centers = make(*pair, num_centers=400).joint.centers
    assert bool((centers.T.corrcoef()[2, :2].abs() < 0.25).all())


def test_the_best_value_on_a_finite_set_or_over_given_actions_is_that_of_a_loop():
    f = make(ARMS)
    for z in (10.5, 17.0, 23.0):
        values = [float(f([*x, z])) for x in ARMS.points.tolist()]
        assert f.optimal_value_at([z]) == pytest.approx(max(values), rel=1e-12)
        top = values.index(max(values))
        assert torch.equal(f.optimizer_at([z]), ARMS.points[top])
        some = torch.cat([ARMS.points[5:9], ARMS.points[5:6]])
        context = torch.tensor([z], dtype=torch.float64)
        assert f.optimal_value_at(context, some) == pytest.approx(max(values[5:9]), rel=1e-12)
        assert f.optimal_value_at(context) == pytest.approx(max(values), rel=1e-12)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_the_best_value_on_a_box_is_no_less_than_on_a_fine_grid(nu):
    f = ContextualRKHSFunction.random(ACTIONS, CONTEXTS, kernel(nu), norm=2.0, seed=3)
    sides = [torch.linspace(*side, 120).double() for side in ACTIONS.bounds.T.tolist()]
    grid = torch.cartesian_prod(*sides)
    for z in (11.0, 16.5):
        on_grid = f(torch.cat([grid, torch.full_like(grid[:, :1], z)], dim=-1)).max()
        best, x = f.optimal_value_at([z]), f.optimizer_at([z])
        assert float(on_grid) <= best <= float(on_grid) + 1e-3
        assert bool(ACTIONS.contains(x))
        assert float(f([*x.tolist(), z])) == pytest.approx(best, abs=1e-9)


class Counted(ContextualFunction):
    """f(x, z) = -|x - z|^2, and how often it was evaluated."""

    calls = 0

    def _evaluate(self, X):
        self.calls += 1
        d = self.domain.dim
        return -(X[:, :d] - X[:, d:]).square().sum(dim=-1)


def test_the_search_for_a_maximum_is_made_once_for_each_context():
    f = Counted(ACTIONS, 2)
    assert f.optimal_value_at([3.0, -6.5]) == pytest.approx(0.0, abs=1e-9)
    torch.testing.assert_close(
        f.optimizer_at([3.0, -6.5]), torch.tensor([3.0, -6.5]).double(), rtol=0, atol=1e-5
    )
    calls = f.calls
    assert f.optimal_value_at(torch.tensor([3.0, -6.5]).double()) == f.optimal_value_at([3.0, -6.5])
    assert f.calls == calls
    assert f.optimal_value_at([6.0, -6.5]) == pytest.approx(-1.0, abs=1e-9)
    assert f.calls > calls
    assert f.optimal_value_at([3.0, -6.5], torch.tensor([[3.0, -6.0]]).double()) == -0.25
