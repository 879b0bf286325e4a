"""Perturbations: their bound, their definition, and what they do to the maximum."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import problems
from botorch_ext.domains import Box, FiniteSet
from botorch_ext.exceptions import OutsideDomainError
from tests.helpers import rbf, tolerance

BOX = Box([[2.0, -7.0], [5.0, -6.2]])
CLOSE = tolerance(torch.float64)
EPSILON = 0.2


def smooth(domain, seed=0):
    return problems.RKHSFunction.random(domain, rbf(0.5), 2.0, noise_std=0.05, seed=seed)


@pytest.mark.parametrize("kind", ["rough", "adversarial"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_holds_and_is_nearly_attained(kind, seed):
    f = smooth(BOX, seed)
    m = problems.rough(2, EPSILON, seed) if kind == "rough" else problems.adversarial(f, EPSILON)
    X = BOX.sample(10_000, seed=7)
    assert 0.95 * EPSILON < m(X).abs().max() <= EPSILON
    p = problems.Perturbed(f, m, EPSILON)
    assert_close(p(X), f(X) + m(X), **CLOSE)
    assert p(X[3]).shape == ()
    assert (p.rkhs_part, p.noise_std, p.misspecification) == (f, 0.05, EPSILON)


def test_rough_is_the_mean_of_cosines_of_the_stated_frequencies():
    m = problems.rough(1, EPSILON, seed=3, frequency=5.0, num_waves=4)
    X = torch.linspace(-7.0, 9.0, 4096, dtype=torch.float64)[:-1].unsqueeze(-1)
    power = torch.fft.rfft(m(X) * torch.hann_window(4095, dtype=torch.float64)).abs().square()
    cycles = torch.arange(len(power)) / 16.0
    inside = (cycles > 4.8) & (cycles < 10.2)
    assert power[inside].sum() > 0.9999 * power.sum()


def test_adversarial_hides_the_maximiser_and_is_smooth():
    f = smooth(BOX)
    m = problems.adversarial(f, EPSILON, radius=0.2)
    assert float(m(f.optimizer.unsqueeze(0))) == pytest.approx(-EPSILON)
    directions = torch.tensor([[1.0, 0.0], [0.0, -1.0], [0.6, 0.8]], dtype=torch.float64)
    for r, share in [(0.1, 1 - 2 * 0.5**0.25), (0.2, 0.0), (0.4, 1 - 2 / 16)]:
        X = f.optimizer + r * math.sqrt(2) * directions * (BOX.upper - BOX.lower)
        assert_close(m(X), torch.full((3,), EPSILON * share, dtype=torch.float64), **CLOSE)
    assert torch.autograd.gradcheck(m, (BOX.sample(5, seed=1).requires_grad_(),))


def test_adversarial_on_a_finite_set_with_a_constant_column():
    points = torch.tensor([[2.0, 7.0], [3.0, 7.0], [6.0, 7.0]], dtype=torch.float64)
    f = problems.RKHSFunction(rbf(1.0), [[6.0, 7.0]], [1.0], FiniteSet(points))
    m = problems.adversarial(f, EPSILON, radius=0.2)
    expected = [EPSILON * (1 - 2 * 2 ** -((d / 4 / 0.2) ** 2 / 2)) for d in (4.0, 3.0, 0.0)]
    assert_close(m(points), torch.tensor(expected).double(), **CLOSE)
    assert_close(problems.adversarial(f, EPSILON, 0.2, [6.0, 7.0])(points), m(points), **CLOSE)
    for center in ([6.0], [[6.0, 7.0]] * 2, "here"):
        with pytest.raises(ValueError, match="center must"):
            problems.adversarial(f, EPSILON, 0.2, center)
    with pytest.raises(ValueError, match="problem must"):
        problems.adversarial(None, EPSILON)


def test_a_table_holds_the_perturbation_of_each_point():
    points = FiniteSet(BOX.sample(40, seed=3))
    f, values = smooth(points), torch.linspace(-EPSILON, EPSILON, 40, dtype=torch.float64)
    p = problems.Perturbed(f, problems.tabulated(points, values), EPSILON)
    expected, rows = f(points.points) + values, [5, 39, 0]
    assert_close(p(points.points[rows]), expected[rows], **CLOSE)
    assert p.optimal_value == pytest.approx(float(expected.max()), rel=1e-12)
    assert torch.equal(p.optimizer, points.points[expected.argmax()])
    with pytest.raises(OutsideDomainError):
        p(BOX.sample(1, seed=99))


def test_white_is_plus_or_minus_eps_at_each_point_without_structure():
    domain = FiniteSet(BOX.sample(500, 0))
    m, other = (problems.white(domain, 0.5, seed)(domain.points) for seed in (7, 8))
    assert set(m.tolist()) == {-0.5, 0.5}
    assert abs(float(m.mean())) < 4 * 0.5 / math.sqrt(500)
    # Neighbouring rows agree as often as not.
    assert abs(float((m[1:] * m[:-1]).mean())) < 4 * 0.25 / math.sqrt(499)
    assert torch.equal(m, problems.white(domain, 0.5, seed=7)(domain.points))
    assert not torch.equal(m, other)


def test_a_perturbation_beyond_the_bound_is_refused():
    f = smooth(BOX)
    for perturbation in (problems.rough(2, 0.2), lambda X: X[:, 0] * math.nan, lambda X: X):
        with pytest.raises(ValueError, match=r"perturbation|misspecification"):
            problems.Perturbed(f, perturbation, 0.1)
    # Too narrow for the check of the constructor, caught where it is met.
    needle = torch.tensor([3.3, -6.5], dtype=torch.float64)
    p = problems.Perturbed(f, lambda X: (X == needle).all(dim=-1).double(), 0.1)
    with pytest.raises(ValueError, match=r"misspecification=0\.1, got 1\.0"):
        p(needle)


def test_an_unknown_maximum_stays_unknown():
    task, center = problems.SVCTuning(), torch.tensor([1.0, -2.0], dtype=torch.float64)
    p = problems.Perturbed(task, problems.adversarial(task, EPSILON, center=center), EPSILON)
    assert p.optimal_value is p.optimizer is None
    with pytest.raises(ValueError, match="center"):
        problems.adversarial(task, EPSILON)
