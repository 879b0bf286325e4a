import math

import pytest
import torch
from torch import Tensor

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.problems import TwoPeaks
from tests.helpers import tolerance

CLOSE = tolerance(torch.float64)
NORMS = ["l2", "linf"]


def square(num: int) -> FiniteSet:
    axis = torch.linspace(0, 1, num, dtype=torch.float64)
    return FiniteSet(torch.cartesian_prod(axis, axis))


def box(dim: int) -> Box:
    return Box([[0.0] * dim, [1.0] * dim])


def distance(x: Tensor, y: Tensor, norm: str) -> float:
    differences = [abs(a - b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return max(differences) if norm == "linf" else math.hypot(*differences)


def test_values_are_two_bumps() -> None:
    problem = TwoPeaks(box(2))
    for x, y in ((0.2, 0.2), (0.31, 0.7), (0.9, 0.05)):
        narrow = 1.2 * math.exp(-((x - 0.2) ** 2 + (y - 0.2) ** 2) / (2 * 0.05**2))
        wide = math.exp(-((x - 0.65) ** 2 + (y - 0.65) ** 2) / (2 * 0.2**2))
        assert float(problem([x, y])) == pytest.approx(narrow + wide, rel=1e-12)
    assert problem.optimizer.tolist() == pytest.approx([0.2, 0.2], abs=0.01)
    fine = torch.cartesian_prod(*[torch.linspace(0.15, 0.25, 401, dtype=torch.float64)] * 2)
    assert problem.optimal_value >= float(problem(fine).max())
    assert problem.optimal_value == pytest.approx(float(problem(fine).max()), abs=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_the_worst_case_on_a_set_is_its_definition_in_loops(norm) -> None:
    problem = TwoPeaks(square(13), radius=0.12, norm=norm)
    points = problem.domain.like
    values = problem(points)
    worst = [
        min(float(values[j]) for j in range(169) if distance(x, points[j], norm) <= 0.12)
        for x in points
    ]
    for i in (0, 30, 100, 168):
        assert problem.worst_value(points[i]) == worst[i]
    assert problem.stable_value == max(worst)
    assert torch.equal(problem.stable_optimizer, points[worst.index(max(worst))])
    expected = max(worst) - torch.tensor(worst, dtype=torch.float64)
    torch.testing.assert_close(problem.robust_regret(points), expected, **CLOSE)
    assert float(problem.robust_regret(points).min()) == 0.0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_radius_of_whole_steps_of_a_grid_reaches_the_last_of_them(norm, dim: int) -> None:
    axis = torch.arange(21, dtype=torch.float64)
    steps = torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
    problem = TwoPeaks(FiniteSet(steps / 20), radius=0.1, norm=norm)
    values = problem(problem.domain.like)
    # Counted in steps, where nothing is rounded.
    near = [[j for j, z in enumerate(steps) if distance(x, z, norm) <= 2] for x in steps]
    worst = torch.stack([values[rows].min() for rows in near])
    expected = worst.max() - worst
    torch.testing.assert_close(problem.robust_regret(problem.domain.like), expected, **CLOSE)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("dim", "num"), [(1, 2001), (2, 61)])
def test_on_a_box_it_is_the_limit_of_finer_sets(norm, dim: int, num: int) -> None:
    problem = TwoPeaks(box(dim), norm=norm)
    axes = [torch.linspace(0, 1, num, dtype=torch.float64)] * dim
    points = torch.cartesian_prod(*axes).reshape(-1, dim)
    finite = TwoPeaks(FiniteSet(points), norm=norm)
    # The function moves by at most 15 along a unit of length, and the ball of a set is smaller.
    near = 15 * math.sqrt(dim) / (num - 1)
    assert finite.stable_value == pytest.approx(problem.stable_value, abs=near)
    assert finite.stable_value >= problem.stable_value - near
    assert finite.stable_optimizer.tolist() == pytest.approx([0.65] * dim, abs=2 / (num - 1))
    for row in (0, len(points) // 7, len(points) // 2, len(points) - 1):
        worst = problem.worst_value(points[row])
        assert worst <= finite.worst_value(points[row]) + 1e-9
        assert worst == pytest.approx(finite.worst_value(points[row]), abs=near)
    assert problem.worst_value(problem.stable_optimizer) == pytest.approx(
        problem.stable_value, abs=1e-8
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [1, 2])
def test_no_point_of_a_box_is_more_stable(norm, dim: int) -> None:
    problem = TwoPeaks(box(dim), norm=norm)
    regret = problem.robust_regret(problem.domain.sample(16, seed=1))
    assert float(regret.min()) > 0
    around = problem.stable_optimizer + 0.01 * torch.randn(
        12, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    assert float(problem.robust_regret(around).min()) > 0
    # The peak is the maximum, and all but worthless.
    assert float(problem.robust_regret(problem.optimizer.unsqueeze(0))) > 0.5


def test_the_norm_is_that_of_the_function() -> None:
    problem = TwoPeaks(box(1))
    # The integral over frequencies that the closed form comes from, by quadrature.
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
