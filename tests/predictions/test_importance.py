"""Sobol indices against those of functions whose indices are known."""

import math

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.strategies.answers.importance import Importance, sobol_indices
from tests.helpers import rbf

# Of 4,096 scrambled Sobol points.
CLOSE = {"rtol": 0, "atol": 0.02}


def ishigami(U, a=7.0, b=0.1):
    """On [-pi, pi]^3; Ishigami and Homma 1990 give its indices and its variance."""
    x, y, z = ((2 * U - 1) * math.pi).unbind(-1)
    return x.sin() + a * y.sin() ** 2 + b * z**4 * x.sin()


def indices_of_ishigami(a=7.0, b=0.1):
    one = 0.5 * (1 + b * math.pi**4 / 5) ** 2
    two, mixed = a**2 / 8, b**2 * math.pi**8 * (1 / 18 - 1 / 50)
    return [one, two, 0.0], [one + mixed, two, mixed], one + two + mixed


A = torch.tensor([0.0, 1.0, 4.5, 9.0, 99.0]).double()


def g_function(U):
    """prod_j (|4 u_j - 2| + a_j) / (1 + a_j): the part of u_j alone has variance
    V_j = 1 / (3 (1 + a_j)^2), and all together prod (1 + V_j) - 1."""
    return (((4 * U - 2).abs() + A) / (1 + A)).prod(dim=-1)


def indices_of_g_function():
    own = 1 / (3 * (1 + A) ** 2)
    whole = (1 + own).prod()
    return own.tolist(), (own * whole / (1 + own)).tolist(), float(whole - 1)


@pytest.mark.parametrize(
    ("function", "dim", "known"),
    [(ishigami, 3, indices_of_ishigami()), (g_function, 5, indices_of_g_function())],
)
def test_indices_are_the_published_ones(function, dim, known):
    first, total, std = sobol_indices(function, dim, 4096, seed=1)
    for found, shares in ((first, known[0]), (total, known[1])):
        assert_close(found.tolist(), [share / known[2] for share in shares], **CLOSE)
    assert abs(std**2 / known[2] - 1) < 0.02


def test_a_function_that_is_flat_has_none():
    first, total, std = sobol_indices(lambda U: torch.full((len(U),), 3.7), 2, 64, seed=0)
    assert first.tolist() == total.tolist() == [0.0, 0.0] and std == 0


class Mean(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def of_mean(box, function, context=None, **options):
    """The importance by a model whose posterior mean is its prior mean."""
    model = bx.KernelGP(rbf(0.7), 0.04, mean=Mean(function))
    strategy = bx.OptimisticStrategy(box, model, 2.0, **options)
    return strategy.importance(context)


def test_columns_are_sampled_as_the_space_is():
    """Of a sum of independent columns the indices are the shares of their variances: of whole
    numbers a to b ((b - a + 1)^2 - 1) / 12, of codes theirs, of a logarithm (log b/a)^2 / 12."""
    box = bx.Box(
        [(2.0, 5.0), (1, 4), (1e-3, 1e1), (0, 7)], integer=[1], log=[2], categories={3: [0, 3, 7]}
    )
    found = of_mean(
        box, lambda X: X[..., 0] + 0.5 * X[..., 1] + 0.2 * X[..., 2].log() + 0.1 * X[..., 3]
    )
    codes = torch.tensor([0.0, 3.0, 7.0]).double()
    own = [9 / 12, 0.25 * 15 / 12, 0.04 * math.log(1e4) ** 2 / 12]
    own = torch.tensor([*own, 0.01 * float(codes.var(correction=0))]).double()
    assert_close(found.first_order, own / own.sum(), **CLOSE)
    assert_close(found.total, own / own.sum(), **CLOSE)
    assert abs(found.std - float(own.sum().sqrt())) < 0.02 * found.std


def test_constraints_are_ignored():
    bounds = [(0.0, 1.0), (0.0, 2.0)]
    plain, cut = bx.Box(bounds), bx.Box(bounds, constraints=([[1.0, 1.0]], [1.0]))
    totals = [of_mean(box, lambda X: X.sum(dim=-1)).total for box in (plain, cut)]
    assert_close(*totals)


def test_a_column_counts_where_it_is_active():
    """f = x0 + x1 + 5 x2 with x2 active for half of x0: then its variance is 25 / 3, of which its
    mean over x0, 2.5 x2, has a quarter."""
    box = bx.Box([(0, 1), (0.0, 2.0), (0.0, 2.0)], integer=[0], conditions={2: (0, [1.0])})
    found = of_mean(box, lambda X: X[..., 0] + X[..., 1] + 5 * X[..., 2])
    total = torch.tensor([0.25 + 0.5 * 25 / 3 - 25 / 12, 1 / 3, 0.5 * 25 / 3]).double()
    first = torch.tensor([0.25, 1 / 3, 25 / 12]).double()
    variance = 0.25 + 1 / 3 + 0.5 * 25 / 3
    assert_close(found.first_order, first / variance, **CLOSE)
    assert_close(found.total, total / variance, **CLOSE)


@pytest.mark.parametrize(("z", "shares"), [(1.0, [0.1, 0.9]), (0.0, [1.0, 0.0])])
def test_a_context_is_held_fixed(z, shares):
    """f = x0 + 3 z x1: at z = 1 the second explains 9 times as much as the first, at 0 nothing."""
    box = bx.Box([(2.0, 5.0), (-1.0, 2.0)])
    options = {"context_domain": bx.Box([(0.0, 1.0)])}
    function = lambda X: X[..., 0] + 3 * X[..., 1] * X[..., 2]  # noqa: E731
    assert_close(of_mean(box, function, [z], **options).total.tolist(), shares, **CLOSE)
    with pytest.raises(ValueError, match="context"):
        of_mean(box, function, **options)


def test_the_default_finds_what_matters():
    """By the mean over all particles, in units of the observations."""
    box = bx.Box([(2.0, 5.0), (-3.0, -1.0)])
    strategy = bx.algorithms.integrated_ei(box, seed=0)
    for x in box.sample(20, seed=2):
        strategy.attach(x, float(3 * x[0] + 0.1 * x[1]))
    found = strategy.importance(num_samples=256)
    std = strategy.posterior.mean(box.sample(4096, seed=9)).std()
    assert abs(found.std / float(std) - 1) < 0.05
    assert float(found.first_order[0]) > 0.97 and float(found.total[1]) < 0.03


def test_no_share_below_0_is_in_the_table():
    pytest.importorskip("pandas")
    below = torch.tensor([-0.005, 0.9], dtype=torch.float64)
    found = Importance(("a", "b"), below, below, 1.0)
    table = found.to_pandas()
    assert table["parameter"].tolist() == ["b", "a"]
    assert table["first_order"].tolist() == table["total"].tolist() == [0.9, 0.0]
    assert found.first_order.tolist() == below.tolist()  # the estimate itself


def test_a_finite_set_and_numbers_that_are_no_powers_of_two_are_refused():
    with pytest.raises(ValueError, match="importance needs a Box"):
        bx.algorithms.integrated_ei(bx.FiniteSet([[1.0], [2.0]])).importance()
    for num_samples in (3, 32, 100):
        with pytest.raises(ValueError, match="num_samples"):
            bx.algorithms.integrated_ei(bx.Box([(0.0, 1.0)])).importance(num_samples=num_samples)
