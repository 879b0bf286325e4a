"""The cost of an instance: complexities against loops over small grids, packings, exponents and
slopes against their definitions."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import PeriodicKernel, ScaleKernel
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import botorch_ext as bx
from botorch_ext.analysis import (
    consistency_exponent,
    fitted_slope,
    greedy_packing,
    instance_cost,
    least_regret,
    lower_complexity,
    lower_exponent,
    minimax_exponent,
    regret_lower_bound,
    upper_complexity,
    upper_exponent,
)
from botorch_ext.kernels.rkhs_norms import bump_norm
from tests.helpers import matern, rbf
from tests.oracles.complexity import Instance

# --- packings -------------------------------------------------------------------------------------


def packed(points: np.ndarray, distance: float) -> list[int]:
    rows: list[int] = []
    for i, point in enumerate(points):
        if all(math.dist(point, points[j]) >= distance * (1 - 1e-9) for j in rows):
            rows.append(i)
    return rows


@pytest.mark.parametrize("spacing", [None, 0.1, 0.25, 0.3])
@given(
    num=st.integers(0, 90),
    dim=st.integers(1, 3),
    share=st.sampled_from([1, 2, 3, 0.01, 1.1, 7.3, 500]),
    seed=st.integers(0, 99),
)
def test_a_packing_has_the_points_of_the_definition(num, dim, spacing, share, seed):
    distance = share * (spacing or 0.1)
    rng = np.random.default_rng(seed)
    # With a spacing, many are equal or exactly a distance apart, up to rounding.
    points = rng.normal(size=(num, dim)) + 40
    if spacing is not None:
        points = -2 + spacing * rng.integers(0, 6, size=(num, dim))
    rows = greedy_packing(torch.from_numpy(points), distance)
    assert rows.dtype == torch.int64
    assert rows.tolist() == packed(points, distance)


# --- complexities ---------------------------------------------------------------------------------


def kernel_of(nu: float, lengthscales: list[float], variance: float = 1.0):
    kernel = rbf(*lengthscales) if nu == math.inf else matern(*lengthscales, nu=nu)
    if variance == 1.0:
        return kernel
    kernel = ScaleKernel(kernel).double()
    kernel.outputscale = variance
    return kernel


class Hill:
    """A problem: -|(x - center) / widths|^growth up to a height, of plain numbers."""

    noise_std = 0.1
    optimizer = None

    def __init__(self, bounds, center, widths, growth=1.0, height=1.0):
        self.domain = bx.Box(bounds)
        self.center, self.widths, self.growth, self.height = center, widths, growth, height
        self.optimal_value: float | None = height

    def at(self, x):
        scaled = [(a - b) / w for a, b, w in zip(x, self.center, self.widths, strict=True)]
        return self.height - math.hypot(*scaled) ** self.growth

    def __call__(self, X):
        return torch.tensor([self.at(tuple(x)) for x in X.tolist()], dtype=X.dtype)


LINE = Hill([[3.0], [5.0]], [3.7], [0.9])
PLANE = Hill([[3.0, -2.0], [5.0, -1.5]], [4.1, -1.83], [0.8, 0.3], growth=1.4, height=0.4)
ROUGH = kernel_of(0.5, [0.4])
# nu, problem, shape, lengthscales, variance, room for bumps, gap: so that some terms count.
CASES = [
    (0.5, LINE, (31,), [0.4], 1.0, 90.0, 0.05),
    (1.5, LINE, (31,), [0.8], 2.5, 500.0, 0.03),
    (0.5, PLANE, (11, 9), [0.9, 0.2], 0.6, 60.0, 0.2),
    (2.5, PLANE, (11, 9), [0.7, 0.1], 1.7, 9e4, 0.1),
    (0.5, PLANE, (23, 19), [0.9, 0.4], 1.0, 12.0, 0.25),
]


def oracle(problem, shape, lengthscales):
    bounds = problem.domain.bounds.tolist()
    return Instance(problem.at, problem.optimal_value, bounds, shape, lengthscales)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_lower_complexity_is_its_definition(case):
    nu, problem, shape, scales, variance, room, gap = case
    bump, kernel = bump_norm(nu, len(shape)), kernel_of(nu, scales, variance)
    for D in (gap / 8, gap, 1.3 * gap):
        found = lower_complexity(problem, kernel, D, room + 1.5, 1.5, shape=shape)
        terms = oracle(problem, shape, scales).lower_terms(nu, D, room, bump, variance)
        # By volume many: up to rounding.
        packings = [term.packing for term in found.terms]
        assert packings == pytest.approx([many for _, many in terms], rel=1e-6)
        assert [term.radius for term in found.terms] == pytest.approx([w for w, _ in terms])
        assert [term.admissible for term in found.terms] == [w <= 1 for w, _ in terms]
        value = sum(many / (2 ** (k + 2) * D) for k, (_, many) in enumerate(terms))
        assert found.value == pytest.approx(value, rel=1e-6) and found.value > 0
        assert [term.low for term in found.terms] == [2**k * D for k in range(len(terms))]
        assert [term.high for term in found.terms] == [2 ** (k + 1) * D for k in range(len(terms))]
        coarsest = max(oracle(problem, shape, scales).steps)
        assert [term.resolved for term in found.terms] == [w >= coarsest for w, _ in terms]


@pytest.mark.parametrize(
    "case", [*CASES, (math.inf, PLANE, (9, 9), [0.7, 0.3], 1.2, 1.0, 0.1)], ids=range(6)
)
def test_upper_complexity_is_its_definition(case):
    nu, problem, shape, scales, variance, _, gap = case
    kernel, instance = kernel_of(nu, scales, variance), oracle(problem, shape, scales)
    for D, B in ((gap / 30, 0.02), (gap, 0.3), (3 * gap, 2.0)):
        found = upper_complexity(problem, kernel, D, B, shape=shape)
        terms = instance.upper_terms(nu, D, B, variance, 160)
        assert found.value == pytest.approx(sum(many / low for low, many, _, _ in terms), rel=1e-9)
        num = len(found.terms)
        assert [term.packing for term in found.terms] == [many for _, many, _, _ in terms[:num]]
        assert {many for _, many, _, _ in terms[num:]} == {1}
        assert found.tail == pytest.approx(sum(1 / low for low, *_ in terms[num:]), rel=1e-9)
        assert [term.high for term in found.terms] == pytest.approx([row[2] for row in terms[:num]])
        assert [2 * term.radius for term in found.terms] == pytest.approx(
            [distance for *_, distance in terms[:num]]
        )


def test_columns_that_the_kernel_does_not_see_do_not_matter():
    wider = Hill([(-7.0, -6.0), (3.0, 5.0)], [0.0, 3.7], [math.inf, 0.9])
    blind = matern(0.4, nu=0.5, active_dims=(1,))
    for function, numbers in (
        (lower_complexity, (0.05, 90.0, 1.0)),
        (upper_complexity, (0.05, 9.0)),
    ):
        one = function(LINE, ROUGH, *numbers, shape=(31,))
        assert one == function(wider, blind, *numbers, shape=(5, 31))


def test_the_default_grid_has_160000_points():
    kernel = kernel_of(1.5, [0.7, 0.3])
    problem = bx.problems.RKHSFunction(kernel, [[4.0, -1.8]], [0.9], PLANE.domain)
    one = upper_complexity(problem, kernel, 0.5, 0.3)
    assert one == upper_complexity(problem, kernel, 0.5, 0.3, shape=(400, 400))


def test_the_largest_value_on_the_grid_stands_in_for_an_unknown_maximum():
    unknown, known = (Hill([[3.0], [5.0]], [3.7], [0.9]) for _ in range(2))
    unknown.optimal_value = None
    known.optimal_value = max(unknown.at((3 + 2 * (i + 0.5) / 31,)) for i in range(31))
    one, two = (upper_complexity(f, ROUGH, 0.05, 90.0, shape=(31,)) for f in (unknown, known))
    assert one == two


# --- costs ----------------------------------------------------------------------------------------


def test_the_lower_bound_and_its_constant():
    for printed, factor, constant in ((False, 16, 13 / 9), (True, 1, 7 / 4)):
        found = regret_lower_bound(
            LINE, ROUGH, 10_000, 90.0, 1.0, 0.3, 0.4, printed=printed, shape=(300,)
        )
        gap = factor * 10_000 ** (0.4 - 1)
        value = lower_complexity(LINE, ROUGH, gap, 90.0, 1.0, shape=(300,)).value
        assert value > 0
        assert found == pytest.approx(constant * math.log(2) * 0.3**2 * value)


def bernoulli(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def test_the_least_regret_is_its_definition():
    horizon, worst, sigma = 2000, 13.0, 0.3
    instance, sums = oracle(PLANE, (15, 13), [0.9, 0.2]), []
    for phase in range(4):
        gap, total = 2 * worst / horizon * 2 ** (phase / 4), 0.0
        for k, (_, many) in enumerate(instance.lower_terms(0.5, gap, 29.0, bump_norm(0.5, 2), 1.0)):
            level = 2**k * gap
            share = worst / (horizon * level)
            evaluations = bernoulli(share, 1 - share) * 2 * sigma**2 / (3 * level) ** 2
            total += many * level * evaluations
        sums.append(total)
    kernel = kernel_of(0.5, [0.9, 0.2])
    found = least_regret(PLANE, kernel, horizon, 30.0, 1.0, sigma, worst, shape=(15, 13))
    assert found == pytest.approx(max(sums), rel=1e-6)
    assert found > min(sums) > 0


def test_instance_cost_is_made_of_the_parts():
    kernel, numbers, shape = kernel_of(0.5, [0.9, 0.2]), (80.0, 2.0), (40, 30)
    cost = instance_cost(PLANE, kernel, 3000, *numbers, 0.2, consistency=0.5, shape=shape)
    assert cost.lower == lower_complexity(PLANE, kernel, 16 * 3000**-0.5, *numbers, shape=shape)
    assert cost.lower_bound == regret_lower_bound(
        PLANE, kernel, 3000, *numbers, 0.2, 0.5, shape=shape
    )
    assert (cost.worst_case, cost.consistency) == (pytest.approx(2.5 / 3), 0.5)
    assert cost.upper == upper_complexity(PLANE, kernel, cost.upper.gap, 80.0, shape=shape)
    assert cost.upper_order == cost.upper.value
    assert instance_cost(PLANE, kernel, 9, 3.0, 1.0, 0.1, shape=(9, 9)).consistency == (
        pytest.approx(2.5 / 3)
    )
    smooth = instance_cost(PLANE, rbf(0.7, 0.3), 200, 3.0, 1.0, 0.1, shape=(9, 9))
    assert (smooth.lower, smooth.lower_bound, smooth.worst_case) == (None, None, 0.5)
    assert "unknown" in repr(smooth) and f"{smooth.upper.value:.4g}" in repr(smooth)


def test_the_upper_gap_is_the_level_that_the_horizon_reaches():
    kernel, shape, bound = kernel_of(0.5, [0.9, 0.2]), (20, 30), 0.02
    instance, rho = oracle(PLANE, shape, [0.9, 0.2]), 2**-0.5
    packings = [instance.upper_terms(0.5, rho ** (h / 2), bound, 1.0, 1)[0][1] for h in range(8)]
    spent, deep = 0.0, 0
    for h, many in enumerate(packings):
        spent += rho**-h * many
        for horizon in (math.floor(spent), math.ceil(spent)):
            cost = instance_cost(PLANE, kernel, horizon, bound, 0.01, 0.1, shape=shape)
            reached = rho ** (max(h if horizon >= spent else h - 1, 0) / 2)
            deep += reached < horizon ** (-1 / 6)
            assert cost.upper.gap == pytest.approx(min(horizon ** (-1 / 6), reached))
    assert deep > 4


@pytest.mark.parametrize(("lengthscale", "bound"), [(0.4, 30.0), (0.4, 1.5), (4.0, 3.0)])
def test_before_some_horizon_the_lower_bound_is_silent(lengthscale, bound):
    """f is too flat, a bump is wider than a lengthscale, or than the box."""

    def cost(horizon):
        kernel = kernel_of(0.5, [lengthscale])
        return instance_cost(LINE, kernel, horizon, bound, 1.0, 0.1, consistency=0.3, shape=(3000,))

    largest = max(1 - LINE.at((3 + 2 * (i + 0.5) / 3000,)) for i in range(3000))
    widest = min(1.0, 2 / lengthscale / 2)
    gap = min(largest, (bound - 1) * widest**0.5 / (3 * bump_norm(0.5, 1)))
    silent = cost(10).silent_before
    assert silent == pytest.approx((16 / gap) ** (1 / 0.7))
    before, later = cost(math.floor(silent)), cost(200 * math.ceil(silent))
    assert before.lower_bound == 0 < later.lower_bound
    assert f"every horizon before {silent:.2g}" in repr(before)
    assert "horizon before" not in repr(later)
    if bound == 1.5:  # no longer wider, but the set of this gap is smaller still
        assert "no ball fits" in repr(cost(math.ceil(1.2 * silent)))


def test_the_table_of_terms():
    upper = upper_complexity(PLANE, kernel_of(0.5, [0.9, 0.2]), 0.01, 0.3, shape=(20, 20))
    lower = lower_complexity(LINE, ROUGH, 0.05, 3.0, 1.0, shape=(20,))
    assert (
        "finer than the grid" in str(upper) and not upper.resolved and "not counted" in str(lower)
    )
    for term, row in zip(upper.terms, str(upper).splitlines()[2:], strict=False):
        numbers = [term.k, term.low, term.high, term.radius, term.packing, term.value]
        assert [float(cell) for cell in row.split()[:6]] == pytest.approx(numbers, rel=1e-3)


SET = Hill([[3.0], [5.0]], [3.7], [0.9])
SET.domain = bx.FiniteSet([[3.0], [4.0]])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: lower_complexity(LINE, ROUGH, 0.1, 3, 3), "norm"),
        (lambda: lower_complexity(LINE, rbf(1.0), 0.1, 3, 1), "nu"),
        (lambda: upper_complexity(LINE, PeriodicKernel(), 0.1, 3), "kernel"),
        (lambda: upper_complexity(LINE, ROUGH, 0.1, 3, shape=(2**25,)), "shape"),
        (lambda: upper_complexity(SET, ROUGH, 0.1, 3), "problem"),
        (lambda: regret_lower_bound(LINE, ROUGH, 9, 3, 1, 0.1, 1), "consistency"),
        (lambda: least_regret(LINE, ROUGH, 9, 3, 4, 0.1, 1), "norm"),
    ],
)
def test_what_the_theory_does_not_cover_is_refused(call, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        call()


# --- exponents ------------------------------------------------------------------------------------

smooth = st.floats(0.3, 4)
dims = st.integers(1, 6)


@given(nu=smooth, d=dims, b=st.floats(0.4, 12), a=st.floats(0, 1))
def test_exponents_are_their_formulas(nu, d, b, a):
    gain = d / (2 * nu + d)  # gamma_T ~ T^gain
    worst = minimax_exponent(nu, d)
    assert worst == pytest.approx((1 + gain) / 2)  # sqrt(T gamma_T)
    for method in ("sup_kernel_ucb", "bpe", "breadthwise_exploration"):
        assert consistency_exponent(method, nu, d) == pytest.approx(worst)
    for method in ("gp_ucb", "igp_ucb"):  # sqrt(T) gamma_T, which may exceed T
        assert consistency_exponent(method, nu, d) == pytest.approx(min(1, 1 / 2 + gain))
    pi = (d * (2 * d + 3) + 2 * nu) / (d * (2 * d + 4) + 4 * nu)
    assert consistency_exponent("pi_gp_ucb", nu, d) == pytest.approx(pi)
    xi = min(nu, 1)
    ratio = d / xi - d / b if b > xi else 0.0  # cells of a level ~ gap^-ratio
    assert upper_exponent(nu, b, d) == pytest.approx(min(worst, (ratio + 1) / (ratio + 2)))
    lower = lower_exponent(nu, b, d, a)
    if b <= nu:
        assert lower is None
        return
    assert lower == pytest.approx((1 - a) * (1 + d / nu * (1 - nu / b)))
    # Corollary 2.
    own = lower_exponent(nu, b, d, worst)
    assert own == pytest.approx((nu + d * (1 - nu / b)) / (2 * nu + d))
    assert own <= upper_exponent(nu, b, d) + 1e-12


@given(d=dims)
def test_an_infinitely_smooth_kernel_has_the_limits(d):
    assert minimax_exponent(math.inf, d) == pytest.approx(minimax_exponent(1e15, d))
    assert upper_exponent(math.inf, 4, d) == pytest.approx(upper_exponent(1e15, 4, d))
    assert lower_exponent(math.inf, 4, d, 0.5) is None
    for method in ("gp_ucb", "pi_gp_ucb", "bpe"):
        limit = consistency_exponent(method, 1e15, d)
        assert consistency_exponent(method, math.inf, d) == pytest.approx(limit)


# --- slopes ---------------------------------------------------------------------------------------

STEPS = [100, 180, 330, 600, 1100, 2000]


@given(seed=st.integers(0, 1000), runs=st.integers(2, 6), level=st.floats(0.1, 0.99))
def test_a_slope_is_its_definition(seed, runs, level):
    rng = np.random.default_rng(seed)
    regret = np.exp(rng.normal(size=(runs, len(STEPS))))
    slopes = [stats.linregress(np.log(STEPS), np.log(run)).slope for run in regret]
    ends = stats.t.interval(level, runs - 1, loc=np.mean(slopes), scale=stats.sem(slopes))
    for given_ in (regret, torch.as_tensor(regret), regret.tolist()):
        found = fitted_slope(torch.tensor(STEPS), given_, confidence=level)
        assert tuple(found) == pytest.approx((np.mean(slopes), *ends))
