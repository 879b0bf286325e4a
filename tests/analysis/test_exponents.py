"""Exponents of regret against the closed forms of the paper's corollaries and against limits."""

import math
from itertools import product

import pytest

from botorch_ext.analysis import (
    consistency_exponent,
    lower_exponent,
    minimax_exponent,
    upper_exponent,
)

SMOOTHNESS = (0.5, 0.9, 1.5, 2.5, 3.7)
GROWTH = (0.6, 0.75, 1.0, 2.0, 4.0, 11.0)
DIMS = (1, 2, 5)
ROWS = [(nu, b, d) for nu, b, d in product(SMOOTHNESS, GROWTH, DIMS) if b > nu]


def close(value: float | None, expected: float) -> bool:
    return value is not None and math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-14)


@pytest.mark.parametrize("d", DIMS)
@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_minimax_exponent(nu: float, d: int) -> None:
    # sqrt(T gamma_T) with gamma_T ~ T^(d / (2 nu + d)).
    assert close(minimax_exponent(nu, d), (1 + d / (2 * nu + d)) / 2)


def test_corollary_of_sup_kernel_ucb() -> None:
    for nu, b, d in ROWS:
        ours = lower_exponent(nu, b, d, consistency_exponent("sup_kernel_ucb", nu, d))
        assert close(ours, (nu + d * (1 - nu / b)) / (2 * nu + d))


def test_corollary_of_gp_ucb() -> None:
    for nu, b, d in ROWS:
        ours = lower_exponent(nu, b, d, consistency_exponent("gp_ucb", nu, d))
        factor = max(1 - d / (2 * nu), 0)  # no bound below T is known of it where 2 nu <= d
        assert close(ours, factor * (nu + d * (1 - nu / b)) / (2 * nu + d))


def test_corollary_of_pi_gp_ucb() -> None:
    for nu, b, d in ROWS:
        ours = lower_exponent(nu, b, d, consistency_exponent("pi_gp_ucb", nu, d))
        expected = (d / nu + 2) * (nu + d * (1 - nu / b)) / (d * (2 * d + 4) + 4 * nu)
        assert close(ours, expected)


def test_other_methods_have_the_exponents_of_their_bounds() -> None:
    for nu, d in product(SMOOTHNESS, DIMS):
        gain = d / (2 * nu + d)  # gamma_T ~ T^gain
        for method in ("bpe", "breadthwise_exploration"):  # sqrt(T gamma_T)
            assert close(consistency_exponent(method, nu, d), (1 + gain) / 2)
        assert close(consistency_exponent("igp_ucb", nu, d), min(1, 1 / 2 + gain))  # sqrt(T) gamma


def test_proposition_2_by_cases() -> None:
    for nu, b, d in product(SMOOTHNESS, GROWTH, DIMS):
        worst = (nu + d) / (2 * nu + d)
        smoothness = 1.0 if nu > 1 else nu
        if b <= smoothness:  # cells near the maximum number no more on one level than on another
            easy = 1 / 2
        else:
            ratio = d / smoothness - d / b  # cells of a level ~ gap^-ratio
            easy = (ratio + 1) / (ratio + 2)
        assert close(upper_exponent(nu, b, d), min(worst, easy))


def test_the_lower_exponent_is_never_above_the_upper_one() -> None:
    for nu, b, d in ROWS:
        lower = lower_exponent(nu, b, d, minimax_exponent(nu, d))
        assert lower is not None
        assert lower <= upper_exponent(nu, b, d) + 1e-12


def test_no_lower_exponent_where_the_growth_does_not_exceed_the_smoothness() -> None:
    assert lower_exponent(2.5, 2, 1, 0.6) is None
    assert lower_exponent(2.5, 2.5, 1, 0.6) is None
    assert lower_exponent(math.inf, 4, 2, 0.5) is None


def test_an_infinitely_smooth_kernel_has_the_limits() -> None:
    methods = ("sup_kernel_ucb", "gp_ucb", "pi_gp_ucb", "igp_ucb", "bpe", "breadthwise_exploration")
    for d in DIMS:
        assert close(minimax_exponent(math.inf, d), minimax_exponent(1e15, d))
        assert close(upper_exponent(math.inf, 4, d), upper_exponent(1e15, 4, d))
        for method in methods:
            limit = consistency_exponent(method, 1e15, d)
            assert close(consistency_exponent(method, math.inf, d), limit)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimax_exponent(0, 1), "nu must be positive, got 0"),
        (lambda: minimax_exponent(math.nan, 1), "nu must be positive, got nan"),
        (lambda: minimax_exponent("two", 1), "nu must be one number, got 'two'"),
        (lambda: minimax_exponent(0.5, 0), "dim must be at least 1, got 0"),
        (lambda: upper_exponent(0.5, 0, 1), "growth must be positive and finite, got 0"),
        (lambda: upper_exponent(0.5, 1, 1.5), "dim must be a whole number, got 1.5"),
        (lambda: lower_exponent(0.5, math.inf, 1, 0.5), "growth must be positive and finite"),
        (lambda: lower_exponent(0.5, 1, 1, 1.2), r"consistency must lie in \[0, 1\], got 1.2"),
        (lambda: lower_exponent(2.5, 1, 1, -1), r"consistency must lie in \[0, 1\], got -1"),
        (lambda: consistency_exponent("ucb", 0.5, 1), "method must be one of .*pi_gp_ucb.*'ucb'"),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
