"""Complexities against loops over small grids, closed forms, and their invariances."""

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel

import botorch_ext as bx
from botorch_ext.analysis import (
    Complexity,
    instance_cost,
    least_regret,
    lower_complexity,
    regret_lower_bound,
    upper_complexity,
)
from botorch_ext.kernel_functions.rkhs_norms import bump_norm
from tests.oracles.complexity import Instance


def kernel_of(nu: float, lengthscales: list[float], variance: float = 1.0):
    many = len(lengthscales) if len(lengthscales) > 1 else None
    kernel = RBFKernel(ard_num_dims=many) if nu == math.inf else MaternKernel(nu, ard_num_dims=many)
    kernel.double().lengthscale = torch.tensor(lengthscales, dtype=torch.float64)
    if variance == 1.0:
        return kernel
    kernel = ScaleKernel(kernel).double()
    kernel.outputscale = variance
    return kernel


class Hill:
    """A problem: -|(x - center) / widths|^growth up to a height, of plain numbers."""

    noise_std = 0.1
    optimizer = None

    def __init__(self, bounds, center, widths, growth: float = 1.0, height: float = 1.0) -> None:
        self.domain = bx.Box(bounds)
        self.center, self.widths, self.growth, self.height = center, widths, growth, height
        self.optimal_value: float | None = height

    def at(self, x: tuple[float, ...]) -> float:
        scaled = [(a - b) / w for a, b, w in zip(x, self.center, self.widths, strict=True)]
        return self.height - math.hypot(*scaled) ** self.growth

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        return torch.tensor([self.at(tuple(x)) for x in X.tolist()], dtype=X.dtype)


LINE = Hill([[3.0], [5.0]], [3.7], [0.9])
PLANE = Hill([[3.0, -2.0], [5.0, -1.5]], [4.1, -1.83], [0.8, 0.3], growth=1.4, height=0.4)
MATERN = kernel_of(0.5, [0.4])
# nu, problem, shape, lengthscales, variance. Room for bumps and gaps: that some terms count.
CASES = [
    (0.5, LINE, (31,), [0.4], 1.0, 90.0, 0.05),
    (1.5, LINE, (31,), [0.8], 2.5, 500.0, 0.03),
    (0.5, PLANE, (11, 9), [0.9, 0.2], 0.6, 60.0, 0.2),
    (1.5, PLANE, (9, 11), [0.7, 0.3], 1.0, 900.0, 0.2),
    (2.5, PLANE, (11, 9), [0.7, 0.1], 1.7, 9e4, 0.1),
    (0.5, PLANE, (23, 19), [0.9, 0.4], 1.0, 12.0, 0.2),
    (0.5, PLANE, (23, 19), [0.9, 0.4], 1.0, 12.0, 0.25),
]
IDS = [f"{case[0]}-{case[2]}" for case in CASES]


def oracle(problem: Hill, shape, lengthscales) -> Instance:
    assert problem.optimal_value is not None
    bounds = problem.domain.bounds.tolist()
    return Instance(problem.at, problem.optimal_value, bounds, shape, lengthscales)


@pytest.mark.parametrize(
    ("nu", "problem", "shape", "scales", "variance", "room", "gap"), CASES, ids=IDS
)
def test_lower_complexity_is_its_definition(
    nu, problem, shape, scales, variance, room, gap
) -> None:
    kernel = kernel_of(nu, scales, variance)
    bump = bump_norm(nu, len(shape))
    for each in (gap / 8, gap, 1.3 * gap):
        found = lower_complexity(problem, kernel, each, room + 1.5, 1.5, shape=shape)
        terms = oracle(problem, shape, scales).lower_terms(nu, each, room, bump, variance)
        assert [term.packing for term in found.terms] == pytest.approx(
            [many for _, many in terms], rel=1e-6
        )
        assert [term.radius for term in found.terms] == pytest.approx([w for w, _ in terms])
        assert [term.admissible for term in found.terms] == [w <= 1 for w, _ in terms]
        value = sum(many / (2 ** (k + 2) * each) for k, (_, many) in enumerate(terms))
        assert found.value == pytest.approx(value, rel=1e-6)
        assert found.value > 0
        assert [term.low for term in found.terms] == [2**k * each for k in range(len(terms))]


@pytest.mark.parametrize(
    ("nu", "problem", "shape", "scales", "variance", "room", "gap"),
    [*CASES, (math.inf, PLANE, (9, 9), [0.7, 0.3], 1.2, 1.0, 0.1)],
    ids=[*IDS, "rbf"],
)
def test_upper_complexity_is_its_definition(
    nu, problem, shape, scales, variance, room, gap
) -> None:
    kernel = kernel_of(nu, scales, variance)
    for each, bound in ((gap / 30, 0.02), (gap, 0.3), (3 * gap, 2.0)):
        found = upper_complexity(problem, kernel, each, bound, shape=shape)
        instance = oracle(problem, shape, scales)
        # So many that the gap of the last is 2^-40 of the first's inverse.
        terms = instance.upper_terms(nu, each, bound, variance, 160)
        value = sum(many / level_gap for level_gap, many, _, _ in terms)
        assert found.value == pytest.approx(value, rel=1e-9)
        num = len(found.terms)
        assert [term.packing for term in found.terms] == [many for _, many, _, _ in terms[:num]]
        assert {many for _, many, _, _ in terms[num:]} == {1}
        assert [term.high for term in found.terms] == pytest.approx([row[2] for row in terms[:num]])
        radii = [distance / 2 for *_, distance in terms[:num]]
        assert [term.radius for term in found.terms] == pytest.approx(radii)


def test_balls_on_a_slope_are_counted_exactly() -> None:
    # f falls by 1 for each unit of x: {D 2^k <= f* - f < D 2^(k+1)} is an interval of length D 2^k.
    slope = Hill([[2.0], [4.0]], [2.0], [1.0])
    kernel, room, gap = kernel_of(0.5, [0.5]), 12.0, 0.06
    found = lower_complexity(slope, kernel, gap, room + 1, 1.0, shape=(20_000,))
    bump = bump_norm(0.5, 1)
    lengths = [min(2 * low, 2.0) - low for low in (gap * 2**k for k in range(6))]
    radii = [(3 * gap * 2**k * bump / room) ** 2 for k in range(6)]
    exact = [length / 0.5 / (2 * w) for length, w in zip(lengths, radii, strict=True)]
    assert len(found.terms) == 6 and found.resolved
    for term, many in zip(found.terms, exact, strict=True):
        # Each center is up to a step off.
        assert many * 0.98 - 1 <= term.packing <= many


def test_terms_finer_than_the_grid_are_counted_by_volume() -> None:
    problem, kernel, gap = PLANE, kernel_of(0.5, [0.9, 0.2]), 0.004
    fine = upper_complexity(problem, kernel, gap, 0.3, shape=(150, 150))
    coarse = upper_complexity(problem, kernel, gap, 0.3, shape=(20, 20))
    assert not fine.resolved and not coarse.resolved
    between = [a for a, b in zip(fine.terms, coarse.terms, strict=True) if a.resolved > b.resolved]
    assert between
    for term in between:
        assert 0.8 < coarse.terms[term.k].packing / term.packing < 1.2


def test_units_do_not_matter() -> None:
    kernel, shape = kernel_of(1.5, [0.7, 0.3]), (9, 11)
    other = Hill([[30.0, -2000.0], [50.0, -1500.0]], [41.0, -1830.0], [8.0, 300.0], 1.4, 0.4)
    scaled = kernel_of(1.5, [7.0, 300.0])
    lower = lower_complexity(PLANE, kernel, 0.2, 900.0, 1.0, shape=shape)
    assert lower.value == pytest.approx(
        lower_complexity(other, scaled, 0.2, 900.0, 1.0, shape=shape).value
    )
    upper = upper_complexity(PLANE, kernel, 0.1, 0.3, shape=shape)
    assert upper.value == pytest.approx(
        upper_complexity(other, scaled, 0.1, 0.3, shape=shape).value
    )


def test_a_column_the_kernel_does_not_see_does_not_count() -> None:
    class Wider(Hill):
        def at(self, x: tuple[float, ...]) -> float:
            return super().at(x[1:])

    wider = Wider([(-7.0, -6.0), (3.0, 5.0)], [3.7], [0.9])
    kernel = MaternKernel(0.5, active_dims=(1,)).double()
    kernel.lengthscale = torch.tensor(0.4, dtype=torch.float64)
    arguments = (kernel_of(0.5, [0.4]), 0.05, 90.0)
    for both in (
        [lower_complexity(LINE, *arguments, 1.0, shape=(31,)),
         lower_complexity(wider, kernel, *arguments[1:], 1.0, shape=(5, 31))],
        [upper_complexity(LINE, *arguments, shape=(31,)),
         upper_complexity(wider, kernel, *arguments[1:], shape=(5, 31))],
    ):  # fmt: skip
        assert both[0].terms == both[1].terms


def test_the_largest_value_on_the_grid_stands_in_for_an_unknown_maximum() -> None:
    unknown = Hill([[3.0], [5.0]], [3.7], [0.9])
    unknown.optimal_value = None
    known = Hill([[3.0], [5.0]], [3.7], [0.9])
    known.optimal_value = max(unknown.at((3 + 2 * (i + 0.5) / 31,)) for i in range(31))
    arguments = (kernel_of(0.5, [0.4]), 0.05, 90.0)
    assert upper_complexity(unknown, *arguments, shape=(31,)) == upper_complexity(
        known, *arguments, shape=(31,)
    )


def test_the_lower_bound_and_its_constant() -> None:
    horizon, a, sigma = 10_000, 0.4, 0.3
    kernel = kernel_of(0.5, [0.4])
    for printed, factor, constant in ((False, 16, 13 / 9), (True, 1, 7 / 4)):
        found = regret_lower_bound(
            LINE, kernel, horizon, 90.0, 1.0, sigma, a, printed=printed, shape=(300,)
        )
        gap = factor * horizon ** (a - 1)
        value = lower_complexity(LINE, kernel, gap, 90.0, 1.0, shape=(300,)).value
        assert value > 0
        assert found == pytest.approx(constant * math.log(2) * sigma**2 * value)
    # Evaluations in a ball: 2 sigma^2 kl(1/8, 7/8) / (3 D)^2 at least, each of them costing D.
    kl = 3 / 4 * math.log(7)
    assert 13 / 9 * math.log(2) / 4 <= 2 * kl / 9


def bernoulli(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def test_the_least_regret_is_its_definition() -> None:
    horizon, worst, sigma = 2000, 13.0, 0.3
    instance, bump = oracle(PLANE, (15, 13), [0.9, 0.2]), bump_norm(0.5, 2)
    sums = []
    for phase in (0, 1, 2, 3):
        gap = 2 * worst / horizon * 2 ** (phase / 4)
        total = 0.0
        for k, (_, many) in enumerate(instance.lower_terms(0.5, gap, 29.0, bump, 1.0)):
            level = 2**k * gap
            share = worst / (horizon * level)
            evaluations = bernoulli(share, 1 - share) * 2 * sigma**2 / (3 * level) ** 2
            total += many * level * evaluations
        sums.append(total)
    kernel = kernel_of(0.5, [0.9, 0.2])
    found = least_regret(PLANE, kernel, horizon, 30.0, 1.0, sigma, worst, shape=(15, 13))
    assert found == pytest.approx(max(sums), rel=1e-6)
    assert found > min(sums) > 0


@pytest.mark.parametrize("horizon", [300, 1000, 30_000])
def test_the_least_regret_is_sharper_than_the_lower_bound_for_large_horizons(horizon: int) -> None:
    arguments = (LINE, MATERN, horizon, 90.0, 1.0, 0.3)
    sharper = least_regret(*arguments, 2 * horizon**0.4, shape=(300,))
    assert sharper > regret_lower_bound(*arguments, 0.4, shape=(300,)) > 0


def test_instance_cost_is_made_of_the_parts() -> None:
    horizon, bound, norm, sigma = 3000, 80.0, 2.0, 0.2
    kernel, shape = kernel_of(0.5, [0.9, 0.2]), (40, 30)
    cost = instance_cost(PLANE, kernel, horizon, bound, norm, sigma, consistency=0.5, shape=shape)
    gap = 16 * horizon**-0.5
    assert cost.lower == lower_complexity(PLANE, kernel, gap, bound, norm, shape=shape)
    assert cost.lower_bound == regret_lower_bound(
        PLANE, kernel, horizon, bound, norm, sigma, 0.5, shape=shape
    )
    assert cost.worst_case == pytest.approx(2.5 / 3)
    assert cost.upper_order == cost.upper.value
    assert cost.upper == upper_complexity(PLANE, kernel, cost.upper.gap, bound, shape=shape)
    text = repr(cost)
    for part in ("3000 evaluations", "worst case T^0.5", "lower complexity", "finer than the grid"):
        assert part in text


def test_the_upper_gap_is_the_level_that_the_horizon_reaches() -> None:
    kernel, shape, bound = kernel_of(0.5, [0.9, 0.2]), (20, 30), 0.02
    instance, rho = oracle(PLANE, shape, [0.9, 0.2]), 2**-0.5
    packings = [instance.upper_terms(0.5, rho ** (h / 2), bound, 1.0, 1)[0][1] for h in range(12)]
    spent = [sum(rho**-i * packings[i] for i in range(h + 1)) for h in range(12)]
    deep = 0
    for h, budget in enumerate(spent[:8]):
        for horizon in (math.floor(budget), math.ceil(budget)):
            cost = instance_cost(PLANE, kernel, horizon, bound, 0.01, 0.1, shape=shape)
            reached = rho ** (max(h if horizon >= budget else h - 1, 0) / 2)
            deep += reached < horizon ** (-1 / 6)
            assert cost.upper.gap == pytest.approx(min(horizon ** (-1 / 6), reached))
    assert deep > 4


def test_bumps_are_at_most_a_lengthscale_wide() -> None:
    room = 1.5
    widest = room / 3 / bump_norm(0.5, 1)
    for gap, admissible in ((0.99 * widest, True), (1.01 * widest, False)):
        found = lower_complexity(LINE, kernel_of(0.5, [0.4]), gap, room + 1, 1.0, shape=(50,))
        assert found.terms[0].admissible is admissible
        assert not any(term.admissible for term in found.terms[1:])


def test_nothing_is_known_from_below_of_the_rbf_kernel() -> None:
    kernel = kernel_of(math.inf, [0.7, 0.3])
    cost = instance_cost(PLANE, kernel, 200, 3.0, 1.0, 0.1, shape=(9, 9))
    assert cost.lower is None and cost.lower_bound is None
    assert cost.worst_case == 0.5
    assert "least regret: unknown" in repr(cost)
    with pytest.raises(ValueError, match="RBF"):
        lower_complexity(PLANE, kernel, 0.1, 3.0, 1.0, shape=(9, 9))


@pytest.mark.parametrize(
    ("lengthscale", "bound"),
    [(0.4, 30.0), (0.4, 1.5), (4.0, 3.0)],
    ids=["f is too flat", "wider than a lengthscale", "wider than the box"],
)
def test_before_some_horizon_the_lower_bound_is_silent(lengthscale: float, bound: float) -> None:
    def cost(horizon: int):
        kernel = kernel_of(0.5, [lengthscale])
        return instance_cost(LINE, kernel, horizon, bound, 1.0, 0.1, consistency=0.3, shape=(3000,))

    largest = max(LINE.height - LINE.at((3 + 2 * (i + 0.5) / 3000,)) for i in range(3000))
    widest = min(1.0, 2 / lengthscale / 2)
    gap = min(largest, (bound - 1) * widest**0.5 / (3 * bump_norm(0.5, 1)))
    silent_before = cost(10).silent_before
    assert silent_before == pytest.approx((16 / gap) ** (1 / 0.7))
    before, later = cost(math.floor(silent_before)), cost(200 * math.ceil(silent_before))
    assert before.lower_bound == 0
    assert f"0 (as for every horizon before {silent_before:.2g})" in repr(before)
    assert later.lower_bound is not None and later.lower_bound > 0
    assert "horizon before" not in repr(later)


def test_a_lower_bound_of_zero_for_want_of_room() -> None:
    def cost(horizon: int):
        return instance_cost(LINE, MATERN, horizon, 1.8, 1.0, 0.1, consistency=0.3, shape=(500,))

    # Bumps are no longer wider than a lengthscale, but the set of this gap is smaller still.
    found = cost(math.ceil(1.2 * cost(10).silent_before))
    assert found.lower is not None and found.lower.terms[0].admissible
    assert found.lower_bound == 0
    assert "no ball fits where it must" in repr(found)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_domains_of_any_kind(device: torch.device, dtype: torch.dtype) -> None:
    kernel = kernel_of(0.5, [0.9, 0.2])
    costs = []
    for box in (PLANE.domain, PLANE.domain.to(dtype, device)):
        problem = bx.problems.RKHSFunction(kernel, [[4.0, -1.8]], [0.9], box)
        costs.append(instance_cost(problem, kernel, 300, 3.0, 1.0, 0.1, shape=(13, 11)))
    assert costs[1].upper.value == pytest.approx(costs[0].upper.value, rel=0.05)


def test_the_table_of_terms() -> None:
    text = str(upper_complexity(PLANE, kernel_of(0.5, [0.9, 0.2]), 0.01, 0.3, shape=(20, 20)))
    assert "finer than the grid: by volume" in text and "all further terms" in text
    text = str(lower_complexity(LINE, kernel_of(0.5, [0.4]), 0.05, 3.0, 1.0, shape=(20,)))
    assert "wider than a lengthscale: not counted" in text
    assert str(Complexity(0.0, 0.1, ())).startswith("0 at gap 0.1")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lower_complexity(LINE, MATERN, 0.0, 3, 1), "gap must be positive and finite"),
        (lambda: upper_complexity(LINE, MATERN, math.nan, 3), "gap must be positive and finite"),
        (lambda: lower_complexity(LINE, MATERN, 0.1, 3, 3), "norm must be at least 0 and"),
        (lambda: lower_complexity(LINE, MATERN, 0.1, 3, -1), "norm must be at least 0 and"),
        (lambda: upper_complexity(LINE, MATERN, 0.1, -3), "rkhs_bound must be non-negative"),
        (lambda: lower_complexity(LINE, PeriodicKernel(), 0.1, 3, 1), "kernel must be"),
        (lambda: upper_complexity(LINE, PeriodicKernel(), 0.1, 3), "kernel must be RBF or Matern"),
        (lambda: upper_complexity(LINE, MATERN, 0.1, 3, shape=(3, 4)), "shape must be 1 whole"),
        (lambda: upper_complexity(LINE, MATERN, 0.1, 3, shape=7), "shape must be whole numbers"),
        (lambda: upper_complexity(LINE, MATERN, 0.1, 3, shape=(2**25,)), "shape must have"),
        (lambda: regret_lower_bound(LINE, MATERN, 0, 3, 1, 0.1, 0.6), "horizon must be at"),
        (lambda: regret_lower_bound(LINE, MATERN, 9, 3, 1, 0.1, 1), "consistency must be at"),
        (lambda: regret_lower_bound(LINE, MATERN, 9, 3, 1, -1, 0.6), "noise_std must be"),
        (lambda: least_regret(LINE, MATERN, 9, 3, 1, 0.1, 0), "worst_regret must be positive"),
        (lambda: least_regret(LINE, MATERN, 9, 3, 4, 0.1, 1), "norm must be at least 0 and"),
        (lambda: instance_cost(LINE, MATERN, 9.5, 3, 1, 0.1), "horizon must be a whole number"),
    ],
)  # fmt: skip
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_finite_set_is_refused() -> None:
    problem = Hill([[3.0], [5.0]], [3.7], [0.9])
    problem.domain = bx.FiniteSet([[3.0], [4.0]])
    with pytest.raises(ValueError, match="problem must be on a Box, got FiniteSet"):
        upper_complexity(problem, MATERN, 0.1, 3.0)
