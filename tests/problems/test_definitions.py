"""Values, norms, gaps, worst cases and candidate models of functions against their definitions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from scipy.optimize import minimize
from torch.testing import assert_close

from botorch_ext import KernelGP, problems
from botorch_ext.domains import Box, FiniteSet
from botorch_ext.kernels import AdditiveKernel
from botorch_ext.kernels.rkhs_norms import growth_norm
from botorch_ext.problems import (
    CorrelatedMode,
    GrowthFunction,
    HighestHill,
    LengthscalePeak,
    RepeatedSignal,
    TwoPeaks,
)
from tests.helpers import drawn, matern, rbf, tolerance
from tests.kernel_functions.kernels import periodic, scaled

BOX = Box([[2.0, -7.0], [5.0, -6.2]])
CONTEXTS = Box([[10.0], [24.0]])
JOINT = Box([[2.0, -7.0, 10.0], [5.0, -6.2, 24.0]])
ARMS = FiniteSet(BOX.sample(40, seed=4))
TASKS = FiniteSet([[0.0], [1.0], [2.0]])
CLOSE = tolerance(torch.float64)
WEIGHTS = [1.0, -2.0, 0.5, 3.0, -1.0, 0.1]


def of_two_parts(nu=2.5):
    """RBF over the actions times Matern over the context."""
    return rbf(0.9, 0.3, active_dims=[0, 1]) * matern(4.0, nu=nu, active_dims=[2])


def rbf_value(x, y):
    return math.exp(-(((x[0] - y[0]) / 0.9) ** 2 + ((x[1] - y[1]) / 0.3) ** 2) / 2)


def joint_value(x, y):
    r = math.sqrt(5) * abs(x[2] - y[2]) / 4.0
    return rbf_value(x, y) * (1 + r + r * r / 3) * math.exp(-r)


def peak(std):
    height = 0.8 / (std * math.sqrt(2 * math.pi))
    return lambda x: 0.6 * x[0] + height * math.exp(-((x[0] - 0.2) ** 2) / (2 * std**2))


def signal(x):
    x = x[0] % 1
    if x < 1 / 4:
        return math.sin(8 * math.pi * (x - 1 / 8))
    if x < 1 / 2:
        return 1.5 * math.sin(8 * math.pi * (x - 1 / 4))
    if x < 5 / 7:
        return 1.2 * math.sin(28 / 3 * math.pi * (x - 11 / 28))
    return 0.8 * math.sin(7 * math.pi * (x - 5 / 7))


def two_bumps(x):
    squares = [sum((a - center) ** 2 for a in x) for center in (0.2, 0.65)]
    narrow = 1.2 * math.exp(-squares[0] / (2 * 0.05**2))
    return narrow + math.exp(-squares[1] / (2 * 0.2**2))


ROUGH = matern(0.9, 0.3, nu=0.5)
GROWTH = problems.GrowthFunction(ROUGH, BOX, 1.5, 2.0, center=[2.6, -6.5], scale=1.4, noise_std=0.1)


def growth(x):
    squared = ((x[0] - 2.6) / (1.4 * 0.9)) ** 2 + ((x[1] + 6.5) / (1.4 * 0.3)) ** 2
    return GROWTH.height * (1 - (1 - math.exp(-squared)) ** 0.75)


EXPANSION = problems.RKHSFunction(rbf(0.9, 0.3), BOX.sample(6, seed=1), WEIGHTS, BOX, noise_std=0.3)
CONTEXTUAL = problems.ContextualRKHSFunction(
    of_two_parts(), JOINT.sample(6, seed=1), WEIGHTS, BOX, 0.2
)


def expansion(centers, k):
    pairs = list(zip(WEIGHTS, centers.tolist(), strict=True))
    return lambda x: sum(weight * k(center, x) for weight, center in pairs)


HILLS = problems.HighestHill(seed=3, height=7.0, other_height=1.5)


def fourth_hill(x):
    off = x[0] % 1 - 0.5
    height = 7.0 if int(x[0]) == 3 else 1.5
    return height * math.cos(math.pi * off / 0.6) ** 2 if abs(off) < 0.3 else 0.0


LINE, TWO, TEN = (Box([[0.0], [end]]) for end in (1.0, 2.0, 10.0))
SQUARE = Box([[0.0, 0.0], [1.0, 1.0]])
# Each: the function, its definition, where it is evaluated, and its noise.
DEFINED = {
    "narrow peak": (problems.LengthscalePeak(), peak(0.08), LINE, 0.05),
    "wide peak": (problems.LengthscalePeak(peak_std=0.3), peak(0.3), LINE, 0.05),
    "signal": (problems.RepeatedSignal(noise_std=0.2), signal, TWO, 0.2),
    "two peaks": (
        problems.TwoPeaks(SQUARE),
        two_bumps,
        SQUARE,
        problems.TwoPeaks(SQUARE).noise_std,
    ),
    "growth": (GROWTH, growth, Box([[1.0, -9.0], [30.0, -5.0]]), 0.1),
    "expansion": (EXPANSION, expansion(EXPANSION.centers, rbf_value), BOX, 0.3),
    "contextual": (CONTEXTUAL, expansion(CONTEXTUAL.joint.centers, joint_value), JOINT, 0.2),
}


@pytest.mark.parametrize("name", DEFINED)
def test_values_are_the_definition(name):
    f, definition, box, noise_std = DEFINED[name]
    X = box.sample(60, seed=2)
    values = torch.tensor([definition(x) for x in X.tolist()], dtype=torch.float64)
    assert_close(f(X), values, rtol=1e-9, atol=1e-12)
    assert_close(f(X[2].tolist()), values[2], **CLOSE)
    assert f(X[2]).shape == f(X[2].tolist()).shape == ()
    assert f.noise_std == noise_std


def test_the_means_of_hills_are_the_definition_alone_and_together():
    X = TEN.sample(100, seed=0)
    expected = torch.tensor([fourth_hill(x) for x in X.tolist()], dtype=torch.float64)
    assert_close(HILLS.mean(3)(X), expected, **CLOSE)
    single = [HILLS.mean(position) for position in range(11)]
    heights = torch.stack([mean.heights for mean in single])
    many = type(single[0])(heights)
    heights.zero_()  # they are copied
    assert_close(many(X), torch.stack([mean(X) for mean in single]), **CLOSE)
    assert bool((single[10](X) <= 1.5).all())
    with pytest.raises(ValueError, match="heights"):
        type(single[0])([1.0, 2.0, 3.0])


def test_the_norm_is_its_definition_where_a_repeated_center_counts_once():
    for f, centers, k in (
        (EXPANSION, EXPANSION.centers, rbf_value),
        (CONTEXTUAL, CONTEXTUAL.joint.centers, joint_value),
    ):
        pairs = list(zip(WEIGHTS, centers.tolist(), strict=True))
        squared = sum(a * b * k(x, y) for a, x in pairs for b, y in pairs)
        assert f.norm == pytest.approx(math.sqrt(squared), rel=1e-9)
    twice = problems.RKHSFunction(rbf(0.7), [[3.0, -6.5], [3.0, -6.5]], [1.0, 0.5], BOX)
    assert twice.norm == pytest.approx(1.5, rel=1e-12)


@pytest.mark.parametrize(
    "kernel", [rbf(0.7, 0.3), matern(0.7, nu=0.5), ScaleKernel(MaternKernel(nu=2.5))]
)
@pytest.mark.parametrize("norm", [0.5, 3.0])
def test_random_functions_have_exactly_the_norm(kernel, norm):
    f = problems.RKHSFunction.random(BOX, kernel, norm, num_centers=30, seed=4)
    assert f.norm == pytest.approx(norm, rel=1e-12)
    K = kernel.double()(f.centers).to_dense().detach()
    assert float(f.weights @ K @ f.weights) == pytest.approx(norm**2, rel=1e-9)
    assert bool(BOX.contains(f.centers).all())


@pytest.mark.parametrize("contexts", [CONTEXTS, TASKS])
@pytest.mark.parametrize("domain", [BOX, ARMS])
def test_a_random_function_of_contexts_has_the_norm_and_centers_of_independent_pairs(
    domain, contexts
):
    f = problems.ContextualRKHSFunction.random(
        domain, contexts, of_two_parts(), norm=2.0, num_centers=400, seed=3
    )
    assert f.norm == pytest.approx(2.0, rel=1e-9)
    centers = f.joint.centers
    assert centers.shape == (400, 3)
    assert bool(domain.contains(centers[:, :2].contiguous()).all())
    assert bool(contexts.contains(centers[:, 2:].contiguous()).all())
    # Independent pairs correlate by more than 5 / sqrt(400) with a probability of 6e-7.
    assert bool((centers.T.corrcoef()[2, :2].abs() < 0.25).all())


def test_a_later_change_of_the_kernel_does_not_reach_the_function():
    kernel = RBFKernel().double()
    f = problems.RKHSFunction(kernel, [[3.0, -6.5]], [1.0], BOX)
    before = f([4.0, -6.4])
    kernel.lengthscale = 10.0
    assert float(f([4.0, -6.4])) == float(before)
    assert kernel.raw_lengthscale.requires_grad
    assert not before.requires_grad


def test_the_best_value_on_a_set_or_among_given_actions_is_that_of_a_loop():
    f = problems.ContextualRKHSFunction.random(ARMS, CONTEXTS, of_two_parts(), norm=2.0, seed=3)
    for z in (10.5, 17.0, 23.0):
        values = [float(f([*x, z])) for x in ARMS.points.tolist()]
        context = torch.tensor([z], dtype=torch.float64)
        for given in ([z], context):
            assert f.optimal_value_at(given) == pytest.approx(max(values), rel=1e-12)
        assert torch.equal(f.optimizer_at([z]), ARMS.points[values.index(max(values))])
        some = ARMS.points[[5, 6, 7, 8, 5]]
        assert f.optimal_value_at(context, some) == pytest.approx(max(values[5:9]), rel=1e-12)


class Counted(problems.ContextualFunction):
    """f(x, z) = -|x - z|^2, and how often it was evaluated."""

    calls = 0

    def _evaluate(self, X):
        self.calls += 1
        return -(X[:, :2] - X[:, 2:]).square().sum(dim=-1)


def test_the_search_for_a_maximum_is_made_once_for_each_context():
    f, z = Counted(BOX, 2), drawn(2) * (BOX.upper - BOX.lower) + BOX.lower
    assert f.optimal_value_at(z.tolist()) == pytest.approx(0.0, abs=1e-9)
    assert_close(f.optimizer_at(z), z, rtol=0, atol=1e-5)
    calls = f.calls
    assert f.optimal_value_at(z) == f.optimal_value_at(z.tolist())
    assert f.calls == calls
    assert f.optimal_value_at([6.0, -6.5]) == pytest.approx(-1.0, abs=1e-9)
    assert f.calls > calls
    assert f.optimal_value_at([3.0, -6.5], torch.tensor([[3.0, -6.0]]).double()) == -0.25


@pytest.mark.parametrize("exponent", [0.75, 1.0, 2.0, 3.1, 4.0])
def test_the_gap_grows_by_the_exponent(exponent):
    f = GrowthFunction(ROUGH, BOX, exponent, norm=1.0)
    assert f.optimal_value == f.height == float(f(f.center))
    direction = torch.tensor([0.6 * 0.9, 0.8 * 0.3], dtype=torch.float64)  # one lengthscale
    steps = torch.tensor([1e-3, 1e-2], dtype=torch.float64)
    shares = f.gap(f.center + steps.unsqueeze(-1) * direction) / (f.height * steps**exponent)
    assert shares.tolist() == pytest.approx([1.0, 1.0], rel=2e-4)
    X = BOX.sample(50, seed=0)
    torch.testing.assert_close(f.gap(X), f.optimal_value - f(X), **tolerance(X.dtype))


def test_a_column_that_the_kernel_does_not_look_at_does_not_count():
    f = GrowthFunction(scaled(matern(0.3, nu=0.5, active_dims=(1,)), 0.49), BOX, 1.0, norm=3.0)
    # A multiple of the kernel makes the space of its multiples: the norm falls by its root.
    assert f.height == pytest.approx(3.0 * 0.7 / growth_norm(0.5, 1.0, 1), rel=1e-12)
    assert float(f([2.1, -6.6])) == float(f([4.1, -6.6]))


def test_the_default_center_is_inside_and_no_corner_of_a_cell():
    for dim in (1, 2, 9):
        box = Box([[-1.0] * dim, [2.0] * dim])
        center = GrowthFunction(matern(0.5, nu=0.5), box, 1.0, norm=1.0).center
        unit = box.to_unit(center)
        assert bool(((0.05 < unit) & (unit < 0.97)).all())
        cells = unit * 2.0**10
        assert float((cells - cells.round()).abs().min()) > 1e-3
        assert len(set(unit.tolist())) == dim


def test_it_is_differentiable_also_at_its_maximum():
    f = GrowthFunction(ROUGH, BOX, 0.75, norm=2.0)
    X = torch.cat([f.center.unsqueeze(0), BOX.sample(3, seed=0)]).requires_grad_()
    (gradient,) = torch.autograd.grad(f(X).sum(), X)
    assert gradient[0].tolist() == [0.0, 0.0]
    step = torch.tensor([1e-6, 0.0], dtype=torch.float64)
    slopes = (f(X.detach() + step) - f(X.detach() - step)) / 2e-6
    torch.testing.assert_close(gradient[1:, 0], slopes[1:], rtol=1e-5, atol=1e-7)


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


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def test_a_peak_is_in_the_space_of_the_models_whose_lengthscale_is_short_enough():
    # A bump of standard deviation s belongs to the space of lengthscale l where l < sqrt(2) s.
    assert LengthscalePeak().true_model is None
    assert LengthscalePeak(peak_std=math.sqrt(0.08)).true_model == 0


@pytest.mark.slow
def test_the_periods_and_lengthscales_are_the_most_likely_ones():
    problem = RepeatedSignal()
    pieces = [(0.0, 2.0, 200), *((a, b, 100) for a, b in pairwise(problem.edges))]
    for (start, end, n), stored in zip(pieces, problem.fits, strict=True):
        X = start + (end - start) * torch.arange(n, dtype=torch.float64) / n
        y, r = problem(X.unsqueeze(-1)).numpy(), (X[:, None] - X).abs().numpy()

        def deviance(log, y=y, r=r):
            period, lengthscale = np.exp(log)
            K = np.exp(-2 * np.sin(np.pi * r / period) ** 2 / lengthscale)
            L = np.linalg.cholesky(K + 0.05**2 * np.eye(len(y)))
            return float(0.5 * (np.linalg.solve(L, y) ** 2).sum() + np.log(L.diagonal()).sum())

        # Screened over periods from half the piece to four times its length.
        least, most = 0.1 if end == 2.0 else (end - start) / 2, (end - start) * 4
        periods = [*np.geomspace(least, most, 40), *((1.0,) if end == 2.0 else ())]
        starts = [np.log([p, length]) for p in periods for length in (0.03, 0.3, 3.0, 10.0)]
        starts.sort(key=deviance)
        close = {"xatol": 1e-7, "fatol": 1e-9}
        ends = [minimize(deviance, at, method="Nelder-Mead", options=close) for at in starts[:4]]
        found = min(ends, key=lambda end: end.fun)
        assert list(stored) == pytest.approx(np.exp(found.x).tolist(), rel=5e-4)
    assert problem.fits[problem.true_model][0] == pytest.approx(1.0, abs=1e-3)
    assert all(abs(period - 1) > 0.7 for period, _ in problem.fits[1:])


def test_the_norm_of_the_correlated_mode_is_that_of_the_true_kernel():
    problem, k, norms = CorrelatedMode(), rbf(0.2), []
    # Interpolants in (k(x12) + k(x3)) / 2 at more and more points come close to the norm from
    # below. There are few points: the matrix of nearly dependent ones says nothing.
    for n in (4, 7):
        axis = torch.linspace(0, 1, n, dtype=torch.float64)
        X = torch.cartesian_prod(axis, axis, torch.tensor([0.0, 0.5], dtype=torch.float64))
        K = (k(X[:, :2]).to_dense() + k(X[:, 2:]).to_dense()).detach() / 2
        y = problem(X).unsqueeze(-1)
        norms.append(float((y.mT @ torch.linalg.lstsq(K, y, driver="gelsd").solution).sqrt()))
    assert norms[0] < norms[1] <= problem.norm * (1 + 1e-6)


def test_the_correlated_mode_is_additive_but_for_the_corner_with_its_maximum():
    problem = CorrelatedMode(Box([[0.0] * 3, [1.0] * 3]))
    X = problem.domain.sample(50, seed=0)
    moved = torch.cat([X[:, :2], torch.full_like(X[:, 2:], 0.5)], dim=-1)
    assert torch.equal(problem(X), problem(moved))

    def interaction(low, high):
        """The largest mixed difference on a square: 0 for a sum of functions of one variable."""
        axis = torch.linspace(low, high, 30, dtype=torch.float64)
        X = torch.cartesian_prod(axis, axis, torch.tensor([0.5], dtype=torch.float64))
        F = problem(X).reshape(30, 30)
        return float((F - F[:1] - F[:, :1] + F[0, 0]).abs().max())

    assert interaction(0.0, 0.4) < 0.02
    assert interaction(0.0, 1.0) > 1.4
    assert float(problem([0.3, 0.3, 0.1])) == pytest.approx(1.0, abs=5e-3)
    assert problem.optimizer[:2].tolist() == pytest.approx([0.875, 0.875], abs=5e-3)
    assert CorrelatedMode().optimal_value > 1.4


def test_functions_with_hills_are_draws_around_the_mean_of_the_true_model():
    num_seeds, points = 400, FiniteSet(column(0.1, 0.3, 2.5, 7.2))
    residuals, hills = [], set()
    for seed in range(num_seeds):
        problem = HighestHill(seed, points)
        hills.add(problem.true_model)
        residuals.append(problem(points.points) - problem.mean(problem.true_model)(points.points))
    Z = torch.stack(residuals)
    K = rbf(0.3)(points.points).to_dense().detach()
    # Five standard errors of a covariance of unit normals.
    assert_close(Z.mT @ Z / num_seeds, K, atol=5 * math.sqrt(2 / num_seeds), rtol=0.0)
    assert hills == set(range(10))


MADE = {
    "peak": LengthscalePeak,
    "signal": RepeatedSignal,
    "one lengthscale": lambda domain=None: RepeatedSignal(domain, shared_lengthscale=True),
    "decomposition": CorrelatedMode,
    "hills": lambda domain=None: HighestHill(0, domain),
}


def kernel_of(problem, position):
    match problem:
        case LengthscalePeak():
            return rbf(problem.lengthscales[position])
        case RepeatedSignal():
            period, lengthscale = problem.fits[position]
            return periodic(
                period, problem.fits[0][1] if problem.shared_lengthscale else lengthscale
            )
        case CorrelatedMode():
            return AdditiveKernel(rbf(0.2), problem.decompositions[position], 3)
    return rbf(0.3)


@pytest.mark.parametrize("name", MADE)
def test_candidates_have_the_posterior_of_their_kernels_in_any_order(name, device):
    problem = MADE[name](MADE[name]().domain.to(device=device))
    noise = problem.candidates().noise_variance
    assert_close(noise, torch.full_like(noise, problem.noise_std**2), **CLOSE)
    points = problem.domain.like[torch.arange(0, problem.domain.num_points, 37)]
    X, Z, order = points[:6], points[6:9], list(reversed(range(len(problem.names))))
    models = problem.candidates(noise_variance=0.1, order=order)
    assert models.names == problem.candidates().names[::-1]
    models.add(X, problem(X))
    mean, std = models.mean_and_std(Z)
    assert mean.device == problem.domain.device
    for i, position in enumerate(order):
        prior = problem.mean(position) if isinstance(problem, HighestHill) else None
        alone = KernelGP(kernel_of(problem, position), 0.1, prior, device=mean.device)
        alone.add(X, problem(X))
        for found, expected in zip((mean[i], std[i]), alone.mean_and_std(Z), strict=True):
            assert_close(found, expected, **CLOSE)
    with pytest.raises(ValueError, match="order"):
        problem.candidates(order=[0])
