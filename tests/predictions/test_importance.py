"""Sobol indices against those of functions whose indices are known."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.predictions.importance import Importance, sobol_indices
from tests.helpers import rbf

# Of 4,096 scrambled Sobol points.
_ERROR = 0.02


def ishigami(X):
    """On [-pi, pi]^3, with a = 7 and b = 0.1."""
    x, y, z = X.unbind(-1)
    return x.sin() + 7 * y.sin() ** 2 + 0.1 * z**4 * x.sin()


def indices_of_ishigami(a=7.0, b=0.1):
    """Ishigami and Homma 1990: first-order and total ones, and the variance."""
    one = 0.5 * (1 + b * math.pi**4 / 5) ** 2
    two, mixed = a**2 / 8, b**2 * math.pi**8 * (1 / 18 - 1 / 50)
    total = one + two + mixed
    first = [one / total, two / total, 0.0]
    return first, [(one + mixed) / total, two / total, mixed / total], total


def test_of_ishigami():
    first, total, std = sobol_indices(lambda U: ishigami((2 * U - 1) * math.pi), 3, 4096, seed=1)
    expected = indices_of_ishigami()
    assert_close(first.tolist(), expected[0], rtol=0, atol=_ERROR)
    assert_close(total.tolist(), expected[1], rtol=0, atol=_ERROR)
    assert abs(std**2 / expected[2] - 1) < _ERROR


def test_of_a_g_function():
    """prod_j (|4 u_j - 2| + a_j) / (1 + a_j): the part of u_j alone has variance
    V_j = 1 / (3 (1 + a_j)^2), and all together prod (1 + V_j) - 1."""
    a = torch.tensor([0.0, 1.0, 4.5, 9.0, 99.0]).double()
    first, total, _ = sobol_indices(
        lambda U: (((4 * U - 2).abs() + a) / (1 + a)).prod(dim=-1), 5, 4096, seed=0
    )
    own = 1 / (3 * (1 + a) ** 2)
    all_of_it = (1 + own).prod() - 1
    assert_close(first, own / all_of_it, rtol=0, atol=_ERROR)
    others = (1 + own).prod() / (1 + own)
    assert_close(total, own * others / all_of_it, rtol=0, atol=_ERROR)


def test_a_function_that_is_flat_has_none():
    first, total, std = sobol_indices(lambda U: torch.full((len(U),), 3.7), 2, 64, seed=0)
    assert first.tolist() == total.tolist() == [0.0, 0.0] and std == 0


class _Linear(torch.nn.Module):
    def __init__(self, weights, logs=()):
        super().__init__()
        self.weights, self.logs = torch.tensor(weights).double(), list(logs)

    def forward(self, X):
        V = X.clone()
        V[..., self.logs] = V[..., self.logs].log()
        return V @ self.weights


def _of_mean(box, mean, **options):
    """The importance by a model whose posterior mean is its prior mean."""
    model = bx.KernelGP(rbf(0.7), 0.04, mean=mean)
    return bx.OptimisticStrategy(box, model, 2.0, num_initial=4).importance(**options)


def test_columns_are_sampled_as_the_space_is():
    """Of a sum of independent columns the indices are the shares of their variances: of whole
    numbers a to b ((b - a + 1)^2 - 1) / 12, of codes theirs, of a logarithm (log b/a)^2 / 12."""
    box = bx.Box(
        [(2.0, 5.0), (1, 4), (1e-3, 1e1), (0, 7)], integer=[1], log=[2], categories={3: [0, 3, 7]}
    )
    found = _of_mean(box, _Linear([1.0, 0.5, 0.2, 0.1], logs=[2]))
    codes = torch.tensor([0.0, 3.0, 7.0]).double()
    own = [9 / 12, 0.25 * 15 / 12, 0.04 * math.log(1e4) ** 2 / 12]
    own = torch.tensor([*own, 0.01 * float(codes.var(correction=0))]).double()
    assert_close(found.first_order, own / own.sum(), rtol=0, atol=_ERROR)
    assert_close(found.total, own / own.sum(), rtol=0, atol=_ERROR)
    assert abs(found.std - float(own.sum().sqrt())) < 0.02 * found.std


def test_constraints_are_ignored():
    plain = bx.Box([(0.0, 1.0), (0.0, 2.0)])
    cut = bx.Box([(0.0, 1.0), (0.0, 2.0)], constraints=([[1.0, 1.0]], [1.0]))
    mean = _Linear([1.0, 1.0])
    assert_close(_of_mean(cut, mean).total, _of_mean(plain, mean).total)


def test_a_column_counts_where_it_is_active():
    """f = x0 + x1 + 5 x2 with x2 active for half of x0: then its variance is 25 / 3, of which its
    mean over x0, 2.5 x2, has a quarter."""
    box = bx.Box([(0, 1), (0.0, 2.0), (0.0, 2.0)], integer=[0], conditions={2: (0, [1.0])})
    found = _of_mean(box, _Linear([1.0, 1.0, 5.0]))
    total = torch.tensor([0.25 + 0.5 * 25 / 3 - 25 / 12, 1 / 3, 0.5 * 25 / 3]).double()
    variance = 0.25 + 1 / 3 + 0.5 * 25 / 3
    first = torch.tensor([0.25, 1 / 3, 25 / 12]).double()
    assert_close(found.first_order, first / variance, rtol=0, atol=_ERROR)
    assert_close(found.total, total / variance, rtol=0, atol=_ERROR)


def test_a_context_is_held_fixed():
    """f = x0 + 3 z x1: at z = 1 the second explains 9 times as much as the first, at 0 nothing."""
    box = bx.Box([(2.0, 5.0), (-1.0, 2.0)])

    class Product(torch.nn.Module):
        def forward(self, X):
            return X[..., 0] + 3 * X[..., 1] * X[..., 2]

    model = bx.KernelGP(rbf(0.7), 0.04, mean=Product())
    strategy = bx.OptimisticStrategy(box, model, 2.0, context_domain=bx.Box([(0.0, 1.0)]))
    assert_close(strategy.importance([1.0]).total.tolist(), [0.1, 0.9], rtol=0, atol=_ERROR)
    assert_close(strategy.importance([0.0]).total.tolist(), [1.0, 0.0], rtol=0, atol=_ERROR)
    with pytest.raises(ValueError, match="context must be given"):
        strategy.importance()


def test_the_default_finds_what_matters():
    """By the mean over all particles, in units of the observations."""
    box = bx.Box([(2.0, 5.0), (-3.0, -1.0)])
    strategy = bx.algorithms.integrated_ei(box, seed=0)
    for x in box.sample(20, seed=2):
        strategy.attach(x, float(3 * x[0] + 0.1 * x[1]))
    found = strategy.importance(num_samples=256)
    U = box.sample(4096, seed=9)
    std = strategy.posterior.mean(U).std()
    assert abs(found.std / float(std) - 1) < 0.05
    assert float(found.first_order[0]) > 0.97 and float(found.total[1]) < 0.03
    table = pytest.importorskip("pandas") and found.to_pandas()
    assert table["parameter"].tolist() == ["x0", "x1"]


def test_no_share_below_0_is_shown():
    """Estimates may be below; the table and its text show none."""
    below = torch.tensor([-0.005, 0.9], dtype=torch.float64)
    found = Importance(("a", "b"), below, below.abs() + torch.tensor([-0.01, 0.0]), 1.0)
    assert "-" not in repr(found)
    table = pytest.importorskip("pandas") and found.to_pandas()
    assert table["first_order"].tolist() == [0.9, 0.0] and table["total"].tolist() == [0.9, 0.0]
    assert found.first_order.tolist() == below.tolist()  # the estimate itself


def test_a_finite_set_is_refused():
    domain = bx.FiniteSet([[1.0], [2.0]])
    strategy = bx.algorithms.integrated_ei(domain)
    with pytest.raises(ValueError, match="importance needs a Box"):
        strategy.importance()


@pytest.mark.parametrize("num_samples", [3, 32, 100])
def test_sobol_points_are_balanced_in_powers_of_two_alone(num_samples):
    with pytest.raises(ValueError, match="num_samples must be"):
        bx.algorithms.integrated_ei(bx.Box([(0.0, 1.0)])).importance(num_samples=num_samples)
