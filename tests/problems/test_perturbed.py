import math

import pytest
import torch
from gpytorch.kernels import Kernel, RBFKernel
from torch import Tensor

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.problems import (
    Perturbed,
    RKHSFunction,
    SVCTuning,
    adversarial,
    global_maximum,
    rough,
    tabulated,
)
from tests.helpers import tolerance

BOX = Box([[2.0, -7.0], [5.0, -6.2]])
CLOSE = tolerance(torch.float64)
EPSILON = 0.2


def rbf(lengthscale: float) -> Kernel:
    kernel = RBFKernel().to(torch.float64)
    kernel.lengthscale = lengthscale
    return kernel


def smooth(domain: Box | FiniteSet, seed: int = 0) -> RKHSFunction:
    return RKHSFunction.random(domain, rbf(0.5), 2.0, noise_std=0.05, seed=seed)


@pytest.mark.parametrize("kind", ["rough", "adversarial"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_holds_and_is_nearly_attained(kind: str, seed: int) -> None:
    f = smooth(BOX, seed)
    m = rough(2, EPSILON, seed) if kind == "rough" else adversarial(f, EPSILON)
    X = BOX.sample(10_000, seed=7)
    assert m(X).abs().max() <= EPSILON
    assert m(X).abs().max() > 0.95 * EPSILON
    p = Perturbed(f, m, EPSILON)
    torch.testing.assert_close(p(X), f(X) + m(X), **CLOSE)
    assert p(X[3]).shape == ()
    assert p.rkhs_part is f
    assert p.noise_std == 0.05
    assert p.misspecification == EPSILON


def test_rough_is_the_mean_of_cosines_of_the_stated_frequencies() -> None:
    m = rough(1, EPSILON, seed=3, frequency=5.0, num_waves=4)
    X = torch.linspace(-7.0, 9.0, 4096, dtype=torch.float64)[:-1].unsqueeze(-1)
    power = torch.fft.rfft(m(X) * torch.hann_window(4095, dtype=torch.float64)).abs().square()
    cycles = torch.arange(len(power)) / 16.0
    inside = (cycles > 4.8) & (cycles < 10.2)
    assert power[inside].sum() > 0.9999 * power.sum()


def test_rough_lies_far_outside_the_ball_of_the_smooth_part() -> None:
    # The smallest norm of any function through these values of m, and through those of f.
    f = smooth(BOX)
    X = BOX.sample(150, seed=1)
    K = rbf(0.5)(X, X).to_dense().detach() + 1e-8 * torch.eye(150, dtype=torch.float64)

    def smallest_norm(values: Tensor) -> float:
        return float((values @ torch.linalg.solve(K, values)).sqrt())

    assert smallest_norm(f(X)) <= f.norm * (1 + 1e-6)
    assert smallest_norm(rough(2, 0.05, seed=0)(X)) > 100 * f.norm


def test_adversarial_hides_the_maximiser_and_is_smooth() -> None:
    f = smooth(BOX)
    m = adversarial(f, EPSILON, radius=0.2)
    assert float(m(f.optimizer.unsqueeze(0))) == pytest.approx(-EPSILON)
    side = BOX.upper - BOX.lower
    directions = torch.tensor([[1.0, 0.0], [0.0, -1.0], [0.6, 0.8]], dtype=torch.float64)
    for r, expected in [(0.1, 1 - 2 * 0.5**0.25), (0.2, 0.0), (0.4, 1 - 2 / 16)]:
        X = f.optimizer + r * math.sqrt(2) * directions * side
        expected_values = torch.full((3,), EPSILON * expected, dtype=torch.float64)
        torch.testing.assert_close(m(X), expected_values, **CLOSE)
    X = BOX.sample(5, seed=1).requires_grad_(True)
    assert torch.autograd.gradcheck(m, (X,))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("rough", 0),
        pytest.param("adversarial", 1, marks=pytest.mark.slow),
        pytest.param("rough", 2, marks=pytest.mark.slow),
    ],
)
def test_the_maximum_on_a_box_is_that_of_the_perturbed_function(kind: str, seed: int) -> None:
    f = smooth(BOX, seed)
    m = rough(2, EPSILON, seed) if kind == "rough" else adversarial(f, EPSILON)
    p = Perturbed(f, m, EPSILON)
    assert p.optimizer is not None
    assert bool(BOX.contains(p.optimizer))
    assert p.optimal_value == float(p(p.optimizer))
    sides = [torch.linspace(*side, 200).double() for side in BOX.bounds.T.tolist()]
    best = torch.cartesian_prod(*sides)
    best = best[p(best).topk(20).indices]
    reach = (BOX.upper - BOX.lower) / 100
    offsets = torch.cartesian_prod(*[torch.linspace(-1, 1, 11).double()] * 2)
    for _ in range(25):
        fine = (best.unsqueeze(1) + offsets * reach).clamp(BOX.lower, BOX.upper)  # (20, 121, 2)
        rows = p(fine.reshape(-1, 2)).reshape(20, -1).argmax(dim=1)
        best = fine[torch.arange(20), rows]
        reach = reach / 2
    found = float(p(best).max())
    assert p.optimal_value >= found - 1e-9
    assert p.optimal_value == pytest.approx(found, abs=1e-6)
    assert abs(p.optimal_value - f.optimal_value) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_thousands_of_bumps_in_four_dimensions(seed: int) -> None:
    box = Box([[2.0, -7.0, 1.0, 5.0], [5.0, -6.2, 3.0, 6.0]])
    f = RKHSFunction.random(box, rbf(0.8), 2.0, seed=seed)
    p = Perturbed(f, rough(4, EPSILON, seed), EPSILON)
    # A search of its own: many starts in the part of the box where f is high enough.
    X = f.optimizer + 0.3 * (box.sample(2**14, seed=5) - f.optimizer)
    X = X[f(X) > f.optimal_value - 2 * EPSILON]
    _, value = global_maximum(p, box, seed=3, num_raw=0, num_starts=300, extra=X)
    assert p.optimal_value == pytest.approx(value, abs=1e-9)


def test_a_tabulated_perturbation_of_a_finite_set() -> None:
    points = FiniteSet(BOX.sample(40, seed=3))
    f = smooth(points)
    values = torch.linspace(-EPSILON, EPSILON, 40, dtype=torch.float64)
    p = Perturbed(f, tabulated(points, values), EPSILON)
    expected = [float(f(points.points[i])) + float(values[i]) for i in range(40)]
    rows = [5, 39, 0]
    torch.testing.assert_close(
        p(points.points[rows]),
        torch.tensor([expected[i] for i in rows], dtype=torch.float64),
        **CLOSE,
    )
    assert p.optimal_value == pytest.approx(max(expected), rel=1e-12)
    assert p.optimizer is not None
    assert torch.equal(p.optimizer, points.points[expected.index(max(expected))])
    with pytest.raises(OutsideDomainError, match="must be one of the 40 points"):
        p(BOX.sample(1, seed=99))


def test_adversarial_on_a_finite_set_with_a_constant_column() -> None:
    points = torch.tensor([[2.0, 7.0], [3.0, 7.0], [6.0, 7.0]], dtype=torch.float64)
    f = RKHSFunction(rbf(1.0), [[6.0, 7.0]], [1.0], FiniteSet(points))
    m = adversarial(f, EPSILON, radius=0.2)
    expected = [EPSILON * (1 - 2 * 2 ** -((d / 4 / 0.2) ** 2 / 2)) for d in (4.0, 3.0, 0.0)]
    torch.testing.assert_close(m(points), torch.tensor(expected).double(), **CLOSE)


def test_a_perturbation_beyond_the_bound_is_refused() -> None:
    f = smooth(BOX)
    with pytest.raises(ValueError, match=r"within misspecification=0\.1, got 0\.1\d"):
        Perturbed(f, rough(2, 0.2), 0.1)
    with pytest.raises(ValueError, match=r"within misspecification=0\.1, got nan"):
        Perturbed(f, lambda X: X[:, 0] * math.nan, 0.1)
    with pytest.raises(ValueError, match="perturbation must return 1024 values"):
        Perturbed(f, lambda X: X, 0.1)
    # Too narrow for the check of the constructor, caught where it is met.
    needle = torch.tensor([3.3, -6.5], dtype=torch.float64)
    p = Perturbed(f, lambda X: (X == needle).all(dim=-1).double(), 0.1)
    with pytest.raises(ValueError, match=r"within misspecification=0\.1, got 1\.0"):
        p(needle)


def test_an_unknown_maximum_stays_unknown() -> None:
    task = SVCTuning()
    center = torch.tensor([1.0, -2.0], dtype=torch.float64)
    p = Perturbed(task, adversarial(task, EPSILON, center=center), EPSILON)
    assert p.optimal_value is None
    assert p.optimizer is None
    with pytest.raises(ValueError, match="center must be given"):
        adversarial(task, EPSILON)
