import math

import pytest
import torch

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.problems import TwoPeaks
from tests.helpers import tolerance

CLOSE = tolerance(torch.float64)
NORMS = pytest.mark.parametrize("norm", ["l2", "linf"])


def grid(num, dim):
    axes = [torch.linspace(0, 1, num, dtype=torch.float64)] * dim
    return FiniteSet(torch.cartesian_prod(*axes).reshape(-1, dim))


def box(dim):
    return Box([[0.0] * dim, [1.0] * dim])


def distances(X, norm):
    return torch.cdist(X, X, p=math.inf if norm == "linf" else 2)


@NORMS
@pytest.mark.parametrize(("dim", "num", "radius"), [(1, 21, 1), (2, 13, 1.44), (2, 21, 2)])
def test_the_worst_case_on_a_set_is_its_definition_and_reaches_whole_steps(norm, dim, num, radius):
    problem = TwoPeaks(grid(num, dim), radius=radius / (num - 1), norm=norm)
    points = problem.domain.like
    # Counted in steps, where nothing is rounded.
    near = distances((points * (num - 1)).round(), norm) <= radius
    worst = torch.where(near, problem(points), math.inf).amin(dim=-1)
    for i in (0, 5, len(points) // 2, len(points) - 1):
        assert problem.worst_value(points[i]) == worst[i]
    assert problem.stable_value == worst.max()
    assert torch.equal(problem.stable_optimizer, points[worst.argmax()])
    regret = problem.robust_regret(points)
    torch.testing.assert_close(regret, worst.max() - worst, **CLOSE)
    assert float(regret.min()) == 0.0


@NORMS
@pytest.mark.parametrize(("dim", "num"), [(1, 2001), (2, 61)])
def test_on_a_box_it_is_the_limit_of_finer_sets(norm, dim, num):
    problem, finite = TwoPeaks(box(dim), norm=norm), TwoPeaks(grid(num, dim), norm=norm)
    # The function moves by at most 15 along a unit of length, and the ball of a set is smaller.
    near = 15 * math.sqrt(dim) / (num - 1)
    assert finite.stable_value == pytest.approx(problem.stable_value, abs=near)
    assert finite.stable_optimizer.tolist() == pytest.approx([0.65] * dim, abs=2 / (num - 1))
    points = finite.domain.like
    for row in (0, len(points) // 7, len(points) // 2, len(points) - 1):
        worst = problem.worst_value(points[row])
        assert worst <= finite.worst_value(points[row]) + 1e-9
        assert worst == pytest.approx(finite.worst_value(points[row]), abs=near)
    stable = problem.worst_value(problem.stable_optimizer)
    assert stable == pytest.approx(problem.stable_value, abs=1e-8)
    assert float(problem.robust_regret(problem.domain.sample(16, seed=1)).min()) > 0
    # The peak is the maximum, and all but worthless.
    assert float(problem.robust_regret(problem.optimizer.unsqueeze(0))) > 0.5


def test_the_norm_is_the_integral_over_frequencies():
    problem = TwoPeaks(box(1))
    w = torch.linspace(-400, 400, 400_001, dtype=torch.float64)
    transform = torch.zeros_like(w).to(torch.complex128)
    for height, center, std in ((1.2, 0.2, 0.05), (1.0, 0.65, 0.2)):
        part = height * std * math.sqrt(2 * math.pi) * (-0.5 * (std * w) ** 2).exp()
        transform = transform + part * torch.exp(-1j * w * center)
    for lengthscale in (0.05, 0.03):
        spectrum = lengthscale * math.sqrt(2 * math.pi) * (-0.5 * (lengthscale * w) ** 2).exp()
        squared = torch.trapezoid(transform.abs().square() / spectrum, w) / (2 * math.pi)
        assert problem.rkhs_norm(lengthscale) == pytest.approx(math.sqrt(float(squared)), rel=1e-9)
    assert problem.rkhs_norm(0.071) == math.inf
    assert [value < 0.05 * math.sqrt(2) for value in problem.lengthscales] == [True] + [False] * 3
    assert problem.true_model == 0
    for radius in (0.049, 0.121):  # the narrow peak would count, or the wide one would not
        with pytest.raises(ValueError, match="radius"):
            TwoPeaks(box(1), radius=radius)
